//! Deciding inside rounds, on concrete workers: the dual-agent scheduler and DeepShare in the simulator that every policy
//! is compared in.
//!
//! A round begins as a [`RoundState`]: jobs, free workers and their estimated speeds. An [`ActionScheme`] defines its
//! observation, the actions, and what an action does; training and use share it. There are two:
//!
//! - [`Agents`]: of the dual-agent scheduler, with its rows and networks as they are. One says which job is next, the other
//!   gives it servers. All is decided anew when a job or a worker has come or gone, or after a lease;
//! - [`Cells`]: of DeepShare, whose cluster of four servers becomes a cell of four of one type. An action starts a job on
//!   one, two or four of them; what runs goes on while it is not slowed too much.
//!
//! Workers' speeds are [estimated](apportion::throughput::server_speeds) from what jobs were seen to make on them.
//! [`LearnedRounds`] is the policy, behind the seam of [`RoundPolicy`](apportion::policy::RoundPolicy): what it places runs on
//! the very workers that it names, by the simulator's clock, contention, faults and metrics.

mod memory;
mod round_state;
mod action_scheme;
mod gang;
mod rows;
mod agents;
mod cells;
mod policy;
mod scenario;
mod environment;
mod world;
mod read;

pub use action_scheme::{ActionScheme, Continuation};
pub use agents::{Agents, AgentsOptions};
pub use cells::Cells;
pub use environment::RoundsEnvironment;
pub use memory::{Expected, JobHistory, Known, Memory, MemoryState};
pub use policy::LearnedRounds;
pub use read::{Decider, episode_of, read_decider, uniform};
pub use round_state::{JobState, RoundState, SERVERS_PER_CELL, Server};
pub use scenario::{Condition, RoundsScenario};
pub use world::{ActionSchemeName, FurtherCluster, RoundsWorld, SYSTEM};

#[cfg(test)]
mod tests;
#[cfg(test)]
mod undisturbed_tests;
