//! What jobs received of workers: accounts that follow checkpointed work.

use std::collections::BTreeMap;

use apportion::Seconds;
use apportion::index::{JobId, WorkerTypeId};
use apportion::workload::Combination;

/// The time of one combination on workers of one type.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Account {
    /// Held, and not lost with work that no checkpoint has, s.
    received: f64,
    /// Told to the mechanism, s: more than was received where a lease was projected to its end, or work was lost.
    told: f64,
    /// Of it, what the mechanism knows as it is on disk, s.
    kept: f64,
}

/// All accounts of combinations that are here.
///
/// The mechanism takes time that is added only. So what was told too much is held against what comes next: over the life of
/// a combination the two sums agree, but for what was told of the last round and then lost.
#[derive(Clone, Debug, Default)]
pub(super) struct Accounts {
    accounts: BTreeMap<(Combination<JobId>, WorkerTypeId), Account>,
}

impl Accounts {
    /// Counts time that was held; below 0, time that was lost.
    pub(super) fn add(&mut self, jobs: Combination<JobId>, worker_type: WorkerTypeId, time: Seconds) {
        let account = self.accounts.entry((jobs, worker_type)).or_default();
        account.received += time.get();
    }

    /// What the mechanism is to be told now, if the combination goes on to hold its workers for `ahead`.
    pub(super) fn due(
        &mut self,
        jobs: Combination<JobId>,
        worker_type: WorkerTypeId,
        ahead: Seconds,
    ) -> Seconds {
        let account = self.accounts.entry((jobs, worker_type)).or_default();
        let due = (account.received + ahead.get() - account.told).max(0.0);
        account.told += due;
        Seconds::new(due)
    }

    /// What the mechanism is still to be told if the combination goes on to hold its workers for `ahead`; below 0, what it was told
    /// too much and what is held against what comes next.
    pub(super) fn pending(
        &self,
        jobs: Combination<JobId>,
        worker_type: WorkerTypeId,
        ahead: Seconds,
    ) -> Seconds {
        let account = self.accounts.get(&(jobs, worker_type)).copied().unwrap_or_default();
        Seconds::new(account.received + ahead.get() - account.told)
    }

    /// What the mechanism as it is on disk has not been told; below 0, what it was told ahead.
    pub(super) fn untold(&self, jobs: Combination<JobId>, worker_type: WorkerTypeId) -> Seconds {
        let account = self.accounts.get(&(jobs, worker_type)).copied().unwrap_or_default();
        Seconds::new(account.received - account.kept)
    }

    /// Notes that the mechanism is put on disk as it is now.
    pub(super) fn note_kept(&mut self) {
        for account in self.accounts.values_mut() {
            account.kept = account.told;
        }
    }

    /// All combinations that have an account.
    pub(super) fn keys(&self) -> Vec<(Combination<JobId>, WorkerTypeId)> {
        self.accounts.keys().copied().collect()
    }

    /// Closes the accounts of a job that is over.
    pub(super) fn close(&mut self, job: JobId) {
        self.accounts.retain(|(jobs, _), _| !jobs.contains(job));
    }
}
