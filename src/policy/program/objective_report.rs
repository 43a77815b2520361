//! The report of a decision's objective: value, bound, gap, and whether they prove an optimum.

use crate::policy::decision::{ObjectiveReport, PolicyError};
use crate::policy::program::conflict::{Stage, conflicts};
use crate::policy::program::options::Refine;
use crate::policy::program::policy::ProgramPolicy;
use crate::policy::program::program_columns::ProgramColumns;
use crate::program::{BoundObjective, Point, Route};
use crate::solver::certificate::TOLERANCE;

/// The part of the largest possible value below which value and bound of an objective are 0 up to rounding.
const NOTHING: f64 = 1e-11;

/// The largest relative violation of a policy's own constraints that is a solver's rounding: in linear programs, and
/// in programs with cones.
const ROUNDED_MAX: [f64; 2] = [1e-9, 1e-8];

impl ProgramPolicy {
    /// The report of an objective that reaches `value` and cannot exceed `bound`. `largest` gives a bound on the size
    /// of any value.
    pub(super) fn objective_report(
        &mut self,
        (value, bound): (f64, f64),
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
        let lexicographic = self.options.objective.is_lexicographic();
        let first_level_only = lexicographic || self.options.refine == Refine::WaterFilling;
        ObjectiveReport { sense, value, bound, gap_relative, violation_max, optimal, first_level_only }
    }

    /// The violation of the policy's own constraints at a point that is taken for an optimum.
    ///
    /// # Errors
    /// If the violation is more than rounding and it is proven that no allocation keeps all constraints, which
    /// solvers may miss within their tolerances.
    pub(super) fn own_violation(
        &self,
        master: &ProgramColumns<'_>,
        bound: &BoundObjective<'_>,
        point: &Point,
    ) -> Result<f64, PolicyError> {
        let violation = bound.violation(point);
        let has_cones = self.options.objective.route() == Route::Conic;
        if violation <= ROUNDED_MAX[usize::from(has_cones)] {
            return Ok(violation);
        }
        let conflicts = conflicts(master.reduced(), bound, Stage::Dropped, &self.solver.limits());
        conflicts.error_of(&self.options.name).map_or(Ok(violation), Err)
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::program::ProgramPolicy;
    use crate::policy::program::tests::options_of;
    use crate::program::{ObjectiveText, Sense};

    #[test]
    fn only_what_rounding_leaves_is_taken_for_0() {
        let options = options_of(&ObjectiveText::new(Sense::Maximize, "min_over_jobs(throughput)"));
        let mut policy = ProgramPolicy::try_new(options).unwrap();
        let mut is_optimal = |value: f64, bound: f64, largest: f64| {
            policy.objective_report((value, bound), 0.0, || largest).optimal
        };
        assert!(is_optimal(1.0, 1.0 + 1e-9, 2.0) && !is_optimal(1.0, 1.001, 2.0));
        // Rounding of an optimum of 0, on both sides of it.
        assert!(is_optimal(1e-13, 4e-12, 1.0) && is_optimal(-1e-13, 4e-12, 1.0));
        // Small, and no rounding: of an objective that can be 1, or of one that cannot be larger.
        assert!(!is_optimal(8e-8, 8.0003e-8, 1.0) && !is_optimal(1e-13, 4e-12, 1e-12));
        assert!(!is_optimal(1e-13, 4e-12, f64::INFINITY));
        let infinite = policy.objective_report((f64::INFINITY, f64::INFINITY), 0.0, || f64::INFINITY);
        assert!(!infinite.optimal && infinite.gap_relative.is_infinite(), "{infinite:?}");
    }
}
