//! Tolerances that several modules share, each with its reason. A tolerance of one module only stands in that module.

/// Rounding of a sum, relative to the sum of the magnitudes of its terms. The error of adding up n numbers in turn is at most
/// n − 1 machine epsilons; as errors have either sign, a few epsilons are typical, with those of the terms.
pub(crate) const SUM_ROUNDING: f64 = 4.0 * f64::EPSILON;

/// Residuals and relative gap within which an interior-point method that can go no further gives an inaccurate answer, for a
/// certificate to judge, and above which it fails.
pub(super) const INACCURATE_MAX: f64 = 1e-5;
