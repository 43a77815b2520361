//! What a job's time on workers costs. Its time and its cost change together, here alone.

use apportion::Seconds;
use apportion::units::{Dollars, DollarsPerWorkerHour};
use serde::{Deserialize, Serialize};

use super::record::JobRecord;

/// Time of a start of a job at one price.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Charge {
    /// What a worker cost an hour; none where it had no price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<DollarsPerWorkerHour>,
    /// Did the job share the workers? Then half of the cost is its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_shared: bool,
    /// How much time; below 0 where it is taken back.
    pub time: Seconds,
}

impl Charge {
    /// What the time costs on so many workers; none where they had no price.
    fn cost(self, n_workers: u32) -> Option<Dollars> {
        let part = if self.is_shared { 0.5 } else { 1.0 };
        Some(self.price? * self.time.of_workers(part * f64::from(n_workers)))
    }
}

/// All time of a start of a job, in order. The first part is at the price of its order, the last one at the newest price.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Charges(Vec<Charge>);

impl Charges {
    /// Those of a start that is ordered now.
    pub(super) fn begin(price: Option<DollarsPerWorkerHour>, is_shared: bool) -> Self {
        Self(vec![Charge { price, is_shared, time: Seconds::ZERO }])
    }

    /// Is nothing known of them, as in the states of earlier versions?
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The last price; none where no price is known.
    pub(super) fn last_price(&self) -> Option<Option<DollarsPerWorkerHour>> {
        self.0.last().map(|last| last.price)
    }

    /// Did the job share its workers last? None where that is not known.
    pub(super) fn is_shared(&self) -> Option<bool> {
        self.0.last().map(|last| last.is_shared)
    }

    /// Adds time that follows on what there is.
    pub(super) fn add(&mut self, more: Charge) {
        let is_same = |last: &&mut Charge| (last.price, last.is_shared) == (more.price, more.is_shared);
        match self.0.last_mut().filter(is_same) {
            Some(last) => last.time += more.time,
            None => self.0.push(more),
        }
    }

    /// Sets the whole right by so much time: what is missing was had before the rest, and what is too much is taken back from the end.
    /// Answers what has changed. `other` says whether workers were shared then, and has the price where none is known.
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
            charge.time = charge.time - less;
            left = left - less;
            changes.push(Charge { time: Seconds::ZERO - less, ..*charge });
            if left.get() <= 0.0 {
                return changes;
            }
        }
        // Sums lose a little to rounding.
        if left.get() > 1e-9 {
            changes.push(Charge { time: Seconds::ZERO - left, ..other });
        }
        changes
    }
}

impl JobRecord {
    /// Adds time on so many workers of a type to what the job has received and to what that has cost, or takes it back.
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
