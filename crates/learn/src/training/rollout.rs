//! Rollouts: a team's decisions in some steps of one copy of an environment, and their advantages over expectation.

use candle_core::{Device, Tensor};
use serde::{Deserialize, Serialize};

use crate::environment::{Space, Status, Transition};
use crate::vectorized::{Moment, Observer};

/// Rows of numbers of equal length.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows<T> {
    /// Length of a row.
    pub length: usize,
    /// The numbers, row by row.
    pub all: Vec<T>,
}

impl<T: Copy> Rows<T> {
    /// No rows yet, for rows of this length.
    pub fn new(length: usize) -> Self {
        Self { length, all: Vec::new() }
    }

    /// The numbers of a row.
    pub fn row(&self, number: usize) -> &[T] {
        &self.all[number * self.length..(number + 1) * self.length]
    }

    /// The number of rows; 0 if rows have no numbers.
    pub fn n_rows(&self) -> usize {
        self.all.len().checked_div(self.length).unwrap_or_default()
    }

    /// The numbers of some rows, one after another.
    pub fn gather(&self, rows: impl Iterator<Item = usize>) -> Vec<T> {
        rows.flat_map(|row| self.row(row).iter().copied()).collect()
    }
}

impl Rows<f32> {
    /// The rows as a tensor: [rows × length].
    ///
    /// # Errors
    /// If the library fails.
    pub fn tensor(&self) -> candle_core::Result<Tensor> {
        Tensor::from_slice(&self.all, (self.n_rows(), self.length), &Device::Cpu)
    }
}

/// The unit of time by which rewards are discounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiscountUnit {
    /// A decision.
    #[default]
    Step,
    /// A round: decisions within one are simultaneous.
    Round,
}

/// A decision of a rollout.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// The agent that decided.
    pub agent: usize,
    /// Its row among the agent's observations and masks.
    pub row: usize,
    /// The action taken.
    pub action: usize,
    /// Logarithm of the action's probability at that time.
    pub log_probability: f32,
    /// The transition that it led to: reward, rounds passed and status.
    pub transition: Transition,
}

/// The decisions in one copy, in order, with the observations and states of each.
#[derive(Clone, Debug, PartialEq)]
pub struct Rollout {
    /// The decisions, in order of time.
    pub decisions: Vec<Decision>,
    /// The observations of each agent.
    pub observations: Vec<Rows<f32>>,
    /// The masks of allowed actions of each agent, one row per observation.
    pub masks: Vec<Rows<bool>>,
    /// The states that the critic judges, one row per decision.
    pub states: Rows<f32>,
    /// The states after decisions that ended an episode, and after the last decision.
    pub ends: Rows<f32>,
    /// The number of the decision before each row of `ends`.
    pub ends_after: Vec<usize>,
    has_state: bool,
    log_probabilities: Vec<f32>,
}

impl Rollout {
    /// A rollout without decisions.
    pub fn new(spaces: &[Space], state_length: usize) -> Self {
        let seen = spaces.first().map_or(0, Space::observation_length);
        let length = if state_length > 0 { state_length } else { seen };
        Self {
            decisions: Vec::new(),
            observations: spaces.iter().map(|space| Rows::new(space.observation_length())).collect(),
            masks: spaces.iter().map(|space| Rows::new(space.n_actions)).collect(),
            states: Rows::new(length),
            ends: Rows::new(length),
            ends_after: Vec::new(),
            has_state: state_length > 0,
            log_probabilities: Vec::new(),
        }
    }

    /// Removes all decisions, and keeps the allocated memory.
    pub fn clear(&mut self) {
        self.decisions.clear();
        self.observations.iter_mut().for_each(|rows| rows.all.clear());
        self.masks.iter_mut().for_each(|rows| rows.all.clear());
        self.states.all.clear();
        self.ends.all.clear();
        self.ends_after.clear();
    }

    fn judged<'a>(&self, moment: &Moment<'a>) -> &'a [f32] {
        if self.has_state { moment.state } else { moment.observation }
    }

    /// (advantage, return) of each decision, by generalized advantage estimation (Schulman et al., 2016):
    /// Aᵢ = δᵢ + γλ Aᵢ₊₁ with δᵢ = rᵢ + γ Vᵢ₊₁ − Vᵢ, and the return is Aᵢ + Vᵢ. The value after the end of an episode is 0;
    /// after a truncated episode it is the value of its last state.
    ///
    /// `values` are those of `states`, `end_values` those of `ends`.
    pub fn advantages(&self, values: &[f32], end_values: &[f32], weights: &GaeWeights) -> Vec<(f32, f32)> {
        let mut ends = self.ends_after.iter().zip(end_values).rev().peekable();
        let mut results = vec![(0.0, 0.0); self.decisions.len()];
        let mut advantage_after = 0.0;
        for (number, decision) in self.decisions.iter().enumerate().rev() {
            let transition = &decision.transition;
            let discount = weights.discount_over(transition.rounds);
            let end = ends.next_if(|(after, _)| **after == number).map(|(_, value)| *value);
            let value_after = match transition.status {
                Status::Terminated => 0.0,
                Status::Truncated => end.unwrap_or_default(),
                Status::Running => end.unwrap_or_else(|| values.get(number + 1).copied().unwrap_or_default()),
            };
            if end.is_some() {
                advantage_after = 0.0;
            }
            let surprise = transition.reward + discount * value_after - values[number];
            let advantage = surprise + discount * weights.smoothing * advantage_after;
            results[number] = (advantage, advantage + values[number]);
            advantage_after = advantage;
        }
        results
    }
}

/// Weights of generalized advantage estimation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GaeWeights {
    /// Discount γ.
    pub discount: f32,
    /// The unit of time that is discounted.
    pub unit: DiscountUnit,
    /// λ: 0 trusts the critic, 1 the rewards.
    pub smoothing: f32,
}

impl GaeWeights {
    fn discount_over(&self, rounds: u32) -> f32 {
        match self.unit {
            DiscountUnit::Step => self.discount,
            DiscountUnit::Round => self.discount.powi(i32::try_from(rounds).unwrap_or(i32::MAX)),
        }
    }
}

impl Observer for Rollout {
    fn before(&mut self, moment: &Moment) {
        self.observations[moment.agent].all.extend_from_slice(moment.observation);
        self.masks[moment.agent].all.extend_from_slice(moment.mask);
        let judged = self.judged(moment);
        self.states.all.extend_from_slice(judged);
        self.log_probabilities.clear();
        self.log_probabilities.extend(moment.probabilities.iter().map(|probability| probability.ln()));
        let row = self.masks[moment.agent].n_rows() - 1;
        let transition = Transition::new(0.0, Status::Running);
        let undecided = Decision { agent: moment.agent, row, action: 0, log_probability: 0.0, transition };
        self.decisions.push(undecided);
    }

    fn after(&mut self, action: usize, transition: &Transition, last: Option<&Moment>) {
        if let Some(decision) = self.decisions.last_mut() {
            decision.action = action;
            decision.log_probability = self.log_probabilities[action];
            decision.transition = *transition;
        }
        if let Some(moment) = last {
            self.rest(moment);
        }
    }

    fn rest(&mut self, moment: &Moment) {
        let judged = self.judged(moment);
        self.ends.all.extend_from_slice(judged);
        self.ends_after.push(self.decisions.len() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rollout(steps: &[(f32, u32, Status)], ends_after: &[usize]) -> Rollout {
        let mut rollout = Rollout::new(&[Space::uniform(1, (0.0, 1.0), 2)], 0);
        for (reward, rounds, status) in steps {
            let transition = Transition { rounds: *rounds, ..Transition::new(*reward, *status) };
            rollout.decisions.push(Decision {
                agent: 0,
                row: 0,
                action: 0,
                log_probability: 0.0,
                transition,
            });
        }
        rollout.ends_after = ends_after.to_vec();
        rollout
    }

    /// Advantages by their definition, Σₖ (γλ)ᵏ δ, each δ from its own successor.
    fn by_definition(
        rewards: &[f32],
        values_after: &[f32],
        values: &[f32],
        gamma: f32,
        lambda: f32,
    ) -> Vec<f32> {
        let surprise = |i: usize| rewards[i] + gamma * values_after[i] - values[i];
        let from =
            |i: usize| (i..rewards.len()).map(|j| (gamma * lambda).powf((j - i) as f32) * surprise(j)).sum();
        (0..rewards.len()).map(from).collect()
    }

    #[test]
    fn three_episodes_that_end_differently() {
        use Status::{Running, Terminated, Truncated};
        let steps = [
            (1.0, 1, Running),
            (2.0, 1, Terminated),
            (0.5, 1, Running),
            (0.25, 1, Truncated),
            (4.0, 1, Running),
            (3.0, 1, Running),
        ];
        let values = [0.3, 0.7, 0.1, 0.9, 0.2, 0.4];
        let end_values = [100.0, 5.0, 7.0];
        let weights = GaeWeights { discount: 0.9, unit: DiscountUnit::Step, smoothing: 0.8 };
        let found = rollout(&steps, &[1, 3, 5]).advantages(&values, &end_values, &weights);
        let mut expected = by_definition(&[1.0, 2.0], &[0.7, 0.0], &values[..2], 0.9, 0.8);
        expected.extend(by_definition(&[0.5, 0.25], &[0.9, 5.0], &values[2..4], 0.9, 0.8));
        expected.extend(by_definition(&[4.0, 3.0], &[0.4, 7.0], &values[4..], 0.9, 0.8));
        for (((advantage, target), expected), value) in found.iter().zip(expected).zip(values) {
            assert!((advantage - expected).abs() < 1e-5, "{found:?}");
            assert!((target - expected - value).abs() < 1e-5);
        }
    }

    #[test]
    fn decisions_within_a_round_are_simultaneous() {
        let steps = [(0.0, 0, Status::Running), (0.0, 2, Status::Running), (1.0, 1, Status::Terminated)];
        let weights = GaeWeights { discount: 0.5, unit: DiscountUnit::Round, smoothing: 1.0 };
        let found = rollout(&steps, &[2]).advantages(&[0.0; 3], &[0.0], &weights);
        assert_eq!(found.iter().map(|(_, target)| *target).collect::<Vec<_>>(), [0.25, 0.25, 1.0]);
    }
}
