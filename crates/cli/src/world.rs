//! `apportion world`: the worlds of learned schedulers, under their baselines and controls.

mod dual_agent;
mod elastic;
mod learned;
mod scaling;
mod table;

use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum};
use rayon::prelude::*;

use crate::Session;
use crate::count::{JOBS_MAX, check_workloads, from_one_to};
use crate::exit::Failure;
use crate::paths::name_or_path;
use crate::world::learned::Learned;
use crate::world::table::{Column, JOBS_DONE, table_of};
use apportion::policy::PolicyError;
use apportion::spec::Fidelity;
use apportion::spec::Source;
use apportion::throughput::elastic::{ElasticThroughputs, Extrapolation, SurfaceOptions};
use apportion::throughput::spread::SpreadThroughputs;
use apportion_learn::environment::Environment as _;
use apportion_learn::vectorized::PlayError as EpisodeError;
use apportion_published::deepshare::DeepShareWorld;
use apportion_published::deepshare::trace::read_deepshare_trace;
use apportion_published::deepshare::{
    self, AllocatedPolicy, DeepSharePolicy, DeepShareSpeeds, Mix, PolicyName,
};
use apportion_published::deepshare::{DeepShareEnvironment, RoundReward, Workloads};
use apportion_published::dl2::{self, Dl2Options, Dl2Policy, Dl2Rule, Dl2Speeds, SpeedModel, SpeedOptions};
use apportion_published::dl2::{Dl2Environment, Dl2EnvironmentOptions, Dl2World};
use apportion_published::plugin;
use apportion_published::world::{AllocatedError, PlayError};
use apportion_published::world::{Summary, WorldJob, run as run_world};

/// `apportion world`.
#[derive(Args, Debug)]
#[command(after_help = "\
Example:
  apportion world deepshare --policy las --policy greedy_gain_0.4 --traces 5
  apportion world deepshare traces/simulate/trace0 --fidelity corrected --format csv
  apportion world dl2 --traces 10 --arrivals poisson --fidelity released
  apportion world dl2 --policy optimus --policy drf --weights dl2_world --weights trained/best.safetensors
  apportion world elastic --traces 10 --policy drf_2 --policy optimus --policy shortest_optimus
  apportion world dual-agent --traces 30 --policy srtf/oracle --weights dual_agent_joint

A row is the mean over its workloads of each number, percentiles of completion time and jobs_done too. No world divides its
workers into equal shares, so none has finish-time fairness; the dual agents' has slowdown, over a job alone on its best type.")]
pub struct WorldArguments {
    #[command(subcommand)]
    world: World,
}

#[derive(Debug, Subcommand)]
enum World {
    /// Rigid jobs spread over 4 servers, slowed by those they share them with
    Deepshare(DeepShareArguments),
    /// Elastic jobs of workers and parameter servers, decided from nothing in every slot
    Dl2(Dl2Arguments),
    /// Elastic jobs at the speeds of a throughput matrix, decided from nothing in every slot
    Elastic(elastic::ElasticArguments),
    /// Gangs on servers of several types that drift; a reconstruction, no published world
    DualAgent(dual_agent::DualAgentArguments),
}

/// The published simulator's ways, as published or as intended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FidelityName {
    /// As published, quirks included.
    Released,
    /// As intended.
    Corrected,
}

impl From<FidelityName> for Fidelity {
    fn from(name: FidelityName) -> Self {
        match name {
            FidelityName::Released => Self::Published,
            FidelityName::Corrected => Self::Corrected,
        }
    }
}

#[derive(Args, Debug)]
struct DeepShareArguments {
    /// Published traces, JSON; without any, workloads are drawn
    #[arg(value_name = "TRACE", value_parser = name_or_path())]
    traces: Vec<String>,
    /// The policies; all by default
    #[arg(long, value_name = "NAME", value_parser = deepshare::parse_named)]
    policy: Vec<(&'static str, PolicyName)>,
    /// Policies of time shares to add, by name or file as `apportion allocate --policy` has them
    #[arg(long, value_name = "NAME|FILE", value_parser = name_or_path())]
    allocated: Vec<String>,
    /// Trained weights to add: a name that ships with the program, or a file, also an ONNX one; a row alone, a row as a hybrid
    #[arg(long, value_name = "NAME|FILE", value_parser = name_or_path())]
    weights: Vec<String>,
    /// The published simulator's ways, as published or as intended
    #[arg(long, value_enum, default_value = "released", value_name = "NAME")]
    fidelity: FidelityName,
    /// Number of workloads to draw
    #[arg(long = "traces", value_name = "N", default_value_t = 1, conflicts_with = "traces",
        value_parser = from_one_to(JOBS_MAX))]
    n_traces: usize,
    /// Jobs of each drawn workload
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = from_one_to(JOBS_MAX))]
    jobs: usize,
    /// Shares of job types in drawn workloads: random, equal, heavy, medium or low
    #[arg(long, value_name = "NAME", default_value = "random")]
    mix: String,
    /// Seed of the first drawn workload, and of random policies
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// A row for each trace, in place of their mean
    #[arg(long)]
    per_trace: bool,
}

/// The arrivals of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ArrivalsName {
    /// The published counts of this rate.
    Google,
    /// The same number in every slot.
    Uniform,
    /// Poisson, cut at the rate.
    Poisson,
}

/// The speeds where none was measured nearby.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExtrapolationName {
    /// The nearest measured one.
    Clamp,
    /// The values of the interpolating function, as published.
    Rbf,
}

#[derive(Args, Debug)]
struct Dl2Arguments {
    /// The policies; all by default
    #[arg(long, value_name = "NAME", value_parser = dl2::parse_named)]
    policy: Vec<(&'static str, Dl2Rule)>,
    /// Trained weights to add: a name that ships with the program, or a file, also an ONNX one
    #[arg(long, value_name = "NAME|FILE", value_parser = name_or_path())]
    weights: Vec<String>,
    /// Number of workloads to draw
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = from_one_to(JOBS_MAX))]
    traces: usize,
    /// Jobs of each workload
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = from_one_to(JOBS_MAX))]
    jobs: usize,
    /// Seed of the first workload, and of random policies
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Servers, of 8 processor and 8 accelerator slots each
    #[arg(long, value_name = "N", default_value_t = 48, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    servers: u16,
    /// The most workers of a job, and the most parameter servers
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=100))]
    tasks: u16,
    /// Processor slots of a parameter server, in place of the published 2
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=8))]
    parameter_server_slots: Option<u16>,
    /// The arrivals of jobs
    #[arg(long, value_enum, default_value = "google", value_name = "NAME")]
    arrivals: ArrivalsName,
    /// The most arrivals in a slot
    #[arg(long, value_name = "N", default_value_t = 3)]
    rate: u32,
    /// Epochs of the longest job, approximately
    #[arg(long, value_name = "N", default_value_t = 4000)]
    epochs: u32,
    /// The published simulator's ways, as published (speeds through failed runs, and extrapolated) or as intended
    #[arg(long, value_enum, default_value = "corrected", value_name = "NAME")]
    fidelity: FidelityName,
    /// The speeds where none was measured nearby, in place of the fidelity's choice
    #[arg(long, value_enum, value_name = "NAME")]
    extrapolation: Option<ExtrapolationName>,
    /// Speeds from the published analytic model, not from measurements
    #[arg(long, conflicts_with = "extrapolation")]
    analytic: bool,
    #[command(flatten)]
    scaling: scaling::Scaling,
    /// A row for each workload, in place of their mean
    #[arg(long)]
    per_trace: bool,
}

/// Runs the subcommand.
///
/// # Errors
/// If a trace is at fault, a flag is, or a policy never finishes.
pub(super) fn run(arguments: &WorldArguments, session: &Session) -> Result<(), Failure> {
    match &arguments.world {
        World::Deepshare(arguments) => run_deepshare(arguments, session),
        World::Dl2(arguments) => run_dl2(arguments, session),
        World::Elastic(arguments) => elastic::run(arguments, session),
        World::DualAgent(arguments) => dual_agent::run(arguments, session),
    }
}

/// A rule, an allocation policy or a learned policy that plays in DeepShare's world.
#[derive(Debug)]
enum DeepSharePlayer {
    Rule(PolicyName),
    Allocated(String),
    Learned { learned: Learned, environment: Box<DeepShareEnvironment> },
}

fn run_deepshare(arguments: &DeepShareArguments, session: &Session) -> Result<(), Failure> {
    let tables = SpreadThroughputs::deepshare();
    let fidelity = Fidelity::from(arguments.fidelity);
    let workloads = deepshare_workloads(arguments, &tables)?;
    let players = deepshare_players(arguments, &tables, fidelity)?;
    let play = |player: &DeepSharePlayer, jobs: &[WorldJob], seed: u64| match player {
        DeepSharePlayer::Rule(rule) => {
            let mut world = deepshare::world(&tables, fidelity, rule.after_round());
            let mut speeds = DeepShareSpeeds::new(&tables, fidelity);
            let mut policy = DeepSharePolicy::new(*rule, speeds.clone(), fidelity, seed);
            world.reset(jobs);
            Ok(run_world(&mut world, &mut speeds, &mut policy, deepshare::LIMITS)?)
        }
        DeepSharePlayer::Allocated(name) => play_allocated(name, &tables, fidelity, jobs),
        DeepSharePlayer::Learned { learned, environment } => {
            environment.with_jobs(jobs).play(&*learned.actor, learned.choice, seed)
        }
    };
    let runs = play_all(&players, &workloads, arguments.seed, play)?;
    let table = table_of(&players, &workloads, &runs, arguments.per_trace, DEEPSHARE_COLUMNS);
    session.output.table(&table)
}

/// Plays a workload by a policy that allocates time.
fn play_allocated(
    name: &str,
    tables: &SpreadThroughputs,
    fidelity: Fidelity,
    jobs: &[WorldJob],
) -> Result<Summary, PlayError> {
    let policy = plugin::catalog().policy(name).map_err(|error| {
        let undecided = PolicyError::Undecided { policy: name.to_owned(), reason: error.to_string() };
        AllocatedError::from(undecided)
    })?;
    let mut speeds = DeepShareSpeeds::new(tables, fidelity);
    let mut policy = AllocatedPolicy::new(policy, speeds.clone())?;
    let mut world = deepshare::world(tables, fidelity, AllocatedPolicy::AFTER_ROUND);
    world.reset(jobs);
    let summary = run_world(&mut world, &mut speeds, &mut policy, deepshare::LIMITS);
    match policy.error() {
        Some(error) => Err(error.clone().into()),
        None => Ok(summary?),
    }
}

fn deepshare_players(
    arguments: &DeepShareArguments,
    tables: &Arc<SpreadThroughputs>,
    fidelity: Fidelity,
) -> Result<Vec<(String, DeepSharePlayer)>, Failure> {
    let policies =
        if arguments.policy.is_empty() { deepshare::all().collect() } else { arguments.policy.clone() };
    let rule = |(name, rule): (&str, PolicyName)| (name.to_owned(), DeepSharePlayer::Rule(rule));
    let mut players: Vec<_> = policies.into_iter().map(rule).collect();
    for name in &arguments.allocated {
        // Faults of the file are reported before anything is played.
        drop(plugin::catalog().policy(name)?);
        players.push((format!("allocated/{name}"), DeepSharePlayer::Allocated(name.clone())));
    }
    for weights in &arguments.weights {
        let learned = Learned::load(weights, "deepshare")?;
        let DeepShareWorld { masked, observation_kind, .. } = learned.world("deepshare")?;
        for (suffix, hybrid) in [("", false), ("/hybrid", true)] {
            let options = DeepShareWorld::default().options().in_use(hybrid);
            let options = deepshare::EpisodeOptions { fidelity, ..options };
            let none = Workloads::Listed(Vec::new());
            let environment = DeepShareEnvironment::new(Arc::clone(tables), none, options, masked, STEPS_MAX)
                .map_err(|error| Failure::Bug { message: error.to_string() })?;
            let environment = environment.learning_by(observation_kind, RoundReward::default());
            learned.check_fits(environment.spaces(), "deepshare")?;
            let (learned, environment) = (learned.clone(), Box::new(environment));
            let name = format!("{}{suffix}", learned.name);
            players.push((name, DeepSharePlayer::Learned { learned, environment }));
        }
    }
    Ok(players)
}

/// A rule or a learned policy that plays in DL2's world.
#[derive(Debug)]
enum Dl2Player {
    Rule(Dl2Rule),
    Learned { learned: Learned, environment: Box<Dl2Environment> },
}

fn run_dl2(arguments: &Dl2Arguments, session: &Session) -> Result<(), Failure> {
    let tables = ElasticThroughputs::dl2();
    let workloads = dl2_workloads(arguments, &tables)?;
    let options = dl2_speeds(arguments);
    let players = dl2_players(arguments, &tables, options)?;
    let cluster = dl2_cluster(arguments);
    let speeds = Dl2Speeds::new(&tables, options)
        .map_err(|error| Failure::Bug { message: format!("the embedded speeds: {error}") })?;
    let play = |player: &Dl2Player, jobs: &[WorldJob], seed: u64| match player {
        Dl2Player::Rule(rule) => {
            let mut world = dl2::world(&tables, cluster);
            let mut policy = Dl2Policy::new(*rule, speeds.clone(), cluster.tasks_max, seed);
            world.reset(jobs);
            Ok(run_world(&mut world, &mut speeds.clone(), &mut policy, dl2::LIMITS)?)
        }
        // The workload is that of the seed, as above: its environment draws it by the same options.
        Dl2Player::Learned { learned, environment } => {
            environment.clone().play(&*learned.actor, learned.choice, seed)
        }
    };
    let runs = play_all(&players, &workloads, arguments.seed, play)?;
    let table = table_of(&players, &workloads, &runs, arguments.per_trace, DL2_COLUMNS);
    session.output.table(&table)
}

fn dl2_players(
    arguments: &Dl2Arguments,
    tables: &Arc<ElasticThroughputs>,
    speeds: SpeedOptions,
) -> Result<Vec<(String, Dl2Player)>, Failure> {
    let policies = if arguments.policy.is_empty() { dl2::all().collect() } else { arguments.policy.clone() };
    let rule = |(name, rule): (&str, Dl2Rule)| (name.to_owned(), Dl2Player::Rule(rule));
    let mut players: Vec<_> = policies.into_iter().map(rule).collect();
    for weights in &arguments.weights {
        let learned = Learned::load(weights, "dl2")?;
        let trained_in = learned.world::<Dl2World>("dl2")?.options();
        let options = Dl2EnvironmentOptions {
            episode: dl2::EpisodeOptions { cluster: dl2_cluster(arguments), ..trained_in.episode },
            speeds,
            workload: dl2_workload(arguments),
            step_limit: STEPS_MAX,
            ..trained_in
        };
        let environment = Dl2Environment::new(Arc::clone(tables), options)
            .map_err(|error| Failure::Bug { message: error.to_string() })?;
        learned.check_fits(environment.spaces(), "dl2")?;
        let environment = Box::new(environment);
        players.push((learned.name.clone(), Dl2Player::Learned { learned, environment }));
    }
    Ok(players)
}

fn dl2_cluster(arguments: &Dl2Arguments) -> Dl2Options {
    Dl2Options {
        n_servers: usize::from(arguments.servers),
        tasks_max: arguments.tasks,
        parameter_server_slots: arguments.parameter_server_slots,
        scaling_cost_s: arguments.scaling.scaling_cost,
    }
}

fn dl2_speeds(arguments: &Dl2Arguments) -> SpeedOptions {
    let mut surface = match arguments.fidelity {
        FidelityName::Released => SurfaceOptions::PUBLISHED,
        FidelityName::Corrected => SurfaceOptions::CORRECTED,
    };
    surface.outside = match arguments.extrapolation {
        None => surface.outside,
        Some(ExtrapolationName::Clamp) => Extrapolation::Clamp,
        Some(ExtrapolationName::Rbf) => Extrapolation::Rbf,
    };
    let model = if arguments.analytic { SpeedModel::Analytic } else { SpeedModel::Measured(surface) };
    SpeedOptions { model, error: 0.0, seed: arguments.seed, tasks_max: arguments.tasks }
}

fn dl2_workload(arguments: &Dl2Arguments) -> dl2::WorkloadOptions {
    dl2::WorkloadOptions {
        n_jobs: arguments.jobs,
        arrivals: match arguments.arrivals {
            ArrivalsName::Google => dl2::Arrivals::Google,
            ArrivalsName::Uniform => dl2::Arrivals::Uniform,
            ArrivalsName::Poisson => dl2::Arrivals::Poisson,
        },
        rate: arguments.rate,
        epochs_max: arguments.epochs,
        ..dl2::WorkloadOptions::default()
    }
}

fn dl2_workloads(arguments: &Dl2Arguments, tables: &ElasticThroughputs) -> Result<Vec<Workload>, Failure> {
    check_workloads(arguments.traces, arguments.jobs)?;
    let options = dl2_workload(arguments);
    let seeds = (0..arguments.traces).map(|index| arguments.seed.wrapping_add(index as u64));
    let drawn = seeds.map(|seed| {
        let jobs = dl2::generate(tables, &options, seed);
        Ok((format!("seed {seed}"), jobs.map_err(|error| Failure::usage(error.to_string(), None))?))
    });
    drawn.collect()
}

/// The number of decisions after which a learned policy is given up.
const STEPS_MAX: u64 = 1_000_000;

type Workload = (String, Vec<WorldJob>);

fn deepshare_workloads(
    arguments: &DeepShareArguments,
    tables: &SpreadThroughputs,
) -> Result<Vec<Workload>, Failure> {
    if arguments.traces.is_empty() {
        check_workloads(arguments.n_traces, arguments.jobs)?;
        let mix = match arguments.mix.as_str() {
            "random" => Mix::Random,
            "equal" => Mix::Equal,
            name => Mix::Named(name.to_owned()),
        };
        let seeds = (0..arguments.n_traces).map(|index| arguments.seed.wrapping_add(index as u64));
        let drawn = seeds.map(|seed| {
            let jobs = deepshare::generate(tables, &mix, arguments.jobs, seed);
            Ok((format!("seed {seed}"), jobs.map_err(|error| Failure::usage(error.to_string(), None))?))
        });
        return drawn.collect();
    }
    let read = arguments.traces.iter().map(|path| {
        let source = Source::load(path)?;
        let traced = read_deepshare_trace(&source)?;
        let jobs = deepshare::from_trace(tables, &traced);
        let at_fault = |error: deepshare::WorkloadError| source.error_at("", error.to_string(), None);
        Ok((path.clone(), jobs.map_err(at_fault)?))
    });
    read.collect()
}

/// Plays every policy on every workload, on all cores. The results are [policy × workload].
fn play_all<P: Sync>(
    players: &[(String, P)],
    workloads: &[Workload],
    seed: u64,
    play: impl Fn(&P, &[WorldJob], u64) -> Result<Summary, PlayError> + Sync,
) -> Result<Vec<Vec<Summary>>, Failure> {
    let pairs: Vec<(usize, usize)> = (0..players.len())
        .flat_map(|player| (0..workloads.len()).map(move |workload| (player, workload)))
        .collect();
    let played: Vec<Result<Summary, Failure>> = pairs
        .par_iter()
        .map(|&(player, workload)| {
            let (name, player) = &players[player];
            let (trace, jobs) = &workloads[workload];
            play(player, jobs, seed.wrapping_add(workload as u64))
                .map_err(|error| not_played(&format!("{name} on {trace}"), &error))
        })
        .collect();
    let summaries: Vec<Summary> = played.into_iter().collect::<Result<_, _>>()?;
    Ok(summaries.chunks(workloads.len().max(1)).map(<[Summary]>::to_vec).collect())
}

/// The failure to play `what`.
fn not_played(what: &str, error: &PlayError) -> Failure {
    let message = format!("{what}: {error}");
    match error {
        PlayError::World(_) => Failure::Limit { message },
        PlayError::Episode(EpisodeError::Actor(_)) | PlayError::Allocated(_) => Failure::usage(message, None),
        PlayError::Episode(EpisodeError::Refused(_)) => Failure::Bug { message },
    }
}

const HOUR_S: f64 = 3600.0;

/// The columns of DeepShare's world. Service time is the publication's completion time.
const DEEPSHARE_COLUMNS: &[Column<Summary>] = &[
    Column::quantity("service_h", |run| run.service_s / HOUR_S, 3),
    Column::quantity("service_p90_s", |run| run.service_p90_s, 0),
    Column::quantity("service_p99_s", |run| run.service_p99_s, 0),
    Column::quantity("utilization", |run| run.utilization, 3),
    Column::quantity("retention", |run| run.retention, 3),
    Column::quantity("completion_h", |run| run.completion_s / HOUR_S, 2),
    Column::quantity("completion_p50_h", |run| run.completion_p50_s / HOUR_S, 2),
    Column::quantity("completion_p99_h", |run| run.completion_p99_s / HOUR_S, 2),
    Column::quantity("queueing_h", |run| run.queueing_s / HOUR_S, 2),
    Column::quantity("makespan_h", |run| run.makespan_s / HOUR_S, 2),
    Column::count("preemptions", |run| run.preemptions),
    Column::count("decisions", |run| run.decisions),
    JOBS_DONE,
];

/// The columns of DL2's world, in slots, as published.
const DL2_COLUMNS: &[Column<Summary>] = &[
    Column::quantity("completion_slots", |run| run.completion_s / dl2::SLOT_S, 2),
    Column::quantity("completion_p50_slots", |run| run.completion_p50_s / dl2::SLOT_S, 2),
    Column::quantity("completion_p99_slots", |run| run.completion_p99_s / dl2::SLOT_S, 2),
    Column::quantity("service_slots", |run| run.service_s / dl2::SLOT_S, 2),
    Column::quantity("queueing_slots", |run| run.queueing_s / dl2::SLOT_S, 2),
    Column::quantity("makespan_slots", |run| run.makespan_s / dl2::SLOT_S, 1),
    Column::quantity("utilization", |run| run.utilization, 3),
    Column::count("preemptions", |run| run.preemptions),
    Column::count("decisions", |run| run.decisions),
    JOBS_DONE,
];
