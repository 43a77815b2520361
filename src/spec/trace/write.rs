//! The writer of traces: our CSV in full, Gavel's ten columns with all that they can hold.

use std::fmt::{self, Write};

use thiserror::Error;

use super::field::Range;
use super::native::{COLUMNS, SIZES};
use super::{Command, Trace, TraceForm, TracedJob, speed};
use crate::throughput::Throughputs;
use crate::units::Seconds;
use crate::workload::Job;

/// A trace as text, and counts of data that the form could not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenTrace {
    /// The text.
    pub text: String,
    /// Jobs whose fraction of a step was cut off: Gavel reads whole steps only.
    pub n_cut_steps: usize,
    /// Jobs whose owner was left out: Gavel's forms have none.
    pub n_without_entity: usize,
}

/// Why a trace cannot be written in a form.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum WriteTraceError {
    /// An SLO without the duration that it is to be a multiple of.
    #[error(
        "job `{id}` has an SLO of {slo_s} s, but its duration alone, of which Gavel's SLO is a multiple, is not known"
    )]
    NoDuration {
        /// The job.
        id: String,
        /// Its SLO, in s.
        slo_s: f64,
    },
    /// A name that would break the lines.
    #[error("job `{id}`: `{text}` has characters that separate columns or lines")]
    Separator {
        /// The job.
        id: String,
        /// The name.
        text: String,
    },
    /// A job that may have several numbers of workers, in a form that has one.
    #[error(
        "job `{id}` has sizes, and Gavel's forms have none: write our CSV, or leave the column `sizes` out"
    )]
    Sizes {
        /// The job.
        id: String,
    },
    /// A job too short for a form of whole steps.
    #[error("job `{id}` has {steps} steps, and Gavel's forms hold whole ones only")]
    NoWholeStep {
        /// The job.
        id: String,
        /// Its steps.
        steps: f64,
    },
    /// A number that the reader of traces does not accept.
    #[error("job `{id}` has {what} of {value:?}, expected {expected}")]
    OutOfRange {
        /// The job.
        id: String,
        /// The kind of the number.
        what: Number,
        /// The number.
        value: f64,
        /// The range that the reader accepts, in words.
        expected: String,
    },
    /// The older seven columns, which are only read.
    #[error("the seven-column form is read, not written")]
    Seven,
}

/// A number of a job that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// Its steps.
    TotalSteps,
    /// Its arrival.
    Arrival,
    /// Its weight.
    Weight,
    /// The time from its arrival within which it ought to be done.
    Slo,
    /// The SLO as a multiple of its duration, as in Gavel's forms.
    SloFactor,
}

impl fmt::Display for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::TotalSteps => "total_steps",
            Self::Arrival => "an arrival",
            Self::Weight => "a weight",
            Self::Slo => "an SLO",
            Self::SloFactor => "an SLO as a multiple of its duration",
        })
    }
}

/// Refuses a job with a number that would not be read back.
fn check_numbers(traced: &TracedJob) -> Result<(), WriteTraceError> {
    let TracedJob { job, id, .. } = traced;
    let numbers = [
        (Number::TotalSteps, Some(job.total_steps.get()), Range::Positive),
        (Number::Arrival, Some(job.arrival.get()), Range::NotNegative),
        (Number::Weight, Some(job.weight), Range::Positive),
        (Number::Slo, job.slo.map(Seconds::get), Range::Positive),
    ];
    for (what, value, range) in numbers {
        if let Some(value) = value.filter(|value| !range.contains(*value)) {
            return Err(WriteTraceError::OutOfRange {
                id: id.clone(),
                what,
                value,
                expected: range.describe(),
            });
        }
    }
    Ok(())
}

/// Writes a trace; with `throughputs`, SLOs of jobs without a duration can be written in Gavel's form, too.
///
/// # Errors
/// If the form cannot hold a job, or it has a number that [`read_trace`](super::read_trace) refuses.
pub fn write_trace(
    trace: &Trace,
    form: TraceForm,
    throughputs: Option<&Throughputs>,
) -> Result<WrittenTrace, WriteTraceError> {
    let mut written = WrittenTrace { text: String::new(), n_cut_steps: 0, n_without_entity: 0 };
    match form {
        TraceForm::Native => {
            let with_sizes = trace.jobs.iter().any(|traced| !traced.job.sizes.is_empty());
            let columns: Vec<&str> =
                COLUMNS.into_iter().filter(|column| with_sizes || *column != SIZES).collect();
            written.text.push_str(&columns.join(","));
            written.text.push('\n');
            for traced in &trace.jobs {
                check_numbers(traced)?;
                native_line(&mut written.text, traced)?;
                if with_sizes {
                    let _ = write!(written.text, ",{}", traced.job.sizes_text());
                }
                written.text.push('\n');
            }
        }
        TraceForm::Gavel => {
            for traced in &trace.jobs {
                check_numbers(traced)?;
                gavel_line(&mut written, traced, throughputs)?;
            }
        }
        TraceForm::GavelSeven => return Err(WriteTraceError::Seven),
    }
    Ok(written)
}

fn native_line(text: &mut String, traced: &TracedJob) -> Result<(), WriteTraceError> {
    let TracedJob { job, id, .. } = traced;
    let Job { job_type, scale_factor, total_steps, arrival, weight, slo, entity, .. } = job;
    let quoted = |name: &str| {
        if name.chars().any(char::is_control) {
            return Err(WriteTraceError::Separator { id: id.clone(), text: name.to_owned() });
        }
        let plain = !name.contains([',', '"']) && name.trim() == name;
        Ok(if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) })
    };
    let (steps, arrival) = (total_steps.get(), arrival.get());
    let slo = slo.map_or(String::new(), |slo| slo.get().to_string());
    let entity = quoted(entity.as_deref().unwrap_or_default())?;
    let (id, job_type) = (quoted(id)?, quoted(job_type)?);
    let _ = write!(text, "{id},{job_type},{scale_factor},{steps},{arrival},{weight},{slo},{entity}");
    Ok(())
}

fn gavel_line(
    written: &mut WrittenTrace,
    traced: &TracedJob,
    throughputs: Option<&Throughputs>,
) -> Result<(), WriteTraceError> {
    let TracedJob { job, id, command } = traced;
    if !job.sizes.is_empty() {
        return Err(WriteTraceError::Sizes { id: id.clone() });
    }
    let nothing = Command {
        command: "-".to_owned(),
        working_directory: None,
        steps_argument: "-".to_owned(),
        needs_data: false,
    };
    let Command { command, working_directory, steps_argument, needs_data } =
        command.as_ref().unwrap_or(&nothing);
    let directory = working_directory.as_deref().unwrap_or("-");
    for text in [&job.job_type, command, directory, steps_argument] {
        if text.chars().any(char::is_control) {
            return Err(WriteTraceError::Separator { id: id.clone(), text: text.to_owned() });
        }
    }
    let steps = job.total_steps.get().trunc();
    if steps < 1.0 {
        return Err(WriteTraceError::NoWholeStep { id: id.clone(), steps: job.total_steps.get() });
    }
    written.n_cut_steps += usize::from(steps < job.total_steps.get());
    written.n_without_entity += usize::from(job.entity.is_some());
    let slo = slo_factor(job, id, throughputs)?;
    let (needs_data, arrival) = (u8::from(*needs_data), job.arrival.get());
    let Job { job_type, scale_factor, weight, .. } = job;
    let _ = writeln!(
        written.text,
        "{job_type}\t{command}\t{directory}\t{steps_argument}\t{needs_data}\t{steps}\t{scale_factor}\t{weight}\t{slo}\t{arrival}"
    );
    Ok(())
}

/// A job's SLO as a multiple of its duration; −1 for none.
fn slo_factor(job: &Job, id: &str, throughputs: Option<&Throughputs>) -> Result<f64, WriteTraceError> {
    let Some(slo) = job.slo else { return Ok(-1.0) };
    let from_matrix = || {
        let throughputs = throughputs?;
        let row = throughputs.find(&job.job_type, job.scale_factor)?;
        Some(job.total_steps / speed(throughputs, row)?)
    };
    match job.duration.or_else(from_matrix) {
        Some(duration) => {
            let (factor, range) = (slo / duration, Range::Any);
            if range.contains(factor) {
                return Ok(factor);
            }
            let (id, what, expected) = (id.to_owned(), Number::SloFactor, range.describe());
            Err(WriteTraceError::OutOfRange { id, what, value: factor, expected })
        }
        None => Err(WriteTraceError::NoDuration { id: id.to_owned(), slo_s: slo.get() }),
    }
}
