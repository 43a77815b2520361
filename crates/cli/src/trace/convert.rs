//! `apportion trace convert`: goes between the forms of traces, and makes traces of clusters' logs.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::log::{Given, LogArguments, check_interrupt, like_a_log, not_used, sentences};
use crate::Session;
use crate::exit::{Failure, TO_STANDARD_OUTPUT};
use crate::file::{STANDARD_OUTPUT, at, check_files, named, no_standard_output, write};
use crate::output::StandardOutput;
use crate::paths::name_or_path;
use apportion::spec::{Source, SpecError, TraceForm, TraceOrder, load_throughputs, read_trace};
use apportion::throughput::Throughputs;
use apportion_logs::tally::{Tally, counted};
use apportion_logs::write::{WriteError, write_jobs, write_log as write_log_rows};
use apportion_logs::{ImportReport, Reading};
use apportion_studies::file::NewFile;

#[derive(Args, Debug)]
pub(super) struct ConvertArguments {
    /// The trace, in any form, or with --from the log of a cluster, which may be packed by gzip; `-` is standard input
    #[arg(value_parser = name_or_path())]
    file: String,
    #[command(flatten)]
    log: LogArguments,
    /// Sort jobs that are not in order of arrival
    #[arg(long, conflicts_with = "from")]
    sort: bool,
    /// Check job types against this matrix (an embedded name, or a file), and take Gavel's durations from it; of a log, take
    /// the jobs for its job types
    #[arg(long, value_name = "NAME|FILE", value_parser = name_or_path())]
    throughputs: Option<String>,
    /// Leave out jobs that the matrix has no throughputs for
    #[arg(long, requires = "throughputs", conflicts_with = "from")]
    drop_unknown: bool,
    /// Write the report of an import here, as JSON; `-` is standard output, if the jobs go elsewhere
    #[arg(long, value_name = "FILE", requires = "from")]
    report: Option<PathBuf>,
    /// The form to write
    #[arg(long, value_enum, default_value_t)]
    to: Written,
    /// Where to write, `-` being standard output [default: -]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// A form that is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Written {
    /// Our CSV.
    #[default]
    Native,
    /// Gavel's ten tab-separated columns.
    Gavel,
    /// The normalized log: of a log only.
    Log,
}

pub(super) fn run(arguments: &ConvertArguments, session: &Session) -> Result<(), Failure> {
    let ConvertArguments { file, out, report, .. } = arguments;
    let (what, throughputs) = (
        if arguments.log.form().is_some() { "the log" } else { "the trace" },
        arguments.throughputs.as_deref(),
    );
    check_files(
        &[&arguments.log.files()[..], &[named(what, Some(file)), named("--throughputs", throughputs)]]
            .concat(),
        &[
            at("--out", Some(out.as_deref().unwrap_or(Path::new(STANDARD_OUTPUT)))),
            at("--report", report.as_deref()),
        ],
    )?;
    arguments.log.check_one_input(file, throughputs)?;
    let throughputs = throughputs.map(load_throughputs).transpose()?;
    let form = match (arguments.to, arguments.log.form()) {
        (Written::Native, _) => TraceForm::Native,
        (Written::Gavel, _) => TraceForm::Gavel,
        (Written::Log, Some(_)) => {
            let Some(given) = arguments.log.read(&arguments.file, session)? else { return Ok(()) };
            arguments.log.check(&given.log, session)?;
            return write_log(arguments, &given, session);
        }
        (Written::Log, None) => {
            let help = "`--from` names the form of the log".to_owned();
            return Err(Failure::usage(
                "a trace is no log: it does not say when jobs ran".to_owned(),
                Some(help),
            ));
        }
    };
    if arguments.log.form().is_some() {
        let Some(throughputs) = &throughputs else {
            let message = "a log says what jobs had, not what they computed: --throughputs names the job types that stand for \
                           them"
                .to_owned();
            let help = "`--throughputs osdi20`, for example, or `--to log` for the log itself".to_owned();
            return Err(Failure::usage(message, Some(help)));
        };
        let Some(given) = arguments.log.read(&arguments.file, session)? else { return Ok(()) };
        arguments.log.check(&given.log, session)?;
        return write_trace_of(arguments, (&given, form), throughputs, session);
    }
    let order = if arguments.sort { TraceOrder::Sort } else { TraceOrder::Refuse };
    let source = Source::load(&arguments.file)?;
    let trace = if let (true, Some(throughputs)) = (arguments.drop_unknown, &throughputs) {
        let mut trace = read_trace(&source, None, order).map_err(|error| like_a_log(&source, error))?;
        let n_dropped = trace.retain_known(throughputs);
        let name = throughputs.name();
        session.note(format!(
            "left out {} that throughputs `{name}` do not have",
            counted(n_dropped as u64, "job")
        ));
        trace
    } else {
        read_trace(&source, throughputs.as_deref(), order).map_err(|error| like_a_log(&source, error))?
    };
    check_interrupt(session)?;
    super::write(&trace, (form, arguments.out.as_deref()), throughputs.as_deref(), session)
}

/// Writes the jobs of a log.
fn write_trace_of(
    arguments: &ConvertArguments,
    (given, form): (&Given, TraceForm),
    throughputs: &Throughputs,
    session: &Session,
) -> Result<(), Failure> {
    let converter = given.converter(throughputs, session)?;
    let converted = given.convert(&converter, session)?;
    let report = ImportReport::of(&given.import(&converted, throughputs, None));
    for line in sentences(&report) {
        session.note(line);
    }
    if let Some(path) = &arguments.report {
        let text = serde_json::to_string_pretty(&report)
            .map_err(|error| Failure::Bug { message: format!("a report is not JSON: {error}") })?;
        match no_standard_output(Some(path)) {
            Some(path) => write(path, (text + "\n").as_bytes())?,
            None => session.output.text(&text)?,
        }
    }
    given.check_some(&report)?;
    let not_held = into(arguments, session, |out| {
        write_jobs(out, &converter, &given.log, &converted, form, throughputs)
    })?;
    super::note_not_held(not_held.n_cut_steps, not_held.n_without_entity, session);
    Ok(())
}

/// The place of the first of some rows, as the end of a sentence about them.
fn first(tally: &Tally) -> String {
    match (tally.place(), &tally.id) {
        (None, _) => String::new(),
        (Some(place), None) => format!(" (the first on {place})"),
        (Some(place), Some(id)) => format!(" (the first on {place}: {id})"),
    }
}

/// Writes the rows of a log.
fn write_log(arguments: &ConvertArguments, given: &Given, session: &Session) -> Result<(), Failure> {
    let log = &given.log;
    let others =
        [(arguments.report.is_some(), "--report"), (arguments.throughputs.is_some(), "--throughputs")];
    let other = others.into_iter().find(|(is_given, _)| *is_given).map(|(_, flag)| flag);
    if let Some(flag) = other.or(arguments.log.about_jobs()) {
        let message = format!("{flag} is about jobs, which --to log does not make");
        return Err(Failure::usage(message, Some("`apportion trace show` reports on a log, too".to_owned())));
    }
    if log.rows.is_empty() {
        note_rows(log, session);
        let message = format!("no row is left of {} of the log", counted(log.n_read, "row"));
        return Err(SpecError::about(log.source.clone(), message, None).into());
    }
    into(arguments, session, |out| write_log_rows(out, &log.rows))?;
    // After the reader has closed standard output, rows do not count as written.
    if !StandardOutput::is_reader_gone() {
        note_rows(log, session);
    }
    Ok(())
}

/// Notes how many rows of a log were read, written and left out.
fn note_rows(log: &Reading, session: &Session) {
    session.note(format!("{} read, {} written", counted(log.n_read, "row"), log.rows.len()));
    if log.n_merged > 0 {
        session.note(format!("  {} more are attempts, components or roles of these", log.n_merged));
    }
    for (reason, tally) in &log.left_out {
        let rows = counted(tally.n, "row");
        session.note(format!("  {rows} left out: {}{}", reason.words(), first(tally)));
    }
    for (doubt, tally) in &log.doubts {
        session.note(format!("doubtful ({}): {}{}", tally.n, doubt.words(), first(tally)));
    }
    if let Some(line) = not_used(&log.unused_columns) {
        session.note(line);
    }
}

/// An output that fails once the user asks to stop.
struct Attended<'a> {
    out: &'a mut dyn Write,
    session: &'a Session,
}

impl Write for Attended<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.session.interrupt.is_raised() {
            Err(io::Error::other("interrupted"))
        } else {
            self.out.write(bytes)
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Passes the file that the user named, or standard output, to `write`.
fn into<T>(
    arguments: &ConvertArguments,
    session: &Session,
    write: impl FnOnce(&mut dyn Write) -> Result<T, WriteError>,
) -> Result<T, Failure> {
    let Some(path) = no_standard_output(arguments.out.as_deref()) else {
        let mut stdout = BufWriter::with_capacity(1 << 16, StandardOutput);
        let written = write(&mut Attended { out: &mut stdout, session });
        session.interrupt.check(|| "what was printed is a part".to_owned())?;
        let written = written.map_err(|error| failure(error, TO_STANDARD_OUTPUT))?;
        stdout.flush().map_err(Failure::io(TO_STANDARD_OUTPUT))?;
        return Ok(written);
    };
    let what = format!("write {}", path.display());
    let mut file = NewFile::create(path).map_err(Failure::io(what.clone()))?;
    let written = write(&mut Attended { out: &mut file, session });
    check_interrupt(session)?;
    let written = written.map_err(|error| failure(error, &what))?;
    file.keep().map_err(Failure::io(what))?;
    session.note(format!("wrote {}", path.display()));
    Ok(written)
}

fn failure(error: WriteError, what: &str) -> Failure {
    match error {
        WriteError::Io(error) => Failure::io(what.to_owned())(error),
        WriteError::Form(error) => Failure::usage(error.to_string(), None),
        error => Failure::Bug { message: error.to_string() },
    }
}
