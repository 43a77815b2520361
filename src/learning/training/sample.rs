//! Decisions as replay keeps them, with the reward of the round that they were made in.

use serde_json::Value;

use super::TrainingError;
use super::exploration::Exploration;
use crate::learning::environment::{Space, Status, Transition};
use crate::learning::tensors::Tensors;
use crate::learning::vectorized::{Moment, Observer};
use crate::workload::random::Stream;

/// A decision to learn from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) observation: Vec<f32>,
    pub(super) mask: Vec<bool>,
    /// Of the actions, when it was made; 0 where masked.
    pub(super) probabilities: Vec<f32>,
    pub(super) action: usize,
    /// Of its round.
    pub(super) reward: f32,
    /// What was seen first in the next round.
    pub(super) next: Vec<f32>,
    /// What the value of the next round counts for: 0 if none follows.
    pub(super) discount: f32,
}

/// Gathers the decisions of a round until its reward is known.
#[derive(Debug)]
pub(super) struct SlotRecorder {
    exploration: Box<dyn Exploration>,
    discount: f32,
    pending: Vec<Sample>,
    reward: f32,
    /// Rounds that the last step took, if one is over and what follows is not seen yet.
    over: Option<u32>,
    is_new: bool,
    samples: Vec<Sample>,
    n_decisions: u64,
}

impl SlotRecorder {
    pub(super) fn new(exploration: Box<dyn Exploration>, discount: f32) -> Self {
        Self {
            exploration,
            discount,
            pending: Vec::new(),
            reward: 0.0,
            over: None,
            is_new: true,
            samples: Vec::new(),
            n_decisions: 0,
        }
    }

    /// The samples of the rounds that are over.
    pub(super) fn take_samples(&mut self) -> Vec<Sample> {
        std::mem::take(&mut self.samples)
    }

    /// Decisions since the last time.
    pub(super) fn take_decisions(&mut self) -> u64 {
        std::mem::take(&mut self.n_decisions)
    }

    pub(super) fn exploration_state(&self) -> Value {
        self.exploration.state()
    }

    pub(super) fn restore_exploration(&mut self, state: &Value) -> Result<(), TrainingError> {
        self.exploration.restore(state)
    }

    /// The round is over, and this is what follows.
    fn settle(&mut self, next: &[f32], discount: f32) {
        let reward = std::mem::take(&mut self.reward);
        for mut sample in self.pending.drain(..) {
            sample.reward = reward;
            sample.next.extend_from_slice(next);
            sample.discount = discount;
            self.samples.push(sample);
        }
        self.over = None;
        self.is_new = true;
    }

    fn discount_over(&self, rounds: u32) -> f32 {
        self.discount.powi(i32::try_from(rounds).unwrap_or(i32::MAX))
    }
}

impl Observer for SlotRecorder {
    fn before(&mut self, moment: &Moment) {
        if let Some(rounds) = self.over {
            self.settle(moment.observation, self.discount_over(rounds));
        }
        self.n_decisions += 1;
        self.pending.push(Sample {
            observation: moment.observation.to_vec(),
            mask: moment.mask.to_vec(),
            probabilities: moment.probabilities.to_vec(),
            action: 0,
            reward: 0.0,
            next: Vec::new(),
            discount: 0.0,
        });
    }

    fn choose(&mut self, moment: &Moment, drawn: usize, choices: &mut Stream) -> usize {
        if std::mem::take(&mut self.is_new) {
            self.exploration.begin_round(choices);
        }
        self.exploration.choose(moment, drawn, choices)
    }

    fn after(&mut self, action: usize, transition: &Transition, last: Option<&Moment>) {
        if let Some(sample) = self.pending.last_mut() {
            sample.action = action;
        }
        if !transition.counts {
            self.pending.pop();
        }
        self.reward += transition.reward;
        match (last, transition.status) {
            (Some(moment), Status::Truncated) => {
                self.settle(moment.observation, self.discount_over(transition.rounds.max(1)));
            }
            (Some(moment), _) => self.settle(moment.observation, 0.0),
            (None, _) if transition.rounds > 0 => self.over = Some(transition.rounds),
            (None, _) => {}
        }
    }

    fn rest(&mut self, moment: &Moment) {
        if let Some(rounds) = self.over {
            self.settle(moment.observation, self.discount_over(rounds));
        }
    }
}

/// As arrays with a row per sample.
pub(super) fn samples_to(samples: &[Sample]) -> Result<Tensors, TrainingError> {
    let mut tensors = Tensors::default();
    let mut add = |name: &str, numbers: Vec<f32>| {
        let shape = vec![samples.len(), numbers.len() / samples.len().max(1)];
        tensors.insert(name, shape, numbers)
    };
    let all = |part: fn(&Sample) -> &Vec<f32>| {
        samples.iter().flat_map(|sample| part(sample).iter().copied()).collect()
    };
    add("observations", all(|sample| &sample.observation))?;
    add("probabilities", all(|sample| &sample.probabilities))?;
    add("next", all(|sample| &sample.next))?;
    let flag = |allowed: &bool| if *allowed { 1.0 } else { 0.0 };
    add("masks", samples.iter().flat_map(|sample| sample.mask.iter().map(flag)).collect())?;
    add("actions", samples.iter().map(|sample| sample.action as f32).collect())?;
    add("rewards", samples.iter().map(|sample| sample.reward).collect())?;
    add("discounts", samples.iter().map(|sample| sample.discount).collect())?;
    Ok(tensors)
}

/// From such arrays.
pub(super) fn samples_from(tensors: &Tensors, space: &Space) -> Result<Vec<Sample>, TrainingError> {
    let n = tensors.get("actions")?.1.len();
    let column = |name: &str, length: usize| -> Result<&[f32], TrainingError> {
        let (shape, numbers) = tensors.get(name)?;
        if numbers.len() == n * length {
            Ok(numbers)
        } else {
            let reason = format!("`replay.{name}` has shape {shape:?}, expected [{n}, {length}]");
            Err(TrainingError::Checkpoint { reason })
        }
    };
    let (seen, n_actions) = (space.observation_length(), space.n_actions);
    let (observations, next) = (column("observations", seen)?, column("next", seen)?);
    let (probabilities, masks) = (column("probabilities", n_actions)?, column("masks", n_actions)?);
    let (actions, rewards, discounts) =
        (column("actions", 1)?, column("rewards", 1)?, column("discounts", 1)?);
    let row = |numbers: &[f32], length: usize, number: usize| {
        numbers[number * length..(number + 1) * length].to_vec()
    };
    let sample = |number: usize| Sample {
        observation: row(observations, seen, number),
        mask: row(masks, n_actions, number).iter().map(|flag| *flag > 0.5).collect(),
        probabilities: row(probabilities, n_actions, number),
        action: (0..n_actions).find(|action| *action as f32 >= actions[number]).unwrap_or_default(),
        reward: rewards[number],
        next: row(next, seen, number),
        discount: discounts[number],
    };
    Ok((0..n).map(sample).collect())
}
