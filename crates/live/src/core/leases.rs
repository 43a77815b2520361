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
use super::spans::{Span, Spans};
use crate::protocol::{JobNumber, Phase};

impl Core {
    /// Counts the time of a job's run until now, and of the runs that may be on its workers: their time there counts once. Time
    /// before this start of the scheduler has the prices of then.
    pub(super) fn count(&mut self, number: JobNumber) {
        for number in self.sharing(number) {
            self.count_one(number);
        }
    }

    fn count_one(&mut self, number: JobNumber) {
        let Some(run) = self.jobs.get(&number).and_then(|job| job.run.as_ref()) else { return };
        let (opened, present) = (self.opened, self.price_of(run.lease.1));
        let until = run.counts_until.map_or(self.now, |until| until.min(self.now));
        let before = run.charges.last().filter(|_| run.running.is_some() && run.counted < opened);
        if let Some(before) = before {
            self.count_until(number, opened.min(until), before.price);
        }
        self.count_until(number, until, present);
    }

    /// The jobs whose runs may be on the workers of a job's run, itself among them. The first ones are those that stay there: their
    /// lease has the time that all of them ran.
    pub(super) fn sharing(&self, number: JobNumber) -> Vec<JobNumber> {
        let run = self.jobs.get(&number).and_then(|job| job.run.as_ref());
        let worker = run.and_then(|run| run.ranks.first()?.worker);
        let holders = worker.map_or(&[][..], |worker| &self.holders[worker.index()]);
        if holders.len() < 2 || !holders.contains(&number) {
            return vec![number];
        }
        let order = |number: &JobNumber| {
            let job = self.jobs.get(number);
            let is_ending = job.and_then(|job| job.run.as_ref()).is_some_and(|run| run.ending.is_some());
            (is_ending, job.map(|job| job.id))
        };
        let mut holders = holders.to_vec();
        holders.sort_by_key(order);
        holders
    }

    /// The time that the runs beside a job's run had its workers, as far as it has been counted.
    pub(super) fn counted_beside(&self, number: JobNumber) -> Spans {
        let run_of = |number: &JobNumber| self.jobs.get(number).and_then(|job| job.run.as_ref());
        let mut beside = run_of(&number).map_or_else(Spans::default, |run| run.beside.clone());
        for other in self.sharing(number).into_iter().filter(|other| *other != number) {
            if let Some(span) = run_of(&other).and_then(LiveRun::span) {
                beside.add(span);
            }
        }
        beside
    }

    /// Counts the time of a job's run until an instant, at this price.
    fn count_until(&mut self, number: JobNumber, until: Seconds, price: Option<DollarsPerWorkerHour>) {
        let Some(run) = self.jobs.get_mut(&number).and_then(|job| job.run.as_mut()) else { return };
        let (jobs, worker_type) = run.lease;
        let start = run.running.map_or(until, |running| running.max(run.counted));
        let span = Span { start, end: until };
        if span.length().get() <= 0.0 || run.is_displaced() {
            run.counted = run.counted.max(until);
            return;
        }
        let n_workers = u32::try_from(run.ranks.len()).unwrap_or(u32::MAX);
        let name = self.type_name(worker_type);
        // Where another had the workers in this time, it is in the log and in the accounts.
        let new = self.counted_beside(number).rest(span);
        let time: Seconds = new.iter().copied().map(Span::length).sum();
        let is_at_another = self.slices.get(&jobs).is_some_and(|slice| slice.price != price);
        if is_at_another && !new.is_empty() {
            self.write_counted(jobs);
        }
        let since = self.logged_until(number);
        let Some(job) = self.jobs.get_mut(&number) else { return };
        let Some(run) = &mut job.run else { return };
        run.counted = run.counted.max(until);
        let charge = Charge { price, is_shared: jobs.is_pair(), time: span.length() };
        run.charges.add(charge);
        job.record.receive(&name, n_workers, &[charge]);
        let (Some(first), Some(last)) = (new.first(), new.last()) else { return };
        match run.at_risk.last_mut().filter(|last| (last.0, last.1) == run.lease) {
            Some(last) => last.2 += time,
            None => run.at_risk.push((jobs, worker_type, time)),
        }
        self.accounts.add(jobs, worker_type, time);
        let start = first.start.max(since);
        let none = SliceLog { worker_type, price, n_workers, start, end: start, time: Seconds::ZERO };
        let slice = self.slices.entry(jobs).or_insert(none);
        slice.time += time;
        slice.end = slice.end.max(last.end);
    }

    /// Corrects the time that has been counted of a run that is over. It is the time of the rank that ran for the longest, if all ranks'
    /// times were reported; at most the time up to the lease's end, if it is not known when a running rank ended; else at least
    /// the longest time that was reported. Returns the time that it had then; none if it never ran.
    pub(super) fn correct_count(&mut self, number: JobNumber, is_confirmed: bool) -> Option<Span> {
        self.presume_ran(number);
        self.count(number);
        let job = self.jobs.get(&number)?;
        let run = job.run.as_ref().filter(|run| !run.is_displaced())?;
        // With jobs that users submit to Slurm themselves, a lease is over when Slurm says so.
        let is_end_known = is_confirmed && (self.settings.front_door || !run.is_lost());
        let (before, lease) = (run.span(), run.lease);
        let most = (self.now - job.record.job.arrival).max(Seconds::ZERO);
        let had = run.had(self.now, most, is_end_known);
        let beside = self.counted_beside(number);
        let length = |span: Option<Span>| span.map_or(Seconds::ZERO, Span::length);
        let missing = |span: Option<Span>| span.map_or(Seconds::ZERO, |span| beside.missing(span));
        let (more, more_of_all) = (length(had) - length(before), missing(had) - missing(before));
        let n_workers = u32::try_from(run.ranks.len()).unwrap_or(u32::MAX);
        let (name, price) = (self.type_name(lease.1), self.price_of(lease.1));
        let other = Charge { price, is_shared: lease.0.is_pair(), time: Seconds::ZERO };
        let job = self.jobs.get_mut(&number)?;
        let run = job.run.as_mut()?;
        let mut of_all = run.charges.clone();
        let changes = run.charges.correct(more, other);
        job.record.receive(&name, n_workers, &changes);
        self.correct_accounts(number, lease, &of_all.correct(more_of_all, other));
        self.note_beside(number, had);
        had
    }

    /// Tells the runs on the workers of a run that is over how long it had them, and how far the log has that.
    fn note_beside(&mut self, number: JobNumber, had: Option<Span>) {
        let lease = self.jobs.get(&number).and_then(|job| job.run.as_ref()).map(|run| run.lease.0);
        let unwritten =
            lease.and_then(|jobs| self.slices.get(&jobs)).map_or(Seconds::ZERO, |slice| slice.end);
        let logged = self.logged_until(number).max(unwritten);
        for other in self.sharing(number).into_iter().filter(|other| *other != number) {
            let Some(run) = self.jobs.get_mut(&other).and_then(|job| job.run.as_mut()) else { continue };
            if let Some(had) = had {
                run.beside.add(had);
            }
            run.logged.at = run.logged.at.max(logged);
        }
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
        let since = self.logged_until(number);
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

    /// Tells the policy of steps that a checkpoint holds.
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
        if run.ranks.iter().all(|rank| rank.known == Known::Reported(Phase::Running)) {
            run.lease_end = None;
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
