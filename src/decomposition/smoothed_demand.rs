//! Softmax-smoothed demand of members whose choice the price box does not decide.
//!
//! A member's value at prices is the largest of those of its alternatives u`[r]`. It is replaced by μ·log Σ exp(u`[r]`/μ),
//! at most μ times the logarithm of their number above it, whose derivatives are those of the mixture of alternatives with
//! weights exp(u`[r]`/μ): time fractions that are feasible, and worth no less than the mixture of their values, as the
//! logarithm is concave.
//!
//! Derivatives are with respect to the logarithms of prices, so that −∂u/∂log z`[k]` is what is spent on type k.

use crate::decomposition::choice::{Member, PriceBox};

/// Choices worse by more than this many μ have no weight.
const WORSE: f64 = 40.0;

/// A member whose choice is undecided, with the logarithms of its speeds.
#[derive(Clone, Copy, Debug)]
pub(super) struct UndecidedJob<const K: usize> {
    pub(super) member: Member<K>,
    log: [f64; K],
    log_workers: f64,
}

/// Prices, and how much choices are smoothed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<const K: usize> {
    pub(super) price: [f64; K],
    log: [f64; K],
    /// By what parts of themselves prices are higher than that, too small to be added to them.
    pub(super) shift: [f64; K],
    /// μ
    pub(super) width: f64,
}

/// What is spent on each type, and its derivatives, with their signs changed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spending<const K: usize> {
    pub(super) on: [f64; K],
    /// Symmetric; below and on the diagonal.
    pub(super) slope: [[f64; K]; K],
}

/// A choice and its derivatives: of two types, where the second may count for nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alternative {
    value: f64,
    types: [usize; 2],
    spent: [f64; 2],
    /// The second derivative is the square of this.
    bend: [f64; 2],
}

impl<const K: usize> Place<K> {
    pub(super) fn of(price: [f64; K], shift: [f64; K], width: f64) -> Self {
        Self { price, log: price.map(f64::ln), shift, width }
    }
}

impl<const K: usize> Spending<K> {
    pub(super) const NONE: Self = Self { on: [0.0; K], slope: [[0.0; K]; K] };
}

impl<const K: usize> UndecidedJob<K> {
    pub(super) fn of(member: Member<K>) -> Self {
        Self { member, log: member.speed.map(f64::ln), log_workers: member.workers.ln() }
    }

    /// The parts spent on each type by a member with time to spare.
    #[inline]
    fn parts(&self, at: &Place<K>) -> [f64; K] {
        let values: [f64; K] = std::array::from_fn(|k| self.log[k] - at.log[k]);
        let most = values.iter().fold(f64::NEG_INFINITY, |most, value| most.max(*value));
        let parts: [f64; K] = std::array::from_fn(|k| weight((values[k] - most) - at.shift[k], at.width));
        let all: f64 = parts.iter().sum();
        parts.map(|part| part / all)
    }

    /// Adds what a member with time to spare spends.
    #[inline]
    pub(super) fn spend_spare(&self, at: &Place<K>, sum: &mut Spending<K>) {
        let (parts, weight) = (self.parts(at), self.member.weight);
        let per_width = weight / at.width;
        for k in 0..K {
            sum.on[k] += weight * parts[k];
            sum.slope[k][k] += (weight + per_width) * parts[k];
            for j in 0..=k {
                sum.slope[k][j] -= per_width * parts[k] * parts[j];
            }
        }
    }

    /// Adds what any member spends; `alternatives` is room to work in.
    pub(super) fn spend(&self, at: &Place<K>, alternatives: &mut Vec<Alternative>, sum: &mut Spending<K>) {
        let all = self.alternatives(at, alternatives);
        let (mut on, mut slope) = ([0.0; K], [[0.0; K]; K]);
        for alternative in alternatives.iter().filter(|alternative| alternative.value > 0.0) {
            let part = alternative.value / all;
            for (i, k) in alternative.types.into_iter().enumerate() {
                on[k] += part * alternative.spent[i];
                for (h, j) in alternative.types.into_iter().enumerate().filter(|(_, j)| *j <= k) {
                    let spread = alternative.spent[i] * alternative.spent[h] / at.width;
                    slope[k][j] += part * (spread + alternative.bend[i] * alternative.bend[h]);
                }
            }
        }
        for k in 0..K {
            sum.on[k] += self.member.weight * on[k];
            for j in 0..=k {
                sum.slope[k][j] += self.member.weight * (slope[k][j] - on[k] * on[j] / at.width);
            }
        }
    }

    /// PrimalDual of time where prices are anywhere in a range.
    pub(super) fn time(
        &self,
        at: &Place<K>,
        price_box: &PriceBox<K>,
        alternatives: &mut Vec<Alternative>,
    ) -> [f64; K] {
        let mut spent = [0.0; K];
        if self.member.has_spare(price_box) {
            spent = self.parts(at);
        } else {
            let all = self.alternatives(at, alternatives);
            for alternative in alternatives.iter() {
                for (k, on) in alternative.types.into_iter().zip(alternative.spent) {
                    spent[k] += alternative.value / all * on;
                }
            }
        }
        std::array::from_fn(|k| spent[k] / (self.member.workers * at.price[k]))
    }

    /// All choices, their values made weights; the sum of those.
    fn alternatives(&self, at: &Place<K>, alternatives: &mut Vec<Alternative>) -> f64 {
        alternatives.clear();
        let mut most = f64::NEG_INFINITY;
        let mut push = |alternative: Alternative| {
            if alternative.value > most - WORSE * at.width {
                alternatives.push(alternative);
            }
            most = most.max(alternative.value);
            most - WORSE * at.width
        };
        let Member { speed, workers, .. } = &self.member;
        let mut least = f64::NEG_INFINITY;
        for k in (0..K).filter(|k| speed[*k] > 0.0) {
            let rent = workers * at.price[k];
            least = push(if rent >= 1.0 {
                let value = self.log[k] - (self.log_workers + at.log[k]) - 1.0;
                Alternative { value, types: [k, k], spent: [1.0, 0.0], bend: [1.0, 0.0] }
            } else {
                self.all(k, rent)
            });
        }
        for slow in (0..K).filter(|slow| speed[*slow] > 0.0) {
            for fast in (0..K).filter(|fast| self.member.is_faster(*fast, slow)) {
                let rents = [workers * at.price[slow], workers * at.price[fast]];
                if rents[1] > rents[0]
                    && let Some(alternative) = self.both(slow, fast, rents, least)
                {
                    least = push(alternative);
                }
            }
        }
        let mut all = 0.0;
        for alternative in alternatives.iter_mut() {
            // (of differences, a shift is no small part)
            let lost = alternative.spent[0] * at.shift[alternative.types[0]]
                + alternative.spent[1] * at.shift[alternative.types[1]];
            alternative.value = weight((alternative.value - most) - lost, at.width);
            all += alternative.value;
        }
        all
    }

    /// All of the time on one type.
    #[inline]
    fn all(&self, k: usize, rent: f64) -> Alternative {
        Alternative { value: self.log[k] - rent, types: [k, k], spent: [rent, 0.0], bend: [0.0; 2] }
    }

    /// All of the time on two types or one of them; nothing if that is worth less than `least`.
    #[inline]
    fn both(&self, slow: usize, fast: usize, rents: [f64; 2], least: f64) -> Option<Alternative> {
        let speeds = [self.member.speed[slow], self.member.speed[fast]];
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
        Some(Alternative {
            value: reached.ln() - cost,
            types: [slow, fast],
            spent: [rents[0] * (1.0 - part), rents[1] * part],
            bend: [-rents[0] / dearer, rents[1] / dearer],
        })
    }
}

/// The weight of a choice that is so much better, as a rule worse, than the best.
#[inline]
fn weight(better: f64, width: f64) -> f64 {
    if better < -WORSE * width { 0.0 } else { (better / width).exp() }
}
