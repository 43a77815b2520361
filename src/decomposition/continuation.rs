//! Continuation in the smoothing width: the prices of one sample, followed as the width goes to 0.
//!
//! Demand is smoothed by the width (see [`smoothed_demand`](super::smoothed_demand)). At each width Newton's method
//! finds the prices at which all workers but a few are demanded: a barrier of the width keeps prices positive and some
//! workers idle. Prices at the next width are extrapolated from the last two, and the price box narrows, so that at each width
//! fewer jobs are undecided. At the last width, changes of prices are below the rounding of the prices themselves; they
//! are kept apart from the prices, as relative shifts. Widths are in units of the objective per unit of all weights.

use crate::decomposition::choice::PriceBox;
use crate::decomposition::demand::{Demand, NewtonStep, newton_step, price_floor};
use crate::decomposition::smoothed_demand::SmoothedPrices;
use crate::decomposition::tolerances::{
    IDLE_WIDTHS, NARROWER, NEWTON_STEPS_MAX, SHIFTS_MAX, STEP_MIN, STEP_WORTH_MIN, WIDTH_LAST,
};
use crate::decomposition::unsolved::Unsolved;

/// The start of a continuation.
#[derive(Clone, Debug)]
pub(super) struct ContinuationStart {
    /// Price of a worker's whole time on each type, in units of the objective: `[K]`.
    pub(super) price: Vec<f64>,
    /// The box in which prices are looked for.
    pub(super) price_box: PriceBox<Vec<f64>>,
    /// The first smoothing width.
    pub(super) width: f64,
    /// The distance that prices may move as the width goes to 0, in widths relative to prices.
    pub(super) moved: f64,
}

/// The width at which a continuation ends: the larger of `width` and `worth_part` times the worth of all workers.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastWidth {
    /// The least width.
    pub(super) width: f64,
    /// The width as a part of the worth of all workers.
    pub(super) worth_part: f64,
}

impl LastWidth {
    /// The last width of a search over all jobs.
    pub(super) const OF_ALL: Self = Self { width: WIDTH_LAST, worth_part: 0.0 };
}

/// The reason why no prices were found in a box.
pub(super) enum PricesLost {
    /// The prices are outside of the box; the last ones inside it, `[K]`.
    Outside(Vec<f64>),
    /// The search must end, whatever the box.
    GaveUp(Unsolved),
}

/// The end of a continuation.
#[derive(Clone, Debug)]
pub(super) struct ContinuationEnd {
    /// The prices at the last width, with their shifts.
    pub(super) place: SmoothedPrices<Vec<f64>>,
    /// The last price box: a job is decided if one choice of it is optimal at all prices in the box.
    pub(super) price_box: PriceBox<Vec<f64>>,
}

/// The scalar product of two vectors.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The continuation of the prices of one sample.
pub(super) struct Continuation<'a> {
    /// The demand of the sample's jobs.
    pub(super) demand: Box<dyn Demand>,
    /// Workers of each type per unit of all weights: `[K]`.
    pub(super) capacity: &'a [f64],
    /// The box in which prices are looked for, narrower from width to width.
    pub(super) price_box: PriceBox<Vec<f64>>,
    /// The distance that prices may move as the width goes to 0, in widths relative to prices.
    pub(super) moved: f64,
    /// Passes over the undecided jobs so far.
    pub(super) passes: u32,
    /// Evaluations of undecided jobs so far.
    pub(super) evaluated: usize,
    /// The most evaluations of undecided jobs.
    pub(super) evaluated_max: usize,
    /// True once the time limit has passed.
    pub(super) is_out_of_time: &'a dyn Fn() -> bool,
}

impl Continuation<'_> {
    /// The positions of types.
    fn types(&self) -> std::ops::Range<usize> {
        0..self.capacity.len()
    }

    /// The largest part, at most 1, of the relative changes `by` that keeps prices in the box and above a tenth of themselves.
    fn longest_part(&self, price: &[f64], by: &[f64]) -> f64 {
        let mut longest = 1.0_f64;
        for k in self.types() {
            let to = price[k] * by[k];
            let end =
                if to > 0.0 { self.price_box.high[k] } else { self.price_box.low[k].max(0.1 * price[k]) };
            let distance = (end - price[k]) / to;
            longest = if to == 0.0 { longest } else { longest.min(distance.max(0.0)) };
        }
        longest
    }

    /// The length of the relative changes `by`: the largest of them, each relative to the price plus a floor, as the relative
    /// change of a price near 0 says little.
    fn relative_length(&self, price: &[f64], by: &[f64]) -> f64 {
        let floor = price_floor(price, self.capacity);
        let low = |k: usize| floor[k].max(STEP_WORTH_MIN / self.capacity[k]);
        let part = |k: usize| by[k].abs() * price[k] / (price[k] + low(k));
        self.types().fold(0.0_f64, |most, k| most.max(part(k)))
    }

    /// Newton's step from prices.
    fn newton_step(&mut self, place: &SmoothedPrices<Vec<f64>>) -> Result<NewtonStep, PricesLost> {
        self.passes += 1;
        self.evaluated += self.demand.undecided();
        newton_step(&mut *self.demand, self.capacity, place).ok_or(PricesLost::GaveUp(Unsolved::Singular))
    }

    /// The prices of the smoothed market at a width, by Newton's method from prices near them.
    fn prices_at_width(&mut self, mut price: Vec<f64>, width: f64) -> Result<Vec<f64>, PricesLost> {
        let shift = vec![0.0; price.len()];
        let mut step = self.newton_step(&SmoothedPrices::of(price.clone(), shift.clone(), width))?;
        let mut held_back = 0;
        for _ in 0..NEWTON_STEPS_MAX {
            if (self.is_out_of_time)() {
                return Err(PricesLost::GaveUp(Unsolved::OutOfTime));
            }
            if self.evaluated > self.evaluated_max {
                return Err(PricesLost::GaveUp(Unsolved::NotConverged));
            }
            let longest = self.longest_part(&price, &step.by);
            let fall = dot(&step.falls, &step.by);
            let at = |part: f64| -> Vec<f64> {
                price.iter().zip(&step.by).map(|(price, by)| price * (1.0 + part * by)).collect()
            };
            if self.relative_length(&price, &step.by) <= STEP_MIN * width && longest >= 1.0 {
                return Ok(at(1.0));
            }
            // A price of which the box includes 0 is bounded there by 0, not by a box that is too narrow.
            let outside = |k: usize| {
                let next = price[k] * (1.0 + step.by[k]);
                next > self.price_box.high[k] || self.price_box.low[k] > 0.0 && next < self.price_box.low[k]
            };
            held_back = if self.types().any(outside) { held_back + 1 } else { 0 };
            if held_back > 2 {
                return Err(PricesLost::Outside(price));
            }
            let mut part = longest;
            loop {
                let next = at(part);
                let there = self.newton_step(&SmoothedPrices::of(next.clone(), shift.clone(), width))?;
                // The slope along the step of minus the objective is negative where the step was too long.
                let slope = |k: usize| there.falls[k] * step.by[k] * price[k] / next[k];
                let slope_there: f64 = self.types().map(slope).sum();
                if slope_there >= -0.5 * fall || part < 1e-12 {
                    (price, step) = (next, there);
                    break;
                }
                part *= (fall / (fall - slope_there)).clamp(0.1, 0.7);
            }
        }
        Err(PricesLost::GaveUp(Unsolved::NotConverged))
    }

    /// The prices at the last width, followed from a start.
    pub(super) fn follow(
        &mut self,
        start: &ContinuationStart,
        last: LastWidth,
    ) -> Result<ContinuationEnd, PricesLost> {
        let (mut price, mut width) = (start.price.clone(), start.width.max(last.width));
        let mut before: Option<(Vec<f64>, f64)> = None;
        loop {
            price = self.prices_at_width(price, width)?;
            if width <= last.width.max(last.worth_part * dot(&price, self.capacity)) {
                break;
            }
            let next = (width * NARROWER).max(last.width);
            let mut target = price.clone();
            let mut ahead = vec![0.0; price.len()];
            if let Some((older, wider)) = before {
                // Extrapolate prices along a straight line in the width.
                for k in self.types() {
                    let rate = (price[k] - older[k]) / (width - wider);
                    ahead[k] = rate * width;
                    let line = price[k] + rate * (next - width);
                    target[k] = line.max(0.1 * price[k]).min(2.0 * price[k]);
                }
            }
            self.narrow_box(&price, width, &ahead);
            for (k, target) in target.iter_mut().enumerate() {
                *target = target.max(self.price_box.low[k]).min(self.price_box.high[k]);
            }
            before = Some((price, width));
            (price, width) = (target, next);
        }
        let shift = self.final_shifts(&price, width)?;
        Ok(ContinuationEnd {
            place: SmoothedPrices::of(price, shift, width),
            price_box: self.price_box.clone(),
        })
    }

    /// Narrows the box about the prices at a width, `[K]`, which may still move by `moved` widths and by twice the change
    /// `ahead`, `[K]`, that extrapolation to a width of 0 predicts.
    fn narrow_box(&mut self, price: &[f64], width: f64, ahead: &[f64]) {
        // Where jobs spend little of their weights, prices matter little to them and are less certain.
        let worth = dot(price, self.capacity).min(1.0);
        let about = PriceBox::around(price, self.capacity, self.moved * width / worth);
        for k in self.types() {
            let ahead = 2.0 * ahead[k].abs();
            let idle = price[k] * self.capacity[k] <= IDLE_WIDTHS * width;
            let low = if idle { 0.0 } else { (about.low[k] - ahead).max(0.0) };
            self.price_box.low[k] = low.max(self.price_box.low[k]);
            self.price_box.high[k] = (about.high[k] + ahead).min(self.price_box.high[k]);
        }
        self.demand.decide_in(&self.price_box, price);
    }

    /// The relative increases of prices, `[K]`, at which all workers are demanded, within a part of the barrier.
    fn final_shifts(&mut self, price: &[f64], width: f64) -> Result<Vec<f64>, PricesLost> {
        let mut shift = vec![0.0; price.len()];
        for _ in 0..SHIFTS_MAX {
            let step = self.newton_step(&SmoothedPrices::of(price.to_vec(), shift.clone(), width))?;
            let off = step.falls.iter().fold(0.0_f64, |most, off| most.max(off.abs()));
            if off <= 0.01 * width / price.len() as f64 {
                break;
            }
            let longest = step.by.iter().fold(1.0_f64, |most, by| most.max(by.abs() / width));
            shift.iter_mut().zip(&step.by).for_each(|(shift, by)| *shift += by / longest);
        }
        Ok(shift)
    }
}
