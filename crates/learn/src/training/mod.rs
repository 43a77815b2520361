//! Training: networks with gradients by candle, and the algorithms that improve them.
//!
//! A [`Model`](model::Model) is the networks of a team, made of [`linear`] layers and [`distribution`]s and changed
//! by [`adam`]. A [`Learner`](learner::Learner) improves a model: by [`ppo`], from the decisions that a [`rollout`]
//! recorded, for one agent or a team with one critic; by [`actor_critic`], from a [`replay`] of single decisions, with
//! an [`exploration`] that may replace drawn actions; or by [`evolution`], without gradients. [`cloning`] warms a
//! model up by a teacher's examples. [`run`] takes a learner to the end of its budget, with validations on the way.

pub mod linear;
pub mod model;
pub mod adam;
pub mod distribution;
pub mod rollout;
mod baseline;
pub mod learner;
pub mod schedule;
pub mod ppo;
pub mod replay;
pub mod exploration;
mod sample;
pub mod actor_critic;
pub mod cloning;
pub mod evolution;
pub mod warm_up;
pub mod run;

use std::fmt;

use thiserror::Error;

use crate::network::NetworkError;
use crate::tensors::TensorsError;
use crate::vectorized::LaneError;

/// Why a training did not go on.
#[derive(Debug, Error)]
pub enum TrainingError {
    /// The library for tensors failed.
    #[error("arithmetic of tensors failed: {0}")]
    Arithmetic(#[from] candle_core::Error),
    /// The environment broke its contract, or is another than the checkpoint's.
    #[error(transparent)]
    Environment(#[from] LaneError),
    /// A tensor is missing or damaged.
    #[error(transparent)]
    Tensors(#[from] TensorsError),
    /// The tensors make no network.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The checkpoint is of another training.
    #[error("the checkpoint does not fit: {reason}")]
    Checkpoint {
        /// Why the checkpoint does not fit, in words.
        reason: String,
    },
    /// The training cannot begin with the weights that it names.
    #[error("{reason}")]
    Beginning {
        /// Why the weights do not do, in words.
        reason: String,
        /// A remedy, in words.
        help: String,
    },
    /// An option is out of its range.
    #[error("`{field}` is {value}, expected {expected}")]
    Option {
        /// The name of the option.
        field: &'static str,
        /// The value of the option.
        value: String,
        /// The values that are allowed, in words.
        expected: &'static str,
    },
    /// An episode cannot be played.
    #[error("an episode cannot be played: {reason}")]
    Play {
        /// Why it cannot be played, in words.
        reason: String,
    },
    /// The user asked the training to stop.
    #[error("the training was asked to stop")]
    Stopped,
    /// Numbers are no longer finite.
    #[error("the training has diverged: {what} is not finite; a lower learning rate may help")]
    Diverged {
        /// The quantity that is not finite.
        what: &'static str,
    },
}

/// Checks that an option is within its range.
///
/// # Errors
/// If it is not `fine`.
pub fn within(
    fine: bool,
    field: &'static str,
    value: impl fmt::Display,
    expected: &'static str,
) -> Result<(), TrainingError> {
    if fine { Ok(()) } else { Err(TrainingError::Option { field, value: value.to_string(), expected }) }
}
