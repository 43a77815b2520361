//! Behaviour cloning: an actor learns to take a teacher's actions at the same observations.

use candle_core::{Device, Tensor};
use serde::{Deserialize, Serialize};

use super::adam::{Adam, AdamOptions};
use super::distribution::{log_probabilities, of_actions, penalty};
use super::learner::Saved;
use super::model::Model;
use super::schedule;
use super::{TrainingError, within};
use crate::tensors::Tensors;
use apportion::workload::random::{SeedStreams, Stream};

/// Options of an actor's learning in a warm-up. The defaults are DL2's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CloningOptions {
    /// Examples in a batch, which are drawn without replacement.
    pub batch: usize,
    /// The number of latest examples that are kept; nothing is learned before there are this many.
    pub capacity: usize,
    /// Adam's rate.
    pub learning_rate: f64,
}

impl Default for CloningOptions {
    fn default() -> Self {
        Self { batch: 256, capacity: 8192, learning_rate: 0.005 }
    }
}

/// A decision of a teacher: the observation, the allowed actions, and the action taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// The agent that decided.
    pub agent: usize,
    /// The agent's observation.
    pub observation: Vec<f32>,
    /// The mask of allowed actions.
    pub mask: Vec<bool>,
    /// The action that was taken, which is an allowed one.
    pub action: usize,
}

/// Behaviour cloning in progress.
#[derive(Debug)]
pub struct Cloning {
    options: CloningOptions,
    examples: Vec<Example>,
    next: usize,
    adam: Adam,
    draws: Stream,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CloningState {
    examples: Vec<Example>,
    next: usize,
    draws: Stream,
    n_adam_steps: u64,
}

impl Cloning {
    /// A warm-up of this model.
    ///
    /// # Errors
    /// If an option is out of its range.
    pub fn new(
        model: &dyn Model,
        options: CloningOptions,
        streams: SeedStreams,
    ) -> Result<Self, TrainingError> {
        within(options.batch > 0, "batch", options.batch, "a whole number above 0")?;
        within(
            options.capacity >= options.batch,
            "capacity",
            options.capacity,
            "at least as many as in a batch",
        )?;
        let rate = options.learning_rate;
        within(schedule::is_fine(rate), "learning_rate", rate, schedule::RANGE)?;
        let adam = Adam::new(model.parameters(), AdamOptions::default());
        Ok(Self {
            options,
            examples: Vec::new(),
            next: 0,
            adam,
            draws: streams.stream("draws from the examples"),
        })
    }

    /// Keeps an example, in place of the oldest if there is no room.
    pub fn push(&mut self, example: Example) {
        if self.examples.len() < self.options.capacity {
            self.examples.push(example);
        } else {
            self.examples[self.next] = example;
        }
        self.next = (self.next + 1) % self.options.capacity;
    }

    /// Takes a step down the cross-entropy of one batch, once there are enough examples. Returns the mean cross-entropy before the
    /// step, in nats.
    ///
    /// # Errors
    /// If the numbers are no longer finite.
    pub fn update(&mut self, model: &dyn Model) -> Result<Option<f64>, TrainingError> {
        if self.examples.len() < self.options.capacity {
            return Ok(None);
        }
        let mut places: Vec<usize> = (0..self.examples.len()).collect();
        for front in 0..self.options.batch {
            let other = front + self.draws.below(places.len() - front);
            places.swap(front, other);
        }
        let batch: Vec<&Example> =
            places[..self.options.batch].iter().map(|place| &self.examples[*place]).collect();
        let n_agents = batch.iter().map(|example| example.agent + 1).max().unwrap_or_default();
        let mut loss = Tensor::zeros((), candle_core::DType::F32, &Device::Cpu)?;
        for agent in 0..n_agents {
            let group: Vec<&Example> =
                batch.iter().filter(|example| example.agent == agent).copied().collect();
            if !group.is_empty() {
                loss = (loss + disagreement(model, agent, &group)?)?;
            }
        }
        let loss = (loss / batch.len() as f64)?;
        self.adam.step(model.parameters(), &loss.backward()?, self.options.learning_rate)?;
        Ok(Some(f64::from(loss.to_scalar::<f32>()?)))
    }

    /// The state, apart from the model, from which [`restore`](Self::restore) goes on.
    ///
    /// # Errors
    /// If the library fails.
    pub fn save(&self, model: &dyn Model) -> Result<Saved, TrainingError> {
        let mut tensors = Tensors::default();
        tensors.extend("adam.", &self.adam.to_tensors(model.parameters())?);
        let state = CloningState {
            examples: self.examples.clone(),
            next: self.next,
            draws: self.draws.clone(),
            n_adam_steps: self.adam.n_steps(),
        };
        Saved::new(tensors, &state)
    }

    /// Goes on where another warm-up was saved.
    ///
    /// # Errors
    /// If the state is of another model or other options.
    pub fn restore(&mut self, model: &dyn Model, saved: &Saved) -> Result<(), TrainingError> {
        let state: CloningState = saved.state()?;
        if state.examples.len() > self.options.capacity || state.next >= self.options.capacity {
            return Err(TrainingError::Checkpoint {
                reason: "it has more examples than are kept".to_owned(),
            });
        }
        self.adam.restore(model.parameters(), &saved.tensors.below("adam."), state.n_adam_steps)?;
        self.examples = state.examples;
        self.next = state.next;
        self.draws = state.draws;
        Ok(())
    }
}

/// The cross-entropy of one agent's examples, −Σ log p(action), in nats.
fn disagreement(model: &dyn Model, agent: usize, group: &[&Example]) -> Result<Tensor, TrainingError> {
    let length = group[0].observation.len();
    let seen: Vec<f32> = group.iter().flat_map(|example| example.observation.iter().copied()).collect();
    let seen = Tensor::from_vec(seen, (group.len(), length), &Device::Cpu)?;
    let mask: Vec<bool> = group.iter().flat_map(|example| example.mask.iter().copied()).collect();
    let logs = log_probabilities(&model.logits(agent, &seen)?, &penalty(&mask, group[0].mask.len())?)?;
    let actions: Vec<usize> = group.iter().map(|example| example.action).collect();
    Ok(of_actions(&logs, &actions)?.sum_all()?.neg()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor::{Scratch, masked_softmax, most_probable};
    use crate::environment::Space;
    use crate::training::model::{MlpModel, MlpOptions};

    const OPTIONS: CloningOptions = CloningOptions { batch: 32, capacity: 200, learning_rate: 0.01 };

    fn model() -> MlpModel {
        let spaces = [Space::uniform(3, (-1.0, 1.0), 3), Space::uniform(2, (-1.0, 1.0), 2)];
        let layers = MlpOptions { hidden: vec![16], ..MlpOptions::default() };
        MlpModel::new(&spaces, 4, &layers, SeedStreams::new(2)).unwrap()
    }

    /// Examples of two agents: the first agent's teacher takes the position of the largest allowed number, the second's that of the
    /// smallest.
    fn examples(n: usize, name: &str) -> Vec<Example> {
        let mut stream = SeedStreams::new(6).stream(name);
        let mut one = |agent: usize| {
            let seen: Vec<f32> = (0..3 - agent).map(|_| stream.uniform_in(-1.0, 1.0) as f32).collect();
            let mut mask = vec![true; seen.len()];
            mask[stream.below(3) % seen.len()] = agent == 1;
            let sign = if agent == 0 { 1.0 } else { -1.0 };
            let allowed = (0..seen.len()).filter(|place| mask[*place]);
            let action =
                allowed.max_by(|one, other| (sign * seen[*one]).total_cmp(&(sign * seen[*other]))).unwrap();
            Example { agent, observation: seen, mask, action }
        };
        (0..n).map(|number| one(number % 2)).collect()
    }

    #[test]
    fn the_teacher_is_followed_where_it_was_not_seen() {
        let model = model();
        let mut cloning = Cloning::new(&model, OPTIONS, SeedStreams::new(3)).unwrap();
        let mut losses = Vec::new();
        for example in examples(800, "training") {
            cloning.push(example);
            losses.extend(cloning.update(&model).unwrap());
        }
        assert_eq!(losses.len(), 601, "nothing is learned before there are enough");
        assert!(losses[600] < 0.5 * losses[0], "{} {}", losses[0], losses[600]);
        let actor = model.actor().unwrap();
        let unseen = examples(400, "test");
        let agrees = |example: &&Example| {
            let mut numbers = vec![0.0; example.mask.len()];
            actor.logits(example.agent, &example.observation, &mut Scratch::default(), &mut numbers).unwrap();
            masked_softmax(&mut numbers, &example.mask).unwrap();
            most_probable(&numbers) == example.action
        };
        let n_right = unseen.iter().filter(agrees).count();
        assert!(n_right > 360, "{n_right} of 400");
    }

    #[test]
    fn a_warm_up_that_was_stopped_goes_on_bit_for_bit() {
        let (one, other) = (model(), model());
        let begin = |model: &MlpModel| Cloning::new(model, OPTIONS, SeedStreams::new(3)).unwrap();
        let (mut whole, mut resumed) = (begin(&one), begin(&other));
        let all = examples(500, "training");
        for example in &all[..300] {
            whole.push(example.clone());
            whole.update(&one).unwrap();
        }
        other.parameters().set(&one.parameters().to_tensors().unwrap()).unwrap();
        resumed.restore(&other, &whole.save(&one).unwrap()).unwrap();
        for example in &all[300..] {
            whole.push(example.clone());
            resumed.push(example.clone());
            assert_eq!(whole.update(&one).unwrap(), resumed.update(&other).unwrap());
        }
        assert_eq!(one.parameters().to_tensors().unwrap(), other.parameters().to_tensors().unwrap());
    }
}
