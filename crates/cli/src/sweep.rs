//! `apportion sweep`: many simulations, kept as they finish.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde_json::json;

use crate::Session;
use crate::command_line;
use crate::exit::Failure;
use crate::file::{at, check_files, check_folder, named};
use crate::output::{Cell, OutputFormat, Table};
use crate::paths::name_or_path;
use crate::progress::{Shown, event};
use crate::results;
use apportion::spec::Source;
use apportion::spec::document::{Complaints, Unplaced};
use apportion::spec::run::FieldComplaint;
use apportion_logs::tally::counted;
use apportion_published::plugin;
use apportion_studies::sweep::log::{self, LogTrace};
use apportion_studies::sweep::runner::Runner;
use apportion_studies::sweep::spec::{SweepSpec, value_text};
use apportion_studies::sweep::{
    Bounds, Climbed, Course, EMBEDDED, Executor, Inputs, Made, Outcome, Plan, Point, Row, RunError,
    Selection, Shard, Store, StoreError, Study, Summary, Task, make,
};
use flags::Flags;
use progress::SweepProgress;
use slurm::SlurmArguments;
pub(super) use slurm::SubmittedArray;

mod flags;
mod left;
mod progress;
mod slurm;

/// Run many simulations and keep every result
#[derive(Args, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[command(after_help = "\
A sweep that was stopped, or killed, goes on where it was: runs that are in the results are not run again. Ctrl-C stops it
after the runs in progress, which are kept; once more stops it at once, without them. So does SIGTERM, as `timeout` and batch
systems send it once: runs that have finished are kept. The exit code is 130.

An axis is a field of a run with a list of values, a range, or, for the arrival rate, `auto`:
  policy: [fifo, isolated]
  rate: {from: 0.4, to: 6.0, points: 15}
  rate: {from: 0.1, to: 10, points: 9, scale: log}
  rate: {auto: {from: 0.5, factor: 2, to: 12, utilization: 0.98, jct: 5, precision: 0.05, beyond: 10}}
`auto` climbs from `from` by `factor` until a run's utilization reaches `utilization`, its average JCT `jct` times
that of the first run, or it is saturated or out of time; halves the bracket to `precision`; and goes on `beyond`
the knee until JCTs are so many times the smallest. All keys have defaults; a ladder is climbed within one shard.
`skip: [{policy: fifo, rate: {from: 5}}]` leaves points out, `stop: {saturated: true, doublings: 2}` cuts runs short.
Runs that get nowhere are given up as `livelock`, `starved` or `growing`: `stop: {rounds: 10000, doublings: 4}` says after
how many rounds without a step, and how many doublings of the jobs that have arrived (docs/formats.md).

Examples:
  apportion sweep quick
  apportion sweep --policy fifo,isolated --rate 0.2:1.0:5 --seed 0:3 --cluster v100=8,k80=8 --set jobs=200
  apportion sweep mine.yaml --only policy=fifo --only seed=0 --jobs 2
  apportion sweep osdi20-figure-8 --shard 1/4 --out results/part-1
  apportion sweep osdi20-figure-9 --slurm --tasks 20 --cpus 4 --time 2:00:00 --out /shared/figure-9")]
pub struct SweepArguments {
    /// The sweep: a file, or the name of a study that is part of the program (see sweeps/README.md); none with flags in its
    /// place. `show NAME` prints one
    #[arg(value_name = "FILE|NAME", value_parser = name_or_path(), required_unless_present_any = ["policy", "vary", "rate", "trace"])]
    sweep: Option<String>,
    /// The name of the study to show
    #[arg(hide = true, value_parser = name_or_path())]
    of: Option<String>,
    #[command(flatten)]
    flags: Flags,
    /// Print the sweep as a document once it is checked, and run nothing
    #[arg(long)]
    show: bool,
    /// The folder of results [default: results/NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Runs at once, at most 1024 [default: as many as there are cores]
    #[arg(long, value_name = "N", value_parser = at_once)]
    jobs: Option<NonZeroUsize>,
    /// The log of a study that runs on one: a file that you have, packed by gzip or not
    #[arg(long, value_name = "FILE", value_parser = name_or_path())]
    log: Option<String>,
    /// Only part I of N of the sweep, the same points every time
    #[arg(long, value_name = "I/N", default_value = "1/1", hide_default_value = true)]
    shard: Shard,
    /// Only this value of this axis, or, for seeds, a range of them, as in seed=0:2; may be given several times
    #[arg(long, value_name = "AXIS=VALUE")]
    only: Vec<String>,
    /// The sweep's short form
    #[arg(long)]
    quick: bool,
    /// Keep every measured job of every run, too
    #[arg(long)]
    keep_jobs: bool,
    /// Keep the shares that every decision of every run gave, too: `results show DIR --allocations` prints them
    #[arg(long)]
    keep_allocations: bool,
    /// Run those again that failed, ran out of time or were given up
    #[arg(long)]
    retry: bool,
    /// Show the runs that would be made, and make none
    #[arg(long)]
    dry_run: bool,
    /// Runs that are in these results are not run again; may be given several times
    #[arg(long, value_name = "DIR")]
    besides: Vec<PathBuf>,
    #[command(flatten)]
    slurm: SlurmArguments,
}

impl SweepArguments {
    /// The arguments of a sweep with results in the folder `out`. It makes `jobs` runs at once, and keeps the jobs of every run.
    pub(super) fn into(out: PathBuf, jobs: Option<NonZeroUsize>) -> Self {
        Self { out: Some(out), jobs, keep_jobs: true, ..Self::default() }
    }
}

/// The most runs at once: each has a thread.
const AT_ONCE_MAX: usize = 1024;

fn at_once(text: &str) -> Result<NonZeroUsize, String> {
    let n = text.parse().ok().filter(|n: &NonZeroUsize| n.get() <= AT_ONCE_MAX);
    n.ok_or_else(|| format!("expected a whole number from 1 to {AT_ONCE_MAX}"))
}

pub(super) fn run(arguments: &SweepArguments, session: &Session) -> Result<(), Failure> {
    let shows = arguments.sweep.as_deref() == Some("show") && arguments.of.is_some();
    let source = source(arguments, shows)?;
    if shows || arguments.show {
        check(&source, arguments, session)?;
        let stop = SweepSpec::parse(&source, arguments.quick)?.stop;
        let line = format!("# Runs are ended by `{}`.\n", stop.in_force());
        return session.output.document(&format!("{}\n{line}", source.text.trim_end()));
    }
    run_source(&source, arguments, session)
}

/// Checks the document of a sweep as far as that is possible without running it. If a study runs on a log that is not given, only
/// its document is checked.
///
/// # Errors
/// If it would be refused.
pub(super) fn check(source: &Source, arguments: &SweepArguments, session: &Session) -> Result<(), Failure> {
    let sweep = SweepSpec::parse(source, false)?;
    if sweep.log.is_none() || arguments.log.is_some() {
        plan(source, arguments, session)?;
    }
    Ok(())
}

/// The sweep's document.
fn source(arguments: &SweepArguments, shows: bool) -> Result<Source, Failure> {
    let flags = &arguments.flags;
    match (&arguments.sweep, &arguments.of) {
        (_, Some(name)) if shows => Ok(Source::find("sweep", name, &EMBEDDED)?),
        (_, Some(more)) => Err(Failure::usage(format!("unexpected argument `{more}`"), None)),
        (Some(sweep), None) if flags.are_given() => {
            let help = "change the file, or leave it out and say all by flags".to_owned();
            Err(Failure::usage(
                format!("`{sweep}` says what is run: it goes with no flag that does"),
                Some(help),
            ))
        }
        (Some(sweep), None) => Ok(Source::find("sweep", sweep, &EMBEDDED)?),
        (None, None) => flags.document(),
    }
}

/// Refuses results that would be written over files which the sweep reads.
fn check_apart(arguments: &SweepArguments, plan: &Plan, folder: &Path) -> Result<(), Failure> {
    let csv = folder.join("results.csv");
    if !csv.exists() {
        return Ok(());
    }
    let traces = plan.tasks.iter().filter_map(|task| task.run.spec.workload.trace.as_deref());
    let traces: BTreeSet<&str> = traces.collect();
    let mut read =
        vec![named("the sweep", arguments.sweep.as_deref()), named("--log", arguments.log.as_deref())];
    read.extend(traces.into_iter().map(|trace| named("a trace", Some(trace))));
    check_files(&read, &[at("the table of results", Some(&csv))])
}

/// Runs the sweep of a document.
///
/// # Errors
/// As [`run`].
pub(super) fn run_source(
    source: &Source,
    arguments: &SweepArguments,
    session: &Session,
) -> Result<(), Failure> {
    let plan = plan(source, arguments, session)?;
    results::warn(plan.tasks.iter().map(|task| &task.run), session);
    let folder = arguments.out.clone().unwrap_or_else(|| Path::new("results").join(&plan.sweep.name));
    check_folder("--out", Some(&folder))?;
    if !arguments.dry_run {
        check_apart(arguments, &plan, &folder)?;
    }
    if arguments.slurm.slurm {
        return slurm::submit(arguments, session, &plan, &folder);
    }
    let besides = besides(arguments)?;
    if arguments.dry_run {
        return show_plan(&plan, arguments, &folder, besides, session);
    }
    let study = Study::of(&plan.sweep, &plan.selection);
    let mut store = Store::open(&folder, &study).map_err(results::failure)?;
    let mut kept = besides;
    kept.extend(kept_in(&store, arguments)?);
    let mut course = Course::new(&plan, kept);
    let pending = course.pending().map_err(results::run_failure)?;
    let (n_kept, n_all) = (course.n_kept(), course.n_kept() + pending.len());
    if n_kept > 0 {
        session.note(format!("{n_kept} of {n_all} runs are in {} already", places(arguments, &folder)));
    }
    if Shown::of(session) == Shown::Events {
        event(
            &json!({"event": "sweep", "name": plan.sweep.name, "folder": folder.display().to_string(), "runs": n_all, "kept": n_kept}),
        );
    }
    note(&store, &plan, pending.is_empty()).map_err(results::failure)?;
    let summary = run_pending(arguments, session, &mut store, &mut course, pending)?;
    let csv = store.write_csv().map_err(results::failure)?;
    let mut rows = store.rows().map_err(results::failure)?;
    rows.retain(|row| course.is_wanted(&row.digest));
    results::show(session, &study, &rows)?;
    if session.output.format() == OutputFormat::Table {
        session.output.words(&knees(&plan, &course.climbed()))?;
        session.output.words(&format!(
            "\nresults: {}\n         {}",
            store.path().display(),
            csv.display()
        ))?;
    }
    ending(&summary, &rows)
}

/// Notes the description of the study and, if there are runs to make, the instant, machine and program of these.
fn note(store: &Store, plan: &Plan, is_made: bool) -> Result<(), StoreError> {
    if let Some(description) = &plan.sweep.description {
        store.describe(description)?;
    }
    if is_made {
        return Ok(());
    }
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    store.sit_down(&command_line::typed(), cores)
}

/// Outcomes that are kept elsewhere, by digest.
fn besides(arguments: &SweepArguments) -> Result<BTreeMap<String, Outcome>, Failure> {
    let mut kept = BTreeMap::new();
    for folder in &arguments.besides {
        match Store::open_to_resume(folder) {
            Ok(store) => kept.extend(kept_in(&store, arguments)?),
            Err(StoreError::Missing { .. }) if folder.is_dir() => {}
            Err(error) => return Err(results::failure(error)),
        }
    }
    Ok(kept)
}

/// Outcomes in a store, by digest, of runs that are not to be made again.
fn kept_in(store: &Store, arguments: &SweepArguments) -> Result<BTreeMap<String, Outcome>, Failure> {
    let kept = if arguments.retry { store.finished_outcomes() } else { store.outcomes() };
    kept.map_err(results::failure)
}

/// The knee of the curve of each ladder, a line each.
fn knees(plan: &Plan, climbed: &[Climbed]) -> String {
    let Some((rate, _)) = plan.sweep.auto_axis() else { return String::new() };
    let mut text = String::from("\nknee (jobs/h)\n");
    for Climbed { values, knee, is_done } in climbed {
        let others = values.iter().enumerate().filter(|(axis, _)| *axis != rate);
        let label: Vec<String> = others.map(|(_, value)| value_text(value)).collect();
        let place = match (knee, is_done) {
            (_, false) => "not reached yet".to_owned(),
            (None, true) => "none found".to_owned(),
            (Some(knee), true) => match knee.within {
                Some(within) => format!("above {within}, at most {}", knee.past),
                None => format!("at most {}", knee.past),
            },
        };
        let _ = writeln!(text, "  {}: {place}", label.join(" "));
    }
    text
}

/// The failure by which a sweep ends, if its runs are not all finished.
fn ending(summary: &Summary, rows: &[Row]) -> Result<(), Failure> {
    if summary.interrupted {
        let n_tasks = summary.n_tasks;
        let finished = match summary.n_ended() {
            0 => format!("none of {n_tasks} runs finished"),
            n => format!("{n} of {n_tasks} runs finished ({summary}) and kept"),
        };
        let message = format!("{finished}; the same command goes on from there");
        return Err(Failure::Interrupted { message });
    }
    let mut unfinished = rows.iter().filter(|row| row.outcome.status.is_given_up());
    let n_more = unfinished.clone().count().saturating_sub(1);
    match unfinished.next() {
        None => Ok(()),
        Some(row) => {
            let values: Vec<String> = row.values.iter().map(value_text).collect();
            let reason = row.outcome.reason.clone().unwrap_or_default();
            let more = if n_more > 0 { format!(" (and {n_more} more)") } else { String::new() };
            let status = row.outcome.status;
            Err(Failure::Limit { message: format!("run {} {status}: {reason}{more}", values.join(" ")) })
        }
    }
}

fn plan(source: &Source, arguments: &SweepArguments, session: &Session) -> Result<Plan, Failure> {
    let mut sweep = SweepSpec::parse(source, arguments.quick)?;
    if arguments.quick {
        sweep.name.push_str("-quick");
    }
    let selection = Selection::parse(&sweep, &arguments.only)
        .map_err(|error| Failure::usage(format!("--only: {error}"), None))?;
    let mut inputs = Inputs::new(plugin::catalog()).of_document_in(&sweep.folder);
    let traces = windows(&sweep, arguments, session)?;
    let said = log::said(&traces);
    for LogTrace { trace, report, .. } in traces {
        let jobs = counted(report.n_jobs as u64, "job");
        session.note(format!("`{}` of {}: {jobs}", trace.name, report.log));
        inputs = inputs.with_text(trace);
    }
    if !said.is_empty() {
        for line in &said {
            session.note(line);
        }
        // Results and pages describe a study by its description.
        let about = format!("Of the log: {}.", said.join("; "));
        sweep.description =
            Some(sweep.description.map_or(about.clone(), |text| format!("{} {about}", text.trim_end())));
    }
    Plan::of(inputs, &sweep, &selection, arguments.shard).map_err(|refused| {
        let (point, error) = *refused;
        complaint(source, &sweep, &point, error)
    })
}

/// The traces of a study that are windows of a log.
fn windows(
    sweep: &SweepSpec,
    arguments: &SweepArguments,
    session: &Session,
) -> Result<Vec<LogTrace>, Failure> {
    match (&sweep.log, &arguments.log) {
        (None, None) => Ok(Vec::new()),
        (Some(_), Some(path)) if path == "-" && arguments.sweep.as_deref() == Some("-") => {
            let message = "the sweep and --log are both `-`, and standard input is read once";
            Err(Failure::usage(message, Some("name a file for one of them".to_owned())))
        }
        (Some(spec), Some(path)) => {
            session.interrupt.end_at_once_if_terminated();
            let traces = log::traces(sweep, spec, path, &session.interrupt.flag());
            session.interrupt.check(|| "no run was begun".to_owned())?;
            Ok(traces?)
        }
        (Some(spec), None) => {
            let message = format!(
                "the study `{}` runs on a log of the form `{}`, which is no part of it",
                sweep.name, spec.form
            );
            let help = "`--log FILE` says where yours is; `apportion sweep show` says where it comes from"
                .to_owned();
            Err(Failure::usage(message, Some(help)))
        }
        (None, Some(_)) => {
            let help = "a study that does has a section `log` (docs/formats.md#sweep)".to_owned();
            Err(Failure::usage(format!("the study `{}` runs on no log", sweep.name), Some(help)))
        }
    }
}

/// The failure of a run's error, at the place in the sweep that is at fault.
fn complaint(source: &Source, sweep: &SweepSpec, point: &Point, error: RunError) -> Failure {
    match error {
        RunError::Fields(complaints) => {
            let mut placed = Complaints::default();
            for FieldComplaint { field, message, help } in complaints {
                placed.push(|| Unplaced::at(&sweep.path_of(&field, &point.positions), message, help));
            }
            match source.all_at(placed) {
                Err(error) => error.into(),
                Ok(()) => Failure::Bug { message: "a run is refused without a reason".to_owned() },
            }
        }
        other => results::run_failure(other),
    }
}

fn run_pending(
    arguments: &SweepArguments,
    session: &Session,
    store: &mut Store,
    course: &mut Course<'_>,
    pending: Vec<Task>,
) -> Result<Summary, Failure> {
    let flag = session.interrupt.flag();
    session.interrupt.end_at_once_if_terminated();
    let sweep = course.sweep();
    let keep_jobs = sweep.keep_jobs || arguments.keep_jobs;
    // No run begins once the flag is raised, and those in progress end: a part of a run is worthless.
    let keep_allocations = sweep.keep_allocations || arguments.keep_allocations;
    let bounds = Bounds { keep_jobs, keep_allocations, ..Bounds::of(&sweep.stop, Arc::default()) };
    let executor = Executor::new(bounds, sweep.stop.saturated);
    let axes = sweep.axes.iter().map(|axis| axis.name.clone()).collect();
    let is_open = sweep.auto_axis().is_some();
    let progress = SweepProgress::new(session, axes, pending.iter().map(|task| &task.point), is_open);
    let runner = Runner { interrupt: &flag, n_threads: arguments.jobs, progress: &progress };
    let made = make((course, pending), store, &executor, &runner);
    progress.finish();
    let Made { summary, refused } = made.map_err(results::failure)?;
    if let Some((point, error)) = refused {
        session.note(format!("after {}: {}", progress.label(&point), results::run_failure(error)));
    }
    Ok(summary)
}

/// `--dry-run`: every run that is known, and whether its result is there.
fn show_plan(
    plan: &Plan,
    arguments: &SweepArguments,
    folder: &Path,
    besides: BTreeMap<String, Outcome>,
    session: &Session,
) -> Result<(), Failure> {
    let mut kept = besides;
    match Store::open_to_resume(folder) {
        Ok(store) => kept.extend(kept_in(&store, arguments)?),
        Err(StoreError::Missing { .. }) => {}
        Err(error) => return Err(results::failure(error)),
    }
    let mut course = Course::new(plan, kept.clone());
    let pending = course.pending().map_err(results::run_failure)?;
    let axes = plan.sweep.axes.iter().map(|axis| axis.name.as_str());
    let mut table = Table::new(axes.chain(["result", "digest"]));
    let is_ladder = plan.sweep.auto_axis().is_some();
    let is_for_people = session.output.format() == OutputFormat::Table;
    for Task { point, run } in if is_ladder { &pending } else { &plan.tasks } {
        let known = match kept.contains_key(&run.digest) {
            true => "there",
            false if is_ladder => "to run, and on",
            false => "to run",
        };
        let cell = |value| results::axis_cell(value, is_for_people);
        let mut cells: Vec<Cell> = point.values.iter().map(cell).collect();
        cells.extend([Cell::from(known), Cell::from(&run.digest[..16])]);
        table.push(cells);
    }
    session.output.table(&table)?;
    let (n_kept, n_all) = (course.n_kept(), course.n_kept() + pending.len());
    let (n, folder) = (pending.len(), places(arguments, folder));
    let more = if is_ladder { "; more follow from their results" } else { "" };
    session.note(format!("{n} of {n_all} runs to be made, {n_kept} are in {folder} already{more}"));
    session.note(format!("runs are ended by `{}`", plan.sweep.stop.in_force()));
    Ok(())
}

/// The folders in which runs are looked for: the results, and those of `--besides`.
fn places(arguments: &SweepArguments, folder: &Path) -> String {
    let folders = std::iter::once(folder).chain(arguments.besides.iter().map(PathBuf::as_path));
    folders.map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(" or ")
}
