//! Policies that are optimization programs: a problem becomes an instance over classes of interchangeable jobs,
//! is solved and refined, and its answer is divided among the jobs again.

mod central;
mod discount;
mod expand;
mod explain;
mod hierarchy;
mod isolated_time;
mod judged;
mod levels;
mod master;
mod pairs;
mod policy;
mod pools;
mod pricing;
mod promises;
mod recorded;
mod reduce;
mod session;
mod sharing;
mod solve;
mod solving;
mod start;
mod strategy;
mod sums;
mod tolerances;
mod worth;

pub use policy::{ProgramOptions, ProgramPolicy, ProgramPolicyError, Refine};
pub use recorded::{Purpose, SolvedProgram};
pub use session::{ClassDecision, Session, SessionError};
pub use strategy::{GaveUp, Reason, Strategy, Unfit};

#[cfg(test)]
mod tests;
#[cfg(test)]
mod packed_tests;
#[cfg(test)]
mod expand_tests;
#[cfg(test)]
mod strategy_tests;
