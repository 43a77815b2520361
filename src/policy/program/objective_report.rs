//! The report of a decision's objective: value, bound, gap, and whether they prove an optimum.

use crate::policy::decision::{ObjectiveReport, PolicyError};
use crate::policy::program::conflict::{Stage, conflicts};
use crate::policy::program::optimum::OptimumKind;
use crate::policy::program::policy::ProgramPolicy;
use crate::policy::program::program_columns::ProgramColumns;
use crate::program::{BoundObjective, Point, Route};
use crate::solver::certificate::TOLERANCE;

/// The fraction of the largest possible value below which value and bound of an objective are 0 up to rounding.
const NOTHING: f64 = 1e-11;

/// The largest relative violation of a policy's own constraints that is a solver's rounding: in linear programs, and
/// in programs with cones.
const ROUNDED_MAX: [f64; 2] = [1e-9, 1e-8];

impl ProgramPolicy {
    /// The report of an objective that reaches `value` and cannot exceed `bound`. `largest` gives a bound on the size
    /// of any value.
    pub(super) fn objective_report(
        &mut self,
        value: f64,
        bound: f64,
        violation_max: f64,
        largest: impl FnOnce() -> f64,
    ) -> ObjectiveReport {
        let sense = self.options.objective.sense();
        // A sum of logarithms may be 0 and has a natural unit of 1; a ratio or a throughput has no scale but its
        // value.
        let unit = if self.options.objective.route() == Route::Conic { 1.0 } else { f64::MIN_POSITIVE };
        let size = value.abs().max(bound.abs()).max(unit);
        let gap = (bound - value).abs() / size;
        // Infinite numbers have no difference.
        let mut gap_relative = if gap.is_nan() { f64::INFINITY } else { gap };
        if gap_relative > TOLERANCE {
            let nothing = NOTHING * largest();
            if size <= nothing && nothing.is_finite() {
                gap_relative = TOLERANCE * (bound - value).abs() / (2.0 * nothing);
            }
        }
        let optimal = gap_relative <= TOLERANCE && violation_max <= TOLERANCE;
        if !optimal {
            let uncertified = format!("not certified: violation {violation_max:.1e}, gap {gap_relative:.1e}");
            self.solver.report().fallbacks.push(uncertified);
        }
        let first_level_only = self.kind == OptimumKind::Lexicographic;
        ObjectiveReport { sense, value, bound, gap_relative, violation_max, optimal, first_level_only }
    }

    /// The violation of the policy's own constraints at a point that is taken for an optimum.
    ///
    /// # Errors
    /// If the violation is more than rounding and it is proven that no allocation keeps all constraints, which
    /// solvers may miss within their tolerances.
    pub(super) fn own_violation(
        &self,
        columns: &ProgramColumns<'_>,
        bound: &BoundObjective<'_>,
        point: &Point,
    ) -> Result<f64, PolicyError> {
        let violation = bound.violation(point);
        let has_cones = self.options.objective.route() == Route::Conic;
        if violation <= ROUNDED_MAX[usize::from(has_cones)] {
            return Ok(violation);
        }
        let conflicts = conflicts(columns.reduced(), bound, Stage::Dropped, &self.solver.limits());
        conflicts.error_of(&self.options.name).map_or(Ok(violation), Err)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::index::{EntityId, Id, JobId};
    use crate::policy::Policy;
    use crate::policy::program::policy::Decided;
    use crate::policy::program::program_columns::{PricingLimits, ProgramColumns};
    use crate::policy::program::tests::options_of;
    use crate::policy::program::{ProgramOptions, ProgramPolicy};
    use crate::problem::{ActiveJob, Entity, InnerRule, ProblemBuilder};
    use crate::program::{ObjectiveText, Sense};

    #[test]
    fn only_what_rounding_leaves_is_taken_for_0() {
        let options = options_of(&ObjectiveText::new(Sense::Maximize, "min_over_jobs(throughput)"));
        let mut policy = ProgramPolicy::try_new(options).unwrap();
        let mut is_optimal = |value: f64, bound: f64, largest: f64| {
            policy.objective_report(value, bound, 0.0, || largest).optimal
        };
        assert!(is_optimal(1.0, 1.0 + 1e-9, 2.0) && !is_optimal(1.0, 1.001, 2.0));
        // Rounding of an optimum of 0, on both sides of it.
        assert!(is_optimal(1e-13, 4e-12, 1.0) && is_optimal(-1e-13, 4e-12, 1.0));
        // Small gaps that are no rounding: of an objective that can be 1, or of one that cannot be larger.
        assert!(!is_optimal(8e-8, 8.0003e-8, 1.0) && !is_optimal(1e-13, 4e-12, 1e-12));
        assert!(!is_optimal(1e-13, 4e-12, f64::INFINITY));
        let infinite = policy.objective_report(f64::INFINITY, f64::INFINITY, 0.0, || f64::INFINITY);
        assert!(!infinite.optimal && infinite.gap_relative.is_infinite(), "{infinite:?}");
    }

    /// Two entities of weights 1 and 3 with two jobs and one, on two workers: levels rise together until the one job has all
    /// of a worker, and the first two share the other.
    #[test]
    fn the_value_of_a_hierarchy_is_that_of_the_shares_that_are_given() {
        let mut builder = ProblemBuilder::new(Arc::new("fast=2".parse().unwrap()));
        for (name, weight) in [("red", 1.0), ("blue", 3.0)] {
            let (name, inner) = (name.to_owned(), InnerRule::Fairness);
            builder.entity(Entity { name, weight, inner, parent: None });
        }
        for (position, owner) in [0, 0, 1].into_iter().enumerate() {
            let entity = Some(EntityId::from_index(owner));
            builder.job(ActiveJob { entity, ..ActiveJob::new(JobId::from_index(position)) }, &[1.0]);
        }
        let problem = builder.build().unwrap();
        let text = ObjectiveText::new(
            Sense::Maximize,
            "lexicographic_min_over_jobs(scale_factor * throughput / (weight * equal_share_throughput))",
        );
        let options = ProgramOptions { hierarchical: true, ..options_of(&text) };
        let mut policy = ProgramPolicy::try_new(options).unwrap();
        let certified = policy.allocate(&problem).unwrap().objective.unwrap();
        assert!(certified.optimal, "{certified:?}");
        let Decided { reduced, optimum: mut solved, .. } = policy.solve(&problem).unwrap();
        let objective = policy.options.objective.clone();
        let binding = policy.binding(&objective, &reduced).unwrap();
        let columns = ProgramColumns::new(&objective, reduced, binding, None, PricingLimits::UNPRICED);
        for part in [1.0, 0.75, 0.25] {
            let class_time: Vec<f64> = solved.class_time.iter().map(|time| part * time).collect();
            let whole = std::mem::replace(&mut solved.class_time, class_time);
            let report = policy.decide(&problem, &columns, &solved).unwrap().objective.unwrap();
            solved.class_time = whole;
            // Of the second entity's job, which sets the level, and of all others.
            assert_eq!(report.optimal, part > 0.99, "{report:?}");
            assert!((report.value - part * certified.value).abs() < 1e-6, "{report:?}");
            assert!((report.bound - certified.bound).abs() < 1e-12);
        }
    }
}
