//! The cost of a job's time on workers. Its time and its cost change together, here alone.

use apportion::Seconds;
use apportion::units::{Dollars, DollarsPerWorkerHour};
use serde::{Deserialize, Serialize};

use super::record::JobRecord;

/// The most parts that a start's time is remembered in: time before them is not taken back.
const CHARGES_MAX: usize = 32;

/// A part of a start's time, at one price.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Charge {
    /// The price of a worker; none if it had no price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<DollarsPerWorkerHour>,
    /// Whether the job shared the workers. Then it bears half of the cost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_shared: bool,
    /// The time; below 0 where it is taken back.
    pub time: Seconds,
}

impl Charge {
    /// The cost of the time on a number of workers; none if they had no price.
    fn cost(self, n_workers: u32) -> Option<Dollars> {
        let part = if self.is_shared { 0.5 } else { 1.0 };
        Some(self.price? * self.time.of_workers(part * f64::from(n_workers)))
    }
}

/// The newest parts of a start's time, in order. The first is at the price of its order, the last at the newest price.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Charges(Vec<Charge>);

impl Charges {
    /// The charges of a start that is ordered now.
    pub(super) fn begin(price: Option<DollarsPerWorkerHour>, is_shared: bool) -> Self {
        Self(vec![Charge { price, is_shared, time: Seconds::ZERO }])
    }

    /// Whether nothing is known of them, as in the states of earlier versions.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The last part; none where nothing is known.
    pub(super) fn last(&self) -> Option<Charge> {
        self.0.last().copied()
    }

    /// Adds time that follows on what there is.
    pub(super) fn add(&mut self, more: Charge) {
        let is_same = |last: &&mut Charge| (last.price, last.is_shared) == (more.price, more.is_shared);
        match self.0.last_mut().filter(is_same) {
            Some(last) => last.time += more.time,
            None => self.0.push(more),
        }
        if self.0.len() > CHARGES_MAX {
            self.0.remove(1);
        }
    }

    /// Corrects the sum by `more`: missing time is added to the first part, and excess time is taken back from the last ones.
    /// Returns the changes. `other` says whether workers were shared, and has the price where none is known.
    pub(super) fn correct(&mut self, more: Seconds, other: Charge) -> Vec<Charge> {
        if more.get() >= 0.0 {
            let price = self.0.first().map_or(other.price, |first| first.price);
            let change = Charge { price, time: more, ..other };
            match self.0.first_mut().filter(|first| first.is_shared == other.is_shared) {
                Some(first) => first.time += more,
                None => self.0.insert(0, change),
            }
            return vec![change];
        }
        let (mut left, mut changes) = (Seconds::ZERO - more, Vec::new());
        for charge in self.0.iter_mut().rev().filter(|charge| charge.time.get() > 0.0) {
            let less = charge.time.min(left);
            charge.time -= less;
            left -= less;
            changes.push(Charge { time: Seconds::ZERO - less, ..*charge });
            if left.get() <= 0.0 {
                return changes;
            }
        }
        // Sums lose a little by rounding.
        if left.get() > 1e-9 {
            changes.push(Charge { time: Seconds::ZERO - left, ..other });
        }
        changes
    }
}

impl JobRecord {
    /// Adds time on workers of a type to the job's received time and to its cost, or takes it back.
    pub(super) fn receive(&mut self, worker_type: &str, n_workers: u32, charges: &[Charge]) {
        for charge in charges {
            let received = self.received.entry(worker_type.to_owned()).or_insert(Seconds::ZERO);
            *received = (*received + charge.time).max(Seconds::ZERO);
            if let Some(cost) = charge.cost(n_workers) {
                let known = self.cost.get_or_insert_default();
                *known = (*known + cost).max(Dollars::ZERO);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charge(dollars: f64, time: f64) -> Charge {
        let price = Some(DollarsPerWorkerHour::new(dollars));
        Charge { price, is_shared: false, time: Seconds::new(time) }
    }

    #[test]
    fn what_is_missing_is_at_the_first_price_and_what_is_too_much_at_the_last_ones() {
        let mut charges = Charges::begin(Some(DollarsPerWorkerHour::new(1.0)), false);
        charges.add(charge(1.0, 10.0));
        charges.add(charge(5.0, 4.0));
        assert_eq!(charges.correct(Seconds::new(2.0), charge(9.0, 0.0)), [charge(1.0, 2.0)]);
        let taken = charges.correct(Seconds::new(-6.0), charge(9.0, 0.0));
        assert_eq!(taken, [charge(5.0, -4.0), charge(1.0, -2.0)]);
        // Time beyond the known parts is at the price of `other`.
        let taken = charges.correct(Seconds::new(-13.0), charge(9.0, 0.0));
        assert_eq!(taken, [charge(1.0, -10.0), charge(9.0, -3.0)]);
    }

    #[test]
    fn the_price_of_the_order_and_the_newest_times_are_remembered() {
        let mut charges = Charges::begin(Some(DollarsPerWorkerHour::new(1.0)), false);
        (2..200).for_each(|price| charges.add(charge(f64::from(price), 1.0)));
        assert_eq!(charges.0.len(), CHARGES_MAX);
        assert_eq!((charges.0[0], charges.0.last()), (charge(1.0, 0.0), Some(&charge(199.0, 1.0))));
    }
}
