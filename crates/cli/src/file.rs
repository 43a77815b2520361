//! Files that commands write on request.

use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::Session;
use crate::exit::Failure;
use crate::output::StandardOutput;
use apportion::spec::path_text;
use apportion::spec::policy::PolicyReference;
use apportion_studies::file;
use apportion_studies::report::page::Page;

/// The word for standard output in place of a file.
pub(super) const STANDARD_OUTPUT: &str = "-";
/// The word for standard input in place of a file.
const STANDARD_INPUT: &str = "-";

/// A page that the user asked for in addition to results, and its path.
pub(super) type Beside<'a> = Option<(&'a Path, Page)>;

/// Whether a file that the user named is standard output: as `-`, or as the very file that standard output is, under any name. Two
/// ways of writing to one file would mix up their output.
pub(super) fn is_standard_output(path: &Path) -> bool {
    path == Path::new(STANDARD_OUTPUT) || is_behind_standard_output(path).unwrap_or(false)
}

#[cfg(unix)]
fn is_behind_standard_output(path: &Path) -> io::Result<bool> {
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::MetadataExt as _;
    let file = fs::File::from(io::stdout().as_fd().try_clone_to_owned()?).metadata()?;
    let number = |about: &fs::Metadata| (about.dev(), about.ino());
    // Nothing is mixed up in a file that keeps nothing.
    let is_null = || fs::metadata("/dev/null").is_ok_and(|null| number(&null) == number(&file));
    Ok(number(&fs::metadata(path)?) == number(&file) && !is_null())
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "as where files have numbers")]
fn is_behind_standard_output(_: &Path) -> io::Result<bool> {
    Ok(false)
}

/// Prints a page that goes to standard output in place of results; false if the page goes elsewhere.
pub(super) fn print_page(session: &Session, page: &Beside<'_>) -> Result<bool, Failure> {
    match page {
        Some((path, page)) if is_standard_output(path) => session.output.text(&page.html()).map(|()| true),
        _ => Ok(false),
    }
}

/// Writes a page that goes to a file, after results are printed: so they are not lost if it fails.
pub(super) fn write_page(session: &Session, page: &Beside<'_>) -> Result<(), Failure> {
    match page {
        Some((path, page)) => write_bytes(session, path, page.html().as_bytes()),
        None => Ok(()),
    }
}

/// The file that the user named; none if that is standard output, or no file is named.
pub(crate) fn no_standard_output(out: Option<&Path>) -> Option<&Path> {
    out.filter(|path| !is_standard_output(path))
}

/// Writes text to the file, or to standard output if there is none or the file is standard output.
pub(super) fn write_or_print(session: &Session, out: Option<&Path>, text: &str) -> Result<(), Failure> {
    match no_standard_output(out) {
        Some(path) => write_bytes(session, path, text.as_bytes()),
        None => session.output.text(text),
    }
}

/// Writes a file that the user named, and notes its path unless it is standard output.
pub(super) fn write_bytes(session: &Session, path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write(path, bytes)?;
    if !is_standard_output(path) {
        session.note(format!("wrote {}", path.display()));
    }
    Ok(())
}

/// Writes a file as [`file`] does, or to standard output if the file is that.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    if is_standard_output(path) {
        return StandardOutput.put(bytes);
    }
    file::write(path, bytes).map_err(Failure::io(format!("write {}", path.display())))
}

/// A file of a call: the flag or argument that names it, and its path if it is given.
pub(crate) type Named<'a> = (&'a str, Option<Cow<'a, Path>>);

/// A file of a call by its path.
pub(crate) fn at<'a>(what: &'a str, path: Option<&'a Path>) -> Named<'a> {
    (what, path.map(Cow::Borrowed))
}

/// A file that is read, from an argument; none for names of documents that ship with the program.
pub(crate) fn named<'a>(what: &'a str, name: Option<&'a str>) -> Named<'a> {
    let path = |name| {
        if name == STANDARD_INPUT { Cow::Borrowed(Path::new("/dev/stdin")) } else { path_text::to_path(name) }
    };
    (what, name.map(path))
}

/// Checks the files of a call before its work: none is written over another that the call reads or writes, and all can be written.
pub(crate) fn check_files(read: &[Named<'_>], written: &[Named<'_>]) -> Result<(), Failure> {
    let path = |(what, path): &Named<'_>| Some((what.to_string(), path.as_ref()?.to_path_buf()));
    let mut others: Vec<(String, PathBuf)> = Vec::new();
    for (what, path) in read.iter().filter_map(path) {
        let place = file::place(&path);
        if place.is_file() {
            others.push((what, place));
        }
    }
    for (what, path) in written.iter().filter_map(path) {
        let is_standard_output = is_standard_output(&path);
        let place = if is_standard_output { PathBuf::from(STANDARD_OUTPUT) } else { file::place(&path) };
        if let Some((other, _)) = others.iter().find(|(_, other)| *other == place) {
            let message = format!("{what} and {other} are the same file, {}", path.display());
            return Err(Failure::usage(message, Some("give it another name".to_owned())));
        }
        if !is_standard_output {
            file::check(&path).map_err(|error| unwritable(&what, &path, error))?;
        }
        if place != Path::new("/dev/null") {
            others.push((what, place));
        }
    }
    Ok(())
}

/// Why a file cannot be written, before anything was done: the flag is at fault if it names no file in an existing folder.
fn unwritable(what: &str, path: &Path, error: io::Error) -> Failure {
    let is_misnamed = matches!(
        error.kind(),
        io::ErrorKind::NotFound
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::IsADirectory
            | io::ErrorKind::InvalidFilename
    ) || is_loop_of_links(&error);
    if !is_misnamed {
        return Failure::io(format!("write {}", path.display()))(error);
    }
    let message = format!("{what}: cannot write {}: {error}", path.display());
    Failure::usage(message, Some("name a file in a folder that is there".to_owned()))
}

#[cfg(unix)]
fn is_loop_of_links(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

#[cfg(not(unix))]
const fn is_loop_of_links(_: &io::Error) -> bool {
    false
}

/// Refuses a pipe and the like if several processes read a policy.
pub(crate) fn check_reread(what: &str, policy: &str) -> Result<(), Failure> {
    let path = PolicyReference::new(policy).policy;
    if fs::metadata(path).is_ok_and(|about| !about.is_file() && !about.is_dir()) {
        let help = "it is read several times: put it into a file first".to_owned();
        return Err(Failure::usage(format!("`{what} {path}` is no file"), Some(help)));
    }
    Ok(())
}

/// Checks before the work that a folder exists or can be made: standard output is no folder, nor is a link to nothing.
pub(crate) fn check_folder(what: &str, folder: Option<&Path>) -> Result<(), Failure> {
    if folder == Some(Path::new(STANDARD_OUTPUT)) {
        let message = format!("{what}: `-` is standard output, and what is written are files in a folder");
        return Err(Failure::usage(message, Some("name a folder; `./-` is one of that name".to_owned())));
    }
    let there = folder.and_then(|folder| folder.ancestors().find(|there| there.symlink_metadata().is_ok()));
    match there {
        Some(there) if !there.is_dir() => {
            let help = Some("name a folder, or where one can be made".to_owned());
            Err(Failure::usage(format!("{what}: {} is no folder", there.display()), help))
        }
        _ => Ok(()),
    }
}
