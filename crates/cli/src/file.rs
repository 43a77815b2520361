//! Files that commands write on request.

use std::fs;
use std::path::Path;

use crate::Session;
use crate::exit::Failure;
use apportion_studies::file;
use apportion_studies::report::page::Page;

/// What stands for standard output in place of a file.
pub(super) const STANDARD_OUTPUT: &str = "-";

/// Writes a page that the user asked for beside results; true if it went to standard output, where it takes their place.
pub(super) fn write_page(session: &Session, path: &Path, page: &Page) -> Result<bool, Failure> {
    if path == Path::new(STANDARD_OUTPUT) {
        session.output.text(&page.html())?;
        return Ok(true);
    }
    write_bytes(session, path, page.html().as_bytes())?;
    Ok(false)
}

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

/// Refuses to write one file over another of the same call.
pub(crate) fn check_apart(paths: &[(&str, Option<&Path>)]) -> Result<(), Failure> {
    let place =
        |path: &Path| fs::canonicalize(path).ok().filter(|path| path.is_file()).unwrap_or(path.to_owned());
    let there: Vec<_> = paths.iter().filter_map(|(what, path)| Some((*what, place((*path)?)))).collect();
    for (at, (what, path)) in there.iter().enumerate() {
        if let Some((other, _)) = there[..at].iter().find(|(_, other)| other == path) {
            let message = format!("{what} and {other} are the same file, {}", path.display());
            return Err(Failure::usage(message, Some("give it another name".to_owned())));
        }
    }
    Ok(())
}
