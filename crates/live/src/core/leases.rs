//! The time of leases: how long jobs held which workers, and how much of it counts.

use apportion::index::{JobId, WorkerTypeId};
use apportion::scheduler::Received;
use apportion::simulator::{Event, Slice};
use apportion::workload::Combination;
use apportion::{Seconds, Steps};

use super::Core;
use super::job::{Known, LiveRun};
use crate::protocol::{JobNumber, Phase};

/// What a combination has run in the current round, for the event log.
#[derive(Clone, Copy, Debug)]
pub(super) struct SliceLog {
    worker_type: WorkerTypeId,
    n_workers: u32,
    start: Seconds,
    end: Seconds,
    time: Seconds,
    /// Steps that a checkpoint holds since.
    steps: [f64; 2],
    /// Steps that were made, and what they took, in s: of members that tell their progress.
    made: [(f64, f64); 2],
}

impl Core {
    /// Counts the time of a job's run until now.
    pub(super) fn count(&mut self, number: JobNumber) {
        let now = self.now;
        let Some(job) = self.jobs.get(&number) else { return };
        let Some(run) = &job.run else { return };
        let (jobs, worker_type) = run.lease;
        // The time of two that share is counted once: by the first, and by the other where the first does not run.
        let counts = jobs.first() == job.id || !self.is_running(jobs.first());
        let n_workers = u32::try_from(run.ranks.len()).unwrap_or(u32::MAX);
        let name = self.type_name(worker_type);
        let Some(job) = self.jobs.get_mut(&number) else { return };
        let Some(run) = &mut job.run else { return };
        let since = std::mem::replace(&mut run.counted, now);
        let time = now - run.running.map_or(now, |running| running.max(since));
        if time.get() <= 0.0 || run.is_displaced() {
            return;
        }
        *job.record.received.entry(name).or_insert(Seconds::ZERO) += time;
        if !counts {
            return;
        }
        match run.at_risk.last_mut().filter(|last| (last.0, last.1) == run.lease) {
            Some(last) => last.2 += time,
            None => run.at_risk.push((jobs, worker_type, time)),
        }
        self.accounts.add(jobs, worker_type, time);
        let start = now - time;
        let slice = self.slices.entry(jobs).or_insert(SliceLog {
            worker_type,
            n_workers,
            start,
            end: now,
            time: Seconds::ZERO,
            steps: [0.0; 2],
            made: [(0.0, 0.0); 2],
        });
        slice.time += time;
        slice.end = now;
    }

    /// What the event log calls a job: by its number, which stays the same over all starts.
    pub(super) fn log_id(&self, id: JobId) -> JobId {
        self.numbers.get(&id).map_or(id, |number| number.in_log())
    }

    fn is_running(&self, id: JobId) -> bool {
        let job = self.numbers.get(&id).and_then(|number| self.jobs.get(number));
        job.and_then(|job| job.run.as_ref()).is_some_and(|run| run.running.is_some())
    }

    /// Tells the policy of steps that a checkpoint holds.
    pub(super) fn record_steps(&mut self, id: JobId, lease: (Combination<JobId>, WorkerTypeId), steps: f64) {
        let jobs = Combination::single(id);
        let received = Received {
            jobs,
            worker_type: lease.1,
            time: Seconds::ZERO,
            steps: [Steps::new(steps), Steps::ZERO],
        };
        // (the job is here, and steps grow)
        let _ = self.scheduler.record(received);
        if let Some(slice) = self.slices.get_mut(&lease.0) {
            slice.steps[usize::from(lease.0.first() != id)] += steps;
        }
    }

    /// Notes for the event log how many steps a job has made, and what they took, in s.
    pub(super) fn note_made(&mut self, (id, lease): (JobId, Combination<JobId>), steps: f64, seconds: f64) {
        if let Some(slice) = self.slices.get_mut(&lease)
            && steps >= 0.0
            && seconds >= 0.0
        {
            let made = &mut slice.made[usize::from(lease.first() != id)];
            *made = (made.0 + steps, made.1 + seconds);
        }
    }

    /// Tells the policy of the steps that a job had done before the scheduler's start.
    pub(super) fn tell_steps(&mut self, id: JobId, run: Option<&LiveRun>, checkpointed: f64) {
        let known = self.scheduler.steps_done(id).map_or(0.0, Steps::get);
        let more = checkpointed - known;
        if more > 0.0 {
            let jobs = Combination::single(id);
            let worker_type = run.map_or_else(|| apportion::index::Id::from_index(0), |run| run.lease.1);
            let steps = [Steps::new(more), Steps::ZERO];
            let _ = self.scheduler.record(Received { jobs, worker_type, time: Seconds::ZERO, steps });
        }
    }

    /// Tells the mechanism what combinations have received, those that go on until `start` to that instant.
    pub(super) fn tell_received(&mut self, start: Seconds) {
        let running: Vec<_> = self.jobs.keys().copied().collect();
        for number in running {
            self.count(number);
        }
        let ahead = start - self.now;
        for (jobs, worker_type) in self.accounts.keys() {
            let goes_on = jobs.members().any(|id| self.goes_on(id, (jobs, worker_type)));
            let due = self.accounts.due(jobs, worker_type, if goes_on { ahead } else { Seconds::ZERO });
            if due.get() > 0.0 {
                let received = Received { jobs, worker_type, time: due, steps: [Steps::ZERO; 2] };
                // (the jobs are here: accounts are closed with them)
                let _ = self.scheduler.record(received);
            }
        }
    }

    fn goes_on(&self, id: JobId, lease: (Combination<JobId>, WorkerTypeId)) -> bool {
        let job = self.numbers.get(&id).and_then(|number| self.jobs.get(number));
        job.and_then(|job| job.run.as_ref())
            .is_some_and(|run| run.lease == lease && run.running.is_some() && run.ending.is_none())
    }

    /// A run is over: what it did since its last checkpoint is lost, unless it ended well.
    pub(super) fn close_run(&mut self, run: &LiveRun, keeps: bool) {
        if keeps {
            return;
        }
        for (jobs, worker_type, time) in &run.at_risk {
            self.accounts.add(*jobs, *worker_type, Seconds::ZERO - *time);
        }
    }

    /// Writes what the round's combinations have run.
    pub(super) fn flush_slices(&mut self) {
        let numbers: Vec<_> = self.jobs.keys().copied().collect();
        for number in numbers {
            self.count(number);
        }
        for (jobs, log) in std::mem::take(&mut self.slices) {
            let SliceLog { worker_type, n_workers, start, end, time, steps, made } = log;
            let speed = |(steps, seconds): (f64, f64)| if seconds > 0.0 { steps / seconds } else { 0.0 };
            // Of a program that does not tell its progress nothing is known of the time in which it made no steps.
            let worked = made.iter().map(|(_, seconds)| *seconds).fold(0.0, f64::max);
            let overhead = if worked > 0.0 { (time.get() - worked).max(0.0) } else { 0.0 };
            let slice = Slice {
                jobs: jobs.map(|id| self.log_id(id)),
                worker_type,
                n_workers,
                start,
                end,
                time,
                overhead: Seconds::new(overhead),
                price: self.scheduler.cluster().types()[worker_type].price,
                steps: steps.map(Steps::new),
                throughput: made.map(speed),
                succeeded: true,
            };
            self.event(end, &Event::Slice(slice));
        }
    }

    /// Notes since when all ranks of a run have been running.
    pub(super) fn note_running(&mut self, number: JobNumber) {
        let now = self.now;
        let Some(run) = self.jobs.get_mut(&number).and_then(|job| job.run.as_mut()) else { return };
        let runs = |known: &Known| matches!(known, Known::Reported(Phase::Running | Phase::Stopping));
        if run.running.is_none() && run.ranks.iter().all(|rank| runs(&rank.known)) {
            run.running = Some(now);
            run.counted = now;
        }
    }
}
