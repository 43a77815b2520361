//! `apportion simulate`: one simulation.

mod simulated;

use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::Session;
use crate::conditions::{ConditionArguments, time};
use crate::decide::SemanticsFlag;
use crate::exit::Failure;
use crate::output::{Cell, OutputFormat, Table};
use crate::progress::Progress;
use crate::results::run_failure;
use apportion::metrics::log::Header;
use apportion::metrics::{Recorder, Summary};
use apportion::policy::Decision;
use apportion::problem::Problem;
use apportion::simulator::{Checkpoint, Event, Limits, Observer, Outcome, Simulation};
use apportion::solver::timing::Stopwatch;
use apportion::spec::Source;
use apportion::spec::run::{
    CorrectionsSpec, GeneratorName, PricesSpec, RunSpec, ThroughputsName, WorkerCounts,
};
use apportion::spec::snapshot::Label;
use apportion::units::{JobsPerHour, Seconds};
use apportion_published::plugin;
use apportion_studies::report::run::{jobs_in_seconds, numbers};
use apportion_studies::sweep::simulation::begin;
use apportion_studies::sweep::{Inputs, Run};
pub(super) use simulated::Simulated;

/// Rounds between two looks at the progress line.
const ROUNDS_AT_ONCE: u64 = 2048;
/// Wall time between two checkpoints, in s.
const CHECKPOINT_EVERY_S: f64 = 60.0;

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
    #[arg(long, value_name = "NAME|FILE")]
    policy: String,
    /// Workers of each type, such as v100=36,p100=36,k80=36
    #[arg(long, value_name = "TYPE=N,…")]
    cluster: WorkerCounts,
    /// Jobs from a file: our CSV, or Gavel's form
    #[arg(long, value_name = "FILE")]
    trace: Option<String>,
    /// Owners of the trace's jobs, as in a snapshot: [{id: a, weight: 2}, {id: b, inner: fifo, parent: a}]
    #[arg(long, value_name = "FILE", requires = "trace")]
    entities: Option<PathBuf>,
    /// Jobs that arrive at random, so many an hour
    #[arg(long, value_name = "JOBS_PER_HOUR")]
    rate: Option<f64>,
    /// Arrivals stop after so many jobs
    #[arg(long, value_name = "N", requires = "rate")]
    jobs: Option<u64>,
    /// Start with jobs at time 0 that need all workers
    #[arg(long, requires = "rate")]
    steady_state: bool,
    /// So many jobs, all at time 0
    #[arg(long = "static", value_name = "N")]
    n_static: Option<u64>,
    /// The mechanism as described, or as published, quirks included
    #[arg(long, value_enum, default_value = "corrected")]
    semantics: SemanticsFlag,
    /// Quirks of `--semantics gavel` to do without, by name, or `all`
    #[arg(long, value_name = "NAME,…", default_value = "none", hide_default_value = true)]
    correct: CorrectionsSpec,
    /// Who draws jobs
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
    /// Every job takes so long alone on the reference worker type: 3600, 90min, 2h
    #[arg(long, value_name = "SECONDS", value_parser = time)]
    duration: Option<Seconds>,
    /// A throughput matrix's name, or a file
    #[arg(long, value_name = "NAME|FILE", default_value = "osdi20")]
    throughputs: String,
    /// Measure these jobs only, by order of arrival from 0, END excluded
    #[arg(long, value_name = "START:END", value_parser = window)]
    measure: Option<[u64; 2]>,
    /// Length of a round
    #[arg(long, value_name = "SECONDS", value_parser = time, default_value = "360")]
    round: Seconds,
    /// Least time between two computations of the allocation
    #[arg(long, value_name = "SECONDS", value_parser = time, default_value = "1920")]
    reset_interval: Seconds,
    /// Workers on each server; 1 where not given
    #[arg(long, value_name = "TYPE=N,…")]
    servers: Option<WorkerCounts>,
    /// Run allocations exactly, without rounds
    #[arg(long)]
    ideal: bool,
    /// Prices in $/h: {v100: 2.48, p100: 1.46}, or over time as CSV under `time,worker_type,price`
    #[arg(long, value_name = "FILE")]
    prices: Option<String>,
    /// Time that a job loses when it changes workers
    #[arg(long, value_name = "SECONDS", value_parser = time, default_value = "0")]
    preemption_cost: Seconds,
    /// Save the simulation here on interrupt, and go on from here if there is such a file
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Which optimum, in place of the policy's own choice
    #[arg(long, value_name = "NAME")]
    refine: Option<String>,
    /// Which solver, in place of the policy's own choice
    #[arg(long, value_name = "NAME")]
    backend: Option<String>,
    /// Save the input of every decision of the policy in this folder
    #[arg(long, value_name = "DIR")]
    save_snapshots: Option<PathBuf>,
    /// Write every event to this file, one JSON object a line; `apportion report` shows it
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    #[command(flatten)]
    conditions: ConditionArguments,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum GeneratorFlag {
    /// Ours: independent streams, any throughput matrix
    Native,
    /// What the published simulator draws, bit for bit
    Gavel,
    /// The same from its older job table, which the paper's recorded runs were drawn from
    #[value(name = "gavel_osdi20")]
    GavelOsdi20,
}

fn window(text: &str) -> Result<[u64; 2], String> {
    let parsed = text.split_once(':').and_then(|(start, end)| Some([start.parse().ok()?, end.parse().ok()?]));
    parsed.ok_or_else(|| format!("`{text}` is no window, expected START:END, such as 4000:5000"))
}

pub(super) fn run(arguments: &SimulateArguments, session: &Session) -> Result<(), Failure> {
    let stopwatch = Stopwatch::start();
    let mut spec = spec(arguments);
    if let Some(path) = &arguments.entities {
        spec.workload.entities = Source::load(path)?.parse()?;
    }
    let run = Inputs::new(plugin::catalog()).load(&spec).map_err(run_failure)?;
    let saved = match &arguments.checkpoint {
        Some(path) if path.exists() => Some(Saved::read(path, &run)?),
        _ => None,
    };
    if let Some(saved) = &saved {
        session.note(format!("going on at round {}", saved.round));
    }
    let mut simulation = begin(&run, saved.as_ref().map(|saved| &saved.checkpoint)).map_err(run_failure)?;
    let mut observer = Watch::new(arguments, &run, &simulation, saved)?;
    let ending = advance(arguments, session, (&run, &mut simulation), &mut observer)?;
    match ending {
        Outcome::Finished => {}
        Outcome::Interrupted => {
            let hours = simulation.now().hours();
            let kept = match &arguments.checkpoint {
                Some(path) => format!("after {hours:.1} simulated hours, saved in {}", path.display()),
                None => format!("after {hours:.1} simulated hours; `--checkpoint FILE` would have kept them"),
            };
            return Err(Failure::Interrupted { message: kept });
        }
        Outcome::Stalled => {
            let message =
                format!("{} jobs wait for workers that none of them can have", simulation.n_active());
            return Err(Failure::usage(message, None));
        }
        Outcome::TimeLimit | Outcome::ActiveLimit | Outcome::RoundLimit => {
            return Err(Failure::Bug { message: format!("{ending:?} without a limit") });
        }
    }
    if let Some(path) = arguments.checkpoint.as_deref().filter(|path| path.exists()) {
        fs::remove_file(path).map_err(Failure::io(format!("remove {}", path.display())))?;
    }
    show(session, &run, &observer.recorder.summary(), stopwatch.elapsed().as_secs_f64())
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
    spec.solver.refine.clone_from(&arguments.refine);
    spec.solver.backend.clone_from(&arguments.backend);
    arguments.conditions.put_into(&mut spec);
    spec
}

/// Runs to the end or an interrupt, saving now and then.
fn advance(
    arguments: &SimulateArguments,
    session: &Session,
    (run, simulation): (&Run, &mut Simulation),
    observer: &mut Watch,
) -> Result<Outcome, Failure> {
    let total = run.spec.measure.map(|[start, end]| end - start);
    let total = total.or(run.spec.workload.jobs).or(run.spec.workload.n_static);
    let bar = Progress::new(session, total.unwrap_or(0), "measured jobs");
    let interrupt = Some(session.interrupt.flag());
    let limits = Limits { rounds: Some(ROUNDS_AT_ONCE), interrupt, ..Limits::default() };
    let mut since_save = Stopwatch::start();
    let outcome = loop {
        let outcome = simulation.run(observer, &limits);
        observer.check()?;
        let outcome = outcome.map_err(|error| run_failure(error.into()))?;
        bar.set(u64::from(simulation.n_measured_done()));
        let late = since_save.elapsed().as_secs_f64() > CHECKPOINT_EVERY_S;
        if let Some(path) = &arguments.checkpoint
            && (outcome == Outcome::Interrupted || (outcome == Outcome::RoundLimit && late))
        {
            Saved::write(path, run, simulation, observer)?;
            since_save = Stopwatch::start();
        }
        if outcome != Outcome::RoundLimit {
            break outcome;
        }
    };
    bar.finish();
    observer.finish()?;
    Ok(outcome)
}

/// A simulation that was interrupted, as it is kept in a file.
#[derive(Serialize, Deserialize)]
struct Saved {
    /// The run's identity.
    digest: String,
    round: u64,
    /// How much of the events file belongs to it.
    events_length: u64,
    /// Decisions so far.
    n_decisions: u64,
    checkpoint: Checkpoint,
    recorder: Recorder,
}

impl Saved {
    fn read(path: &Path, run: &Run) -> Result<Self, Failure> {
        let name = path.display();
        let source = Source::load(path)?;
        let saved: Self = serde_json::from_str(&source.text).map_err(|error| {
            Failure::usage(format!("{name} is not a simulation that was saved: {error}"), None)
        })?;
        if saved.digest != run.digest {
            let help = "give the flags it was started with, or another file".to_owned();
            return Err(Failure::usage(format!("{name} is of another simulation"), Some(help)));
        }
        Ok(saved)
    }

    /// Writes the file whole or not at all.
    fn write(path: &Path, run: &Run, simulation: &Simulation, observer: &mut Watch) -> Result<(), Failure> {
        let saved = Self {
            digest: run.digest.clone(),
            round: simulation.round(),
            events_length: observer.events_length()?,
            n_decisions: observer.n_decisions,
            checkpoint: simulation.checkpoint(),
            recorder: observer.recorder.clone(),
        };
        let text = serde_json::to_vec(&saved)
            .map_err(|error| Failure::Bug { message: format!("a checkpoint is not JSON: {error}") })?;
        let fresh = path.with_extension("new");
        let failed = || Failure::io(format!("write {}", path.display()));
        fs::write(&fresh, text).map_err(failed())?;
        fs::rename(&fresh, path).map_err(failed())
    }
}

/// The observer of the simulation: it counts, and writes events and snapshots where asked for.
#[derive(Debug)]
struct Watch {
    recorder: Recorder,
    events: Option<(PathBuf, BufWriter<File>)>,
    snapshots: Option<PathBuf>,
    n_decisions: u64,
    /// Whether policies see estimates in place of the matrix.
    estimates: bool,
    /// The first failure to write.
    broken: Option<Failure>,
}

impl Watch {
    fn new(
        arguments: &SimulateArguments,
        run: &Run,
        simulation: &Simulation,
        saved: Option<Saved>,
    ) -> Result<Self, Failure> {
        let kept = saved.as_ref().map_or(0, |saved| saved.events_length);
        let events = match &arguments.events {
            Some(path) => {
                let failed = || Failure::io(format!("write {}", path.display()));
                let mut file =
                    File::options().create(true).write(true).truncate(false).open(path).map_err(failed())?;
                file.set_len(kept).map_err(failed())?;
                file.seek(SeekFrom::End(0)).map_err(failed())?;
                let mut writer = BufWriter::new(file);
                if kept == 0 {
                    let header = Header::new(&run.digest, simulation.cluster(), &run.spec, &run.data);
                    writer.write_all(header.line().as_bytes()).map_err(failed())?;
                }
                Some((path.clone(), writer))
            }
            None => None,
        };
        if let Some(folder) = &arguments.save_snapshots {
            fs::create_dir_all(folder).map_err(Failure::io(format!("make {}", folder.display())))?;
        }
        let n_decisions = saved.as_ref().map_or(0, |saved| saved.n_decisions);
        let recorder = saved.map_or_else(|| Recorder::new(simulation.cluster()), |saved| saved.recorder);
        let snapshots = arguments.save_snapshots.clone();
        let estimates = simulation.options().profiling.is_some();
        Ok(Self { recorder, events, snapshots, n_decisions, estimates, broken: None })
    }

    fn events_length(&mut self) -> Result<u64, Failure> {
        match &mut self.events {
            None => Ok(0),
            Some((path, writer)) => {
                let failed = Failure::io(format!("write {}", path.display()));
                writer.flush().and_then(|()| writer.stream_position()).map_err(failed)
            }
        }
    }

    fn check(&mut self) -> Result<(), Failure> {
        self.broken.take().map_or(Ok(()), Err)
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.events_length().map(|_| ())
    }

    fn write_event(&mut self, event: &Event<'_>) {
        let Some((path, writer)) = &mut self.events else { return };
        let written = serde_json::to_writer(&mut *writer, event)
            .map_err(io::Error::from)
            .and_then(|()| writer.write_all(b"\n"));
        if let Err(error) = written
            && self.broken.is_none()
        {
            self.broken = Some(Failure::io(format!("write {}", path.display()))(error));
        }
    }
}

impl Observer for Watch {
    fn observe(&mut self, event: &Event<'_>) {
        self.recorder.observe(event);
        self.write_event(event);
    }

    fn decided(&mut self, _now: Seconds, problem: &Problem, _decision: &Decision) {
        let number = self.n_decisions;
        self.n_decisions += 1;
        let Some(folder) = &self.snapshots else { return };
        let path = folder.join(format!("{number:06}.json"));
        let document = if self.estimates {
            problem.to_snapshot_with_pairs(Label::from)
        } else {
            problem.to_snapshot(Label::from)
        };
        let text = serde_json::to_string(&document).unwrap_or_default();
        if let Err(error) = fs::write(&path, text)
            && self.broken.is_none()
        {
            self.broken = Some(Failure::io(format!("write {}", path.display()))(error));
        }
    }
}

fn show(session: &Session, run: &Run, summary: &Summary, wall_seconds: f64) -> Result<(), Failure> {
    match session.output.format() {
        OutputFormat::Json => {
            let version = env!("CARGO_PKG_VERSION");
            let Run { digest, data, spec, .. } = run;
            session.output.json(&Simulated { summary, wall_seconds, version, digest, data, spec })
        }
        OutputFormat::Csv => session.output.table(&jobs_in_seconds(&summary.jobs)),
        OutputFormat::Table => session.output.table(&summary_table(summary, wall_seconds)),
    }
}

fn summary_table(summary: &Summary, wall_seconds: f64) -> Table {
    let mut table = numbers(summary);
    for (name, value) in summary.utilization.iter().filter(|(name, _)| *name != "all") {
        table.push(vec![format!("utilization of {name}").into(), Cell::Number(100.0 * value, 1), "%".into()]);
    }
    table.push(vec!["wall time".into(), Cell::Number(wall_seconds, 2), "s".into()]);
    table
}
