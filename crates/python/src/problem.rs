//! One decision's input, from arrays.

use std::collections::BTreeMap;
use std::sync::Arc;

use apportion::cluster::{Cluster, PRICES};
use apportion::index::{Id, JobId, JobIndex, WorkerTypeId};
use apportion::problem::{
    ActiveJob, Colocation, Entity, InnerRule, Problem as EngineProblem, ProblemBuilder,
};
use apportion::spec::snapshot::{Label, NUMBER_MAX, NUMBER_MIN};
use apportion::spec::{Snapshot, Source, load_throughputs};
use apportion::units::{DollarsPerWorkerHour, Seconds, Steps};
use apportion::workload::Combination;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;
use crate::options::Text;

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

/// One decision's input: a cluster, the active jobs, and their throughputs. See `apportion.problem`.
#[pyclass(frozen, module = "apportion")]
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) problem: Arc<EngineProblem>,
    /// What the jobs are called, where they are not called by the engine's numbers.
    names: Option<Vec<JobName>>,
}

/// What is known of jobs beside their throughputs, each `[n]`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Columns<'py> {
    scale_factor: Option<PyReadonlyArray1<'py, i64>>,
    weight: Option<PyReadonlyArray1<'py, f64>>,
    steps_remaining: Option<PyReadonlyArray1<'py, f64>>,
    elapsed: Option<PyReadonlyArray1<'py, f64>>,
    isolated_elapsed: Option<PyReadonlyArray1<'py, f64>>,
    /// NaN = none.
    slo_remaining: Option<PyReadonlyArray1<'py, f64>>,
    owner: Option<Vec<Option<String>>>,
    names: Option<Vec<JobName>>,
}

/// An owner of jobs: its name, weight, inner rule, and the owner it belongs to.
type Owner = (String, f64, String, Option<String>);

/// Of two jobs that share workers: their positions, and steps/s of the first and the second on each worker type, [K × 2].
type Pair<'py> = (usize, usize, PyReadonlyArray2<'py, f64>);

/// Pairs of jobs: their positions, [m × 2], and the steps/s of both on each worker type, [m × K × 2].
type Pairs<'py> = (Bound<'py, PyArray2<i64>>, Bound<'py, PyArray3<f64>>);

/// A position as numpy has it.
pub(crate) fn number(position: usize) -> i64 {
    i64::try_from(position).unwrap_or(i64::MAX)
}

impl Problem {
    /// Wraps a problem of the engine. Its jobs are named by their numbers in the workload.
    pub(crate) fn of(problem: EngineProblem) -> Self {
        Self { problem: Arc::new(problem), names: None }
    }

    fn column(&self, value: impl Fn(&ActiveJob) -> f64) -> Vec<f64> {
        self.problem.jobs().iter().map(value).collect()
    }
}

#[pymethods]
impl Problem {
    #[new]
    #[pyo3(signature = (worker_types, workers, throughputs, columns, *, prices = Vec::new(), owners = Vec::new(), pairs = Vec::new(), extra = BTreeMap::new()))]
    #[expect(clippy::too_many_arguments, reason = "each is an argument of the Python function that calls it")]
    fn new(
        worker_types: Vec<String>,
        workers: Vec<u32>,
        throughputs: PyReadonlyArray2<'_, f64>,
        columns: Columns<'_>,
        prices: Vec<Option<f64>>,
        owners: Vec<Owner>,
        pairs: Vec<Pair<'_>>,
        extra: BTreeMap<String, Vec<f64>>,
    ) -> PyResult<Self> {
        let mut cluster = Cluster::try_new(worker_types.iter().cloned().zip(workers))
            .map_err(|error| errors::input(error.to_string()))?;
        for (id, price) in (0..).map(WorkerTypeId::from_index).zip(prices) {
            let Some(price) = price else { continue };
            if !PRICES.contains(&price) {
                let (least, most) = (PRICES.start(), PRICES.end());
                return Err(errors::input(format!("a price is {price}, expected {least} to {most} $/h")));
            }
            cluster.set_price(id, DollarsPerWorkerHour::new(price));
        }
        let mut builder = ProblemBuilder::new(Arc::new(cluster));
        let entities = entities(&mut builder, owners)?;
        let rows = throughputs.as_array();
        let (n, k) = rows.dim();
        if k != worker_types.len() {
            let message = format!(
                "throughputs have {k} columns, expected one for each of {} worker types",
                worker_types.len()
            );
            return Err(errors::input(message));
        }
        let extra_lengths = extra.iter().map(|(name, column)| (name.as_str(), column.len()));
        if let Some((name, length)) =
            columns.lengths().into_iter().chain(extra_lengths).find(|(_, length)| *length != n)
        {
            return Err(errors::input(format!(
                "{name} has {length} values, expected one for each of {n} jobs"
            )));
        }
        builder.reserve(n);
        for (position, row) in rows.outer_iter().enumerate() {
            let mut job = columns.job(position)?;
            if let Some(owner) = columns.owner.as_ref().and_then(|owners| owners[position].as_ref()) {
                let known = entities.get(owner);
                let unknown = || errors::input(format!("job {position}: there is no owner `{owner}`"));
                job.entity = Some(*known.ok_or_else(unknown)?);
            }
            let is_believed =
                |speed: f64| !speed.is_finite() || speed <= 0.0 || (NUMBER_MIN..=NUMBER_MAX).contains(&speed);
            if let Some(speed) = row.iter().find(|speed| !is_believed(**speed)) {
                let message = format!(
                    "job {position}: throughput is {speed:e} steps/s, expected 0, or a number from {NUMBER_MIN:e} to {NUMBER_MAX:e}"
                );
                return Err(errors::input_of_job(&message, position));
            }
            match row.as_slice() {
                Some(row) => builder.job(job, row),
                None => builder.job(job, &row.to_vec()),
            };
        }
        if !pairs.is_empty() {
            builder.colocation(Colocation::Pairs(pairs_of(pairs, (n, k))?));
        }
        for (name, column) in extra {
            builder.extra(name, column);
        }
        let problem = builder.build().map_err(|error| errors::problem(&error))?;
        Ok(Self { problem: Arc::new(problem), names: columns.names })
    }

    /// The problem that a snapshot states: a path, or a document's text.
    #[staticmethod]
    fn read(snapshot: Text, is_text: bool, throughputs: Text) -> PyResult<Self> {
        let said = |error| errors::spec(&error);
        let source = if is_text {
            Source::new("<text>", snapshot.0)
        } else {
            Source::load(&snapshot.0).map_err(said)?
        };
        let snapshot = Snapshot::read(&source).map_err(said)?;
        let matrix = load_throughputs(&throughputs.0).map_err(said)?;
        let problem = EngineProblem::from_snapshot(&snapshot, &matrix).map_err(said)?;
        let names = snapshot.document().jobs.iter().map(|job| JobName::from(&job.id)).collect();
        Ok(Self { problem: Arc::new(problem), names: Some(names) })
    }

    #[getter]
    fn n_jobs(&self) -> usize {
        self.problem.n_jobs()
    }

    #[getter]
    fn worker_types(&self) -> Vec<String> {
        self.problem.cluster().types().iter().map(|kind| kind.name.clone()).collect()
    }

    #[getter]
    fn workers<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let workers: Vec<i64> =
            self.problem.cluster().types().iter().map(|kind| i64::from(kind.n_workers)).collect();
        workers.into_pyarray(py)
    }

    #[getter]
    fn prices<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        let prices = self.problem.cluster().types().iter().map(|kind| Some(kind.price?.get()));
        Some(prices.collect::<Option<Vec<f64>>>()?.into_pyarray(py))
    }

    #[getter]
    fn names(&self) -> Vec<JobName> {
        match &self.names {
            Some(names) => names.clone(),
            None => self.problem.jobs().iter().map(|job| JobName::from(&Label::from(job.id))).collect(),
        }
    }

    #[getter]
    fn throughputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let values = self.problem.throughput().as_slice().to_vec().into_pyarray(py);
        values.reshape([self.problem.n_jobs(), self.problem.n_types()])
    }

    /// The job types of the throughput matrix, where jobs are looked up in one.
    #[getter]
    fn job_type(&self) -> Vec<Option<String>> {
        let row = |job: &ActiveJob| match self.problem.colocation() {
            Colocation::Rows { throughputs, .. } => Some(throughputs.rows()[job.row?].job_type.clone()),
            _ => None,
        };
        self.problem.jobs().iter().map(row).collect()
    }

    #[getter]
    fn scale_factor<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let scale: Vec<i64> = self.problem.jobs().iter().map(|job| i64::from(job.scale_factor)).collect();
        scale.into_pyarray(py)
    }

    #[getter]
    fn weight<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.column(|job| job.weight).into_pyarray(py)
    }

    #[getter]
    fn steps_remaining<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.column(|job| job.steps_remaining.get()).into_pyarray(py)
    }

    #[getter]
    fn elapsed<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.column(|job| job.elapsed.get()).into_pyarray(py)
    }

    #[getter]
    fn isolated_elapsed<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.column(|job| job.isolated_elapsed.get()).into_pyarray(py)
    }

    #[getter]
    fn slo_remaining<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.column(|job| job.slo_remaining.map_or(f64::NAN, Seconds::get)).into_pyarray(py)
    }

    #[getter]
    fn owner(&self) -> Vec<Option<String>> {
        let entities = self.problem.entities();
        self.problem.jobs().iter().map(|job| job.entity.map(|id| entities[id].name.clone())).collect()
    }

    #[getter]
    fn extra<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let extra = PyDict::new(py);
        for (name, column) in self.problem.extra() {
            extra.set_item(name, column.clone().into_pyarray(py))?;
        }
        Ok(extra)
    }

    /// Pairs of jobs that may share workers: their positions, [m × 2], and the steps/s of both on each worker type, [m × K × 2],
    /// 0 where they cannot run together. There are n (n − 1) / 2 of them at most.
    fn pairs<'py>(&self, py: Python<'py>) -> PyResult<Pairs<'py>> {
        let (n, k) = (self.problem.n_jobs(), self.problem.n_types());
        let (mut positions, mut speeds) = (Vec::new(), Vec::new());
        let mut of_pair = vec![0.0; 2 * k];
        for first in 0..n {
            for second in first + 1..n {
                let pair = Combination::pair(JobIndex::from_index(first), JobIndex::from_index(second));
                let mut runs = false;
                for kind in 0..k {
                    let together = self.problem.colocated(pair, WorkerTypeId::from_index(kind));
                    runs |= together.is_some();
                    of_pair[2 * kind..2 * kind + 2].copy_from_slice(&together.unwrap_or_default());
                }
                if runs {
                    positions.extend([first, second].map(number));
                    speeds.extend_from_slice(&of_pair);
                }
            }
        }
        let m = positions.len() / 2;
        Ok((positions.into_pyarray(py).reshape([m, 2])?, speeds.into_pyarray(py).reshape([m, k, 2])?))
    }

    fn __repr__(&self) -> String {
        format!("<Problem of {} jobs on {}>", self.problem.n_jobs(), self.problem.cluster())
    }
}

impl Columns<'_> {
    /// How many values each column has that is given.
    fn lengths(&self) -> Vec<(&'static str, usize)> {
        let of = |name, column: &Option<PyReadonlyArray1<'_, f64>>| {
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

    /// The job at a position, its owner apart.
    fn job(&self, position: usize) -> PyResult<ActiveJob> {
        let at = |column: &Option<PyReadonlyArray1<'_, f64>>| {
            column.as_ref().map(|column| column.as_array()[position])
        };
        let mut job = ActiveJob::new(JobId::from_index(position));
        if let Some(scale) = &self.scale_factor {
            let scale = scale.as_array()[position];
            let wrong = || {
                let message = format!(
                    "job {position}: scale_factor is {scale}, expected a whole number of workers, at least 1"
                );
                errors::input(message)
            };
            job.scale_factor = u32::try_from(scale).map_err(|_| wrong())?;
        }
        job.weight = at(&self.weight).unwrap_or(job.weight);
        if !(NUMBER_MIN..=NUMBER_MAX).contains(&job.weight) {
            let weight = job.weight;
            let message = format!(
                "job {position}: weight is {weight}, expected a number from {NUMBER_MIN:e} to {NUMBER_MAX:e}"
            );
            return Err(errors::input_of_job(&message, position));
        }
        job.steps_remaining = at(&self.steps_remaining).map_or(job.steps_remaining, Steps::new);
        job.elapsed = at(&self.elapsed).map_or(job.elapsed, Seconds::new);
        job.isolated_elapsed = at(&self.isolated_elapsed).map_or(job.isolated_elapsed, Seconds::new);
        job.slo_remaining = at(&self.slo_remaining).filter(|slo| !slo.is_nan()).map(Seconds::new);
        Ok(job)
    }
}

fn entities(
    builder: &mut ProblemBuilder,
    owners: Vec<Owner>,
) -> PyResult<BTreeMap<String, apportion::index::EntityId>> {
    let mut known = BTreeMap::new();
    for (name, weight, inner, parent) in owners {
        if !(weight.is_finite() && weight > 0.0) {
            return Err(errors::input(format!(
                "owner `{name}`: weight is {weight}, expected a finite number above 0"
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

fn pairs_of(
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
                "pair ({first}, {second}): throughput is {wrong}, expected a finite number of steps/s, at least 0"
            );
            return Err(errors::input(message));
        }
        let (one, other) = if first < second { (0, 1) } else { (1, 0) };
        let rows = speeds.outer_iter().map(|row| [row[one], row[other]]).collect();
        given.insert(Combination::pair(JobIndex::from_index(first), JobIndex::from_index(second)), rows);
    }
    Ok(given)
}
