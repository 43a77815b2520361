//! `apportion sweep`: many simulations, kept as they finish.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use crate::cli::Session;
use crate::cli::exit::Failure;
use crate::cli::output::{Cell, OutputFormat, Table};
use crate::cli::progress::Progress;
use crate::cli::results;
use crate::spec::sweep::{SweepSpec, value_text};
use crate::spec::{Source, SpecError};
use crate::sweep::runner::{self, Runner};
use crate::sweep::{
    Bounds, EMBEDDED, Executor, Inputs, Outcome, Point, Row, Run, RunError, Selection, Shard, Status, Store,
    Study, Summary, grid,
};

/// Run many simulations and keep every result
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[command(after_help = "\
A sweep that was stopped, or killed, goes on where it was: runs that are in the results are not run again.

Examples:
  apportion sweep quick
  apportion sweep mine.yaml --only policy=fifo --only seed=0 --jobs 2
  apportion sweep osdi20-figure-8 --shard 1/4 --out results/part-1")]
pub struct SweepArguments {
    /// The sweep: a file, or one of osdi20-figure-11, osdi20-figure-8, quick, refinements
    #[arg(value_name = "FILE|NAME")]
    sweep: String,
    /// Where results go [default: results/NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Runs at once [default: as many as there are cores]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Only part I of N of the sweep, the same points every time
    #[arg(long, value_name = "I/N", default_value = "1/1", hide_default_value = true)]
    shard: Shard,
    /// Only this value of this axis; may be given several times
    #[arg(long, value_name = "AXIS=VALUE")]
    only: Vec<String>,
    /// The sweep's short form
    #[arg(long)]
    quick: bool,
    /// Keep every measured job of every run, too
    #[arg(long)]
    keep_jobs: bool,
    /// Run those again that failed or ran out of time
    #[arg(long)]
    retry: bool,
    /// Say what would be run, and run nothing
    #[arg(long)]
    dry_run: bool,
}

/// A sweep that is ready to run.
struct Plan {
    sweep: SweepSpec,
    study: Study,
    folder: PathBuf,
    /// The points asked for, each with its run.
    runs: Vec<(Point, Run)>,
}

pub(super) fn run(arguments: &SweepArguments, session: &Session) -> Result<(), Failure> {
    let plan = plan(arguments)?;
    if arguments.dry_run {
        return show_plan(&plan, session);
    }
    let mut store = Store::open(&plan.folder, &plan.study).map_err(results::failure)?;
    if arguments.retry {
        store.forget_unfinished().map_err(results::failure)?;
    }
    let there = store.digests().map_err(results::failure)?;
    let (done, pending): (Vec<_>, Vec<_>) =
        plan.runs.iter().partition(|(_, run)| there.contains(&run.digest));
    if !done.is_empty() {
        session.note(format!(
            "{} of {} runs are in {} already",
            done.len(),
            plan.runs.len(),
            plan.folder.display()
        ));
    }
    let summary = run_pending(arguments, session, &plan, &mut store, &pending)?;
    let csv = store.write_csv().map_err(results::failure)?;
    let wanted: BTreeSet<&str> = plan.runs.iter().map(|(_, run)| run.digest.as_str()).collect();
    let mut rows = store.rows().map_err(results::failure)?;
    rows.retain(|row| wanted.contains(row.digest.as_str()));
    results::show(session, &plan.study, &rows)?;
    if session.output.format() == OutputFormat::Table {
        session.output.text(&format!("\nresults: {}\n         {}", store.path().display(), csv.display()))?;
    }
    ending(&summary, pending.len(), &rows)
}

/// What the exit code says.
fn ending(summary: &Summary, n_pending: usize, rows: &[Row]) -> Result<(), Failure> {
    if summary.interrupted {
        let message = format!("{} of {n_pending} runs finished ({summary}) and kept", summary.n_ended());
        return Err(Failure::Interrupted { message });
    }
    let unfinished = |row: &&Row| matches!(row.outcome.status, Status::Failed | Status::Timeout);
    let mut unfinished = rows.iter().filter(unfinished);
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

fn plan(arguments: &SweepArguments) -> Result<Plan, Failure> {
    let source = Source::find("sweep", &arguments.sweep, &EMBEDDED)?;
    let mut sweep = SweepSpec::parse(&source, arguments.quick)?;
    if arguments.quick {
        sweep.name.push_str("-quick");
    }
    let selection = Selection::parse(&sweep, &arguments.only)
        .map_err(|error| Failure::usage(format!("--only: {error}"), None))?;
    let folder = arguments.out.clone().unwrap_or_else(|| Path::new("results").join(&sweep.name));
    let inputs = Inputs::new();
    let mut runs = Vec::new();
    for point in grid::points(&sweep) {
        if !(selection.contains(&point) && arguments.shard.contains(&point)) {
            continue;
        }
        let run = inputs.load(&point.spec).map_err(|error| complaint(&source, &sweep, &point, error))?;
        runs.push((point, run));
    }
    Ok(Plan { study: Study::of(&sweep), sweep, folder, runs })
}

/// A run's complaint, at the place in the sweep that is at fault.
fn complaint(source: &Source, sweep: &SweepSpec, point: &Point, error: RunError) -> Failure {
    match error {
        RunError::Fields(complaints) => {
            let errors = complaints.into_iter().map(|complaint| {
                let path = sweep.path_of(&complaint.field, &point.positions);
                source.error_at(&path, complaint.message, complaint.help)
            });
            match SpecError::join(errors) {
                Err(error) => error.into(),
                Ok(()) => Failure::Bug { message: "a run is refused without a reason".to_owned() },
            }
        }
        other => results::run_failure(other),
    }
}

struct Bar(Progress);

impl runner::Progress for Bar {
    fn started(&self, point: &Point) {
        self.0.message(label(point));
    }
    fn finished(&self, point: &Point, outcome: &Outcome) {
        self.0.advance();
        if matches!(outcome.status, Status::Failed | Status::Timeout) {
            let reason = outcome.reason.as_deref().unwrap_or_default();
            self.0.note(format!("{} {}: {reason}", label(point), outcome.status));
        }
    }
}

fn label(point: &Point) -> String {
    point.values.iter().map(value_text).collect::<Vec<_>>().join(" ")
}

fn run_pending(
    arguments: &SweepArguments,
    session: &Session,
    plan: &Plan,
    store: &mut Store,
    pending: &[&(Point, Run)],
) -> Result<Summary, Failure> {
    let flag = session.interrupt.flag();
    let bounds = Bounds {
        interrupt: flag.clone(),
        wall: plan.sweep.stop.wall.map(|wall| Duration::from_secs_f64(wall.get().min(1e12))),
        keep_jobs: plan.sweep.keep_jobs || arguments.keep_jobs,
    };
    let executor = Executor::new(bounds, plan.sweep.stop.saturated);
    let bar = Bar(Progress::new(session, pending.len() as u64, "runs"));
    let runner = Runner { interrupt: &flag, n_threads: arguments.jobs, progress: &bar };
    let points: Vec<Point> = pending.iter().map(|(point, _)| point.clone()).collect();
    let summary = runner.run(
        &points,
        |position| executor.execute(&pending[position].1),
        |position, outcome, seconds| {
            let (point, run) = pending[position];
            store.keep(&Row {
                digest: run.digest.clone(),
                values: point.values.clone(),
                outcome: outcome.clone(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                spec: run.spec.canonical(),
                data: serde_json::json!(run.data).to_string(),
                seconds,
            })
        },
    );
    bar.0.finish();
    summary.map_err(results::failure)
}

/// `--dry-run`: every point, and whether its result is there.
fn show_plan(plan: &Plan, session: &Session) -> Result<(), Failure> {
    let there = match Store::open_to_read(&plan.folder) {
        Ok(store) => store.digests().map_err(results::failure)?,
        Err(crate::sweep::StoreError::Missing { .. }) => BTreeSet::new(),
        Err(error) => return Err(results::failure(error)),
    };
    let axes = plan.sweep.axes.iter().map(|axis| axis.name.as_str());
    let mut table = Table::new(axes.chain(["result", "digest"]));
    for (point, run) in &plan.runs {
        let known = if there.contains(&run.digest) { "there" } else { "to run" };
        let mut cells: Vec<Cell> = point.values.iter().map(|value| value_text(value).into()).collect();
        cells.extend([Cell::from(known), Cell::from(&run.digest[..16])]);
        table.push(cells);
    }
    session.output.table(&table)?;
    let n_there = plan.runs.iter().filter(|(_, run)| there.contains(&run.digest)).count();
    let (n, folder) = (plan.runs.len(), plan.folder.display());
    session.note(format!("{} of {n} runs to be made, {n_there} are in {folder} already", n - n_there));
    Ok(())
}
