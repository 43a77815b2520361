//! Benchmarks by criterion: `cargo bench -p apportion-benches`. They are a package of their own, so that tests compile no
//! criterion. This library is shared by the measurements of the live scheduler.

#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "benchmarks of known inputs")]

pub mod pretend;
pub mod served;
pub mod usage;
