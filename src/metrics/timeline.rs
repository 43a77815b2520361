//! A simulation over time: the jobs on each worker, the number of jobs, and the utilization of the workers.

use std::collections::BTreeMap;

use super::owners::{OwnerCourse, Owners};
use crate::cluster::Cluster;
use crate::index::{Id, JobId, WorkerId, WorkerTypeId};
use crate::simulator::{Event, Observer};
use crate::units::Seconds;
use crate::workload::Combination;

/// The most intervals into which time is cut; at least half as many are used.
const INTERVALS_MAX: usize = 512;
/// Length of an interval to begin with, in s.
const INTERVAL_S: f64 = 60.0;

/// The time that a combination spends on the same workers: a lease and its extensions.
#[derive(Clone, Debug, PartialEq)]
pub struct Stay {
    /// The jobs.
    pub jobs: Combination<JobId>,
    /// The type of the workers.
    pub worker_type: WorkerTypeId,
    /// The workers.
    pub workers: Vec<WorkerId>,
    /// Its beginning.
    pub start: Seconds,
    /// The end of its last slice.
    pub end: Seconds,
    /// The round in which it began.
    pub first_round: u64,
    /// Number of rounds that it lasted: one more than the lease was extended.
    pub n_rounds: u64,
    /// The number of servers that the workers are on.
    pub n_servers: u32,
    /// Number of slices that failed.
    pub n_failed: u64,
}

/// A job in the timeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    /// Its id in the trace, if that is not its position in order of arrival.
    pub name: Option<String>,
    /// Its type.
    pub job_type: String,
    /// Workers it needs at once.
    pub scale_factor: u32,
    /// Its arrival.
    pub arrival: Seconds,
    /// The instant at which it was done, or given up.
    pub end: Option<Seconds>,
}

/// An amount over time, in intervals that grow as time goes on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Amounts {
    width_s: f64,
    amounts: Vec<f64>,
}

impl Amounts {
    pub(super) fn new() -> Self {
        Self { width_s: INTERVAL_S, amounts: Vec::new() }
    }

    /// Length of an interval, s.
    pub(super) fn width_s(&self) -> f64 {
        self.width_s
    }

    /// Makes the intervals as long as `width_s`, which is some power of two times as long.
    pub(super) fn widen(&mut self, width_s: f64) {
        self.reach(width_s * INTERVALS_MAX as f64);
    }

    /// Makes the intervals twice as long until there are few enough up to `until`.
    fn reach(&mut self, until: f64) {
        while until > self.width_s * INTERVALS_MAX as f64 {
            self.amounts = self.amounts.chunks(2).map(|pair| pair.iter().sum()).collect();
            self.width_s *= 2.0;
        }
    }

    /// Spreads an amount evenly from one time to another.
    pub(super) fn add(&mut self, from: f64, until: f64, amount: f64) {
        if !(until > from && from >= 0.0 && until.is_finite()) {
            return;
        }
        self.reach(until);
        let per_second = amount / (until - from);
        let mut position = whole(from / self.width_s);
        loop {
            let start = position as f64 * self.width_s;
            if start >= until {
                return;
            }
            if self.amounts.len() <= position {
                self.amounts.resize(position + 1, 0.0);
            }
            let covered = until.min(start + self.width_s) - from.max(start);
            self.amounts[position] += covered.max(0.0) * per_second;
            position += 1;
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at most INTERVALS_MAX, and not negative"
)]
fn whole(value: f64) -> usize {
    value as usize
}

/// Averages over equal intervals of time, from 0 on.
#[derive(Clone, Debug, PartialEq)]
pub struct Averages {
    /// Length of an interval.
    pub interval: Seconds,
    /// Mean number of jobs that had arrived and were not done: `[interval]`.
    pub active: Vec<f64>,
    /// Mean number of jobs that ran on workers: `[interval]`.
    pub running: Vec<f64>,
    /// Busy worker-time over worker-time: `[type][interval]`.
    pub utilization: Vec<Vec<f64>>,
    /// Workers of each owner, in order of their names; empty if no job has an owner.
    pub owners: Vec<OwnerCourse>,
}

/// The fold that keeps stays, jobs and averages over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    n_workers: Vec<u32>,
    stays: Vec<Stay>,
    /// Stays of this round, and of the previous one.
    current: BTreeMap<Combination<JobId>, usize>,
    previous: BTreeMap<Combination<JobId>, usize>,
    round: u64,
    jobs: BTreeMap<JobId, Course>,
    active: Amounts,
    running: Amounts,
    busy: Vec<Amounts>,
    owners: Owners,
    until: f64,
}

impl Timeline {
    /// The timeline before the first event, on this cluster.
    pub fn new(cluster: &Cluster) -> Self {
        let n_workers: Vec<u32> = cluster.types().iter().map(|kind| kind.n_workers).collect();
        Self {
            stays: Vec::new(),
            current: BTreeMap::new(),
            previous: BTreeMap::new(),
            round: 0,
            jobs: BTreeMap::new(),
            active: Amounts::new(),
            running: Amounts::new(),
            busy: vec![Amounts::new(); n_workers.len()],
            n_workers,
            owners: Owners::default(),
            until: 0.0,
        }
    }

    /// All stays, in the order in which they began.
    pub fn stays(&self) -> &[Stay] {
        &self.stays
    }

    /// All jobs that arrived.
    pub fn jobs(&self) -> &BTreeMap<JobId, Course> {
        &self.jobs
    }

    /// The end of the last slice.
    pub fn until(&self) -> Seconds {
        Seconds::new(self.until)
    }

    /// Averages from 0 to the end of the last slice.
    pub fn averages(&self) -> Averages {
        let (mut active, mut running, mut busy) =
            (self.active.clone(), self.running.clone(), self.busy.clone());
        for job in self.jobs.values().filter(|job| job.end.is_none()) {
            let arrival = job.arrival.get();
            active.add(arrival, self.until, self.until - arrival);
        }
        let mut all: Vec<&mut Amounts> = busy.iter_mut().chain([&mut active, &mut running]).collect();
        let widths = all.iter().map(|spread| spread.width_s).chain([self.owners.width_s()]);
        let width_s = widths.fold(INTERVAL_S, f64::max);
        for spread in &mut all {
            spread.widen(width_s);
        }
        let n = whole((self.until / width_s).ceil());
        // The last interval ends with the time.
        let length = |at: usize| (self.until - at as f64 * width_s).min(width_s);
        let average = |spread: &Amounts, per: f64| -> Vec<f64> {
            let amount = |at: usize| spread.amounts.get(at).copied().unwrap_or(0.0);
            (0..n).map(|at| amount(at) / length(at) / per).collect()
        };
        Averages {
            interval: Seconds::new(width_s),
            active: average(&active, 1.0),
            running: average(&running, 1.0),
            utilization: busy
                .iter()
                .zip(&self.n_workers)
                .map(|(spread, n)| average(spread, f64::from(*n)))
                .collect(),
            owners: self.owners.courses((self.until, width_s), |amounts| average(amounts, 1.0)),
        }
    }

    fn lease(&mut self, now: Seconds, stay: Stay, extended: bool) {
        let before = self.previous.get(&stay.jobs).copied().filter(|at| {
            let before = &self.stays[*at];
            extended && before.worker_type == stay.worker_type && before.workers == stay.workers
        });
        let at = if let Some(at) = before {
            self.stays[at].n_rounds += 1;
            at
        } else {
            self.stays.push(stay);
            self.stays.len() - 1
        };
        self.stays[at].end = self.stays[at].end.max(now);
        self.current.insert(self.stays[at].jobs, at);
    }
}

impl Observer for Timeline {
    fn observe(&mut self, event: &Event<'_>) {
        match *event {
            Event::Arrival { id, job, .. } => {
                let (job_type, scale_factor, arrival) = (job.job_type.clone(), job.scale_factor, job.arrival);
                let name = job.name.clone();
                self.owners.arrived(id, job);
                self.jobs.insert(id, Course { name, job_type, scale_factor, arrival, end: None });
            }
            Event::Allocated { now, ref shares, .. } => self.owners.allocated(now.get(), shares.as_ref()),
            Event::RoundStarted { round, .. } => {
                self.round = round;
                self.previous = std::mem::take(&mut self.current);
            }
            Event::Lease { now, jobs, worker_type, workers, n_servers, extended } => {
                let (first_round, workers) = (self.round, workers.to_vec());
                let (start, end, n_rounds, n_failed) = (now, now, 1, 0);
                let stay = Stay {
                    jobs,
                    worker_type,
                    workers,
                    start,
                    end,
                    first_round,
                    n_rounds,
                    n_servers,
                    n_failed,
                };
                self.lease(now, stay, extended);
            }
            Event::Slice(slice) => {
                let (start, end) = (slice.start.get(), slice.end.get());
                self.until = self.until.max(end);
                let n_members = slice.jobs.n_members() as f64;
                self.running.add(start, end, n_members * (end - start));
                let busy = slice.time.get() * f64::from(slice.n_workers);
                self.busy[slice.worker_type.index()].add(start, end, busy);
                for id in slice.jobs.members() {
                    self.owners.held(id, (start, end), busy / n_members);
                }
                if let Some(at) = self.current.get(&slice.jobs) {
                    let stay = &mut self.stays[*at];
                    // A slice without a span corrects earlier ones; its jobs may be elsewhere now.
                    if slice.end > slice.start {
                        stay.end = stay.end.max(slice.end);
                    }
                    stay.n_failed += u64::from(!slice.succeeded);
                }
            }
            Event::Completion { at, id, .. } | Event::Dropped { at, id, .. } => {
                self.owners.ended(id, at.get());
                if let Some(job) = self.jobs.get_mut(&id) {
                    job.end = Some(at);
                    let (arrival, at) = (job.arrival.get(), at.get());
                    self.active.add(arrival, at, at - arrival);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_kept_whatever_the_intervals() {
        let mut spread = Amounts::new();
        spread.add(30.0, 90.0, 6.0);
        assert_eq!(spread.amounts, [3.0, 3.0]);
        spread.add(60.0 * 1000.0, 60.0 * 1001.0, 5.0);
        assert!((spread.width_s - 120.0).abs() < 1e-12);
        assert!((spread.amounts.iter().sum::<f64>() - 11.0).abs() < 1e-9);
        assert!((spread.amounts[0] - 6.0).abs() < 1e-12 && (spread.amounts[500] - 5.0).abs() < 1e-9);
        spread.add(5.0, 5.0, 1.0);
        assert!((spread.amounts.iter().sum::<f64>() - 11.0).abs() < 1e-9, "no time, no amount");
    }
}
