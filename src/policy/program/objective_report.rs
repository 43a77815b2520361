//! The report of a decision's objective: value, bound, gap, and whether they prove an optimum.

use crate::policy::decision::ObjectiveReport;
use crate::policy::program::policy::{ProgramPolicy, Refine};
use crate::program::Route;
use crate::solver::certificate::TOLERANCE;

/// An objective that is this part of the largest that it can have is 0 but for rounding, and so is its bound.
const NOTHING: f64 = 1e-11;

impl ProgramPolicy {
    /// The report of an objective that reaches `value` and cannot exceed `bound`. `largest` is what no value exceeds in size.
    pub(super) fn objective_report(
        &mut self,
        (value, bound): (f64, f64),
        violation_max: f64,
        largest: impl FnOnce() -> f64,
    ) -> ObjectiveReport {
        let sense = self.options.objective.sense();
        // A sum of logarithms may be 0, in units that are natural; a ratio's or a throughput's scale is its value.
        let unit = if self.options.objective.route() == Route::Conic { 1.0 } else { f64::MIN_POSITIVE };
        let size = value.abs().max(bound.abs()).max(unit);
        let mut gap_relative = (bound - value).abs() / size;
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
}
