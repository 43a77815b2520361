#![doc = include_str!("../ARCHITECTURE.md")]

// Modules are declared in import order: each may mention only those above it.

// Quantities, identifiers and inputs.
pub mod units;
pub mod index;
pub mod cluster;
pub mod throughput;
pub mod workload;
pub mod spec;
// One decision: from a problem to an allocation.
pub mod problem;
pub mod program;
pub mod solver;
pub mod decomposition;
pub mod allocation;
pub mod policy;
// Rounds over time.
pub mod mechanism;
pub mod scheduler;
pub mod simulator;
// Statistics after the run.
pub mod metrics;
// Policies by name.
pub mod catalog;

pub use allocation::Allocation;
pub use catalog::{Catalog, CatalogError, PolicyOptions};
pub use cluster::{Cluster, ClusterError};
pub use problem::{Problem, ProblemError};
pub use throughput::Throughputs;
pub use units::{Dollars, DollarsPerWorkerHour, JobsPerHour, Seconds, Steps, StepsPerSecond, WorkerHours};
pub use workload::Job;

/// The examples of README.md, compiled and run as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct ReadmeExamples;
