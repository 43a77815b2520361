//! A linear program in the form that the method of the analytic centre takes.

use super::BarrierWeights;
use super::lines::Lines;
use crate::program::{Program, Range, Sense};
use crate::solver::backend::{Solution, Termination};
use crate::solver::intake::without_columns;
use crate::solver::normal::{Matrix, Products};

/// The distance of a free column's artificial lower bound from its implied one, relative to the implied one or to 1.
const OUT_OF_REACH: f64 = 1e-4;

/// A program as the method takes it: minimize q·v subject to G v = b, v ≥ 0, where v has the columns from their lower
/// bounds, then a slack for each row.
pub(super) struct Form {
    /// The sense of the program: +1 to maximize, −1 to minimize.
    sign: f64,
    /// G: [rows × columns], then the slacks.
    pub(super) matrix: Matrix,
    /// The program's column of each column here, which is counted from its lower bound.
    pub(super) columns: Vec<FormColumn>,
    /// The matrix's columns without slacks, laid out for products with vectors.
    by_column: Lines,
    /// The matrix's rows without slacks, laid out for products with vectors.
    by_row: Lines,
    /// Costs q of columns; those of slacks, all 0, are left out.
    pub(super) cost: Vec<f64>,
    /// Bounds b: [rows].
    pub(super) bounds: Vec<f64>,
    /// Weights w of columns, then of slacks.
    pub(super) weights: Vec<f64>,
    /// The sum of the weights.
    pub(super) weight: f64,
    /// The row here of each row of the program, and the sign by which it was multiplied; none for a row without bounds.
    row_of: Vec<Option<(usize, f64)>>,
    /// The value of each column of the program that is fixed, 0 for others: [the program's columns].
    fixed: Vec<f64>,
}

/// A column of the program that is a column of the method's form.
#[derive(Clone, Copy, Debug)]
pub(super) struct FormColumn {
    /// Position of the column in the program.
    column: usize,
    /// The lower bound from which its value is counted.
    lower: f64,
    /// True where the program has no lower bound, so that `lower` is artificial.
    pub(super) is_free: bool,
}

impl Form {
    /// The form of a program whose rows are one-sided and whose columns have no upper bound or are fixed; none of others.
    pub(super) fn of(program: &Program, weights: &BarrierWeights) -> Option<Self> {
        let sign = if program.sense == Sense::Maximize { 1.0 } else { -1.0 };
        let n = program.n_columns();
        let (mut columns, mut place, mut fixed) = (Vec::new(), vec![None; n], vec![0.0; n]);
        for column in 0..n {
            let range = program.columns[column];
            let is_free = !range.lower.is_finite();
            let lower = if is_free { artificial_lower_bound(program.implied[column]) } else { range.lower };
            if range.is_point() {
                fixed[column] = range.lower;
            } else if lower.is_finite() && range.upper == f64::INFINITY {
                place[column] = Some(columns.len());
                columns.push(FormColumn { column, lower, is_free });
            } else {
                return None;
            }
        }
        let mut terms = vec![Vec::new(); columns.len()];
        let (mut bounds, mut row_of, mut row_weights) = (Vec::new(), Vec::new(), Vec::new());
        for (row, range) in program.rows.iter().enumerate() {
            let (flip, bound) = match (range.lower.is_finite(), range.upper.is_finite()) {
                (false, true) => (1.0, range.upper),
                (true, false) => (-1.0, -range.lower),
                (false, false) => {
                    row_of.push(None);
                    continue;
                }
                (true, true) => return None,
            };
            let mut bound = bound;
            for (column, value) in program.row(row) {
                match place[column] {
                    Some(at) => {
                        terms[at].push((bounds.len(), flip * value));
                        bound -= flip * value * columns[at].lower;
                    }
                    None => bound -= flip * value * fixed[column],
                }
            }
            row_of.push(Some((bounds.len(), flip)));
            bounds.push(bound);
            row_weights.push(weights.rows[row]);
        }
        let cost = columns.iter().map(|of| -sign * program.cost[of.column]).collect();
        let weights: Vec<f64> =
            columns.iter().map(|of| weights.columns[of.column]).chain(row_weights).collect();
        let weight = weights.iter().sum();
        let (by_column, by_row) = (Lines::of(&terms), Lines::of(&transposed(&terms, bounds.len())));
        let matrix = Matrix::of(terms, bounds.len());
        Some(Self { sign, matrix, columns, by_column, by_row, cost, bounds, weights, weight, row_of, fixed })
    }

    /// Number of columns, slacks apart.
    pub(super) fn n(&self) -> usize {
        self.columns.len()
    }

    /// The costs of columns, then those of slacks, which are 0.
    pub(super) fn costs(&self) -> impl Iterator<Item = f64> {
        self.cost.iter().copied().chain(std::iter::repeat_n(0.0, self.matrix.n_rows()))
    }

    /// The program's solution from the form's columns and slacks, `values`, and its y, `prices`, after `steps` steps.
    pub(super) fn solution(&self, program: &Program, values: &[f64], prices: &[f64], steps: u32) -> Solution {
        let mut columns = self.fixed.clone();
        for (of, value) in self.columns.iter().zip(values) {
            columns[of.column] = of.lower + value;
        }
        // Gᵀ y + z = q with q = −sign·cost: −y is the price of a row's bound in units of the maximized objective.
        let dual = |row: &Option<(usize, f64)>| row.map_or(0.0, |(at, flip)| -self.sign * flip * prices[at]);
        Solution {
            row_duals: self.row_of.iter().map(dual).collect(),
            objective: program.objective(&columns),
            columns,
            iterations: u64::from(steps),
            ..without_columns(Termination::Optimal)
        }
    }
}

impl Products for Form {
    fn times(&self, v: &[f64]) -> Vec<f64> {
        let mut product = v[self.n()..].to_vec();
        self.by_row.add_products(v, &mut product);
        product
    }

    fn transposed(&self, y: &[f64]) -> Vec<f64> {
        let mut product = Vec::with_capacity(self.weights.len());
        product.resize(self.n(), 0.0);
        self.by_column.add_products(y, &mut product);
        product.extend_from_slice(y);
        product
    }
}

/// The lower bound that the method gives a free column of this implied range: 0 if that is below the range. Else it is
/// below the range, since the reduced cost of a column at its bound would be missing from the rows' prices; and only just
/// below, since the distance to it moves the centre.
fn artificial_lower_bound(implied: Range) -> f64 {
    if implied.lower > 0.0 { 0.0 } else { implied.lower - OUT_OF_REACH * implied.lower.abs().max(1.0) }
}

/// The rows, in order of columns, of columns given as (row, coefficient) terms.
fn transposed(terms: &[Vec<(usize, f64)>], n_rows: usize) -> Vec<Vec<(usize, f64)>> {
    let mut rows = vec![Vec::new(); n_rows];
    for (column, terms) in terms.iter().enumerate() {
        for (row, value) in terms {
            rows[*row].push((column, *value));
        }
    }
    rows
}
