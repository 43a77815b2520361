//! Boxes for columns: implied bounds, narrowed by rows of one term, and made finite by other rows where they are
//! not.

use crate::program::{Program, Range};

/// The most passes over the rows. Each carries a bound one row further: from a job's row of time to a share, and from
/// there to a level, takes two.
const PROPAGATION_PASSES_MAX: usize = 3;
/// The relative part by which [`tighten_row`] loosens every bound it finds: more than the rounding in it.
const MARGIN: f64 = 1e-9;

/// Ranges of columns that hold at every feasible point within the implied bounds, finite where a row makes them so:
/// [columns].
pub(super) fn boxes(program: &Program) -> Vec<Range> {
    let mut boxes: Vec<Range> = program
        .implied
        .iter()
        .zip(&program.columns)
        .map(|(implied, column)| Range {
            lower: implied.lower.max(column.lower),
            upper: implied.upper.min(column.upper),
        })
        .collect();
    for row in 0..program.n_rows() {
        narrow_by_single(program, row, &mut boxes);
    }
    for _ in 0..PROPAGATION_PASSES_MAX {
        let open = boxes.iter().any(|range| range.lower.is_infinite() || range.upper.is_infinite());
        let mut changed = false;
        if open {
            for row in 0..program.n_rows() {
                changed |= tighten_row(program, row, &mut boxes);
            }
        }
        if !changed {
            break;
        }
    }
    boxes
}

/// The least (or, negated, greatest) value of a row's form: its finite part, and how many terms are infinite.
#[derive(Clone, Copy, Default)]
struct Least {
    finite: f64,
    infinite: usize,
}

impl Least {
    fn add(&mut self, term: f64) {
        if term.is_finite() {
            self.finite += term;
        } else {
            self.infinite += 1;
        }
    }

    /// The sum without one of its terms; none if that is infinite.
    fn without(self, term: f64) -> Option<f64> {
        match (term.is_finite(), self.infinite) {
            (true, 0) => Some(self.finite - term),
            (false, 1) => Some(self.finite),
            _ => None,
        }
    }
}

/// Narrows the box of a column by a row of one term, which is a bound of the column.
fn narrow_by_single(program: &Program, row: usize, boxes: &mut [Range]) {
    let mut terms = program.row(row).filter(|&(_, value)| value != 0.0);
    let (Some((column, value)), None) = (terms.next(), terms.next()) else { return };
    let Range { lower, upper } = program.rows[row];
    let (lower, upper) = if value > 0.0 { (lower, upper) } else { (upper, lower) };
    let narrowed = Range {
        lower: boxes[column].lower.max(lower / value),
        upper: boxes[column].upper.min(upper / value),
    };
    // bounds that cross are the solver's to report; a box is never empty
    if narrowed.lower <= narrowed.upper {
        boxes[column] = narrowed;
    }
}

/// Bounds the open columns of a row by the boxes of its other columns. True if it bounded any.
fn tighten_row(program: &Program, row: usize, boxes: &mut [Range]) -> bool {
    let terms = || program.row(row).filter(|&(_, value)| value != 0.0);
    if terms().all(|(column, _)| boxes[column].lower.is_finite() && boxes[column].upper.is_finite()) {
        return false;
    }
    let range = program.rows[row];
    let mut changed = false;
    // form ≤ upper, then −form ≤ −lower
    for (sign, limit) in [(1.0, range.upper), (-1.0, -range.lower)] {
        if limit == f64::INFINITY {
            continue;
        }
        let least_term = |boxes: &[Range], column: usize, value: f64| {
            let value = sign * value;
            if value > 0.0 { value * boxes[column].lower } else { value * boxes[column].upper }
        };
        let mut least = Least::default();
        for (column, value) in terms() {
            least.add(least_term(boxes, column, value));
        }
        for (column, value) in terms() {
            let Some(others) = least.without(least_term(boxes, column, value)) else { continue };
            let value = sign * value;
            let bound = (limit - others) / value;
            let margin = MARGIN * ((limit.abs() + others.abs()) / value.abs());
            let open = &mut boxes[column];
            if value > 0.0 && open.upper == f64::INFINITY && bound.is_finite() {
                // an infeasible row may cross the bounds; a box is never empty
                open.upper = (bound + margin).max(open.lower);
                changed = true;
            } else if value < 0.0 && open.lower == f64::NEG_INFINITY && bound.is_finite() {
                open.lower = (bound - margin).min(open.upper);
                changed = true;
            }
        }
    }
    changed
}
