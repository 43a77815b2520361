//! The published baselines: an order of the queue, and a placement on the first servers that fit.

use crate::deepshare::{N_SERVERS, is_shape, spread};
use crate::world::ACCELERATOR;
use crate::world::Part;
use crate::world::World;
use apportion::index::{Id, JobId, ServerId};

/// An order in which jobs are taken from the queue; ties by place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Most attained service first: what the published source calls `las`.
    MostService,
    /// Least progress first, as a part of the job's work: what the published source calls `srtf`.
    LeastProgress,
    /// Least attained service first.
    LeastService,
    /// Smallest remaining part of the job's work first.
    LeastRemaining,
    /// In order of the queue.
    Fifo,
}

/// A preference between spreads of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// Four servers before two, which causes the most contention.
    Widest,
    /// Two servers before four.
    Narrowest,
}

impl Order {
    /// The head of the queue.
    pub fn head(self, world: &World) -> Option<JobId> {
        let least = |key: &dyn Fn(JobId) -> f64| {
            let mut jobs = world.waiting().iter().copied();
            let first = jobs.next()?;
            let mut best = (key(first), first);
            for job in jobs {
                let value = key(job);
                if value < best.0 {
                    best = (value, job);
                }
            }
            Some(best.1)
        };
        let part = |job| world.progress(job) / world.job(job).work_estimated;
        match self {
            Self::MostService => least(&|job| -world.service_s(job)),
            Self::LeastProgress => least(&part),
            Self::LeastService => least(&|job| world.service_s(job)),
            Self::LeastRemaining => least(&|job| -part(job)),
            Self::Fifo => world.waiting().first().copied(),
        }
    }
}

impl Width {
    /// Writes the placement of a job on the first servers with room, if it fits anywhere.
    pub fn place(self, world: &World, job: JobId, parts: &mut Vec<Part>) -> bool {
        let widths = match self {
            Self::Widest => [N_SERVERS, 2],
            Self::Narrowest => [2, N_SERVERS],
        };
        let workers = world.job(job).workers;
        for width in widths.into_iter().filter(|width| is_shape(workers, *width)) {
            let per_server = usize::from(workers) / width;
            let mut chosen = [0; N_SERVERS];
            let mut n_chosen = 0;
            for server in 0..N_SERVERS {
                let free = world.free(ServerId::from_index(server))[ACCELERATOR];
                if n_chosen < width && usize::from(free) >= per_server {
                    chosen[n_chosen] = server;
                    n_chosen += 1;
                }
            }
            if n_chosen == width {
                spread(parts, workers, &chosen[..width]);
                return true;
            }
        }
        false
    }
}
