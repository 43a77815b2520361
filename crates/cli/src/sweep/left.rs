//! How much of a sweep is left, by what its runs took so far, where that can be told.

use std::collections::BTreeMap;

/// Runs of one policy.
#[derive(Clone, Copy, Debug, Default)]
struct Runs {
    n_left: u64,
    n_done: u64,
    /// Wall time of those that are done, and of the longest of them.
    seconds: f64,
    longest: f64,
}

/// What runs of each policy took: it differs by orders of magnitude, and least by anything else.
#[derive(Clone, Debug, Default)]
pub(super) struct Left {
    by_policy: BTreeMap<String, Runs>,
    /// Will the results of these runs add further ones, whose number is unknown until then?
    is_open: bool,
}

impl Left {
    /// Of a sweep that finds its rates while it runs, if `is_open`.
    pub(super) fn new(is_open: bool) -> Self {
        Self { by_policy: BTreeMap::new(), is_open }
    }

    /// A run of a policy is to be made.
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

    /// What is left, in parts of what is done, by time: runs are taken to last as long as those of their policy that are
    /// done, on average. `running` are the runs that go on, each with its policy and for how long. Nothing where this is
    /// no estimate: no run of a policy is done, one goes on for longer than any of its policy did, which may be for ever,
    /// or more runs follow.
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
        // Ten seconds are done: 1 of quick and 2 · 9 of slow are left.
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
