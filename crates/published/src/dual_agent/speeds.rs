//! Speeds of jobs in the cloud: v = T\[job, type\] · min over servers exp(z) · ρ(contention) · c(consolidation).

use crate::dual_agent::cluster::type_of;
use crate::dual_agent::drift::Drift;
use crate::dual_agent::tables::{HOST_SLOWDOWN, Tables};
use crate::world::ACCELERATOR;
use crate::world::Role;
use crate::world::World;
use crate::world::{Rate, Speeds};
use apportion::index::{Id, JobId, JobTypeId, ServerId};

/// Speeds of jobs in a round.
#[derive(Debug)]
pub(super) struct CloudSpeeds<'a> {
    pub(super) tables: &'a Tables,
    pub(super) drift: &'a Drift,
    /// Factor of each job on the bias and walk of servers: [job].
    pub(super) sensitivity: &'a [f64],
    /// Fraction of this round that each job spends restarting: [job].
    pub(super) restarting: &'a [f64],
}

impl Speeds for CloudSpeeds<'_> {
    fn rate(&mut self, world: &World, job: JobId) -> Rate {
        let mut slowest = f64::INFINITY;
        let mut retention: f64 = 1.0;
        let job_type = world.job(job).job_type;
        let spread = world.n_servers(job) > 1;
        let mut server_type = 0;
        for part in world.parts(job) {
            server_type = type_of(world.servers(), part.server);
            slowest = slowest.min(self.drift.log_speed(part.server, self.sensitivity[job.index()]));
            let here = Newcomer { job, job_type, spread, workers: 0 };
            retention = retention.min(here.retention_on(world, self.tables, part.server));
        }
        let alone = self.tables.speed(job_type, server_type, spread) * slowest.exp();
        Rate { alone_per_s: alone * (1.0 - self.restarting[job.index()]), retention, finish_below: 0.0 }
    }
}

/// A job that is, or might be, on a server.
#[derive(Clone, Copy, Debug)]
pub struct Newcomer {
    /// The job.
    pub job: JobId,
    /// The job's type.
    pub job_type: JobTypeId,
    /// Whether the job is on several servers.
    pub spread: bool,
    /// Number of its workers on the server if it is not there yet; 0 if it is.
    pub workers: u16,
}

impl Newcomer {
    /// The job's retention on a server: the least measured fraction beside another spread job, times the factor of crowded
    /// processors and buses.
    pub fn retention_on(&self, world: &World, tables: &Tables, server: ServerId) -> f64 {
        let mut network: f64 = 1.0;
        let model = Tables::model(self.job_type);
        let mut load = f64::from(self.workers) * tables.host(model);
        for &other in world.residents(server) {
            let beside = Tables::model(world.job(other).job_type);
            load += f64::from(workers_on(world, other, server)) * tables.host(beside);
            if self.spread && other != self.job && world.n_servers(other) > 1 {
                network = network.min(tables.retained(model, beside));
            }
        }
        let over = load / f64::from(world.servers().capacity(server)[ACCELERATOR]) - 1.0;
        network / (1.0 + HOST_SLOWDOWN * over.max(0.0))
    }
}

/// The number of workers of a placed job on a server.
pub fn workers_on(world: &World, job: JobId, server: ServerId) -> u16 {
    let there = |part: &&crate::world::Part| part.server == server && part.role == Role::Worker;
    world.parts(job).iter().find(there).map_or(0, |part| part.count)
}
