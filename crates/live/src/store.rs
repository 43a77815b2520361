//! The scheduler's records on disk: one SQLite file, one writer, nothing acknowledged before it is there.

mod damage;
mod event_log;

use std::path::{Path, PathBuf};
use std::time::Duration;

use apportion::Seconds;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, params};
use thiserror::Error;

use crate::clock::{Clock, node_now, wall_s};
use crate::core::{JobRecord, Note, OVER_MAX, Record, ServerRecord, Stored};
use crate::process::boot_id;

pub use event_log::Passed;

/// The version of the file's layout.
const VERSION: u32 = 1;

/// The number by which SQLite files of this program are told from others: "aplv".
const APPLICATION: i32 = 0x6170_6c76;

/// The number of newest notes that are kept.
const NOTES_KEPT: u64 = 100_000;

/// The number of newest records of a kind by which the last instant is known.
const NEWEST: u32 = 1_000;

/// The most records of a kind that are dropped in one call, so that nothing waits long for it.
const DROPPED_AT_ONCE: u32 = 5_000;

const LAYOUT: &str = "
    CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
    CREATE TABLE IF NOT EXISTS jobs (number INTEGER PRIMARY KEY, is_over INTEGER NOT NULL, document TEXT NOT NULL) STRICT;
    CREATE INDEX IF NOT EXISTS active_jobs ON jobs (number) WHERE is_over = 0;
    CREATE TABLE IF NOT EXISTS servers (name TEXT PRIMARY KEY, document TEXT NOT NULL) STRICT;
    CREATE TABLE IF NOT EXISTS events (number INTEGER PRIMARY KEY, at_s REAL NOT NULL, line TEXT NOT NULL) STRICT;
    CREATE TABLE IF NOT EXISTS notes (number INTEGER PRIMARY KEY, at_s REAL NOT NULL, document TEXT NOT NULL) STRICT;
    CREATE TABLE IF NOT EXISTS set_aside (number INTEGER PRIMARY KEY, from_table TEXT NOT NULL, key TEXT NOT NULL,
        document TEXT NOT NULL, reason TEXT NOT NULL) STRICT;
";

/// Tables without which a file of this layout is not whole.
const NEEDED: [&str; 5] = ["meta", "jobs", "servers", "events", "notes"];

/// Why a store cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another scheduler uses it.
    #[error("{path}: another scheduler uses this state; stop it first, or name another folder by --state")]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The file is another program's, or another version's.
    #[error("{path}: {what}")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The kind of file that it is, and the remedy.
        what: String,
    },
    /// There is no room for what is to be written.
    #[error("{path}: the disk is full: make room on it")]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be read or written.
    #[error("{path}: {source}")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// The error of SQLite.
        source: rusqlite::Error,
    },
}

impl StoreError {
    /// An error of SQLite at a file, with the remedy where there is one.
    fn of(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        let what = match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => return Self::InUse { path },
            Some(ErrorCode::NotADatabase) => "this is no SQLite file; name another folder by --state".to_owned(),
            Some(ErrorCode::DatabaseCorrupt) => {
                "this file is damaged, or a part of it is missing: put a back-up of the folder in its place, or name another \
                 folder by --state"
                    .to_owned()
            }
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                "this file cannot be opened to be written: see who may write to the folder, or name another by --state"
                    .to_owned()
            }
            Some(ErrorCode::DiskFull) => return Self::Full { path },
            _ => return Self::Sqlite { path, source },
        };
        Self::Foreign { path, what }
    }
}

/// A part of the event log that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// The lines after the one of this number, at most the second number of them.
    After(i64, u32),
    /// The newest lines, at most this number.
    Last(u32),
}

/// A scheduler's records.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    connection: Connection,
}

impl Store {
    /// Opens or makes the file, for this process alone, and begins a new epoch.
    ///
    /// # Errors
    /// If another scheduler uses it, it is no such file or another version's, or it cannot be read or written.
    pub fn open(path: &Path) -> Result<(Self, Stored), StoreError> {
        let fail = |source| StoreError::of(path, source);
        let connection = Connection::open(path).map_err(fail)?;
        let mut store = Self { path: path.to_owned(), connection };
        let version = store.prepare().map_err(fail)?;
        store.check(version)?;
        store.lay_out().map_err(fail)?;
        let stored = store.load().map_err(fail)?;
        Ok((store, stored))
    }

    /// Whether another scheduler uses this file now. [`open`](Self::open) waits some seconds for it to end.
    pub fn is_in_use(path: &Path) -> bool {
        let looked =
            Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).and_then(|connection| {
                connection.busy_timeout(Duration::ZERO)?;
                connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))
            });
        let code = looked.err().and_then(|error| error.sqlite_error_code());
        matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
    }

    /// Takes the file for this process alone, and returns the application's number and the version that it states.
    fn prepare(&mut self) -> rusqlite::Result<(i32, u32)> {
        let connection = &self.connection;
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        // An exclusive lock is taken with the first transaction that writes, and kept.
        connection.execute_batch("BEGIN IMMEDIATE; COMMIT")?;
        let application = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
        let version = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        Ok((application, version))
    }

    fn check(&self, (application, version): (i32, u32)) -> Result<(), StoreError> {
        let tables = self.tables().map_err(|source| StoreError::of(&self.path, source))?;
        let missing = NEEDED.iter().find(|needed| !tables.iter().any(|table| table == *needed));
        let what = match (application, version) {
            (APPLICATION, VERSION) => match missing {
                None => return Ok(()),
                Some(table) => format!(
                    "the table `{table}` of this file is missing: put a back-up of the folder in its place, or name another \
                     folder by --state"
                ),
            },
            (0, 0) if tables.is_empty() => return Ok(()),
            (APPLICATION, other) => {
                format!(
                    "this is the state of another version (layout {other}, this program has {VERSION}): run that version"
                )
            }
            _ => "this is another program's database; name another folder by --state".to_owned(),
        };
        Err(StoreError::Foreign { path: self.path.clone(), what })
    }

    fn tables(&self) -> rusqlite::Result<Vec<String>> {
        let mut statement = self.connection.prepare("SELECT name FROM sqlite_schema")?;
        statement.query_map([], |row| row.get(0))?.collect()
    }

    /// Makes the tables of a new file, all or none, with the numbers by which the file is known.
    fn lay_out(&mut self) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction()?;
        transaction.execute_batch(LAYOUT)?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
        transaction.commit()
    }

    /// Reads all that is needed to go on; records that cannot be read are set aside.
    fn load(&mut self) -> rusqlite::Result<Stored> {
        let transaction = self.connection.transaction()?;
        let (mut stored, mut damaged) = (Stored::default(), Vec::new());
        let number = |text: &str| text.parse::<u64>().map_err(|error| error.to_string());
        let epoch = damage::meta(&transaction, "epoch", &mut damaged, number)?;
        stored.epoch = epoch.unwrap_or(0).saturating_add(1);
        // A number of 48 bits, which every reader of JSON takes for a whole number.
        let drawn: i64 = transaction.query_row("SELECT random() & 0xffffffffffff", [], |row| row.get(0))?;
        stored.drawn = drawn.unsigned_abs();
        let jobs = damage::read::<JobRecord>(&transaction, ("jobs", "number"), &mut damaged)?;
        (stored.over, stored.jobs) = jobs.into_iter().partition(|job| job.outcome.is_some());
        let ended = |job: &JobRecord| job.outcome.as_ref().map_or(Seconds::ZERO, |outcome| outcome.at);
        // Of the jobs that ended at one instant, the ones with the largest numbers count as the last.
        stored.over.sort_by(|one, other| ended(one).total_cmp(&ended(other)));
        stored.over.drain(..stored.over.len().saturating_sub(OVER_MAX));
        stored.servers = damage::read::<ServerRecord>(&transaction, ("servers", "name"), &mut damaged)?;
        let whole = |text: &str| match serde_json::from_str::<serde::de::IgnoredAny>(text) {
            Ok(_) => Ok(text.to_owned()),
            Err(error) => Err(error.to_string()),
        };
        stored.scheduler = damage::meta(&transaction, "scheduler", &mut damaged, whole)?;
        let clock = |text: &str| parsed::<(Seconds, f64)>(text);
        damage::meta(&transaction, "clock", &mut damaged, clock)?;
        let node_clock = |text: &str| parsed::<(Seconds, Seconds, String)>(text);
        damage::meta(&transaction, "node_clock", &mut damaged, node_clock)?;
        damage::set_aside(&transaction, &damaged)?;
        put_meta(&transaction, "epoch", &stored.epoch.to_string())?;
        let last: Option<i64> = transaction.query_row(
            "SELECT max(number) FROM (SELECT number FROM jobs UNION ALL
             SELECT CAST(key AS INTEGER) FROM set_aside WHERE from_table = 'jobs')",
            [],
            |row| row.get(0),
        )?;
        stored.next_job = last.map_or(0, |last| last.unsigned_abs() + 1);
        stored.n_rounds = event_log::n_rounds(&transaction)?;
        transaction.commit()?;
        if !damaged.is_empty() {
            stored.set_aside = damage::sentences(&damaged, &damage::copy(&self.path, &damaged));
        }
        Ok(stored)
    }

    /// Puts records on disk, all or none.
    ///
    /// # Errors
    /// If they cannot be put there: then none of them is.
    pub fn commit(&mut self, records: &[Record]) -> Result<(), StoreError> {
        if records.is_empty() {
            return Ok(());
        }
        write(&mut self.connection, records).map_err(|source| StoreError::of(&self.path, source))
    }

    /// The scheduler's clock and the wall clock, in s since 1970, when the store was closed or the clocks were last
    /// [noted](Self::note_clock). Where that is not known, the last instant in the event log and the notes counts as now.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn clock(&self) -> Result<Option<(Seconds, f64)>, StoreError> {
        let read = || -> rusqlite::Result<Option<(Seconds, f64)>> {
            let value = self.meta("clock")?;
            if let Some(clock) = value.and_then(|value| serde_json::from_str(&value).ok()) {
                return Ok(Some(clock));
            }
            let last: Option<f64> = self.connection.query_row(
                "SELECT max(at_s) FROM (SELECT at_s FROM events UNION ALL SELECT at_s FROM notes)",
                [],
                |row| row.get(0),
            )?;
            Ok(last.map(|last| (Seconds::new(last.max(0.0)), wall_s())))
        };
        read().map_err(|source| StoreError::of(&self.path, source))
    }

    /// The latest instant on the scheduler's clock in the newest lines of the event log and the newest notes; 0 where there are none.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn last_instant(&self) -> Result<Seconds, StoreError> {
        let last: Result<Option<f64>, _> = self.connection.query_row(
            "SELECT max(at_s) FROM (SELECT at_s FROM (SELECT at_s FROM events ORDER BY number DESC LIMIT ?1) UNION ALL
             SELECT at_s FROM (SELECT at_s FROM notes ORDER BY number DESC LIMIT ?1))",
            [NEWEST],
            |row| row.get(0),
        );
        let last = last.map_err(|source| StoreError::of(&self.path, source))?;
        Ok(Seconds::new(last.unwrap_or(0.0).max(0.0)))
    }

    fn meta(&self, key: &str) -> rusqlite::Result<Option<String>> {
        let sql = "SELECT value FROM meta WHERE key = ?1";
        self.connection.query_row(sql, [key], |row| row.get(0)).optional()
    }

    /// The scheduler's clock, continued by the node's clock since it was last [noted](Self::note_clock); none if the node has been
    /// started since.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn node_clock(&self) -> Result<Option<Clock>, StoreError> {
        let value = self.meta("node_clock").map_err(|source| StoreError::of(&self.path, source))?;
        let noted = value.and_then(|value| serde_json::from_str::<(Seconds, Seconds, String)>(&value).ok());
        let noted = noted.filter(|(_, _, boot)| !boot.is_empty() && *boot == boot_id());
        Ok(noted.and_then(|(at, node, _)| Clock::resumed_on_node(at, node)))
    }

    /// Notes the scheduler's clock, the wall clock, in s since 1970, and the node's clock.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn note_clock(&mut self, now: Seconds, wall_s: f64) -> Result<(), StoreError> {
        let wall = serde_json::json!([now.get(), wall_s]).to_string();
        let node = serde_json::json!([now, node_now(), boot_id()]).to_string();
        let noted = (|| {
            let transaction = self.connection.transaction()?;
            put_meta(&transaction, "clock", &wall)?;
            put_meta(&transaction, "node_clock", &node)?;
            transaction.commit()
        })();
        noted.map_err(|source| StoreError::of(&self.path, source))
    }

    /// Drops old records. Of the event log the newest `keep_events` lines are kept, of the notes the newest `NOTES_KEPT`, and of
    /// jobs that are over the last `OVER_MAX` that ended. At most `DROPPED_AT_ONCE` records of each table are dropped in one call.
    /// Active jobs are never dropped.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn drop_old(&mut self, keep_events: u64) -> Result<(), StoreError> {
        let drop_of = |table: &str, kept: u64| -> rusqlite::Result<()> {
            let kept = i64::try_from(kept).unwrap_or(i64::MAX);
            let mut statement = self.connection.prepare_cached(&format!(
                "DELETE FROM {table} WHERE number IN (SELECT number FROM {table} WHERE
                 number <= (SELECT max(number) FROM {table}) - ?1 ORDER BY number LIMIT {DROPPED_AT_ONCE})"
            ))?;
            statement.execute([kept]).map(drop)
        };
        // One table that is damaged does not keep the others from being dropped of.
        let dropped = [drop_of("events", keep_events), drop_of("notes", NOTES_KEPT), self.drop_jobs()];
        dropped.into_iter().collect::<Result<(), _>>().map_err(|source| StoreError::of(&self.path, source))
    }

    /// Drops all jobs that are over but the last that ended. The job with the largest number stays, since the next job's number is
    /// counted from it.
    fn drop_jobs(&self) -> rusqlite::Result<()> {
        let count = "SELECT count(*) FROM jobs WHERE is_over = 1";
        let n_over: i64 = self.connection.prepare_cached(count)?.query_row([], |row| row.get(0))?;
        // One more stays for its number.
        if usize::try_from(n_over).is_ok_and(|n_over| n_over <= OVER_MAX + 1) {
            return Ok(());
        }
        let mut statement = self.connection.prepare_cached(&format!(
            "DELETE FROM jobs WHERE number < (SELECT max(number) FROM jobs) AND number IN (SELECT number FROM jobs
             WHERE is_over = 1 ORDER BY json_extract(document, '$.outcome.at') DESC, number DESC
             LIMIT {DROPPED_AT_ONCE} OFFSET {OVER_MAX})"
        ))?;
        statement.execute([]).map(drop)
    }

    /// The newest notes, the oldest of them first.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn notes(&self, most: u32) -> Result<Vec<(Seconds, Note)>, StoreError> {
        let read = || -> rusqlite::Result<Vec<(Seconds, Note)>> {
            let mut statement = self
                .connection
                .prepare_cached("SELECT at_s, document FROM notes ORDER BY number DESC LIMIT ?1")?;
            let mut rows = statement.query([most])?;
            let mut notes = Vec::new();
            while let Some(row) = rows.next()? {
                // A note that cannot be read is left out.
                if let Ok(note) = serde_json::from_slice(row.get_ref(1)?.as_bytes()?) {
                    notes.push((Seconds::new(row.get(0)?), note));
                }
            }
            notes.reverse();
            Ok(notes)
        };
        read().map_err(|source| StoreError::of(&self.path, source))
    }

    /// Passes on lines of the event log, in order, with their numbers. Lines that are damaged are passed over.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn lines(&self, which: Lines, line: impl FnMut(i64, &str)) -> Result<Passed, StoreError> {
        event_log::read(&self.connection, which, line).map_err(|source| StoreError::of(&self.path, source))
    }

    /// Sets lines aside that were passed over. Answers sentences about them, and about parts of the event log that are lost.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn set_aside(&mut self, passed: &Passed) -> Result<Vec<String>, StoreError> {
        let mut sentences = Vec::new();
        if !passed.damaged.is_empty() {
            let moved = (|| {
                let transaction = self.connection.transaction()?;
                damage::set_aside(&transaction, &passed.damaged)?;
                transaction.commit()
            })();
            moved.map_err(|source| StoreError::of(&self.path, source))?;
            sentences = damage::sentences(&passed.damaged, &damage::copy(&self.path, &passed.damaged));
        }
        sentences.extend(passed.gaps.iter().map(|gap| {
            format!(
                "lines {} to {} of the event log are lost: this part of {} is damaged; put a back-up of the folder in its place \
                 where you want them back",
                gap.start(),
                gap.end(),
                self.path.display()
            )
        }));
        Ok(sentences)
    }
}

/// A document in JSON, or why it is none.
fn parsed<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

fn put_meta(connection: &Connection, key: &str, value: &str) -> rusqlite::Result<()> {
    let mut statement =
        connection.prepare_cached("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)")?;
    statement.execute(params![key, value]).map(drop)
}

fn write(connection: &mut Connection, records: &[Record]) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    for record in records {
        match record {
            Record::Job(job) => {
                let mut statement = transaction.prepare_cached(
                    "INSERT OR REPLACE INTO jobs (number, is_over, document) VALUES (?1, ?2, ?3)",
                )?;
                let number = i64::try_from(job.number.0).unwrap_or(i64::MAX);
                statement.execute(params![number, job.outcome.is_some(), to_text(job)?])?;
            }
            Record::Server(server) => {
                let mut statement = transaction
                    .prepare_cached("INSERT OR REPLACE INTO servers (name, document) VALUES (?1, ?2)")?;
                statement.execute(params![server.name, to_text(server)?])?;
            }
            Record::ServerRemoved(name) => {
                let mut statement = transaction.prepare_cached("DELETE FROM servers WHERE name = ?1")?;
                statement.execute([name])?;
            }
            Record::Scheduler(state) => put_meta(&transaction, "scheduler", state)?,
            Record::Event(at, line) => {
                let mut statement =
                    transaction.prepare_cached("INSERT INTO events (at_s, line) VALUES (?1, ?2)")?;
                statement.execute(params![at.get(), line])?;
            }
            Record::Note(at, note) => {
                let mut statement =
                    transaction.prepare_cached("INSERT INTO notes (at_s, document) VALUES (?1, ?2)")?;
                statement.execute(params![at.get(), to_text(note)?])?;
            }
        }
    }
    transaction.commit()
}

fn to_text(document: &impl serde::Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(document).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}
