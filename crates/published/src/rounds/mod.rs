//! Decisions inside rounds, on concrete workers: the dual-agent scheduler and DeepShare in the simulator in which every policy is
//! compared.
//!
//! A round begins as a [`RoundState`]: jobs, free workers and their estimated speeds. An [`ActionScheme`] defines its
//! observation, the actions, and what an action does; training and use share it. There are two:
//!
//! - [`Agents`]: the agents of the dual-agent scheduler, with its rows and networks as they are. One picks the next job, the other
//!   gives it servers. Everything is decided anew when a job or a worker has come or gone, or after a lease;
//! - [`Cells`]: the agent of DeepShare, whose cluster of four servers becomes a cell of four servers of one type. An action
//!   starts a job on one, two or four of them; a running job goes on while it is not slowed too much.
//!
//! Workers' speeds are [estimated](apportion::throughput::server_speeds) from the throughputs of jobs on them.
//! [`LearnedRounds`] is the policy, a [`RoundPolicy`](apportion::policy::RoundPolicy): jobs run on the very workers that it names,
//! by the simulator's clock, contention, faults and metrics.

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
