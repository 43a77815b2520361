//! The restricted master program: the mixture of known columns that fits the capacities, and its dual prices.
//!
//!   minimize   Σ cost·λ + Σ high·excess − Σ low·slack     (where the level is raised: ψ in place of Σ cost·λ)
//!   subject to Σ usage·λ + slack − excess = capacity      (where the level is raised: = ψ·capacity)
//!              Σ λ = 1 for every group,   λ, slack, excess, ψ ≥ 0
//!
//! It has a capacity row for each worker type and a row for each group. λ is the weight of a column. ψ is the stretch, the
//! factor by which all capacities must be multiplied. The costs of `slack` and `excess` keep the dual prices in the price box,
//! between `low` and `high`, and any columns are feasible with an excess. A *round* is the columns of one pass, one for each
//! group; rounds are numbered in the order in which they were added.
//!
//! The method is the revised primal simplex with an explicit inverse: rows are few, and after columns are added the
//! last basis is still feasible and its inverse valid. Where pivots stall, the variable that enters and the one that leaves are
//! the first in order that may (Bland, *New finite pivoting rules for the simplex method*, 1977).

use crate::decomposition::columns::Columns;
use crate::decomposition::tolerances::{
    DEGENERATE_TYPES, HARRIS, NEGATIVE, NEGATIVE_FOUND, PIVOTS_KEPT, PIVOTS_PER_ROW_MAX,
    PIVOTS_PER_ROW_MAX_DEGENERATE, PIVOTS_STALLED, REDUCED_COST, REDUCED_COST_STALLED, RESTRICTED_PIVOT_MIN,
};
use crate::decomposition::unsolved::Unsolved;

/// A variable of the restricted master. The order of variables is that of Bland's rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Variable {
    /// The slack of a capacity row, by its worker type.
    Slack(usize),
    /// The excess of a capacity row, by its worker type.
    Excess(usize),
    /// The stretch ψ.
    Stretch,
    /// The weight λ of a column, by its round times the number of groups plus its group.
    Column(usize),
}

/// The price box, between the ends of which the dual prices of capacities are kept.
#[derive(Clone, Debug)]
pub(super) struct PriceBounds {
    /// The least price of all workers of each type together: `[types]`.
    pub(super) low: Vec<f64>,
    /// The largest price of all workers of each type together: `[types]`.
    pub(super) high: Vec<f64>,
}

/// The weight of a column in the mixture of an optimum.
#[derive(Clone, Copy, Debug)]
pub(super) struct ColumnWeight {
    /// The round in which the column was added.
    pub(super) round: usize,
    /// The group to which the column belongs.
    pub(super) group: usize,
    /// The weight, above 0.
    pub(super) weight: f64,
}

/// The restricted master program and its basis.
#[derive(Debug)]
pub(super) struct RestrictedMaster {
    /// The capacity of each worker type, in parts of all workers of the type: `[types]`.
    capacity: Vec<f64>,
    /// Number of groups.
    pub(super) groups: usize,
    /// True if the objective is ψ, false if it is cost at fixed capacities.
    is_stretched: bool,
    /// Lower end of the price box: `[types]`.
    price_low: Vec<f64>,
    /// Upper end of the price box: `[types]`.
    price_high: Vec<f64>,
    /// Cost of each column: `[rounds × groups]`.
    cost: Vec<f64>,
    /// Usage of each column, as parts of all workers of each type, divided by `usage_factor`: `[rounds × types × groups]`.
    usage: Vec<f64>,
    /// The basic variables, in the order of `value`: `[types + groups]`; empty without columns.
    basis: Vec<Variable>,
    /// Values of the basic variables: `[types + groups]`.
    value: Vec<f64>,
    /// Inverse of the basis, row by row: `[(types + groups) × (types + groups)]`; empty where it is to be computed.
    inverse: Vec<f64>,
    /// Pivots since the inverse was computed.
    pivots: usize,
    /// Factor on the usage of all columns, from [`scale_usage`](Self::scale_usage). The program is solved without it, and the
    /// objective ψ multiplied by it.
    usage_factor: f64,
}

/// An optimum of the restricted master, by its prices and its value; [`weights`](RestrictedMaster::weights) has its weights.
#[derive(Clone, Debug)]
pub(super) struct RestrictedOptimum {
    /// Dual price of each capacity, ≥ 0: `[types]`.
    pub(super) price: Vec<f64>,
    /// Least cost or, where the level is raised, least stretch, with the costs of slack and excess.
    pub(super) objective: f64,
}

impl RestrictedMaster {
    /// The program without columns, of capacities, a number of groups, the objective (ψ if `is_stretched`) and a price box.
    pub(super) fn new(capacity: Vec<f64>, groups: usize, is_stretched: bool, price_box: PriceBounds) -> Self {
        let PriceBounds { low: price_low, high: price_high } = price_box;
        Self {
            capacity,
            groups,
            is_stretched,
            price_low,
            price_high,
            cost: Vec::new(),
            usage: Vec::new(),
            basis: Vec::new(),
            value: Vec::new(),
            inverse: Vec::new(),
            pivots: 0,
            usage_factor: 1.0,
        }
    }

    /// Number of capacity rows.
    fn n_types(&self) -> usize {
        self.capacity.len()
    }

    /// Number of rounds that were added.
    pub(super) fn n_rounds(&self) -> usize {
        self.cost.len() / self.groups
    }

    /// Adds a round: a column for every group.
    pub(super) fn add_round(&mut self, columns: &Columns) {
        self.cost.extend_from_slice(&columns.cost);
        for row in 0..self.n_types() {
            let usage = columns.usage.iter().skip(row).step_by(self.capacity.len());
            self.usage.extend(usage.map(|usage| usage / self.usage_factor));
        }
        if self.basis.is_empty() {
            self.set_first_basis();
        }
    }

    /// Mixes all columns with the given one of their group: their usage becomes `factor` times itself plus 1 − `factor` times
    /// `given`, `[groups × types]`. These are the columns of a lower level above a base. The inverse
    /// is computed again by the next [`solve`](Self::solve).
    pub(super) fn mix_columns_with(&mut self, factor: f64, given: &[f64]) {
        let (rows, groups) = (self.n_types(), self.groups);
        for (at, usage) in self.usage.iter_mut().enumerate() {
            let given = given[at % groups * rows + at / groups % rows];
            *usage = given + factor * (*usage - given);
        }
        self.inverse.clear();
    }

    /// Multiplies the usage of all columns by `factor`: these are the columns of a lower level. This is right only where the
    /// objective is ψ, which is proportional to usage.
    pub(super) fn scale_usage(&mut self, factor: f64) {
        self.usage_factor *= factor;
    }

    /// Sets the basis to the last round's columns, each with weight 1, and one variable for each capacity row.
    fn set_first_basis(&mut self) {
        let rows = self.n_types();
        let last = self.cost.len() - self.groups;
        let mut total = vec![0.0; rows];
        for (total, usage) in total.iter_mut().zip(self.usage[last * rows..].chunks_exact(self.groups)) {
            *total = usage.iter().sum();
        }
        let ratio = |row: &usize| total[*row] / self.capacity[*row];
        let fullest = (0..rows).max_by(|one, other| ratio(one).total_cmp(&ratio(other)));
        let of_row = |row: usize| match (self.is_stretched, total[row] <= self.capacity[row]) {
            (true, _) if Some(row) == fullest => Variable::Stretch,
            (true, _) | (false, true) => Variable::Slack(row),
            (false, false) => Variable::Excess(row),
        };
        self.basis = (0..rows).map(of_row).chain((last..self.cost.len()).map(Variable::Column)).collect();
    }

    /// The cost of a variable; calls `each` with the row and the value of every coefficient of it.
    fn for_each_coefficient(&self, variable: Variable, mut each: impl FnMut(usize, f64)) -> f64 {
        let rows = self.n_types();
        match variable {
            Variable::Slack(row) => {
                each(row, 1.0);
                -self.price_low[row]
            }
            Variable::Excess(row) => {
                each(row, -1.0);
                self.price_high[row]
            }
            Variable::Stretch => {
                self.capacity.iter().enumerate().for_each(|(row, capacity)| each(row, -capacity));
                1.0
            }
            Variable::Column(at) => {
                let (round, group) = (at / self.groups, at % self.groups);
                let usage = self.usage[round * self.groups * rows..].iter().skip(group);
                usage.step_by(self.groups).take(rows).enumerate().for_each(|(row, usage)| each(row, *usage));
                each(rows + group, 1.0);
                self.cost[at]
            }
        }
    }

    /// The variables that are no columns: slacks, excesses and the stretch.
    fn row_variables(&self) -> impl Iterator<Item = Variable> + use<> {
        let rows = self.n_types();
        let shared = (0..rows).map(Variable::Slack).chain((0..rows).map(Variable::Excess));
        shared.chain(self.is_stretched.then_some(Variable::Stretch))
    }

    /// The optimum, from the last basis.
    pub(super) fn solve(&mut self) -> Result<RestrictedOptimum, Unsolved> {
        self.optimum().ok_or(Unsolved::RestrictedMaster)
    }

    /// The optimum, from the last basis; none if rounding or degeneracy prevents one twice.
    fn optimum(&mut self) -> Option<RestrictedOptimum> {
        if self.inverse.is_empty() {
            // Without an inverse, columns are the first or were mixed, and the basis may be singular or infeasible.
            if self.refactor().is_none() || self.least_value() < NEGATIVE {
                self.set_first_basis();
                self.refactor()?;
            }
        } else if self.pivots > PIVOTS_KEPT {
            self.refactor()?;
        }
        if let Some(found) = self.pivot_to_optimum()
            && self.least_value() >= NEGATIVE_FOUND
        {
            return Some(found);
        }
        // Rounding has spoiled the basis: one more attempt from another, with a result that the certificate judges.
        self.set_first_basis();
        self.refactor()?;
        self.pivot_to_optimum()
    }

    /// The least basic value, at most 0.
    fn least_value(&self) -> f64 {
        self.value.iter().copied().fold(0.0, f64::min)
    }

    /// The optimum by pivots until no reduced cost is negative; none after too many pivots, or if the basis becomes singular.
    fn pivot_to_optimum(&mut self) -> Option<RestrictedOptimum> {
        self.refine_values();
        let (mut stalled, mut before) = (0, f64::INFINITY);
        let most = if self.n_types() < DEGENERATE_TYPES {
            PIVOTS_PER_ROW_MAX
        } else {
            PIVOTS_PER_ROW_MAX_DEGENERATE
        };
        for _ in 0..most * self.basis.len() {
            let dual = self.duals();
            let first = stalled > PIVOTS_STALLED;
            let Some(entering) = self.entering(&dual, first) else {
                if self.pivots > 0 && self.inverse_error(&dual) > -REDUCED_COST {
                    self.refactor()?;
                    continue;
                }
                let price = dual[..self.n_types()].iter().map(|dual| (-dual).max(0.0)).collect();
                self.refine_values();
                return Some(RestrictedOptimum { price, objective: self.usage_factor * self.objective() });
            };
            if self.pivots > PIVOTS_KEPT {
                self.refactor()?;
            }
            self.pivot(entering, first)?;
            let objective = self.objective();
            stalled = if objective < before { 0 } else { stalled + 1 };
            before = objective;
        }
        None
    }

    /// The objective at the basic values, without `usage_factor`.
    fn objective(&self) -> f64 {
        let cost = self.basis.iter().map(|variable| self.for_each_coefficient(*variable, |_, _| {}));
        cost.zip(&self.value).map(|(cost, value)| cost * value).sum()
    }

    /// The dual value of each row, by sign those of a minimization: `[types + groups]`.
    fn duals(&self) -> Vec<f64> {
        let n = self.basis.len();
        let mut dual = vec![0.0; n];
        for (place, variable) in self.basis.iter().enumerate() {
            let cost = self.for_each_coefficient(*variable, |_, _| {});
            if cost != 0.0 {
                let row = &self.inverse[place * n..(place + 1) * n];
                dual.iter_mut().zip(row).for_each(|(dual, inverse)| *dual += cost * inverse);
            }
        }
        dual
    }

    /// The largest magnitude of a basic variable's reduced cost, which is 0 but for rounding in the inverse.
    fn inverse_error(&self, dual: &[f64]) -> f64 {
        let off = |variable: &Variable| {
            let mut worth = 0.0;
            let cost = self.for_each_coefficient(*variable, |row, value| worth += dual[row] * value);
            (cost - worth).abs()
        };
        self.basis.iter().map(off).fold(0.0, f64::max)
    }

    /// The variable that enters: the one with the least reduced cost or, by Bland's rule if `first`, the first with a negative
    /// one; none at an optimum.
    fn entering(&self, dual: &[f64], first: bool) -> Option<Variable> {
        let mut best = (if first { REDUCED_COST_STALLED } else { REDUCED_COST }, None);
        let mut attempt = |variable: Variable, reduced: f64| {
            if reduced < best.0 && !self.basis.contains(&variable) {
                best = (reduced, Some(variable));
            }
            first && best.1.is_some()
        };
        for variable in self.row_variables() {
            let mut worth = 0.0;
            let cost = self.for_each_coefficient(variable, |row, value| worth += dual[row] * value);
            if attempt(variable, cost - worth) {
                return Some(variable);
            }
        }
        let (of_rows, of_groups) = dual.split_at(self.n_types());
        let (mut worth, groups) = (vec![0.0; self.groups], self.groups);
        let rounds = self.cost.chunks_exact(groups).zip(self.usage.chunks_exact(groups * of_rows.len()));
        for (round, (cost, usage)) in rounds.enumerate() {
            // The reduced costs of all groups are computed side by side.
            worth.fill(0.0);
            for (dual, usage) in of_rows.iter().zip(usage.chunks_exact(groups)) {
                worth.iter_mut().zip(usage).for_each(|(worth, usage)| *worth += dual * usage);
            }
            worth.iter_mut().zip(of_groups).for_each(|(worth, dual)| *worth += dual);
            for (group, (cost, worth)) in cost.iter().zip(&worth).enumerate() {
                let variable = Variable::Column(round * groups + group);
                if attempt(variable, cost - worth) {
                    return Some(variable);
                }
            }
        }
        best.1
    }

    /// Brings a variable into the basis, in place of the one that reaches 0 first; of several, the one with the largest
    /// pivot or, by Bland's rule if `first`, the first in order. None if no variable reaches 0.
    fn pivot(&mut self, entering: Variable, first: bool) -> Option<()> {
        let n = self.basis.len();
        let mut direction = vec![0.0; n];
        self.for_each_coefficient(entering, |row, value| {
            for (place, by) in direction.iter_mut().enumerate() {
                *by += self.inverse[place * n + row] * value;
            }
        });
        // Where rows are many, a larger pivot is worth basic values a little below zero (Harris, *Pivot selection methods of
        // the Devex LP code*, 1973).
        let below = if self.n_types() < DEGENERATE_TYPES || first { 0.0 } else { HARRIS };
        let pivots = || direction.iter().enumerate().filter(|(_, by)| **by > RESTRICTED_PIVOT_MIN);
        let reach = |(place, by): (usize, &f64)| (self.value[place].max(0.0) + below) / by;
        let farthest = pivots().map(reach).fold(f64::INFINITY, f64::min);
        let mut leaving: Option<(usize, f64)> = None;
        for (place, by) in pivots() {
            let length = self.value[place].max(0.0) / by;
            let better = leaving.is_none_or(|(other, least)| {
                let rather =
                    if first { self.basis[place] < self.basis[other] } else { *by > direction[other] };
                if below > 0.0 {
                    rather
                } else {
                    length < least || length.total_cmp(&least).is_eq() && rather
                }
            });
            if better && length <= farthest {
                leaving = Some((place, length));
            }
        }
        let (place, length) = leaving?;
        for (value, by) in self.value.iter_mut().zip(&direction) {
            *value -= length * by;
        }
        self.value[place] = length;
        self.basis[place] = entering;
        self.pivots += 1;
        let by = direction[place];
        let row: Vec<f64> = self.inverse[place * n..(place + 1) * n].iter().map(|value| value / by).collect();
        for (other, by) in direction.iter().enumerate() {
            let other_row = &mut self.inverse[other * n..(other + 1) * n];
            if other == place {
                other_row.copy_from_slice(&row);
            } else if *by != 0.0 {
                other_row.iter_mut().zip(&row).for_each(|(value, row)| *value -= by * row);
            }
        }
        Some(())
    }

    /// Computes the inverse of the basis and the basic values again (Gauss–Jordan elimination with row pivoting); none if the
    /// basis is singular.
    fn refactor(&mut self) -> Option<()> {
        let n = self.basis.len();
        let mut matrix = vec![0.0; n * n];
        for (place, variable) in self.basis.iter().enumerate() {
            self.for_each_coefficient(*variable, |row, value| matrix[row * n + place] += value);
        }
        let mut inverse = vec![0.0; n * n];
        (0..n).for_each(|at| inverse[at * n + at] = 1.0);
        for at in 0..n {
            let size = |row: &usize| matrix[row * n + at].abs();
            let pivot = (at..n).max_by(|one, other| size(one).total_cmp(&size(other)))?;
            if size(&pivot) < f64::MIN_POSITIVE {
                return None;
            }
            for column in 0..n {
                matrix.swap(at * n + column, pivot * n + column);
                inverse.swap(at * n + column, pivot * n + column);
            }
            let by = matrix[at * n + at].recip();
            for column in 0..n {
                matrix[at * n + column] *= by;
                inverse[at * n + column] *= by;
            }
            for row in (0..n).filter(|row| *row != at) {
                let by = matrix[row * n + at];
                if by != 0.0 {
                    for column in 0..n {
                        matrix[row * n + column] -= by * matrix[at * n + column];
                        inverse[row * n + column] -= by * inverse[at * n + column];
                    }
                }
            }
        }
        (self.inverse, self.pivots) = (inverse, 0);
        self.value = vec![0.0; n];
        self.refine_values();
        Some(())
    }

    /// Corrects the basic values by the inverse times the residual of the rows: one step of iterative refinement.
    fn refine_values(&mut self) {
        let n = self.basis.len();
        let missed = self.residual();
        for (value, row) in self.value.iter_mut().zip(self.inverse.chunks_exact(n)) {
            *value += row.iter().zip(&missed).map(|(row, missed)| row * missed).sum::<f64>();
        }
    }

    /// The residual of the rows: the right-hand side minus the rows' values at the basic values, `[types + groups]`.
    fn residual(&self) -> Vec<f64> {
        let bound = |capacity: &f64| if self.is_stretched { 0.0 } else { *capacity };
        let mut remaining: Vec<f64> =
            self.capacity.iter().map(bound).chain(std::iter::repeat_n(1.0, self.groups)).collect();
        for (variable, basic) in self.basis.iter().zip(&self.value) {
            self.for_each_coefficient(*variable, |row, value| remaining[row] -= value * basic);
        }
        remaining
    }

    /// Widens the price box by `factor` times its width where it binds, and returns true if it binds. It binds above where an
    /// excess is basic, and below where a slack is; a lower end of 0 never counts as binding, as no price is below 0.
    pub(super) fn widen_price_box(&mut self, factor: f64) -> bool {
        let mut widened = false;
        for variable in &self.basis {
            match *variable {
                Variable::Excess(row) => {
                    self.price_high[row] += factor * (self.price_high[row] - self.price_low[row]);
                    widened = true;
                }
                Variable::Slack(row) if self.price_low[row] > 0.0 => {
                    let low = self.price_low[row] - factor * (self.price_high[row] - self.price_low[row]);
                    self.price_low[row] = low.max(0.0);
                    widened = true;
                }
                _ => {}
            }
        }
        widened
    }

    /// The columns in the mixture with their weights, by round and group.
    pub(super) fn weights(&self) -> Vec<ColumnWeight> {
        let basic = self.basis.iter().zip(&self.value);
        let of_column = basic.filter_map(|(variable, value)| match *variable {
            Variable::Column(at) if *value > 0.0 => {
                Some(ColumnWeight { round: at / self.groups, group: at % self.groups, weight: *value })
            }
            _ => None,
        });
        let mut weights: Vec<ColumnWeight> = of_column.collect();
        weights.sort_by_key(|of| (of.round, of.group));
        weights
    }
}

#[cfg(test)]
mod tests;
