//! Tolerances that several modules share, each with its reason. A tolerance of one module only stands in that module.

use crate::solver::certificate::TOLERANCE;

/// Shares of a job's time below this are rounding of a solver, and become 0, except in an interior optimum.
pub(super) const SHARE_MIN: f64 = 1e-12;

/// Parts by which levels reached are lowered, in turn, until the next program is solved. These levels are known to
/// the tolerance of solvers only and, held exactly, leave an interior-point method no interior; the smallest part
/// that helps costs least.
pub(super) const EASING: &[f64] = &[1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6];
/// The parts of [`EASING`] from the tolerance of solvers on: less does not help where rows are eased and nothing else
/// is changed.
pub(super) const EASING_FROM_TOLERANCE: &[f64] = EASING.split_at(2).1;

/// Parts of an optimum that are given up, in turn, where a refinement cannot hold it: at most a tenth of the largest of
/// [`EASING`], as the objective of the refined decision must still be certified.
pub(super) const GIVEN_UP_REFINING: [f64; 3] = [0.0, 1e-8, 1e-7];

/// A count of jobs this close to a whole number is that number: far more than a solver's error, far less than one job.
pub(super) const COUNT_ROUNDING: f64 = 1e-6;

/// Prices below this part of the largest of their kind are not shown as reasons: a certificate tolerates as much.
pub(super) const SHOWN_PRICE_MIN: f64 = TOLERANCE;
