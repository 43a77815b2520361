//! Check of an environment against the rules that every environment must follow.

use std::fmt;

use crate::environment::{Environment, Refused, Status, Transition};
use apportion::workload::random::{SeedStreams, Stream};

/// A rule that every environment must follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Spaces have at least one agent, as many lower as upper bounds, in order, and at least one action.
    Spaces,
    /// The agent that acts next has a space.
    Agent,
    /// Observing writes every entry of observation, mask and state, and changes nothing.
    Observe,
    /// Observations and states are finite, and observations within their bounds.
    Bounds,
    /// A running episode has an allowed action.
    Mask,
    /// Masked and unknown actions are refused as such, and allowed actions are carried out.
    Refusal,
    /// Rewards are finite.
    Reward,
    /// Equal seeds and actions give equal episodes.
    Determinism,
    /// A reset leaves nothing behind of the episode before.
    Reset,
    /// An episode that is over refuses actions until it is reset.
    Ending,
    /// Episodes are truncated at the declared limit on steps, there only, and never run past it.
    Truncation,
}

impl Rule {
    /// The rule in words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Spaces => "every agent has a space with bounds in order and at least one action",
            Self::Agent => "the agent whose turn it is has a space",
            Self::Observe => "observing writes every entry and changes nothing",
            Self::Bounds => "observations are finite and within their bounds",
            Self::Mask => "a running episode has an allowed action",
            Self::Refusal => "exactly the masked and unknown actions are refused, and then nothing changes",
            Self::Reward => "rewards are finite",
            Self::Determinism => "the same seed and actions give the same episode",
            Self::Reset => "a reset leaves nothing behind of the episode before",
            Self::Ending => "an episode that is over takes no action until it is reset",
            Self::Truncation => "episodes are truncated at the declared limit on steps, and there only",
        }
    }
}

/// A rule that was broken, with the first case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The case in words: the seed, the step, the values.
    pub seen: String,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckReport {
    /// Broken rules, each once.
    pub violations: Vec<Violation>,
    /// The number of episodes that ended by themselves.
    pub n_terminated: u64,
    /// The number of episodes that were cut off.
    pub n_truncated: u64,
    /// The number of episodes that were left running at the check's own limit.
    pub n_unfinished: u64,
    /// The number of steps taken.
    pub n_steps: u64,
}

impl CheckReport {
    /// Whether no rule was broken.
    pub fn passed(&self) -> bool {
        self.violations.is_empty()
    }

    /// Panics unless the check passed, for tests.
    ///
    /// # Panics
    /// If a rule was broken; the message is the report.
    pub fn assert_passed(&self) {
        assert!(self.passed(), "{self}");
    }

    fn complain(&mut self, rule: Rule, seen: impl FnOnce() -> String) {
        if !self.violations.iter().any(|violation| violation.rule == rule) {
            self.violations.push(Violation { rule, seen: seen() });
        }
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} steps; episodes: {} terminated, {} truncated, {} unfinished",
            self.n_steps, self.n_terminated, self.n_truncated, self.n_unfinished
        )?;
        for Violation { rule, seen } in &self.violations {
            writeln!(f, "broken: {}\n  seen: {seen}", rule.text())?;
        }
        Ok(())
    }
}

/// Options of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckOptions {
    /// Seed of the actions and of the episodes.
    pub seed: u64,
    /// The number of episodes.
    pub n_episodes: u32,
    /// Steps after which an episode is left.
    pub n_steps_max: u64,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self { seed: 0, n_episodes: 8, n_steps_max: 3_000 }
    }
}

/// Checks environments of one make against every [`Rule`], by episodes of random allowed actions.
pub fn check<E: Environment>(make: impl Fn() -> E, options: CheckOptions) -> CheckReport {
    let mut report =
        CheckReport { violations: Vec::new(), n_terminated: 0, n_truncated: 0, n_unfinished: 0, n_steps: 0 };
    let mut used = make();
    if !check_spaces(&used, &mut report) {
        return report;
    }
    let streams = SeedStreams::new(options.seed);
    let (mut seeds, mut actions) = (streams.stream("seeds"), streams.stream("actions"));
    for _ in 0..options.n_episodes {
        let seed = seeds.next_u64();
        let mut trial = Trial { seed, limit: options.n_steps_max, report: &mut report };
        let first = trial.play(&mut used, &mut actions);
        if trial.is_disturbed() {
            break;
        }
        let again = trial.replay(&mut make(), &first);
        if again != first {
            // If a fresh environment repeats itself, the used one has kept something from the episodes before.
            let once_more = trial.replay(&mut make(), &first);
            let rule = if once_more == again { Rule::Reset } else { Rule::Determinism };
            report.complain(rule, || difference(seed, &first, &again));
        }
    }
    report
}

fn check_spaces<E: Environment>(environment: &E, report: &mut CheckReport) -> bool {
    let spaces = environment.spaces();
    if spaces.is_empty() {
        report.complain(Rule::Spaces, || "no agent has a space".to_owned());
    }
    for (agent, space) in spaces.iter().enumerate() {
        if space.low.len() != space.high.len() {
            report.complain(Rule::Spaces, || {
                format!("agent {agent}: {} lower bounds, {} upper", space.low.len(), space.high.len())
            });
        }
        for (place, (low, high)) in space.low.iter().zip(&space.high).enumerate() {
            if low.is_nan() || high.is_nan() || low > high {
                report.complain(Rule::Spaces, || {
                    format!("agent {agent}: number {place} is to be from {low} to {high}")
                });
            }
        }
        if space.n_actions == 0 {
            report.complain(Rule::Spaces, || format!("agent {agent} has no action"));
        }
    }
    if spaces.len() > 1 && environment.state_length() == 0 {
        report.complain(Rule::Spaces, || format!("{} agents, and no state to judge them by", spaces.len()));
    }
    report.passed()
}

/// Everything that an episode shows, floats as bits.
#[derive(Clone, Debug, Default, PartialEq)]
struct Episode {
    seen: Vec<Seen>,
    actions: Vec<usize>,
    outcomes: Vec<SeenTransition>,
}

/// A transition as it is compared.
#[derive(Clone, Debug, PartialEq)]
struct SeenTransition {
    /// The bits of the reward.
    reward: u32,
    rounds: u32,
    counts: bool,
    status: Status,
}

#[derive(Clone, Debug, PartialEq)]
struct Seen {
    agent: usize,
    observation: Vec<u32>,
    mask: Vec<bool>,
    state: Vec<u32>,
}

fn difference(seed: u64, one: &Episode, other: &Episode) -> String {
    let differs = |step: &usize| {
        one.seen.get(*step) != other.seen.get(*step) || one.outcomes.get(*step) != other.outcomes.get(*step)
    };
    let step = (0..one.seen.len().max(other.seen.len())).find(differs).unwrap_or_default();
    format!("seed {seed}: a second run of the same actions differs at step {step}")
}

struct Trial<'a> {
    seed: u64,
    limit: u64,
    report: &'a mut CheckReport,
}

impl Trial<'_> {
    /// Whether broken rules make a comparison of runs pointless.
    fn is_disturbed(&self) -> bool {
        let disturbs = |rule| matches!(rule, Rule::Agent | Rule::Observe | Rule::Refusal);
        self.report.violations.iter().any(|violation| disturbs(violation.rule))
    }

    /// Plays an episode of random actions, and checks every rule on the way.
    fn play<E: Environment>(&mut self, environment: &mut E, stream: &mut Stream) -> Episode {
        let mut episode = Episode::default();
        environment.reset(self.seed);
        loop {
            let Some(seen) = self.look(environment) else { return episode };
            let step = episode.actions.len();
            self.check_bounds(environment, &seen, step);
            if self.is_disturbed() {
                return episode;
            }
            let allowed: Vec<usize> = (0..seen.mask.len()).filter(|action| seen.mask[*action]).collect();
            self.try_forbidden(environment, &seen, step);
            episode.seen.push(seen);
            if allowed.is_empty() {
                let seed = self.seed;
                self.report.complain(Rule::Mask, || format!("seed {seed}, step {step}: all are masked"));
                return episode;
            }
            if step as u64 == self.limit {
                self.report.n_unfinished += 1;
                return episode;
            }
            let action = *stream.choice(&allowed);
            if !self.act(environment, action, &mut episode) {
                return episode;
            }
        }
    }

    /// Plays the actions of an episode again, without further checks of its steps.
    fn replay<E: Environment>(&mut self, environment: &mut E, first: &Episode) -> Episode {
        let mut episode = Episode::default();
        environment.reset(self.seed);
        let mut actions = first.actions.iter();
        for _ in 0..first.seen.len() {
            let Some(seen) = self.look(environment) else { break };
            episode.seen.push(seen);
            let Some(action) = actions.next() else { break };
            episode.actions.push(*action);
            let Ok(transition) = environment.step(*action) else { break };
            episode.outcomes.push(SeenTransition::of(&transition));
        }
        episode
    }

    /// Carries out an allowed action; returns whether the episode goes on.
    fn act<E: Environment>(&mut self, environment: &mut E, action: usize, episode: &mut Episode) -> bool {
        let (seed, step) = (self.seed, episode.actions.len());
        episode.actions.push(action);
        let transition = match environment.step(action) {
            Ok(transition) => transition,
            Err(refused) => {
                self.report.complain(Rule::Refusal, || {
                    format!("seed {seed}, step {step}: action {action} is allowed, yet: {refused}")
                });
                return false;
            }
        };
        self.report.n_steps += 1;
        episode.outcomes.push(SeenTransition::of(&transition));
        if !transition.reward.is_finite() {
            let reward = transition.reward;
            self.report.complain(Rule::Reward, || format!("seed {seed}, step {step}: reward {reward}"));
        }
        self.check_truncation(environment.step_limit(), transition.status, step as u64 + 1);
        if !transition.status.is_over() {
            return true;
        }
        match transition.status {
            Status::Truncated => self.report.n_truncated += 1,
            _ => self.report.n_terminated += 1,
        }
        if let Some(seen) = self.look(environment) {
            self.check_bounds(environment, &seen, step + 1);
            episode.seen.push(seen);
        }
        let space = environment.spaces().get(environment.agent());
        for action in 0..space.map_or(0, |space| space.n_actions) {
            let outcome = environment.step(action);
            if outcome != Err(Refused::Over) {
                self.report.complain(Rule::Ending, || {
                    format!(
                        "seed {seed}: over after {} steps, then action {action} gave {outcome:?}",
                        step + 1
                    )
                });
                break;
            }
        }
        false
    }

    fn check_truncation(&mut self, limit: Option<u64>, status: Status, n_steps: u64) {
        let seed = self.seed;
        let right = match (status, limit) {
            (Status::Truncated, limit) => limit == Some(n_steps),
            (Status::Running, Some(limit)) => n_steps < limit,
            (Status::Running, None) | (Status::Terminated, _) => true,
        };
        if !right {
            let limit = limit.map_or("no limit".to_owned(), |limit| format!("a limit of {limit}"));
            self.report.complain(Rule::Truncation, || {
                format!("seed {seed}: {status} after {n_steps} steps, with {limit}")
            });
        }
    }

    /// The environment's observation, mask and state, asked for twice with different leftovers in the slices.
    fn look<E: Environment>(&mut self, environment: &E) -> Option<Seen> {
        let (seed, agent) = (self.seed, environment.agent());
        let Some(space) = environment.spaces().get(agent) else {
            self.report.complain(Rule::Agent, || format!("seed {seed}: it is the turn of agent {agent}"));
            return None;
        };
        let seen = [(f32::MAX, true), (f32::MIN, false)].map(|(number, flag)| {
            let mut observation = vec![number; space.observation_length()];
            let mut mask = vec![flag; space.n_actions];
            let mut state = vec![number; environment.state_length()];
            environment.observe(&mut observation, &mut mask);
            environment.state(&mut state);
            let bits = |numbers: Vec<f32>| numbers.into_iter().map(f32::to_bits).collect();
            Seen { agent, observation: bits(observation), mask, state: bits(state) }
        });
        let [first, second] = seen;
        if first != second {
            self.report
                .complain(Rule::Observe, || format!("seed {seed}: a second look shows something else"));
        }
        Some(first)
    }

    fn check_bounds<E: Environment>(&mut self, environment: &E, seen: &Seen, step: usize) {
        let (seed, space) = (self.seed, &environment.spaces()[seen.agent]);
        let bounds = space.low.iter().zip(&space.high);
        for (place, (bits, (low, high))) in seen.observation.iter().zip(bounds).enumerate() {
            let number = f32::from_bits(*bits);
            if !number.is_finite() || number < *low || number > *high {
                self.report.complain(Rule::Bounds, || {
                    format!("seed {seed}, step {step}: number {place} is {number}, not from {low} to {high}")
                });
            }
        }
        for (place, bits) in seen.state.iter().enumerate() {
            let number = f32::from_bits(*bits);
            if !number.is_finite() {
                self.report.complain(Rule::Bounds, || {
                    format!("seed {seed}, step {step}: number {place} of the state is {number}")
                });
            }
        }
    }

    /// Tries an unknown action and every masked one.
    fn try_forbidden<E: Environment>(&mut self, environment: &mut E, seen: &Seen, step: usize) {
        let (seed, n_actions) = (self.seed, seen.mask.len());
        if !seen.mask.contains(&true) {
            return;
        }
        let masked = (0..n_actions).filter(|action| !seen.mask[*action]);
        for action in masked.chain([n_actions]) {
            let expected = if action == n_actions {
                Refused::Unknown { action, n_actions }
            } else {
                Refused::Masked { action }
            };
            let outcome = environment.step(action);
            if outcome != Err(expected) {
                self.report.complain(Rule::Refusal, || {
                    format!(
                        "seed {seed}, step {step}: action {action} gave {outcome:?}, expected {expected:?}"
                    )
                });
                return;
            }
            if self.look(environment).as_ref() != Some(seen) {
                self.report.complain(Rule::Refusal, || {
                    format!("seed {seed}, step {step}: action {action} was refused, yet something changed")
                });
                return;
            }
        }
    }
}

impl SeenTransition {
    fn of(transition: &Transition) -> Self {
        Self {
            reward: transition.reward.to_bits(),
            rounds: transition.rounds,
            counts: transition.counts,
            status: transition.status,
        }
    }
}

#[cfg(test)]
#[path = "checker_tests.rs"]
mod tests;
