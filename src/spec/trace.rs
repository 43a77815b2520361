//! Traces: jobs in files, in our CSV and in Gavel's two forms, read and written.
//!
//! In: a [`Source`], and throughputs if job types are to be checked. Out: a [`Trace`], its jobs in order of arrival. The form is
//! recognized by the first line.
//!
//! | form      | a line is                                                                                    |
//! |-----------|----------------------------------------------------------------------------------------------|
//! | native    | comma-separated, under a header: `id,job_type,scale_factor,total_steps,arrival,weight,slo,entity,sizes` |
//! | Gavel, 10 | tab-separated: job type, command, working directory, steps argument, needs-data flag, total steps, scale factor, weight, SLO, arrival |
//! | Gavel, 7  | tab-separated: job type, command, steps argument, needs-data flag, total steps, arrival, scale factor |
//!
//! Times are seconds. A native SLO is the time from arrival; Gavel's is a multiple of the time the job takes alone on the reference
//! worker type, the matrix's first, and −1 for none.

pub mod field;
mod gavel;
mod native;
mod write;

#[cfg(feature = "schema")]
pub use native::schema;
pub use write::{Number, WriteTraceError, WrittenTrace, write_trace};

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::index::{Id, RowId, WorkerTypeId};
use crate::spec::document::LISTED_MAX;
use crate::spec::nearest::suggestion;
use crate::spec::places::Place;
use crate::spec::{Source, SpecError};
use crate::throughput::Throughputs;
use crate::workload::{Job, Listed};
use field::{Field, Range};

/// The form of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceForm {
    /// Our CSV.
    Native,
    /// Gavel's ten columns.
    Gavel,
    /// Gavel's older seven columns, without weight and SLO.
    GavelSeven,
}

/// The treatment of jobs that are not in order of arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TraceOrder {
    /// Refuse the trace.
    #[default]
    Refuse,
    /// Sort them; jobs of equal arrival keep their order.
    Sort,
}

/// Jobs of a file, in order of arrival.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The form it was read in.
    pub form: TraceForm,
    /// Its jobs.
    pub jobs: Vec<TracedJob>,
}

/// A job with the data of the file that a scheduler does not need.
#[derive(Clone, Debug, PartialEq)]
pub struct TracedJob {
    /// The job.
    pub job: Job,
    /// Its id in the file; its position if the form has no ids.
    pub id: String,
    /// The command that starts it, in Gavel's forms.
    pub command: Option<Command>,
}

/// The command by which Gavel starts a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The command line.
    pub command: String,
    /// The folder in which it runs; none in the form of seven columns.
    pub working_directory: Option<String>,
    /// The argument that states its steps.
    pub steps_argument: String,
    /// Whether it needs a data directory.
    pub needs_data: bool,
}

impl Trace {
    /// Leaves out jobs that the matrix has no throughputs for. Answers their number.
    pub fn retain_known(&mut self, throughputs: &Throughputs) -> usize {
        let n_before = self.jobs.len();
        self.jobs.retain(|TracedJob { job, .. }| {
            let is_known = |size: &u32| throughputs.find(&job.job_type, *size).is_some();
            is_known(&job.scale_factor) && job.sizes.iter().all(is_known)
        });
        n_before - self.jobs.len()
    }

    /// The jobs alone, with their ids as names, unless every id is the job's position.
    pub fn into_jobs(self) -> Vec<Job> {
        let mut jobs = self.jobs.iter().enumerate();
        let are_named = jobs.any(|(position, traced)| traced.id != position.to_string());
        let name = |TracedJob { job, id, .. }| if are_named { job.name(id) } else { job };
        self.jobs.into_iter().map(name).collect()
    }

    /// The jobs as a source of arrivals.
    pub fn into_arrivals(self) -> Listed {
        Listed::new(self.into_jobs())
    }
}

/// Reads a trace in any of the forms. With `throughputs`, job types and scale factors must be in the matrix, and
/// Gavel's SLOs become times; without, a trace of Gavel's with SLOs is refused.
///
/// # Errors
/// With line and column, expected values and the nearest job type.
pub fn read_trace(
    source: &Source,
    throughputs: Option<&Throughputs>,
    order: TraceOrder,
) -> Result<Trace, SpecError> {
    let mut reader = Reader { source, throughputs, complaints: Vec::new(), n_complaints: 0, n_unlisted: 0 };
    let mut lines = source.text.lines().enumerate().map(|(index, text)| Line { number: index + 1, text });
    let Some(first) = lines.find(|line| !line.text.trim().is_empty()) else {
        let help = "expected lines of jobs, in our CSV or in one of Gavel's forms".to_owned();
        return Err(source.at(1, 1, "the trace is empty".to_owned(), Some(help)));
    };
    let rest = lines.filter(|line| !line.text.trim().is_empty());
    let (form, read) = if first.text.contains('\t') {
        gavel::read(&mut reader, first, rest)
    } else {
        native::read(&mut reader, first, rest)
    };
    reader.finish(form, read, order)
}

/// Whether the text begins like a trace: with columns of ours, or with as many tabs as Gavel's lines have.
pub fn begins(source: &Source) -> bool {
    let first = source.text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let is_column = |name: &str| native::COLUMNS.contains(&name.trim());
    matches!(first.matches('\t').count(), 6 | 9) || first.split(',').all(is_column)
}

/// The line of a job in the text of a trace, from 1, by the job's position in the text.
pub fn line_of(source: &Source, position: usize) -> Option<usize> {
    let mut lines = source.text.lines().enumerate().filter(|(_, text)| !text.trim().is_empty());
    let (_, first) = lines.clone().next()?;
    let n_before = usize::from(!first.contains('\t'));
    lines.nth(position + n_before).map(|(index, _)| index + 1)
}

/// One line of a trace, numbered from 1.
#[derive(Clone, Copy, Debug)]
struct Line<'a> {
    number: usize,
    text: &'a str,
}

/// A job with its places, for errors of later checks.
#[derive(Debug)]
struct Read {
    traced: TracedJob,
    id: Option<Place>,
    job_type: Place,
    scale_factor: Place,
    arrival: Place,
    sizes: Place,
    /// Gavel's SLO, a multiple of the duration, and its place.
    slo_factor: Option<(f64, Place)>,
}

struct Reader<'a> {
    source: &'a Source,
    throughputs: Option<&'a Throughputs>,
    complaints: Vec<Complaint>,
    /// The number of errors, including those that another one stands for.
    n_complaints: usize,
    /// Complaints that are unlike all that are listed.
    n_unlisted: usize,
}

/// An error in a trace, which stands for all alike.
struct Complaint {
    /// The key by which alike errors are recognized: the message, or a part that they have in common.
    of: String,
    error: SpecError,
    /// The number of further ones, and the line of the last.
    n_more: usize,
    last: usize,
}

impl Complaint {
    fn into_error(self) -> SpecError {
        let Self { mut error, n_more, last, .. } = self;
        if let (Some(diagnostic), 1..) = (error.diagnostics.last_mut(), n_more) {
            let _ = write!(diagnostic.message, " ({n_more} more like it, the last on line {last})");
        }
        error
    }
}

impl Reader<'_> {
    fn complain(&mut self, place: Place, message: String, help: Option<String>) {
        self.complain_alike(message.clone(), place, message, help);
    }

    /// Adds an error. Of several with an equal `of` the first is shown, with the number of the others.
    fn complain_alike(&mut self, of: String, place: Place, message: String, help: Option<String>) {
        self.n_complaints += 1;
        if let Some(first) = self.complaints.iter_mut().find(|complaint| complaint.of == of) {
            (first.n_more, first.last) = (first.n_more + 1, place.line);
            return;
        }
        if self.complaints.len() >= LISTED_MAX {
            self.n_unlisted += 1;
            return;
        }
        let error = self.source.at_place(Some(place), message, help);
        self.complaints.push(Complaint { of, error, n_more: 0, last: place.line });
    }

    /// The field as a number in a range, complained of otherwise.
    fn number(&mut self, field: &Field<'_>, name: &str, range: Range) -> Option<f64> {
        match field.number(name, range) {
            Ok(number) => Some(number),
            Err(message) => {
                self.complain(field.place, message, None);
                None
            }
        }
    }

    fn finish(mut self, form: TraceForm, mut read: Vec<Read>, order: TraceOrder) -> Result<Trace, SpecError> {
        match order {
            TraceOrder::Refuse => self.check_order(&read),
            TraceOrder::Sort => {
                read.sort_by(|one, other| one.traced.job.arrival.total_cmp(&other.traced.job.arrival));
            }
        }
        self.check_ids(&read);
        for read in &mut read {
            self.check_type(read);
        }
        SpecError::join(self.complaints.into_iter().map(Complaint::into_error))
            .map_err(|error| SpecError { n_more: self.n_unlisted, ..error })?;
        Ok(Trace { form, jobs: read.into_iter().map(|read| read.traced).collect() })
    }

    fn check_order(&mut self, read: &[Read]) {
        for pair in read.windows(2) {
            let (before, after) = (pair[0].traced.job.arrival, pair[1].traced.job.arrival);
            if after.total_cmp(&before).is_lt() {
                let message = format!(
                    "arrival {} comes after {}, expected jobs in order of arrival",
                    after.get(),
                    before.get()
                );
                let help = "sort the file by arrival, or `apportion trace convert --sort` it".to_owned();
                self.complain_alike("order".to_owned(), pair[1].arrival, message, Some(help));
            }
        }
    }

    fn check_ids(&mut self, read: &[Read]) {
        let mut seen = BTreeMap::new();
        for (id, place) in read.iter().filter_map(|read| Some((&read.traced.id, read.id?))) {
            if let Some(line) = seen.insert(id, place.line) {
                self.complain(
                    place,
                    format!("job `{id}` is on line {line} already, expected each id once"),
                    None,
                );
            }
        }
    }

    fn check_type(&mut self, read: &mut Read) {
        let Read { traced: TracedJob { job, .. }, slo_factor, .. } = read;
        let Some(throughputs) = self.throughputs else {
            if let Some((_, place)) = slo_factor {
                let help = "name the throughputs that tell how long the job takes".to_owned();
                self.complain(
                    *place,
                    "an SLO that is a multiple of a duration that is not known".to_owned(),
                    Some(help),
                );
            }
            return;
        };
        let Some(row) = throughputs.find(&job.job_type, job.scale_factor) else {
            self.complain_type(
                throughputs,
                &job.job_type,
                job.scale_factor,
                (read.job_type, read.scale_factor),
            );
            return;
        };
        if let Some(size) = job.sizes.iter().find(|size| throughputs.find(&job.job_type, **size).is_none()) {
            self.complain_type(throughputs, &job.job_type, *size, (read.job_type, read.sizes));
            return;
        }
        if let Some((factor, place)) = *slo_factor {
            match speed(throughputs, row) {
                Some(speed) => {
                    let duration = job.total_steps / speed;
                    job.duration = Some(duration);
                    job.slo = Some(duration * factor);
                    if let Err(message) = field::check_slo(duration.get() * factor) {
                        self.complain(place, message, None);
                    }
                }
                None => self.complain(
                    place,
                    format!("an SLO of `{}`, which does not run on the reference worker type", job.job_type),
                    None,
                ),
            }
        }
    }

    fn complain_type(
        &mut self,
        throughputs: &Throughputs,
        job_type: &str,
        scale_factor: u32,
        places: (Place, Place),
    ) {
        let rows = throughputs.rows().iter();
        let sizes: Vec<String> = rows
            .clone()
            .filter(|row| row.job_type == job_type)
            .map(|row| row.scale_factor.to_string())
            .collect();
        if sizes.is_empty() {
            let message = format!(
                "unknown job type `{job_type}`, expected one of throughputs `{}`",
                throughputs.name()
            );
            self.complain(places.0, message, suggestion(job_type, rows.map(|row| row.job_type.as_str())));
        } else {
            let message = format!(
                "`{job_type}` has no throughputs at scale factor {scale_factor}, expected one of {}",
                sizes.join(", ")
            );
            self.complain(places.1, message, None);
        }
    }
}

/// Steps/s of a row on the reference worker type; none if it does not run there.
fn speed(throughputs: &Throughputs, row: RowId) -> Option<crate::units::StepsPerSecond> {
    let reference = WorkerTypeId::from_index(0);
    let speed = throughputs.worker_types().get(reference).map(|_| throughputs.alone(row, reference))?;
    (speed > 0.0).then(|| crate::units::StepsPerSecond::new(speed))
}

#[cfg(test)]
mod tests;
