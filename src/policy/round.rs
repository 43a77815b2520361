//! The interface of decisions inside a round, one at a time, on concrete servers.
//!
//! Every [`Policy`](super::Policy) becomes a [`RoundPolicy`] through the mechanism; learned schedulers that place on
//! servers implement it directly, as a policy of one's own may. The caller, which runs the round, applies each decision or
//! rejects it with a reason, and asks again until the end of the round; a cap on decisions per round makes a livelock an
//! error.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;
use crate::index::{IndexVec, JobId, ServerId, WorkerId, WorkerTypeId};
use crate::policy::PolicyError;
use crate::problem::Problem;
use crate::units::Seconds;
use crate::workload::Combination;

/// A combination on the workers it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Placed {
    /// The jobs.
    pub combination: Combination<JobId>,
    /// The type of all its workers.
    pub worker_type: WorkerTypeId,
    /// The workers, one per unit of scale factor, ascending.
    pub workers: Vec<WorkerId>,
}

/// The run of a combination in the round before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ran {
    /// The jobs.
    pub combination: Combination<JobId>,
    /// The type of its workers.
    pub worker_type: WorkerTypeId,
    /// Time for which it held them, counted once however many they were.
    pub time: Seconds,
    /// Throughput observed of each member, steps/s; 0 where none was observed or its work was lost, and for a second
    /// member that does not exist.
    pub throughput: [f64; 2],
}

/// A job that may be given other numbers of workers, by [`RoundDecision::Resize`].
#[derive(Clone, Debug, PartialEq)]
pub struct Resizable {
    /// The job.
    pub job: JobId,
    /// Numbers of workers, ascending, the current one among them.
    pub sizes: Vec<u32>,
    /// Steps/s alone on the fewest servers with each number, as far as they are known: [size × type]. The
    /// measurements of the job at its current size are part of all of them.
    pub throughput: Vec<Vec<f64>>,
}

/// Type and server of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// Type of the worker.
    pub worker_type: WorkerTypeId,
    /// Server of the worker; all workers of a server are of one type.
    pub server: ServerId,
}

/// The view of a policy at a point inside a round.
#[derive(Debug)]
pub struct RoundView<'a> {
    /// Number of the round, from 0.
    pub round: u64,
    /// Start of the round.
    pub now: Seconds,
    /// Length of the round.
    pub round_length: Seconds,
    /// The cluster.
    pub cluster: &'a Cluster,
    /// Location of each worker, also of those that are down.
    pub locations: &'a IndexVec<WorkerId, Location>,
    /// Active jobs and throughputs.
    pub problem: &'a Problem,
    /// Jobs that may be given other numbers of workers, by id.
    pub resizable: &'a [Resizable],
    /// Leases of the previous round.
    pub previous: &'a [Placed],
    /// The runs of combinations in the round before, in the order in which they ended.
    pub ran: &'a [Ran],
    /// The combinations placed so far in this round.
    pub placed: &'a [Placed],
    /// Free workers of each type, ascending.
    pub free: &'a IndexVec<WorkerTypeId, Vec<WorkerId>>,
    /// Reason for which the last decision was rejected, if it was.
    pub rejected: Option<&'a str>,
}

/// One decision of a round policy.
#[derive(Clone, Debug, PartialEq)]
pub enum RoundDecision {
    /// Run these jobs on these workers until the round ends.
    Place(Placed),
    /// Change the number of workers of a job to another of its [sizes](Resizable): it is not placed in this round
    /// yet, and keeps the number until it is changed again.
    Resize {
        /// The job.
        job: JobId,
        /// Number of its workers from now on.
        workers: u32,
    },
    /// Take a job placed earlier in this round off its workers.
    Preempt {
        /// The job.
        job: JobId,
    },
    /// End the round: nothing more is decided.
    EndRound,
}

/// A policy that decides inside rounds.
pub trait RoundPolicy: fmt::Debug + Send {
    /// The name of the policy.
    fn name(&self) -> &str;

    /// Checks that the policy could ever place these jobs on these workers, were they alone and all of them free. A
    /// scheduler of jobs that really run refuses one that could not, rather than let it keep the policy from all
    /// others.
    ///
    /// # Errors
    /// If it could not: the reason, and what would help.
    fn check(&self, view: &RoundView<'_>) -> Result<(), String> {
        let _ = view;
        Ok(())
    }

    /// Starts a round.
    ///
    /// # Errors
    /// If the policy cannot decide at all.
    fn begin(&mut self, view: &RoundView<'_>) -> Result<(), PolicyError>;

    /// The next decision of this round.
    ///
    /// # Errors
    /// If the policy cannot decide.
    fn next(&mut self, view: &RoundView<'_>) -> Result<RoundDecision, PolicyError>;

    /// The state that must survive a checkpoint, as JSON; `null` if there is none.
    fn state(&self) -> serde_json::Value {
        serde_json::Value::Null
    }

    /// Restores a state that [`state`](Self::state) returned.
    ///
    /// # Errors
    /// If the value was not written by this policy.
    fn restore(&mut self, state: &serde_json::Value) -> Result<(), PolicyError> {
        if state.is_null() { Ok(()) } else { Err(PolicyError::State { policy: self.name().to_owned() }) }
    }
}
