//! DL2's world (Peng et al., arXiv 1909.06040): elastic jobs of workers and parameter servers, decided from nothing in every slot.
//! A job's speed is a measured and far from monotone function of the two numbers.
//!
//! | what       | value                                                                                            |
//! |------------|--------------------------------------------------------------------------------------------------|
//! | servers    | 48 of 8 processor and 8 accelerator slots; a core is 1 slot, an accelerator 4                    |
//! | slot       | 1200 s; scaling and restarting cost nothing, unless they are said to                             |
//! | tasks      | up to 16 workers and 16 parameter servers a job; each is put on the least loaded server          |
//! | work       | samples: epochs × samples per epoch; rates are samples/s                                         |
//! | actions    | for each job of a window: a worker, a parameter server, one of both; and nothing, which ends it   |
//! | fit        | the action is tried on the least loaded server only; if it does not fit, the slot ends            |
//! | start      | every job first gets one of both, if it fits there                                               |

mod control;
mod episode;
mod greedy;
mod observe;
mod policy;
mod published;
mod shares;
mod speeds;
mod task;
mod textbook;
mod workload;
mod environment;
#[cfg(feature = "train")]
pub mod injection;

pub use environment::{
    Dl2Environment, Dl2EnvironmentError, Dl2EnvironmentOptions, Dl2Slots, Dl2World, SYSTEM,
};
pub use episode::{Dl2Episode, EpisodeOptions, RewardKind};
pub use observe::{ObservationKind, Window};
pub use policy::{Dl2Policy, Dl2Rule, all, parse_named};
pub use speeds::{Dl2Speeds, SpeedModel, SpeedOptions};
pub use workload::{Arrivals, WorkloadError, WorkloadOptions, generate};

#[cfg(test)]
mod tests;

use crate::world::Limits;
use crate::world::World;
use crate::world::{AfterRound, Completions, Retention, Rules};
use crate::world::{JobKind, Role};
use crate::world::{N_RESOURCES, Servers};
use apportion::index::JobId;
use apportion::throughput::elastic::ElasticThroughputs;

/// Slots of each resource of a server.
pub const SLOTS_PER_SERVER: u16 = 8;

/// Length of a slot in seconds.
pub const SLOT_S: f64 = 1200.0;

/// Limits after which the published simulator gives up a run.
pub const LIMITS: Limits = Limits { decisions_max: 100_000, rounds_max: 1_000 };

/// Options of the cluster and of the tasks of jobs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dl2Options {
    /// The number of servers.
    pub n_servers: usize,
    /// The most tasks of each role that a job may have.
    pub tasks_max: u16,
    /// Processor slots of a parameter server, in place of those in the tables.
    pub parameter_server_slots: Option<u16>,
    /// Seconds that a job stands still in a slot in which it holds other tasks than in the slot before; 0 as published.
    pub scaling_cost_s: f64,
}

impl Default for Dl2Options {
    fn default() -> Self {
        Self { n_servers: 48, tasks_max: 16, parameter_server_slots: None, scaling_cost_s: 0.0 }
    }
}

/// A world without jobs.
pub fn world(tables: &ElasticThroughputs, options: Dl2Options) -> World {
    let servers = Servers::alike(options.n_servers, [SLOTS_PER_SERVER; N_RESOURCES]);
    let kind = |job_type: &apportion::throughput::elastic::ElasticJobType| {
        let [processor, accelerator] = job_type.parameter_server;
        let processor = options.parameter_server_slots.unwrap_or(processor);
        JobKind { task: [job_type.worker, [processor, accelerator]] }
    };
    let rules = Rules {
        round_s: SLOT_S,
        parts_max: 2 * usize::from(options.tasks_max),
        retention: Retention::EachRound,
        completions: Completions::Exact,
        after_round: AfterRound::Rebuild,
        scaling_cost_s: options.scaling_cost_s,
    };
    World::new(servers, tables.job_types.iter().map(kind).collect(), rules)
}

/// The dominant share of a job: its largest part of any resource of the cluster.
pub fn dominant_share(world: &World, job: JobId) -> f64 {
    share_of(world, job, world.tasks(job, Role::Worker), world.tasks(job, Role::ParameterServer))
}

/// The dominant share of a job with these numbers of tasks.
pub fn share_of(world: &World, job: JobId, workers: u16, parameter_servers: u16) -> f64 {
    let total = world.servers().total();
    let (worker, server) =
        (world.task_slots(job, Role::Worker), world.task_slots(job, Role::ParameterServer));
    let share = |resource: usize| {
        let slots = u32::from(workers) * u32::from(worker[resource])
            + u32::from(parameter_servers) * u32::from(server[resource]);
        f64::from(slots) / f64::from(total[resource])
    };
    (0..N_RESOURCES).map(share).fold(0.0, f64::max)
}
