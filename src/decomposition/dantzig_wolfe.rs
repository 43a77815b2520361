//! The Dantzig-Wolfe loop: price out all jobs, solve the restricted master program, repeat at its dual prices.
//!
//! Only the capacities of worker types couple jobs. At given prices of worker types, each job's best response is
//! computed by itself; the restricted master mixes the responses found so far such that capacities hold, and its duals
//! are the next prices (Dantzig & Wolfe 1960). Responses to any prices prove a dual bound, and a mixture is a feasible
//! answer: where its objective equals the bound, it is optimal. Jobs are grouped and each group's responses are mixed
//! separately, so that few passes are enough. The first prices are those of a sample of the jobs, and the duals are kept in a
//! box around them, which is widened where it binds.
//!
//! Capacities are parts of all workers of a type, 1 for a search over all jobs, and prices are of all workers of a type
//! together. Costs are minus the objective in the units of the search, in which the worth of all jobs is at most 1; levels are
//! parts of the highest level that every job can reach alone.
//!
//! # Levels
//!
//! The highest level is approached from above. The first level is too high, and the restricted master minimizes the factor ψ,
//! the *stretch*, by which all capacities must be multiplied to reach it. A response to a level becomes one to a lower level by
//! scaling it or, where jobs have a base, by mixing it with the allocation that gives the base; so columns stay valid when the
//! level falls. The next level is the dual bound on the level, a step of Newton's method on the equation worth = cost:
//!
//!   level + (worth of all workers − least cost of responses) / (derivative of that cost with respect to the level)
//!
//! The level is reached when the stretch is 1.

use crate::decomposition::certificate::PrimalDual;
use crate::decomposition::columns::Columns;
use crate::decomposition::restricted_master::{
    ColumnWeight, PriceBounds, RestrictedMaster, RestrictedOptimum,
};
use crate::decomposition::tolerances::{
    BELOW_HIGHEST, BOX_FIRST, BOX_WIDENED, BOX_WIDENED_MORE, COST_ROUNDING, DEGENERATE_TYPES, DUAL_SMOOTHING,
    DUAL_SMOOTHING_STEP, GAP_STALLED, GROUP_CHUNKS_MIN, GROUPS, LEVEL_ERROR, OBJECTIVE_MIN, PASSES_MIN,
    PASSES_PER_TYPE, PASSES_STALLED, PRICE_FLOOR, RISE_MIN, SAMPLE_ERROR, SAMPLE_ERROR_MAX, STABLE_TYPES,
    WARM_PRICES_MAX,
};
use crate::decomposition::unsolved::Unsolved;

/// The highest level that is tried. At 1, the highest level that every job can reach alone, rounding could make a job
/// infeasible.
const HIGHEST: f64 = 1.0 - BELOW_HIGHEST;

/// Prices and the level at which jobs are priced out.
#[derive(Clone, Debug)]
pub(super) struct PricePoint {
    /// Price of all workers of each type together: `[K]`.
    pub(super) price: Vec<f64>,
    /// The level, as a part of the highest that every job can reach alone.
    pub(super) level: f64,
}

/// Prices to begin with, and the box in which the restricted master's duals are kept.
#[derive(Clone, Debug)]
pub(super) struct SearchStart {
    /// Prices to price out at, one after the other, before any that come from the restricted master: `[entries × K]`, at
    /// least one.
    pub(super) prices: Vec<Vec<f64>>,
    /// Lower end of the box: `[K]`.
    pub(super) low: Vec<f64>,
    /// Upper end of the box: `[K]`.
    pub(super) high: Vec<f64>,
    /// The first level of a search that raises it, [`HIGHEST`] if there is none.
    level: Option<f64>,
}

/// Prices that a search leaves for the next: the prices that proved its bound, then those at which the columns of its mixture
/// were found. Empty if there was none, or if it found no prices.
#[derive(Clone, Debug, Default)]
pub struct WarmPrices {
    /// Price of a worker of each type, in units of the objective: `[entries × K]`.
    pub(super) prices: Vec<Vec<f64>>,
    /// The level reached, in units of the instance; 0 if there was none.
    pub(super) level: f64,
}

/// The end of a search for the optimum of a goal.
#[derive(Clone, Debug)]
pub struct Searched {
    /// Optimal class times and the dual prices that certify them.
    pub optimum: PrimalDual,
    /// Prices to start the next search from.
    pub warm_prices: WarmPrices,
}

/// The goal of a search: the level is held, and cost is minimized, or it is raised.
#[derive(Clone, Copy, Debug)]
pub(super) enum LevelGoal {
    /// The least cost at a level.
    Hold {
        /// The level that every job must reach.
        level: f64,
    },
    /// The highest level.
    Raise,
    /// The highest level above a base, which jobs have at a level of zero.
    RaiseAbove {
        /// The least level, over jobs that demand something, that corresponds to a job's base.
        base: f64,
    },
}

/// Subproblems, capacities and start of a Dantzig-Wolfe search.
pub(super) struct Search<'a> {
    /// Columns of the best responses at a point; none if a job cannot reach the level.
    pub(super) price_out: &'a dyn Fn(&PricePoint) -> Option<Columns>,
    /// Columns of a feasible allocation, if one is known: one that has the held level, or the base.
    pub(super) given: Option<Columns>,
    /// Capacity of each type for the jobs that are searched, as a part of all workers of the type: `[K]`.
    pub(super) capacity: Vec<f64>,
    /// Number of groups.
    pub(super) groups: usize,
    /// The part of all jobs that is searched: below 1 for a sample.
    pub(super) part: f64,
    /// The first prices and the price box.
    pub(super) start: &'a SearchStart,
    /// Gap between the mixture's objective and the dual bound at which the search ends, relative to the bound.
    pub(super) gap: f64,
    /// True once the time limit has passed.
    pub(super) is_out_of_time: &'a dyn Fn() -> bool,
}

/// The result of a search: a mixture of columns, and the prices that prove the bound.
pub(super) struct SearchEnd {
    /// The prices and the level that proved the bound.
    pub(super) at: PricePoint,
    /// True if `at` proves the bound; false at the highest level, which one job alone limits.
    pub(super) has_prices: bool,
    /// The level of the mixture.
    pub(super) level: f64,
    /// The points from which the mixture takes columns.
    pub(super) mixture: Vec<MixedPoint>,
    /// Weight of each group's column of the given allocation: `[groups]`.
    pub(super) given: Vec<f64>,
    /// Passes over all jobs.
    pub(super) passes: u32,
}

/// A point from which a mixture takes columns.
#[derive(Clone, Debug)]
pub(super) struct MixedPoint {
    /// The point.
    pub(super) point: PricePoint,
    /// The weight of each group's column of that point: `[groups]`.
    pub(super) weights: Vec<f64>,
}

/// A level at which a mixture fits the capacities.
#[derive(Clone, Copy, Debug)]
struct FittingLevel {
    /// The level.
    level: f64,
    /// The factor on the mixture's weights for that.
    factor: f64,
}

/// The proof of the bound of a search.
struct Proof {
    /// The prices and the level that prove the bound.
    at: PricePoint,
    /// False at the highest level, where one job alone limits the level and prices prove nothing.
    has_prices: bool,
}

/// The restricted master's optimum in one pass.
#[derive(Clone, Copy, Debug)]
struct PassOptimum {
    /// Its objective.
    objective: f64,
    /// True if the objective no longer changes from pass to pass.
    is_stalled: bool,
}

/// The tightest dual bound so far.
struct DualBound {
    /// The bound on cost, or on the level where that is raised.
    value: f64,
    /// The point that proves it.
    at: PricePoint,
    /// The derivative of the responses' least cost with respect to the level there.
    slope: f64,
}

impl SearchEnd {
    /// The points whose columns are in the mixture, by descending weight, at most `most`.
    pub(super) fn mixed_points(&self, most: usize) -> impl Iterator<Item = &PricePoint> {
        let weight = |of: &MixedPoint| of.weights.iter().sum::<f64>();
        let mut mixed: Vec<&MixedPoint> = self.mixture.iter().collect();
        mixed.sort_by(|one, other| weight(other).total_cmp(&weight(one)));
        mixed.into_iter().take(most).map(|of| &of.point)
    }

    /// Prices to begin the search for the next level of water filling with; none where the responses to the first prices fit the
    /// capacities, so that these prices prove nothing.
    pub(super) fn next_prices(&self) -> Option<Vec<Vec<f64>>> {
        let mixed: Vec<Vec<f64>> =
            self.mixed_points(WARM_PRICES_MAX).map(|point| point.price.clone()).collect();
        let prices = if mixed.is_empty() { vec![self.at.price.clone()] } else { mixed };
        (self.passes > 1 || self.has_prices).then_some(prices)
    }
}

/// The number of groups for this many chunks of jobs.
pub(super) fn n_groups(n_chunks: usize) -> usize {
    (n_chunks / GROUP_CHUNKS_MIN).clamp(1, GROUPS)
}

/// Dual price smoothing: the next prices are a mixture of the prices of the best dual bound and of the restricted master's
/// duals, which oscillate where worker types are many (Wentges, *Weighted Dantzig–Wolfe decomposition*, 1997).
#[derive(Debug)]
struct DualSmoothing {
    /// True if prices are smoothed, false if the duals are used as they are.
    on: bool,
    /// Weight of the prices of the best dual bound, from 0 to 1.
    weight: f64,
    /// The direction from the prices of the best dual bound to the restricted master's duals, as of the last smoothed prices:
    /// `[K]`; empty where the last prices were not smoothed.
    direction: Vec<f64>,
}

impl DualSmoothing {
    fn of(types: usize, groups: usize) -> Self {
        // Between the two limits, smoothing pays only where jobs are many enough for all groups.
        let on = types >= DEGENERATE_TYPES || types > STABLE_TYPES && groups == GROUPS;
        Self { on, weight: DUAL_SMOOTHING, direction: Vec::new() }
    }

    /// The next prices, from the prices of the best dual bound and the restricted master's duals.
    fn smoothed(&mut self, best: &[f64], dual: Vec<f64>) -> Vec<f64> {
        if !self.on {
            return dual;
        }
        self.direction = dual.iter().zip(best).map(|(dual, best)| dual - best).collect();
        dual.iter().zip(&self.direction).map(|(dual, by)| dual - self.weight * by).collect()
    }

    /// Adapts the weight to the columns of the last prices: less where the dual bound still rises from these prices towards the
    /// duals, more where it falls (Pessoa et al., *Automation and combination of linear-programming based stabilization
    /// techniques in column generation*, 2018). The derivative of the bound in the direction is usage − capacity.
    fn adapt(&mut self, columns: &Columns, capacity: &[f64]) {
        if self.direction.is_empty() {
            return;
        }
        let used = columns.usage.iter().zip(self.direction.iter().cycle()).map(|(usage, by)| usage * by);
        let rises = used.sum::<f64>() > worth_of(&self.direction, capacity);
        self.weight = if rises {
            (self.weight - DUAL_SMOOTHING_STEP).max(0.0)
        } else {
            self.weight + DUAL_SMOOTHING_STEP * (1.0 - self.weight)
        };
        self.direction.clear();
    }
}

impl SearchStart {
    /// A start without knowledge: prices at which all workers of each type are worth the same.
    pub(super) fn anywhere(capacity: &[f64]) -> Self {
        let n = capacity.len() as f64;
        let price: Vec<f64> = capacity.iter().map(|capacity| 1.0 / (capacity * n)).collect();
        let high = price.iter().map(|price| price * BOX_FIRST * n).collect();
        Self { low: vec![0.0; price.len()], prices: vec![price], high, level: None }
    }

    /// The start that a search over a sample of `size` jobs leaves: its prices, and a box around them.
    pub(super) fn of_sample(found: &SearchEnd, size: usize) -> Self {
        Self::around(vec![found.at.price.clone()], size, found.level)
    }

    /// A start at some prices, at least one, with a box around the first of them that is as wide as the error of the prices of a
    /// sample of `size` jobs.
    pub(super) fn around(prices: Vec<Vec<f64>>, size: usize, level: f64) -> Self {
        let error = (SAMPLE_ERROR / (size as f64).sqrt()).min(SAMPLE_ERROR_MAX);
        let most = prices[0].iter().fold(1e-12_f64, |most, price| most.max(*price));
        let by = |price: &f64| error * (price + PRICE_FLOOR * most);
        let low = prices[0].iter().map(|price| (price - by(price)).max(0.0)).collect();
        let high = prices[0].iter().map(|price| price + by(price)).collect();
        Self { prices, low, high, level: Some(level) }
    }

    /// This start with other first prices and the same box.
    pub(super) fn with_prices(&self, prices: Vec<Vec<f64>>) -> Self {
        Self { prices, ..self.clone() }
    }

    /// This start with each of its prices scaled so that all workers together are worth 1, and the box scaled as the first.
    fn normalized(&self, capacity: &[f64]) -> Self {
        let scaled = |of: &[f64], by: f64| of.iter().map(|price| price * by).collect::<Vec<f64>>();
        let unit = |price: &Vec<f64>| worth_of(price, capacity).recip();
        let prices = self.prices.iter().map(|price| scaled(price, unit(price))).collect();
        let first = unit(&self.prices[0]);
        Self { prices, low: scaled(&self.low, first), high: scaled(&self.high, first), level: self.level }
    }
}

impl LevelGoal {
    fn is_held(self) -> bool {
        matches!(self, Self::Hold { .. })
    }

    fn first_level(self, start: Option<f64>) -> f64 {
        if let Self::Hold { level } = self { level } else { start.unwrap_or(HIGHEST).min(HIGHEST) }
    }

    /// The dual bound that responses prove: on cost from below where the level is held, else on the level from above.
    fn bound(self, at: &PricePoint, columns: &Columns, capacity: &[f64]) -> f64 {
        let worth = worth_of(&at.price, capacity);
        if self.is_held() {
            return columns.least - worth;
        }
        // Where the slope is near 0, the rounding of worth and cost is a large part of the step, and counts as part of it.
        let step = (worth - columns.least + COST_ROUNDING * (worth + columns.least)) / columns.slope;
        if columns.slope > 0.0 { at.level + step } else { f64::INFINITY }
    }

    /// True if `bound` is tighter than the bound `than`.
    fn is_tighter(self, bound: f64, than: f64) -> bool {
        if self.is_held() { bound > than } else { bound < than }
    }

    /// True if the restricted master's optimum has met the bound within the gap; `part` is the part of all jobs that is
    /// searched.
    fn is_met(self, optimum: PassOptimum, bound: &DualBound, gap: f64, part: f64) -> bool {
        let PassOptimum { objective, is_stalled } = optimum;
        match self {
            Self::Hold { .. } => objective - bound.value <= gap * bound.value.abs().max(OBJECTIVE_MIN * part),
            Self::Raise => objective <= 1.0 + gap,
            Self::RaiseAbove { .. } if is_stalled => objective <= 1.0 + gap * GAP_STALLED,
            Self::RaiseAbove { base } => {
                let exact = LEVEL_ERROR * (bound.value.min(HIGHEST) + base) * bound.slope;
                objective <= 1.0 + gap.min(exact)
            }
        }
    }

    /// The level at which a mixture that needs the capacities times `stretch` fits them.
    fn level_that_fits(self, level: f64, stretch: f64) -> FittingLevel {
        let (level, factor) = match self {
            Self::Hold { .. } => (level, 1.0),
            // The responses are scaled to the lower level by `Search::end_of_mixture`.
            Self::Raise => (level / stretch.max(1.0), 1.0),
            Self::RaiseAbove { .. } => (level, 1.0 / stretch.max(1.0)),
        };
        FittingLevel { level, factor }
    }
}

impl Search<'_> {
    /// The optimum of a goal within the gap.
    pub(super) fn solve(&self, goal: LevelGoal) -> Result<SearchEnd, Unsolved> {
        let capacity = &self.capacity;
        let start = if goal.is_held() { self.start.clone() } else { self.start.normalized(capacity) };
        let price_box = PriceBounds { low: start.low, high: start.high };
        let mut restricted_master =
            RestrictedMaster::new(capacity.clone(), self.groups, !goal.is_held(), price_box);
        if let (true, Some(given)) = (goal.is_held(), &self.given) {
            restricted_master.add_round(given);
        }
        let mut first_prices = start.prices.into_iter();
        let mut at = PricePoint {
            price: first_prices.next().ok_or(Unsolved::NotConverged)?,
            level: goal.first_level(start.level),
        };
        let mut best: Option<DualBound> = None;
        let mut points: Vec<PricePoint> = Vec::new();
        let mut widened = BOX_WIDENED;
        let mut smoothing = DualSmoothing::of(capacity.len(), self.groups);
        let (mut last, mut stalled) = (f64::INFINITY, 0);
        for pass in 0..PASSES_MIN.max(PASSES_PER_TYPE * capacity.len()) {
            let columns = (self.price_out)(&at).ok_or(Unsolved::Unreachable)?;
            let proven = goal.bound(&at, &columns, capacity);
            if pass == 0 && !goal.is_held() && at.level < HIGHEST && proven > at.level {
                // The bound is above the first level, so that is too low to approach the highest one from above: price out anew.
                at.level = proven.min(HIGHEST);
                continue;
            }
            smoothing.adapt(&columns, capacity);
            if best.as_ref().is_none_or(|best| goal.is_tighter(proven, best.value)) {
                best = Some(DualBound { value: proven, at: at.clone(), slope: columns.slope });
            }
            restricted_master.add_round(&columns);
            let (level, first) = (at.level, points.is_empty());
            points.push(at);
            if first && !goal.is_held() && level >= HIGHEST && columns.fits(capacity) {
                return Ok(self.end_at_highest_level(points));
            }
            let bound = best.as_ref().ok_or(Unsolved::NotConverged)?;
            let lower = if goal.is_held() { level } else { bound.value.min(level) };
            match goal {
                _ if (self.is_out_of_time)() => return Err(Unsolved::OutOfTime),
                LevelGoal::Raise if lower <= 0.0 => return Err(Unsolved::NoLevel),
                LevelGoal::RaiseAbove { .. } if lower <= RISE_MIN => {
                    return Ok(self.end_without_rise(&points, bound));
                }
                LevelGoal::Hold { .. } => {}
                _ => self.lower_columns(&mut restricted_master, lower / level),
            }
            if let Some(price) = first_prices.next() {
                at = PricePoint { price, level: lower };
                continue;
            }
            let RestrictedOptimum { price, objective } = restricted_master.solve()?;
            stalled = if (objective - last).abs() <= COST_ROUNDING { stalled + 1 } else { 0 };
            last = objective;
            let held_back = restricted_master.widen_price_box(widened);
            widened *= if held_back { BOX_WIDENED_MORE } else { 1.0 };
            let optimum = PassOptimum { objective, is_stalled: stalled >= PASSES_STALLED };
            if !held_back && goal.is_met(optimum, bound, self.gap, self.part) {
                let has_prices = goal.is_held() || lower < HIGHEST;
                let proof = Proof { at: bound.at.clone(), has_prices };
                let end = goal.level_that_fits(lower, objective);
                return Ok(self.end_of_mixture(&restricted_master, points, proof, end));
            }
            at = PricePoint { price: smoothing.smoothed(&bound.at.price, price), level: lower };
        }
        Err(Unsolved::NotConverged)
    }

    /// Turns the restricted master's columns into columns of the level times `factor`; nothing from a factor of 1 on.
    fn lower_columns(&self, restricted_master: &mut RestrictedMaster, factor: f64) {
        match &self.given {
            _ if factor >= 1.0 => {}
            Some(given) => restricted_master.mix_columns_with(factor, &given.usage),
            None => restricted_master.scale_usage(factor),
        }
    }

    /// The end of a search in which the first responses fit at the highest level: no mixture, and no prices.
    fn end_at_highest_level(&self, points: Vec<PricePoint>) -> SearchEnd {
        let (at, level) = (points[0].clone(), points[0].level);
        let of_point = |point| MixedPoint { point, weights: vec![1.0; self.groups] };
        let mixture = points.into_iter().map(of_point).collect();
        SearchEnd { at, has_prices: false, level, mixture, given: vec![0.0; self.groups], passes: 1 }
    }

    /// The end of a search in which no level above the base can be reached.
    fn end_without_rise(&self, points: &[PricePoint], bound: &DualBound) -> SearchEnd {
        let passes = u32::try_from(points.len()).unwrap_or(u32::MAX);
        let (mixture, given) = (Vec::new(), vec![1.0; self.groups]);
        SearchEnd { at: bound.at.clone(), has_prices: true, level: 0.0, mixture, given, passes }
    }

    /// The end of a search: the mixture, with weights times `factor`, at its level. A response to a higher level is mixed with
    /// the given allocation or, where there is none, scaled.
    fn end_of_mixture(
        &self,
        restricted_master: &RestrictedMaster,
        points: Vec<PricePoint>,
        proof: Proof,
        end: FittingLevel,
    ) -> SearchEnd {
        let FittingLevel { level, factor } = end;
        let passes = u32::try_from(points.len()).unwrap_or(u32::MAX);
        // The round of the given allocation, if there is one, is the first; each of the others is of one point.
        let n_given = restricted_master.n_rounds() - points.len();
        let mut given = vec![0.0; self.groups];
        let mut weights = vec![vec![0.0; self.groups]; points.len()];
        for ColumnWeight { round, group, weight } in restricted_master.weights() {
            let Some(round) = round.checked_sub(n_given) else {
                given[group] += weight;
                continue;
            };
            let scale = if level < points[round].level { level / points[round].level } else { 1.0 };
            weights[round][group] = factor * weight * scale;
            given[group] += factor * weight * (1.0 - scale);
        }
        let of_point = |(point, weights)| MixedPoint { point, weights };
        let mut mixture: Vec<MixedPoint> = points.into_iter().zip(weights).map(of_point).collect();
        mixture.retain(|of| of.weights.iter().any(|weight| *weight != 0.0));
        let Proof { at, has_prices } = proof;
        SearchEnd { at, has_prices, level, mixture, given, passes }
    }
}

/// The worth of capacities at prices: the sum of their products.
fn worth_of(price: &[f64], capacity: &[f64]) -> f64 {
    price.iter().zip(capacity).map(|(price, capacity)| price * capacity).sum()
}
