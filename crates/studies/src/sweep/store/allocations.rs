//! Table of the shares that decisions gave: `allocations`, a row for each share.

use rusqlite::{Connection, Transaction, params};

use crate::sweep::outcome::AllocationRow;

/// Creates the table where there is none.
pub(super) fn complete(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS allocations (digest TEXT NOT NULL REFERENCES runs (digest), from_s REAL NOT NULL,
             until_s REAL NOT NULL, job INTEGER NOT NULL, partner INTEGER, worker_type TEXT NOT NULL, share REAL NOT NULL);
         CREATE INDEX IF NOT EXISTS allocations_of ON allocations (digest);",
    )
}

/// Adds the shares of a run.
pub(super) fn insert(
    transaction: &Transaction<'_>,
    digest: &str,
    rows: &[AllocationRow],
) -> rusqlite::Result<()> {
    let whole = |id: u64| i64::try_from(id).unwrap_or(i64::MAX);
    let mut query =
        transaction.prepare_cached("INSERT INTO allocations VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    for AllocationRow { from, until, job, partner, worker_type, share } in rows {
        query.execute(params![digest, from, until, whole(*job), partner.map(whole), worker_type, share])?;
    }
    Ok(())
}

/// Shares of a run in the order in which they were written; empty where an older version wrote the file.
pub(super) fn read(connection: &Connection, digest: &str) -> rusqlite::Result<Vec<AllocationRow>> {
    if !connection.table_exists(None, "allocations")? {
        return Ok(Vec::new());
    }
    let sql = "SELECT from_s, until_s, job, partner, worker_type, share FROM allocations WHERE digest = ?1 ORDER BY rowid";
    let mut query = connection.prepare(sql)?;
    let whole = |id: i64| u64::try_from(id).unwrap_or_default();
    let rows = query.query_map([digest], |record| {
        Ok(AllocationRow {
            from: record.get(0)?,
            until: record.get(1)?,
            job: whole(record.get(2)?),
            partner: record.get::<_, Option<i64>>(3)?.map(whole),
            worker_type: record.get(4)?,
            share: record.get(5)?,
        })
    })?;
    rows.collect()
}

/// Removes the shares of a run.
pub(super) fn delete(transaction: &Transaction<'_>, digest: &str) -> rusqlite::Result<()> {
    transaction.execute("DELETE FROM allocations WHERE digest = ?1", [digest]).map(|_| ())
}
