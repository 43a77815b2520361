//! Shares of slots in the elastic world: a job's sizes are the rungs of its ladders.

use crate::elastic::climb::Climb;
use crate::elastic::ladders::Ladders;
use crate::world::ACCELERATOR;
use crate::world::Role;
use crate::world::World;
use crate::world::shares::{self, Goal, Size, efficient};
use apportion::index::{Id, JobId, ServerId, WorkerTypeId};

/// A number of workers of a type.
type Rung = (WorkerTypeId, u16);

/// The rule of optimal shares at work.
#[derive(Clone, Debug)]
pub(super) struct Shares {
    rounds: shares::Shares<Rung>,
    /// Round and time of the slot of these shares, by which the start of the next slot is noticed.
    slot: Option<(u64, u64)>,
    /// Jobs with their rungs in this slot, in reverse order; then jobs that get a worker of their fastest free type.
    wanted: Vec<(JobId, Rung)>,
    unserved: Vec<JobId>,
}

impl Shares {
    pub(super) fn new(goal: Goal) -> Self {
        Self { rounds: shares::Shares::new(goal), slot: None, wanted: Vec::new(), unserved: Vec::new() }
    }

    /// The next climb: each job climbs to its rung before the next job begins.
    pub(super) fn climb(&mut self, world: &World, ladders: &Ladders) -> Option<Climb> {
        let slot = (world.round(), world.now_s().to_bits());
        if self.slot.replace(slot) != Some(slot) {
            self.begin(world, ladders);
        }
        while let Some(&(job, (kind, workers))) = self.wanted.last() {
            if world.tasks(job, Role::Worker) < workers
                && let Some(climb) = Climb::find(world, ladders, job, kind)
            {
                return Some(climb);
            }
            self.wanted.pop();
        }
        while let Some(job) = self.unserved.pop() {
            if let Some(climb) = Climb::fastest(world, ladders, job) {
                return Some(climb);
            }
        }
        None
    }

    fn begin(&mut self, world: &World, ladders: &Ladders) {
        let capacity = |server: ServerId| f64::from(world.servers().capacity(server)[ACCELERATOR]);
        let total: Vec<f64> = world.servers().ids().map(capacity).collect();
        let sizes_of = |job| efficient(sizes(world, ladders, job));
        (self.wanted, self.unserved) = self.rounds.hand_out(world, &total, sizes_of);
        self.wanted.reverse();
        self.unserved.reverse();
    }
}

/// All sizes of a job: on each type, the numbers of workers with which it runs, up to the workers of the type.
fn sizes(world: &World, ladders: &Ladders, job: JobId) -> Vec<Size<Rung>> {
    let mut sizes = Vec::new();
    for kind in (0..ladders.n_worker_types()).map(WorkerTypeId::from_index) {
        for (workers, per_s) in ladders.rungs(world.job(job).job_type, kind) {
            let there_are = world.servers().capacity(ServerId::from_index(kind.index()))[ACCELERATOR];
            if workers > there_are {
                break;
            }
            let mut needs = vec![0.0; ladders.n_worker_types()];
            needs[kind.index()] = f64::from(workers);
            sizes.push(Size { what: (kind, workers), needs, per_s });
        }
    }
    sizes
}
