//! AlloX: jobs matched to workers and to turns on them, so that the sum of completion times is least.
//!
//! | symbol    | meaning                                                                    | unit    |
//! |-----------|----------------------------------------------------------------------------|---------|
//! | e_m       | time since arrival                                                         | s       |
//! | r_m/T[m,j]| time job m would take on type j                                            | s       |
//! | k         | position from the end of a worker's queue: the job there delays k jobs,    |         |
//! |           | itself included                                                            |         |
//!
//!   cost(m, worker of type j, k) = e_m + k · r_m / T[m,j]
//!
//! A minimum-cost assignment of waiting jobs to (worker, k) gives each free worker its queue; the first of each
//! queue starts and the rest wait for the next call. A job that has started keeps its worker type to its end.
//! Jobs need one worker each; others are refused.
//!
//! Source: Le et al., EuroSys '20; Gavel's implementation of it.
//!
//! Where the two behaviours differ:
//! - a type on which a job cannot run: `published` takes it for 1e-10 steps/s, so a job may be put there and
//!   stay for ever; `corrected` forbids it, and a job that runs on no free worker's type waits;
//! - ties: workers of a type are alike, so which of the jobs of one turn stands behind a job of the turn before
//!   is arbitrary, and with it who starts. `published` takes what the assignment returns over workers in the
//!   alphabetical order of their types, which is what Gavel's library returns; `corrected` starts, of the jobs
//!   of the last turn but one, those that arrived first;
//! - e_m: the same in every column, it cannot change the optimum; `published` adds it because rounding may.
//!
//! Differs from Gavel in both: the cost matrix is never built (its repeated concatenation takes 2.4 GB for 512
//! jobs), and a turn on a worker is only looked at once the turn after it is taken.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::index::{JobId, JobIndex, WorkerTypeId};
use crate::policy::decision::{Decision, Policy, PolicyError, RoundRules};
use crate::policy::heuristic::assignment::assign_chained;
use crate::policy::heuristic::behaviour::Behaviour;
use crate::policy::heuristic::workers::{
    Handout, alphabetical, by_arrival, check_steps, decide_whole, restored,
};
use crate::problem::Problem;
use crate::workload::Combination;

const NAME: &str = "allox";

/// What Gavel takes for the throughput of a job where it cannot run, in steps/s.
const PUBLISHED_STANDSTILL: f64 = 1e-10;

/// Parameters of [`AlloX`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AlloXParameters {
    /// The fraction of the waiting jobs, earliest first, that is matched: at least as many as there are free
    /// workers. 1 by default, as in Gavel.
    pub alpha: f64,
    /// As published or as meant.
    pub behaviour: Behaviour,
}

impl Default for AlloXParameters {
    fn default() -> Self {
        Self { alpha: 1.0, behaviour: Behaviour::Corrected }
    }
}

/// AlloX. Its state: the worker type of each job that has started.
#[derive(Clone, Debug)]
pub struct AlloX {
    parameters: AlloXParameters,
    running: BTreeMap<JobId, WorkerTypeId>,
}

/// A job's turn on a free worker.
struct Turn {
    job: JobIndex,
    worker: usize,
    /// Position from the end of the worker's queue, from 0.
    from_end: usize,
}

impl AlloX {
    /// The rule with these parameters; nothing runs yet.
    pub fn new(parameters: AlloXParameters) -> Self {
        Self { parameters, running: BTreeMap::new() }
    }

    /// The waiting jobs to be matched, earliest first.
    fn considered(
        &self,
        problem: &Problem,
        handout: &Handout<'_>,
        workers: &[WorkerTypeId],
    ) -> Vec<JobIndex> {
        let mut waiting = by_arrival(problem);
        waiting.retain(|job| !handout.placed().contains_key(job));
        waiting.sort_by(|one, other| problem.jobs()[*other].elapsed.total_cmp(&problem.jobs()[*one].elapsed));
        if self.parameters.behaviour == Behaviour::Corrected {
            waiting.retain(|job| workers.iter().any(|w| problem.throughput()[(*job, *w)] > 0.0));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "rounded down, never below 0"
        )]
        let prefix = (self.parameters.alpha * waiting.len() as f64) as usize;
        waiting.truncate(prefix.max(workers.len()));
        waiting
    }

    /// The least costly turns of these jobs on these workers.
    fn matched(
        &self,
        problem: &Problem,
        jobs: &[JobIndex],
        workers: &[WorkerTypeId],
    ) -> Result<Vec<Turn>, PolicyError> {
        if workers.is_empty() {
            return Ok(Vec::new());
        }
        let published = self.parameters.behaviour == Behaviour::Published;
        let cost = |row: usize, column: usize| {
            let active = &problem.jobs()[jobs[row]];
            let (worker, from_end) = (column % workers.len(), column / workers.len());
            let throughput = problem.throughput()[(jobs[row], workers[worker])];
            let position = (from_end + 1) as f64;
            match (throughput > 0.0, published) {
                (true, false) => position * (active.steps_remaining.get() / throughput),
                (false, false) => f64::INFINITY,
                (true, true) => position * (active.steps_remaining.get() / throughput) + active.elapsed.get(),
                (false, true) => {
                    position * (active.steps_remaining.get() / PUBLISHED_STANDSTILL) + active.elapsed.get()
                }
            }
        };
        let columns =
            assign_chained(jobs.len(), jobs.len() * workers.len(), workers.len(), cost).map_err(|error| {
                PolicyError::Infeasible { policy: NAME.to_owned(), reason: error.to_string() }
            })?;
        let turn = |(job, column): (&JobIndex, usize)| Turn {
            job: *job,
            worker: column % workers.len(),
            from_end: column / workers.len(),
        };
        Ok(jobs.iter().zip(columns).map(turn).collect())
    }
}

/// The first of each worker's queue.
fn starting_published(mut turns: Vec<Turn>, workers: &[WorkerTypeId]) -> Vec<(JobIndex, WorkerTypeId)> {
    // A stable sort: of equals the earlier arrival.
    turns.sort_by_key(|turn| (turn.worker, std::cmp::Reverse(turn.from_end)));
    turns.dedup_by_key(|turn| turn.worker);
    turns.into_iter().map(|turn| (turn.job, workers[turn.worker])).collect()
}

/// On each type as many jobs as it has free workers, those of the earliest turns, of equals the earlier arrivals.
fn starting_corrected(turns: Vec<Turn>, workers: &[WorkerTypeId]) -> Vec<(JobIndex, WorkerTypeId)> {
    let mut by_type: BTreeMap<WorkerTypeId, Vec<Turn>> = BTreeMap::new();
    for turn in turns {
        by_type.entry(workers[turn.worker]).or_default().push(turn);
    }
    let mut starting = Vec::new();
    for (worker_type, mut turns) in by_type {
        turns.sort_by_key(|turn| std::cmp::Reverse(turn.from_end));
        turns.truncate(workers.iter().filter(|other| **other == worker_type).count());
        starting.extend(turns.into_iter().map(|turn| (turn.job, worker_type)));
    }
    starting
}

impl Policy for AlloX {
    fn name(&self) -> &str {
        NAME
    }

    fn allocate(&mut self, problem: &Problem) -> Result<Decision, PolicyError> {
        check_steps(NAME, problem)?;
        if let Some(job) = problem.jobs().iter().position(|active| active.scale_factor != 1) {
            let (policy, field) = (NAME.to_owned(), "scale_factor".to_owned());
            return Err(PolicyError::Missing { policy, field, job, expected: "1".to_owned() });
        }
        let mut handout = Handout::new(problem);
        handout.keep(|job| self.running.get(&job).copied());
        let workers: Vec<WorkerTypeId> = alphabetical(problem)
            .into_iter()
            .flat_map(|worker_type| (0..handout.free()[worker_type]).map(move |_| worker_type))
            .collect();
        let jobs = self.considered(problem, &handout, &workers);
        let turns = self.matched(problem, &jobs, &workers)?;
        let starting = match self.parameters.behaviour {
            Behaviour::Published => starting_published(turns, &workers),
            Behaviour::Corrected => starting_corrected(turns, &workers),
        };
        for (job, worker_type) in starting {
            handout.place(job, worker_type);
        }
        self.running = handout.held();
        let placed =
            handout.placed().iter().map(|(job, worker_type)| (Combination::single(*job), *worker_type));
        decide_whole(NAME, problem, placed, RoundRules::default())
    }

    fn state(&self) -> serde_json::Value {
        serde_json::json!({ "running": self.running.iter().collect::<Vec<_>>() })
    }

    fn restore(&mut self, state: &serde_json::Value) -> Result<(), PolicyError> {
        let running: Vec<(JobId, WorkerTypeId)> = restored(NAME, &state["running"])?;
        self.running = running.into_iter().collect();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Snapshot, given, snapshot};
    use super::*;

    fn with(behaviour: Behaviour) -> AlloX {
        AlloX::new(AlloXParameters { behaviour, ..AlloXParameters::default() })
    }

    #[test]
    fn the_sum_of_completion_times_decides() {
        // One worker of each type, times 10/20, 12/40, 30/31 s. Orders by hand: {0 then ...}: fast runs 0 (10) then
        // 1 (22) and slow runs 2 (31): 63. fast 1, 2 & slow 0: 12 + 42 + 20 = 74; fast 0, 2 & slow 1: 10 + 40 + 40.
        let jobs: [(u32, f64, &[f64]); 3] =
            [(1, 120.0, &[12.0, 6.0]), (1, 120.0, &[10.0, 3.0]), (1, 930.0, &[31.0, 30.0])];
        for behaviour in [Behaviour::Published, Behaviour::Corrected] {
            let snapshot = snapshot("fast=1,slow=1", &jobs);
            assert_eq!(given(&mut with(behaviour), &snapshot), ["0: fast", "2: slow"], "{behaviour:?}");
        }
    }

    #[test]
    fn a_started_job_keeps_its_type_and_only_free_workers_are_matched() {
        for behaviour in [Behaviour::Published, Behaviour::Corrected] {
            let mut policy = with(behaviour);
            let mut snapshot = Snapshot::new("fast=1,slow=1");
            snapshot.job(0, 1, 100.0, &[1.0, 0.9]);
            assert_eq!(given(&mut policy, &snapshot), ["0: fast"]);
            snapshot.pass(1.0, &[(0, 1.0)]);
            snapshot.job(1, 1, 5.0, &[5.0, 1.0]);
            assert_eq!(given(&mut policy, &snapshot), ["0: fast", "1: slow"]);
            let mut restored = with(behaviour);
            restored.restore(&policy.state()).unwrap();
            snapshot.leave(0);
            assert_eq!(given(&mut restored, &snapshot), ["1: slow"]);
        }
    }

    #[test]
    fn where_a_job_cannot_run_it_waits_unless_as_published() {
        let jobs: [(u32, f64, &[f64]); 2] = [(1, 10.0, &[1.0, 0.0]), (1, 10.0, &[2.0, 0.0])];
        let both_fast = snapshot("fast=1,slow=1", &jobs);
        // Published: the dearer place on the slow type costs 1e11, two turns on the fast one far less.
        assert_eq!(given(&mut with(Behaviour::Published), &both_fast), ["1: fast"]);
        assert_eq!(given(&mut with(Behaviour::Corrected), &both_fast), ["1: fast"]);

        let mut policy = with(Behaviour::Published);
        let mut snapshot = Snapshot::new("fast=1,slow=1");
        snapshot.job(0, 1, 100.0, &[1.0, 1.0]);
        given(&mut policy, &snapshot);
        snapshot.job(1, 1, 10.0, &[1.0, 0.0]);
        assert_eq!(given(&mut policy, &snapshot), ["0: fast", "1: slow"]);
        let mut policy = with(Behaviour::Corrected);
        policy.restore(&serde_json::json!({"running": [[0, 0]]})).unwrap();
        assert_eq!(given(&mut policy, &snapshot), ["0: fast"]);
    }

    #[test]
    fn alpha_limits_the_prefix_of_the_queue() {
        // Two jobs for one worker: the shorter starts, unless only the first half of the queue is looked at.
        let jobs: [(u32, f64, &[f64]); 2] = [(1, 50.0, &[1.0]), (1, 10.0, &[1.0])];
        let first = |alpha| {
            let mut policy = AlloX::new(AlloXParameters { alpha, behaviour: Behaviour::Corrected });
            given(&mut policy, &snapshot("only=1", &jobs))
        };
        assert_eq!(first(1.0), ["1: only"]);
        assert_eq!(first(0.5), ["0: only"]);
    }

    #[test]
    fn jobs_of_several_workers_are_refused() {
        let error = with(Behaviour::Corrected)
            .allocate(&snapshot("only=2", &[(2, 1.0, &[1.0])]).problem())
            .unwrap_err();
        assert_eq!(error.to_string(), "policy `allox` needs `scale_factor` of job 0, expected 1");
    }
}
