//! Slices of the event log: time that combinations of jobs ran, at one price.

use apportion::index::{JobId, WorkerTypeId};
use apportion::simulator::{Event, Slice};
use apportion::units::DollarsPerWorkerHour;
use apportion::workload::Combination;
use apportion::{Seconds, Steps};

use super::Core;
use super::record::UnloggedRecord;
use crate::protocol::JobNumber;

/// The time that a combination has run in the current round at one price, for the event log.
#[derive(Clone, Copy, Debug)]
pub(super) struct SliceLog {
    pub(super) worker_type: WorkerTypeId,
    pub(super) price: Option<DollarsPerWorkerHour>,
    pub(super) n_workers: u32,
    pub(super) start: Seconds,
    pub(super) end: Seconds,
    pub(super) time: Seconds,
}

impl SliceLog {
    /// A correction of the event log by this slice's time. It has no span, since the workers may have been another job's since, and
    /// the jobs may have run elsewhere. `jobs` are ids of the log.
    pub(super) fn correction(self, jobs: Combination<JobId>, incarnations: [Option<u32>; 2]) -> Slice {
        Slice {
            jobs,
            incarnations: Some(incarnations),
            worker_type: self.worker_type,
            n_workers: self.n_workers,
            start: self.end,
            end: self.end,
            time: self.time,
            overhead: Seconds::ZERO,
            price: self.price,
            steps: [Steps::ZERO; 2],
            throughput: [0.0; 2],
            succeeded: true,
        }
    }
}

impl Core {
    /// The incarnations of the jobs of a lease; none for a job that has no run in it.
    pub(super) fn incarnations(&self, jobs: Combination<JobId>) -> [Option<u32>; 2] {
        let mut incarnations = [None; 2];
        for (incarnation, id) in incarnations.iter_mut().zip(jobs.members()) {
            let run = self.numbers.get(&id).and_then(|number| self.jobs.get(number)?.run.as_ref());
            *incarnation = run.filter(|run| run.lease.0 == jobs).map(|run| run.run.incarnation);
        }
        incarnations
    }

    /// Until when the event log has what ran on the workers of a job's run, or is to have it of other leases: at first, the instant of
    /// its order.
    pub(super) fn logged_until(&self, number: JobNumber) -> Seconds {
        let run_of = |number: &JobNumber| self.jobs.get(number).and_then(|job| job.run.as_ref());
        let lease = run_of(&number).map(|run| run.lease.0);
        self.sharing(number).iter().filter_map(run_of).fold(Seconds::ZERO, |until, run| {
            let others = self.slices.get(&run.lease.0).filter(|_| Some(run.lease.0) != lease);
            until.max(run.logged.at).max(others.map_or(Seconds::ZERO, |slice| slice.end))
        })
    }

    /// Whether the record of a job has the time of its lease that is in no event log and no mechanism yet. Of two jobs that share
    /// workers, the record of the first has it.
    pub(super) fn accounts_for(&self, number: JobNumber) -> bool {
        let run_of = |number: &JobNumber| self.jobs.get(number).and_then(|job| job.run.as_ref());
        let Some(jobs) = run_of(&number).map(|run| run.lease.0) else { return false };
        let members = jobs.members().filter_map(|id| self.numbers.get(&id));
        let mut runs = members.filter(|member| run_of(member).is_some_and(|run| run.lease.0 == jobs));
        runs.next() == Some(&number)
    }

    /// The time of a job's lease that has been counted and is not in the event log yet, for its record.
    pub(super) fn unlogged(&self, number: JobNumber) -> UnloggedRecord {
        let run = self.jobs.get(&number).and_then(|job| job.run.as_ref());
        let slice = run.and_then(|run| self.slices.get(&run.lease.0)).filter(|_| self.accounts_for(number));
        slice.map_or_else(UnloggedRecord::default, |slice| UnloggedRecord {
            start: slice.start,
            end: slice.end,
            time: slice.time,
            price: slice.price,
        })
    }

    /// A job's id in the event log: its number, which stays the same over all starts.
    pub(super) fn log_id(&self, id: JobId) -> JobId {
        self.numbers.get(&id).map_or(id, |number| number.in_log())
    }

    /// Counts and writes the slices of all combinations that run.
    pub(super) fn flush_slices(&mut self) {
        let numbers: Vec<_> = self.jobs.keys().copied().collect();
        for number in numbers {
            self.count(number);
        }
        for jobs in self.slices.keys().copied().collect::<Vec<_>>() {
            self.flush_slice(jobs);
        }
    }

    /// Writes the last slice of a run that is over: steps that no slice has are in one without time.
    pub(super) fn flush_last(&mut self, number: JobNumber) {
        let Some(run) = self.jobs.get(&number).and_then(|job| job.run.as_ref()) else { return };
        let ((jobs, worker_type), now) = (run.lease, self.now);
        let price = run.charges.last().map_or(self.price_of(worker_type), |last| last.price);
        let n_workers = u32::try_from(run.ranks.len()).unwrap_or(u32::MAX);
        let none = SliceLog { worker_type, price, n_workers, start: now, end: now, time: Seconds::ZERO };
        self.slices.entry(jobs).or_insert(none);
        self.flush_slice(jobs);
    }

    /// Counts the time of a combination up to now, and writes it as a slice.
    pub(super) fn flush_slice(&mut self, jobs: Combination<JobId>) {
        let numbers: Vec<_> = jobs.members().filter_map(|id| self.numbers.get(&id).copied()).collect();
        for number in &numbers {
            self.count(*number);
        }
        self.write_counted(jobs);
    }

    /// Writes the counted time of a combination as a slice.
    pub(super) fn write_counted(&mut self, jobs: Combination<JobId>) {
        let numbers: Vec<_> = jobs.members().filter_map(|id| self.numbers.get(&id).copied()).collect();
        let Some(log) = self.slices.remove(&jobs) else { return };
        let SliceLog { worker_type, price, n_workers, start, end, time } = log;
        let (mut steps, mut made, mut incarnations) = ([0.0; 2], [(0.0, 0.0); 2], [None; 2]);
        for (position, id) in jobs.members().enumerate() {
            let number = self.numbers.get(&id);
            let Some(job) = number.and_then(|number| self.jobs.get_mut(number)) else { continue };
            let Some(run) = job.run.as_mut().filter(|run| run.lease.0 == jobs) else { continue };
            (steps[position], made[position]) = run.log(end, job.record.checkpointed);
            incarnations[position] = Some(run.run.incarnation);
        }
        if time.get().abs() < 1e-9 && steps.iter().all(|steps| *steps <= 0.0) {
            return;
        }
        let speed = |(steps, seconds): (f64, f64)| if seconds > 0.0 { steps / seconds } else { 0.0 };
        // If a program does not report its progress, the time in which it made no steps is unknown.
        let worked = made.iter().map(|(_, seconds)| *seconds).fold(0.0, f64::max);
        let overhead = if worked > 0.0 { (time.get() - worked).max(0.0) } else { 0.0 };
        let slice = Slice {
            jobs: jobs.map(|id| self.log_id(id)),
            incarnations: Some(incarnations),
            worker_type,
            n_workers,
            start,
            end,
            time,
            overhead: Seconds::new(overhead),
            price,
            steps: steps.map(Steps::new),
            throughput: made.map(speed),
            succeeded: true,
        };
        self.write_slice(slice);
        for number in numbers {
            self.record_job(number);
        }
    }

    /// Writes a slice to the event log. If it has more time than it lasts, the rest is written as a correction: a slice that begins
    /// and ends at one instant.
    fn write_slice(&mut self, slice: Slice) {
        let lasted = slice.end - slice.start;
        let rest = slice.time - lasted;
        if lasted.get() <= 0.0 || rest.get() < 1e-9 {
            return self.event(slice.end, &Event::Slice(slice));
        }
        let overhead = slice.overhead.min(lasted);
        self.event(slice.end, &Event::Slice(Slice { time: lasted, overhead, ..slice }));
        let correction = Slice {
            start: slice.end,
            time: rest,
            overhead: slice.overhead - overhead,
            steps: [Steps::ZERO; 2],
            throughput: [0.0; 2],
            ..slice
        };
        self.event(slice.end, &Event::Slice(correction));
    }

    /// Restores time of runs that an earlier start of the scheduler counted and did not write into the event log.
    pub(super) fn restore_slices(&mut self) {
        for number in self.jobs.keys().copied().collect::<Vec<_>>() {
            let Some((jobs, log)) = self.unwritten(number) else { continue };
            match self.slices.get_mut(&jobs) {
                Some(other) if other.price == log.price => {
                    (other.start, other.end) = (other.start.min(log.start), other.end.max(log.end));
                    other.time += log.time;
                    continue;
                }
                Some(_) => self.write_counted(jobs),
                None => {}
            }
            self.slices.insert(jobs, log);
        }
    }

    /// The time that an earlier start of the scheduler noted in a job's record as counted and not in the event log.
    fn unwritten(&self, number: JobNumber) -> Option<(Combination<JobId>, SliceLog)> {
        let job = self.jobs.get(&number)?;
        let (run, record) = (job.run.as_ref()?, job.record.run.as_ref()?);
        let ((jobs, worker_type), before) = (run.lease, run.counted_before?);
        let price = run.charges.last().map_or(self.price_of(worker_type), |last| last.price);
        let unlogged = record.unlogged.unwrap_or_else(|| {
            // An earlier version did not note it. It is the time counted beyond the time in the log; of two jobs that share
            // workers, one has it.
            let start = before.running.max(run.logged.at);
            let time = if self.slices.contains_key(&jobs) { Seconds::ZERO } else { before.until - start };
            UnloggedRecord { start, end: before.until, time, price }
        });
        let UnloggedRecord { start, end, time, price } = unlogged;
        let n_workers = u32::try_from(run.ranks.len()).unwrap_or(u32::MAX);
        (time.get() > 0.0).then_some((jobs, SliceLog { worker_type, price, n_workers, start, end, time }))
    }
}
