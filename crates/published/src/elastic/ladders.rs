//! How fast each number of workers makes a job.

use crate::world::Role;
use crate::world::World;
use crate::world::{Rate, Speeds};
use apportion::index::{Id, JobId, JobTypeId, WorkerTypeId};
use apportion::throughput::Throughputs;

/// Numbers of workers that a job may have.
pub const RUNGS: [u16; 4] = [1, 2, 4, 8];

/// Speeds by job type, worker type and rung, in steps/s.
#[derive(Clone, Debug, PartialEq)]
pub struct Ladders {
    n_worker_types: usize,
    /// 0 where that many workers were not measured, or do not run: [job type × worker type × rung].
    steps_per_s: Vec<[f64; RUNGS.len()]>,
}

impl Ladders {
    /// Those of a matrix, a row for each job type measured with one worker. A job type that was measured with no other
    /// number has ladders of one rung.
    pub fn new(throughputs: &Throughputs) -> Self {
        let n_worker_types = throughputs.worker_types().len();
        let alone = throughputs.rows().iter().filter(|row| row.scale_factor == 1);
        let of_job_type = |job_type: &str| {
            let rows = RUNGS.map(|workers| throughputs.find(job_type, u32::from(workers)));
            let ladder = move |worker_type| {
                rows.map(|row| {
                    row.map_or(0.0, |row| throughputs.alone(row, WorkerTypeId::from_index(worker_type)))
                })
            };
            (0..n_worker_types).map(ladder)
        };
        Self { n_worker_types, steps_per_s: alone.flat_map(|row| of_job_type(&row.job_type)).collect() }
    }

    /// How many worker types there are.
    pub const fn n_worker_types(&self) -> usize {
        self.n_worker_types
    }

    /// How many job types there are.
    pub fn n_job_types(&self) -> usize {
        self.steps_per_s.len() / self.n_worker_types.max(1)
    }

    /// Steps/s of a job type with so many workers; 0 if it cannot have so many.
    pub fn steps_per_s(&self, job_type: JobTypeId, worker_type: WorkerTypeId, workers: u16) -> f64 {
        let ladder = self.steps_per_s[job_type.index() * self.n_worker_types + worker_type.index()];
        RUNGS.iter().position(|rung| *rung == workers).map_or(0.0, |rung| ladder[rung])
    }

    /// Steps/s of one worker of the type that is fastest with one.
    pub fn fastest_alone(&self, job_type: JobTypeId) -> f64 {
        let types = (0..self.n_worker_types).map(WorkerTypeId::from_index);
        types.map(|worker_type| self.steps_per_s(job_type, worker_type, 1)).fold(0.0, f64::max)
    }

    /// Steps/s of a job as it is placed; 0 if it is not.
    pub fn of_job(&self, world: &World, job: JobId) -> f64 {
        let Some(part) = world.parts(job).first() else { return 0.0 };
        let worker_type = world.servers().worker_type(part.server);
        self.steps_per_s(world.job(job).job_type, worker_type, world.tasks(job, Role::Worker))
    }
}

impl Speeds for &Ladders {
    fn rate(&mut self, world: &World, job: JobId) -> Rate {
        Rate { alone_per_s: self.of_job(world, job), retention: 1.0, finish_below: 0.0 }
    }
}
