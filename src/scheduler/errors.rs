//! The errors of a scheduler's setup, of submissions and of reports.

use thiserror::Error;

use super::options::OptionError;
use crate::index::{EntityId, JobId, WorkerId, WorkerTypeId};
use crate::problem::ProblemError;
use crate::workload::SizesError;

/// Why a scheduler is not made.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum SetupError {
    /// An option out of its range.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// A cluster that does not fit the throughputs.
    #[error(transparent)]
    Cluster(#[from] ProblemError),
    /// A cluster on which the policy, which decides inside rounds, cannot place jobs.
    #[error("the policy `{policy}` cannot place jobs on the cluster `{cluster}`: {reason}")]
    CannotPlace {
        /// The policy.
        policy: String,
        /// The cluster, as it is written on command lines.
        cluster: String,
        /// The policy's own reason.
        reason: String,
    },
}

/// Why a job is refused; active jobs are not affected.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// A job type that the throughputs do not have at this scale factor, for a job without throughputs of its own.
    #[error("no throughputs for `{job_type}` at scale factor {scale_factor} in `{throughputs}`")]
    NoThroughput {
        /// The job type.
        job_type: String,
        /// The scale factor.
        scale_factor: u32,
        /// The name of the throughputs.
        throughputs: String,
    },
    /// No worker type on which it has a throughput has as many workers, up or down.
    #[error("the job can run on no worker type of the cluster `{cluster}` at scale factor {scale_factor}")]
    FitsNowhere {
        /// The scale factor.
        scale_factor: u32,
        /// The cluster, as it is written on command lines.
        cluster: String,
    },
    /// Sizes that are invalid.
    #[error(transparent)]
    Sizes(SizesError),
    /// A number out of its range.
    #[error("{field} is {value}, expected {expected}")]
    Value {
        /// The field.
        field: &'static str,
        /// The value that was given.
        value: f64,
        /// The values that are allowed, in words.
        expected: &'static str,
    },
    /// A name that an active job has.
    #[error("job {id} is called `{name}` already")]
    NameTaken {
        /// The name.
        name: String,
        /// The job that has it.
        id: JobId,
    },
    /// The policy decides inside rounds, and could never place this job.
    #[error("the policy `{policy}` could place it on no workers of the cluster: {reason}")]
    CannotPlace {
        /// The policy.
        policy: String,
        /// The policy's own reason.
        reason: String,
    },
    /// Another error of the problem.
    #[error(transparent)]
    Other(ProblemError),
}

/// Why a report is refused: nothing has changed.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ReportError {
    /// A job that was never submitted.
    #[error("there never was a job {id}")]
    UnknownJob {
        /// The job.
        id: JobId,
    },
    /// A worker type that the cluster does not have.
    #[error("the cluster has no worker type {worker_type}")]
    UnknownType {
        /// The worker type.
        worker_type: WorkerTypeId,
    },
    /// A worker type on which the job has no throughput.
    #[error("job {id} has no throughput on worker type {worker_type}")]
    CannotRun {
        /// The job.
        id: JobId,
        /// The worker type.
        worker_type: WorkerTypeId,
    },
    /// A worker that the cluster does not have.
    #[error("the cluster has no worker {worker}")]
    UnknownWorker {
        /// The worker.
        worker: WorkerId,
    },
    /// An owner's owner that does not exist, or that it owns itself.
    #[error("entity {parent} cannot be above it")]
    UnknownEntity {
        /// The owner's owner.
        parent: EntityId,
    },
    /// A number out of its range.
    #[error("{field} is {value}, expected a finite number, at least 0 (a weight or a speed: above 0)")]
    Value {
        /// The field.
        field: &'static str,
        /// The value that was given.
        value: f64,
    },
}
