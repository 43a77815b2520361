//! Prices of workers, which change with time.

use apportion::Seconds;
use apportion::index::WorkerTypeId;
use apportion::simulator::{Event, PriceChange};
use apportion::units::DollarsPerWorkerHour;

use super::charges::Charge;
use super::job::{LiveJob, LiveRun};
use super::{Core, Step};
use crate::protocol::JobNumber;

impl Core {
    /// Takes over how prices change, in order of time on the scheduler's clock; changes before now hold at once. The prices before
    /// all changes are those of the scheduler's cluster. Time that jobs ran before this start of the scheduler is at the price of
    /// then.
    pub fn set_prices(&mut self, changes: Vec<PriceChange>) -> Step {
        self.prices = changes.into();
        self.change_prices();
        std::mem::take(&mut self.step)
    }

    /// Applies the price changes that are due. Time that ran before is at the price of then.
    pub(super) fn apply_prices(&mut self) {
        let now = self.now;
        if self.prices.front().is_none_or(|change| change.at > now) {
            return;
        }
        self.flush_slices();
        self.change_prices();
        self.note_prices();
    }

    /// Puts the new cost rate of running jobs on disk: if the scheduler ends, it holds until its next start.
    fn note_prices(&mut self) {
        let is_running = |run: &LiveRun| run.running.is_some();
        let number = |(number, job): (&JobNumber, &LiveJob)| {
            job.run.as_ref().filter(|run| is_running(run)).map(|_| *number)
        };
        for number in self.jobs.iter().filter_map(number).collect::<Vec<_>>() {
            let Some(run) = self.jobs.get(&number).and_then(|job| job.run.as_ref()) else { continue };
            let (jobs, worker_type) = run.lease;
            let price = self.price_of(worker_type);
            let Some(run) = self.jobs.get_mut(&number).and_then(|job| job.run.as_mut()) else { continue };
            run.charges.add(Charge { price, is_shared: jobs.is_pair(), time: Seconds::ZERO });
            self.record_job(number);
        }
    }

    fn change_prices(&mut self) {
        let now = self.now;
        while let Some(change) = self.prices.pop_front_if(|change| change.at <= now) {
            let Some(worker_type) = self.scheduler.cluster().find(&change.worker_type) else { continue };
            let price = change.price;
            // If several changes of one type are due, only the last takes effect.
            let is_last =
                !self.prices.iter().any(|later| later.at <= now && later.worker_type == change.worker_type);
            if is_last && self.scheduler.set_price(worker_type, price).is_ok() {
                self.event(now, &Event::PriceChange { at: now, worker_type, price });
            }
        }
    }

    /// The price of a worker of a type now; none if the type has no price.
    pub(super) fn price_of(&self, worker_type: WorkerTypeId) -> Option<DollarsPerWorkerHour> {
        self.scheduler.cluster().types()[worker_type].price
    }

    /// Whether any worker type has a price.
    pub(super) fn is_priced(&self) -> bool {
        self.scheduler.cluster().types().iter().any(|kind| kind.price.is_some())
    }
}
