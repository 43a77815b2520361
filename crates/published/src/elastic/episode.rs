//! One workload as an episode of actions and rewards, and the observations of learned policies.

use std::sync::Arc;

use crate::elastic::climb::Climb;
use crate::elastic::ladders::{Ladders, RUNGS};
use crate::elastic::rules::remaining_alone_s;
use crate::elastic::{SLOT_S, dominant_share};
use crate::slots::StepOutcome;
use crate::world::ACCELERATOR;
use crate::world::World;
use crate::world::{Part, Role, WorldJob};
use apportion::index::{Id, JobId, ServerId, WorkerTypeId};

/// Length of the part of a job's column that does not depend on the worker type.
const N_OF_JOB: usize = 4;

/// Length of the part of a job's column for each worker type.
const N_OF_TYPE: usize = 3;

/// Length of an action's row.
pub const N_OF_PAIR: usize = 13;

/// Positions in an action's row, as [`Window`] numbers them: log₂ of 1 + the workers that the job holds, / 3; jobs without workers
/// over free workers; the flag of *nothing*.
pub const HELD: usize = 5;
const CROWDING: usize = 10;
const NOTHING: usize = 12;

/// The largest magnitude of a number in an observation.
pub const SEEN_MAX: f32 = 100.0;

/// A kind of observation of jobs.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ObservationKind {
    /// A column of numbers for each job, as in DL2: for dense layers.
    #[default]
    Window,
    /// A row of numbers for each action: for a network that scores one row at a time.
    Pairs,
    /// The rows of `pairs`, which also say whether a climb leads to the workers that the job last ran with, where scaling costs
    /// something.
    KeptPairs,
}

/// The jobs in a policy's view: jobs that have arrived and can climb, by (arrival, id). For a job that cannot run with one worker,
/// *one worker* below means the fewest that it can have.
///
/// With [`ObservationKind::Window`] an observation is [number × column], row-major, zeros for columns without a job, and then the
/// free part of each worker type:
///
/// | number | what |
/// |---|---|
/// | 0 | slots since arrival / 100 |
/// | 1 | ln of 1 + hours that remain with one worker of its fastest type; / 4 |
/// | 2, 3 | dominant share; workers / 8 |
/// | 4 + 3t | whether it holds workers of type t |
/// | 5 + 3t | speed with one worker of type t over that with one of its fastest |
/// | 6 + 3t | speed that it would gain by climbing on type t, for each worker more, over the same; 0 if it cannot |
///
/// With [`ObservationKind::Pairs`] or [`ObservationKind::KeptPairs`] it is [action × number], zeros for climbs that do not exist:
///
/// | number | what |
/// |---|---|
/// | 0 | ln of 1 + hours since the job arrived; / 4 |
/// | 1 | ln of 1 + hours that remain with one worker of its fastest type; / 4 |
/// | 2 | ln of 1 + hours that remain after the climb; / 4 |
/// | 3 | speed with one worker of the type over that with one of its fastest |
/// | 4 | speed that it gains, for each worker more, over the same |
/// | 5, 6 | log₂ of 1 + the workers that it holds, and will hold; / 3 |
/// | 7 | ln of the speed after over the speed before, for each worker more; 0 if it holds none |
/// | 8 | dominant share |
/// | 9 | free part of the type |
/// | 10 | ln of jobs without workers over free workers, 1 added to both; / 2 |
/// | 11 | part of the other jobs that have less left with one worker of their fastest type |
/// | 12 | 1 for *nothing*, which has 0 for all else but number 10; with `KeptPairs` ½ for climbs on the way to what the job last ran with, −½ away from it |
#[derive(Clone, Debug)]
pub struct Window {
    observation_kind: ObservationKind,
    n_jobs: usize,
    n_worker_types: usize,
    jobs: Vec<JobId>,
}

impl Window {
    /// A window of `n_jobs` columns.
    pub fn new(observation_kind: ObservationKind, n_jobs: usize, ladders: &Ladders) -> Self {
        Self {
            observation_kind,
            n_jobs,
            n_worker_types: ladders.n_worker_types(),
            jobs: Vec::with_capacity(n_jobs),
        }
    }

    /// The number of actions: a climb for each column and worker type, and *nothing*, the last.
    pub const fn n_actions(&self) -> usize {
        self.n_worker_types * self.n_jobs + 1
    }

    /// Length of an observation.
    pub const fn length(&self) -> usize {
        Self::length_of(self.observation_kind, self.n_jobs, self.n_worker_types)
    }

    /// Length of an observation of `n_jobs` columns and `n_worker_types` worker types.
    pub(super) const fn length_of(kind: ObservationKind, n_jobs: usize, n_worker_types: usize) -> usize {
        match kind {
            ObservationKind::Window => (N_OF_JOB + N_OF_TYPE * n_worker_types) * n_jobs + n_worker_types,
            ObservationKind::Pairs | ObservationKind::KeptPairs => (n_worker_types * n_jobs + 1) * N_OF_PAIR,
        }
    }

    fn types(&self) -> impl Iterator<Item = WorkerTypeId> + use<> {
        (0..self.n_worker_types).map(WorkerTypeId::from_index)
    }

    fn look(&mut self, world: &World, ladders: &Ladders) {
        let types = self.n_worker_types;
        let open = |job: &&JobId| {
            (0..types).any(|at| Climb::find(world, ladders, **job, WorkerTypeId::from_index(at)).is_some())
        };
        self.jobs.clear();
        self.jobs.extend(world.active().iter().filter(open).take(self.n_jobs));
    }

    /// The action of a climb, if its job is in view.
    pub fn encode(&self, climb: Climb) -> Option<usize> {
        let column = self.jobs.iter().position(|job| *job == climb.job)?;
        Some(self.n_worker_types * column + climb.worker_type.index())
    }

    fn decode(&self, world: &World, ladders: &Ladders, action: usize) -> Option<Climb> {
        let job = *self.jobs.get(action / self.n_worker_types)?;
        Climb::find(world, ladders, job, WorkerTypeId::from_index(action % self.n_worker_types))
    }

    fn observe(&self, world: &World, ladders: &Ladders, observation: &mut [f32]) {
        observation.fill(0.0);
        match self.observation_kind {
            ObservationKind::Window => self.observe_columns(world, ladders, observation),
            ObservationKind::Pairs | ObservationKind::KeptPairs => {
                self.observe_pairs(world, ladders, observation);
            }
        }
    }

    /// Writes a row for each climb that exists and zeros for others; the row of *nothing* has the crowding and the flag.
    fn observe_pairs(&self, world: &World, ladders: &Ladders, observation: &mut [f32]) {
        let crowding = crowding(world);
        for (action, row) in observation.chunks_exact_mut(N_OF_PAIR).enumerate() {
            if action + 1 == self.n_actions() {
                (row[CROWDING], row[NOTHING]) = (crowding, 1.0);
            } else if let Some(climb) = self.decode(world, ladders, action) {
                of_pair(world, ladders, climb, row);
                row[CROWDING] = crowding;
                if self.observation_kind == ObservationKind::KeptPairs {
                    row[NOTHING] = towards_kept(world, climb);
                }
            }
        }
    }

    fn observe_columns(&self, world: &World, ladders: &Ladders, observation: &mut [f32]) {
        for (column, &job) in self.jobs.iter().enumerate() {
            let mut row = 0;
            let mut write = |value: f64| {
                observation[row * self.n_jobs + column] = bounded(value);
                row += 1;
            };
            let job_type = world.job(job).job_type;
            let workers = world.tasks(job, Role::Worker);
            write((world.now_s() - world.job(job).arrival_s) / SLOT_S / 100.0);
            write((remaining_alone_s(world, ladders, job) / 3600.0).ln_1p() / 4.0);
            write(dominant_share(world, job));
            write(f64::from(workers) / f64::from(RUNGS[RUNGS.len() - 1]));
            let fastest = ladders.fastest_alone(job_type);
            for worker_type in self.types() {
                let holds = world.parts(job).iter().any(|part| part.server.index() == worker_type.index());
                write(f64::from(u8::from(holds)));
                write(ladders.with_fewest(job_type, worker_type) / fastest);
                let gained = Climb::find(world, ladders, job, worker_type).map_or(0.0, |climb| {
                    let gained = climb.steps_per_s(world, ladders) - ladders.of_job(world, job);
                    gained / fastest / f64::from(climb.workers - workers)
                });
                write(gained);
            }
        }
        let n_of_jobs = self.length() - self.n_worker_types;
        for (free, server) in observation[n_of_jobs..].iter_mut().zip(world.servers().ids()) {
            let all = world.servers().capacity(server)[ACCELERATOR].max(1);
            *free = f32::from(world.free(server)[ACCELERATOR]) / f32::from(all);
        }
    }

    fn mask(&self, world: &World, ladders: &Ladders, mask: &mut [bool]) {
        let nothing = self.n_actions() - 1;
        for (action, allowed) in mask.iter_mut().enumerate() {
            *allowed = action == nothing || self.decode(world, ladders, action).is_some();
        }
    }
}

fn bounded(value: f64) -> f32 {
    #[expect(clippy::cast_possible_truncation, reason = "networks are of single precision")]
    let value = value as f32;
    value.clamp(-SEEN_MAX, SEEN_MAX)
}

/// ln of jobs without workers over free workers, 1 added to both; / 2.
fn crowding(world: &World) -> f32 {
    let free = world.servers().total()[ACCELERATOR] - world.used_total()[ACCELERATOR];
    bounded(((world.waiting().len() as f64 + 1.0) / (f64::from(free) + 1.0)).ln() / 2.0)
}

/// ½ for a climb on the way to the workers that its job last ran with, −½ for other climbs; 0 if the job has not run, or its
/// workers are not stored.
fn towards_kept(world: &World, climb: Climb) -> f32 {
    let ran_with = |worker_type: WorkerTypeId| world.ran_with(climb.job, worker_type, Role::Worker);
    let ran = (0..world.servers().n_worker_types()).any(|at| ran_with(WorkerTypeId::from_index(at)) > 0);
    match (ran, climb.workers <= ran_with(climb.worker_type)) {
        (false, _) => 0.0,
        (true, true) => 0.5,
        (true, false) => -0.5,
    }
}

/// Writes the row of a climb, as [`Window`] lists it, without the crowding.
fn of_pair(world: &World, ladders: &Ladders, climb: Climb, row: &mut [f32]) {
    let Climb { job, worker_type, workers } = climb;
    let held = world.tasks(job, Role::Worker);
    let more = f64::from(workers - held);
    let job_type = world.job(job).job_type;
    let fastest = ladders.fastest_alone(job_type);
    let (before, after) = (ladders.of_job(world, job), climb.steps_per_s(world, ladders));
    let left_s = remaining_alone_s(world, ladders, job);
    let others = world.active().iter().filter(|other| **other != job);
    let shorter = others.filter(|other| remaining_alone_s(world, ladders, **other) < left_s).count();
    let server = ServerId::from_index(worker_type.index());
    let free = f64::from(world.free(server)[ACCELERATOR]);
    let numbers = [
        ((world.now_s() - world.job(job).arrival_s) / 3600.0).ln_1p() / 4.0,
        (left_s / 3600.0).ln_1p() / 4.0,
        (left_s * fastest / after / 3600.0).ln_1p() / 4.0,
        ladders.with_fewest(job_type, worker_type) / fastest,
        (after - before) / fastest / more,
        f64::from(1 + held).log2() / 3.0,
        f64::from(1 + workers).log2() / 3.0,
        if held == 0 { 0.0 } else { (after / before).ln() / more },
        dominant_share(world, job),
        free / f64::from(world.servers().capacity(server)[ACCELERATOR].max(1)),
        0.0,
        shorter as f64 / (world.active().len() - 1).max(1) as f64,
    ];
    for (number, value) in row.iter_mut().zip(numbers) {
        *number = bounded(value);
    }
}

/// The reward of actions.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ElasticReward {
    /// For a slot, the sum over jobs of the part of its work that each does in it, as published for DL2.
    #[default]
    Progress,
    /// For a slot, less one for each active job.
    ActiveJobs,
    /// For a climb, the additional part of its work that its job does in the slot because of it. The sum over a slot is that of
    /// `progress`, but attributed to jobs. The cost of resizing is not subtracted.
    OwnProgress,
}

/// An episode: reset, then step until it is done.
#[derive(Clone, Debug)]
pub struct ElasticEpisode {
    world: World,
    ladders: Arc<Ladders>,
    window: Window,
    reward: ElasticReward,
    part: [Part; 1],
}

impl ElasticEpisode {
    /// An episode in a world, without jobs yet; `n_window` is the number of jobs in view.
    pub fn new(
        world: World,
        ladders: Arc<Ladders>,
        (observation_kind, n_window): (ObservationKind, usize),
        reward: ElasticReward,
    ) -> Self {
        let window = Window::new(observation_kind, n_window, &ladders);
        Self { world, ladders, window, reward, part: [Part::workers(Id::from_index(0), 1)] }
    }

    /// Begins an episode with these jobs.
    pub fn reset(&mut self, jobs: &[WorldJob]) {
        self.world.reset(jobs);
        self.begin_slot();
    }

    /// The world as it is.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The jobs in view.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// Writes the observation: see [`Window`].
    ///
    /// # Panics
    /// If `observation` is not of the window's length.
    pub fn observe(&self, observation: &mut [f32]) {
        self.window.observe(&self.world, &self.ladders, observation);
    }

    /// Writes the mask of actions that may be chosen; *nothing* always may.
    pub fn mask(&self, mask: &mut [bool]) {
        self.window.mask(&self.world, &self.ladders, mask);
    }

    /// Plays an action. The slot ends with the action *nothing*, or when no job in view can climb.
    pub fn step(&mut self, action: usize) -> StepOutcome {
        let (mut own, mut owner) = (0.0, None);
        if let Some(climb) = self.window.decode(&self.world, &self.ladders, action) {
            own = self.own_progress(climb);
            owner = Some(climb.job).filter(|_| self.reward == ElasticReward::OwnProgress);
            if self.climb(climb) {
                return StepOutcome { reward: own, valid: true, owner, slot_ended: false, done: false };
            }
        }
        let n_active = self.world.active().len();
        let progress = self.world.advance(&mut &*self.ladders);
        let reward = match self.reward {
            ElasticReward::Progress => progress,
            ElasticReward::ActiveJobs => -(n_active as f64),
            ElasticReward::OwnProgress => own,
        };
        self.begin_slot();
        StepOutcome { reward, valid: true, owner, slot_ended: true, done: self.world.is_done() }
    }

    /// Plays an action without ending the slot. False if it was *nothing*, or no job in view can climb any more.
    pub fn play(&mut self, action: usize) -> bool {
        let climb = self.window.decode(&self.world, &self.ladders, action);
        climb.is_some_and(|climb| self.climb(climb))
    }

    /// Whether any job is in view, all of which can climb.
    pub fn is_open(&self) -> bool {
        !self.window.jobs.is_empty()
    }

    /// Makes a climb, and says whether any job can climb after it.
    fn climb(&mut self, climb: Climb) -> bool {
        let decision = climb.decision(&self.world, &mut self.part);
        let applied = self.world.apply(decision);
        debug_assert!(applied.is_ok(), "what was found fits");
        self.window.look(&self.world, &self.ladders);
        self.is_open()
    }

    /// The reward of a climb by itself; 0 unless the reward is [`ElasticReward::OwnProgress`].
    fn own_progress(&self, climb: Climb) -> f64 {
        if self.reward != ElasticReward::OwnProgress {
            return 0.0;
        }
        let work = self.world.job(climb.job).work;
        let left = work - self.world.progress(climb.job);
        let done = |steps_per_s: f64| (steps_per_s * SLOT_S).min(left);
        let (before, after) =
            (self.ladders.of_job(&self.world, climb.job), climb.steps_per_s(&self.world, &self.ladders));
        (done(after) - done(before)) / work
    }

    fn begin_slot(&mut self) {
        self.world.begin_round();
        self.window.look(&self.world, &self.ladders);
    }
}
