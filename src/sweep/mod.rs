//! Many runs: which there are, what becomes of each, and where the results are kept.
//!
//! In: a [`SweepSpec`](crate::spec::sweep::SweepSpec). Out: a results file with one row per finished run.
//!
//! ```text
//! spec ──▶ grid ─points─▶ runner ─point─▶ (simulation) ─outcome─▶ store ─rows─▶ report
//! ```

pub mod grid;
pub mod outcome;
pub mod runner;
pub mod saturation;
pub mod store;
pub mod summary;

pub use grid::{Point, Shard};
pub use outcome::{JobRow, METRICS, Outcome, Status};
pub use runner::{Progress, Summary};
pub use store::{Row, Store, StoreError, Study};
