//! Sweeps of simulations, kept as they finish in the same store as the command's.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use apportion::metrics::METRICS;
use apportion::spec::Source;
use apportion::spec::nearest::name_list;
use apportion_studies::report::study;
use apportion_studies::sweep::runner::Runner;
use apportion_studies::sweep::spec::{SweepSpec, value_text};
use apportion_studies::sweep::{
    AllocationRow, Bounds, Course, EMBEDDED, Executor, JobRow, Made, Outcome, Plan, Point, Progress, Row,
    Selection, Shard, Store, Study, Task, findings, make,
};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::Value;

use crate::attended::attended;
use crate::ending::Call;
use crate::errors;
use crate::function::{Given, Raised};
use crate::options::Text;
use crate::simulation::set_numbers;

/// Options of a sweep.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
#[expect(clippy::struct_excessive_bools, reason = "each is an argument of `sweep`")]
pub(crate) struct Making {
    out: PathBuf,
    quick: bool,
    only: Vec<String>,
    threads: Option<NonZeroUsize>,
    keep_jobs: bool,
    keep_allocations: bool,
    retry: bool,
}

/// Reporter that counts ended runs, and tells Python of each.
struct Told {
    progress: Option<Py<PyAny>>,
    n_done: AtomicUsize,
    n_all: AtomicUsize,
    /// Exception that a report raised.
    raised: Mutex<Option<PyErr>>,
    interrupt: Arc<AtomicBool>,
}

impl Progress for Told {
    fn finished(&self, point: &Point, outcome: &Outcome) {
        let n_done = self.n_done.fetch_add(1, Ordering::Relaxed) + 1;
        let Some(progress) = &self.progress else { return };
        let values: Vec<String> = point.values.iter().map(value_text).collect();
        let n_all = self.n_all.load(Ordering::Relaxed);
        let Some(_call) = Call::begin() else { return };
        let told = Python::attach(|py| progress.call1(py, (n_done, n_all, values, outcome.status.name())));
        if let Err(error) = told {
            *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            self.interrupt.store(true, Ordering::SeqCst);
        }
    }

    fn added(&self, _: &Point) {
        self.n_all.fetch_add(1, Ordering::Relaxed);
    }
}

/// Makes the runs of a sweep that are not in its folder yet. If interrupted, it raises the signal's exception and keeps the
/// runs that had ended; the same call continues from there. `name_or_document` is a shipped sweep's name, a path, or a
/// document's text.
#[pyfunction]
#[pyo3(signature = (name_or_document, is_text, given, making, progress))]
pub(crate) fn sweep(
    py: Python<'_>,
    name_or_document: Text,
    is_text: bool,
    given: Given,
    making: Making,
    progress: Option<Py<PyAny>>,
) -> PyResult<()> {
    let name_or_document = name_or_document.0.as_str();
    let said = |error| {
        if is_text { errors::arguments(&error, name_or_document) } else { errors::spec(&error) }
    };
    let source = if is_text {
        Source::new(errors::ARGUMENTS, name_or_document)
    } else {
        Source::find("sweep", name_or_document, &EMBEDDED).map_err(said)?
    };
    let mut spec = SweepSpec::parse(&source, making.quick).map_err(said)?;
    if making.quick {
        spec.name.push_str("-quick");
    }
    let selection =
        Selection::parse(&spec, &making.only).map_err(|error| errors::input(format!("only: {error}")))?;
    let inputs = given.inputs(&Raised::default()).map_err(said)?.of_document_in(&spec.folder);
    let interrupt = Arc::new(AtomicBool::new(false));
    let told = Told {
        progress,
        n_done: AtomicUsize::new(0),
        n_all: AtomicUsize::new(0),
        raised: Mutex::default(),
        interrupt: Arc::clone(&interrupt),
    };
    let flag = Arc::clone(&interrupt);
    let made = attended(py, &interrupt, || -> PyResult<Made> {
        let plan =
            Plan::of(inputs, &spec, &selection, Shard::ALL).map_err(|refused| errors::run(&refused.1))?;
        let mut store =
            Store::open(&making.out, &Study::of(&spec, &selection)).map_err(|error| errors::store(&error))?;
        let kept = if making.retry { store.finished_outcomes() } else { store.outcomes() };
        let kept = kept.map_err(|error| errors::store(&error))?;
        let mut course = Course::new(&plan, kept);
        let pending: Vec<Task> = course.pending().map_err(|error| errors::run(&error))?;
        told.n_all.store(pending.len(), Ordering::Relaxed);
        let keep_jobs = spec.keep_jobs || making.keep_jobs;
        let keep_allocations = spec.keep_allocations || making.keep_allocations;
        let bounds = Bounds { keep_jobs, keep_allocations, ..Bounds::of(&spec.stop, Arc::clone(&flag)) };
        let executor = Executor::new(bounds, spec.stop.saturated);
        let runner = Runner { interrupt: &flag, n_threads: making.threads, progress: &told };
        let made = make((&mut course, pending), &mut store, &executor, &runner);
        let made = made.map_err(|error| errors::store(&error))?;
        store.write_csv().map_err(|error| errors::store(&error))?;
        Ok(made)
    })?;
    if let Some(error) = told.raised.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    match made?.refused {
        None => Ok(()),
        Some((point, error)) => {
            let values: Vec<String> = point.values.iter().map(value_text).collect();
            let error = errors::run(&error);
            drop(error.value(py).call_method1("add_note", (format!("after the run {}", values.join(" ")),)));
            Err(error)
        }
    }
}

/// Results of a sweep in a folder. See `apportion.Study`.
#[pyclass(frozen, module = "apportion")]
#[derive(Debug)]
pub(crate) struct Results {
    name: String,
    axes: Vec<(String, Vec<Value>)>,
    rows: Vec<Row>,
    folder: PathBuf,
}

impl Results {
    /// Column of the values of runs on the axis at this position.
    fn axis_values<'py, 'r>(
        py: Python<'py>,
        position: usize,
        rows: impl Iterator<Item = &'r Row>,
    ) -> PyResult<Bound<'py, PyList>> {
        let values = rows.map(|row| value(py, &row.values[position]));
        PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)
    }
}

#[pymethods]
impl Results {
    #[new]
    fn new(folder: PathBuf) -> PyResult<Self> {
        let store = Store::open_to_read(&folder).map_err(|error| errors::store(&error))?;
        let axes = store.study().axes.clone();
        let rows = store.rows().map_err(|error| errors::store(&error))?;
        Ok(Self { name: store.study().name.clone(), axes, rows, folder })
    }

    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    #[getter]
    fn axes(&self) -> Vec<String> {
        self.axes.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Requested values of each axis, including those of runs that are still to be made.
    fn asked<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyList>>> {
        let of = |(_, values): &(String, Vec<Value>)| {
            PyList::new(py, values.iter().map(|of| value(py, of)).collect::<PyResult<Vec<_>>>()?)
        };
        self.axes.iter().map(of).collect()
    }

    /// Table with a row per run: its value on each axis, its outcome and why, the metrics (NaN = none), and its wall time,
    /// s.
    fn runs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let table = PyDict::new(py);
        for (position, (axis, _)) in self.axes.iter().enumerate() {
            table.set_item(axis, Self::axis_values(py, position, self.rows.iter())?)?;
        }
        let text = |of: fn(&Row) -> Option<String>| self.rows.iter().map(of).collect::<Vec<_>>();
        table.set_item("status", text(|row| Some(row.outcome.status.name().to_owned())))?;
        table.set_item("reason", text(|row| row.outcome.reason.clone()))?;
        let numbers = |of: &dyn Fn(&Row) -> Option<f64>| {
            self.rows.iter().map(|row| of(row).unwrap_or(f64::NAN)).collect::<Vec<f64>>().into_pyarray(py)
        };
        table.set_item("capacity", numbers(&|row| row.outcome.capacity))?;
        for (position, metric) in METRICS.iter().enumerate() {
            table.set_item(metric.name, numbers(&|row| row.outcome.metrics[position]))?;
        }
        table.set_item("seconds", numbers(&|row| Some(row.seconds)))?;
        table.set_item("digest", text(|row| Some(row.digest.clone())))?;
        Ok(table)
    }

    /// Measured jobs of the runs that kept them, with the digest of the run.
    fn jobs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let store = Store::open_to_read(&self.folder).map_err(|error| errors::store(&error))?;
        let (mut digests, mut jobs): (Vec<&str>, Vec<JobRow>) = (Vec::new(), Vec::new());
        for row in &self.rows {
            let of_run = store.jobs(&row.digest).map_err(|error| errors::store(&error))?;
            digests.extend(of_run.iter().map(|_| row.digest.as_str()));
            jobs.extend(of_run);
        }
        let table = PyDict::new(py);
        let ids: Vec<i64> = jobs.iter().map(|job| i64::try_from(job.id).unwrap_or(i64::MAX)).collect();
        table.set_item("digest", digests)?;
        table.set_item("job", ids.into_pyarray(py))?;
        table.set_item("job_type", jobs.iter().map(|job| job.job_type.as_str()).collect::<Vec<_>>())?;
        set_numbers(&table, &jobs.iter().map(JobRow::numbers).collect::<Vec<_>>())?;
        Ok(table)
    }

    /// Table with a row per share of each decision of the runs that kept them: the run's value on each axis, from when until when the
    /// share was in force, its jobs by position in order of arrival (partner −1 = none), its worker type, and the digest of the run.
    fn allocations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let store = Store::open_to_read(&self.folder).map_err(|error| errors::store(&error))?;
        let mut all: Vec<(&Row, AllocationRow)> = Vec::new();
        for row in &self.rows {
            let of_run = store.allocations(&row.digest).map_err(|error| errors::store(&error))?;
            all.extend(of_run.into_iter().map(|share| (row, share)));
        }
        let table = PyDict::new(py);
        for (position, (axis, _)) in self.axes.iter().enumerate() {
            table.set_item(axis, Self::axis_values(py, position, all.iter().map(|(row, _)| *row))?)?;
        }
        let numbers = |of: fn(&AllocationRow) -> f64| {
            all.iter().map(|(_, share)| of(share)).collect::<Vec<f64>>().into_pyarray(py)
        };
        let jobs = |of: fn(&AllocationRow) -> Option<u64>| {
            let number = |id: u64| i64::try_from(id).unwrap_or(i64::MAX);
            all.iter().map(|(_, share)| of(share).map_or(-1, number)).collect::<Vec<i64>>().into_pyarray(py)
        };
        table.set_item("from_s", numbers(|share| share.from))?;
        table.set_item("until_s", numbers(|share| share.until))?;
        table.set_item("job", jobs(|share| Some(share.job)))?;
        table.set_item("partner", jobs(|share| share.partner))?;
        let types: Vec<&str> = all.iter().map(|(_, share)| share.worker_type.as_str()).collect();
        table.set_item("worker_type", types)?;
        table.set_item("share", numbers(|share| share.share))?;
        table.set_item("digest", all.iter().map(|(row, _)| row.digest.as_str()).collect::<Vec<_>>())?;
        Ok(table)
    }

    /// Page about the results, as HTML that needs no network.
    fn page(&self, baseline: Option<&str>) -> PyResult<String> {
        let store = Store::open_to_read(Path::new(&self.folder)).map_err(|error| errors::store(&error))?;
        match findings::of(&store, baseline).map_err(|error| errors::store(&error))? {
            Ok(found) => Ok(study::page(&found).html()),
            Err(names) => {
                let wanted = baseline.unwrap_or_default();
                let known = name_list(names.iter().map(String::as_str));
                Err(errors::input(format!("baseline: no runs of `{wanted}`, expected one of {known}")))
            }
        }
    }

    fn __repr__(&self) -> String {
        format!("<Results of `{}`: {} runs>", self.name, self.rows.len())
    }
}

/// A value on an axis: numbers and flags as such, all others as the text of tables.
fn value<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(flag) => flag.into_pyobject(py)?.to_owned().into_any(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into_pyobject(py)?.into_any(),
            None => number.as_f64().into_pyobject(py)?,
        },
        other => value_text(other).into_pyobject(py)?.into_any(),
    })
}
