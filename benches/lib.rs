//! Benchmarks by criterion: `cargo bench -p apportion-benches`. A package of its own, so that tests compile no criterion.
//! Here is what the measurements of the live scheduler share.

#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "benchmarks of known inputs")]

pub mod pretend;
pub mod served;
pub mod usage;
