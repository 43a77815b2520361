//! Speeds of jobs: measured surfaces, or the published analytic model.

use crate::world::World;
use crate::world::{Part, Role};
use crate::world::{Rate, Speeds};
use apportion::index::{Id, JobId};
use apportion::throughput::ThroughputsError;
use apportion::throughput::elastic::{ElasticJobType, ElasticThroughputs, SpeedSurface, SurfaceOptions};
use apportion::workload::random::{SeedStreams, Stream};

/// A model of speeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpeedModel {
    /// A surface through the measured speeds.
    Measured(SurfaceOptions),
    /// Bandwidths: a worker's step takes its computation and the slower of the transfers to its parameters.
    Analytic,
}

/// Options of speeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpeedOptions {
    /// The model of speeds.
    pub model: SpeedModel,
    /// Each job's rate in each slot is multiplied by 1 + U(−e, e).
    pub error: f64,
    /// The seed of the errors.
    pub seed: u64,
    /// The most tasks of each role.
    pub tasks_max: u16,
}

/// Samples/s of placed jobs.
#[derive(Clone, Debug)]
pub struct Dl2Speeds {
    options: SpeedOptions,
    /// Surfaces of speeds: [job type].
    surfaces: Vec<SpeedSurface>,
    job_types: Vec<ElasticJobType>,
    errors: Stream,
}

impl Dl2Speeds {
    /// Speeds of the job types of `tables`. Surfaces go up to one task more than a job may have, for rules that look ahead.
    ///
    /// # Errors
    /// If a job type's measurements carry no surface.
    pub fn new(tables: &ElasticThroughputs, options: SpeedOptions) -> Result<Self, ThroughputsError> {
        let surface = match options.model {
            SpeedModel::Measured(surface) => surface,
            SpeedModel::Analytic => SurfaceOptions::default(),
        };
        let most = usize::from(options.tasks_max) + 1;
        let fit = |job_type: &ElasticJobType| SpeedSurface::fit(&job_type.measured, most, surface);
        let surfaces = tables.job_types.iter().map(fit).collect::<Result<_, _>>()?;
        let errors = SeedStreams::new(options.seed).stream("dl2 speeds");
        Ok(Self { options, surfaces, job_types: tables.job_types.clone(), errors })
    }

    /// Samples/s of a job with these numbers of tasks in these parts, without error; 0 if it lacks a role.
    pub fn samples_per_s(&self, world: &World, job: JobId, tasks: [u16; Role::COUNT], parts: &[Part]) -> f64 {
        let job_type = world.job(job).job_type.index();
        let [workers, parameter_servers] = tasks;
        if workers == 0 || parameter_servers == 0 {
            return 0.0;
        }
        match self.options.model {
            SpeedModel::Measured(_) => {
                self.surfaces[job_type].samples_per_s(usize::from(parameter_servers), usize::from(workers))
            }
            SpeedModel::Analytic => analytic(&self.job_types[job_type], parts),
        }
    }

    /// Begins the errors of speeds anew.
    pub fn reseed(&mut self, seed: u64) {
        self.errors = SeedStreams::new(seed).stream("dl2 speeds");
    }

    /// Whether speeds depend on where tasks are.
    pub fn depend_on_place(&self) -> bool {
        self.options.model == SpeedModel::Analytic
    }
}

impl Speeds for Dl2Speeds {
    fn rate(&mut self, world: &World, job: JobId) -> Rate {
        let tasks = [world.tasks(job, Role::Worker), world.tasks(job, Role::ParameterServer)];
        let mut alone_per_s = self.samples_per_s(world, job, tasks, world.parts(job));
        if self.options.error > 0.0 && alone_per_s > 0.0 {
            alone_per_s *= 1.0 + self.errors.uniform_in(-self.options.error, self.options.error);
        }
        Rate { alone_per_s, retention: 1.0, finish_below: 0.0 }
    }
}

/// Samples/s of a job with these parts, by the analytic model. With P parameter servers and W workers in all, p and w of them on a
/// worker's server, and model size S, a worker's step takes compute + max(2 S/P ÷ between, 2 S/P ÷ within) seconds, where
///
///   within  = bandwidth within a server / max(p, w)
///   between = bandwidth between servers if p = P, else the lesser of that / (P − p) and that / (W − least w over the
///             servers with parameters)
///
/// The slowest worker sets the pace of all W, each of which does a batch in a step.
fn analytic(job_type: &ElasticJobType, parts: &[Part]) -> f64 {
    let of_role = |role: Role| parts.iter().filter(move |part| part.role == role);
    let total = |role: Role| of_role(role).map(|part| f64::from(part.count)).sum::<f64>();
    let on = |role: Role, at: &Part| {
        of_role(role).find(|part| part.server == at.server).map_or(0.0, |part| f64::from(part.count))
    };
    let (n_servers, n_workers) = (total(Role::ParameterServer), total(Role::Worker));
    let least_workers =
        of_role(Role::ParameterServer).map(|part| on(Role::Worker, part)).fold(f64::INFINITY, f64::min);
    let megabytes = 2.0 * job_type.parameters_mb / n_servers;
    let mut slowest_s: f64 = 0.0;
    for part in of_role(Role::Worker) {
        let (workers, servers) = (f64::from(part.count), on(Role::ParameterServer, part));
        let within = job_type.within_server_mb_per_s / servers.max(workers);
        let between = job_type.between_servers_mb_per_s;
        let between = if servers >= n_servers {
            between
        } else {
            // Where all workers are beside the parameters of a server, it sends nothing outside.
            let others = n_workers - least_workers;
            let asked = if others > 0.0 { between / others } else { f64::INFINITY };
            (between / (n_servers - servers)).min(asked)
        };
        slowest_s = slowest_s.max(job_type.compute_s + (megabytes / between).max(megabytes / within));
    }
    if slowest_s > 0.0 { n_workers * f64::from(job_type.batch) / slowest_s } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion::index::ServerId;

    #[test]
    fn the_analytic_model_by_hand() {
        let mut job_type = ElasticThroughputs::dl2().job_types[0].clone();
        (job_type.parameters_mb, job_type.compute_s, job_type.batch) = (100.0, 1.0, 10);
        (job_type.between_servers_mb_per_s, job_type.within_server_mb_per_s) = (100.0, 400.0);
        let part = |server, role, count| Part { server: ServerId::from_index(server), role, count };
        // One of each on one server: 200 MB at 100 MB/s between, at 400 within: 1 + 2 s.
        let one = [part(0, Role::Worker, 1), part(0, Role::ParameterServer, 1)];
        assert!((analytic(&job_type, &one) - 10.0 / 3.0).abs() < 1e-12);
        // Two servers of one each: 100 MB; P − p = 1, W − least w = 1: 100 MB/s; 1 + 1 s, two workers.
        let two = [one[0], one[1], part(1, Role::Worker, 1), part(1, Role::ParameterServer, 1)];
        assert!((analytic(&job_type, &two) - 20.0 / 2.0).abs() < 1e-12);
        // Two workers beside one: 200 MB, within 200 MB/s, all parameters here: between 100; 1 + 2 s.
        let beside = [part(0, Role::Worker, 2), part(0, Role::ParameterServer, 1)];
        assert!((analytic(&job_type, &beside) - 20.0 / 3.0).abs() < 1e-12);
    }
}
