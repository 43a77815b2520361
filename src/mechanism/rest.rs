//! Jobs that rest: they want no workers until an instant.

use super::rounds::Mechanism;
use crate::index::JobId;
use crate::units::Seconds;

impl Mechanism {
    /// Lets a job rest: it is to have no workers until an instant. Its lease alone, if it has one, is over, and
    /// [`refill`](Self::refill) may give the workers to others; beside another job it keeps its place. The time that it is owed
    /// goes on growing. An instant that has passed ends its rest.
    pub fn rest(&mut self, job: JobId, until: Seconds) {
        self.resting.retain(|(resting, _)| *resting != job);
        self.resting.push((job, until.get()));
        self.current.leases.retain(|lease| lease.combination.is_pair() || !lease.combination.contains(job));
    }

    /// Places of the jobs that rest at an instant, in s.
    pub(super) fn resting_at(&self, now: f64) -> Vec<u32> {
        let at = |(job, until): &(JobId, f64)| (*until > now).then(|| self.ledger.place(*job)).flatten();
        self.resting.iter().filter_map(at).collect()
    }

    /// The instant at which the first of the jobs that rest in the current round may have workers again, s.
    pub(super) fn next_rested(&self) -> Option<f64> {
        let after = self.resting.iter().map(|(_, until)| *until).filter(|until| *until > self.round);
        after.min_by(f64::total_cmp)
    }
}
