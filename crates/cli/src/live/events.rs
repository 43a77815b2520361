//! `apportion events`: the event log of a running scheduler, in the form that `report` reads.

use std::io::{BufWriter, IntoInnerError, Write};
use std::path::PathBuf;

use clap::Args;

use super::remote::{Remote, RemoteArguments};
use crate::Session;
use crate::exit::Failure;
use crate::file::{at, check_files, no_standard_output};
use crate::output::StandardOutput;
use apportion_studies::file::NewFile;

/// Arguments of `events`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  apportion events --out events.jsonl && apportion report events.jsonl --out run.html
  apportion events | grep completion")]
pub struct EventsArguments {
    /// The file to write, whole or not at all, `-` being standard output [default: -]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    remote: RemoteArguments,
}

/// Runs `events`: writes the header, and all events up to now.
///
/// # Errors
/// If there is no scheduler that answers, or the file cannot be written.
pub(super) fn run(arguments: &EventsArguments, session: &Session) -> Result<(), Failure> {
    check_files(&arguments.remote.files(), &[at("--out", arguments.out.as_deref())])?;
    let remote = Remote::new(&arguments.remote)?;
    let Some(path) = no_standard_output(arguments.out.as_deref()) else {
        return each_part(&remote, &mut |text| session.output.text(text));
    };
    let writing = || Failure::io(format!("write {}", path.display()));
    let mut file = BufWriter::new(NewFile::create(path).map_err(writing())?);
    each_part(&remote, &mut |text| file.write_all(text.as_bytes()).map_err(writing()))?;
    let file = file.into_inner().map_err(IntoInnerError::into_error);
    file.and_then(NewFile::keep).map(drop).map_err(writing())
}

/// Passes on the log part by part, until its end or until the reader of standard output has closed it.
fn each_part(remote: &Remote, take: &mut dyn FnMut(&str) -> Result<(), Failure>) -> Result<(), Failure> {
    let mut after = 0;
    loop {
        let (text, last) = remote.get_events(after)?;
        take(&text)?;
        if last <= after || StandardOutput::is_reader_gone() {
            return Ok(());
        }
        after = last;
    }
}
