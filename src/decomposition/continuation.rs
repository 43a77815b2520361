//! Continuation in the smoothing width: the prices of one sample, followed as the width goes to 0.
//!
//! At each width Newton's method finds the prices at which all workers but a few are demanded: a barrier of the width keeps
//! prices above 0 and some workers to spare. Prices at the next width are extrapolated from the last two, and the price box
//! narrows, so that ever fewer members are undecided. Where a price has no more digits to tell members apart by, the last
//! step is taken in relative shifts of prices.

use crate::decomposition::choice::{PriceBox, Prices};
use crate::decomposition::demand::{Demand, floor};
use crate::decomposition::smoothed_demand::{Alternative, Place};

/// By how much the width falls at once.
const NARROWER: f64 = 0.2;
/// How well prices are found at a width, in widths.
const FOUND: f64 = 0.2;
/// Types whose workers are worth less than this part of all weights have prices that matter less.
const WORTH_MIN: f64 = 0.01;
/// A type whose workers are worth less than so many widths of all weights may have workers to spare.
const WORTHLESS: f64 = 100.0;
/// Newton steps at one width, and at prices that no longer move.
const STEPS_MAX: u32 = 60;
const SHIFTS_MAX: u32 = 8;

/// Where prices are looked for, from where, how wide blends are at first, and how far prices may move as they narrow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start<const K: usize> {
    pub(super) price: [f64; K],
    pub(super) price_box: PriceBox<K>,
    pub(super) width: f64,
    pub(super) moved: f64,
}

/// Why prices were not found in a range: how far they were followed.
pub(super) enum Lost<const K: usize> {
    /// They are outside of it.
    Outside([f64; K]),
    /// Steps or time ran out.
    Stuck,
}

/// Prices at the end, the range in which choices were known, and the last shift.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<const K: usize> {
    pub(super) place: Place<K>,
    pub(super) price_box: PriceBox<K>,
}

fn product<const K: usize>(a: &[f64; K], b: &[f64; K]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// One sample's prices, followed as the width falls.
pub(super) struct Continuation<'a, const K: usize> {
    pub(super) demand: Demand<K>,
    pub(super) price_box: PriceBox<K>,
    pub(super) moved: f64,
    pub(super) alternatives: Vec<Alternative>,
    pub(super) asked: u32,
    /// How often undecided members were looked at, and how often they may be.
    pub(super) looked: usize,
    pub(super) looked_max: usize,
    pub(super) late: &'a dyn Fn() -> bool,
}

impl<const K: usize> Continuation<'_, K> {
    /// The largest part of a step that stays in the range and above 0.
    fn longest(&self, price: &[f64; K], by: &[f64; K]) -> f64 {
        let mut longest = 1.0_f64;
        for k in 0..K {
            let to = price[k] * by[k];
            let end =
                if to > 0.0 { self.price_box.high[k] } else { self.price_box.low[k].max(0.1 * price[k]) };
            let room = (end - price[k]) / to;
            longest = if to == 0.0 { longest } else { longest.min(room.max(0.0)) };
        }
        longest
    }

    /// How long a step is, prices next to nothing apart.
    fn length(&self, price: &[f64; K], by: &[f64; K]) -> f64 {
        let floor = floor(price, &self.demand.room);
        let low = |k: usize| floor[k].max(WORTH_MIN / self.demand.room[k]);
        let part = |k: usize| by[k].abs() * price[k] / (price[k] + low(k));
        (0..K).fold(0.0_f64, |most, k| most.max(part(k)))
    }

    /// Prices at a width, from prices near them.
    fn settle(&mut self, mut price: [f64; K], width: f64) -> Result<[f64; K], Lost<K>> {
        let ask = |continuation: &mut Self, price: [f64; K]| {
            continuation.asked += 1;
            continuation.looked +=
                continuation.demand.undecided.len() + continuation.demand.undecided_spare.len();
            continuation
                .demand
                .step(&Place::of(price, [0.0; K], width), &mut continuation.alternatives)
                .ok_or(Lost::Stuck)
        };
        let mut step = ask(self, price)?;
        let mut held_back = 0;
        for _ in 0..STEPS_MAX {
            if (self.late)() || self.looked > self.looked_max {
                return Err(Lost::Stuck);
            }
            let longest = self.longest(&price, &step.by);
            let fall = product(&step.falls, &step.by);
            let at = |part: f64| std::array::from_fn(|k| price[k] * (1.0 + part * step.by[k]));
            let length = self.length(&price, &step.by);
            if length <= FOUND * width && longest >= 1.0 {
                return Ok(at(1.0));
            }
            // (prices that may be 0 are held back by 0, not by a range that is too narrow)
            let outside = |k: usize| {
                let next = price[k] * (1.0 + step.by[k]);
                next > self.price_box.high[k] || self.price_box.low[k] > 0.0 && next < self.price_box.low[k]
            };
            held_back = if (0..K).any(outside) { held_back + 1 } else { 0 };
            if held_back > 2 {
                return Err(Lost::Outside(price));
            }
            let mut part = longest;
            loop {
                let next = at(part);
                let there = ask(self, next)?;
                // the objective's slope along the step, which may have gone too far
                let left: f64 = (0..K).map(|k| there.falls[k] * step.by[k] * price[k] / next[k]).sum();
                if left >= -0.5 * fall || part < 1e-12 {
                    (price, step) = (next, there);
                    break;
                }
                part *= (fall / (fall - left)).clamp(0.1, 0.7);
            }
        }
        Err(Lost::Stuck)
    }

    /// Follows prices to the last width, or to one that is this `part` of what they are worth, members whose choice gets
    /// known on the alternative being counted together.
    pub(super) fn follow(&mut self, start: &Start<K>, last: f64, part: f64) -> Result<Found<K>, Lost<K>> {
        let (mut price, mut width) = (start.price, start.width.max(last));
        let mut before: Option<([f64; K], f64)> = None;
        loop {
            price = self.settle(price, width)?;
            if width <= last.max(part * product(&price, &self.demand.room)) {
                break;
            }
            let next = (width * NARROWER).max(last);
            let mut target = price;
            let mut ahead = [0.0; K];
            if let Some((older, wider)) = before {
                // prices on a straight line in the width
                let rate = |k: usize| (price[k] - older[k]) / (width - wider);
                ahead = std::array::from_fn(|k| rate(k) * width);
                target = std::array::from_fn(|k| {
                    let line = price[k] + rate(k) * (next - width);
                    line.max(0.1 * price[k]).min(2.0 * price[k])
                });
            }
            self.narrow(&price, width, &ahead);
            before = Some((price, width));
            let inside = |k: usize| target[k].max(self.price_box.low[k]).min(self.price_box.high[k]);
            (price, width) = (std::array::from_fn(inside), next);
        }
        let shift = self.shift(price, width)?;
        Ok(Found { place: Place::of(price, shift, width), price_box: self.price_box })
    }

    /// Narrows the range about prices at a width; they may be as far `ahead` of them as that, and as far again.
    fn narrow(&mut self, price: &[f64; K], width: f64, ahead: &[f64; K]) {
        // (where members spend little, prices matter little and are the less sure)
        let worth = product(price, &self.demand.room).min(1.0);
        let off = PriceBox::about(price, &self.demand.room, self.moved * width / worth);
        let mut price_box = self.price_box;
        for k in 0..K {
            let ahead = 2.0 * ahead[k].abs();
            let worthless = price[k] * self.demand.room[k] <= WORTHLESS * width;
            let low = if worthless { 0.0 } else { (off.low[k] - ahead).max(0.0) };
            price_box.low[k] = low.max(price_box.low[k]);
            price_box.high[k] = (off.high[k] + ahead).min(price_box.high[k]);
        }
        self.price_box = price_box;
        self.demand.narrow(&price_box, &Prices::of(*price));
    }

    /// By what small parts of themselves prices must still be higher for all workers to be spoken for.
    fn shift(&mut self, price: [f64; K], width: f64) -> Result<[f64; K], Lost<K>> {
        let mut shift = [0.0; K];
        for _ in 0..SHIFTS_MAX {
            self.asked += 1;
            let place = Place::of(price, shift, width);
            let step = self.demand.step(&place, &mut self.alternatives).ok_or(Lost::Stuck)?;
            let off = step.falls.iter().fold(0.0_f64, |most, off| most.max(off.abs()));
            if off <= 0.01 * width / K as f64 {
                break;
            }
            let longest = step.by.iter().fold(1.0_f64, |most, by| most.max(by.abs() / width));
            shift = std::array::from_fn(|k| shift[k] + step.by[k] / longest);
        }
        Ok(shift)
    }
}
