//! Accounts of the time that jobs received of workers. They follow checkpointed work.

use std::collections::BTreeMap;

use apportion::Seconds;
use apportion::index::{JobId, WorkerTypeId};
use apportion::workload::Combination;

/// The account of one combination on workers of one type.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Account {
    /// Time held, without the time whose work was lost for want of a checkpoint, s.
    received: f64,
    /// Time told to the mechanism, s: more than was received where a lease was projected to its end, or work was lost.
    told: f64,
    /// The told time that is in the mechanism's state on disk, s.
    kept: f64,
}

/// The accounts of all present combinations.
///
/// The mechanism's times only grow. So time that was told in excess is deducted from later time: over the life of a combination the
/// two sums agree, but for time that was told of the last round and then lost.
#[derive(Clone, Debug, Default)]
pub(super) struct Accounts {
    accounts: BTreeMap<(Combination<JobId>, WorkerTypeId), Account>,
}

impl Accounts {
    /// Adds time that was held; below 0, time that was lost.
    pub(super) fn add(&mut self, jobs: Combination<JobId>, worker_type: WorkerTypeId, time: Seconds) {
        let account = self.accounts.entry((jobs, worker_type)).or_default();
        account.received += time.get();
    }

    /// Time that the mechanism is to be told now, if the combination goes on to hold its workers for `ahead`. It counts as told.
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

    /// Time that the mechanism is still to be told, if the combination goes on to hold its workers for `ahead`; below 0, time that
    /// was told in excess and is deducted from later time.
    pub(super) fn pending(
        &self,
        jobs: Combination<JobId>,
        worker_type: WorkerTypeId,
        ahead: Seconds,
    ) -> Seconds {
        let account = self.accounts.get(&(jobs, worker_type)).copied().unwrap_or_default();
        Seconds::new(account.received + ahead.get() - account.told)
    }

    /// Time that the mechanism's state on disk does not have; below 0, time that it has ahead.
    pub(super) fn untold(&self, jobs: Combination<JobId>, worker_type: WorkerTypeId) -> Seconds {
        let account = self.accounts.get(&(jobs, worker_type)).copied().unwrap_or_default();
        Seconds::new(account.received - account.kept)
    }

    /// Notes that the mechanism's present state is put on disk.
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
