//! One run, from its start to its outcome.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::index::Id;
use crate::metrics::{JobRecord, Recorder, Summary};
use crate::simulator::{Checkpoint, Limits, Outcome as Ending, Simulation};
use crate::solver::timing::Stopwatch;
use crate::sweep::inputs::{Run, RunError};
use crate::sweep::options;
use crate::sweep::outcome::{JobRow, METRICS, Outcome, Status};
use crate::sweep::saturation::Capacity;
use crate::units::{Dollars, Seconds};

/// Rounds between two looks at the clock.
const ROUNDS_AT_ONCE: u64 = 1024;

/// How far a run may go.
#[derive(Clone, Debug, Default)]
pub struct Bounds {
    /// Becomes true when somebody wants an end.
    pub interrupt: Arc<AtomicBool>,
    /// Wall time.
    pub wall: Option<Duration>,
    /// Keep the measured jobs.
    pub keep_jobs: bool,
}

/// A simulation of this run at its start, or where a checkpoint of it was taken.
///
/// # Errors
/// If policy and workload do not fit, or the checkpoint is of another run.
pub fn begin(run: &Run, checkpoint: Option<&Checkpoint>) -> Result<Simulation, RunError> {
    let parts = (&run.cluster, Arc::clone(&run.throughputs));
    let policy = options::make_policy(&run.spec)?;
    Ok(match checkpoint {
        None => Simulation::new(parts, run.arrivals()?, policy, run.options.clone())?,
        Some(checkpoint) => Simulation::resume(parts, run.arrivals()?, policy, checkpoint)?,
    }
    .with_entities(run.entities()))
}

/// Runs the points of a sweep.
#[derive(Debug, Default)]
pub struct Executor {
    /// How far each run may go.
    pub bounds: Bounds,
    /// Leave out runs that are provably saturated.
    pub stop_saturated: bool,
    /// Capacities that have been computed; none where it failed.
    capacities: Mutex<BTreeMap<String, Option<Capacity>>>,
}

impl Executor {
    /// With no capacities computed yet.
    pub fn new(bounds: Bounds, stop_saturated: bool) -> Self {
        Self { bounds, stop_saturated, capacities: Mutex::default() }
    }

    /// Runs one: an outcome, or `None` if interrupted.
    pub fn execute(&self, run: &Run) -> Option<Outcome> {
        let rate = run.spec.workload.rate.filter(|_| self.stop_saturated);
        let capacity = rate.and_then(|_| self.capacity(run));
        if let (Some(rate), Some(capacity)) = (rate, capacity)
            && capacity.is_exceeded_by(rate)
        {
            let bound = capacity.bound.get();
            let reason = format!("no policy of its kind sustains more than {bound:.4} jobs/h");
            let outcome = Outcome::without_metrics(Status::Saturated, reason);
            return Some(Outcome { capacity: Some(bound), ..outcome });
        }
        let outcome = execute(run, &self.bounds)?;
        Some(Outcome { capacity: capacity.map(|capacity| capacity.bound.get()), ..outcome })
    }

    fn capacity(&self, run: &Run) -> Option<Capacity> {
        let pairs = options::may_pair(&run.spec);
        let key = run.capacity_key(pairs);
        let known = |all: &BTreeMap<String, Option<Capacity>>| all.get(&key).copied();
        if let Some(known) = known(&self.capacities.lock().unwrap_or_else(PoisonError::into_inner)) {
            return known;
        }
        let computed = run.capacity(pairs).ok().flatten();
        self.capacities.lock().unwrap_or_else(PoisonError::into_inner).insert(key, computed);
        computed
    }
}

/// Runs to the end: an outcome, or `None` if interrupted. What goes wrong is an outcome, too.
pub fn execute(run: &Run, bounds: &Bounds) -> Option<Outcome> {
    match try_execute(run, bounds) {
        Ok(outcome) => outcome,
        Err(error) => Some(Outcome::without_metrics(Status::Failed, error.to_string())),
    }
}

fn try_execute(run: &Run, bounds: &Bounds) -> Result<Option<Outcome>, RunError> {
    let stopwatch = Stopwatch::start();
    let mut simulation = begin(run, None)?;
    let mut recorder = Recorder::new(simulation.cluster());
    let interrupt = Some(Arc::clone(&bounds.interrupt));
    let limits = Limits { rounds: Some(ROUNDS_AT_ONCE), interrupt, ..Limits::default() };
    loop {
        match simulation.run(&mut recorder, &limits)? {
            Ending::Finished => break,
            Ending::Interrupted => return Ok(None),
            Ending::Stalled => {
                let n_active = simulation.n_active();
                let reason = format!("{n_active} jobs wait for workers that none of them can ever have");
                return Ok(Some(Outcome::without_metrics(Status::Failed, reason)));
            }
            Ending::RoundLimit | Ending::TimeLimit | Ending::ActiveLimit => {
                if bounds.wall.is_some_and(|wall| stopwatch.elapsed() > wall) {
                    return Ok(Some(timed_out(&simulation, &recorder)));
                }
            }
        }
    }
    let summary = recorder.summary();
    let jobs = if bounds.keep_jobs { job_rows(&summary) } else { Vec::new() };
    let metrics = metrics(&summary);
    let by_type = summary.utilization.iter().filter(|(name, _)| *name != "all");
    let utilization = by_type.map(|(name, value)| (name.clone(), *value)).collect();
    Ok(Some(Outcome { status: Status::Done, reason: None, capacity: None, metrics, utilization, jobs }))
}

/// No metrics: what had been measured when time ran out depends on the machine.
fn timed_out(simulation: &Simulation, recorder: &Recorder) -> Outcome {
    let n_done = recorder.summary().jobs.len();
    let (n_active, hours) = (simulation.n_active(), simulation.now().hours());
    let reason =
        format!("{n_done} measured jobs done and {n_active} active after {hours:.0} simulated hours");
    Outcome::without_metrics(Status::Timeout, reason)
}

/// [`METRICS`] of a summary.
pub fn metrics(summary: &Summary) -> [Option<f64>; METRICS.len()] {
    named(summary).map(|(_, value)| value)
}

fn named(summary: &Summary) -> [(&'static str, Option<f64>); METRICS.len()] {
    let (jct, rho) = (summary.jct.as_ref(), summary.rho.as_ref());
    [
        ("n_jobs", Some(jct.map_or(0.0, |jct| jct.count as f64))),
        ("average_jct", summary.average_jct),
        ("median_jct", jct.map(|jct| jct.median)),
        ("p95_jct", jct.map(|jct| jct.p95)),
        ("p99_jct", jct.map(|jct| jct.p99)),
        ("average_rho", rho.map(|rho| rho.distribution.average)),
        ("worst_rho", rho.map(|rho| rho.distribution.max)),
        ("makespan", summary.makespan.map(Seconds::get)),
        ("utilization", summary.utilization.get("all").copied()),
        ("rounds", Some(summary.rounds as f64)),
        ("solves", Some(summary.solves as f64)),
        ("preemptions", Some(summary.preemptions as f64)),
        ("cost", summary.cost.map(Dollars::get)),
        ("slo_violations", summary.slo_violations.map(|n| n as f64)),
    ]
}

fn job_rows(summary: &Summary) -> Vec<JobRow> {
    let row = |job: &JobRecord| JobRow {
        id: job.id.index() as u64,
        job_type: job.job_type.clone(),
        scale_factor: job.scale_factor,
        weight: job.weight,
        arrival: job.arrival.get(),
        completion: job.completion.map(Seconds::get),
        jct: job.jct.map(Seconds::get),
        rho: job.rho,
    };
    summary.jobs.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cluster;

    #[test]
    fn metrics_stand_in_the_order_of_their_columns() {
        let cluster: Cluster = "a=1".parse().unwrap();
        let names = named(&Recorder::new(&cluster).summary()).map(|(name, _)| name);
        assert_eq!(names, METRICS);
    }
}
