//! The published baselines, as they are coded.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::dl2::share_of;
use crate::dl2::task::{Tasks, least_loaded};
use crate::world::Role;
use crate::world::World;
use crate::world::{N_RESOURCES, Slots};
use apportion::index::{Id, JobId, ServerId};

/// An addition of a rule: tasks of a job on a server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addition {
    pub(super) job: JobId,
    pub(super) tasks: Tasks,
    pub(super) server: ServerId,
}

/// Jobs by (dominant share, arrival, id). Numbers are bits of floats of one sign, which have the same order.
#[derive(Clone, Debug, Default)]
pub(super) struct ByDominantShare(BinaryHeap<Reverse<(u64, u64, JobId)>>);

impl ByDominantShare {
    /// Begins a slot: all jobs, with nothing.
    pub(super) fn begin(&mut self, world: &World) {
        self.0.clear();
        self.0.extend(world.active().iter().map(|job| Reverse((0, arrival(world, *job), *job))));
    }

    /// Takes out the first job.
    pub(super) fn pop(&mut self) -> Option<JobId> {
        self.0.pop().map(|Reverse((.., job))| job)
    }

    /// Puts a job back that gets another bundle; one with the most bundles leaves.
    pub(super) fn put_back(&mut self, world: &World, job: JobId, bundles_max: u16) {
        let n = world.tasks(job, Role::Worker) + 1;
        if n < bundles_max {
            self.0.push(Reverse((share_of(world, job, n, n).to_bits(), arrival(world, job), job)));
        }
    }
}

/// DRF as coded: one bundle to the job with the least (dominant share, arrival, id), until one does not fit on the least loaded
/// server.
#[derive(Clone, Debug, Default)]
pub(super) struct Drf {
    jobs: ByDominantShare,
}

impl Drf {
    /// Begins a slot.
    pub(super) fn begin(&mut self, world: &World) {
        self.jobs.begin(world);
    }

    /// The next bundle; none ends the slot.
    pub(super) fn next(&mut self, world: &World, bundles_max: u16) -> Option<Addition> {
        let job = self.jobs.pop()?;
        let server = least_loaded(world, job, Tasks::Bundle)?;
        self.jobs.put_back(world, job, bundles_max);
        Some(Addition { job, tasks: Tasks::Bundle, server })
    }
}

fn arrival(world: &World, job: JobId) -> u64 {
    world.job(job).arrival_s.to_bits()
}

/// FIFO and SRTF as coded: each job in order up to the most bundles, until one does not fit on the least loaded server.
#[derive(Clone, Debug, Default)]
pub(super) struct InOrder {
    jobs: Vec<JobId>,
    position: usize,
}

impl InOrder {
    /// Begins a slot: jobs by arrival, or by the remaining part of their work, which is not their remaining time.
    pub(super) fn begin(&mut self, world: &World, by_remaining: bool) {
        self.jobs.clear();
        self.jobs.extend_from_slice(world.active());
        self.position = 0;
        if by_remaining {
            let left = |job: &JobId| world.remaining_fraction(*job);
            self.jobs.sort_by(|one, other| left(one).total_cmp(&left(other)));
        }
    }

    /// The next bundle.
    pub(super) fn next(&mut self, world: &World, bundles_max: u16) -> Option<Addition> {
        while world.tasks(*self.jobs.get(self.position)?, Role::Worker) >= bundles_max {
            self.position += 1;
        }
        let job = self.jobs[self.position];
        Some(Addition { job, tasks: Tasks::Bundle, server: least_loaded(world, job, Tasks::Bundle)? })
    }
}

/// Tetris as coded: server by server, bundles to the job with the highest score, until its bundle does not fit.
///
///   score = free slots · needs + weight × (sum of needs × part that remains)
///
/// The weight makes both terms equally large on average. The second term has the wrong sign for shortest first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tetris {
    server: usize,
}

impl Tetris {
    /// Begins a slot at the first server.
    pub(super) fn begin(&mut self) {
        self.server = 0;
    }

    /// The next bundle.
    pub(super) fn next(&mut self, world: &World, bundles_max: u16) -> Option<Addition> {
        while self.server < world.servers().len() {
            let server = ServerId::from_index(self.server);
            if let Some(job) = best(world, server, bundles_max)
                && world.fits(server, Tasks::Bundle.slots(world, job))
            {
                return Some(Addition { job, tasks: Tasks::Bundle, server });
            }
            self.server += 1;
        }
        None
    }
}

/// The job with the highest score on a server, of the jobs that may have another bundle, ties by order of arrival.
fn best(world: &World, server: ServerId, bundles_max: u16) -> Option<JobId> {
    let free = world.free(server);
    let mut sums = (0.0, 0.0);
    for &job in world.active() {
        let (alignment, remaining) = scores(world, job, free);
        sums = (sums.0 + alignment, sums.1 + remaining);
    }
    if sums.0 <= 0.0 || sums.1 <= 0.0 {
        return None;
    }
    let weight = sums.0 / sums.1;
    let mut best: Option<(f64, JobId)> = None;
    for &job in world.active() {
        if world.tasks(job, Role::Worker) >= bundles_max {
            continue;
        }
        let (alignment, remaining) = scores(world, job, free);
        let score = alignment + weight * remaining;
        if best.is_none_or(|(most, _)| score > most) {
            best = Some((score, job));
        }
    }
    best.map(|(_, job)| job)
}

/// The scores of a job's bundle: (alignment, sum of needs × remaining part).
pub(super) fn scores(world: &World, job: JobId, free: Slots) -> (f64, f64) {
    let needs = Tasks::Bundle.slots(world, job);
    let alignment: u32 =
        (0..N_RESOURCES).map(|resource| u32::from(free[resource]) * u32::from(needs[resource])).sum();
    let needs: u32 = needs.iter().map(|slots| u32::from(*slots)).sum();
    (f64::from(alignment), f64::from(needs) * world.remaining_fraction(job))
}
