//! Files that `report` is given: the kind of their results, and their text.

use std::fs::{self, File};
use std::io::{self, BufReader, Chain, Cursor, Read};
use std::path::Path;

use crate::exit::Failure;
use apportion::spec::{Source, path_text};
use apportion_studies::sweep::store::FILE;

/// A file with the bytes that were already read from its beginning in front, since a pipe cannot be read twice.
pub(super) type Begun = BufReader<Chain<Cursor<Vec<u8>>, File>>;

/// Results, of a kind that the beginning of the file shows.
#[derive(Debug)]
pub(super) enum Given {
    /// A sweep's results; also files of unknown kind, which the reader of sweeps refuses.
    Sweep,
    Events(Begun),
    Result(Begun),
}

impl Given {
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        if path.is_dir() {
            return Ok(Self::Sweep);
        }
        if !path.exists() {
            return Err(not_there(path));
        }
        let is_regular = path.is_file();
        let mut start = Vec::new();
        let mut file = File::open(path).map_err(reading(path))?;
        (&mut file).take(4096).read_to_end(&mut start).map_err(reading(path))?;
        if start.is_empty() {
            let help =
                "a simulation or a sweep that has ended leaves a file with content; run it again".to_owned();
            let message = format!("{} is empty", path.display());
            return Err(Source::new(path_text::of(path), "").at(1, 1, message, Some(help)).into());
        }
        let text = String::from_utf8_lossy(&start);
        let line = text.trim_start().split('\n').next().unwrap_or_default().trim();
        let is_events = is_of_events(line);
        let is_result = line.starts_with('{');
        let is_sweep = is_of_sweep(path, &text);
        let begun = BufReader::new(Cursor::new(start).chain(file));
        match (is_events, is_result) {
            (true, _) => Ok(Self::Events(begun)),
            (false, true) => Ok(Self::Result(begun)),
            (false, false) if is_regular && is_sweep => Ok(Self::Sweep),
            (false, false) if is_regular => Err(no_results(path)),
            (false, false) => {
                let message = format!(
                    "{} is neither a simulation's nor a benchmark's, and no regular file",
                    path.display()
                );
                let help = "give the folder of a sweep, or its results.sqlite itself".to_owned();
                Err(Failure::usage(message, Some(help)))
            }
        }
    }
}

/// Whether this line is the first one of a file of events, whatever blanks are in it and in whatever order its fields come: a
/// header, or an event where the header is missing.
fn is_of_events(line: &str) -> bool {
    let written: String = line.chars().filter(|letter| !letter.is_whitespace()).collect();
    written.starts_with("{\"event\"") || written.contains("\"format\":\"apportion/events")
}

/// The kinds of results that `report` reads, in words.
const READS: &str = "give a sweep's folder or the results.sqlite in it, the events that `simulate --events` wrote, or the JSON of \
                     `simulate` or `bench`";

/// The failure if there are no results at the path.
fn not_there(path: &Path) -> Failure {
    let place = path.display();
    let message = match fs::read_link(path) {
        Ok(target) => format!("{place} is a link to `{}`, which is not there", target.display()),
        Err(_) => format!("{place}: there is no such file or folder"),
    };
    Failure::usage(message, Some(READS.to_owned()))
}

/// Whether this is a database of results, by its beginning `start` or by its name.
fn is_of_sweep(path: &Path, start: &str) -> bool {
    start.starts_with("SQLite format 3") || path.extension().is_some_and(|ending| ending == "sqlite")
}

/// The failure of a file that holds no results, perhaps beside those of a sweep.
fn no_results(path: &Path) -> Failure {
    let beside = path.with_file_name(FILE);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let help = if beside.is_file() {
        format!("its folder holds results of a sweep: `apportion report {}`", folder.display())
    } else {
        READS.to_owned()
    };
    Failure::usage(format!("{} holds no results that `report` reads", path.display()), Some(help))
}

pub(super) fn reading(path: &Path) -> impl FnOnce(io::Error) -> Failure + use<> {
    Failure::io(format!("read {}", path.display()))
}

/// Bytes as text. `line` is the number of the first one's line.
pub(super) fn text_of<'b>(path: &Path, bytes: &'b [u8], line: usize) -> Result<&'b str, Failure> {
    str::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        let line = line + before.matches('\n').count();
        let column = before.chars().rev().take_while(|letter| *letter != '\n').count() + 1;
        let help = "it is damaged, or no file that apportion wrote".to_owned();
        let message = format!("line {line} is not UTF-8 from its character {column} on");
        Source::new(path_text::of(path), "").at(line, column, message, Some(help)).into()
    })
}
