//! Studies with the engine: many simulations, their results, and pages about them.
//!
//! - [`sweep`]: a grid of runs on all cores, with results that survive a kill.
//! - [`benchmark`]: the cost of decisions, by policy, backend and size.
//! - [`forecast`]: the start and end of a job of a trace, by forks of a simulation.
//! - [`bound`]: a bound that no schedule of a trace is below, not even one that knows the future.
//! - [`check`]: decisions on random instances, judged by separate arithmetic.
//! - [`report`]: tables, JSON, CSV, SVG and HTML pages; it formats and never computes.

// Modules are declared in import order: each may mention only those above it.

pub mod file;
pub mod report;
pub mod benchmark;
pub mod check;
pub mod bound;
pub mod sweep;
pub mod forecast;
