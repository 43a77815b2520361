//! Input of one decision, from arrays.

use std::collections::BTreeMap;
use std::iter;
use std::sync::Arc;

use apportion::cluster::{Cluster, PRICES};
use apportion::index::{Id, JobIndex, WorkerTypeId};
use apportion::problem::{
    ActiveJob, Colocation, Entity, InnerRule, Problem as EngineProblem, ProblemBuilder,
};
use apportion::program::expression::Vocabulary;
use apportion::spec::snapshot::Label;
use apportion::spec::throughputs::{EMBEDDED as THROUGHPUTS, file_stem, throughputs_of};
use apportion::spec::{Snapshot, Source, SpecError, load_throughputs};
use apportion::units::{DollarsPerWorkerHour, Seconds};
use apportion::workload::Combination;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArray3, PyArrayMethods};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arguments::{
    Columns, JobName, Owner, Pair, beyond_numbers, called, entities, number, pairs_of, reduced,
};
use crate::arrays::Array2;
use crate::errors::{self, Called};
use crate::options::Text;

/// One decision's input: a cluster, the active jobs, and their throughputs. `apportion.problem` makes one.
#[pyclass(frozen, module = "apportion")]
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) stated: Arc<EngineProblem>,
    /// Names of the jobs, where they have any.
    names: Option<Vec<JobName>>,
    origin: Origin,
}

/// Sources of a problem, from which it can be made again.
#[derive(Debug)]
enum Origin {
    /// Arrays, with the job types by which throughputs were looked up, if any.
    Arrays { job_types: Option<Vec<Option<String>>> },
    /// Documents: name and text of a snapshot, name or path of the throughputs, and their text where it is a file.
    Snapshot { source: Source, throughputs: String, matrix: Option<Source> },
}

/// Pairs of jobs: their positions, `[m × 2]`, and the steps/s of both on each worker type, `[m × K × 2]`.
type Pairs<'py> = (Bound<'py, PyArray2<i64>>, Bound<'py, PyArray3<f64>>);

/// A pair in the form of Python's arguments.
type GivenPair<'py> = (usize, usize, Bound<'py, PyArray2<f64>>);

/// Columns of jobs, from a mapping by name.
fn columns_of<'py>(columns: &Bound<'py, PyAny>) -> PyResult<Columns<'py>> {
    columns.extract().map_err(|error: PyErr| {
        if !error.is_instance_of::<PyKeyError>(columns.py()) {
            return error;
        }
        errors::input(format!(
            "columns have no {}: `apportion.problem` makes them",
            error.value(columns.py())
        ))
    })
}

/// A cluster of worker types, with their prices where known.
fn cluster(names: &[String], workers: &Bound<'_, PyAny>, prices: Vec<Option<f64>>) -> PyResult<Cluster> {
    let counts: Vec<u32> = workers.extract().map_err(|_| {
        let (given, most) = (workers.to_string(), u32::MAX);
        errors::input(format!("workers are {given:.40}, expected whole numbers from 0 to {most}"))
    })?;
    let made = Cluster::try_new(names.iter().cloned().zip(counts));
    let mut cluster = made.map_err(|error| errors::input(error.to_string()))?;
    for (id, price) in (0..).map(WorkerTypeId::from_index).zip(prices) {
        let Some(price) = price else { continue };
        if !PRICES.contains(&price) {
            let (least, most) = (PRICES.start(), PRICES.end());
            let (name, price) = (names.get(id.index()).map_or("", String::as_str), errors::short(price));
            let message = format!("the price of `{name}` is {price}, expected {least} to {most} $/h");
            return Err(errors::input(message));
        }
        cluster.set_price(id, DollarsPerWorkerHour::new(price));
    }
    Ok(cluster)
}

impl Problem {
    /// Wraps a problem of the engine. Its jobs are named by their numbers in the workload.
    pub(crate) fn of(problem: EngineProblem) -> Self {
        let names = problem.jobs().iter().map(|job| JobName::from(&Label::from(job.id))).collect();
        let origin = Origin::Arrays { job_types: None };
        Self { stated: Arc::new(problem), names: Some(names), origin }
    }

    /// Name of the job at a position in messages.
    pub(crate) fn called(&self, position: usize) -> String {
        called(self.names.as_deref(), position)
    }

    /// The problem of a snapshot, whose jobs are looked up in a matrix.
    fn of_snapshot(source: Source, throughputs: String, matrix: Option<Source>) -> Result<Self, SpecError> {
        let snapshot = Snapshot::read(&source)?;
        let rows = match &matrix {
            Some(matrix) => throughputs_of(matrix, &file_stem(&throughputs))?,
            None => load_throughputs(&throughputs)?,
        };
        let problem = EngineProblem::from_snapshot(&snapshot, &rows)?;
        let names = snapshot.document().jobs.iter().map(|job| JobName::from(&job.id)).collect();
        let origin = Origin::Snapshot { source, throughputs, matrix };
        Ok(Self { stated: Arc::new(problem), names: Some(names), origin })
    }

    /// Pairs in the form of a problem's arguments: positions, and steps/s, `[K × 2]`.
    fn pairs_given<'py>(&self, py: Python<'py>) -> PyResult<Vec<GivenPair<'py>>> {
        let flat = |(one, other): (usize, usize), speeds: Vec<f64>| {
            let k = self.stated.n_types();
            Ok((one, other, speeds.into_pyarray(py).reshape([k, 2])?))
        };
        match self.stated.colocation() {
            Colocation::None => Ok(Vec::new()),
            Colocation::Pairs(pairs) => {
                let of = |(pair, speeds): (&Combination<JobIndex>, &Vec<[f64; 2]>)| {
                    let second = pair.second().unwrap_or(pair.first());
                    flat((pair.first().index(), second.index()), speeds.concat())
                };
                pairs.iter().map(of).collect()
            }
            Colocation::Rows { .. } => self.running_pairs().into_iter().map(|(p, s)| flat(p, s)).collect(),
        }
    }

    /// Pairs that run together on some type: their positions, and steps/s of both on each worker type, `[K × 2]`.
    fn running_pairs(&self) -> Vec<((usize, usize), Vec<f64>)> {
        let n = self.stated.n_jobs();
        let all: Box<dyn Iterator<Item = (usize, usize)>> = match self.stated.colocation() {
            Colocation::None => Box::new(iter::empty()),
            Colocation::Pairs(pairs) => Box::new(pairs.keys().filter_map(|pair| {
                let second = pair.second()?;
                Some((pair.first().index(), second.index()))
            })),
            Colocation::Rows { .. } => {
                Box::new((0..n).flat_map(move |first| (first + 1..n).map(move |second| (first, second))))
            }
        };
        all.filter_map(|pair| Some((pair, self.together(pair)?))).collect()
    }

    /// Steps/s of two jobs that share workers, on each worker type, `[K × 2]`; none if they run together on no type.
    fn together(&self, (first, second): (usize, usize)) -> Option<Vec<f64>> {
        let pair = Combination::pair(JobIndex::from_index(first), JobIndex::from_index(second));
        let on = |kind| self.stated.colocated(pair, WorkerTypeId::from_index(kind));
        let speeds: Vec<Option<[f64; 2]>> = (0..self.stated.n_types()).map(on).collect();
        let runs = speeds.iter().any(Option::is_some);
        runs.then(|| speeds.into_iter().flat_map(Option::unwrap_or_default).collect())
    }

    /// Owners of jobs, in the form of a problem's arguments.
    fn owners(&self) -> Vec<Owner> {
        let entities = self.stated.entities();
        let of = |entity: &Entity| {
            let inner = match entity.inner {
                InnerRule::Fairness => "fairness",
                InnerRule::Fifo => "fifo",
            };
            let parent = entity.parent.map(|id| entities[id].name.clone());
            (entity.name.clone(), entity.weight, inner.to_owned(), parent)
        };
        entities.iter().map(of).collect()
    }

    /// Columns of jobs beside their throughputs, in the form of a problem's arguments.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        columns.set_item("scale_factor", self.scale_factor(py))?;
        columns.set_item("weight", self.weight(py))?;
        columns.set_item("steps_remaining", self.steps_remaining(py))?;
        columns.set_item("elapsed", self.elapsed(py))?;
        columns.set_item("isolated_elapsed", self.isolated_elapsed(py))?;
        columns.set_item("slo_remaining", self.slo_remaining(py))?;
        columns.set_item("owner", self.owner())?;
        columns.set_item("names", self.names.clone())?;
        Ok(columns)
    }

    fn column(&self, value: impl Fn(&ActiveJob) -> f64) -> Vec<f64> {
        self.stated.jobs().iter().map(value).collect()
    }
}

#[pymethods]
impl Problem {
    #[new]
    #[pyo3(signature = (worker_types, workers, throughputs, columns, *, prices = Vec::new(), owners = Vec::new(), pairs = Vec::new(), extra = BTreeMap::new()))]
    #[expect(clippy::too_many_arguments, reason = "each is an argument of the Python function that calls it")]
    fn new(
        worker_types: Vec<String>,
        workers: &Bound<'_, PyAny>,
        throughputs: Array2<'_, f64>,
        columns: &Bound<'_, PyAny>,
        prices: Vec<Option<f64>>,
        owners: Vec<Owner>,
        pairs: Vec<Pair<'_>>,
        extra: BTreeMap<String, Vec<f64>>,
    ) -> PyResult<Self> {
        let columns = columns_of(columns)?;
        let mut builder = ProblemBuilder::new(Arc::new(cluster(&worker_types, workers, prices)?));
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
            let called = || called(columns.names.as_deref(), position);
            if let Some(owner) = columns.owner.as_ref().and_then(|owners| owners[position].as_ref()) {
                let known = entities.get(owner);
                let unknown = || errors::input(format!("{}: there is no owner `{owner}`", called()));
                job.entity = Some(*known.ok_or_else(unknown)?);
            }
            if let Some(wrong) = beyond_numbers(job.weight, row.iter().copied()) {
                return Err(errors::input_of_job(&format!("{}: {wrong}", called()), position));
            }
            match row.as_slice() {
                Some(row) => builder.job(job, row),
                None => builder.job(job, &row.to_vec()),
            };
        }
        if !pairs.is_empty() {
            builder.colocation(Colocation::Pairs(pairs_of(pairs, (n, k))?));
        }
        let known = Vocabulary::default();
        for (name, column) in extra {
            if known.names().any(|taken| taken == name) {
                let message = format!("extra: `{name}` is a word of policies already, expected another name");
                return Err(errors::input(message));
            }
            builder.extra(name, column);
        }
        let problem = builder.build().map_err(|error| {
            let job = |position| called(columns.names.as_deref(), position);
            errors::problem(&error, Called { job: &job, worker_types: &worker_types })
        })?;
        let origin = Origin::Arrays { job_types: None };
        Ok(Self { stated: Arc::new(problem), names: columns.names, origin })
    }

    /// The problem of a snapshot: a path, or a document's text.
    #[staticmethod]
    fn read(snapshot: Text, is_text: bool, throughputs: Text) -> PyResult<Self> {
        let said = |error| errors::spec(&error);
        let source = if is_text {
            Source::new("<text>", snapshot.0)
        } else {
            Source::load(&snapshot.0).map_err(said)?
        };
        let found = Source::find("throughputs", &throughputs.0, &THROUGHPUTS).map_err(said)?;
        // Matrices that are part of the build need not be kept.
        let matrix = (!found.name.starts_with('<')).then_some(found);
        Self::of_snapshot(source, throughputs.0, matrix).map_err(said)
    }

    /// The problem of the documents from which another one was made: the name and text of each.
    #[staticmethod]
    fn _of_documents(
        snapshot: (String, String),
        throughputs: String,
        matrix: Option<(String, String)>,
    ) -> PyResult<Self> {
        let source = |(name, text): (String, String)| Source::new(name, text);
        let made = Self::of_snapshot(source(snapshot), throughputs, matrix.map(source));
        made.map_err(|error| errors::spec(&error))
    }

    /// The problem with the job types by which its jobs' throughputs were looked up.
    fn _with_job_types(&self, job_types: Vec<Option<String>>) -> Self {
        let origin = Origin::Arrays { job_types: Some(job_types) };
        Self { stated: Arc::clone(&self.stated), names: self.names.clone(), origin }
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        if let Origin::Snapshot { source, throughputs, matrix } = &self.origin {
            let pair = |source: &Source| (source.name.clone(), source.text.to_string());
            let state = (pair(source), throughputs.clone(), matrix.as_ref().map(pair));
            return reduced(py, "read_problem", state);
        }
        let arguments = PyDict::new(py);
        arguments.set_item("worker_types", self.worker_types())?;
        arguments.set_item("workers", self.workers(py))?;
        arguments.set_item("throughputs", self.throughputs(py)?)?;
        arguments.set_item("columns", self.columns(py)?)?;
        let prices = self.stated.cluster().types().iter().map(|kind| Some(kind.price?.get()));
        arguments.set_item("prices", prices.collect::<Vec<Option<f64>>>())?;
        arguments.set_item("owners", self.owners())?;
        arguments.set_item("pairs", self.pairs_given(py)?)?;
        arguments.set_item("extra", self.stated.extra().clone())?;
        let job_types = self.job_type();
        let are_known = job_types.iter().any(Option::is_some);
        reduced(py, "problem", (arguments, are_known.then_some(job_types)))
    }

    fn __copy__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __deepcopy__<'py>(slf: Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        slf
    }

    /// Active jobs, n.
    #[getter]
    fn n_jobs(&self) -> usize {
        self.stated.n_jobs()
    }

    /// Names of the worker types: `[K]`.
    #[getter]
    pub(crate) fn worker_types(&self) -> Vec<String> {
        self.stated.cluster().types().iter().map(|kind| kind.name.clone()).collect()
    }

    /// Workers of each type: `[K]`.
    #[getter]
    fn workers<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let workers: Vec<i64> =
            self.stated.cluster().types().iter().map(|kind| i64::from(kind.n_workers)).collect();
        workers.into_pyarray(py)
    }

    /// $/h of a worker of each type, `[K]`; None if one has no price.
    #[getter]
    fn prices<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        let prices = self.stated.cluster().types().iter().map(|kind| Some(kind.price?.get()));
        Some(prices.collect::<Option<Vec<f64>>>()?.into_pyarray(py))
    }

    /// What the jobs are called: `[n]`. In a simulation, their numbers in order of arrival.
    #[getter]
    fn names(&self) -> Vec<JobName> {
        let by_position = || (0..self.stated.n_jobs()).map(|position| JobName::Number(number(position)));
        self.names.clone().unwrap_or_else(|| by_position().collect())
    }

    /// Steps/s of each job alone: [n × K]; 0 = cannot run there.
    #[getter]
    fn throughputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let values = self.stated.throughput().as_slice().to_vec().into_pyarray(py);
        values.reshape([self.stated.n_jobs(), self.stated.n_types()])
    }

    /// The job type of each job, where jobs are looked up in a throughput matrix, as in simulations: `[n]`.
    #[getter]
    fn job_type(&self) -> Vec<Option<String>> {
        if let Origin::Arrays { job_types: Some(known) } = &self.origin {
            return known.clone();
        }
        let row = |job: &ActiveJob| match self.stated.colocation() {
            Colocation::Rows { throughputs, .. } => Some(throughputs.rows()[job.row?].job_type.clone()),
            _ => None,
        };
        self.stated.jobs().iter().map(row).collect()
    }

    /// Workers that each job needs at once: `[n]`.
    #[getter]
    fn scale_factor<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let scale: Vec<i64> = self.stated.jobs().iter().map(|job| i64::from(job.scale_factor)).collect();
        scale.into_pyarray(py)
    }

    /// Importance of each job: `[n]`.
    #[getter]
    fn weight<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.column(|job| job.weight).into_pyarray(py)
    }

    /// Steps left of each job: `[n]`.
    #[getter]
    fn steps_remaining<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.column(|job| job.steps_remaining.get()).into_pyarray(py)
    }

    /// Seconds since each job's arrival: `[n]`.
    #[getter]
    fn elapsed<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.column(|job| job.elapsed.get()).into_pyarray(py)
    }

    /// Seconds of isolated time that each job has accumulated, for finish-time fairness: `[n]`.
    #[getter]
    fn isolated_elapsed<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.column(|job| job.isolated_elapsed.get()).into_pyarray(py)
    }

    /// Seconds to each job's deadline, NaN where it has none: `[n]`.
    #[getter]
    fn slo_remaining<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.column(|job| job.slo_remaining.map_or(f64::NAN, Seconds::get)).into_pyarray(py)
    }

    /// The owner of each job, if it has one: `[n]`.
    #[getter]
    fn owner(&self) -> Vec<Option<String>> {
        let entities = self.stated.entities();
        self.stated.jobs().iter().map(|job| job.entity.map(|id| entities[id].name.clone())).collect()
    }

    /// Further columns by name, each `[n]`.
    #[getter]
    fn extra<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let extra = PyDict::new(py);
        for (name, column) in self.stated.extra() {
            extra.set_item(name, column.clone().into_pyarray(py))?;
        }
        Ok(extra)
    }

    /// Pairs of jobs that may share workers: positions, [m × 2], and steps/s of both on each worker type, [m × K × 2].
    fn pairs<'py>(&self, py: Python<'py>) -> PyResult<Pairs<'py>> {
        let k = self.stated.n_types();
        let (mut positions, mut speeds) = (Vec::new(), Vec::new());
        for ((first, second), of_pair) in self.running_pairs() {
            positions.extend([first, second].map(number));
            speeds.extend(of_pair);
        }
        let m = positions.len() / 2;
        Ok((positions.into_pyarray(py).reshape([m, 2])?, speeds.into_pyarray(py).reshape([m, k, 2])?))
    }

    fn __repr__(&self) -> String {
        format!("<Problem of {} jobs on {}>", self.stated.n_jobs(), self.stated.cluster())
    }
}
