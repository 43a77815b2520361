//! The numbers of a simulation: folds over its events, and over nothing else.
//!
//! In: [`Event`](crate::simulator::Event)s, through [`Recorder`]. Out: a [`Summary`], which is the JSON that `simulate` writes.
//! Each number has one fold: [`completion`], [`fairness`], [`utilization`], [`slo`]; numbers with a name, a unit and a column are
//! entries of [`table`], or of [`job_table`] if jobs have them.

pub mod cdf;
pub mod service;
pub mod completion;
pub mod fairness;
pub mod log;
pub mod owners;
mod recorder;
pub mod slo;
pub mod statistics;
mod summary;
pub mod table;
pub mod job_table;
pub mod timeline;
pub mod utilization;

pub use completion::{Completions, JobRecord};
pub use fairness::Fairness;
pub use job_table::{JOB_COLUMNS, JobColumn, JobNumbers, JobValue, SERVICE_COLUMNS, job_columns};
pub use recorder::Recorder;
pub use service::Service;
pub use summary::{Distribution, Summary, WeightClass};
pub use table::{METRICS, Metric};
