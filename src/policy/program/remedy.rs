//! The remedy of constraints that contradict one another: one of them that, marked `droppable: true`, leaves a decision.

use std::collections::BTreeSet;

use crate::policy::decision::PolicyError;
use crate::policy::program::policy::ProgramPolicy;
use crate::problem::Problem;
use crate::solver::timing::Stopwatch;

/// The most constraints of a conflict that are tried, by a decision each.
const TRIED_MAX: usize = 4;

impl ProgramPolicy {
    /// The error with its conflicting constraints marked that can be dropped: without each of these alone, for as few jobs as
    /// possible, a decision was found. `clock` runs since the decision began, whose limit of time holds for these, too.
    pub(super) fn with_remedies(
        &self,
        mut error: PolicyError,
        problem: &Problem,
        isolated_elapsed: &[f64],
        clock: &Stopwatch,
    ) -> PolicyError {
        if let PolicyError::Conflict { conflicts, .. } = &mut error {
            let of_jobs = conflicts.iter().filter(|one| one.job.is_some() && !one.is_droppable);
            let texts: BTreeSet<String> = of_jobs.map(|one| one.constraint.clone()).collect();
            for text in texts.into_iter().take(TRIED_MAX) {
                if self.decides_without(&text, problem, isolated_elapsed, clock) {
                    let same = conflicts.iter_mut().filter(|one| one.constraint == text && one.job.is_some());
                    same.for_each(|one| one.can_be_dropped = true);
                }
            }
        }
        error
    }

    /// Whether there is a decision where the constraint of this text on every job is droppable; false if it cannot be, or if no
    /// decision was found in time.
    fn decides_without(
        &self,
        text: &str,
        problem: &Problem,
        isolated_elapsed: &[f64],
        clock: &Stopwatch,
    ) -> bool {
        let left = self.options.time_limit.map(|limit| limit.saturating_sub(clock.elapsed()));
        if left.is_some_and(|left| left.is_zero()) {
            return false;
        }
        let Some(objective) = self.options.objective.with_droppable(text) else { return false };
        let options = super::ProgramOptions { objective, time_limit: left, ..self.options.clone() };
        let Ok(mut trial) = Self::try_new(options) else { return false };
        trial.decides(problem, isolated_elapsed)
    }
}
