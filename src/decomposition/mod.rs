//! Decomposition by prices: optima of jobs alone on worker types, found without writing a program.
//!
//! In: [`Singles`](crate::program::Singles), the throughputs and demands of *classes* of identical jobs (an
//! [`Instance`](crate::program::Instance) calls them members, and so do the shapes of lists, `[members]`), and
//! [`Goal`](crate::program::Goal), the objective. Out: class times and the dual prices that certify them
//! ([`PrimalDual`]), judged by [`Certificate::of_jobs`](crate::solver::Certificate::of_jobs). A class is searched for
//! as one job that needs the workers of all its jobs.
//!
//! Only the capacities of worker types couple classes, so the program decomposes (Dantzig & Wolfe 1960): at given
//! prices of worker types each class's subproblem has a closed-form best response, and a small restricted master
//! program mixes responses and gives the next prices.
//!
//! | objective | method | file |
//! |---|---|---|
//! | highest common level (max-min) | Dantzig-Wolfe, level raised | `dantzig_wolfe`, [`solve`] |
//! | linear, with a level held | Dantzig-Wolfe, level held | `dantzig_wolfe`, [`solve`] |
//! | next level of water filling | Dantzig-Wolfe, level raised above a base | `jobs/next_level`, [`raise_above`] |
//! | number of droppable constraints kept | Dantzig-Wolfe, level held | `jobs/droppable`, [`keep_droppable`] |
//! | sum of logarithms (Nash welfare) | Eisenberg-Gale dual by smoothed Newton steps | `nash_welfare`, [`solve`] |
//!
//! Code that goes through all jobs is compiled for each number of worker types K (`types`), all else once.

mod lanes;
mod tolerances;
mod types;
mod certificate;
mod columns;
mod restricted_master;
mod dantzig_wolfe;
mod sampling;
mod choice;
mod smoothed_demand;
mod demand;
mod continuation;
mod nash_welfare;
mod jobs;

pub use certificate::PrimalDual;
pub use dantzig_wolfe::WarmPrices;
pub use jobs::{DroppableKept, RaisedLevel, keep_droppable, raise_above, solve};
pub use tolerances::SCARCE_MIN;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod nash_welfare_tests;
