//! The engine of rounds on concrete servers, one decision at a time, in which learned schedulers play and are compared.
//!
//! ```text
//! begin_round ─▶ policy.next ─Decision─▶ apply ─▶ … ─▶ EndRound ─▶ advance (speeds, completions, rules)
//! ```
//!
//! In: [`Servers`], jobs, a [`Speeds`] and a [`WorldPolicy`]. Out: a [`Summary`]. Everything is dense: integer ids,
//! a vector per field, and nothing is allocated, hashed or named while a round is decided, so that a policy in training
//! can be asked often. The published worlds are this one with their own speeds and rules:
//! [`deepshare`](crate::deepshare), [`dl2`](crate::dl2), [`dual_agent`](crate::dual_agent) and [`elastic`](crate::elastic).
//!
//! *Invariant: no server is ever over-committed, whatever a policy asks for.*

mod advance;
mod apply;
mod job;
mod play;
mod run;
mod servers;
pub(crate) mod shares;
mod state;
mod summary;

pub use advance::{AfterRound, Completions, Rate, Retention, Rules, Speeds};
pub use apply::{Decision, Rejected};
pub use job::{JobKind, Part, Role, WorldJob};
pub(crate) use play::summary_of;
pub use play::{AllocatedError, PlayError};
pub use run::{Limits, WorldError, WorldPolicy, run};
pub use servers::{ACCELERATOR, N_RESOURCES, PROCESSOR, Servers, Slots};
pub use shares::Goal;
pub use state::{Status, World};
pub(crate) use summary::percentile;
pub use summary::{JobOutcome, Summary};

#[cfg(test)]
mod tests;
