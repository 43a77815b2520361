//! The restricted master program: the mixture of proposed columns that fits the capacity rows, and its dual prices.
//!
//!   minimize   Σ cost·λ + Σ high·bought − Σ low·sold     (or the stretch ψ of all capacity rows, with λ at no cost)
//!   subject to Σ usage·λ + sold − bought ≤ room          (or ≤ ψ·room)
//!              Σ λ = 1 of every group,   λ, bought, sold, ψ ≥ 0
//!
//! `bought` and `sold` box the prices between `low` and `high` and make any columns feasible. Solved by the revised simplex
//! method with an explicit inverse: rows are few, and the last basis stays feasible, and its inverse valid, when columns are
//! added.

use crate::decomposition::columns::Proposals;
use crate::decomposition::dantzig_wolfe::ROWS_MANY;

/// A variable whose reduced cost is above this is left alone; costs, usage and room are near one.
const REDUCED: f64 = 1e-13;
/// The same where nothing came of the last pivots: two proposals that are alike but for rounding take turns for ever.
const REDUCED_STALLED: f64 = 1e-12;
/// What is basic may be below zero by this much.
const NEGATIVE: f64 = -1e-12;
/// The same at the end, of parts that are left out.
const NEGATIVE_FOUND: f64 = -1e-9;
/// Pivots smaller than this are not taken.
const PIVOT: f64 = 1e-10;
/// What is basic may fall below zero by this much for a better pivot.
const HARRIS: f64 = 1e-11;
/// Pivots of one solve, for each row; where rows are many, it is given up sooner.
const PIVOTS_MAX: usize = 60;
const PIVOTS_MANY: usize = 20;
/// Pivots without progress before the first candidate is taken, which cannot cycle (Bland 1977).
const STALLED: usize = 40;
/// Pivots after which the inverse is made anew.
const PIVOTS_KEPT: usize = 64;

/// A variable of the master program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Variable {
    Sold(usize),
    Bought(usize),
    Stretch,
    Reply(usize),
}

/// The restricted master program and its basis.
#[derive(Debug)]
pub(super) struct RestrictedMaster {
    /// Of the shared rows: [L]
    room: Vec<f64>,
    pub(super) groups: usize,
    stretched: bool,
    /// Between which prices are: [L]
    pub(super) low: Vec<f64>,
    pub(super) high: Vec<f64>,
    /// Cost of each reply, [proposals], and its usage, [askings × L × groups]. The group of each is its position's.
    cost: Vec<f64>,
    usage: Vec<f64>,
    basis: Vec<Variable>,
    /// What is basic has: [L + groups]
    value: Vec<f64>,
    /// Row by row: [(L + groups)²]
    inverse: Vec<f64>,
    /// Pivots since it was made.
    pivots: usize,
    /// What usage that is stretched, and so the stretch, is to be multiplied by.
    size: f64,
}

/// An optimum of the master program.
#[derive(Clone, Debug)]
pub(super) struct Mixture {
    pub(super) price: Vec<f64>,
    pub(super) objective: f64,
}

impl RestrictedMaster {
    pub(super) fn new(room: Vec<f64>, groups: usize, stretched: bool, low: Vec<f64>, high: Vec<f64>) -> Self {
        let lists = (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (cost, usage, basis, value, inverse) = lists;
        let (pivots, size) = (0, 1.0);
        Self { room, groups, stretched, low, high, cost, usage, basis, value, inverse, pivots, size }
    }

    fn rows(&self) -> usize {
        self.room.len()
    }

    /// Takes in what every group proposed.
    pub(super) fn add(&mut self, proposals: &Proposals) {
        self.cost.extend_from_slice(&proposals.cost);
        for row in 0..self.rows() {
            let usage = proposals.usage.iter().skip(row).step_by(self.room.len());
            self.usage.extend(usage.map(|usage| usage / self.size));
        }
        if self.basis.is_empty() {
            self.begin();
        }
    }

    /// Moves the usage of all proposals, which is stretched, towards what is given: [groups × L].
    pub(super) fn approach(&mut self, factor: f64, given: &[f64]) {
        let (rows, groups) = (self.rows(), self.groups);
        for (at, usage) in self.usage.iter_mut().enumerate() {
            let given = given[at % groups * rows + at / groups % rows];
            *usage = given + factor * (*usage - given);
        }
        self.inverse.clear();
    }

    /// Multiplies the usage of all proposals, which is stretched.
    pub(super) fn scale(&mut self, factor: f64) {
        self.size *= factor;
    }

    /// The basis of the last proposals alone.
    fn begin(&mut self) {
        let rows = self.rows();
        let last = self.cost.len() - self.groups;
        let mut total = vec![0.0; rows];
        for (total, usage) in total.iter_mut().zip(self.usage[last * rows..].chunks_exact(self.groups)) {
            *total = usage.iter().sum();
        }
        let ratio = |row: &usize| total[*row] / self.room[*row];
        let fullest = (0..rows).max_by(|one, other| ratio(one).total_cmp(&ratio(other)));
        let of_row = |row: usize| match (self.stretched, total[row] <= self.room[row]) {
            (true, _) if Some(row) == fullest => Variable::Stretch,
            (true, _) | (false, true) => Variable::Sold(row),
            (false, false) => Variable::Bought(row),
        };
        self.basis = (0..rows).map(of_row).chain((last..self.cost.len()).map(Variable::Reply)).collect();
    }

    /// The cost of a variable, and its coefficients by `each`.
    fn read(&self, variable: Variable, mut each: impl FnMut(usize, f64)) -> f64 {
        let rows = self.rows();
        match variable {
            Variable::Sold(row) => {
                each(row, 1.0);
                -self.low[row]
            }
            Variable::Bought(row) => {
                each(row, -1.0);
                self.high[row]
            }
            Variable::Stretch => {
                self.room.iter().enumerate().for_each(|(row, room)| each(row, -room));
                1.0
            }
            Variable::Reply(at) => {
                let (asking, group) = (at / self.groups, at % self.groups);
                let usage = self.usage[asking * self.groups * rows..].iter().skip(group);
                usage.step_by(self.groups).take(rows).enumerate().for_each(|(row, usage)| each(row, *usage));
                each(rows + group, 1.0);
                self.cost[at]
            }
        }
    }

    fn shared(&self) -> impl Iterator<Item = Variable> + use<> {
        let rows = self.rows();
        let shared = (0..rows).map(Variable::Sold).chain((0..rows).map(Variable::Bought));
        shared.chain(self.stretched.then_some(Variable::Stretch))
    }

    /// The optimum; none if numbers are too bad for one.
    pub(super) fn solve(&mut self) -> Option<Mixture> {
        if self.inverse.is_empty() {
            // proposals that were moved may no longer fit together as they did
            if self.refactor().is_none() || self.least() < NEGATIVE {
                self.begin();
                self.refactor()?;
            }
        } else if self.pivots > PIVOTS_KEPT {
            self.refactor()?;
        }
        if let Some(found) = self.improved()
            && self.least() >= NEGATIVE_FOUND
        {
            return Some(found);
        }
        // (what rounding has made of a basis is left for another one, and what comes of that for a certificate to judge)
        self.begin();
        self.refactor()?;
        self.improved()
    }

    /// The least of what is basic.
    fn least(&self) -> f64 {
        self.value.iter().copied().fold(0.0, f64::min)
    }

    /// Pivots to an optimum.
    fn improved(&mut self) -> Option<Mixture> {
        self.mend();
        let (mut stalled, mut before) = (0, f64::INFINITY);
        let most = if self.rows() < ROWS_MANY { PIVOTS_MAX } else { PIVOTS_MANY };
        for _ in 0..most * self.basis.len() {
            let dual = self.duals();
            let first = stalled > STALLED;
            let Some(entering) = self.entering(&dual, first) else {
                if self.pivots > 0 && self.off(&dual) > REDUCED {
                    self.refactor()?;
                    continue;
                }
                let price = dual[..self.rows()].iter().map(|dual| (-dual).max(0.0)).collect();
                self.mend();
                return Some(Mixture { price, objective: self.size * self.objective() });
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

    fn objective(&self) -> f64 {
        let cost = self.basis.iter().map(|variable| self.read(*variable, |_, _| {}));
        cost.zip(&self.value).map(|(cost, value)| cost * value).sum()
    }

    fn duals(&self) -> Vec<f64> {
        let n = self.basis.len();
        let mut dual = vec![0.0; n];
        for (place, variable) in self.basis.iter().enumerate() {
            let cost = self.read(*variable, |_, _| {});
            if cost != 0.0 {
                let row = &self.inverse[place * n..(place + 1) * n];
                dual.iter_mut().zip(row).for_each(|(dual, inverse)| *dual += cost * inverse);
            }
        }
        dual
    }

    /// By how much what is basic gains or loses at these duals, which is what rounding has done.
    fn off(&self, dual: &[f64]) -> f64 {
        let off = |variable: &Variable| {
            let mut worth = 0.0;
            let cost = self.read(*variable, |row, value| worth += dual[row] * value);
            (cost - worth).abs()
        };
        self.basis.iter().map(off).fold(0.0, f64::max)
    }

    /// The variable that gains most, or the first that gains.
    fn entering(&self, dual: &[f64], first: bool) -> Option<Variable> {
        let mut best = (if first { -REDUCED_STALLED } else { -REDUCED }, None);
        let mut attempt = |variable: Variable, reduced: f64| {
            if reduced < best.0 && !self.basis.contains(&variable) {
                best = (reduced, Some(variable));
            }
            first && best.1.is_some()
        };
        for variable in self.shared() {
            let mut worth = 0.0;
            let cost = self.read(variable, |row, value| worth += dual[row] * value);
            if attempt(variable, cost - worth) {
                return Some(variable);
            }
        }
        let (of_rows, of_groups) = dual.split_at(self.rows());
        let (mut worth, groups) = (vec![0.0; self.groups], self.groups);
        let askings = self.cost.chunks_exact(groups).zip(self.usage.chunks_exact(groups * of_rows.len()));
        for (asking, (cost, usage)) in askings.enumerate() {
            // (what all groups proposed side by side)
            worth.fill(0.0);
            for (dual, usage) in of_rows.iter().zip(usage.chunks_exact(groups)) {
                worth.iter_mut().zip(usage).for_each(|(worth, usage)| *worth += dual * usage);
            }
            worth.iter_mut().zip(of_groups).for_each(|(worth, dual)| *worth += dual);
            for (group, (cost, worth)) in cost.iter().zip(&worth).enumerate() {
                let variable = Variable::Reply(asking * groups + group);
                if attempt(variable, cost - worth) {
                    return Some(variable);
                }
            }
        }
        best.1
    }

    /// Brings a variable into the basis, in place of the one with the largest pivot, or the `first`.
    fn pivot(&mut self, entering: Variable, first: bool) -> Option<()> {
        let n = self.basis.len();
        let mut direction = vec![0.0; n];
        self.read(entering, |row, value| {
            for (place, by) in direction.iter_mut().enumerate() {
                *by += self.inverse[place * n + row] * value;
            }
        });
        // (where rows are many, a pivot that is no small one is worth a little room below zero: Harris 1973)
        let room = if self.rows() < ROWS_MANY || first { 0.0 } else { HARRIS };
        let pivots = || direction.iter().enumerate().filter(|(_, by)| **by > PIVOT);
        let reach = |(place, by): (usize, &f64)| (self.value[place].max(0.0) + room) / by;
        let farthest = pivots().map(reach).fold(f64::INFINITY, f64::min);
        let mut leaving: Option<(usize, f64)> = None;
        for (place, by) in pivots() {
            let length = self.value[place].max(0.0) / by;
            let better = leaving.is_none_or(|(other, least)| {
                let rather =
                    if first { self.basis[place] < self.basis[other] } else { *by > direction[other] };
                if room > 0.0 { rather } else { length < least || length.total_cmp(&least).is_eq() && rather }
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
            let own = &mut self.inverse[other * n..(other + 1) * n];
            if other == place {
                own.copy_from_slice(&row);
            } else if *by != 0.0 {
                own.iter_mut().zip(&row).for_each(|(own, row)| *own -= by * row);
            }
        }
        Some(())
    }

    /// Inverts the basis anew (Gauss and Jordan, with row pivoting); none if it is singular.
    fn refactor(&mut self) -> Option<()> {
        let n = self.basis.len();
        let mut matrix = vec![0.0; n * n];
        for (place, variable) in self.basis.iter().enumerate() {
            self.read(*variable, |row, value| matrix[row * n + place] += value);
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
        self.mend();
        Some(())
    }

    /// Adds to what is basic what rounding has left of the right-hand side.
    fn mend(&mut self) {
        let n = self.basis.len();
        let rest = self.residual();
        for (value, row) in self.value.iter_mut().zip(self.inverse.chunks_exact(n)) {
            *value += row.iter().zip(&rest).map(|(row, rest)| row * rest).sum::<f64>();
        }
    }

    /// What the basic variables leave of the right-hand side.
    fn residual(&self) -> Vec<f64> {
        let room = |room: &f64| if self.stretched { 0.0 } else { *room };
        let mut rest: Vec<f64> =
            self.room.iter().map(room).chain(std::iter::repeat_n(1.0, self.groups)).collect();
        for (variable, basic) in self.basis.iter().zip(&self.value) {
            self.read(*variable, |row, value| rest[row] -= value * basic);
        }
        rest
    }

    /// Widens the prices' range where they are at an end of it that is no end of theirs. True if any is.
    pub(super) fn widen(&mut self, factor: f64) -> bool {
        let mut widened = false;
        for variable in &self.basis {
            match *variable {
                Variable::Bought(row) => {
                    self.high[row] += factor * (self.high[row] - self.low[row]);
                    widened = true;
                }
                Variable::Sold(row) if self.low[row] > 0.0 => {
                    let low = self.low[row] - factor * (self.high[row] - self.low[row]);
                    self.low[row] = low.max(0.0);
                    widened = true;
                }
                _ => {}
            }
        }
        widened
    }

    /// The parts of columns in the mixture: (round, group, part).
    pub(super) fn parts(&self) -> Vec<(usize, usize, f64)> {
        let basic = self.basis.iter().zip(&self.value);
        let part = basic.filter_map(|(variable, value)| match *variable {
            Variable::Reply(at) if *value > 0.0 => Some((at / self.groups, at % self.groups, *value)),
            _ => None,
        });
        let mut parts: Vec<(usize, usize, f64)> = part.collect();
        parts.sort_by_key(|(asked, group, _)| (*asked, *group));
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Program, Range, Sense};
    use crate::solver::{Limits, registry};

    /// Numbers in [0, 1), spread evenly (multiples of the golden ratio).
    fn drawn(n: usize) -> impl Iterator<Item = f64> {
        (1..=n).map(|at| (at as f64 * 0.618_033_988_749_894_9).fract())
    }

    /// The master program as any solver sees it.
    fn written(master: &RestrictedMaster) -> Program {
        let mut program = Program::new(Sense::Minimize);
        let proposals = (0..master.cost.len()).map(Variable::Reply);
        let variables: Vec<Variable> = master.shared().chain(proposals).collect();
        let n = master.rows() + master.groups;
        let mut rows = vec![Vec::new(); n];
        for (column, variable) in variables.iter().enumerate() {
            let cost = master.read(*variable, |row, value| rows[row].push((column, value)));
            program.push_column(Range::NON_NEGATIVE, Range { lower: 0.0, upper: 1e3 }, cost);
        }
        for (row, terms) in rows.into_iter().enumerate() {
            let room = master.room.get(row).map_or(1.0, |room| if master.stretched { 0.0 } else { *room });
            program.push_row(Range::exactly(room), terms);
        }
        program
    }

    #[test]
    fn mixtures_are_those_of_another_solver() {
        for stretched in [false, true] {
            // (all that is sold at the lowest prices is worth less than a stretch of one)
            for rows in [1, 2, 3, 20] {
                let (low, high) = (vec![0.3 / rows as f64; rows], vec![0.7; rows]);
                let mut master = RestrictedMaster::new(vec![1.0; rows], 3, stretched, low, high);
                let mut numbers = drawn(600);
                for _ in 0..6 {
                    let mut take = |n: usize, by: f64| -> Vec<f64> {
                        numbers.by_ref().take(n).map(|number| number * by).collect()
                    };
                    let cost = if stretched { vec![0.0; 3] } else { take(3, -1.0) };
                    master.add(&Proposals { cost, usage: take(3 * rows, 1.0), least: 0.0, slope: 0.0 });
                    let mixture = master.solve().expect("an optimum");
                    let mut other = registry::backend("clarabel").unwrap();
                    let other = other.solve(&written(&master), &Limits::default(), None).unwrap();
                    assert!((mixture.objective - other.objective).abs() < 1e-7, "{rows} {stretched}");
                    let of_group = |group: usize| {
                        let parts = master.parts().into_iter().filter(move |part| part.1 == group);
                        parts.map(|(_, _, part)| part).sum::<f64>()
                    };
                    assert!((0..3).all(|group| (of_group(group) - 1.0).abs() < 1e-12));
                }
            }
        }
    }

    #[test]
    fn a_range_is_widened_where_it_holds_prices_back() {
        let mut master = RestrictedMaster::new(vec![1.0], 1, false, vec![0.2], vec![0.4]);
        master.add(&Proposals { cost: vec![0.0], usage: vec![2.0], least: 0.0, slope: 0.0 });
        assert!((master.solve().expect("an optimum").price[0] - 0.4).abs() < 1e-12, "one must be bought");
        assert!(master.widen(1.0));
        assert!((master.high[0] - 0.6).abs() < 1e-12);
    }
}
