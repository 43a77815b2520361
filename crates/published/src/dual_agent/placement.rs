//! Placement of jobs on servers, by rules.

use crate::dual_agent::cloud::{Cloud, FORGOTTEN_S};
use crate::dual_agent::cluster::{N_TYPES, type_of, workers_by_type};
use crate::dual_agent::proposals::{Proposal, Proposals};
use crate::dual_agent::speeds::Newcomer;
use crate::dual_agent::waiting_rule::WaitingRule;
use crate::world::ACCELERATOR;
use crate::world::{Part, WorldJob};
use apportion::index::Id;
use apportion::index::{JobId, ServerId};
use apportion::workload::random::{SeedStreams, Stream};

/// A rule for the servers of a job, which are all of one type. A job that ran until now stays where it was, unless a rule that
/// knows speeds finds it faster elsewhere by the factor of its [`WaitingRule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The first servers with room.
    FirstFit,
    /// The servers on which the fewest workers are left over.
    BestFit,
    /// The type with the largest free part of its workers, and its emptiest servers.
    LoadBalancing,
    /// The type on which the job is fastest, as if servers of a type were equal.
    FastestType,
    /// The servers where the job is expected to be fastest: by type, contention and the filter's mean of servers' speeds.
    Posterior,
    /// The servers where the job is expected to be fastest, with servers' speeds by the filter with a state for stragglers.
    Switching,
    /// The servers where the job is expected to be fastest, with servers' speeds as last measured.
    LastMeasured,
    /// The servers where the job is fastest now: by type, contention and the true speeds of servers, which no policy can know.
    Oracle,
    /// The servers where the job is fastest now, except that servers unused for an hour count as if they did not straggle. Still
    /// more than step times show.
    MeasuredOracle,
    /// Random servers.
    Random,
}

impl Placement {
    /// Whether the rule knows the speeds of servers of one type.
    fn knows_servers(self) -> bool {
        matches!(
            self,
            Self::Posterior | Self::Switching | Self::LastMeasured | Self::Oracle | Self::MeasuredOracle
        )
    }
}

/// Difference of log speeds below which servers count as equally fast.
const ALIKE: f64 = 0.1;

/// The number of free workers that [`WaitingRule::packing`] refers to.
const ROOM: f64 = 16.0;

/// A placement rule at work.
#[derive(Clone, Debug)]
pub struct Placer {
    rule: Placement,
    waiting_rule: WaitingRule,
    draws: Stream,
    /// Servers of a type with free workers: (sort key, free workers, server).
    candidates: Vec<(f64, u16, ServerId)>,
    trial: Vec<Part>,
}

impl Placer {
    /// A placement rule at work; `seed` is for its random choices.
    pub fn new(rule: Placement, waiting_rule: WaitingRule, seed: u64) -> Self {
        let draws = SeedStreams::new(seed).stream("dual-agent placement");
        Self { rule, waiting_rule, draws, candidates: Vec::new(), trial: Vec::new() }
    }

    /// Writes the placement of a job to `parts`, if it fits anywhere. Returns the job's speed there relative to its fastest type,
    /// for equal and empty servers of the type or, as far as `expecting` in its [`WaitingRule`] says, for these very servers.
    pub fn place(&mut self, cloud: &Cloud, job: JobId, parts: &mut Vec<Part>) -> Option<f64> {
        let rule = self.rule;
        parts.clear();
        let knows = rule == Placement::FastestType || rule.knows_servers();
        let stays = cloud.may_stay(job);
        if stays {
            parts.extend_from_slice(cloud.last_parts(job));
            if !knows {
                return Some(relative(Placement::FastestType, cloud, job, parts));
            }
        }
        let mut best =
            if stays { self.waiting_rule.moving * predicted(rule, cloud, job, parts) } else { 0.0 };
        let free = cloud.free_by_type();
        let WorldJob { job_type, workers, .. } = *cloud.world().job(job);
        let all = workers_by_type(cloud.world().servers());
        for server_type in 0..N_TYPES {
            let fits = free[server_type] >= u32::from(workers);
            if !fits || cloud.tables().speed_there(job_type, server_type) <= 0.0 {
                continue;
            }
            for spread in [false, true] {
                if !self.fill(cloud, job, (server_type, spread)) {
                    continue;
                }
                let merit = match rule {
                    Placement::FirstFit => 1.0 / (1.0 + self.trial[0].server.index() as f64),
                    Placement::BestFit => 1.0 / (1.0 + f64::from(left_over(cloud, &self.trial))),
                    Placement::LoadBalancing => {
                        f64::from(free[server_type]) / f64::from(all[server_type].max(1))
                    }
                    Placement::Random => self.draws.uniform() + f64::MIN_POSITIVE,
                    _ => self.packed(cloud, predicted(rule, cloud, job, &self.trial)),
                };
                if merit > best {
                    best = merit;
                    parts.clear();
                    parts.extend_from_slice(&self.trial);
                }
            }
        }
        (!parts.is_empty()).then(|| self.worth(cloud, job, parts))
    }

    /// Writes all placements that a rule that knows speeds compares, with their merits: [`place`](Self::place) takes the best.
    pub fn propose(&mut self, cloud: &Cloud, job: JobId, proposals: &mut Proposals) {
        for proposal in &mut proposals.all {
            proposal.parts.clear();
            proposal.merit = 0.0;
        }
        let best_speed = cloud.tables().best_speed(cloud.world().job(job).job_type);
        if cloud.may_stay(job) {
            let Proposal { parts, merit, relative } = &mut proposals.all[0];
            parts.extend_from_slice(cloud.last_parts(job));
            let speed = predicted(self.rule, cloud, job, parts);
            (*merit, *relative) = (self.waiting_rule.moving * speed, speed / best_speed);
        }
        let free = cloud.free_by_type();
        let WorldJob { job_type, workers, .. } = *cloud.world().job(job);
        for (server_type, free) in free.into_iter().enumerate() {
            let fits = free >= u32::from(workers);
            if !fits || cloud.tables().speed_there(job_type, server_type) <= 0.0 {
                continue;
            }
            for spread in [false, true] {
                if self.fill(cloud, job, (server_type, spread)) {
                    let speed = predicted(self.rule, cloud, job, &self.trial);
                    let merit = self.packed(cloud, speed);
                    let proposal = &mut proposals.all[Proposals::place_of(server_type, spread)];
                    proposal.parts.extend_from_slice(&self.trial);
                    (proposal.merit, proposal.relative) = (merit, speed / best_speed);
                }
            }
        }
    }

    /// The merit of a speed on the tried servers, reduced for the workers that stay free there.
    fn packed(&self, cloud: &Cloud, speed: f64) -> f64 {
        match self.waiting_rule.packing {
            0.0 => speed,
            packing => speed * (1.0 - packing * f64::from(left_over(cloud, &self.trial)) / ROOM).max(0.0),
        }
    }

    /// The relative speed of a job on these servers that a patience is compared with.
    fn worth(&self, cloud: &Cloud, job: JobId, parts: &[Part]) -> f64 {
        let alike = relative(Placement::FastestType, cloud, job, parts);
        match self.waiting_rule.expecting {
            0.0 => alike,
            share => alike * (relative(self.rule, cloud, job, parts) / alike).powf(share),
        }
    }

    /// Tries servers of one type for a job, a single one or, with `spread`, several. Returns whether the job fits, in `trial`.
    fn fill(&mut self, cloud: &Cloud, job: JobId, (server_type, spread): (usize, bool)) -> bool {
        let rule = self.rule;
        let world = cloud.world();
        let mut needed = world.job(job).workers;
        self.candidates.clear();
        self.trial.clear();
        for server in world.servers().ids() {
            let free = world.free(server)[ACCELERATOR];
            let whole = free >= needed;
            if free == 0 || type_of(world.servers(), server) != server_type || (!spread && !whole) {
                continue;
            }
            let key = match rule {
                Placement::FirstFit => 0.0,
                // A single server is the fullest; several are the emptiest, so that the fewest are needed.
                Placement::BestFit | Placement::FastestType if !spread => f64::from(free),
                Placement::BestFit | Placement::FastestType | Placement::LoadBalancing => -f64::from(free),
                Placement::Posterior
                | Placement::Switching
                | Placement::LastMeasured
                | Placement::Oracle
                | Placement::MeasuredOracle => {
                    let there = newcomer(cloud, job, spread, free.min(needed));
                    let retained = there.retention_on(world, cloud.tables(), server);
                    // Servers that are about equally fast are ordered by free workers as above.
                    let steps = ((log_speed(rule, cloud, job, server) + retained.ln()) / ALIKE).round();
                    let room = 0.01 * f64::from(free);
                    -steps + if spread { -room } else { room }
                }
                Placement::Random => self.draws.uniform(),
            };
            self.candidates.push((key, free, server));
        }
        self.candidates.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.2.cmp(&other.2)));
        for &(_, free, server) in &self.candidates {
            let count = free.min(needed);
            self.trial.push(Part::workers(server, count));
            needed -= count;
            if needed == 0 {
                return spread == (self.trial.len() > 1);
            }
        }
        false
    }
}

fn newcomer(cloud: &Cloud, job: JobId, spread: bool, workers: u16) -> Newcomer {
    Newcomer { job, job_type: cloud.world().job(job).job_type, spread, workers }
}

/// Log speed z of a server, as far as a rule knows it.
fn log_speed(rule: Placement, cloud: &Cloud, job: JobId, server: ServerId) -> f64 {
    match rule {
        Placement::Posterior => cloud.filter().mean(server),
        Placement::Switching => cloud.switching().expected(server),
        Placement::LastMeasured => cloud.last_measured(server),
        Placement::Oracle => cloud.drift().log_speed(server, cloud.sensitivity[job.index()]),
        Placement::MeasuredOracle => {
            let sensitivity = cloud.sensitivity[job.index()];
            let seen = cloud.filter().since_s(server) <= FORGOTTEN_S;
            if seen {
                cloud.drift().log_speed(server, sensitivity)
            } else {
                cloud.drift().steady(server, sensitivity)
            }
        }
        _ => 0.0,
    }
}

/// Steps/s of a job on these servers, as far as a rule knows them.
fn predicted(rule: Placement, cloud: &Cloud, job: JobId, parts: &[Part]) -> f64 {
    let Some(first) = parts.first() else { return 0.0 };
    let server_type = type_of(cloud.world().servers(), first.server);
    let spread = parts.len() > 1;
    let job_type = cloud.world().job(job).job_type;
    let (mut slowest, mut retained) = (0.0, 1.0);
    if rule.knows_servers() {
        slowest = f64::INFINITY;
        for part in parts {
            let there = newcomer(cloud, job, spread, part.count);
            slowest = slowest.min(log_speed(rule, cloud, job, part.server));
            retained = f64::min(retained, there.retention_on(cloud.world(), cloud.tables(), part.server));
        }
    }
    cloud.tables().speed(job_type, server_type, spread) * slowest.exp() * retained
}

/// The relative speed of a job on these servers: steps/s, as far as a rule knows them, over the job's best speed.
fn relative(rule: Placement, cloud: &Cloud, job: JobId, parts: &[Part]) -> f64 {
    predicted(rule, cloud, job, parts) / cloud.tables().best_speed(cloud.world().job(job).job_type)
}

/// The number of workers that stay free on these servers.
fn left_over(cloud: &Cloud, parts: &[Part]) -> u16 {
    parts.iter().map(|part| cloud.world().free(part.server)[ACCELERATOR] - part.count).sum()
}
