//! Overdue jobs: they have shares and run less than half of them, and precede other jobs.

use super::{Ledger, Member, Slot};
use crate::index::JobId;
use crate::mechanism::priority::Priority;

impl Ledger {
    /// The priority of a combination on a type: [overdue](Priority::Overdue) if it has a share there and one of its jobs is overdue
    /// by `overdue_after` seconds or more, else the ratio of its share to its received time. With `None` no job counts as overdue.
    pub(in crate::mechanism) fn priority(
        &self,
        slot: Slot,
        column: usize,
        overdue_after: Option<f64>,
    ) -> Priority {
        let cell = self.row(slot) + column;
        let share = if self.runs(cell) { self.share[cell] } else { 0.0 };
        let members = self.accounts[slot as usize].members;
        let allotted = members.map(|place| self.members[place as usize].overdue);
        let allotted = allotted[0].max(allotted[1]);
        if share > 0.0 && overdue_after.is_some_and(|after| allotted >= after) {
            return Priority::Overdue { allotted };
        }
        Priority::of(share, self.received[cell], self.total[column])
    }

    /// The figures of each job: its overdue time and the time that it has run since the last reset, s, the sum of its shares, and
    /// of its shares times its throughputs, as they were when the allocation was adopted. Jobs for which all are 0 are left out.
    pub(in crate::mechanism) fn overdue(&self) -> impl Iterator<Item = (JobId, [f64; 4])> {
        let of = |(job, place): &(JobId, u32)| {
            let Member { overdue, run, share, rate, .. } = self.members[*place as usize];
            (*job, [overdue, run, share, rate])
        };
        self.jobs.iter().map(of).filter(|(_, numbers)| numbers.iter().any(|number| *number > 0.0))
    }

    /// Restores the figures of [`overdue`](Self::overdue) for the job at a place.
    pub(in crate::mechanism) fn restore_overdue(
        &mut self,
        place: u32,
        [overdue, run, share, rate]: [f64; 4],
    ) {
        let member = &mut self.members[place as usize];
        (member.overdue, member.run, member.share, member.rate) = (overdue, run, share, rate);
    }

    /// The throughput of the job at a place, alone on a type, steps/s.
    pub(super) fn speed_alone(&self, place: u32, column: usize) -> f64 {
        self.throughput[self.row(self.members[place as usize].alone) + column]
    }
}
