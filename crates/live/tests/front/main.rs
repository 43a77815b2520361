//! The front over real sockets: a scheduler on a real store, and agents that pretend their ranks run.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop")]

mod damaged;
mod jobs;
mod pretended;
mod refused;
mod served;
mod state;
