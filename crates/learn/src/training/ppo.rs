//! Proximal policy optimization (Schulman et al., 2017), for one agent or a team with one critic (Yu et al., 2022).
//!
//! The defaults are those of stable-baselines3, with which DeepShare trains. Each update collects steps in each copy
//! of the environment by the present actors, then goes over them several times in minibatches, down the gradient of
//! −min(ρA, clip(ρ, 1 ± ε)A) + c_v (V − return)² − c_e H, where ρ is the action's probability over its probability
//! when it was taken, and A its advantage.

use candle_core::{Device, Tensor};
use serde::{Deserialize, Serialize};

use super::adam::{Adam, AdamOptions};
use super::baseline::subtract_common;
use super::distribution::{entropy, log_probabilities, of_actions, penalty};
use super::learner::{Learner, Progress, Saved};
use super::model::Model;
use super::rollout::{DiscountUnit, GaeWeights, Rollout};
use super::schedule::{self, Schedule, is_fine};
use super::{TrainingError, within};
use crate::environment::Environment;
use crate::tensors::Tensors;
use crate::vectorized::{LaneState, Length, Vectorized};
use apportion::workload::random::{SeedStreams, Stream};

/// Options of proximal policy optimization.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PpoOptions {
    /// Copies of the environment.
    pub n_environments: usize,
    /// Number of successive copies that play the same episodes. The mean gain of the other copies of a group at the same time is
    /// subtracted from a copy's advantages, because it is not due to actions. More than one needs `n_episodes`.
    pub group: usize,
    /// Steps in each copy per update.
    pub n_steps: usize,
    /// Whole episodes in each copy per update, in place of `n_steps`.
    pub n_episodes: Option<usize>,
    /// The number of times that an update goes over the steps.
    pub n_epochs: usize,
    /// Decisions in a minibatch; the last of an epoch may have fewer.
    pub minibatch: usize,
    /// Adam's rate.
    pub learning_rate: Schedule,
    /// Discount of later rewards, γ.
    pub discount: f64,
    /// The unit of time that `discount` is per.
    pub discount_unit: DiscountUnit,
    /// The λ of generalized advantage estimation.
    pub smoothing: f64,
    /// The distance from 1 up to which a ratio of probabilities is followed, ε.
    pub clip: f64,
    /// Weight of the critic's error, c_v.
    pub value_weight: f64,
    /// Weight of the entropy, c_e.
    pub entropy_weight: Schedule,
    /// Largest norm of a gradient.
    pub gradient_norm_max: f64,
    /// The number of first updates in which only the critic learns, so that warmed-up actors are not moved by an untrained critic.
    pub critic_first: u64,
    /// Mean divergence from the actors that took the decisions, in nats, above which an update stops going over them.
    pub divergence_max: Option<f64>,
    /// Whether the advantages of each minibatch are shifted and scaled to mean 0 and deviation 1.
    pub normalize_advantages: bool,
}

impl Default for PpoOptions {
    fn default() -> Self {
        Self {
            n_environments: 1,
            group: 1,
            n_steps: 2048,
            n_episodes: None,
            n_epochs: 10,
            minibatch: 64,
            learning_rate: Schedule::Constant(3e-4),
            discount: 0.99,
            discount_unit: DiscountUnit::Step,
            smoothing: 0.95,
            clip: 0.2,
            value_weight: 0.5,
            entropy_weight: Schedule::Constant(0.0),
            gradient_norm_max: 0.5,
            critic_first: 0,
            divergence_max: None,
            normalize_advantages: true,
        }
    }
}

/// The most copies of the environment, each of which has its own state.
pub(super) const ENVIRONMENTS_MAX: usize = 10_000;

/// The most decisions that are kept at once.
pub(super) const DECISIONS_MAX: usize = 10_000_000;

impl PpoOptions {
    /// Checks the options.
    ///
    /// # Errors
    /// If an option is out of its range.
    pub fn check(&self) -> Result<(), TrainingError> {
        let positive = "a whole number above 0";
        within(self.n_environments > 0, "n_environments", self.n_environments, positive)?;
        within(self.n_steps > 0, "n_steps", self.n_steps, positive)?;
        let (n, most) = (self.n_environments, "at most 10000");
        within(n <= ENVIRONMENTS_MAX, "n_environments", n, most)?;
        let decisions = n.saturating_mul(self.n_steps);
        let value = format!("{} where `n_environments` is {n}", self.n_steps);
        within(decisions <= DECISIONS_MAX, "n_steps", value, "at most 10000000 decisions before an update")?;
        let episodes = self.n_episodes.unwrap_or(1);
        within(episodes <= ENVIRONMENTS_MAX, "n_episodes", episodes, most)?;
        within(self.n_episodes != Some(0), "n_episodes", 0, positive)?;
        let divides = self.group > 0 && self.n_environments.is_multiple_of(self.group);
        within(divides, "group", self.group, "a number that divides `n_environments`")?;
        let whole = self.group == 1 || self.n_episodes.is_some();
        within(whole, "group", self.group, "1 unless `n_episodes` is given")?;
        within(self.n_epochs > 0, "n_epochs", self.n_epochs, positive)?;
        within(self.minibatch > 0, "minibatch", self.minibatch, positive)?;
        let share = |value: f64| (0.0..=1.0).contains(&value);
        within(share(self.discount), "discount", self.discount, "a number from 0 to 1")?;
        within(share(self.smoothing), "smoothing", self.smoothing, "a number from 0 to 1")?;
        let expected = schedule::RANGE;
        within(is_fine(self.clip), "clip", self.clip, expected)?;
        within(is_fine(self.value_weight), "value_weight", self.value_weight, expected)?;
        within(
            self.gradient_norm_max > 0.0,
            "gradient_norm_max",
            self.gradient_norm_max,
            "a number above 0",
        )?;
        let fine = self.divergence_max.is_none_or(|most| most.is_finite() && most > 0.0);
        let most = self.divergence_max.unwrap_or_default();
        within(fine, "divergence_max", most, "a finite number above 0")?;
        within(self.learning_rate.is_fine(), "learning_rate", self.learning_rate, expected)?;
        within(self.entropy_weight.is_fine(), "entropy_weight", self.entropy_weight, expected)
    }
}

/// Adam's ε of this algorithm in stable-baselines3.
const ADAM_EPSILON: f64 = 1e-5;

/// A training by proximal policy optimization.
#[derive(Debug)]
pub struct Ppo<E> {
    options: PpoOptions,
    /// The number of decisions after which schedules are at their end.
    budget: u64,
    environments: Vectorized<E>,
    rollouts: Vec<Rollout>,
    model: Box<dyn Model>,
    adam: Adam,
    orders: Stream,
    n_updates: u64,
    n_decisions: u64,
}

/// The state of the learner beside its arrays, for a checkpoint.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PpoState {
    environments: Vec<LaneState>,
    orders: Stream,
    n_updates: u64,
    n_decisions: u64,
    n_adam_steps: u64,
}

/// A decision to learn from, with its advantage and its return as the critic's target.
#[derive(Clone, Copy)]
struct Sample {
    lane: usize,
    decision: usize,
    advantage: f32,
    target: f32,
}

/// Sums of figures over an update's minibatches.
#[derive(Default)]
struct Sums {
    policy_loss: f64,
    value_loss: f64,
    entropy: f64,
    clipped: f64,
    n: f64,
    /// Σ (ρ − 1 − ln ρ) over the decisions of an epoch, and the number of these decisions.
    divergence: (f64, f64),
}

impl<E: Environment> Ppo<E> {
    /// A training of `model` in environments that `make` makes, with all random numbers from `streams`.
    ///
    /// # Errors
    /// If an option is out of its range.
    pub fn new(
        make: impl Fn(usize) -> E,
        model: impl FnOnce(&Vectorized<E>) -> Result<Box<dyn Model>, TrainingError>,
        options: PpoOptions,
        budget: u64,
        streams: SeedStreams,
    ) -> Result<Self, TrainingError> {
        options.check()?;
        let environments = Vectorized::grouped(make, options.n_environments, options.group, streams);
        let model = model(&environments)?;
        let adam_options = AdamOptions {
            epsilon: ADAM_EPSILON,
            gradient_norm_max: Some(options.gradient_norm_max),
            ..AdamOptions::default()
        };
        let adam = Adam::new(model.parameters(), adam_options);
        let rollout = Rollout::new(environments.spaces(), environments.state_length());
        Ok(Self {
            rollouts: vec![rollout; options.n_environments],
            orders: streams.stream("order of minibatches"),
            options,
            budget,
            environments,
            model,
            adam,
            n_updates: 0,
            n_decisions: 0,
        })
    }

    /// Every decision of the rollouts with its advantage and return, in order of copy and time.
    fn samples(&self) -> Result<Vec<Sample>, TrainingError> {
        let weights = GaeWeights {
            discount: self.options.discount as f32,
            unit: self.options.discount_unit,
            smoothing: self.options.smoothing as f32,
        };
        let (mut advantages, mut targets) = (Vec::new(), Vec::new());
        for rollout in &self.rollouts {
            let values = self.model.values(&rollout.states.tensor()?)?.to_vec1::<f32>()?;
            let end_values = self.model.values(&rollout.ends.tensor()?)?.to_vec1::<f32>()?;
            let of_lane = rollout.advantages(&values, &end_values, &weights);
            let (estimated, target): (Vec<f32>, Vec<f32>) = of_lane.into_iter().unzip();
            advantages.push(estimated);
            targets.push(target);
        }
        let group = self.options.group;
        for (rollouts, advantages) in self.rollouts.chunks(group).zip(advantages.chunks_mut(group)) {
            subtract_common(rollouts, advantages);
        }
        let mut samples = Vec::new();
        for (lane, (advantages, targets)) in advantages.into_iter().zip(targets).enumerate() {
            let both = advantages.into_iter().zip(targets).enumerate();
            let sample = |(decision, (advantage, target))| Sample { lane, decision, advantage, target };
            samples.extend(both.map(sample));
        }
        Ok(samples)
    }

    fn learn(&mut self, batch: &[Sample], sums: &mut Sums) -> Result<(), TrainingError> {
        let share = self.n_decisions as f64 / self.budget.max(1) as f64;
        let entropy_weight = self.options.entropy_weight.at(share);
        let n = batch.len() as f64;
        let (shift, scale) =
            if self.options.normalize_advantages { normalization(batch) } else { (0.0, 1.0) };
        let mut loss = self.value_loss(batch)?;
        sums.value_loss += f64::from(loss.to_scalar::<f32>()?);
        loss = (loss * self.options.value_weight)?;
        let acts = self.n_updates >= self.options.critic_first;
        for agent in (0..self.environments.spaces().len()).filter(|_| acts) {
            let of_agent = |sample: &&Sample| self.decision(sample).agent == agent;
            let group: Vec<Sample> = batch.iter().filter(of_agent).copied().collect();
            if group.is_empty() {
                continue;
            }
            let logs = self.log_probabilities(agent, &group)?;
            let advantages = group.iter().map(|sample| (sample.advantage - shift) * scale).collect();
            let policy_loss = (self.surrogate(&logs, &group, advantages, sums)? / n)?;
            sums.policy_loss += f64::from(policy_loss.to_scalar::<f32>()?);
            let entropies = (entropy(&logs)?.sum_all()? / n)?;
            sums.entropy += f64::from(entropies.to_scalar::<f32>()?);
            loss = (loss + policy_loss)?;
            if entropy_weight > 0.0 {
                loss = (loss - (entropies * entropy_weight)?)?;
            }
        }
        sums.n += 1.0;
        let rate = self.options.learning_rate.at(share);
        self.adam.step(self.model.parameters(), &loss.backward()?, rate)?;
        Ok(())
    }

    fn decision(&self, sample: &Sample) -> &super::rollout::Decision {
        &self.rollouts[sample.lane].decisions[sample.decision]
    }

    fn value_loss(&self, batch: &[Sample]) -> Result<Tensor, TrainingError> {
        let length = self.rollouts[0].states.length;
        let row = |sample: &Sample| self.rollouts[sample.lane].states.row(sample.decision).iter().copied();
        let states: Vec<f32> = batch.iter().flat_map(row).collect();
        let states = Tensor::from_vec(states, (batch.len(), length), &Device::Cpu)?;
        let targets: Vec<f32> = batch.iter().map(|sample| sample.target).collect();
        let targets = Tensor::from_vec(targets, batch.len(), &Device::Cpu)?;
        Ok((self.model.values(&states)? - targets)?.sqr()?.mean_all()?)
    }

    /// Log probabilities of one agent's decisions: [decisions × actions].
    fn log_probabilities(&self, agent: usize, group: &[Sample]) -> Result<Tensor, TrainingError> {
        let space = &self.environments.spaces()[agent];
        let mut seen = Vec::with_capacity(group.len() * space.observation_length());
        let mut mask = Vec::with_capacity(group.len() * space.n_actions);
        for sample in group {
            let (rollout, row) = (&self.rollouts[sample.lane], self.decision(sample).row);
            seen.extend_from_slice(rollout.observations[agent].row(row));
            mask.extend_from_slice(rollout.masks[agent].row(row));
        }
        let seen = Tensor::from_vec(seen, (group.len(), space.observation_length()), &Device::Cpu)?;
        let logits = self.model.logits(agent, &seen)?;
        Ok(log_probabilities(&logits, &penalty(&mask, space.n_actions)?)?)
    }

    /// The surrogate loss of a group of decisions, −Σ min(ρA, clip(ρ)A).
    fn surrogate(
        &self,
        logs: &Tensor,
        group: &[Sample],
        advantages: Vec<f32>,
        sums: &mut Sums,
    ) -> Result<Tensor, TrainingError> {
        let actions: Vec<usize> = group.iter().map(|sample| self.decision(sample).action).collect();
        let before: Vec<f32> = group.iter().map(|sample| self.decision(sample).log_probability).collect();
        let before = Tensor::from_vec(before, group.len(), &Device::Cpu)?;
        let advantages = Tensor::from_vec(advantages, group.len(), &Device::Cpu)?;
        let ratio = (of_actions(logs, &actions)? - before)?.exp()?;
        let clip = self.options.clip;
        let outside = |ratio: &f32| (f64::from(*ratio) - 1.0).abs() > clip;
        let ratios = ratio.to_vec1::<f32>()?;
        sums.clipped += ratios.iter().filter(|ratio| outside(ratio)).count() as f64 / group.len() as f64;
        let apart = |ratio: &f32| f64::from(*ratio) - 1.0 - f64::from(*ratio).ln();
        sums.divergence.0 += ratios.iter().map(apart).sum::<f64>();
        sums.divergence.1 += group.len() as f64;
        let clipped = ratio.clamp((1.0 - clip) as f32, (1.0 + clip) as f32)?;
        let followed = (ratio * &advantages)?.minimum(&(clipped * &advantages)?)?;
        Ok(followed.sum_all()?.neg()?)
    }
}

impl Sums {
    fn mean_divergence(&self) -> f64 {
        let (sum, n) = self.divergence;
        sum / n.max(1.0)
    }
}

/// (the shift that is subtracted from advantages, the factor that they are then multiplied by).
fn normalization(batch: &[Sample]) -> (f32, f32) {
    if batch.len() < 2 {
        return (0.0, 1.0);
    }
    let n = batch.len() as f64;
    let mean = batch.iter().map(|sample| f64::from(sample.advantage)).sum::<f64>() / n;
    let squares = batch.iter().map(|sample| (f64::from(sample.advantage) - mean).powi(2)).sum::<f64>();
    (mean as f32, (1.0 / ((squares / (n - 1.0)).sqrt() + 1e-8)) as f32)
}

impl<E: Environment> Learner for Ppo<E> {
    fn update(&mut self) -> Result<Progress, TrainingError> {
        self.rollouts.iter_mut().for_each(Rollout::clear);
        self.environments.set_progress(self.n_decisions as f64 / self.budget.max(1) as f64);
        let actor = self.model.actor()?;
        let length = self.options.n_episodes.map_or(Length::Steps(self.options.n_steps), Length::Episodes);
        let finished = self.environments.collect(&*actor, length, &mut self.rollouts)?;
        let mut samples = self.samples()?;
        let mut sums = Sums::default();
        for _ in 0..self.options.n_epochs {
            self.orders.shuffle(&mut samples);
            sums.divergence = (0.0, 0.0);
            for batch in samples.chunks(self.options.minibatch) {
                self.learn(batch, &mut sums)?;
            }
            if self.options.divergence_max.is_some_and(|most| sums.mean_divergence() > most) {
                break;
            }
        }
        self.n_updates += 1;
        self.n_decisions += samples.len() as u64;
        let figures = vec![
            ("policy_loss", sums.policy_loss / sums.n),
            ("value_loss", sums.value_loss / sums.n),
            ("entropy", sums.entropy / sums.n),
            ("clipped", sums.clipped / sums.n),
            ("divergence", sums.mean_divergence()),
        ];
        Ok(Progress { n_updates: self.n_updates, n_decisions: self.n_decisions, finished, figures })
    }

    fn model(&self) -> &dyn Model {
        &*self.model
    }

    fn n_updates(&self) -> u64 {
        self.n_updates
    }

    fn n_decisions(&self) -> u64 {
        self.n_decisions
    }

    fn save(&self) -> Result<Saved, TrainingError> {
        let mut tensors = Tensors::default();
        tensors.extend("model.", &self.model.parameters().to_tensors()?);
        tensors.extend("adam.", &self.adam.to_tensors(self.model.parameters())?);
        let state = PpoState {
            environments: self.environments.state(),
            orders: self.orders.clone(),
            n_updates: self.n_updates,
            n_decisions: self.n_decisions,
            n_adam_steps: self.adam.n_steps(),
        };
        Saved::new(tensors, &state)
    }

    fn restore(&mut self, saved: &Saved) -> Result<(), TrainingError> {
        let state: PpoState = saved.state()?;
        self.model.parameters().set(&saved.tensors.below("model."))?;
        self.adam.restore(self.model.parameters(), &saved.tensors.below("adam."), state.n_adam_steps)?;
        self.environments.restore(&state.environments)?;
        self.orders = state.orders;
        self.n_updates = state.n_updates;
        self.n_decisions = state.n_decisions;
        Ok(())
    }
}

#[cfg(test)]
#[path = "ppo_tests.rs"]
mod tests;
