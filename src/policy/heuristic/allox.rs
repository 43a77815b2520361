//! AlloX: jobs matched to workers and to turns on them, so that the sum of completion times is least.
//!
//! | symbol    | meaning                                                                    | unit    |
//! |-----------|----------------------------------------------------------------------------|---------|
//! | e_m       | time since arrival                                                         | s       |
//! | r_m/T`[m,j]`| time job m would take on type j                                            | s       |
//! | k         | position from the end of a worker's queue: the job there delays k jobs,    |         |
//! |           | itself included                                                            |         |
//!
//!   cost(m, worker of type j, k) = e_m + k · r_m / T`[m,j]`
//!
//! A minimum-cost assignment of waiting jobs to (worker, k) gives each free worker its queue; the first of each
//! queue starts and the rest wait for the next call. A job that has started keeps its worker type to its end.
//! Jobs need one worker each; others are refused.
//!
//! Source: Le et al., EuroSys '20; Gavel's implementation of it.
//!
//! Where the two fidelities differ:
//! - a type on which a job cannot run: `published` assumes 1e-10 steps/s, so a job may be put there and
//!   stay for ever; `corrected` forbids it, and a job that runs on no free worker's type waits;
//! - ties: workers of a type are alike, so it is arbitrary which job of one turn follows which of the turn
//!   before, and with it which jobs start. `published` takes the assignment that results over workers in the
//!   alphabetical order of their types, which is the one of Gavel's library; `corrected` starts the
//!   jobs of the foremost turn, and the earliest arrivals of the next one on the workers that stay free;
//! - e_m: the same in every column, it cannot change the optimum; `published` adds it because rounding may.
//!
//! Differs from Gavel in both: the cost matrix is never built (its repeated concatenation takes 2.4 GB for 512
//! jobs), and a turn is only looked at once the turn after it is taken. `corrected` matches jobs to turns on types,
//! each with room for as many jobs as there are free workers, instead of to turns on workers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::index::{Id, JobId, JobIndex, WorkerTypeId};
use crate::policy::decision::{Decision, Policy, PolicyError, RoundRules};
use crate::policy::heuristic::assignment::{Chains, assign_chained};
use crate::policy::heuristic::workers::{
    Handout, alphabetical, by_arrival, check_steps, decide_whole, restored,
};
use crate::policy::heuristic::{Parameters, expect};
use crate::problem::Problem;
use crate::spec::Fidelity;
use crate::workload::Combination;

const NAME: &str = "allox";

/// The throughput that Gavel assumes for a job where it cannot run, in steps/s.
const PUBLISHED_STANDSTILL: f64 = 1e-10;

/// Parameters of the rule `allox`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct AlloXParameters {
    /// The fraction of the waiting jobs, above 0 and at most 1, earliest first, that is matched: at least as many as there are free
    /// workers. The default is Gavel's.
    pub alpha: f64,
    /// Whether the rule is as published or corrected: the run's `semantics` decide.
    #[serde(skip)]
    pub fidelity: Fidelity,
}

impl Parameters for AlloXParameters {
    fn check(&self) -> Result<(), (&'static str, String)> {
        expect(self.alpha > 0.0 && self.alpha <= 1.0, "alpha", self.alpha, "a number above 0, at most 1")
    }
}

impl Default for AlloXParameters {
    fn default() -> Self {
        Self { alpha: 1.0, fidelity: Fidelity::Corrected }
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
    /// Position of the queue: of a worker, or of all workers of a type.
    queue: usize,
    /// Position from the end of the queue, from 0.
    from_end: usize,
}

/// Queues that jobs are matched to: each is of one worker, or of all free workers of a type.
struct Queues {
    worker_types: Vec<WorkerTypeId>,
    n_workers: Vec<usize>,
}

impl Queues {
    /// Queues of single workers, one for each free worker, in alphabetical order of their types.
    fn of_workers(problem: &Problem, handout: &Handout<'_>) -> Self {
        let free = |worker_type| (0..handout.free()[worker_type]).map(move |_| worker_type);
        let worker_types: Vec<WorkerTypeId> = alphabetical(problem).into_iter().flat_map(free).collect();
        Self { n_workers: vec![1; worker_types.len()], worker_types }
    }

    /// Queues of worker types, one for each type that has free workers: workers of a type are alike, so their turns
    /// need not be told apart.
    fn of_types(handout: &Handout<'_>) -> Self {
        let free = handout.free().enumerate().filter(|(_, free)| **free > 0);
        let (worker_types, n_workers) = free.map(|(worker_type, free)| (worker_type, *free as usize)).unzip();
        Self { worker_types, n_workers }
    }
}

impl AlloX {
    /// The rule with these parameters; nothing runs yet.
    pub fn new(parameters: AlloXParameters) -> Self {
        Self { parameters, running: BTreeMap::new() }
    }

    /// The waiting jobs to be matched, earliest first.
    fn considered(&self, problem: &Problem, handout: &Handout<'_>, queues: &Queues) -> Vec<JobIndex> {
        let mut waiting = by_arrival(problem);
        waiting.retain(|job| !handout.placed().contains_key(job));
        waiting.sort_by(|one, other| problem.jobs()[*other].elapsed.total_cmp(&problem.jobs()[*one].elapsed));
        if self.parameters.fidelity == Fidelity::Corrected {
            let runs = |job, worker_type| problem.throughput()[(job, worker_type)] > 0.0;
            waiting.retain(|job| queues.worker_types.iter().any(|worker_type| runs(*job, *worker_type)));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "rounded down, at least 0"
        )]
        let prefix = (self.parameters.alpha * waiting.len() as f64) as usize;
        waiting.truncate(prefix.max(queues.n_workers.iter().sum()));
        waiting
    }

    /// The least costly turns of these jobs.
    fn matched(
        &self,
        problem: &Problem,
        jobs: &[JobIndex],
        queues: &Queues,
    ) -> Result<Vec<Turn>, PolicyError> {
        let n_queues = queues.worker_types.len();
        if n_queues == 0 {
            return Ok(Vec::new());
        }
        let published = self.parameters.fidelity == Fidelity::Published;
        let delay = |job: &JobIndex| if published { problem.jobs()[*job].elapsed.get() } else { 0.0 };
        let delay: Vec<f64> = jobs.iter().map(delay).collect();
        let time = self.times(problem, jobs);
        // Divided once for all turns, not in the innermost loop.
        let turns: Vec<(f64, WorkerTypeId)> = (1..=jobs.len())
            .flat_map(|position| queues.worker_types.iter().map(move |kind| (position as f64, *kind)))
            .collect();
        let cost = |row: usize, column: usize| {
            let (position, worker_type) = turns[column];
            position * time[row * problem.n_types() + worker_type.index()] + delay[row]
        };
        let chains = Chains { capacity: queues.n_workers.clone(), length: jobs.len() };
        let columns = assign_chained(jobs.len(), &chains, cost).map_err(|error| PolicyError::Infeasible {
            policy: NAME.to_owned(),
            reason: error.to_string(),
        })?;
        let turn = |(job, column): (&JobIndex, usize)| {
            let (queue, from_end) = (column % n_queues, column / n_queues);
            Turn { job: *job, queue, from_end }
        };
        Ok(jobs.iter().zip(columns).map(turn).collect())
    }

    /// Time each job would take on each type: [job × type], in s.
    fn times(&self, problem: &Problem, jobs: &[JobIndex]) -> Vec<f64> {
        let standstill = match self.parameters.fidelity {
            Fidelity::Published => PUBLISHED_STANDSTILL,
            Fidelity::Corrected => 0.0,
        };
        let time = |job: &JobIndex| {
            let steps = problem.jobs()[*job].steps_remaining.get();
            let row = problem.throughput().row(*job).iter();
            row.map(move |throughput| steps / if *throughput > 0.0 { *throughput } else { standstill })
        };
        jobs.iter().flat_map(time).collect()
    }
}

/// The jobs that start: those of the earliest turns of each queue, one for each of its workers, ties by arrival.
fn starting(mut turns: Vec<Turn>, queues: &Queues) -> Vec<(JobIndex, WorkerTypeId)> {
    // A stable sort, of turns in order of arrival.
    turns.sort_by_key(|turn| (turn.queue, std::cmp::Reverse(turn.from_end)));
    let mut starting = Vec::new();
    for queue in turns.chunk_by(|one, other| one.queue == other.queue) {
        let number = queue[0].queue;
        let first = queue.iter().take(queues.n_workers[number]);
        starting.extend(first.map(|turn| (turn.job, queues.worker_types[number])));
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
        let queues = match self.parameters.fidelity {
            Fidelity::Published => Queues::of_workers(problem, &handout),
            Fidelity::Corrected => Queues::of_types(&handout),
        };
        let jobs = self.considered(problem, &handout, &queues);
        let turns = self.matched(problem, &jobs, &queues)?;
        for (job, worker_type) in starting(turns, &queues) {
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

    fn with(fidelity: Fidelity) -> AlloX {
        AlloX::new(AlloXParameters { fidelity, ..AlloXParameters::default() })
    }

    #[test]
    fn the_sum_of_completion_times_decides() {
        // One worker of each type, times 10/20, 12/40, 30/31 s. Orders by hand: {0 then ...}: fast runs 0 (10) then
        // 1 (22) and slow runs 2 (31): 63. fast 1, 2 & slow 0: 12 + 42 + 20 = 74; fast 0, 2 & slow 1: 10 + 40 + 40.
        let jobs: [(u32, f64, &[f64]); 3] =
            [(1, 120.0, &[12.0, 6.0]), (1, 120.0, &[10.0, 3.0]), (1, 930.0, &[31.0, 30.0])];
        for fidelity in [Fidelity::Published, Fidelity::Corrected] {
            let snapshot = snapshot("fast=1,slow=1", &jobs);
            assert_eq!(given(&mut with(fidelity), &snapshot), ["0: fast", "2: slow"], "{fidelity:?}");
        }
    }

    #[test]
    fn a_started_job_keeps_its_type_and_only_free_workers_are_matched() {
        for fidelity in [Fidelity::Published, Fidelity::Corrected] {
            let mut policy = with(fidelity);
            let mut snapshot = Snapshot::new("fast=1,slow=1");
            snapshot.job(0, 1, 100.0, &[1.0, 0.9]);
            assert_eq!(given(&mut policy, &snapshot), ["0: fast"]);
            snapshot.pass(1.0, &[(0, 1.0)]);
            snapshot.job(1, 1, 5.0, &[5.0, 1.0]);
            assert_eq!(given(&mut policy, &snapshot), ["0: fast", "1: slow"]);
            let mut restored = with(fidelity);
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
        assert_eq!(given(&mut with(Fidelity::Published), &both_fast), ["1: fast"]);
        assert_eq!(given(&mut with(Fidelity::Corrected), &both_fast), ["1: fast"]);

        let mut policy = with(Fidelity::Published);
        let mut snapshot = Snapshot::new("fast=1,slow=1");
        snapshot.job(0, 1, 100.0, &[1.0, 1.0]);
        given(&mut policy, &snapshot);
        snapshot.job(1, 1, 10.0, &[1.0, 0.0]);
        assert_eq!(given(&mut policy, &snapshot), ["0: fast", "1: slow"]);
        let mut policy = with(Fidelity::Corrected);
        policy.restore(&serde_json::json!({"running": [[0, 0]]})).unwrap();
        assert_eq!(given(&mut policy, &snapshot), ["0: fast"]);
    }

    #[test]
    fn alpha_limits_the_prefix_of_the_queue() {
        // Two jobs for one worker: the shorter starts, unless only the first half of the queue is looked at.
        let jobs: [(u32, f64, &[f64]); 2] = [(1, 50.0, &[1.0]), (1, 10.0, &[1.0])];
        let first = |alpha| {
            let mut policy = AlloX::new(AlloXParameters { alpha, fidelity: Fidelity::Corrected });
            given(&mut policy, &snapshot("only=1", &jobs))
        };
        assert_eq!(first(1.0), ["1: only"]);
        assert_eq!(first(0.5), ["0: only"]);
    }

    #[test]
    fn jobs_of_several_workers_are_refused() {
        let error = with(Fidelity::Corrected)
            .allocate(&snapshot("only=2", &[(2, 1.0, &[1.0])]).problem())
            .unwrap_err();
        assert_eq!(error.to_string(), "policy `allox` needs `scale_factor` of job 0, expected 1");
    }
}
