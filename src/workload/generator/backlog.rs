//! Jobs that are there before the first one arrives: enough to keep all workers busy.

use std::collections::VecDeque;

/// The number of workers of each type that jobs are still to be drawn for. Each type is filled in turn; the last job of a type may
/// need more workers than are left of it.
/// need more workers than are left of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Backlog(VecDeque<u32>);

impl Backlog {
    pub(super) fn of(workers: impl IntoIterator<Item = u32>) -> Self {
        Self(workers.into_iter().filter(|n_workers| *n_workers > 0).collect())
    }

    /// Takes a job with this many workers if there is room; a job that is not taken arrives in its own time.
    pub(super) fn takes(&mut self, scale_factor: u32) -> bool {
        let Some(left) = self.0.front_mut() else { return false };
        *left = left.saturating_sub(scale_factor);
        if *left == 0 {
            self.0.pop_front();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_is_filled_in_turn() {
        let mut backlog = Backlog::of([3, 0, 1]);
        let taken = [2, 2, 4, 1].map(|scale_factor| backlog.takes(scale_factor));
        assert_eq!(taken, [true, true, true, false]);
    }
}
