//! Files that commands write on request.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Session;
use crate::exit::Failure;

/// Writes text to the file, whole or not at all, or to standard output if there is none.
pub(super) fn write_or_print(session: &Session, out: Option<&Path>, text: &str) -> Result<(), Failure> {
    match out {
        Some(path) => write_bytes(session, path, text.as_bytes()),
        None => session.output.text(text),
    }
}

/// Writes the file, whole or not at all.
pub(super) fn write_bytes(session: &Session, path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let action = || format!("write {}", path.display());
    fs::write(&partial, bytes).map_err(Failure::io(action()))?;
    fs::rename(&partial, path).map_err(Failure::io(action()))?;
    session.note(format!("wrote {}", path.display()));
    Ok(())
}
