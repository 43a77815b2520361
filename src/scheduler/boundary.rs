//! The start of a round, as the scheduler's own table has it.

use std::sync::Arc;

use super::active::Table;
use super::leases::InForce;
use super::rounds::Situation;
use crate::cluster::Cluster;
use crate::index::{Id, JobId, WorkerTypeId};
use crate::policy::Decision;
use crate::problem::{Problem, ProblemError};
use crate::units::Seconds;
use crate::workload::Combination;

/// The start of a round, over the scheduler's own table.
pub(super) struct Boundary<'a> {
    pub(super) now: Seconds,
    pub(super) table: &'a mut Table,
    pub(super) cluster: &'a Arc<Cluster>,
    /// The decision adopted at this round; none if none was.
    pub(super) adopted: Option<InForce>,
}

impl Situation for Boundary<'_> {
    fn now(&self) -> Seconds {
        self.now
    }

    fn n_jobs(&self) -> usize {
        self.table.jobs.len()
    }

    fn problem(&mut self) -> Result<Problem, ProblemError> {
        self.table.share_equally(self.cluster);
        self.table.problem(self.now, self.cluster)
    }

    fn throughput(&self, jobs: Combination<JobId>, worker_type: WorkerTypeId) -> f64 {
        self.table.throughput(jobs, worker_type)
    }

    fn decided(&mut self, asked: Seconds, problem: &Problem, decision: &Decision) -> bool {
        let id = |index| problem.jobs()[index].id;
        let allocation = &decision.allocation;
        let row = |(row, jobs): (_, &Combination<_>)| (jobs.map(id), allocation.shares().row(row).to_vec());
        self.adopted = Some(InForce {
            asked,
            adopted: self.now,
            shares: allocation.combinations().enumerate().map(row).collect(),
            objective: decision.objective.clone(),
            solve: decision.solve.clone(),
            n_shown: problem.jobs().iter().map(|job| job.id.index() + 1).max().unwrap_or(0),
            dropped: decision.dropped.iter().map(|index| id(*index)).collect(),
        });
        false
    }
}
