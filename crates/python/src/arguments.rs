//! Arguments of Python's part about jobs: their names, and columns of numbers.

use std::collections::BTreeMap;

use apportion::index::{EntityId, Id, JobId, JobIndex};
use apportion::problem::{ActiveJob, Entity, InnerRule, ProblemBuilder};
use apportion::spec::snapshot::{Label, NUMBER_MAX, NUMBER_MIN};
use apportion::units::{Seconds, Steps};
use apportion::workload::Combination;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::arrays::{Array1, Array2};
use crate::errors;

/// The name of a job, as its owner gives it.
#[derive(Clone, Debug, FromPyObject, IntoPyObject)]
pub(crate) enum JobName {
    /// A whole number.
    Number(i64),
    /// Text.
    Text(String),
}

impl From<&Label> for JobName {
    fn from(label: &Label) -> Self {
        match label {
            Label::Number(number) => Self::Number(*number),
            Label::Text(text) => Self::Text(text.clone()),
        }
    }
}

/// Columns of jobs beside their throughputs, each `[n]`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Columns<'py> {
    scale_factor: Option<Array1<'py, i64>>,
    weight: Option<Array1<'py, f64>>,
    steps_remaining: Option<Array1<'py, f64>>,
    elapsed: Option<Array1<'py, f64>>,
    isolated_elapsed: Option<Array1<'py, f64>>,
    /// Seconds to each deadline; NaN stands for none.
    slo_remaining: Option<Array1<'py, f64>>,
    pub(crate) owner: Option<Vec<Option<String>>>,
    pub(crate) names: Option<Vec<JobName>>,
}

/// An owner of jobs: name, weight, inner rule, and parent owner.
pub(crate) type Owner = (String, f64, String, Option<String>);

/// Two jobs that share workers: their positions, and steps/s of the first and the second on each worker type, `[K × 2]`.
pub(crate) type Pair<'py> = (usize, usize, Array2<'py, f64>);

/// Name of the job at a position in messages: its own, or its number if it has none.
pub(crate) fn called(names: Option<&[JobName]>, position: usize) -> String {
    match names.and_then(|names| names.get(position)) {
        Some(JobName::Number(number)) => format!("job {number}"),
        Some(JobName::Text(text)) => format!("job '{text}'"),
        None => format!("the job at position {position}"),
    }
}

/// A position as numpy's integer.
pub(crate) fn number(position: usize) -> i64 {
    i64::try_from(position).unwrap_or(i64::MAX)
}

/// Function of `apportion._pickles` that restores a value, with the state that it restores it from.
///
/// # Errors
/// If there is no such function, or Python cannot hold the state.
pub(crate) fn reduced<'py>(
    py: Python<'py>,
    function: &str,
    state: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
    Ok((py.import("apportion._pickles")?.getattr(function)?, state.into_pyobject(py)?))
}

impl Columns<'_> {
    /// Lengths of the given columns, by name.
    pub(crate) fn lengths(&self) -> Vec<(&'static str, usize)> {
        let of = |name, column: &Option<Array1<'_, f64>>| {
            column.as_ref().map(|column| (name, column.as_array().len()))
        };
        let given = [
            self.scale_factor.as_ref().map(|column| ("scale_factor", column.as_array().len())),
            of("weight", &self.weight),
            of("steps_remaining", &self.steps_remaining),
            of("elapsed", &self.elapsed),
            of("isolated_elapsed", &self.isolated_elapsed),
            of("slo_remaining", &self.slo_remaining),
            self.owner.as_ref().map(|column| ("owner", column.len())),
            self.names.as_ref().map(|column| ("names", column.len())),
        ];
        given.into_iter().flatten().collect()
    }

    /// The job at a position, without its owner.
    ///
    /// # Errors
    /// If its scale factor is out of range.
    pub(crate) fn job(&self, position: usize) -> PyResult<ActiveJob> {
        let at = |column: &Option<Array1<'_, f64>>| column.as_ref().map(|column| column.as_array()[position]);
        let mut job = ActiveJob::new(JobId::from_index(position));
        let called = || called(self.names.as_deref(), position);
        if let Some(scale) = &self.scale_factor {
            let scale = scale.as_array()[position];
            let wrong = || {
                let message = format!(
                    "{}: scale_factor is {scale}, expected a whole number of workers, at least 1",
                    called()
                );
                errors::input_of_job(&message, position)
            };
            job.scale_factor = u32::try_from(scale).map_err(|_| wrong())?;
        }
        job.weight = at(&self.weight).unwrap_or(job.weight);
        job.steps_remaining = at(&self.steps_remaining).map_or(job.steps_remaining, Steps::new);
        job.elapsed = at(&self.elapsed).map_or(job.elapsed, Seconds::new);
        job.isolated_elapsed = at(&self.isolated_elapsed).map_or(job.isolated_elapsed, Seconds::new);
        job.slo_remaining = at(&self.slo_remaining).and_then(deadline);
        Ok(job)
    }
}

/// Seconds to a deadline; NaN = none.
pub(crate) fn deadline(seconds: f64) -> Option<Seconds> {
    (!seconds.is_nan()).then(|| Seconds::new(seconds))
}

/// Message about a job's weight or throughput outside the range that programs accept; none if all are inside.
pub(crate) fn beyond_numbers(weight: f64, throughputs: impl IntoIterator<Item = f64>) -> Option<String> {
    let numbers = NUMBER_MIN..=NUMBER_MAX;
    if !numbers.contains(&weight) {
        let weight = errors::short(weight);
        return Some(format!("weight is {weight}, expected a number from {NUMBER_MIN:e} to {NUMBER_MAX:e}"));
    }
    // Negative numbers, infinities and NaN are refused elsewhere.
    let is_beyond = |speed: &f64| speed.is_finite() && *speed > 0.0 && !numbers.contains(speed);
    let speed = errors::short(throughputs.into_iter().find(is_beyond)?);
    Some(format!(
        "throughput is {speed} steps/s, expected 0, or a number from {NUMBER_MIN:e} to {NUMBER_MAX:e}"
    ))
}

/// Adds the owners of jobs to a problem. Returns their numbers by name.
///
/// # Errors
/// If one is listed twice, or before its parent, or has an invalid weight or rule.
pub(crate) fn entities(
    builder: &mut ProblemBuilder,
    owners: Vec<Owner>,
) -> PyResult<BTreeMap<String, EntityId>> {
    let mut known = BTreeMap::new();
    for (name, weight, inner, parent) in owners {
        if !(weight.is_finite() && weight > 0.0) {
            return Err(errors::input(format!(
                "owner `{name}`: weight is {}, expected a finite number above 0",
                errors::short(weight)
            )));
        }
        let inner = match inner.as_str() {
            "fairness" => InnerRule::Fairness,
            "fifo" => InnerRule::Fifo,
            other => {
                let message =
                    format!("owner `{name}`: unknown inner rule `{other}`, expected `fairness` or `fifo`");
                return Err(errors::input(message));
            }
        };
        let parent = match parent {
            None => None,
            Some(parent) => Some(*known.get(&parent).ok_or_else(|| {
                errors::input(format!("owner `{name}`: its parent `{parent}` is not listed before it"))
            })?),
        };
        let id = builder.entity(Entity { name: name.clone(), weight, inner, parent });
        if known.insert(name.clone(), id).is_some() {
            return Err(errors::input(format!("owner `{name}` is listed twice")));
        }
    }
    Ok(known)
}

/// Throughputs of pairs by the jobs' positions.
///
/// # Errors
/// If a position is not that of a job, or a throughput is invalid.
pub(crate) fn pairs_of(
    pairs: Vec<Pair<'_>>,
    (n_jobs, n_types): (usize, usize),
) -> PyResult<BTreeMap<Combination<JobIndex>, Vec<[f64; 2]>>> {
    let mut given = BTreeMap::new();
    for (first, second, speeds) in pairs {
        if first >= n_jobs || second >= n_jobs || first == second {
            return Err(errors::input(format!(
                "pair ({first}, {second}): expected the positions of two of {n_jobs} jobs"
            )));
        }
        let speeds = speeds.as_array();
        if speeds.dim() != (n_types, 2) {
            let shape = speeds.shape();
            let message = format!(
                "pair ({first}, {second}) has shape {shape:?}, expected [{n_types}, 2]: worker types × jobs"
            );
            return Err(errors::input(message));
        }
        let wrong = speeds.iter().find(|speed| !(speed.is_finite() && **speed >= 0.0));
        if let Some(wrong) = wrong {
            let message = format!(
                "pair ({first}, {second}): throughput is {}, expected a finite number of steps/s, at least 0",
                errors::short(*wrong)
            );
            return Err(errors::input(message));
        }
        let (one, other) = if first < second { (0, 1) } else { (1, 0) };
        let rows = speeds.outer_iter().map(|row| [row[one], row[other]]).collect();
        given.insert(Combination::pair(JobIndex::from_index(first), JobIndex::from_index(second)), rows);
    }
    Ok(given)
}
