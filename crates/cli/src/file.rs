//! Files that commands write on request.

use std::path::Path;

use crate::Session;
use crate::exit::Failure;
use apportion_studies::file;

/// Writes text to the file, or to standard output if there is none.
pub(super) fn write_or_print(session: &Session, out: Option<&Path>, text: &str) -> Result<(), Failure> {
    match out {
        Some(path) => write_bytes(session, path, text.as_bytes()),
        None => session.output.text(text),
    }
}

/// Writes a file that the user named, and says so.
pub(super) fn write_bytes(session: &Session, path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write(path, bytes)?;
    session.note(format!("wrote {}", path.display()));
    Ok(())
}

/// Writes a file as [`file`] does.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    file::write(path, bytes).map_err(Failure::io(format!("write {}", path.display())))
}
