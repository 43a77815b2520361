//! Climbs, the steps of which every allocation of the elastic world consists.

use crate::elastic::ladders::Ladders;
use crate::world::ACCELERATOR;
use crate::world::Decision;
use crate::world::World;
use crate::world::{Part, Role};
use apportion::index::{Id, JobId, ServerId, WorkerTypeId};

/// A step of a job to its next rung on a worker type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Climb {
    /// The job.
    pub job: JobId,
    /// The worker type; the job's own if it holds workers.
    pub worker_type: WorkerTypeId,
    /// The number of workers that the job will hold.
    pub workers: u16,
}

impl Climb {
    /// The climb of a job on a type. None if the job holds workers of another type, is at the top of its ladder, or too few workers
    /// are free.
    pub fn find(world: &World, ladders: &Ladders, job: JobId, worker_type: WorkerTypeId) -> Option<Self> {
        let server = ServerId::from_index(worker_type.index());
        if world.parts(job).iter().any(|part| part.server != server) {
            return None;
        }
        let held = world.tasks(job, Role::Worker);
        let workers = ladders.above(world.job(job).job_type, worker_type, held)?;
        let fits = workers - held <= world.free(server)[ACCELERATOR];
        fits.then_some(Self { job, worker_type, workers })
    }

    /// The climb of a job on its own type; if it holds nothing, on the type with room on which it will be fastest, ties by id.
    pub fn fastest(world: &World, ladders: &Ladders, job: JobId) -> Option<Self> {
        let types = (0..ladders.n_worker_types()).map(WorkerTypeId::from_index);
        let all = types.filter_map(|worker_type| Self::find(world, ladders, job, worker_type));
        all.reduce(|best, other| {
            if other.steps_per_s(world, ladders) > best.steps_per_s(world, ladders) { other } else { best }
        })
    }

    /// The speed of the job after the climb, in steps/s.
    pub fn steps_per_s(&self, world: &World, ladders: &Ladders) -> f64 {
        ladders.steps_per_s(world.job(self.job).job_type, self.worker_type, self.workers)
    }

    /// The decision that makes the climb; `part` is room for its part.
    pub(super) fn decision<'a>(&self, world: &World, part: &'a mut [Part; 1]) -> Decision<'a> {
        *part = [Part::workers(ServerId::from_index(self.worker_type.index()), self.workers)];
        let job = self.job;
        if world.parts(job).is_empty() {
            Decision::Place { job, parts: part }
        } else {
            Decision::Resize { job, parts: part }
        }
    }
}
