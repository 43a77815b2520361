//! What a scheduler answers: the leases of a round, and the decision behind them.

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
    /// How many servers they are on.
    pub n_servers: u32,
    /// Is this lease an extension? Then its jobs had its workers in the round before, and keep running.
    pub extended: bool,
}

/// The decision whose allocation is in force.
#[derive(Clone, Debug, PartialEq)]
pub struct InForce {
    /// Start of the round at which the policy was asked.
    pub asked: Seconds,
    /// Start of the round at which the decision was adopted.
    pub adopted: Seconds,
    /// What share of its time each job should spend on each worker type, in the cluster's order, alone or beside another:
    /// `[combinations]`, `[K]` each. Jobs of which a rule has no share may be left out.
    pub shares: Vec<(Combination<JobId>, Vec<f64>)>,
    /// The jobs that it was asked about have smaller ids than this.
    pub n_shown: usize,
    /// The policy's own objective, certified; none for heuristics.
    pub objective: Option<ObjectiveReport>,
    /// How it was solved; none for closed forms and heuristics.
    pub solve: Option<SolveReport>,
    /// Jobs whose droppable constraints were dropped.
    pub dropped: Vec<JobId>,
}

impl InForce {
    /// Was the policy asked about a job that is active, so that a share that it has not is none that it was given?
    pub fn is_about(&self, id: JobId) -> bool {
        id.index() < self.n_shown || self.shares.iter().any(|(jobs, _)| jobs.contains(id))
    }
}

/// One round: who runs where, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Round {
    /// Its number, from 0.
    pub number: u64,
    /// When it starts.
    pub from: Seconds,
    /// When it ends, and with it every lease.
    pub until: Seconds,
    /// What runs, in the order in which it was granted.
    pub leases: Vec<Lease>,
    /// Leases of the round before that were not extended although a job of theirs is still here: it stops, or moves.
    pub preempted: Vec<Lease>,
    /// The outcome of asking the policy in this round.
    pub decided: Decided,
}
