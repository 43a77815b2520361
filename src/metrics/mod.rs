//! What a simulation amounted to: folds over its events, nothing else.
//!
//! In: [`Event`](crate::simulator::Event)s, through [`Recorder`]. Out: a [`Summary`], which is the JSON that
//! `simulate` writes. Each number has one fold: [`completion`], [`fairness`], [`utilization`], [`slo`].

pub mod cdf;
pub mod completion;
pub mod fairness;
pub mod log;
mod recorder;
pub mod slo;
pub mod statistics;
mod summary;
pub mod timeline;
pub mod utilization;

pub use completion::{Completions, JobRecord};
pub use fairness::Fairness;
pub use recorder::Recorder;
pub use summary::{Distribution, Summary, WeightClass};
