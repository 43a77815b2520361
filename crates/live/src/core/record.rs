//! What of the scheduler must survive its end: the documents that its store keeps.

use std::collections::BTreeMap;

use apportion::index::WorkerId;
use apportion::units::Dollars;
use apportion::{Job, Seconds};
use serde::{Deserialize, Serialize};

use super::charges::Charges;
use crate::protocol::{End, JobNumber, Program};

/// A job, from its submission on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobRecord {
    /// Its number.
    pub number: JobNumber,
    /// A number that is drawn: it tells the job from one that has the same number in another state, or in this one after an
    /// older copy was put back. None of jobs that an earlier version took in.
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
    /// What the policy knows of it. Its arrival is an instant on the scheduler's clock.
    pub job: Job,
    /// What it runs.
    pub program: Program,
    /// How often it has been started.
    pub incarnation: u32,
    /// When it was first ordered to start, on the scheduler's clock; none before, and of a job that an earlier version started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Seconds>,
    /// Its last start, if that may still be running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunRecord>,
    /// Steps that its last checkpoint holds.
    pub checkpointed: f64,
    /// How long all of its ranks have run on workers of each type, by name, since it arrived.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub received: BTreeMap<String, Seconds>,
    /// What its time on workers has cost; none where none of them had a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Dollars>,
    /// How often it failed in a row, by its own fault.
    pub failures: u32,
    /// After a failure it is not started before this instant of the scheduler's clock; none if it may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Seconds>,
    /// What became of its last start, in words; none before the first end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_end: Option<String>,
    /// The event log has its arrival.
    #[serde(default)]
    pub arrived: bool,
    /// Its user has cancelled it: it is over when its last start is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
    /// Why it is cancelled, where that is not its user's wish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub withdrawn: Option<String>,
    /// Why it is done, while a later start of it is still being stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<String>,
    /// Its last starts that were settled without a word of their ends: these count when they are heard of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unheard: Vec<UnheardRecord>,
    /// How it ended; none while it is active.
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
    /// The longest time that it may run on from any instant without further orders, grace and slack included.
    pub outlives: Seconds,
    /// When ranks are surely over of which nothing was heard since the start of a scheduler, or which their servers have lost, by
    /// rank, on the scheduler's clock. It stays over further starts, as long as nothing is heard of the rank.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub gone_by: BTreeMap<u32, Seconds>,
    /// What has been counted of it; none before all of its ranks have been known to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<CountedRecord>,
    /// The cost of its time, as far as it has been counted; nothing in the states of earlier versions.
    #[serde(default, skip_serializing_if = "Charges::is_empty")]
    pub charges: Charges,
    /// The end of its lease, on the scheduler's clock; none in the states of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_end: Option<Seconds>,
    /// What the event log has of it, from its order on; none in the states of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logged: Option<LoggedRecord>,
    /// How much of its lease's time the mechanism as it is on disk has not been told; below 0, how much it has been told ahead. None
    /// in the states of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untold: Option<Seconds>,
}

impl RunRecord {
    /// What the event log has of it, as this or an earlier version noted it.
    pub(super) fn logged(&self) -> Option<LoggedRecord> {
        self.logged.or(self.counted.and_then(|counted| counted.logged))
    }
}

/// A start of a job that was settled before all of its ends were heard of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnheardRecord {
    /// Which start.
    pub incarnation: u32,
    /// The server of each rank, by name: `[ranks]`.
    pub servers: Vec<String>,
    /// The type of its workers.
    pub worker_type: String,
    /// How much of its time is in what the job has received.
    pub counted: Seconds,
    /// The cost of that; nothing in the states of earlier versions.
    #[serde(default, skip_serializing_if = "Charges::is_empty")]
    pub charges: Charges,
    /// Did it share its workers? Then the event log has its time with another's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_shared: bool,
    /// The ends that have been heard of, by rank.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ends: BTreeMap<u32, LateEnd>,
}

/// The end of a rank, as its server reported it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LateEnd {
    /// How it ended.
    pub end: End,
    /// How long it ran, as its server measured it; none if the server did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran: Option<Seconds>,
}

/// What has been counted of a start of a job, by instants of the scheduler's clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountedRecord {
    /// Since when all of its ranks have been known to run.
    pub running: Seconds,
    /// Until when its time is in what the job has received.
    pub until: Seconds,
    /// What the event log has of it, in the states of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logged: Option<LoggedRecord>,
}

/// How far the event log has what a start of a job ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoggedRecord {
    /// Its time until then.
    pub at: Seconds,
    /// Steps of the job that a checkpoint held.
    pub checkpointed: f64,
    /// Steps that its program had done.
    pub steps: f64,
    /// The time that these took, s.
    pub seconds: f64,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// When, on the scheduler's clock.
    pub at: Seconds,
    /// In which way.
    pub how: How,
    /// In words.
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
    /// The number of its agent's folder, where the agent states one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<u64>,
    /// Why it gets no new job; none if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drained: Option<String>,
}

/// One thing to be put on disk. All records of one step are put there together, or none is.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// A job, in place of what was known of it.
    Job(Box<JobRecord>),
    /// A server, in place of what was known of it.
    Server(ServerRecord),
    /// The state of the policy and the mechanism, as JSON, in place of the last.
    Scheduler(String),
    /// A line of the event log, as simulations write it, and its instant on the scheduler's clock.
    Event(Seconds, String),
    /// What a live scheduler has to say beside the events of a simulation.
    Note(Seconds, Note),
}

/// Something that the cluster's operator may want to know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Note {
    /// In words.
    pub text: String,
    /// The job that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<JobNumber>,
    /// The server that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Does it want the operator's attention?
    pub is_warning: bool,
}

/// All that a store holds at the start of a scheduler.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stored {
    /// This start, counted from 1; it is on disk already.
    pub epoch: u64,
    /// Jobs that are not over, by number.
    pub jobs: Vec<JobRecord>,
    /// The last jobs that were over, by number: some that can still be asked about.
    pub over: Vec<JobRecord>,
    /// The number of the next job.
    pub next_job: u64,
    /// A number that was drawn for this start: no other start of any scheduler has it.
    pub drawn: u64,
    /// Servers, by name.
    pub servers: Vec<ServerRecord>,
    /// The state of the policy and the mechanism, as JSON.
    pub scheduler: Option<String>,
    /// How many rounds the event log has.
    pub n_rounds: u64,
    /// Is it known how long the scheduler was away? If not, what is to be over by an instant is waited for anew.
    pub is_clock_sure: bool,
    /// Records that could not be read, in words; they have been set aside.
    pub set_aside: Vec<String>,
}
