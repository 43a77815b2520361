//! The standing of a combination: the time that it is owed on a worker type, and its urgency.

use super::priority::Priority;
use super::rounds::Mechanism;
use super::selection::WithinShares;
use crate::index::{Id, JobId, WorkerTypeId};
use crate::units::Seconds;
use crate::workload::Combination;

/// The standing of a combination on a worker type: the time that it is owed, and its urgency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// The share of its time that it is allotted, from 0 to 1.
    pub share: f64,
    /// Time received since the last reset, without the initial credit.
    pub received: Seconds,
    /// Time that it was allotted up to the last reset and has not received; below 0, time that it has received in excess.
    pub deficit: Seconds,
    /// Its priority when workers of the type are given out, if no combination is overdue.
    pub priority: Priority,
    /// Time that was allotted to one of its jobs while the job ran less than half of it, less the time that the job has run since;
    /// none unless it is so long that the combination precedes all that are not overdue.
    pub overdue: Option<Seconds>,
}

impl Mechanism {
    /// The standing of a combination on a worker type now; none if it has no account.
    pub fn standing(&self, combination: Combination<JobId>, worker_type: WorkerTypeId) -> Option<Standing> {
        let ledger = &self.ledger;
        let slot = ledger.slot(combination)?;
        let column = worker_type.index();
        let cell = ledger.row(slot) + column;
        let share = if ledger.runs(cell) { ledger.share[cell] } else { 0.0 };
        let received = ledger.received[cell];
        Some(Standing {
            share,
            received: Seconds::new(received - self.options.initial_credit.get()),
            deficit: Seconds::new(ledger.deficit[cell]),
            priority: Priority::of(share, received, ledger.total[column]),
            overdue: match ledger.priority(slot, column, self.options.overdue_after()) {
                Priority::Overdue { allotted } => Some(Seconds::new(allotted)),
                _ => None,
            },
        })
    }

    /// The time that has passed since the last reset; none unless the rules forbid running longer than the share of that.
    pub(super) fn within_shares(&self) -> Option<WithinShares> {
        let elapsed = self.round - self.resets.last.unwrap_or(self.round);
        let credit = self.options.initial_credit.get();
        self.rules.within_shares.then_some(WithinShares { elapsed, credit })
    }

    /// The earliest beginning of a round in which a combination that is owed no time now is owed some, if shares may not be
    /// exceeded, or a job that rests now may have workers.
    pub fn next_due(&self) -> Option<Seconds> {
        let next = [self.next_owed(), self.next_rested().map(Seconds::new)];
        next.into_iter().flatten().min_by(Seconds::total_cmp)
    }

    fn next_owed(&self) -> Option<Seconds> {
        let within = self.within_shares()?;
        let ledger = &self.ledger;
        let cells = ledger.shared().flat_map(|slot| ledger.row(slot)..ledger.row(slot) + ledger.n_types);
        let runs = cells.filter(|cell| ledger.runs(*cell) && ledger.share[*cell] > 0.0);
        let due = runs.filter_map(|cell| within.due_in(ledger, cell)).min_by(f64::total_cmp);
        due.map(|due| Seconds::new(self.round + due))
    }

    /// The deficit of a combination on a worker type; none if it has no account.
    pub fn deficit(&self, combination: Combination<JobId>, worker_type: WorkerTypeId) -> Option<Seconds> {
        let slot = self.ledger.slot(combination)?;
        Some(Seconds::new(self.ledger.deficit[self.ledger.row(slot) + worker_type.index()]))
    }

    /// Time received since the last reset, the initial credit included; none if it has no account.
    pub fn received(&self, combination: Combination<JobId>, worker_type: WorkerTypeId) -> Option<Seconds> {
        let slot = self.ledger.slot(combination)?;
        Some(Seconds::new(self.ledger.received[self.ledger.row(slot) + worker_type.index()]))
    }
}
