//! Agents, shims and programs as real processes. Tests wait for events as long as they take: the limit only ends a test that would
//! never end.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop")]
#![expect(clippy::float_cmp, reason = "steps are whole, and carried from document to document as they are")]

mod agents;
mod faults;
mod place;
mod stops;
#[path = "../support/mod.rs"]
mod support;
