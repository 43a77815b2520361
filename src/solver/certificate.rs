//! Certificates: how good an answer provably is, recomputed from the program and the answer alone.
//!
//! The primal side is checked against every bound, row and cone. The dual side is a Lagrangian bound, valid for
//! *any* multipliers (see [`dual_bound`]): a wrong dual weakens it and can never make it claim too much. What a
//! solver says of itself plays no part.

mod bound;
mod propagation;

use serde::Serialize;

use crate::program::{Cone, ConeKind, Program, Range, Sense};
use crate::solver::backend::Solution;

pub use bound::dual_bound;
use propagation::boxes;

/// The most that [`AnswerCertificate::optimal`] allows of the violation and of the gap, each relative as documented there.
pub const TOLERANCE: f64 = 1e-6;

/// The least size by which a gap is divided, as a part of the largest term that the objective can have.
pub(crate) const OBJECTIVE_FLOOR: f64 = 1e-3;

/// Evidence for an answer, independent of the solver that gave it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AnswerCertificate {
    /// The largest violation of a column's bounds, a row or a cone. A row's is relative to its largest finite
    /// bound or the largest size one of its terms can have, whichever is larger; a column's to its largest finite
    /// bound, implied ones included; a cone's to max(1, the size of its entries). Infinite if there is no primal answer.
    pub violation_max: f64,
    /// The objective at the primal answer, offset included; NaN if there is none.
    pub primal: f64,
    /// The proven bound on the objective, which no feasible point beats: an upper bound to maximize, a lower one to
    /// minimize. Infinite in that direction if nothing is proven.
    pub bound: f64,
    /// The relative gap:
    /// |bound − primal| / max(|primal|, |bound|, 1e-3·S), where S is the largest |cost·x| that one column can
    /// have within its implied bounds; with exponential cones, the divisor is at least the largest |cost|.
    pub gap_relative: f64,
    /// Whether violation and gap are both within [`TOLERANCE`].
    pub optimal: bool,
}

impl AnswerCertificate {
    /// Judges an answer to a program in standard form. Takes a few passes over the terms.
    pub fn of(program: &Program, solution: &Solution) -> Self {
        Self::with_bound(program, solution, None)
    }

    /// Judges an answer as [`of`](Self::of) does, but by the dual values alone: a bound that the boxes of columns prove
    /// without them does not count.
    pub fn by_duals(program: &Program, solution: &Solution) -> Self {
        let boxes = boxes(program);
        let proven = bound::bound_of_duals_in(program, &boxes, &solution.row_duals, &solution.cone_duals);
        Self::judged(program, solution, &boxes, proven)
    }

    /// Judges an answer as [`of`](Self::of) does, with a bound proven by other means (another backend's duals, say) where it
    /// is tighter.
    pub fn with_bound(program: &Program, solution: &Solution, known: Option<f64>) -> Self {
        let boxes = boxes(program);
        let by_duals = bound::dual_bound_in(program, &boxes, &solution.row_duals, &solution.cone_duals);
        let bound = match program.sense {
            Sense::Maximize => by_duals.min(known.unwrap_or(f64::INFINITY)),
            Sense::Minimize => by_duals.max(known.unwrap_or(f64::NEG_INFINITY)),
        };
        Self::judged(program, solution, &boxes, bound)
    }

    fn judged(program: &Program, solution: &Solution, boxes: &[Range], bound: f64) -> Self {
        if solution.columns.len() != program.n_columns() {
            return Self {
                violation_max: f64::INFINITY,
                primal: f64::NAN,
                bound,
                gap_relative: f64::INFINITY,
                optimal: false,
            };
        }
        let primal = program.objective(&solution.columns);
        let violation_max = violation(program, boxes, &solution.columns);
        let gap_relative = gap(program, boxes, primal, bound);
        let optimal = violation_max <= TOLERANCE && gap_relative <= TOLERANCE;
        Self { violation_max, primal, bound, gap_relative, optimal }
    }
}

fn gap(program: &Program, boxes: &[Range], primal: f64, bound: f64) -> f64 {
    if !bound.is_finite() || !primal.is_finite() {
        return f64::INFINITY;
    }
    let term_max = program
        .cost
        .iter()
        .zip(boxes)
        .map(|(cost, range)| cost.abs() * largest_magnitude(*range))
        .fold(0.0, f64::max);
    // Where the boxes allow only 0 for every column with a cost, the largest cost stands for the largest term.
    let term_max =
        if term_max > 0.0 { term_max } else { program.cost.iter().fold(0.0, |a: f64, b| a.max(b.abs())) };
    // A logarithm has a natural unit: a sum of them near zero is judged by what one of them weighs.
    let logs = program.cones.iter().any(|cone| cone.kind == ConeKind::Exponential);
    let weight = if logs { program.cost.iter().fold(0.0, |a: f64, b| a.max(b.abs())) } else { 0.0 };
    let reference = primal.abs().max(bound.abs()).max(OBJECTIVE_FLOOR * term_max).max(weight);
    if reference > 0.0 { (bound - primal).abs() / reference } else { 0.0 }
}

/// The largest magnitude among finite bounds; zero if there is none.
fn largest_magnitude(range: Range) -> f64 {
    [range.lower, range.upper].into_iter().filter(|bound| bound.is_finite()).fold(0.0, |a, b| a.max(b.abs()))
}

/// The largest size that a value can have within its box: that of the box's ends if both are finite, else at least
/// the value's own; 1 for a box of 0 alone.
fn size(range: Range, value: f64) -> f64 {
    let within = largest_magnitude(range);
    let is_open = range.lower.is_infinite() || range.upper.is_infinite();
    match (within > 0.0, is_open) {
        (true, false) => within,
        (_, true) => within.max(value.abs()),
        (false, false) => 1.0,
    }
}

fn violation(program: &Program, boxes: &[Range], x: &[f64]) -> f64 {
    if x.iter().any(|value| !value.is_finite()) {
        return f64::INFINITY;
    }
    let outside = |range: Range, value: f64| (range.lower - value).max(value - range.upper).max(0.0);
    let mut worst = 0.0_f64;
    for ((&value, &range), &implied) in x.iter().zip(&program.columns).zip(boxes) {
        let scale = largest_magnitude(range).max(largest_magnitude(implied));
        worst = worst.max(outside(range, value) / if scale > 0.0 { scale } else { 1.0 });
    }
    for (row, &range) in program.rows.iter().enumerate() {
        let mut activity = 0.0;
        let mut scale = largest_magnitude(range);
        for (column, coefficient) in program.row(row) {
            activity += coefficient * x[column];
            scale = scale.max(coefficient.abs() * size(boxes[column], x[column]));
        }
        worst = worst.max(outside(range, activity) / if scale > 0.0 { scale } else { 1.0 });
    }
    program.cones.iter().map(|cone| cone_violation(cone, x)).fold(worst, f64::max)
}

/// The violation of a cone by its entries, relative to max(1, their size).
fn cone_violation(cone: &Cone, x: &[f64]) -> f64 {
    let value = |entry: usize| {
        let form = &cone.entries[entry];
        form.constant + form.terms.iter().map(|&(column, coefficient)| coefficient * x[column]).sum::<f64>()
    };
    match cone.kind {
        ConeKind::SecondOrder => {
            let norm = (1..cone.entries.len()).map(|entry| value(entry).powi(2)).sum::<f64>().sqrt();
            (norm - value(0)).max(0.0) / norm.max(1.0)
        }
        ConeKind::Exponential => {
            let (x, y, z) = (value(0), value(1), value(2));
            let size = x.abs().max(y.abs()).max(1.0);
            if y > 0.0 && z > 0.0 {
                // the same set in terms of the logarithm, which is what objectives see
                (x - y * (z / y).ln()).max(0.0) / size
            } else {
                // the closure: y = 0, x ≤ 0, z ≥ 0
                y.abs().max(x).max(-z).max(0.0) / size
            }
        }
    }
}

#[cfg(test)]
mod tests;
