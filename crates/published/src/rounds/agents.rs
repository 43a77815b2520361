//! The dual-agent scheduler's two agents on a [`RoundState`]: one chooses the next job, the other its servers, one at a time.

use super::action_scheme::{ActionScheme, Continuation};
use super::gang::{Plan, plan};
use super::memory::Memory;
use super::round_state::{RoundState, Server};
use super::rows::{Gang, candidate_row, global_row, job_row, server_row, stay_row};
use crate::dual_agent::cluster::N_TYPES;
use crate::dual_agent::episode::{ORDERING, PLACEMENT};
use crate::dual_agent::observe::{
    CANDIDATE_FEATURES, FEATURE_MAX, GLOBAL_FEATURES, JOB_FEATURES, SERVER_FEATURES, STATE_LEN, Window, put,
};
use apportion::index::{Id, JobIndex, ServerId, WorkerId};
use apportion::policy::RoundView;
use apportion_learn::environment::Space;

/// Options of the agents: their view, and when they decide anew.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AgentsOptions {
    /// The number of rows of jobs and servers.
    pub window: Window,
    /// Whether the placement agent sees a rule's choice.
    pub advised: bool,
    /// Rounds after which everything is decided anew, if no job or worker has come or gone before.
    pub lease_rounds: u64,
}

/// The agent that acts next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Order,
    Place { job: JobIndex, row: usize },
    Over,
}

/// The agents at work on a round. A decision without a choice is made without an action: no waiting job fits, or only one server
/// does.
#[derive(Clone, Debug)]
pub struct Agents {
    options: AgentsOptions,
    turn: Turn,
    /// Jobs in view, by remaining time.
    jobs: Vec<JobIndex>,
    /// Whether each job in view fits.
    fits: Vec<bool>,
    servers: Vec<ServerId>,
    candidates: Vec<ServerId>,
    may_stay: bool,
    chosen: Vec<WorkerId>,
    needed: usize,
    /// The rule's placement of the chosen job.
    advised: Option<Plan>,
}

impl Agents {
    /// Agents without a round.
    pub fn new(options: AgentsOptions) -> Self {
        Self {
            options,
            turn: Turn::Over,
            jobs: Vec::new(),
            fits: Vec::new(),
            servers: Vec::new(),
            candidates: Vec::new(),
            may_stay: false,
            chosen: Vec::new(),
            needed: 0,
            advised: None,
        }
    }

    fn placement_length(&self) -> usize {
        let n = self.options.window.n_candidates();
        self.options.window.placement_length() + if self.options.advised { n } else { 0 }
    }

    /// Goes on to the next decision of an agent.
    fn settle(&mut self, round: &mut RoundState) {
        loop {
            match self.turn {
                Turn::Over => return,
                Turn::Order => {
                    self.look_at_jobs(round);
                    if !self.fits.contains(&true) {
                        self.turn = Turn::Over;
                        return;
                    }
                    self.look_at_servers(round);
                    return;
                }
                Turn::Place { job, .. } => {
                    self.look_at_candidates(round, job);
                    match self.candidates.len() + usize::from(self.may_stay) {
                        0 => self.turn = Turn::Over,
                        1 => self.take(round, job, usize::from(!self.may_stay)),
                        _ => {
                            self.look_at_servers(round);
                            return;
                        }
                    }
                }
            }
        }
    }

    fn look_at_jobs(&mut self, round: &RoundState) {
        let mut sorted: Vec<(f64, JobIndex)> =
            round.waiting().iter().map(|job| (round.job_state(*job).left_s, *job)).collect();
        sorted.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let free = round.free_by_type();
        // Jobs that fit come first; others are in view only where there is room.
        sorted.sort_by_key(|(_, job)| !round.fits(*job, &free));
        sorted.truncate(self.options.window.n_jobs);
        sorted.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        self.jobs = sorted.into_iter().map(|(_, job)| job).collect();
        self.fits = self.jobs.iter().map(|job| round.fits(*job, &free)).collect();
    }

    fn look_at_servers(&mut self, round: &RoundState) {
        let free = round.servers().enumerate().filter(|(_, server)| !server.free.is_empty());
        let merit = |server: &Server| {
            let known = round.known(server.free[0]);
            server.free.len() as f64 / 8.0 - server.kind.index() as f64 + known.log_speed - known.deviation
        };
        let sorted = free.map(|(id, server)| (-merit(server), id)).collect();
        self.servers = cheapest(sorted, self.options.window.n_servers);
    }

    fn look_at_candidates(&mut self, round: &RoundState, job: JobIndex) {
        let chosen = self.chosen.first().map(|worker| round.servers()[round.server_of(*worker)].kind);
        self.may_stay = self.chosen.is_empty() && round.may_stay(job);
        let free = round.free_by_type();
        let mut sorted = Vec::new();
        for (id, server) in round.servers().enumerate() {
            let room = server.free.len();
            let fits = match chosen {
                Some(kind) => server.kind == kind,
                None => free[server.kind] as usize >= self.needed && round.speed(job, server.kind) > 0.0,
            };
            let held = self.chosen.iter().any(|worker| round.server_of(*worker) == id);
            if room == 0 || !fits || held {
                continue;
            }
            let taken = room.min(self.needed);
            let known = round.known(server.free[taken - 1]);
            let there = known.log_speed - 0.5 * known.deviation;
            let whole = 0.3 * taken as f64 / self.needed as f64;
            sorted.push((-(round.speed(job, server.kind).ln() + there + whole), id));
        }
        self.candidates = cheapest(sorted, self.options.window.n_servers);
    }

    fn choose(&mut self, round: &RoundState, row: usize) {
        let job = self.jobs[row];
        self.chosen.clear();
        self.needed = round.problem().jobs()[job].scale_factor as usize;
        self.advised = plan(round, job);
        self.turn = Turn::Place { job, row };
    }

    /// Takes the workers that the job had, for action 0, or one more server.
    fn take(&mut self, round: &mut RoundState, job: JobIndex, action: usize) {
        if action == 0 {
            round.stay(job);
            self.turn = Turn::Order;
            return;
        }
        let server = self.candidates[action - 1];
        let taken = self.offered(round, server);
        self.needed -= taken.len();
        self.chosen.extend(taken);
        if self.needed == 0 {
            round.place(job, std::mem::take(&mut self.chosen));
            self.turn = Turn::Order;
        }
    }

    /// The workers that a server gives: those that the rule takes there, or else its fastest.
    fn offered(&self, round: &RoundState, server: ServerId) -> Vec<WorkerId> {
        let planned = self.advised.iter().flat_map(|plan| &plan.workers);
        let planned: Vec<WorkerId> =
            planned.copied().filter(|worker| round.server_of(*worker) == server).collect();
        let free = &round.servers()[server].free;
        let room = free.len().min(self.needed);
        if planned.len() == room && planned.iter().all(|worker| free.contains(worker)) {
            return planned;
        }
        free[..room].to_vec()
    }

    fn advised_candidate(&self, round: &RoundState) -> Option<usize> {
        let plan = self.advised.as_ref()?;
        if self.chosen.is_empty() && plan.stays && self.may_stay {
            return Some(0);
        }
        let so_far = round.servers_of(&self.chosen).len();
        let taken = plan.servers.get(..so_far)?;
        let follows = self.chosen.iter().all(|worker| taken.contains(&round.server_of(*worker)));
        let next = plan.servers.get(so_far).filter(|_| follows)?;
        self.candidates.iter().position(|server| server == next).map(|place| place + 1)
    }
}

/// The servers with the least cost among (cost, server), as many as there is room for, by id.
fn cheapest(mut sorted: Vec<(f64, ServerId)>, room: usize) -> Vec<ServerId> {
    sorted.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    sorted.truncate(room);
    let mut servers: Vec<ServerId> = sorted.into_iter().map(|(_, server)| server).collect();
    servers.sort_unstable();
    servers
}

impl ActionScheme for Agents {
    fn spaces(&self) -> Vec<Space> {
        let window = self.options.window;
        let most = window.n_jobs.max(window.n_candidates()) as f32;
        let bounds = (-FEATURE_MAX, FEATURE_MAX.max(most));
        vec![
            Space::uniform(window.team_length(), bounds, window.n_jobs + 1),
            Space::uniform(self.placement_length(), bounds, window.n_candidates()),
        ]
    }

    fn check(&self, round: &RoundState) -> Result<(), String> {
        let n_types = round.problem().n_types();
        if n_types <= N_TYPES {
            return Ok(());
        }
        Err(format!("the cluster has {n_types} worker types, and at most {N_TYPES} are seen"))
    }

    fn begin(&mut self, round: &mut RoundState) {
        self.turn = Turn::Order;
        self.settle(round);
    }

    fn is_over(&self) -> bool {
        self.turn == Turn::Over
    }

    fn agent(&self) -> usize {
        if matches!(self.turn, Turn::Place { .. }) { PLACEMENT } else { ORDERING }
    }

    fn observe(&self, round: &RoundState, observation: &mut [f32]) {
        observation.fill(0.0);
        let window = self.options.window;
        let (head, rest) = observation.split_at_mut(2 + GLOBAL_FEATURES);
        (head[0], head[1]) = (self.jobs.len() as f32, self.servers.len() as f32);
        global_row(round, &mut head[2..]);
        let (jobs, rest) = rest.split_at_mut(window.n_jobs * JOB_FEATURES);
        for (row, job) in jobs.chunks_exact_mut(JOB_FEATURES).zip(&self.jobs) {
            job_row(round, *job, row);
        }
        let (servers, rest) = rest.split_at_mut(window.n_servers * SERVER_FEATURES);
        for (row, server) in servers.chunks_exact_mut(SERVER_FEATURES).zip(&self.servers) {
            server_row(round, *server, row);
        }
        let Turn::Place { job, row } = self.turn else { return };
        (rest[0], rest[1]) = (row as f32, (self.candidates.len() + 1) as f32);
        let (rows, advice) = rest[2..].split_at_mut(window.n_candidates() * CANDIDATE_FEATURES);
        if let Some(action) = self.advised_candidate(round)
            && let Some(place) = advice.get_mut(action)
        {
            *place = 1.0;
        }
        let (stay, rows) = rows.split_at_mut(CANDIDATE_FEATURES);
        if self.may_stay {
            stay_row(round, job, stay);
        }
        let gang = Gang { job, chosen: &self.chosen, needed: self.needed };
        for (row, server) in rows.chunks_exact_mut(CANDIDATE_FEATURES).zip(&self.candidates) {
            candidate_row(round, &gang, (*server, &self.offered(round, *server)), row);
        }
    }

    fn mask(&self, round: &RoundState, mask: &mut [bool]) {
        mask.fill(false);
        match self.turn {
            Turn::Over => {}
            Turn::Order => {
                mask[..self.fits.len()].copy_from_slice(&self.fits);
                // The end of the round is masked while no job is placed.
                mask[self.options.window.n_jobs] = !round.placed().is_empty();
            }
            Turn::Place { .. } => {
                mask[0] = self.may_stay;
                mask[1..=self.candidates.len()].fill(true);
            }
        }
    }

    fn act(&mut self, round: &mut RoundState, action: usize) {
        match self.turn {
            Turn::Over => {}
            Turn::Order if action == self.options.window.n_jobs => self.turn = Turn::Over,
            Turn::Order => self.choose(round, action),
            Turn::Place { job, .. } => self.take(round, job, action),
        }
        self.settle(round);
    }

    fn advice(&self, round: &RoundState) -> Option<usize> {
        match self.turn {
            Turn::Over => None,
            Turn::Order => {
                let service = |job: JobIndex| {
                    round.job_state(job).left_s * f64::from(round.problem().jobs()[job].scale_factor)
                };
                let fitting = (0..self.jobs.len()).filter(|row| self.fits[*row]);
                fitting.min_by(|one, other| service(self.jobs[*one]).total_cmp(&service(self.jobs[*other])))
            }
            Turn::Place { .. } => self.advised_candidate(round),
        }
    }

    fn continuation(&self, memory: &mut Memory, view: &RoundView<'_>) -> Continuation {
        let due = memory.is_due(view, self.options.lease_rounds);
        if due { Continuation::Nothing } else { Continuation::Everything }
    }

    fn state_length(&self) -> usize {
        STATE_LEN
    }

    fn state(&self, round: &RoundState, state: &mut [f32]) {
        state.fill(0.0);
        let (head, rest) = state.split_at_mut(GLOBAL_FEATURES);
        global_row(round, head);
        let (jobs, rest) = rest.split_at_mut(2 * JOB_FEATURES);
        let mut row = [0.0; JOB_FEATURES];
        for job in &self.jobs {
            job_row(round, *job, &mut row);
            pool(jobs, &row, self.jobs.len());
        }
        let (servers, rest) = rest.split_at_mut(2 * SERVER_FEATURES);
        let mut row = [0.0; SERVER_FEATURES];
        for server in &self.servers {
            server_row(round, *server, &mut row);
            pool(servers, &row, self.servers.len());
        }
        let (chosen, rest) = rest.split_at_mut(JOB_FEATURES);
        if let Turn::Place { job, .. } = self.turn {
            job_row(round, job, chosen);
            rest[0] = 1.0;
        }
        let total = round.problem().cluster().n_workers().max(1) as f64;
        let of_placed = |weight: &dyn Fn(JobIndex) -> f64| {
            round.placed().iter().map(|(job, _)| weight(*job)).sum::<f64>()
        };
        let hours = |job: JobIndex| round.job_state(job).left_s / 3600.0;
        let gang = |job: JobIndex| f64::from(round.problem().jobs()[job].scale_factor);
        let of_waiting =
            |weight: &dyn Fn(JobIndex) -> f64| round.waiting().iter().map(|job| weight(*job)).sum::<f64>();
        put(
            &mut rest[1..],
            &[
                round.placed().len() as f64 / total,
                of_placed(&|job| hours(job) * gang(job)) / total / 10.0,
                of_placed(&hours) / total / 10.0,
                round.problem().n_jobs() as f64 / total,
                of_waiting(&hours) / total / 10.0,
                of_waiting(&|job| hours(job) * gang(job)) / total / 10.0,
            ],
        );
    }
}

/// Adds a row to the mean and the maximum of n rows.
fn pool(pooled: &mut [f32], row: &[f32], n: usize) {
    let (mean, most) = pooled.split_at_mut(row.len());
    for ((mean, most), value) in mean.iter_mut().zip(most).zip(row) {
        *mean += value / n as f32;
        *most = most.max(*value);
    }
}
