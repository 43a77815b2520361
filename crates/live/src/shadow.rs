//! A policy beside another scheduler: it decides on that scheduler's jobs, orders nothing, and keeps account.
//!
//! Each job that the other scheduler shows is submitted here when it may first run there, which a job may not that is held, or
//! waits for other jobs or a later time. Rounds are decided as they would be live; a job with a lease is assumed to run at its
//! throughput, without time for starting and stopping. The work of a job is known once it ends there: the time that it ran, times
//! its throughput on the workers that it had. So its end here is known only then. **Until then it takes part here**, though it may
//! have been done long before; so other jobs may wait longer here than they would.
//!
//! Its only input and output is its record, a file that it reads and writes whole. Instants are in s since 1970.

mod key;
mod record;
mod report;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use apportion::index::{JobId, WorkerTypeId};
use apportion::scheduler::{Decided, Lease, Received, Scheduler};
use apportion::workload::Combination;
use apportion::{Job, Seconds, Steps, StepsPerSecond};

pub use key::JobKey;
pub use record::{Entry, Piece, Record, RecordError, Seen, Submission, Times};
pub use report::{Averages, Report, Row};

/// The time limit of a job that states none, in s.
const NO_LIMIT_S: f64 = 7.0 * 86_400.0;

/// A lease that is running.
#[derive(Clone, Debug)]
struct Running {
    id: JobId,
    worker_type: WorkerTypeId,
    speed: f64,
    /// Time in s and steps that the mechanism has not been told.
    due: (f64, f64),
}

/// A policy beside another scheduler.
#[derive(Debug)]
pub struct Shadow {
    scheduler: Scheduler,
    record: Record,
    ids: BTreeMap<JobKey, JobId>,
    running: BTreeMap<JobKey, Running>,
    /// The instant at which the round ends; none before the first round.
    until_s: Option<f64>,
    /// The instant up to which running leases have been counted.
    counted_s: f64,
    is_vacant: bool,
    decision_limit: Duration,
    /// Sentences for the operator since they were last taken.
    words: Vec<String>,
}

impl Shadow {
    /// A shadow that goes on with a record. `scheduler` has no jobs.
    pub fn new(scheduler: Scheduler, record: Record, decision_limit: Duration, now_s: f64) -> Self {
        let mut shadow = Self {
            scheduler,
            record,
            ids: BTreeMap::new(),
            running: BTreeMap::new(),
            until_s: None,
            counted_s: now_s,
            is_vacant: false,
            decision_limit,
            words: Vec::new(),
        };
        let open: Vec<JobKey> =
            shadow.record.jobs.iter().filter(|(_, entry)| entry.is_open()).map(|(id, _)| *id).collect();
        for id in open {
            shadow.submit(id);
        }
        shadow
    }

    /// All that it has seen and done.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// The sentences for the operator since they were last taken.
    pub fn take_words(&mut self) -> Vec<String> {
        std::mem::take(&mut self.words)
    }

    /// Takes over how many workers of each type the other scheduler gives jobs, by the cluster's names.
    pub fn see_workers(&mut self, n_up: &BTreeMap<String, u32>) {
        let types: Vec<(WorkerTypeId, String)> =
            self.scheduler.cluster().types().enumerate().map(|(id, kind)| (id, kind.name.clone())).collect();
        for (id, name) in types {
            let n_up = n_up.get(&name).copied().unwrap_or(0) as usize;
            let workers: Vec<_> = self.scheduler.workers().of_type(id).collect();
            for (place, worker) in workers.into_iter().enumerate() {
                // The worker exists.
                let _ = self.scheduler.set_up(worker, place < n_up);
            }
        }
    }

    /// Takes over all jobs that the other scheduler shows at this instant, by its numbers.
    pub fn see(&mut self, now_s: f64, seen: &BTreeMap<JobKey, Seen>) {
        self.count(now_s);
        self.record.looked_s = now_s;
        let mut shown = BTreeSet::new();
        for (&number, job) in seen {
            let id = self.record.key_of(number, job);
            shown.insert(id);
            self.see_one(id, job);
        }
        for (id, entry) in &mut self.record.jobs {
            let is_gone = !shown.contains(id) && entry.seen.there.ended_s.is_none();
            entry.gone_s = is_gone.then(|| entry.gone_s.unwrap_or(now_s));
        }
        let open: Vec<JobKey> =
            self.record.jobs.iter().filter(|(_, entry)| entry.is_open()).map(|(id, _)| *id).collect();
        for id in open {
            self.learn(id, shown.contains(&id));
        }
    }

    /// Takes over a job that is shown.
    fn see_one(&mut self, id: JobKey, job: &Seen) {
        if let Some(entry) = self.record.jobs.get_mut(&id) {
            entry.show(job);
            if job.is_withheld && entry.is_open() && entry.seen.there.started_s.is_none() {
                let why = "it was held, or made to wait for other jobs or a later time, after it could run";
                entry.leave_out(why.to_owned(), self.record.looked_s);
                self.leave(id);
            }
            return;
        }
        let was_over = job.there.ended_s.is_some_and(|ended| ended <= self.record.since_s);
        if !was_over && !job.was_never_ready() {
            self.record.jobs.insert(id, Entry::new(job.clone()));
            self.submit(id);
        }
    }

    /// Applies what is known of a job there to the job here.
    fn learn(&mut self, id: JobKey, is_shown: bool) {
        let now_s = self.record.looked_s;
        let Some(entry) = self.record.jobs.get_mut(&id) else { return };
        let Seen { there, ran_on, speeds, .. } = &entry.seen;
        match (there.started_s, there.ended_s) {
            (Some(started), Some(ended)) => {
                let speed = ran_on.as_ref().and_then(|name| speeds.get(name)).copied();
                if let Some(speed) = speed {
                    // Of a job that was put back, only the last run counts: the work that was left of earlier runs is unknown.
                    let started = entry.restarted_s.unwrap_or(started);
                    entry.needed = Some((ended - started).max(0.0) * speed);
                } else {
                    entry.leave_out("it ran on workers of no known type".to_owned(), now_s);
                    self.leave(id);
                }
            }
            (None, Some(ended)) => {
                entry.leave_out("it was withdrawn before it ran".to_owned(), ended);
                self.leave(id);
            }
            (_, None) if !is_shown => {
                let why = "it is not shown any more, and how it ended is not known".to_owned();
                entry.leave_out(why, now_s);
                self.leave(id);
            }
            (_, None) => {}
        }
        self.end_if_done(id);
    }

    fn submit(&mut self, id: JobKey) {
        let Some(entry) = self.record.jobs.get_mut(&id) else { return };
        let seen = &entry.seen;
        if seen.n_workers == 0 {
            let why =
                "it asks for parts of accelerators (shard, mps), and workers here are whole ones".to_owned();
            self.words.push(format!("job {id} ({}) is left out: {why}", seen.name));
            let at_s = seen.ready_s();
            entry.leave_out(why, at_s);
            return;
        }
        let fastest = seen.speeds.values().copied().fold(0.0, f64::max);
        let mut job = Job::new(seen.job_type.clone()).scale_factor(seen.n_workers);
        for (name, speed) in &seen.speeds {
            job = job.throughput(name.clone(), StepsPerSecond::new(*speed));
        }
        job.arrival = Seconds::new((seen.ready_s() - self.record.since_s).max(0.0));
        let left = seen.limit_s.unwrap_or(NO_LIMIT_S) * fastest - entry.done();
        job.total_steps = Steps::new(left.max(1.0));
        match self.scheduler.submit_as(id.to_string(), job) {
            Ok(known) => {
                self.ids.insert(id, known);
                self.is_vacant = true;
            }
            Err(error) => {
                let why = format!("it fits nowhere here: {error}");
                self.words.push(format!("job {id} ({}) is left out: {why}", entry.seen.name));
                let at_s = entry.seen.ready_s();
                entry.leave_out(why, at_s);
            }
        }
    }

    /// Removes a job from the scheduler.
    fn leave(&mut self, id: JobKey) {
        self.tell(id);
        self.running.remove(&id);
        if let Some(known) = self.ids.remove(&id) {
            self.scheduler.finish(known);
            self.is_vacant = true;
        }
    }

    /// Ends a job that has done as many steps here as it needed there.
    fn end_if_done(&mut self, id: JobKey) {
        let Some(entry) = self.record.jobs.get_mut(&id).filter(|entry| entry.is_open()) else { return };
        let Some(needed) = entry.needed else { return };
        if let Some(ended) = entry.reached(needed) {
            entry.here.ended_s = Some(ended);
            entry.work.clear();
            self.leave(id);
        }
    }

    /// Counts the work of running leases up to now, or up to the round's end.
    fn count(&mut self, now_s: f64) {
        let until = self.until_s.map_or(now_s, |until| until.min(now_s));
        let from = self.counted_s;
        if until > from {
            for (id, running) in &mut self.running {
                running.due.0 += until - from;
                running.due.1 += (until - from) * running.speed;
                if let Some(entry) = self.record.jobs.get_mut(id) {
                    entry.add(Piece { from_s: from, until_s: until, speed: running.speed });
                }
            }
        }
        self.counted_s = self.counted_s.max(now_s);
    }

    /// Tells the mechanism the time that a job has received.
    fn tell(&mut self, id: JobKey) {
        let Some(running) = self.running.get_mut(&id) else { return };
        let (time, steps) = std::mem::take(&mut running.due);
        let (jobs, worker_type) = (Combination::single(running.id), running.worker_type);
        let steps = [Steps::new(steps), Steps::ZERO];
        // The job exists.
        let _ = self.scheduler.record(Received { jobs, worker_type, time: Seconds::new(time), steps });
    }

    /// Decides what is due at this instant: the next round, or the use of idle workers until then.
    pub fn advance(&mut self, now_s: f64) {
        self.count(now_s);
        let running: Vec<JobKey> = self.running.keys().copied().collect();
        for id in running {
            self.end_if_done(id);
        }
        if self.ids.is_empty() {
            self.until_s = None;
            return;
        }
        if self.until_s.is_none_or(|until| now_s >= until) {
            self.decide(now_s);
        } else if std::mem::take(&mut self.is_vacant) {
            let running: Vec<JobKey> = self.running.keys().copied().collect();
            for id in running {
                self.tell(id);
            }
            let (decided, leases) =
                self.scheduler.refill_with_arrivals(self.on_clock(now_s), Some(self.decision_limit));
            self.note_decided(&decided);
            self.grant(&leases, now_s);
        }
    }

    /// Notes that a policy is late, or failed.
    fn note_decided(&mut self, decided: &Decided) {
        match decided {
            Decided::Late { .. } => self.words.push("the policy has not decided in time".to_owned()),
            Decided::Failed { error } => self.words.push(format!("the policy gave no decision: {error}")),
            Decided::Fresh { .. } | Decided::Unchanged => {}
        }
    }

    /// An instant on the scheduler's clock.
    fn on_clock(&self, now_s: f64) -> Seconds {
        Seconds::new((now_s - self.record.since_s).max(0.0))
    }

    fn decide(&mut self, now_s: f64) {
        let running: Vec<JobKey> = self.running.keys().copied().collect();
        for id in running {
            self.tell(id);
        }
        self.running.clear();
        let length = self.scheduler.options().round_length.get();
        // A round that was missed is not made up for.
        let start = self.until_s.filter(|until| now_s < until + length).unwrap_or(now_s);
        let round = self.scheduler.tick(self.on_clock(start), Some(self.decision_limit));
        self.note_decided(&round.decided);
        self.record.n_rounds += 1;
        self.until_s = Some(start + length);
        self.counted_s = start;
        self.is_vacant = false;
        self.grant(&round.leases, start);
        self.count(now_s);
    }

    fn grant(&mut self, leases: &[Lease], from_s: f64) {
        for lease in leases {
            for (known, name) in lease.jobs.members().zip(&lease.names) {
                let Ok(id) = name.parse::<JobKey>() else { continue };
                let Some(entry) = self.record.jobs.get_mut(&id) else { continue };
                let speed = entry.seen.speeds.get(&lease.type_name).copied().unwrap_or(0.0);
                entry.here.started_s.get_or_insert(from_s.max(entry.seen.ready_s()));
                let worker_type = lease.worker_type;
                self.running.insert(id, Running { id: known, worker_type, speed, due: (0.0, 0.0) });
            }
        }
    }
}

#[cfg(test)]
mod tests;
