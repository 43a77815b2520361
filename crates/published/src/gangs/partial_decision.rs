//! Partial decisions: the jobs that have been given workers, and the workers that are free.

use apportion::index::{IndexVec, JobIndex, WorkerTypeId};
use apportion::policy::PolicyError;
use apportion::policy::heuristic::workers::{by_arrival, check_steps};
use apportion::problem::Problem;

const HOUR_S: f64 = 3600.0;

/// Facts about a job that do not change while a decision is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// Steps/s on the fastest type with workers enough.
    pub(super) fastest: f64,
    /// Remaining time on that type, h.
    pub(super) hours: f64,
    /// The part, from 0 to 1, of the other jobs with less remaining service (time on the fastest type × workers); jobs with as much
    /// count half.
    pub(super) rank: f64,
    /// The type of which the last decision gave the job its largest share.
    pub(super) held: Option<WorkerTypeId>,
}

/// Jobs that have been given workers so far, and the workers that are free.
#[derive(Clone, Debug)]
pub struct PartialDecision {
    free: IndexVec<WorkerTypeId, u32>,
    placed: IndexVec<JobIndex, Option<WorkerTypeId>>,
    by_arrival: Vec<JobIndex>,
    facts: IndexVec<JobIndex, Facts>,
    /// Mean of ln (speed / fastest speed) over the jobs that run on the type.
    mean_ratio: IndexVec<WorkerTypeId, f64>,
    /// Types with workers, by descending mean ratio.
    by_speed: Vec<WorkerTypeId>,
    /// The number of workers that jobs without workers need.
    wanted: u64,
}

impl PartialDecision {
    /// A decision in which no job has workers yet; `held` gives the type of each job's largest share in the last decision.
    ///
    /// # Errors
    /// If a job has no steps left.
    pub fn new(
        policy: &str,
        problem: &Problem,
        held: impl Fn(JobIndex) -> Option<WorkerTypeId>,
    ) -> Result<Self, PolicyError> {
        check_steps(policy, problem)?;
        let types = problem.cluster().types();
        let free: IndexVec<WorkerTypeId, u32> = types.iter().map(|kind| kind.n_workers).collect();
        let facts: IndexVec<JobIndex, Facts> = problem
            .jobs()
            .enumerate()
            .map(|(job, active)| {
                let large_enough =
                    |(speed, n_workers): (&f64, &u32)| (*n_workers >= active.scale_factor).then_some(*speed);
                let row = problem.throughput().row(job).iter();
                let fastest = row.zip(free.iter()).filter_map(large_enough).fold(0.0, f64::max);
                let hours = active.steps_remaining.get() / fastest / HOUR_S;
                Facts { fastest, hours, rank: 0.0, held: held(job) }
            })
            .collect();
        let facts = with_ranks(problem, facts);
        let mean_ratio: IndexVec<WorkerTypeId, f64> =
            types.ids().map(|kind| mean_ratio(problem, &facts, kind)).collect();
        let mut by_speed: Vec<WorkerTypeId> = types.ids().filter(|kind| free[*kind] > 0).collect();
        by_speed.sort_by(|one, other| mean_ratio[*other].total_cmp(&mean_ratio[*one]));
        let wanted = problem.jobs().iter().map(|active| u64::from(active.scale_factor)).sum();
        let placed = problem.jobs().iter().map(|_| None).collect();
        Ok(Self { free, placed, by_arrival: by_arrival(problem), facts, mean_ratio, by_speed, wanted })
    }

    /// Free workers of a type.
    pub fn free(&self, kind: WorkerTypeId) -> u32 {
        self.free[kind]
    }

    /// Free workers of all types.
    pub fn n_free(&self) -> u64 {
        self.free.iter().map(|free| u64::from(*free)).sum()
    }

    /// The number of workers that jobs without workers need.
    pub fn n_wanted(&self) -> u64 {
        self.wanted
    }

    /// Types with workers, the type on which jobs are relatively fastest first.
    pub fn types(&self) -> &[WorkerTypeId] {
        &self.by_speed
    }

    /// Whether the job can be given its workers on this type.
    pub fn fits(&self, problem: &Problem, job: JobIndex, kind: WorkerTypeId) -> bool {
        self.placed[job].is_none()
            && self.free[kind] >= problem.jobs()[job].scale_factor
            && problem.throughput()[(job, kind)] > 0.0
    }

    /// Jobs that can still be given workers, by arrival.
    pub fn open<'a>(&'a self, problem: &'a Problem) -> impl Iterator<Item = JobIndex> + 'a {
        let fits = |job: &JobIndex| self.by_speed.iter().any(|kind| self.fits(problem, *job, *kind));
        self.by_arrival.iter().copied().filter(fits)
    }

    /// Gives a job its workers of a type.
    ///
    /// # Panics
    /// If it does not [fit](Self::fits).
    pub fn place(&mut self, problem: &Problem, job: JobIndex, kind: WorkerTypeId) {
        assert!(self.fits(problem, job, kind), "job {job} does not fit on worker type {kind}");
        let scale_factor = problem.jobs()[job].scale_factor;
        self.free[kind] -= scale_factor;
        self.wanted -= u64::from(scale_factor);
        self.placed[job] = Some(kind);
    }

    /// Jobs that have been given workers, with their types, in order of the jobs.
    pub fn placed(&self) -> impl Iterator<Item = (JobIndex, WorkerTypeId)> {
        self.placed.enumerate().filter_map(|(job, kind)| Some((job, (*kind)?)))
    }

    /// Whether any job has been given workers.
    pub fn has_placed(&self) -> bool {
        self.placed.iter().any(Option::is_some)
    }

    pub(super) fn facts(&self, job: JobIndex) -> &Facts {
        &self.facts[job]
    }

    pub(super) fn mean_ratio(&self, kind: WorkerTypeId) -> f64 {
        self.mean_ratio[kind]
    }
}

/// The facts with each job's rank filled in; jobs with equal remaining service have the mean of their places.
fn with_ranks(problem: &Problem, mut facts: IndexVec<JobIndex, Facts>) -> IndexVec<JobIndex, Facts> {
    let service = |job: JobIndex| facts[job].hours * f64::from(problem.jobs()[job].scale_factor);
    let mut order: Vec<(f64, JobIndex)> = problem.jobs().ids().map(|job| (service(job), job)).collect();
    order.sort_by(|one, other| one.0.total_cmp(&other.0));
    let others = (order.len().max(2) - 1) as f64;
    let mut place = 0;
    for equal in order.chunk_by(|one, other| one.0.total_cmp(&other.0).is_eq()) {
        let mean = place as f64 + (equal.len() - 1) as f64 / 2.0;
        for (_, job) in equal {
            facts[*job].rank = mean / others;
        }
        place += equal.len();
    }
    facts
}

fn mean_ratio(problem: &Problem, facts: &IndexVec<JobIndex, Facts>, kind: WorkerTypeId) -> f64 {
    let speeds = problem.jobs().ids().map(|job| (problem.throughput()[(job, kind)], facts[job].fastest));
    let ratios: Vec<f64> =
        speeds.filter(|(speed, _)| *speed > 0.0).map(|(speed, fastest)| (speed / fastest).ln()).collect();
    ratios.iter().sum::<f64>() / ratios.len().max(1) as f64
}
