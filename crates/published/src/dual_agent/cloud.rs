//! The cloud in its rounds: leases, restarts, fees, and measurements of servers' speeds.

use std::sync::Arc;

use crate::dual_agent::cluster::{N_TYPES, TYPES, servers, type_of};
use crate::dual_agent::drift::{Drift, DriftOptions};
use crate::dual_agent::speeds::{CloudSpeeds, Newcomer};
use crate::dual_agent::tables::{SIZES, Tables};
use crate::dual_agent::workload::N_OWNERS;
use crate::world::ACCELERATOR;
use crate::world::{AfterRound, Completions, Retention, Rules};
use crate::world::{Decision, Rejected};
use crate::world::{JobKind, Part, WorldJob};
use crate::world::{Status, World};
use apportion::index::{Id, JobId, ServerId};
use apportion::throughput::server_speeds::{FilterOptions, SpeedFilter, SwitchingFilter, SwitchingOptions};

/// The most servers that a job may be on.
pub const PARTS_MAX: usize = 16;

/// Seconds after which the last measurement of a server is forgotten: the mean time for which a server straggles.
pub const FORGOTTEN_S: f64 = 3600.0;

/// Options of the cloud.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CloudOptions {
    /// Number of servers for each server of the published cluster.
    pub scale: f64,
    /// Length of a round in seconds.
    pub round_s: f64,
    /// Rounds for which a job keeps its servers; after that it waits in the queue again.
    pub lease_rounds: u64,
    /// Seconds that a job loses when it goes on on other servers, or after it stood still.
    pub restart_s: f64,
    /// The drift of servers' speeds.
    pub drift: DriftOptions,
    /// The model of servers' speeds that the filter assumes.
    pub filter: FilterOptions,
    /// The model of servers' speeds that the filter with a state for stragglers assumes.
    pub switching: SwitchingOptions,
}

impl Default for CloudOptions {
    fn default() -> Self {
        Self {
            scale: 0.05,
            round_s: 300.0,
            lease_rounds: 12,
            restart_s: 60.0,
            drift: DriftOptions::default(),
            filter: FilterOptions::default(),
            switching: SwitchingOptions::default(),
        }
    }
}

/// The outcome of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RoundOutcome {
    /// Seconds for which jobs were present and not done, summed over jobs.
    pub job_s: f64,
    /// Dollars for workers held.
    pub fee: f64,
}

/// The service times of an owner's finished jobs: their sum, s, and their number.
#[derive(Clone, Copy, Debug, Default)]
struct History {
    service_s: f64,
    n: f64,
}

/// A cloud of servers whose speeds drift, the jobs that rent them, and the filters that estimate the speeds.
#[derive(Clone, Debug)]
pub struct Cloud {
    pub(super) world: World,
    pub(super) tables: Arc<Tables>,
    pub(super) drift: Drift,
    pub(super) filter: SpeedFilter,
    pub(super) switching: SwitchingFilter,
    options: CloudOptions,
    /// Factor of each job on the bias and walk of servers: [job].
    pub(super) sensitivity: Vec<f64>,
    /// The last parts of each job: [job].
    last_parts: Vec<Vec<Part>>,
    /// Round in which each job's lease is over: [job].
    lease_end: Vec<u64>,
    /// Fraction of this round that each job spends restarting: [job].
    restarting: Vec<f64>,
    histories: [History; N_OWNERS as usize],
    fee: f64,
    ran: Vec<(JobId, f64)>,
    ended: Vec<JobId>,
    measured: Vec<(ServerId, f64)>,
    /// Log speed of each server as last measured, 0 before the first measurement: [server].
    last_measured: Vec<f64>,
}

impl Cloud {
    /// A cloud without jobs.
    pub fn new(tables: Arc<Tables>, options: CloudOptions) -> Self {
        let servers = servers(options.scale);
        let kinds = vec![JobKind { task: [[0, 1], [0, 0]] }; tables.n_models() * SIZES.len()];
        let rules = Rules {
            round_s: options.round_s,
            parts_max: PARTS_MAX,
            retention: Retention::EachRound,
            completions: Completions::Exact,
            after_round: AfterRound::Stay,
            scaling_cost_s: 0.0,
        };
        let drift = Drift::new(&servers, options.drift, options.round_s, 0);
        let filter = SpeedFilter::new(servers.places(), options.filter);
        let switching = SwitchingFilter::new(servers.places(), options.switching);
        let last_measured = vec![0.0; servers.len()];
        Self {
            world: World::new(servers, kinds, rules),
            tables,
            drift,
            filter,
            switching,
            options,
            sensitivity: Vec::new(),
            last_parts: Vec::new(),
            lease_end: Vec::new(),
            restarting: Vec::new(),
            histories: [History::default(); N_OWNERS as usize],
            fee: 0.0,
            ran: Vec::new(),
            ended: Vec::new(),
            measured: Vec::new(),
            last_measured,
        }
    }

    /// Begins again with these jobs; `seed` is for the drift.
    pub fn reset(&mut self, jobs: &[WorldJob], seed: u64) {
        self.world.reset(jobs);
        self.drift = Drift::new(self.world.servers(), self.options.drift, self.options.round_s, seed);
        self.filter.reset();
        self.switching.reset();
        self.last_measured.fill(0.0);
        let n = jobs.len();
        self.sensitivity = (0..n).map(|job| self.drift.sensitivity(JobId::from_index(job))).collect();
        self.last_parts = (0..n).map(|_| Vec::with_capacity(PARTS_MAX)).collect();
        self.lease_end = vec![0; n];
        self.restarting = vec![0.0; n];
        self.histories = [History::default(); N_OWNERS as usize];
        self.fee = 0.0;
        self.begin_round();
    }

    /// Begins a round: jobs that have arrived, and jobs whose leases are over, join the queue.
    pub fn begin_round(&mut self) {
        self.world.begin_round();
        let round = self.world.round();
        let mut ended = std::mem::take(&mut self.ended);
        ended.clear();
        ended.extend(self.world.placed().iter().filter(|job| self.lease_end[job.index()] <= round));
        for &job in &ended {
            // Preemption of a placed job is never rejected.
            let _ = self.world.apply(Decision::Preempt { job });
        }
        self.ended = ended;
    }

    /// Gives a waiting job these servers for a lease.
    ///
    /// # Errors
    /// If it cannot have them; the cloud is then unchanged.
    pub fn place(&mut self, job: JobId, parts: &[Part]) -> Result<(), Rejected> {
        let stays = self.may_stay(job) && self.last_parts[job.index()] == parts;
        self.world.apply(Decision::Place { job, parts })?;
        let number = job.index();
        let restarts = self.world.progress(job) > 0.0 && !stays;
        self.restarting[number] =
            if restarts { (self.options.restart_s / self.options.round_s).min(1.0) } else { 0.0 };
        self.last_parts[number].clear();
        self.last_parts[number].extend_from_slice(parts);
        self.lease_end[number] = self.world.round() + self.options.lease_rounds;
        Ok(())
    }

    /// Ends the round: jobs run, pay, and measure the speeds of their servers.
    pub fn end_round(&mut self) -> RoundOutcome {
        // The end of a round is always applied.
        let _ = self.world.apply(Decision::EndRound);
        self.measure();
        let world = &mut self.world;
        self.ran.clear();
        self.ran.extend(world.placed().iter().map(|job| (*job, world.service_s[*job])));
        let n_waiting = world.waiting().len();
        let Self { tables, drift, sensitivity, restarting, .. } = self;
        world.advance(&mut CloudSpeeds { tables, drift, sensitivity, restarting });
        let mut outcome = RoundOutcome { job_s: n_waiting as f64 * self.options.round_s, fee: 0.0 };
        for position in 0..self.ran.len() {
            let (job, before) = self.ran[position];
            let ran_s = self.world.service_s(job) - before;
            outcome.job_s += ran_s;
            outcome.fee += ran_s / 3600.0 * f64::from(self.world.job(job).workers) * self.price(job);
            self.restarting[job.index()] = 0.0;
            if self.world.status(job) == Status::Done {
                let history = &mut self.histories[self.world.job(job).owner as usize % N_OWNERS as usize];
                history.service_s += self.world.service_s(job);
                history.n += 1.0;
            }
        }
        self.fee += outcome.fee;
        self.filter.predict(self.options.round_s);
        self.switching.predict(self.options.round_s);
        for &(server, log_speed) in &self.measured {
            self.filter.observe(server, log_speed);
            self.switching.observe(server, log_speed);
            self.last_measured[server.index()] = log_speed;
        }
        self.drift.step();
        outcome
    }

    /// Measures the servers in use by the step times of the first job on each.
    fn measure(&mut self) {
        self.measured.clear();
        for server in self.world.servers().ids() {
            if let Some(&job) = self.world.residents(server).first() {
                let log_speed = self.drift.measured(server, job, self.sensitivity[job.index()]);
                self.measured.push((server, log_speed));
            }
        }
    }

    /// Dollars per worker and hour of a job's last servers.
    fn price(&self, job: JobId) -> f64 {
        let part = self.last_parts[job.index()].first();
        part.map_or(0.0, |part| TYPES[type_of(self.world.servers(), part.server)].price)
    }

    /// The world.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The options.
    pub fn options(&self) -> &CloudOptions {
        &self.options
    }

    /// Speeds and contention by job type.
    pub fn tables(&self) -> &Tables {
        &self.tables
    }

    /// The true speeds of servers, which only an oracle knows.
    pub fn drift(&self) -> &Drift {
        &self.drift
    }

    /// The filter that estimates servers' speeds from measurements.
    pub fn filter(&self) -> &SpeedFilter {
        &self.filter
    }

    /// The filter that estimates servers' speeds with a state for stragglers.
    pub fn switching(&self) -> &SwitchingFilter {
        &self.switching
    }

    /// Log speeds of the servers that were measured in the last round.
    pub fn measured(&self) -> &[(ServerId, f64)] {
        &self.measured
    }

    /// Log speed of a server as last measured; 0 before the first measurement, and [`FORGOTTEN_S`] after the last. Only servers in
    /// use are measured, so an avoided straggler would otherwise count as one for ever.
    pub fn last_measured(&self, server: ServerId) -> f64 {
        if self.filter.since_s(server) <= FORGOTTEN_S { self.last_measured[server.index()] } else { 0.0 }
    }

    /// Dollars paid so far.
    pub fn fee(&self) -> f64 {
        self.fee
    }

    /// The last parts of a job; none if it was never placed.
    pub fn last_parts(&self, job: JobId) -> &[Part] {
        &self.last_parts[job.index()]
    }

    /// Whether a waiting job ran in the last round and its servers still have room for it, so that it can go on there at no cost.
    pub fn may_stay(&self, job: JobId) -> bool {
        let round = self.world.round();
        let fits = |part: &Part| self.world.free(part.server)[ACCELERATOR] >= part.count;
        round > 0 && self.world.last_ran[job] == round && self.last_parts[job.index()].iter().all(fits)
    }

    /// Mean seconds for which an owner's finished jobs ran, if there are any.
    pub fn history_s(&self, owner: u32) -> Option<f64> {
        let History { service_s, n } = self.histories[owner as usize % N_OWNERS as usize];
        (n > 0.0).then(|| service_s / n)
    }

    /// Free workers of each type.
    pub fn free_by_type(&self) -> [u32; N_TYPES] {
        let mut free = [0; N_TYPES];
        for server in self.world.servers().ids() {
            free[type_of(self.world.servers(), server)] += u32::from(self.world.free(server)[ACCELERATOR]);
        }
        free
    }

    /// Whether a job fits on free servers of some type on which it runs; `free` are workers by type.
    pub fn fits(&self, job: JobId, free: &[u32; N_TYPES]) -> bool {
        let WorldJob { job_type, workers, .. } = *self.world.job(job);
        (0..N_TYPES)
            .any(|kind| free[kind] >= u32::from(workers) && self.tables.speed_there(job_type, kind) > 0.0)
    }

    /// Seconds until a placed job is done, by its owner's estimate of the work, if its servers keep their true speeds until its
    /// lease ends and it runs on its fastest type without neighbours from then on.
    pub fn until_done_s(&self, job: JobId) -> f64 {
        let parts = self.last_parts(job);
        let Some(first) = parts.first() else { return 0.0 };
        let WorldJob { job_type, .. } = *self.world.job(job);
        let (spread, sensitivity) = (parts.len() > 1, self.sensitivity[job.index()]);
        let (mut slowest, mut retained): (f64, f64) = (f64::INFINITY, 1.0);
        for part in parts {
            let here = Newcomer { job, job_type, spread, workers: 0 };
            slowest = slowest.min(self.drift.log_speed(part.server, sensitivity));
            retained = retained.min(here.retention_on(&self.world, &self.tables, part.server));
        }
        let kind = type_of(self.world.servers(), first.server);
        let alone = self.tables.speed(job_type, kind, spread) / self.tables.best_speed(job_type);
        let relative = alone * slowest.exp() * retained;
        let rounds = self.lease_end[job.index()].saturating_sub(self.world.round());
        let (left_s, lease_s) = (self.remaining_s(job, true), rounds as f64 * self.options.round_s);
        if left_s <= relative * lease_s { left_s / relative } else { lease_s + left_s - relative * lease_s }
    }

    /// Seconds that the rest of a job takes on its fastest type, undisturbed: by its true work, or by its owner's estimate.
    pub fn remaining_s(&self, job: JobId, estimated: bool) -> f64 {
        let WorldJob { job_type, work, work_estimated, .. } = *self.world.job(job);
        let left = (if estimated { work_estimated } else { work }) - self.world.progress(job);
        // At least 2 % of the estimated work counts as left, also of a job that outlasts its estimate.
        left.max(0.02 * work_estimated) / self.tables.best_speed(job_type)
    }
}
