//! The floor of policies without a program: a job that is far behind a part of its isolated share is served first, until it has caught up.
//!
//! | symbol | meaning | unit |
//! |---|---|---|
//! | φ | the floor | |
//! | q_m | the throughput of job m by its isolated share of the types that fit it, 1/n of each | steps/s |
//! | d_m | ∫ φ q_m dt since the policy first saw the job, less the steps that it has made since: its debt | steps |
//!
//! A job comes first from the moment at which its debt is more than [`PATIENCE`] of φ q_m, and does so until its debt is 0. Jobs that come
//! first are placed before all others, in the order in which they fell behind.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use apportion::index::{IndexVec, JobId, JobIndex, ServerId, WorkerId, WorkerTypeId};
use apportion::policy::view::fitting_isolated;
use apportion::policy::{Placed, PolicyError, RoundDecision, RoundPolicy, RoundView};
use apportion::problem::{Colocation, Problem, ProblemBuilder, ProblemError};
use apportion::workload::Combination;

/// The time by which a job may fall behind its floor before it comes first, s.
pub const PATIENCE: f64 = 24.0 * 3600.0;

/// The debts of jobs to a floor.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Debts {
    floor: f64,
    accounts: BTreeMap<JobId, Account>,
    /// The number of times that a job fell behind.
    n_fallen: u64,
}

/// The account of a job when it was last seen.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Account {
    /// Time since its arrival, s.
    elapsed: f64,
    /// Steps remaining.
    left: f64,
    /// The floor, steps/s.
    rate: f64,
    /// Steps that it lacks to its floor; negative if it is ahead.
    debt: f64,
    /// Its place among jobs that come first, if it is one.
    place: Option<u64>,
}

impl Debts {
    /// No debts yet, to this part of an isolated share.
    pub fn new(floor: f64) -> Self {
        Self { floor, accounts: BTreeMap::new(), n_fallen: 0 }
    }

    /// Takes in the progress of jobs; returns the jobs that come first, in the order in which they fell behind.
    pub fn update(&mut self, problem: &Problem) -> Vec<JobIndex> {
        let before = std::mem::take(&mut self.accounts);
        let mut first: Vec<(u64, JobIndex)> = Vec::new();
        for (job, active) in problem.jobs().enumerate() {
            let isolated = fitting_isolated(problem, active.scale_factor, problem.throughput().row(job));
            let (rate, elapsed) = (self.floor * isolated, active.elapsed.get());
            let mut account =
                Account { elapsed, left: active.steps_remaining.get(), rate, debt: 0.0, place: None };
            if let Some(before) = before.get(&active.id) {
                account.debt =
                    before.debt + before.rate * (elapsed - before.elapsed) - (before.left - account.left);
                account.place = before.place.filter(|_| account.debt > 0.0);
            }
            if account.place.is_none() && account.debt > PATIENCE * rate {
                account.place = Some(self.n_fallen);
                self.n_fallen += 1;
            }
            first.extend(account.place.map(|place| (place, job)));
            self.accounts.insert(active.id, account);
        }
        first.sort_unstable();
        first.into_iter().map(|(_, job)| job).collect()
    }
}

/// The worker type that serves a job first: the fastest with room.
pub fn fastest_with_room(
    problem: &Problem,
    job: JobIndex,
    free: impl Fn(WorkerTypeId) -> usize,
) -> Option<WorkerTypeId> {
    let needed = problem.jobs()[job].scale_factor as usize;
    let speed = |kind: &WorkerTypeId| problem.throughput()[(job, *kind)];
    let kinds = problem.cluster().types().ids().rev();
    kinds
        .filter(|kind| free(*kind) >= needed && speed(kind) > 0.0)
        .max_by(|one, other| speed(one).total_cmp(&speed(other)))
}

/// A policy inside rounds with a floor: it places jobs that come first, and leaves the rest of the round to another policy.
#[derive(Debug)]
pub struct Floored {
    inner: Box<dyn RoundPolicy>,
    debts: Debts,
    /// The placements of jobs that come first that are still to be given, in reverse order.
    first: Vec<Placed>,
    /// Whether nothing is left to the other policy in this round.
    all_first: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    debts: Debts,
    inner: serde_json::Value,
}

impl Floored {
    /// A policy with this floor, from 0 to 1.
    pub fn new(inner: Box<dyn RoundPolicy>, floor: f64) -> Self {
        Self { inner, debts: Debts::new(floor), first: Vec::new(), all_first: false }
    }
}

/// The placements of jobs that come first, as far as there is room; their workers are no longer free.
fn places(
    view: &RoundView<'_>,
    first: Vec<JobIndex>,
    free: &mut IndexVec<WorkerTypeId, Vec<WorkerId>>,
) -> BTreeMap<JobIndex, Placed> {
    let mut placed = BTreeMap::new();
    for job in first {
        let Some(worker_type) = fastest_with_room(view.problem, job, |kind| free[kind].len()) else {
            continue;
        };
        let active = &view.problem.jobs()[job];
        let combination = Combination::single(active.id);
        let had = view.previous.iter().find(|had| {
            let is_free = |worker: &WorkerId| free[worker_type].binary_search(worker).is_ok();
            had.combination == combination
                && had.worker_type == worker_type
                && had.workers.len() == active.scale_factor as usize
                && had.workers.iter().all(is_free)
        });
        let workers = match had {
            Some(had) => {
                free[worker_type].retain(|worker| had.workers.binary_search(worker).is_err());
                had.workers.clone()
            }
            None => on_fewest_servers(view, free, (worker_type, active.scale_factor as usize)),
        };
        placed.insert(job, Placed { combination, worker_type, workers });
    }
    placed
}

/// The problem of the jobs that are not placed.
fn rest(problem: &Problem, placed: &BTreeMap<JobIndex, Placed>) -> Result<Problem, ProblemError> {
    let mut builder = ProblemBuilder::new(problem.cluster().clone());
    for entity in problem.entities() {
        builder.entity(entity.clone());
    }
    for (job, active) in problem.jobs().enumerate().filter(|(job, _)| !placed.contains_key(job)) {
        builder.job(active.clone(), problem.throughput().row(job));
    }
    // Pairs are by position; no policy inside rounds has any.
    if let rows @ Colocation::Rows { .. } = problem.colocation() {
        builder.colocation(rows.clone());
    }
    builder.build()
}

impl RoundPolicy for Floored {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn check(&self, view: &RoundView<'_>) -> Result<(), String> {
        self.inner.check(view)
    }

    fn begin(&mut self, view: &RoundView<'_>) -> Result<(), PolicyError> {
        let mut free = view.free.clone();
        let placed = places(view, self.debts.update(view.problem), &mut free);
        self.all_first = false;
        if placed.is_empty() {
            return self.inner.begin(view);
        }
        let problem = rest(view.problem, &placed).map_err(|error| PolicyError::Undecided {
            policy: self.inner.name().to_owned(),
            reason: error.to_string(),
        })?;
        self.first = placed.into_values().collect();
        self.all_first = problem.n_jobs() == 0;
        if self.all_first {
            return Ok(());
        }
        let is_left = |job: JobId| problem.jobs().iter().any(|active| active.id == job);
        let resizable: Vec<_> = view.resizable.iter().filter(|of| is_left(of.job)).cloned().collect();
        self.inner.begin(&RoundView { problem: &problem, resizable: &resizable, free: &free, ..*view })
    }

    fn next(&mut self, view: &RoundView<'_>) -> Result<RoundDecision, PolicyError> {
        if view.rejected.is_none() {
            if let Some(placed) = self.first.pop() {
                return Ok(RoundDecision::Place(placed));
            }
            if self.all_first {
                return Ok(RoundDecision::EndRound);
            }
        }
        self.inner.next(view)
    }

    fn state(&self) -> serde_json::Value {
        serde_json::json!(State { debts: self.debts.clone(), inner: self.inner.state() })
    }

    fn restore(&mut self, state: &serde_json::Value) -> Result<(), PolicyError> {
        let fault = |_| PolicyError::State { policy: self.inner.name().to_owned() };
        let State { debts, inner } = State::deserialize(state).map_err(fault)?;
        self.debts = debts;
        self.inner.restore(&inner)
    }
}

/// Takes `n_workers` free workers of a type: from the server with the fewest free workers that has enough, or else from the servers
/// with the most.
pub(crate) fn on_fewest_servers(
    view: &RoundView<'_>,
    free: &mut IndexVec<WorkerTypeId, Vec<WorkerId>>,
    (worker_type, n_workers): (WorkerTypeId, usize),
) -> Vec<WorkerId> {
    let mut of_servers: BTreeMap<ServerId, Vec<WorkerId>> = BTreeMap::new();
    for worker in &free[worker_type] {
        of_servers.entry(view.locations[*worker].server).or_default().push(*worker);
    }
    let mut taken = Vec::with_capacity(n_workers);
    while taken.len() < n_workers {
        let left = n_workers - taken.len();
        let of_size = |(server, workers): (&ServerId, &Vec<WorkerId>)| (workers.len(), *server);
        let enough = of_servers.iter().map(of_size).filter(|(n_free, _)| *n_free >= left).min();
        let most = || {
            of_servers
                .iter()
                .map(of_size)
                .max_by_key(|(n_free, server)| (*n_free, std::cmp::Reverse(*server)))
        };
        let Some((_, server)) = enough.or_else(most) else { break };
        taken.extend(of_servers.remove(&server).into_iter().flatten().take(left));
    }
    taken.sort_unstable();
    free[worker_type].retain(|worker| taken.binary_search(worker).is_err());
    taken
}

#[cfg(test)]
#[path = "floor_tests.rs"]
mod tests;
