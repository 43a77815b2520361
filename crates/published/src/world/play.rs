//! Summaries of episodes that play a world to its end, and errors of episodes that do not.

use apportion::cluster::ClusterError;
use apportion::policy::PolicyError;
use apportion::problem::ProblemError;
use apportion_learn::environment::Status;
use apportion_learn::vectorized::{Finished, PlayError as EpisodeError};
use thiserror::Error;

use super::run::WorldError;
use super::state::World;
use super::summary::Summary;

/// Why a workload cannot be played to its end.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum PlayError {
    /// The actor or the environment breaks its contract.
    #[error(transparent)]
    Episode(#[from] EpisodeError),
    /// A limit was hit before all jobs were done.
    #[error(transparent)]
    World(#[from] WorldError),
    /// A policy that allocates time has no answer.
    #[error(transparent)]
    Allocated(#[from] AllocatedError),
}

/// Why a policy that allocates time has no answer in a world.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum AllocatedError {
    /// The policy failed.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The world makes no valid problem.
    #[error("the world is no problem for a policy: {0}")]
    Problem(#[from] ProblemError),
    /// The world's servers make no valid cluster.
    #[error("the servers are no cluster for a policy: {0}")]
    Cluster(#[from] ClusterError),
}

/// The summary of a world whose episode has ended.
///
/// # Errors
/// If jobs are left over at the step limit.
pub(crate) fn summary_of(played: Finished, world: &World) -> Result<Summary, PlayError> {
    if played.status == Status::Terminated {
        return Ok(world.summary());
    }
    let (n_done, n_jobs) = (world.n_done(), world.n_jobs());
    Err(WorldError::Decisions { n_done, n_jobs, decisions_max: played.n_steps as u64 }.into())
}
