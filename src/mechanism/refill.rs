//! Workers that become idle inside a round, for jobs that wait.

use super::rounds::Mechanism;
use crate::index::{Id, WorkerTypeId};
use crate::units::Seconds;

impl Mechanism {
    /// Gives workers that are idle at `now`, within a round, to jobs that hold none, until the round ends, by the same priorities
    /// as at its start. Types are filled in the order given. A gang gets workers if there are enough for all of it. The new leases
    /// follow the others in [`leases`](Self::leases). Answers their number.
    ///
    /// A lease lost at the start of the round is not extended by it, even on the same workers.
    pub fn refill(&mut self, now: Seconds, order: &[WorkerTypeId]) -> usize {
        self.refill_for(now, order, false)
    }

    /// Gives idle workers to waiting jobs as [`refill`](Self::refill) does, also to jobs that came after the last allocation, if
    /// the [rules](super::Rules) have fillers at all.
    pub fn refill_with_arrivals(&mut self, now: Seconds, order: &[WorkerTypeId]) -> usize {
        self.refill_for(now, order, true)
    }

    fn refill_for(&mut self, now: Seconds, order: &[WorkerTypeId], with_arrivals: bool) -> usize {
        let mut left: Vec<u32> = (0..self.ledger.n_types)
            .map(|column| self.workers.n_up(WorkerTypeId::from_index(column)))
            .collect();
        let mut holders = Vec::new();
        self.free.start_round(&self.workers);
        for lease in &self.current.leases {
            let n_before = holders.len();
            holders.extend(lease.combination.members().filter_map(|job| self.ledger.place(job)));
            if holders.len() == n_before {
                continue;
            }
            for worker in self.current.workers(lease) {
                if self.free.is_free(&self.workers, *worker) {
                    self.free.take(&self.workers, *worker);
                    left[lease.worker_type.index()] -= 1;
                }
            }
        }
        // A job that rests may hold workers beside another.
        for place in self.resting_at(now.get()) {
            if !holders.contains(&place) {
                holders.push(place);
            }
        }
        if holders.len() == self.ledger.n_jobs() || left.iter().all(|left| *left == 0) {
            // The function `waits_beside_idle` reads it.
            self.selection.left.copy_from_slice(&left);
            return 0;
        }
        let n_leases = self.current.leases.len();
        let rules = (&self.options, self.rules);
        self.selection.within_shares = self.within_shares();
        self.selection.admits_arrivals = with_arrivals;
        let left = |worker_type: WorkerTypeId| left[worker_type.index()];
        self.selection.select(&mut self.ledger, rules, order, (&holders, &left));
        self.selection.admits_arrivals = false;
        for worker_type in order {
            self.place(*worker_type, false);
        }
        self.current.leases.len() - n_leases
    }

    /// Whether a job waits although workers that it could use were left. It is asked after [`assign`](Self::assign).
    pub fn waits_beside_idle(&self) -> bool {
        let ledger = &self.ledger;
        ledger.places().filter(|place| !self.selection.has_taken(ledger, *place)).any(|place| {
            let member = &ledger.members[place as usize];
            let row = ledger.row(member.alone);
            (0..ledger.n_types)
                .any(|column| ledger.runs(row + column) && member.scale_factor <= self.selection.left[column])
        })
    }
}
