//! Reports to a scheduler: runs, measured throughputs, workers, prices and owners.

use std::sync::Arc;

use super::errors::ReportError;
use super::job_scheduler::Scheduler;
use crate::cluster::PRICES;
use crate::index::{EntityId, Id, JobId, WorkerId, WorkerTypeId};
use crate::problem::Entity;
use crate::units::{DollarsPerWorkerHour, Seconds, Steps, StepsPerSecond};
use crate::workload::Combination;

/// The time and steps of a job, or of two that shared, on workers of one type, since the last report of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Received {
    /// The jobs.
    pub jobs: Combination<JobId>,
    /// The type of the workers.
    pub worker_type: WorkerTypeId,
    /// The time that they held the workers, counted once for all workers.
    pub time: Seconds,
    /// Steps that each member has done; 0 for a second member that does not exist.
    pub steps: [Steps; 2],
}

impl Scheduler {
    /// Counts a run of jobs, in any round. If one job of a pair is gone, the time is forgotten with the pair; the other's steps
    /// count.
    ///
    /// # Errors
    /// If there never was such a job or worker type, or a number is out of range: then nothing is counted.
    pub fn record(&mut self, received: Received) -> Result<(), ReportError> {
        let Received { jobs, worker_type, time, steps } = received;
        self.check_report(jobs, worker_type)?;
        check_numbers([("time", time.get()), ("steps", steps[0].get()), ("steps", steps[1].get())])?;
        self.driver.record(jobs, worker_type, time);
        for (id, steps) in jobs.members().zip(steps) {
            if let Some(position) = self.table.find(id) {
                self.table.jobs[position].progress.steps_run += steps.get();
            }
        }
        Ok(())
    }

    /// Counts time ahead for jobs that still hold workers of a type: they are assumed to hold them for this long, beyond the time
    /// that was [recorded](Self::record). It is for a round that is decided before the present one has ended. The time counts until
    /// the next record of the same jobs there, which counts in its place. Policies that decide inside rounds are shown recorded
    /// runs only.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn project(
        &mut self,
        jobs: Combination<JobId>,
        worker_type: WorkerTypeId,
        time: Seconds,
    ) -> Result<(), ReportError> {
        self.check_report(jobs, worker_type)?;
        check_numbers([("time", time.get())])?;
        self.driver.project(jobs, worker_type, time);
        Ok(())
    }

    /// Notes the speeds, in steps/s, at which the members of a combination were measured on workers of a type, on any servers; 0
    /// for a member that was not measured. Policies that decide inside rounds are shown it at the next round.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn observe(
        &mut self,
        jobs: Combination<JobId>,
        worker_type: WorkerTypeId,
        speeds: [StepsPerSecond; 2],
    ) -> Result<(), ReportError> {
        self.check_report(jobs, worker_type)?;
        check_numbers(speeds.map(|speed| ("speed", speed.get())))?;
        self.driver.observe(jobs, worker_type, speeds);
        Ok(())
    }

    /// Takes the measured throughput of a job that ran alone on workers of a type, on the fewest servers. It is averaged with the
    /// estimate for the job there, which at first is the throughputs' or the job's own:
    ///
    ///   estimate ← ½ · measured + ½ · estimate
    ///
    /// Policies are shown the estimate; they are asked again if it changes by more than a hundredth. For a job that is gone nothing
    /// changes.
    ///
    /// # Errors
    /// If there never was such a job or worker type, the job has no throughput there, or the speed is not a finite number
    /// above 0: then nothing has changed.
    pub fn measure(
        &mut self,
        id: JobId,
        worker_type: WorkerTypeId,
        speed: StepsPerSecond,
    ) -> Result<(), ReportError> {
        self.check_report(Combination::single(id), worker_type)?;
        if !(speed.get().is_finite() && speed.get() > 0.0) {
            return Err(ReportError::Value { field: "speed", value: speed.get() });
        }
        let Some(position) = self.table.find(id) else { return Ok(()) };
        if self.table.jobs[position].alone[worker_type.index()] <= 0.0 {
            return Err(ReportError::CannotRun { id, worker_type });
        }
        if self.table.measure(position, worker_type, speed.get()) {
            self.driver.note_change();
        }
        Ok(())
    }

    /// Refuses a report about jobs and workers that never existed.
    fn check_report(&self, jobs: Combination<JobId>, worker_type: WorkerTypeId) -> Result<(), ReportError> {
        if let Some(id) = jobs.members().find(|id| id.index() >= self.n_submitted) {
            return Err(ReportError::UnknownJob { id });
        }
        if worker_type.index() >= self.cluster.n_types() {
            return Err(ReportError::UnknownType { worker_type });
        }
        Ok(())
    }

    /// Takes a worker away, or gives it back. A worker that is down is in no lease from the next round on.
    ///
    /// # Errors
    /// If the cluster has no such worker.
    pub fn set_up(&mut self, worker: WorkerId, up: bool) -> Result<(), ReportError> {
        if worker.index() >= self.workers().len() {
            return Err(ReportError::UnknownWorker { worker });
        }
        self.driver.set_up(worker, up);
        self.refresh_up();
        Ok(())
    }

    /// Sets the price of a worker type from now on. The policy is asked anew if prices matter to it.
    ///
    /// # Errors
    /// If the cluster has no such worker type, or the price is not [in range](crate::cluster::PRICES).
    pub fn set_price(
        &mut self,
        worker_type: WorkerTypeId,
        price: DollarsPerWorkerHour,
    ) -> Result<(), ReportError> {
        let Some(kind) = self.cluster.types().get(worker_type) else {
            return Err(ReportError::UnknownType { worker_type });
        };
        if !PRICES.contains(&price.get()) {
            return Err(ReportError::Value { field: "price", value: price.get() });
        }
        if kind.price != Some(price) {
            Arc::make_mut(&mut self.cluster).set_price(worker_type, price);
            self.driver.note_change();
            self.refresh_up();
        }
        Ok(())
    }

    /// Updates the cluster that is up from the state of workers.
    pub(super) fn refresh_up(&mut self) {
        let workers = self.driver.workers();
        self.up = Arc::new(self.cluster.with_counts(|id| workers.n_up(id)));
    }

    /// Declares an owner of jobs, or changes the known one with that name: its weight, how it divides its share, and its parent.
    /// Owners that are only named by their jobs have weight 1.
    ///
    /// # Errors
    /// If the weight is not a finite number above 0, there is no such parent, or the parent is below it.
    pub fn declare(&mut self, entity: Entity) -> Result<EntityId, ReportError> {
        if !(entity.weight.is_finite() && entity.weight > 0.0) {
            return Err(ReportError::Value { field: "weight", value: entity.weight });
        }
        let known = self.table.owners.find(&entity.name);
        let entities = self.table.owners.all();
        let mut above = entity.parent;
        while let Some(parent) = above {
            if parent.index() >= entities.len() || Some(parent) == known {
                return Err(ReportError::UnknownEntity { parent });
            }
            above = entities[parent].parent;
        }
        self.driver.note_change();
        Ok(self.table.owners.declare(entity))
    }
}

/// Refuses numbers that are not finite, or below 0.
fn check_numbers<const N: usize>(numbers: [(&'static str, f64); N]) -> Result<(), ReportError> {
    match numbers.into_iter().find(|(_, value)| !(value.is_finite() && *value >= 0.0)) {
        None => Ok(()),
        Some((field, value)) => Err(ReportError::Value { field, value }),
    }
}
