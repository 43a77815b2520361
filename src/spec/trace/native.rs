//! Our CSV: a header line that names the columns, in any order; only `job_type` and `total_steps` are required.

#[cfg(feature = "schema")]
use serde::Deserialize;

use super::field::{Field, Range, split_commas};
use super::{Line, Read, Reader, TraceForm, TracedJob};
use crate::spec::nearest::{name_list, suggestion};
use crate::spec::places::Place;
use crate::units::{Seconds, Steps};
use crate::workload::Job;

/// All columns.
pub(super) const COLUMNS: [&str; 9] =
    ["id", "job_type", "scale_factor", "total_steps", "arrival", "weight", "slo", "entity", SIZES];

/// The last column, which is written only if a job has sizes.
pub(super) const SIZES: &str = "sizes";

/// A job of a trace: a line of comma-separated text, under a line that names its columns, in any order. Text with a comma is in
/// double quotes; an empty field has its default.
#[cfg(feature = "schema")]
#[derive(Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "a description for people: lines are read field by field")]
struct Described {
    /// The name of the job; no two jobs have the same. By default its position in the file, from 0.
    id: Option<String>,
    /// The name of the job's type in the throughput matrix.
    job_type: String,
    /// Workers that the job needs at once; 1 by default.
    #[schemars(range(min = 1), extend("x-unit" = "workers"))]
    scale_factor: Option<u32>,
    /// Steps to the end of the job, above 0.
    #[schemars(extend("x-unit" = "steps"))]
    total_steps: f64,
    /// The time at which the job arrives, from the start of the trace; 0 by default. Jobs are in order of arrival.
    #[schemars(extend("x-unit" = "s"))]
    arrival: Option<f64>,
    /// The importance of the job, above 0; 1 by default.
    weight: Option<f64>,
    /// The time from its arrival within which the job ought to be done, above 0; none by default.
    #[schemars(extend("x-unit" = "s"))]
    slo: Option<f64>,
    /// The owner of the job, one of the run's `entities`.
    entity: Option<String>,
    /// Numbers of workers that the job may be given, ascending and separated by spaces, such as `1 2 4`, its scale factor
    /// among them: for policies that change them. By default the job keeps its scale factor.
    sizes: Option<String>,
}

/// The JSON Schema of a line, as a mapping of columns to values.
#[cfg(feature = "schema")]
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(Described)
}

/// The columns that are required.
const REQUIRED: [&str; 2] = ["job_type", "total_steps"];

pub(super) fn read<'a>(
    reader: &mut Reader<'_>,
    header: Line<'a>,
    rest: impl Iterator<Item = Line<'a>>,
) -> (TraceForm, Vec<Read>) {
    let mut jobs = Vec::new();
    let Some(columns) = columns(reader, header) else { return (TraceForm::Native, jobs) };
    for line in rest {
        match split_commas(line.text, line.number) {
            Err((place, message)) => reader.complain(place, message.to_owned(), None),
            Ok(fields) if fields.len() == columns.len() => {
                let position = jobs.len();
                jobs.extend(job(reader, &columns, &fields, position));
            }
            Ok(fields) => {
                let place = fields[fields.len() - 1].place;
                let message =
                    format!("{} columns, expected {} as in the header", fields.len(), columns.len());
                reader.complain(place, message, None);
            }
        }
    }
    (TraceForm::Native, jobs)
}

/// The message and the remedy for a first line that names columns and does not separate them by commas, or that names a separator.
fn other_separator(header: &str) -> Option<(&'static str, &'static str)> {
    if header.trim_start().starts_with("sep=") {
        return Some((
            "a line that tells Excel the separator",
            "leave it out: the first line names the columns",
        ));
    }
    let is_by = |by: char| header.contains(by) && header.split(by).all(|name| COLUMNS.contains(&name.trim()));
    is_by(';').then_some((
        "columns are separated by `;`, expected `,`",
        "`python3 -c 'import csv, sys; csv.writer(sys.stdout).writerows(csv.reader(sys.stdin, delimiter=\";\"))' <OLD >NEW` \
         separates them so",
    ))
}

/// The column names in the header; none if it is no header.
fn columns(reader: &mut Reader<'_>, header: Line<'_>) -> Option<Vec<String>> {
    let before = reader.n_complaints;
    if let Some((message, help)) = other_separator(header.text) {
        let place = Place { line: header.number, column: 1, width: header.text.chars().count() };
        reader.complain(place, message.to_owned(), Some(help.to_owned()));
        return None;
    }
    let fields = split_commas(header.text, header.number)
        .map_err(|(place, message)| reader.complain(place, message.to_owned(), None))
        .ok()?;
    let mut names: Vec<String> = Vec::new();
    for field in &fields {
        let name = field.text.trim();
        if names.iter().any(|other| other == name) {
            reader.complain(
                field.place,
                format!("column `{}` is there twice, expected once", field.brief()),
                None,
            );
        } else if !COLUMNS.contains(&name) {
            let message =
                format!("unknown column `{}`, expected some of {}", field.brief(), name_list(COLUMNS));
            reader.complain(field.place, message, suggestion(name, COLUMNS));
        }
        names.push(name.to_owned());
    }
    if reader.n_complaints == before {
        for name in REQUIRED {
            if !names.iter().any(|other| other == name) {
                let place = Place { line: header.number, column: 1, width: header.text.chars().count() };
                reader.complain(
                    place,
                    format!("no column `{name}`"),
                    Some("the first line names the columns".to_owned()),
                );
            }
        }
    }
    (reader.n_complaints == before).then_some(names)
}

fn job(reader: &mut Reader<'_>, columns: &[String], fields: &[Field<'_>], position: usize) -> Option<Read> {
    let given = |name: &str| {
        let field = columns.iter().position(|other| other == name).map(|column| &fields[column]);
        field.filter(|field| !field.text.trim().is_empty())
    };
    let before = reader.n_complaints;
    let start = Place { width: 1, ..fields[0].place };
    let mut required = |name: &str| {
        let field = given(name);
        if field.is_none() {
            reader.complain(start, format!("no {name}, expected one for each job"), None);
        }
        field
    };
    let (job_type, total_steps) = (required("job_type"), required("total_steps"));
    let (job_type, total_steps) = (job_type?, total_steps?);
    let mut job = Job::new(text(reader, job_type, "job type")?);
    job.total_steps = Steps::new(reader.number(total_steps, "total_steps", Range::Positive)?);
    if let Some(field) = given("scale_factor") {
        match field.scale_factor() {
            Ok(scale_factor) => job.scale_factor = scale_factor,
            Err(message) => reader.complain(field.place, message, None),
        }
    }
    if let Some(field) = given("arrival") {
        job.arrival = Seconds::new(reader.number(field, "arrival", Range::NotNegative)?);
    }
    if let Some(field) = given("weight") {
        job.weight = reader.number(field, "weight", Range::Positive)?;
    }
    if let Some(field) = given("slo") {
        job.slo = reader.number(field, "slo", Range::Positive).map(Seconds::new);
    }
    if let Some(field) = given(SIZES) {
        job.sizes = sizes(reader, field, job.scale_factor)?;
    }
    job.entity = given("entity").and_then(|field| text(reader, field, "entity"));
    let id = match given("id") {
        Some(field) => text(reader, field, "id")?,
        None => position.to_string(),
    };
    let place = |name| given(name).map(|field| field.place);
    (reader.n_complaints == before).then(|| Read {
        traced: TracedJob { job, id, command: None },
        id: Some(place("id").unwrap_or(start)),
        job_type: job_type.place,
        scale_factor: place("scale_factor").unwrap_or(start),
        arrival: place("arrival").unwrap_or(start),
        sizes: place(SIZES).unwrap_or(start),
        slo_factor: None,
    })
}

/// The sizes of a job of this scale factor.
fn sizes(reader: &mut Reader<'_>, field: &Field<'_>, scale_factor: u32) -> Option<Vec<u32>> {
    let numbers: Result<Vec<u32>, _> = field.text.split_whitespace().map(str::parse).collect();
    let Ok(sizes) = numbers else {
        let message = format!(
            "sizes `{}`, expected numbers of workers separated by spaces, such as `1 2 4`",
            field.brief()
        );
        reader.complain(field.place, message, None);
        return None;
    };
    let job = Job::new("").scale_factor(scale_factor).sizes(sizes);
    match job.check_sizes() {
        Ok(()) => Some(job.sizes),
        Err(error) => {
            reader.complain(field.place, error.to_string(), None);
            None
        }
    }
}

fn text(reader: &mut Reader<'_>, field: &Field<'_>, what: &str) -> Option<String> {
    field.name(what).map_err(|message| reader.complain(field.place, message, None)).ok()
}
