//! What a shadow has seen and done, as it is kept on disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::key::JobKey;
use crate::files;
use crate::slurm::may_be_same;

/// The document's format.
const FORMAT: &str = "apportion/shadow-v1";

/// When a job was started and ended, in s since 1970; none of what has not happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// When it first had its workers.
    pub started_s: Option<f64>,
    /// When it ended.
    pub ended_s: Option<f64>,
}

/// A stretch of time in which a job is taken to have run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Piece {
    /// Its beginning, in s since 1970.
    pub from_s: f64,
    /// Its end, in s since 1970.
    pub until_s: f64,
    /// The job's throughput, in steps/s.
    pub speed: f64,
}

/// What the other scheduler shows of a job. Instants are in s since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// Its name.
    pub name: String,
    /// The user that submitted it.
    pub user: String,
    /// Its job type, as the throughputs call it, or its name where they do not know it.
    pub job_type: String,
    /// Workers it needs at once.
    pub n_workers: u32,
    /// Its throughput by worker type, in steps/s; only of types on which it may run.
    pub speeds: BTreeMap<String, f64>,
    /// How long its user says that it runs at most, in s.
    pub limit_s: Option<f64>,
    /// When it was submitted, or last put back.
    pub submitted_s: f64,
    /// How often it was put back.
    #[serde(default)]
    pub n_restarts: u32,
    /// Since when it may run, as far as its user and what it depends on let it; none while it may not, and in records of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eligible_s: Option<f64>,
    /// Is it held, or waiting for other jobs or for a later time?
    #[serde(default)]
    pub is_withheld: bool,
    /// When it was started there, and ended.
    pub there: Times,
    /// The type of the workers that it has, or had, there.
    pub ran_on: Option<String>,
}

impl Seen {
    /// When its wait begins: when it may run, and when it was submitted where that is not known.
    pub fn ready_s(&self) -> f64 {
        self.eligible_s.unwrap_or(self.submitted_s)
    }

    /// Has it neither been started, nor been such that it could?
    pub(super) fn was_never_ready(&self) -> bool {
        self.there.started_s.is_none() && self.eligible_s.is_none()
    }
}

/// By what it is told whether a job is the one of before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Submission {
    submitted_s: f64,
    n_restarts: u32,
}

/// A job, there and here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Under the other scheduler, as it was first seen; but its times there are those that are known now.
    pub seen: Seen,
    /// Its submission, as it was last shown. None in records of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Submission>,
    /// When it was last started there, if that was not the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarted_s: Option<f64>,
    /// In the shadow.
    pub here: Times,
    /// Why it is not compared; none if it is.
    pub left_out: Option<String>,
    /// Until when it was in the shadow, if it was left out: its submission, where it never was. None also in records of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_s: Option<f64>,
    /// When it was first not shown any more, in s since 1970, without a word of its end; none if it is shown, or has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone_s: Option<f64>,
    /// Steps to its end; none before it has ended there.
    pub needed: Option<f64>,
    /// When it ran here; empty once it has ended.
    pub work: Vec<Piece>,
}

impl Entry {
    pub(super) fn new(seen: Seen) -> Self {
        let (here, work) = (Times::default(), Vec::new());
        let shown = Some(Submission { submitted_s: seen.submitted_s, n_restarts: seen.n_restarts });
        let (restarted_s, left_out, left_s, gone_s, needed) = (None, None, None, None, None);
        Self { seen, shown, restarted_s, here, left_out, left_s, gone_s, needed, work }
    }

    /// Can a job that is shown under the same number be this one? It is another, where the other scheduler forgot this one.
    pub(super) fn may_be(&self, job: &Seen) -> bool {
        let is_of_before = |shown: Submission| {
            may_be_same(shown.n_restarts, job.n_restarts, job.submitted_s.total_cmp(&shown.submitted_s))
        };
        self.seen.user == job.user && self.shown.is_none_or(is_of_before)
    }

    /// Takes over what is shown of it now. When it first had its workers stays so, though it is put back.
    pub(super) fn show(&mut self, job: &Seen) {
        let first = self.seen.there.started_s.or(job.there.started_s);
        if job.there.started_s.is_some_and(|started| first.is_some_and(|first| started > first)) {
            self.restarted_s = job.there.started_s;
        }
        self.seen.there = Times { started_s: first, ended_s: job.there.ended_s };
        self.seen.ran_on = job.ran_on.clone().or(self.seen.ran_on.take());
        self.shown = Some(Submission { submitted_s: job.submitted_s, n_restarts: job.n_restarts });
    }

    /// Leaves it out of the comparison from this instant on.
    pub(super) fn leave_out(&mut self, why: String, at_s: f64) {
        (self.left_out, self.left_s) = (Some(why), Some(at_s));
    }

    /// Is it neither left out nor ended here?
    pub(super) fn is_open(&self) -> bool {
        self.left_out.is_none() && self.here.ended_s.is_none()
    }

    /// Steps done here.
    pub(super) fn done(&self) -> f64 {
        self.work.iter().map(|piece| (piece.until_s - piece.from_s) * piece.speed).sum()
    }

    /// Adds a stretch; one that goes on where the last one ended makes that longer.
    pub(super) fn add(&mut self, piece: Piece) {
        match self.work.last_mut() {
            Some(last) if last.until_s >= piece.from_s && last.speed.to_bits() == piece.speed.to_bits() => {
                last.until_s = piece.until_s;
            }
            _ => self.work.push(piece),
        }
    }

    /// When so many steps had been done here; none if they have not.
    pub(super) fn reached(&self, needed: f64) -> Option<f64> {
        let mut left = needed;
        for piece in &self.work {
            let steps = (piece.until_s - piece.from_s) * piece.speed;
            if steps > 0.0 && left <= steps {
                return Some(piece.from_s + left.max(0.0) / piece.speed);
            }
            left -= steps;
        }
        None
    }
}

/// All that a shadow has seen and done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    format: String,
    /// The policy that decides.
    pub policy: String,
    /// Length of a round, in s.
    pub round_length_s: f64,
    /// When it began, in s since 1970.
    pub since_s: f64,
    /// When it last looked, in s since 1970.
    pub looked_s: f64,
    /// Rounds that were decided.
    pub n_rounds: u64,
    /// Jobs by their numbers there.
    pub jobs: BTreeMap<JobKey, Entry>,
}

/// Why a record cannot be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The file.
    #[error("{path}: {source}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is of another form.
    #[error("{path}: its format is `{found}`, expected `{FORMAT}`")]
    Format {
        /// The file.
        path: PathBuf,
        /// What it says.
        found: String,
    },
}

impl Record {
    /// One that begins in this second: the instants of other schedulers are whole seconds.
    pub fn begin(policy: &str, round_length_s: f64, now_s: f64) -> Self {
        let now_s = now_s.floor();
        Self {
            format: FORMAT.to_owned(),
            policy: policy.to_owned(),
            round_length_s,
            since_s: now_s,
            looked_s: now_s,
            n_rounds: 0,
            jobs: BTreeMap::new(),
        }
    }

    /// Reads it; none if there is no such file.
    ///
    /// # Errors
    /// If it cannot be read, or is none.
    pub fn read(path: &Path) -> Result<Option<Self>, RecordError> {
        let record: Self = match files::read(path) {
            Ok(record) => record,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(RecordError::Io { path: path.to_owned(), source }),
        };
        if record.format != FORMAT {
            return Err(RecordError::Format { path: path.to_owned(), found: record.format });
        }
        Ok(Some(record))
    }

    /// The key of a job that is shown now under a number: that of the latest job of this number, or the next one, where it is
    /// another job.
    pub(super) fn key_of(&self, number: JobKey, job: &Seen) -> JobKey {
        match self.jobs.range(number..=number.last()).next_back() {
            Some((key, entry)) if entry.may_be(job) => *key,
            Some((key, _)) => key.next(),
            None => number,
        }
    }

    /// Writes it, whole or not at all.
    ///
    /// # Errors
    /// If the disk does not let it.
    pub fn write(&self, path: &Path) -> Result<(), RecordError> {
        files::write_durably(path, self).map_err(|source| RecordError::Io { path: path.to_owned(), source })
    }
}
