//! Records of when and by which command runs were made. They are not part of a result, and differ between machines.

use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OptionalExtension as _, params};
use serde::{Deserialize, Serialize};

use super::{Store, StoreError};

/// One occasion on which runs were made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Sitting {
    /// Day, as `2026-01-31`, in UTC.
    pub date: String,
    /// Number of cores of the machine that the runs could use.
    pub cores: usize,
    /// Command that made the runs.
    pub command: String,
}

const SITTINGS: &str = "sittings";
const DESCRIPTION: &str = "description";

fn find(connection: &Connection, key: &str) -> rusqlite::Result<Option<String>> {
    let sql = "SELECT value FROM meta WHERE key = ?1";
    connection.query_row(sql, [key], |row| row.get(0)).optional()
}

fn write(connection: &Connection, key: &str, value: &str) -> rusqlite::Result<()> {
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?1, ?2)", params![key, value]).map(drop)
}

/// Current day, as `2026-01-31`, in UTC; none if the database's library does not give it.
pub fn today() -> Option<String> {
    let of_now = |connection: Connection| connection.query_row("SELECT date('now')", [], |row| row.get(0));
    Connection::open_in_memory().and_then(of_now).ok()
}

/// Day of an instant, as `2026-01-31`, in UTC; none before 1970, or if the database's library does not give it.
pub fn day(of: SystemTime) -> Option<String> {
    let seconds = i64::try_from(of.duration_since(UNIX_EPOCH).ok()?.as_secs()).ok()?;
    let sql = "SELECT date(?1, 'unixepoch')";
    let of_instant = |connection: Connection| connection.query_row(sql, [seconds], |row| row.get(0));
    Connection::open_in_memory().and_then(of_instant).ok()
}

impl Store {
    /// Occasions on which the runs were made, as far as they were noted, in order.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn sittings(&self) -> Result<Vec<Sitting>, StoreError> {
        let text = find(&self.connection, SITTINGS).map_err(self.database("read"))?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
    }

    /// Description of the study; none if it was not noted.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn description(&self) -> Result<Option<String>, StoreError> {
        find(&self.connection, DESCRIPTION).map_err(self.database("read"))
    }

    /// Notes the description of the study.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn describe(&self, description: &str) -> Result<(), StoreError> {
        write(&self.connection, DESCRIPTION, description).map_err(self.database("write"))
    }

    /// Notes that runs are made today, by this command, on this number of cores.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn sit_down(&self, command: &str, cores: usize) -> Result<(), StoreError> {
        let today = self.connection.query_row("SELECT date('now')", [], |row| row.get(0));
        let date = today.map_err(self.database("read"))?;
        self.note_sittings(vec![Sitting { date, cores, command: command.to_owned() }])
    }

    /// Adds sittings that are not noted yet.
    pub(super) fn note_sittings(&self, more: Vec<Sitting>) -> Result<(), StoreError> {
        let mut sittings = self.sittings()?;
        sittings.extend(more);
        sittings.sort();
        sittings.dedup();
        let text = serde_json::to_string(&sittings).unwrap_or_default();
        write(&self.connection, SITTINGS, &text).map_err(self.database("write"))
    }
}
