//! The answers of a scheduler: the leases of a round, and the decision behind them.

use super::decided::Decided;
use crate::index::{Id, JobId, WorkerId, WorkerTypeId};
use crate::policy::{ObjectiveReport, SolveReport};
use crate::units::Seconds;
use crate::workload::Combination;

/// The right of a job, or of two that share, to some workers until the round ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The jobs.
    pub jobs: Combination<JobId>,
    /// Their names, in the same order: `[1 or 2]`.
    pub names: Vec<String>,
    /// The type of all the workers.
    pub worker_type: WorkerTypeId,
    /// The type's name.
    pub type_name: String,
    /// The workers, one per unit of scale factor, ascending.
    pub workers: Vec<WorkerId>,
    /// The number of servers that they are on.
    pub n_servers: u32,
    /// Whether this lease is an extension. Then its jobs had its workers in the previous round, and keep running.
    pub extended: bool,
}

/// The decision whose allocation is in force.
#[derive(Clone, Debug, PartialEq)]
pub struct InForce {
    /// Start of the round at which the policy was asked.
    pub asked: Seconds,
    /// Start of the round at which the decision was adopted.
    pub adopted: Seconds,
    /// The share of its time that each job should spend on each worker type, in the cluster's order, alone or in a pair:
    /// `[combinations]`, `[K]` each. Under a rule, jobs without a share may be left out.
    pub shares: Vec<(Combination<JobId>, Vec<f64>)>,
    /// The upper bound of the ids of jobs that it was asked about.
    pub n_shown: usize,
    /// The policy's own objective, certified; none for heuristics.
    pub objective: Option<ObjectiveReport>,
    /// The report of the programs solved and the time taken; none for closed forms and heuristics.
    pub solve: Option<SolveReport>,
    /// Jobs with a droppable constraint that was dropped.
    pub dropped: Vec<JobId>,
}

impl InForce {
    /// Whether the policy was asked about an active job: if so, a job without a share was given none.
    pub fn is_about(&self, id: JobId) -> bool {
        id.index() < self.n_shown || self.shares.iter().any(|(jobs, _)| jobs.contains(id))
    }
}

/// One round: its leases, and the reasons for them.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// Its number, from 0.
    pub number: u64,
    /// Its start.
    pub from: Seconds,
    /// Its end, and the end of every lease.
    pub until: Seconds,
    /// The leases, in the order in which they were granted.
    pub leases: Vec<Lease>,
    /// Leases of the previous round that were not extended although a job of theirs is still here: it stops, or moves.
    pub preempted: Vec<Lease>,
    /// The outcome of asking the policy in this round.
    pub decided: Decided,
}
