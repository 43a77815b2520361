//! The one step of which every allocation here consists.

use crate::elastic::ladders::Ladders;
use crate::world::ACCELERATOR;
use crate::world::Decision;
use crate::world::World;
use crate::world::{Part, Role};
use apportion::index::{Id, JobId, ServerId, WorkerTypeId};

/// A job's next rung on a worker type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Climb {
    /// The job.
    pub job: JobId,
    /// The type; the job's own, if it holds any.
    pub worker_type: WorkerTypeId,
    /// Workers that it will hold.
    pub workers: u16,
}

impl Climb {
    /// The job's next rung on this type. None if it holds workers of another, is at the top of its ladder, or too few are
    /// free.
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

    /// The job's next rung on its own type; if it holds nothing, on its fastest type among the types that have a
    /// free worker, ties by id.
    pub fn fastest(world: &World, ladders: &Ladders, job: JobId) -> Option<Self> {
        let types = (0..ladders.n_worker_types()).map(WorkerTypeId::from_index);
        let all = types.filter_map(|worker_type| Self::find(world, ladders, job, worker_type));
        all.reduce(|best, other| {
            if other.steps_per_s(world, ladders) > best.steps_per_s(world, ladders) { other } else { best }
        })
    }

    /// How fast the job will be.
    pub fn steps_per_s(&self, world: &World, ladders: &Ladders) -> f64 {
        ladders.steps_per_s(world.job(self.job).job_type, self.worker_type, self.workers)
    }

    /// The decision that it be so.
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
