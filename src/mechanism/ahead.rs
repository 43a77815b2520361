//! Time ahead: time that counts before it has passed, if a round is decided before the previous one ends.

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
    /// Counts time ahead for a combination that holds workers of a type: it is assumed to hold them for `time` beyond the recorded
    /// time. The time counts from now on, until the next [`record`](Self::record) of the combination on the type, which counts in
    /// its place.
    pub fn project(&mut self, combination: Combination<JobId>, worker_type: WorkerTypeId, time: Seconds) {
        let before = self.take_ahead(combination, worker_type);
        let time = time.get();
        self.ahead.push(Ahead { combination, worker_type, time });
        self.receive(combination, worker_type, Seconds::new(time - before));
    }

    /// Removes the time that counts ahead for a combination on a type. Answers that time, s.
    pub(super) fn take_ahead(&mut self, combination: Combination<JobId>, worker_type: WorkerTypeId) -> f64 {
        let is_it = |ahead: &Ahead| ahead.combination == combination && ahead.worker_type == worker_type;
        let position = self.ahead.iter().position(is_it);
        position.map_or(0.0, |position| self.ahead.swap_remove(position).time)
    }
}
