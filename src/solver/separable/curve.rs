//! Cones that bound a column by a concave function of a linear form from above, or by a convex one from below.
//!
//!   logarithm    α·y + β ≤ γ·log(u/γ)     (α·y + β, γ, u) in the exponential cone
//!   root         α·y + β ≤ √(c·u)         a·b ≥ m² with a = c, b = u, m = α·y + β
//!   inverse      α·y + β ≥ m²/u           a·b ≥ m² with a = α·y + β, b = u
//!
//! where (t, m, d) in the second-order cone is a·b ≥ m² with a = t + d and b = t − d. The slope of each is ± κ·u^(−p).

use crate::program::{Affine, Cone, ConeKind};

/// Rounding of sums of multipliers, relative to the larger.
const MULTIPLIER_ROUNDING: f64 = 8.0 * f64::EPSILON;

/// The function of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shape {
    /// The logarithm γ·log(u/γ), where `scale` is γ.
    Logarithm { scale: f64 },
    /// The root √(c·u), where `factor` is c; u is the sum t + d if `is_sum`, else the difference t − d.
    Root { factor: f64, is_sum: bool },
    /// The inverse m²/u, where `root` is m; u is the sum t + d if `is_sum`, else the difference t − d.
    Inverse { root: f64, is_sum: bool },
}

impl Shape {
    /// The value of the function at u.
    pub(super) fn value(self, u: f64) -> f64 {
        match self {
            Self::Logarithm { scale } => scale * (u / scale).ln(),
            Self::Root { factor, .. } => (factor * u).sqrt(),
            Self::Inverse { root, .. } => root * root / u,
        }
    }

    /// The size of the function's slope at u, κ·u^(−p).
    pub(super) fn slope(self, u: f64) -> f64 {
        match self {
            Self::Logarithm { scale } => scale / u,
            Self::Root { factor, .. } => 0.5 * (factor / u).sqrt(),
            Self::Inverse { root, .. } => root / u * (root / u),
        }
    }

    /// The exponent p of the slope.
    pub(super) fn power(self) -> f64 {
        match self {
            Self::Logarithm { .. } => 1.0,
            Self::Root { .. } => 0.5,
            Self::Inverse { .. } => 2.0,
        }
    }

    /// The side of the function that the column is on: +1 above, where the function falls; −1 below, where it rises.
    pub(super) fn side(self) -> f64 {
        if matches!(self, Self::Inverse { .. }) { 1.0 } else { -1.0 }
    }

    /// The multipliers of the cone's entries, of a maximization, at which the form of its column has the multiplier ∓λ and
    /// u has `w`; λ and w are positive.
    pub(super) fn duals(self, lambda: f64, w: f64) -> Vec<f64> {
        let of_product =
            |sum: f64, middle: f64, difference: f64| vec![sum + difference, middle, sum - difference];
        match self {
            Self::Logarithm { .. } => vec![-lambda, -lambda * (1.0 + (w / lambda).ln()), w],
            Self::Root { is_sum, .. } => {
                let other = lambda / (4.0 * w) * lambda;
                let (sum, difference) = if is_sum { (w, other) } else { (other, w) };
                of_product(sum, -lambda, difference)
            }
            Self::Inverse { root, is_sum } => {
                // Sum and difference are rounded relative to the larger of the two; the multiplier of y must not end
                // above λ.
                let lambda = (lambda - MULTIPLIER_ROUNDING * (lambda + w)).max(lambda / 2.0);
                let (sum, difference) = if is_sum { (w, lambda) } else { (lambda, w) };
                of_product(sum, -2.0 * root.signum() * lambda.sqrt() * w.sqrt(), difference)
            }
        }
    }
}

/// A cone as a curve: a bound of α·y + β by a function of a linear form u.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    pub(super) shape: Shape,
    /// The column y.
    pub(super) column: usize,
    /// The factor α > 0 of y.
    pub(super) factor: f64,
    /// The constant β.
    pub(super) constant: f64,
    /// The linear form u.
    pub(super) form: Affine,
}

impl Curve {
    /// The curves that a cone may be; none for a cone of another form. Two where either of two columns may be y.
    pub(super) fn of(cone: &Cone) -> Vec<Self> {
        match (cone.kind, cone.entries.as_slice()) {
            (ConeKind::Exponential, [y, scale, u]) if scale.terms.is_empty() && scale.constant > 0.0 => {
                Self::with(Shape::Logarithm { scale: scale.constant }, y, u).into_iter().collect()
            }
            (ConeKind::SecondOrder, [t, middle, d]) => {
                let (sum, difference) = (combined(t, d, 1.0), combined(t, d, -1.0));
                let curve = |u: &Affine, other: &Affine, is_sum: bool| {
                    if middle.terms.is_empty() && middle.constant != 0.0 {
                        Self::with(Shape::Inverse { root: middle.constant, is_sum }, other, u)
                    } else if other.terms.is_empty() && other.constant > 0.0 {
                        Self::with(Shape::Root { factor: other.constant, is_sum }, middle, u)
                    } else {
                        None
                    }
                };
                [curve(&sum, &difference, true), curve(&difference, &sum, false)]
                    .into_iter()
                    .flatten()
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    fn with(shape: Shape, y: &Affine, u: &Affine) -> Option<Self> {
        let [(column, factor)] = y.terms[..] else { return None };
        let separate = u.terms.iter().all(|(other, _)| *other != column);
        (factor > 0.0 && separate && !u.terms.is_empty()).then(|| Self {
            shape,
            column,
            factor,
            constant: y.constant,
            form: u.clone(),
        })
    }
}

/// The form one + sign · other, without terms that cancel.
fn combined(one: &Affine, other: &Affine, sign: f64) -> Affine {
    let mut terms = one.terms.clone();
    terms.extend(other.terms.iter().map(|&(column, value)| (column, sign * value)));
    terms.sort_by_key(|(column, _)| *column);
    terms.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        kept.1 += if same { next.1 } else { 0.0 };
        same
    });
    terms.retain(|(_, value)| *value != 0.0);
    Affine { constant: one.constant + sign * other.constant, terms }
}
