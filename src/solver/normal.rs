//! The linear algebra of interior-point methods: a matrix of columns and slacks, G = [columns | 1], and the normal
//! equations G·D·Gᵀ y = r with a diagonal D.
//!
//! `factor` solves them block by block; `sums` adds up their entries. The backends [`separable`](super::separable) and
//! [`centre`](super::centre) use both.

mod factor;
mod sums;

use factor::BlockStructure;
pub(super) use factor::Factor;
pub(super) use sums::Plan;

/// Products of G and of its transpose with vectors.
pub(super) trait Products {
    /// The product G v: [rows].
    fn times(&self, v: &[f64]) -> Vec<f64>;

    /// The product Gᵀ y: [columns and slacks].
    fn transposed(&self, y: &[f64]) -> Vec<f64>;
}

/// The matrix G: columns of a few terms each, then a slack for each row.
#[derive(Clone, Debug)]
pub(super) struct Matrix {
    n_rows: usize,
    /// Position of each column's first term, then the number of terms: [columns + 1].
    starts: Vec<usize>,
    /// Row of each term.
    term_rows: Vec<usize>,
    /// Coefficient of each term.
    pub(super) term_values: Vec<f64>,
    structure: BlockStructure,
}

impl Matrix {
    /// A matrix of columns given as (row, coefficient) terms.
    pub(super) fn of(columns: Vec<Vec<(usize, f64)>>, n_rows: usize) -> Self {
        let structure = BlockStructure::of(&columns, n_rows);
        let mut starts = vec![0];
        starts.extend(columns.iter().scan(0, |end, terms| {
            *end += terms.len();
            Some(*end)
        }));
        let (term_rows, term_values) = columns.into_iter().flatten().unzip();
        Self { n_rows, starts, term_rows, term_values, structure }
    }

    /// Number of columns, slacks apart.
    pub(super) fn n_columns(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of rows.
    pub(super) fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Position of a column's first term.
    pub(super) fn start(&self, column: usize) -> usize {
        self.starts[column]
    }

    /// The number of multiplications by which, at each step, all blocks are eliminated from the equations of the
    /// links.
    pub(super) fn elimination_cost(&self) -> f64 {
        let rows_of_blocks: usize = self.structure.sizes.iter().sum();
        rows_of_blocks as f64 * (self.structure.n_links as f64).powi(2)
    }

    /// The terms of one column: rows and coefficients.
    pub(super) fn column(&self, column: usize) -> (&[usize], &[f64]) {
        let range = self.starts[column]..self.starts[column + 1];
        (&self.term_rows[range.clone()], &self.term_values[range])
    }

    /// The terms of each column: rows and coefficients.
    pub(super) fn terms(&self) -> impl Iterator<Item = (&[usize], &[f64])> {
        let ranges = self.starts.windows(2).map(|ends| ends[0]..ends[1]);
        ranges.map(|range| (&self.term_rows[range.clone()], &self.term_values[range]))
    }
}

impl Products for Matrix {
    fn times(&self, v: &[f64]) -> Vec<f64> {
        let mut product = v[self.n_columns()..].to_vec();
        for ((rows, coefficients), value) in self.terms().zip(v) {
            for (row, coefficient) in rows.iter().zip(coefficients) {
                product[*row] += coefficient * value;
            }
        }
        product
    }

    fn transposed(&self, y: &[f64]) -> Vec<f64> {
        let dot = |(rows, values): (&[usize], &[f64])| {
            rows.iter().zip(values).map(|(row, value)| value * y[*row]).sum::<f64>()
        };
        let mut product = Vec::with_capacity(self.n_columns() + self.n_rows);
        product.extend(self.terms().map(dot));
        product.extend_from_slice(y);
        product
    }
}

impl Factor {
    /// The solution y of the normal equations for a right-hand side, and Gᵀ y. If y misses more than the fraction `exact` of
    /// the right-hand side, one step of iterative refinement follows, and is kept where it helps: nearly dependent rows cost
    /// a factor most of its digits.
    pub(super) fn solve_refined(
        &self,
        products: &impl Products,
        diagonal: &[f64],
        right: &[f64],
        exact: f64,
    ) -> (Vec<f64>, Vec<f64>) {
        let missed = |along: &[f64]| {
            let scaled: Vec<f64> = along.iter().zip(diagonal).map(|(value, entry)| value * entry).collect();
            let mut missed = products.times(&scaled);
            missed.iter_mut().zip(right).for_each(|(reached, right)| *reached = right - *reached);
            missed
        };
        let size = |values: &[f64]| values.iter().map(|value| value.abs()).fold(0.0, f64::max);
        let first = self.solve(right);
        let first_along = products.transposed(&first);
        let residual = missed(&first_along);
        if size(&residual) <= exact * size(right) {
            return (first, first_along);
        }
        let better: Vec<f64> = first.iter().zip(self.solve(&residual)).map(|(y, more)| y + more).collect();
        let along = products.transposed(&better);
        if size(&missed(&along)) < size(&residual) { (better, along) } else { (first, first_along) }
    }
}
