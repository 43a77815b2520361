//! The time of leases: how long jobs held which workers, and how much of it counts.

use apportion::index::{Id, JobId, WorkerTypeId};
use apportion::scheduler::Received;
use apportion::simulator::{Event, Slice};
use apportion::units::Dollars;
use apportion::workload::Combination;
use apportion::{Seconds, Steps};

use super::Core;
use super::job::{Known, LiveJob, LiveRun};
use super::record::CountedRecord;
use crate::protocol::{JobNumber, Phase};

/// What a combination has run in the current round, for the event log.
#[derive(Clone, Copy, Debug)]
pub(super) struct SliceLog {
    worker_type: WorkerTypeId,
    n_workers: u32,
    start: Seconds,
    end: Seconds,
    time: Seconds,
}

impl Core {
    /// Counts the time of a job's run until now.
    pub(super) fn count(&mut self, number: JobNumber) {
        let now = self.now;
        let Some(job) = self.jobs.get(&number) else { return };
        let Some(run) = &job.run else { return };
        let (jobs, worker_type) = run.lease;
        let counts = !self.is_counted_by_another(job, run);
        let is_anothers = !counts && !self.is_counted_with_another(job, run);
        let n_workers = u32::try_from(run.ranks.len()).unwrap_or(u32::MAX);
        let name = self.type_name(worker_type);
        let time = now - run.running.map_or(now, |running| running.max(run.counted));
        let cost = self.cost_of(time, run.ranks.len(), run.lease);
        let Some(job) = self.jobs.get_mut(&number) else { return };
        let Some(run) = &mut job.run else { return };
        run.counted = now;
        if time.get() <= 0.0 || run.is_displaced() {
            return;
        }
        *job.record.received.entry(name).or_insert(Seconds::ZERO) += time;
        if let Some(cost) = cost {
            *job.record.cost.get_or_insert_default() += cost;
        }
        if is_anothers {
            // The log has it with the slices of the run that stays.
            run.logged.at = now;
        }
        if !counts {
            return;
        }
        // After a restart, what it ran beside another may be in the log with that.
        let start = (now - time).max(run.logged.at).min(now);
        let time = now - start;
        match run.at_risk.last_mut().filter(|last| (last.0, last.1) == run.lease) {
            Some(last) => last.2 += time,
            None => run.at_risk.push((jobs, worker_type, time)),
        }
        self.accounts.add(jobs, worker_type, time);
        let slice = self.slices.entry(jobs).or_insert(SliceLog {
            worker_type,
            n_workers,
            start,
            end: now,
            time: Seconds::ZERO,
        });
        slice.time += time;
        slice.end = now;
    }

    /// Counts the time of a job's run until now, and of those that have the same workers: before it is another one of them by
    /// which the time of all is counted.
    pub(super) fn count_beside(&mut self, number: JobNumber) {
        self.count(number);
        let run = self.jobs.get(&number).and_then(|job| job.run.as_ref());
        let worker = run.and_then(|run| run.ranks.first()?.worker);
        let holders = worker.map(|worker| self.holders[worker.index()].clone()).unwrap_or_default();
        for other in holders.into_iter().filter(|other| *other != number) {
            self.count(other);
        }
    }

    /// Is the time on a run's workers counted by another run there? Of two that share it is the first one's, where that runs. Where
    /// one of them is to leave and the other has a lease without it already, it is that of the one that stays.
    fn is_counted_by_another(&self, job: &LiveJob, run: &LiveRun) -> bool {
        let jobs = run.lease.0;
        if self.is_counted_with_another(job, run) {
            return true;
        }
        let order = |job: &LiveJob, run: &LiveRun| (run.ending.is_some(), job.id);
        let worker = run.ranks.first().and_then(|rank| rank.worker);
        let holders = worker.map_or(&[][..], |worker| &self.holders[worker.index()]);
        let others =
            holders.iter().filter_map(|other| self.jobs.get(other)).filter(|other| other.id != job.id);
        others.filter_map(|other| Some((other, other.run.as_ref()?))).any(|(other, its)| {
            its.lease.0 != jobs && its.running.is_some() && order(other, its) < order(job, run)
        })
    }

    /// Is a run the second of two that share and run, so that its time is in their slice by the first?
    fn is_counted_with_another(&self, job: &LiveJob, run: &LiveRun) -> bool {
        run.lease.0.first() != job.id && self.is_running(run.lease.0.first(), run.lease.0)
    }

    /// Corrects the time that has been counted of a run that is over. It is the time of the rank that ran for the longest, if all ranks'
    /// times were reported; at most the time up to the lease's end, if the end of a running rank is not confirmed; else at least
    /// the longest time that was reported. Answers the time that counts then.
    pub(super) fn correct_count(&mut self, number: JobNumber, is_confirmed: bool) -> Seconds {
        self.count_beside(number);
        let Some(job) = self.jobs.get(&number) else { return Seconds::ZERO };
        let Some(run) = job.run.as_ref().filter(|run| !run.is_displaced()) else { return Seconds::ZERO };
        let (counted, lease) = (run.time_counted(), run.lease);
        let most = (self.now - job.record.job.arrival).max(Seconds::ZERO);
        let more = match (run.ran(), run.running) {
            (Some(ran), _) => ran.max(Seconds::ZERO).min(most) - counted,
            (None, Some(_)) if !is_confirmed => {
                Seconds::ZERO - (run.counted - run.until).max(Seconds::ZERO).min(counted)
            }
            (None, _) => (run.ran_longest().min(most) - counted).max(Seconds::ZERO),
        };
        let is_counted_by_another = self.is_counted_by_another(job, run);
        let name = self.type_name(lease.1);
        let cost = self.cost_of(more, run.ranks.len(), lease);
        if let Some(job) = self.jobs.get_mut(&number) {
            let received = job.record.received.entry(name).or_insert(Seconds::ZERO);
            *received = (*received + more).max(Seconds::ZERO);
            if let Some(cost) = cost {
                let known = job.record.cost.get_or_insert_default();
                *known = (*known + cost).max(Dollars::ZERO);
            }
        }
        if !is_counted_by_another {
            self.correct_accounts(number, lease, more);
        }
        counted + more
    }

    /// Sets right the accounts, and the event log by what is written to it next: where that would be less than nothing, it
    /// is a correction of what the log has already.
    fn correct_accounts(
        &mut self,
        number: JobNumber,
        lease: (Combination<JobId>, WorkerTypeId),
        more: Seconds,
    ) {
        let now = self.now;
        let Some(run) = self.jobs.get_mut(&number).and_then(|job| job.run.as_mut()) else { return };
        let n_workers = u32::try_from(run.ranks.len()).unwrap_or(u32::MAX);
        match run.at_risk.last_mut().filter(|last| (last.0, last.1) == lease) {
            Some(last) => last.2 = (last.2 + more).max(Seconds::ZERO),
            None if more.get() > 0.0 => run.at_risk.push((lease.0, lease.1, more)),
            None => {}
        }
        let since = self.logged_until(lease.0);
        self.accounts.add(lease.0, lease.1, more);
        let none = SliceLog { worker_type: lease.1, n_workers, start: now, end: now, time: Seconds::ZERO };
        let slice = self.slices.entry(lease.0).or_insert(none);
        slice.time += more;
        if more.get() < 0.0 {
            slice.end = (slice.end + more).max(slice.start);
        }
        // It ran before it was known to, since its order or what the log has of it: then no slice has more time than it lasts.
        slice.start = slice.start.min((slice.end - slice.time).max(since));
    }

    /// Until when the event log has what the runs of a combination ran: at first, the instant of their order.
    fn logged_until(&self, jobs: Combination<JobId>) -> Seconds {
        let members = jobs.members().filter_map(|id| self.jobs.get(self.numbers.get(&id)?));
        let runs = members.filter_map(|job| job.run.as_ref()).filter(|run| run.lease.0 == jobs);
        runs.map(|run| run.logged.at).fold(Seconds::ZERO, Seconds::max)
    }

    /// What the event log calls a job: by its number, which stays the same over all starts.
    pub(super) fn log_id(&self, id: JobId) -> JobId {
        self.numbers.get(&id).map_or(id, |number| number.in_log())
    }

    /// Does a job run as one of these, which share workers?
    fn is_running(&self, id: JobId, jobs: Combination<JobId>) -> bool {
        let job = self.numbers.get(&id).and_then(|number| self.jobs.get(number));
        job.and_then(|job| job.run.as_ref()).is_some_and(|run| run.lease.0 == jobs && run.running.is_some())
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
        // The job is here, and steps grow.
        let _ = self.scheduler.record(received);
    }

    /// Takes a program that says nothing of its steps to have made as many as its own throughputs make of the time that it has
    /// run, where users submit to Slurm themselves ([`front_door`](super::Settings::front_door)); at most all its steps but one.
    pub(super) fn presume_steps(&mut self, number: JobNumber) {
        if !self.settings.front_door {
            return;
        }
        self.count(number);
        let Some(job) = self.jobs.get_mut(&number) else { return };
        let Some(run) = job.run.as_ref().filter(|run| !run.progress.speaks) else { return };
        let (id, lease) = (job.id, run.lease);
        let speeds = job.record.job.throughput.iter().flatten();
        let steps = speeds
            .map(|(name, speed)| job.record.received.get(name).map_or(0.0, |time| speed.get() * time.get()));
        let all_but_one = (job.record.job.total_steps.get() - 1.0).max(0.0);
        let presumed = steps.sum::<f64>().min(all_but_one);
        let more = presumed - job.record.checkpointed;
        if more > 0.0 {
            job.record.checkpointed = presumed;
            self.record_steps(id, lease, more);
        }
    }

    /// Tells the policy of the steps that a job had done before the scheduler's start.
    pub(super) fn tell_steps(&mut self, id: JobId, run: Option<&LiveRun>, checkpointed: f64) {
        let known = self.scheduler.steps_done(id).map_or(0.0, Steps::get);
        let more = checkpointed - known;
        if more > 0.0 {
            let jobs = Combination::single(id);
            let worker_type = run.map_or_else(|| Id::from_index(0), |run| run.lease.1);
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
                // The jobs are here: accounts are closed with them.
                let _ = self.scheduler.record(received);
            }
        }
    }

    /// What a job has had of a worker type alone since the last reset, where the mechanism was told `told` of it: with what it is
    /// still to be told, of a lease to the instant up to which it was told of leases, or until now after that.
    pub(super) fn since_reset(&self, job: &LiveJob, worker_type: WorkerTypeId, told: Seconds) -> Seconds {
        let lease = (Combination::single(job.id), worker_type);
        let until =
            self.timeline.filter(|timeline| timeline.is_decided).map_or(self.now, |timeline| timeline.until);
        let counted = job.run.as_ref().filter(|_| self.goes_on(job.id, lease)).map(|run| run.counted);
        let ahead =
            counted.map_or(Seconds::ZERO, |counted| (until.max(self.now) - counted).max(Seconds::ZERO));
        (told + self.accounts.pending(lease.0, lease.1, ahead)).max(Seconds::ZERO)
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
        for jobs in self.slices.keys().copied().collect::<Vec<_>>() {
            self.flush_slice(jobs);
        }
    }

    /// Writes the last of what a run did that is over: steps that no slice has are one's that takes no time.
    pub(super) fn flush_last(&mut self, number: JobNumber) {
        let Some(run) = self.jobs.get(&number).and_then(|job| job.run.as_ref()) else { return };
        let ((jobs, worker_type), now) = (run.lease, self.now);
        let n_workers = u32::try_from(run.ranks.len()).unwrap_or(u32::MAX);
        if !run.is_displaced() {
            let none = SliceLog { worker_type, n_workers, start: now, end: now, time: Seconds::ZERO };
            self.slices.entry(jobs).or_insert(none);
        }
        self.flush_slice(jobs);
    }

    /// Writes what a combination has run since it was last written, and that this is written.
    pub(super) fn flush_slice(&mut self, jobs: Combination<JobId>) {
        let numbers: Vec<_> = jobs.members().filter_map(|id| self.numbers.get(&id).copied()).collect();
        for number in &numbers {
            self.count(*number);
        }
        let Some(log) = self.slices.remove(&jobs) else { return };
        let SliceLog { worker_type, n_workers, start, end, time } = log;
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
        // Of a program that does not tell its progress nothing is known of the time in which it made no steps.
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
            price: self.scheduler.cluster().types()[worker_type].price,
            steps: steps.map(Steps::new),
            throughput: made.map(speed),
            succeeded: true,
        };
        self.write_slice(slice);
        for number in numbers {
            self.record_job(number);
        }
    }

    /// Writes a slice to the event log. Where it has more time than it lasts, the rest is a correction: a slice that begins and
    /// ends at one instant.
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

    /// Notes since when all ranks of a run have been running.
    pub(super) fn note_running(&mut self, number: JobNumber) {
        let now = self.now;
        let Some(run) = self.jobs.get_mut(&number).and_then(|job| job.run.as_mut()) else { return };
        let runs = |known: &Known| matches!(known, Known::Reported(Phase::Running | Phase::Stopping));
        if run.running.is_none() && run.ranks.iter().all(|rank| runs(&rank.known)) {
            (run.running, run.counted) = (Some(now), now);
            // It has run on since an earlier start of the scheduler counted it.
            if let Some(CountedRecord { running, until, .. }) = run.counted_before.take() {
                (run.running, run.counted) = (Some(running), until);
            }
        }
    }

    /// What an earlier start of the scheduler counted of runs, and did not write into the event log, is still to be written.
    pub(super) fn restore_slices(&mut self) {
        for run in self.jobs.values_mut().filter_map(|job| job.run.as_mut()) {
            let Some(CountedRecord { running, until, .. }) = run.counted_before else { continue };
            let (jobs, worker_type) = run.lease;
            let n_workers = u32::try_from(run.ranks.len()).unwrap_or(u32::MAX);
            let start = running.max(run.logged.at);
            let time = until - start;
            if time.get() > 0.0 {
                // Of two that share, the time is one's.
                self.slices.entry(jobs).or_insert(SliceLog {
                    worker_type,
                    n_workers,
                    start,
                    end: until,
                    time,
                });
            }
        }
    }
}
