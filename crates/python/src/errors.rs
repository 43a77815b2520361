//! Errors of the engine as exceptions of `apportion._errors`, with the place in a document where they have one.

use std::borrow::Cow;
use std::error::Error as _;

use apportion::CatalogError;
use apportion::allocation::AllocationError;
use apportion::index::{Id, WorkerTypeId};
use apportion::policy::{PolicyError, SessionError};
use apportion::problem::ProblemError;
use apportion::scheduler::DecisionError;
use apportion::simulator::SimulationError;
use apportion::spec::{Diagnostic, SpecError};
use apportion_studies::sweep::{RunError, StoreError};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Name of a document made from the arguments of a Python function: positions in it mean nothing to the user.
pub(crate) const ARGUMENTS: &str = "<arguments>";

/// Names of jobs and worker types in messages, by their positions in the problem.
#[derive(Clone, Copy)]
pub(crate) struct Called<'a> {
    /// Name of a job, such as `job 'bert'`.
    pub(crate) job: &'a dyn Fn(usize) -> String,
    /// Names of the worker types.
    pub(crate) worker_types: &'a [String],
}

impl Called<'_> {
    fn job(&self, position: usize) -> String {
        (self.job)(position)
    }

    fn worker_type(&self, position: usize) -> String {
        self.worker_types.get(position).map_or_else(|| position.to_string(), |name| format!("'{name}'"))
    }
}

/// A number as text in messages, without the digits of very large and very small ones.
pub(crate) fn short(number: f64) -> String {
    let size = number.abs();
    let is_long = size.is_finite() && size > 0.0 && !(1e-4..1e9).contains(&size);
    if is_long { format!("{number:e}") } else { number.to_string() }
}

/// An exception of a class of `apportion._errors`, with further fields beside its message.
fn exception(class: &str, message: &str, known: impl FnOnce(&Bound<'_, PyDict>) -> PyResult<()>) -> PyErr {
    Python::attach(|py| {
        let made = || -> PyResult<PyErr> {
            let class = py.import("apportion._errors")?.getattr(class)?;
            let fields = PyDict::new(py);
            known(&fields)?;
            Ok(PyErr::from_value(class.call((in_rows(message),), Some(&fields))?))
        };
        made().unwrap_or_else(|error| PyRuntimeError::new_err(format!("{message} ({error})")))
    })
}

/// The message with the lines and columns of a trace that was given as a table turned into row numbers.
fn in_rows(message: &str) -> Cow<'_, str> {
    let Some((before, (row, after))) = message.split_once("<trace ").and_then(|(before, rest)| {
        let (_, rest) = rest.split_once(">:")?;
        let (line, after) = rest.split_once(':')?;
        // The column of the text is none of the table.
        let is_column = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let without_column = after.split_once(':').filter(|(column, _)| is_column(column));
        let after = without_column.map_or(after, |(_, after)| after);
        Some((before, (row_of(line.parse().ok()?)?, after)))
    }) else {
        return Cow::Borrowed(message);
    };
    Cow::Owned(format!("{before}trace, row {row}:{after}"))
}

/// Row of a table for a line of its text, from 0: each row is a line, after a line with the columns' names.
fn row_of(line: usize) -> Option<usize> {
    line.checked_sub(2)
}

/// The exception for a wrong input, without a position.
pub(crate) fn input(message: impl AsRef<str>) -> PyErr {
    exception("InputError", message.as_ref(), |_| Ok(()))
}

/// The exception for a wrong job, by its position.
pub(crate) fn input_of_job(message: &str, job: usize) -> PyErr {
    exception("InputError", message, |fields| fields.set_item("job", job))
}

/// The exception for a wrong argument, with advice.
pub(crate) fn input_with_help(message: &str, help: Option<&str>) -> PyErr {
    exception("InputError", message, |fields| fields.set_item("help", help))
}

/// Message about a table that was given in place of a file, in terms of its rows; none for a file.
fn of_table(diagnostic: &Diagnostic) -> Option<String> {
    let table = ["trace", "throughputs"].into_iter().find(|what| is_given(&diagnostic.source, what))?;
    let row = row_of(diagnostic.line).filter(|_| table == "trace");
    let place = row.map_or_else(|| table.to_owned(), |row| format!("{table}, row {row}"));
    let last = diagnostic.message.rsplit_once("the last on line ").and_then(|(said, line)| {
        let last = row_of(line.strip_suffix(')')?.parse().ok()?)?;
        Some(format!("{said}the last in row {last})"))
    });
    Some(format!("{place}: {}", last.as_deref().unwrap_or(&diagnostic.message)))
}

/// Whether the source is the text of such a table, which Python's part names `<WHAT DIGEST>`.
fn is_given(source: &str, what: &str) -> bool {
    source
        .strip_prefix('<')
        .and_then(|rest| rest.strip_prefix(what))
        .is_some_and(|rest| rest.starts_with(' '))
}

/// The exception for a wrong document, with the position of the first complaint.
pub(crate) fn spec(error: &SpecError) -> PyErr {
    let of_tables: Vec<String> = error.diagnostics.iter().filter_map(of_table).collect();
    if !of_tables.is_empty() && of_tables.len() == error.diagnostics.len() {
        let help = error.diagnostics[0].help.as_deref();
        return input_with_help(&of_tables.join("\n"), help);
    }
    let message = match error.diagnostics.as_slice() {
        [only] if only.source.is_empty() => only.message.clone(),
        _ => error.to_string(),
    };
    exception("InputError", &message, |fields| {
        let Some(first) = error.diagnostics.first() else { return Ok(()) };
        fields.set_item("source", &first.source)?;
        fields.set_item("line", (first.line > 0).then_some(first.line))?;
        fields.set_item("column", (first.column > 0).then_some(first.column))?;
        fields.set_item("help", first.help.as_deref())
    })
}

/// The exception for the document made from arguments, with the argument in place of the line.
pub(crate) fn arguments(error: &SpecError, document: &str) -> PyErr {
    if error.diagnostics.iter().any(|diagnostic| diagnostic.source != ARGUMENTS) {
        return spec(error);
    }
    let said = error.diagnostics.iter().map(|diagnostic| match argument_at(document, diagnostic.line) {
        Some(name) if !diagnostic.message.contains(name) => format!("{name}: {}", diagnostic.message),
        _ => diagnostic.message.clone(),
    });
    let message = said.collect::<Vec<_>>().join("\n");
    let help = error.diagnostics.first().and_then(|diagnostic| diagnostic.help.as_deref());
    input_with_help(&message, help)
}

/// Key at a line of a JSON document with one key or value per line, or the last key before it.
fn argument_at(document: &str, line: usize) -> Option<&str> {
    let lines: Vec<&str> = document.lines().take(line).collect();
    lines.into_iter().rev().find_map(|line| {
        let (key, _) = line.trim_start().strip_prefix('"')?.split_once("\":")?;
        Some(key)
    })
}

/// The exception for an unknown or invalid policy.
pub(crate) fn catalog(error: &CatalogError) -> PyErr {
    match error {
        CatalogError::Spec(error) => spec(error),
        other => input(other.to_string()),
    }
}

/// The exception for arrays that are not a valid problem.
pub(crate) fn problem(error: &ProblemError, called: Called<'_>) -> PyErr {
    let message = match error {
        ProblemError::UnknownJobType { job, job_type, scale_factor } => {
            let job = called.job(*job);
            format!("{job}: no throughputs for `{job_type}` at scale factor {scale_factor}")
        }
        ProblemError::RunsNowhere { job, scale_factor } => {
            let job = called.job(*job);
            format!("{job} can run on no worker type of the cluster at scale factor {scale_factor}")
        }
        ProblemError::Value { job, field, value, expected } => {
            format!("{}: {field} is {}, expected {expected}", called.job(*job), short(*value))
        }
        ProblemError::DuplicateId { first, second } => {
            format!("{} and {} have the same id", called.job(*first), called.job(*second))
        }
        other => other.to_string(),
    };
    exception("InputError", &message, |fields| fields.set_item("job", error.job()))
}

/// The exception for invalid shares: it names the row, the limit and the excess. `row` names the jobs of a row.
pub(crate) fn allocation(
    policy: &str,
    error: &AllocationError,
    called: Called<'_>,
    row: &dyn Fn(usize) -> String,
) -> PyErr {
    let said = match *error {
        AllocationError::Share { combination, worker_type, share } => {
            let (of, kind) = (row(combination), called.worker_type(worker_type));
            format!("{of} has share {} on worker type {kind}, expected 0 to 1", short(share))
        }
        AllocationError::Time { job, time } => {
            format!("{} is given {} of its time, expected at most 1", called.job(job), short(time))
        }
        AllocationError::Capacity { worker_type, workers, capacity } => {
            let kind = called.worker_type(worker_type);
            format!("{} workers of type {kind} are given away, of {capacity}", short(workers))
        }
        AllocationError::CannotRun { combination, worker_type } => {
            format!("{} cannot run on worker type {}", row(combination), called.worker_type(worker_type))
        }
        ref other => other.to_string(),
    };
    exception("AllocationError", &format!("policy `{policy}`: {said}"), |fields| match *error {
        AllocationError::Share { combination, worker_type, share } => {
            fields.set_item("row", combination)?;
            fields.set_item("worker_type", worker_type)?;
            fields.set_item("excess", if share > 1.0 { share - 1.0 } else { -share })
        }
        AllocationError::Time { job, time } => {
            fields.set_item("row", job)?;
            fields.set_item("excess", time - 1.0)
        }
        AllocationError::Capacity { worker_type, workers, capacity } => {
            fields.set_item("worker_type", worker_type)?;
            fields.set_item("excess", workers - capacity)
        }
        AllocationError::CannotRun { combination, worker_type } => {
            fields.set_item("row", combination)?;
            fields.set_item("worker_type", worker_type)
        }
        _ => Ok(()),
    })
}

/// The exception for a policy without a decision on a problem.
pub(crate) fn policy(error: &PolicyError, called: Called<'_>) -> PyErr {
    match error {
        PolicyError::Missing { policy, field, job, expected } => {
            let message =
                format!("policy `{policy}` needs `{field}` of {}, expected {expected}", called.job(*job));
            exception("InputError", &message, |fields| fields.set_item("job", job))
        }
        PolicyError::Allocation { policy, source } => {
            allocation(policy, source, called, &|row| format!("combination {row}"))
        }
        PolicyError::Problem { source, .. } => problem(source, called),
        PolicyError::Conflict { .. } => {
            let kind = |id: WorkerTypeId| format!("worker type {}", called.worker_type(id.index()));
            of_policy(&error.clone().named(called.job, kind))
        }
        other => of_policy(other),
    }
}

/// The exception for a policy without a decision, in the engine's words.
fn of_policy(error: &PolicyError) -> PyErr {
    let class = match error {
        PolicyError::Missing { .. }
        | PolicyError::Data { .. }
        | PolicyError::Overflow { .. }
        | PolicyError::Strategy { .. } => "InputError",
        PolicyError::Infeasible { .. } | PolicyError::Conflict { .. } => "InfeasibleError",
        PolicyError::Unbounded { .. } => "UnboundedError",
        PolicyError::Solve(_) => "SolverError",
        _ => "PolicyError",
    };
    exception(class, &error.to_string(), |fields| match error {
        PolicyError::Missing { job, .. } => fields.set_item("job", job),
        _ => Ok(()),
    })
}

/// Advice about policies that sessions do not take.
pub(crate) const ALLOCATE: &str = "allocate decides by it, from scratch each time";

/// The exception for a session that does not begin, or refuses a job.
pub(crate) fn session(error: &SessionError, called: Called<'_>) -> PyErr {
    match error {
        SessionError::Problem(error) => problem(error, called),
        SessionError::Policy { .. } => input_with_help(&error.to_string(), Some(ALLOCATE)),
        other => input(other.to_string()),
    }
}

/// Name of a job in a simulation: its number in order of arrival.
fn by_number(job: usize) -> String {
    format!("job {job}")
}

/// Names of the jobs of a simulation, by their numbers.
const BY_NUMBER: Called<'static> = Called { job: &by_number, worker_types: &[] };

/// Adds a note to an exception raised by a decision: the instant of the simulation.
pub(crate) fn noted(raised: PyErr, error: &RunError) -> PyErr {
    if let RunError::Simulation(SimulationError::Decision { place, .. }) = error {
        Python::attach(|py| {
            let noted = raised.value(py).call_method1("add_note", (place.to_string(),));
            // Notes came with Python 3.11; older versions raise the same error without the instant.
            drop(noted);
        });
    }
    raised
}

/// The exception for a simulation that cannot continue. A policy's error keeps its class, and gets the instant.
fn simulation(error: &SimulationError) -> PyErr {
    match error {
        SimulationError::Problem(error) => problem(error, BY_NUMBER),
        SimulationError::Policy(error) => policy(error, BY_NUMBER),
        SimulationError::Decision { error, .. } => match &**error {
            DecisionError::Policy(error) => policy(error, BY_NUMBER),
            other => exception("PolicyError", &other.to_string(), |_| Ok(())),
        },
        SimulationError::Option { .. } => input(error.to_string()),
        other => exception("SimulationError", &other.to_string(), |_| Ok(())),
    }
}

/// The exception for a run that cannot start or continue.
pub(crate) fn run(error: &RunError) -> PyErr {
    match error {
        RunError::Fields(complaints) => {
            let said: Vec<String> = complaints
                .iter()
                .map(|complaint| format!("{}: {}", complaint.field, complaint.message))
                .collect();
            let help = complaints.first().and_then(|complaint| complaint.help.as_deref());
            input_with_help(&said.join("\n"), help)
        }
        RunError::Document(error) => spec(error),
        RunError::Policy(error) => of_policy(error),
        RunError::Simulation(of_simulation) => noted(simulation(of_simulation), error),
        other => input(other.to_string()),
    }
}

/// The exception for a wrong results folder, with the cause, and advice in Python's terms.
pub(crate) fn store(error: &StoreError) -> PyErr {
    let help = match error {
        StoreError::Foreign { .. } | StoreError::Damaged { .. } => {
            Some("nothing was changed; another out=… of sweep keeps results elsewhere")
        }
        StoreError::Version { .. } => {
            Some("results of two versions are not mixed; another out=… of sweep keeps them elsewhere")
        }
        StoreError::Locked { .. } => Some("wait for it, or keep these results elsewhere by another out=…"),
        StoreError::Missing { .. } => Some("sweep(…, out=…) writes them"),
        // For another study, the sweep says which name or folder helps.
        _ => None,
    };
    let message = error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"));
    exception("ResultsError", &message, |fields| fields.set_item("help", help))
}
