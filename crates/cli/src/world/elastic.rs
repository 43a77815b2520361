//! `apportion world elastic`: elastic jobs at the speeds of a throughput matrix.

use clap::Args;

use crate::Session;
use crate::conditions::number;
use crate::count::{JOBS_MAX, check_workloads, from_one_to};
use crate::exit::Failure;
use crate::paths::name_or_path;
use crate::world::learned::Learned;
use crate::world::scaling::Scaling;
use crate::world::table::{Column, JOBS_DONE, table_of};
use crate::world::{HOUR_S, STEPS_MAX, Workload, play_all};
use apportion::throughput::Throughputs;
use apportion_learn::environment::Environment as _;
use apportion_published::elastic::{
    self, ElasticPolicy, ElasticRule, Ladders, ObservationKind, WorkloadOptions,
};
use apportion_published::elastic::{ElasticEnvironment, ElasticWorld};
use apportion_published::world::{Summary, WorldJob, run as run_world};

#[derive(Args, Debug)]
pub(super) struct ElasticArguments {
    /// Which policies; all by default
    #[arg(long, value_name = "NAME", value_parser = elastic::parse_named)]
    policy: Vec<(&'static str, ElasticRule)>,
    /// Trained weights to add: a name that ships with the program, or a file, also an ONNX one
    #[arg(long, value_name = "NAME|FILE", value_parser = name_or_path())]
    weights: Vec<String>,
    /// How many workloads to draw
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = from_one_to(JOBS_MAX))]
    traces: usize,
    /// Jobs of each
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = from_one_to(JOBS_MAX))]
    jobs: usize,
    /// Seed of the first workload, and of random policies
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Workers of each type
    #[arg(long, value_name = "N", default_value_t = elastic::WORKERS_PER_TYPE,
        value_parser = clap::value_parser!(u16).range(1..=10_000))]
    workers: u16,
    /// Mean arrivals in a slot of 20 minutes
    #[arg(long, value_name = "JOBS", default_value_t = WorkloadOptions::default().rate_per_slot, value_parser = number)]
    rate: f64,
    #[command(flatten)]
    scaling: Scaling,
    /// A row for each workload, in place of their mean
    #[arg(long)]
    per_trace: bool,
}

/// A rule or a learned policy that plays.
#[derive(Debug)]
enum Player {
    Rule(ElasticRule),
    Learned { learned: Learned, environment: Box<ElasticEnvironment> },
}

pub(super) fn run(arguments: &ElasticArguments, session: &Session) -> Result<(), Failure> {
    let throughputs = Throughputs::embedded("osdi20")
        .map_err(|error| Failure::Bug { message: format!("the embedded throughputs: {error}") })?;
    let ladders = Ladders::new(&throughputs);
    let workloads = workloads(arguments, &ladders)?;
    let players = players(arguments)?;
    let play = |player: &Player, jobs: &[WorldJob], seed: u64| match player {
        Player::Rule(rule) => {
            let mut world = elastic::world(&ladders, arguments.workers, arguments.scaling.scaling_cost);
            let mut policy = ElasticPolicy::new(*rule, ladders.clone(), seed);
            world.reset(jobs);
            Ok(run_world(&mut world, &mut &ladders, &mut policy, elastic::LIMITS)?)
        }
        // The workload is that of the seed, as above: its environment draws it by the same options.
        Player::Learned { learned, environment } => {
            environment.clone().play(&*learned.actor, learned.choice, seed)
        }
    };
    let runs = play_all(&players, &workloads, arguments.seed, play)?;
    let table = table_of(&players, &workloads, &runs, arguments.per_trace, COLUMNS);
    session.output.table(&table)
}

fn players(arguments: &ElasticArguments) -> Result<Vec<(String, Player)>, Failure> {
    let policies =
        if arguments.policy.is_empty() { elastic::all().collect() } else { arguments.policy.clone() };
    let rule = |(name, rule): (&str, ElasticRule)| (name.to_owned(), Player::Rule(rule));
    let mut players: Vec<_> = policies.into_iter().map(rule).collect();
    for weights in &arguments.weights {
        let learned = Learned::load(weights, "elastic")?;
        // A network that scores climb by climb can see all jobs; one with a column for each job, as many as it was trained with.
        let (observation_kind, window) = if learned.scores_rows {
            let trained_in = learned.world::<ElasticWorld>("elastic")?;
            let kept = trained_in.observation_kind == ObservationKind::KeptPairs;
            (if kept { ObservationKind::KeptPairs } else { ObservationKind::Pairs }, arguments.jobs)
        } else {
            (ObservationKind::Window, learned.world::<ElasticWorld>("elastic")?.window)
        };
        let world = ElasticWorld {
            workers: arguments.workers,
            jobs: arguments.jobs,
            rate: arguments.rate,
            observation_kind,
            window,
            step_limit: STEPS_MAX,
            scaling_cost_s: arguments.scaling.scaling_cost,
            ..ElasticWorld::default()
        };
        let environment = world.environment().map_err(|message| Failure::usage(message, None))?;
        learned.check_fits(environment.spaces(), "elastic")?;
        let environment = Box::new(environment);
        players.push((learned.name.clone(), Player::Learned { learned, environment }));
    }
    Ok(players)
}

fn workloads(arguments: &ElasticArguments, ladders: &Ladders) -> Result<Vec<Workload>, Failure> {
    let options = WorkloadOptions {
        n_jobs: arguments.jobs,
        rate_per_slot: arguments.rate,
        ..WorkloadOptions::default()
    };
    check_workloads(arguments.traces, arguments.jobs)?;
    let seeds = (0..arguments.traces).map(|index| arguments.seed.wrapping_add(index as u64));
    let drawn = seeds.map(|seed| {
        let jobs = elastic::generate(ladders, &options, seed);
        Ok((format!("seed {seed}"), jobs.map_err(|error| Failure::usage(error.to_string(), None))?))
    });
    drawn.collect()
}

const COLUMNS: &[Column<Summary>] = &[
    Column::quantity("completion_h", |run| run.completion_s / HOUR_S, 2),
    Column::quantity("completion_p50_h", |run| run.completion_p50_s / HOUR_S, 2),
    Column::quantity("completion_p99_h", |run| run.completion_p99_s / HOUR_S, 2),
    Column::quantity("service_h", |run| run.service_s / HOUR_S, 2),
    Column::quantity("queueing_h", |run| run.queueing_s / HOUR_S, 2),
    Column::quantity("makespan_h", |run| run.makespan_s / HOUR_S, 1),
    Column::quantity("utilization", |run| run.utilization, 3),
    Column::count("preemptions", |run| run.preemptions),
    Column::count("decisions", |run| run.decisions),
    JOBS_DONE,
];
