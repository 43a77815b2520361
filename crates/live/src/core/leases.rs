//! The time of leases: how long jobs held workers, and how much of it counts.

use apportion::index::{Id, JobId, WorkerTypeId};
use apportion::scheduler::Received;
use apportion::simulator::Event;
use apportion::units::DollarsPerWorkerHour;
use apportion::workload::Combination;
use apportion::{Seconds, Steps};

use super::Core;
use super::charges::Charge;
use super::job::{Known, LiveJob, LiveRun};
use super::record::CountedRecord;
use super::slices::SliceLog;
use crate::protocol::{JobNumber, Phase};

impl Core {
    /// Counts the time of a job's run up to now. Time before this start of the scheduler is at the price of then.
    pub(super) fn count(&mut self, number: JobNumber) {
        let Some(run) = self.jobs.get(&number).and_then(|job| job.run.as_ref()) else { return };
        let (opened, present) = (self.opened, self.price_of(run.lease.1));
        let until = run.counts_until.map_or(self.now, |until| until.min(self.now));
        let before = run.charges.last().filter(|_| run.running.is_some() && run.counted < opened);
        if let Some(before) = before {
            self.count_until(number, opened.min(until), before.price);
        }
        self.count_until(number, until, present);
    }

    /// Counts the time of a job's run up to an instant, at this price.
    fn count_until(&mut self, number: JobNumber, until: Seconds, price: Option<DollarsPerWorkerHour>) {
        let Some(job) = self.jobs.get(&number) else { return };
        let Some(run) = &job.run else { return };
        let (jobs, worker_type) = run.lease;
        let counts = !self.is_counted_by_another(job, run);
        let is_anothers = !counts && !self.is_counted_with_another(job, run);
        let n_workers = u32::try_from(run.ranks.len()).unwrap_or(u32::MAX);
        let name = self.type_name(worker_type);
        let time = until - run.running.map_or(until, |running| running.max(run.counted));
        let is_of_none = time.get() <= 0.0 || run.is_displaced();
        // After a restart, the time that it shared may be in the log under both jobs, or in the slice that is to be written.
        let unwritten = self.slices.get(&jobs).copied();
        let since = unwritten.map_or(run.logged.at, |slice| slice.end.max(run.logged.at));
        let start = (until - time).max(since).min(until);
        let is_at_another = unwritten.is_some_and(|slice| slice.price != price);
        if !is_of_none && counts && start < until && is_at_another {
            self.write_counted(jobs);
        }
        let Some(job) = self.jobs.get_mut(&number) else { return };
        let Some(run) = &mut job.run else { return };
        run.counted = run.counted.max(until);
        if is_of_none {
            return;
        }
        let charge = Charge { price, is_shared: jobs.is_pair(), time };
        run.charges.add(charge);
        job.record.receive(&name, n_workers, &[charge]);
        if is_anothers {
            // The log has this time in the slices of the run that stays.
            run.logged.at = until;
        }
        if !counts {
            return;
        }
        let time = until - start;
        match run.at_risk.last_mut().filter(|last| (last.0, last.1) == run.lease) {
            Some(last) => last.2 += time,
            None => run.at_risk.push((jobs, worker_type, time)),
        }
        self.accounts.add(jobs, worker_type, time);
        let none = SliceLog { worker_type, price, n_workers, start, end: until, time: Seconds::ZERO };
        let slice = self.slices.entry(jobs).or_insert(none);
        slice.time += time;
        slice.end = until;
    }

    /// Counts the time of a job's run up to now, and of the runs on the same workers, before it changes which of them counts for
    /// all.
    pub(super) fn count_beside(&mut self, number: JobNumber) {
        self.count(number);
        let run = self.jobs.get(&number).and_then(|job| job.run.as_ref());
        let worker = run.and_then(|run| run.ranks.first()?.worker);
        let holders = worker.map(|worker| self.holders[worker.index()].clone()).unwrap_or_default();
        for other in holders.into_iter().filter(|other| *other != number) {
            self.count(other);
        }
    }

    /// Whether the time on a run's workers is counted by another run there. Two runs that share are counted by the first, if that
    /// runs. Where one of them is to leave and the other has a lease of its own already, the one that stays counts.
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

    /// Whether a run is the second of two that share and both run, so that its time is in the first one's slice.
    fn is_counted_with_another(&self, job: &LiveJob, run: &LiveRun) -> bool {
        run.lease.0.first() != job.id && self.is_running(run.lease.0.first(), run.lease.0)
    }

    /// Corrects the counted time of a run that is over. It becomes the time of the rank that ran longest, if all ranks' times were
    /// reported; else at most the time up to the lease's end, if a running rank's end is unknown; else at least the longest
    /// reported time. Answers the time that counts then.
    pub(super) fn correct_count(&mut self, number: JobNumber, is_confirmed: bool) -> Seconds {
        self.presume_ran(number);
        self.count_beside(number);
        let Some(job) = self.jobs.get(&number) else { return Seconds::ZERO };
        let Some(run) = job.run.as_ref().filter(|run| !run.is_displaced()) else { return Seconds::ZERO };
        let (counted, lease) = (run.time_counted(), run.lease);
        let most = (self.now - job.record.job.arrival).max(Seconds::ZERO);
        // With jobs that users submit to Slurm themselves, a lease is over when Slurm says so.
        let is_end_known = is_confirmed && (self.settings.front_door || !run.is_lost());
        let more = match (run.ran(), run.running) {
            (Some(ran), _) => ran.max(Seconds::ZERO).min(most) - counted,
            (None, Some(_)) if !is_end_known => {
                Seconds::ZERO - (run.counted - run.until).max(Seconds::ZERO).min(counted)
            }
            (None, _) => (run.ran_longest().min(most) - counted).max(Seconds::ZERO),
        };
        let is_counted_by_another = self.is_counted_by_another(job, run);
        let n_workers = u32::try_from(run.ranks.len()).unwrap_or(u32::MAX);
        let (name, price) = (self.type_name(lease.1), self.price_of(lease.1));
        let other = Charge { price, is_shared: lease.0.is_pair(), time: Seconds::ZERO };
        let Some(job) = self.jobs.get_mut(&number) else { return Seconds::ZERO };
        let Some(run) = &mut job.run else { return Seconds::ZERO };
        let changes = run.charges.correct(more, other);
        job.record.receive(&name, n_workers, &changes);
        if !is_counted_by_another {
            self.correct_accounts(number, lease, &changes);
        }
        counted + more
    }

    /// Presumes that a run which an earlier start knew to run went on until the end of its lease, unless a server reports how long
    /// it ran.
    fn presume_ran(&mut self, number: JobNumber) {
        let Some(run) = self.jobs.get_mut(&number).and_then(|job| job.run.as_mut()) else { return };
        let (Some(counted), Some(lease_end)) = (run.counted_before, run.lease_end) else { return };
        let is_said = run.has_ended() && !run.is_lost() && run.ran_longest().get() > 0.0;
        if self.settings.front_door || run.running.is_some() || is_said {
            return;
        }
        let CountedRecord { running, until, .. } = counted;
        (run.running, run.counted, run.counted_before) = (Some(running), until, None);
        run.counts_until = Some(lease_end.max(until));
        run.until = run.until.max(lease_end);
    }

    /// Corrects the accounts, and the event log by the next slice that is written. Where that slice would be negative, it becomes a
    /// correction of written slices; where the price was another one, a correction is written at once.
    fn correct_accounts(
        &mut self,
        number: JobNumber,
        lease: (Combination<JobId>, WorkerTypeId),
        changes: &[Charge],
    ) {
        let now = self.now;
        let Some(run) = self.jobs.get_mut(&number).and_then(|job| job.run.as_mut()) else { return };
        let n_workers = u32::try_from(run.ranks.len()).unwrap_or(u32::MAX);
        let more: Seconds = changes.iter().map(|change| change.time).sum();
        match run.at_risk.last_mut().filter(|last| (last.0, last.1) == lease) {
            Some(last) => last.2 = (last.2 + more).max(Seconds::ZERO),
            None if more.get() > 0.0 => run.at_risk.push((lease.0, lease.1, more)),
            None => {}
        }
        let since = self.logged_until(lease.0);
        self.accounts.add(lease.0, lease.1, more);
        for Charge { price, time: more, .. } in changes.iter().copied() {
            let (worker_type, time) = (lease.1, Seconds::ZERO);
            let none = SliceLog { worker_type, price, n_workers, start: now, end: now, time };
            let slice = self.slices.entry(lease.0).or_insert(none);
            if slice.price != price {
                let incarnations = self.incarnations(lease.0);
                let log = SliceLog { time: more, ..none };
                let correction = log.correction(lease.0.map(|id| self.log_id(id)), incarnations);
                self.event(now, &Event::Slice(correction));
                continue;
            }
            slice.time += more;
            if more.get() < 0.0 {
                slice.end = (slice.end + more).max(slice.start);
            }
            // It ran before it was known to, since its order or since the last slice of the log: so no slice has more time than it
            // lasts.
            slice.start = slice.start.min((slice.end - slice.time).max(since));
        }
    }

    /// Whether a job runs in the lease of this combination.
    fn is_running(&self, id: JobId, jobs: Combination<JobId>) -> bool {
        let job = self.numbers.get(&id).and_then(|number| self.jobs.get(number));
        job.and_then(|job| job.run.as_ref()).is_some_and(|run| run.lease.0 == jobs && run.running.is_some())
    }

    /// Tells the policy of steps that a checkpoint has come to hold.
    pub(super) fn record_steps(&mut self, id: JobId, lease: (Combination<JobId>, WorkerTypeId), steps: f64) {
        let jobs = Combination::single(id);
        let received = Received {
            jobs,
            worker_type: lease.1,
            time: Seconds::ZERO,
            steps: [Steps::new(steps), Steps::ZERO],
        };
        // The job exists, and steps only grow.
        let _ = self.scheduler.record(received);
    }

    /// Presumes the steps of a program that reports none, from its own throughputs and the time that it has run, where users submit
    /// to Slurm themselves ([`front_door`](super::Settings::front_door)); at most all steps but one.
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

    /// Tells the mechanism the time that combinations have received; of those that run on, up to `start`.
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
                // The jobs exist: accounts are closed with them.
                let _ = self.scheduler.record(received);
            }
        }
    }

    /// Time that a job has had workers of a type alone since the last reset. `told` is the mechanism's figure. Time that it is
    /// still to be told is added: of a lease that runs on, up to the end of a decided round, or else up to now.
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

    /// Closes a run that is over: its time since the last checkpoint is taken back unless `keeps`.
    pub(super) fn close_run(&mut self, run: &LiveRun, keeps: bool) {
        if keeps {
            return;
        }
        for (jobs, worker_type, time) in &run.at_risk {
            self.accounts.add(*jobs, *worker_type, Seconds::ZERO - *time);
        }
    }

    /// Notes the instant since when all ranks of a run have been running. A job that is shown as running is on disk as such.
    pub(super) fn note_running(&mut self, number: JobNumber) {
        let now = self.now;
        let Some(run) = self.jobs.get_mut(&number).and_then(|job| job.run.as_mut()) else { return };
        let runs = |known: &Known| matches!(known, Known::Reported(Phase::Running | Phase::Stopping));
        if run.running.is_some() || !run.ranks.iter().all(|rank| runs(&rank.known)) {
            return;
        }
        if let Some(CountedRecord { running, until, .. }) = run.counted_before.take() {
            // It has run on since an earlier start of the scheduler counted it.
            (run.running, run.counted) = (Some(running), until);
        } else {
            (run.running, run.counted) = (Some(now), now);
            self.record_job(number);
        }
    }
}
