//! Gavel's forms: ten columns, or the older seven.

use super::field::{Field, Range, split_at};
use super::{Command, Line, Read, Reader, TraceForm, TracedJob};
use crate::units::{Seconds, Steps};
use crate::workload::Job;

/// The position of each column.
struct Columns {
    n: usize,
    working_directory: Option<usize>,
    steps_argument: usize,
    needs_data: usize,
    total_steps: usize,
    scale_factor: usize,
    weight: Option<usize>,
    slo: Option<usize>,
    arrival: usize,
}

const TEN: Columns = Columns {
    n: 10,
    working_directory: Some(2),
    steps_argument: 3,
    needs_data: 4,
    total_steps: 5,
    scale_factor: 6,
    weight: Some(7),
    slo: Some(8),
    arrival: 9,
};

const SEVEN: Columns = Columns {
    n: 7,
    working_directory: None,
    steps_argument: 2,
    needs_data: 3,
    total_steps: 4,
    scale_factor: 6,
    weight: None,
    slo: None,
    arrival: 5,
};

pub(super) fn read<'a>(
    reader: &mut Reader<'_>,
    first: Line<'a>,
    rest: impl Iterator<Item = Line<'a>>,
) -> (TraceForm, Vec<Read>) {
    let (form, columns) = match first.text.split('\t').count() {
        7 => (TraceForm::GavelSeven, SEVEN),
        _ => (TraceForm::Gavel, TEN),
    };
    let mut jobs = Vec::new();
    for line in std::iter::once(first).chain(rest) {
        let fields = split_at(line.text, '\t', line.number);
        if fields.len() == columns.n {
            let id = jobs.len().to_string();
            jobs.extend(job(reader, &columns, &fields, id));
        } else {
            // The place is the end of the line.
            let place = fields[fields.len() - 1].place;
            let expected = if form == TraceForm::Gavel { "10, or 7 on every line" } else { "7" };
            let message = format!("{} tab-separated columns, expected {expected}", fields.len());
            reader.complain(place, message, None);
        }
    }
    (form, jobs)
}

fn job(reader: &mut Reader<'_>, columns: &Columns, fields: &[Field<'_>], id: String) -> Option<Read> {
    let mut named = |result: Result<String, String>, field: &Field<'_>| {
        result.map_err(|message| reader.complain(field.place, message, None)).ok()
    };
    let job_type = named(fields[0].name("job type"), &fields[0]);
    let scale_factor = &fields[columns.scale_factor];
    let size =
        scale_factor.scale_factor().map_err(|message| reader.complain(scale_factor.place, message, None));
    let steps = reader.number(&fields[columns.total_steps], "total steps", Range::Positive);
    let arrival = reader.number(&fields[columns.arrival], "arrival", Range::NotNegative);
    let weight = match columns.weight {
        Some(weight) => reader.number(&fields[weight], "weight", Range::Positive),
        None => Some(1.0),
    };
    // Any negative number means that there is none.
    let slo = columns.slo.map(|slo| &fields[slo]);
    let factor = match slo {
        Some(slo) => reader.number(slo, "SLO", Range::Any),
        None => Some(-1.0),
    };
    let job = Job::new(job_type?)
        .scale_factor(size.ok()?)
        .total_steps(Steps::new(steps?))
        .arrival(Seconds::new(arrival?))
        .weight(weight?);
    let factor = factor?;
    Some(Read {
        traced: TracedJob { job, id, command: Some(command(columns, fields)) },
        id: None,
        job_type: fields[0].place,
        scale_factor: scale_factor.place,
        arrival: fields[columns.arrival].place,
        sizes: scale_factor.place,
        slo_factor: slo.filter(|_| factor >= 0.0).map(|slo| (factor, slo.place)),
    })
}

fn command(columns: &Columns, fields: &[Field<'_>]) -> Command {
    let text = |column: usize| fields[column].text.trim().to_owned();
    Command {
        command: text(1),
        working_directory: columns.working_directory.map(text),
        steps_argument: text(columns.steps_argument),
        needs_data: !matches!(text(columns.needs_data).as_str(), "" | "0"),
    }
}
