//! The primal simplex method, from any basis: variables are brought back into their bounds, then the cost is lowered.
//!
//! In the first phase the cost is the sum of how far basic variables are out of their bounds (Wolfe 1965). The variable
//! that enters has the largest squared reduced cost divided by its weight, an estimate from below of the squared length
//! of the edge, updated from pivot to pivot (Forrest and Goldfarb 1992); in the second phase reduced costs are updated,
//! too. The variable that leaves is found in two passes: the first finds how far the step may go if bounds are missed
//! by the tolerance, the second takes the largest pivot among the variables that block it up to there (Harris 1973).
//! Where steps have had no length for a while, the first variable that helps enters and the first that blocks leaves
//! (Bland 1977).

use crate::solver::backend::{BasisStatus, Limits, Termination};
use crate::solver::simplex::tableau::{State, Tableau};
use crate::solver::timing::Stopwatch;

/// Number of pivots after which factors are made anew.
const PIVOTS_PER_FACTOR: usize = 32;
/// The least pivot, in scaled units.
const SIMPLEX_PIVOT_MIN: f64 = 1e-9;
/// The largest relative difference between a pivot computed by row and by column.
const AGREE: f64 = 1e-6;
/// The most steps in a row without length; after more, Bland's rule chooses variables.
const STALLED_MAX: u32 = 100;
/// The limit on steps where none is given, for each row and column and for 100 more.
const STEPS_PER_SIZE: u64 = 20;
/// Number of steps between two looks at the clock.
const STEPS_PER_CLOCK_READING: u64 = 16;

/// Runs the simplex method from a state, and returns why it stopped and how many steps it took.
pub(super) fn walk(tableau: &Tableau, state: &mut State, limits: &Limits) -> (Termination, u64) {
    let n = tableau.n_variables();
    let mut walk = Walk::new(tableau, limits);
    let steps_max = limits.iterations.map_or(STEPS_PER_SIZE * (n as u64 + 100), u64::from);
    let clock = Stopwatch::start();
    let (mut steps, mut fresh) = (0, true);
    loop {
        let feasible = walk.update_reduced_costs(state);
        let Some((entering, reduced)) = walk.entering() else {
            if !fresh {
                // Reduced costs are checked once more with fresh factors.
                tableau.refactor(state);
                (fresh, walk.priced) = (true, false);
                continue;
            }
            return (if feasible { Termination::Optimal } else { Termination::Infeasible }, steps);
        };
        if steps == steps_max {
            return (Termination::IterationLimit, steps);
        }
        if steps.is_multiple_of(STEPS_PER_CLOCK_READING) && limits.is_over(&clock) {
            return (Termination::TimeLimit, steps);
        }
        steps += 1;
        let sign = if reduced < 0.0 { 1.0 } else { -1.0 };
        match walk.step(state, entering, sign, feasible) {
            Step::Taken => fresh = false,
            Step::Unbounded if feasible && fresh => return (Termination::Unbounded, steps),
            Step::Unbounded | Step::Unsafe if fresh => return (Termination::Failed, steps),
            Step::Unbounded | Step::Unsafe => {
                tableau.refactor(state);
                (fresh, walk.priced) = (true, false);
                continue;
            }
        }
        if state.factor.n_pivots() >= PIVOTS_PER_FACTOR {
            tableau.refactor(state);
            (fresh, walk.priced) = (true, false);
        }
    }
}

/// The directions in which a variable may move, as the factor that makes a reduced cost a gain: −1 up, 1 down, NaN
/// both, and 0 neither, for a variable that is in the basis or has one value only.
type AllowedDirections = f64;

const STAYS: AllowedDirections = 0.0;
const UP: AllowedDirections = -1.0;
const DOWN: AllowedDirections = 1.0;
const BOTH: AllowedDirections = f64::NAN;

/// Number of variables that are tested together for entering.
const TOGETHER: usize = 8;

enum Step {
    Taken,
    /// No bound blocks the step.
    Unbounded,
    /// The pivot of the variable that blocks is too small.
    Unsafe,
}

/// A basic variable that blocks a step.
#[derive(Clone, Copy)]
struct Block {
    position: usize,
    /// The entry of the direction at this variable, without sign.
    pivot: f64,
    /// The length of step at which the variable is at its bound.
    at: f64,
    /// The bound that the variable reaches.
    bound: BasisStatus,
}

struct Walk<'a> {
    tableau: &'a Tableau,
    tolerance: f64,
    /// Costs of basic variables, by position.
    costs: Vec<f64>,
    /// Prices of rows.
    prices: Vec<f64>,
    /// The column of the entering variable by row, zero between uses.
    column: Vec<f64>,
    /// The change of each basic variable per unit of the entering one, negated, by position.
    direction: Vec<f64>,
    /// The directions in which each variable may enter: `[variables]`.
    allowed_directions: Vec<AllowedDirections>,
    /// Reduced costs of variables out of the basis: [variables].
    reduced: Vec<f64>,
    /// The squared length of the edge along which a variable enters, estimated from below: [variables].
    weights: Vec<f64>,
    /// The row of the last pivot, in terms of the basis: [variables].
    row: Vec<f64>,
    /// Whether reduced costs are those of the second phase at this basis.
    priced: bool,
    /// Number of steps without length since the last one with a length.
    stalled: u32,
}

impl<'a> Walk<'a> {
    fn new(tableau: &'a Tableau, limits: &Limits) -> Self {
        let by_row = || vec![0.0; tableau.n_rows];
        Self {
            tableau,
            tolerance: limits.tolerance.clamp(1e-10, 1e-6),
            costs: by_row(),
            prices: by_row(),
            column: by_row(),
            direction: by_row(),
            reduced: vec![0.0; tableau.n_variables()],
            weights: vec![1.0; tableau.n_variables()],
            row: vec![0.0; tableau.n_variables()],
            priced: false,
            allowed_directions: vec![STAYS; tableau.n_variables()],
            stalled: 0,
        }
    }

    /// Computes reduced costs: of the objective if no basic variable is out of its bounds, else of the sum of
    /// distances from bounds. True if no basic variable is out of its bounds.
    fn update_reduced_costs(&mut self, state: &State) -> bool {
        let Tableau { lower, upper, .. } = self.tableau;
        let mut feasible = true;
        for (cost, variable) in self.costs.iter_mut().zip(&state.basic) {
            let variable = *variable as usize;
            let value = state.value[variable];
            *cost = if value < lower[variable] - self.tolerance {
                -1.0
            } else if value > upper[variable] + self.tolerance {
                1.0
            } else {
                0.0
            };
            feasible &= *cost == 0.0;
        }
        if feasible && self.priced {
            return true;
        }
        if feasible {
            for (cost, variable) in self.costs.iter_mut().zip(&state.basic) {
                *cost = self.tableau.cost.get(*variable as usize).copied().unwrap_or(0.0);
            }
        }
        state.factor.backward(&mut self.costs, &mut self.prices);
        for variable in 0..self.reduced.len() {
            self.allowed_directions[variable] = self.allowed_directions(state, variable);
            if self.allowed_directions[variable] != STAYS {
                self.reduced[variable] = self.reduced_cost(variable, feasible);
            }
        }
        self.priced = feasible;
        feasible
    }

    /// The reduced cost of a variable.
    fn reduced_cost(&self, variable: usize, feasible: bool) -> f64 {
        if let Some(row) = variable.checked_sub(self.tableau.n_columns()) {
            return self.prices[row];
        }
        let cost = if feasible { self.tableau.cost[variable] } else { 0.0 };
        let terms = self.tableau.columns.column(variable);
        cost - terms.map(|(row, value)| value * self.prices[row]).sum::<f64>()
    }

    /// The variable to enter, with its reduced cost; none if no variable lowers the cost.
    fn entering(&self) -> Option<(usize, f64)> {
        let mut best: Option<usize> = None;
        let mut most = 0.0;
        let known = self.reduced.chunks(TOGETHER).zip(self.weights.chunks(TOGETHER));
        for (place, ((reduced, weights), allowed_directions)) in
            known.zip(self.allowed_directions.chunks(TOGETHER)).enumerate()
        {
            if !self.may_enter(reduced, weights, allowed_directions, most) {
                continue;
            }
            for (at, ((reduced, weight), way)) in
                reduced.iter().zip(weights).zip(allowed_directions).enumerate()
            {
                let gain = if way.is_nan() { reduced.abs() } else { reduced * way };
                if gain > self.tolerance && gain * gain > most * weight {
                    (best, most) = (Some(place * TOGETHER + at), gain * gain / weight);
                    if self.stalled > STALLED_MAX {
                        break;
                    }
                }
            }
            if self.stalled > STALLED_MAX && best.is_some() {
                break;
            }
        }
        best.map(|variable| (variable, self.reduced[variable]))
    }

    /// Whether one of these variables may be better than the best so far. As that is rare, all are tested at once,
    /// without branches.
    #[inline]
    fn may_enter(
        &self,
        reduced: &[f64],
        weights: &[f64],
        allowed_directions: &[AllowedDirections],
        most: f64,
    ) -> bool {
        let of = |slice| <&[f64; TOGETHER]>::try_from(slice);
        let (Ok(reduced), Ok(weights), Ok(allowed_directions)) =
            (of(reduced), of(weights), of(allowed_directions))
        else {
            return true;
        };
        let mut any = false;
        for at in 0..TOGETHER {
            let gain = reduced[at] * allowed_directions[at];
            let (small, less) = (gain <= self.tolerance, gain * gain <= most * weights[at]);
            any |= !(small | less);
        }
        any
    }

    /// The directions in which a variable may move.
    fn allowed_directions(&self, state: &State, variable: usize) -> AllowedDirections {
        if self.tableau.upper[variable] - self.tableau.lower[variable] <= 0.0 {
            return STAYS;
        }
        match state.status[variable] {
            BasisStatus::Basic => STAYS,
            BasisStatus::Lower => UP,
            BasisStatus::Upper => DOWN,
            BasisStatus::Free => BOTH,
        }
    }

    /// Updates reduced costs and weights for a pivot that is about to be made.
    fn update(&mut self, state: &State, entering: usize, position: usize) {
        let n = self.tableau.n_columns();
        let leaving = state.basic[position] as usize;
        self.costs.fill(0.0);
        self.costs[position] = 1.0;
        state.factor.backward(&mut self.costs, &mut self.prices);
        let (of_columns, of_rows) = self.row.split_at_mut(n);
        of_columns.fill(0.0);
        for (row, price) in self.prices.iter().enumerate() {
            of_rows[row] = -price;
            if *price != 0.0 {
                for (column, value) in self.tableau.by_row.column(row) {
                    of_columns[column] += price * value;
                }
            }
        }
        let pivot = self.row[entering];
        // The pivot is computed by row and by column: where the two differ, reduced costs are computed anew.
        self.priced = (pivot - self.direction[position]).abs() <= AGREE * pivot.abs();
        let (cost, weight) = (self.reduced[entering] / pivot, self.weights[entering]);
        let growth = weight / (pivot * pivot);
        for ((reduced, weight), along) in self.reduced.iter_mut().zip(&mut self.weights).zip(&self.row) {
            *reduced -= cost * along;
            let grown = along * along * growth;
            *weight = if grown > *weight { grown } else { *weight };
        }
        (self.reduced[entering], self.reduced[leaving]) = (0.0, -cost);
        self.weights[leaving] = (weight / (pivot * pivot)).max(1.0);
    }

    /// Moves a variable up (`sign` 1) or down (−1) until something blocks it or it is at its other bound.
    fn step(&mut self, state: &mut State, entering: usize, sign: f64, feasible: bool) -> Step {
        let Tableau { lower, upper, .. } = self.tableau;
        self.tableau.add_column(entering, 1.0, &mut self.column);
        state.factor.forward(&mut self.column, &mut self.direction);
        let value = state.value[entering];
        let to_bound = if sign > 0.0 { upper[entering] - value } else { value - lower[entering] };
        let block = self.blocking(state, sign, feasible);
        let length = block.map_or(f64::INFINITY, |block| block.at.max(0.0));
        if !length.is_finite() && !to_bound.is_finite() {
            return Step::Unbounded;
        }
        if block
            .is_some_and(|block| length < to_bound && block.pivot < SIMPLEX_PIVOT_MIN * self.largest_change())
        {
            return Step::Unsafe;
        }
        let length = length.min(to_bound);
        self.stalled = if length > self.tolerance * 1e-3 { 0 } else { self.stalled + 1 };
        for (variable, along) in state.basic.iter().zip(&self.direction) {
            state.value[*variable as usize] -= sign * length * along;
        }
        let Some(block) = block.filter(|block| block.at.max(0.0) < to_bound) else {
            let there = if sign > 0.0 { BasisStatus::Upper } else { BasisStatus::Lower };
            state.status[entering] = there;
            state.value[entering] = if sign > 0.0 { upper[entering] } else { lower[entering] };
            self.allowed_directions[entering] = self.allowed_directions(state, entering);
            return Step::Taken;
        };
        let leaving = state.basic[block.position] as usize;
        if self.priced {
            self.update(state, entering, block.position);
        }
        state.value[entering] += sign * length;
        state.status[entering] = BasisStatus::Basic;
        state.status[leaving] = block.bound;
        state.value[leaving] =
            if block.bound == BasisStatus::Upper { upper[leaving] } else { lower[leaving] };
        self.allowed_directions[entering] = STAYS;
        self.allowed_directions[leaving] = self.allowed_directions(state, leaving);
        state.basic[block.position] = u32::try_from(entering).unwrap_or(u32::MAX);
        state.factor.replace(block.position, &self.direction);
        Step::Taken
    }

    fn largest_change(&self) -> f64 {
        self.direction.iter().fold(0.0, |most: f64, along| most.max(along.abs()))
    }

    /// The basic variable that blocks a step in this direction first.
    fn blocking(&self, state: &State, sign: f64, feasible: bool) -> Option<Block> {
        let first_wins = self.stalled > STALLED_MAX;
        let slack = if first_wins { 0.0 } else { self.tolerance };
        let mut reach = f64::INFINITY;
        self.for_each_block(state, sign, feasible, |block| reach = reach.min(block.at + slack / block.pivot));
        let mut best: Option<Block> = None;
        self.for_each_block(state, sign, feasible, |block| {
            let better = |best: &Block| {
                if first_wins {
                    state.basic[block.position] < state.basic[best.position]
                } else {
                    block.pivot > best.pivot
                }
            };
            if block.at <= reach && best.as_ref().is_none_or(better) {
                best = Some(block);
            }
        });
        best
    }

    /// Calls `each` with every bound that a step meets, in order of position.
    fn for_each_block(&self, state: &State, sign: f64, feasible: bool, mut each: impl FnMut(Block)) {
        let Tableau { lower, upper, .. } = self.tableau;
        for (position, along) in self.direction.iter().enumerate() {
            let pivot = along.abs();
            if pivot <= SIMPLEX_PIVOT_MIN {
                continue;
            }
            let variable = state.basic[position] as usize;
            let (value, falls) = (state.value[variable], sign * along > 0.0);
            let (lower, upper) = (lower[variable], upper[variable]);
            // A variable out of its bounds blocks where it comes back to one, and never while it moves further out.
            let (below, above) = if feasible {
                (false, false)
            } else {
                (value < lower - self.tolerance, value > upper + self.tolerance)
            };
            let (bound, status) = match (falls, below, above) {
                (true, true, _) | (false, _, true) => continue,
                (true, _, true) | (false, false, _) => (upper, BasisStatus::Upper),
                (false, true, _) | (true, false, _) => (lower, BasisStatus::Lower),
            };
            if bound.is_finite() {
                let ahead = if falls { value - bound } else { bound - value };
                each(Block { position, pivot, at: ahead / pivot, bound: status });
            }
        }
    }
}
