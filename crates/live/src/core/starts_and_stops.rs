//! Actions that follow from the difference of placements and runs: extensions, stops and starts.

use std::collections::BTreeMap;

use apportion::Seconds;
use apportion::index::{Id, WorkerId};

use super::Core;
use super::charges::Charges;
use super::job::{Ending, Known, LiveRun, Reason};
use super::record::RunRecord;
use super::spans::Spans;
use crate::protocol::{JobNumber, Run};

impl Core {
    /// Looks at the jobs that were touched, and at the jobs that wait for workers that these held: runs are extended, stopped or
    /// ended, and placements without a run are started.
    pub(super) fn start_and_stop(&mut self) {
        while let Some(number) = self.touched.pop_first() {
            self.note_running(number);
            self.note_news(number);
            self.end_run_if_over(number);
            self.extend_or_stop(number);
            self.start_if_free(number);
            self.note_news(number);
        }
    }

    /// Extends the lease of a run on its placement; asks a run without one, or one that is not whole, to stop.
    fn extend_or_stop(&mut self, number: JobNumber) {
        let (now, settings) = (self.now, self.settings);
        self.count(number);
        let changed = self.jobs.get(&number).and_then(|job| {
            let (run, placement) = (job.run.as_ref()?, job.placement.as_ref()?);
            (run.lease.0 != placement.jobs).then_some(run.lease.0)
        });
        if let Some(jobs) = changed {
            // Its time in a pair is written apart from its time alone.
            self.flush_slice(jobs);
        }
        let Some(job) = self.jobs.get_mut(&number) else { return };
        let Some(run) = &mut job.run else { return };
        if run.ending.is_some() {
            return;
        }
        let reason = if job.record.cancelled {
            Some(Reason::Cancelled)
        } else if job.record.done.is_some() {
            Some(Reason::Done)
        } else if run.is_broken(now, settings.grace) {
            Some(Reason::RankEnded)
        } else if run.running.is_none()
            && run.ranks.iter().all(|rank| rank.known != Known::Believed)
            && now > run.ordered + settings.start_limit
        {
            Some(Reason::NotStarted)
        } else {
            let workers = run.workers();
            match &job.placement {
                Some(placement) if placement.workers == workers => {
                    run.until = run.until.max(placement.until);
                    run.over_at = run.over_at.max(run.until + settings.grace + settings.slack);
                    run.lease = (placement.jobs, placement.worker_type);
                    None
                }
                _ => Some(Reason::Preempted),
            }
        };
        run.ending = reason.map(|reason| Ending { reason, since: now });
    }

    /// Starts the run of a placement, if its workers are free and their servers are present.
    fn start_if_free(&mut self, number: JobNumber) {
        let now = self.now;
        let Some(job) = self.jobs.get(&number) else { return };
        let Some(placement) = &job.placement else { return };
        if job.run.is_some() || job.record.cancelled || job.rests(now).is_some() || now >= placement.until {
            return;
        }
        let beside = placement.beside;
        if !placement.workers.iter().all(|worker| self.is_free(*worker, beside)) {
            return;
        }
        let mut ranks: Vec<_> = placement
            .workers
            .iter()
            .filter_map(|worker| {
                self.places[worker.index()].clone().map(|(server, place)| (server, place, *worker))
            })
            .collect();
        ranks.sort();
        let until = placement.until;
        let lease = (placement.jobs, placement.worker_type);
        let length = self.scheduler.options().round_length;
        let record = RunRecord {
            workers: ranks.iter().map(|(_, _, worker)| *worker).collect(),
            servers: ranks.into_iter().map(|(server, _, _)| server).collect(),
            outlives: length + self.settings.look_ahead + self.settings.grace + self.settings.slack,
            gone_by: BTreeMap::new(),
            counted: None,
            charges: Charges::begin(self.price_of(lease.1), lease.0.is_pair()),
            lease_end: None,
            logged: None,
            unlogged: None,
            beside: Spans::default(),
            untold: None,
        };
        let over_at = until + self.settings.grace + self.settings.slack;
        if lease.0.is_pair() {
            // The other job's earlier time is written apart from this start.
            self.flush_slice(lease.0);
        }
        let foreign = self.foreign_incarnation(number);
        let Some(job) = self.jobs.get_mut(&number) else { return };
        if job.record.incarnation == 0 {
            job.record.started = Some(now);
        }
        job.record.incarnation = job.record.incarnation.max(foreign) + 1;
        let run = Run { job: number, incarnation: job.record.incarnation };
        let mut live = LiveRun::new(run, &record, lease, (Known::Ordered, now));
        (live.until, live.over_at) = (until, over_at);
        live.logged.checkpointed = job.record.checkpointed;
        for worker in &record.workers {
            self.holders[worker.index()].push(number);
        }
        job.record.run = Some(record);
        job.run = Some(live);
        self.counters.starts += 1;
        self.record_job(number);
    }

    /// The last incarnation of another job with this number that a server still has: a job of an earlier state, or one that an
    /// older copy of this state does not know. 0 where there is none. The job's own starts are counted from there, so that no
    /// server takes one for the other.
    fn foreign_incarnation(&self, number: JobNumber) -> u32 {
        let strays = self.servers.values().flat_map(|server| server.strays.iter().map(|(run, _)| *run));
        let over = self.servers.values().flat_map(|server| server.forget.iter().copied());
        let of_number = strays.chain(over).filter(|run| run.job == number);
        of_number.map(|run| run.incarnation).max().unwrap_or(0)
    }

    /// Whether a worker is free but for the job that shares it, and its server offers it.
    fn is_free(&self, worker: WorkerId, beside: Option<JobNumber>) -> bool {
        let Some((name, place)) = &self.places[worker.index()] else { return false };
        let Some(server) = self.servers.get(name) else { return false };
        server.is_reachable(self.now, self.settings.silence)
            && *place < server.n_workers
            && server.record.drained.is_none()
            && server.disk.is_none()
            && !server.strays.iter().any(|(_, held)| held == place)
            && self.holders[worker.index()].iter().all(|holder| Some(*holder) == beside)
    }

    /// Frees the workers of a run, and marks the jobs that have their place there, to be looked at again.
    pub(super) fn release(&mut self, number: JobNumber, workers: &[WorkerId]) {
        for worker in workers {
            self.holders[worker.index()].retain(|holder| *holder != number);
        }
        let waiting = self.placed_on(workers).collect::<Vec<_>>();
        self.touched.extend(waiting);
    }

    /// The jobs that have their place on one of these workers. A job may occur more than once.
    pub(super) fn placed_on(&self, workers: &[WorkerId]) -> impl Iterator<Item = JobNumber> {
        workers.iter().flat_map(|worker| {
            let has_place = |number: &&JobNumber| {
                let placement = self.jobs.get(number).and_then(|job| job.placement.as_ref());
                placement.is_some_and(|placement| placement.workers.contains(worker))
            };
            self.placed[worker.index()].iter().filter(has_place).copied()
        })
    }

    /// Keeps a job that failed from being started until an instant. Workers that it has alone go to waiting jobs meanwhile, if
    /// waiting jobs are given workers inside rounds.
    pub(super) fn rest(&mut self, number: JobNumber, until: Seconds) {
        let Some(job) = self.jobs.get_mut(&number) else { return };
        job.record.not_before = Some(until);
        if !self.settings.refill || self.scheduler.mechanism().is_none() {
            return;
        }
        self.scheduler.rest(job.id, until);
        if job.placement.as_ref().is_some_and(|placement| !placement.jobs.is_pair()) {
            job.placement = None;
            self.is_vacant = true;
        }
    }

    /// The time for which a job waits after this many failures in a row.
    pub(super) fn back_off(&self, failures: u32) -> Seconds {
        let doublings = failures.saturating_sub(1).min(6);
        self.settings.back_off * f64::from(1u32 << doublings)
    }
}
