//! Events in a file, one JSON object a line: written while a simulation runs, replayed afterwards.
//!
//! The first line is a [`Header`]: the run and its cluster. The others are [`Event`](crate::simulator::Event)s. A fold over a
//! log equals the fold over the simulation.

mod record;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cluster::Cluster;
use crate::index::{Id, JobId};
use crate::simulator::Observer;
use crate::spec::complaint::without_place;
use crate::spec::run::RunSpec;
use crate::units::Seconds;
use record::Record;

/// The format of the log that this program writes.
pub const FORMAT: &str = "apportion/events-v1";

/// The first line of a log: the run and its cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Header {
    /// Kind and version of the log.
    #[cfg_attr(feature = "schema", schemars(extend("const" = FORMAT)))]
    pub format: String,
    /// The version of the program.
    pub version: String,
    /// The identity of the run: SHA-256 of its specification and its data, in hexadecimal.
    pub digest: String,
    /// The cluster.
    pub cluster: Cluster,
    /// The whole specification of the run.
    #[cfg_attr(feature = "schema", schemars(with = "RunSpec"))]
    pub spec: Value,
    /// SHA-256 of the data that it read, in hexadecimal, by the name of the data.
    pub data: BTreeMap<String, String>,
    /// The first arrival of the trace, in the trace's own time: the instant from which all others count.
    #[serde(default)]
    pub origin: Seconds,
}

impl Header {
    /// The header of a run by this program.
    pub fn new(digest: &str, cluster: &Cluster, spec: &RunSpec, data: &BTreeMap<String, String>) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            digest: digest.to_owned(),
            cluster: cluster.clone(),
            spec: serde_json::json!(spec),
            data: data.clone(),
            origin: Seconds::ZERO,
        }
    }

    /// The header as text, with its line end.
    pub fn line(&self) -> String {
        format!("{}\n", serde_json::json!(self))
    }
}

/// A line of a log that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// It is not JSON, or not an event.
    #[error("line {line} is not an event: {what}")]
    Line {
        /// The number of the line, from 1.
        line: usize,
        /// The number of the byte in it where it cannot be read, from 1; 1 where that is not known.
        column: usize,
        /// Why the line is no event, in words.
        what: String,
    },
    /// It does not start with a header.
    #[error("it does not start with a header of format {FORMAT}")]
    Headless,
    /// Events are missing before this line.
    #[error("line {line} is of {found}, expected {expected}: events are missing before it")]
    Gap {
        /// The number of the line, from 1.
        line: usize,
        /// The job or round of the event.
        found: String,
        /// The job or round that ought to be next.
        expected: String,
    },
    /// It has another format.
    #[error("it is of format {found}, this is {FORMAT}")]
    Format {
        /// The format that it states.
        found: String,
    },
}

impl LogError {
    /// The line that is at fault, from 1.
    pub fn line(&self) -> usize {
        match self {
            Self::Line { line, .. } | Self::Gap { line, .. } => *line,
            Self::Headless | Self::Format { .. } => 1,
        }
    }

    /// The byte of the line at which it is at fault, from 1.
    pub fn column(&self) -> usize {
        match self {
            Self::Line { column, .. } => *column,
            Self::Headless | Self::Format { .. } | Self::Gap { .. } => 1,
        }
    }
}

/// Reads the first line of a log.
///
/// # Errors
/// If it is no header, or a header of another format.
pub fn header(line: &str) -> Result<Header, LogError> {
    let value: Value = serde_json::from_str(line).map_err(|_| LogError::Headless)?;
    match value["format"].as_str() {
        Some(FORMAT) => {}
        Some(found) => return Err(LogError::Format { found: found.to_owned() }),
        None => return Err(LogError::Headless),
    }
    serde_json::from_str(line).map_err(|error| {
        let (column, what) = placed(&error);
        LogError::Line { line: 1, column, what }
    })
}

/// The column of an error about one line, and its words.
fn placed(error: &serde_json::Error) -> (usize, String) {
    let message = error.to_string();
    (error.column().max(1), without_place(&message).to_owned())
}

/// The events and lines that a damaged log lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Jobs without the event of their arrival: they are left out.
    pub jobs: BTreeSet<JobId>,
    /// The number of rounds without the event of their start.
    pub n_rounds: u64,
    /// The first ten lines that are no events: line number, from 1, and the reason in words.
    pub unread: Vec<(usize, String)>,
    /// The number of all lines that are no events.
    pub n_unread: usize,
}

/// The most lines that are no events of which the reason is kept.
const UNREAD_MAX: usize = 10;

impl Missing {
    /// Whether nothing is missing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn note_unread(&mut self, line: usize, what: String) {
        self.n_unread += 1;
        if self.unread.len() < UNREAD_MAX {
            self.unread.push((line, what));
        }
    }
}

/// The events of a log, line by line from the second on.
#[derive(Clone, Debug)]
pub struct Replay<'a> {
    cluster: &'a Cluster,
    /// The number of the last line that was replayed, from 1.
    line: usize,
    next_job: usize,
    next_round: u64,
    /// The lines and events that were passed over; none in a replay that passes over nothing.
    missing: Option<Missing>,
    /// The instant at which it ends; none where that is the end of the log.
    until: Option<Seconds>,
    /// Whether an event of a later instant was met.
    is_over: bool,
}

impl<'a> Replay<'a> {
    /// A replay that begins after the header.
    pub fn new(header: &'a Header) -> Self {
        Self {
            cluster: &header.cluster,
            line: 1,
            next_job: 0,
            next_round: 0,
            missing: None,
            until: None,
            is_over: false,
        }
    }

    /// This replay, ended before the first event that begins at this instant or later.
    #[must_use]
    pub fn until(self, end: Seconds) -> Self {
        Self { until: Some(end), ..self }
    }

    /// Whether the replay has met an event at or after the instant at which it ends. No event is replayed from then on.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// This replay, passing over lines that are no events, and going on where events are missing. Jobs without an arrival are left
    /// out.
    #[must_use]
    pub fn passing_over(self) -> Self {
        Self { missing: Some(Missing::default()), ..self }
    }

    /// The lines and events that were passed over.
    pub fn into_missing(self) -> Missing {
        self.missing.unwrap_or_default()
    }

    /// Replays the event in the next line to an observer.
    ///
    /// # Errors
    /// If it is no event, names workers that the cluster does not have, or is of a job or a round while earlier ones are missing. After
    /// the replay's end, lines are read and not replayed.
    pub fn tell(&mut self, line: &str, observer: &mut dyn Observer) -> Result<(), LogError> {
        self.line += 1;
        let read = serde_json::from_str(line).map_err(|error| {
            let (column, what) = placed(&error);
            // The fields of an event are read when all of it is: an error about one is found at its end.
            (if error.is_data() { 1 } else { column }, what)
        });
        let check = |record: Record| match record.check(self.cluster) {
            Ok(()) => Ok(record),
            Err(what) => Err((1, what)),
        };
        let read = read.and_then(check);
        let is_later = |record: &Record| self.until.is_some_and(|end| record.instant() >= end);
        self.is_over = self.is_over || read.as_ref().is_ok_and(is_later);
        if self.is_over {
            return Ok(());
        }
        let record = match (read, &mut self.missing) {
            (Ok(record), Some(_)) => {
                self.replay_known_jobs(&record, observer);
                return Ok(());
            }
            (Ok(record), None) => record,
            (Err((_, what)), Some(missing)) => {
                missing.note_unread(self.line, what);
                return Ok(());
            }
            (Err((column, what)), None) => return Err(LogError::Line { line: self.line, column, what }),
        };
        let gap = |found: String, expected: String| LogError::Gap { line: self.line, found, expected };
        match record {
            Record::Arrival { id, .. } if id.index() != self.next_job => {
                return Err(gap(format!("job {id}"), format!("job {}", self.next_job)));
            }
            Record::Arrival { .. } => self.next_job += 1,
            Record::RoundStarted { round, .. } if round != self.next_round => {
                return Err(gap(format!("round {round}"), format!("round {}", self.next_round)));
            }
            Record::RoundStarted { .. } => self.next_round += 1,
            _ => {}
        }
        let no_event = |what| LogError::Line { line: self.line, column: 1, what };
        let event = record.event(self.cluster).map_err(no_event)?;
        observer.observe(&event);
        Ok(())
    }

    /// Replays an event, unless it is of a job without an arrival in the log; such a job's time on workers is replayed all the same.
    fn replay_known_jobs(&mut self, record: &Record, observer: &mut dyn Observer) {
        let Some(missing) = &mut self.missing else { return };
        let jobs = record.jobs();
        // Jobs arrive in order of number, and a job's arrival precedes its other events.
        let arrived = jobs.iter().map(|id| id.index() + 1).max().unwrap_or(0);
        let is_arrival = matches!(record, Record::Arrival { .. });
        let absent = self.next_job..arrived.saturating_sub(usize::from(is_arrival));
        missing.jobs.extend(absent.map(JobId::from_index));
        if is_arrival && arrived <= self.next_job {
            return missing.note_unread(
                self.line,
                "it is the arrival of a job of which more was told before".to_owned(),
            );
        }
        self.next_job = self.next_job.max(arrived);
        if let Record::RoundStarted { round, .. } = record {
            missing.n_rounds += round.saturating_sub(self.next_round);
            self.next_round = self.next_round.max(round.saturating_add(1));
        }
        let is_whole = !jobs.iter().any(|id| missing.jobs.contains(id));
        if (is_whole || matches!(record, Record::Slice(_)))
            && let Ok(event) = record.event(self.cluster)
        {
            observer.observe(&event);
        }
    }
}

#[cfg(test)]
mod tests;
