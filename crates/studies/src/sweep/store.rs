//! The results file: one row per finished run, keyed by the digest of its whole spec.
//!
//! A SQLite database `results.sqlite` with a rollback journal: one file when at rest, one transaction a run, so a
//! process killed at any point leaves every row that was written and nothing else; it also works on network file
//! systems, where a write-ahead log does not. `results.lock` beside it keeps a second writer out.
//!
//! | table  | columns                                                                                      |
//! |--------|----------------------------------------------------------------------------------------------|
//! | `meta` | `key`, `value`: crate version, name, fixed fields, axes with their values in order, seeds that were asked for, published points, description, when and by what runs were made |
//! | `runs` | `digest`, each axis, `status`, `reason`, `capacity` (jobs/h), the metrics, `version`, `spec` (canonical), `data` (digests of policy, throughputs, trace), `seconds` (wall time), `checksum`, `jobs_checksum`, `allocations_checksum` |
//! | `jobs` | `digest`, `id`, `job_type`, `scale_factor`, `weight`, `arrival_s`, `completion_s`, `jct_s`, `rho` |
//! | `allocations` | `digest`, `from_s`, `until_s`, `job`, `partner`, `worker_type`, `share`: if they are kept |
//! | `utilization` | `digest`, `worker_type`, `utilization`: of runs that are done                         |
//!
//! A row whose content does not match its checksum is refused; rows from before there were checksums have none.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use crate::file::{self, Made};
use crate::sweep::grid::Selection;
use crate::sweep::outcome::{AllocationRow, JobRow, Outcome};
use crate::sweep::spec::{Published, SweepSpec, are_alike, unlike_fields, value_text};

mod allocations;
mod checksum;
mod columns;
mod csv;
mod error;
mod merge;
mod opening;
mod services;
mod schema;
mod sittings;

pub use error::{Absence, StoreError};
pub use merge::Merged;
use opening::{check_header, database, take_lock};
pub use sittings::{Sitting, day, today};

/// Name of the file inside a results folder.
pub const FILE: &str = "results.sqlite";
/// Name of the table with the same rows as text, rewritten at the end of every sweep.
pub const CSV_FILE: &str = "results.csv";

/// Description of the study that a results file belongs to.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// Name of the sweep.
    pub name: String,
    /// Fields that all its runs share, as canonical text.
    pub fixed: String,
    /// Axes: column, and values in order.
    pub axes: Vec<(String, Vec<Value>)>,
    /// Seeds for which runs were requested, made or not: the axis's values without those that `--only` left out.
    pub seeds: Vec<Value>,
    /// Published values of its metrics.
    pub published: Vec<Published>,
}

impl Study {
    /// The study of a sweep with a selection of values; its axes have all values.
    pub fn of(sweep: &SweepSpec, selection: &Selection) -> Self {
        let axes: Vec<_> = sweep.axes.iter().map(|axis| (axis.name.clone(), axis.values.clone())).collect();
        let seeds = seed_axis(&axes).map(|axis| selection.of_axis(axis, &axes[axis].1)).unwrap_or_default();
        let published = sweep.published.clone();
        Self { name: sweep.name.clone(), fixed: sweep.fixed_text(), axes, seeds, published }
    }

    /// Position of the axis over which runs are repeated.
    pub fn seed_axis(&self) -> Option<usize> {
        seed_axis(&self.axes)
    }

    /// Requested seeds as texts, in the order of the axis, followed by other seeds of the rows.
    pub fn seed_texts(&self, rows: &[Row]) -> Vec<String> {
        let Some(axis) = self.seed_axis() else { return Vec::new() };
        let of_rows: Vec<String> = rows.iter().map(|row| value_text(&row.values[axis])).collect();
        let wanted: BTreeSet<String> =
            self.seeds.iter().map(value_text).chain(of_rows.iter().cloned()).collect();
        let mut texts: Vec<String> = Vec::with_capacity(wanted.len());
        let mut taken = BTreeSet::new();
        for text in self.axes[axis].1.iter().chain(&self.seeds).map(value_text).chain(of_rows) {
            if wanted.contains(&text) && taken.insert(text.clone()) {
                texts.push(text);
            }
        }
        texts
    }
}

/// Whether runs are repeated over this axis.
pub(super) fn is_seed(name: &str) -> bool {
    name.rsplit('.').next() == Some("seed")
}

/// Position of the first axis over which runs are repeated.
fn seed_axis(axes: &[(String, Vec<Value>)]) -> Option<usize> {
    axes.iter().position(|(name, _)| is_seed(name))
}

/// A finished run in the results.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Digest that identifies the run.
    pub digest: String,
    /// Value of the run on each axis.
    pub values: Vec<Value>,
    /// Result of the run; `jobs` is empty unless asked for.
    pub outcome: Outcome,
    /// Version of the crate that made the run.
    pub version: String,
    /// Whole spec, as canonical text.
    pub spec: String,
    /// Digests of its data, as JSON.
    pub data: String,
    /// Wall time, s; not part of the result.
    pub seconds: f64,
}

/// An open results file.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    folder: PathBuf,
    study: Study,
    version: String,
    /// Lock of the folder, held as long as the store may write.
    held: Option<Held>,
}

/// A folder that is held against other writers. What is new in it is removed, if at all, before the lock is given up.
#[derive(Debug)]
struct Held {
    made: Made,
    _lock: Option<File>,
}

impl Store {
    /// Opens the results of a study for writing, and creates them if there are none.
    ///
    /// # Errors
    /// If the folder holds other files, which are left unchanged, or cannot be written; nothing is left in it then.
    pub fn open(folder: &Path, study: &Study) -> Result<Self, StoreError> {
        let mut store = Self::begin(folder, study)?;
        store.settle();
        Ok(store)
    }

    /// Opens the results of a study for writing, as [`open`](Self::open). What is new of them is removed with the store, unless it
    /// is [settled](Self::settle).
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn begin(folder: &Path, study: &Study) -> Result<Self, StoreError> {
        let io = |action, path: &Path| {
            let path = path.display().to_string();
            move |source| StoreError::Io { action, path, source }
        };
        let mut made = Made::default();
        made.note(folder);
        fs::create_dir_all(folder).map_err(io("make the folder", folder))?;
        let lock = take_lock(folder, &mut made)?;
        let mut held = Held { made, _lock: lock };
        let path = folder.join(FILE);
        held.made.note(&path);
        let is_new = check_header(&path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let flags = if is_new { flags | OpenFlags::SQLITE_OPEN_CREATE } else { flags };
        let mut connection = Connection::open_with_flags(&path, flags).map_err(database("open", &path))?;
        if is_new || schema::is_void(&connection).map_err(database("read", &path))? {
            schema::create(&mut connection, study).map_err(database("write", &path))?;
        }
        let (kept, version) = schema::check(&connection, &path)?;
        let (folder, study) = (folder.to_owned(), study.clone());
        let mut store = Self { connection, folder, study, version, held: Some(held) };
        store.of_this_version()?;
        store.adopt(&kept)?;
        schema::complete(&store.connection).map_err(database("write", &path))?;
        Ok(store)
    }

    /// Lets what is new of the results stay.
    pub fn settle(&mut self) {
        if let Some(held) = &mut self.held {
            std::mem::take(&mut held.made).keep();
        }
    }

    /// Opens results to continue: only those of this version.
    ///
    /// # Errors
    /// If there are none, or the file is not a results file of this version.
    pub fn open_to_resume(folder: &Path) -> Result<Self, StoreError> {
        let store = Self::open_to_read(folder)?;
        store.of_this_version()?;
        Ok(store)
    }

    /// Opens results for reading, whichever version of this crate wrote them.
    ///
    /// # Errors
    /// If there are none, or the file is not a results file, or one of another format.
    pub fn open_to_read(folder: &Path) -> Result<Self, StoreError> {
        let given_file = folder.is_file();
        let path = if given_file { folder.to_owned() } else { folder.join(FILE) };
        let missing = || StoreError::missing(folder);
        let header = check_header(&path).map_err(StoreError::into_no_results);
        if header.map_err(|error| if given_file { error.beside(&path) } else { error })? {
            let what = "it is empty".to_owned();
            let path = path.display().to_string();
            return Err(if given_file { StoreError::Damaged { path, what } } else { missing() });
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&path, flags).map_err(database("open", &path))?;
        if schema::is_void(&connection).map_err(database("read", &path))? {
            return Err(missing());
        }
        let (study, version) = schema::check(&connection, &path)?;
        let folder =
            if given_file { path.parent().unwrap_or(Path::new(".")).to_owned() } else { folder.to_owned() };
        Ok(Self { connection, folder, study, version, held: None })
    }

    /// Refuses results of another version, as the same digest may stand for different numbers.
    fn of_this_version(&self) -> Result<(), StoreError> {
        let own = env!("CARGO_PKG_VERSION");
        if self.version == own {
            return Ok(());
        }
        let (found, expected) = (format!("apportion {}", self.version), format!("apportion {own}"));
        Err(StoreError::Version { path: self.path().display().to_string(), found, expected })
    }

    /// Takes the study of the file as that of the store, with the new values of its axes added.
    fn adopt(&mut self, kept: &Study) -> Result<(), StoreError> {
        let wanted = &self.study;
        let columns = |study: &Study| study.axes.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        let what = if kept.name != wanted.name {
            Some(format!("`{}`, not `{}`", kept.name, wanted.name))
        } else if columns(kept) != columns(wanted) {
            let (old, new) = (columns(kept).join(", "), columns(wanted).join(", "));
            Some(format!("`{}` varied {old}, now {new}", kept.name))
        } else if !are_alike(&kept.fixed, &wanted.fixed) {
            Some(with_other_fields((kept, wanted), ["there", "now"]))
        } else {
            None
        };
        if let Some(what) = what {
            return Err(StoreError::OtherStudy { path: self.path().display().to_string(), what });
        }
        self.study = Study { fixed: kept.fixed.clone(), ..joined(wanted, kept) };
        if self.study != *kept {
            let path = self.path();
            schema::write_changing(&self.connection, &self.study).map_err(database("write", &path))?;
        }
        Ok(())
    }

    /// Path of the results file.
    pub fn path(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    /// Study of the results.
    pub fn study(&self) -> &Study {
        &self.study
    }

    /// Version of this crate that made the file.
    pub fn version(&self) -> &str {
        &self.version
    }

    fn database(&self, action: &'static str) -> impl FnOnce(rusqlite::Error) -> StoreError + use<> {
        database(action, &self.path())
    }

    /// Digests of all runs in the file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn digests(&self) -> Result<BTreeSet<String>, StoreError> {
        let read = || -> rusqlite::Result<_> {
            let mut query = self.connection.prepare("SELECT digest FROM runs")?;
            query.query_map([], |row| row.get(0))?.collect()
        };
        read().map_err(self.database("read"))
    }

    /// Outcomes of all runs in the file by digest, without their jobs and allocations.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn outcomes(&self) -> Result<std::collections::BTreeMap<String, Outcome>, StoreError> {
        Ok(self.all_rows()?.into_iter().map(|row| (row.digest, row.outcome)).collect())
    }

    /// Outcomes, by digest and without their jobs, of the runs that neither failed nor were given up; the other runs are to
    /// be tried again.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn finished_outcomes(&self) -> Result<std::collections::BTreeMap<String, Outcome>, StoreError> {
        let mut outcomes = self.outcomes()?;
        outcomes.retain(|_, outcome| !outcome.status.is_given_up());
        Ok(outcomes)
    }

    /// Keeps a run, with its jobs if it has any, replacing one that failed or was given up; a run that is done is not
    /// replaced.
    ///
    /// # Errors
    /// If the file cannot be written; nothing of the run is kept then.
    pub fn keep(&mut self, row: &Row) -> Result<(), StoreError> {
        self.write(row, &schema::is_given_up)
    }

    /// Keeps a run, replacing the one with its digest.
    fn put(&mut self, row: &Row) -> Result<(), StoreError> {
        self.write(row, &|_, _| Ok(true))
    }

    /// Keeps a run; an existing one is replaced where the given function allows it.
    fn write(
        &mut self,
        row: &Row,
        goes: &dyn Fn(&rusqlite::Transaction<'_>, &str) -> rusqlite::Result<bool>,
    ) -> Result<(), StoreError> {
        let path = self.path();
        let mut write = || {
            let transaction =
                self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            if goes(&transaction, &row.digest)? {
                schema::delete(&transaction, &row.digest)?;
            }
            schema::insert(&transaction, &self.study, row)?;
            transaction.commit()
        };
        write().map_err(database("write", &path))
    }

    /// Rows of all runs in the order of the grid; of several with equal values on all axes (a run's data has changed in
    /// between), the last one written.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn rows(&self) -> Result<Vec<Row>, StoreError> {
        let rows = self.all_rows()?;
        let key = |row: &Row| -> Vec<Rank> {
            let axes = row.values.iter().zip(&self.study.axes);
            axes.map(|(value, (_, values))| Rank::of(value, values)).collect()
        };
        let latest: std::collections::BTreeMap<Vec<Rank>, Row> =
            rows.into_iter().map(|row| (key(&row), row)).collect();
        Ok(latest.into_values().collect())
    }

    /// Rows of all runs in the order in which they were written.
    fn all_rows(&self) -> Result<Vec<Row>, StoreError> {
        let rows = schema::read_rows(&self.connection, &self.study).map_err(self.database("read"))?;
        let checked = |(row, checksum): (Row, Option<String>)| match checksum {
            Some(written) if written != checksum::of_run(&self.study, &row) => {
                Err(self.changed(&row.digest, &format!("row of the run {}", self.label(&row))))
            }
            _ => Ok(row),
        };
        rows.into_iter().map(checked).collect()
    }

    /// Jobs of one run, in order of arrival.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn jobs(&self, digest: &str) -> Result<Vec<JobRow>, StoreError> {
        let read = || -> rusqlite::Result<_> {
            let written = schema::read_list_checksum(&self.connection, digest, schema::JOBS_CHECKSUM)?;
            Ok((schema::read_jobs(&self.connection, digest)?, written))
        };
        let (jobs, written) = read().map_err(self.database("read"))?;
        match written {
            Some(written) if written != checksum::of_jobs(digest, &jobs) => {
                Err(self.changed(digest, "list of the jobs of a run"))
            }
            _ => Ok(jobs),
        }
    }

    /// Shares that the decisions of one run gave, in their order; empty unless they were kept.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn allocations(&self, digest: &str) -> Result<Vec<AllocationRow>, StoreError> {
        let read = || -> rusqlite::Result<_> {
            let written = schema::read_list_checksum(&self.connection, digest, schema::ALLOCATIONS_CHECKSUM)?;
            Ok((allocations::read(&self.connection, digest)?, written))
        };
        let (rows, written) = read().map_err(self.database("read"))?;
        match written {
            Some(written) if written != checksum::of_allocations(digest, &rows) => {
                Err(self.changed(digest, "list of the allocations of a run"))
            }
            _ => Ok(rows),
        }
    }

    fn changed(&self, digest: &str, what: &str) -> StoreError {
        let what = format!(
            "the {what} (digest {digest}) is not what its checksum says, so it was changed after it was written"
        );
        StoreError::Damaged { path: self.path().display().to_string(), what }
    }

    /// Label of a row: `policy=fifo rate=0.4 seed=1`.
    fn label(&self, row: &Row) -> String {
        let axes = self.study.axes.iter().zip(&row.values);
        axes.map(|((name, _), value)| format!("{name}={}", value_text(value))).collect::<Vec<_>>().join(" ")
    }

    /// Writes `results.csv`: the same rows give the same bytes. Returns its path.
    ///
    /// # Errors
    /// If it cannot be written; an older file is then left complete.
    pub fn write_csv(&self) -> Result<PathBuf, StoreError> {
        let text = csv::render(&self.study, &self.rows()?);
        let path = self.folder.join(CSV_FILE);
        let io = |action| {
            let path = path.display().to_string();
            move |source| StoreError::Io { action, path, source }
        };
        file::write(&path, &text).map_err(io("write"))?;
        Ok(path)
    }
}

/// Sort key of a value on an axis: first the values that the study lists, in their order, then numbers, then texts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank(usize, u64, String);

impl Rank {
    fn of(value: &Value, listed: &[Value]) -> Self {
        let text = value_text(value);
        if let Some(position) = listed.iter().position(|other| value_text(other) == text) {
            return Self(position, 0, String::new());
        }
        // The bits of a float are mapped to integers in the order of `total_cmp`.
        let bits = value.as_f64().map_or(0, f64::to_bits);
        let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
        Self(listed.len(), ordered, text)
    }
}

/// Message about fixed fields that differ between two studies of one name, with both values.
fn with_other_fields((kept, other): (&Study, &Study), places: [&str; 2]) -> String {
    let fields = unlike_fields(&kept.fixed, &other.fixed, places);
    let fields = fields.map_or_else(String::new, |fields| format!(": {fields}"));
    format!("`{}` with other fixed fields{fields}", kept.name)
}

/// The first study, with values that only the second has added after its own.
fn joined(first: &Study, second: &Study) -> Study {
    let mut study = first.clone();
    let axes = study.axes.iter_mut().zip(&second.axes).map(|((_, values), (_, others))| (values, others));
    for (values, others) in axes.chain([(&mut study.seeds, &second.seeds)]) {
        for other in others {
            if !values.contains(other) {
                values.push(other.clone());
            }
        }
    }
    study
}

#[cfg(test)]
mod tests;
