//! What workers cost: prices that change with time, and what each job has cost so far.

use apportion::Seconds;
use apportion::index::{JobId, WorkerTypeId};
use apportion::simulator::{Event, PriceChange};
use apportion::units::Dollars;
use apportion::workload::Combination;

use super::{Core, Step};

impl Core {
    /// Takes over how prices change, in order of time on the scheduler's clock; changes of before now hold at once. The prices
    /// before all changes are what the scheduler's cluster states. What an earlier start counted, and did not write into the event log,
    /// costs there what it would now.
    pub fn set_prices(&mut self, changes: Vec<PriceChange>) -> Step {
        self.prices = changes.into();
        self.change_prices();
        std::mem::take(&mut self.step)
    }

    /// Makes prices what they are now. What ran before costs what it did then.
    pub(super) fn apply_prices(&mut self) {
        let now = self.now;
        if self.prices.front().is_none_or(|change| change.at > now) {
            return;
        }
        self.flush_slices();
        self.change_prices();
    }

    fn change_prices(&mut self) {
        let now = self.now;
        while let Some(change) = self.prices.pop_front_if(|change| change.at <= now) {
            let Some(worker_type) = self.scheduler.cluster().find(&change.worker_type) else { continue };
            let price = change.price;
            // Of several changes of one type that are due, only the last takes effect.
            let is_last =
                !self.prices.iter().any(|later| later.at <= now && later.worker_type == change.worker_type);
            if is_last && self.scheduler.set_price(worker_type, price).is_ok() {
                self.event(now, &Event::PriceChange { at: now, worker_type, price });
            }
        }
    }

    /// The cost of `time` on `n_workers` workers of a type for each of the jobs that share them, at the present price; none if the type has
    /// no price.
    pub(super) fn cost_of(
        &self,
        time: Seconds,
        n_workers: usize,
        (jobs, worker_type): (Combination<JobId>, WorkerTypeId),
    ) -> Option<Dollars> {
        let price = self.scheduler.cluster().types()[worker_type].price?;
        let part = if jobs.is_pair() { 0.5 } else { 1.0 };
        let n_workers = u32::try_from(n_workers).unwrap_or(u32::MAX);
        Some(price * time.of_workers(part * f64::from(n_workers)))
    }

    /// Has a worker type a price?
    pub(super) fn is_priced(&self) -> bool {
        self.scheduler.cluster().types().iter().any(|kind| kind.price.is_some())
    }
}
