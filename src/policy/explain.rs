//! Explanations of job shares: the constraints that bind, and their prices.

use crate::index::{Id, JobIndex, WorkerTypeId};
use crate::policy::decision::{Decision, ObjectiveReport};
use crate::policy::program::SolvedProgram;
use crate::problem::Problem;
use crate::program::expression::{Dimension, Subject};
use crate::units::Decimals;

/// An answer to "why does this job get this share".
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The decision explained.
    pub decision: Decision,
    /// The form of the policy's program, and why it has that form; for rules, that there is none.
    pub reason: String,
    /// Use and price of each worker type's capacity: `[K]`.
    pub types: Vec<TypeExplanation>,
    /// Data that the policy reads and that follow from the number of workers: the gain of one worker more is stated
    /// with these held as they are.
    pub held: Vec<String>,
    /// Explanation of each job's share: `[n]`.
    pub jobs: Vec<JobExplanation>,
    /// The policy's own constraints: those on jobs, then those on worker types, then those on the whole cluster.
    pub constraints: Vec<ConstraintExplanation>,
    /// Reason why no price is shown, where a program was solved and its prices are not known.
    pub prices_unknown: Option<&'static str>,
    /// The program with these dual values, over classes of interchangeable jobs; none without one.
    pub program: Option<SolvedProgram>,
}

/// A worker type's use and price.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TypeExplanation {
    /// Workers in use, summed over shares.
    pub workers_used: f64,
    /// Workers in the cluster.
    pub workers: f64,
    /// Whether all of its workers are given away, to a tolerance.
    pub binds: bool,
    /// Largest gain from one worker more (its dual value), if all data stay as they are, also those that follow from
    /// the number of workers, and no job fits there that does not now; none without a program, or where its prices
    /// are not known.
    pub one_more: Option<f64>,
}

/// One of the policy's own constraints, with the rows that it has in the program.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstraintExplanation {
    /// Text of the constraint in the policy file.
    pub text: String,
    /// Subject of each row, a job or a worker type; none if it is one constraint on the whole cluster.
    pub subject: Option<Subject>,
    /// The unit of its sides.
    pub unit: Dimension,
    /// Cost of a unit of violation, where it may be violated.
    pub penalty: Option<f64>,
    /// Whether it may be dropped for jobs.
    pub droppable: bool,
    /// Row for each job `[n]`, or for each worker type `[K]`, or one for the whole cluster.
    pub rows: Vec<ConstraintRow>,
}

/// A constraint's row for one job, for one worker type or for the whole cluster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConstraintRow {
    /// Change of the objective per unit added to the right side as it is written; none where that is not known, or the
    /// constraint was dropped. Of jobs that are alike, each has the same part of what changing all their rows does.
    pub price: Option<f64>,
    /// Room between the two sides in the decision, below 0 where the constraint is exceeded; +∞ where a side is no limit.
    pub slack: f64,
    /// Whether there is no room between the sides, to a tolerance.
    pub binds: bool,
    /// Whether it is exceeded by more than the tolerance.
    pub exceeded: bool,
    /// Whether it was dropped for the job.
    pub dropped: bool,
}

/// Reason for a job's share: the constraint or bound that limits it. Where a program was solved, only its prices tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// One of the policy's own constraints, whose row for the job has a price.
    Constraint,
    /// The objective: the job sets it, as its demand for throughput has a positive price.
    Bottleneck,
    /// The job's time: it runs all the time.
    Time,
    /// Workers: more time would take workers with a price, or use a constraint on workers that has a price; without a
    /// program: all workers of every type on which the job can run are in use.
    Capacity,
    /// The discount: the job had more time, which was taken for what its presence costs the others.
    Discount,
    /// Nothing: it has time left that the objective does not ask for; without a program: workers that it can run on idle.
    Free,
    /// Nothing: it has time left on workers that idle, which would raise the objective by less than its certificate tells.
    Unrefined,
    /// Unknown: the prices do not say, as where all workers that it can run on are given away at a price of 0, or are
    /// not known; without a program: of each worker type that the job can run on, fewer workers idle than it needs at once.
    Unexplained,
}

impl Binding {
    /// Name of the reason in JSON, in CSV and in Python.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Constraint => "constraint",
            Self::Bottleneck => "bottleneck",
            Self::Time => "time",
            Self::Capacity => "capacity",
            Self::Discount => "discount",
            Self::Free => "free",
            Self::Unrefined => "unrefined",
            Self::Unexplained => "unexplained",
        }
    }
}

/// A row with a price that limits a job's share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The row of one of the policy's own constraints, by position: the job's, of a worker type that it can run on, or of the
    /// whole cluster.
    Constraint(usize),
    /// All of the job's time.
    Time,
    /// The workers of every worker type that the job can run on, but those that a constraint of the policy limits.
    Capacity,
}

/// The step of water filling at which a job's level was fixed.
#[derive(Clone, Debug, PartialEq)]
pub struct Fixed {
    /// Number of the step, from 1.
    pub step: usize,
    /// Number of all steps.
    pub steps: usize,
    /// The job's level.
    pub level: f64,
    /// Change of the level that rose at that step if there were one worker more of a type: `[K]`; none for a type whose workers
    /// had a price at an earlier step, since one more of them raises that level first.
    pub one_more: Vec<Option<f64>>,
    /// Change of that level per step/s asked of the job; none where levels are of something else than throughput.
    pub throughput_price: Option<f64>,
    /// Change of that level per unit of time the job had beyond all of it: more than 0 where time bound the job.
    pub time_price: f64,
    /// Change of that level per unit added to the right side of each of the policy's own constraints, as it is
    /// written: of the job's row alone, of each worker type's, or of the whole cluster's, [constraints][1, or K];
    /// none for a row with a price at an earlier step.
    pub constraints: Vec<Vec<Option<f64>>>,
}

/// Explanation of one job's share.
#[derive(Clone, Debug, PartialEq)]
pub struct JobExplanation {
    /// Its share of time, over all worker types and partners.
    pub time: f64,
    /// The constraint or bound that limits its share.
    pub binding: Binding,
    /// Whether the job sets the objective: its demand for throughput has a price.
    pub sets_objective: bool,
    /// Rows with a price that limit its share: empty where the prices do not say, or there are none.
    pub limits: Vec<Limit>,
    /// Change of the objective per step/s that is asked of the job; none without a program, where its prices are not known,
    /// and where the objective asks no throughput of single jobs.
    pub throughput_price: Option<f64>,
    /// Change of the objective per unit of time the job had beyond all of it; none without a program, or where its prices
    /// are not known.
    pub time_price: Option<f64>,
    /// The part of its time that the job keeps, where a policy discounts it.
    pub discount: Option<f64>,
    /// Step of water filling at which its level was fixed; none without water filling.
    pub fixed: Option<Fixed>,
}

/// Idle capacity of a worker type, or idle time of a job, below which it counts as none.
pub(in crate::policy) const IDLE_MIN: f64 = 1e-6;

impl Explanation {
    /// Explanation from the shares alone, for policies without a program.
    pub fn of_shares(problem: &Problem, decision: Decision, reason: String) -> Self {
        let types = used(problem, &decision);
        let jobs = job_times(problem, &decision)
            .into_iter()
            .enumerate()
            .map(|(job, time)| JobExplanation {
                time,
                binding: binding(problem, JobIndex::from_index(job), time, &types),
                sets_objective: false,
                limits: Vec::new(),
                throughput_price: None,
                time_price: None,
                discount: None,
                fixed: None,
            })
            .collect();
        let (constraints, prices_unknown) = (Vec::new(), None);
        Self { decision, reason, types, held: Vec::new(), jobs, constraints, prices_unknown, program: None }
    }

    /// Reason for a job's share in words: half a sentence.
    ///
    /// # Panics
    /// If the problem has no such job.
    pub fn in_words(&self, job: JobIndex) -> String {
        let part = &self.jobs[job.index()];
        let words = self.reason_in_words(part);
        match part.fixed.as_ref().filter(|fixed| fixed.step > 1) {
            Some(fixed) => {
                format!(
                    "{words} (level {}, fixed at step {} of {})",
                    Decimals(fixed.level, 6),
                    fixed.step,
                    fixed.steps
                )
            }
            None => words,
        }
    }

    /// Reason for a job's share in words, without the level at which it was fixed.
    fn reason_in_words(&self, part: &JobExplanation) -> String {
        let all_the_time = part.time >= 1.0 - IDLE_MIN;
        let has_program = self.program.is_some();
        match part.binding {
            Binding::Discount => {
                let kept = part.discount.unwrap_or(1.0);
                let taken = Decimals(100.0 * (1.0 - kept), 2);
                let had = Decimals(part.time / kept, 4);
                return format!(
                    "the discount took {taken} % of the {had} of time it had, for what its presence costs the others"
                );
            }
            Binding::Free if has_program => {
                return "has time left that the objective does not ask for".to_owned();
            }
            Binding::Free => return "has time left, and workers that it can run on idle".to_owned(),
            Binding::Unrefined => {
                return "has time left on workers that idle: the gain is below what the certificate tells"
                    .to_owned();
            }
            Binding::Capacity if !has_program => {
                return "all workers that it can run on are given away".to_owned();
            }
            Binding::Time if !has_program => return "runs all the time".to_owned(),
            Binding::Unexplained if !has_program => {
                return "has time left, and of each worker type fewer workers idle than it needs at once"
                    .to_owned();
            }
            _ => {}
        }
        let mut words = Vec::new();
        if part.sets_objective {
            words.push("sets the objective".to_owned());
        }
        words.extend(part.limits.iter().filter_map(|limit| match limit {
            Limit::Constraint(of) => Some(format!("is held by `{}`", self.constraints[*of].text)),
            Limit::Time => Some("runs all the time".to_owned()),
            Limit::Capacity if all_the_time => None,
            // The table of worker types has the prices of the first level.
            Limit::Capacity => {
                let at_level = if part.fixed.as_ref().is_some_and(|fixed| fixed.step > 1) {
                    " at that level"
                } else {
                    ""
                };
                Some(format!("more time would take workers that are given away and have a price{at_level}"))
            }
        }));
        let explained = words.len() > usize::from(part.sets_objective);
        if all_the_time && !part.limits.contains(&Limit::Time) {
            words.push("runs all the time".to_owned());
        } else if !explained {
            let why = match part.binding {
                _ if self.prices_unknown.is_some() => "the prices are not known",
                Binding::Unexplained => "the workers that it can run on are given away",
                _ => "the prices do not say what limits it",
            };
            words.push(why.to_owned());
        }
        words.join("; ")
    }

    /// The objective explained, if there is one.
    pub fn objective(&self) -> Option<&ObjectiveReport> {
        self.decision.objective.as_ref()
    }

    /// The size of the objective's value, or of the largest price where one is larger: beside it a price may be rounding.
    pub fn scale(&self) -> f64 {
        let value = self.objective().map_or(0.0, |objective| objective.value.abs());
        let types = self.types.iter().filter_map(|kind| kind.one_more);
        let jobs = self.jobs.iter().flat_map(|job| [job.time_price, job.throughput_price]).flatten();
        let rows =
            self.constraints.iter().flat_map(|constraint| &constraint.rows).filter_map(|row| row.price);
        types.chain(jobs).chain(rows).fold(value, |most, price| most.max(price.abs()))
    }
}

/// The reason for a job's share where there is no program.
fn binding(problem: &Problem, job: JobIndex, time: f64, types: &[TypeExplanation]) -> Binding {
    if time >= 1.0 - IDLE_MIN {
        return Binding::Time;
    }
    let runs = |kind: usize| problem.throughput()[(job, WorkerTypeId::from_index(kind))] > 0.0;
    let own = || types.iter().enumerate().filter(|(kind, _)| runs(*kind)).map(|(_, kind)| kind);
    let scale_factor = f64::from(problem.jobs()[job].scale_factor);
    // A job of one worker can use one that idles at times.
    let at_once = if scale_factor > 1.0 { scale_factor - IDLE_MIN } else { 0.0 };
    if own().all(|kind| kind.binds) {
        Binding::Capacity
    } else if own().any(|kind| !kind.binds && kind.workers - kind.workers_used >= at_once) {
        Binding::Free
    } else {
        Binding::Unexplained
    }
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
        .map(|(kind, workers_used)| {
            let workers = f64::from(kind.n_workers);
            let binds = workers_used >= workers - IDLE_MIN * workers.max(1.0);
            TypeExplanation { workers_used, workers, binds, one_more: None }
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
