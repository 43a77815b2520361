//! Tables of a results file: creating, checking, writing and reading them.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::types::ToSqlOutput;
use rusqlite::types::{Value as Cell, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, Row as Record, ToSql, Transaction, params};
use serde_json::Value;

use super::columns::{self, Names, quoted};
use super::{Row, StoreError, Study, allocations, checksum, database, is_seed, services};
use crate::sweep::outcome::{JobRow, Outcome, Status};
use crate::sweep::spec::value_text;
use apportion::metrics::{JOB_COLUMNS, METRICS, Metric};

/// Identifier "APPT" that distinguishes our files from other databases.
const APPLICATION_ID: i32 = 0x4150_5054;
/// Version of the tables, which grows when they change. Version 1 lacks the checksums of rows.
const SCHEMA_VERSION: i32 = 2;
/// Versions that can be read.
const READABLE: std::ops::RangeInclusive<i32> = 1..=SCHEMA_VERSION;
/// Column with the checksum of a run's rows in `jobs`.
pub(super) const JOBS_CHECKSUM: &str = "jobs_checksum";
/// Column with the checksum of a run's rows in `allocations`; none in rows of before there was this table.
pub(super) const ALLOCATIONS_CHECKSUM: &str = "allocations_checksum";
/// Columns with the checksum of a row of `runs`, and those of its rows in other tables; none in rows of version 1.
const CHECKSUMS: [&str; 3] = ["checksum", JOBS_CHECKSUM, ALLOCATIONS_CHECKSUM];

/// Columns of `runs`, in order.
fn run_columns(study: &Study) -> Vec<String> {
    let axes = study.axes.iter().map(|(name, _)| name.as_str());
    let before = std::iter::once("digest");
    let after = ["status", "reason", "capacity"].into_iter().chain(Metric::names());
    let last = ["version", "spec", "data", "seconds"].into_iter().chain(CHECKSUMS);
    before.chain(axes).chain(after).chain(last).map(quoted).collect()
}

/// Whether the database is empty. So it is where a writer was killed in the very transaction that created the tables, which
/// was then rolled back.
pub(super) fn is_void(connection: &Connection) -> rusqlite::Result<bool> {
    connection.pragma_query_value(None, "page_count", |row| row.get(0)).map(|n_pages: i64| n_pages == 0)
}

/// Creates the tables, all or none.
pub(super) fn create(connection: &mut Connection, study: &Study) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Exclusive)?;
    complete(&transaction)?;
    let columns = run_columns(study);
    let (digest, others) = columns.split_first().expect("there are columns");
    transaction.execute_batch(&format!(
        "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
         CREATE TABLE runs ({digest} TEXT PRIMARY KEY NOT NULL, {});
         CREATE TABLE jobs (digest TEXT NOT NULL REFERENCES runs (digest), id INTEGER NOT NULL,
             job_type TEXT NOT NULL, {}, PRIMARY KEY (digest, id)) WITHOUT ROWID;
         PRAGMA application_id = {APPLICATION_ID};
         PRAGMA user_version = {SCHEMA_VERSION};",
        others.join(", "),
        columns::declared(&JOB_COLUMNS)
    ))?;
    for (key, value) in
        [("version", env!("CARGO_PKG_VERSION")), ("name", &study.name), ("fixed", &study.fixed)]
    {
        transaction.execute("INSERT INTO meta VALUES (?1, ?2)", params![key, value])?;
    }
    write_changing(&transaction, study)?;
    transaction.commit()
}

/// Adds the tables and columns that results of older versions lack.
pub(super) fn complete(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS utilization (digest TEXT NOT NULL REFERENCES runs (digest),
             worker_type TEXT NOT NULL, utilization REAL NOT NULL, PRIMARY KEY (digest, worker_type)) WITHOUT ROWID",
    )?;
    services::complete(connection)?;
    allocations::complete(connection)?;
    if !connection.table_exists(None, "runs")? {
        return Ok(());
    }
    columns::rename(connection, "runs", columns::of_metrics())?;
    columns::rename(connection, "jobs", columns::of_jobs(&JOB_COLUMNS))?;
    let there = columns::there(connection, "runs")?;
    for column in Metric::names().chain(CHECKSUMS).filter(|column| !there.contains(*column)) {
        connection.execute_batch(&format!("ALTER TABLE runs ADD COLUMN {}", quoted(column)))?;
    }
    connection.pragma_update(None, "user_version", SCHEMA_VERSION)
}

/// Writes the values that may change from one sweep into the same results to the next: the axes' values, the requested
/// seeds, and published points.
pub(super) fn write_changing(connection: &Connection, study: &Study) -> rusqlite::Result<()> {
    let failed = |error| rusqlite::Error::ToSqlConversionFailure(Box::new(error));
    let axes = serde_json::to_string(&study.axes).map_err(failed)?;
    let published = serde_json::to_string(&study.published).map_err(failed)?;
    let seeds = serde_json::to_string(&study.seeds).map_err(failed)?;
    for (key, value) in [("axes", axes), ("seeds", seeds), ("published", published)] {
        connection.execute("INSERT OR REPLACE INTO meta VALUES (?1, ?2)", params![key, value])?;
    }
    Ok(())
}

/// Checks that this is a complete results file. Returns its study, and the version of this crate that made it.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<(Study, String), StoreError> {
    let name = path.display().to_string();
    let pragma = |what: &str| -> Result<i32, StoreError> {
        connection.pragma_query_value(None, what, |row| row.get(0)).map_err(database("read", path))
    };
    if pragma("application_id")? != APPLICATION_ID {
        let what = "it is a database of another program".to_owned();
        return Err(StoreError::Foreign { path: name, what });
    }
    let found = pragma("user_version")?;
    if !READABLE.contains(&found) {
        let (found, expected) = (format!("format {found}"), format!("format {SCHEMA_VERSION}"));
        return Err(StoreError::Version { path: name, found, expected });
    }
    let said: String = connection
        .pragma_query_value(None, "quick_check", |row| row.get(0))
        .map_err(database("read", path))?;
    if said != "ok" {
        return Err(StoreError::Damaged {
            path: name,
            what: said.lines().next().unwrap_or_default().to_owned(),
        });
    }
    read_study(connection, path)
}

fn read_study(connection: &Connection, path: &Path) -> Result<(Study, String), StoreError> {
    let name = path.display().to_string();
    let find = |key: &str| -> Result<Option<String>, StoreError> {
        let sql = "SELECT value FROM meta WHERE key = ?1";
        connection.query_row(sql, [key], |row| row.get(0)).optional().map_err(database("read", path))
    };
    let damaged = |what: String| StoreError::Damaged { path: name.clone(), what };
    let read = |key: &str| find(key)?.ok_or_else(|| damaged(format!("no `{key}` in `meta`")));
    let unread = |key: &str, error: serde_json::Error| damaged(format!("`{key}` in `meta`: {error}"));
    let axes: Vec<(String, Vec<Value>)> =
        serde_json::from_str(&read("axes")?).map_err(|error| unread("axes", error))?;
    // Results of older versions do not list the requested seeds.
    let all = || axes.iter().find(|(name, _)| is_seed(name)).map(|(_, values)| values.clone());
    let seeds = match find("seeds")? {
        Some(text) => serde_json::from_str(&text).map_err(|error| unread("seeds", error))?,
        None => all().unwrap_or_default(),
    };
    // Results of older versions have no published points.
    let published = find("published")?.map_or(Ok(Vec::new()), |text| serde_json::from_str(&text));
    let published = published.map_err(|error| unread("published", error))?;
    Ok((Study { name: read("name")?, fixed: read("fixed")?, axes, seeds, published }, read("version")?))
}

/// Value of an axis as a cell of a table.
struct AxisCell<'a>(&'a Value);

impl ToSql for AxisCell<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Owned(match self.0 {
            Value::Null => Cell::Null,
            // Whole numbers beyond SQLite's range, such as large seeds, would lose digits as floats.
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(whole), _) => Cell::Integer(whole),
                (None, Some(float)) if !number.is_u64() => Cell::Real(float),
                (None, _) => Cell::Text(number.to_string()),
            },
            other => Cell::Text(value_text(other)),
        }))
    }
}

/// Adds a run, its jobs and its allocations, unless the run is there already.
pub(super) fn insert(transaction: &Transaction<'_>, study: &Study, row: &Row) -> rusqlite::Result<()> {
    let columns = run_columns(study);
    let marks = vec!["?"; columns.len()].join(", ");
    let sql = format!("INSERT INTO runs ({}) VALUES ({marks}) ON CONFLICT DO NOTHING", columns.join(", "));
    let cells: Vec<AxisCell<'_>> = row.values.iter().map(AxisCell).collect();
    let status = row.outcome.status.name();
    let mut values: Vec<&dyn ToSql> = vec![&row.digest];
    values.extend(cells.iter().map(|cell| cell as &dyn ToSql));
    values.extend([&status as &dyn ToSql, &row.outcome.reason, &row.outcome.capacity]);
    values.extend(row.outcome.metrics.iter().map(|value| value as &dyn ToSql));
    values.extend([&row.version as &dyn ToSql, &row.spec, &row.data, &row.seconds]);
    let Outcome { jobs, allocations, .. } = &row.outcome;
    let checksums = [
        checksum::of_run(study, row),
        checksum::of_jobs(&row.digest, jobs),
        checksum::of_allocations(&row.digest, allocations),
    ];
    values.extend(checksums.iter().map(|checksum| checksum as &dyn ToSql));
    if transaction.prepare_cached(&sql)?.execute(values.as_slice())? == 0 {
        return Ok(());
    }
    let mut query = transaction.prepare_cached("INSERT INTO utilization VALUES (?1, ?2, ?3)")?;
    for (worker_type, utilization) in &row.outcome.utilization {
        query.execute(params![row.digest, worker_type, utilization])?;
    }
    let mut query =
        transaction.prepare_cached("INSERT INTO jobs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?;
    for job in jobs {
        let (id, numbers) = (i64::try_from(job.id).unwrap_or(i64::MAX), job.numbers());
        let [scale_factor, weight, arrival, completion, jct, rho] =
            JOB_COLUMNS.map(|column| columns::value(&column, &numbers));
        query.execute(params![
            row.digest,
            id,
            job.job_type,
            scale_factor,
            weight,
            arrival,
            completion,
            jct,
            rho
        ])?;
    }
    services::insert(transaction, &row.digest, jobs)?;
    allocations::insert(transaction, &row.digest, allocations)
}

/// Whether a run in the file failed or was given up.
pub(super) fn is_given_up(transaction: &Transaction<'_>, digest: &str) -> rusqlite::Result<bool> {
    let mut query = transaction.prepare_cached("SELECT status FROM runs WHERE digest = ?1")?;
    let status = query.query_row([digest], |row| row.get::<_, String>(0)).optional()?;
    Ok(status.and_then(|name| name.parse().ok()).is_some_and(Status::is_given_up))
}

/// Removes a run, its jobs and its allocations.
pub(super) fn delete(transaction: &Transaction<'_>, digest: &str) -> rusqlite::Result<()> {
    transaction.execute("DELETE FROM jobs WHERE digest = ?1", [digest])?;
    services::delete(transaction, digest)?;
    allocations::delete(transaction, digest)?;
    transaction.execute("DELETE FROM utilization WHERE digest = ?1", [digest])?;
    transaction.execute("DELETE FROM runs WHERE digest = ?1", [digest])?;
    Ok(())
}

/// Rows in the order in which they were written, without their jobs, each with the checksum that was written with it.
pub(super) fn read_rows(
    connection: &Connection,
    study: &Study,
) -> rusqlite::Result<Vec<(Row, Option<String>)>> {
    let columns = readable_columns(connection, study)?;
    let sql = format!("SELECT {} FROM runs ORDER BY rowid", columns.join(", "));
    let mut query = connection.prepare(&sql)?;
    let at = columns.len() - CHECKSUMS.len();
    let read = |record: &Record<'_>| Ok((read_row(record, study)?, record.get(at)?));
    let mut records = query.query([])?;
    let mut rows: Vec<(Row, Option<String>)> = Vec::new();
    while let Some(record) = records.next()? {
        let digest = record.get(0).unwrap_or_else(|_| "no text".to_owned());
        let of = || format!("row {} of the runs (digest {digest})", rows.len() + 1);
        let row = read(record).map_err(|error| placed(error, of))?;
        rows.push(row);
    }
    let mut by_type = read_utilization(connection)?;
    for (row, _) in &mut rows {
        row.outcome.utilization = by_type.remove(&row.digest).unwrap_or_default();
    }
    Ok(rows)
}

/// Checksum that was written with a list of a run, in this column.
pub(super) fn read_list_checksum(
    connection: &Connection,
    digest: &str,
    column: &str,
) -> rusqlite::Result<Option<String>> {
    if !columns::there(connection, "runs")?.contains(column) {
        return Ok(None);
    }
    let sql = format!("SELECT {column} FROM runs WHERE digest = ?1");
    connection.query_row(&sql, [digest], |row| row.get(0)).optional().map(Option::flatten)
}

/// Names of [`run_columns`] in this file, by the version that wrote it; `NULL` for missing ones.
fn readable_columns(connection: &Connection, study: &Study) -> rusqlite::Result<Vec<String>> {
    let there = columns::there(connection, "runs")?;
    let newer = columns::of_metrics().chain(CHECKSUMS.map(|name| [name; 2]));
    let newer: BTreeMap<String, Names> = newer.map(|names| (quoted(names[0]), names)).collect();
    let readable = |column: String| match newer.get(&column) {
        Some(names) => columns::called(&there, *names).unwrap_or_else(|| "NULL".to_owned()),
        None => column,
    };
    Ok(run_columns(study).into_iter().map(readable).collect())
}

/// Utilization by worker type, by digest; empty for older results.
fn read_utilization(connection: &Connection) -> rusqlite::Result<BTreeMap<String, Vec<(String, f64)>>> {
    let mut all: BTreeMap<String, Vec<(String, f64)>> = BTreeMap::new();
    if !connection.table_exists(None, "utilization")? {
        return Ok(all);
    }
    let mut query = connection
        .prepare("SELECT digest, worker_type, utilization FROM utilization ORDER BY digest, worker_type")?;
    let mut rows = query.query([])?;
    let mut n_read = 0;
    while let Some(row) = rows.next()? {
        n_read += 1;
        let read = || Ok((row.get(0)?, (row.get(1)?, row.get(2)?)));
        let of = || format!("row {n_read} of the utilizations, by digest and worker type");
        let (digest, utilization): (String, _) = read().map_err(|error| placed(error, of))?;
        all.entry(digest).or_default().push(utilization);
    }
    Ok(all)
}

/// The error with the row named in front if it is about a row's content; otherwise unchanged.
fn placed(error: rusqlite::Error, row: impl FnOnce() -> String) -> rusqlite::Error {
    let what = match &error {
        rusqlite::Error::InvalidColumnType(_, column, kind) => {
            format!("`{column}` is of type {kind}, which it never is")
        }
        rusqlite::Error::IntegralValueOutOfRange(_, number) => format!("{number} is out of range"),
        rusqlite::Error::Utf8Error(_, error) => format!("a text is not UTF-8: {error}"),
        rusqlite::Error::FromSqlConversionFailure(_, _, error) => error.to_string(),
        _ => return error,
    };
    rusqlite::Error::FromSqlConversionFailure(
        0,
        rusqlite::types::Type::Text,
        format!("{}: {what}", row()).into(),
    )
}

fn read_row(record: &Record<'_>, study: &Study) -> rusqlite::Result<Row> {
    let mut values = Vec::with_capacity(study.axes.len());
    for (position, (_, known)) in study.axes.iter().enumerate() {
        let value = match record.get_ref(1 + position)? {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(whole) => whole.into(),
            ValueRef::Real(float) => float.into(),
            ValueRef::Text(text) | ValueRef::Blob(text) => String::from_utf8_lossy(text).into_owned().into(),
        };
        let text = value_text(&value);
        values.push(known.iter().find(|other| value_text(other) == text).cloned().unwrap_or(value));
    }
    let first = 1 + study.axes.len();
    let status: String = record.get(first)?;
    let status = status.parse().map_err(|message: String| {
        rusqlite::Error::FromSqlConversionFailure(first, rusqlite::types::Type::Text, message.into())
    })?;
    let mut metrics = [None; METRICS.len()];
    for (position, metric) in metrics.iter_mut().enumerate() {
        *metric = record.get(first + 3 + position)?;
    }
    let last = first + 3 + METRICS.len();
    Ok(Row {
        digest: record.get(0)?,
        values,
        outcome: Outcome {
            status,
            reason: record.get(first + 1)?,
            capacity: record.get(first + 2)?,
            metrics,
            utilization: Vec::new(),
            jobs: Vec::new(),
            allocations: Vec::new(),
        },
        version: record.get(last)?,
        spec: record.get(last + 1)?,
        data: record.get(last + 2)?,
        seconds: record.get(last + 3)?,
    })
}

/// Jobs of one run.
pub(super) fn read_jobs(connection: &Connection, digest: &str) -> rusqlite::Result<Vec<JobRow>> {
    let numbers = columns::all_called(connection, "jobs", &JOB_COLUMNS)?;
    let sql = format!("SELECT id, job_type, {numbers} FROM jobs WHERE digest = ?1 ORDER BY id");
    let mut query = connection.prepare(&sql)?;
    let mut services = services::read(connection, digest)?;
    let mut records = query.query([digest])?;
    let mut jobs: Vec<JobRow> = Vec::new();
    while let Some(record) = records.next()? {
        let of = || format!("row {} of the jobs of the run (digest {digest})", jobs.len() + 1);
        let job = read_job(record).map_err(|error| placed(error, of))?;
        let service = services.remove(&job.id);
        jobs.push(JobRow { service, ..job });
    }
    Ok(jobs)
}

fn read_job(record: &Record<'_>) -> rusqlite::Result<JobRow> {
    let id: i64 = record.get(0)?;
    Ok(JobRow {
        id: u64::try_from(id).unwrap_or_default(),
        job_type: record.get(1)?,
        scale_factor: record.get(2)?,
        weight: record.get(3)?,
        arrival: record.get(4)?,
        completion: record.get(5)?,
        jct: record.get(6)?,
        rho: record.get(7)?,
        service: None,
    })
}
