//! Tables of the service that jobs received: `services`, a row for each job, and `worker_hours`, a row for each job and
//! worker type.

use std::collections::BTreeMap;

use rusqlite::{Connection, Transaction, params};

use super::columns;
use crate::sweep::outcome::JobRow;
use apportion::metrics::{SERVICE_COLUMNS, Service};
use apportion::units::{Dollars, Seconds};

/// Creates the tables where there are none, and renames columns of older versions.
pub(super) fn complete(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(&format!(
        "CREATE TABLE IF NOT EXISTS services (digest TEXT NOT NULL REFERENCES runs (digest), id INTEGER NOT NULL,
             {}, PRIMARY KEY (digest, id)) WITHOUT ROWID;
         CREATE TABLE IF NOT EXISTS worker_hours (digest TEXT NOT NULL REFERENCES runs (digest), id INTEGER NOT NULL,
             worker_type TEXT NOT NULL, hours REAL NOT NULL, PRIMARY KEY (digest, id, worker_type)) WITHOUT ROWID;",
        columns::declared(&SERVICE_COLUMNS)
    ))?;
    columns::rename(connection, "services", columns::of_jobs(&SERVICE_COLUMNS))
}

/// Adds the service of a run's jobs.
pub(super) fn insert(transaction: &Transaction<'_>, digest: &str, jobs: &[JobRow]) -> rusqlite::Result<()> {
    let mut whole =
        transaction.prepare_cached("INSERT INTO services VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?;
    let mut by_type = transaction.prepare_cached("INSERT INTO worker_hours VALUES (?1, ?2, ?3, ?4)")?;
    for job in jobs {
        let Some(received) = &job.service else { continue };
        let (id, numbers) = (i64::try_from(job.id).unwrap_or(i64::MAX), job.numbers());
        let [wait, service, preemptions, cost, share_received, share_owed] =
            SERVICE_COLUMNS.map(|column| columns::value(&column, &numbers));
        whole.execute(params![digest, id, wait, service, preemptions, cost, share_received, share_owed])?;
        for (worker_type, hours) in &received.worker_hours {
            by_type.execute(params![digest, id, worker_type, hours])?;
        }
    }
    Ok(())
}

/// Service of a run's jobs, by id; empty where an older version wrote the file.
pub(super) fn read(connection: &Connection, digest: &str) -> rusqlite::Result<BTreeMap<u64, Service>> {
    let mut services = BTreeMap::new();
    if !connection.table_exists(None, "services")? || !connection.table_exists(None, "worker_hours")? {
        return Ok(services);
    }
    let numbers = columns::all_called(connection, "services", &SERVICE_COLUMNS)?;
    let mut query = connection.prepare(&format!("SELECT id, {numbers} FROM services WHERE digest = ?1"))?;
    let mut records = query.query([digest])?;
    while let Some(record) = records.next()? {
        let service = Service {
            wait: record.get::<_, Option<f64>>(1)?.map(Seconds::new),
            service: Seconds::new(record.get(2)?),
            preemptions: u64::try_from(record.get::<_, i64>(3)?).unwrap_or_default(),
            worker_hours: BTreeMap::new(),
            cost: record.get::<_, Option<f64>>(4)?.map(Dollars::new),
            share_received: record.get(5)?,
            share_owed: record.get(6)?,
        };
        services.insert(u64::try_from(record.get::<_, i64>(0)?).unwrap_or_default(), service);
    }
    let mut query =
        connection.prepare("SELECT id, worker_type, hours FROM worker_hours WHERE digest = ?1")?;
    let mut records = query.query([digest])?;
    while let Some(record) = records.next()? {
        let id = u64::try_from(record.get::<_, i64>(0)?).unwrap_or_default();
        if let Some(service) = services.get_mut(&id) {
            service.worker_hours.insert(record.get(1)?, record.get(2)?);
        }
    }
    Ok(services)
}

/// Removes the service of a run's jobs.
pub(super) fn delete(transaction: &Transaction<'_>, digest: &str) -> rusqlite::Result<()> {
    transaction.execute("DELETE FROM services WHERE digest = ?1", [digest])?;
    transaction.execute("DELETE FROM worker_hours WHERE digest = ?1", [digest])?;
    Ok(())
}
