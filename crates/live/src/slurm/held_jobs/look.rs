//! The input and the findings of a look at a steered job.

use apportion::Seconds;

use super::jobs::HeldJob;
use super::kept::Order;
use crate::protocol::End;

/// News of a job.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Event {
    /// The run has begun.
    Begun(Order),
    /// The run is asked to stop.
    Stopping(Order),
    /// The run, or the order for it, is over.
    Ended(Order, End),
    /// The run ends without having begun, after it has waited this long only for its nodes.
    Unstarted(Order, Seconds),
    /// The job in apportion is to be over, for this reason.
    Withdrawn(String),
    /// A sentence for the operator.
    Words(String),
    /// Slurm does not show the job: its accounts are to be asked.
    Missing,
}

/// The surroundings of a job that is looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    /// The job as Slurm shows it; none if it does not.
    pub(super) job: Option<&'a HeldJob>,
    /// The instant at which Slurm was asked.
    pub(super) asked: Seconds,
    /// The start of Slurm's controller, in its words.
    pub(super) boot: &'a str,
    /// The partition of Slurm from which jobs are taken in.
    pub(super) partition: &'a str,
    pub(super) now: Seconds,
    /// Whether the job in apportion was cancelled, if it is over; none if it is not over.
    pub(super) over_here: Option<bool>,
}
