//! Decomposition by prices: optima of jobs alone on worker types, found without writing a program.
//!
//! In: [`Singles`](crate::program::Singles), the throughputs and demands of classes of jobs (*members*), and
//! [`Goal`](crate::program::Goal), the objective. Out: time fractions and the dual prices that certify them
//! ([`PrimalDual`]), judged by [`Certificate::of_jobs`](crate::solver::Certificate::of_jobs).
//!
//! Only the capacity rows of worker types couple members, so the program decomposes (Dantzig & Wolfe 1960): at given
//! prices of worker types each member's subproblem has a closed-form best response, and a small restricted master program
//! mixes responses and gives the next prices.
//!
//! | objective | method | file |
//! |---|---|---|
//! | highest common level (max-min) | Dantzig-Wolfe with a level | `dantzig_wolfe`, [`solve`] |
//! | linear, with a level held | Dantzig-Wolfe | `dantzig_wolfe`, [`solve`] |
//! | next level of water filling | Dantzig-Wolfe from a feasible point | `jobs/next_level`, [`raise_above`] |
//! | number of soft constraints kept | Dantzig-Wolfe on the linear relaxation | `jobs/soft_constraints`, [`keep_soft_constraints`] |
//! | sum of logarithms (Nash welfare) | Eisenberg-Gale dual by smoothed Newton steps | `nash_welfare`, [`solve`] |
//!
//! Loops over worker types have a fixed length, one copy per number of types (`types`); other numbers up to 64 are padded
//! (`padded`).

mod types;
mod certificate;
mod columns;
mod restricted_master;
mod dantzig_wolfe;
mod choice;
mod smoothed_demand;
mod demand;
mod continuation;
mod nash_welfare;
mod padded;
mod jobs;

pub use certificate::PrimalDual;
pub use dantzig_wolfe::WarmPrices;
pub use jobs::{RaisedLevel, SCARCE_MIN, SoftConstraintsKept, keep_soft_constraints, raise_above, solve};

#[cfg(test)]
mod tests;
#[cfg(test)]
mod nash_welfare_tests;
