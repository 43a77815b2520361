//! Actor-critic learning from replayed samples, as in DL2's released trainer (Peng et al., 2021).
//!
//! As published, all decisions of a round share the reward of that round; options name other rewards. A sample has the
//! observation, the action, and the probabilities at that time. After each round one batch is drawn from the latest
//! samples, by priority unless an option says otherwise. The actor goes down the gradient A(p − a) of the logits,
//! without a ratio of probabilities; the critic goes towards the reward or, with a discount, towards the return.

use candle_core::{Device, Tensor};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::adam::{Adam, AdamOptions};
use super::distribution::{log_probabilities, penalty};
use super::exploration::Exploration;
use super::learner::{Learner, Progress, Saved};
use super::model::Model;
use super::ppo::{DECISIONS_MAX, ENVIRONMENTS_MAX};
use super::replay::{Drawn, PriorityOptions, Replay, ReplayState};
pub use super::sample::{Baseline, Credit};
use super::sample::{Sample, SlotRecorder, samples_from, samples_to};
use super::schedule::{self, Schedule};
use super::{TrainingError, within};
use crate::environment::Environment;
use crate::tensors::Tensors;
use crate::vectorized::{LaneState, Length, Vectorized};
use apportion::workload::random::{SeedStreams, Stream};

/// The probabilities at which the gradient is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GradientAt {
    /// The probabilities at the time of the decision, as in DL2's released trainer.
    #[default]
    Released,
    /// The probabilities by the present weights.
    Recomputed,
}

/// Options of actor-critic learning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ActorCriticOptions {
    /// Copies of the environment, each of which plays a round per update.
    pub n_environments: usize,
    /// Samples in a batch.
    pub batch: usize,
    /// The number of latest samples that are kept; nothing is learned before there are this many.
    pub replay: usize,
    /// Whether a batch is all decisions of the latest round, whatever `batch` says, as in DL2's ablation of replay.
    #[serde(skip_serializing_if = "is_default")]
    pub latest_round: bool,
    /// Adam's rate for actor and critic.
    pub learning_rate: Schedule,
    /// Weight of the entropy, which is a mean over the batch, divided by the number of actions.
    pub entropy_weight: Schedule,
    /// The probabilities at which the gradient is taken.
    pub gradient: GradientAt,
    /// Discount of later rewards, γ, per round: a decision is judged by its reward and the critic's discounted value of the
    /// observation after its round. Without one, by its reward alone, as in DL2's released trainer.
    pub discount: Option<f64>,
    /// Adam's rate for the critic, if it differs from the actor's.
    #[serde(skip_serializing_if = "is_default")]
    pub critic_learning_rate: Option<Schedule>,
    /// The observation that the critic judges a decision from.
    #[serde(skip_serializing_if = "is_default")]
    pub baseline: Baseline,
    /// The reward that a decision is judged by.
    #[serde(skip_serializing_if = "is_default")]
    pub credit: Credit,
    /// Whether the advantages of a batch are shifted and scaled to mean 0 and deviation 1, so that the length of a step does not
    /// depend on the unit of rewards. DL2's released trainer does not.
    #[serde(skip_serializing_if = "is_default")]
    pub normalize_advantages: bool,
    /// Whether a critic gives the expected reward; otherwise it is the mean reward of the samples that are kept.
    pub critic: bool,
    /// Options of priorities, by which samples are drawn; null for a uniform draw.
    pub priorities: Option<PriorityOptions>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Default for ActorCriticOptions {
    fn default() -> Self {
        Self {
            n_environments: 1,
            batch: 256,
            replay: 8192,
            latest_round: false,
            learning_rate: Schedule::Constant(1e-4),
            entropy_weight: Schedule::Constant(0.1),
            gradient: GradientAt::Released,
            discount: None,
            critic_learning_rate: None,
            baseline: Baseline::default(),
            credit: Credit::default(),
            normalize_advantages: false,
            critic: true,
            priorities: Some(PriorityOptions::default()),
        }
    }
}

impl ActorCriticOptions {
    /// Checks the options.
    ///
    /// # Errors
    /// If an option is out of its range, or two contradict each other.
    pub fn check(&self) -> Result<(), TrainingError> {
        let positive = "a whole number above 0";
        within(self.n_environments > 0, "n_environments", self.n_environments, positive)?;
        within(self.batch > 0, "batch", self.batch, positive)?;
        let (n, kept) = (self.n_environments, self.replay);
        within(n <= ENVIRONMENTS_MAX, "n_environments", n, "at most 10000")?;
        within(kept <= DECISIONS_MAX, "replay", kept, "at most 10000000")?;
        within(self.replay >= self.batch, "replay", self.replay, "at least as many as in a batch")?;
        let expected = schedule::RANGE;
        within(self.learning_rate.is_fine(), "learning_rate", self.learning_rate, expected)?;
        let of_critic = self.critic_learning_rate.unwrap_or(self.learning_rate);
        within(of_critic.is_fine(), "critic_learning_rate", of_critic, expected)?;
        within(self.entropy_weight.is_fine(), "entropy_weight", self.entropy_weight, expected)?;
        if let Some(discount) = self.discount {
            within((0.0..=1.0).contains(&discount), "discount", discount, "a number from 0 to 1")?;
            within(self.critic, "discount", discount, "none where there is no critic to say what follows")?;
        }
        Ok(())
    }
}

/// A training by replay.
#[derive(Debug)]
pub struct ActorCritic<E> {
    options: ActorCriticOptions,
    budget: u64,
    environments: Vectorized<E>,
    recorders: Vec<SlotRecorder>,
    model: Box<dyn Model>,
    adam: Adam,
    replay: Replay<Sample>,
    draws: Stream,
    n_updates: u64,
    n_decisions: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ActorCriticState {
    environments: Vec<LaneState>,
    explorations: Vec<Value>,
    replay: ReplayState,
    draws: Stream,
    n_updates: u64,
    n_decisions: u64,
    n_adam_steps: u64,
}

impl<E: Environment> ActorCritic<E> {
    /// A training of `model` in environments that `make` makes, each with an exploration of its own.
    ///
    /// # Errors
    /// If an option is out of its range, or the environment has more than one agent.
    pub fn new(
        make: impl Fn(usize) -> E,
        (model, explore): (
            impl FnOnce(&Vectorized<E>) -> Result<Box<dyn Model>, TrainingError>,
            impl Fn(usize) -> Box<dyn Exploration>,
        ),
        options: ActorCriticOptions,
        budget: u64,
        streams: SeedStreams,
    ) -> Result<Self, TrainingError> {
        options.check()?;
        let environments = Vectorized::new(make, options.n_environments, streams);
        let n_agents = environments.spaces().len();
        within(n_agents == 1, "algorithm", "actor_critic", "one for teams: `ppo`")?;
        within(
            environments.state_length() == 0,
            "algorithm",
            "actor_critic",
            "one with a critic's state: `ppo`",
        )?;
        let model = model(&environments)?;
        let recorder = |lane| {
            SlotRecorder::new(
                explore(lane),
                options.discount.unwrap_or(0.0),
                (options.baseline, options.credit),
            )
        };
        Ok(Self {
            recorders: (0..options.n_environments).map(recorder).collect(),
            adam: Adam::new(model.parameters(), AdamOptions::default()),
            replay: Replay::new(options.replay, options.priorities.unwrap_or_default()),
            draws: streams.stream("draws from the replay"),
            options,
            budget,
            environments,
            model,
            n_updates: 0,
            n_decisions: 0,
        })
    }

    /// The mean reward of the samples in the replay.
    fn mean_reward(&self) -> f64 {
        let samples = self.replay.samples();
        samples.iter().map(|sample| f64::from(sample.reward)).sum::<f64>() / samples.len().max(1) as f64
    }

    /// Draws a batch from the replay, or takes all samples of the latest round, which are its latest `n_new`.
    fn draw(&mut self, n_new: usize) -> Drawn {
        if self.options.latest_round {
            self.replay.latest(n_new)
        } else if self.options.priorities.is_some() {
            self.replay.draw(self.options.batch, &mut self.draws)
        } else {
            self.replay.draw_uniformly(self.options.batch, &mut self.draws)
        }
    }

    fn learn(&mut self, drawn: &Drawn) -> Result<Vec<(&'static str, f64)>, TrainingError> {
        let share = self.n_decisions as f64 / self.budget.max(1) as f64;
        let expected_without_critic = self.mean_reward() as f32;
        let batch: Vec<&Sample> = drawn.places.iter().map(|place| &self.replay.samples()[*place]).collect();
        let seen = stacked(&batch, |sample| &sample.observation)?;
        let (advantages, value_loss) = if self.options.critic {
            let targets = self.targets(&batch)?;
            let values = match self.options.baseline {
                Baseline::Decision => self.model.values(&seen)?,
                Baseline::Round => self.model.values(&stacked(&batch, |sample| &sample.first)?)?,
            };
            let errors: Vec<f32> =
                values.to_vec1::<f32>()?.iter().zip(&targets).map(|(value, target)| target - value).collect();
            let targets = Tensor::from_vec(targets, batch.len(), &Device::Cpu)?;
            (errors, Some((values - targets)?.sqr()?.mean_all()?))
        } else {
            (batch.iter().map(|sample| sample.reward - expected_without_critic).collect(), None)
        };
        let advantages: Vec<f32> =
            advantages.iter().zip(&drawn.weights).map(|(error, weight)| error * weight).collect();
        let logits = self.model.logits(0, &seen)?;
        let probabilities = self.probabilities(&batch, &logits)?;
        let actions: Vec<usize> = batch.iter().map(|sample| sample.action).collect();
        let entropy_weight = self.options.entropy_weight.at(share);
        let (mean, deviation) =
            if self.options.normalize_advantages { normalization(&advantages) } else { (0.0, 1.0) };
        let counted: Vec<f32> = advantages.iter().map(|advantage| (advantage - mean) / deviation).collect();
        let (slopes, entropy) = slopes(&probabilities, &actions, &counted, entropy_weight);
        let slopes = Tensor::from_vec(slopes, logits.shape(), &Device::Cpu)?;
        // The gradient of this loss with respect to the logits is `slopes`.
        let mut loss = (logits * slopes)?.sum_all()?;
        let mut figures = vec![("entropy", entropy)];
        if let Some(value_loss) = value_loss {
            figures.push(("value_loss", f64::from(value_loss.to_scalar::<f32>()?)));
            loss = (loss + value_loss)?;
        }
        let rate = self.options.learning_rate.at(share);
        let of_critic = self.options.critic_learning_rate.map_or(rate, |critic| critic.at(share));
        let rate = |name: &str| if name.starts_with("critic.") { of_critic } else { rate };
        let norm = self.adam.step_by(self.model.parameters(), &loss.backward()?, rate)?;
        figures.push(("gradient_norm", norm));
        let errors = drawn.places.iter().copied().zip(advantages.iter().map(|error| f64::from(*error)));
        self.replay.learn_from(errors.collect::<Vec<_>>());
        Ok(figures)
    }

    /// The targets of the critic for a batch: rewards plus, with a discount, the discounted value of the next observation.
    fn targets(&self, batch: &[&Sample]) -> Result<Vec<f32>, TrainingError> {
        let rewards = batch.iter().map(|sample| sample.reward);
        if self.options.discount.is_none() {
            return Ok(rewards.collect());
        }
        let after = self.model.values(&stacked(batch, |sample| &sample.next)?)?.to_vec1::<f32>()?;
        Ok(batch.iter().zip(after).map(|(sample, value)| sample.reward + sample.discount * value).collect())
    }

    /// The probabilities at which the gradient is taken: [samples × actions].
    fn probabilities(&self, batch: &[&Sample], logits: &Tensor) -> Result<Vec<f32>, TrainingError> {
        Ok(match self.options.gradient {
            GradientAt::Released => {
                batch.iter().flat_map(|sample| sample.probabilities.iter().copied()).collect()
            }
            GradientAt::Recomputed => {
                let mask: Vec<bool> = batch.iter().flat_map(|sample| sample.mask.iter().copied()).collect();
                let penalty = penalty(&mask, mask.len() / batch.len())?;
                log_probabilities(&logits.detach(), &penalty)?.exp()?.flatten_all()?.to_vec1::<f32>()?
            }
        })
    }
}

/// A part of each sample as a tensor: [samples × length].
fn stacked(batch: &[&Sample], part: impl Fn(&Sample) -> &Vec<f32>) -> Result<Tensor, TrainingError> {
    let length = batch.first().map_or(0, |sample| part(sample).len());
    let numbers: Vec<f32> = batch.iter().flat_map(|sample| part(sample).iter().copied()).collect();
    Ok(Tensor::from_vec(numbers, (batch.len(), length), &Device::Cpu)?)
}

/// (mean, standard deviation + 1e-6), so that equal numbers can be divided by it, too.
fn normalization(numbers: &[f32]) -> (f32, f32) {
    let n = numbers.len().max(1) as f32;
    let mean = numbers.iter().sum::<f32>() / n;
    let variance = numbers.iter().map(|number| (number - mean).powi(2)).sum::<f32>() / n;
    (mean, variance.sqrt() + 1e-6)
}

/// The derivatives by the logits, [samples × actions], of −Σ A log p(a)/B − c ΣH/(BK) for B samples of K actions with entropy H,
/// and the mean of H. The derivatives are A(p − a)/B + c p(log p + H)/(BK).
fn slopes(
    probabilities: &[f32],
    actions: &[usize],
    advantages: &[f32],
    entropy_weight: f64,
) -> (Vec<f32>, f64) {
    let (n, n_actions) = (actions.len(), probabilities.len() / actions.len());
    let entropy_share = (entropy_weight / (n * n_actions) as f64) as f32;
    let (mut all, mut total) = (Vec::with_capacity(probabilities.len()), 0.0);
    for (row, (action, advantage)) in probabilities.chunks(n_actions).zip(actions.iter().zip(advantages)) {
        let log = |probability: f32| if probability > 0.0 { probability.ln() } else { 0.0 };
        let entropy: f32 = -row.iter().map(|probability| probability * log(*probability)).sum::<f32>();
        total += f64::from(entropy);
        all.extend(row.iter().enumerate().map(|(number, probability)| {
            let taken = if number == *action { 1.0 } else { 0.0 };
            advantage * (probability - taken) / n as f32
                + entropy_share * probability * (log(*probability) + entropy)
        }));
    }
    (all, total / n as f64)
}

impl<E: Environment> Learner for ActorCritic<E> {
    fn update(&mut self) -> Result<Progress, TrainingError> {
        let actor = self.model.actor()?;
        let finished = self.environments.collect(&*actor, Length::Rounds(1), &mut self.recorders)?;
        let mut n_new = 0;
        for lane in 0..self.recorders.len() {
            self.n_decisions += self.recorders[lane].take_decisions();
            for sample in self.recorders[lane].take_samples() {
                let better = f64::from(sample.reward) - self.mean_reward();
                self.replay.push(sample, better.max(1.0));
                n_new += 1;
            }
        }
        let drawn = if self.replay.is_full() { self.draw(n_new) } else { Drawn::default() };
        let figures = if drawn.places.is_empty() { Vec::new() } else { self.learn(&drawn)? };
        self.n_updates += 1;
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

    fn filling(&self) -> Option<(usize, usize)> {
        (!self.replay.is_full()).then(|| (self.replay.samples().len(), self.options.replay))
    }

    fn save(&self) -> Result<Saved, TrainingError> {
        let mut tensors = Tensors::default();
        tensors.extend("model.", &self.model.parameters().to_tensors()?);
        tensors.extend("adam.", &self.adam.to_tensors(self.model.parameters())?);
        tensors.extend("replay.", &samples_to(self.replay.samples())?);
        let state = ActorCriticState {
            environments: self.environments.state(),
            explorations: self.recorders.iter().map(SlotRecorder::exploration_state).collect(),
            replay: self.replay.state(),
            draws: self.draws.clone(),
            n_updates: self.n_updates,
            n_decisions: self.n_decisions,
            n_adam_steps: self.adam.n_steps(),
        };
        Saved::new(tensors, &state)
    }

    fn restore(&mut self, saved: &Saved) -> Result<(), TrainingError> {
        let state: ActorCriticState = saved.state()?;
        self.model.parameters().set(&saved.tensors.below("model."))?;
        self.adam.restore(self.model.parameters(), &saved.tensors.below("adam."), state.n_adam_steps)?;
        self.environments.restore(&state.environments)?;
        for (recorder, state) in self.recorders.iter_mut().zip(&state.explorations) {
            recorder.restore_exploration(state)?;
        }
        let samples = samples_from(&saved.tensors.below("replay."), &self.environments.spaces()[0])?;
        if !self.replay.restore(samples, &state.replay) {
            return Err(TrainingError::Checkpoint { reason: "its replay has another size".to_owned() });
        }
        self.draws = state.draws;
        self.n_updates = state.n_updates;
        self.n_decisions = state.n_decisions;
        Ok(())
    }
}

#[cfg(test)]
#[path = "actor_critic_tests.rs"]
mod tests;
