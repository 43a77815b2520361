//! The record of a shadow, as it is kept on disk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::key::JobKey;
use crate::files;
use crate::slurm::may_be_same;

/// The document's format.
const FORMAT: &str = "apportion/shadow-v1";

/// The start and the end of a job, in s since 1970; none for what has not happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// The instant at which it first had its workers.
    pub started_s: Option<f64>,
    /// The instant at which it ended.
    pub ended_s: Option<f64>,
}

/// A span of time in which a job is assumed to have run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Piece {
    /// Its beginning, in s since 1970.
    pub from_s: f64,
    /// Its end, in s since 1970.
    pub until_s: f64,
    /// The job's throughput, in steps/s.
    pub speed: f64,
}

/// A job as the other scheduler shows it. Instants are in s since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// Its name.
    pub name: String,
    /// The user that submitted it.
    pub user: String,
    /// Its job type, as the throughputs name it, or its name if they do not have it.
    pub job_type: String,
    /// Workers it needs at once.
    pub n_workers: u32,
    /// Its throughput by worker type, in steps/s; only of types on which it may run.
    pub speeds: BTreeMap<String, f64>,
    /// The most time for which it runs according to its user, in s; none if its user states none.
    pub limit_s: Option<f64>,
    /// The instant at which it was submitted, or last put back.
    pub submitted_s: f64,
    /// The number of times that it was put back.
    #[serde(default)]
    pub n_restarts: u32,
    /// The instant since when it may run, as far as its user and its dependencies let it; none while it may not, and in records of
    /// earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eligible_s: Option<f64>,
    /// Whether it is held, or waits for other jobs or for a later time.
    #[serde(default)]
    pub is_withheld: bool,
    /// Its start and end under the other scheduler.
    pub there: Times,
    /// The type of the workers that it has, or had, there; none if it has had none.
    pub ran_on: Option<String>,
}

impl Seen {
    /// The instant at which its wait begins: when it may run, or when it was submitted if that is not known.
    pub fn ready_s(&self) -> f64 {
        self.eligible_s.unwrap_or(self.submitted_s)
    }

    /// Whether it has neither been started nor been ready to run.
    pub(super) fn was_never_ready(&self) -> bool {
        self.there.started_s.is_none() && self.eligible_s.is_none()
    }
}

/// The submission of a job, by which it is recognized.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Submission {
    submitted_s: f64,
    n_restarts: u32,
}

/// A job, there and here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The job as it was first seen under the other scheduler, with its times there as they are known now.
    pub seen: Seen,
    /// Its submission, as it was last shown. None in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Submission>,
    /// The instant at which it was last started there, if that was not its first start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarted_s: Option<f64>,
    /// Its start and end in the shadow.
    pub here: Times,
    /// Why it is not compared; none if it is compared.
    pub left_out: Option<String>,
    /// The instant up to which it was in the shadow, if it was left out: its submission, if it never was there. None also in
    /// records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_s: Option<f64>,
    /// The instant at which it was first missing there without a known end, in s since 1970; none if it is shown, or has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone_s: Option<f64>,
    /// Steps from its beginning to its end; none before it has ended there.
    pub needed: Option<f64>,
    /// The spans in which it ran here; empty once it has ended.
    pub work: Vec<Piece>,
}

impl Entry {
    pub(super) fn new(seen: Seen) -> Self {
        let (here, work) = (Times::default(), Vec::new());
        let shown = Some(Submission { submitted_s: seen.submitted_s, n_restarts: seen.n_restarts });
        let (restarted_s, left_out, left_s, gone_s, needed) = (None, None, None, None, None);
        Self { seen, shown, restarted_s, here, left_out, left_s, gone_s, needed, work }
    }

    /// Whether a job that is shown under the same number can be this one. It is another one if the other scheduler forgot this one.
    pub(super) fn may_be(&self, job: &Seen) -> bool {
        let is_of_before = |shown: Submission| {
            may_be_same(shown.n_restarts, job.n_restarts, job.submitted_s.total_cmp(&shown.submitted_s))
        };
        self.seen.user == job.user && self.shown.is_none_or(is_of_before)
    }

    /// Takes over the job as it is shown now. The instant at which it first had its workers stays, even if it is put back.
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

    /// Whether it is neither left out nor ended here.
    pub(super) fn is_open(&self) -> bool {
        self.left_out.is_none() && self.here.ended_s.is_none()
    }

    /// The steps that it has done here.
    pub(super) fn done(&self) -> f64 {
        self.work.iter().map(|piece| (piece.until_s - piece.from_s) * piece.speed).sum()
    }

    /// Adds a span; if it continues the last one, that becomes longer.
    pub(super) fn add(&mut self, piece: Piece) {
        match self.work.last_mut() {
            Some(last) if last.until_s >= piece.from_s && last.speed.to_bits() == piece.speed.to_bits() => {
                last.until_s = piece.until_s;
            }
            _ => self.work.push(piece),
        }
    }

    /// The instant at which this many steps had been done here; none if they have not.
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

/// The record of all that a shadow has seen and done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    format: String,
    /// The policy that decides.
    pub policy: String,
    /// Length of a round, in s.
    pub round_length_s: f64,
    /// The instant at which it began, in s since 1970.
    pub since_s: f64,
    /// The instant of its last look, in s since 1970.
    pub looked_s: f64,
    /// The number of rounds that were decided.
    pub n_rounds: u64,
    /// All jobs by their numbers there.
    pub jobs: BTreeMap<JobKey, Entry>,
}

/// Why a record cannot be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The file cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error.
        source: std::io::Error,
    },
    /// The file has another format.
    #[error("{path}: its format is `{found}`, expected `{FORMAT}`")]
    Format {
        /// The file.
        path: PathBuf,
        /// The format that it states.
        found: String,
    },
}

impl Record {
    /// A record that begins in this second: the instants of other schedulers are whole seconds.
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

    /// Reads a record; none if there is no such file.
    ///
    /// # Errors
    /// If the file cannot be read, or is no record.
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

    /// The key of a job that is shown now under a number: that of the latest job with this number, or the next one if it is another
    /// job.
    pub(super) fn key_of(&self, number: JobKey, job: &Seen) -> JobKey {
        match self.jobs.range(number..=number.last()).next_back() {
            Some((key, entry)) if entry.may_be(job) => *key,
            Some((key, _)) => key.next(),
            None => number,
        }
    }

    /// Writes the record, whole or not at all.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), RecordError> {
        files::write_durably(path, self).map_err(|source| RecordError::Io { path: path.to_owned(), source })
    }
}
