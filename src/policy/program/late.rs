//! Decisions whose time is over: the best allocation found so far.
//!
//! It is an answer to some program of the decision, the isolated share, in a hierarchy also the share by the weight that falls
//! to each job or, where a constraint allows none of these, no time for any job; whichever has the best value. The bound is the
//! tightest that was proven, or follows from the ranges of the jobs' data. Where time is over before all discounts of a policy
//! that has them are found, the answer is the shares without any, and its value is that of these.

use crate::policy::decision::PolicyError;
use crate::policy::program::entity_level::ReachedLevel;
use crate::policy::program::hierarchy::Hierarchy;
use crate::policy::program::idle::use_idle;
use crate::policy::program::optimum::Optimum;
use crate::policy::program::policy::{Decided, ProgramPolicy};
use crate::policy::program::program_columns::ProgramColumns;
use crate::policy::program::rounding::MISSED_MAX;
use crate::policy::program::water_filling::FirstLevel;
use crate::problem::Problem;
use crate::program::{BoundObjective, Column, Sense};
use crate::solver::certificate::TOLERANCE;

/// The outcome of a decision that is not made within its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    /// It is an error.
    Refused,
    /// It is the best allocation found so far.
    BestSoFar,
}

/// The best point and bound that a decision has found so far, for its answer if it is late.
#[derive(Clone, Debug, Default)]
pub(super) struct FoundSoFar {
    /// The answer to the last program: class times of its columns, which are the first of all.
    class_time: Vec<f64>,
    /// The tightest proven bound on the objective.
    bound: Option<f64>,
    /// The level that water filling raises first.
    level: Option<ReachedLevel>,
}

impl FoundSoFar {
    /// Keeps the class times of an answer.
    pub(super) fn keep_class_time(&mut self, class_time: &[f64]) {
        self.class_time.clear();
        self.class_time.extend_from_slice(class_time);
    }

    /// Forgets class times, which are of other columns from now on.
    pub(super) fn forget_class_time(&mut self) {
        self.class_time.clear();
    }

    /// Keeps the level that water filling raises first, which it has not raised yet.
    pub(super) fn keep_level(&mut self, level: ReachedLevel) {
        self.level = Some(level);
    }

    /// Keeps how far the first level was raised.
    pub(super) fn raise_level(&mut self, first: &FirstLevel) {
        self.level = self.level.take().map(|level| level.raised(first.clone()));
    }

    /// The level that water filling raises first, as far as it is raised.
    #[cfg(test)]
    pub(super) fn level_of_entities(&self) -> Option<&ReachedLevel> {
        self.level.as_ref()
    }

    /// Keeps a bound that no allocation is better than.
    pub(super) fn keep_bound(&mut self, bound: f64, sense: Sense) {
        self.bound = Some(self.bound.map_or(bound, |known| match sense {
            Sense::Maximize => known.min(bound),
            Sense::Minimize => known.max(bound),
        }));
    }
}

impl ProgramPolicy {
    /// This policy with the best allocation found so far as the answer where the time for a decision is over: for single
    /// decisions. A simulation that continued with the best allocation so far would depend on the machine.
    #[must_use]
    pub fn best_so_far(mut self) -> Self {
        self.late = Late::BestSoFar;
        self
    }

    /// Whether the time for the decision is over and its best allocation so far is asked for.
    pub(super) fn is_late(&self) -> bool {
        self.late == Late::BestSoFar
            && self.solver.check_interrupt().is_ok()
            && self.solver.check_time().is_err()
    }

    /// The optimum of the programs over `columns`. Where the time for it is over, the best allocation found so far, if that is
    /// asked for.
    pub(super) fn optimum_in_time(
        &mut self,
        columns: &mut ProgramColumns<'_>,
        hierarchy: Option<&Hierarchy>,
    ) -> Result<Optimum, PolicyError> {
        let outcome = self.optimum(columns, hierarchy);
        if outcome.is_ok() || !self.is_late() {
            return outcome;
        }
        self.best_found(columns, hierarchy).map_or(outcome, Ok)
    }

    /// The best allocation found so far; none if constraints allow none that is known.
    fn best_found(
        &mut self,
        columns: &mut ProgramColumns<'_>,
        hierarchy: Option<&Hierarchy>,
    ) -> Option<Optimum> {
        let bound = columns.bound();
        let sense = bound.objective().sense();
        let FoundSoFar { class_time: mut last, bound: proven, level } =
            std::mem::take(&mut self.solver.found_so_far);
        let proven =
            proven.or_else(|| level.as_ref().filter(|level| level.is_raised()).map(ReachedLevel::bound));
        // Without entities, the objective itself is the level.
        let level = hierarchy.and_then(|hierarchy| {
            level.or_else(|| ReachedLevel::unraised(&bound, Some(hierarchy)).map(|(level, _)| level))
        });
        last.resize(bound.columns().len(), 0.0);
        let mut isolated = bound.isolated();
        isolated.resize(bound.columns().len(), 0.0);
        let nothing = vec![0.0; isolated.len()];
        let by_weight = hierarchy.map(|hierarchy| by_weight(&bound, hierarchy));
        let equal_share = &columns.reduced().equal_share;
        let better = |one: f64, other: f64| match sense {
            Sense::Maximize => one > other,
            Sense::Minimize => one < other,
        };
        let mut best: Option<(f64, Vec<f64>)> = None;
        for class_time in [Some(last), Some(isolated), by_weight, Some(nothing)].into_iter().flatten() {
            let class_time = use_idle(&bound, equal_share, &class_time).unwrap_or(class_time);
            let point = bound.point(&class_time);
            let reached = level.as_ref().zip(bound.throughputs(&point));
            let value = reached.map_or_else(|| bound.value(&point), |(level, reached)| level.at(&reached));
            let is_number = !value.is_nan() && class_time.iter().all(|time| time.is_finite());
            if bound.violation(&point) > TOLERANCE || !is_number {
                continue;
            }
            if best.as_ref().is_none_or(|(known, _)| better(value, *known)) {
                best = Some((value, class_time));
            }
        }
        let (_, class_time) = best?;
        let missed = self.droppable.then(|| bound.missed(&bound.point(&class_time), MISSED_MAX));
        // A bound that was proven with constraints that are now dropped is none.
        let still_proven = missed.as_ref().is_none_or(|missed| !missed.contains(&true));
        let ideal = || level.as_ref().and_then(|level| level.ideal(&bound)).unwrap_or_else(|| bound.ideal());
        let optimum_bound = proven.filter(|_| still_proven).unwrap_or_else(ideal);
        if let Some(missed) = missed {
            columns.drop_constraints(missed);
        }
        self.report_late("the best allocation found so far");
        self.solver.report().undiscounted = self.options.discounted;
        Some(Optimum { reached: level, ..Optimum::without_program(class_time, optimum_bound) })
    }

    /// Reports that the time for the decision was over, and what the decision consists of.
    fn report_late(&mut self, what: &str) {
        let report = self.solver.report();
        report.out_of_time = true;
        report.fallbacks.push(format!("the time for the decision was over: {what}"));
    }

    /// Discounts a decision or, where the time for that is over and the best so far is asked for, leaves it without discounts.
    pub(super) fn discount_in_time(
        &mut self,
        problem: &Problem,
        decided: &mut Decided,
    ) -> Result<(), PolicyError> {
        if !self.options.discounted || self.solver.report().undiscounted {
            return Ok(());
        }
        let without = decided.decision.clone();
        let outcome = self.discount(problem, decided);
        if outcome.is_ok() || !self.is_late() {
            return outcome;
        }
        decided.decision = without;
        decided.optimum.discounts.clear();
        self.report_late("shares without the discounts, not all of which were found");
        self.solver.report().undiscounted = true;
        Ok(())
    }
}

/// Shares by the weight that falls to each job at first, as class times: w_j · weight/(Σ weight · s_m), each job's row divided by
/// max(1, its sum): [columns].
fn by_weight(bound: &BoundObjective<'_>, hierarchy: &Hierarchy) -> Vec<f64> {
    let instance = bound.instance();
    let n = instance.n_members();
    let weights = hierarchy.weights(&vec![false; n]);
    let total: f64 = weights.iter().zip(&instance.multiplicity).map(|(weight, jobs)| weight * jobs).sum();
    let share = |member: usize, worker_type: usize| {
        instance.capacity[worker_type] * weights[member] / (total * instance.scale_factor[member])
    };
    let mut time = vec![0.0; n];
    let alone = || bound.columns().iter().filter(|column| column.combination < n);
    alone().for_each(|column| time[column.combination] += share(column.combination, column.worker_type));
    let class_time = |column: &Column| {
        let member = column.combination;
        if member >= n {
            return 0.0;
        }
        share(member, column.worker_type) / time[member].max(1.0) * instance.multiplicity[member]
    };
    bound.columns().iter().map(class_time).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::index::{Id, JobId};
    use crate::policy::Policy;
    use crate::policy::program::ProgramOptions;
    use crate::policy::program::policy::Decided;
    use crate::policy::program::tests::options_of;
    use crate::problem::{ActiveJob, Problem, ProblemBuilder};
    use crate::program::{ConstraintText, ObjectiveText};
    use crate::units::{Seconds, Steps};

    fn problem() -> Problem {
        let mut builder = ProblemBuilder::new(Arc::new("fast=2,slow=3".parse().unwrap()));
        for index in 0..7 {
            let job = ActiveJob {
                scale_factor: 1 + u32::from(index == 3),
                steps_remaining: Steps::new(100.0 + 10.0 * index as f64),
                slo_remaining: Some(Seconds::new(60.0 + index as f64)),
                ..ActiveJob::new(JobId::from_index(index))
            };
            builder.job(job, &[4.0 + 0.1 * index as f64, 1.0]);
        }
        builder.build().unwrap()
    }

    fn policy(text: &ObjectiveText, time_limit: Option<Duration>) -> ProgramPolicy {
        ProgramPolicy::try_new(ProgramOptions { time_limit, ..options_of(text) }).unwrap()
    }

    const OBJECTIVES: [(Sense, &str); 5] = [
        (Sense::Maximize, "min_over_jobs(throughput / isolated_throughput)"),
        (Sense::Maximize, "sum_over_jobs(throughput)"),
        (Sense::Maximize, "sum_over_jobs(log(throughput))"),
        (Sense::Minimize, "max_over_jobs(steps_remaining / throughput)"),
        (
            Sense::Minimize,
            "max_over_jobs((elapsed + steps_remaining / throughput) / (1[s] + steps_remaining / isolated_throughput))",
        ),
    ];

    #[test]
    fn a_decision_that_is_late_is_the_best_found_so_far_and_not_called_optimal() {
        let problem = problem();
        let limit = Some(Duration::from_nanos(1));
        for (sense, objective) in OBJECTIVES {
            let free = ObjectiveText::new(sense, objective);
            let of_jobs = |row: &str, droppable| {
                let row = ConstraintText { droppable, ..ConstraintText::hard(row) };
                ObjectiveText { for_each_job: vec![row], ..free.clone() }
            };
            // Isolated shares keep the first, not the second; of the third, droppable, they keep a part.
            let texts = [
                free.clone(),
                of_jobs("time_on(fast) <= 0.9", false),
                of_jobs("throughput >= steps_remaining / 1000[s]", false),
                of_jobs("throughput >= 1.6[steps/s]", true),
            ];
            for text in texts {
                let best = policy(&text, None).allocate(&problem).unwrap().objective.unwrap();
                assert!(policy(&text, limit).allocate(&problem).is_err(), "{objective}");
                let mut late = policy(&text, limit).best_so_far();
                let explained = late.explain(&problem).unwrap();
                assert!(explained.prices_unknown.is_some(), "{objective}");
                for decision in [late.allocate(&problem).unwrap(), explained.decision] {
                    let found = decision.objective.unwrap();
                    let solve = decision.solve.unwrap();
                    assert!(solve.out_of_time && !found.optimal && found.violation_max < 1e-6, "{found:?}");
                    // A sum gives some jobs nothing.
                    let is_shared = decision.allocation.effective_throughput().iter().all(|got| *got > 0.0);
                    assert!(is_shared || objective == "sum_over_jobs(throughput)", "{objective}");
                    let sign = if sense == Sense::Maximize { 1.0 } else { -1.0 };
                    let dropped = !decision.dropped.is_empty();
                    let reached = sign * found.value <= sign * found.bound + 1e-9;
                    let bounded = sign * best.value <= sign * found.bound + 1e-6 * best.value.abs();
                    let worse = sign * found.value <= sign * best.value + 1e-6 * best.value.abs();
                    assert!(reached && (dropped || (bounded && worse)), "{objective}: {found:?} {best:?}");
                }
            }
        }
    }

    #[test]
    fn the_bound_that_was_proven_last_is_kept_and_constraints_that_nothing_known_keeps_are_an_error() {
        let mut found = FoundSoFar::default();
        found.keep_bound(3.0, Sense::Maximize);
        found.keep_bound(4.0, Sense::Maximize);
        assert_eq!(found.bound, Some(3.0));
        found.keep_bound(4.0, Sense::Minimize);
        assert_eq!(found.bound, Some(4.0));
        let row = ConstraintText::hard("throughput >= 1.6[steps/s]");
        let text = ObjectiveText {
            for_each_job: vec![row],
            ..ObjectiveText::new(Sense::Maximize, "sum_over_jobs(throughput)")
        };
        let mut late = policy(&text, Some(Duration::from_nanos(1))).best_so_far();
        assert!(late.allocate(&problem()).is_err());
    }

    #[test]
    fn the_last_answer_is_kept_where_it_is_better_than_the_isolated_share() {
        let problem = problem();
        let text = ObjectiveText::new(Sense::Maximize, OBJECTIVES[0].1);
        let mut policy = policy(&text, None).best_so_far();
        let Decided { reduced, optimum: solved, decision } = policy.solve(&problem).unwrap();
        let objective = policy.options.objective.clone();
        let binding = policy.binding(&objective, &reduced).unwrap();
        let limits = crate::policy::program::program_columns::PricingLimits::UNPRICED;
        let mut columns = ProgramColumns::new(&objective, reduced, binding, None, limits);
        let optimum = decision.objective.unwrap();
        policy.solver.found_so_far.keep_class_time(&solved.class_time);
        policy.solver.found_so_far.keep_bound(optimum.bound, Sense::Maximize);
        let best = policy.best_found(&mut columns, None).unwrap();
        let value = columns.bound().value(&columns.bound().point(&best.class_time));
        assert!((value - optimum.value).abs() < 1e-6 && (best.bound - optimum.bound).abs() < 1e-9);
        let isolated = policy.best_found(&mut columns, None).unwrap();
        let worse = columns.bound().value(&columns.bound().point(&isolated.class_time));
        assert!(worse < value - 1e-3 && isolated.bound >= optimum.bound - 1e-9, "{worse} {value}");
    }
}
