//! Rules of the cloud: an order of the queue, and a placement.

use std::fmt;
use std::str::FromStr;

use crate::dual_agent::cloud::Cloud;
use crate::dual_agent::placement::{Placement, Placer};
use crate::dual_agent::summary::DualAgentSummary;
use crate::dual_agent::waiting_rule::{PATIENCE, WAITING_OPTIONS, WaitingRule};
use crate::world::Part;
use crate::world::{Limits, WorldError};
use apportion::index::JobId;
use apportion::spec::nearest::{did_you_mean, name_list, suggestion};
use apportion::workload::random::{SeedStreams, Stream};

/// An order of the queue. Jobs are tried in this order, and jobs that do not fit are skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Order of arrival.
    Fifo,
    /// Least true remaining time on the fastest type, which no policy can know.
    Srtf,
    /// Least remaining time, as owners estimate it.
    SrtfEstimated,
    /// Least remaining worker-seconds, as owners estimate them (Tiresias with known durations).
    SrsfEstimated,
    /// Least worker-seconds received so far (Tiresias).
    Las,
    /// Best fit to the free workers, less the true remaining worker-seconds (Tetris).
    Tetris,
    /// Random order.
    Random,
}

/// An order and a placement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// The order in which jobs are placed.
    pub order: Order,
    /// The rule by which a job's servers are chosen.
    pub placement: Placement,
    /// The conditions under which the rule makes jobs wait, and under which it moves them.
    pub waiting_rule: WaitingRule,
}

/// Limits after which a run is given up.
pub const LIMITS: Limits = Limits { decisions_max: 100_000, rounds_max: 50_000 };

const ORDERS: [(&str, Order); 7] = [
    ("fifo", Order::Fifo),
    ("srtf", Order::Srtf),
    ("srtf_estimated", Order::SrtfEstimated),
    ("srsf_estimated", Order::SrsfEstimated),
    ("las", Order::Las),
    ("tetris", Order::Tetris),
    ("random", Order::Random),
];

const PLACEMENTS: [(&str, Placement); 10] = [
    ("first_fit", Placement::FirstFit),
    ("best_fit", Placement::BestFit),
    ("load_balancing", Placement::LoadBalancing),
    ("fastest_type", Placement::FastestType),
    ("posterior", Placement::Posterior),
    ("switching", Placement::Switching),
    ("last_measured", Placement::LastMeasured),
    ("oracle", Placement::Oracle),
    ("measured_oracle", Placement::MeasuredOracle),
    ("random", Placement::Random),
];

impl Rule {
    /// The rules that a table has by default: all pairs of orders and placements, some of them with patience, and the random rule.
    pub fn all() -> impl Iterator<Item = Self> {
        let orders = ORDERS.into_iter().filter(|(_, order)| *order != Order::Random);
        let pairs = orders.flat_map(|(_, order)| {
            let shown = |placement| ![Placement::Random, Placement::MeasuredOracle].contains(&placement);
            let placements = PLACEMENTS.into_iter().filter(move |(_, placement)| shown(*placement));
            placements.map(move |(_, placement)| Self {
                order,
                placement,
                waiting_rule: WaitingRule::default(),
            })
        });
        let patient = [
            (Order::Srtf, Placement::FastestType),
            (Order::Srtf, Placement::Posterior),
            (Order::SrtfEstimated, Placement::LastMeasured),
            (Order::SrtfEstimated, Placement::Posterior),
            (Order::Srtf, Placement::Oracle),
        ];
        let waiting_rule = WaitingRule { patience: PATIENCE, ..WaitingRule::default() };
        let patient = patient.map(|(order, placement)| Self { order, placement, waiting_rule });
        let random =
            Self { order: Order::Random, placement: Placement::Random, waiting_rule: WaitingRule::default() };
        pairs.chain(patient).chain([random])
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = ORDERS.iter().find(|(_, order)| *order == self.order).map_or("", |(name, _)| name);
        let placement = PLACEMENTS
            .iter()
            .find(|(_, placement)| *placement == self.placement)
            .map_or("", |(name, _)| name);
        write!(f, "{order}/{placement}{}", self.waiting_rule)
    }
}

/// A text that is no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown rule `{text}`: {reason}")]
pub struct UnknownRule {
    text: String,
    reason: String,
}

impl FromStr for Rule {
    type Err = UnknownRule;

    fn from_str(text: &str) -> Result<Self, UnknownRule> {
        Self::read(text).map_err(|reason| UnknownRule { text: text.to_owned(), reason })
    }
}

impl Rule {
    /// Reads a rule; the error is about the first part that is wrong.
    fn read(text: &str) -> Result<Self, String> {
        let (pair, waiting_rule) = WaitingRule::split_off(text)?;
        let mut parts = pair.split('/');
        let order = order_named(parts.next().unwrap_or_default())?;
        let Some(placement) = parts.next() else {
            let known = name_list(PLACEMENTS.iter().map(|(name, _)| *name));
            return Err(format!("expected ORDER/PLACEMENT, with a placement of {known}"));
        };
        let placement = placement_named(placement).map_err(|reason| {
            after_placement(placement).map_or(reason, |near| format!("a placement comes before `/{near}`"))
        })?;
        match parts.next() {
            None => Ok(Self { order, placement, waiting_rule }),
            Some(part) => {
                let near = after_placement(part).map(|near| format!("; did you mean `/{near}`?"));
                let known = "/patient, /patient=NUMBER, /expecting=NUMBER, /moving=NUMBER, /packing=NUMBER";
                let near = near.unwrap_or_default();
                Err(format!("`/{part}` is none of what comes after a placement: {known}{near}"))
            }
        }
    }
}

/// The order of a name.
///
/// # Errors
/// If there is none; the error lists the names and suggests the nearest.
pub fn order_named(name: &str) -> Result<Order, String> {
    named("order", name, &ORDERS)
}

/// The placement of a name.
///
/// # Errors
/// If there is none; the error lists the names and suggests the nearest.
pub fn placement_named(name: &str) -> Result<Placement, String> {
    named("placement", name, &PLACEMENTS)
}

fn named<T: Copy>(what: &str, name: &str, known: &[(&'static str, T)]) -> Result<T, String> {
    let names = || known.iter().map(|(name, _)| *name);
    let found = known.iter().find(|(other, _)| *other == name).map(|(_, found)| *found);
    found.ok_or_else(|| {
        let near = suggestion(name, names()).map(|near| format!("; {near}")).unwrap_or_default();
        format!("there is no {what} `{name}`, expected one of {}{near}", name_list(names()))
    })
}

/// The option after a placement that a misspelled part probably means, with its number.
fn after_placement(part: &str) -> Option<String> {
    let (name, number) = part.find('=').map_or((part, ""), |at| part.split_at(at));
    did_you_mean(name, WAITING_OPTIONS).map(|near| format!("{near}{number}"))
}

/// A rule of the cloud at work.
#[derive(Clone, Debug)]
pub struct RulePlayer {
    rule: Rule,
    placer: Placer,
    draws: Stream,
    tried: Vec<JobId>,
    parts: Vec<Part>,
}

impl RulePlayer {
    /// A rule at work; `seed` is for its random choices.
    pub fn new(rule: Rule, seed: u64) -> Self {
        let draws = SeedStreams::new(seed).stream("dual-agent rule");
        Self {
            rule,
            placer: Placer::new(rule.placement, rule.waiting_rule, seed),
            draws,
            tried: Vec::new(),
            parts: Vec::new(),
        }
    }

    /// The next job that fits and has not been tried in this round.
    pub fn next_job(&mut self, cloud: &Cloud) -> Option<JobId> {
        let free = cloud.free_by_type();
        let mut best: Option<(f64, JobId)> = None;
        for &job in cloud.world().waiting() {
            if self.tried.contains(&job) || !cloud.fits(job, &free) {
                continue;
            }
            let key = self.key(cloud, job, &free);
            let first = |(least, other): &(f64, JobId)| key.total_cmp(least).then(job.cmp(other)).is_lt();
            if best.as_ref().is_none_or(first) {
                best = Some((key, job));
            }
        }
        best.map(|(_, job)| job)
    }

    fn key(&mut self, cloud: &Cloud, job: JobId, free: &[u32]) -> f64 {
        let world = cloud.world();
        let workers = f64::from(world.job(job).workers);
        match self.rule.order {
            Order::Fifo => world.job(job).arrival_s,
            Order::Srtf => cloud.remaining_s(job, false),
            Order::SrtfEstimated => cloud.remaining_s(job, true),
            Order::SrsfEstimated => cloud.remaining_s(job, true) * workers,
            Order::Las => world.service_s(job) * workers,
            Order::Tetris => {
                let most = free.iter().copied().max().unwrap_or(1).max(1);
                let left = |job: JobId| cloud.remaining_s(job, false) * f64::from(world.job(job).workers);
                let all: f64 = world.waiting().iter().map(|job| left(*job)).sum();
                let mean = all / world.waiting().len().max(1) as f64;
                left(job) / mean.max(f64::MIN_POSITIVE) - workers / f64::from(most)
            }
            Order::Random => self.draws.uniform(),
        }
    }

    /// Whether a job, on the servers where the placement puts it, is as fast as the rule's patience asks.
    pub fn is_worth(&mut self, cloud: &Cloud, job: JobId) -> bool {
        let least = self.rule.waiting_rule.least_speed(cloud);
        least == 0.0
            || self.placer.place(cloud, job, &mut self.parts).is_some_and(|relative| relative >= least)
    }

    /// The placement of a job, if it fits and is fast enough there.
    pub fn placement(&mut self, cloud: &Cloud, job: JobId) -> Option<&[Part]> {
        let relative = self.placer.place(cloud, job, &mut self.parts)?;
        (relative >= self.rule.waiting_rule.least_speed(cloud)).then_some(self.parts.as_slice())
    }

    /// Marks a job as tried in this round.
    pub fn pass(&mut self, job: JobId) {
        self.tried.push(job);
    }

    /// Begins a round.
    pub fn begin(&mut self) {
        self.tried.clear();
    }

    /// Plays until all jobs are done.
    ///
    /// # Errors
    /// If a limit is hit.
    pub fn run(&mut self, cloud: &mut Cloud) -> Result<DualAgentSummary, WorldError> {
        while !cloud.world().is_done() {
            if cloud.world().round() >= LIMITS.rounds_max {
                let (n_done, n_jobs) = (cloud.world().n_done(), cloud.world().n_jobs());
                return Err(WorldError::Rounds { n_done, n_jobs, rounds_max: LIMITS.rounds_max });
            }
            self.begin();
            while let Some(job) = self.next_job(cloud) {
                self.pass(job);
                if self.placement(cloud, job).is_some() {
                    // A job whose placement is rejected waits.
                    let _ = cloud.place(job, &self.parts);
                }
            }
            cloud.end_round();
            cloud.begin_round();
        }
        Ok(cloud.summary())
    }
}
