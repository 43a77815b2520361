//! Deciding gang by gang: policies that give one job after another all its workers of one type, until they stop or
//! nothing fits.
//!
//! In: a [`Problem`](apportion::Problem) and what the policy's last decision gave; nothing else, so what the optimizing
//! policies know is what these know. Out: an allocation, which runs behind the same mechanism as every other.
//!
//! An [`Observation`] of a [`PartialDecision`] defines what is seen, which actions there are and what an action means, for
//! training and use alike. An action is *this job on that worker type*, and the last one is *stop*.
//! There are two kinds:
//!
//! - [`ObservationKind::Window`]: that of DL2 (Peng et al., 2021), with its three actions a job become its gang on each of at most
//!   three worker types: a matrix of fixed size, one column a job;
//! - [`ObservationKind::Pairs`]: a row of features for each job on each type, all scored by one network, so that neither the order
//!   nor the number of jobs or types matters. Ours.
//!
//! A third way decides at once: [values](ByValues) of jobs on types, by the same network, and the allocation of the largest
//! sum, by linear programming.

mod partial_decision;
mod features;
mod observation;
mod actors;
mod values;
mod rules;
mod policy;
mod scenario;
mod environment;
mod teacher;
mod world;
#[cfg(feature = "train")]
pub mod training_scorer;

pub use actors::{SCORER, Scorer, read_scorer, read_window};
pub use environment::{GangEnvironment, GangEnvironmentOptions};
pub use features::N_FEATURES;
pub use observation::{N_WINDOW_ROWS, N_WINDOW_TYPES, Observation, ObservationKind};
pub use partial_decision::PartialDecision;
pub use policy::{Asked, Decider, GangPolicy, Sequential};
pub use rules::Rule;
pub use scenario::{Presence, Reward, Scenario, ScenarioError};
pub use scenario::{SCALE_FACTOR_MAX, of_seed};
pub use teacher::demonstrate;
pub use values::{ByValues, Weighing};
pub use world::{GangsWorld, SYSTEM};

#[cfg(test)]
mod tests;
