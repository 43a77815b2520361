//! The reasons for which a decision was not found.

use thiserror::Error;

use crate::policy::program::strategy::{GaveUp, Strategy};
use crate::solver::{SolveError, Termination};

/// The reason for which a decision was not found.
#[derive(Clone, Debug, Error)]
pub(in crate::policy::program) enum SolvingError {
    #[error(transparent)]
    Solve(#[from] SolveError),
    /// The strategy that was asked for does not fit the problem, or gave up on it.
    #[error("no decision by `{strategy}`: {why}")]
    Strategy { strategy: Strategy, why: GaveUp },
    /// A program without columns.
    #[error("no job has a worker type on which it may have time")]
    NoColumns,
    /// A method that raises levels, for an objective without them.
    #[error("the objective has no levels to raise")]
    NoLevels,
    /// A search for a level that ended before any level was tried.
    #[error("no level was tried")]
    NoLevelTried,
    /// A search for the droppable constraints to drop that found no choice which leaves the others feasible.
    #[error("no choice of droppable constraints to drop was found that leaves all others feasible")]
    NoChoice,
}

impl SolvingError {
    /// Whether the error is that no point satisfies the constraints.
    pub(in crate::policy::program) fn is_infeasible(&self) -> bool {
        matches!(self, Self::Solve(SolveError::NotOptimal { termination: Termination::Infeasible, .. }))
    }

    /// Whether it can be that no point satisfies the constraints: it is proven, or backends ended without an answer.
    pub(in crate::policy::program) fn may_be_infeasible(&self) -> bool {
        let Self::Solve(SolveError::NotOptimal { termination, .. }) = self else { return false };
        !matches!(termination, Termination::Unbounded | Termination::TimeLimit | Termination::Interrupted)
    }

    /// Whether no backend found a certified optimum of a program. False where the decision was interrupted.
    pub(in crate::policy::program) fn is_unsolved(&self) -> bool {
        matches!(self, Self::Solve(SolveError::NotOptimal { termination, .. }) if *termination != Termination::Interrupted)
    }
}
