//! Execution of one run, from its start to its outcome.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::sweep::allocations::Allocations;
use crate::sweep::inputs::Run;
use crate::sweep::options;
use crate::sweep::outcome::{JobRow, Outcome, Status};
use crate::sweep::run_error::RunError;
use crate::sweep::saturation::Capacity;
use crate::sweep::spec::StopSpec;
use apportion::catalog::Ready;
use apportion::metrics::{JobRecord, METRICS, Recorder, Summary};
use apportion::policy::PolicyError;
use apportion::scheduler::DecisionError;
use apportion::simulator::{
    Checkpoint, Limits, Outcome as Ending, Patience, Simulation, SimulationError, Standstill,
};
use apportion::solver::timing::Stopwatch;
use apportion::solver::{Interrupt, SolveError, Termination};
use apportion::units::{Decimals, Seconds};
use apportion::workload::Arrivals;

/// Wall time between two reports.
const REPORT_EVERY: Duration = Duration::from_millis(500);

/// Progress of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// Number of measured jobs that are done.
    pub n_done: u64,
    /// Number of measured jobs, where it is known.
    pub n_measured: Option<u64>,
    /// Number of jobs that run or wait.
    pub n_active: usize,
    /// Mean completion time of the measured jobs that are done.
    pub average_jct: Option<Seconds>,
    /// Simulated time.
    pub now: Seconds,
    /// Number of simulated rounds.
    pub rounds: u64,
}

impl Standing {
    fn of(run: &Run, simulation: &Simulation, recorder: &Recorder) -> Self {
        Self {
            n_done: u64::from(simulation.n_measured_done()),
            n_measured: run.n_measured(),
            n_active: simulation.n_active(),
            average_jct: recorder.summary().average_jct.map(Seconds::new),
            now: simulation.now(),
            rounds: simulation.round(),
        }
    }
}

/// Limits of a run.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    /// A flag: once it is raised, the run stops.
    pub interrupt: Arc<AtomicBool>,
    /// Limit of wall time.
    pub wall: Option<Duration>,
    /// Limit of wall time of one decision.
    pub decision: Option<Duration>,
    /// Limits after which a run without progress is given up; as for [`Run::patience`].
    pub patience: Patience,
    /// Whether the outcome keeps the measured jobs.
    pub keep_jobs: bool,
    /// Whether the outcome keeps the shares of all decisions.
    pub keep_allocations: bool,
}

impl Bounds {
    /// Limits of a sweep's `stop`, with the flag that stops its runs.
    pub fn of(stop: &StopSpec, interrupt: Arc<AtomicBool>) -> Self {
        // A duration cannot hold infinity; this is longer than any run.
        let time = |time: Seconds| Duration::from_secs_f64(time.get().min(1e12));
        Self {
            interrupt,
            wall: stop.wall.map(time),
            decision: stop.decision.map(time),
            patience: stop.patience(),
            keep_jobs: false,
            keep_allocations: false,
        }
    }

    /// Message about the time limit that ended a run: its own where that has passed, or else that of a decision; none
    /// without either. The stopwatch was started with the run.
    fn limit_over(&self, stopwatch: Stopwatch) -> Option<String> {
        let in_words = |what: &str, field: &str, limit: Duration| {
            format!("the wall time of {} s{what} (`stop: {field}`) is over", limit.as_secs_f64())
        };
        let of_run = self.wall.filter(|wall| stopwatch.elapsed() >= *wall);
        let of_run = of_run.map(|wall| in_words("", "wall", wall));
        of_run.or_else(|| self.decision.map(|time| in_words(" for a decision", "decision", time)))
    }

    /// Interrupt that breaks off the decisions of a run; the stopwatch was started with the run.
    pub fn of_decisions(&self, stopwatch: Stopwatch) -> Interrupt {
        let mut interrupt = Interrupt::default().with_flag(Arc::clone(&self.interrupt));
        if let Some(wall) = self.wall {
            interrupt = interrupt.with_end(stopwatch, wall);
        }
        match self.decision {
            Some(time) => interrupt.with_decision(time),
            None => interrupt,
        }
    }
}

/// A simulation of this run at its start, or at a checkpoint of it; a decision that the interrupt breaks off is an error.
///
/// # Errors
/// If policy and workload do not fit together, or the checkpoint is of another run.
pub fn begin(
    run: &Run,
    checkpoint: Option<&Checkpoint>,
    interrupt: Interrupt,
) -> Result<Simulation, RunError> {
    begin_with(run, run.arrivals()?, checkpoint, interrupt)
}

/// A simulation of this run with other jobs than its own; they are given from their beginning even where a checkpoint is
/// continued.
///
/// # Errors
/// Fails as [`begin`] does.
pub fn begin_with(
    run: &Run,
    arrivals: Box<dyn Arrivals>,
    checkpoint: Option<&Checkpoint>,
    interrupt: Interrupt,
) -> Result<Simulation, RunError> {
    let parts = (&run.cluster, Arc::clone(&run.throughputs));
    Ok(match (options::make_policy(&run.catalog, &run.policy, &run.spec, interrupt)?, checkpoint) {
        (Ready::Allocating(policy), None) => Simulation::new(parts, arrivals, policy, run.options.clone())?,
        (Ready::Allocating(policy), Some(taken)) => Simulation::resume(parts, arrivals, policy, taken)?,
        (Ready::InRounds(policy), None) => {
            Simulation::with_round_policy(parts, arrivals, policy, run.options.clone())?
        }
        (Ready::InRounds(policy), Some(taken)) => {
            Simulation::resume_with_round_policy(parts, arrivals, policy, taken)?
        }
    }
    .with_entities(run.entities()))
}

/// Executor of the points of a sweep.
#[derive(Debug, Default)]
pub struct Executor {
    /// Limits of each run.
    pub bounds: Bounds,
    /// Whether to leave out runs that are provably saturated.
    pub stop_saturated: bool,
    /// Capacities, or reasons why they are not known, by capacity key; none for runs without a rate.
    capacities: Mutex<BTreeMap<String, Result<Option<Capacity>, String>>>,
}

impl Executor {
    /// An executor without any computed capacities.
    pub fn new(bounds: Bounds, stop_saturated: bool) -> Self {
        Self { bounds, stop_saturated, capacities: Mutex::default() }
    }

    /// The outcome of a run, or `None` if interrupted; `report` is called now and then with its progress. If the capacity
    /// could not be computed, the outcome's reason says so, because a saturated run may then look like any other.
    pub fn execute(&self, run: &Run, report: &mut dyn FnMut(&Standing)) -> Option<Outcome> {
        let rate = run.spec.workload.rate.filter(|_| self.stop_saturated);
        let (capacity, unknown) = match rate.map(|_| self.capacity(run)) {
            None => (None, None),
            Some(Ok(capacity)) => (capacity, None),
            Some(Err(message)) => (None, Some(format!("not known to be below saturation: {message}"))),
        };
        if let (Some(rate), Some(capacity)) = (rate, capacity)
            && capacity.is_exceeded_by(rate)
        {
            let bound = capacity.bound.get();
            let reason = format!("no policy of its kind sustains more than {} jobs/h", Decimals(bound, 4));
            let outcome = Outcome::without_metrics(Status::Saturated, reason);
            return Some(Outcome { capacity: Some(bound), ..outcome });
        }
        let outcome = execute(run, &self.bounds, report)?;
        let capacity = capacity.map(|capacity| capacity.bound.get());
        Some(Outcome { capacity, reason: outcome.reason.or(unknown), ..outcome })
    }

    fn capacity(&self, run: &Run) -> Result<Option<Capacity>, String> {
        let key = run.capacity_key();
        let known = |all: &BTreeMap<String, Result<Option<Capacity>, String>>| all.get(&key).cloned();
        if let Some(known) = known(&self.capacities.lock().unwrap_or_else(PoisonError::into_inner)) {
            return known;
        }
        let computed = run.capacity().map_err(|error| error.to_string());
        self.capacities.lock().unwrap_or_else(PoisonError::into_inner).insert(key, computed.clone());
        computed
    }
}

/// The outcome of a run, or `None` if interrupted. An error gives an outcome, too, except in an interrupted run, where the
/// interrupt may have caused it.
pub fn execute(run: &Run, bounds: &Bounds, report: &mut dyn FnMut(&Standing)) -> Option<Outcome> {
    match try_execute(run, bounds, report) {
        Ok(outcome) => outcome,
        Err(_) if bounds.interrupt.load(Ordering::Relaxed) => None,
        Err(error) => Some(Outcome::without_metrics(Status::Failed, error.to_string())),
    }
}

fn try_execute(
    run: &Run,
    bounds: &Bounds,
    report: &mut dyn FnMut(&Standing),
) -> Result<Option<Outcome>, RunError> {
    let stopwatch = Stopwatch::start();
    let mut simulation = begin(run, None, bounds.of_decisions(stopwatch))?;
    let allocations = Allocations::new(bounds.keep_allocations, run.origin);
    let mut observer = (Recorder::new(simulation.cluster()), allocations);
    let interrupt = Some(Arc::clone(&bounds.interrupt));
    let mut limits = Limits { patience: run.patience(bounds.patience), interrupt, ..Limits::default() };
    loop {
        let left = bounds.wall.map(|wall| wall.saturating_sub(stopwatch.elapsed()));
        limits.wall = Some((Stopwatch::start(), left.unwrap_or(REPORT_EVERY).min(REPORT_EVERY)));
        let ending = match simulation.run(&mut observer, &limits) {
            Err(error) if is_broken_off(&error) => {
                let interrupted = bounds.interrupt.load(Ordering::Relaxed);
                return Ok((!interrupted).then(|| broken_off(&error, bounds.limit_over(stopwatch))));
            }
            ended => ended?,
        };
        match ending {
            Ending::Finished => break,
            Ending::Interrupted => return Ok(None),
            Ending::Stalled | Ending::Standstill => return Ok(Some(in_vain(&simulation))),
            Ending::WallLimit if bounds.wall.is_some_and(|wall| stopwatch.elapsed() >= wall) => {
                let limit = bounds.limit_over(stopwatch);
                return Ok(Some(timed_out(&simulation, &observer.0, limit.as_deref())));
            }
            Ending::WallLimit | Ending::RoundLimit | Ending::TimeLimit | Ending::ActiveLimit => {
                report(&Standing::of(run, &simulation, &observer.0));
            }
        }
    }
    let (recorder, allocations) = observer;
    let summary = recorder.summary().counted_from(run.origin);
    let jobs = if bounds.keep_jobs { job_rows(&summary) } else { Vec::new() };
    let metrics = std::array::from_fn(|position| (METRICS[position].of)(&summary));
    let by_type = summary.utilization.iter().filter(|(name, _)| *name != "all");
    let utilization = by_type.map(|(name, value)| (name.clone(), *value)).collect();
    let allocations = allocations.until(simulation.now());
    let (status, reason, capacity) = (Status::Done, None, None);
    Ok(Some(Outcome { status, reason, capacity, metrics, utilization, jobs, allocations }))
}

/// Whether the error is that a decision was broken off, because it took too long or the run is to stop.
pub fn is_broken_off(error: &SimulationError) -> bool {
    let SimulationError::Decision { error, .. } = error else { return false };
    match &**error {
        DecisionError::Policy(PolicyError::Solve(error)) => {
            matches!(error, SolveError::NotOptimal { termination: Termination::Interrupted, .. })
        }
        DecisionError::Policy(PolicyError::BrokenOff { .. }) => true,
        _ => false,
    }
}

/// Outcome, without metrics, of a run that a limit ended in a decision.
fn broken_off(error: &SimulationError, limit: Option<String>) -> Outcome {
    let reason = match (limit, error) {
        (Some(limit), SimulationError::Decision { place, .. }) => format!("{limit}, in a decision {place}"),
        (Some(limit), _) => format!("{limit}: {error}"),
        (None, _) => error.to_string(),
    };
    Outcome::without_metrics(Status::Timeout, reason)
}

/// Outcome, without metrics, of a run that took too long: its measurements so far depend on the machine.
fn timed_out(simulation: &Simulation, recorder: &Recorder, limit: Option<&str>) -> Outcome {
    let n_done = recorder.summary().jobs.len();
    let (n_active, hours) = (simulation.n_active(), simulation.now().hours());
    let limit = limit.unwrap_or("the wall time of the run is over");
    let reason = format!(
        "{limit}: {n_done} measured jobs done and {n_active} active after {} simulated hours",
        Decimals(hours, 0)
    );
    Outcome::without_metrics(Status::Timeout, reason)
}

/// Outcome of a run without progress.
fn in_vain(simulation: &Simulation) -> Outcome {
    let (status, reason) = match simulation.standstill() {
        Some(found) => (status_of(found), found.to_string()),
        None => (Status::Failed, "it ended without a reason".to_owned()),
    };
    Outcome::without_metrics(status, reason)
}

/// Status of a run without progress; `failed` if the clock cannot follow it.
fn status_of(found: &Standstill) -> Status {
    match found {
        Standstill::Livelock { .. } | Standstill::Endless { .. } => Status::Livelock,
        Standstill::Starved { .. } | Standstill::Overtaken { .. } | Standstill::Crawling { .. } => {
            Status::Starved
        }
        Standstill::Growing { .. } => Status::Growing,
        Standstill::Unresolved { .. } => Status::Failed,
    }
}

fn job_rows(summary: &Summary) -> Vec<JobRow> {
    let row = |job: &JobRecord| JobRow {
        id: job.order().unsigned_abs(),
        job_type: job.job_type.clone(),
        scale_factor: job.scale_factor,
        weight: job.weight,
        arrival: job.arrival.get(),
        completion: job.completion.map(Seconds::get),
        jct: job.jct.map(Seconds::get),
        rho: job.rho,
        service: Some(job.service.clone()),
    };
    summary.jobs.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::Inputs;
    use apportion::Catalog;
    use apportion::spec::run::RunSpec;

    #[test]
    fn an_unknown_capacity_is_the_reason_of_the_outcome() {
        let mut spec = RunSpec { policy: "fifo".to_owned(), ..RunSpec::default() };
        spec.cluster = "v100=2".parse().unwrap();
        (spec.workload.rate, spec.workload.jobs) = (Some(apportion::JobsPerHour::new(0.05)), Some(2));
        let run = Inputs::new(Catalog::embedded()).load(&spec).unwrap();
        let executor = Executor::new(Bounds::default(), true);
        let known = executor.execute(&run, &mut |_| {}).unwrap();
        assert_eq!((known.status, known.reason.as_deref()), (Status::Done, None));
        assert!(known.capacity.is_some());
        let key = run.capacity_key();
        executor.capacities.lock().unwrap().insert(key, Err("the solver gave up".to_owned()));
        let unknown = executor.execute(&run, &mut |_| {}).unwrap();
        let reason = "not known to be below saturation: the solver gave up";
        assert_eq!((unknown.status, unknown.reason.as_deref()), (Status::Done, Some(reason)));
        assert_eq!((unknown.capacity, unknown.metrics), (None, known.metrics));
    }

    #[test]
    fn policies_under_which_jobs_share_workers_are_known() {
        let pairing = ["gandiva", "fifo_packed", "max_min_fairness_packed"];
        let apart = ["allox", "fifo", "srtf", "isolated", "max_min_fairness_perf"];
        for (policies, pairs) in [(&pairing[..], true), (&apart[..], false)] {
            for policy in policies {
                assert_eq!(Catalog::embedded().document(policy).unwrap().pairs(), pairs, "{policy}");
            }
        }
        // `allox` runs the shortest job first, so the longest measured job would wait for ever.
        let mut spec = RunSpec { policy: "allox".to_owned(), ..RunSpec::default() };
        spec.cluster = "v100=1,p100=1,k80=1".parse().unwrap();
        (spec.workload.rate, spec.workload.jobs) = (Some(apportion::JobsPerHour::new(0.17)), Some(2));
        let run = Inputs::new(Catalog::embedded()).load(&spec).unwrap();
        let outcome = Executor::new(Bounds::default(), true).execute(&run, &mut |_| {}).unwrap();
        assert_eq!(outcome.status, Status::Saturated);
    }
}
