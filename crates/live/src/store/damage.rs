//! Records that cannot be read: they are set aside, and everything else goes on.
//!
//! A record that is set aside is moved to the table `set_aside`, in the same transaction in which it leaves its own table, so that
//! it is always in one of the two. A copy of it goes into a file beside the database, for people.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::core::{JobRecord, ServerRecord};

/// A record that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Damaged {
    pub(super) table: &'static str,
    /// The number of its row.
    pub(super) row: i64,
    /// Its key, readable as far as that goes.
    pub(super) key: String,
    pub(super) content: Vec<u8>,
    pub(super) reason: String,
}

/// A document that is kept under a key of its own.
pub(super) trait Keyed: DeserializeOwned {
    fn key(&self) -> String;
}

impl Keyed for JobRecord {
    fn key(&self) -> String {
        self.number.to_string()
    }
}

impl Keyed for ServerRecord {
    fn key(&self) -> String {
        self.name.clone()
    }
}

/// The text of a value, or why it is none.
pub(super) fn text(content: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(content)
        .map_err(|error| format!("it is no UTF-8 from byte {} on", error.valid_up_to() + 1))
}

/// Why a line of the event log is none: it is not UTF-8, or no object on a line of its own. None if it may be one.
pub(super) fn line_fault(content: &[u8]) -> Option<String> {
    if let Err(reason) = text(content) {
        return Some(reason);
    }
    if let Some(place) = content.iter().position(|byte| *byte < b' ') {
        return Some(format!("byte {} is a control character", place + 1));
    }
    let is_object = content.first() == Some(&b'{') && content.last() == Some(&b'}');
    (!is_object).then(|| "it is not a whole object of JSON".to_owned())
}

/// Reads the documents of a table; those that cannot be read, or have another key than their row, are added to `damaged`.
pub(super) fn read<T: Keyed>(
    connection: &Connection,
    (table, key): (&'static str, &str),
    damaged: &mut Vec<Damaged>,
) -> rusqlite::Result<Vec<T>> {
    let mut statement =
        connection.prepare(&format!("SELECT rowid, {key}, document FROM {table} ORDER BY {key}"))?;
    let mut rows = statement.query([])?;
    let mut read = Vec::new();
    while let Some(row) = rows.next()? {
        let key = match row.get::<_, Value>(1) {
            Ok(Value::Integer(number)) => number.to_string(),
            _ => String::from_utf8_lossy(row.get_ref(1)?.as_bytes()?).into_owned(),
        };
        let content = row.get_ref(2)?.as_bytes()?;
        let document =
            text(content).and_then(|text| serde_json::from_str::<T>(text).map_err(|error| error.to_string()));
        match document {
            Ok(document) if document.key() == key => read.push(document),
            Ok(document) => damaged.push(Damaged {
                table,
                row: row.get(0)?,
                key,
                content: content.to_vec(),
                reason: format!("it is the record of {}", document.key()),
            }),
            Err(reason) => {
                damaged.push(Damaged { table, row: row.get(0)?, key, content: content.to_vec(), reason });
            }
        }
    }
    Ok(read)
}

/// A value of the table `meta`; one that `parse` refuses is added to `damaged`.
pub(super) fn meta<T>(
    connection: &Connection,
    key: &str,
    damaged: &mut Vec<Damaged>,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> rusqlite::Result<Option<T>> {
    let sql = "SELECT rowid, CAST(value AS BLOB) FROM meta WHERE key = ?1";
    let found: Option<(i64, Vec<u8>)> =
        connection.query_row(sql, [key], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let Some((row, content)) = found else { return Ok(None) };
    match text(&content).and_then(parse) {
        Ok(value) => Ok(Some(value)),
        Err(reason) => {
            damaged.push(Damaged { table: "meta", row, key: key.to_owned(), content, reason });
            Ok(None)
        }
    }
}

/// The file beside the database with copies of what was set aside.
pub(super) fn file(database: &Path) -> PathBuf {
    database.with_file_name("set-aside.jsonl")
}

/// Moves records that cannot be read to the table `set_aside`.
pub(super) fn set_aside(connection: &Connection, damaged: &[Damaged]) -> rusqlite::Result<()> {
    for record in damaged {
        connection.execute(
            "INSERT INTO set_aside (from_table, key, document, reason) VALUES (?1, ?2, CAST(?3 AS TEXT), ?4)",
            params![record.table, record.key, record.content, record.reason],
        )?;
        connection.execute(&format!("DELETE FROM {} WHERE rowid = ?1", record.table), [record.row])?;
    }
    Ok(())
}

/// Adds copies of what was set aside to the file beside the database, and returns their place in words.
pub(super) fn copy(database: &Path, damaged: &[Damaged]) -> String {
    let path = file(database);
    let written = write_copies(&path, damaged);
    match written {
        Ok(()) => path.display().to_string(),
        // The table has all of them.
        Err(_) => format!("the table `set_aside` of {}", database.display()),
    }
}

fn write_copies(path: &Path, damaged: &[Damaged]) -> io::Result<()> {
    let mut lines = String::new();
    for Damaged { table, key, content, reason, .. } in damaged {
        let copy = match text(content) {
            Ok(text) => json!({"table": table, "key": key, "reason": reason, "document": text}),
            Err(_) => json!({"table": table, "key": key, "reason": reason, "hex": hex(content)}),
        };
        lines += &copy.to_string();
        lines.push('\n');
    }
    let mut file = File::options().append(true).create(true).open(path)?;
    file.write_all(lines.as_bytes())?;
    file.sync_all()
}

/// Bytes, as two digits each.
fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

/// Sentences about the records that were set aside, for the operator: what each was, why, what follows, and where it is now.
pub(super) fn sentences(damaged: &[Damaged], place: &str) -> Vec<String> {
    let one = |record: &Damaged| {
        let Damaged { table, key, reason, .. } = record;
        let (what, follows) = match (*table, key.as_str()) {
            ("jobs", _) => {
                (format!("the record of job {key}"), "; what still runs of it is stopped: submit it again")
            }
            ("servers", _) => (
                format!("the record of the server {key}"),
                "; it joins as a new one, and is not drained: drain it again if it was",
            ),
            ("meta", "scheduler") => (
                "the saved state of the policy and the mechanism".to_owned(),
                "; what they knew is lost, and jobs start with equal claims",
            ),
            ("meta", "epoch") => ("the count of starts".to_owned(), "; it begins anew"),
            ("meta", _) => ("the last note of the clock".to_owned(), "; waits until an instant begin anew"),
            _ => (format!("line {key} of the event log"), ""),
        };
        format!("{what} cannot be read ({reason}), and was set aside in {place}{follows}")
    };
    damaged.iter().map(one).collect()
}
