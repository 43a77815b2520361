//! Speeds from the published tables.

use crate::deepshare::{DEMANDS, N_SERVERS, RETENTION_FLOOR, ROUND_S};
use crate::world::World;
use crate::world::{Rate, Speeds};
use apportion::index::{Id, JobId, ServerId};
use apportion::spec::Fidelity;
use apportion::throughput::spread::SpreadThroughputs;

/// Not measured.
const NONE: u16 = u16::MAX;

/// Throughput alone and retention, dense.
#[derive(Clone, Debug)]
pub struct DeepShareSpeeds {
    /// Position of each configuration: [job type × servers].
    configuration: Vec<u16>,
    /// Samples/s: [configuration].
    alone: Vec<f64>,
    /// [configuration × neighbour's].
    retained: Vec<f64>,
    n_configurations: usize,
    finishes_early: bool,
}

impl DeepShareSpeeds {
    /// Speeds of jobs whose type is a model at a demand.
    pub fn new(tables: &SpreadThroughputs, fidelity: Fidelity) -> Self {
        let mut configuration = vec![NONE; tables.job_types.len() * DEMANDS.len() * (N_SERVERS + 1)];
        for model in 0..tables.job_types.len() {
            for (demand, workers) in DEMANDS.into_iter().enumerate() {
                for servers in 1..=N_SERVERS {
                    let wide = u32::try_from(servers).unwrap_or(u32::MAX);
                    let found = tables.position(model, u32::from(workers), wide);
                    let row = (model * DEMANDS.len() + demand) * (N_SERVERS + 1) + servers;
                    configuration[row] = found.and_then(|found| u16::try_from(found).ok()).unwrap_or(NONE);
                }
            }
        }
        Self {
            configuration,
            alone: tables.configurations.iter().map(|one| one.alone).collect(),
            retained: tables.retained.clone(),
            n_configurations: tables.configurations.len(),
            finishes_early: fidelity == Fidelity::Published,
        }
    }

    /// The configuration of a job on so many servers, if it was measured.
    pub fn configuration(&self, world: &World, job: JobId, servers: usize) -> Option<usize> {
        let row = world.job(job).job_type.index() * (N_SERVERS + 1) + servers;
        self.configuration.get(row).copied().filter(|found| *found != NONE).map(usize::from)
    }

    /// Samples/s of a configuration alone.
    pub fn alone(&self, configuration: usize) -> f64 {
        self.alone[configuration]
    }

    /// What a configuration retains beside another; at least the floor.
    pub fn retained(&self, configuration: usize, beside: usize) -> f64 {
        self.retained[configuration * self.n_configurations + beside].max(RETENTION_FLOOR)
    }

    /// What `configuration` would retain on a server beside those on it, `except` one job.
    pub fn retained_on(&self, world: &World, server: ServerId, configuration: usize, except: JobId) -> f64 {
        let mut least: f64 = 1.0;
        for &other in world.residents(server) {
            let n_servers = usize::from(world.n_servers(other));
            if other == except || n_servers <= 1 {
                continue;
            }
            if let Some(beside) = self.configuration(world, other, n_servers) {
                least = least.min(self.retained(configuration, beside));
            }
        }
        least
    }

    /// What a placed job retains now.
    pub fn retention(&self, world: &World, job: JobId) -> f64 {
        let n_servers = usize::from(world.n_servers(job));
        let Some(configuration) = self.configuration(world, job, n_servers).filter(|_| n_servers > 1) else {
            return 1.0;
        };
        let parts = world.parts(job).iter();
        parts.map(|part| self.retained_on(world, part.server, configuration, job)).fold(1.0, f64::min)
    }
}

impl Speeds for DeepShareSpeeds {
    fn rate(&mut self, world: &World, job: JobId) -> Rate {
        let configuration = self.configuration(world, job, usize::from(world.n_servers(job)));
        Rate {
            alone_per_s: configuration.map_or(0.0, |configuration| self.alone[configuration]),
            retention: self.retention(world, job),
            finish_below: if self.finishes_early { ROUND_S } else { 0.0 },
        }
    }
}
