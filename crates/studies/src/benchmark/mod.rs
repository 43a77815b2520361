//! Benchmarks of solving: instances, one measured decision, and a partitioned baseline.
//!
//! In: a policy's name, an instance, a backend. Out: a [`Row`] with the times of the decision and its certified quality.
//! Nothing here starts processes or reads files; the command runs each case in a process of its own, so that memory and
//! processor time are the case's.
//!
//! # Results
//!
//! `apportion bench --format json` writes one object, stable from release to release (fields are added, never
//! changed):
//!
//! ```json
//! {
//!   "format": "apportion/bench-v1",
//!   "version": "0.1.0",
//!   "command": "apportion bench --policy …", "made_on": "2026-07-31",
//!   "system": {"os": "linux", "architecture": "x86_64", "cores": 2, "processor": "AMD EPYC 7B13"},
//!   "limit_seconds": 3.0,
//!   "rows": [
//!     {"policy": "max_min_fairness_perf", "instance": "osdi20", "n_jobs": 2048, "n_types": 3, "seed": 0,
//!      "backend": "default", "partitions": 1, "status": "done", "message": null,
//!      "sense": "maximize", "objective": 0.731, "bound": 0.731, "gap_relative": 0.0, "violation_max": 0.0,
//!      "optimal": true, "loss_relative": null,
//!      "seconds": {"build": 0.001, "solve": 0.002, "certify": 0.0001, "expand": 0.001, "total": 0.0041,
//!                  "processor": 0.0041},
//!      "repeats": 25, "warm_ups": 1, "processor_min_seconds": 0.0039, "processor_max_seconds": 0.0052,
//!      "clock_min_seconds": 0.0039, "clock_max_seconds": 0.0061,
//!      "iterations": 120, "solves": 2, "fallbacks": 0,
//!      "strategy": "written", "backend_used": "highs-simplex",
//!      "n_classes": 83, "n_columns": 250, "n_rows": 169, "n_terms": 900,
//!      "memory_before_bytes": 9000000, "memory_peak_bytes": 12000000,
//!      "changes": null, "change_p50_seconds": null, "change_p99_seconds": null,
//!      "cut_by": null}
//!   ]
//! }
//! ```
//!
//! The documents that `--export` writes are described in [`programs`]. CSV has the same columns, with `seconds.build` as
//! `seconds_build`; values that a case did not get to are empty there. The fields are explained at [`Results`] and [`Row`].

pub mod changes;
pub mod instance;
pub mod measure;
pub mod partition;
pub mod programs;
pub mod results;

pub use changes::{Changes, ChangesError, changes};
pub use instance::{Instance, InstanceError};
pub use measure::{Case, measure, measure_changes};
pub use partition::{Part, PartitionError, Partitioned, split};
pub use results::{FORMAT, Results, Row, Seconds, Status};
