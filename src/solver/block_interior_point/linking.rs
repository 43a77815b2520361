//! The linking rows and columns: their numbers, where they stand, and their part of a step.

use crate::solver::block_interior_point::inequality::Kind;
use crate::solver::block_interior_point::system::{Partial, Sums};
use crate::solver::block_interior_point::target::{ComplementarityTarget, PROXIMAL, Target};

/// The linking rows and columns, their numbers and where they stand.
#[derive(Clone, Debug)]
pub(super) struct Linking {
    pub(super) kinds: Vec<Kind>,
    /// How much of mu the product of each row aims at.
    pub(super) share: f64,
    /// w: [L]
    pub(super) bounds: Vec<f64>,
    /// F: [L × T]
    pub(super) coefficients: Vec<f64>,
    /// e: [T]
    pub(super) cost: Vec<f64>,
    /// Bounds of the linking columns: [T]
    pub(super) lower: Vec<f64>,
    pub(super) upper: Vec<f64>,
    /// σ and π, t and the duals of its bounds.
    pub(super) slack: Vec<f64>,
    pub(super) price: Vec<f64>,
    pub(super) level: Vec<f64>,
    pub(super) lower_dual: Vec<f64>,
    pub(super) upper_dual: Vec<f64>,
}

/// A step of the linking rows and columns.
#[derive(Clone, Debug, Default)]
pub(super) struct LinkingStep {
    pub(super) slack: Vec<f64>,
    pub(super) price: Vec<f64>,
    pub(super) level: Vec<f64>,
    pub(super) lower_dual: Vec<f64>,
    pub(super) upper_dual: Vec<f64>,
}

/// Products that the pairs of linking rows and columns aim at.
#[derive(Debug)]
pub(super) struct Products {
    pub(super) rows: Vec<f64>,
    pub(super) lower: Vec<f64>,
    pub(super) upper: Vec<f64>,
}

impl Products {
    /// τ/π, which the row's slack becomes were its price to stay.
    pub(super) fn over_price(&self, linking: &Linking, row: usize) -> f64 {
        if linking.kinds[row] == Kind::Equal { 0.0 } else { self.rows[row] / linking.price[row] }
    }

    /// τ/(t − lower) − τ/(upper − t).
    pub(super) fn over_bounds(&self, linking: &Linking, column: usize) -> f64 {
        let lower =
            if linking.lower[column].is_finite() { self.lower[column] / linking.above(column) } else { 0.0 };
        let upper =
            if linking.upper[column].is_finite() { self.upper[column] / linking.below(column) } else { 0.0 };
        lower - upper
    }
}

impl LinkingStep {
    pub(super) fn zero(linking: &Linking) -> Self {
        let (rows, columns) = (linking.kinds.len(), linking.level.len());
        Self {
            slack: vec![0.0; rows],
            price: vec![0.0; rows],
            level: vec![0.0; columns],
            lower_dual: vec![0.0; columns],
            upper_dual: vec![0.0; columns],
        }
    }
}

impl Linking {
    fn above(&self, column: usize) -> f64 {
        self.level[column] - self.lower[column]
    }

    fn below(&self, column: usize) -> f64 {
        self.upper[column] - self.level[column]
    }

    /// σ/π, or what stands for it in an equation.
    pub(super) fn stiffness(&self, row: usize, own: f64) -> f64 {
        match self.kinds[row] {
            Kind::Equal => PROXIMAL * own,
            _ => self.slack[row] / self.price[row],
        }
    }

    /// θ of a linking column's bounds.
    pub(super) fn bound_stiffness(&self, column: usize) -> f64 {
        let lower =
            if self.lower[column].is_finite() { self.lower_dual[column] / self.above(column) } else { 0.0 };
        let upper =
            if self.upper[column].is_finite() { self.upper_dual[column] / self.below(column) } else { 0.0 };
        lower + upper
    }

    pub(super) fn products(&self, before: &LinkingStep, target: Target) -> Products {
        let row = |row: usize| [self.slack[row], self.price[row], before.slack[row], before.price[row]];
        let lower = |t: usize| [self.above(t), self.lower_dual[t], before.level[t], before.lower_dual[t]];
        let upper = |t: usize| [self.below(t), self.upper_dual[t], -before.level[t], before.upper_dual[t]];
        let (rows, columns) = (self.kinds.len(), self.level.len());
        Products {
            rows: (0..rows)
                .map(|at| target.of_pair(ComplementarityTarget::Share(self.share), row(at)))
                .collect(),
            lower: (0..columns)
                .map(|t| target.of_pair(ComplementarityTarget::Share(1.0), lower(t)))
                .collect(),
            upper: (0..columns)
                .map(|t| target.of_pair(ComplementarityTarget::Share(1.0), upper(t)))
                .collect(),
        }
    }

    /// w − C x − F t.
    pub(super) fn row_residual(&self, row: usize, activity: f64) -> f64 {
        let n = self.level.len();
        let own: f64 = (0..n).map(|column| self.coefficients[row * n + column] * self.level[column]).sum();
        self.bounds[row] - activity - own
    }

    /// −(e + Gᵀ y + Fᵀ π).
    pub(super) fn column_residuals(&self, gradient: &[f64]) -> Vec<f64> {
        let n = self.level.len();
        let prices = |column: usize| -> f64 {
            self.price
                .iter()
                .enumerate()
                .map(|(row, price)| self.coefficients[row * n + column] * price)
                .sum()
        };
        (0..n).map(|column| -(self.cost[column] + gradient[column] + prices(column))).collect()
    }

    pub(super) fn complete(&self, products: &Products, price: Vec<f64>, level: Vec<f64>) -> LinkingStep {
        let slack = price.iter().enumerate().map(|(row, change)| match self.kinds[row] {
            Kind::Equal => 0.0,
            _ => (products.rows[row] - self.slack[row] * change) / self.price[row] - self.slack[row],
        });
        let slack = slack.collect();
        let of = |finite: bool, product: f64, dual: f64, distance: f64, change: f64| {
            if finite { (product - dual * change) / distance - dual } else { 0.0 }
        };
        let lower_dual = level.iter().enumerate().map(|(t, change)| {
            of(self.lower[t].is_finite(), products.lower[t], self.lower_dual[t], self.above(t), *change)
        });
        let lower_dual = lower_dual.collect();
        let upper_dual = level.iter().enumerate().map(|(t, change)| {
            of(self.upper[t].is_finite(), products.upper[t], self.upper_dual[t], self.below(t), -*change)
        });
        let upper_dual = upper_dual.collect();
        LinkingStep { slack, price, level, lower_dual, upper_dual }
    }

    /// The pairs that are to vanish: (primal, dual, primal step, dual step).
    fn pairs<'a>(&'a self, step: &'a LinkingStep) -> impl Iterator<Item = [f64; 4]> + 'a {
        let rows = (0..self.kinds.len()).filter(|row| self.kinds[*row] != Kind::Equal);
        let rows = rows.map(|row| [self.slack[row], self.price[row], step.slack[row], step.price[row]]);
        let lower = (0..self.level.len()).filter(|t| self.lower[*t].is_finite());
        let lower = lower.map(|t| [self.above(t), self.lower_dual[t], step.level[t], step.lower_dual[t]]);
        let upper = (0..self.level.len()).filter(|t| self.upper[*t].is_finite());
        let upper = upper.map(|t| [self.below(t), self.upper_dual[t], -step.level[t], step.upper_dual[t]]);
        rows.chain(lower).chain(upper)
    }

    pub(super) fn step_sums(&self, step: &LinkingStep) -> Sums {
        let mut sums = Sums::default();
        for [primal, dual, primal_step, dual_step] in self.pairs(step) {
            sums.primal_ratio = sums.primal_ratio.max(-primal_step / primal);
            sums.dual_ratio = sums.dual_ratio.max(-dual_step / dual);
            let cross = [primal * dual_step, dual * primal_step, primal_step * dual_step];
            sums.cross.iter_mut().zip(cross).for_each(|(sum, term)| *sum += term);
        }
        sums
    }

    pub(super) fn sums(&self, partial: &Partial) -> Sums {
        let mut sums = Sums::default();
        let none = LinkingStep::zero(self);
        sums.complementarity = self.pairs(&none).map(|[primal, dual, ..]| primal * dual).sum();
        for row in 0..self.kinds.len() {
            let residual = self.row_residual(row, partial.activity[row]);
            let slack = if self.kinds[row] == Kind::Equal { 0.0 } else { self.slack[row] };
            sums.primal_residual = sums.primal_residual.max((residual - slack).abs());
            sums.dual -= self.bounds[row] * self.price[row];
        }
        for (column, residual) in self.column_residuals(&partial.gradient).iter().enumerate() {
            let (mut off, level) = (*residual, self.level[column]);
            sums.primal += self.cost[column] * level;
            if self.lower[column].is_finite() {
                off += self.lower_dual[column];
                sums.dual += self.lower[column] * self.lower_dual[column];
            }
            if self.upper[column].is_finite() {
                off -= self.upper_dual[column];
                sums.dual -= self.upper[column] * self.upper_dual[column];
            }
            sums.dual_residual = sums.dual_residual.max(off.abs());
        }
        sums
    }

    pub(super) fn advance(&mut self, step: &LinkingStep, primal: f64, dual: f64) {
        let lists = [
            (&mut self.slack, &step.slack, primal),
            (&mut self.level, &step.level, primal),
            (&mut self.price, &step.price, dual),
            (&mut self.lower_dual, &step.lower_dual, dual),
            (&mut self.upper_dual, &step.upper_dual, dual),
        ];
        for (values, steps, length) in lists {
            values.iter_mut().zip(steps).for_each(|(value, step)| *value += length * step);
        }
    }
}
