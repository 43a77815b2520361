//! The dual-agent scheduler's world as an environment of two agents: see [the module](crate::dual_agent) for the world, and
//! [`network`](super::network) for the networks.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::network;
use crate::dual_agent::observe::{FEATURE_MAX, Knowledge, STATE_LEN, Window};
use crate::dual_agent::placement::Placement;
use crate::dual_agent::proposals::N_PROPOSALS;
use crate::dual_agent::rule::{Order, order_named, placement_named};
use crate::dual_agent::waiting_rule::{PATIENCE, WORTH_MOVING, WaitingRule};
use crate::dual_agent::{
    Cloud, CloudOptions, DualAgentEpisode, EpisodeOptions, Tables, WorkloadOptions, generate,
};
use apportion_learn::environment::{Environment, Refused, Show, Space, Status, Transition};
use apportion_learn::system::{Registered, System, SystemError, check_counts, check_seen, options};

mod jobs;

pub use jobs::Jobs;

/// The system `dual_agent`.
pub const SYSTEM: Registered = Registered {
    name: "dual_agent",
    decides: "who is next and, by a second agent, where it goes, on servers whose speeds drift",
    open,
};

fn open(world: &Value) -> Result<System, SystemError> {
    let options: DualAgentWorld = options(world)?;
    check_seen("seen_jobs", options.seen_jobs)?;
    check_seen("seen_servers", options.seen_servers)?;
    let tables = Arc::new(Tables::embedded().map_err(|error| error.to_string())?);
    let first = options.environment(&tables)?;
    let shown = first.clone();
    Ok(System::new(SYSTEM.name, &format!("{tables:?}"), move || Box::new(first.clone()))
        .with_network(Some(network::NAME))
        .with_teachers(move |teacher, seed, show| shown.clone().demonstrate(teacher.name, seed, show)))
}

/// Options of the world of `dual_agent`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DualAgentWorld {
    /// Jobs of an episode.
    pub jobs: Jobs,
    /// Mean time between arrivals.
    #[schemars(extend("x-unit" = "s"))]
    pub gap_s: f64,
    /// Number of servers, as a part of PAI's.
    pub scale: f64,
    /// The number of jobs in view.
    pub seen_jobs: usize,
    /// The number of servers in view.
    pub seen_servers: usize,
    /// The agents' knowledge of servers beside their types.
    pub knowledge: Knowledge,
    /// An order that takes the place of the ordering agent, as ORDER, ORDER/patient or ORDER/patient=NUMBER/expecting=NUMBER.
    pub order: Option<String>,
    /// A placement rule that takes the place of the placement agent.
    pub placement: Option<String>,
    /// The completion time that a dollar is worth, λ.
    #[schemars(extend("x-unit" = "h/$"))]
    pub fee_weight: f64,
    /// Whether the placement agent sees a rule's choice, which networks beside a rule need.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub advised: bool,
    /// Whether the placement agent chooses among whole placements that a rule proposes, rather than one server after another.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub proposals: bool,
    /// The factor by which a job must be faster elsewhere for the rule to move it.
    #[serde(skip_serializing_if = "is_usual")]
    pub moving: f64,
    /// The part of its speed that a job gives up by the rule, where it goes anew, for servers on which 16 fewer workers stay free.
    #[serde(skip_serializing_if = "is_zero")]
    pub packing: f64,
    /// Steps after which an episode is cut off.
    pub step_limit: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as it is asked")]
fn is_usual(moving: &f64) -> bool {
    moving.total_cmp(&WORTH_MOVING).is_eq()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as it is asked")]
fn is_zero(packing: &f64) -> bool {
    packing.total_cmp(&0.0).is_eq()
}

impl Default for DualAgentWorld {
    fn default() -> Self {
        let EpisodeOptions { window, knowledge, fee_weight, .. } = EpisodeOptions::default();
        Self {
            jobs: Jobs::Fixed(100),
            gap_s: WorkloadOptions::default().gap_s,
            scale: CloudOptions::default().scale,
            seen_jobs: window.n_jobs,
            seen_servers: window.n_servers,
            knowledge,
            order: None,
            placement: None,
            fee_weight,
            advised: false,
            proposals: false,
            moving: WORTH_MOVING,
            packing: 0.0,
            step_limit: 100_000,
        }
    }
}

impl DualAgentWorld {
    /// The options of its episodes.
    ///
    /// # Errors
    /// If an option is out of its range; the error names it.
    pub fn episode(&self) -> Result<EpisodeOptions, String> {
        let (seen_jobs, seen_servers) = (self.seen_jobs, self.seen_servers);
        let counts = [
            ("jobs", self.jobs.at(0.0) as u64),
            ("jobs", self.jobs.at(1.0) as u64),
            ("seen_jobs", seen_jobs as u64),
            ("seen_servers", seen_servers as u64),
        ];
        check_counts(&counts, self.step_limit)?;
        if self.proposals && seen_servers < N_PROPOSALS - 1 {
            let least = N_PROPOSALS - 1;
            return Err(format!(
                "`seen_servers` is {seen_servers}, expected at least {least} beside `proposals`"
            ));
        }
        let within = |fine: bool, field: &str, value: f64, expected: &str| {
            if fine { Ok(()) } else { Err(format!("`{field}` is {value}, expected {expected}")) }
        };
        within(self.scale > 0.0 && self.scale <= 10.0, "scale", self.scale, "a number above 0, at most 10")?;
        let fine = (1.0..=10.0).contains(&self.moving);
        within(fine, "moving", self.moving, "a number from 1 to 10")?;
        let fine = (0.0..=1.0).contains(&self.packing);
        within(fine, "packing", self.packing, "a number from 0 to 1")?;
        let fee = self.fee_weight;
        within(fee.is_finite() && fee >= 0.0, "fee_weight", fee, "a finite number, at least 0")?;
        let (order, waiting_rule): (Option<Order>, WaitingRule) = match &self.order {
            Some(name) => {
                let (before, waiting_rule) =
                    WaitingRule::split_off(name).map_err(|reason| format!("`order`: {reason}"))?;
                (Some(order_named(before)?), waiting_rule)
            }
            None => (None, WaitingRule::default()),
        };
        let waiting_rule = WaitingRule { moving: self.moving, packing: self.packing, ..waiting_rule };
        let placement: Option<Placement> = match &self.placement {
            Some(name) => Some(placement_named(name)?),
            None => None,
        };
        if order.is_some() && placement.is_some() {
            return Err("`placement` is given beside `order`: nothing is left to learn".to_owned());
        }
        let window = Window { n_jobs: seen_jobs, n_servers: seen_servers };
        let (knowledge, advised, proposals) = (self.knowledge, self.advised, self.proposals);
        Ok(EpisodeOptions {
            window,
            knowledge,
            order,
            waiting_rule,
            placement,
            fee_weight: fee,
            advised,
            proposals,
        })
    }

    /// An environment of these options, still to be reset.
    ///
    /// # Errors
    /// If an option is out of its range; the error names it.
    pub fn environment(&self, tables: &Arc<Tables>) -> Result<DualAgentEnvironment, String> {
        let episode = self.episode()?;
        let workload = self.workload(1.0);
        workload.check().map_err(|error| error.to_string())?;
        let cloud =
            Cloud::new(Arc::clone(tables), CloudOptions { scale: self.scale, ..CloudOptions::default() });
        Ok(DualAgentEnvironment::new(self.clone(), DualAgentEpisode::new(cloud, episode)))
    }

    fn workload(&self, share: f64) -> WorkloadOptions {
        WorkloadOptions { n_jobs: self.jobs.at(share), gap_s: self.gap_s, ..WorkloadOptions::default() }
    }
}

/// Episodes of the dual-agent scheduler's world.
#[derive(Clone, Debug)]
pub struct DualAgentEnvironment {
    world: DualAgentWorld,
    spaces: [Space; 2],
    episode: DualAgentEpisode,
    share: f64,
    n_steps: u64,
    status: Option<Status>,
    mask: Vec<bool>,
}

impl DualAgentEnvironment {
    fn new(world: DualAgentWorld, episode: DualAgentEpisode) -> Self {
        let window = episode.options().window;
        let most = window.n_jobs.max(window.n_candidates()) as f32;
        let bounds = (-FEATURE_MAX, FEATURE_MAX.max(most));
        let spaces = [
            Space::uniform(window.team_length(), bounds, window.n_jobs + 1),
            Space::uniform(episode.options().placement_length(), bounds, window.n_candidates()),
        ];
        Self { world, spaces, episode, share: 1.0, n_steps: 0, status: None, mask: Vec::new() }
    }

    /// The episode as it is.
    pub fn episode(&self) -> &DualAgentEpisode {
        &self.episode
    }

    /// Plays the episode of a seed by a rule, and shows each observation, mask and action. The rules are `srtf`, and `srtf_patient`
    /// or `srtf/patient=NUMBER`, which stop if no job fits on servers where it has at least this part of its best speed.
    ///
    /// # Errors
    /// If there is no such rule.
    pub fn demonstrate(&mut self, teacher: &str, seed: u64, show: &mut Show<'_>) -> Result<(), String> {
        let patience = match (teacher, WaitingRule::split_off(teacher)) {
            ("srtf_patient", _) => PATIENCE,
            (_, Ok(("srtf", waiting_rule))) => waiting_rule.patience,
            _ => {
                let known = "`srtf`, `srtf_patient`, `srtf/patient=NUMBER`";
                return Err(format!("unknown teacher `{teacher}`, expected one of {known}"));
            }
        };
        self.reset(seed);
        let (mut seen, mut mask) = (Vec::new(), Vec::new());
        while self.status == Some(Status::Running) {
            let agent = self.agent();
            let Space { n_actions, .. } = self.spaces[agent];
            seen.resize(self.spaces[agent].observation_length(), 0.0);
            mask.resize(n_actions, false);
            self.observe(&mut seen, &mut mask);
            let advice = self.episode.advice(patience).filter(|action| mask[*action]);
            let action = advice.or_else(|| mask.iter().position(|allowed| *allowed)).unwrap_or(0);
            show(agent, &seen, &mask, action);
            self.step(action).map_err(|refused| refused.to_string())?;
        }
        Ok(())
    }
}

impl Environment for DualAgentEnvironment {
    fn spaces(&self) -> &[Space] {
        &self.spaces
    }

    fn agent(&self) -> usize {
        self.episode.agent()
    }

    fn reset(&mut self, seed: u64) {
        let tables = self.episode.cloud().tables();
        let jobs = generate(tables, &self.world.workload(self.share), seed).unwrap_or_default();
        let settled = self.episode.reset(&jobs, seed);
        let status = if settled.done { Status::Terminated } else { Status::Running };
        (self.n_steps, self.status) = (0, Some(status));
    }

    fn observe(&self, observation: &mut [f32], mask: &mut [bool]) {
        self.episode.observe(observation);
        self.episode.mask(mask);
    }

    fn step(&mut self, action: usize) -> Result<Transition, Refused> {
        if self.status != Some(Status::Running) {
            return Err(Refused::Over);
        }
        self.mask.resize(self.spaces[self.agent()].n_actions, false);
        self.episode.mask(&mut self.mask);
        Refused::check(&self.mask, action)?;
        let outcome = self.episode.step(action);
        self.n_steps += 1;
        let status = Status::after(self.n_steps, self.world.step_limit, outcome.done);
        self.status = Some(status);
        Ok(Transition { rounds: outcome.rounds, ..Transition::new(outcome.reward as f32, status) })
    }

    fn step_limit(&self) -> Option<u64> {
        Some(self.world.step_limit)
    }

    fn state_length(&self) -> usize {
        STATE_LEN
    }

    fn state(&self, state: &mut [f32]) {
        self.episode.state(state);
    }

    fn set_progress(&mut self, share: f64) {
        self.share = share;
    }
}

#[cfg(test)]
mod tests;
