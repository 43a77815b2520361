//! What still runs when the next round is decided before the end of one.

use super::rounds::Mechanism;
use crate::index::{JobId, WorkerTypeId};
use crate::units::Seconds;
use crate::workload::Combination;

/// Time that counts although it has not passed yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ahead {
    pub(super) combination: Combination<JobId>,
    pub(super) worker_type: WorkerTypeId,
    pub(super) time: f64,
}

impl Mechanism {
    /// A combination that holds workers of a type is taken to do so for this long, beyond what has been recorded. That
    /// counts from now on, until its next [`record`](Self::record) there, which counts in its place.
    pub fn project(&mut self, combination: Combination<JobId>, worker_type: WorkerTypeId, time: Seconds) {
        let before = self.take_ahead(combination, worker_type);
        let time = time.get();
        self.ahead.push(Ahead { combination, worker_type, time });
        self.receive(combination, worker_type, Seconds::new(time - before));
    }

    /// Forgets what counts ahead of a combination on a type, and says how long it is, s.
    pub(super) fn take_ahead(&mut self, combination: Combination<JobId>, worker_type: WorkerTypeId) -> f64 {
        let is_it = |ahead: &Ahead| ahead.combination == combination && ahead.worker_type == worker_type;
        let position = self.ahead.iter().position(is_it);
        position.map_or(0.0, |position| self.ahead.swap_remove(position).time)
    }
}
