//! The state of a world: one vector per field, indexed by job or by server.

use crate::world::advance::Rules;
use crate::world::apply::Rejected;
use crate::world::job::{JobKind, Part, Role, WorldJob};
use crate::world::servers::{ACCELERATOR, N_RESOURCES, Servers, Slots};
use crate::world::summary::Totals;
use apportion::index::{Id, IndexVec, JobId, JobTypeId, ServerId, WorkerTypeId};

/// The status of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Not arrived yet.
    Future,
    /// Arrived, and without servers.
    Waiting,
    /// On servers.
    Placed,
    /// Its work is done.
    Done,
}

/// Servers, jobs, and the clock.
#[derive(Clone, Debug)]
pub struct World {
    pub(crate) servers: Servers,
    pub(crate) kinds: IndexVec<JobTypeId, JobKind>,
    pub(crate) rules: Rules,
    pub(crate) jobs: IndexVec<JobId, WorldJob>,
    /// Jobs by (arrival, id), and the number that have arrived.
    pub(crate) by_arrival: Vec<JobId>,
    pub(crate) n_arrived: usize,

    pub(crate) round: u64,
    /// Slots in use: [server].
    pub(crate) used: IndexVec<ServerId, Slots>,
    /// Slots in use, both resources added: [server].
    pub(crate) load: Vec<u32>,
    /// Slots in use in all.
    pub(crate) used_total: [u32; N_RESOURCES],
    /// Jobs on each server, by when they came to it.
    pub(crate) residents: IndexVec<ServerId, Vec<JobId>>,

    pub(crate) status: IndexVec<JobId, Status>,
    /// Parts of each placed job: [job], each with room for `rules.parts_max`.
    pub(crate) parts: IndexVec<JobId, Vec<Part>>,
    /// Tasks that each job holds: [job × role].
    pub(crate) tasks: IndexVec<JobId, [u16; Role::COUNT]>,
    /// The number of servers that each job is on: [job].
    pub(crate) n_servers: IndexVec<JobId, u16>,
    /// Work done: [job].
    pub(crate) progress: IndexVec<JobId, f64>,
    /// Fraction of its rate alone that a job retained in the last round in which it ran, 1 when placed anew: [job].
    pub(crate) retention: IndexVec<JobId, f64>,
    /// Remaining work below which a job counted as done in the last round in which it ran: [job].
    pub(crate) finish_below: IndexVec<JobId, f64>,
    /// Seconds for which each job ran: [job].
    pub(crate) service_s: IndexVec<JobId, f64>,
    /// Time at which a job's work was done, in seconds: [job].
    pub(crate) completion_s: IndexVec<JobId, f64>,
    /// 1 + the last round in which a job ran, 0 if it never did: [job].
    pub(crate) last_ran: IndexVec<JobId, u64>,
    /// The number of times that a job stood still after having run: [job].
    pub(crate) preemptions: IndexVec<JobId, u32>,
    /// Tasks that a job held when it last ran, where scaling costs something: [job × worker type × role].
    pub(crate) ran_with: Vec<u16>,

    /// Jobs that have arrived and are not done, by (arrival, id).
    pub(crate) active: Vec<JobId>,
    /// Jobs without servers, in the order in which they arrived or were taken off.
    pub(crate) waiting: Vec<JobId>,
    /// Jobs on servers, in the order in which they were placed.
    pub(crate) placed: Vec<JobId>,
    pub(crate) n_done: usize,
    pub(crate) rejected: Option<Rejected>,
    pub(crate) totals: Totals,
    /// Rates of placed jobs in order of placement, while a round advances, in work/s.
    pub(crate) rates: Vec<f64>,
    /// Room for the parts that a job held before a resize is tried.
    pub(crate) held: Vec<Part>,
}

impl World {
    /// A world without jobs. `kinds` has the needs of the tasks of each job type.
    pub fn new(servers: Servers, kinds: Vec<JobKind>, rules: Rules) -> Self {
        let n = servers.len();
        let most = |server| servers.capacity(server).iter().map(|slots| usize::from(*slots)).sum();
        let residents = servers.ids().map(|server| Vec::with_capacity(most(server))).collect();
        Self {
            used: IndexVec::from(vec![[0; N_RESOURCES]; n]),
            load: vec![0; n],
            used_total: [0; N_RESOURCES],
            residents,
            servers,
            kinds: kinds.into(),
            rules,
            jobs: IndexVec::new(),
            by_arrival: Vec::new(),
            n_arrived: 0,
            round: 0,
            status: IndexVec::new(),
            parts: IndexVec::new(),
            tasks: IndexVec::new(),
            n_servers: IndexVec::new(),
            progress: IndexVec::new(),
            retention: IndexVec::new(),
            finish_below: IndexVec::new(),
            service_s: IndexVec::new(),
            completion_s: IndexVec::new(),
            last_ran: IndexVec::new(),
            preemptions: IndexVec::new(),
            ran_with: Vec::new(),
            active: Vec::new(),
            waiting: Vec::new(),
            placed: Vec::new(),
            n_done: 0,
            rejected: None,
            totals: Totals::default(),
            rates: Vec::new(),
            held: Vec::new(),
        }
    }

    /// Begins again at time 0 with these jobs.
    ///
    /// # Panics
    /// If the world does not know the needs of a job's type.
    pub fn reset(&mut self, jobs: &[WorldJob]) {
        for server in self.servers.ids() {
            self.used[server] = [0; N_RESOURCES];
            self.load[server.index()] = 0;
            self.residents[server].clear();
        }
        assert!(
            jobs.iter().all(|job| job.job_type.index() < self.kinds.len()),
            "every job is of a known type"
        );
        let n = jobs.len();
        self.jobs = IndexVec::from(jobs.to_vec());
        self.by_arrival = self.jobs.ids().collect();
        let arrival = |job: JobId| jobs[job.index()].arrival_s;
        self.by_arrival.sort_by(|one, other| arrival(*one).total_cmp(&arrival(*other)).then(one.cmp(other)));
        self.status = IndexVec::from(vec![Status::Future; n]);
        let room = self.rules.parts_max;
        self.parts = (0..n).map(|_| Vec::with_capacity(room)).collect();
        self.tasks = IndexVec::from(vec![[0; Role::COUNT]; n]);
        self.n_servers = IndexVec::from(vec![0; n]);
        self.progress = IndexVec::from(vec![0.0; n]);
        self.retention = IndexVec::from(vec![1.0; n]);
        self.finish_below = IndexVec::from(vec![0.0; n]);
        self.service_s = IndexVec::from(vec![0.0; n]);
        self.completion_s = IndexVec::from(vec![f64::NAN; n]);
        self.last_ran = IndexVec::from(vec![0; n]);
        self.preemptions = IndexVec::from(vec![0; n]);
        let kept =
            if self.rules.scaling_cost_s > 0.0 { n * self.servers.n_worker_types() * Role::COUNT } else { 0 };
        self.ran_with = vec![0; kept];
        self.active = Vec::with_capacity(n);
        self.waiting = Vec::with_capacity(n);
        self.placed = Vec::with_capacity(n);
        self.rates = Vec::with_capacity(n);
        self.held = Vec::with_capacity(room);
        (self.n_arrived, self.round, self.n_done, self.used_total) = (0, 0, 0, [0; N_RESOURCES]);
        self.rejected = None;
        self.totals = Totals::default();
    }

    /// Begins a round: jobs that have arrived by its start join the queue.
    pub fn begin_round(&mut self) {
        self.rejected = None;
        let now = self.now_s();
        while let Some(&job) = self.by_arrival.get(self.n_arrived) {
            if self.jobs[job].arrival_s > now {
                break;
            }
            self.n_arrived += 1;
            self.status[job] = Status::Waiting;
            self.active.push(job);
            self.waiting.push(job);
        }
    }

    /// The servers.
    pub fn servers(&self) -> &Servers {
        &self.servers
    }

    /// The rules of the world's rounds.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The number of all jobs: done, present or still to arrive.
    pub fn n_jobs(&self) -> usize {
        self.jobs.len()
    }

    /// A job as it was given at the start.
    pub fn job(&self, job: JobId) -> &WorldJob {
        &self.jobs[job]
    }

    /// Whether all jobs are done.
    pub fn is_done(&self) -> bool {
        self.n_done == self.jobs.len()
    }

    /// The number of jobs that are done.
    pub fn n_done(&self) -> usize {
        self.n_done
    }

    /// The number of rounds since the start.
    pub fn round(&self) -> u64 {
        self.round
    }

    /// Start of the current round, in seconds.
    pub fn now_s(&self) -> f64 {
        self.round as f64 * self.rules.round_s
    }

    /// Jobs that have arrived and are not done, by (arrival, id).
    pub fn active(&self) -> &[JobId] {
        &self.active
    }

    /// Jobs without servers, in the order in which they arrived or were taken off.
    pub fn waiting(&self) -> &[JobId] {
        &self.waiting
    }

    /// Jobs on servers, in the order in which they were placed.
    pub fn placed(&self) -> &[JobId] {
        &self.placed
    }

    /// The status of a job.
    pub fn status(&self, job: JobId) -> Status {
        self.status[job]
    }

    /// The parts of a job; none unless it is placed.
    pub fn parts(&self, job: JobId) -> &[Part] {
        &self.parts[job]
    }

    /// The number of tasks of a role that a job holds.
    pub fn tasks(&self, job: JobId, role: Role) -> u16 {
        self.tasks[job][role.index()]
    }

    /// The number of servers that a job is on.
    pub fn n_servers(&self, job: JobId) -> u16 {
        self.n_servers[job]
    }

    /// Jobs on a server, in the order in which they came to it.
    pub fn residents(&self, server: ServerId) -> &[JobId] {
        &self.residents[server]
    }

    /// Slots of a server that are in use.
    pub fn used(&self, server: ServerId) -> Slots {
        self.used[server]
    }

    /// Slots of all servers together that are in use.
    pub fn used_total(&self) -> [u32; N_RESOURCES] {
        self.used_total
    }

    /// Slots of a server that are free.
    pub fn free(&self, server: ServerId) -> Slots {
        let (capacity, used) = (self.servers.capacity(server), self.used[server]);
        std::array::from_fn(|resource| capacity[resource] - used[resource])
    }

    /// Slots that one task of a job needs.
    pub fn task_slots(&self, job: JobId, role: Role) -> Slots {
        self.kinds[self.jobs[job].job_type].task[role.index()]
    }

    /// Whether a server has these slots free.
    pub fn fits(&self, server: ServerId, slots: Slots) -> bool {
        let (capacity, used) = (self.servers.capacity(server), self.used[server]);
        (0..N_RESOURCES).all(|resource| used[resource] + slots[resource] <= capacity[resource])
    }

    /// The server with the fewest slots in use, ties by id.
    ///
    /// # Panics
    /// If the world has no servers.
    pub fn least_loaded(&self) -> ServerId {
        let least = self.load.iter().copied().min().unwrap_or(0);
        let position = self.load.iter().position(|load| *load == least);
        ServerId::from_index(position.expect("a world has servers"))
    }

    /// Work that a job has done.
    pub fn progress(&self, job: JobId) -> f64 {
        self.progress[job]
    }

    /// The part of a job's work that is still to do, by its owner's estimate.
    pub fn remaining_fraction(&self, job: JobId) -> f64 {
        1.0 - self.progress[job] / self.jobs[job].work_estimated
    }

    /// Fraction of its rate alone that a job retained in the last round in which it ran; 1 when placed anew.
    pub fn retention(&self, job: JobId) -> f64 {
        self.retention[job]
    }

    /// Whether so little work of a job is left that it would have counted as done by the rule of its last round.
    pub fn is_ending(&self, job: JobId) -> bool {
        self.jobs[job].work - self.progress[job] < self.finish_below[job]
    }

    /// Seconds for which a job ran.
    pub fn service_s(&self, job: JobId) -> f64 {
        self.service_s[job]
    }

    /// The number of tasks of a role on a worker type that a job held when it last ran; always 0 where scaling costs nothing,
    /// because then it is not stored.
    pub fn ran_with(&self, job: JobId, worker_type: WorkerTypeId, role: Role) -> u16 {
        self.ran_with.get(self.position_of(job, worker_type, role)).copied().unwrap_or(0)
    }

    pub(crate) fn position_of(&self, job: JobId, worker_type: WorkerTypeId, role: Role) -> usize {
        (job.index() * self.servers.n_worker_types() + worker_type.index()) * Role::COUNT + role.index()
    }

    /// Why the last decision of this round was rejected, if it was.
    pub fn rejected(&self) -> Option<Rejected> {
        self.rejected
    }

    /// Fraction of accelerator slots that are in use.
    pub fn utilization(&self) -> f64 {
        let total = self.servers.total()[ACCELERATOR];
        if total == 0 { 0.0 } else { f64::from(self.used_total[ACCELERATOR]) / f64::from(total) }
    }
}
