//! The plan of a lease's slice: the steps that it will have run by its end.

use serde::{Deserialize, Serialize};

use super::faults::FaultState;
use super::options::{Consolidation, Options, PairEnd, ShortSlice};
use crate::index::{Id, JobId, ServerId, WorkerTypeId};
use crate::mechanism::{GrantedLease, Workers};
use crate::scheduler::active::{Active, Table};
use crate::units::Seconds;
use crate::workload::Combination;

/// The part of one member of a combination in its slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) steps: f64,
    pub(super) throughput: f64,
    pub(super) end: f64,
}

/// The end of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Fate {
    Succeeds,
    /// Some workers get no step.
    TooShort,
    JobFails,
    WorkerFails,
}

/// A slice that is running.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Running {
    /// The position among the round's leases.
    pub(super) lease: u32,
    pub(super) jobs: Combination<JobId>,
    /// The positions of the jobs among the active ones when it started.
    #[serde(skip)]
    pub(super) positions: [u32; 2],
    pub(super) worker_type: WorkerTypeId,
    pub(super) n_workers: u32,
    pub(super) start: f64,
    pub(super) end: f64,
    pub(super) overhead: f64,
    pub(super) parts: [Part; 2],
    pub(super) fate: Fate,
    /// Whether it started inside the round, on workers that had become idle.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_refilled: bool,
    /// Whether policies are to learn its throughput. They are if throughputs are measured and it runs alone, on the fewest servers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_measured: bool,
    /// Start-up time left when the round ends, s.
    #[serde(skip)]
    pub(super) start_up_left: f64,
}

/// Links in use: the number of spread jobs on each server.
#[derive(Clone, Debug, Default)]
pub(super) struct Links {
    n_jobs: Vec<u32>,
}

impl Links {
    /// Counts the spread leases of a round.
    pub(super) fn count<'a>(&mut self, workers: &Workers, leases: impl Iterator<Item = GrantedLease<'a>>) {
        self.n_jobs.clear();
        self.n_jobs.resize(workers.n_servers(), 0);
        for lease in leases.filter(|lease| lease.n_servers > 1) {
            for server in servers(workers, &lease) {
                self.n_jobs[server.index()] += 1;
            }
        }
    }

    fn others(&self, workers: &Workers, lease: &GrantedLease<'_>) -> u32 {
        let others = |server: ServerId| self.n_jobs[server.index()].saturating_sub(1);
        servers(workers, lease).map(others).max().unwrap_or(0)
    }
}

/// The servers of a lease, each once.
fn servers<'a>(workers: &'a Workers, lease: &GrantedLease<'a>) -> impl Iterator<Item = ServerId> + use<'a> {
    let all = lease.workers;
    let first = move |position: usize| {
        !all[..position].iter().any(|other| workers.server(*other) == workers.server(all[position]))
    };
    (0..all.len()).filter(move |position| first(*position)).map(|position| workers.server(all[position]))
}

/// All conditions that decide how fast a lease runs.
#[derive(Debug)]
pub(super) struct Conditions<'a> {
    pub(super) options: &'a Options,
    pub(super) table: &'a Table,
    pub(super) workers: &'a Workers,
    pub(super) links: &'a Links,
}

impl Conditions<'_> {
    /// Plans the slice of a lease from `start`; `length` is the rest of the round then, s. Faults are applied later.
    pub(super) fn plan(
        &self,
        (index, lease): (u32, &GrantedLease<'_>),
        (start, length): (f64, f64),
        faults: &FaultState,
    ) -> Option<Running> {
        let mut positions = [self.table.find(lease.combination.first())?; 2];
        let first = &self.table.jobs[positions[0]];
        let second = match lease.combination.second() {
            None => None,
            Some(job) => {
                positions[1] = self.table.find(job)?;
                Some(&self.table.jobs[positions[1]])
            }
        };
        let overhead = self.overhead(lease, first).max(second.map_or(0.0, |job| self.overhead(lease, job)));
        // A slice that starts late in a round saves and loads until its end at the longest: its workers belong to the next round's
        // jobs then.
        let overhead = if self.options.live.has_inside() { overhead.min(length) } else { overhead };
        let due = self.start_up(lease, first).max(second.map_or(0.0, |job| self.start_up(lease, job)));
        let start_up = due.min((length - overhead).max(0.0));
        let overhead = overhead + start_up;
        let factor = self.slowdown(lease, faults);
        let rates = self.rates(lease, first, second)?.map(|rate| rate * factor);
        let begin = start + overhead;
        let available = (length - overhead).max(0.0);
        let part = |active: &Active, throughput: f64| {
            let steps = self.steps(active, throughput, available);
            Part { steps, throughput, end: begin + steps / throughput }
        };
        let one = part(first, rates[0]);
        let other = second.map(|job| part(job, rates[1]));
        let end = start.max(one.end).max(other.map_or(start, |part| part.end));
        let scale_factor = f64::from(first.progress.job.scale_factor);
        let short = |part: &Part| part.steps <= 0.0 || (scale_factor > 1.0 && part.steps < scale_factor);
        // A slice that is cut short for another reason does not fail for being short.
        let is_cut = due > 0.0 || length < self.options.round_length.get();
        let fails = self.options.semantics.short_slice == ShortSlice::Fails
            && !is_cut
            && (short(&one) || other.as_ref().is_some_and(short));
        let mut parts = [one, other.unwrap_or_default()];
        if self.options.semantics.pair_end == PairEnd::Later {
            parts[0].end = end;
            parts[1].end = end;
        }
        Some(Running {
            lease: index,
            jobs: lease.combination,
            positions: positions.map(|position| u32::try_from(position).unwrap_or(u32::MAX)),
            worker_type: lease.worker_type,
            n_workers: u32::try_from(lease.workers.len()).unwrap_or(u32::MAX),
            start,
            end,
            overhead,
            parts,
            fate: if fails { Fate::TooShort } else { Fate::Succeeds },
            is_refilled: false,
            is_measured: self.options.live.measured && second.is_none() && !self.is_scattered(lease),
            start_up_left: due - start_up,
        })
    }

    /// Whole steps that fit, at most those that remain. A job too slow for one step a round runs a fraction, unless short slices
    /// fail. The rest of the round is lost, even if the lease is extended, under all semantics.
    fn steps(&self, active: &Active, throughput: f64, available: f64) -> f64 {
        let fit = throughput * available;
        let whole = fit.floor();
        let counts = self.options.semantics.short_slice == ShortSlice::Counts;
        let steps = if whole < 1.0 && counts { fit } else { whole };
        steps.min(active.progress.steps_remaining())
    }

    fn overhead(&self, lease: &GrantedLease<'_>, active: &Active) -> f64 {
        let Some(cost) = &self.options.preemption_cost else { return 0.0 };
        if lease.extended || !active.progress.has_run {
            return 0.0;
        }
        let job_type = &active.progress.job.job_type;
        let of_type = cost.job_types.iter().find(|(name, _)| name == job_type).map(|(_, time)| *time);
        of_type.unwrap_or(cost.checkpoint + cost.restore).get()
    }

    /// The start-up time that a job still needs before its first step on these workers, in addition to the cost of preemption, s.
    fn start_up(&self, lease: &GrantedLease<'_>, active: &Active) -> f64 {
        if lease.extended { active.progress.start_up_left } else { self.options.live.start_up.get() }
    }

    /// Whether it is on more servers than necessary.
    fn is_scattered(&self, lease: &GrantedLease<'_>) -> bool {
        lease.workers.len() > 1
            && lease.n_servers > self.workers.n_servers_least(lease.worker_type, lease.workers.len())
    }

    fn rates(&self, lease: &GrantedLease<'_>, first: &Active, second: Option<&Active>) -> Option<[f64; 2]> {
        let column = lease.worker_type.index();
        let modelled = self.options.semantics.consolidation == Consolidation::Modelled;
        let scattered = modelled && self.is_scattered(lease);
        // The fraction of its consolidated throughput that a job keeps when it is scattered.
        let keeps = |active: &Active| match active.spread[column] {
            Some(spread) if spread > 0.0 => spread / active.alone[column],
            _ => 1.0,
        };
        match second {
            None => {
                let spread =
                    if scattered { first.spread[column].filter(|spread| *spread > 0.0) } else { None };
                Some([spread.unwrap_or(first.alone[column]), 0.0])
            }
            Some(second) => {
                let both = self.table.colocated(first, second, lease.worker_type)?;
                Some(if scattered { [both[0] * keeps(first), both[1] * keeps(second)] } else { both })
            }
        }
    }

    fn slowdown(&self, lease: &GrantedLease<'_>, faults: &FaultState) -> f64 {
        let network = match self.options.contention {
            Some(contention) if lease.n_servers > 1 => {
                1.0 / (1.0 + contention.slowdown * f64::from(self.links.others(self.workers, lease)))
            }
            _ => 1.0,
        };
        network * faults.speed(lease.workers)
    }
}

impl Running {
    /// A key that ascends from the latest end to the earliest: bits of floats ≥ 0 are in the order of the floats, the
    /// first of them 0.
    pub(super) fn earliness(&self) -> u64 {
        !self.end.to_bits() & (u64::MAX >> 1)
    }

    /// The key by which slices with equal ends are ordered: jobs alone before pairs, then by job.
    pub(super) fn order_of_equal_ends(&self) -> (bool, JobId, Option<JobId>) {
        (self.jobs.is_pair(), self.jobs.first(), self.jobs.second())
    }

    /// The fate of a slice whose worker fails at an instant.
    pub(super) fn lose_worker(&mut self, at: Seconds) {
        self.fate = Fate::WorkerFails;
        self.end = at.get();
        for part in &mut self.parts {
            part.end = at.get();
        }
    }
}
