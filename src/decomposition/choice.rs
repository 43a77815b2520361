//! The demand of one member at given prices, where the logarithm of its throughput is worth its weight.
//!
//! By a unit of its weight, a member of speeds T on σ workers maximizes
//!
//!   log Σ T`[k]`·x`[k]` − σ·Σ z`[k]`·x`[k]`        over x ≥ 0, Σ x ≤ 1
//!
//! at prices z of a worker's whole time. With time to spare it spends a unit on the type with the most speed per price. A
//! member that needs more than all of its time moves along the upper hull of the points (z`[k]`, T`[k]`) to dearer and
//! faster types while a unit of speed costs less than it is worth, and ends on one type for all of its time, or on two.

/// Speeds that differ by less than this part of them are the same.
const SAME: f64 = 1e-12;
/// Two types nearer than this in speed are no sure choice: what is bought of each would be a difference of large numbers.
const APART: f64 = 1e-6;

/// A member's numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member<const K: usize> {
    /// 0 where it cannot run.
    pub(super) speed: [f64; K],
    /// σ, by a unit of its weight.
    pub(super) workers: f64,
    /// Its weight, as a part of all members'.
    pub(super) weight: f64,
}

/// Prices that all members see.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prices<const K: usize> {
    pub(super) price: [f64; K],
    inverse: [f64; K],
}

/// Ranges of prices.
#[derive(Clone, Copy, Debug)]
pub(super) struct PriceBox<const K: usize> {
    pub(super) low: [f64; K],
    pub(super) high: [f64; K],
}

/// Where time goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// To one type, with time to spare.
    Spare(usize),
    /// All of it to one type.
    All(usize),
    /// All of it to a slow type and a fast one.
    Both(usize, usize),
}

impl<const K: usize> Prices<K> {
    pub(super) fn of(price: [f64; K]) -> Self {
        Self { price, inverse: price.map(f64::recip) }
    }
}

impl<const K: usize> Member<K> {
    /// Does a type count as faster than another?
    #[inline]
    pub(super) fn is_faster(&self, type_: usize, than: usize) -> bool {
        self.speed[type_] > self.speed[than] * (1.0 + SAME)
    }

    /// What is best at prices above 0; nothing if it runs nowhere.
    #[inline]
    pub(super) fn choose(&self, prices: &Prices<K>) -> Option<Choice> {
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
            // (a unit of speed is worth its inverse)
            let cost = self.workers * least;
            match next {
                Some(next) if cost * self.speed[next] < 1.0 => at = next,
                Some(next) if cost * self.speed[at] < 1.0 => return Some(Choice::Both(at, next)),
                _ => break,
            }
        }
        Some(Choice::All(at))
    }

    /// What is best anywhere in a range of prices, if it is the same everywhere, `choice` being best somewhere in it.
    #[inline]
    pub(super) fn is_sure(&self, choice: Choice, price_box: &PriceBox<K>) -> bool {
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

    /// Has it time to spare wherever prices are in a range, whatever it buys?
    #[inline]
    pub(super) fn has_spare(&self, price_box: &PriceBox<K>) -> bool {
        (0..K).all(|k| self.speed[k] == 0.0 || self.workers * price_box.low[k] >= 1.0)
    }

    /// PrimalDual of time.
    #[inline]
    pub(super) fn time(&self, choice: Choice, prices: &Prices<K>) -> [f64; K] {
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

    /// The prices of throughput and of time that prove the choice best.
    #[inline]
    pub(super) fn proof(&self, choice: Choice, prices: &Prices<K>) -> (f64, f64) {
        let rent = |k: usize| self.workers * prices.price[k];
        match choice {
            Choice::Spare(k) => (rent(k) / self.speed[k], 0.0),
            Choice::All(k) => (1.0 / self.speed[k], (1.0 - rent(k)).max(0.0)),
            Choice::Both(slow, fast) => {
                let throughput_price = (rent(fast) - rent(slow)) / (self.speed[fast] - self.speed[slow]);
                (throughput_price, (throughput_price * self.speed[slow] - rent(slow)).max(0.0))
            }
        }
    }
}
