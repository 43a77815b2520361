//! Policies that decide gang by gang: they give one job after another all its workers of one type, until they stop or nothing fits.
//!
//! In: a [`Problem`](apportion::Problem) and the policy's last decision, and nothing that optimizing policies do not know. Out: an
//! allocation, which runs behind the same mechanism as every other.
//!
//! An [`Observation`] of a [`PartialDecision`] defines the numbers that a network gets, the actions and their meaning, for training
//! and use alike. An action is *this job on that worker type*, and the last one is *stop*.
//! There are two kinds:
//!
//! - [`ObservationKind::Window`]: a matrix of fixed size with one column a job, after DL2 (Peng et al., 2021): its three actions
//!   a job have become the job's gang on each of at most three worker types;
//! - [`ObservationKind::Pairs`]: a row of features for each job on each type, all scored by one network, so that neither the order
//!   nor the number of jobs or types matters. Our own.
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
