//! A policy and the mechanism at work for whoever owns jobs and workers: what embedders, live schedulers and the
//! simulator need alike.
//!
//! In: the start of a round, as the owner of the jobs sees it (a [`Situation`]). Out: the round's leases, in the
//! [`Mechanism`](crate::mechanism::Mechanism), and what became of the policy ([`Decided`]). It reads no clock.
//!
//! ```text
//! decide(situation, deadline) → due? → policy → settle, adopt → assign
//! ```

pub(crate) mod active;
mod decided;
mod options;
mod rounds;
mod seam;
mod seat;

pub use decided::{Decided, DecisionError, RestoreError};
pub use options::{EmptyCluster, OptionError, Options, TypeDraws};
pub use rounds::{Answer, Rounds, RoundsState, Situation};
