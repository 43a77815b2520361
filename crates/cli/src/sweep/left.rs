//! An estimate of the remaining part of a sweep, from the wall time of its runs so far.

use std::collections::BTreeMap;

/// Runs of one policy.
#[derive(Clone, Copy, Debug, Default)]
struct Runs {
    n_left: u64,
    n_done: u64,
    /// The wall time of the finished runs and of the longest of them, in s.
    seconds: f64,
    longest: f64,
}

/// The runs of each policy: their wall time differs by orders of magnitude between policies, and less by anything else.
#[derive(Clone, Debug, Default)]
pub(super) struct Left {
    by_policy: BTreeMap<String, Runs>,
    /// Whether further runs may follow from the results of these, as on an axis that searches for its points.
    is_open: bool,
}

impl Left {
    /// An estimate without runs. `is_open` if the sweep finds its rates while it runs.
    pub(super) fn new(is_open: bool) -> Self {
        Self { by_policy: BTreeMap::new(), is_open }
    }

    /// Adds a run of a policy that is to be made.
    pub(super) fn add(&mut self, policy: &str) {
        self.by_policy.entry(policy.to_owned()).or_default().n_left += 1;
    }

    /// Notes that a run of a policy has ended, and its wall time in s; none if nothing was simulated, as at rates that are
    /// known to be saturated: such a run does not count in estimates.
    pub(super) fn finish(&mut self, policy: &str, seconds: Option<f64>) {
        let runs = self.by_policy.entry(policy.to_owned()).or_default();
        runs.n_left = runs.n_left.saturating_sub(1);
        if let Some(seconds) = seconds {
            runs.n_done += 1;
            runs.seconds += seconds;
            runs.longest = runs.longest.max(seconds);
        }
    }

    /// The remaining part, as a ratio to the finished part, by time: runs are assumed to last as long as the finished ones of their
    /// policy, on average. `running` are the runs in progress, each with its policy and its time so far in s. None if there is no
    /// estimate: no run of a policy is finished, one in progress is longer than any of its policy, which may be for ever, or more
    /// runs follow.
    pub(super) fn in_parts_of_done<'a>(&self, running: impl Iterator<Item = (&'a str, f64)>) -> Option<f64> {
        let seconds: f64 = self.by_policy.values().map(|runs| runs.seconds).sum();
        if self.is_open || seconds <= 0.0 {
            return None;
        }
        for (policy, gone) in running {
            self.by_policy.get(policy).filter(|runs| gone <= runs.longest)?;
        }
        let mut left = 0.0;
        for runs in self.by_policy.values().filter(|runs| runs.n_left > 0) {
            if runs.n_done == 0 {
                return None;
            }
            left += runs.n_left as f64 * runs.seconds / runs.n_done as f64;
        }
        Some(left / seconds)
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;

    #[test]
    fn runs_are_taken_to_last_as_long_as_those_of_their_policy() {
        let mut left = Left::new(false);
        for policy in ["quick", "quick", "slow", "slow", "slow"] {
            left.add(policy);
        }
        assert_eq!(left.in_parts_of_done(iter::empty()), None);
        left.finish("quick", Some(1.0));
        assert_eq!(left.in_parts_of_done(iter::empty()), None, "nothing is known of the slow ones");
        left.finish("slow", Some(9.0));
        // Ten seconds are done: 1 s of quick and 2 · 9 s of slow are left.
        assert_eq!(left.in_parts_of_done(iter::empty()), Some(1.9));
    }

    #[test]
    fn a_run_that_goes_on_and_on_leaves_no_estimate() {
        let mut left = Left::new(false);
        for _ in 0..3 {
            left.add("p");
        }
        left.finish("p", Some(2.0));
        assert_eq!(left.in_parts_of_done([("p", 1.5), ("p", 0.1)].into_iter()), Some(2.0));
        assert_eq!(left.in_parts_of_done([("p", 2.5)].into_iter()), None);
        left.finish("p", None);
        assert_eq!(left.in_parts_of_done(iter::empty()), Some(1.0), "what was not simulated took no time");
    }

    #[test]
    fn runs_that_may_follow_leave_no_estimate() {
        let mut left = Left::new(true);
        left.add("p");
        left.finish("p", Some(2.0));
        assert_eq!(left.in_parts_of_done(iter::empty()), None);
    }
}
