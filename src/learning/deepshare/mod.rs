//! DeepShare's world as an environment: see [`world::deepshare`](crate::world::deepshare) for what is seen and done.
//!
//! The published system masks no action: an invalid one starts nothing and ends the round.

mod environment;
mod world;

pub use environment::{DeepShareEnvironment, RoundReward, Workloads};
pub use world::{DeepShareWorld, FidelityName, RoundEnd, SYSTEM};
