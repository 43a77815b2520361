//! What a learned policy sees: a window of jobs, a column each; and which actions it has.

use crate::dl2::task::Tasks;
use crate::dl2::{SLOT_S, dominant_share};
use crate::world::Role;
use crate::world::World;
use apportion::index::{Id, JobId};

/// Rows of an observation.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ObservationKind {
    /// As the source has it, raw: type 1…, slots since arrival, part that remains, dominant share, workers, parameter
    /// servers.
    Released,
    /// A row per type (one of them 1), slots since arrival / 100, part that remains, dominant share, workers and parameter
    /// servers / the most.
    #[default]
    Scaled,
    /// As the publication has it: a row per type (one of them 1), slots in which it ran, epochs that remain, dominant share,
    /// workers, parameter servers.
    Paper,
}

/// The jobs that a policy sees: jobs that have arrived, by (arrival, id), without jobs that have the most tasks of both roles.
#[derive(Clone, Debug)]
pub struct Window {
    kind: ObservationKind,
    n_jobs: usize,
    tasks_max: u16,
    /// Samples of an epoch: [job type]
    samples_per_epoch: Vec<f64>,
    jobs: Vec<JobId>,
}

impl Window {
    /// A window of `n_jobs` columns.
    pub fn new(kind: ObservationKind, n_jobs: usize, tasks_max: u16, samples_per_epoch: Vec<f64>) -> Self {
        Self { kind, n_jobs, tasks_max, samples_per_epoch, jobs: Vec::with_capacity(n_jobs) }
    }

    /// Columns: jobs.
    pub const fn n_jobs(&self) -> usize {
        self.n_jobs
    }

    /// Rows: what is said of each.
    pub fn n_rows(&self) -> usize {
        match self.kind {
            ObservationKind::Released => 6,
            ObservationKind::Scaled | ObservationKind::Paper => self.samples_per_epoch.len() + 5,
        }
    }

    /// Actions: three for each column, and nothing, the last.
    pub const fn n_actions(&self) -> usize {
        3 * self.n_jobs + 1
    }

    /// Looks at the world.
    pub fn look(&mut self, world: &World) {
        self.jobs.clear();
        let open = |job: &&JobId| {
            let below = |role| world.tasks(**job, role) < self.tasks_max;
            below(Role::Worker) || below(Role::ParameterServer)
        };
        self.jobs.extend(world.active().iter().filter(open).take(self.n_jobs));
    }

    /// The jobs last seen.
    pub fn jobs(&self) -> &[JobId] {
        &self.jobs
    }

    /// Writes what was last seen: [row × column], row-major, zeros for columns without a job.
    ///
    /// # Panics
    /// If there is no room for it.
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

    /// Writes columns of jobs, as [`observe`](Self::observe) does: of each its type, and slots, what is left, the dominant share,
    /// workers and parameter servers as they are.
    ///
    /// # Panics
    /// If there is no room for them.
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

    /// Writes which actions may be chosen. Whether one fits its server is not looked at; nothing always may.
    ///
    /// # Panics
    /// If there is no room for them.
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

    /// The action that is these tasks for that job, if it was seen.
    pub(super) fn encode(&self, job: JobId, tasks: Tasks) -> Option<usize> {
        let column = self.jobs.iter().position(|other| *other == job)?;
        Some(3 * column + Tasks::ALL.iter().position(|other| *other == tasks)?)
    }

    /// The job and tasks of an action on what was last seen; none of the last, and of a column without a job.
    pub(super) fn decode(&self, action: usize) -> Option<(JobId, Tasks)> {
        Some((*self.jobs.get(action / 3)?, Tasks::ALL[action % 3]))
    }
}
