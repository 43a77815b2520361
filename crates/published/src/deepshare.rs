//! DeepShare's world (Ryu and Eo, ICPADS 2023): rigid jobs spread over two or four servers. Jobs on one server slow
//! each other down by a measured table.
//!
//! | what           | value                                                                                     |
//! |----------------|-------------------------------------------------------------------------------------------|
//! | servers        | 4 of 8 accelerators                                                                       |
//! | jobs           | of 2, 4 or 8 workers, spread evenly over 2 or 4 servers; all present at time 0             |
//! | round          | 300 s; preemption and restart cost nothing                                                |
//! | retention ρ    | least over its servers and their other residents of table\[job\]\[other\], at least 0.35   |
//! | learned rows   | every job with ρ ≤ 0.6 goes to the end of the queue after each round                      |
//! | actions        | six pairs of servers, all four, nothing; the job is the first of 2, 4, 8 workers that fits |
//!
//! The published simulator ([`Fidelity::Published`]) differs from what its authors describe at four points:
//!
//! - ρ never rises while a job stays placed, even if a neighbour leaves; training resets it each round;
//! - service is counted in whole rounds, and a finished job costs the next job its round;
//! - a job counts as done when fewer samples are left than a round has seconds, as if one sample took a second;
//! - jobs that are about to end this way are left out of the observation, and their workers look free. The engine refuses
//!   decisions that would over-commit a server; the published simulator does not.

mod allocated;
mod control;
mod episode;
mod observe;
mod order;
mod policy;
mod speeds;
mod workload;
pub mod trace;
mod environment;
mod training_world;

pub use allocated::AllocatedPolicy;
pub use environment::{DeepShareEnvironment, RoundReward, Workloads};
pub use episode::{DecisionsPerRound, DeepShareEpisode, EpisodeOptions, StepOutcome};
pub use observe::{OBSERVATION_LEN, ObservationKind, UtilizationMean, observe, observe_counts, reward};
pub use order::{Order, Width};
pub use policy::{DeepSharePolicy, PolicyName, all, parse_named};
pub use speeds::DeepShareSpeeds;
pub use training_world::{DeepShareWorld, RoundEnd, SYSTEM};
pub use workload::{Mix, WorkloadError, from_trace, generate};

#[cfg(test)]
mod tests;

use crate::world::Limits;
use crate::world::World;
use crate::world::{ACCELERATOR, Servers};
use crate::world::{AfterRound, Completions, Retention, Rules};
use crate::world::{JobKind, Part, Role};
use apportion::index::{Id, JobId, JobTypeId, ServerId};
use apportion::spec::Fidelity;
use apportion::throughput::spread::SpreadThroughputs;

/// Servers of the published cluster.
pub const N_SERVERS: usize = 4;

/// Accelerators of a server.
pub const WORKERS_PER_SERVER: u16 = 8;

/// The number of models in the published tables.
pub const N_MODELS: usize = 6;

/// Numbers of workers that jobs need.
pub const DEMANDS: [u16; 3] = [2, 4, 8];

/// Length of a round in seconds.
pub const ROUND_S: f64 = 300.0;

/// The smallest retention of a job, however crowded its servers.
pub const RETENTION_FLOOR: f64 = 0.35;

/// The retention at or below which jobs are preempted under learned policies.
pub const PREEMPT_AT: f64 = 0.6;

/// The number of actions: seven sets of servers, and nothing.
pub const N_ACTIONS: usize = 8;

/// The action that does nothing.
pub const NOTHING: usize = 7;

/// The servers of each action but the last.
pub const SERVER_SETS: [&[usize]; 7] = [&[0, 1], &[0, 2], &[0, 3], &[1, 2], &[1, 3], &[2, 3], &[0, 1, 2, 3]];

/// Limits after which a run is given up. A policy that samples needs some 1,000 rounds for 256 jobs.
pub const LIMITS: Limits = Limits { decisions_max: 1_000, rounds_max: 50_000 };

/// A world without jobs.
pub fn world(tables: &SpreadThroughputs, fidelity: Fidelity, after_round: AfterRound) -> World {
    let servers = Servers::alike(N_SERVERS, [0, WORKERS_PER_SERVER]);
    let kind = JobKind { task: [[0, 1], [0, 0]] };
    let kinds = vec![kind; tables.job_types.len() * DEMANDS.len()];
    let (retention, completions) = match fidelity {
        Fidelity::Corrected => (Retention::EachRound, Completions::Exact),
        Fidelity::Published => (Retention::NeverRises, Completions::RoundEndSkippingNext),
    };
    World::new(
        servers,
        kinds,
        Rules {
            round_s: ROUND_S,
            parts_max: N_SERVERS,
            retention,
            completions,
            after_round,
            scaling_cost_s: 0.0,
        },
    )
}

/// The job type of a model and a demand, by their positions.
pub fn job_type(model: usize, demand: usize) -> JobTypeId {
    JobTypeId::from_index(model * DEMANDS.len() + demand)
}

/// Whether `workers` can be spread evenly over this number of servers.
pub fn is_shape(workers: u16, servers: usize) -> bool {
    let per_server = usize::from(workers) / servers;
    servers <= N_SERVERS && per_server * servers == usize::from(workers) && per_server >= 1
}

/// The first waiting job of each demand, in the order of [`DEMANDS`].
pub fn candidates(world: &World) -> [Option<JobId>; DEMANDS.len()] {
    let mut found = [None; DEMANDS.len()];
    let mut n_found = 0;
    for &job in world.waiting() {
        let demand = demand_of(world, job);
        if found[demand].is_none() {
            found[demand] = Some(job);
            n_found += 1;
            if n_found == DEMANDS.len() {
                break;
            }
        }
    }
    found
}

/// The position of a job's demand in [`DEMANDS`].
pub fn demand_of(world: &World, job: JobId) -> usize {
    world.job(job).job_type.index() % DEMANDS.len()
}

/// The number of workers of a server that look free; with [`Fidelity::Published`], workers of ending jobs do.
pub fn looks_free(world: &World, server: ServerId, fidelity: Fidelity) -> u16 {
    let mut free = world.free(server)[ACCELERATOR];
    if fidelity == Fidelity::Published {
        for &job in world.residents(server).iter().filter(|job| world.is_ending(**job)) {
            free += workers_on(world, job, server);
        }
    }
    free
}

/// The number of workers of a placed job on a server.
pub fn workers_on(world: &World, job: JobId, server: ServerId) -> u16 {
    let on_server = |part: &&Part| part.server == server && part.role == Role::Worker;
    world.parts(job).iter().find(on_server).map_or(0, |part| part.count)
}

/// The job that an action starts, if it is valid: the first candidate that can be spread over the action's servers and fits.
pub fn decode(world: &World, action: usize, fidelity: Fidelity) -> Option<JobId> {
    let servers = SERVER_SETS.get(action)?;
    let free: u16 = servers
        .iter()
        .map(|server| looks_free(world, ServerId::from_index(*server), fidelity))
        .min()
        .unwrap_or(0);
    let fits = |job: &JobId| {
        let workers = world.job(*job).workers;
        is_shape(workers, servers.len()) && usize::from(workers) / servers.len() <= usize::from(free)
    };
    candidates(world).into_iter().flatten().find(fits)
}

/// The mask of valid actions. The published system masks none, neither in training nor after.
pub fn mask(world: &World, fidelity: Fidelity) -> [bool; N_ACTIONS] {
    std::array::from_fn(|action| action == NOTHING || decode(world, action, fidelity).is_some())
}

/// Writes the parts of a job spread evenly over servers.
pub fn spread(parts: &mut Vec<Part>, workers: u16, servers: &[usize]) {
    parts.clear();
    let n = u16::try_from(servers.len()).unwrap_or(u16::MAX);
    parts.extend(servers.iter().map(|server| Part::workers(ServerId::from_index(*server), workers / n)));
}
