//! Problems for benchmarks, drawn from a seed.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use apportion::cluster::{Cluster, ClusterError};
use apportion::index::{EntityId, Id, JobId};
use apportion::problem::{
    ActiveJob, Colocation, Entity, InnerRule, Problem, ProblemBuilder, ProblemError, matrix_columns,
};
use apportion::throughput::Throughputs;
use apportion::units::{DollarsPerWorkerHour, Seconds, Steps};
use apportion::workload::random::{SeedStreams, Stream};
use apportion::workload::{Arrivals, Gavel, GeneratorError, WorkloadOptions};

/// Number of owners of jobs, of weights 1, 2, …; only hierarchical policies see them.
const N_ENTITIES: u32 = 8;
/// Jobs per worker type and worker: 4 jobs share one worker of each type.
const JOBS_PER_WORKER: usize = 4;
/// The fewest workers of a type where jobs may need 8 at once.
const WORKERS_MIN: u32 = 8;
/// The most jobs.
const JOBS_MAX: usize = 1 << 31;
/// The most worker types.
const TYPES_MAX: usize = 1 << 16;
/// A job's own speed is drawn between 1 and this, in steps/s.
const JOB_SPEED_MAX: f64 = 10.0;

/// Kind of problem, of any size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Instance {
    /// Jobs drawn from a throughput matrix as the published generator draws them, several workers included, with a quarter
    /// as many workers of each type as there are jobs. Jobs of a type and scale factor are alike.
    Matrix {
        /// Name of the throughput matrix.
        throughputs: String,
        /// Whether to give every job a weight of its own in [1, 2), so that no two are alike.
        distinct: bool,
    },
    /// Jobs of which no two are alike: throughput is a job's speed times a factor per worker type, steps/s.
    Random {
        /// Number of worker types.
        types: usize,
        /// Range of the factors: drawn between 1/heterogeneity and 1, their logarithm uniformly; 1 makes all types alike.
        heterogeneity: f64,
        /// Expected part of the worker types that a job runs on; it runs on at least one.
        density: f64,
    },
    /// Jobs of which no two are alike, each of which runs on a few of many worker types; the types have 1 to 4 workers each.
    Restricted {
        /// Number of worker types.
        types: usize,
        /// The most worker types that a job runs on; at least one.
        types_per_job: usize,
    },
}

/// Reason why there is no such problem.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum InstanceError {
    /// The matrix does not have the published job types.
    #[error(transparent)]
    Generator(#[from] GeneratorError),
    /// A number is out of its range.
    #[error("{what} is {value}, expected {expected}")]
    Parameter {
        /// Name of the number.
        what: &'static str,
        /// The value that was given.
        value: f64,
        /// The values that are allowed, in words.
        expected: &'static str,
    },
    /// The cluster is invalid.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The problem is invalid.
    #[error(transparent)]
    Problem(#[from] ProblemError),
}

impl fmt::Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Matrix { throughputs, distinct: false } => f.write_str(throughputs),
            Self::Matrix { throughputs, distinct: true } => write!(f, "{throughputs}-distinct"),
            Self::Random { types, heterogeneity, density } => {
                write!(f, "random-{types}x{heterogeneity}")?;
                if *density < 1.0 { write!(f, "-{density}") } else { Ok(()) }
            }
            Self::Restricted { types, types_per_job } => write!(f, "restricted-{types}x{types_per_job}"),
        }
    }
}

impl Instance {
    /// The problem with `n_jobs` jobs that a seed draws. `throughputs` is the matrix that [`Instance::Matrix`] names; other
    /// kinds ignore it.
    ///
    /// # Errors
    /// If a parameter is out of its range, or the matrix lacks the published job types.
    pub fn problem(
        &self,
        n_jobs: usize,
        seed: u64,
        throughputs: &Arc<Throughputs>,
    ) -> Result<Problem, InstanceError> {
        self.check(n_jobs)?;
        match self {
            Self::Matrix { distinct, .. } => matrix(n_jobs, seed, throughputs, *distinct),
            Self::Random { types, heterogeneity, density } => {
                let workers = vec![workers(n_jobs, *types); *types];
                let sparse = |stream: &mut Stream, runs: &mut [bool]| {
                    let sure = stream.below(runs.len());
                    for (kind, runs) in runs.iter_mut().enumerate() {
                        *runs = stream.uniform() < *density || kind == sure;
                    }
                };
                let sizes: &[u32] =
                    if workers[0] >= WORKERS_MIN { &[1, 1, 1, 1, 1, 1, 1, 2, 4, 8] } else { &[1] };
                Ranges { workers: &workers, sizes, heterogeneity: *heterogeneity }
                    .problem(n_jobs, seed, sparse)
            }
            Self::Restricted { types, types_per_job } => {
                let mut stream = SeedStreams::new(seed).stream("benchmark workers");
                let workers: Vec<u32> = (0..*types).map(|_| *stream.choice(&[1, 2, 3, 4])).collect();
                let few = |stream: &mut Stream, runs: &mut [bool]| {
                    runs.fill(false);
                    for _ in 0..=stream.below(*types_per_job) {
                        let kind = stream.below(runs.len());
                        runs[kind] = true;
                    }
                };
                Ranges { workers: &workers, sizes: &[1], heterogeneity: 10.0 }.problem(n_jobs, seed, few)
            }
        }
    }

    /// Checks that the parameters and the number of jobs are within their ranges.
    ///
    /// # Errors
    /// If one is not within its range.
    pub fn check(&self, n_jobs: usize) -> Result<(), InstanceError> {
        let refuse = |what, value, expected| Err(InstanceError::Parameter { what, value, expected });
        if n_jobs == 0 {
            return refuse("the number of jobs", 0.0, "at least 1");
        }
        if n_jobs > JOBS_MAX {
            return refuse("the number of jobs", n_jobs as f64, "at most 2 to the power of 31");
        }
        match self {
            Self::Random { types, .. } | Self::Restricted { types, .. } if *types > TYPES_MAX => {
                refuse("the number of worker types", *types as f64, "at most 65536")
            }
            Self::Random { types: 0, .. } | Self::Restricted { types: 0, .. } => {
                refuse("the number of worker types", 0.0, "at least 1")
            }
            Self::Random { heterogeneity, .. } if !(heterogeneity.is_finite() && *heterogeneity >= 1.0) => {
                refuse("the heterogeneity", *heterogeneity, "a finite number, at least 1")
            }
            Self::Random { density, .. } if !(*density > 0.0 && *density <= 1.0) => {
                refuse("the density", *density, "a part of 1, above 0")
            }
            Self::Restricted { types_per_job: 0, .. } => {
                refuse("the number of types a job runs on", 0.0, "at least 1")
            }
            Self::Matrix { .. } | Self::Random { .. } | Self::Restricted { .. } => Ok(()),
        }
    }
}

/// Number of workers of each of `n_types` types: in all as many as three types with a quarter of the number of jobs each.
fn workers(n_jobs: usize, n_types: usize) -> u32 {
    let each = (3 * n_jobs / (JOBS_PER_WORKER * n_types)).max(1);
    u32::try_from(each).unwrap_or(u32::MAX)
}

/// A cluster with a price for each type, the first type the most expensive.
fn cluster<S: Into<String>>(types: impl IntoIterator<Item = (S, u32)>) -> Result<Cluster, ClusterError> {
    let mut cluster = Cluster::try_new(types)?;
    let ids: Vec<_> = cluster.types().ids().collect();
    for id in ids {
        cluster.set_price(id, DollarsPerWorkerHour::new(3.0 / (1.0 + id.index() as f64)));
    }
    Ok(cluster)
}

/// Streams of the numbers that all kinds of instance draw: owners and work done so far.
struct Draws {
    entity: Stream,
    done: Stream,
    weight: Stream,
}

impl Draws {
    fn new(seed: u64) -> Self {
        let stream = |name: &str| SeedStreams::new(seed).stream(format!("benchmark {name}"));
        Self { entity: stream("entities"), done: stream("done"), weight: stream("weights") }
    }

    /// A job with a part of its work done: `steps` in all, which would take `duration` alone, s.
    fn job(&mut self, position: usize, steps: f64, duration: f64) -> ActiveJob {
        let done = 0.9 * self.done.uniform();
        ActiveJob {
            steps_remaining: Steps::new(steps * (1.0 - done)),
            elapsed: Seconds::new(2.0 * done * duration),
            entity: Some(EntityId::from_index(self.entity.below(N_ENTITIES as usize))),
            ..ActiveJob::new(JobId::from_index(position))
        }
    }
}

fn builder(cluster: Cluster) -> ProblemBuilder {
    let mut builder = ProblemBuilder::new(Arc::new(cluster));
    for weight in 1..=N_ENTITIES {
        let (name, weight) = (format!("entity {weight}"), f64::from(weight));
        builder.entity(Entity { name, weight, inner: InnerRule::Fairness, parent: None });
    }
    builder
}

fn matrix(
    n_jobs: usize,
    seed: u64,
    throughputs: &Arc<Throughputs>,
    distinct: bool,
) -> Result<Problem, InstanceError> {
    let n_workers = u32::try_from(n_jobs / JOBS_PER_WORKER).unwrap_or(u32::MAX).max(WORKERS_MIN);
    let cluster = cluster(throughputs.worker_types().iter().map(|name| (name.clone(), n_workers)))?;
    let columns = matrix_columns(&cluster, throughputs)?;
    let options = WorkloadOptions::at_once(n_jobs).multi_worker(true).slos(true);
    let mut jobs = Gavel::try_new(options, Arc::clone(throughputs), seed)?;
    let mut draws = Draws::new(seed);
    let mut builder = builder(cluster);
    let mut speeds = vec![0.0; columns.len()];
    for position in 0..n_jobs {
        let Some(job) = jobs.next_job() else { break };
        let row = throughputs.find(&job.job_type, job.scale_factor);
        for (speed, column) in speeds.iter_mut().zip(&columns) {
            *speed = row.zip(*column).map_or(0.0, |(row, column)| throughputs.alone(row, column));
        }
        let duration = job.duration.map_or(0.0, Seconds::get);
        let mut active = draws.job(position, job.total_steps.get(), duration);
        active.scale_factor = job.scale_factor;
        active.slo_remaining = job.slo.map(|slo| Seconds::new(slo.get() - active.elapsed.get()));
        active.row = row;
        if distinct {
            active.weight = draws.weight.uniform_in(1.0, 2.0);
        }
        builder.job(active, &speeds);
    }
    builder.colocation(Colocation::Rows { throughputs: Arc::clone(throughputs), columns });
    Ok(builder.build()?)
}

/// Ranges of the numbers of random jobs.
struct Ranges<'a> {
    /// Number of workers of each type: `[K]`.
    workers: &'a [u32],
    /// Scale factors, each drawn with the same probability.
    sizes: &'a [u32],
    heterogeneity: f64,
}

impl Ranges<'_> {
    fn problem(
        &self,
        n_jobs: usize,
        seed: u64,
        mut runs_on: impl FnMut(&mut Stream, &mut [bool]),
    ) -> Result<Problem, InstanceError> {
        let n_types = self.workers.len();
        let cluster = cluster(self.workers.iter().enumerate().map(|(kind, n)| (format!("type{kind}"), *n)))?;
        let stream = |name: &str| SeedStreams::new(seed).stream(format!("benchmark {name}"));
        let (mut speed, mut pattern, mut size, mut duration) =
            (stream("speeds"), stream("pattern"), stream("sizes"), stream("durations"));
        let mut draws = Draws::new(seed);
        let mut builder = builder(cluster);
        let (mut speeds, mut runs) = (vec![0.0; n_types], vec![false; n_types]);
        for position in 0..n_jobs {
            let own = JOB_SPEED_MAX.powf(speed.uniform());
            runs_on(&mut pattern, &mut runs);
            for (value, runs) in speeds.iter_mut().zip(&runs) {
                *value = if *runs { own * self.heterogeneity.powf(-speed.uniform()) } else { 0.0 };
            }
            let seconds = 60.0 * 10.0_f64.powf(duration.uniform_in(1.5, 4.0));
            let mut active = draws.job(position, seconds * own, seconds);
            active.scale_factor = *size.choice(self.sizes);
            active.slo_remaining = Some(Seconds::new(10.0 * seconds));
            builder.job(active, &speeds);
        }
        Ok(builder.build()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn osdi20() -> Arc<Throughputs> {
        Throughputs::embedded("osdi20").unwrap()
    }

    #[test]
    fn a_seed_draws_the_same_problem_again() {
        let kinds = [
            Instance::Matrix { throughputs: "osdi20".to_owned(), distinct: false },
            Instance::Random { types: 3, heterogeneity: 10.0, density: 0.5 },
            Instance::Restricted { types: 40, types_per_job: 5 },
        ];
        for kind in kinds {
            let draw = |seed| kind.problem(60, seed, &osdi20()).unwrap();
            assert_eq!(draw(3).jobs(), draw(3).jobs(), "{kind}");
            assert_eq!(draw(3).throughput(), draw(3).throughput(), "{kind}");
            assert_ne!(draw(3).jobs(), draw(4).jobs(), "{kind}");
        }
    }

    #[test]
    fn heterogeneity_bounds_how_far_types_differ() {
        let kind = Instance::Random { types: 4, heterogeneity: 5.0, density: 1.0 };
        let problem = kind.problem(200, 1, &osdi20()).unwrap();
        for job in problem.jobs().ids() {
            let row = problem.throughput().row(job);
            let most = row.iter().copied().fold(0.0, f64::max);
            assert!(row.iter().all(|speed| *speed > 0.0 && most / speed <= 5.0));
        }
    }

    #[test]
    fn restricted_jobs_run_on_a_few_types() {
        let kind = Instance::Restricted { types: 456, types_per_job: 8 };
        let problem = kind.problem(300, 1, &osdi20()).unwrap();
        for job in problem.jobs().ids() {
            let n = problem.throughput().row(job).iter().filter(|speed| **speed > 0.0).count();
            assert!((1..=8).contains(&n), "{n}");
        }
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        let refused = |kind: Instance, n: usize| kind.problem(n, 0, &osdi20()).unwrap_err().to_string();
        let random = |heterogeneity, density| Instance::Random { types: 2, heterogeneity, density };
        assert!(refused(random(0.5, 1.0), 5).contains("heterogeneity is 0.5"));
        assert!(refused(random(2.0, 0.0), 5).contains("density is 0"));
        assert!(refused(random(2.0, 1.0), 0).contains("number of jobs"));
    }
}
