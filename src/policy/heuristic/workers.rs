//! Whole workers handed out: the free workers of each type, and the type of each job that was given workers.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

use crate::allocation::Allocation;
use crate::index::{Id, IndexVec, JobId, JobIndex, WorkerTypeId};
use crate::policy::decision::{Decision, PolicyError, RoundRules};
use crate::problem::Problem;
use crate::units::Seconds;
use crate::workload::Combination;

/// A cluster being handed out, job by job: each placed job has a share of 1 on one worker type.
#[derive(Clone, Debug)]
pub struct Handout<'a> {
    problem: &'a Problem,
    free: IndexVec<WorkerTypeId, u32>,
    placed: BTreeMap<JobIndex, WorkerTypeId>,
}

impl<'a> Handout<'a> {
    /// A handout with all workers free.
    pub fn new(problem: &'a Problem) -> Self {
        let free = problem.cluster().types().iter().map(|worker_type| worker_type.n_workers).collect();
        Self { problem, free, placed: BTreeMap::new() }
    }

    /// Free workers of each type.
    pub fn free(&self) -> &IndexVec<WorkerTypeId, u32> {
        &self.free
    }

    /// The worker type that each placed job was given.
    pub fn placed(&self) -> &BTreeMap<JobIndex, WorkerTypeId> {
        &self.placed
    }

    /// The worker type that each placed job was given, by the job's id, as a policy remembers it.
    pub fn held(&self) -> BTreeMap<JobId, WorkerTypeId> {
        self.placed.iter().map(|(job, worker_type)| (self.problem.jobs()[*job].id, *worker_type)).collect()
    }

    /// Whether enough workers of this type are free.
    pub fn has_room(&self, job: JobIndex, worker_type: WorkerTypeId) -> bool {
        self.free.get(worker_type).is_some_and(|free| *free >= self.problem.jobs()[job].scale_factor)
    }

    /// Whether enough workers of this type are free, and the job runs on it.
    pub fn fits(&self, job: JobIndex, worker_type: WorkerTypeId) -> bool {
        self.has_room(job, worker_type) && self.problem.throughput()[(job, worker_type)] > 0.0
    }

    /// The type with room on which the job has its largest throughput above 0; of equals the one the cluster
    /// lists first.
    pub fn best_type(&self, job: JobIndex) -> Option<WorkerTypeId> {
        let throughput = |worker_type: WorkerTypeId| self.problem.throughput()[(job, worker_type)];
        let fitting = self.free.ids().filter(|worker_type| self.fits(job, *worker_type));
        fitting.rev().max_by(|one, other| throughput(*one).total_cmp(&throughput(*other)))
    }

    /// Gives a job workers of a type.
    ///
    /// # Panics
    /// If there is no room, or the job has workers already.
    pub fn place(&mut self, job: JobIndex, worker_type: WorkerTypeId) {
        assert!(self.has_room(job, worker_type), "job {job} has no room on worker type {worker_type}");
        self.free[worker_type] -= self.problem.jobs()[job].scale_factor;
        assert!(self.placed.insert(job, worker_type).is_none(), "job {job} is placed twice");
    }

    /// Offers workers to jobs in this order, each taking its [best type](Self::best_type). A job that fits
    /// nowhere is passed over under `backfill`, and ends the round of offers otherwise.
    pub fn offer(&mut self, order: impl IntoIterator<Item = JobIndex>, backfill: bool) {
        for job in order {
            match self.best_type(job) {
                Some(worker_type) => self.place(job, worker_type),
                None if backfill => {}
                None => return,
            }
        }
    }

    /// Lets jobs keep their worker types while there is room, the earliest arrivals first.
    pub fn keep(&mut self, held: impl Fn(JobId) -> Option<WorkerTypeId>) {
        for job in by_arrival(self.problem) {
            if let Some(worker_type) = held(self.problem.jobs()[job].id)
                && self.has_room(job, worker_type)
            {
                self.place(job, worker_type);
            }
        }
    }

    /// The decision that gives every placed job all of its time where it was placed. Only what is placed runs: a
    /// worker left free by the rule stays free.
    ///
    /// # Errors
    /// If shares break a constraint, which would be our bug.
    pub fn decide(&self, policy: &str) -> Result<Decision, PolicyError> {
        self.decide_until(policy, None)
    }

    /// Decides as [`decide`](Self::decide), with a new decision due after some time, in seconds.
    ///
    /// # Errors
    /// If shares break a constraint, which would be our bug.
    pub fn decide_until(&self, policy: &str, recompute_after: Option<f64>) -> Result<Decision, PolicyError> {
        let rows = self.placed.iter().map(|(job, worker_type)| (Combination::single(*job), *worker_type));
        let recompute_after = recompute_after.map(Seconds::new);
        let rules = RoundRules { skip_zero_priority: true, recompute_after, ..RoundRules::default() };
        decide_whole(policy, self.problem, rows, rules)
    }
}

/// The decision that gives each combination all of its time on one worker type.
///
/// # Errors
/// If shares break a constraint.
pub fn decide_whole(
    policy: &str,
    problem: &Problem,
    placed: impl IntoIterator<Item = (Combination<JobIndex>, WorkerTypeId)>,
    rules: RoundRules,
) -> Result<Decision, PolicyError> {
    let rows = placed.into_iter().map(|(combination, worker_type)| {
        let mut shares = vec![0.0; problem.n_types()];
        shares[worker_type.index()] = 1.0;
        (combination, shares)
    });
    decide(policy, problem, rows, rules)
}

/// The decision of these shares, checked.
///
/// # Errors
/// If shares break a constraint.
pub fn decide(
    policy: &str,
    problem: &Problem,
    rows: impl IntoIterator<Item = (Combination<JobIndex>, Vec<f64>)>,
    rules: RoundRules,
) -> Result<Decision, PolicyError> {
    let allocation = Allocation::check(problem, rows)
        .map_err(|source| PolicyError::Allocation { policy: policy.to_owned(), source })?;
    Ok(Decision { rules, ..Decision::of(allocation) })
}

/// Jobs in order of arrival, which is that of their ids.
pub fn by_arrival(problem: &Problem) -> Vec<JobIndex> {
    let mut jobs: Vec<JobIndex> = problem.jobs().ids().collect();
    jobs.sort_by_key(|job| problem.jobs()[*job].id);
    jobs
}

/// Sets shares to 0 on types where a job cannot run: its throughput there is 0, or it needs more workers at once than
/// there are.
pub fn keep_where_it_runs(problem: &Problem, job: JobIndex, shares: &mut [f64]) {
    for (worker_type, share) in problem.cluster().types().ids().zip(shares) {
        let enough = problem.jobs()[job].scale_factor <= problem.cluster().types()[worker_type].n_workers;
        if !enough || problem.throughput()[(job, worker_type)] == 0.0 {
            *share = 0.0;
        }
    }
}

/// The position of each job in the problem.
pub fn positions(problem: &Problem) -> BTreeMap<JobId, JobIndex> {
    problem.jobs().enumerate().map(|(job, active)| (active.id, job)).collect()
}

/// Worker types in alphabetical order, in which Gavel does everything with them.
pub fn alphabetical(problem: &Problem) -> Vec<WorkerTypeId> {
    let types = problem.cluster().types();
    let mut order: Vec<WorkerTypeId> = types.ids().collect();
    order.sort_by(|one, other| types[*one].name.cmp(&types[*other].name));
    order
}

/// Time each job would take alone for its steps left, on the fastest type that has workers enough: `[n]`, in s.
///
/// # Errors
/// If a job has no steps left.
pub fn time_remaining(policy: &str, problem: &Problem) -> Result<IndexVec<JobIndex, f64>, PolicyError> {
    check_steps(policy, problem)?;
    let empty = Handout::new(problem);
    let fastest =
        |job| empty.best_type(job).map_or(0.0, |worker_type| problem.throughput()[(job, worker_type)]);
    Ok(problem.jobs().enumerate().map(|(job, active)| active.steps_remaining.get() / fastest(job)).collect())
}

/// Refuses a problem in which a job has no steps left.
///
/// # Errors
/// If there is such a job.
pub fn check_steps(policy: &str, problem: &Problem) -> Result<(), PolicyError> {
    match problem.jobs().iter().position(|active| active.steps_remaining.get() <= 0.0) {
        None => Ok(()),
        Some(job) => Err(PolicyError::Missing {
            policy: policy.to_owned(),
            field: "steps_remaining".to_owned(),
            job,
            expected: "a number above 0".to_owned(),
        }),
    }
}

/// Reads a saved state back.
///
/// # Errors
/// If it is not one of this policy.
pub fn restored<T: DeserializeOwned>(policy: &str, state: &serde_json::Value) -> Result<T, PolicyError> {
    T::deserialize(state).map_err(|_| PolicyError::State { policy: policy.to_owned() })
}
