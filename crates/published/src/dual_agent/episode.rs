//! One workload as an episode of two agents' actions: the next job, then its servers, one at a time or all at once.

use crate::dual_agent::cloud::{Cloud, PARTS_MAX, RoundOutcome};
use crate::dual_agent::cluster::{N_TYPES, type_of};
use crate::dual_agent::observe::{
    CANDIDATE_FEATURES, GLOBAL_FEATURES, Gang, JOB_FEATURES, Knowledge, Prospects, SERVER_FEATURES,
    STATE_LEN, Window, candidate_row, global_row, job_row, running_row, server_row, stay_row,
};
use crate::dual_agent::placement::{Placement, Placer};
use crate::dual_agent::proposals::{N_PROPOSALS, PROPOSAL_FEATURES, Proposals};
use crate::dual_agent::rule::{Order, Rule, RulePlayer};
use crate::dual_agent::waiting_rule::WaitingRule;
use crate::world::ACCELERATOR;
use crate::world::{Part, WorldJob};
use apportion::index::{Id, JobId, ServerId};

/// The number of the ordering agent.
pub const ORDERING: usize = 0;

/// The number of the placement agent.
pub const PLACEMENT: usize = 1;

/// Options of an episode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EpisodeOptions {
    /// The number of rows of jobs and servers.
    pub window: Window,
    /// The agents' knowledge of servers.
    pub knowledge: Knowledge,
    /// A rule in place of the ordering agent.
    pub order: Option<Order>,
    /// The rule by which that rule waits, and by which the rule that the placement agent sees moves jobs.
    pub waiting_rule: WaitingRule,
    /// A rule in place of the placement agent.
    pub placement: Option<Placement>,
    /// λ: hours of completion time that a dollar is worth.
    pub fee_weight: f64,
    /// Whether the placement agent's observation ends in a rule's choice: 1 for that action, 0 for others.
    pub advised: bool,
    /// Whether the placement agent chooses among whole placements that a rule proposes, rather than servers.
    pub proposals: bool,
}

impl EpisodeOptions {
    /// The length of the placement agent's observation.
    pub const fn placement_length(&self) -> usize {
        if self.proposals {
            return self.window.team_length() + 2 + N_PROPOSALS * PROPOSAL_FEATURES;
        }
        self.window.placement_length() + if self.advised { self.window.n_candidates() } else { 0 }
    }
}

impl Default for EpisodeOptions {
    fn default() -> Self {
        let window = Window { n_jobs: 48, n_servers: 64 };
        Self {
            window,
            knowledge: Knowledge::Posterior,
            order: None,
            waiting_rule: WaitingRule::default(),
            placement: None,
            fee_weight: 0.0,
            advised: false,
            proposals: false,
        }
    }
}

/// The next decision: of the ordering agent, of the placement agent, or none as the episode is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Order,
    Place { job: JobId, row: usize },
    Over,
}

/// The outcome of an action.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EpisodeStep {
    /// −(hours of all jobs present + λ · dollars) per job of the episode, until the next decision.
    pub reward: f64,
    /// The number of rounds until the next decision.
    pub rounds: u32,
    /// Whether all jobs are done.
    pub done: bool,
}

/// An episode: reset, then step until it is done. A decision without a choice is made without an action: no waiting job fits, or
/// only one server does.
#[derive(Clone, Debug)]
pub struct DualAgentEpisode {
    cloud: Cloud,
    options: EpisodeOptions,
    turn: Turn,
    free: [u32; N_TYPES],
    /// Jobs in view, by estimated remaining time.
    jobs: Vec<JobId>,
    /// Servers in view.
    servers: Vec<ServerId>,
    /// Servers on which the chosen job may go on.
    candidates: Vec<ServerId>,
    proposals: Proposals,
    may_stay: bool,
    parts: Vec<Part>,
    needed: u16,
    rule: RulePlayer,
    placer: Placer,
    /// The teacher's placement of the chosen job.
    advised: Vec<Part>,
    sorted: Vec<(f64, u32)>,
    prospects: Prospects,
}

impl DualAgentEpisode {
    /// An episode in a cloud, still to be reset.
    pub fn new(cloud: Cloud, options: EpisodeOptions) -> Self {
        let teacher = match options.knowledge {
            Knowledge::Posterior | Knowledge::Mean => Placement::Posterior,
            Knowledge::Switching => Placement::Switching,
            Knowledge::Last => Placement::LastMeasured,
            Knowledge::None => Placement::FastestType,
            Knowledge::Oracle => Placement::Oracle,
        };
        let rule = Rule {
            order: options.order.unwrap_or(Order::SrtfEstimated),
            placement: options.placement.unwrap_or(teacher),
            waiting_rule: options.waiting_rule,
        };
        Self {
            cloud,
            options,
            turn: Turn::Over,
            free: [0; N_TYPES],
            jobs: Vec::new(),
            servers: Vec::new(),
            candidates: Vec::new(),
            proposals: Proposals::default(),
            may_stay: false,
            parts: Vec::with_capacity(PARTS_MAX),
            needed: 0,
            rule: RulePlayer::new(rule, 0),
            placer: Placer::new(teacher, options.waiting_rule, 0),
            advised: Vec::new(),
            sorted: Vec::new(),
            prospects: Prospects::default(),
        }
    }

    /// Begins with these jobs, and goes on to the first decision; `seed` is for the drift.
    pub fn reset(&mut self, jobs: &[WorldJob], seed: u64) -> EpisodeStep {
        self.cloud.reset(jobs, seed);
        self.rule.begin();
        self.turn = Turn::Order;
        self.settle()
    }

    /// The cloud.
    pub fn cloud(&self) -> &Cloud {
        &self.cloud
    }

    /// The options.
    pub fn options(&self) -> &EpisodeOptions {
        &self.options
    }

    /// The number of the agent that decides next.
    pub fn agent(&self) -> usize {
        match self.turn {
            Turn::Place { .. } => PLACEMENT,
            Turn::Order | Turn::Over => {
                if self.options.order.is_some() {
                    PLACEMENT
                } else {
                    ORDERING
                }
            }
        }
    }

    /// Goes on to the next decision of an agent.
    fn settle(&mut self) -> EpisodeStep {
        let mut step = EpisodeStep::default();
        loop {
            match self.turn {
                Turn::Over => {
                    step.done = true;
                    return step;
                }
                Turn::Order => {
                    self.free = self.cloud.free_by_type();
                    self.look_at_jobs();
                    if self.options.order.is_some() {
                        match self.rule.next_job(&self.cloud) {
                            Some(job) if self.rule.is_worth(&self.cloud, job) => self.choose(job),
                            Some(job) => self.rule.pass(job),
                            None => self.end_round(&mut step),
                        }
                    } else if self.jobs.iter().any(|job| self.cloud.fits(*job, &self.free)) {
                        self.look_at_servers();
                        return step;
                    } else {
                        self.end_round(&mut step);
                    }
                }
                Turn::Place { job, .. } => {
                    if self.options.placement.is_some() {
                        let parts = self.rule.placement(&self.cloud, job).unwrap_or_default().to_vec();
                        // A job whose placement is rejected waits.
                        let _ = self.cloud.place(job, &parts);
                        self.turn = Turn::Order;
                        continue;
                    }
                    if self.options.proposals {
                        self.placer.propose(&self.cloud, job, &mut self.proposals);
                        match (self.proposals.count(), self.proposals.best()) {
                            (1, Some(only)) => self.take_proposal(job, only),
                            (_, Some(_)) => {
                                self.look_at_servers();
                                return step;
                            }
                            (_, None) => self.end_round(&mut step),
                        }
                        continue;
                    }
                    self.look_at_candidates(job);
                    if self.candidates.len() + usize::from(self.may_stay) != 1 {
                        self.look_at_servers();
                        return step;
                    }
                    self.take(job, usize::from(!self.may_stay));
                }
            }
        }
    }

    fn end_round(&mut self, step: &mut EpisodeStep) {
        let RoundOutcome { job_s, fee } = self.cloud.end_round();
        let n = self.cloud.world().n_jobs().max(1) as f64;
        step.reward -= (job_s / 3600.0 + self.options.fee_weight * fee) / n;
        step.rounds += 1;
        self.cloud.begin_round();
        self.rule.begin();
        self.turn = if self.cloud.world().is_done() { Turn::Over } else { Turn::Order };
    }

    fn look_at_jobs(&mut self) {
        self.sorted.clear();
        let waiting = self.cloud.world().waiting().iter();
        self.sorted.extend(waiting.map(|job| (self.cloud.remaining_s(*job, true), number(*job))));
        self.sorted.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        self.jobs.clear();
        let seen = self.sorted.iter().take(self.options.window.n_jobs);
        self.jobs.extend(seen.map(|(_, job)| JobId::from_index(*job as usize)));
    }

    fn look_at_servers(&mut self) {
        self.prospects.look(&self.cloud, self.options.knowledge, &mut self.sorted);
        self.sorted.clear();
        let world = self.cloud.world();
        for server in world.servers().ids() {
            let free = world.free(server)[ACCELERATOR];
            if free > 0 {
                let filter = self.cloud.filter();
                let kind = type_of(world.servers(), server) as f64;
                let merit =
                    f64::from(free) / 8.0 - kind + filter.mean(server) - filter.variance(server).sqrt();
                self.sorted.push((-merit, number(server)));
            }
        }
        self.options.window.keep_servers(&mut self.sorted, &mut self.servers);
    }

    fn look_at_candidates(&mut self, job: JobId) {
        let world = self.cloud.world();
        let job_type = world.job(job).job_type;
        self.may_stay = self.parts.is_empty() && self.cloud.may_stay(job);
        let chosen = self.parts.first().map(|part| type_of(world.servers(), part.server));
        self.sorted.clear();
        for server in world.servers().ids() {
            let free = world.free(server)[ACCELERATOR];
            let kind = type_of(world.servers(), server);
            let speed = self.cloud.tables().speed_there(job_type, kind);
            let fits = match chosen {
                Some(chosen) => kind == chosen,
                None => self.free[kind] >= u32::from(self.needed) && speed > 0.0,
            };
            if free == 0 || !fits || self.parts.iter().any(|part| part.server == server) {
                continue;
            }
            let filter = self.cloud.filter();
            let there = filter.mean(server) - 0.5 * filter.variance(server).sqrt();
            let whole = 0.3 * f64::from(free.min(self.needed)) / f64::from(self.needed);
            self.sorted.push((-(speed.ln() + there + whole), number(server)));
        }
        self.options.window.keep_servers(&mut self.sorted, &mut self.candidates);
    }

    fn choose(&mut self, job: JobId) {
        self.rule.pass(job);
        self.parts.clear();
        self.needed = self.cloud.world().job(job).workers;
        let seen = self.jobs.iter().position(|other| *other == job);
        let row = seen.unwrap_or_else(|| {
            // A rule may choose a job out of view: it is shown in place of the last job.
            self.jobs.pop();
            self.jobs.push(job);
            self.jobs.len() - 1
        });
        self.turn = Turn::Place { job, row };
        if self.options.placement.is_none() && !self.options.proposals {
            self.placer.place(&self.cloud, job, &mut self.advised);
        }
    }

    /// Takes the servers that the job was on, for action 0, or one more server.
    fn take(&mut self, job: JobId, action: usize) {
        if action == 0 {
            self.parts.clear();
            self.parts.extend_from_slice(self.cloud.last_parts(job));
            self.needed = 0;
        } else {
            let server = self.candidates[action - 1];
            let count = self.cloud.world().free(server)[ACCELERATOR].min(self.needed);
            self.parts.push(Part::workers(server, count));
            self.needed -= count;
        }
        if self.needed == 0 {
            // A job whose placement is rejected waits; the masks prevent that.
            let _ = self.cloud.place(job, &self.parts);
            self.turn = Turn::Order;
        }
    }

    fn take_proposal(&mut self, job: JobId, place: usize) {
        // A job whose placement is rejected waits; proposals fit.
        let _ = self.cloud.place(job, &self.proposals.all()[place].parts);
        self.turn = Turn::Order;
    }

    /// Writes the mask of allowed actions. The ordering agent has rows of jobs and, last, the end of the round, which is masked
    /// while no job runs. The placement agent has proposals, or staying and rows of candidates.
    pub fn mask(&self, mask: &mut [bool]) {
        mask.fill(false);
        match self.turn {
            Turn::Over => {}
            Turn::Order => {
                for (allowed, job) in mask.iter_mut().zip(&self.jobs) {
                    *allowed = self.cloud.fits(*job, &self.free);
                }
                mask[self.options.window.n_jobs] = !self.cloud.world().placed().is_empty();
            }
            Turn::Place { .. } if self.options.proposals => {
                for (allowed, proposal) in mask.iter_mut().zip(self.proposals.all()) {
                    *allowed = proposal.merit > 0.0;
                }
            }
            Turn::Place { .. } => {
                mask[0] = self.may_stay;
                mask[1..=self.candidates.len()].fill(true);
            }
        }
    }

    /// Plays an allowed action.
    pub fn step(&mut self, action: usize) -> EpisodeStep {
        let mut ended = EpisodeStep::default();
        match self.turn {
            Turn::Over => {}
            Turn::Order if action == self.options.window.n_jobs => self.end_round(&mut ended),
            Turn::Order => self.choose(self.jobs[action]),
            Turn::Place { job, .. } if self.options.proposals => self.take_proposal(job, action),
            Turn::Place { job, .. } => self.take(job, action),
        }
        let settled = self.settle();
        EpisodeStep {
            reward: ended.reward + settled.reward,
            rounds: ended.rounds + settled.rounds,
            done: settled.done,
        }
    }

    /// The teacher's action: the job with the least estimated remaining time, on the servers where it is expected to be fastest.
    /// With `patience` the teacher skips jobs that would be too slow there, or stops. None after actions that it would not take.
    pub fn advice(&self, patience: f64) -> Option<usize> {
        match self.turn {
            Turn::Over => None,
            Turn::Order => {
                let (mut placer, mut parts) = (self.placer.clone(), Vec::new());
                let least = WaitingRule { patience, ..self.options.waiting_rule }.least_speed(&self.cloud);
                let found = self.jobs.iter().position(|job| {
                    let fits = self.cloud.fits(*job, &self.free);
                    let mut relative = || placer.place(&self.cloud, *job, &mut parts);
                    fits && (least == 0.0 || relative().is_some_and(|relative| relative >= least))
                });
                Some(found.unwrap_or(self.options.window.n_jobs))
            }
            Turn::Place { .. } if self.options.proposals => self.proposals.best(),
            Turn::Place { job, .. } => {
                if self.may_stay && self.advised == self.cloud.last_parts(job) {
                    return Some(0);
                }
                let next = self.advised.get(self.parts.len())?;
                let so_far = self.advised.starts_with(&self.parts);
                let place = self.candidates.iter().position(|server| *server == next.server);
                place.filter(|_| so_far).map(|place| place + 1)
            }
        }
    }

    /// Writes the observation of the agent that acts next.
    pub fn observe(&self, observation: &mut [f32]) {
        observation.fill(0.0);
        let Window { n_jobs, .. } = self.options.window;
        let (head, rest) = observation.split_at_mut(2 + GLOBAL_FEATURES);
        (head[0], head[1]) = (count(self.jobs.len()), count(self.servers.len()));
        global_row(&self.cloud, &self.free, &mut head[2..]);
        let (jobs, rest) = rest.split_at_mut(n_jobs * JOB_FEATURES);
        for (row, job) in jobs.chunks_exact_mut(JOB_FEATURES).zip(&self.jobs) {
            job_row(&self.cloud, (self.options.knowledge, &self.prospects), *job, &self.free, row);
        }
        let (servers, rest) = rest.split_at_mut(self.options.window.n_servers * SERVER_FEATURES);
        for (row, server) in servers.chunks_exact_mut(SERVER_FEATURES).zip(&self.servers) {
            server_row(&self.cloud, self.options.knowledge, *server, row);
        }
        if let (Turn::Place { job, row }, true) = (self.turn, self.options.proposals) {
            (rest[0], rest[1]) = (count(row), count(N_PROPOSALS));
            let known = (&self.cloud, self.options.knowledge);
            self.proposals.rows(known, job, &self.jobs, &mut rest[2..]);
        } else if let (Turn::Place { job, row }, false) = (self.turn, rest.is_empty()) {
            (rest[0], rest[1]) = (count(row), count(self.candidates.len() + 1));
            let n_candidates = self.options.window.n_candidates();
            let (rows, advice) = rest[2..].split_at_mut(n_candidates * CANDIDATE_FEATURES);
            if let Some(action) = self.advice(0.0).filter(|_| self.options.advised) {
                advice[action] = 1.0;
            }
            let (stay, rows) = rows.split_at_mut(CANDIDATE_FEATURES);
            if self.may_stay {
                stay_row(&self.cloud, self.options.knowledge, job, stay);
            }
            let gang = Gang { job, parts: &self.parts, needed: self.needed };
            for (row, server) in rows.chunks_exact_mut(CANDIDATE_FEATURES).zip(&self.candidates) {
                candidate_row(&self.cloud, self.options.knowledge, &gang, *server, row);
            }
        }
    }

    /// Writes the state for the critic, [`STATE_LEN`] numbers.
    pub fn state(&self, state: &mut [f32]) {
        state.fill(0.0);
        debug_assert_eq!(state.len(), STATE_LEN, "as long as it says");
        let (head, rest) = state.split_at_mut(GLOBAL_FEATURES);
        global_row(&self.cloud, &self.free, head);
        let (jobs, rest) = rest.split_at_mut(2 * JOB_FEATURES);
        let mut row = [0.0; JOB_FEATURES];
        for job in &self.jobs {
            job_row(&self.cloud, (self.options.knowledge, &self.prospects), *job, &self.free, &mut row);
            pool(jobs, &row, self.jobs.len());
        }
        let (servers, rest) = rest.split_at_mut(2 * SERVER_FEATURES);
        let mut row = [0.0; SERVER_FEATURES];
        for server in &self.servers {
            server_row(&self.cloud, self.options.knowledge, *server, &mut row);
            pool(servers, &row, self.servers.len());
        }
        let (chosen, rest) = rest.split_at_mut(JOB_FEATURES);
        if let Turn::Place { job, .. } = self.turn {
            job_row(&self.cloud, (self.options.knowledge, &self.prospects), job, &self.free, chosen);
            rest[0] = 1.0;
        }
        running_row(&self.cloud, &mut rest[1..]);
    }
}

/// Adds a row to the mean and the maximum of n rows.
fn pool(pooled: &mut [f32], row: &[f32], n: usize) {
    let (mean, most) = pooled.split_at_mut(row.len());
    for ((mean, most), value) in mean.iter_mut().zip(most).zip(row) {
        *mean += value / count(n);
        *most = most.max(*value);
    }
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^24")]
fn count(n: usize) -> f32 {
    n as f32
}

fn number(id: impl Id) -> u32 {
    u32::try_from(id.index()).unwrap_or(u32::MAX)
}
