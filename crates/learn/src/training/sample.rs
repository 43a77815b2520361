//! Samples of a replay: decisions, each with its reward.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::TrainingError;
use super::exploration::Exploration;
use crate::environment::{Space, Status, Transition};
use crate::tensors::Tensors;
use crate::vectorized::{Moment, Observer};
use apportion::workload::random::Stream;

/// The observation from which the critic judges a decision, for the value that its reward is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Baseline {
    /// The decision's own observation, as in DL2's released trainer.
    #[default]
    Decision,
    /// The first observation of the decision's round. In the middle of a round, allocated jobs are no longer observed, though its
    /// reward is due to them, too.
    Round,
}

/// The reward that a decision is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Credit {
    /// The reward of its whole round, as published.
    #[default]
    Round,
    /// The reward of its own step, in worlds that reward each step.
    Decision,
    /// The sum of the rewards of its job in the round, in worlds that attribute rewards to jobs, as in DL2's published ablation of
    /// the common reward.
    Job,
}

/// A decision to learn from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) observation: Vec<f32>,
    pub(super) mask: Vec<bool>,
    /// Probabilities of the actions at the time of the decision; 0 where masked.
    pub(super) probabilities: Vec<f32>,
    pub(super) action: usize,
    /// The reward that the decision is judged by: of its round, its step or its job.
    pub(super) reward: f32,
    /// The first observation of its round, if the critic judges from it; empty otherwise.
    pub(super) first: Vec<f32>,
    /// The observation that follows the round: the first of the next round, or the last of the episode.
    pub(super) next: Vec<f32>,
    /// The factor of the value of `next`: 0 if the episode has ended.
    pub(super) discount: f32,
}

/// A recorder that gathers the decisions of a round until their rewards are known.
#[derive(Debug)]
pub(super) struct SlotRecorder {
    exploration: Box<dyn Exploration>,
    discount: f32,
    credit: Credit,
    baseline: Baseline,
    /// The first observation of this round, if the critic judges from it.
    first: Vec<f32>,
    pending: Vec<Sample>,
    /// The job that the reward of each pending sample is attributed to, if any.
    owners: Vec<Option<usize>>,
    reward: f32,
    /// The number of rounds that the last step took, if a round is over and its next observation is not known yet.
    over: Option<u32>,
    is_new: bool,
    samples: Vec<Sample>,
    n_decisions: u64,
}

impl SlotRecorder {
    pub(super) fn new(
        exploration: Box<dyn Exploration>,
        discount: f64,
        (baseline, credit): (Baseline, Credit),
    ) -> Self {
        Self {
            exploration,
            discount: discount as f32,
            credit,
            baseline,
            first: Vec::new(),
            pending: Vec::new(),
            owners: Vec::new(),
            reward: 0.0,
            over: None,
            is_new: true,
            samples: Vec::new(),
            n_decisions: 0,
        }
    }

    /// Takes the samples of the rounds that are over.
    pub(super) fn take_samples(&mut self) -> Vec<Sample> {
        std::mem::take(&mut self.samples)
    }

    /// Takes the number of decisions since the last call.
    pub(super) fn take_decisions(&mut self) -> u64 {
        std::mem::take(&mut self.n_decisions)
    }

    pub(super) fn exploration_state(&self) -> Value {
        self.exploration.state()
    }

    pub(super) fn restore_exploration(&mut self, state: &Value) -> Result<(), TrainingError> {
        self.exploration.restore(state)
    }

    /// Ends the round: its decisions become samples, with their rewards and the observation `next` that follows.
    fn end_round(&mut self, next: &[f32], discount: f32) {
        let reward = std::mem::take(&mut self.reward);
        let rewards: Vec<f32> = match self.credit {
            Credit::Round => vec![reward; self.pending.len()],
            Credit::Decision => self.pending.iter().map(|sample| sample.reward).collect(),
            Credit::Job => (0..self.pending.len()).map(|number| self.of_owner(number)).collect(),
        };
        self.owners.clear();
        for (mut sample, reward) in self.pending.drain(..).zip(rewards) {
            sample.reward = reward;
            sample.next.extend_from_slice(next);
            sample.discount = discount;
            self.samples.push(sample);
        }
        self.over = None;
        self.is_new = true;
    }

    /// The sum of the rewards of this round's decisions for the same job; a decision for no job has its own.
    fn of_owner(&self, number: usize) -> f32 {
        let Some(owner) = self.owners[number] else { return self.pending[number].reward };
        let of_job = self.owners.iter().zip(&self.pending).filter(|(other, _)| **other == Some(owner));
        of_job.map(|(_, sample)| sample.reward).sum()
    }

    fn discount_over(&self, rounds: u32) -> f32 {
        self.discount.powi(i32::try_from(rounds).unwrap_or(i32::MAX))
    }
}

impl Observer for SlotRecorder {
    fn before(&mut self, moment: &Moment) {
        if let Some(rounds) = self.over {
            self.end_round(moment.observation, self.discount_over(rounds));
        }
        self.n_decisions += 1;
        if self.is_new && self.baseline == Baseline::Round {
            self.first = moment.observation.to_vec();
        }
        self.pending.push(Sample {
            observation: moment.observation.to_vec(),
            mask: moment.mask.to_vec(),
            probabilities: moment.probabilities.to_vec(),
            action: 0,
            reward: 0.0,
            first: self.first.clone(),
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
            sample.reward = transition.reward;
            self.owners.push(transition.owner);
        }
        if !transition.counts {
            self.pending.pop();
            self.owners.pop();
        }
        self.reward += transition.reward;
        match (last, transition.status) {
            (Some(moment), Status::Truncated) => {
                self.end_round(moment.observation, self.discount_over(transition.rounds.max(1)));
            }
            (Some(moment), _) => self.end_round(moment.observation, 0.0),
            (None, _) if transition.rounds > 0 => self.over = Some(transition.rounds),
            (None, _) => {}
        }
    }

    fn rest(&mut self, moment: &Moment) {
        if let Some(rounds) = self.over {
            self.end_round(moment.observation, self.discount_over(rounds));
        }
    }
}

/// Samples as arrays with a row per sample.
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
    if samples.iter().any(|sample| !sample.first.is_empty()) {
        add("first", all(|sample| &sample.first))?;
    }
    let flag = |allowed: &bool| if *allowed { 1.0 } else { 0.0 };
    add("masks", samples.iter().flat_map(|sample| sample.mask.iter().map(flag)).collect())?;
    add("actions", samples.iter().map(|sample| sample.action as f32).collect())?;
    add("rewards", samples.iter().map(|sample| sample.reward).collect())?;
    add("discounts", samples.iter().map(|sample| sample.discount).collect())?;
    Ok(tensors)
}

/// Samples from arrays that [`samples_to`] made.
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
    let first = if tensors.contains("first") { Some(column("first", seen)?) } else { None };
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
        first: first.map(|first| row(first, seen, number)).unwrap_or_default(),
        next: row(next, seen, number),
        discount: discounts[number],
    };
    Ok((0..n).map(sample).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::training::exploration::AsDrawn;
    use apportion::workload::random::SeedStreams;

    fn moment(observation: &[f32]) -> Moment<'_> {
        Moment { agent: 0, observation, mask: &[true], state: &[], probabilities: &[1.0] }
    }

    /// The samples of two decisions of one round, with rewards 1 and 2, and of one of the next, with reward 4: (observation, first
    /// observation of its round, reward, next observation).
    fn recorded(baseline: Baseline, credit: Credit) -> Vec<(f32, Vec<f32>, f32, f32)> {
        let mut recorder = SlotRecorder::new(Box::new(AsDrawn), 0.5, (baseline, credit));
        let mut choices = SeedStreams::new(1).stream("choices");
        for (seen, reward, rounds) in [(10.0, 1.0, 0), (11.0, 2.0, 1), (12.0, 4.0, 1)] {
            recorder.before(&moment(&[seen]));
            recorder.choose(&moment(&[seen]), 0, &mut choices);
            recorder.after(0, &Transition { rounds, ..Transition::new(reward, Status::Running) }, None);
        }
        recorder.rest(&moment(&[13.0]));
        let samples = recorder.take_samples();
        assert!(samples.iter().all(|sample| sample.discount == 0.5));
        samples.into_iter().map(|one| (one.observation[0], one.first, one.reward, one.next[0])).collect()
    }

    #[test]
    fn decisions_share_the_reward_of_their_round() {
        let expected = [(10.0, vec![], 3.0, 12.0), (11.0, vec![], 3.0, 12.0), (12.0, vec![], 4.0, 13.0)];
        assert_eq!(recorded(Baseline::Decision, Credit::Round), expected);
    }

    #[test]
    fn decisions_for_the_same_job_share_what_it_gains_where_the_world_says_whose_it_is() {
        let mut recorder = SlotRecorder::new(Box::new(AsDrawn), 0.5, (Baseline::Decision, Credit::Job));
        // Decisions for jobs 7, 8 and 7 again, and the end of the slot, which belongs to no job.
        for (reward, owner, rounds) in
            [(1.0, Some(7), 0), (2.0, Some(8), 0), (4.0, Some(7), 0), (0.0, None, 1)]
        {
            recorder.before(&moment(&[0.0]));
            let transition = Transition { rounds, owner, ..Transition::new(reward, Status::Running) };
            recorder.after(0, &transition, None);
        }
        recorder.rest(&moment(&[1.0]));
        let rewards: Vec<f32> = recorder.take_samples().iter().map(|sample| sample.reward).collect();
        assert_eq!(rewards, [5.0, 2.0, 5.0, 0.0]);
        // Rewards of the next slot do not include those of the slot before.
        recorder.before(&moment(&[1.0]));
        recorder.after(0, &Transition { owner: Some(7), ..Transition::new(3.0, Status::Running) }, None);
        recorder.rest(&moment(&[2.0]));
        assert_eq!(recorder.take_samples()[0].reward, 3.0);
    }

    #[test]
    fn what_was_seen_first_in_a_round_is_kept_with_all_of_it_where_the_critic_judges_from_that() {
        let found = recorded(Baseline::Round, Credit::Decision);
        let expected =
            [(10.0, vec![10.0], 1.0, 12.0), (11.0, vec![10.0], 2.0, 12.0), (12.0, vec![12.0], 4.0, 13.0)];
        assert_eq!(found, expected);
    }
}
