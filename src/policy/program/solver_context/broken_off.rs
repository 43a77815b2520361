//! Decisions that are broken off from outside.

use super::{SolverContext, SolvingError};
use crate::solver::{Interrupt, SolveError, Termination};

impl SolverContext {
    /// Sets the interrupt that breaks off decisions.
    pub(in crate::policy::program) fn with_interrupt(self, interrupt: Interrupt) -> Self {
        Self { interrupt, ..self }
    }

    /// Checks that the decision is not broken off and has time left.
    pub(in crate::policy::program) fn check_time(&self) -> Result<(), SolvingError> {
        self.check_interrupt()?;
        if self.limits().time.is_some_and(|time| time.is_zero()) {
            let attempts = "the time limit of the decision is reached".to_owned();
            return Err(SolveError::NotOptimal { attempts, termination: Termination::TimeLimit }.into());
        }
        Ok(())
    }

    /// Checks that the decision is not broken off.
    pub(in crate::policy::program) fn check_interrupt(&self) -> Result<(), SolvingError> {
        if !self.limits.interrupt.is_raised() {
            return Ok(());
        }
        let is_late = self.limits.interrupt.left().is_some_and(|left| left.is_zero());
        let attempts =
            if is_late { "the time for the decision is over" } else { "the decision was broken off" };
        let attempts = attempts.to_owned();
        Err(SolveError::NotOptimal { attempts, termination: Termination::Interrupted }.into())
    }
}
