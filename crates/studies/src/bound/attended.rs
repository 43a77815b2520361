//! What may break a search off, and what is told of it.

use std::fmt;

use apportion::solver::Interrupt;
use apportion::units::Seconds;

/// What breaks a search off, and what is told of each of its steps.
#[derive(Clone, Default)]
pub struct Attended<'a> {
    /// Raised, the search ends with the best bound so far.
    pub interrupt: Interrupt,
    /// Called after each step with the bound so far.
    pub stepped: Option<&'a (dyn Fn(Seconds) + Sync)>,
}

impl fmt::Debug for Attended<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attended").field("interrupt", &self.interrupt).finish_non_exhaustive()
    }
}
