//! Choice of workers for a gang, by its expected speed on them.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use super::memory::Known;
use super::round_state::{RoundState, Server, kept_of, n_servers_least};
use apportion::index::{IndexVec, JobIndex, ServerId, WorkerId, WorkerTypeId};
use apportion::problem::Problem;

/// The part of its speed that a job gives up for servers that it fills, compared with servers of which half would stay free.
const PACKING: f64 = 0.02;

/// Workers for a job, with its expected speed on them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    /// Whether these are the workers of the round before.
    pub(super) stays: bool,
    /// The servers, in the order in which they are taken.
    pub(super) servers: Vec<ServerId>,
    /// The workers.
    pub(super) workers: Vec<WorkerId>,
    /// The expected speed, relative to the job's speed on its fastest type.
    pub(super) expected: f64,
}

/// Free workers for gangs of one size.
#[derive(Clone, Debug, PartialEq)]
struct Offer {
    servers: Vec<ServerId>,
    workers: Vec<WorkerId>,
    /// Expected speed of the slowest worker, relative to its type.
    slowest: f64,
    /// The number that a rule compares; 1 if all workers are as fast as their type.
    worth: f64,
}

/// The best offers of one type by size of gang: [on as few servers as hold it, on more].
type OfType = BTreeMap<usize, [Option<Offer>; 2]>;

/// The best offers of each type, found when they are first needed.
#[derive(Clone, Debug)]
pub(super) struct Offers(IndexVec<WorkerTypeId, OnceCell<OfType>>);

impl Offers {
    /// Offers of `n_types` worker types, none of which is found yet.
    pub(super) fn new(n_types: usize) -> Self {
        Self((0..n_types).map(|_| OnceCell::new()).collect())
    }

    /// Forgets the offers of a worker type, as its free workers have changed.
    pub(super) fn forget(&mut self, kind: WorkerTypeId) {
        self.0[kind] = OnceCell::new();
    }

    fn of(&self, round: &RoundState, kind: WorkerTypeId) -> &OfType {
        self.0[kind].get_or_init(|| of_type(round, kind))
    }
}

fn of_type(round: &RoundState, kind: WorkerTypeId) -> OfType {
    let best = |needed: &usize| {
        let least = round.n_servers_least(kind, *needed);
        let mut best: [Option<Offer>; 2] = [None, None];
        for (servers, workers) in proposals(round, kind, *needed) {
            let offer = offer(round, servers, workers);
            let place = &mut best[usize::from(offer.servers.len() > least)];
            if place.as_ref().is_none_or(|before| offer.worth > before.worth) {
                *place = Some(offer);
            }
        }
        (*needed, best)
    };
    round.sizes().iter().map(best).collect()
}

/// Expected speeds of workers relative to their type: (of the slowest, mean).
pub(super) fn speeds(known: impl Fn(WorkerId) -> Known, workers: &[WorkerId]) -> (f64, f64) {
    let speed = |worker: &WorkerId| known(*worker).log_speed.min(1.0).exp();
    let slowest = workers.iter().map(speed).fold(f64::INFINITY, f64::min);
    (slowest, workers.iter().map(speed).sum::<f64>() / workers.len().max(1) as f64)
}

fn offer(round: &RoundState, servers: Vec<ServerId>, workers: Vec<WorkerId>) -> Offer {
    let (slowest, worth) = worth(round, &servers, &workers);
    Offer { servers, workers, slowest, worth }
}

/// Workers for a gang judged: (speed of the slowest worker, which sets the gang's speed; worth). The more of the cluster's workers
/// are in demand, the more a difference between slowest and mean speed costs, so that workers of a gang are about equally fast.
/// Free workers that stay beside the gang, where a larger gang would fit, cost a little.
pub(super) fn worth(round: &RoundState, servers: &[ServerId], workers: &[WorkerId]) -> (f64, f64) {
    let (slowest, mean) = speeds(|worker| round.known(worker), workers);
    let pressure = round.pressure();
    let on = || servers.iter().map(|server| &round.servers()[*server]);
    let free: usize = on().map(|server| server.free.len()).sum();
    let all: usize = on().map(|server| server.n_workers).sum();
    let left = free.saturating_sub(workers.len()) as f64 / all.max(1) as f64;
    (slowest, (slowest - pressure * (mean - 1.0)).max(0.0) * (1.0 - 2.0 * PACKING * left))
}

/// The expected speed of a job on these workers, relative to its speed on its fastest type.
pub(super) fn expected(round: &RoundState, job: JobIndex, kind: WorkerTypeId, workers: &[WorkerId]) -> f64 {
    let sizes = (workers.len(), round.servers_of(workers).len());
    let speeds = (speeds(|worker| round.known(worker), workers).0, round.job_state(job).fastest);
    expected_of(round.problem(), (job, kind), sizes, speeds)
}

/// The expected speed of a job on `n_workers` workers of a type on `n_servers` servers, relative to its speed on its fastest type.
/// `slowest` is the speed of the slowest worker relative to its type, `fastest` the job's steps/s on its fastest type.
pub(super) fn expected_of(
    problem: &Problem,
    (job, kind): (JobIndex, WorkerTypeId),
    (n_workers, n_servers): (usize, usize),
    (slowest, fastest): (f64, f64),
) -> f64 {
    let scattered = n_workers > 1 && n_servers > n_servers_least(problem, kind, n_workers);
    let kept = if scattered { kept_of(problem, job, kind) } else { 1.0 };
    problem.throughput()[(job, kind)] / fastest * slowest * kept
}

/// The rule's placement of a job: the workers with the largest product of expected speed and worth. None if it fits nowhere.
pub(super) fn plan(round: &RoundState, job: JobIndex) -> Option<Plan> {
    let needed = round.problem().jobs()[job].scale_factor as usize;
    let mut best: Option<(f64, f64, &Offer)> = None;
    for kind in round.problem().cluster().types().ids() {
        let relative = round.relative(job, kind);
        let found = (relative > 0.0).then(|| round.offers().of(round, kind));
        let Some(offers) = found.and_then(|found| found.get(&needed)) else { continue };
        for (offer, scattered) in offers.iter().zip([false, true]) {
            let Some(offer) = offer else { continue };
            let speed = relative * if scattered { round.kept(job, kind) } else { 1.0 };
            if best.is_none_or(|(most, _, _)| speed * offer.worth > most) {
                best = Some((speed * offer.worth, speed * offer.slowest, offer));
            }
        }
    }
    if round.may_stay(job)
        && let Some(placed) = &round.job_state(job).previous
    {
        let servers = round.servers_of(&placed.workers);
        let (slowest, worth) = worth(round, &servers, &placed.workers);
        let expected = expected(round, job, placed.worker_type, &placed.workers);
        if best.is_none_or(|(most, _, _)| expected / slowest * worth >= most) {
            return Some(Plan { stays: true, servers, workers: placed.workers.clone(), expected });
        }
    }
    best.map(|(_, expected, offer)| {
        let (servers, workers) = (offer.servers.clone(), offer.workers.clone());
        Plan { stays: false, servers, workers, expected }
    })
}

/// Sets of free workers of a type for a gang: neighbours in speed on one server; if no server has room, on neighbours in speed
/// among the servers with the most free workers, and on further servers with less room where needed.
fn proposals(round: &RoundState, kind: WorkerTypeId, needed: usize) -> Vec<(Vec<ServerId>, Vec<WorkerId>)> {
    let all = round.servers().enumerate();
    let mut of_kind: Vec<(ServerId, &Server)> =
        all.filter(|(_, server)| server.kind == kind && !server.free.is_empty()).collect();
    let mut found = Vec::new();
    for (id, server) in &of_kind {
        found.extend(server.free.windows(needed).map(|workers| (vec![*id], workers.to_vec())));
    }
    let slowest = |server: &Server| server.free.last().map_or(0.0, |worker| round.known(*worker).log_speed);
    of_kind.sort_by(|(one, a), (other, b)| {
        let room = b.free.len().cmp(&a.free.len());
        room.then(slowest(b).total_cmp(&slowest(a))).then(one.cmp(other))
    });
    let most = of_kind.first().map_or(0, |(_, server)| server.free.len());
    if most == 0 || (needed <= most && !found.is_empty()) {
        return found;
    }
    let n_equal = of_kind.iter().take_while(|(_, server)| server.free.len() == most).count();
    let n_servers = needed.div_ceil(most);
    for first in 0..=n_equal.saturating_sub(n_servers) {
        let (mut servers, mut workers) = (Vec::new(), Vec::new());
        for (id, server) in &of_kind[first..] {
            if workers.len() == needed {
                break;
            }
            servers.push(*id);
            workers.extend(server.free.iter().take(needed - workers.len()));
        }
        if workers.len() == needed {
            found.push((servers, workers));
        }
    }
    found
}

/// Different sizes of gangs, ascending.
pub(super) fn sizes(workers: impl Iterator<Item = u32>) -> Vec<usize> {
    let mut sizes: Vec<usize> = workers.map(|workers| workers as usize).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}
