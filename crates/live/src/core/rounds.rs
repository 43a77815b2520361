//! Rounds: when the next one is decided, and what the policy and the mechanism decide for it.

use std::collections::BTreeSet;

use apportion::index::{Id, JobId, WorkerId};
use apportion::scheduler::{Decided, DecisionError, Lease, Round};
use apportion::simulator::{AllocatedShares, Event};
use apportion::workload::Combination;
use apportion::{Seconds, StepsPerSecond};

use super::Core;
use super::job::{LiveJob, Placement};
use super::record::Record;
use super::settings::Settings;
use crate::protocol::JobNumber;

/// The present round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Timeline {
    pub(super) from: Seconds,
    pub(super) until: Seconds,
    /// Whether the next round is decided.
    pub(super) is_decided: bool,
}

impl Timeline {
    /// The instant of the next action: the next round is to be decided, or starts.
    pub(super) fn next(&self, settings: &Settings) -> Seconds {
        if self.is_decided { self.until } else { self.until - settings.look_ahead }
    }
}

impl Core {
    /// Takes the next due step: decides the next round, starts it, or starts the first one as soon as there is a job and a server.
    pub(super) fn advance(&mut self) {
        self.note_silence();
        let length = self.scheduler.options().round_length;
        if self.timeline.is_none()
            && !self.jobs.is_empty()
            && self.servers.keys().any(|name| self.is_usable(name))
        {
            self.decide(self.now);
            let until = self.now + length;
            self.timeline = Some(Timeline { from: self.now, until, is_decided: false });
        }
        while let Some(timeline) = self.timeline.filter(|timeline| timeline.next(&self.settings) <= self.now)
        {
            if timeline.is_decided {
                self.flush_slices();
                let until = timeline.until + length;
                self.timeline = Some(Timeline { from: timeline.until, until, is_decided: false });
            } else if self.jobs.is_empty() {
                self.timeline = None;
                self.flush_slices();
            } else {
                // Where the scheduler has been stopped through a whole round, the next one starts now.
                let start = timeline.until.max(self.now);
                self.timeline = Some(Timeline { from: timeline.from, until: start, is_decided: true });
                self.decide(start);
            }
        }
    }

    /// Notes that the scheduler was woken much later than it asked to be: it was stopped, or its disk or a decision held it up, and
    /// reports of that time are still to come. Servers are given the time for which they may be silent, before a run is over for
    /// want of a report and before the next round is decided. No lease ends earlier by that.
    pub(super) fn note_absence(&mut self) {
        let (now, silence) = (self.now, self.settings.silence);
        if now <= self.due + silence / 2.0 {
            return;
        }
        let away = now - self.due;
        self.listens_until = now + silence;
        self.note(
            format!(
                "the scheduler could not work for {:.1} s, being stopped, or held up by its disk or a decision: servers have {silence} \
                 to report",
                away.get()
            ),
            None,
            None,
        );
        let Some(mut timeline) = self.timeline else { return };
        if timeline.is_decided && timeline.until <= now {
            self.flush_slices();
            let until = timeline.until + self.scheduler.options().round_length;
            timeline = Timeline { from: timeline.until, until, is_decided: false };
        }
        if !timeline.is_decided {
            timeline.until = timeline.until.max(now + silence + self.settings.look_ahead);
            // A run whose lease is over has stopped by itself, and is not extended.
            let goes_on = |job: &&mut LiveJob| job.run.as_ref().is_none_or(|run| run.until > now);
            let going_on = self.jobs.values_mut().filter(goes_on);
            for placement in going_on.filter_map(|job| job.placement.as_mut()) {
                placement.until = placement.until.max(timeline.until);
            }
        }
        self.timeline = Some(timeline);
    }

    /// Whether a server may be given jobs.
    pub(super) fn is_usable(&self, name: &str) -> bool {
        self.servers.get(name).is_some_and(|server| {
            server.record.drained.is_none() && server.is_reachable(self.listens_at(), self.settings.silence)
        })
    }

    /// Notes which servers have become silent.
    fn note_silence(&mut self) {
        let (now, silence) = (self.now, self.settings.silence);
        if now < self.listens_until || now <= self.silent_after {
            return;
        }
        let silent = self
            .servers
            .values_mut()
            .filter(|server| server.heard.is_some() && !server.is_reachable(now, silence));
        let silent: Vec<_> = silent
            .map(|server| {
                server.heard = None;
                server.record.name.clone()
            })
            .collect();
        let heard = self.servers.values().filter_map(|server| server.heard);
        self.silent_after = heard.fold(now, Seconds::min) + silence;
        for name in silent {
            let text = format!("nothing has been heard of {name} for {silence}: it gets no new job");
            self.warn(text, None, Some(name));
        }
    }

    /// Decides the round that starts at `start`: now, or at the end of the present one.
    fn decide(&mut self, start: Seconds) {
        if self.is_frozen() {
            return self.go_on_until(start + self.scheduler.options().round_length);
        }
        self.tell_workers();
        self.tell_received(start);
        for number in self.jobs.keys().copied().collect::<Vec<_>>() {
            self.presume_steps(number);
        }
        self.tell_measured();
        self.note_arrivals();
        let round = self.scheduler.tick(start, self.settings.decision_limit);
        self.counters.rounds += 1;
        self.note_decided(&round.decided);
        self.place(&round);
        self.write_round(&round);
        self.forget_numbers();
        self.save_scheduler();
        self.touched.extend(self.jobs.keys());
    }

    /// Puts the mechanism's state on disk, together with the time that running jobs have received up to now, so that the two agree.
    fn save_scheduler(&mut self) {
        match serde_json::to_string(&self.scheduler.state()) {
            Ok(state) => {
                self.step.records.push(Record::Scheduler(state));
                self.accounts.note_kept();
            }
            Err(error) => self.warn(format!("the mechanism's state cannot be saved: {error}"), None, None),
        }
        self.record_running();
    }

    /// Notes that a policy is late or has failed.
    fn note_decided(&mut self, decided: &Decided) {
        let instead = match self.scheduler.mechanism() {
            Some(_) => "the last allocation stays in force",
            None => "jobs keep the workers that they have",
        };
        match decided {
            Decided::Late { since } => {
                self.counters.late_decisions += 1;
                let text = format!("the policy asked at {since} has not decided yet: {instead}");
                self.warn(text, None, None);
            }
            Decided::Failed { error } => {
                self.counters.failed_decisions += 1;
                let error = self.in_words(error);
                self.warn(format!("the policy gave no decision: {error}; {instead}"), None, None);
            }
            Decided::Fresh { .. } | Decided::Unchanged => {}
        }
    }

    /// The reason for which there is no decision, in words, with the jobs by their numbers.
    fn in_words(&self, error: &DecisionError) -> String {
        let DecisionError::Policy(error) = error else { return error.to_string() };
        let number = |id| self.log_id(JobId::from_index(id)).index();
        let worker_type = |id| format!("worker type {}", self.type_name(id));
        error.clone().with_jobs(number).named(|number| format!("job {number}"), worker_type).to_string()
    }

    /// Forgets the numbers of jobs that are over and that no run shares its workers with any more.
    fn forget_numbers(&mut self) {
        let mut needed: BTreeSet<JobId> = self.jobs.values().map(|job| job.id).collect();
        let runs = self.jobs.values().filter_map(|job| job.run.as_ref());
        needed.extend(runs.flat_map(|run| run.lease.0.members()));
        needed.extend(self.slices.keys().flat_map(Combination::members));
        self.numbers.retain(|id, _| needed.contains(id));
    }

    /// Tells the mechanism which workers are up.
    fn tell_workers(&mut self) {
        let mut changes: Vec<(WorkerId, bool)> = Vec::new();
        let usable: Vec<_> = self.servers.keys().map(|name| self.is_usable(name)).collect();
        for (server, is_usable) in self.servers.values_mut().zip(usable) {
            for (place, worker) in (0u32..).zip(&server.record.workers) {
                let is_held = server.strays.iter().any(|(_, held)| *held == place);
                // On a full disk, running jobs go on.
                let has_room = server.disk.is_none() || !self.holders[worker.index()].is_empty();
                let up = is_usable && place < server.n_workers && !is_held && has_room;
                let told = &mut server.up[place as usize];
                if *told != up {
                    *told = up;
                    changes.push((*worker, up));
                }
            }
        }
        for (worker, up) in changes {
            // The worker exists: it was one of the cluster's when its server joined.
            let _ = self.scheduler.set_up(worker, up);
            let at = self.now;
            self.event(
                at,
                &if up { Event::WorkerUp { at, worker } } else { Event::WorkerDown { at, worker } },
            );
        }
    }

    /// Whether some server can start nothing now. Then nothing is stopped for jobs that could not begin.
    pub(super) fn is_frozen(&self) -> bool {
        let (now, silence) = (self.now, self.settings.silence);
        self.servers.values().any(|server| server.is_frozen && server.is_reachable(now, silence))
    }

    /// Extends all leases, so that every run stays where it is.
    fn go_on_until(&mut self, until: Seconds) {
        for (number, job) in &mut self.jobs {
            let runs = job.run.as_ref().is_some_and(|run| run.ending.is_none());
            job.placement = job.placement.take().filter(|_| runs);
            if let Some(placement) = &mut job.placement {
                placement.until = placement.until.max(until);
            }
            self.touched.insert(*number);
        }
    }

    /// Gives each job its place in the round.
    fn place(&mut self, round: &Round) {
        for job in self.jobs.values_mut() {
            job.placement = None;
        }
        self.placed.iter_mut().for_each(Vec::clear);
        for lease in &round.leases {
            self.place_lease(lease, round.until);
        }
    }

    fn place_lease(&mut self, lease: &Lease, until: Seconds) {
        let numbers: Vec<JobNumber> =
            lease.jobs.members().filter_map(|id| self.numbers.get(&id).copied()).collect();
        for number in &numbers {
            let is_wanted = |job: &&mut LiveJob| !job.record.cancelled && job.record.done.is_none();
            let Some(job) = self.jobs.get_mut(number).filter(is_wanted) else { continue };
            let runs = job.run.as_ref().filter(|run| run.ending.is_none());
            let resized = runs.map(|run| run.ranks.len()).filter(|before| *before != lease.workers.len());
            job.placement = Some(Placement {
                workers: lease.workers.clone(),
                worker_type: lease.worker_type,
                beside: numbers.iter().find(|other| *other != number).copied(),
                jobs: lease.jobs,
                until,
            });
            for worker in &lease.workers {
                self.placed[worker.index()].push(*number);
            }
            if let Some(before) = resized {
                let after = lease.workers.len();
                self.note(format!("it is resized from {before} to {after} workers"), Some(*number), None);
            }
            self.touched.insert(*number);
        }
    }

    /// Notes that the back-off of some jobs without a place is over: they may get idle workers.
    pub(super) fn note_rested(&mut self) {
        let now = self.now;
        for job in self.jobs.values_mut() {
            if job.record.not_before.take_if(|at| *at <= now).is_some() {
                self.is_vacant |= job.placement.is_none() && job.run.is_none();
            }
        }
    }

    /// Gives idle workers to waiting jobs until the round ends: as in a simulation, first to jobs of the allocation in force, then
    /// to jobs that came after it.
    pub(super) fn refill(&mut self) {
        if !self.is_vacant || self.is_frozen() {
            return;
        }
        self.is_vacant = false;
        if !self.settings.refill {
            return;
        }
        let Some(timeline) = self.timeline else { return };
        // Once the next round is decided, leases are granted for that round.
        let length = if timeline.is_decided { self.scheduler.options().round_length } else { Seconds::ZERO };
        self.tell_workers();
        let now = self.now;
        self.tell_received(now);
        self.note_arrivals();
        let (decided, leases) = self.scheduler.refill_with_arrivals(now, self.settings.decision_limit);
        self.note_decided(&decided);
        self.write_decided(now, &decided);
        for lease in &leases {
            self.place_lease(lease, timeline.until + length);
            self.write_lease(now, lease);
        }
        if !leases.is_empty() {
            // A restart must leave the jobs on these workers.
            self.save_scheduler();
        }
    }

    /// Writes a round to the event log, as a simulation does.
    fn write_round(&mut self, round: &Round) {
        let now = round.from;
        self.write_decided(now, &round.decided);
        let (n_active, n_leases) = (self.jobs.len(), round.leases.len());
        let number = self.n_rounds;
        self.n_rounds += 1;
        self.event(now, &Event::RoundStarted { now, round: number, n_active, n_leases });
        for Lease { jobs, worker_type, .. } in &round.preempted {
            let jobs = jobs.map(|id| self.log_id(id));
            self.event(now, &Event::Preempted { now, jobs, worker_type: *worker_type });
        }
        for lease in &round.leases {
            self.write_lease(now, lease);
        }
    }

    /// Writes the policy's decision to the event log, if there is a fresh one.
    fn write_decided(&mut self, now: Seconds, decided: &Decided) {
        if let (Decided::Fresh { .. }, Some(in_force)) = (decided, self.scheduler.in_force().cloned()) {
            let solve = in_force.solve.as_ref();
            let cluster = self.scheduler.cluster().clone();
            let rows = in_force.shares.iter().map(|(jobs, row)| (jobs.map(|id| self.log_id(id)), row));
            let event = Event::Allocated {
                now,
                n_jobs: self.jobs.len(),
                backend: solve.and_then(|solve| solve.backend.as_deref()),
                route: solve.map(|solve| &*solve.route),
                iterations: solve.map_or(0, |solve| solve.iterations),
                fallbacks: solve.map_or(&[], |solve| &solve.fallbacks),
                dropped: in_force.dropped.iter().map(|id| self.log_id(*id)).collect(),
                uncertified: in_force.objective.as_ref().is_some_and(|objective| !objective.optimal),
                shares: Some(AllocatedShares::of(rows, &cluster)),
                solve_seconds: 0.0,
            };
            self.event(now, &event);
        }
    }

    fn write_lease(&mut self, now: Seconds, lease: &Lease) {
        let Lease { jobs, worker_type, n_servers, extended, workers, .. } = lease;
        let event = Event::Lease {
            now,
            jobs: jobs.map(|id| self.log_id(id)),
            worker_type: *worker_type,
            workers,
            n_servers: *n_servers,
            extended: *extended,
        };
        self.event(now, &event);
    }

    /// Writes the arrivals of jobs that an earlier version took in, and that are not in the log yet.
    fn note_arrivals(&mut self) {
        let now = self.now;
        let new: Vec<_> =
            self.jobs.iter().filter(|(_, job)| !job.record.arrived).map(|(number, _)| *number).collect();
        for number in new {
            let Some(job) = self.jobs.get_mut(&number) else { continue };
            job.record.arrived = true;
            let job = job.record.job.clone();
            self.event(now, &Event::Arrival { now, id: number.in_log(), measured: true, job: &job });
            self.record_job(number);
        }
    }

    /// Tells the policy the measured throughputs of jobs that had their workers alone: a policy that decides inside rounds gets
    /// those of any servers, others only those on the fewest servers possible.
    fn tell_measured(&mut self) {
        for job in self.jobs.values_mut() {
            let Some(run) = &mut job.run else { continue };
            let (steps_then, seconds_then) = run.measured.unwrap_or((run.progress.first, 0.0));
            let (steps, seconds) = (run.progress.steps - steps_then, run.progress.seconds - seconds_then);
            if run.is_displaced() || run.lease.0.is_pair() {
                continue;
            }
            let (all, workers) = (self.scheduler.workers(), run.workers());
            let is_spread = all.n_servers_of(&workers) > all.n_servers_least(run.lease.1, workers.len());
            let is_long_enough = seconds >= 0.1 * self.scheduler.options().round_length.get();
            if !is_long_enough || steps.is_nan() || steps <= 0.0 {
                continue;
            }
            run.measured = Some((run.progress.steps, run.progress.seconds));
            let speed = StepsPerSecond::new(steps / seconds);
            // A speed out of range is not taken, and the one before stays.
            if run.ending.is_none() {
                let speeds = [speed, StepsPerSecond::new(0.0)];
                let _ = self.scheduler.observe(run.lease.0, run.lease.1, speeds);
            }
            // A job that is to have another number of workers is shown with that number.
            let known = self.scheduler.job(job.id).and_then(|known| usize::try_from(known.scale_factor).ok());
            if !is_spread && known == Some(workers.len()) {
                let _ = self.scheduler.measure(job.id, run.lease.1, speed);
            }
        }
    }
}
