//! `apportion simulate`: one simulation.

mod again;
mod live;
mod lower;
mod saved;
mod simulated;
mod stop;
mod watch;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum};

use crate::Session;
use crate::conditions::{ConditionArguments, number, round, time};
use crate::decide::{Refinement, SemanticsFlag};
use crate::exit::Failure;
use crate::file::{at, check_files, is_standard_output, named, no_standard_output};
use crate::output::{Cell, OutputFormat, Table};
use crate::paths::name_or_path;
use crate::progress::Progress;
use crate::results::{run_failure, run_failure_of, warn};
pub(super) use again::again;
use apportion::metrics::Summary;
use apportion::simulator::{Limits, Outcome, Simulation, Standstill};
use apportion::solver::Interrupt;
use apportion::solver::timing::Stopwatch;
use apportion::spec::Source;
use apportion::spec::entities::read_entities;
use apportion::spec::policy::PolicyReference;
use apportion::spec::run::{
    CorrectionsSpec, GeneratorName, PricesSpec, RunSpec, ThroughputsName, WorkerCounts,
};
use apportion::units::{Decimals, JobsPerHour, Seconds};
use apportion_published::plugin;
use apportion_studies::report::run::{jobs_for_programs, numbers_of};
use apportion_studies::sweep::simulation::{begin, is_broken_off};
use apportion_studies::sweep::{Inputs, Run};
use live::LiveArguments;
use lower::{LowerArguments, LowerBound};
use saved::Saved;
pub(super) use simulated::Simulated;
use stop::StopArguments;
use watch::Watch;

/// Wall time between two looks at the progress line.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Wall time between two checkpoints.
const CHECKPOINT_EVERY: Duration = Duration::from_mins(1);

/// Simulate a cluster over time
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[command(
    group(ArgGroup::new("workload").required(true).args(["trace", "rate", "n_static"])),
    after_help = "\
Examples:
  apportion simulate --policy max_min_fairness_perf --cluster v100=36,p100=36,k80=36 --rate 4 --jobs 500
  apportion simulate --policy fifo --cluster v100=8 --trace jobs.csv --format json
  apportion simulate --policy isolated --cluster v100=36,p100=36,k80=36 --rate 4 --measure 4000:5000 \\
      --generator gavel --semantics gavel --checkpoint run.json"
)]
pub struct SimulateArguments {
    /// A policy's name, or a policy file
    #[arg(long, value_name = "NAME|FILE", value_parser = name_or_path())]
    policy: String,
    /// Workers of each type, such as v100=36,p100=36,k80=36
    #[arg(long, value_name = "TYPE=N,…")]
    cluster: WorkerCounts,
    /// Jobs from a file: our CSV, or Gavel's form
    #[arg(long, value_name = "FILE", value_parser = name_or_path())]
    trace: Option<String>,
    /// Owners of the trace's jobs, as in a snapshot: [{id: a, weight: 2}, {id: b, inner: fifo, parent: a}]
    #[arg(long, value_name = "FILE", requires = "trace")]
    entities: Option<PathBuf>,
    /// Jobs that arrive at random, at this rate in jobs per hour
    #[arg(long, value_name = "JOBS_PER_HOUR", value_parser = number)]
    rate: Option<f64>,
    /// Number of jobs after which arrivals stop
    #[arg(long, value_name = "N", requires = "rate")]
    jobs: Option<u64>,
    /// Start with jobs at time 0 that need all workers
    #[arg(long, requires = "rate")]
    steady_state: bool,
    /// A number of jobs, all at time 0
    #[arg(long = "static", value_name = "N")]
    n_static: Option<u64>,
    /// The mechanism as described, or as published, quirks included
    #[arg(long, value_enum, default_value = "corrected")]
    semantics: SemanticsFlag,
    /// Quirks of `--semantics gavel` to do without, by name, or `all`
    #[arg(long, value_name = "NAME,…", default_value = "none", hide_default_value = true)]
    correct: CorrectionsSpec,
    /// The generator that draws jobs
    #[arg(long, value_enum, default_value = "native")]
    generator: GeneratorFlag,
    /// The seed of all random streams
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Draw jobs of several workers, too
    #[arg(long)]
    multi_worker: bool,
    /// Draw priority weights
    #[arg(long)]
    multi_priority: bool,
    /// Draw deadlines
    #[arg(long)]
    slos: bool,
    /// Time that every job takes alone on the reference worker type: 3600, 90min, 2h
    #[arg(long, value_name = "SECONDS", value_parser = time, allow_negative_numbers = true)]
    duration: Option<Seconds>,
    /// A throughput matrix's name, or a file
    #[arg(long, value_name = "NAME|FILE", default_value = "osdi20", value_parser = name_or_path())]
    throughputs: String,
    /// Measure these jobs only, by order of arrival from 0, END excluded
    #[arg(long, value_name = "START:END", value_parser = window)]
    measure: Option<[u64; 2]>,
    /// Length of a round
    #[arg(long, value_name = "SECONDS", value_parser = round, allow_negative_numbers = true, default_value = "360")]
    round: Seconds,
    /// Least time between two computations of the allocation
    #[arg(long, value_name = "SECONDS", value_parser = time, allow_negative_numbers = true, default_value = "1920")]
    reset_interval: Seconds,
    /// Workers on each server; 1 where not given
    #[arg(long, value_name = "TYPE=N,…")]
    servers: Option<WorkerCounts>,
    /// Run allocations exactly, without rounds
    #[arg(long)]
    ideal: bool,
    /// Prices in $/h: {v100: 2.48, p100: 1.46}, or over time as CSV under `time,worker_type,price`
    #[arg(long, value_name = "FILE", value_parser = name_or_path())]
    prices: Option<String>,
    /// Time that a job loses when it changes workers, or the job that it shares them with
    #[arg(long, value_name = "SECONDS", value_parser = time, allow_negative_numbers = true, default_value = "0")]
    preemption_cost: Seconds,
    /// Save the simulation here every minute and on interrupt, and go on from here if there is such a file; it is removed at the end
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// The optimum to take among several, in place of the policy's own choice
    #[arg(long, value_name = "NAME")]
    refine: Option<Refinement>,
    /// The solver to try first, in place of the one that suits the program
    #[arg(long, value_name = "NAME")]
    backend: Option<String>,
    /// Save the input of every decision of the policy in this folder
    #[arg(long, value_name = "DIR")]
    save_snapshots: Option<PathBuf>,
    /// Write every event to this file, one JSON object a line; `apportion report` shows it; `-` is standard output, before the results
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    #[command(flatten)]
    conditions: ConditionArguments,
    #[command(flatten)]
    live: LiveArguments,
    #[command(flatten)]
    stop: StopArguments,
    #[command(flatten)]
    lower: LowerArguments,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum GeneratorFlag {
    /// Ours: independent streams, any throughput matrix
    Native,
    /// The draws of the published simulator, bit for bit
    Gavel,
    /// The draws of the published simulator from its older job table, which the paper's recorded runs were drawn from
    #[value(name = "gavel_osdi20")]
    GavelOsdi20,
}

fn window(text: &str) -> Result<[u64; 2], String> {
    let parsed = text.split_once(':').and_then(|(start, end)| Some([start.parse().ok()?, end.parse().ok()?]));
    parsed.ok_or_else(|| format!("`{text}` is no window, expected START:END, such as 4000:5000"))
}

pub(super) fn run(arguments: &SimulateArguments, session: &Session) -> Result<(), Failure> {
    let stopwatch = Stopwatch::start();
    check_files(
        &[
            named("--policy", Some(PolicyReference::new(&arguments.policy).policy)),
            named("--trace", arguments.trace.as_deref()),
            at("--entities", arguments.entities.as_deref()),
            named("--throughputs", Some(&arguments.throughputs)),
            named("--prices", arguments.prices.as_deref()),
        ],
        &[at("--events", arguments.events.as_deref()), at("--checkpoint", arguments.checkpoint.as_deref())],
    )?;
    check_saved(arguments)?;
    let mut spec = spec(arguments);
    if let Some(path) = &arguments.entities {
        spec.workload.entities = read_entities(&Source::load(path)?)?;
    }
    let run = Inputs::new(plugin::catalog()).load(&spec);
    let entities = arguments.entities.as_deref();
    let run = run.map_err(|error| run_failure_of::<SimulateArguments>(error, entities))?;
    arguments.lower.check(&run)?;
    warn(std::iter::once(&run), session);
    let saved = match &arguments.checkpoint {
        Some(path) if path.exists() => Some(Saved::read(path, &run)?),
        _ => None,
    };
    if let Some(saved) = &saved {
        session.note(format!("going on at round {}", saved.round));
    }
    let mut interrupt = Interrupt::default().with_flag(session.interrupt.overdue());
    if let Some(time) = arguments.stop.decision() {
        interrupt = interrupt.with_decision(time);
    }
    let checkpoint = saved.as_ref().map(|saved| &saved.checkpoint);
    let mut simulation = begin(&run, checkpoint, interrupt).map_err(run_failure)?;
    let mut observer = Watch::new(arguments, &run, &simulation, saved)?;
    let ending = advance(arguments, session, (&run, &mut simulation), &mut observer)?;
    let standstill = match ending {
        Outcome::Finished => None,
        Outcome::Interrupted => {
            let hours = Decimals(simulation.now().hours(), 1);
            let kept = match &arguments.checkpoint {
                Some(path) => format!("after {hours} simulated hours, saved in {}", path.display()),
                None => format!("after {hours} simulated hours; `--checkpoint FILE` would have kept them"),
            };
            return Err(Failure::Interrupted { message: kept });
        }
        Outcome::Stalled | Outcome::Standstill => simulation.standstill(),
        Outcome::TimeLimit | Outcome::ActiveLimit | Outcome::RoundLimit | Outcome::WallLimit => {
            return Err(Failure::Bug { message: format!("{ending:?} without a limit") });
        }
    };
    if let Some(path) = arguments.checkpoint.as_deref().filter(|path| path.exists()) {
        fs::remove_file(path).map_err(Failure::io(format!("remove {}", path.display())))?;
    }
    let summary = observer.recorder().summary().counted_from(run.origin);
    let wall_seconds = stopwatch.elapsed().as_secs_f64();
    // The result is shown whatever becomes of the bound.
    let found = arguments.lower.find(session, &run, &summary);
    let (lower, failure) = match found {
        Ok(lower) => (lower, None),
        Err(failure) => (None, Some(failure)),
    };
    let summary = if standstill.is_some() { summary.given_up() } else { summary };
    show(session, &run, &Shown { summary: &summary, standstill, lower, wall_seconds })?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    standstill.map_or(Ok(()), |standstill| Err(given_up(&run, &simulation, standstill)))
}

/// Refuses to save a simulation, or events that are to go on with it, in a place that cannot be read again.
fn check_saved(arguments: &SimulateArguments) -> Result<(), Failure> {
    let Some(checkpoint) = &arguments.checkpoint else { return Ok(()) };
    if is_standard_output(checkpoint) {
        let message = "--checkpoint: a saved simulation is read again, which standard output cannot be";
        return Err(Failure::usage(message.to_owned(), Some("name a file".to_owned())));
    }
    if arguments.events.as_deref().is_some_and(is_standard_output) {
        let message = "--events: a simulation with `--checkpoint` reads its events again, which standard output cannot be";
        return Err(Failure::usage(message.to_owned(), Some("name a file for the events".to_owned())));
    }
    Ok(())
}

/// The failure of a simulation that was given up: the reason, and what its numbers are based on.
fn given_up(run: &Run, simulation: &Simulation, standstill: &Standstill) -> Failure {
    let n_done = simulation.n_measured_done();
    let of = run.n_measured().map_or(String::new(), |n| format!(" of {n}"));
    let kept = format!("the numbers are of the {n_done}{of} measured jobs that are done");
    Failure::Limit { message: format!("given up as {}: {standstill}; {kept}", standstill.name()) }
}

fn spec(arguments: &SimulateArguments) -> RunSpec {
    let mut spec = RunSpec {
        policy: arguments.policy.clone(),
        cluster: arguments.cluster.clone(),
        servers: arguments.servers.clone().unwrap_or_default(),
        throughputs: ThroughputsName(arguments.throughputs.clone()),
        semantics: arguments.semantics.into(),
        correct: arguments.correct.clone(),
        seed: arguments.seed,
        measure: arguments.measure,
        ..RunSpec::default()
    };
    if let Some(path) = &arguments.prices {
        spec.prices = PricesSpec::File(path.clone());
    }
    spec.workload.generator = match arguments.generator {
        GeneratorFlag::Native => GeneratorName::Native,
        GeneratorFlag::Gavel => GeneratorName::Gavel,
        GeneratorFlag::GavelOsdi20 => GeneratorName::GavelOsdi20,
    };
    spec.workload.rate = arguments.rate.map(JobsPerHour::new);
    spec.workload.jobs = arguments.jobs;
    spec.workload.steady_state = arguments.steady_state;
    spec.workload.n_static = arguments.n_static;
    spec.workload.trace.clone_from(&arguments.trace);
    spec.workload.multi_worker = arguments.multi_worker;
    spec.workload.multi_priority = arguments.multi_priority;
    spec.workload.slos = arguments.slos;
    spec.workload.duration = arguments.duration;
    spec.mechanism.round_length = arguments.round;
    spec.mechanism.reset_interval = arguments.reset_interval;
    spec.mechanism.ideal = arguments.ideal;
    spec.mechanism.preemption_cost = arguments.preemption_cost;
    spec.solver.refine = arguments.refine.map(Refinement::name);
    spec.solver.backend.clone_from(&arguments.backend);
    arguments.conditions.put_into(&mut spec);
    spec.live = arguments.live.spec();
    spec
}

/// Runs to the end or an interrupt, and saves now and then.
fn advance(
    arguments: &SimulateArguments,
    session: &Session,
    (run, simulation): (&Run, &mut Simulation),
    observer: &mut Watch,
) -> Result<Outcome, Failure> {
    let bar = Progress::new(session, run.n_measured().unwrap_or(0), "measured jobs");
    let patience = run.patience(arguments.stop.patience());
    let interrupt = Some(session.interrupt.flag());
    let mut limits = Limits { patience, interrupt, ..Limits::default() };
    let mut since_save = Stopwatch::start();
    let outcome = loop {
        limits.wall = Some((Stopwatch::start(), LOOK_EVERY));
        let outcome = simulation.run(observer, &limits);
        observer.check()?;
        let outcome = match outcome {
            Err(error) if is_broken_off(&error) && session.interrupt.is_raised() => {
                bar.finish();
                observer.finish(true)?;
                return Err(broken_off(arguments, simulation));
            }
            Err(error) => {
                bar.finish();
                return Err(undecided(arguments, session, observer, run_failure(error.into())));
            }
            Ok(outcome) => outcome,
        };
        let (hours, n_active) = (simulation.now().hours(), simulation.n_active());
        bar.message(format!("{n_active} active after {hours:.0} simulated hours"));
        bar.set(u64::from(simulation.n_measured_done()));
        let late = since_save.elapsed() > CHECKPOINT_EVERY;
        if let Some(path) = &arguments.checkpoint
            && (outcome == Outcome::Interrupted || (outcome == Outcome::WallLimit && late))
        {
            Saved::write(path, run, simulation, observer)?;
            since_save = Stopwatch::start();
        }
        if outcome != Outcome::WallLimit {
            break outcome;
        }
    };
    bar.finish();
    observer.finish(outcome == Outcome::Interrupted)?;
    Ok(outcome)
}

/// The failure of a simulation, after the input of the failed decision is kept.
fn undecided(
    arguments: &SimulateArguments,
    session: &Session,
    observer: &mut Watch,
    failure: Failure,
) -> Failure {
    if let Err(unwritten) = observer.finish(false) {
        session.note(format!("the events are not kept: {unwritten}"));
    } else if let Some(path) = no_standard_output(arguments.events.as_deref()) {
        session.note(format!("the events until then are in {}", path.display()));
    }
    if let (Some(path), Failure::Decision { .. }) = (observer.refused_snapshot(), &failure) {
        session.note(format!("the input of the decision that failed is {}", path.display()));
    }
    failure
}

/// The failure of a simulation that was interrupted in the midst of a decision: its state at the last boundary is not kept.
fn broken_off(arguments: &SimulateArguments, simulation: &Simulation) -> Failure {
    let hours = Decimals(simulation.now().hours(), 1);
    let kept = match arguments.checkpoint.as_deref().filter(|path| path.exists()) {
        Some(path) => format!("{} has the simulation as it was last saved", path.display()),
        None => "nothing is kept".to_owned(),
    };
    Failure::Interrupted { message: format!("in a decision after {hours} simulated hours; {kept}") }
}

/// The result of a simulation.
struct Shown<'a> {
    summary: &'a Summary,
    standstill: Option<&'a Standstill>,
    lower: Option<LowerBound>,
    /// Wall time of the simulation, s.
    wall_seconds: f64,
}

fn show(session: &Session, run: &Run, shown: &Shown<'_>) -> Result<(), Failure> {
    let Shown { summary, standstill, lower, wall_seconds } = shown;
    match session.output.format() {
        OutputFormat::Json => {
            let Run { digest, data, spec, .. } = run;
            let status = standstill.map_or("done", Standstill::name);
            let reason = standstill.map(Standstill::to_string);
            session.output.answer(&Simulated {
                status,
                reason,
                jobs_to_measure: run.n_measured(),
                summary,
                lower_bound: lower.as_ref(),
                wall_seconds: *wall_seconds,
                digest,
                data,
                spec,
            })
        }
        OutputFormat::Csv => {
            if let Some(lower) = lower {
                session.note(lower.in_words());
            }
            session.output.table(&jobs_for_programs(&summary.jobs))
        }
        OutputFormat::Table => {
            let mut table = summary_table(run, summary, *wall_seconds);
            if let Some(lower) = lower {
                lower.add_to(&mut table);
            }
            if let Some(standstill) = standstill {
                table.push(vec!["given up as".into(), standstill.name().into(), "".into()]);
            }
            session.output.table(&table)
        }
    }
}

fn summary_table(run: &Run, summary: &Summary, wall_seconds: f64) -> Table {
    let n_measured = run.n_measured().and_then(|n| usize::try_from(n).ok()).unwrap_or(summary.jobs.len());
    let mut table = numbers_of(summary, n_measured);
    for (name, value) in summary.utilization.iter().filter(|(name, _)| *name != "all") {
        table.push(vec![format!("utilization of {name}").into(), Cell::Number(100.0 * value, 1), "%".into()]);
    }
    table.push(vec!["wall time".into(), Cell::Number(wall_seconds, 2), "s".into()]);
    table
}
