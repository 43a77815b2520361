//! Rounds on concrete servers, one decision at a time: where learned schedulers live, and what they are compared in.
//!
//! ```text
//! begin_round ─▶ policy.next ─Decision─▶ apply ─▶ … ─▶ EndRound ─▶ advance (speeds, completions, rules)
//! ```
//!
//! In: [`Servers`], jobs, a [`Speeds`] and a [`WorldPolicy`]. Out: a [`Summary`]. Everything is dense: integer ids,
//! a vector per field, and nothing is allocated, hashed or named while a round is decided, so that a policy in training
//! can be asked often. Two published worlds are here, [`deepshare`] and [`dl2`], one rebuilt, [`dual_agent`],
//! and one in which `dl2` is put on Gavel's measurements, [`elastic`].
//!
//! *Invariant: no server is ever over-committed, whatever a policy asks for.*

mod advance;
mod apply;
pub mod deepshare;
pub mod dl2;
pub mod dual_agent;
pub mod elastic;
mod job;
mod run;
mod servers;
mod shares;
mod state;
mod summary;

pub use advance::{AfterRound, Completions, Rate, Retention, Rules, Speeds};
pub use apply::{Decision, Rejected};
pub use job::{JobKind, Part, Role, WorldJob};
pub use run::{Limits, WorldError, WorldPolicy, run};
pub use servers::{ACCELERATOR, N_RESOURCES, PROCESSOR, Servers, Slots};
pub use shares::Aim;
pub use state::{Status, World};
pub use summary::{JobOutcome, Summary};

#[cfg(test)]
mod tests;
