//! Price decomposition: optima of jobs that share no workers, found without writing a linear program.
//!
//! The input is [`Singles`](crate::program::Singles), the throughputs and demands of *classes* of identical jobs (an
//! [`Instance`](crate::program::Instance) calls them members, and so do the shapes of lists, `[members]`), and
//! [`Goal`](crate::program::Goal), the objective. The output is class times and the dual prices that certify them
//! ([`PrimalDual`]), judged by [`AnswerCertificate::of_jobs`](crate::solver::AnswerCertificate::of_jobs). Internally, a class is one job
//! that needs the workers of all its jobs: `[jobs]` in the shapes of lists means the same as `[members]`. K is the number of
//! worker types, in code that goes through all jobs with empty types up to a number for which that code is compiled
//! (`types`).
//!
//! Only the capacities of worker types couple classes, so the program decomposes (Dantzig & Wolfe, *Decomposition principle
//! for linear programs*, 1960): at given prices of worker types each class's subproblem has a closed-form best response, and
//! a small restricted master program mixes responses and gives the next prices.
//!
//! | objective | method | file |
//! |---|---|---|
//! | highest common level (max-min) | Dantzig-Wolfe, level raised | `dantzig_wolfe`, [`solve`] |
//! | linear, with a level held | Dantzig-Wolfe, level held | `dantzig_wolfe`, [`solve`] |
//! | next level of water filling | Dantzig-Wolfe, level raised above a base | `jobs/next_level`, [`raise_above`] |
//! | number of droppable constraints kept | Dantzig-Wolfe, level held | `jobs/droppable`, [`keep_droppable`] |
//! | sum of logarithms (Nash welfare) | Eisenberg-Gale dual by smoothed Newton steps | `nash_welfare`, [`solve`] |
//!
//! Prices are in units of the objective. The comment at each list says whether a price is of one worker's whole time or of all
//! workers of a type together.

mod lanes;
mod tolerances;
mod unsolved;
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
pub use dantzig_wolfe::{Searched, WarmPrices};
pub use jobs::{DroppableKept, RaisedLevel, keep_droppable, raise_above, solve};
pub use tolerances::SCARCE_MIN;
pub use unsolved::Unsolved;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod nash_welfare_tests;
