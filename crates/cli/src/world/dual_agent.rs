//! `apportion world dual-agent`: dual agents on servers that drift.

use std::sync::Arc;

use clap::Args;
use rayon::prelude::*;

use crate::Session;
use crate::conditions::number;
use crate::count::{JOBS_MAX, check_workloads, from_one_to};
use crate::exit::Failure;
use crate::paths::name_or_path;
use crate::world::table::Column;
use crate::world::{learned, not_played};
use apportion::metrics::statistics::Paired;
use apportion_learn::actor::Actor;
use apportion_published::dual_agent::player::{play, read_agents};
use apportion_published::dual_agent::{
    Cloud, CloudOptions, DriftOptions, DualAgentSummary, EpisodeOptions, Rule, RulePlayer, Tables,
    WorkloadOptions, fitted, generate,
};
use apportion_published::world::PlayError;
use apportion_published::world::WorldJob;
use apportion_studies::report::{Cell, Table};

#[derive(Args, Debug)]
pub(super) struct DualAgentArguments {
    /// Which rules, as ORDER/PLACEMENT; all by default
    #[arg(long, value_name = "NAME")]
    policy: Vec<Rule>,
    /// The rule that the others' completion times are compared with, in pairs of equal seed
    #[arg(long, value_name = "NAME", default_value = "srtf/posterior")]
    against: Rule,
    /// Trained weights to add: a name that ships with the program, or a file, also an ONNX one of both agents
    #[arg(long, value_name = "NAME|FILE", value_parser = name_or_path())]
    weights: Vec<String>,
    /// How many workloads to draw
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = from_one_to(JOBS_MAX))]
    traces: usize,
    /// Jobs of each
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = from_one_to(JOBS_MAX))]
    jobs: usize,
    /// Mean seconds between arrivals; 0 = all at once
    #[arg(long, value_name = "SECONDS", default_value_t = WorkloadOptions::default().gap_s, value_parser = number)]
    gap: f64,
    /// Servers, as a part of PAI's 1,814 with accelerators
    #[arg(long, value_name = "PART", default_value_t = 0.05, value_parser = number)]
    scale: f64,
    /// Hours for which a straggling server does, on average
    #[arg(long, value_name = "HOURS", default_value_t = 1.0, value_parser = number)]
    straggle: f64,
    /// Part of the servers that straggle at any time
    #[arg(long, value_name = "PART", default_value_t = DriftOptions::default().stragglers, value_parser = number)]
    stragglers: f64,
    /// How far servers of one type differ and drift, as a multiple of what was measured
    #[arg(long, value_name = "TIMES", default_value_t = 1.0, value_parser = number)]
    drift: f64,
    /// Correlation of servers within a rack
    #[arg(long, value_name = "PART", default_value_t = DriftOptions::default().rack_correlation, value_parser = number)]
    rack_correlation: f64,
    /// Fit the constants of `posterior` and `switching` to servers that drift so, in place of those of the default world
    #[arg(long)]
    fitted: bool,
    /// Have `posterior` and `switching` take servers for unrelated, those of one rack, too
    #[arg(long)]
    unrelated: bool,
    /// Seed of the first workload, of its servers' drift, and of what rules draw
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// A row for each workload, in place of their mean
    #[arg(long)]
    per_trace: bool,
}

/// The system's name in training documents.
const SYSTEM: &str = "dual_agent";

/// A rule or a learned policy that plays.
#[derive(Clone, Debug)]
enum Player {
    Rule(Rule),
    Trained { name: String, actor: Arc<dyn Actor>, options: EpisodeOptions },
}

impl Player {
    fn name(&self) -> String {
        match self {
            Self::Rule(rule) => rule.to_string(),
            Self::Trained { name, .. } => name.clone(),
        }
    }

    fn play(&self, mut cloud: Cloud, jobs: &[WorldJob], seed: u64) -> Result<DualAgentSummary, PlayError> {
        match self {
            Self::Rule(rule) => {
                cloud.reset(jobs, seed);
                Ok(RulePlayer::new(*rule, seed).run(&mut cloud)?)
            }
            Self::Trained { actor, options, .. } => play(cloud, *options, &**actor, jobs, seed),
        }
    }

    /// The agents of a training's weights, with the part of their training's world that defines what they see.
    fn trained(name_or_path: &str) -> Result<Self, Failure> {
        let trained = learned::read(name_or_path, SYSTEM)?;
        let (actor, options) = read_agents(&trained)
            .map_err(|error| learned::complaint(name_or_path, error.to_string(), SYSTEM))?;
        Ok(Self::Trained { name: learned::name_of(name_or_path), actor, options })
    }
}

pub(super) fn run(arguments: &DualAgentArguments, session: &Session) -> Result<(), Failure> {
    let tables = Tables::embedded()
        .map_err(|error| Failure::Bug { message: format!("the embedded throughputs: {error}") })?;
    let tables = Arc::new(tables);
    let options = options(arguments)?;
    let players = players(arguments)?;
    let workload =
        WorkloadOptions { n_jobs: arguments.jobs, gap_s: arguments.gap, ..WorkloadOptions::default() };
    check_workloads(arguments.traces, arguments.jobs)?;
    let workloads: Vec<(u64, Vec<WorldJob>)> = (0..arguments.traces)
        .map(|index| {
            let seed = arguments.seed.wrapping_add(index as u64);
            let jobs = generate(&tables, &workload, seed);
            Ok((seed, jobs.map_err(|error| Failure::usage(error.to_string(), None))?))
        })
        .collect::<Result<_, Failure>>()?;
    let first = Cloud::new(Arc::clone(&tables), options);
    let pairs: Vec<(usize, usize)> = (0..players.len())
        .flat_map(|player| (0..workloads.len()).map(move |workload| (player, workload)))
        .collect();
    let played = pairs.par_iter().map(|&(player, workload)| {
        let (seed, jobs) = &workloads[workload];
        let name = || format!("{} on seed {seed}", players[player].name());
        let played = players[player].play(first.clone(), jobs, *seed);
        played.map_err(|error| not_played(&name(), &error))
    });
    let played: Vec<DualAgentSummary> = played.collect::<Result<_, _>>()?;
    let runs: Vec<&[DualAgentSummary]> = played.chunks(workloads.len()).collect();
    session.output.table(&table_of(arguments, &players, &workloads, &runs))
}

fn options(arguments: &DualAgentArguments) -> Result<CloudOptions, Failure> {
    let within = |fine: bool, message: String| {
        if fine { Ok(()) } else { Err(Failure::usage(message, None)) }
    };
    let (scale, straggle) = (arguments.scale, arguments.straggle);
    within(
        scale.is_finite() && scale > 0.0 && scale <= 10.0,
        format!("`--scale` is {scale}, expected a number above 0, at most 10"),
    )?;
    within(
        straggle.is_finite() && straggle > 0.0,
        format!("`--straggle` is {straggle}, expected a finite number of hours above 0"),
    )?;
    let (stragglers, times, rack_correlation) =
        (arguments.stragglers, arguments.drift, arguments.rack_correlation);
    within(
        (0.0..=0.9).contains(&stragglers),
        format!("`--stragglers` is {stragglers}, expected a number from 0 to 0.9"),
    )?;
    within((0.0..=10.0).contains(&times), format!("`--drift` is {times}, expected a number from 0 to 10"))?;
    within(
        (0.0..=1.0).contains(&rack_correlation),
        format!("`--rack-correlation` is {rack_correlation}, expected a number from 0 to 1"),
    )?;
    let usual = DriftOptions::default();
    let drift = DriftOptions {
        straggle_s: straggle * HOUR_S,
        stragglers,
        bias: times * usual.bias,
        walk: times * usual.walk,
        rack_correlation,
        ..usual
    };
    let options = CloudOptions { scale, drift, ..CloudOptions::default() };
    let mut options = if arguments.fitted { fitted(options) } else { options };
    if arguments.unrelated {
        options.filter.kernel.walking = 0.0;
        options.switching.steady.kernel.walking = 0.0;
    }
    Ok(options)
}

fn players(arguments: &DualAgentArguments) -> Result<Vec<Player>, Failure> {
    let mut rules =
        if arguments.policy.is_empty() { Rule::all().collect() } else { arguments.policy.clone() };
    if !rules.contains(&arguments.against) {
        rules.insert(0, arguments.against);
    }
    let mut players: Vec<Player> = rules.into_iter().map(Player::Rule).collect();
    for weights in &arguments.weights {
        players.push(Player::trained(weights)?);
    }
    Ok(players)
}

const HOUR_S: f64 = 3600.0;

const COLUMNS: &[Column<DualAgentSummary>] = &[
    Column::quantity("completion_h", |run| run.run.completion_s / HOUR_S, 3),
    Column::quantity("wait_h", |run| run.run.queueing_s / HOUR_S, 3),
    Column::quantity("slowdown", |run| run.slowdown, 2),
    Column::quantity("completion_p50_h", |run| run.run.completion_p50_s / HOUR_S, 2),
    Column::quantity("completion_p95_h", |run| run.completion_p95_s / HOUR_S, 2),
    Column::quantity("completion_p99_h", |run| run.run.completion_p99_s / HOUR_S, 2),
    Column::quantity("slowdown_max", |run| run.slowdown_max, 2),
    Column::quantity("fee_dollars", |run| run.fee, 0),
    Column::quantity("utilization", |run| run.run.utilization, 3),
    Column::count("preemptions", |run| run.run.preemptions),
    Column::count("decisions", |run| run.run.decisions),
    Column::count("jobs_done", |run| run.run.n_done as u64),
];

fn table_of(
    arguments: &DualAgentArguments,
    players: &[Player],
    workloads: &[(u64, Vec<WorldJob>)],
    runs: &[&[DualAgentSummary]],
) -> Table {
    let first = if arguments.per_trace {
        &["policy", "seed"][..]
    } else {
        &["policy", "times_against", "times_low", "times_high", "p"][..]
    };
    let mut table = Table::new(first.iter().copied().chain(COLUMNS.iter().map(|column| column.name)));
    let against = arguments.against.to_string();
    let base = players.iter().position(|player| player.name() == against).unwrap_or(0);
    for (player, of_player) in players.iter().zip(runs) {
        if arguments.per_trace {
            for ((seed, _), run) in workloads.iter().zip(*of_player) {
                let mut row = vec![Cell::from(player.name()), Cell::Count(*seed)];
                row.extend(COLUMNS.iter().map(|column| column.of_run(run)));
                table.push(row);
            }
            continue;
        }
        let both = runs[base].iter().zip(*of_player);
        let pairs: Vec<(f64, f64)> =
            both.map(|(base, own)| (base.run.completion_s, own.run.completion_s)).collect();
        let paired = Paired::of(&pairs);
        let ratio = paired.and_then(|paired| paired.ratio);
        let number = |value: Option<f64>| value.map_or(Cell::Empty, |value| Cell::Number(value, 4));
        let interval = ratio.and_then(|ratio| ratio.interval);
        let mut row = vec![
            Cell::from(player.name()),
            number(paired.map(|paired| paired.factor())),
            number(interval.map(|interval| interval.lower)),
            number(interval.map(|interval| interval.upper)),
            number(ratio.and_then(|ratio| ratio.p)),
        ];
        row.extend(COLUMNS.iter().map(|column| column.of_mean(of_player)));
        table.push(row);
    }
    table
}
