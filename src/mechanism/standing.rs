//! Where a combination stands: what it is owed of a worker type, and how urgently.

use super::priority::Priority;
use super::rounds::Mechanism;
use crate::index::{Id, JobId, WorkerTypeId};
use crate::units::Seconds;
use crate::workload::Combination;

/// What a combination is owed of a worker type, and how urgently.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// The share of its time that it is allotted, from 0 to 1.
    pub share: f64,
    /// Time received since the last reset, without the initial credit.
    pub received: Seconds,
    /// Time that it was allotted up to the last reset and has not received; below 0, what it has received beyond that.
    pub deficit: Seconds,
    /// How it compares with others when workers of the type are given out.
    pub priority: Priority,
}

impl Mechanism {
    /// Where a combination stands on a worker type now; none if it has no account.
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
        })
    }
}
