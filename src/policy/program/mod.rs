//! Policies that are optimization programs: a problem becomes an instance over classes of interchangeable jobs,
//! is solved and refined, and its answer is divided among the jobs again.

mod barrier_weights;
mod conflict;
mod crash;
mod discount;
mod droppable;
mod entity_level;
mod errors;
mod evaluate;
mod exchange;
mod expand;
mod explain;
mod hierarchy;
mod idle;
mod isolated_time;
mod kinds;
mod late;
mod levels;
mod objective_report;
mod optimum;
mod options;
mod pair_pricing;
mod pairs;
mod parametric;
mod policy;
mod program_columns;
mod recorded;
mod reduce;
mod reduced_cost_fixing;
mod remedy;
mod rounding;
mod session;
mod singles;
mod solve;
mod solve_kinds;
mod solve_to_explain;
mod solver_context;
mod strategy;
mod tolerances;
mod water_filling;

pub use errors::ProgramPolicyError;
pub use options::{ProgramOptions, Refine};
pub use policy::ProgramPolicy;
pub use recorded::{Purpose, SolvedProgram};
pub use session::{ClassDecision, Session, SessionError};
pub use strategy::{GaveUp, Reason, Strategy, Unfit};

#[cfg(test)]
mod tests;
#[cfg(test)]
mod levels_tests;
#[cfg(test)]
mod packed_tests;
#[cfg(test)]
mod expand_tests;
#[cfg(test)]
mod strategy_tests;
#[cfg(test)]
mod cluster_tests;
#[cfg(test)]
mod conflict_tests;
#[cfg(test)]
mod late_tests;
#[cfg(test)]
mod floor_tests;
