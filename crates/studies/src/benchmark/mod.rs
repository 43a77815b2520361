//! Benchmarks of solving: instances, one measured decision, and a partitioned baseline.
//!
//! In: a policy's name, an instance, a backend. Out: a [`Row`] of what the decision took and how good it provably
//! is. Nothing here starts processes or reads files; the command runs each case in a process of its own, so that
//! memory and processor time are the case's.
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
//! What `--export` writes besides is described in [`programs`]. CSV has the same columns, `seconds.build` as `seconds_build`. What a case did not get to is null, or empty.
//!
//! | field | unit, meaning |
//! |---|---|
//! | `instance` | `osdi20` (jobs drawn as published), `osdi20-distinct` (no two alike), `random-…`, `restricted-…`, or a snapshot's path |
//! | `backend` | as asked for; `default` is the chain that users get, `rule` a policy that solves nothing |
//! | `partitions` | 1 is the whole problem; K > 1 splits it at random into K that are solved apart |
//! | `status` | `done`; `declined`: the backend does not take this program, or the problem cannot be split so; `failed`: no certified optimum; `unproven`: an answer of a backend that never gives dual values, which nothing proves; `limit`: out of time; `memory`: out of memory; `skipped`: a smaller instance was out of either; `error` |
//! | `seconds` | of the decision in the middle of `repeats` by its cost (of two in the middle, the quicker): time by the clock, by part and in all, and its processor time, which is its cost where the system tells it |
//! | `warm_ups` | decisions before those that count: 1, or 0 where there was time for the first alone, which then counts |
//! | `processor_…_seconds`, `clock_…_seconds` | the least and the most of all `repeats`, each for itself |
//! | `system.processor` | the processor's model, `unknown` where the system does not tell it |
//! | `gap_relative`, `violation_max` | of the certificate that is recomputed from the program |
//! | `loss_relative` | of a partitioned decision: how far its value is from the whole problem's optimum |
//! | `strategy` | the strategy that found the optimum: `singles`, `kinds`, `pairs` or `written`; null for rules |
//! | `backend_used` | the backend that solved the program of the optimum, or the last program where none was written for the optimum; null where none was written at all |
//! | `n_…` | of the largest program solved, after grouping |
//! | `changes`, `change_p…_seconds` | arrivals and departures that were decided on one by one in a session, and the processor time of one, from the change to the certified decision: the median, and what 99 % stay within. A session keeps prices of worker types; written programs, those of a named backend too, are solved from scratch |
//! | `cut_by` | what ended the repeats of a case that is done before their number: the limit of time, that of memory, or an error; null if nothing did |
//! | `message` | why a case is not done, how many of its repeats were made, or why changes after it were not measured |
//! | `memory_…_bytes` | resident memory before the first decision, instance included, and the most until the end |

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
