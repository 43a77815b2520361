//! A single simulation, with its events kept as columns.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use apportion::index::{Id, JobId, JobIndex};
use apportion::metrics::table::{DETAILS, Metric};
use apportion::metrics::{JobNumbers, JobRecord, JobValue, METRICS, Recorder, Summary, job_columns};
use apportion::policy::Decision;
use apportion::problem::Problem;
use apportion::simulator::{Event, Limits, Observer, Outcome, Simulation};
use apportion::solver::timing::Stopwatch;
use apportion::spec::Source;
use apportion::units::Seconds;
use apportion::workload::Combination;
use apportion_studies::sweep::simulation::{begin, is_broken_off};
use apportion_studies::sweep::spec::SweepSpec;
use apportion_studies::sweep::{Bounds, Run};
use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::JobName;
use crate::attended::attended;
use crate::errors;
use crate::function::{Given, Raised};

/// A column of a table.
#[derive(Debug)]
enum Column {
    Float(Vec<f64>),
    Whole(Vec<i64>),
    Flag(Vec<bool>),
    Text(Vec<Option<String>>),
}

/// Columns of equal length, by name and in order.
#[derive(Debug)]
struct Columns(Vec<(&'static str, Column)>);

impl Columns {
    /// Columns without rows.
    fn of(names: &[(&'static str, Empty)]) -> Self {
        Self(names.iter().map(|(name, empty)| (*name, empty())).collect())
    }

    fn column(&mut self, name: &'static str, empty: Empty) -> &mut Column {
        let known = self.0.iter().position(|(other, _)| *other == name);
        let position = known.unwrap_or_else(|| {
            self.0.push((name, empty()));
            self.0.len() - 1
        });
        &mut self.0[position].1
    }

    fn float(&mut self, name: &'static str, value: f64) -> &mut Self {
        if let Column::Float(column) = self.column(name, FLOAT) {
            column.push(value);
        }
        self
    }

    fn whole(&mut self, name: &'static str, value: impl TryInto<i64>) -> &mut Self {
        if let Column::Whole(column) = self.column(name, WHOLE) {
            column.push(value.try_into().unwrap_or(i64::MAX));
        }
        self
    }

    fn flag(&mut self, name: &'static str, value: bool) -> &mut Self {
        if let Column::Flag(column) = self.column(name, FLAG) {
            column.push(value);
        }
        self
    }

    fn text(&mut self, name: &'static str, value: Option<&str>) -> &mut Self {
        if let Column::Text(column) = self.column(name, TEXT) {
            column.push(value.map(str::to_owned));
        }
        self
    }

    fn into_dict(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let table = PyDict::new(py);
        for (name, column) in self.0 {
            match column {
                Column::Float(values) => table.set_item(name, values.into_pyarray(py))?,
                Column::Whole(values) => table.set_item(name, values.into_pyarray(py))?,
                Column::Flag(values) => table.set_item(name, values.into_pyarray(py))?,
                Column::Text(values) => table.set_item(name, values)?,
            }
        }
        Ok(table)
    }
}

/// A column without values, of one kind.
type Empty = fn() -> Column;

const FLOAT: Empty = || Column::Float(Vec::new());
const WHOLE: Empty = || Column::Whole(Vec::new());
const FLAG: Empty = || Column::Flag(Vec::new());
const TEXT: Empty = || Column::Text(Vec::new());

/// Choice of the tables that are kept.
#[derive(Clone, Copy, Debug, FromPyObject)]
#[pyo3(from_item_all)]
#[expect(clippy::struct_excessive_bools, reason = "each is a table")]
pub(crate) struct Keep {
    rounds: bool,
    leases: bool,
    slices: bool,
    decisions: bool,
    allocations: bool,
}

/// Observer that keeps events as columns. Instants count from the start of the trace's own time.
#[derive(Debug)]
struct Tables {
    keep: Keep,
    origin: f64,
    round: u64,
    /// The active jobs of the last decision, by position in its problem.
    ids: Vec<JobId>,
    /// Whether the last decision was proven to be optimal; none if it has no objective.
    is_certified: Option<bool>,
    /// Whether a program was solved for the last decision.
    is_solved: bool,
    rounds: Columns,
    leases: Columns,
    slices: Columns,
    decisions: Columns,
    allocations: Columns,
}

impl Tables {
    fn new(keep: Keep, origin: Seconds) -> Self {
        Self {
            keep,
            origin: origin.get(),
            round: 0,
            ids: Vec::new(),
            is_certified: None,
            is_solved: false,
            rounds: Columns::of(&[
                ("time_s", FLOAT),
                ("round", WHOLE),
                ("active_jobs", WHOLE),
                ("leases", WHOLE),
            ]),
            leases: Columns::of(&[
                ("time_s", FLOAT),
                ("round", WHOLE),
                ("job", WHOLE),
                ("partner", WHOLE),
                ("worker_type", WHOLE),
                ("workers", WHOLE),
                ("servers", WHOLE),
                ("extended", FLAG),
            ]),
            slices: Columns::of(&[
                ("start_s", FLOAT),
                ("end_s", FLOAT),
                ("job", WHOLE),
                ("partner", WHOLE),
                ("worker_type", WHOLE),
                ("workers", WHOLE),
                ("busy_s", FLOAT),
                ("overhead_s", FLOAT),
                ("steps", FLOAT),
                ("partner_steps", FLOAT),
                ("succeeded", FLAG),
            ]),
            decisions: Columns::of(&[
                ("time_s", FLOAT),
                ("jobs", WHOLE),
                ("backend", TEXT),
                ("route", TEXT),
                ("iterations", WHOLE),
                ("certificate", TEXT),
                ("seconds", FLOAT),
            ]),
            allocations: Columns::of(&[
                ("time_s", FLOAT),
                ("job", WHOLE),
                ("partner", WHOLE),
                ("worker_type", WHOLE),
                ("share", FLOAT),
            ]),
        }
    }

    fn clock(&self, instant: Seconds) -> f64 {
        self.origin + instant.get()
    }
}

/// Jobs of a combination; the second is −1 where there is none.
fn members<J: Copy + Ord + Id>(of: Combination<J>) -> [i64; 2] {
    let number = |job: J| i64::try_from(job.index()).unwrap_or(i64::MAX);
    [number(of.first()), of.second().map_or(-1, number)]
}

impl Observer for Tables {
    fn observe(&mut self, event: &Event<'_>) {
        match *event {
            Event::RoundStarted { now, round, n_active, n_leases } => {
                self.round = round;
                if self.keep.rounds {
                    let now = self.clock(now);
                    let row = self.rounds.float("time_s", now).whole("round", round);
                    row.whole("active_jobs", n_active).whole("leases", n_leases);
                }
            }
            Event::Lease { now, jobs, worker_type, workers, n_servers, extended } if self.keep.leases => {
                let (now, [job, partner], round) = (self.clock(now), members(jobs), self.round);
                let row = self.leases.float("time_s", now).whole("round", round);
                row.whole("job", job).whole("partner", partner).whole("worker_type", worker_type.index());
                row.whole("workers", workers.len()).whole("servers", n_servers).flag("extended", extended);
            }
            Event::Slice(slice) if self.keep.slices => {
                let (start, end) = (self.clock(slice.start), self.clock(slice.end));
                let [job, partner] = members(slice.jobs);
                let row = self.slices.float("start_s", start).float("end_s", end);
                row.whole("job", job).whole("partner", partner);
                row.whole("worker_type", slice.worker_type.index()).whole("workers", slice.n_workers);
                row.float("busy_s", slice.time.get()).float("overhead_s", slice.overhead.get());
                row.float("steps", slice.steps[0].get()).float("partner_steps", slice.steps[1].get());
                row.flag("succeeded", slice.succeeded);
            }
            Event::Allocated { now, n_jobs, backend, route, iterations, solve_seconds, .. }
                if self.keep.decisions =>
            {
                let now = self.clock(now);
                let certificate =
                    self.is_certified.map(|optimal| if optimal { "optimal" } else { "not proven" });
                let seconds = if self.is_solved { solve_seconds } else { f64::NAN };
                let row = self.decisions.float("time_s", now).whole("jobs", n_jobs).text("backend", backend);
                row.text("route", route).whole("iterations", iterations).text("certificate", certificate);
                row.float("seconds", seconds);
            }
            _ => {}
        }
    }

    fn decided(&mut self, now: Seconds, problem: &Problem, decision: &Decision) {
        self.is_certified = decision.objective.as_ref().map(|objective| objective.optimal);
        self.is_solved = decision.solve.is_some();
        if !self.keep.allocations {
            return;
        }
        let now = self.clock(now);
        self.ids.clear();
        self.ids.extend(problem.jobs().iter().map(|job| job.id));
        let id_of = |job: JobIndex| self.ids[job.index()];
        let allocation = &decision.allocation;
        for (row, combination) in allocation.combinations().enumerate() {
            let [job, partner] = members(combination.map(id_of));
            let shares = allocation.shares().row(row);
            for (kind, share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
                let row = self.allocations.float("time_s", now).whole("job", job).whole("partner", partner);
                row.whole("worker_type", kind).float("share", *share);
            }
        }
    }
}

/// A sweep of a single run, from a document.
fn spec_of(document: &str) -> PyResult<SweepSpec> {
    let source = Source::new(errors::ARGUMENTS, document);
    SweepSpec::parse(&source, false).map_err(|error| errors::arguments(&error, document))
}

/// Simulates the single run of a sweep's document. Returns its outcome, its numbers, and the tables that are to be kept.
#[pyfunction]
pub(crate) fn simulate<'py>(
    py: Python<'py>,
    document: &str,
    given: Given,
    keep: Keep,
) -> PyResult<Bound<'py, PyDict>> {
    let sweep = spec_of(document)?;
    let raised = Raised::default();
    let inputs = given.inputs(&raised).map_err(|error| errors::spec(&error))?;
    let interrupt = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupt);
    let done = attended(py, &interrupt, move || {
        let stopwatch = Stopwatch::start();
        let run = inputs.load(&sweep.run(&[0]))?;
        let bounds = Bounds::of(&sweep.stop, flag);
        let mut simulation = begin(&run, None, bounds.of_decisions(stopwatch))?;
        let mut observer = (Recorder::new(simulation.cluster()), Tables::new(keep, run.origin));
        let limits = Limits {
            patience: run.patience(bounds.patience),
            wall: bounds.wall.map(|wall| (stopwatch, wall)),
            interrupt: Some(bounds.interrupt),
            ..Limits::default()
        };
        let (status, reason) = match simulation.run(&mut observer, &limits) {
            Err(error) if is_broken_off(&error) => ("timeout", Some(error.to_string())),
            outcome => ended(outcome?, &simulation),
        };
        let (recorder, tables) = observer;
        let summary = recorder.summary().counted_from(run.origin);
        let seconds = stopwatch.elapsed().as_secs_f64();
        Ok(Simulated { run, status, reason, summary, tables, seconds })
    })?;
    match done {
        Ok(simulated) => simulated.into_dict(py),
        Err(error) => match raised.take() {
            Some(raised) => Err(errors::noted(raised, &error)),
            None => Err(errors::run(&error)),
        },
    }
}

/// Outcome of a simulation, and why it is not done.
fn ended(outcome: Outcome, simulation: &Simulation) -> (&'static str, Option<String>) {
    match (outcome, simulation.standstill()) {
        (Outcome::Finished, _) => ("done", None),
        (Outcome::WallLimit, _) => {
            ("timeout", Some(format!("given up after {:.2} simulated hours", simulation.now().hours())))
        }
        (_, Some(found)) => (found.name(), Some(found.to_string())),
        (_, None) => ("failed", Some("it ended without a reason".to_owned())),
    }
}

/// A simulation that has ended, and its run.
struct Simulated {
    run: Run,
    status: &'static str,
    reason: Option<String>,
    summary: Summary,
    tables: Tables,
    seconds: f64,
}

impl Simulated {
    fn into_dict(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let Self { run, status, reason, summary, tables, seconds } = self;
        let all = PyDict::new(py);
        all.set_item("status", status)?;
        all.set_item("reason", reason)?;
        all.set_item("seconds", seconds)?;
        all.set_item("digest", &run.digest)?;
        let kinds = run.cluster.types().iter().map(|kind| kind.name.clone());
        all.set_item("worker_types", kinds.collect::<Vec<_>>())?;
        let numbers = PyDict::new(py);
        for metric in METRICS.iter().chain(DETAILS) {
            numbers.set_item(metric.name, (metric.of)(&summary))?;
        }
        all.set_item("summary", numbers)?;
        all.set_item("utilization", summary.utilization.clone())?;
        all.set_item("jobs", jobs(py, &summary.jobs)?)?;
        let kept = [
            ("rounds", tables.keep.rounds, tables.rounds),
            ("leases", tables.keep.leases, tables.leases),
            ("slices", tables.keep.slices, tables.slices),
            ("decisions", tables.keep.decisions, tables.decisions),
            ("allocations", tables.keep.allocations, tables.allocations),
        ];
        for (name, keep, columns) in kept {
            all.set_item(name, if keep { Some(columns.into_dict(py)?) } else { None })?;
        }
        Ok(all)
    }
}

/// The measured jobs as columns.
fn jobs<'py>(py: Python<'py>, jobs: &[JobRecord]) -> PyResult<Bound<'py, PyDict>> {
    let table = PyDict::new(py);
    let names: Vec<JobName> = jobs.iter().map(|job| JobName::from(&job.id)).collect();
    let order: Vec<i64> = jobs.iter().map(JobRecord::order).collect();
    table.set_item("name", names)?;
    table.set_item("job", order.into_pyarray(py))?;
    table.set_item("job_type", jobs.iter().map(|job| job.job_type.as_str()).collect::<Vec<_>>())?;
    set_numbers(&table, &jobs.iter().map(JobNumbers::from).collect::<Vec<_>>())?;
    let deadlines: Vec<f64> = jobs.iter().map(|job| job.slo.map_or(f64::NAN, Seconds::get)).collect();
    table.set_item("slo_s", deadlines.into_pyarray(py))?;
    table.set_item("owner", jobs.iter().map(|job| job.entity.as_deref()).collect::<Vec<_>>())?;
    Ok(table)
}

/// Adds the columns of the engine's table of jobs, and the busy time of their workers by worker type; missing values are
/// NaN, or −1 for counts.
pub(crate) fn set_numbers(table: &Bound<'_, PyDict>, jobs: &[JobNumbers<'_>]) -> PyResult<()> {
    let py = table.py();
    for column in job_columns() {
        let values = jobs.iter().map(column.of);
        if column.is_count() {
            let count = |value| match value {
                Some(JobValue::Count(count)) => i64::try_from(count).unwrap_or(i64::MAX),
                Some(JobValue::Number(_)) | None => -1,
            };
            table.set_item(column.name, values.map(count).collect::<Vec<i64>>().into_pyarray(py))?;
        } else {
            let number = |value| match value {
                Some(JobValue::Number(number)) => number,
                Some(JobValue::Count(_)) | None => f64::NAN,
            };
            table.set_item(column.name, values.map(number).collect::<Vec<f64>>().into_pyarray(py))?;
        }
    }
    let services = || jobs.iter().map(|job| job.service);
    let types: BTreeSet<&String> =
        services().flatten().flat_map(|service| service.worker_hours.keys()).collect();
    for name in types {
        let hours = services().map(|service| service.and_then(|service| service.worker_hours.get(name)));
        let hours = hours.map(|hours| hours.copied().unwrap_or(f64::NAN));
        table.set_item(format!("worker_hours_{name}"), hours.collect::<Vec<f64>>().into_pyarray(py))?;
    }
    Ok(())
}

/// Metrics: name, unit, label, meaning, and which value is better.
#[pyfunction]
pub(crate) fn metrics() -> Vec<[&'static str; 5]> {
    let said = |metric: &Metric| {
        [metric.name, metric.unit.name(), metric.label, metric.meaning, metric.better.name()]
    };
    METRICS.iter().chain(DETAILS).map(said).collect()
}
