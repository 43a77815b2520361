//! Softmax-smoothed demand of jobs whose choice the price box does not decide.
//!
//! A job's value at prices, per unit of its weight, is the largest of the values u`[r]` of its options: one type for part of its
//! time or for all of it, or two types for all of it. Smoothing replaces it by μ·log Σ exp(u`[r]`/μ), where μ is the smoothing
//! *width*; this is larger by at most μ times the logarithm of the number of options. Its gradient is that of the mixture of
//! options with weights exp(u`[r]`/μ) / Σ exp(u/μ). The mixture has feasible time fractions and, as the logarithm is concave, is
//! worth no less than the options are on average.
//!
//! Derivatives are with respect to relative changes of prices: −z`[k]`·∂u/∂z`[k]` is the spending on type k, and a second
//! derivative is z`[j]`·z`[k]`·∂²u/∂z`[j]`∂z`[k]`.

use std::array;

use crate::decomposition::choice::{Job, PriceBox};
use crate::decomposition::tolerances::WORSE;

/// A job whose choice is undecided, with the logarithms of its numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct UndecidedJob<const K: usize> {
    /// The job.
    pub(super) job: Job<K>,
    /// Logarithm of its throughput on each type.
    log: [f64; K],
    /// Logarithm of its workers per unit of weight.
    log_workers: f64,
}

/// Prices and the smoothing width. L is a list of one number for each type.
#[derive(Clone, Debug)]
pub(super) struct SmoothedPrices<L> {
    /// Price of a worker's whole time on each type, without its shift.
    pub(super) price: L,
    /// Logarithm of each price.
    log: L,
    /// Relative increase of each price, kept apart as it may be below the rounding of the price.
    pub(super) shift: L,
    /// The smoothing width μ.
    pub(super) width: f64,
}

/// The derivatives of jobs' smoothed values, times their weights, with respect to relative changes of prices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spending<const K: usize> {
    /// Spending on each type in parts of all weights, minus the first derivative.
    pub(super) on: [f64; K],
    /// The second derivatives, a symmetric matrix of which the part below and on the diagonal is filled.
    pub(super) slope: [[f64; K]; K],
}

/// An option of a job, on one type or two, with its derivatives.
#[derive(Clone, Copy, Debug)]
pub(super) struct OptionOfJob {
    /// Its value u; once all options are known, its weight in the mixture, not normalized.
    value: f64,
    /// The types; of an option on one type, that type twice.
    types: [usize; 2],
    /// Spending on each of the types per unit of weight, 0 on the second of an option on one type.
    spent: [f64; 2],
    /// The second derivative of the value in the prices of types i and h is bend`[i]`·bend`[h]`.
    bend: [f64; 2],
}

impl SmoothedPrices<Vec<f64>> {
    /// Prices, `[K]`, with their shifts, `[K]`, at a width.
    pub(super) fn of(price: Vec<f64>, shift: Vec<f64>, width: f64) -> Self {
        let log = price.iter().map(|price| price.ln()).collect();
        Self { price, log, shift, width }
    }

    /// This place, with lists of constant length.
    pub(super) fn fixed<const K: usize>(&self) -> SmoothedPrices<[f64; K]> {
        let of = |list: &[f64]| array::from_fn(|k| list[k]);
        SmoothedPrices {
            price: of(&self.price),
            log: of(&self.log),
            shift: of(&self.shift),
            width: self.width,
        }
    }

    /// A price with its shift.
    pub(super) fn shifted(&self, k: usize) -> f64 {
        self.price[k] * (1.0 + self.shift[k])
    }
}

impl<const K: usize> Spending<K> {
    /// The derivatives of no jobs.
    pub(super) const NONE: Self = Self { on: [0.0; K], slope: [[0.0; K]; K] };
}

impl<const K: usize> UndecidedJob<K> {
    /// A job with its logarithms.
    pub(super) fn of(job: Job<K>) -> Self {
        Self { job, log: job.speed.map(f64::ln), log_workers: job.workers.ln() }
    }

    /// The part of its spending that a job with spare time spends on each type.
    #[inline]
    fn spending_parts(&self, at: &SmoothedPrices<[f64; K]>) -> [f64; K] {
        let values: [f64; K] = array::from_fn(|k| self.log[k] - at.log[k]);
        let most = values.iter().fold(f64::NEG_INFINITY, |most, value| most.max(*value));
        let parts: [f64; K] = array::from_fn(|k| option_weight((values[k] - most) - at.shift[k], at.width));
        let all: f64 = parts.iter().sum();
        parts.map(|part| part / all)
    }

    /// Adds the spending of a job with spare time, and its second derivatives.
    #[inline]
    pub(super) fn add_spending_of_spare(&self, at: &SmoothedPrices<[f64; K]>, sum: &mut Spending<K>) {
        let (parts, weight) = (self.spending_parts(at), self.job.weight);
        let per_width = weight / at.width;
        for k in 0..K {
            sum.on[k] += weight * parts[k];
            sum.slope[k][k] += (weight + per_width) * parts[k];
            for j in 0..=k {
                sum.slope[k][j] -= per_width * parts[k] * parts[j];
            }
        }
    }

    /// Adds the spending of a job that need not have spare time, and its second derivatives; `options` is a buffer.
    pub(super) fn add_spending(
        &self,
        at: &SmoothedPrices<[f64; K]>,
        options: &mut Vec<OptionOfJob>,
        sum: &mut Spending<K>,
    ) {
        let all = self.weigh_options(at, options);
        let (mut on, mut slope) = ([0.0; K], [[0.0; K]; K]);
        for option in options.iter().filter(|option| option.value > 0.0) {
            let part = option.value / all;
            for (i, k) in option.types.into_iter().enumerate() {
                on[k] += part * option.spent[i];
                for (h, j) in option.types.into_iter().enumerate().filter(|(_, j)| *j <= k) {
                    let spread = option.spent[i] * option.spent[h] / at.width;
                    slope[k][j] += part * (spread + option.bend[i] * option.bend[h]);
                }
            }
        }
        for k in 0..K {
            sum.on[k] += self.job.weight * on[k];
            for j in 0..=k {
                sum.slope[k][j] += self.job.weight * (slope[k][j] - on[k] * on[j] / at.width);
            }
        }
    }

    /// The job's time fractions on each type at prices in a price box; `options` is a buffer.
    pub(super) fn time(
        &self,
        at: &SmoothedPrices<[f64; K]>,
        price_box: &PriceBox<[f64; K]>,
        options: &mut Vec<OptionOfJob>,
    ) -> [f64; K] {
        let mut spent = [0.0; K];
        if self.job.has_spare(price_box) {
            spent = self.spending_parts(at);
        } else {
            let all = self.weigh_options(at, options);
            for option in options.iter() {
                for (k, on) in option.types.into_iter().zip(option.spent) {
                    spent[k] += option.value / all * on;
                }
            }
        }
        array::from_fn(|k| spent[k] / (self.job.workers * at.price[k]))
    }

    /// The sum of the weights of the job's options. Fills `options` with the options, each with its weight as its `value`; an
    /// option is left out if its value is far below the best value of the options before it.
    fn weigh_options(&self, at: &SmoothedPrices<[f64; K]>, options: &mut Vec<OptionOfJob>) -> f64 {
        options.clear();
        let mut most = f64::NEG_INFINITY;
        let mut push = |option: OptionOfJob| {
            if option.value > most - WORSE * at.width {
                options.push(option);
            }
            most = most.max(option.value);
            most - WORSE * at.width
        };
        let Job { speed, workers, .. } = &self.job;
        let mut least = f64::NEG_INFINITY;
        for k in (0..K).filter(|k| speed[*k] > 0.0) {
            let rent = workers * at.price[k];
            least = push(if rent >= 1.0 {
                let value = self.log[k] - (self.log_workers + at.log[k]) - 1.0;
                OptionOfJob { value, types: [k, k], spent: [1.0, 0.0], bend: [1.0, 0.0] }
            } else {
                self.option_on_one(k, rent)
            });
        }
        for slow in (0..K).filter(|slow| speed[*slow] > 0.0) {
            for fast in (0..K).filter(|fast| self.job.is_faster(*fast, slow)) {
                let rents = [workers * at.price[slow], workers * at.price[fast]];
                if rents[1] > rents[0]
                    && let Some(option) = self.option_on_two(slow, fast, rents, least)
                {
                    least = push(option);
                }
            }
        }
        let mut all = 0.0;
        for option in options.iter_mut() {
            // A shift may be below the rounding of a price, but not of a difference of values.
            let lost =
                option.spent[0] * at.shift[option.types[0]] + option.spent[1] * at.shift[option.types[1]];
            option.value = option_weight((option.value - most) - lost, at.width);
            all += option.value;
        }
        all
    }

    /// The option of all time on one type, the cost of which is `rent`.
    #[inline]
    fn option_on_one(&self, k: usize, rent: f64) -> OptionOfJob {
        OptionOfJob { value: self.log[k] - rent, types: [k, k], spent: [rent, 0.0], bend: [0.0; 2] }
    }

    /// The option of all time on two types, or on one of them where that is better; none if its value is surely below `least`.
    /// `rents` are the costs of all of the time on the slow type and on the fast one.
    #[inline]
    fn option_on_two(&self, slow: usize, fast: usize, rents: [f64; 2], least: f64) -> Option<OptionOfJob> {
        let speeds = [self.job.speed[slow], self.job.speed[fast]];
        let (gain, dearer) = (speeds[1] - speeds[0], rents[1] - rents[0]);
        let reached = gain / dearer;
        if reached <= speeds[0] {
            return Some(self.option_on_one(slow, rents[0]));
        }
        if reached >= speeds[1] {
            return Some(self.option_on_one(fast, rents[1]));
        }
        let ratio = speeds[0] / gain;
        let part = (1.0 / dearer - ratio).clamp(0.0, 1.0);
        let cost = rents[0] + dearer * part;
        // A logarithm is below its tangents, which bound the value at less cost than it takes to compute it.
        let from_slow = self.log[slow] + (reached / speeds[0] - 1.0);
        let from_fast = self.log[fast] + (reached / speeds[1] - 1.0);
        if from_slow.min(from_fast) - cost < least {
            return None;
        }
        Some(OptionOfJob {
            value: reached.ln() - cost,
            types: [slow, fast],
            spent: [rents[0] * (1.0 - part), rents[1] * part],
            bend: [-rents[0] / dearer, rents[1] / dearer],
        })
    }
}

/// The weight of an option with the best value plus `better`; `better` is at most 0 unless values are shifted.
#[inline]
fn option_weight(better: f64, width: f64) -> f64 {
    if better < -WORSE * width { 0.0 } else { (better / width).exp() }
}
