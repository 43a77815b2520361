//! The throughput of each job type: alone or co-located, per worker type, on one server or spread over several.
//!
//! In: measurements, read by [`spec`](crate::spec). Out: [`Throughputs`], a dense matrix that every problem borrows. It does not
//! know jobs and clusters: rows are job types at scale factors.

pub mod contention;
pub mod elastic;
pub mod estimator;
pub mod matrix;
pub mod server_speeds;
pub mod spread;

pub use contention::{Contention, ContentionModel};
pub use estimator::{Estimator, Profiling};
pub use matrix::{Measured, RowKey, Throughputs, ThroughputsError};
