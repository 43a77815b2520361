//! One decision's input: a frozen, dense snapshot of cluster, active jobs and throughputs.
//!
//! It holds everything that a policy may know and nothing else: no clock, no trace, no future. [`Problem::new`] makes one
//! from a cluster and jobs, and [`ProblemBuilder`] from parts, for a simulator or a snapshot file; both check it once.

pub mod snapshot;

mod beside;
mod edit;
mod kinds;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::cluster::Cluster;
use crate::index::{EntityId, Id, IndexVec, JobId, JobIndex, Matrix, RowId, WorkerTypeId};
use crate::throughput::Throughputs;
use crate::units::{Seconds, Steps};
use crate::workload::{Combination, Job, SizesError};
pub use beside::Sharer;
pub(crate) use beside::colocated_as_given;

/// An active job as a policy sees it, apart from its throughputs.
#[derive(Clone, Debug, PartialEq)]
pub struct ActiveJob {
    /// Identifier of the job in the workload.
    pub id: JobId,
    /// Workers it needs at once, ≥ 1.
    pub scale_factor: u32,
    /// Importance, > 0.
    pub weight: f64,
    /// Work left, in steps.
    pub steps_remaining: Steps,
    /// Time since its arrival.
    pub elapsed: Seconds,
    /// Isolated time accumulated so far, for finish-time fairness. A policy that needs it reads this when it first
    /// sees the job and keeps its own count from then on.
    pub isolated_elapsed: Seconds,
    /// Time left to its SLO, if it has one.
    pub slo_remaining: Option<Seconds>,
    /// Its owner, if any.
    pub entity: Option<EntityId>,
    /// Its row of the throughput matrix, by which pairs find their co-located throughputs.
    pub row: Option<RowId>,
}

impl ActiveJob {
    /// A job that has just arrived: one worker, weight 1, no work stated.
    pub fn new(id: JobId) -> Self {
        Self {
            id,
            scale_factor: 1,
            weight: 1.0,
            steps_remaining: Steps::ZERO,
            elapsed: Seconds::ZERO,
            isolated_elapsed: Seconds::ZERO,
            slo_remaining: None,
            entity: None,
            row: None,
        }
    }
}

/// How an entity divides its share among its jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InnerRule {
    /// In proportion to the jobs' weights.
    Fairness,
    /// All to the job that has waited longest, the first listed of several.
    Fifo,
}

/// An owner of jobs, or of other entities.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entity {
    /// Its name.
    pub name: String,
    /// Its weight among its siblings, > 0.
    pub weight: f64,
    /// How it divides its share.
    pub inner: InnerRule,
    /// The entity it belongs to, for deeper trees.
    pub parent: Option<EntityId>,
}

/// Source of the throughputs of pairs of jobs.
#[derive(Clone, Debug)]
pub enum Colocation {
    /// No job may share workers.
    None,
    /// From the matrix, by the jobs' rows.
    Rows {
        /// The matrix.
        throughputs: Arc<Throughputs>,
        /// The matrix's column of each of the cluster's worker types; `None` = not in the matrix.
        columns: IndexVec<WorkerTypeId, Option<WorkerTypeId>>,
    },
    /// Given pair by pair: steps/s of the first and of the second member, per worker type.
    Pairs(BTreeMap<Combination<JobIndex>, Vec<[f64; 2]>>),
}

/// Reason why a problem is refused.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ProblemError {
    /// A job type the matrix does not have at this scale factor.
    #[error("job {job}: no throughputs for `{job_type}` at scale factor {scale_factor}")]
    UnknownJobType {
        /// Position of the job.
        job: usize,
        /// Its type.
        job_type: String,
        /// Its scale factor.
        scale_factor: u32,
    },
    /// A worker type of the cluster that the matrix lacks, while jobs look their throughputs up in it.
    #[error("worker type `{name}` is not in throughputs `{throughputs}`, expected one of {expected}")]
    UnknownWorkerType {
        /// The type's name.
        name: String,
        /// The matrix's name.
        throughputs: String,
        /// The names there are.
        expected: String,
    },
    /// A job that no worker type can run.
    #[error("job {job} can run on no worker type of the cluster at scale factor {scale_factor}")]
    RunsNowhere {
        /// Position of the job.
        job: usize,
        /// Its scale factor.
        scale_factor: u32,
    },
    /// Invalid sizes of a job.
    #[error("job {job}: {source}")]
    Sizes {
        /// Position of the job.
        job: usize,
        /// Why the job's sizes are refused.
        source: SizesError,
    },
    /// A number out of its range.
    #[error("job {job}: {field} is {value}, expected {expected}")]
    Value {
        /// Position of the job.
        job: usize,
        /// The field.
        field: &'static str,
        /// The value that was given.
        value: f64,
        /// The values that are allowed, in words.
        expected: &'static str,
    },
    /// Two jobs with the same id.
    #[error("jobs {first} and {second} have the same id")]
    DuplicateId {
        /// Position of the earlier job.
        first: usize,
        /// Position of the later job.
        second: usize,
    },
}

impl ProblemError {
    /// The position of the job at fault; of two with the same id, the later one. `None` if the cluster is at fault.
    pub fn job(&self) -> Option<usize> {
        match self {
            Self::UnknownJobType { job, .. }
            | Self::RunsNowhere { job, .. }
            | Self::Sizes { job, .. }
            | Self::Value { job, .. } => Some(*job),
            Self::DuplicateId { second, .. } => Some(*second),
            Self::UnknownWorkerType { .. } => None,
        }
    }
}

/// The input of one decision: n jobs, K worker types, and throughputs [n × K] in steps/s.
///
/// ```
/// use apportion::{Cluster, Job, Problem, Throughputs};
///
/// let cluster: Cluster = "v100=4,k80=8".parse()?;
/// let jobs = [Job::new("ResNet-50 (batch size 64)").scale_factor(2).steps(1_000)];
/// let problem = Problem::new(&cluster, &jobs, &Throughputs::embedded("osdi20")?)?;
/// assert_eq!((problem.n_jobs(), problem.n_types()), (1, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Problem {
    cluster: Arc<Cluster>,
    jobs: IndexVec<JobIndex, ActiveJob>,
    throughput: Matrix<JobIndex, WorkerTypeId>,
    colocation: Colocation,
    /// The kind of each job, `[n]`, where pairs are given one by one; filled when first asked for.
    kinds: OnceLock<Vec<u32>>,
    /// Shared by the problems of all instants of a simulation.
    entities: Arc<IndexVec<EntityId, Entity>>,
    extra: BTreeMap<String, Vec<f64>>,
}

/// Collects the parts of a [`Problem`].
#[derive(Clone, Debug)]
pub struct ProblemBuilder {
    problem: Problem,
}

impl Problem {
    /// The problem of dividing `cluster` among `jobs` that have just arrived, co-located throughputs included.
    /// Worker types keep the cluster's order.
    ///
    /// # Errors
    /// If a job's type or a worker type is not in the matrix, a number is out of range, or a job runs nowhere.
    pub fn new(
        cluster: &Cluster,
        jobs: &[Job],
        throughputs: &Arc<Throughputs>,
    ) -> Result<Self, ProblemError> {
        let columns = matrix_columns(cluster, throughputs)?;
        let mut builder = ProblemBuilder::new(Arc::new(cluster.clone()));
        let mut entities: BTreeMap<&str, EntityId> = BTreeMap::new();
        for (index, job) in jobs.iter().enumerate() {
            let row = throughputs.find(&job.job_type, job.scale_factor);
            let speeds: Vec<f64> = match (&job.throughput, row) {
                (Some(own), _) => {
                    let own_on =
                        |name: &str| own.iter().find(|(t, _)| t == name).map_or(0.0, |(_, v)| v.get());
                    cluster.types().iter().map(|t| own_on(&t.name)).collect()
                }
                (None, Some(row)) => {
                    columns.iter().map(|c| c.map_or(0.0, |c| throughputs.alone(row, c))).collect()
                }
                (None, None) => {
                    let (job_type, scale_factor) = (job.job_type.clone(), job.scale_factor);
                    return Err(ProblemError::UnknownJobType { job: index, job_type, scale_factor });
                }
            };
            let entity = job.entity.as_deref().map(|name| {
                *entities.entry(name).or_insert_with(|| {
                    let (weight, inner) = (1.0, InnerRule::Fairness);
                    builder.entity(Entity { name: name.to_owned(), weight, inner, parent: None })
                })
            });
            let active = ActiveJob {
                scale_factor: job.scale_factor,
                weight: job.weight,
                steps_remaining: job.total_steps,
                slo_remaining: job.slo,
                entity,
                row,
                ..ActiveJob::new(JobId::from_index(index))
            };
            builder.job(active, &speeds);
        }
        builder.colocation(Colocation::Rows { throughputs: Arc::clone(throughputs), columns });
        builder.build()
    }

    /// The cluster.
    #[inline]
    pub fn cluster(&self) -> &Arc<Cluster> {
        &self.cluster
    }

    /// Number of active jobs, n.
    pub fn n_jobs(&self) -> usize {
        self.jobs.len()
    }

    /// Number of worker types, K.
    #[inline]
    pub fn n_types(&self) -> usize {
        self.cluster.n_types()
    }

    /// The active jobs: `[n]`.
    #[inline]
    pub fn jobs(&self) -> &IndexVec<JobIndex, ActiveJob> {
        &self.jobs
    }

    /// Steps/s of each job alone: [n × K]; 0 = cannot run there.
    #[inline]
    pub fn throughput(&self) -> &Matrix<JobIndex, WorkerTypeId> {
        &self.throughput
    }

    /// Owners of the jobs.
    pub fn entities(&self) -> &IndexVec<EntityId, Entity> {
        &self.entities
    }

    /// Further per-job columns that the caller supplied, by name: each `[n]`.
    pub fn extra(&self) -> &BTreeMap<String, Vec<f64>> {
        &self.extra
    }

    /// The source of the throughputs of pairs.
    pub fn colocation(&self) -> &Colocation {
        &self.colocation
    }
}

/// The matrix's column of each of the cluster's worker types.
///
/// # Errors
/// If the matrix lacks one that has workers.
pub fn matrix_columns(
    cluster: &Cluster,
    throughputs: &Throughputs,
) -> Result<IndexVec<WorkerTypeId, Option<WorkerTypeId>>, ProblemError> {
    let mut columns = IndexVec::new();
    for worker_type in cluster.types() {
        let column = throughputs.find_worker_type(&worker_type.name);
        if column.is_none() && worker_type.n_workers > 0 {
            let expected: Vec<_> =
                throughputs.worker_types().iter().map(|name| format!("`{name}`")).collect();
            return Err(ProblemError::UnknownWorkerType {
                name: worker_type.name.clone(),
                throughputs: throughputs.name().to_owned(),
                expected: expected.join(", "),
            });
        }
        columns.push(column);
    }
    Ok(columns)
}

impl ProblemBuilder {
    /// A builder without jobs.
    pub fn new(cluster: Arc<Cluster>) -> Self {
        let throughput = Matrix::with_columns(cluster.n_types());
        let (jobs, entities) = (IndexVec::new(), Arc::default());
        let problem = Problem {
            cluster,
            jobs,
            throughput,
            colocation: Colocation::None,
            kinds: OnceLock::new(),
            entities,
            extra: BTreeMap::new(),
        };
        Self { problem }
    }

    /// Reserves room for `n_jobs` more jobs.
    pub fn reserve(&mut self, n_jobs: usize) -> &mut Self {
        self.problem.jobs.reserve(n_jobs);
        self.problem.throughput.reserve(n_jobs);
        self
    }

    /// Adds a job with its steps/s alone on each worker type: `[K]`.
    pub fn job(&mut self, job: ActiveJob, throughput: &[f64]) -> JobIndex {
        self.problem.throughput.push_row(throughput);
        self.problem.jobs.push(job)
    }

    /// Adds an owner of jobs.
    pub fn entity(&mut self, entity: Entity) -> EntityId {
        Arc::make_mut(&mut self.problem.entities).push(entity)
    }

    /// Sets the owners of jobs, in place of any added so far.
    pub(crate) fn entities(&mut self, entities: Arc<IndexVec<EntityId, Entity>>) -> &mut Self {
        self.problem.entities = entities;
        self
    }

    /// Sets the source of the throughputs of pairs; by default no job shares workers.
    pub fn colocation(&mut self, colocation: Colocation) -> &mut Self {
        self.problem.colocation = colocation;
        self
    }

    /// Adds a per-job column that policy files may name: `[n]`.
    pub fn extra(&mut self, name: impl Into<String>, column: Vec<f64>) -> &mut Self {
        self.problem.extra.insert(name.into(), column);
        self
    }

    /// The problem, after a check of all parts.
    ///
    /// # Errors
    /// If an id comes twice, a number is out of its range, or a job can run nowhere.
    ///
    /// # Panics
    /// If an extra column does not have one value per job.
    pub fn build(self) -> Result<Problem, ProblemError> {
        let problem = self.problem;
        check_ids(&problem.jobs)?;
        for (index, job) in problem.jobs.enumerate() {
            check_job(index.index(), job)?;
            check_speeds(index.index(), job, problem.throughput.row(index), &problem.cluster)?;
        }
        for column in problem.extra.values() {
            assert_eq!(column.len(), problem.jobs.len(), "an extra column has one value per job");
        }
        Ok(problem)
    }
}

/// Refuses ids that come twice; ids in ascending order, as in most problems, need only one pass.
fn check_ids(jobs: &IndexVec<JobIndex, ActiveJob>) -> Result<(), ProblemError> {
    if jobs.as_slice().is_sorted_by(|a, b| a.id < b.id) {
        return Ok(());
    }
    let mut seen = BTreeMap::new();
    for (index, job) in jobs.enumerate() {
        if let Some(first) = seen.insert(job.id, index.index()) {
            return Err(ProblemError::DuplicateId { first, second: index.index() });
        }
    }
    Ok(())
}

/// Refuses throughputs that are negative or not finite, and jobs that can run nowhere.
fn check_speeds(
    position: usize,
    job: &ActiveJob,
    row: &[f64],
    cluster: &Cluster,
) -> Result<(), ProblemError> {
    if let Some(value) = row.iter().find(|value| !(value.is_finite() && **value >= 0.0)) {
        let (field, expected) = ("throughput", "a finite number of steps/s, at least 0");
        return Err(ProblemError::Value { job: position, field, value: *value, expected });
    }
    let mut speeds = cluster.types().iter().zip(row);
    if speeds.any(|(kind, speed)| *speed > 0.0 && kind.n_workers >= job.scale_factor) {
        return Ok(());
    }
    Err(ProblemError::RunsNowhere { job: position, scale_factor: job.scale_factor })
}

fn check_job(position: usize, job: &ActiveJob) -> Result<(), ProblemError> {
    let positive = |value: f64| value.is_finite() && value > 0.0;
    let not_negative = |value: f64| value.is_finite() && value >= 0.0;
    let checks = [
        (
            "scale_factor",
            f64::from(job.scale_factor),
            job.scale_factor >= 1,
            "a whole number of workers, at least 1",
        ),
        ("weight", job.weight, positive(job.weight), "a finite number above 0"),
        (
            "steps_remaining",
            job.steps_remaining.get(),
            not_negative(job.steps_remaining.get()),
            "a finite number, at least 0",
        ),
        (
            "elapsed",
            job.elapsed.get(),
            not_negative(job.elapsed.get()),
            "a finite number of seconds, at least 0",
        ),
        (
            "isolated_elapsed",
            job.isolated_elapsed.get(),
            not_negative(job.isolated_elapsed.get()),
            "a finite number of seconds, at least 0",
        ),
        (
            "slo_remaining",
            job.slo_remaining.map_or(0.0, Seconds::get),
            job.slo_remaining.is_none_or(Seconds::is_finite),
            "a finite number of seconds",
        ),
    ];
    match checks.into_iter().find(|(_, _, fine, _)| !fine) {
        None => Ok(()),
        Some((field, value, _, expected)) => {
            Err(ProblemError::Value { job: position, field, value, expected })
        }
    }
}
