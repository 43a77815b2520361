//! Why a job gets its share: the constraints that bind, and what they cost.

use crate::index::{Id, JobIndex, WorkerTypeId};
use crate::policy::decision::{Decision, ObjectiveReport};
use crate::problem::Problem;
use crate::program::Program;

/// An answer to "why does this job get this share".
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The decision explained.
    pub decision: Decision,
    /// How the optimum was found and why so; a rule's summary for heuristics.
    pub reason: String,
    /// What the worker types' capacity is worth: `[K]`.
    pub types: Vec<TypeExplanation>,
    /// Job by job: `[n]`.
    pub jobs: Vec<JobExplanation>,
    /// The program whose dual values these are, over classes of interchangeable jobs; none without one.
    pub program: Option<Program>,
}

/// A worker type's use and price.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TypeExplanation {
    /// Workers in use, summed over shares.
    pub workers_used: f64,
    /// Workers there are.
    pub workers: f64,
    /// Change of the objective if there were one worker more (its dual value); none without a program.
    pub one_more: Option<f64>,
}

/// What holds a job where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// It sets the objective: its demand for throughput has a positive price.
    Bottleneck,
    /// It runs all the time; only faster workers would help it.
    Time,
    /// It would use more time, on worker types that are given away.
    Capacity,
    /// It had more time, which was taken for what its presence costs the others.
    Discount,
    /// Nothing: it has time left that the objective does not ask for.
    Free,
}

/// The step of water filling at which a job's level was fixed.
#[derive(Clone, Debug, PartialEq)]
pub struct Fixed {
    /// Which step, the first being 1.
    pub step: usize,
    /// Of how many.
    pub steps: usize,
    /// The job's level.
    pub level: f64,
    /// Change of the level that rose at that step if there were one worker more of a type: `[K]`.
    pub one_more: Vec<f64>,
    /// Its change per step/s asked of the job.
    pub throughput_price: f64,
    /// Its change per unit of time the job had beyond all of it: more than 0 where time bound the job.
    pub time_price: f64,
}

/// One job's part.
#[derive(Clone, Debug, PartialEq)]
pub struct JobExplanation {
    /// Its share of time, over all worker types and partners.
    pub time: f64,
    /// What holds it.
    pub binding: Binding,
    /// Change of the objective per step/s that is asked of the job or given to it; none without a program.
    pub throughput_price: Option<f64>,
    /// Change of the objective per unit of time the job had beyond all of it; none without a program.
    pub time_price: Option<f64>,
    /// The part of its time that the job keeps, where a policy discounts it.
    pub discount: Option<f64>,
    /// Where its level was fixed, under water filling.
    pub fixed: Option<Fixed>,
}

/// Below this a worker type's idle capacity, or a job's idle time, counts as none.
const IDLE_MIN: f64 = 1e-6;

impl Explanation {
    /// What can be read off the shares alone, for policies without a program.
    pub fn of_shares(problem: &Problem, decision: Decision, reason: String) -> Self {
        let types = used(problem, &decision);
        let jobs = job_times(problem, &decision)
            .into_iter()
            .enumerate()
            .map(|(job, time)| JobExplanation {
                time,
                binding: binding(problem, JobIndex::from_index(job), time, &types),
                throughput_price: None,
                time_price: None,
                discount: None,
                fixed: None,
            })
            .collect();
        Self { decision, reason, types, jobs, program: None }
    }

    /// The objective explained, if there is one.
    pub fn objective(&self) -> Option<&ObjectiveReport> {
        self.decision.objective.as_ref()
    }
}

fn binding(problem: &Problem, job: JobIndex, time: f64, types: &[TypeExplanation]) -> Binding {
    if time >= 1.0 - IDLE_MIN {
        return Binding::Time;
    }
    let runs = |kind: usize| problem.throughput()[(job, WorkerTypeId::from_index(kind))] > 0.0;
    let full = |kind: &TypeExplanation| kind.workers_used >= kind.workers - IDLE_MIN * kind.workers.max(1.0);
    let all_full = types.iter().enumerate().filter(|(kind, _)| runs(*kind)).all(|(_, kind)| full(kind));
    if all_full { Binding::Capacity } else { Binding::Free }
}

fn used(problem: &Problem, decision: &Decision) -> Vec<TypeExplanation> {
    let allocation = &decision.allocation;
    let mut workers = vec![0.0; problem.n_types()];
    for (id, combination) in allocation.combinations().enumerate() {
        let scale_factor = f64::from(problem.jobs()[combination.first()].scale_factor);
        for (used, share) in workers.iter_mut().zip(allocation.shares().row(id)) {
            *used += scale_factor * share;
        }
    }
    let kinds = problem.cluster().types().iter();
    kinds
        .zip(workers)
        .map(|(kind, workers_used)| TypeExplanation {
            workers_used,
            workers: f64::from(kind.n_workers),
            one_more: None,
        })
        .collect()
}

fn job_times(problem: &Problem, decision: &Decision) -> Vec<f64> {
    let mut time = vec![0.0; problem.n_jobs()];
    for (id, combination) in decision.allocation.combinations().enumerate() {
        let share: f64 = decision.allocation.shares().row(id).iter().sum();
        for job in combination.members() {
            time[job.index()] += share;
        }
    }
    time
}
