//! One workload as an episode of actions and rewards.

use crate::dl2::Dl2Options;
use crate::dl2::observe::Window;
use crate::dl2::speeds::Dl2Speeds;
use crate::dl2::task::{Tasks, add, least_loaded};
use crate::slots::StepOutcome;
use crate::world::World;
use crate::world::{Part, WorldJob};
use apportion::index::JobId;

/// The reward of a slot.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RewardKind {
    /// The sum over jobs of the part of its work that each did, as published. Over a workload it adds up to the number of jobs
    /// under any policy; discounting makes early work worth more.
    #[default]
    Progress,
    /// Less one for each active job: its sum over a workload is less the jobs' total time in slots.
    ActiveJobs,
}

impl RewardKind {
    /// The reward of a slot, from its progress (the sum over jobs of the part of its work that each did) and the number of jobs at
    /// its start.
    pub(crate) fn of_slot(self, progress: f64, n_active: usize) -> f64 {
        match self {
            Self::Progress => progress,
            Self::ActiveJobs => -(n_active as f64),
        }
    }
}

/// Options of an episode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EpisodeOptions {
    /// The cluster.
    pub cluster: Dl2Options,
    /// Whether each slot starts with a worker and a parameter server for every job, in the window or not.
    pub starting_bundle: bool,
    /// The reward of a slot.
    pub reward: RewardKind,
}

/// An episode: reset, then step until it is done.
#[derive(Clone, Debug)]
pub struct Dl2Episode {
    world: World,
    speeds: Dl2Speeds,
    window: Window,
    options: EpisodeOptions,
    to_start: Vec<JobId>,
    parts: Vec<Part>,
}

impl Dl2Episode {
    /// An episode in a world, without jobs yet.
    pub fn new(world: World, speeds: Dl2Speeds, window: Window, options: EpisodeOptions) -> Self {
        let room = world.rules().parts_max;
        Self { world, speeds, window, options, to_start: Vec::new(), parts: Vec::with_capacity(room) }
    }

    /// Begins an episode with these jobs; `seed` is for the errors of speeds.
    pub fn reset(&mut self, jobs: &[WorldJob], seed: u64) {
        self.speeds.reseed(seed);
        self.world.reset(jobs);
        self.begin_slot();
    }

    /// The world as it is.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The policy's view: jobs, observation and mask.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// Plays an action. An action that is masked, or does not fit the least loaded server, ends the slot and is no sample.
    pub fn step(&mut self, action: usize) -> StepOutcome {
        let void = action + 1 == self.window.n_actions();
        let most = self.options.cluster.tasks_max;
        let chosen =
            self.window.decode(action).filter(|(job, tasks)| tasks.is_allowed(&self.world, *job, most));
        let done = chosen.is_some_and(|(job, tasks)| self.add(job, tasks));
        if done {
            self.window.look(&self.world);
            return StepOutcome { reward: 0.0, valid: true, owner: None, slot_ended: false, done: false };
        }
        let n_active = self.world.active().len();
        let progress = self.world.advance(&mut self.speeds);
        let reward = self.options.reward.of_slot(progress, n_active);
        self.begin_slot();
        StepOutcome { reward, valid: void, owner: None, slot_ended: true, done: self.world.is_done() }
    }

    fn begin_slot(&mut self) {
        self.world.begin_round();
        if self.options.starting_bundle {
            self.to_start.clear();
            self.to_start.extend_from_slice(self.world.active());
            for position in 0..self.to_start.len() {
                self.add(self.to_start[position], Tasks::Bundle);
            }
        }
        self.window.look(&self.world);
    }

    fn add(&mut self, job: JobId, tasks: Tasks) -> bool {
        let Some(server) = least_loaded(&self.world, job, tasks) else { return false };
        let decision = add(&self.world, job, tasks, server, &mut self.parts);
        self.world.apply(decision).is_ok()
    }
}
