//! A scheduler, its front and agents over real sockets, with real processes as ranks. Tests wait for events as long as they take:
//! the limit only ends a test that would never end.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop")]

mod access;
mod links;
mod nodes;
#[path = "../support/mod.rs"]
mod support;
