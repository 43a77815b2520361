//! The `apportion` command: arguments, one file per subcommand, progress, diagnostics, exit codes.
//!
//! Results go to standard output and everything else to standard error. Only this module prints, reads flags and
//! decides exit codes.
//!
//! A subcommand is a file with an `…Arguments` struct that derives [`clap::Args`], its help and an example, and
//! `pub(super) fn run(&…Arguments, &Session) -> Result<(), Failure>`; it is named once in
//! [`arguments::Command`] and once in `dispatch`.

// Modules are declared in import order: each may mention only those above it.

mod conditions;
mod help;
mod paths;
mod command_line;
pub mod exit;
mod count;
mod bench_check;
mod bench_process;
pub mod decide;
pub mod diagnostics;
pub mod interrupt;
pub mod output;
mod file;
mod bench_export;
pub mod progress;
mod decided;
pub mod allocate;
mod bench_tables;
pub mod explain_program;
mod explained;
pub mod explain;
pub mod bench;
mod check_process;
pub mod check;
pub mod policies;
mod throughputs_fit;
pub mod throughputs;
pub mod trace;
pub mod results;
pub mod compare;
pub mod simulate;
pub mod report;
pub mod forecast;
#[cfg(feature = "live")]
pub mod live;
pub mod completions;
pub mod sweep;
pub mod gavel;
pub mod train;
pub mod world;
pub mod schema;
pub mod arguments;

use std::borrow::Cow;
use std::env;
use std::io::{self, Write as _};
use std::panic;
use std::process::ExitCode;

use clap::CommandFactory;

use crate::arguments::{Arguments, Command};
use crate::exit::{ExitStatus, Failure, TO_STANDARD_OUTPUT};
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::progress::ProgressMode;
use apportion::spec::path_text;
use apportion_learn::onnx;
use apportion_studies::report::plain::plain;

/// The context that every subcommand is given in addition to its own arguments.
#[derive(Debug)]
pub struct Session {
    /// The output for results, in its format.
    pub output: Output,
    /// Whether to show progress.
    pub progress: ProgressMode,
    /// Whether to print nothing but results and errors.
    pub quiet: bool,
    /// A flag that is raised when the user asks to stop.
    pub interrupt: Interrupt,
}

impl Session {
    /// Prints a note to standard error, unless `--quiet`.
    pub fn note(&self, message: impl AsRef<str>) {
        if !self.quiet {
            diagnostics::print(message.as_ref());
        }
    }
}

/// Parses the command line, runs it, and returns the exit code.
pub fn main() -> ExitCode {
    panic::set_hook(Box::new(|report| {
        if !onnx::is_guarded() {
            diagnostics::complain(&diagnostics::of_panic(report));
        }
    }));
    let arguments = match Arguments::read(env::args_os()) {
        Ok(arguments) => arguments,
        Err(refusal) => return refused(refusal),
    };
    if arguments.global.progress == ProgressMode::Json {
        diagnostics::speak_json();
    }
    // Ranks handle signals by themselves, so they start before ours are installed.
    #[cfg(feature = "live")]
    if let Command::Live(command) = &arguments.command
        && let Some(code) = live::rank(command)
    {
        return code;
    }
    if let Err(error) = interrupt::heed_limits_of_files() {
        diagnostics::print(&format!("note: a file at its limit of size will end the command: {error}"));
    }
    let interrupt = if keeps(&arguments.command) { Interrupt::install() } else { Interrupt::new() };
    #[cfg(feature = "live")]
    if matches!(arguments.command, Command::Live(_)) {
        interrupt.end_by_itself_if_terminated();
    }
    let session = Session {
        output: Output::new(arguments.global.format),
        progress: arguments.global.progress,
        quiet: arguments.global.quiet,
        interrupt,
    };
    let outcome = panic::catch_unwind(panic::AssertUnwindSafe(|| dispatch(&arguments.command, &session)));
    match outcome {
        Ok(Ok(())) => ExitStatus::Done.into(),
        Ok(Err(failure)) => {
            diagnostics::complain(&diagnostics::of_failure(&failure));
            failure.status().into()
        }
        Err(_) => ExitStatus::Bug.into(),
    }
}

/// Whether a command heeds the user's request to stop, because it has work to finish and to keep. Ctrl-C ends others at once.
fn keeps(command: &Command) -> bool {
    match command {
        Command::Allocate(_)
        | Command::Explain(_)
        | Command::Policies(_)
        | Command::Throughputs(_)
        | Command::World(_)
        | Command::Compare(_)
        | Command::Report(_)
        | Command::Schema(_)
        | Command::Completions(_)
        | Command::Man(_) => false,
        Command::Trace(_)
        | Command::Simulate(_)
        | Command::Forecast(_)
        | Command::Sweep(_)
        | Command::Gavel(_)
        | Command::Train(_)
        | Command::Results(_)
        | Command::Bench(_)
        | Command::Check(_) => true,
        #[cfg(feature = "live")]
        Command::Live(_) => true,
    }
}

/// Shows why the command line is refused, or the help that it asks for.
fn refused(refusal: clap::Error) -> ExitCode {
    let status = if refusal.use_stderr() { ExitStatus::BadInput } else { ExitStatus::Done };
    // Arguments that the message repeats are spelt out and shortened, by parsing again with such arguments.
    let given: Vec<String> = env::args_os().map(path_text::of).collect();
    let asks_for_json = |pair: &[String]| pair[0] == "--progress" && pair[1] == "json";
    if given.windows(2).any(asks_for_json) || given.iter().any(|argument| argument == "--progress=json") {
        diagnostics::speak_json();
    }
    let spelt = |argument| match diagnostics::shortened(argument) {
        Cow::Owned(short) => Cow::Owned(plain(&short).into_owned()),
        Cow::Borrowed(whole) => plain(whole),
    };
    let spelt: Vec<Cow<'_, str>> = given.iter().map(|argument| spelt(argument)).collect();
    let is_odd = spelt.iter().any(|argument| matches!(argument, Cow::Owned(_)));
    if status == ExitStatus::BadInput && (is_odd || diagnostics::speaks_json()) {
        let again = Arguments::read(spelt.iter().map(|argument| &**argument));
        let refusal = again.err().filter(clap::Error::use_stderr).unwrap_or(refusal);
        diagnostics::complain(&refusal.render().to_string());
        return status.into();
    }
    match refusal.print().and_then(|()| io::stdout().flush()) {
        // A reader of help that has read enough closes the pipe.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let failure = Failure::io(TO_STANDARD_OUTPUT)(error);
            diagnostics::complain(&diagnostics::of_failure(&failure));
            failure.status().into()
        }
        _ => status.into(),
    }
}

fn dispatch(command: &Command, session: &Session) -> Result<(), Failure> {
    match command {
        Command::Allocate(arguments) => allocate::run(arguments, session),
        Command::Explain(arguments) => explain::run(arguments, session),
        Command::Policies(arguments) => policies::run(arguments, session),
        Command::Throughputs(arguments) => throughputs::run(arguments, session),
        Command::Trace(arguments) => trace::run(arguments, session),
        Command::Simulate(arguments) => simulate::run(arguments, session),
        Command::Forecast(arguments) => forecast::run(arguments, session),
        Command::World(arguments) => world::run(arguments, session),
        Command::Sweep(arguments) => sweep::run(arguments, session),
        Command::Gavel(arguments) => gavel::run(arguments, session),
        Command::Train(arguments) => train::run(arguments, session),
        Command::Results(arguments) => results::run(arguments, session),
        Command::Bench(arguments) => bench::run(arguments, session),
        Command::Check(arguments) => check::run(arguments, session),
        Command::Compare(arguments) => compare::run(arguments, session),
        Command::Report(arguments) => report::run(arguments, session),
        Command::Schema(arguments) => schema::run(arguments, session),
        Command::Completions(arguments) => completions::run(arguments, Arguments::command(), session),
        Command::Man(arguments) => completions::run_man(arguments, Arguments::command(), session),
        #[cfg(feature = "live")]
        Command::Live(command) => live::run(command, session),
    }
}
