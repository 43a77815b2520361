//! The jobs that are still to arrive.

use crate::index::{Id, JobId};
use crate::units::Seconds;
use crate::workload::{Arrivals, Job};

/// A source of jobs with the next one drawn already, so that its time of arrival is known.
#[derive(Debug)]
pub(super) struct ArrivalQueue {
    source: Box<dyn Arrivals>,
    next: Option<Job>,
    /// Number of jobs taken so far, which is the id of the next one.
    n_taken: u32,
}

impl ArrivalQueue {
    /// The queue of a source, of which the first `n_taken` jobs are skipped.
    pub(super) fn new(mut source: Box<dyn Arrivals>, n_taken: u32) -> Self {
        for _ in 0..n_taken {
            source.next_job();
        }
        let next = source.next_job();
        Self { source, next, n_taken }
    }

    pub(super) fn n_taken(&self) -> u32 {
        self.n_taken
    }

    pub(super) fn next_arrival(&self) -> Option<Seconds> {
        self.next.as_ref().map(|job| job.arrival)
    }

    /// The next job; none if it has not arrived.
    pub(super) fn take_until(&mut self, now: Seconds) -> Option<(JobId, Job)> {
        if self.next_arrival()?.get() > now.get() {
            return None;
        }
        let job = std::mem::replace(&mut self.next, self.source.next_job())?;
        let id = JobId::from_index(self.n_taken as usize);
        self.n_taken += 1;
        Some((id, job))
    }
}
