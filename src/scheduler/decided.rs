//! The outcome of asking the policy at a round, and the reasons for which it gave no decision.

use thiserror::Error;

use crate::policy::PolicyError;
use crate::problem::ProblemError;
use crate::units::Seconds;

/// The outcome of asking the policy at the start of a round. In every case the round has leases, by the last allocation that was
/// adopted.
#[derive(Clone, Debug, PartialEq)]
pub enum Decided {
    /// The policy was not asked: no change, or the last reset was too short a time ago.
    Unchanged,
    /// A decision was adopted.
    Fresh {
        /// Start of the round at which the policy was asked: this one, or an earlier one if the answer came late.
        asked: Seconds,
    },
    /// The policy has been asked and has not answered within its time. The last allocation stays in force without the jobs that are
    /// gone; jobs that came after it get workers that would idle. The answer is adopted at a later round.
    Late {
        /// Start of the round at which the policy was asked.
        since: Seconds,
    },
    /// The policy gave no decision. The last allocation stays in force, as if it were late, and the policy is asked again at the
    /// next round.
    Failed {
        /// The reason.
        error: DecisionError,
    },
}

/// Why there is no decision.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum DecisionError {
    /// The problem could not be stated.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// The policy failed. Jobs in it are by the indices of their ids, not by position.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A policy that decides inside rounds does not come to an end.
    #[error("the policy made {decisions} decisions in round {round} without ending it")]
    Livelock {
        /// The number of decisions.
        decisions: usize,
        /// The number of the round.
        round: u64,
    },
}

/// Why a saved state was not taken back.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The policy's part does not fit.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The mechanism's part does not fit, or the placements of a policy that decides inside rounds.
    #[error("the saved rounds do not fit: {reason}")]
    Mechanism {
        /// The reason.
        reason: String,
    },
    /// The scheduler's part does not fit: jobs, names and owners.
    #[error("the saved scheduler does not fit: {reason}")]
    Scheduler {
        /// The reason.
        reason: String,
    },
    /// A job that does not fit the cluster or the throughputs.
    #[error(transparent)]
    Problem(#[from] ProblemError),
}
