//! The view of a learned policy: a window of jobs, a column each, and its actions.

use crate::dl2::task::Tasks;
use crate::dl2::{SLOT_S, dominant_share};
use crate::world::Role;
use crate::world::World;
use apportion::index::{Id, JobId};

/// A kind of observation, by its rows.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ObservationKind {
    /// The raw rows of the released source: job type from 1, slots since arrival, remaining part, dominant share, workers,
    /// parameter servers.
    Released,
    /// Scaled rows: one per job type (one of them 1), slots since arrival / 100, remaining part, dominant share, workers and
    /// parameter servers, each / the most that a job may have.
    #[default]
    Scaled,
    /// The rows of the publication: one per job type (one of them 1), slots in which the job ran, remaining epochs, dominant share,
    /// workers, parameter servers.
    Paper,
}

/// The jobs in a policy's view: active jobs, by (arrival, id), without those that have the most tasks of both roles.
#[derive(Clone, Debug)]
pub struct Window {
    kind: ObservationKind,
    n_jobs: usize,
    tasks_max: u16,
    /// Samples of an epoch: [job type].
    samples_per_epoch: Vec<f64>,
    jobs: Vec<JobId>,
}

impl Window {
    /// A window of `n_jobs` columns.
    pub fn new(kind: ObservationKind, n_jobs: usize, tasks_max: u16, samples_per_epoch: Vec<f64>) -> Self {
        Self { kind, n_jobs, tasks_max, samples_per_epoch, jobs: Vec::with_capacity(n_jobs) }
    }

    /// The number of columns, one a job.
    pub const fn n_jobs(&self) -> usize {
        self.n_jobs
    }

    /// The number of rows: numbers of each job.
    pub fn n_rows(&self) -> usize {
        match self.kind {
            ObservationKind::Released => 6,
            ObservationKind::Scaled | ObservationKind::Paper => self.samples_per_epoch.len() + 5,
        }
    }

    /// The number of actions: three for each column, and *nothing*, the last.
    pub const fn n_actions(&self) -> usize {
        3 * self.n_jobs + 1
    }

    /// Takes the jobs of the world into view.
    pub fn look(&mut self, world: &World) {
        self.jobs.clear();
        let open = |job: &&JobId| {
            let below = |role| world.tasks(**job, role) < self.tasks_max;
            below(Role::Worker) || below(Role::ParameterServer)
        };
        self.jobs.extend(world.active().iter().filter(open).take(self.n_jobs));
    }

    /// The jobs in view.
    pub fn jobs(&self) -> &[JobId] {
        &self.jobs
    }

    /// Writes the observation of the jobs in view: [row × column], row-major, zeros for columns without a job.
    ///
    /// # Panics
    /// If `observation` is too short.
    pub fn observe(&self, world: &World, observation: &mut [f32]) {
        let column = |job: &JobId| {
            let job = *job;
            let job_type = world.job(job).job_type.index();
            let left = world.remaining_fraction(job);
            let tasks = |role| f64::from(world.tasks(job, role));
            let (slots, left) = if self.kind == ObservationKind::Paper {
                let epochs = left * world.job(job).work_estimated / self.samples_per_epoch[job_type];
                (world.service_s(job) / SLOT_S, epochs)
            } else {
                ((world.now_s() - world.job(job).arrival_s) / SLOT_S, left)
            };
            let (workers, servers) = (tasks(Role::Worker), tasks(Role::ParameterServer));
            (job_type, [slots, left, dominant_share(world, job), workers, servers])
        };
        self.write(self.jobs.iter().map(column), observation);
    }

    /// Writes columns of jobs as [`observe`](Self::observe) does. A column is (job type, [slots, what is left, dominant share,
    /// workers, parameter servers]), without scaling.
    ///
    /// # Panics
    /// If `observation` is too short.
    pub fn write(&self, columns: impl Iterator<Item = (usize, [f64; 5])>, observation: &mut [f32]) {
        let observation = &mut observation[..self.n_rows() * self.n_jobs];
        observation.fill(0.0);
        for (column, (job_type, numbers)) in columns.enumerate() {
            let mut row = 0;
            let mut write = |value: f64| {
                #[expect(clippy::cast_possible_truncation, reason = "networks are of single precision")]
                let value = value as f32;
                observation[row * self.n_jobs + column] = value;
                row += 1;
            };
            if self.kind == ObservationKind::Released {
                write((job_type + 1) as f64);
            } else {
                for other in 0..self.samples_per_epoch.len() {
                    write(f64::from(u8::from(other == job_type)));
                }
            }
            let [slots, left, share, workers, servers] = numbers;
            let most = f64::from(self.tasks_max);
            let numbers = match self.kind {
                ObservationKind::Scaled => [slots / 100.0, left, share, workers / most, servers / most],
                ObservationKind::Released | ObservationKind::Paper => numbers,
            };
            numbers.into_iter().for_each(&mut write);
        }
    }

    /// Writes the mask of actions that may be chosen: those within the most tasks, whether they fit a server or not, and *nothing*
    /// always.
    ///
    /// # Panics
    /// If `mask` is too short.
    pub fn mask(&self, world: &World, mask: &mut [bool]) {
        let mask = &mut mask[..self.n_actions()];
        mask.fill(false);
        mask[3 * self.n_jobs] = true;
        for (column, &job) in self.jobs.iter().enumerate() {
            for (kind, tasks) in Tasks::ALL.into_iter().enumerate() {
                mask[3 * column + kind] = tasks.is_allowed(world, job, self.tasks_max);
            }
        }
    }

    /// The action of these tasks for a job, if the job is in view.
    pub(super) fn encode(&self, job: JobId, tasks: Tasks) -> Option<usize> {
        let column = self.jobs.iter().position(|other| *other == job)?;
        Some(3 * column + Tasks::ALL.iter().position(|other| *other == tasks)?)
    }

    /// The job and tasks of an action; none for *nothing*, and for a column without a job.
    pub(super) fn decode(&self, action: usize) -> Option<(JobId, Tasks)> {
        Some((*self.jobs.get(action / 3)?, Tasks::ALL[action % 3]))
    }
}
