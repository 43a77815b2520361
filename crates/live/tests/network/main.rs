//! A scheduler, its front and agents over real sockets, with real processes as ranks. What is waited for comes when it comes:
//! the limit only ends a test that would never end.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop")]

mod access;
mod links;
mod nodes;
#[path = "../support/mod.rs"]
mod support;
