//! Changes of the cluster: workers that fail and are repaired, prices.

use std::sync::Arc;

use super::event::{Event, Observer};
use super::faults::Turn;
use super::progress::Running;
use super::simulation::{EVENTS_AT_ONCE, Simulation};
use crate::units::DollarsPerWorkerHour;

impl Simulation {
    /// Applies failures and repairs of workers, and changes of prices, up to now; if there are very many, only a part. True if all
    /// are applied.
    pub(super) fn apply_changes(&mut self, observer: &mut dyn Observer) -> bool {
        let now = self.now();
        let mut changed = false;
        let mut n_turns = 0;
        if let Some(faults) = &self.setting.options.faults.workers {
            while n_turns < EVENTS_AT_ONCE
                && let Some(Turn { at, worker, up }) =
                    self.faults.next_turn(faults, self.driver.workers(), now)
            {
                n_turns += 1;
                self.driver.set_up(worker, up);
                changed = true;
                let event =
                    if up { Event::WorkerUp { at, worker } } else { Event::WorkerDown { at, worker } };
                observer.observe(&event);
            }
        }
        while let Some(change) = self.setting.options.prices.get(self.clock.n_prices)
            && change.at.get() <= now.get()
        {
            self.clock.n_prices += 1;
            self.vigil.note(self.clock.now, self.clock.round);
            if let Some(worker_type) = self.cluster.find(&change.worker_type) {
                observer.observe(&Event::PriceChange { at: change.at, worker_type, price: change.price });
                self.driver.note_change();
                changed = true;
            }
        }
        if changed {
            self.refresh_cluster();
        }
        n_turns < EVENTS_AT_ONCE
    }

    /// Updates the cluster: workers that are up, prices that hold.
    pub(super) fn refresh_cluster(&mut self) {
        let workers = self.driver.workers();
        let mut cluster = self.setting.cluster.with_counts(|id| workers.n_up(id));
        let past = &self.setting.options.prices[..self.clock.n_prices];
        for (worker_type, kind) in self.setting.cluster.types().enumerate() {
            if let Some(change) = past.iter().rev().find(|change| change.worker_type == kind.name) {
                cluster.set_price(worker_type, change.price);
            }
        }
        self.cluster = Arc::new(cluster);
    }

    /// The price of a worker of a slice that ends now, averaged over the slice if it changes in it; none if its type has none.
    pub(super) fn price_of(&self, slice: &Running) -> Option<DollarsPerWorkerHour> {
        let kind = &self.cluster.types()[slice.worker_type];
        let mut price = kind.price?;
        let (mut from, mut sum) = (slice.start, 0.0);
        let ahead = self.setting.options.prices[self.clock.n_prices..].iter();
        for change in ahead.take_while(|change| change.at.get() < slice.end) {
            if change.worker_type == kind.name {
                let at = change.at.get().max(slice.start);
                sum += price.get() * (at - from);
                (from, price) = (at, change.price);
            }
        }
        if from <= slice.start {
            return Some(price);
        }
        sum += price.get() * (slice.end - from);
        Some(DollarsPerWorkerHour::new(sum / (slice.end - slice.start)))
    }
}
