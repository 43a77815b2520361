//! Why there is no bound.

use thiserror::Error;

use apportion::catalog::CatalogError;
use apportion::policy::PolicyError;
use apportion::problem::ProblemError;
use apportion::throughput::ThroughputsError;

/// Why there is no bound.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BoundError {
    /// There are no jobs to bound the completion times of.
    #[error("there are no jobs")]
    NoJobs,
    /// A job without steps, or with a number of them that is not finite.
    #[error("job {job}: {steps} steps, expected a finite number above 0")]
    Steps {
        /// The position of the job.
        job: usize,
        /// The steps of the job.
        steps: f64,
    },
    /// The jobs, the cluster and the throughputs do not fit together.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// The throughputs are not finite once they are as large as they can be.
    #[error(transparent)]
    Throughputs(#[from] ThroughputsError),
    /// The program that bounds it is not one of the engine's.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// Nothing is proven of an allocation.
    #[error("no certificate says what no allocation of an instant can beat")]
    Uncertified,
    /// An allocation could not be computed.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}
