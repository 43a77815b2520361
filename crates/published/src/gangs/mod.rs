//! Deciding gang by gang: policies that give one job after another all its workers of one type, until they stop or
//! nothing fits.
//!
//! In: a [`Problem`](apportion::Problem) and what the policy's last decision gave; nothing else, so what the optimizing
//! policies know is what these know. Out: an allocation, which runs behind the same mechanism as every other.
//!
//! What is seen of a [`Draft`], which actions there are and what an action means are three pure functions of a
//! [`Look`]; training and use share them. An action is *this job on that worker type*, and the last one is *stop*.
//! Two ways of looking:
//!
//! - [`Sight::Window`]: that of DL2 (Peng et al., 2021), with its three actions a job become its gang on each of at most
//!   three worker types: a matrix of fixed size, one column a job;
//! - [`Sight::Pairs`]: a row of features for each job on each type, all scored by one network, so that neither the order
//!   nor the number of jobs or types matters. Ours.
//!
//! A third way decides at once: [values](ByValues) of jobs on types, by the same network, and the allocation of the largest
//! sum, by linear programming.

mod draft;
mod features;
mod look;
mod actors;
mod values;
mod rules;
mod policy;
mod course;
mod environment;
mod teacher;
mod world;
#[cfg(feature = "train")]
pub mod training_scorer;

pub use actors::{SCORER, Scorer, read_scorer, read_window};
pub use course::{Course, CourseError, Presence, Reward};
pub use course::{SCALE_FACTOR_MAX, of_seed};
pub use draft::Draft;
pub use environment::{GangEnvironment, GangEnvironmentOptions};
pub use features::N_FEATURES;
pub use look::{Look, N_WINDOW_ROWS, N_WINDOW_TYPES, Sight};
pub use policy::{Asked, Decider, GangPolicy, Sequential};
pub use rules::Rule;
pub use teacher::demonstrate;
pub use values::ByValues;
pub use world::{GangsWorld, SYSTEM};

#[cfg(test)]
mod tests;
