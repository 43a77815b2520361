//! How much of a sweep is left, by what its runs took so far.

use std::collections::BTreeMap;

/// Runs of one policy.
#[derive(Clone, Copy, Debug, Default)]
struct Runs {
    n_left: u64,
    n_done: u64,
    /// Wall time of those that are done.
    seconds: f64,
}

/// What runs of each policy took: it differs by orders of magnitude, and least by anything else.
#[derive(Clone, Debug, Default)]
pub(super) struct Left {
    by_policy: BTreeMap<String, Runs>,
}

impl Left {
    /// A run of a policy is to be made.
    pub(super) fn add(&mut self, policy: &str) {
        self.by_policy.entry(policy.to_owned()).or_default().n_left += 1;
    }

    /// A run of a policy is done, and took so many seconds.
    pub(super) fn finish(&mut self, policy: &str, seconds: f64) {
        let runs = self.by_policy.entry(policy.to_owned()).or_default();
        runs.n_left = runs.n_left.saturating_sub(1);
        runs.n_done += 1;
        runs.seconds += seconds;
    }

    /// What is left, in parts of what is done, by time: runs are taken to last as long as those of their policy that
    /// are done, on average, or as all that are done if none of their policy is. Nothing before the first is done.
    pub(super) fn in_parts_of_done(&self) -> Option<f64> {
        let n_done: u64 = self.by_policy.values().map(|runs| runs.n_done).sum();
        let seconds: f64 = self.by_policy.values().map(|runs| runs.seconds).sum();
        if n_done == 0 || seconds <= 0.0 {
            return None;
        }
        let lasts = |runs: &Runs| match runs.n_done {
            0 => seconds / n_done as f64,
            n => runs.seconds / n as f64,
        };
        let left: f64 = self.by_policy.values().map(|runs| runs.n_left as f64 * lasts(runs)).sum();
        Some(left / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_taken_to_last_as_long_as_those_of_their_policy() {
        let mut left = Left::default();
        for policy in ["quick", "quick", "slow", "slow", "slow", "unknown"] {
            left.add(policy);
        }
        assert_eq!(left.in_parts_of_done(), None);
        left.finish("quick", 1.0);
        // One second is done; five runs of as long are left, for all that is known.
        assert_eq!(left.in_parts_of_done(), Some(5.0));
        left.finish("slow", 9.0);
        // Ten seconds are done: 1 of quick, 2 · 9 of slow and the mean, 5, are left.
        assert_eq!(left.in_parts_of_done(), Some(2.4));
    }
}
