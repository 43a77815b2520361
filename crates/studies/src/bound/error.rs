//! Reasons why there is no bound.

use thiserror::Error;

use apportion::catalog::CatalogError;
use apportion::policy::PolicyError;
use apportion::problem::ProblemError;
use apportion::throughput::ThroughputsError;

/// Reason why there is no bound.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BoundError {
    /// There are no jobs.
    #[error("there are no jobs")]
    NoJobs,
    /// A job has no steps, or a number of them that is not finite.
    #[error("job {job}: {steps} steps, expected a finite number above 0")]
    Steps {
        /// Position of the job.
        job: usize,
        /// Steps of the job.
        steps: f64,
    },
    /// Jobs, cluster and throughputs do not fit together.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// The throughputs are not finite once raised to their upper bounds.
    #[error(transparent)]
    Throughputs(#[from] ThroughputsError),
    /// The policy of the bounding program is invalid.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// An allocation has no certificate.
    #[error("no certificate says what no allocation of an instant can beat")]
    Uncertified,
    /// An allocation could not be computed.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}
