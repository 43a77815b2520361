//! Rounds over simulated time: the only loop over time.
//!
//! In: arrivals, a cluster, throughputs, a policy and [`Options`]. Out: [`Event`]s to an [`Observer`], and a
//! [`Checkpoint`] whenever asked. It computes no metric, prints nothing and opens no file.
//!
//! ```text
//! advance the clock → end slices → completions → arrivals, faults, prices → policy, mechanism → start slices
//! ```
//!
//! Under the options of a [live](Live) cluster rounds have an inside: the next one is decided ahead, workers become idle and get
//! other jobs, and jobs start and stop.
//!
//! Policies behind the mechanism run through [`scheduler::Rounds`](crate::scheduler::Rounds), as they do live.
//! One step of [`Simulation`] is one round. [`Semantics`] names each point at which the published system's
//! simulator differs from what it set out to do.

mod arrivals;
mod changes;
mod checkpoint;
mod event;
mod faults;
mod ideal;
mod inside;
mod live;
mod options;
mod outcome;
mod progress;
mod restated;
mod round;
mod simulation;
mod snapshot;
mod standstill;

pub use checkpoint::Checkpoint;
pub use event::{AllocatedShares, Event, JobShares, Observer, Slice, Unobserved};
pub use live::{Live, Refill};
pub use options::{
    Consolidation, Contention, ExecutionTime, Faults, JobFaults, Options, PairEnd, PreemptionCost, Semantics,
    ShortSlice, Stragglers, WorkerFaults,
};
pub use outcome::{Boundary, Limits, Outcome, Patience, SimulationError, Step};
pub use simulation::Simulation;
pub use standstill::{Growth, Standstill};

pub use crate::spec::PriceChange;
