//! The reasons why a search by prices ends without an optimum.

use std::fmt;

/// The reason why a search by prices has no optimum to give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsolved {
    /// There are more worker types than code is compiled for or, for logarithms, than prices are fast for.
    TooManyTypes,
    /// A class with a demand cannot rise above its base at all, or no class limits the level.
    NoLevel,
    /// A class cannot reach the level that is held.
    Unreachable,
    /// A class runs on no worker type.
    RunsNowhere,
    /// No class has a droppable constraint.
    NothingDroppable,
    /// A weight of a logarithm is not positive, or the weights add up to infinity.
    Weights,
    /// Rounding or degeneracy keeps the restricted master from an optimum.
    RestrictedMaster,
    /// The second derivatives of the dual of Nash welfare are singular.
    Singular,
    /// Passes, steps or evaluations ran out before prices converged.
    NotConverged,
    /// The time limit passed, or the interrupt was raised.
    OutOfTime,
}

impl fmt::Display for Unsolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooManyTypes => "there are too many worker types",
            Self::NoLevel => "there is no level to raise",
            Self::Unreachable => "a job cannot reach the level",
            Self::RunsNowhere => "a job runs on no worker type",
            Self::NothingDroppable => "no job has a droppable constraint",
            Self::Weights => "a weight is not positive, or weights add up to infinity",
            Self::RestrictedMaster => "the restricted master has no optimum, for rounding",
            Self::Singular => "the second derivatives at the prices are singular",
            Self::NotConverged => "prices did not converge",
            Self::OutOfTime => "time ran out",
        })
    }
}
