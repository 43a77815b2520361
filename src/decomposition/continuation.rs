//! Continuation in the smoothing width: the prices of one sample, followed as the width goes to 0.
//!
//! Demand is smoothed by the width (see [`smoothed_demand`](super::smoothed_demand)). At each width Newton's method
//! finds the prices at which all workers but a few are demanded: a barrier of the width keeps prices positive and some
//! workers idle. Prices at the next width are extrapolated from the last two, and the price box narrows, so that ever
//! fewer jobs are undecided. At the last width, changes of prices are below the rounding of the prices themselves; they
//! are kept apart from the prices, as relative shifts.

use crate::decomposition::choice::PriceBox;
use crate::decomposition::demand::{Demand, Step, floor, newton};
use crate::decomposition::smoothed_demand::Place;
use crate::decomposition::tolerances::{
    IDLE_WIDTHS, NARROWER, SHIFTS_MAX, STEP_MIN, STEP_WORTH_MIN, STEPS_MAX,
};

/// Prices to start at, the box they are in, the first width, and how far prices may move as it narrows, in widths.
#[derive(Clone, Debug)]
pub(super) struct ContinuationStart {
    pub(super) price: Vec<f64>,
    pub(super) price_box: PriceBox<Vec<f64>>,
    pub(super) width: f64,
    pub(super) moved: f64,
}

/// Why prices were not found in a box.
pub(super) enum Lost {
    /// The prices are outside of the box; the last prices inside.
    Outside(Vec<f64>),
    /// Steps or time ran out.
    Stuck,
}

/// The prices at the last width, and the box in which choices were known.
#[derive(Clone, Debug)]
pub(super) struct ContinuationEnd {
    pub(super) place: Place<Vec<f64>>,
    pub(super) price_box: PriceBox<Vec<f64>>,
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// One sample's prices, followed as the width falls.
pub(super) struct Continuation<'a> {
    pub(super) demand: Box<dyn Demand>,
    /// Workers of each type per unit of all weights: `[K]`.
    pub(super) capacity: &'a [f64],
    pub(super) price_box: PriceBox<Vec<f64>>,
    pub(super) moved: f64,
    pub(super) passes: u32,
    /// Evaluations of undecided jobs so far, and at most.
    pub(super) evaluated: usize,
    pub(super) evaluated_max: usize,
    pub(super) late: &'a dyn Fn() -> bool,
}

impl Continuation<'_> {
    fn types(&self) -> std::ops::Range<usize> {
        0..self.capacity.len()
    }

    /// The largest part of a step that stays in the box and above 0.
    fn longest(&self, price: &[f64], by: &[f64]) -> f64 {
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

    /// The length of a step: the largest relative change of a price, with a floor under prices near 0.
    fn length(&self, price: &[f64], by: &[f64]) -> f64 {
        let floor = floor(price, self.capacity);
        let low = |k: usize| floor[k].max(STEP_WORTH_MIN / self.capacity[k]);
        let part = |k: usize| by[k].abs() * price[k] / (price[k] + low(k));
        self.types().fold(0.0_f64, |most, k| most.max(part(k)))
    }

    fn step(&mut self, place: &Place<Vec<f64>>) -> Result<Step, Lost> {
        self.passes += 1;
        self.evaluated += self.demand.undecided();
        newton(&mut *self.demand, self.capacity, place).ok_or(Lost::Stuck)
    }

    /// The prices of the smoothed market at a width, by Newton's method from prices near them.
    fn at_width(&mut self, mut price: Vec<f64>, width: f64) -> Result<Vec<f64>, Lost> {
        let shift = vec![0.0; price.len()];
        let mut step = self.step(&Place::of(price.clone(), shift.clone(), width))?;
        let mut held_back = 0;
        for _ in 0..STEPS_MAX {
            if (self.late)() || self.evaluated > self.evaluated_max {
                return Err(Lost::Stuck);
            }
            let longest = self.longest(&price, &step.by);
            let fall = product(&step.falls, &step.by);
            let at = |part: f64| -> Vec<f64> {
                price.iter().zip(&step.by).map(|(price, by)| price * (1.0 + part * by)).collect()
            };
            if self.length(&price, &step.by) <= STEP_MIN * width && longest >= 1.0 {
                return Ok(at(1.0));
            }
            // Prices that may be 0 are held back by 0, not by a box that is too narrow.
            let outside = |k: usize| {
                let next = price[k] * (1.0 + step.by[k]);
                next > self.price_box.high[k] || self.price_box.low[k] > 0.0 && next < self.price_box.low[k]
            };
            held_back = if self.types().any(outside) { held_back + 1 } else { 0 };
            if held_back > 2 {
                return Err(Lost::Outside(price));
            }
            let mut part = longest;
            loop {
                let next = at(part);
                let there = self.step(&Place::of(next.clone(), shift.clone(), width))?;
                // the objective's slope along the step: negative where the step was too long
                let slope = |k: usize| there.falls[k] * step.by[k] * price[k] / next[k];
                let slope_there: f64 = self.types().map(slope).sum();
                if slope_there >= -0.5 * fall || part < 1e-12 {
                    (price, step) = (next, there);
                    break;
                }
                part *= (fall / (fall - slope_there)).clamp(0.1, 0.7);
            }
        }
        Err(Lost::Stuck)
    }

    /// Follows prices to the width `last`, or to the part `part` of the worth of all workers if that is larger.
    pub(super) fn follow(
        &mut self,
        start: &ContinuationStart,
        last: f64,
        part: f64,
    ) -> Result<ContinuationEnd, Lost> {
        let (mut price, mut width) = (start.price.clone(), start.width.max(last));
        let mut before: Option<(Vec<f64>, f64)> = None;
        loop {
            price = self.at_width(price, width)?;
            if width <= last.max(part * product(&price, self.capacity)) {
                break;
            }
            let next = (width * NARROWER).max(last);
            let mut target = price.clone();
            let mut ahead = vec![0.0; price.len()];
            if let Some((older, wider)) = before {
                // prices on a straight line in the width
                for k in self.types() {
                    let rate = (price[k] - older[k]) / (width - wider);
                    ahead[k] = rate * width;
                    let line = price[k] + rate * (next - width);
                    target[k] = line.max(0.1 * price[k]).min(2.0 * price[k]);
                }
            }
            self.narrow(&price, width, &ahead);
            for (k, target) in target.iter_mut().enumerate() {
                *target = target.max(self.price_box.low[k]).min(self.price_box.high[k]);
            }
            before = Some((price, width));
            (price, width) = (target, next);
        }
        let shift = self.shift(&price, width)?;
        Ok(ContinuationEnd { place: Place::of(price, shift, width), price_box: self.price_box.clone() })
    }

    /// Narrows the box about prices at a width: they may move by a number of widths, and twice as far as
    /// extrapolation predicts, `ahead`.
    fn narrow(&mut self, price: &[f64], width: f64, ahead: &[f64]) {
        // Where jobs spend little, prices matter little and are less certain.
        let worth = product(price, self.capacity).min(1.0);
        let about = PriceBox::about(price, self.capacity, self.moved * width / worth);
        for k in self.types() {
            let ahead = 2.0 * ahead[k].abs();
            let idle = price[k] * self.capacity[k] <= IDLE_WIDTHS * width;
            let low = if idle { 0.0 } else { (about.low[k] - ahead).max(0.0) };
            self.price_box.low[k] = low.max(self.price_box.low[k]);
            self.price_box.high[k] = (about.high[k] + ahead).min(self.price_box.high[k]);
        }
        self.demand.narrow(&self.price_box, price);
    }

    /// The relative increases of prices at which all workers are demanded.
    fn shift(&mut self, price: &[f64], width: f64) -> Result<Vec<f64>, Lost> {
        let mut shift = vec![0.0; price.len()];
        for _ in 0..SHIFTS_MAX {
            let step = self.step(&Place::of(price.to_vec(), shift.clone(), width))?;
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
