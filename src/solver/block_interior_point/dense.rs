//! Blocks of any shape, one at a time, by dense elimination.

use crate::solver::block_interior_point::block_batch::Gathered;
use crate::solver::block_interior_point::inequality::Kind;
use crate::solver::block_interior_point::system::{Partial, Sums};
use crate::solver::block_interior_point::target::{ComplementarityTarget, Outer, PROXIMAL, Target, Wanted};

/// One block: its numbers and where it stands.
#[derive(Debug)]
pub(super) struct DenseBlock {
    pub(super) block: u32,
    data: Gathered,
    /// How much of mu its products aim at.
    pub(super) share: f64,
    /// Columns, then the slacks of rows.
    pub(super) primal: Vec<f64>,
    /// Reduced costs, then the duals of rows.
    pub(super) dual: Vec<f64>,
    primal_step: Vec<f64>,
    dual_step: Vec<f64>,
    /// A step put aside.
    kept: (Vec<f64>, Vec<f64>),
    /// The inverse at the current values: (k + m)², kept from gathering to recovering.
    inverse: Vec<f64>,
}

/// Right-hand sides and the products aimed at.
struct Aims {
    products: Vec<f64>,
    right: Vec<f64>,
}

impl DenseBlock {
    pub(super) fn new(block: u32, data: &Gathered) -> Self {
        let pairs = data.shape.k + data.shape.kinds.len();
        Self {
            block,
            data: data.clone(),
            share: 1.0,
            primal: vec![1.0; pairs],
            dual: vec![1.0; pairs],
            primal_step: vec![0.0; pairs],
            dual_step: vec![0.0; pairs],
            kept: (Vec::new(), Vec::new()),
            inverse: vec![0.0; pairs * pairs],
        }
    }

    pub(super) fn data(&self) -> &Gathered {
        &self.data
    }

    /// Puts the stored step aside, to be able to go back to it.
    pub(super) fn keep(&mut self) {
        self.kept.0.clone_from(&self.primal_step);
        self.kept.1.clone_from(&self.dual_step);
    }

    /// Goes back to the step put aside.
    pub(super) fn revert(&mut self) {
        std::mem::swap(&mut self.kept.0, &mut self.primal_step);
        std::mem::swap(&mut self.kept.1, &mut self.dual_step);
    }

    pub(super) fn advance(&mut self, primal: f64, dual: f64) {
        for (value, step) in self.primal.iter_mut().zip(&self.primal_step) {
            *value += step * primal;
        }
        for (value, step) in self.dual.iter_mut().zip(&self.dual_step) {
            *value += step * dual;
        }
    }

    fn k(&self) -> usize {
        self.data.shape.k
    }

    fn m(&self) -> usize {
        self.data.shape.kinds.len()
    }

    fn row(&self, row: usize) -> &[f64] {
        &self.data.coefficients[row * self.k()..(row + 1) * self.k()]
    }

    /// c + Aᵀ y + Cᵀ π.
    fn reduced(&self, price: &[f64]) -> Vec<f64> {
        let mut reduced = self.data.cost.clone();
        for row in 0..self.m() {
            let y = self.dual[self.k() + row];
            reduced.iter_mut().zip(self.row(row)).for_each(|(sum, a)| *sum += a * y);
        }
        let links = self.data.links.iter().zip(&self.data.link_values);
        for (column, (row, value)) in self.data.shape.entries.iter().zip(links) {
            reduced[*column as usize] += value * price[*row as usize];
        }
        reduced
    }

    /// b − A x − G t.
    fn residual(&self, level: &[f64]) -> Vec<f64> {
        let mut residual = self.data.bounds.clone();
        for (row, left) in residual.iter_mut().enumerate() {
            *left -= self.row(row).iter().zip(&self.primal).map(|(a, x)| a * x).sum::<f64>();
        }
        for ((row, column), value) in self.data.shape.levels.iter().zip(&self.data.level_values) {
            residual[*row as usize] -= value * level[*column as usize];
        }
        residual
    }

    fn aims(&self, at: Outer<'_>, target: Target) -> Aims {
        let k = self.k();
        let (reduced, residual) = (self.reduced(at.price), self.residual(at.level));
        let products: Vec<f64> = (0..self.primal.len())
            .map(|pair| {
                let at = [self.primal[pair], self.dual[pair], self.primal_step[pair], self.dual_step[pair]];
                let kind = if pair < k { Kind::AtMost } else { self.data.shape.kinds[pair - k] };
                match kind {
                    Kind::AtMost => target.of_pair(ComplementarityTarget::Share(self.share), at),
                    Kind::Logarithm => {
                        target.of_pair(ComplementarityTarget::Weight(self.data.weights[pair - k]), at)
                    }
                    Kind::Equal | Kind::Absent => 0.0,
                }
            })
            .collect();
        let of_columns = (0..k).map(|j| products[j] / self.primal[j] - reduced[j]);
        let of_rows = (0..self.m()).map(|i| residual[i] - products[k + i] / self.dual[k + i]);
        let of_rows = of_rows.enumerate().map(|(i, value)| match self.data.shape.kinds[i] {
            Kind::Equal | Kind::Absent => residual[i],
            _ => value,
        });
        let right = of_columns.chain(of_rows).collect();
        Aims { products, right }
    }

    /// Inverts [D⁻¹ Aᵀ; A −diag(α)].
    fn invert(&mut self) {
        let (k, m) = (self.k(), self.m());
        let n = k + m;
        let mut matrix = vec![0.0; n * n];
        for j in 0..k {
            matrix[j * n + j] = self.dual[j] / self.primal[j];
        }
        for i in 0..m {
            for j in 0..k {
                matrix[j * n + k + i] = self.data.coefficients[i * k + j];
                matrix[(k + i) * n + j] = self.data.coefficients[i * k + j];
            }
            matrix[(k + i) * n + k + i] = match self.data.shape.kinds[i] {
                Kind::Equal | Kind::Absent => {
                    let terms = self.row(i).iter().zip(&self.primal).zip(&self.dual);
                    -PROXIMAL * terms.map(|((a, x), z)| a * a * x / z).sum::<f64>()
                }
                _ => -self.primal[k + i] / self.dual[k + i],
            };
        }
        invert(&mut matrix, n);
        self.inverse = matrix;
    }

    fn times(&self, right: &[f64]) -> Vec<f64> {
        let rows = self.inverse.chunks_exact(right.len().max(1));
        rows.map(|row| row.iter().zip(right).map(|(a, b)| a * b).sum()).collect()
    }

    /// Adds up what the linking system needs of this block.
    pub(super) fn gather(&mut self, at: Outer<'_>, wanted: Wanted, partial: &mut Partial) {
        if wanted.matrix {
            self.invert();
        }
        let (k, n) = (self.k(), self.primal.len());
        let step = self.times(&self.aims(at, wanted.target).right);
        let data = &self.data;
        let (n_rows, n_columns) = (partial.rows.len(), partial.columns.len());
        let entries = || data.shape.entries.iter().zip(data.links.iter().zip(&data.link_values));
        let levels = || data.shape.levels.iter().zip(&data.level_values);
        for (column, (row, value)) in entries() {
            partial.rows[*row as usize] += value * step[*column as usize];
        }
        for ((row, column), value) in levels() {
            partial.columns[*column as usize] += value * step[k + *row as usize];
        }
        if !wanted.matrix {
            return;
        }
        for (column, (row, value)) in entries() {
            let (column, row) = (*column as usize, *row as usize);
            partial.activity[row] += value * self.primal[column];
            for (other, (link, other_value)) in entries() {
                partial.p[row * n_rows + *link as usize] +=
                    value * other_value * self.inverse[column * n + *other as usize];
            }
            for ((side, level), level_value) in levels() {
                partial.q[row * n_columns + *level as usize] +=
                    value * level_value * self.inverse[column * n + k + *side as usize];
            }
        }
        for ((side, level), value) in levels() {
            partial.gradient[*level as usize] += value * self.dual[k + *side as usize];
            for ((other, second), other_value) in levels() {
                partial.r[*level as usize * n_columns + *second as usize] -=
                    value * other_value * self.inverse[(k + *side as usize) * n + k + *other as usize];
            }
        }
        partial.sums.add(&self.sums(at));
    }

    fn sums(&self, at: Outer<'_>) -> Sums {
        let k = self.k();
        let mut sums = Sums::default();
        for (j, reduced) in self.reduced(at.price).iter().enumerate() {
            sums.complementarity += self.primal[j] * self.dual[j];
            sums.dual_residual = sums.dual_residual.max((reduced - self.dual[j]).abs());
            sums.primal += self.data.cost[j] * self.primal[j];
        }
        for (i, residual) in self.residual(at.level).iter().enumerate() {
            let (s, y, weight) = (self.primal[k + i], self.dual[k + i], self.data.weights[i]);
            sums.dual -= self.data.bounds[i] * y;
            let off = match self.data.shape.kinds[i] {
                Kind::Equal | Kind::Absent => residual.abs(),
                Kind::AtMost => {
                    sums.complementarity += s * y;
                    (residual - s).abs()
                }
                Kind::Logarithm => {
                    let ratio = s * y / weight;
                    sums.primal -= weight * s.ln();
                    sums.dual += weight * (1.0 + (y / weight).ln());
                    sums.complementarity += weight * (ratio - 1.0 - ratio.ln()).abs();
                    (residual - s).abs()
                }
            };
            sums.primal_residual = sums.primal_residual.max(off);
        }
        sums
    }

    /// Recovers the step that goes with one of the linking rows and columns, and stores it.
    pub(super) fn recover(&mut self, at: Outer<'_>, step: Outer<'_>, target: Target) -> Sums {
        let k = self.k();
        let mut aims = self.aims(at, target);
        let links = self.data.links.iter().zip(&self.data.link_values);
        for (column, (row, value)) in self.data.shape.entries.iter().zip(links) {
            aims.right[*column as usize] -= value * step.price[*row as usize];
        }
        for ((row, column), value) in self.data.shape.levels.iter().zip(&self.data.level_values) {
            aims.right[k + *row as usize] -= value * step.level[*column as usize];
        }
        let change = self.times(&aims.right);
        let mut sums = Sums::default();
        for (pair, change) in change.into_iter().enumerate() {
            let (primal, dual, product) = (self.primal[pair], self.dual[pair], aims.products[pair]);
            let kind = if pair < k { Kind::AtMost } else { self.data.shape.kinds[pair - k] };
            let (primal_step, dual_step) = match kind {
                _ if pair < k => (change, (product - dual * change) / primal - dual),
                Kind::Equal | Kind::Absent => (0.0, change),
                _ => ((product - primal * change) / dual - primal, change),
            };
            self.primal_step[pair] = primal_step;
            self.dual_step[pair] = dual_step;
            if matches!(kind, Kind::Equal | Kind::Absent) {
                continue;
            }
            sums.primal_ratio = sums.primal_ratio.max(-primal_step / primal);
            sums.dual_ratio = sums.dual_ratio.max(-dual_step / dual);
            if kind == Kind::AtMost {
                let cross = [primal * dual_step, dual * primal_step, primal_step * dual_step];
                sums.cross.iter_mut().zip(cross).for_each(|(sum, term)| *sum += term);
            }
        }
        sums
    }
}

/// Largest diagonal entry against the largest other one, above which it is the pivot (Bunch & Parlett 1971).
const DIAGONAL_PIVOT: f64 = 0.640_388_203_202_208;

/// The inverse of a symmetric matrix in place, by pivots of one and two rows, the largest first. Rows that depend
/// on others get none: their part of the inverse is zero.
fn invert(matrix: &mut [f64], n: usize) {
    let mut left: Vec<usize> = (0..n).collect();
    let mut dropped = Vec::new();
    while !left.is_empty() {
        let (mut diagonal, mut other) = ((0.0, 0), (0.0, 0, 0));
        for (at, &i) in left.iter().enumerate() {
            if matrix[i * n + i].abs() > diagonal.0 {
                diagonal = (matrix[i * n + i].abs(), at);
            }
            for (behind, &j) in left.iter().enumerate().skip(at + 1) {
                if matrix[i * n + j].abs() > other.0 {
                    other = (matrix[i * n + j].abs(), at, behind);
                }
            }
        }
        if diagonal.0.max(other.0) <= f64::MIN_POSITIVE {
            dropped = left;
            break;
        }
        if diagonal.0 >= DIAGONAL_PIVOT * other.0 {
            let i = left.remove(diagonal.1);
            sweep(matrix, n, &[i], |p| [1.0 / p[0], 0.0, 0.0]);
        } else {
            let (first, second) = (left[other.1], left[other.2]);
            left.retain(|i| *i != first && *i != second);
            sweep(matrix, n, &[first, second], |[a, b, c]| {
                let det = a * c - b * b;
                [c / det, -b / det, a / det]
            });
        }
    }
    for &i in &dropped {
        for j in 0..n {
            matrix[i * n + j] = 0.0;
            matrix[j * n + i] = 0.0;
        }
    }
    for value in matrix.iter_mut() {
        *value = -*value;
    }
}

/// Sweeps one or two rows: M ← [−P⁻¹, P⁻¹B; BᵀP⁻¹, C − BᵀP⁻¹B]; when all are swept, −M is the inverse.
/// `inverse` takes and gives (1,1), (1,2), (2,2).
fn sweep(matrix: &mut [f64], n: usize, rows: &[usize], inverse: impl Fn([f64; 3]) -> [f64; 3]) {
    let (i, l) = (rows[0], *rows.last().unwrap_or(&rows[0]));
    let two = rows.len() == 2;
    let [a, b, c] = inverse([matrix[i * n + i], matrix[i * n + l], matrix[l * n + l]]);
    let first: Vec<f64> = matrix[i * n..(i + 1) * n].to_vec();
    let second: Vec<f64> = if two { matrix[l * n..(l + 1) * n].to_vec() } else { vec![0.0; n] };
    let scaled = |j: usize| (a * first[j] + b * second[j], b * first[j] + c * second[j]);
    for j in (0..n).filter(|j| !rows.contains(j)) {
        let (p, q) = scaled(j);
        for h in (0..n).filter(|h| !rows.contains(h)) {
            matrix[j * n + h] -= p * first[h] + q * second[h];
        }
    }
    for j in (0..n).filter(|j| !rows.contains(j)) {
        let (p, q) = scaled(j);
        matrix[i * n + j] = p;
        matrix[j * n + i] = p;
        if two {
            matrix[l * n + j] = q;
            matrix[j * n + l] = q;
        }
    }
    matrix[i * n + i] = -a;
    if two {
        matrix[i * n + l] = -b;
        matrix[l * n + i] = -b;
        matrix[l * n + l] = -c;
    }
}

impl DenseBlock {
    /// Slacks of the rows and duals of all, at columns that are set.
    pub(super) fn start_slacks(&mut self, level: &[f64], mu: f64) {
        let (k, residual) = (self.k(), self.residual(level));
        for j in 0..k {
            self.dual[j] = self.share * mu / self.primal[j];
        }
        for (i, free) in residual.into_iter().enumerate() {
            let size = self.data.bounds[i].abs()
                + self.row(i).iter().zip(&self.primal).map(|(a, x)| (a * x).abs()).sum::<f64>();
            let slack = free.max(0.1 * size.max(1e-3));
            (self.primal[k + i], self.dual[k + i]) = match self.data.shape.kinds[i] {
                Kind::Equal | Kind::Absent => (1.0, 0.0),
                Kind::AtMost => (slack, self.share * mu / slack),
                Kind::Logarithm => (slack, self.data.weights[i] / slack),
            };
        }
    }
}
