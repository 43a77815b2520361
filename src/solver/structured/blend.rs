//! What members buy where several choices are as good: a blend of them, smooth in the prices.
//!
//! A member's value at prices is the largest of those of its choices u`[r]`. In its place stands μ·log Σ exp(u`[r]`/μ), at
//! most μ times the logarithm of their number above it, whose derivatives are those of a blend of the choices by the
//! weights exp(u`[r]`/μ): shares of time that are feasible, and worth no less than the blend of their values, as the
//! logarithm is concave.
//!
//! Derivatives are with respect to the logarithms of prices, so that −∂u/∂log z`[k]` is what is spent on type k.

use crate::solver::structured::choice::{Member, Span};

/// Choices worse by more than this many μ have no weight.
const WORSE: f64 = 40.0;

/// A member whose choice is open, with the logarithms of its speeds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open<const K: usize> {
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
pub(super) struct Way {
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

impl<const K: usize> Open<K> {
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

    /// Adds what any member spends; `ways` is room to work in.
    pub(super) fn spend(&self, at: &Place<K>, ways: &mut Vec<Way>, sum: &mut Spending<K>) {
        let all = self.ways(at, ways);
        let (mut on, mut slope) = ([0.0; K], [[0.0; K]; K]);
        for way in ways.iter().filter(|way| way.value > 0.0) {
            let part = way.value / all;
            for (i, k) in way.types.into_iter().enumerate() {
                on[k] += part * way.spent[i];
                for (h, j) in way.types.into_iter().enumerate().filter(|(_, j)| *j <= k) {
                    let spread = way.spent[i] * way.spent[h] / at.width;
                    slope[k][j] += part * (spread + way.bend[i] * way.bend[h]);
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

    /// Shares of time where prices are anywhere in a range.
    pub(super) fn time(&self, at: &Place<K>, span: &Span<K>, ways: &mut Vec<Way>) -> [f64; K] {
        let mut spent = [0.0; K];
        if self.member.has_spare(span) {
            spent = self.parts(at);
        } else {
            let all = self.ways(at, ways);
            for way in ways.iter() {
                for (k, on) in way.types.into_iter().zip(way.spent) {
                    spent[k] += way.value / all * on;
                }
            }
        }
        std::array::from_fn(|k| spent[k] / (self.member.workers * at.price[k]))
    }

    /// All choices, their values made weights; the sum of those.
    fn ways(&self, at: &Place<K>, ways: &mut Vec<Way>) -> f64 {
        ways.clear();
        let mut most = f64::NEG_INFINITY;
        let mut push = |way: Way| {
            if way.value > most - WORSE * at.width {
                ways.push(way);
            }
            most = most.max(way.value);
            most - WORSE * at.width
        };
        let Member { speed, workers, .. } = &self.member;
        let mut least = f64::NEG_INFINITY;
        for k in (0..K).filter(|k| speed[*k] > 0.0) {
            let rent = workers * at.price[k];
            least = push(if rent >= 1.0 {
                let value = self.log[k] - (self.log_workers + at.log[k]) - 1.0;
                Way { value, types: [k, k], spent: [1.0, 0.0], bend: [1.0, 0.0] }
            } else {
                self.all(k, rent)
            });
        }
        for slow in (0..K).filter(|slow| speed[*slow] > 0.0) {
            for fast in (0..K).filter(|fast| self.member.is_faster(*fast, slow)) {
                let rents = [workers * at.price[slow], workers * at.price[fast]];
                if rents[1] > rents[0]
                    && let Some(way) = self.both(slow, fast, rents, least)
                {
                    least = push(way);
                }
            }
        }
        let mut all = 0.0;
        for way in ways.iter_mut() {
            // (of differences, a shift is no small part)
            let lost = way.spent[0] * at.shift[way.types[0]] + way.spent[1] * at.shift[way.types[1]];
            way.value = weight((way.value - most) - lost, at.width);
            all += way.value;
        }
        all
    }

    /// All of the time on one type.
    #[inline]
    fn all(&self, k: usize, rent: f64) -> Way {
        Way { value: self.log[k] - rent, types: [k, k], spent: [rent, 0.0], bend: [0.0; 2] }
    }

    /// All of the time on two types or one of them; nothing if that is worth less than `least`.
    #[inline]
    fn both(&self, slow: usize, fast: usize, rents: [f64; 2], least: f64) -> Option<Way> {
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
        Some(Way {
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
