//! Softmax-smoothed demand of jobs whose choice the price box does not decide.
//!
//! A job's value at prices is the largest of the values u`[r]` of its options. Smoothing replaces it by μ·log Σ
//! exp(u`[r]`/μ), which is larger by at most μ times the logarithm of the number of options. Its derivatives are
//! those of the mixture of options with weights exp(u`[r]`/μ). The mixture has feasible time fractions and, as the
//! logarithm is concave, is worth no less than the options are on average.
//!
//! Derivatives are with respect to the logarithms of prices, so that −∂u/∂log z`[k]` is the spending on type k.

use std::array;

use crate::decomposition::choice::{Job, PriceBox};
use crate::decomposition::tolerances::WORSE;

/// A job whose choice is undecided, with the logarithms of its numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct UndecidedJob<const K: usize> {
    pub(super) job: Job<K>,
    log: [f64; K],
    log_workers: f64,
}

/// Prices and the smoothing width: lists of one number for each type.
#[derive(Clone, Debug)]
pub(super) struct Place<L> {
    pub(super) price: L,
    log: L,
    /// Relative increases of prices, too small to be added to them.
    pub(super) shift: L,
    /// μ
    pub(super) width: f64,
}

/// Spending on each type, and its derivatives with their signs changed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spending<const K: usize> {
    pub(super) on: [f64; K],
    /// Symmetric; below and on the diagonal.
    pub(super) slope: [[f64; K]; K],
}

/// An option of a job, and its derivatives: two types, the second of which may be unused.
#[derive(Clone, Copy, Debug)]
pub(super) struct OptionOfJob {
    /// u; its weight once all options are known.
    value: f64,
    types: [usize; 2],
    spent: [f64; 2],
    /// The second derivative is the square of this.
    bend: [f64; 2],
}

impl Place<Vec<f64>> {
    pub(super) fn of(price: Vec<f64>, shift: Vec<f64>, width: f64) -> Self {
        let log = price.iter().map(|price| price.ln()).collect();
        Self { price, log, shift, width }
    }

    /// This place, with lists of constant length.
    pub(super) fn fixed<const K: usize>(&self) -> Place<[f64; K]> {
        let of = |list: &[f64]| array::from_fn(|k| list[k]);
        Place { price: of(&self.price), log: of(&self.log), shift: of(&self.shift), width: self.width }
    }

    /// A price with its shift.
    pub(super) fn shifted(&self, k: usize) -> f64 {
        self.price[k] * (1.0 + self.shift[k])
    }
}

impl<const K: usize> Spending<K> {
    pub(super) const NONE: Self = Self { on: [0.0; K], slope: [[0.0; K]; K] };
}

impl<const K: usize> UndecidedJob<K> {
    pub(super) fn of(job: Job<K>) -> Self {
        Self { job, log: job.speed.map(f64::ln), log_workers: job.workers.ln() }
    }

    /// The part of its spending that a job with spare time spends on each type.
    #[inline]
    fn parts(&self, at: &Place<[f64; K]>) -> [f64; K] {
        let values: [f64; K] = array::from_fn(|k| self.log[k] - at.log[k]);
        let most = values.iter().fold(f64::NEG_INFINITY, |most, value| most.max(*value));
        let parts: [f64; K] = array::from_fn(|k| weight((values[k] - most) - at.shift[k], at.width));
        let all: f64 = parts.iter().sum();
        parts.map(|part| part / all)
    }

    /// Adds the spending of a job with spare time.
    #[inline]
    pub(super) fn spend_spare(&self, at: &Place<[f64; K]>, sum: &mut Spending<K>) {
        let (parts, weight) = (self.parts(at), self.job.weight);
        let per_width = weight / at.width;
        for k in 0..K {
            sum.on[k] += weight * parts[k];
            sum.slope[k][k] += (weight + per_width) * parts[k];
            for j in 0..=k {
                sum.slope[k][j] -= per_width * parts[k] * parts[j];
            }
        }
    }

    /// Adds the spending of any job; `options` is a buffer.
    pub(super) fn spend(&self, at: &Place<[f64; K]>, options: &mut Vec<OptionOfJob>, sum: &mut Spending<K>) {
        let all = self.options(at, options);
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

    /// Time fractions at a place in a price box.
    pub(super) fn time(
        &self,
        at: &Place<[f64; K]>,
        price_box: &PriceBox<[f64; K]>,
        options: &mut Vec<OptionOfJob>,
    ) -> [f64; K] {
        let mut spent = [0.0; K];
        if self.job.has_spare(price_box) {
            spent = self.parts(at);
        } else {
            let all = self.options(at, options);
            for option in options.iter() {
                for (k, on) in option.types.into_iter().zip(option.spent) {
                    spent[k] += option.value / all * on;
                }
            }
        }
        array::from_fn(|k| spent[k] / (self.job.workers * at.price[k]))
    }

    /// Fills `options` with the options, those far below the best left out, each with its weight as its `value`;
    /// returns the sum of the weights.
    fn options(&self, at: &Place<[f64; K]>, options: &mut Vec<OptionOfJob>) -> f64 {
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
                self.all(k, rent)
            });
        }
        for slow in (0..K).filter(|slow| speed[*slow] > 0.0) {
            for fast in (0..K).filter(|fast| self.job.is_faster(*fast, slow)) {
                let rents = [workers * at.price[slow], workers * at.price[fast]];
                if rents[1] > rents[0]
                    && let Some(option) = self.both(slow, fast, rents, least)
                {
                    least = push(option);
                }
            }
        }
        let mut all = 0.0;
        for option in options.iter_mut() {
            // Shifts are too small for prices, but not for the differences of values.
            let lost =
                option.spent[0] * at.shift[option.types[0]] + option.spent[1] * at.shift[option.types[1]];
            option.value = weight((option.value - most) - lost, at.width);
            all += option.value;
        }
        all
    }

    /// The option of all time on one type.
    #[inline]
    fn all(&self, k: usize, rent: f64) -> OptionOfJob {
        OptionOfJob { value: self.log[k] - rent, types: [k, k], spent: [rent, 0.0], bend: [0.0; 2] }
    }

    /// All of the time on two types or one of them; none if its value is below `least`.
    #[inline]
    fn both(&self, slow: usize, fast: usize, rents: [f64; 2], least: f64) -> Option<OptionOfJob> {
        let speeds = [self.job.speed[slow], self.job.speed[fast]];
        let (gain, dearer) = (speeds[1] - speeds[0], rents[1] - rents[0]);
        let reached = gain / dearer;
        if reached <= speeds[0] {
            return Some(self.all(slow, rents[0]));
        }
        if reached >= speeds[1] {
            return Some(self.all(fast, rents[1]));
        }
        let ratio = speeds[0] / gain;
        let part = (1.0 / dearer - ratio).clamp(0.0, 1.0);
        let cost = rents[0] + dearer * part;
        // a logarithm is below its tangents
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

/// The weight of an option that is better than the best one by `better`, which is at most 0 but for shifts.
#[inline]
fn weight(better: f64, width: f64) -> f64 {
    if better < -WORSE * width { 0.0 } else { (better / width).exp() }
}
