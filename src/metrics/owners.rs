//! Workers of each owner over time: those that allocations owe its jobs, and those that its jobs held.

use std::collections::BTreeMap;

use super::timeline::Amounts;
use crate::index::JobId;
use crate::simulator::AllocatedShares;
use crate::workload::Job;

/// The number of workers of one owner over time.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnerCourse {
    /// The owner; none for all jobs without one.
    pub name: Option<String>,
    /// Mean number of workers that allocations owed its jobs: `[interval]`; none if no decision reported shares.
    pub owed: Option<Vec<f64>>,
    /// Mean number of workers that its jobs held, each half of those that they shared: `[interval]`.
    pub held: Vec<f64>,
}

/// The workers of one owner so far.
#[derive(Clone, Debug, PartialEq)]
struct Account {
    owed: Amounts,
    held: Amounts,
    /// Workers that the last allocation owes its jobs that are not done.
    rate: f64,
    /// The instant up to which these are in `owed`, s.
    since: f64,
}

impl Account {
    /// Adds what the last allocation owes up to `now`.
    fn settle(&mut self, now: f64) {
        if self.rate > 0.0 {
            self.owed.add(self.since, now, self.rate * (now - self.since));
        }
        self.since = self.since.max(now);
    }
}

/// The owner of a job, its scale factor, and the workers that the last allocation owes it.
#[derive(Clone, Debug, PartialEq)]
struct Owned {
    owner: Option<String>,
    scale_factor: f64,
    rate: f64,
}

/// The fold over events that keeps the workers of each owner; jobs without owners are counted once there is one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Owners {
    accounts: BTreeMap<Option<String>, Account>,
    /// Jobs that are not done.
    jobs: BTreeMap<JobId, Owned>,
    /// Whether a decision has reported its shares.
    knows_shares: bool,
}

impl Owners {
    /// Notes an arrival.
    pub(super) fn arrived(&mut self, id: JobId, job: &Job) {
        let (owner, scale_factor) = (job.entity.clone(), f64::from(job.scale_factor));
        self.accounts.entry(owner.clone()).or_insert_with(|| Account {
            owed: Amounts::new(),
            held: Amounts::new(),
            rate: 0.0,
            since: 0.0,
        });
        self.jobs.insert(id, Owned { owner, scale_factor, rate: 0.0 });
    }

    /// Notes the shares of a decision at `now`.
    pub(super) fn allocated(&mut self, now: f64, shares: Option<&AllocatedShares<'_>>) {
        for account in self.accounts.values_mut() {
            account.settle(now);
            account.rate = 0.0;
        }
        self.jobs.values_mut().for_each(|job| job.rate = 0.0);
        let Some(shares) = shares else { return };
        self.knows_shares = true;
        for row in shares.iter() {
            let time: f64 = row.shares.iter().map(|(_, share)| share).sum();
            let part = time / row.jobs.n_members() as f64;
            for id in row.jobs.members() {
                let Some(job) = self.jobs.get_mut(&id) else { continue };
                let workers = part * job.scale_factor;
                job.rate += workers;
                if let Some(account) = self.accounts.get_mut(&job.owner) {
                    account.rate += workers;
                }
            }
        }
    }

    /// Notes that a job held workers from one instant to another, for an amount of worker-time in all.
    pub(super) fn held(&mut self, id: JobId, (start, end): (f64, f64), worker_time: f64) {
        if let Some(account) = self.jobs.get(&id).and_then(|job| self.accounts.get_mut(&job.owner)) {
            account.held.add(start, end, worker_time);
        }
    }

    /// Notes that a job is done, or given up.
    pub(super) fn ended(&mut self, id: JobId, now: f64) {
        let Some(job) = self.jobs.remove(&id) else { return };
        if let Some(account) = self.accounts.get_mut(&job.owner) {
            account.settle(now);
            account.rate = (account.rate - job.rate).max(0.0);
        }
    }

    /// The workers of each owner up to `until`, with `average` over intervals of this width in s; empty if no job has an owner.
    pub(super) fn courses(
        &self,
        (until, width_s): (f64, f64),
        average: impl Fn(&Amounts) -> Vec<f64>,
    ) -> Vec<OwnerCourse> {
        if self.accounts.keys().all(Option::is_none) {
            return Vec::new();
        }
        let course = |(name, account): (&Option<String>, &Account)| {
            let mut account = account.clone();
            account.settle(until);
            let averaged = |mut amounts: Amounts| {
                amounts.widen(width_s);
                average(&amounts)
            };
            OwnerCourse {
                name: name.clone(),
                owed: self.knows_shares.then(|| averaged(account.owed)),
                held: averaged(account.held),
            }
        };
        self.accounts.iter().map(course).collect()
    }

    /// The width of the widest interval of any owner, s.
    pub(super) fn width_s(&self) -> f64 {
        let amounts = self.accounts.values().flat_map(|account| [&account.owed, &account.held]);
        amounts.map(Amounts::width_s).fold(0.0, f64::max)
    }
}
