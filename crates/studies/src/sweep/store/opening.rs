//! Checks before a results file is opened, and the meaning of its library's errors.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use super::StoreError;
use crate::file::Made;

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
        // The inner error names the row and the fault in it.
        Some(_) | None if action == "read" && is_of_content(&source) => {
            let inner = std::error::Error::source(&source).map(ToString::to_string);
            StoreError::Damaged { path, what: inner.unwrap_or_else(|| source.to_string()) }
        }
        _ => StoreError::Database { action, path, source },
    }
}

/// Whether the error is due to the file's content: a value of another kind, a missing table or column.
fn is_of_content(error: &rusqlite::Error) -> bool {
    match error {
        rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::Utf8Error(..)
        | rusqlite::Error::QueryReturnedNoRows
        | rusqlite::Error::SqlInputError { .. } => true,
        // SQLite gives errors in a statement no specific code.
        rusqlite::Error::SqliteFailure(failure, _) => failure.code == rusqlite::ErrorCode::Unknown,
        _ => false,
    }
}

/// Locks the folder against other writers; without effect on file systems without locks. A lock file that is new is noted.
pub(super) fn take_lock(folder: &Path, made: &mut Made) -> Result<Option<File>, StoreError> {
    let path = folder.join(LOCK_FILE);
    let open = |is_new: bool| File::options().create(!is_new).create_new(is_new).append(true).open(&path);
    let (opened, is_new) = match open(true) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (open(false), false),
        opened => (opened, true),
    };
    let file = opened.map_err(|source| StoreError::Io {
        action: "write",
        path: path.display().to_string(),
        source,
    })?;
    match file.try_lock() {
        Err(fs::TryLockError::WouldBlock) => Err(StoreError::Locked { path: folder.display().to_string() }),
        locked => {
            if is_new {
                made.add(path);
            }
            Ok(locked.is_ok().then_some(file))
        }
    }
}

/// Checks a file's first bytes without opening it as a database. Returns `true` if it is empty or does not exist.
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
