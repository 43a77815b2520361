//! Learned values, optimal placement: a network scores each job on each worker type, and a linear program finds the shares
//! with the largest sum of values.
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | r_m, T`[m,j]` | steps remaining; steps/s on type j | steps, steps/s |
//! | f`[m,j]` | features of job m on type j | |
//! | h_m | r_m / the largest T`[m,j]` on types with workers enough: hours left alone on the fastest | h |
//! | a | the exponent, 0 unless a policy has another | |
//! | V`[m,j]` | T`[m,j]` / r_m · h_m^a · exp(score(f`[m,j]`)): completions per hour, weighed | 1/h |
//! | X`[m,j]` | time shares | |
//!
//!   maximize Σ V`[m,j]` X`[m,j]` over all allocations X
//!
//! With a floor φ, every job has at least φ of the value of its isolated share, 1/n of the types that fit it, so that no job
//! starves. That is φ of the throughput where scores are equal on all types, and never less than φ / 4: e^score of a job on two
//! types counts as at most a factor of 4 apart.
//!
//! Where two jobs may share workers, a job's value beside another is reduced in proportion to its throughput.
//!
//! Without a network every score is 0, which completes the most jobs per hour at this moment: Smith's rule for preemptive
//! service, on unequal workers. Scores learn what this rule ignores: the effect on later decisions.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::features::{N_FEATURES, of_pair};
use super::partial_decision::PartialDecision;
use apportion::Allocation;
use apportion::catalog::PolicyOptions;
use apportion::index::{Id, JobIndex, WorkerTypeId};
use apportion::policy::program::ProgramPolicyError;
use apportion::policy::{
    Decision, ObjectiveReport, Policy as _, PolicyError, ProgramOptions, ProgramPolicy, Refine,
    ThroughputView,
};
use apportion::problem::{ActiveJob, Colocation, Problem, ProblemBuilder};
use apportion::program::expression::Vocabulary;
use apportion::program::{ConstraintText, Objective, ObjectiveText, Sense};
use apportion::spec::Fidelity;
use apportion::workload::Combination;
use apportion_learn::actor::{Actor, ActorError, Scratch};

/// The number of seconds in an hour.
const SECONDS_PER_HOUR: f64 = 3600.0;

/// The largest logarithm of a ratio between values of a job, and between the largest values of two jobs. Smaller values are raised
/// to this limit, because a solver could not tell them from 0.
const SPREAD_MAX: f64 = 12.0;

/// With a floor, the largest factor by which scores raise a job's value on one type over that on another.
const SCORED_MAX: f64 = 4.0;

/// The most jobs that may share workers in pairs: pairs of more, if all differ, would take more than four gigabytes.
const N_PAIRED_MAX: usize = 8_000;

/// A policy's additions to values.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weighing {
    /// Whether two jobs may share workers.
    pub pairs: bool,
    /// The part, from 0 to 1, of the value of an isolated share that every job has at least.
    pub floor: Option<f64>,
    /// The power of a job's remaining hours that its value is multiplied by.
    pub exponent: f64,
}

/// A decider by values: a program that maximizes their sum.
#[derive(Debug)]
pub struct ByValues {
    scorer: Option<Arc<dyn Actor>>,
    weighing: Weighing,
    program: ProgramPolicy,
    scratch: Scratch,
}

/// The values of a job on each type, from their logarithms, relative to the largest value of all jobs. All values of a job are
/// raised by the same factor if its largest is too small for a solver, so that they keep their proportions, on which its floor
/// depends.
fn of_job(logarithms: &[f64], largest: f64) -> impl Iterator<Item = f64> {
    let own = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let raised = (largest - SPREAD_MAX - own).max(0.0);
    let least = own + raised - largest - SPREAD_MAX;
    logarithms.iter().map(move |logarithm| {
        if logarithm.is_finite() { (logarithm + raised - largest).max(least).exp() } else { 0.0 }
    })
}

/// A report of the sum of values relative to the largest of them, of which this is the logarithm, in completions per second, as other
/// policies have it; none if the largest is no number.
fn in_units(report: &ObjectiveReport, largest: f64) -> Option<ObjectiveReport> {
    let unit = largest.exp() / SECONDS_PER_HOUR;
    let (value, bound) = (report.value * unit, report.bound * unit);
    let is_empty = largest == f64::NEG_INFINITY;
    (value.is_finite() && bound.is_finite() && (unit > 0.0 || is_empty)).then_some(ObjectiveReport {
        value,
        bound,
        ..report.clone()
    })
}

impl ByValues {
    /// A decider with a scorer; without one, all scores are 0.
    ///
    /// # Errors
    /// If the options name no known backend.
    pub fn new(
        name: &str,
        scorer: Option<Arc<dyn Actor>>,
        weighing: Weighing,
        options: &PolicyOptions,
    ) -> Result<Self, ProgramPolicyError> {
        let mut text = ObjectiveText::new(Sense::Maximize, "sum_over_jobs(throughput)");
        let least =
            |floor| ConstraintText::hard(format!("throughput >= {floor} * fitting_isolated_throughput"));
        text.for_each_job.extend(weighing.floor.map(least));
        let objective = Objective::check(&text, Vocabulary::default());
        let program = ProgramPolicy::try_new(ProgramOptions {
            name: name.to_owned(),
            objective: objective.unwrap_or_else(|_| unreachable!("an objective of the language")),
            view: ThroughputView::Measured,
            pairs: weighing.pairs,
            refine: Refine::None,
            hierarchical: false,
            discounted: false,
            fidelity: Fidelity::Corrected,
            backend: options.backend.clone(),
            strategy: None,
            time_limit: options.time_limit,
            interrupt: options.interrupt.clone(),
        })?;
        Ok(Self { scorer, weighing, program, scratch: Scratch::default() })
    }

    /// Logarithms of the values V: [n × K], row-major; −∞ where the job does not run.
    fn logarithms(&mut self, problem: &Problem, partial: &PartialDecision) -> Result<Vec<f64>, ActorError> {
        let mut row = [0.0; N_FEATURES];
        let (n, k) = (problem.n_jobs(), problem.n_types());
        let (mut logarithms, mut scores) = (Vec::with_capacity(n * k), Vec::with_capacity(k));
        for (job, active) in problem.jobs().enumerate() {
            scores.clear();
            let mut fastest: f64 = 0.0;
            for (kind, of_type) in problem.cluster().types().enumerate() {
                let speed = problem.throughput()[(job, kind)];
                if speed == 0.0 || of_type.n_workers < active.scale_factor {
                    logarithms.push(f64::NEG_INFINITY);
                    scores.push(f64::NEG_INFINITY);
                    continue;
                }
                fastest = fastest.max(speed);
                let rate = speed / active.steps_remaining.get() * SECONDS_PER_HOUR;
                let mut score = [0.0];
                if let Some(scorer) = &self.scorer {
                    of_pair(problem, partial, (job, kind), &mut row);
                    scorer.logits(0, &row, &mut self.scratch, &mut score)?;
                    if !score[0].is_finite() {
                        let action = logarithms.len();
                        return Err(ActorError::NotANumber { action, found: score[0] });
                    }
                }
                logarithms.push(rate.ln());
                scores.push(f64::from(score[0]));
            }
            let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let least =
                if self.weighing.floor.is_some() { largest - SCORED_MAX.ln() } else { f64::NEG_INFINITY };
            let of_job = logarithms.len() - k;
            let hours = active.steps_remaining.get() / fastest / SECONDS_PER_HOUR;
            let exponent = self.weighing.exponent;
            let weight = if exponent.abs() > 0.0 && fastest > 0.0 { exponent * hours.ln() } else { 0.0 };
            for (logarithm, score) in logarithms[of_job..].iter_mut().zip(&scores) {
                *logarithm += score.max(least) + weight;
            }
        }
        Ok(logarithms)
    }

    /// The allocation with the largest sum of values.
    pub(super) fn decide(
        &mut self,
        name: &str,
        problem: &Problem,
        partial: &PartialDecision,
    ) -> Result<Decision, PolicyError> {
        if self.weighing.pairs && problem.n_jobs() > N_PAIRED_MAX {
            let reason = format!(
                "{} jobs are active, and it looks at every pair of at most {N_PAIRED_MAX}; `colocation: none` decides about \
                 any number of jobs alone, and so does `max_min_fairness_packed` about pairs",
                problem.n_jobs()
            );
            return Err(PolicyError::Undecided { policy: name.to_owned(), reason });
        }
        let logarithms = self.logarithms(problem, partial).map_err(undecided(name))?;
        let largest = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let rows = logarithms.chunks_exact(problem.n_types().max(1));
        let values: Vec<f64> = rows.flat_map(|row| of_job(row, largest)).collect();
        let mut worth = ProblemBuilder::new(Arc::clone(problem.cluster()));
        worth.reserve(problem.n_jobs());
        for (active, row) in problem.jobs().iter().zip(values.chunks_exact(problem.n_types())) {
            let valued = ActiveJob { scale_factor: active.scale_factor, ..ActiveJob::new(active.id) };
            worth.job(valued, row);
        }
        if self.weighing.pairs {
            worth.colocation(Colocation::Pairs(of_pairs(problem, &values)));
        }
        let worth = worth.build().map_err(|error| PolicyError::Infeasible {
            policy: name.to_owned(),
            reason: error.to_string(),
        })?;
        let found = self.program.allocate(&worth)?;
        let shares = &found.allocation;
        let rows = shares.combinations().enumerate();
        let rows = rows.map(|(row, jobs)| (*jobs, shares.shares().row(row).to_vec()));
        let allocation = Allocation::check(problem, rows)
            .map_err(|source| PolicyError::Allocation { policy: name.to_owned(), source })?;
        let objective = found.objective.and_then(|report| in_units(&report, largest));
        Ok(Decision { allocation, objective, ..found })
    }
}

/// Values of pairs of jobs that are worth more together than one after the other: [K] × the two jobs of the pair.
fn of_pairs(problem: &Problem, values: &[f64]) -> BTreeMap<Combination<JobIndex>, Vec<[f64; 2]>> {
    let n_types = problem.n_types();
    let beside = |pair: Combination<JobIndex>| {
        let jobs = [pair.first(), pair.second()?];
        let on = |kind: WorkerTypeId| {
            let together = problem.colocated(pair, kind)?;
            let alone = jobs.map(|job| problem.throughput()[(job, kind)]);
            let value = jobs.map(|job| values[job.index() * n_types + kind.index()]);
            let kept = [together[0] / alone[0], together[1] / alone[1]];
            let gains = value.iter().all(|value| *value > 0.0) && kept[0] + kept[1] > 1.0;
            gains.then(|| [value[0] * kept[0], value[1] * kept[1]])
        };
        let row: Vec<Option<[f64; 2]>> = problem.cluster().types().ids().map(on).collect();
        let shared = row.iter().any(Option::is_some);
        shared.then(|| (pair, row.into_iter().map(Option::unwrap_or_default).collect()))
    };
    let jobs = || problem.jobs().ids();
    let pairs =
        jobs().flat_map(|one| jobs().skip(one.index() + 1).map(move |other| Combination::pair(one, other)));
    pairs.filter_map(beside).collect()
}

/// The error of a policy that cannot decide because of its network.
pub(super) fn undecided(name: &str) -> impl FnOnce(ActorError) -> PolicyError {
    |error| PolicyError::Undecided { policy: name.to_owned(), reason: error.to_string() }
}

/// The type with a job's largest share, of its shares [K]; none if all are 0.
pub(super) fn largest_share(shares: &[f64]) -> Option<WorkerTypeId> {
    let given = shares.iter().enumerate().filter(|(_, share)| **share > 0.0);
    let (place, _) = given.rev().max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    Some(WorkerTypeId::from_index(place))
}
