//! DL2's world as an environment: see [`dl2`](crate::dl2) for its actions.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::dl2::{
    Arrivals, Dl2Episode, Dl2Options, Dl2Policy, Dl2Rule, Dl2Speeds, EpisodeOptions, ObservationKind,
    RewardKind, SLOT_S, SpeedModel, SpeedOptions, Window, WorkloadError, WorkloadOptions, generate,
    parse_named, world,
};
use crate::slots::{SlotEnvironment, Slots, StepOutcome, check_scaling_cost, is_free, system_of};
use crate::world::{World, WorldPolicy as _};
use apportion::throughput::ThroughputsError;
use apportion::throughput::elastic::{ElasticThroughputs, SurfaceOptions};
use apportion::workload::random::{SeedStreams, Stream};
use apportion_learn::environment::{Environment, Show, Space, Status};
use apportion_learn::system::{Registered, System, SystemError, check_counts, check_seen, options};

/// The system `dl2`.
pub const SYSTEM: Registered = Registered {
    name: "dl2",
    decides: "how many workers and parameter servers each job gets, slot by slot",
    open,
};

fn open(world: &Value) -> Result<System, SystemError> {
    let options: Dl2World = options(world)?;
    check_seen("window", options.window)?;
    let tables = ElasticThroughputs::dl2();
    Ok(system_of((SYSTEM.name, &format!("{tables:?}")), options.environment(&tables)?, demonstrate_rule))
}

/// Options of an environment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dl2EnvironmentOptions {
    /// The cluster, the start of a slot and the reward of a slot.
    pub episode: EpisodeOptions,
    /// The model of speeds; their errors follow the seed of the episode.
    pub speeds: SpeedOptions,
    /// Workloads, drawn anew for each seed.
    pub workload: WorkloadOptions,
    /// The numbers that are observed of a job.
    pub observation: ObservationKind,
    /// The number of jobs in view.
    pub n_window: usize,
    /// Steps after which an episode is cut off.
    pub step_limit: u64,
}

/// DL2's world with its workloads, one for each seed.
#[derive(Clone, Debug)]
pub struct Dl2Slots {
    tables: Arc<ElasticThroughputs>,
    options: Dl2EnvironmentOptions,
    episode: Dl2Episode,
}

/// Episodes of DL2's world.
pub type Dl2Environment = SlotEnvironment<Dl2Slots>;

/// Why an environment cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Dl2EnvironmentError {
    /// No such workload can be drawn.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// There is no surface of speeds.
    #[error(transparent)]
    Speeds(#[from] ThroughputsError),
}

impl Dl2Environment {
    /// Episodes of jobs of `tables`.
    ///
    /// # Errors
    /// If no such workload can be drawn, or the tables carry no speeds.
    pub fn new(
        tables: Arc<ElasticThroughputs>,
        options: Dl2EnvironmentOptions,
    ) -> Result<Self, Dl2EnvironmentError> {
        generate(&tables, &options.workload, 0)?;
        let epochs = tables.job_types.iter().map(|job_type| job_type.samples_per_epoch).collect();
        let tasks_max = options.episode.cluster.tasks_max;
        let window = Window::new(options.observation, options.n_window, tasks_max, epochs);
        // Slots since arrival are at most the steps, and epochs at most the longest job's.
        let most = (options.step_limit as f32).max(options.workload.epochs_max as f32).max(100.0);
        let space = Space::uniform(window.n_rows() * window.n_jobs(), (-most, most), window.n_actions());
        let speeds = Dl2Speeds::new(&tables, options.speeds)?;
        let episode =
            Dl2Episode::new(world(&tables, options.episode.cluster), speeds, window, options.episode);
        let slots = Dl2Slots { tables, options, episode };
        Ok(Self::of_slots(slots, space, (SLOT_S, options.step_limit)))
    }
}

impl Slots for Dl2Slots {
    fn begin(&mut self, seed: u64) {
        let jobs = generate(&self.tables, &self.options.workload, seed);
        self.episode.reset(&jobs.unwrap_or_default(), seed);
    }

    fn world(&self) -> &World {
        self.episode.world()
    }

    fn observe(&self, observation: &mut [f32], mask: &mut [bool]) {
        let window = self.episode.window();
        window.observe(self.episode.world(), observation);
        window.mask(self.episode.world(), mask);
    }

    fn step(&mut self, action: usize) -> StepOutcome {
        self.episode.step(action)
    }
}

/// Options of the world of `dl2`. The defaults are the published workload of the small cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Dl2World {
    /// Number of servers.
    pub servers: usize,
    /// The most workers of a job, and the most parameter servers.
    pub tasks: u16,
    /// Jobs of an episode.
    pub jobs: usize,
    /// The process by which jobs arrive.
    pub arrivals: Arrivals,
    /// The most arrivals in a slot.
    pub rate: u32,
    /// About the number of epochs of the longest job.
    pub epochs: u32,
    /// The numbers that are observed of a job.
    pub observation: ObservationKind,
    /// The number of jobs in view.
    pub window: usize,
    /// The reward of a slot.
    pub reward: RewardKind,
    /// Whether each slot starts with a worker and a parameter server for every job.
    pub starting_bundle: bool,
    /// Whether speeds are as in the published simulator: failed runs count as measurements, and speeds are extrapolated.
    pub released: bool,
    /// Steps after which an episode is cut off.
    pub step_limit: u64,
    /// Time that a job stands still in a slot in which it holds other tasks than in the slot before.
    #[serde(skip_serializing_if = "is_free")]
    #[schemars(extend("x-unit" = "s"))]
    pub scaling_cost_s: f64,
}

impl Default for Dl2World {
    fn default() -> Self {
        let workload = WorkloadOptions::default();
        Self {
            servers: 48,
            tasks: 16,
            jobs: workload.n_jobs,
            arrivals: workload.arrivals,
            rate: workload.rate,
            epochs: workload.epochs_max,
            observation: ObservationKind::Scaled,
            window: 20,
            reward: RewardKind::Progress,
            starting_bundle: true,
            released: false,
            step_limit: 200_000,
            scaling_cost_s: 0.0,
        }
    }
}

impl Dl2World {
    /// An environment of these options, still to be reset.
    pub(super) fn environment(&self, tables: &Arc<ElasticThroughputs>) -> Result<Dl2Environment, String> {
        let counts = [
            ("servers", self.servers as u64),
            ("tasks", u64::from(self.tasks)),
            ("jobs", self.jobs as u64),
            ("window", self.window as u64),
            ("epochs", u64::from(self.epochs)),
        ];
        check_counts(&counts, self.step_limit)?;
        check_scaling_cost(self.scaling_cost_s)?;
        Dl2Environment::new(Arc::clone(tables), self.options()).map_err(|error| error.to_string())
    }

    /// The options of an environment of this world.
    pub fn options(&self) -> Dl2EnvironmentOptions {
        let surface = if self.released { SurfaceOptions::PUBLISHED } else { SurfaceOptions::CORRECTED };
        let (tasks_max, n_window) = (self.tasks, self.window);
        Dl2EnvironmentOptions {
            episode: EpisodeOptions {
                cluster: Dl2Options {
                    n_servers: self.servers,
                    tasks_max,
                    scaling_cost_s: self.scaling_cost_s,
                    ..Dl2Options::default()
                },
                starting_bundle: self.starting_bundle,
                reward: self.reward,
            },
            speeds: SpeedOptions { model: SpeedModel::Measured(surface), error: 0.0, seed: 0, tasks_max },
            workload: WorkloadOptions {
                n_jobs: self.jobs,
                arrivals: self.arrivals,
                rate: self.rate,
                epochs_max: self.epochs,
                ..WorkloadOptions::default()
            },
            observation: self.observation,
            n_window,
            step_limit: self.step_limit,
        }
    }
}

/// Plays the episode of a seed as a rule of the world decides, and shows each observation, mask and action as the published trainer
/// records them: columns are shuffled each time, and bundles of DRF, FIFO and SRTF become a worker, then a parameter server. Tasks
/// for jobs out of view are shown as *nothing*.
///
/// # Errors
/// If there is no such rule.
pub(super) fn demonstrate_rule(
    environment: &mut Dl2Environment,
    rule: &str,
    seed: u64,
    show: &mut Show<'_>,
) -> Result<(), String> {
    let (_, rule) = parse_named(rule)?;
    let splits = matches!(rule, Dl2Rule::Drf(_) | Dl2Rule::Fifo | Dl2Rule::Srtf);
    let Dl2EnvironmentOptions { episode, speeds, n_window, .. } = environment.slots().options;
    let tasks_max = episode.cluster.tasks_max;
    let speeds = Dl2Speeds::new(&environment.slots().tables, speeds);
    let mut policy = Dl2Policy::new(rule, speeds.map_err(|error| error.to_string())?, tasks_max, seed);
    let space = &environment.spaces()[0];
    let (length, n_actions) = (space.observation_length(), space.n_actions);
    let (mut seen, mut mask) = (vec![0.0; length], vec![false; n_actions]);
    let mut columns = Columns::new(n_window, seed);
    environment.reset(seed);
    policy.begin(environment.slots().world());
    let mut other_half = None;
    loop {
        environment.observe(&mut seen, &mut mask);
        let action = other_half.take().unwrap_or_else(|| {
            policy.next_action(environment.slots().world(), environment.slots().episode.window())
        });
        let mut action = if mask[action] { action } else { n_actions - 1 };
        if splits && action + 1 < n_actions && action % 3 == 2 {
            // The job stays in its column after the worker: it may still have more of either role.
            (action, other_half) = (action - 2, Some(action - 1));
        }
        columns.show(&seen, &mask, action, show);
        match environment.step(action) {
            Ok(transition) if transition.status != Status::Running => return Ok(()),
            Ok(transition) if transition.rounds > 0 => {
                other_half = None;
                policy.begin(environment.slots().world());
            }
            Ok(_) => {}
            Err(refused) => return Err(refused.to_string()),
        }
    }
}

/// A shower of examples with the columns of the window in random order.
struct Columns {
    order: Vec<usize>,
    draws: Stream,
    seen: Vec<f32>,
    mask: Vec<bool>,
}

impl Columns {
    fn new(n_columns: usize, seed: u64) -> Self {
        let draws = SeedStreams::new(seed).stream("columns of the teacher");
        Self { order: (0..n_columns).collect(), draws, seen: Vec::new(), mask: Vec::new() }
    }

    fn show(&mut self, seen: &[f32], mask: &[bool], action: usize, show: &mut Show<'_>) {
        let n = self.order.len();
        self.draws.shuffle(&mut self.order);
        self.seen.clear();
        self.seen.extend((0..seen.len()).map(|at| seen[at / n * n + self.order[at % n]]));
        self.mask.clear();
        self.mask.extend((0..3 * n).map(|at| mask[3 * self.order[at / 3] + at % 3]));
        self.mask.extend(&mask[3 * n..]);
        let column = self.order.iter().position(|column| *column == action / 3);
        show(0, &self.seen, &self.mask, column.map_or(action, |column| 3 * column + action % 3));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion_learn::actor::{Choice, UniformActor};
    use apportion_learn::checker::{CheckOptions, check};
    use apportion_learn::evaluation::play;

    #[test]
    fn it_passes_the_check() {
        let kinds = [ObservationKind::Released, ObservationKind::Scaled, ObservationKind::Paper];
        for (observation, error) in kinds.into_iter().zip([0.0, 0.2, 0.0]) {
            let cluster = Dl2Options { n_servers: 4, ..Dl2Options::default() };
            let make = |step_limit| {
                let options = Dl2EnvironmentOptions {
                    episode: EpisodeOptions { cluster, starting_bundle: true, reward: RewardKind::Progress },
                    speeds: SpeedOptions {
                        model: SpeedModel::Measured(SurfaceOptions::CORRECTED),
                        error,
                        seed: 0,
                        tasks_max: cluster.tasks_max,
                    },
                    workload: WorkloadOptions { n_jobs: 6, epochs_max: 300, ..WorkloadOptions::default() },
                    observation,
                    n_window: 5,
                    step_limit,
                };
                Dl2Environment::new(ElasticThroughputs::dl2(), options).unwrap()
            };
            let report = check(|| make(2_000), CheckOptions { n_episodes: 2, ..CheckOptions::default() });
            report.assert_passed();
            assert_eq!(report.n_terminated, 2);
            check(|| make(9), CheckOptions { n_episodes: 1, ..CheckOptions::default() }).assert_passed();
        }
    }

    #[test]
    fn an_actor_is_judged_by_completion_times() {
        let small = Dl2World { servers: 4, jobs: 6, epochs: 300, window: 5, ..Dl2World::default() };
        let environment = small.environment(&ElasticThroughputs::dl2()).unwrap();
        let judged = environment.clone().judge(&UniformActor, Choice::Sampled, 1).unwrap();
        let played = play(&mut environment.clone(), &UniformActor, Choice::Sampled, 1).unwrap();
        assert!((played.total_reward - 6.0).abs() < 1e-3, "parts of the work of six jobs");
        assert!(judged.total_reward < 0.0 && judged.n_steps == played.n_steps, "{judged:?}");
        let step_limit = judged.n_steps as u64 - 1;
        let small = Dl2World { step_limit, ..small };
        let cut_off = small.environment(&ElasticThroughputs::dl2()).unwrap();
        let left_over = cut_off.judge(&UniformActor, Choice::Sampled, 1).unwrap();
        assert!(left_over.total_reward < judged.total_reward, "{left_over:?}");
        assert_eq!(left_over.total_reward, -(step_limit as f64));
    }

    #[test]
    fn a_rule_shows_what_it_does() {
        let small = Dl2World { servers: 4, jobs: 6, epochs: 300, window: 5, ..Dl2World::default() };
        let mut environment = small.environment(&ElasticThroughputs::dl2()).unwrap();
        let mut counted = |rule: &str| {
            let (mut kinds, mut columns) = ([0; 4], [0; 5]);
            let mut show = |_: usize, seen: &[f32], mask: &[bool], action: usize| {
                assert_eq!((seen.len(), mask.len(), mask[action]), (13 * 5, 16, true));
                for column in 0..5 {
                    // Observation and mask have been shuffled alike: only columns with a job have allowed actions.
                    let is_there = (0..8).any(|row| seen[row * 5 + column] > 0.0);
                    assert!(is_there || (0..3).all(|kind| !mask[3 * column + kind]));
                }
                kinds[if action == 15 { 3 } else { action % 3 }] += 1;
                if action < 15 {
                    columns[action / 3] += 1;
                }
            };
            demonstrate_rule(&mut environment, rule, 1, &mut show).unwrap();
            (kinds, columns)
        };
        let (kinds, columns) = counted("drf");
        assert!(kinds[0] > 0 && kinds[1] > 0 && kinds[2] == 0, "no bundles: {kinds:?}");
        assert!(
            kinds[0] - kinds[1] <= kinds[3] + 1,
            "a worker without the other half ends the slot: {kinds:?}"
        );
        assert!(columns.iter().all(|n| *n > 0), "all columns: {columns:?}");
        let (kinds, _) = counted("tetris");
        assert!(kinds[2] > 0 && kinds[0] + kinds[1] == 0, "bundles alone: {kinds:?}");
        let unknown = demonstrate_rule(&mut environment, "drff", 1, &mut |_, _, _, _| {}).unwrap_err();
        assert!(unknown.contains("unknown policy `drff`"), "{unknown}");
    }
}
