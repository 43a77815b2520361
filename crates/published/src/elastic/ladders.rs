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
    /// Numbers of workers, ascending.
    rungs: Vec<u16>,
    /// 0 where that many workers were not measured, or do not run: [job type × worker type × rung].
    steps_per_s: Vec<Vec<f64>>,
}

impl Ladders {
    /// Those of a matrix, a row for each job type measured with one worker. A job type that was measured with no other
    /// number has ladders of one rung.
    pub fn new(throughputs: &Throughputs) -> Self {
        let n_worker_types = throughputs.worker_types().len();
        let alone = throughputs.rows().iter().filter(|row| row.scale_factor == 1);
        let of_job_type = |job_type: &str| {
            let rows = RUNGS.map(|workers| throughputs.find(job_type, u32::from(workers)));
            let ladder = move |worker_type| -> Vec<f64> {
                let alone = |row| throughputs.alone(row, WorkerTypeId::from_index(worker_type));
                rows.iter().map(|row| row.map_or(0.0, alone)).collect()
            };
            (0..n_worker_types).map(ladder)
        };
        let rungs = RUNGS.to_vec();
        Self {
            n_worker_types,
            rungs,
            steps_per_s: alone.flat_map(|row| of_job_type(&row.job_type)).collect(),
        }
    }

    /// Those of jobs each of which has its own, a job type each: sizes, ascending, with the speeds on each worker type.
    pub fn of_jobs(n_worker_types: usize, jobs: &[Vec<(u16, Vec<f64>)>]) -> Self {
        let mut rungs: Vec<u16> = jobs.iter().flatten().map(|(size, _)| *size).collect();
        rungs.sort_unstable();
        rungs.dedup();
        let mut steps_per_s = Vec::with_capacity(jobs.len() * n_worker_types);
        for sizes in jobs {
            for worker_type in 0..n_worker_types {
                let at = |rung: &u16| sizes.iter().find(|(size, _)| size == rung);
                let speed = |rung| at(rung).map_or(0.0, |(_, speeds)| speeds[worker_type]);
                steps_per_s.push(rungs.iter().map(speed).collect());
            }
        }
        Self { n_worker_types, rungs, steps_per_s }
    }

    /// The speeds as digests of data know them, since before ladders had rungs of their own.
    pub(super) fn described(&self) -> String {
        let Self { n_worker_types, steps_per_s, .. } = self;
        format!("Ladders {{ n_worker_types: {n_worker_types:?}, steps_per_s: {steps_per_s:?} }}")
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
        self.rungs.binary_search(&workers).map_or(0.0, |rung| self.ladder(job_type, worker_type)[rung])
    }

    fn ladder(&self, job_type: JobTypeId, worker_type: WorkerTypeId) -> &[f64] {
        &self.steps_per_s[job_type.index() * self.n_worker_types + worker_type.index()]
    }

    /// The smallest number of workers above `workers` at which a job type has a speed on a worker type.
    pub fn above(&self, job_type: JobTypeId, worker_type: WorkerTypeId, workers: u16) -> Option<u16> {
        let mut rungs = self.rungs.iter().zip(self.ladder(job_type, worker_type));
        rungs.find(|(rung, speed)| **rung > workers && **speed > 0.0).map(|(rung, _)| *rung)
    }

    /// The rungs that a job type runs with, with its speeds.
    pub fn rungs(
        &self,
        job_type: JobTypeId,
        worker_type: WorkerTypeId,
    ) -> impl Iterator<Item = (u16, f64)> + '_ {
        let all = self.rungs.iter().copied().zip(self.ladder(job_type, worker_type).iter().copied());
        all.filter(|(_, speed)| *speed > 0.0)
    }

    /// Steps/s with the fewest workers of a type: one, unless the job cannot have so few.
    pub fn with_fewest(&self, job_type: JobTypeId, worker_type: WorkerTypeId) -> f64 {
        self.rungs(job_type, worker_type).next().map_or(0.0, |(_, speed)| speed)
    }

    /// Steps/s with the fewest workers of the type that is fastest so.
    pub fn fastest_alone(&self, job_type: JobTypeId) -> f64 {
        let types = (0..self.n_worker_types).map(WorkerTypeId::from_index);
        types.map(|worker_type| self.with_fewest(job_type, worker_type)).fold(0.0, f64::max)
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
