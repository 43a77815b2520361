//! Records of the scheduler that must survive its end: the documents that its store keeps.

use std::collections::BTreeMap;

use apportion::index::WorkerId;
use apportion::units::{Dollars, DollarsPerWorkerHour};
use apportion::{Job, Seconds};
use serde::{Deserialize, Serialize};

use super::charges::Charges;
use super::spans::{Span, Spans};
use crate::protocol::{End, JobNumber, Program};

/// A job, from its submission on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobRecord {
    /// Its number.
    pub number: JobNumber,
    /// A number that is drawn: by it the job differs from one with the same number in another state, or in this one after an older
    /// copy was put back. None for jobs that an earlier version took in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submission: Option<u64>,
    /// The name that its user gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The user who submitted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The submission's key: another submission with the same key is the same one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The job as the policy knows it. Its arrival is an instant on the scheduler's clock.
    pub job: Job,
    /// The program that it runs.
    pub program: Program,
    /// The number of its starts.
    pub incarnation: u32,
    /// The instant of its first order to start, on the scheduler's clock; none before, and for a job that an earlier version
    /// started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Seconds>,
    /// Its last start, if that may still be running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunRecord>,
    /// Steps that its last checkpoint holds.
    pub checkpointed: f64,
    /// The time for which all of its ranks have run on workers of each type, by name, since it arrived.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub received: BTreeMap<String, Seconds>,
    /// The cost of its time on workers; none where they had no price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Dollars>,
    /// The number of its failures in a row by its own fault.
    pub failures: u32,
    /// The instant of the scheduler's clock before which it is not started after a failure; none if it may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Seconds>,
    /// The end of its last start, in words; none before the first end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_end: Option<String>,
    /// Whether the event log has its arrival.
    #[serde(default)]
    pub arrived: bool,
    /// Whether its user has cancelled it: it is over when its last start is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
    /// Why it is cancelled, if for another reason than its user's wish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withdrawn: Option<String>,
    /// Why it is done, while a later start of it is still being stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<String>,
    /// Its last starts that were closed although ends of them were unknown: these count when they are reported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unheard: Vec<UnheardRecord>,
    /// Its end; none while it is active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

/// A start of a job that may still be running.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// Its workers, in order of rank.
    pub workers: Vec<WorkerId>,
    /// The server of each rank, by name: `[ranks]`.
    pub servers: Vec<String>,
    /// The longest time for which it may run on from any instant without further orders, grace and slack included.
    pub outlives: Seconds,
    /// Instants at which ranks are surely over, by rank, on the scheduler's clock: of ranks that have not been reported since a
    /// start of the scheduler, or that their servers have lost. They stay over further starts until the rank is reported.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gone_by: BTreeMap<u32, Seconds>,
    /// The time that has been counted of it; none before all of its ranks have been known to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<CountedRecord>,
    /// The cost of its counted time; nothing in the states of earlier versions.
    #[serde(default, skip_serializing_if = "Charges::is_empty")]
    pub charges: Charges,
    /// The end of its lease, on the scheduler's clock; none in the states of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_end: Option<Seconds>,
    /// The part of it that the event log has, from its order on; none in the states of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logged: Option<LoggedRecord>,
    /// The time of its lease that has been counted and is not in the event log; of two jobs that share workers, in the record of the
    /// first. None in the states of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlogged: Option<UnloggedRecord>,
    /// The time that runs beside it had its workers which are over.
    #[serde(default, skip_serializing_if = "Spans::is_empty")]
    pub beside: Spans,
    /// The time of its lease that is not counted in the mechanism's state on disk; below 0 if more is counted there than has passed.
    /// None in the states of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untold: Option<Seconds>,
}

impl RunRecord {
    /// The part of it that the event log has, as this or an earlier version noted it.
    pub(super) fn logged(&self) -> Option<LoggedRecord> {
        self.logged.or(self.counted.and_then(|counted| counted.logged))
    }
}

/// Time of a lease that has been counted and is not in the event log yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnloggedRecord {
    /// The instant from which the log is to have it.
    pub start: Seconds,
    /// The instant up to which the log is to have it.
    pub end: Seconds,
    /// The time itself.
    pub time: Seconds,
    /// The price of a worker in that time; none without a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<DollarsPerWorkerHour>,
}

/// A start of a job that was closed before all of its ends were heard of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnheardRecord {
    /// Number of the start.
    pub incarnation: u32,
    /// The server of each rank, by name: `[ranks]`.
    pub servers: Vec<String>,
    /// The type of its workers.
    pub worker_type: String,
    /// Its time that is in the job's received time.
    pub counted: Seconds,
    /// The span of that time; none where it is not known to have run, and in the states of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
    /// The time that runs beside it had its workers.
    #[serde(default, skip_serializing_if = "Spans::is_empty")]
    pub beside: Spans,
    /// The cost of that; nothing in the states of earlier versions.
    #[serde(default, skip_serializing_if = "Charges::is_empty")]
    pub charges: Charges,
    /// Whether it shared its workers. Then the event log has its time together with another job's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_shared: bool,
    /// The ends that have been reported, by rank.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ends: BTreeMap<u32, LateEnd>,
}

/// The end of a rank, as its server reported it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LateEnd {
    /// Its end.
    pub end: End,
    /// The time that it ran, as its server measured it; none if the server did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran: Option<Seconds>,
    /// The instant of its end on the scheduler's clock; none if its server did not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Seconds>,
}

/// The counted time of a start of a job, by instants of the scheduler's clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountedRecord {
    /// The instant since when all of its ranks have been known to run.
    pub running: Seconds,
    /// The instant up to which its time is in the job's received time.
    pub until: Seconds,
    /// The part of it that the event log has, in the states of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logged: Option<LoggedRecord>,
}

/// The part of a start of a job that is in the event log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoggedRecord {
    /// The instant up to which its time is there.
    pub at: Seconds,
    /// Steps of the job that a checkpoint held.
    pub checkpointed: f64,
    /// Steps that its program had done.
    pub steps: f64,
    /// The time that these steps took, s.
    pub seconds: f64,
}

/// The end of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// The instant, on the scheduler's clock.
    pub at: Seconds,
    /// The way in which it ended.
    pub how: How,
    /// The reason, in words.
    pub reason: String,
}

/// The ways in which a job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// Its program says that it is done, or ended by itself with exit code 0.
    Completed,
    /// It failed too often in a row.
    Failed,
    /// Its user cancelled it.
    Cancelled,
}

/// A server that has joined once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerRecord {
    /// Its name.
    pub name: String,
    /// The type of its workers.
    pub worker_type: String,
    /// Its workers, by their places on the server.
    pub workers: Vec<WorkerId>,
    /// The number of its agent's folder; none where the agent states none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<u64>,
    /// Why it gets no new job; none if it gets jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drained: Option<String>,
    /// Its removal from the cluster; none if it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removal: Option<Removal>,
}

/// The removal of a server, which is gone for good, once nothing can run there any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Removal {
    /// Whether its machine is off, so that no lease there is waited for.
    pub is_off: bool,
}

/// One record to be put on disk. Either all records of a step are put there, or none is.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// A job, in place of its earlier record.
    Job(Box<JobRecord>),
    /// A server, in place of its earlier record.
    Server(ServerRecord),
    /// The removal of the server of this name: it has no record any more.
    ServerRemoved(String),
    /// The state of the policy and the mechanism, as JSON, in place of the last.
    Scheduler(String),
    /// A line of the event log, as simulations write it, and its instant on the scheduler's clock.
    Event(Seconds, String),
    /// A note of a live scheduler in addition to the events of a simulation.
    Note(Seconds, Note),
}

/// A note for the cluster's operator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// The note, in words.
    pub text: String,
    /// The job that it is about; none if it is about no single job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobNumber>,
    /// The server that it is about; none if it is about no single server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Whether it needs the operator's attention.
    pub is_warning: bool,
}

/// The content of a store at the start of a scheduler.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stored {
    /// The number of this start, from 1; it is on disk already.
    pub epoch: u64,
    /// Jobs that are not over, by number.
    pub jobs: Vec<JobRecord>,
    /// The last jobs that were over, by number: they can still be asked about.
    pub over: Vec<JobRecord>,
    /// The number of the next job.
    pub next_job: u64,
    /// A number that was drawn for this start: no other start of any scheduler has it.
    pub drawn: u64,
    /// Servers, by name.
    pub servers: Vec<ServerRecord>,
    /// The state of the policy and the mechanism, as JSON.
    pub scheduler: Option<String>,
    /// The number of rounds in the event log.
    pub n_rounds: u64,
    /// Whether it is known how long the scheduler was away. If not, waits until an instant begin anew.
    pub is_clock_sure: bool,
    /// Descriptions of records that could not be read and have been set aside.
    pub set_aside: Vec<String>,
}
