//! Leases: the rights of combinations to workers until a round ends.

use super::ledger::Slot;
use crate::index::{JobId, WorkerId, WorkerTypeId};
use crate::workload::Combination;

/// The right of a combination to some workers until the round ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantedLease<'a> {
    /// The jobs.
    pub combination: Combination<JobId>,
    /// The type of all the workers.
    pub worker_type: WorkerTypeId,
    /// The workers, one per unit of scale factor.
    pub workers: &'a [WorkerId],
    /// The number of servers that they are on.
    pub n_servers: u32,
    /// Whether the combination had the same workers in the previous round, so that it keeps running.
    pub extended: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Lease {
    pub(super) slot: Slot,
    pub(super) generation: u64,
    pub(super) combination: Combination<JobId>,
    pub(super) worker_type: WorkerTypeId,
    pub(super) workers: (u32, u32),
    pub(super) n_servers: u32,
    pub(super) extended: bool,
    /// Whether the lease was extended in the next round.
    pub(super) kept: bool,
}

/// The leases of one round, their workers in one vector.
#[derive(Clone, Debug, Default)]
pub(super) struct Leases {
    pub(super) leases: Vec<Lease>,
    pub(super) workers: Vec<WorkerId>,
}

impl Leases {
    pub(super) fn clear(&mut self) {
        self.leases.clear();
        self.workers.clear();
    }

    pub(super) fn workers(&self, lease: &Lease) -> &[WorkerId] {
        &self.workers[lease.workers.0 as usize..lease.workers.1 as usize]
    }

    pub(super) fn granted(&self, lease: &Lease) -> GrantedLease<'_> {
        GrantedLease {
            combination: lease.combination,
            worker_type: lease.worker_type,
            workers: self.workers(lease),
            n_servers: lease.n_servers,
            extended: lease.extended,
        }
    }
}
