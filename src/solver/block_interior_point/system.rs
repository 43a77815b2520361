//! The linking system: what is left of a Newton step when every block has been eliminated.
//!
//!   [ P   Q ] [dπ]   [rows]        P = Σ C N Cᵀ + diag(σ/π)     Q = Σ C U G − F
//!   [−Qᵀ  R ] [dt] = [columns]     R = Σ Gᵀ S⁻¹ G + θ
//!
//! for linking rows C x + F t + σ = w and linking columns t that are in rows of blocks by G. P and R are positive
//! definite; R is eliminated first.

/// What a batch adds to the linking system and to the sums that steer a solve.
#[derive(Clone, Debug)]
pub(super) struct Partial {
    /// [L × L]
    pub(super) p: Vec<f64>,
    /// [L × T]
    pub(super) q: Vec<f64>,
    /// [T × T]
    pub(super) r: Vec<f64>,
    /// C dx of the step without the linking columns' and rows' own: [L]
    pub(super) rows: Vec<f64>,
    /// Gᵀ dy likewise: [T]
    pub(super) columns: Vec<f64>,
    /// C x: [L]
    pub(super) activity: Vec<f64>,
    /// Gᵀ y: [T]
    pub(super) gradient: Vec<f64>,
    pub(super) sums: Sums,
}

/// Sums and extremes over blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    /// Σ primal · dual over pairs that are to vanish.
    pub(super) complementarity: f64,
    /// The largest residual of a row and of a column.
    pub(super) primal_residual: f64,
    pub(super) dual_residual: f64,
    /// What blocks add to the primal and dual objective.
    pub(super) primal: f64,
    pub(super) dual: f64,
    /// Largest −step/value.
    pub(super) primal_ratio: f64,
    pub(super) dual_ratio: f64,
    /// Σ primal · dual step, Σ dual · primal step, Σ of both steps' product.
    pub(super) cross: [f64; 3],
}

impl Sums {
    pub(super) fn add(&mut self, other: &Self) {
        self.complementarity += other.complementarity;
        self.primal_residual = self.primal_residual.max(other.primal_residual);
        self.dual_residual = self.dual_residual.max(other.dual_residual);
        self.primal += other.primal;
        self.dual += other.dual;
        self.primal_ratio = self.primal_ratio.max(other.primal_ratio);
        self.dual_ratio = self.dual_ratio.max(other.dual_ratio);
        for (sum, other) in self.cross.iter_mut().zip(&other.cross) {
            *sum += other;
        }
    }
}

impl Partial {
    pub(super) fn zero(rows: usize, columns: usize, with_matrix: bool) -> Self {
        let matrix = |size: usize| vec![0.0; if with_matrix { size } else { 0 }];
        Self {
            p: matrix(rows * rows),
            q: matrix(rows * columns),
            r: matrix(columns * columns),
            rows: vec![0.0; rows],
            columns: vec![0.0; columns],
            activity: matrix(rows),
            gradient: matrix(columns),
            sums: Sums::default(),
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        let lists = [
            (&mut self.p, &other.p),
            (&mut self.q, &other.q),
            (&mut self.r, &other.r),
            (&mut self.rows, &other.rows),
            (&mut self.columns, &other.columns),
            (&mut self.activity, &other.activity),
            (&mut self.gradient, &other.gradient),
        ];
        for (list, other) in lists {
            list.iter_mut().zip(other).for_each(|(sum, other)| *sum += other);
        }
        self.sums.add(&other.sums);
    }
}

/// P and R factored.
#[derive(Debug)]
pub(super) struct Factored {
    n_rows: usize,
    n_columns: usize,
    q: Vec<f64>,
    r: Vec<f64>,
    /// L and D of P + Q R⁻¹ Qᵀ.
    reduced: Vec<f64>,
}

impl Factored {
    /// Factors the system; the diagonals are complete.
    pub(super) fn of(mut p: Vec<f64>, q: Vec<f64>, mut r: Vec<f64>, n_rows: usize, n_columns: usize) -> Self {
        factor(&mut r, n_columns);
        let mut column = vec![0.0; n_columns];
        for i in 0..n_rows {
            column.copy_from_slice(&q[i * n_columns..(i + 1) * n_columns]);
            substitute(&r, n_columns, &mut column);
            for j in 0..n_rows {
                let row = &q[j * n_columns..(j + 1) * n_columns];
                p[j * n_rows + i] += row.iter().zip(&column).map(|(a, b)| a * b).sum::<f64>();
            }
        }
        factor(&mut p, n_rows);
        Self { n_rows, n_columns, q, r, reduced: p }
    }

    /// (dπ, dt) for right-hand sides of rows and columns.
    pub(super) fn solve(&self, rows: &[f64], columns: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let width = self.n_columns;
        let mut inner = columns.to_vec();
        substitute(&self.r, width, &mut inner);
        let mut price = rows.to_vec();
        for (value, row) in price.iter_mut().zip(self.q.chunks_exact(width.max(1))) {
            *value -= row.iter().zip(&inner).map(|(a, b)| a * b).sum::<f64>();
        }
        substitute(&self.reduced, self.n_rows, &mut price);
        let mut level = columns.to_vec();
        for (value, row) in price.iter().zip(self.q.chunks_exact(width.max(1))) {
            level.iter_mut().zip(row).for_each(|(sum, q)| *sum += q * value);
        }
        substitute(&self.r, width, &mut level);
        (price, level)
    }
}

/// L D Lᵀ in place, of a positive definite matrix given by its upper triangle: D on the diagonal, L below it. A pivot
/// that rounding has left without a digit is made infinite: its variable does not move.
fn factor(matrix: &mut [f64], n: usize) {
    let diagonal: Vec<f64> = (0..n).map(|i| matrix[i * n + i]).collect();
    for k in 0..n {
        let pivot = matrix[k * n + k];
        if pivot <= 1e-15 * diagonal[k] || !pivot.is_finite() {
            matrix[k * n + k] = f64::INFINITY;
            for j in k + 1..n {
                matrix[j * n + k] = 0.0;
            }
            continue;
        }
        let (above, below) = matrix.split_at_mut((k + 1) * n);
        let top = &above[k * n..];
        for (i, row) in (k + 1..).zip(below.chunks_exact_mut(n)) {
            let multiple = top[i] / pivot;
            row[k] = multiple;
            if multiple != 0.0 {
                row[i..].iter_mut().zip(&top[i..]).for_each(|(value, above)| *value -= multiple * above);
            }
        }
    }
}

fn substitute(matrix: &[f64], n: usize, values: &mut [f64]) {
    for i in 0..n {
        let (done, rest) = values.split_at_mut(i);
        let row = &matrix[i * n..i * n + i];
        rest[0] -= row.iter().zip(done.iter()).map(|(l, value)| l * value).sum::<f64>();
    }
    for (i, value) in values.iter_mut().enumerate() {
        *value /= matrix[i * n + i];
    }
    for i in (0..n).rev() {
        let value = values[i];
        for (j, before) in values[..i].iter_mut().enumerate() {
            *before -= matrix[i * n + j] * value;
        }
    }
}
