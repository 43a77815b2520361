//! Priorities: the urgency with which a combination is owed a worker type.

use std::cmp::Ordering;

/// The share allotted over the share received, on one worker type. The order is: nothing allotted, then ratios, then combinations
/// that have received nothing at all, the larger share being more urgent, then combinations of overdue jobs, the longest overdue
/// first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Priority {
    /// No share, or it cannot run there.
    Nothing,
    /// X / (received / Σ received), > 0.
    Ratio(f64),
    /// A share, and nothing received of it.
    Starved {
        /// The share allotted, > 0.
        share: f64,
    },
    /// A share above 0, of a job that received less than half of the time allotted to it.
    Overdue {
        /// Time allotted to the job while it ran less than half of it, less the time that it has run since, s.
        allotted: f64,
    },
}

impl Priority {
    /// The priority of `share` if `received` seconds of `received_total` were this combination's.
    pub fn of(share: f64, received: f64, received_total: f64) -> Self {
        if share <= 0.0 {
            return Self::Nothing;
        }
        let fraction = if received_total == 0.0 { 0.0 } else { received / received_total };
        if fraction > 0.0 { Self::Ratio(share / fraction) } else { Self::Starved { share } }
    }

    /// A number that grows with urgency: bits of floats ≥ 0 are in their order.
    pub(super) fn urgency(self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Ratio(ratio) => ratio.to_bits(),
            Self::Starved { share } => share.to_bits() | 1 << 63,
            // A share is at most 1, so the second bit distinguishes the two.
            Self::Overdue { allotted } => allotted.to_bits() >> 1 | 3 << 62,
        }
    }

    /// The more urgent first.
    pub fn descending(self, other: Self) -> Ordering {
        other.urgency().cmp(&self.urgency())
    }
}

/// The larger first; −0 equals 0.
pub(super) fn descending(one: f64, other: f64) -> Ordering {
    (other + 0.0).total_cmp(&(one + 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overdue_jobs_outrank_starved_ones_those_every_ratio_and_nothing_is_last() {
        let mut all = [
            Priority::of(0.0, 1.0, 2.0),
            Priority::of(0.5, 1.0, 1e12),
            Priority::of(0.25, 0.0, 10.0),
            Priority::of(0.5, 0.0, 10.0),
            Priority::of(0.5, 5.0, 10.0),
            Priority::of(0.1, 0.0, 0.0),
            Priority::Starved { share: 1.0 },
            Priority::Overdue { allotted: 0.5 },
            Priority::Overdue { allotted: 900.0 },
        ];
        all.sort_by(|one, other| one.descending(*other));
        let expected = [
            Priority::Overdue { allotted: 900.0 },
            Priority::Overdue { allotted: 0.5 },
            Priority::Starved { share: 1.0 },
            Priority::Starved { share: 0.5 },
            Priority::Starved { share: 0.25 },
            Priority::Starved { share: 0.1 },
            Priority::Ratio(5e11),
            Priority::Ratio(1.0),
            Priority::Nothing,
        ];
        assert_eq!(all, expected);
    }
}
