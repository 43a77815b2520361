//! The demand of one job at given prices, where its objective is the logarithm of its throughput.
//!
//! Per unit of its weight, a job with throughputs T and σ workers per unit of weight maximizes
//!
//!   log Σ T`[k]`·x`[k]` − σ·Σ z`[k]`·x`[k]`        over x ≥ 0, Σ x ≤ 1
//!
//! where x are fractions of its time and z prices of a worker's whole time. A job with *spare* time, which uses less than all of
//! its time, spends one unit on the type with the highest throughput per price: the derivative of its objective in x`[k]`,
//! T`[k]`/(T·x) − σ·z`[k]`, is 0 at a spending of 1. A job without spare time goes along the upper hull of the points
//! (z`[k]`, T`[k]`) to dearer and faster types while a unit of throughput costs less than it is worth, and ends on one type for
//! all of its time, or on two.

use std::array;

use crate::decomposition::tolerances::{APART, SAME_SPEED};

/// A job, or a class of identical jobs as one job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job<const K: usize> {
    /// Throughput on each type, in the instance's units, 0 where it cannot run.
    pub(super) speed: [f64; K],
    /// Number of workers that it needs, per unit of its weight: σ.
    pub(super) workers: f64,
    /// Weight of the job, as a part of the sum of all jobs' weights.
    pub(super) weight: f64,
}

/// The prices of types, with their inverses.
#[derive(Clone, Copy, Debug)]
pub(super) struct TypePrices<const K: usize> {
    /// Price of a worker's whole time on each type.
    pub(super) price: [f64; K],
    /// 1 / price.
    inverse: [f64; K],
}

/// A box of prices. L is a list of one number for each type.
#[derive(Clone, Debug)]
pub(super) struct PriceBox<L> {
    /// The least price of each type.
    pub(super) low: L,
    /// The largest price of each type.
    pub(super) high: L,
}

/// The types that a job uses at an optimum of its own objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// One type, for less than all of its time.
    Spare(usize),
    /// One type for all of its time.
    All(usize),
    /// A slow type and a fast type, in this order, together for all of its time.
    Both(usize, usize),
}

impl<const K: usize> TypePrices<K> {
    /// The prices in a list, `[K]`.
    pub(super) fn of(price: &[f64]) -> Self {
        Self { price: array::from_fn(|k| price[k]), inverse: array::from_fn(|k| price[k].recip()) }
    }
}

impl PriceBox<Vec<f64>> {
    /// This box, with lists of constant length.
    pub(super) fn fixed<const K: usize>(&self) -> PriceBox<[f64; K]> {
        PriceBox { low: array::from_fn(|k| self.low[k]), high: array::from_fn(|k| self.high[k]) }
    }
}

impl<const K: usize> Job<K> {
    /// True if a type is faster than the type `than` by more than rounding.
    #[inline]
    pub(super) fn is_faster(&self, type_: usize, than: usize) -> bool {
        self.speed[type_] > self.speed[than] * (1.0 + SAME_SPEED)
    }

    /// The optimal choice at positive prices; none if the job runs on no type.
    #[inline]
    pub(super) fn choose(&self, prices: &TypePrices<K>) -> Option<Choice> {
        let (mut most, mut at) = (0.0, None);
        for k in 0..K {
            let per_price = self.speed[k] * prices.inverse[k];
            (most, at) = if per_price > most { (per_price, Some(k)) } else { (most, at) };
        }
        let mut at = at?;
        if self.workers * prices.price[at] >= 1.0 {
            return Some(Choice::Spare(at));
        }
        for _ in 0..K {
            let (mut least, mut next) = (f64::INFINITY, None);
            for k in (0..K).filter(|k| self.is_faster(*k, at)) {
                let per_speed = (prices.price[k] - prices.price[at]) / (self.speed[k] - self.speed[at]);
                (least, next) = if per_speed < least { (per_speed, Some(k)) } else { (least, next) };
            }
            // `cost` of a unit of throughput is compared with its worth, the derivative 1/throughput of the logarithm.
            let cost = self.workers * least;
            match next {
                Some(next) if cost * self.speed[next] < 1.0 => at = next,
                Some(next) if cost * self.speed[at] < 1.0 => return Some(Choice::Both(at, next)),
                _ => break,
            }
        }
        Some(Choice::All(at))
    }

    /// True if a choice that is optimal somewhere in a price box is optimal everywhere in it.
    #[inline]
    pub(super) fn is_sure(&self, choice: Choice, price_box: &PriceBox<[f64; K]>) -> bool {
        let (speed, workers) = (&self.speed, self.workers);
        match choice {
            Choice::Spare(k) => {
                let cheaper = |j: usize| speed[j] * price_box.high[k] < speed[k] * price_box.low[j];
                workers * price_box.low[k] >= 1.0 && (0..K).all(|j| j == k || speed[j] == 0.0 || cheaper(j))
            }
            Choice::All(k) => {
                let worse = |j: usize| {
                    (speed[j] - speed[k]) / speed[k] < workers * (price_box.low[j] - price_box.high[k])
                };
                workers * price_box.high[k] <= 1.0 && (0..K).all(|j| j == k || speed[j] == 0.0 || worse(j))
            }
            Choice::Both(slow, fast) => {
                let apart = speed[fast] - speed[slow];
                let low = workers * (price_box.low[fast] - price_box.high[slow]) / apart;
                let high = workers * (price_box.high[fast] - price_box.low[slow]) / apart;
                let inside = high * speed[slow] < 1.0 && low * speed[fast] > 1.0;
                let worse = |j: usize| {
                    let gain = speed[j] - speed[slow];
                    let worth = if gain > 0.0 { high * gain } else { low * gain };
                    worth < workers * (price_box.low[j] - price_box.high[slow])
                };
                let others = |j: usize| j == slow || j == fast || speed[j] == 0.0 || worse(j);
                apart > APART * speed[fast]
                    && inside
                    && low * speed[slow] > workers * price_box.high[slow]
                    && (0..K).all(others)
            }
        }
    }

    /// True if the job has spare time everywhere in a price box, whichever types it uses.
    #[inline]
    pub(super) fn has_spare(&self, price_box: &PriceBox<[f64; K]>) -> bool {
        (0..K).all(|k| self.speed[k] == 0.0 || self.workers * price_box.low[k] >= 1.0)
    }

    /// The time fractions on each type of a choice at prices.
    #[inline]
    pub(super) fn time(&self, choice: Choice, prices: &TypePrices<K>) -> [f64; K] {
        let mut time = [0.0; K];
        match choice {
            Choice::Spare(k) => time[k] = (prices.inverse[k] / self.workers).min(1.0),
            Choice::All(k) => time[k] = 1.0,
            Choice::Both(slow, fast) => {
                let dearer = self.workers * (prices.price[fast] - prices.price[slow]);
                let part = 1.0 / dearer - self.speed[slow] / (self.speed[fast] - self.speed[slow]);
                time[fast] = part.clamp(0.0, 1.0);
                time[slow] = 1.0 - time[fast];
            }
        }
        time
    }

    /// The dual prices of throughput and of time, per unit of weight, that prove a choice optimal at prices.
    #[inline]
    pub(super) fn proof(&self, choice: Choice, prices: &TypePrices<K>) -> (f64, f64) {
        let rent = |k: usize| self.workers * prices.price[k];
        match choice {
            Choice::Spare(k) => (rent(k) / self.speed[k], 0.0),
            Choice::All(k) => (1.0 / self.speed[k], (1.0 - rent(k)).max(0.0)),
            Choice::Both(slow, fast) => {
                let throughput = (rent(fast) - rent(slow)) / (self.speed[fast] - self.speed[slow]);
                (throughput, (throughput * self.speed[slow] - rent(slow)).max(0.0))
            }
        }
    }
}
