//! Speeds of jobs from the published tables.

use crate::deepshare::{DEMANDS, N_SERVERS, RETENTION_FLOOR, ROUND_S};
use crate::world::World;
use crate::world::{Rate, Speeds};
use apportion::index::{Id, JobId, ServerId};
use apportion::spec::Fidelity;
use apportion::throughput::spread::SpreadThroughputs;

/// The position of configurations that were not measured.
const NONE: u16 = u16::MAX;

/// Throughputs alone and retentions, in dense tables.
#[derive(Clone, Debug)]
pub struct DeepShareSpeeds {
    /// Position of the configuration of a job type on 0 to [`N_SERVERS`] servers: [job type × number of servers].
    configuration: Vec<u16>,
    /// Samples/s of each configuration alone: [configuration].
    alone: Vec<f64>,
    /// Retention of each configuration beside another: [configuration × neighbour's configuration].
    retained: Vec<f64>,
    n_configurations: usize,
    finishes_early: bool,
}

impl DeepShareSpeeds {
    /// Speeds of job types, each a model with a demand.
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

    /// The configuration of a job on a number of servers, if it was measured.
    pub fn configuration(&self, world: &World, job: JobId, servers: usize) -> Option<usize> {
        let row = world.job(job).job_type.index() * (N_SERVERS + 1) + servers;
        self.configuration.get(row).copied().filter(|found| *found != NONE).map(usize::from)
    }

    /// Samples/s of a configuration alone.
    pub fn alone(&self, configuration: usize) -> f64 {
        self.alone[configuration]
    }

    /// The retention of a configuration beside another; at least [`RETENTION_FLOOR`].
    pub fn retained(&self, configuration: usize, beside: usize) -> f64 {
        self.retained[configuration * self.n_configurations + beside].max(RETENTION_FLOOR)
    }

    /// The retention of a configuration on a server beside the jobs there, `except` one. Jobs on a single server do not count.
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

    /// The retention of a placed job with its present neighbours.
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
