//! `apportion gavel`: the command lines of the published system's scripts, run as they are typed.

mod logs;
mod meaning;
mod scripts;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Args, Parser};

use crate::Session;
use crate::exit::Failure;
use crate::file::{check_folder, write};
use crate::output::OutputFormat;
use crate::sweep::{SweepArguments, check, run_source};
use apportion::spec::Source;
use apportion::units::Seconds;
use apportion_studies::sweep::spec::StopSpec;
use scripts::{Continuous, Generated, Static, Traced};

/// Run a command line of Gavel's scripts as it is typed
#[derive(Args, Debug)]
#[command(after_help = "\
The scripts are `run_sweep_continuous.py`, `run_sweep_static.py`, `simulate_scheduler_with_generated_jobs.py` and
`simulate_scheduler_with_trace.py`, with their own flags and defaults (`apportion gavel SCRIPT --help`). Jobs are drawn, and
rounds run, as the published code has them. Printed first is the sweep file that the command line amounts to; it is kept
beside the results as `sweep.yaml` (`sweep-2.yaml` and so on, where there is one of another command line), with logs in the form that the published notebooks read, in the folder of `--log-dir`. Both are written
when the command ends, also by Ctrl-C; after one that was killed or terminated, the same command goes on and writes them.
Flags of `apportion` itself, such as `--format`, stand before the script.

Example:
  apportion gavel run_sweep_continuous.py -s 4000 -e 5000 -l logs -j 6 -p max_min_fairness max_min_fairness_perf \\
      --seeds 0 1 2 -c 36:36:36 -a 0.0 -b 1.0 -n 5")]
pub struct GavelArguments {
    /// Only print the sweep file
    #[arg(long)]
    show: bool,
    /// Where results go, for scripts that have no `--log-dir` [default: results/NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The script, with or without its folder, and its arguments; `python -u` before it is passed over
    #[arg(
        value_name = "SCRIPT ARGUMENTS",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    script: Vec<OsString>,
}

/// The sweep of a script's command line.
#[derive(Debug, PartialEq)]
pub(super) struct Meaning {
    /// The name of the sweep.
    name: String,
    /// Fields of every run, in the form of the document.
    run: Vec<(&'static str, String)>,
    /// Fields that are varied.
    axes: Vec<(&'static str, String)>,
    /// The rules for points that are left out.
    skip: Vec<String>,
    /// Wall time of a run, in s.
    timeout: Option<u64>,
    /// Runs at once.
    processes: Option<NonZeroUsize>,
    /// The folder for results and logs.
    log_dir: Option<PathBuf>,
    /// For sweeps over numbers of jobs: the number in the name of a log → the number of jobs of its run.
    log_names: BTreeMap<u64, u64>,
    /// Notes on flags that are ignored without loss.
    notes: Vec<String>,
}

impl Meaning {
    /// The sweep as a document.
    fn document(&self) -> String {
        let mut text = format!("format: apportion/sweep-v1\nname: {}\n", self.name);
        for (section, fields) in [("run", &self.run), ("axes", &self.axes)] {
            text.push_str(section);
            text.push_str(":\n");
            for (name, value) in fields {
                let _ = writeln!(text, "  {name}: {value}");
            }
        }
        if !self.skip.is_empty() {
            text.push_str("skip:\n");
            for rule in &self.skip {
                let _ = writeln!(text, "  - {rule}");
            }
        }
        let wall = self.timeout.map(|seconds| Seconds::new(seconds as f64));
        text + &StopSpec { wall, ..StopSpec::default() }.in_force() + "\n"
    }
}

/// Runs the command.
///
/// # Errors
/// If the script or a flag is none of Gavel's, or asks for something unsupported; else as a sweep.
pub(super) fn run(arguments: &GavelArguments, session: &Session) -> Result<(), Failure> {
    let Some(meaning) = meaning(arguments, session)? else { return Ok(()) };
    let text = meaning.document();
    for note in &meaning.notes {
        session.note(note);
    }
    if arguments.show {
        let sweep = SweepArguments::into(PathBuf::new(), meaning.processes);
        check(&Source::new("<command line>", text.as_str()), &sweep, session)?;
        return session.output.document(&text);
    }
    if session.output.format() == OutputFormat::Table {
        session.output.text(&format!("{text}\n"))?;
    }
    if let (Some(log_dir), Some(_)) = (&meaning.log_dir, &arguments.out) {
        let message = format!("--out: results go to --log-dir, {}", log_dir.display());
        return Err(Failure::usage(
            message,
            Some("`--out` is for scripts that have no `--log-dir`".to_owned()),
        ));
    }
    let default = || Path::new("results").join(&meaning.name);
    let folder = meaning.log_dir.clone().or_else(|| arguments.out.clone()).unwrap_or_else(default);
    check_folder(if meaning.log_dir.is_some() { "--log-dir" } else { "--out" }, Some(&folder))?;
    let sweep = SweepArguments::into(folder.clone(), meaning.processes);
    let outcome = run_source(&Source::new("<command line>", text.as_str()), &sweep, session);
    // A sweep that was stopped, or with a run that was given up, has results all the same. A refused sweep leaves the folder as it
    // was: it may hold another sweep's results.
    if let Ok(()) | Err(Failure::Limit { .. } | Failure::Interrupted { .. }) = &outcome {
        keep_document(&folder, &text)?;
        logs::write_all(&folder, &meaning.log_names)?;
    }
    outcome
}

/// Keeps a sweep file beside its results: as `sweep.yaml`, or as `sweep-2.yaml` and so on, if that belongs to another command line.
fn keep_document(folder: &Path, text: &str) -> Result<(), Failure> {
    let names = (1_u32..).map(|n| if n == 1 { "sweep.yaml".to_owned() } else { format!("sweep-{n}.yaml") });
    for path in names.map(|name| folder.join(name)) {
        match fs::read(&path) {
            Ok(kept) if kept == text.as_bytes() => return Ok(()),
            Ok(_) => {}
            Err(_) => return write(&path, text.as_bytes()),
        }
    }
    Ok(())
}

/// The flags of a script, or clap's message about them.
///
/// # Errors
/// If a flag is an ambiguous abbreviation.
fn parsed<S: Parser>(given: &[OsString]) -> Result<Result<S, clap::Error>, Failure> {
    let parsed = S::try_parse_from(given);
    let unknown = parsed.as_ref().err().filter(|error| error.kind() == ErrorKind::UnknownArgument);
    let Some(ContextValue::String(flag)) = unknown.and_then(|error| error.get(ContextKind::InvalidArg))
    else {
        return Ok(parsed);
    };
    let script = S::command();
    let flags = script.get_arguments().filter_map(Arg::get_long).map(|name| format!("--{name}"));
    let meant: Vec<String> = flags.filter(|name| flag.len() > 2 && name.starts_with(flag.as_str())).collect();
    match meant.as_slice() {
        [_, _, ..] => {
            let message = format!("{}: `{flag}` is the beginning of several flags", script.get_name());
            Err(Failure::usage(message, Some(format!("one of {}", meant.join(", ")))))
        }
        _ => Ok(parsed),
    }
}

/// A command line without the interpreter before its script, and without the interpreter's flags.
fn without_python(typed: &[OsString]) -> &[OsString] {
    let name = |word: &OsString| Path::new(word).file_name()?.to_str().map(str::to_owned);
    let is_version = |rest: &str| rest.chars().all(|letter| letter.is_ascii_digit() || letter == '.');
    let is_python = |name: String| name.strip_prefix("python").is_some_and(is_version);
    let [first, rest @ ..] = typed else { return typed };
    if !name(first).is_some_and(is_python) {
        return typed;
    }
    let mut rest = rest;
    while let [flag, behind @ ..] = rest
        && flag.as_encoded_bytes().starts_with(b"-")
    {
        // These flags have a value of their own.
        let n_values = usize::from(flag == "-W" || flag == "-X");
        rest = behind.get(n_values..).unwrap_or_default();
    }
    rest
}

/// The sweep of the command line; none if it asked for help, which is printed.
fn meaning(arguments: &GavelArguments, session: &Session) -> Result<Option<Meaning>, Failure> {
    let Some((script, given)) = without_python(&arguments.script).split_first() else {
        return Err(Failure::usage("no script is named", None));
    };
    let script = Path::new(script);
    let name = script.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let parsed = match name.trim_end_matches(".py") {
        "run_sweep_continuous" => parsed::<Continuous>(given)?.map(Continuous::meaning),
        "run_sweep_static" => parsed::<Static>(given)?.map(Static::meaning),
        "simulate_scheduler_with_generated_jobs" => parsed::<Generated>(given)?.map(Generated::meaning),
        "simulate_scheduler_with_trace" => parsed::<Traced>(given)?.map(Traced::meaning),
        _ => {
            let help = "run_sweep_continuous.py, run_sweep_static.py, simulate_scheduler_with_generated_jobs.py, or \
                        simulate_scheduler_with_trace.py";
            let message = format!("`{}` is no script of Gavel's that is known here", script.display());
            return Err(Failure::usage(message, Some(help.to_owned())));
        }
    };
    match parsed {
        Ok(meaning) => meaning.map(Some),
        Err(refused) if !refused.use_stderr() => session.output.text(&refused.to_string()).map(|()| None),
        Err(refused) => {
            let text = refused.to_string();
            let said: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
            let message = said.join(" ").trim_start_matches("error: ").to_owned();
            Err(Failure::usage(format!("{name}: {message}"), Some(format!("apportion gavel {name} --help"))))
        }
    }
}
