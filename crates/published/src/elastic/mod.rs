//! The elastic world: jobs grow and shrink at the speeds of a throughput matrix. Each slot is decided from nothing, and a job holds
//! 1, 2, 4 or 8 workers of one worker type. It has DL2's actions and rewards (Peng et al., arXiv 1909.06040) on Gavel's
//! measurements (Narayanan et al., OSDI 2020), without parameter servers.
//!
//! | what    | value                                                                                              |
//! |---------|----------------------------------------------------------------------------------------------------|
//! | workers | 16 of each type of the matrix by default                                                           |
//! | slot    | 1200 s; growing and restarting cost nothing, unless they are said to                               |
//! | work    | steps of one worker; rates are steps/s of all workers together, as measured for that many          |
//! | actions | for each job of a window and each worker type, a climb; and nothing, which ends the slot           |
//! | climb   | from no worker to one, from one to two, to four, to eight; all of a job's are of one type          |
//!
//! Parameter servers are nearly free in [`dl2`](crate::dl2), where much of what can be learned is to add them. Nothing is free
//! here.

mod climb;
mod episode;
mod ladders;
mod rules;
mod shares;
mod workload;
mod environment;
mod network;
mod dl2_network;
mod policy;
#[cfg(feature = "train")]
pub mod exploration;

pub use climb::Climb;
pub use dl2_network::Dl2Network;
pub use environment::{ElasticEnvironment, ElasticSlots, ElasticWorld, SYSTEM};
pub use episode::{ElasticEpisode, ElasticReward, HELD, N_OF_PAIR, ObservationKind, SEEN_MAX, Window};
pub use ladders::{Ladders, RUNGS};
pub use network::ElasticNetwork;
pub use policy::{ElasticDecider, ElasticRounds};
pub use rules::{ElasticPolicy, ElasticRule, all, parse_named};
pub use workload::{WorkloadError, WorkloadOptions, generate};

#[cfg(test)]
mod network_tests;
#[cfg(test)]
mod policy_tests;
#[cfg(test)]
mod tests;

use crate::world::Limits;
use crate::world::World;
use crate::world::{ACCELERATOR, Servers};
use crate::world::{AfterRound, Completions, Retention, Rules};
use crate::world::{JobKind, Part};
use apportion::index::{Id, JobId, WorkerTypeId};

/// Length of a slot in seconds.
pub const SLOT_S: f64 = 1200.0;

/// Limits after which a run is given up.
pub const LIMITS: Limits = Limits { decisions_max: 100_000, rounds_max: 100_000 };

/// The default number of workers of each type.
pub const WORKERS_PER_TYPE: u16 = 16;

/// A world without jobs: `workers_per_type` workers of every type of the matrix, each type as one server. A job stands still for
/// `scaling_cost_s` seconds in a slot in which it holds other workers than in the slot before.
pub fn world(ladders: &Ladders, workers_per_type: u16, scaling_cost_s: f64) -> World {
    world_of(ladders, &vec![workers_per_type; ladders.n_worker_types()], scaling_cost_s)
}

/// A world without jobs, with a number of workers for each type, [type]; otherwise as [`world`].
fn world_of(ladders: &Ladders, n_workers: &[u16], scaling_cost_s: f64) -> World {
    let mut servers = Servers::new();
    for (worker_type, n_workers) in n_workers.iter().enumerate() {
        servers.push([0, *n_workers], WorkerTypeId::from_index(worker_type), 0);
    }
    let rules = Rules {
        round_s: SLOT_S,
        parts_max: 1,
        retention: Retention::EachRound,
        completions: Completions::Exact,
        after_round: AfterRound::Rebuild,
        scaling_cost_s,
    };
    World::new(servers, vec![JobKind { task: [[0, 1], [0, 0]] }; ladders.n_job_types()], rules)
}

/// The dominant share of a job: its part of the workers of its type.
pub fn dominant_share(world: &World, job: JobId) -> f64 {
    let share = |part: &Part| {
        f64::from(part.count) / f64::from(world.servers().capacity(part.server)[ACCELERATOR].max(1))
    };
    world.parts(job).iter().map(share).fold(0.0, f64::max)
}
