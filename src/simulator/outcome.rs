//! How a simulation ends, and when to stop it before.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::index::JobId;
use crate::policy::PolicyError;
use crate::problem::ProblemError;
use crate::scheduler::{DecisionError, OptionError, RestoreError};
use crate::throughput::estimator::EstimatorError;
use crate::units::Seconds;

/// Why a simulation cannot go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SimulationError {
    /// A job, or the cluster, does not fit the throughputs.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// The policy gave no decision.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// Throughputs cannot be estimated so.
    #[error(transparent)]
    Estimator(#[from] EstimatorError),
    /// An option out of its range.
    #[error("{field} is {value}, expected {expected}")]
    Option {
        /// The field.
        field: &'static str,
        /// What it is.
        value: String,
        /// What it ought to be.
        expected: &'static str,
    },
    /// A source whose jobs go back in time.
    #[error("job {job} arrives at {arrival}, before the one before it")]
    OutOfOrder {
        /// Which job.
        job: JobId,
        /// Its arrival.
        arrival: Seconds,
    },
    /// A round policy that does not come to an end.
    #[error("the policy made {decisions} decisions in round {round} without ending it")]
    Livelock {
        /// How many.
        decisions: usize,
        /// In which round.
        round: u64,
    },
    /// A checkpoint of something else.
    #[error("the checkpoint does not fit this simulation: {reason}")]
    Checkpoint {
        /// In which respect.
        reason: String,
    },
}

impl From<DecisionError> for SimulationError {
    fn from(error: DecisionError) -> Self {
        match error {
            DecisionError::Problem(error) => Self::Problem(error),
            DecisionError::Policy(error) => Self::Policy(error),
        }
    }
}

impl From<RestoreError> for SimulationError {
    fn from(error: RestoreError) -> Self {
        match error {
            RestoreError::Policy(error) => Self::Policy(error),
            RestoreError::Mechanism { reason } => Self::Checkpoint { reason },
        }
    }
}

impl From<OptionError> for SimulationError {
    fn from(OptionError { field, value, expected }: OptionError) -> Self {
        Self::Option { field, value, expected }
    }
}

/// When to stop before the end; nothing by default.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Simulated time.
    pub time: Option<Seconds>,
    /// Active jobs: a cluster that cannot keep up has ever more of them.
    pub active_jobs: Option<usize>,
    /// Rounds of this call.
    pub rounds: Option<u64>,
    /// Set to true, it ends the run.
    pub interrupt: Option<Arc<AtomicBool>>,
}

/// How [`Simulation::run`](super::Simulation::run) ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All measured jobs are done.
    Finished,
    /// The limit on simulated time was reached.
    TimeLimit,
    /// The limit on active jobs was reached.
    ActiveLimit,
    /// The limit on rounds was reached.
    RoundLimit,
    /// The interrupt was set.
    Interrupted,
    /// Jobs are waiting, nothing runs, and nothing will ever change.
    Stalled,
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A round was started, or the clock was moved on.
    Advanced,
    /// All measured jobs are done.
    Finished,
    /// Nothing can ever happen again.
    Stalled,
}
