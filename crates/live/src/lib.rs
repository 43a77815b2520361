//! The policies and the mechanism on real servers.
//!
//! The scheduler's [core] and the [agent]'s are state machines without input or output: sockets, files, clocks and processes are
//! around them. So a test can lose, repeat and delay their messages to each other, and end them at any instruction.

pub mod protocol;
pub mod clock;
mod files;
mod process;
mod rank;
pub mod shim;
pub mod agent;
pub mod slurm;
pub mod network;
pub mod shadow;
pub mod trainer;
pub mod core;
pub mod store;
mod mail;
mod log;
pub mod driver;
pub mod front;
