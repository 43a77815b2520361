//! What a look at a steered job is about, and what it finds.

use apportion::Seconds;

use super::jobs::HeldJob;
use super::kept::Order;
use crate::protocol::End;

/// What is new of a job.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Event {
    /// The run has begun.
    Begun(Order),
    /// The run is asked to stop.
    Stopping(Order),
    /// The run, or what of it was ordered, is over.
    Ended(Order, End),
    /// The run ends without having begun, after it has waited so long for nothing but its nodes.
    Unstarted(Order, Seconds),
    /// Apportion's job is to be over, for this reason.
    Withdrawn(String),
    /// What an operator should know.
    Words(String),
    /// Slurm does not show it: its accounts are to be asked.
    Missing,
}

/// A job that is looked at, and what Slurm shows of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    /// What Slurm shows of it, if it does.
    pub(super) job: Option<&'a HeldJob>,
    /// When Slurm was asked.
    pub(super) asked: Seconds,
    /// When Slurm's controller was started, in its words.
    pub(super) boot: &'a str,
    /// The partition of Slurm from which jobs are taken in.
    pub(super) partition: &'a str,
    pub(super) now: Seconds,
    /// If apportion's job is over: was it cancelled?
    pub(super) over_here: Option<bool>,
}
