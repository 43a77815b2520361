//! The documents that a scheduler and the agents of servers send each other: two, each the whole state of its sender.
//!
//! An agent sends a [`Report`] at every beat, and whenever something changes: all ranks that it has. The scheduler answers
//! with [`Orders`]: all runs that the server is to have. Whatever is lost, repeated or late is therefore made good by the
//! next one, and neither side has to know what the other has received.
//!
//! **Time.** No two clocks need agree. A lease is a duration that the node counts from the sending of the report that the
//! orders [answer](Orders::answers), and the scheduler from the receipt of the same report, which is later. So a lease never
//! lasts longer on the node than the scheduler believes, however long the orders were on their way; and orders that come
//! when their lease is over start nothing.
//!
//! **Order.** Orders have an epoch, which grows with each start of the scheduler, and a number in it. Agents take none that
//! is older than one they have had. Reports have a boot, drawn anew by each start of an agent, and a number in it.

use std::collections::BTreeMap;
use std::fmt;

use apportion::index::{Id, JobId};
use apportion::{Seconds, Steps};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The header with the number of the last line of a part of the event log; for an empty part, with the number that was asked for.
pub(crate) const LAST_EVENT: &str = "x-apportion-last";

/// The header of every answer, by which clients tell schedulers from other programs: the version.
pub(crate) const VERSION: &str = "x-apportion-version";

/// The most letters of a server's name, and of a worker type in a report.
const NAME_MAX: usize = 100;

/// The most workers of one server.
const WORKERS_MAX: u32 = 1024;

/// A job's number: its place in the order of submission, from 0. It stays the same over all starts of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct JobNumber(pub u64);

impl JobNumber {
    /// The job's id in the event log.
    pub fn in_log(self) -> JobId {
        JobId::from_index(
            usize::try_from(self.0).map_or(u32::MAX as usize, |number| number.min(u32::MAX as usize)),
        )
    }
}

impl fmt::Display for JobNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// One start of a job: its incarnations are counted from 1, and none is ever used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Run {
    /// The job.
    pub job: JobNumber,
    /// Number of the start, from 1.
    pub incarnation: u32,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job {} (incarnation {})", self.job, self.incarnation)
    }
}

/// The program that each rank of a job runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The program and its arguments; no shell reads them.
    pub command: Vec<String>,
    /// The folder in which it runs; none for the agent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Variables of its environment, in addition to the agent's.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
}

/// The way in which a rank is asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// After the step that is running.
    Now,
    /// Rank 0 of a gang proposes the step after which all ranks can stop, and goes on.
    Propose,
    /// After this step, or at once if it is done.
    After(u64),
    /// At once, without a checkpoint.
    Kill,
}

/// The right of a job to workers of one server, as the scheduler orders it from the server's agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaseOrder {
    /// The run.
    pub run: Run,
    /// The job's [submission](crate::core::JobRecord::submission).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submission: Option<u64>,
    /// Its ranks on this server, and the worker of each by its place on the server: `[ranks here]`.
    pub ranks: Vec<(u32, u32)>,
    /// Number of ranks on all servers.
    pub world_size: u32,
    /// The server of rank 0, by name.
    pub first_server: String,
    /// The job that shares these workers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<JobNumber>,
    /// Time from the sending of the answered report for which the ranks may run; then they are asked to stop.
    pub lease: Seconds,
    /// Time after which ranks are killed, from the request to stop or from the lease's end.
    pub grace: Seconds,
    /// The way in which the ranks are to stop; none if they are to go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// Steps from the job's beginning to its end.
    pub total_steps: Steps,
    /// The program that is run.
    pub program: Program,
}

/// All runs that a server is to have. Runs that are not among its leases are stopped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Orders {
    /// The scheduler's start, counted from 1.
    pub epoch: u64,
    /// The number of these orders within the epoch and for this server.
    pub number: u64,
    /// The report that durations count from.
    pub answers: ReportId,
    /// The runs that are to be here.
    pub leases: Vec<LeaseOrder>,
    /// Runs whose end is on the scheduler's disk: the agent may forget them.
    pub forget: Vec<Run>,
}

/// A report's number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ReportId {
    /// A number that is drawn at each start of an agent, larger than the one before.
    pub boot: u64,
    /// The report's number within the boot, from 1.
    pub number: u64,
}

/// The whole state of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// The server's name.
    pub server: String,
    /// The report's number.
    pub id: ReportId,
    /// A number that was drawn once for the agent's folder, by which two agents with one name are told apart; none if the agent has
    /// no such number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<u64>,
    /// The type of the server's workers.
    pub worker_type: String,
    /// The number of its workers.
    pub n_workers: u32,
    /// Whether it can start nothing now, because the system that starts its ranks does not answer. Ranks that run there go on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_frozen: bool,
    /// Why it can start nothing more, its disk being full, in words; none if there is room. Ranks that run there go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<String>,
    /// Why it offers no worker, in words, if the system that starts its ranks gives it none; none if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<String>,
    /// The highest epoch and number of orders taken.
    pub taken: (u64, u64),
    /// Its ranks: all that run, and all that have ended and are not forgotten yet.
    pub ranks: Vec<RankReport>,
}

/// A fault in an agent's description of its server.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ServerFault {
    /// Its name cannot stand in paths, tables and logs.
    #[error(
        "`{0}` is no name of a server: expected 1 to {NAME_MAX} letters and digits of ASCII, `.`, `_` and `-`, the first a \
         letter or digit"
    )]
    Name(String),
    /// The name of its worker type is empty, long or odd.
    #[error("the type of a server's workers is a name of 1 to {NAME_MAX} bytes without control characters")]
    WorkerType,
    /// It has no workers, or more than a server has.
    #[error("a server has 1 to {WORKERS_MAX} workers, this one {0}")]
    Workers(u32),
}

/// Refuses a server whose description cannot be used over the network.
///
/// # Errors
/// If its name or the name of its worker type is empty, long or odd, or its number of workers is 0 or vast.
pub fn check_server(name: &str, worker_type: &str, n_workers: u32) -> Result<(), ServerFault> {
    let is_fit = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let begins = name.starts_with(|letter: char| letter.is_ascii_alphanumeric());
    if !begins || name.len() > NAME_MAX || !name.chars().all(is_fit) {
        return Err(ServerFault::Name(name.escape_debug().take(NAME_MAX).collect()));
    }
    if worker_type.is_empty() || worker_type.len() > NAME_MAX || worker_type.contains(char::is_control) {
        return Err(ServerFault::WorkerType);
    }
    if !(1..=WORKERS_MAX).contains(&n_workers) {
        return Err(ServerFault::Workers(n_workers));
    }
    Ok(())
}

/// The scheduler's answer over the network to a report that it heeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Heard {
    /// The interval at which it wants reports of the server, in s.
    pub beat_s: f64,
    /// Its newest orders for the server, unless the report says that they were taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub orders: Option<Orders>,
}

/// A rank, as its agent knows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankReport {
    /// The run.
    pub run: Run,
    /// The rank's number.
    pub rank: u32,
    /// Its worker, by its place on the server.
    pub worker: u32,
    /// The state of its processes.
    pub phase: Phase,
    /// Its progress, as its program reports it.
    pub progress: Progress,
    /// Time that it ran, once it has ended: from its program's start until no process of it was left. None where it was not
    /// measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran: Option<Seconds>,
    /// The time from its end to the report, once it has ended, by its server's clock. None where that clock does not tell: its server did not
    /// see the end, or was started anew since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ago: Option<Seconds>,
}

/// The state of a rank's processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It has been given to Slurm, which has not started it yet.
    Waiting,
    /// Its program has been started.
    Running,
    /// It has been asked to stop.
    Stopping,
    /// No process of it is left.
    Ended(End),
}

/// The end of a rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// It ended by itself, with this exit code.
    Exit(i32),
    /// A signal ended it that was not the agent's.
    Signal(i32),
    /// It was asked to stop, and did; the exit code, where there is one.
    Stopped(Option<i32>),
    /// It was asked to stop, did not in time, and was killed.
    Killed,
    /// It could not be started, and why: the fault may be the server's.
    NotStarted(String),
    /// Its program could not be executed, or has no such folder, and why: the fault is the job's on every server.
    NotExecutable(String),
    /// Slurm, to which its user submitted it, does not start it on these workers, and why: the fault is the job's on every server.
    Declined(String),
    /// It went while its agent ran, without an account of its end: something killed its shim.
    Vanished,
    /// It is gone without an account of its end, by no fault of its own as far as is known; the text has the known circumstances.
    Lost(String),
    /// It was ended from outside while it ran, together with its shim. Its job waits before it is started again.
    Cut {
        /// The known circumstances, in words.
        why: String,
        /// Whether it counts as a failure of the job.
        is_failure: bool,
    },
    /// It is over for this reason, and its job cannot be started again.
    Final(String),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(code) => write!(f, "ended with exit code {code}"),
            Self::Signal(signal) => write!(f, "was ended by signal {signal}"),
            Self::Stopped(_) => f.write_str("stopped when asked to"),
            Self::Killed => f.write_str("was killed, since it did not stop in time"),
            Self::NotStarted(why) | Self::NotExecutable(why) => write!(f, "could not be started: {why}"),
            Self::Declined(why) => write!(f, "has not begun: Slurm does not start it there: {why}"),
            Self::Lost(why) => write!(f, "was lost: {why}"),
            Self::Cut { why, .. } => write!(f, "was ended from outside: {why}"),
            Self::Final(why) => write!(f, "cannot be started again: {why}"),
            Self::Vanished => f.write_str("was gone when its agent looked, without a word of its end"),
        }
    }
}

/// The progress of a job's ranks, as the program reports it; all numbers are 0 where it reports nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// Whether the program writes its progress, and is therefore asked to stop by its control file.
    pub speaks: bool,
    /// Steps since the job's beginning, over all incarnations.
    pub steps: f64,
    /// Steps of these that the last checkpoint holds.
    pub checkpointed: f64,
    /// Steps at the start of this incarnation.
    pub first: f64,
    /// Time that the steps since then took, in s, without starting up and saving.
    pub seconds: f64,
    /// The step after which all ranks can stop, as rank 0 proposes it.
    pub proposed: Option<u64>,
    /// Whether the program says that the job is done.
    pub done: bool,
}
