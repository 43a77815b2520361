//! The state of a round that is being decided: waiting jobs, free workers, and the placements so far.

use super::gang::{Offers, sizes};
use super::memory::{Known, Memory};
use apportion::cluster::WorkerType;
use apportion::index::{Id, IndexVec, JobIndex, ServerId, WorkerId, WorkerTypeId};
use apportion::policy::{Placed, RoundView};
use apportion::problem::{ActiveJob, Colocation, Problem};
use apportion::workload::Combination;

/// A server, with its workers that are up.
#[derive(Clone, Debug)]
pub struct Server {
    /// The worker type of its workers.
    pub kind: WorkerTypeId,
    /// The number of its workers that are up.
    pub n_workers: usize,
    /// Its free workers, by descending expected speed.
    pub free: Vec<WorkerId>,
    /// The number of its jobs that are on other servers too.
    pub n_spread: usize,
    /// The number of its cell, which up to [`SERVERS_PER_CELL`] neighbouring servers of a type share.
    pub group: u32,
}

/// The state of a job when a round begins.
#[derive(Clone, Debug)]
pub struct JobState {
    /// Steps/s on the fastest type that has workers enough.
    pub fastest: f64,
    /// Remaining time on that type, s.
    pub left_s: f64,
    /// Time that it ran, s.
    pub service_s: f64,
    /// The part that is left of the steps that it had when first seen.
    pub part_left: f64,
    /// Its throughput in the round before, relative to that expected of its workers; 1 if it did not run.
    pub retained: f64,
    /// The workers that it had in the round before, if they are still up.
    pub previous: Option<Placed>,
}

/// The number of servers of a cell, as in DeepShare's cluster.
pub const SERVERS_PER_CELL: usize = 4;

/// The state of a round that is being decided.
#[derive(Clone, Debug)]
pub struct RoundState {
    problem: Problem,
    servers: IndexVec<ServerId, Server>,
    server_of: IndexVec<WorkerId, ServerId>,
    job_states: IndexVec<JobIndex, JobState>,
    known: IndexVec<WorkerId, Known>,
    waiting: Vec<JobIndex>,
    placed: Vec<(JobIndex, Placed)>,
    /// The workers that all jobs want over the workers that are up, at most 1.
    pressure: f64,
    sizes: Vec<usize>,
    offers: Offers,
}

impl RoundState {
    /// A round in which nothing is placed yet; `memory` is of the rounds before.
    pub fn new(view: &RoundView<'_>, memory: &Memory) -> Self {
        let problem = view.problem.clone();
        let known: IndexVec<WorkerId, Known> =
            view.locations.ids().map(|worker| memory.known(worker)).collect();
        let servers = servers_of(view, &known);
        let up = |placed: &Placed| {
            placed.workers.iter().all(|worker| view.free[placed.worker_type].binary_search(worker).is_ok())
        };
        let job_of = |placed: &&Placed| placed.combination.first();
        let alone = view.previous.iter().filter(|placed| !placed.combination.is_pair());
        let mut previous: Vec<&Placed> = alone.collect();
        previous.sort_unstable_by_key(job_of);
        let job_state = |(job, active): (JobIndex, &ActiveJob)| {
            let fastest = fastest_of(&problem, job);
            let left = active.steps_remaining.get();
            let history = memory.history(active.id);
            let before = previous.binary_search_by_key(&active.id, job_of).ok().map(|place| previous[place]);
            JobState {
                fastest,
                left_s: left / fastest.max(f64::MIN_POSITIVE),
                service_s: history.map_or(0.0, |history| history.service_s),
                part_left: history.map_or(1.0, |history| left / history.steps_at_first.max(left)),
                retained: history.map_or(1.0, |history| history.retained),
                previous: before.filter(|placed| up(placed)).cloned(),
            }
        };
        let job_states: IndexVec<JobIndex, JobState> = problem.jobs().enumerate().map(job_state).collect();
        let waiting = problem.jobs().ids().filter(|job| job_states[*job].fastest > 0.0).collect();
        let server_of = view.locations.iter().map(|location| location.server).collect();
        let wanted: f64 = problem.jobs().iter().map(|active| f64::from(active.scale_factor)).sum();
        let up: usize = view.free.iter().map(Vec::len).sum();
        let pressure = (wanted / up.max(1) as f64).min(1.0);
        let sizes = sizes(problem.jobs().iter().map(|active| active.scale_factor));
        let (placed, offers) = (Vec::new(), Offers::new(problem.n_types()));
        Self { problem, servers, server_of, job_states, known, waiting, placed, pressure, sizes, offers }
    }

    /// The jobs and their throughputs.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// All servers.
    pub fn servers(&self) -> &IndexVec<ServerId, Server> {
        &self.servers
    }

    /// The state of a job.
    pub fn job_state(&self, job: JobIndex) -> &JobState {
        &self.job_states[job]
    }

    /// The estimated speed of a worker.
    pub fn known(&self, worker: WorkerId) -> Known {
        self.known[worker]
    }

    /// The server of a worker.
    pub fn server_of(&self, worker: WorkerId) -> ServerId {
        self.server_of[worker]
    }

    /// Jobs without workers that run on some type with workers enough, in the order of the queue.
    pub fn waiting(&self) -> &[JobIndex] {
        &self.waiting
    }

    /// Jobs that have been placed, in order, with their placements.
    pub fn placed(&self) -> &[(JobIndex, Placed)] {
        &self.placed
    }

    /// The workers that all jobs want over the workers that are up, at most 1.
    pub fn pressure(&self) -> f64 {
        self.pressure
    }

    /// Different sizes of gangs, ascending.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// The best free workers for gangs.
    pub(super) fn offers(&self) -> &Offers {
        &self.offers
    }

    /// Free workers of each type.
    pub fn free_by_type(&self) -> IndexVec<WorkerTypeId, u32> {
        let mut free: IndexVec<WorkerTypeId, u32> =
            self.problem.cluster().types().iter().map(|_| 0).collect();
        for server in &self.servers {
            free[server.kind] += u32::try_from(server.free.len()).unwrap_or(u32::MAX);
        }
        free
    }

    /// Steps/s of a job on a type; 0 where it cannot run.
    pub fn speed(&self, job: JobIndex, kind: WorkerTypeId) -> f64 {
        self.problem.throughput()[(job, kind)]
    }

    /// The speed of a job on a type, relative to its speed on its fastest type.
    pub fn relative(&self, job: JobIndex, kind: WorkerTypeId) -> f64 {
        self.speed(job, kind) / self.job_states[job].fastest
    }

    /// The part of its speed that a job retains on a type when it is on more servers than it needs; 1 where that was not measured.
    pub fn kept(&self, job: JobIndex, kind: WorkerTypeId) -> f64 {
        kept_of(&self.problem, job, kind)
    }

    /// The fewest servers of a type that hold `n_workers` workers, if they are empty.
    pub fn n_servers_least(&self, kind: WorkerTypeId, n_workers: usize) -> usize {
        n_servers_least(&self.problem, kind, n_workers)
    }

    /// Whether the job fits on some type, by the free workers of each type.
    pub fn fits(&self, job: JobIndex, free: &IndexVec<WorkerTypeId, u32>) -> bool {
        let needed = self.problem.jobs()[job].scale_factor;
        free.enumerate().any(|(kind, free)| *free >= needed && self.speed(job, kind) > 0.0)
    }

    /// Whether the workers that the job had in the round before are free.
    pub fn may_stay(&self, job: JobIndex) -> bool {
        self.job_states[job].previous.as_ref().is_some_and(|placed| {
            placed.workers.iter().all(|worker| self.servers[self.server_of[*worker]].free.contains(worker))
        })
    }

    /// Gives a waiting job free workers of one type.
    pub fn place(&mut self, job: JobIndex, mut workers: Vec<WorkerId>) {
        workers.sort_unstable();
        let Some(first) = workers.first() else { return };
        let worker_type = self.servers[self.server_of[*first]].kind;
        let on: Vec<ServerId> = self.servers_of(&workers);
        for server in &on {
            let server = &mut self.servers[*server];
            server.free.retain(|worker| workers.binary_search(worker).is_err());
            server.n_spread += usize::from(on.len() > 1);
        }
        self.waiting.retain(|other| *other != job);
        let combination = Combination::single(self.problem.jobs()[job].id);
        self.placed.push((job, Placed { combination, worker_type, workers }));
        self.offers.forget(worker_type);
    }

    /// Leaves a job on its workers of the round before, if they are free; returns whether they were.
    pub fn stay(&mut self, job: JobIndex) -> bool {
        let stays = self.may_stay(job);
        if stays && let Some(placed) = self.job_states[job].previous.clone() {
            self.place(job, placed.workers);
        }
        stays
    }

    /// The servers of some workers, each once.
    pub fn servers_of(&self, workers: &[WorkerId]) -> Vec<ServerId> {
        let mut on: Vec<ServerId> = workers.iter().map(|worker| self.server_of[*worker]).collect();
        on.sort_unstable();
        on.dedup();
        on
    }

    /// Sorts waiting jobs by the time at which they arrived or were sent back to the queue.
    pub fn sort_by_queue(&mut self, memory: &Memory) {
        let place =
            |job: &JobIndex| memory.history(self.problem.jobs()[*job].id).map(|history| history.queued);
        self.waiting.sort_by_key(place);
    }
}

/// Steps/s of a job on the fastest type that has workers enough.
pub(super) fn fastest_of(problem: &Problem, job: JobIndex) -> f64 {
    let scale_factor = problem.jobs()[job].scale_factor;
    let large_enough = |(speed, kind): (&f64, &WorkerType)| {
        if kind.n_workers >= scale_factor { *speed } else { 0.0 }
    };
    let row = problem.throughput().row(job).iter();
    row.zip(problem.cluster().types().iter()).map(large_enough).fold(0.0, f64::max)
}

/// The part of its speed that a job retains on a type when it is on more servers than it needs; 1 where that was not measured.
pub(super) fn kept_of(problem: &Problem, job: JobIndex, kind: WorkerTypeId) -> f64 {
    let Colocation::Rows { throughputs, columns } = problem.colocation() else { return 1.0 };
    let scattered = problem.jobs()[job].row.zip(columns[kind]);
    let scattered = scattered.and_then(|(row, column)| throughputs.spread(row, column));
    let speed = problem.throughput()[(job, kind)];
    scattered.filter(|spread| *spread > 0.0).map_or(1.0, |spread| spread / speed)
}

/// The fewest servers of a type that hold `n_workers` workers, if they are empty.
pub(super) fn n_servers_least(problem: &Problem, kind: WorkerTypeId, n_workers: usize) -> usize {
    let per_server = problem.cluster().types()[kind].workers_per_server.max(1);
    n_workers.div_ceil(per_server as usize)
}

/// Servers with their free workers and their cells: every [`SERVERS_PER_CELL`] neighbouring servers of a type.
fn servers_of(view: &RoundView<'_>, known: &IndexVec<WorkerId, Known>) -> IndexVec<ServerId, Server> {
    let n_servers = view.locations.iter().map(|location| location.server.index() + 1).max().unwrap_or(0);
    let nothing = Server { kind: Id::from_index(0), n_workers: 0, free: Vec::new(), n_spread: 0, group: 0 };
    let mut servers: IndexVec<ServerId, Server> = (0..n_servers).map(|_| nothing.clone()).collect();
    for location in view.locations {
        servers[location.server].kind = location.worker_type;
    }
    for worker in view.free.iter().flatten() {
        let server = &mut servers[view.locations[*worker].server];
        server.free.push(*worker);
        server.n_workers += 1;
    }
    let (mut group, mut n_in_group, mut last) = (0, 0, None);
    for id in servers.ids() {
        let server = &mut servers[id];
        server.free.sort_by(|one, other| {
            known[*other].log_speed.total_cmp(&known[*one].log_speed).then(one.cmp(other))
        });
        if last.is_some_and(|kind| kind != server.kind) || n_in_group == SERVERS_PER_CELL {
            group += 1;
            n_in_group = 0;
        }
        (server.group, n_in_group, last) = (group, n_in_group + 1, Some(server.kind));
    }
    servers
}
