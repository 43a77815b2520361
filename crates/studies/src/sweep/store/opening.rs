//! What is looked at before a results file is opened, and what its library's errors mean.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use super::StoreError;

const LOCK_FILE: &str = "results.lock";

/// An error of the database library while a file was read or written.
pub(super) fn database(
    action: &'static str,
    path: &Path,
) -> impl FnOnce(rusqlite::Error) -> StoreError + use<> {
    let path = path.display().to_string();
    move |source| match source.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase | rusqlite::ErrorCode::DatabaseCorrupt) => {
            StoreError::Damaged { path, what: source.to_string() }
        }
        // The error inside says which row and what of it.
        Some(_) | None if action == "read" && is_of_content(&source) => {
            let inner = std::error::Error::source(&source).map(ToString::to_string);
            StoreError::Damaged { path, what: inner.unwrap_or_else(|| source.to_string()) }
        }
        _ => StoreError::Database { action, path, source },
    }
}

/// Does the error come of what the file holds: a value of another kind, a table or column that is not there?
fn is_of_content(error: &rusqlite::Error) -> bool {
    match error {
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::Utf8Error(..)
        | rusqlite::Error::QueryReturnedNoRows
        | rusqlite::Error::SqlInputError { .. } => true,
        // What SQLite calls an error without a kind is one in the statement.
        rusqlite::Error::SqliteFailure(failure, _) => failure.code == rusqlite::ErrorCode::Unknown,
        _ => false,
    }
}

/// Keeps other writers out; on file systems without locks, nobody.
pub(super) fn take_lock(folder: &Path) -> Result<Option<File>, StoreError> {
    let path = folder.join(LOCK_FILE);
    let file = File::options().create(true).append(true).open(&path).map_err(|source| StoreError::Io {
        action: "write",
        path: path.display().to_string(),
        source,
    })?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(fs::TryLockError::WouldBlock) => Err(StoreError::Locked { path: folder.display().to_string() }),
        Err(fs::TryLockError::Error(_)) => Ok(None),
    }
}

/// Looks at a file's first bytes without opening it as a database; true if there is nothing yet.
pub(super) fn check_header(path: &Path) -> Result<bool, StoreError> {
    const MAGIC: &[u8] = b"SQLite format 3\0";
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        opened => opened.map_err(|source| StoreError::Io {
            action: "read",
            path: path.display().to_string(),
            source,
        })?,
    };
    let mut head = Vec::new();
    (&mut file).take(100).read_to_end(&mut head).map_err(|source| StoreError::Io {
        action: "read",
        path: path.display().to_string(),
        source,
    })?;
    let name = path.display().to_string();
    if head.is_empty() {
        return Ok(true);
    }
    if !head.starts_with(&MAGIC[..head.len().min(MAGIC.len())]) {
        return Err(StoreError::Foreign { path: name, what: "it is not a database".to_owned() });
    }
    if head.len() < 100 {
        return Err(StoreError::Damaged { path: name, what: "it ends inside its header".to_owned() });
    }
    Ok(false)
}
