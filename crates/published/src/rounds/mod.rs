//! Deciding inside rounds, on concrete workers: the dual-agent scheduler and DeepShare in the simulator that every policy
//! is compared in.
//!
//! A round begins as a [`Board`]: who is there, which workers are free, how fast they have been seen to be. A [`Play`] says
//! what is seen of it, which actions there are and what an action means; training and use share it. Two of them:
//!
//! - [`Agents`]: of the dual-agent scheduler, with its rows and networks as they are. One says which job is next, the other
//!   gives it servers. All is decided anew when a job or a worker has come or gone, or after a lease;
//! - [`Cells`]: of DeepShare, whose cluster of four servers becomes a cell of four of one type. An action starts a job on
//!   one, two or four of them; what runs goes on while it is not slowed too much.
//!
//! What is known of workers' speeds is what jobs were seen to make on them, by the dual-agent scheduler's process.
//! [`LearnedRounds`] is the policy, behind the seam of [`RoundPolicy`](apportion::policy::RoundPolicy): what it places runs on
//! the very workers that it names, by the simulator's clock, contention, faults and metrics.

mod memory;
mod board;
mod play;
mod gang;
mod rows;
mod agents;
mod cells;
mod policy;
mod course;
mod environment;
mod world;
mod read;

pub use agents::{Agents, AgentsOptions};
pub use board::{Board, SERVERS_PER_CELL, Server, Standing};
pub use cells::Cells;
pub use course::{Condition, RoundsCourse};
pub use environment::RoundsEnvironment;
pub use memory::{Expected, Known, Memory, MemoryState, Past};
pub use play::{Keeps, Play};
pub use policy::LearnedRounds;
pub use read::{Decider, episode_of, read_decider, uniform};
pub use world::{FurtherCluster, PlayName, RoundsWorld, SYSTEM};

#[cfg(test)]
mod tests;
