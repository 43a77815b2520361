//! Least attained service with discretized queues, as in Tiresias: young jobs first, without knowing jobs'
//! durations.
//!
//! | symbol     | meaning                                                                | unit           |
//! |------------|------------------------------------------------------------------------|----------------|
//! | a_m        | attained service: workers × time they ran, since the last promotion    | worker-seconds |
//! | θ_1 < θ_2… | thresholds; job m stands in queue q, the number of θ_i ≤ a_m           | worker-seconds |
//!
//! Queues are served in order, the one of least service first. Within a queue: jobs in the order in which they
//! first got workers, then jobs that never ran, in order of arrival. Each takes s_m whole workers of the type
//! with room that runs it fastest; jobs further back lose theirs. Thresholds instead of a comparison of a_m keep
//! jobs of like service from preempting each other by turns.
//!
//! A job that has waited `promote_after` times as long as it ran goes back to the first queue, its service
//! forgotten, so that no job starves.
//!
//! Attained service is taken from the per-job column `attained_service` (worker-seconds) where the caller
//! supplies it; otherwise it is kept here, from the steps done between calls and the throughput of the type the
//! job was given. The policy asks to be asked again when the next job is to be demoted or promoted.
//!
//! Source: Gu et al., NSDI '19 (discretized two-dimensional LAS). Differs: a job takes one worker type, whichever
//! is fastest for it; Tiresias' workers are alike.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::index::{Id, JobId, JobIndex, WorkerTypeId};
use crate::policy::decision::{Decision, Policy, PolicyError};
use crate::policy::heuristic::workers::{Handout, by_arrival, restored};
use crate::policy::heuristic::{Parameters, expect};
use crate::problem::Problem;
use crate::spec::snapshot::NUMBER_MAX;
use crate::units::Steps;

const NAME: &str = "las";

/// The per-job column in which a caller may supply attained service, in worker-seconds.
pub const ATTAINED_SERVICE: &str = "attained_service";

/// Parameters of the rule `las`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct LasParameters {
    /// Attained service at which a job passes to the next queue, in worker-seconds, above 0 and ascending. By default one
    /// threshold, an hour of one worker: the two queues of the first example in the authors' simulator.
    pub thresholds: Vec<f64>,
    /// A job that waited this many times as long as it ran, above 0, is promoted to the first queue. The default is our
    /// choice; with null, jobs are never promoted.
    pub promote_after: Option<f64>,
    /// Whether a job further back may take workers that a job before it cannot use.
    pub backfill: bool,
}

impl Parameters for LasParameters {
    fn check(&self) -> Result<(), (&'static str, String)> {
        let is_time = |value: f64| value > 0.0 && value <= NUMBER_MAX;
        let thresholds = &self.thresholds;
        let is_fine = thresholds.iter().all(|value| is_time(*value)) && thresholds.is_sorted_by(|a, b| a < b);
        let expected = "numbers of worker-seconds above 0, each larger than the one before";
        expect(is_fine, "thresholds", thresholds, expected)?;
        let promote_after = self.promote_after.unwrap_or(1.0);
        expect(is_time(promote_after), "promote_after", promote_after, "a number above 0, or null")
    }
}

impl Default for LasParameters {
    fn default() -> Self {
        Self { thresholds: vec![3600.0], promote_after: Some(8.0), backfill: true }
    }
}

/// Progress up to this part of a job's steps left is a rounding error, if these were restated.
const ROUNDING: f64 = 1e-12;

/// Least attained service. Its state: what each job was given, has run and has waited.
#[derive(Clone, Debug)]
pub struct Las {
    parameters: LasParameters,
    state: State,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    /// Number of calls so far.
    calls: u64,
    /// Histories of the active jobs, in order of arrival.
    jobs: Vec<History>,
}

/// The history of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct History {
    job: JobId,
    /// Steps left at the last call.
    steps_remaining: f64,
    /// Whether they have been restated since, so that they may be off by a rounding error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_restated: bool,
    elapsed_s: f64,
    worker_type: Option<WorkerTypeId>,
    /// Attained service in all and at the last promotion, worker-seconds.
    attained: f64,
    forgotten: f64,
    /// Time run since the last promotion and time waited since the last run, s.
    ran_s: f64,
    waited_s: f64,
    /// Number of the call at which it first got workers.
    started: Option<u64>,
}

impl Las {
    /// The rule with these parameters; no job has run yet.
    pub fn new(parameters: LasParameters) -> Self {
        Self { parameters, state: State::default() }
    }

    fn queue(&self, history: &History) -> usize {
        let attained = history.attained - history.forgotten;
        self.parameters.thresholds.iter().filter(|threshold| **threshold <= attained).count()
    }

    /// Seconds after which a job changes its queue, if everything stays as it was decided: demoted for what it
    /// runs, or promoted for having waited.
    fn moves_after(&self, history: &History, problem: &Problem, job: JobIndex) -> Option<f64> {
        let after = if history.worker_type.is_some() {
            let attained = history.attained - history.forgotten;
            let ahead = self.parameters.thresholds.iter().filter(|threshold| **threshold > attained);
            let threshold = ahead.copied().min_by(f64::total_cmp)?;
            (threshold - attained) / f64::from(problem.jobs()[job].scale_factor)
        } else {
            let knob =
                self.parameters.promote_after.filter(|_| history.ran_s > 0.0 && self.queue(history) > 0)?;
            knob * history.ran_s - history.waited_s
        };
        (after > 0.0 && after.is_finite()).then_some(after)
    }

    /// The history of a job brought up to date; the job is promoted if it has waited too long.
    fn brought_up(&self, problem: &Problem, job: JobIndex, known: Option<&History>) -> History {
        let active = &problem.jobs()[job];
        let (steps_remaining, elapsed_s) = (active.steps_remaining.get(), active.elapsed.get());
        let mut now = known.cloned().unwrap_or(History {
            job: active.id,
            steps_remaining,
            is_restated: false,
            elapsed_s,
            worker_type: None,
            attained: 0.0,
            forgotten: 0.0,
            ran_s: 0.0,
            waited_s: elapsed_s,
            started: None,
        });
        let passed = (elapsed_s - now.elapsed_s).max(0.0);
        let ran = time_run(problem, job, &now).min(passed);
        now.ran_s += ran;
        now.waited_s = if ran > 0.0 { 0.0 } else { now.waited_s + passed };
        now.attained = match problem.extra().get(ATTAINED_SERVICE) {
            Some(column) => column[job.index()],
            None => now.attained + ran * f64::from(active.scale_factor),
        };
        (now.steps_remaining, now.elapsed_s, now.is_restated) = (steps_remaining, elapsed_s, false);
        let starved = |knob: f64| now.ran_s > 0.0 && now.waited_s >= knob * now.ran_s;
        if self.queue(&now) > 0 && self.parameters.promote_after.is_some_and(starved) {
            (now.forgotten, now.ran_s, now.waited_s) = (now.attained, 0.0, 0.0);
        }
        now
    }
}

/// Seconds a job ran since the last call, judging by the steps it did.
fn time_run(problem: &Problem, job: JobIndex, last: &History) -> f64 {
    let done = last.steps_remaining - problem.jobs()[job].steps_remaining.get();
    let throughput = problem.throughput().row(job);
    let given = last.worker_type.and_then(|worker_type| throughput.get(worker_type.index()).copied());
    let fastest = throughput.iter().copied().fold(0.0, f64::max);
    let throughput = given.filter(|throughput| *throughput > 0.0).unwrap_or(fastest);
    let rounding = if last.is_restated { ROUNDING * last.steps_remaining } else { 0.0 };
    if done > rounding { done / throughput } else { 0.0 }
}

impl Policy for Las {
    fn name(&self) -> &str {
        NAME
    }

    fn allocate(&mut self, problem: &Problem) -> Result<Decision, PolicyError> {
        let known: BTreeMap<JobId, &History> = self.state.jobs.iter().map(|last| (last.job, last)).collect();
        let mut jobs: Vec<(JobIndex, History)> = by_arrival(problem)
            .into_iter()
            .map(|job| (job, self.brought_up(problem, job, known.get(&problem.jobs()[job].id).copied())))
            .collect();
        let mut order: Vec<usize> = (0..jobs.len()).collect();
        order.sort_by_key(|position| {
            let history = &jobs[*position].1;
            (self.queue(history), history.started.unwrap_or(u64::MAX))
        });
        let mut handout = Handout::new(problem);
        handout.offer(order.into_iter().map(|position| jobs[position].0), self.parameters.backfill);

        for (job, history) in &mut jobs {
            history.worker_type = handout.placed().get(job).copied();
            if history.worker_type.is_some() {
                history.started.get_or_insert(self.state.calls);
            }
        }
        let moves = jobs.iter().filter_map(|(job, history)| self.moves_after(history, problem, *job));
        let next = moves.min_by(f64::total_cmp);
        let jobs = jobs.into_iter().map(|(_, history)| history).collect();
        self.state = State { calls: self.state.calls + 1, jobs };
        handout.decide_until(NAME, next)
    }

    fn state(&self) -> serde_json::Value {
        serde_json::json!(self.state)
    }

    fn restore(&mut self, state: &serde_json::Value) -> Result<(), PolicyError> {
        self.state = restored(NAME, state)?;
        Ok(())
    }

    fn restate_steps(&mut self, job: JobId, more: Steps) {
        if let Some(history) = self.state.jobs.iter_mut().find(|history| history.job == job) {
            history.steps_remaining += more.get();
            history.is_restated = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Snapshot, given};
    use super::*;

    fn las(promote_after: Option<f64>) -> Las {
        Las::new(LasParameters { thresholds: vec![100.0, 1000.0], promote_after, backfill: true })
    }

    #[test]
    fn service_counts_workers_and_demotes() {
        // One worker pair; job 0 runs 60 s on two workers: 120 worker-seconds, past the first threshold, so the
        // newcomer goes first although it came later.
        let mut policy = las(None);
        let mut snapshot = Snapshot::new("only=2");
        snapshot.job(0, 2, 1000.0, &[1.0]);
        assert_eq!(given(&mut policy, &snapshot), ["0: only"]);
        snapshot.pass(40.0, &[(0, 40.0)]);
        snapshot.job(1, 2, 1000.0, &[1.0]);
        assert_eq!(given(&mut policy, &snapshot), ["0: only"], "80 worker-seconds");
        snapshot.pass(20.0, &[(0, 20.0)]);
        assert_eq!(given(&mut policy, &snapshot), ["1: only"], "120 worker-seconds");
        // The newcomer passes the threshold too: the same queue, and job 0 got workers first.
        snapshot.pass(60.0, &[(1, 60.0)]);
        assert_eq!(given(&mut policy, &snapshot), ["0: only"]);
    }

    #[test]
    fn a_starved_job_is_promoted_and_a_saved_state_goes_on() {
        let run = |promote_after, save: bool| {
            let mut policy = las(promote_after);
            let mut snapshot = Snapshot::new("only=1");
            snapshot.job(0, 1, 9000.0, &[2.0]);
            given(&mut policy, &snapshot);
            // Ran 150 s: second queue. A newcomer takes over and runs in short pieces below its threshold.
            snapshot.pass(150.0, &[(0, 300.0)]);
            let mut seen = Vec::new();
            for newcomer in 1..5 {
                snapshot.job(newcomer, 1, 90.0, &[1.0]);
                seen.extend(given(&mut policy, &snapshot));
                if save {
                    let state = policy.state();
                    policy = las(promote_after);
                    policy.restore(&state).unwrap();
                }
                snapshot.pass(90.0, &[(newcomer, 90.0)]);
                snapshot.leave(newcomer);
            }
            seen
        };
        assert_eq!(run(None, false), ["1: only", "2: only", "3: only", "4: only"]);
        // After 180 s of waiting ≥ 1 × 150 s it stands in the first queue, having started before the newcomer.
        assert_eq!(run(Some(1.0), false), ["1: only", "2: only", "0: only", "0: only"]);
        assert_eq!(run(Some(1.0), true), run(Some(1.0), false));
        assert!(las(None).restore(&serde_json::json!({"calls": 3})).is_err());
    }

    #[test]
    fn a_supplied_column_is_believed() {
        let mut snapshot = Snapshot::new("only=1");
        snapshot.job(0, 1, 50.0, &[1.0]);
        snapshot.job(1, 1, 50.0, &[1.0]);
        snapshot.extra(ATTAINED_SERVICE, vec![2000.0, 500.0]);
        assert_eq!(given(&mut las(None), &snapshot), ["1: only"]);
    }
}
