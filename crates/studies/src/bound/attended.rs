//! Interrupt and progress reports of a search.

use std::fmt;

use apportion::solver::Interrupt;
use apportion::units::Seconds;

/// Interrupt of a search, and the function that gets a report of each step.
#[derive(Clone, Default)]
pub struct Attended<'a> {
    /// Interrupt at which the search ends with the best bound so far.
    pub interrupt: Interrupt,
    /// Function that is called after each step with the bound so far.
    pub stepped: Option<&'a (dyn Fn(Seconds) + Sync)>,
}

impl fmt::Debug for Attended<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attended").field("interrupt", &self.interrupt).finish_non_exhaustive()
    }
}
