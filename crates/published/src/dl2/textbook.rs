//! DRF and Tetris as their authors describe them, beside the code that was published with the world.

use crate::dl2::published::{Addition, ByDominantShare, scores};
use crate::dl2::task::{Tasks, any_server};
use crate::world::Role;
use crate::world::World;
use apportion::index::{Id, JobId, ServerId};

/// Progressive filling (Ghodsi et al., NSDI 2011): the next bundle goes to the job with the least dominant share, on any server
/// where it fits; a job for which no server has room leaves, and the others go on.
#[derive(Clone, Debug, Default)]
pub(super) struct ProgressiveFilling {
    jobs: ByDominantShare,
}

impl ProgressiveFilling {
    /// Begins a slot.
    pub(super) fn begin(&mut self, world: &World) {
        self.jobs.begin(world);
    }

    /// The next bundle.
    pub(super) fn next(&mut self, world: &World, bundles_max: u16) -> Option<Addition> {
        while let Some(job) = self.jobs.pop() {
            let Some(server) = any_server(world, job, Tasks::Bundle) else { continue };
            self.jobs.put_back(world, job, bundles_max);
            return Some(Addition { job, tasks: Tasks::Bundle, server });
        }
        None
    }
}

/// Multi-resource packing (Grandl et al., SIGCOMM 2014): server by server, of the bundles that fit, the one with the highest
/// alignment less its weighted remaining work, both scaled to the same mean; at equal alignment, shortest first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Alignment {
    server: usize,
}

impl Alignment {
    /// Begins a slot at the first server.
    pub(super) fn begin(&mut self) {
        self.server = 0;
    }

    /// The next bundle.
    pub(super) fn next(&mut self, world: &World, bundles_max: u16) -> Option<Addition> {
        while self.server < world.servers().len() {
            let server = ServerId::from_index(self.server);
            if let Some(job) = best(world, server, bundles_max) {
                return Some(Addition { job, tasks: Tasks::Bundle, server });
            }
            self.server += 1;
        }
        None
    }
}

fn best(world: &World, server: ServerId, bundles_max: u16) -> Option<JobId> {
    let free = world.free(server);
    let mut sums = (0.0, 0.0);
    for &job in world.active() {
        let (alignment, remaining) = scores(world, job, free);
        sums = (sums.0 + alignment, sums.1 + remaining);
    }
    let weight = if sums.1 > 0.0 { sums.0 / sums.1 } else { 0.0 };
    let mut best: Option<(f64, JobId)> = None;
    for &job in world.active() {
        let fits = world.fits(server, Tasks::Bundle.slots(world, job));
        if !fits || world.tasks(job, Role::Worker) >= bundles_max {
            continue;
        }
        let (alignment, remaining) = scores(world, job, free);
        let score = alignment - weight * remaining;
        if best.is_none_or(|(most, _)| score > most) {
            best = Some((score, job));
        }
    }
    best.map(|(_, job)| job)
}
