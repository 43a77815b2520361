//! Ladders: the speed of a job with each number of workers.

use crate::world::Role;
use crate::world::World;
use crate::world::{Rate, Speeds};
use apportion::index::{Id, JobId, JobTypeId, WorkerTypeId};
use apportion::throughput::Throughputs;

/// Numbers of workers that a job of the elastic world may have.
pub const RUNGS: [u16; 4] = [1, 2, 4, 8];

/// Speeds by job type, worker type and rung, in steps/s.
#[derive(Clone, Debug, PartialEq)]
pub struct Ladders {
    n_worker_types: usize,
    /// Numbers of workers, ascending.
    rungs: Vec<u16>,
    /// Steps/s, 0 where that many workers were not measured or do not run: [job type × worker type][rung].
    steps_per_s: Vec<Vec<f64>>,
}

impl Ladders {
    /// Ladders of a matrix, for each job type that was measured with one worker. A job type that was measured with no other number
    /// has ladders of one rung.
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

    /// Ladders of jobs that are a job type each: (size, steps/s on each worker type) of each job, by ascending size.
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

    /// The text of the speeds for digests of data, which has no rungs, as before ladders had their own.
    pub(super) fn described(&self) -> String {
        let Self { n_worker_types, steps_per_s, .. } = self;
        format!("Ladders {{ n_worker_types: {n_worker_types:?}, steps_per_s: {steps_per_s:?} }}")
    }

    /// The number of worker types.
    pub const fn n_worker_types(&self) -> usize {
        self.n_worker_types
    }

    /// The number of job types.
    pub fn n_job_types(&self) -> usize {
        self.steps_per_s.len() / self.n_worker_types.max(1)
    }

    /// Steps/s of a job type with a number of workers of a type; 0 if it cannot have that number.
    pub fn steps_per_s(&self, job_type: JobTypeId, worker_type: WorkerTypeId, workers: u16) -> f64 {
        self.rungs.binary_search(&workers).map_or(0.0, |rung| self.ladder(job_type, worker_type)[rung])
    }

    fn ladder(&self, job_type: JobTypeId, worker_type: WorkerTypeId) -> &[f64] {
        &self.steps_per_s[job_type.index() * self.n_worker_types + worker_type.index()]
    }

    /// The smallest number of workers above `workers` with which a job type runs on a worker type.
    pub fn above(&self, job_type: JobTypeId, worker_type: WorkerTypeId, workers: u16) -> Option<u16> {
        let mut rungs = self.rungs.iter().zip(self.ladder(job_type, worker_type));
        rungs.find(|(rung, speed)| **rung > workers && **speed > 0.0).map(|(rung, _)| *rung)
    }

    /// The numbers of workers with which a job type runs on a worker type, with its steps/s.
    pub fn rungs(
        &self,
        job_type: JobTypeId,
        worker_type: WorkerTypeId,
    ) -> impl Iterator<Item = (u16, f64)> + '_ {
        let all = self.rungs.iter().copied().zip(self.ladder(job_type, worker_type).iter().copied());
        all.filter(|(_, speed)| *speed > 0.0)
    }

    /// Steps/s with the fewest workers of a type that the job type runs with: one, unless it cannot; 0 if it does not run.
    pub fn with_fewest(&self, job_type: JobTypeId, worker_type: WorkerTypeId) -> f64 {
        self.rungs(job_type, worker_type).next().map_or(0.0, |(_, speed)| speed)
    }

    /// The largest steps/s over worker types with the fewest workers.
    pub fn fastest_alone(&self, job_type: JobTypeId) -> f64 {
        let types = (0..self.n_worker_types).map(WorkerTypeId::from_index);
        types.map(|worker_type| self.with_fewest(job_type, worker_type)).fold(0.0, f64::max)
    }

    /// Steps/s of a job with the workers that it holds; 0 if it holds none.
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
