//! Prices at which searches ended, from which the next searches start.

use super::SolverContext;
use crate::decomposition::WarmPrices;
use crate::program::Goal;

impl SolverContext {
    /// Begins each search with the prices at which the last one of its kind ended, from now on; the first with none.
    pub(in crate::policy::program) fn start_warm(&mut self) {
        self.warm = Some(<[WarmPrices; 3]>::default());
    }

    /// Whether searches begin with prices of the last decision.
    pub(in crate::policy::program) fn starts_warm(&self) -> bool {
        self.warm.is_some()
    }

    /// Takes the prices with which a search for this goal begins; they are lost if the search fails.
    pub(in crate::policy::program) fn take_warm(&mut self, goal: Goal<'_>) -> WarmPrices {
        self.warm.as_mut().map(|warm| std::mem::take(&mut warm[position(goal)])).unwrap_or_default()
    }

    /// Keeps the prices at which a search ended for the next one of its kind, where searches start warm.
    pub(in crate::policy::program) fn keep_warm(&mut self, goal: Goal<'_>, prices: WarmPrices) {
        if let Some(warm) = &mut self.warm {
            warm[position(goal)] = prices;
        }
    }
}

/// The position of a goal's prices among those of all goals: a level, a linear sum, logarithms.
fn position(goal: Goal<'_>) -> usize {
    match goal {
        Goal::Level | Goal::Above { .. } => 0,
        Goal::Worth { .. } => 1,
        Goal::Logarithms(_) => 2,
    }
}
