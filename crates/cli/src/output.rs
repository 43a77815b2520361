//! Results on standard output: tables for people, JSON and CSV for programs.

use std::io::{self, BufWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::exit::{Failure, TO_STANDARD_OUTPUT};
use apportion_studies::report::plain::plain_lines;
pub use apportion_studies::report::{Cell, Table};

/// The format of the result of a simulation in JSON.
pub const SIMULATION_FORMAT: &str = "apportion/simulation-v1";

/// How results are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For people; may change from release to release.
    #[default]
    Table,
    /// For programs; stable.
    Json,
    /// For programs; stable.
    Csv,
}

/// An answer of a command in JSON: an object.
pub trait Answer: Serialize + JsonSchema {
    /// The kind of the answer in the name of its format: `allocation` of `apportion/allocation-v1`.
    const KIND: &'static str;

    /// Its format.
    fn format() -> String {
        format!("apportion/{}-v1", Self::KIND)
    }
}

/// An answer in JSON: the fields that every answer begins with, and its own.
#[derive(Serialize)]
struct Answered<'a, T> {
    /// `apportion/KIND-v1`.
    format: String,
    /// The version of the program.
    version: &'static str,
    #[serde(flatten)]
    answer: &'a T,
}

impl<'a, T: Answer> Answered<'a, T> {
    fn of(answer: &'a T) -> Self {
        Self { format: T::format(), version: env!("CARGO_PKG_VERSION"), answer }
    }
}

/// A table.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Rows {
    /// Its rows, as objects keyed by column. A cell is a number, a text, or null where it is empty.
    rows: Vec<Map<String, Value>>,
}

impl Answer for Rows {
    const KIND: &'static str = "table";
}

/// A document that is not JSON, such as a sweep's.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Text<'a> {
    /// The document as it is.
    text: &'a str,
}

impl Answer for Text<'_> {
    const KIND: &'static str = "text";
}

/// A flag that is raised once the reader of standard output has gone.
static IS_READER_GONE: AtomicBool = AtomicBool::new(false);

/// The process's standard output, as all commands write to it. A reader that has read enough closes the pipe, as in `apportion … |
/// head`: later output is thrown away, which is no failure. The command does the rest of its work, and its own end decides the exit
/// code.
#[derive(Clone, Copy, Debug, Default)]
pub struct StandardOutput;

impl StandardOutput {
    /// Whether the reader of standard output has closed it.
    pub fn is_reader_gone() -> bool {
        IS_READER_GONE.load(Ordering::Relaxed)
    }

    /// Writes all bytes at once.
    ///
    /// # Errors
    /// If standard output cannot be written to.
    pub fn put(mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.write_all(bytes).and_then(|()| self.flush()).map_err(Failure::io(TO_STANDARD_OUTPUT))
    }
}

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if Self::is_reader_gone() {
            return Ok(bytes.len());
        }
        unless_gone(io::stdout().write(bytes), bytes.len(), &IS_READER_GONE)
    }

    fn flush(&mut self) -> io::Result<()> {
        if Self::is_reader_gone() {
            return Ok(());
        }
        unless_gone(io::stdout().flush(), (), &IS_READER_GONE)
    }
}

/// The outcome of writing; if the pipe is closed, the flag is raised, and all bytes count as written.
fn unless_gone<T>(written: io::Result<T>, all: T, flag: &AtomicBool) -> io::Result<T> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            flag.store(true, Ordering::Relaxed);
            Ok(all)
        }
        written => written,
    }
}

/// The text of an answer, as [`Output::answer`] writes it.
///
/// # Errors
/// If the answer is not JSON, which is a bug.
pub fn text_of<T: Answer>(answer: &T) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(&Answered::of(answer)).map_err(|error| no_json(&error))?;
    Ok(text + "\n")
}

fn no_json(error: &serde_json::Error) -> Failure {
    Failure::Bug { message: format!("a result is not JSON: {error}") }
}

/// Standard output, in one format.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    format: OutputFormat,
}

impl Output {
    /// Standard output in this format.
    pub const fn new(format: OutputFormat) -> Self {
        Self { format }
    }

    /// The format asked for.
    pub const fn format(self) -> OutputFormat {
        self.format
    }

    /// The most letters in a line of a wide table: the terminal's columns, if standard output is a terminal that tells them (a
    /// terminal may tell no rows and have columns). None for any number, so that programs find each row on one line.
    pub fn width(self) -> Option<usize> {
        #[cfg(unix)]
        let columns = rustix::termios::tcgetwinsize(io::stdout()).map_or(0, |size| size.ws_col);
        #[cfg(not(unix))]
        let columns = 0;
        (columns > 0).then(|| usize::from(columns))
    }

    /// Writes bytes as they are.
    ///
    /// # Errors
    /// If standard output cannot be written to.
    pub fn bytes(self, bytes: &[u8]) -> Result<(), Failure> {
        StandardOutput.put(bytes)
    }

    /// Writes text as it is, ended by a newline.
    ///
    /// # Errors
    /// If standard output cannot be written to.
    pub fn text(self, text: &str) -> Result<(), Failure> {
        let newline = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        StandardOutput.put(format!("{text}{newline}").as_bytes())
    }

    /// Writes a document as it is; in JSON, as the `text` of an answer.
    ///
    /// # Errors
    /// If standard output cannot be written to.
    pub fn document(self, text: &str) -> Result<(), Failure> {
        match self.format {
            OutputFormat::Json => self.answer(&Text { text }),
            OutputFormat::Table | OutputFormat::Csv => self.text(text),
        }
    }

    /// Writes sentences for people, ended by a newline.
    ///
    /// # Errors
    /// If standard output cannot be written to.
    pub fn words(self, text: &str) -> Result<(), Failure> {
        self.text(&plain_lines(text))
    }

    /// Writes an answer's fields as JSON, after its `format`, which is `apportion/KIND-v1`, and the program's `version`.
    ///
    /// # Errors
    /// If standard output cannot be written to.
    pub fn answer<T: Answer>(self, answer: &T) -> Result<(), Failure> {
        self.json(&Answered::of(answer))
    }

    /// Writes a value as JSON, whatever the format.
    ///
    /// # Errors
    /// If standard output cannot be written to.
    pub fn json<T: Serialize>(self, value: &T) -> Result<(), Failure> {
        // It is written as it is made: a million jobs are not text in memory first.
        let mut stdout = BufWriter::with_capacity(1 << 16, StandardOutput);
        serde_json::to_writer_pretty(&mut stdout, value).map_err(|error| {
            if error.is_io() { Failure::io(TO_STANDARD_OUTPUT)(error.into()) } else { no_json(&error) }
        })?;
        stdout.write_all(b"\n").and_then(|()| stdout.flush()).map_err(Failure::io(TO_STANDARD_OUTPUT))
    }

    /// Writes a table as [`table`](Self::table) does, in a terminal within its width: columns without room go into blocks below,
    /// each of which begins with the first `n_heads` columns.
    ///
    /// # Errors
    /// If standard output cannot be written to.
    pub fn wide_table(self, table: &Table, n_heads: usize) -> Result<(), Failure> {
        match self.format {
            OutputFormat::Table => self.text(&table.aligned_within(self.width(), n_heads)),
            OutputFormat::Csv | OutputFormat::Json => self.table(table),
        }
    }

    /// Writes a table in the requested format: as CSV, as aligned text, or as JSON with a list `rows` of objects keyed by column.
    ///
    /// # Errors
    /// If standard output cannot be written to.
    pub fn table(self, table: &Table) -> Result<(), Failure> {
        match self.format {
            OutputFormat::Table => StandardOutput.put(table.aligned().as_bytes()),
            OutputFormat::Csv => StandardOutput.put(table.csv().as_bytes()),
            OutputFormat::Json => self.answer(&Rows { rows: table.objects() }),
        }
    }
}
