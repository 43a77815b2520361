//! The history of a run's allocations: the share of its time for which each job was given workers of a type, and when.

use apportion::index::{Id, JobId};
use apportion::simulator::{Event, Observer};
use apportion::units::Seconds;

use super::outcome::AllocationRow;

/// The observer that keeps the shares of all decisions of a run.
#[derive(Debug)]
pub(super) struct Allocations {
    /// Whether there is anything to keep.
    is_kept: bool,
    /// The instant of the trace from which the simulation counts.
    origin: Seconds,
    rows: Vec<AllocationRow>,
    /// The number of rows of decisions that another followed.
    n_ended: usize,
}

impl Allocations {
    /// An observer of a run that counts from `origin`, which keeps nothing unless `is_kept`.
    pub(super) fn new(is_kept: bool, origin: Seconds) -> Self {
        Self { is_kept, origin, rows: Vec::new(), n_ended: 0 }
    }

    /// The rows of a simulation that ended at `now`.
    pub(super) fn until(mut self, now: Seconds) -> Vec<AllocationRow> {
        self.end(now);
        self.rows
    }

    /// Ends the shares in force.
    fn end(&mut self, now: Seconds) {
        for row in &mut self.rows[self.n_ended..] {
            row.until = (now + self.origin).get();
        }
        self.n_ended = self.rows.len();
    }
}

impl Observer for Allocations {
    fn observe(&mut self, event: &Event<'_>) {
        let Event::Allocated { now, shares: Some(shares), .. } = event else { return };
        if !self.is_kept {
            return;
        }
        self.end(*now);
        let from = (*now + self.origin).get();
        for of in shares.iter() {
            let number = |id: JobId| id.index() as u64;
            for (worker_type, share) in of.shares {
                self.rows.push(AllocationRow {
                    from,
                    until: from,
                    job: number(of.jobs.first()),
                    partner: of.jobs.second().map(number),
                    worker_type: (*worker_type).to_owned(),
                    share: *share,
                });
            }
        }
    }
}
