//! The Dantzig-Wolfe loop: price out all jobs, solve the restricted master program, repeat at its dual prices.
//!
//! Only the capacities of worker types couple jobs. At given prices of worker types, each job's best response is
//! computed by itself; the restricted master mixes the responses found so far such that capacities hold, and its duals
//! are the next prices (Dantzig & Wolfe 1960). Responses to any prices prove a dual bound, and a mixture is a feasible
//! answer: where the two meet, it is optimal. Jobs are grouped and each group's responses are mixed separately, so that
//! few passes are enough. The first prices are those of a sample of the jobs, and the duals are kept in a box around
//! them, which is widened where it binds.
//!
//! # Levels
//!
//! A level that is raised comes from above: the first is too high, and the restricted master minimizes the factor by
//! which all capacities must be stretched to reach it. A response to a level becomes one to a lower level by scaling it
//! or, where jobs have a base, by mixing it with the allocation that gives the base; so columns stay valid when the
//! level falls. The dual bound on the level is the next level (Newton's step): level + (worth of all workers − cost of
//! responses) / (derivative of that cost in the level). The level is reached when the stretch is 1.

use crate::decomposition::columns::Columns;
use crate::decomposition::restricted_master::{MasterOptimum, RestrictedMaster};
use crate::decomposition::tolerances::{
    BELOW_HIGHEST, BOX_FIRST, BOX_WIDENED, BOX_WIDENED_MORE, DEGENERATE_TYPES, GAP_STALLED, GROUP_CHUNKS_MIN,
    GROUPS, LEVEL_ERROR, OBJECTIVE_MIN, PASSES_MIN, PASSES_PER_TYPE, PASSES_STALLED, PRICE_MIN, RISE_MIN,
    ROUNDING, SAMPLE_ERROR, SAMPLE_ERROR_MAX, SMOOTHING, SMOOTHING_STEP, STABLE_TYPES, WARM_PRICES_MAX,
};

/// The highest level that is tried, 1 being the highest that every job can reach alone.
const HIGHEST: f64 = 1.0 - BELOW_HIGHEST;

/// Prices of all workers of each type, and the level, at which jobs are priced out.
#[derive(Clone, Debug)]
pub(super) struct PricePoint {
    pub(super) price: Vec<f64>,
    pub(super) level: f64,
}

/// Prices to begin with, and the box in which the restricted master's duals are kept.
#[derive(Clone, Debug)]
pub(super) struct SearchStart {
    /// Prices to price out at, one after the other, before any that come from the restricted master.
    pub(super) prices: Vec<Vec<f64>>,
    pub(super) low: Vec<f64>,
    pub(super) high: Vec<f64>,
    /// The first level; the highest if there is none.
    level: Option<f64>,
}

/// Warm-start prices: the prices that proved the last search's bound, then the prices whose columns were mixed.
#[derive(Clone, Debug, Default)]
pub struct WarmPrices {
    /// Price of a worker of each type, in units of the objective, for each entry.
    pub(super) prices: Vec<Vec<f64>>,
    /// The level reached, in its own units; 0 if there was none.
    pub(super) level: f64,
}

/// Whether the level is held or raised.
#[derive(Clone, Copy, Debug)]
pub(super) enum LevelGoal {
    /// The level is held, and cost is minimized.
    Hold { level: f64 },
    /// The highest level.
    Raise,
    /// The highest level above a base, which corresponds to a level of at least `base` for every job.
    RaiseAbove { base: f64 },
}

/// Subproblems, capacities and start of a Dantzig-Wolfe search.
pub(super) struct Search<'a> {
    /// Columns of the best responses at a point; none if a job cannot reach the level.
    pub(super) price_out: &'a dyn Fn(&PricePoint) -> Option<Columns>,
    /// Columns of a feasible allocation to begin with, if one is known: of the held level, or of the base.
    pub(super) given: Option<Columns>,
    /// Capacity of each type for the jobs that are searched, as a part of all workers of the type.
    pub(super) capacity: Vec<f64>,
    pub(super) groups: usize,
    /// The part of all jobs that is searched: below 1 for a sample.
    pub(super) part: f64,
    pub(super) start: &'a SearchStart,
    /// Relative gap to stop at.
    pub(super) gap: f64,
    /// Has the time limit been reached?
    pub(super) late: &'a dyn Fn() -> bool,
}

/// The end of a search.
pub(super) struct SearchEnd {
    /// The prices and the level that proved the bound.
    pub(super) at: PricePoint,
    /// Do prices prove the bound? Not at the highest level, which one job alone limits.
    pub(super) has_prices: bool,
    /// The level of the mixture.
    pub(super) level: f64,
    /// Each point whose columns are mixed, and the weight of each group's column.
    pub(super) mixture: Vec<(PricePoint, Vec<f64>)>,
    /// Weight of each group's given column: [groups]
    pub(super) given: Vec<f64>,
    pub(super) passes: u32,
}

/// The tightest dual bound so far, the point that proved it, and the derivative of cost in the level there.
struct DualBound {
    value: f64,
    at: PricePoint,
    slope: f64,
}

impl SearchEnd {
    /// The points whose columns are in the mixture, by descending weight, at most `most`.
    pub(super) fn mixed(&self, most: usize) -> impl Iterator<Item = &PricePoint> {
        let weight = |(_, weights): &(PricePoint, Vec<f64>)| weights.iter().sum::<f64>();
        let mut mixed: Vec<&(PricePoint, Vec<f64>)> = self.mixture.iter().collect();
        mixed.sort_by(|one, other| weight(other).total_cmp(&weight(one)));
        mixed.into_iter().take(most).map(|(point, _)| point)
    }

    /// Prices to begin the next level with, above this one; none where the first pass was the last.
    pub(super) fn next_prices(&self) -> Option<Vec<Vec<f64>>> {
        let mixed: Vec<Vec<f64>> = self.mixed(WARM_PRICES_MAX).map(|point| point.price.clone()).collect();
        let prices = if mixed.is_empty() { vec![self.at.price.clone()] } else { mixed };
        (self.passes > 1 || self.has_prices).then_some(prices)
    }
}

/// The number of groups of this many chunks of jobs.
pub(super) fn groups(n_chunks: usize) -> usize {
    (n_chunks / GROUP_CHUNKS_MIN).clamp(1, GROUPS)
}

/// Dual price smoothing: the next prices are a mixture of the best dual point and of the restricted master's duals,
/// which oscillate where worker types are many (Wentges 1997).
#[derive(Debug)]
struct DualSmoothing {
    on: bool,
    /// Weight of the best dual point, from 0 to 1.
    weight: f64,
    /// The direction from the best dual point to the restricted master's duals, at the last prices.
    direction: Vec<f64>,
}

impl DualSmoothing {
    fn of(types: usize, groups: usize) -> Self {
        // Between the two limits, small instances have too few different columns for it to pay.
        let on = types >= DEGENERATE_TYPES || types > STABLE_TYPES && groups == GROUPS;
        Self { on, weight: SMOOTHING, direction: Vec::new() }
    }

    /// The next prices.
    fn price(&mut self, best: &[f64], dual: Vec<f64>) -> Vec<f64> {
        if !self.on {
            return dual;
        }
        self.direction = dual.iter().zip(best).map(|(dual, best)| dual - best).collect();
        dual.iter().zip(&self.direction).map(|(dual, by)| dual - self.weight * by).collect()
    }

    /// Adapts the weight: less where the bound still rises from the last prices towards the duals (Pessoa et al. 2018).
    fn adapt(&mut self, columns: &Columns, capacity: &[f64]) {
        if self.direction.is_empty() {
            return;
        }
        let used = columns.usage.iter().zip(self.direction.iter().cycle()).map(|(usage, by)| usage * by);
        let rises = used.sum::<f64>() > worth(&self.direction, capacity);
        self.weight = if rises {
            (self.weight - SMOOTHING_STEP).max(0.0)
        } else {
            self.weight + SMOOTHING_STEP * (1.0 - self.weight)
        };
        self.direction.clear();
    }
}

impl SearchStart {
    /// A start without knowledge: the same worth for the workers of each type.
    pub(super) fn anywhere(capacity: &[f64]) -> Self {
        let n = capacity.len() as f64;
        let price: Vec<f64> = capacity.iter().map(|capacity| 1.0 / (capacity * n)).collect();
        let high = price.iter().map(|price| price * BOX_FIRST * n).collect();
        Self { low: vec![0.0; price.len()], prices: vec![price], high, level: None }
    }

    /// A price box around the prices of a sample of this size.
    pub(super) fn of_sample(found: &SearchEnd, size: usize) -> Self {
        Self::about(vec![found.at.price.clone()], size, found.level)
    }

    /// A price box around the first of some prices, with the error of a sample of this size; `prices` is not empty.
    pub(super) fn about(prices: Vec<Vec<f64>>, size: usize, level: f64) -> Self {
        let error = (SAMPLE_ERROR / (size as f64).sqrt()).min(SAMPLE_ERROR_MAX);
        let most = prices[0].iter().fold(1e-12_f64, |most, price| most.max(*price));
        let by = |price: &f64| error * (price + PRICE_MIN * most);
        let low = prices[0].iter().map(|price| (price - by(price)).max(0.0)).collect();
        let high = prices[0].iter().map(|price| price + by(price)).collect();
        Self { prices, low, high, level: Some(level) }
    }

    /// This box, with other prices to begin with.
    pub(super) fn at(&self, prices: Vec<Vec<f64>>) -> Self {
        Self { prices, ..self.clone() }
    }

    /// This box with its prices scaled so that all workers together are worth 1 at each of them.
    fn normalized(&self, capacity: &[f64]) -> Self {
        let scaled = |of: &[f64], by: f64| of.iter().map(|price| price * by).collect::<Vec<f64>>();
        let unit = |price: &Vec<f64>| worth(price, capacity).recip();
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

    /// The dual bound that responses prove: on cost from below, or on the level from above.
    fn bound(self, at: &PricePoint, columns: &Columns, capacity: &[f64]) -> f64 {
        let worth = worth(&at.price, capacity);
        if self.is_held() {
            return columns.least - worth;
        }
        // Where the slope is next to nothing, rounding is a large part of the step.
        let step = (worth - columns.least + ROUNDING * (worth + columns.least)) / columns.slope;
        if columns.slope > 0.0 { at.level + step } else { f64::INFINITY }
    }

    /// Is a bound tighter than the other?
    fn is_tighter(self, bound: f64, than: f64) -> bool {
        if self.is_held() { bound > than } else { bound < than }
    }

    /// Has the restricted master's optimum met the bound? `stalled`: it no longer changes.
    fn is_met(self, objective: f64, bound: &DualBound, (gap, part): (f64, f64), stalled: bool) -> bool {
        match self {
            Self::Hold { .. } => objective - bound.value <= gap * bound.value.abs().max(OBJECTIVE_MIN * part),
            Self::Raise => objective <= 1.0 + gap,
            Self::RaiseAbove { .. } if stalled => objective <= 1.0 + gap * GAP_STALLED,
            Self::RaiseAbove { base } => {
                let exact = LEVEL_ERROR * (bound.value.min(HIGHEST) + base) * bound.slope;
                objective <= 1.0 + gap.min(exact)
            }
        }
    }

    /// The level at which a mixture that stretches capacities fits them, and the factor on its weights for that.
    fn shrunk(self, level: f64, stretch: f64) -> (f64, f64) {
        match self {
            Self::Hold { .. } => (level, 1.0),
            // Here the mixture is shrunk by scaling its responses to the lower level: see `Search::found`.
            Self::Raise => (level / stretch.max(1.0), 1.0),
            Self::RaiseAbove { .. } => (level, 1.0 / stretch.max(1.0)),
        }
    }
}

impl Search<'_> {
    /// The optimum of a goal within the gap; none if a job cannot reach the level, or passes or time run out.
    pub(super) fn solve(&self, goal: LevelGoal) -> Option<SearchEnd> {
        let capacity = &self.capacity;
        let start = if goal.is_held() { self.start.clone() } else { self.start.normalized(capacity) };
        let mut master =
            RestrictedMaster::new((capacity.clone(), self.groups), !goal.is_held(), (start.low, start.high));
        if let (true, Some(given)) = (goal.is_held(), &self.given) {
            master.add(given);
        }
        let mut known = start.prices.into_iter();
        let mut at = PricePoint { price: known.next()?, level: goal.first_level(start.level) };
        let mut best: Option<DualBound> = None;
        let mut points: Vec<PricePoint> = Vec::new();
        let mut widened = BOX_WIDENED;
        let mut smoothing = DualSmoothing::of(capacity.len(), self.groups);
        let (mut last, mut stalled) = (f64::INFINITY, 0);
        for pass in 0..PASSES_MIN.max(PASSES_PER_TYPE * capacity.len()) {
            let columns = (self.price_out)(&at)?;
            let proven = goal.bound(&at, &columns, capacity);
            if pass == 0 && !goal.is_held() && at.level < HIGHEST && proven > at.level {
                // the level of a warm start was too low
                at.level = proven.min(HIGHEST);
                continue;
            }
            smoothing.adapt(&columns, capacity);
            if best.as_ref().is_none_or(|best| goal.is_tighter(proven, best.value)) {
                best = Some(DualBound { value: proven, at: at.clone(), slope: columns.slope });
            }
            master.add(&columns);
            let (level, first) = (at.level, points.is_empty());
            points.push(at);
            if first && !goal.is_held() && level >= HIGHEST && columns.fits(capacity) {
                return Some(self.unmixed(points));
            }
            let bound = best.as_ref()?;
            let lower = if goal.is_held() { level } else { bound.value.min(level) };
            match goal {
                _ if (self.late)() => return None,
                LevelGoal::Raise if lower <= 0.0 => return None,
                LevelGoal::RaiseAbove { .. } if lower <= RISE_MIN => {
                    return Some(self.unraised(&points, bound));
                }
                LevelGoal::Hold { .. } => {}
                _ => self.lower(&mut master, lower / level),
            }
            if let Some(price) = known.next() {
                at = PricePoint { price, level: lower };
                continue;
            }
            let MasterOptimum { price, objective } = master.solve()?;
            stalled = if (objective - last).abs() <= ROUNDING { stalled + 1 } else { 0 };
            last = objective;
            let held_back = master.widen(widened);
            widened *= if held_back { BOX_WIDENED_MORE } else { 1.0 };
            if !held_back && goal.is_met(objective, bound, (self.gap, self.part), stalled >= PASSES_STALLED) {
                let has_prices = goal.is_held() || lower < HIGHEST;
                let end = goal.shrunk(lower, objective);
                return Some(self.found((&master, goal), points, (bound.at.clone(), has_prices), end));
            }
            at = PricePoint { price: smoothing.price(&bound.at.price, price), level: lower };
        }
        None
    }

    /// Turns responses to a level into responses to a lower level.
    fn lower(&self, master: &mut RestrictedMaster, factor: f64) {
        match &self.given {
            _ if factor >= 1.0 => {}
            Some(given) => master.approach(factor, &given.usage),
            None => master.scale(factor),
        }
    }

    /// The end of a search in which the first responses fit at the highest level: no mixture, and no prices.
    fn unmixed(&self, points: Vec<PricePoint>) -> SearchEnd {
        let (at, level) = (points[0].clone(), points[0].level);
        let mixture = points.into_iter().map(|point| (point, vec![1.0; self.groups])).collect();
        SearchEnd { at, has_prices: false, level, mixture, given: vec![0.0; self.groups], passes: 1 }
    }

    /// The end of a search in which no level above the base can be reached.
    fn unraised(&self, points: &[PricePoint], bound: &DualBound) -> SearchEnd {
        let passes = u32::try_from(points.len()).unwrap_or(u32::MAX);
        let (mixture, given) = (Vec::new(), vec![1.0; self.groups]);
        SearchEnd { at: bound.at.clone(), has_prices: true, level: 0.0, mixture, given, passes }
    }

    /// The end of a search: the mixture at its level. A response to a higher level is mixed with the given allocation
    /// or, without one, scaled.
    fn found(
        &self,
        (master, goal): (&RestrictedMaster, LevelGoal),
        points: Vec<PricePoint>,
        (at, has_prices): (PricePoint, bool),
        (level, factor): (f64, f64),
    ) -> SearchEnd {
        let passes = u32::try_from(points.len()).unwrap_or(u32::MAX);
        let n_given = usize::from(goal.is_held() && self.given.is_some());
        let mut given = vec![0.0; self.groups];
        let mut weights = vec![vec![0.0; self.groups]; points.len()];
        for (round, group, part) in master.parts() {
            let Some(round) = round.checked_sub(n_given) else {
                given[group] += part;
                continue;
            };
            let scale = if level < points[round].level { level / points[round].level } else { 1.0 };
            weights[round][group] = factor * part * scale;
            given[group] += factor * part * (1.0 - scale);
        }
        let mut mixture: Vec<(PricePoint, Vec<f64>)> = points.into_iter().zip(weights).collect();
        mixture.retain(|(_, weights)| weights.iter().any(|weight| *weight != 0.0));
        SearchEnd { at, has_prices, level, mixture, given, passes }
    }
}

/// The worth of capacities at prices.
fn worth(price: &[f64], capacity: &[f64]) -> f64 {
    price.iter().zip(capacity).map(|(price, capacity)| price * capacity).sum()
}
