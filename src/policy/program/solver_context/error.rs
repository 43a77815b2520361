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
    /// A program without columns, or an objective that lacks the levels which its method needs.
    #[error("there is nothing to decide")]
    Empty,
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
