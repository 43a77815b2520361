//! Errors of the engine as exceptions of `apportion._errors`, with the place in a document where they have one.

use apportion::CatalogError;
use apportion::allocation::AllocationError;
use apportion::policy::{PolicyError, SessionError};
use apportion::problem::ProblemError;
use apportion::scheduler::DecisionError;
use apportion::simulator::SimulationError;
use apportion::spec::SpecError;
use apportion_studies::sweep::{RunError, StoreError};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The name of a document that arguments of a Python function were made into: places in it say nothing to its user.
pub(crate) const ARGUMENTS: &str = "<arguments>";

/// An exception of a class of `apportion._errors`, with what it knows beside its message.
fn exception(class: &str, message: &str, known: impl FnOnce(&Bound<'_, PyDict>) -> PyResult<()>) -> PyErr {
    Python::attach(|py| {
        let made = || -> PyResult<PyErr> {
            let class = py.import("apportion._errors")?.getattr(class)?;
            let fields = PyDict::new(py);
            known(&fields)?;
            Ok(PyErr::from_value(class.call((message,), Some(&fields))?))
        };
        made().unwrap_or_else(|error| PyRuntimeError::new_err(format!("{message} ({error})")))
    })
}

/// An input that is wrong, without a place.
pub(crate) fn input(message: impl AsRef<str>) -> PyErr {
    exception("InputError", message.as_ref(), |_| Ok(()))
}

/// What is wrong with one job, by its position.
pub(crate) fn input_of_job(message: &str, job: usize) -> PyErr {
    exception("InputError", message, |fields| fields.set_item("job", job))
}

/// An argument that is wrong, and what to do.
pub(crate) fn input_with_help(message: &str, help: Option<&str>) -> PyErr {
    exception("InputError", message, |fields| fields.set_item("help", help))
}

/// Results on disk that cannot be read or written.
pub(crate) fn results(message: impl AsRef<str>) -> PyErr {
    exception("ResultsError", message.as_ref(), |_| Ok(()))
}

/// Complaints about a document, with the place of the first.
pub(crate) fn spec(error: &SpecError) -> PyErr {
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

/// Complaints about the document that arguments were made into: with the argument in place of the line.
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

/// The key at a line of a JSON document of one key or value a line, or before it.
fn argument_at(document: &str, line: usize) -> Option<&str> {
    let lines: Vec<&str> = document.lines().take(line).collect();
    lines.into_iter().rev().find_map(|line| {
        let (key, _) = line.trim_start().strip_prefix('"')?.split_once("\":")?;
        Some(key)
    })
}

/// Why there is no such policy.
pub(crate) fn catalog(error: &CatalogError) -> PyErr {
    match error {
        CatalogError::Spec(error) => spec(error),
        other => input(other.to_string()),
    }
}

/// Why arrays are no problem.
pub(crate) fn problem(error: &ProblemError) -> PyErr {
    exception("InputError", &error.to_string(), |fields| fields.set_item("job", error.job()))
}

/// Why shares are no allocation: the row, and by how much which limit is exceeded.
pub(crate) fn allocation(policy: &str, error: &AllocationError) -> PyErr {
    let message = format!("policy `{policy}`: {error}");
    exception("AllocationError", &message, |fields| match *error {
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

/// Why a policy gave no decision.
pub(crate) fn policy(error: &PolicyError) -> PyErr {
    let class = match error {
        PolicyError::Missing { .. } | PolicyError::Data { .. } | PolicyError::Strategy { .. } => "InputError",
        PolicyError::Infeasible { .. } | PolicyError::Conflict { .. } => "InfeasibleError",
        PolicyError::Unbounded { .. } => "UnboundedError",
        PolicyError::Solve(_) => "SolverError",
        PolicyError::Allocation { policy, source } => return allocation(policy, source),
        _ => "PolicyError",
    };
    exception(class, &error.to_string(), |fields| match error {
        PolicyError::Missing { job, .. } => fields.set_item("job", job),
        _ => Ok(()),
    })
}

/// Why a session refuses something.
pub(crate) fn session(error: &SessionError) -> PyErr {
    match error {
        SessionError::Problem(error) => problem(error),
        other => input(other.to_string()),
    }
}

/// Why a simulation cannot go on. A policy's error keeps its class, and says at which instant.
fn simulation(error: &SimulationError) -> PyErr {
    match error {
        SimulationError::Problem(error) => problem(error),
        SimulationError::Policy(error) => policy(error),
        SimulationError::Decision { place, error } => {
            let of_policy = match &**error {
                DecisionError::Policy(error) => policy(error),
                other => exception("PolicyError", &other.to_string(), |_| Ok(())),
            };
            Python::attach(|py| {
                let noted = of_policy.value(py).call_method1("add_note", (place.to_string(),));
                // Notes came with Python 3.11; without them the error is the same, but for its place.
                drop(noted);
                of_policy
            })
        }
        SimulationError::Option { .. } => input(error.to_string()),
        other => exception("SimulationError", &other.to_string(), |_| Ok(())),
    }
}

/// Why a run cannot start, or go on.
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
        RunError::Policy(error) => policy(error),
        RunError::Simulation(error) => simulation(error),
        other => input(other.to_string()),
    }
}

/// What is wrong with a results folder.
pub(crate) fn store(error: &StoreError) -> PyErr {
    results(error.to_string())
}
