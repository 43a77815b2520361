//! Evolution strategies (Salimans et al., 2017): weights move towards the disturbed copies that did better. Evolution strategies
//! need no gradients, and work with episodes of any kind.
//!
//! An update draws pairs of disturbances ±σε and plays the same episodes with each. Returns become ranks from −½ to
//! ½, and the n disturbed weights θ of the actors move by rate · Σ (u₊ − u₋) ε / ‖Σ (u₊ − u₋) ε‖ · √n σ: at rate 1 a
//! step is as long as one disturbance, whatever the scale of the returns.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::learner::{Learner, Progress, Saved};
use super::model::Model;
use super::schedule::{self, Schedule};
use super::{TrainingError, within};
use crate::actor::Actor;
use crate::tensors::Tensors;
use crate::vectorized::Finished;
use apportion::workload::random::{SeedStreams, Stream};

/// Options of evolution strategies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EvolutionOptions {
    /// Pairs of disturbances per update.
    pub pairs: usize,
    /// Episodes that each disturbed copy is judged by.
    pub episodes: usize,
    /// Standard deviation of a disturbance of a weight, σ.
    pub deviation: f64,
    /// The length of a step, in disturbances.
    pub learning_rate: Schedule,
    /// Prefixes of the names of tensors that are disturbed, such as `actor.score.1`; by default, all tensors of actors are. After a
    /// warm-up it may be enough to disturb the last layers.
    // An empty list is not written, because files that are older than this option lack it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
}

impl Default for EvolutionOptions {
    fn default() -> Self {
        Self {
            pairs: 8,
            episodes: 2,
            deviation: 0.1,
            learning_rate: Schedule::Constant(1.0),
            only: Vec::new(),
        }
    }
}

/// Prefix of the names of the actors' tensors. No critic judges here, so its tensors are not disturbed.
const ACTORS: &str = "actor.";

/// The most episodes of each sign in an update.
const PLAYED_MAX: usize = 1_000_000;

impl EvolutionOptions {
    /// Checks the options.
    ///
    /// # Errors
    /// If an option is out of its range.
    pub fn check(&self) -> Result<(), TrainingError> {
        let positive = "a whole number above 0";
        within(self.pairs > 0, "pairs", self.pairs, positive)?;
        within(self.episodes > 0, "episodes", self.episodes, positive)?;
        let played = self.pairs.saturating_mul(self.episodes);
        let value = format!("{} where `episodes` is {}", self.pairs, self.episodes);
        within(
            played <= PLAYED_MAX,
            "pairs",
            value,
            "at most 1000000 episodes of each sign before an update",
        )?;
        let deviation = self.deviation;
        let fine = deviation > 0.0 && schedule::is_fine(deviation);
        within(fine, "deviation", deviation, "a number above 0, at most 1000000")?;
        within(self.learning_rate.is_fine(), "learning_rate", self.learning_rate, schedule::RANGE)
    }
}

/// A function that plays the episodes of some seeds with an actor.
pub type Play = Arc<dyn Fn(Arc<dyn Actor>, &[u64]) -> Result<Vec<Finished>, TrainingError> + Send + Sync>;

/// A training by evolution strategies, in which each episode counts as one decision.
pub struct Evolution {
    options: EvolutionOptions,
    budget: u64,
    model: Box<dyn Model>,
    play: Play,
    noise: Stream,
    seeds: Stream,
    n_updates: u64,
    n_decisions: u64,
}

impl std::fmt::Debug for Evolution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { options, model, n_updates, n_decisions, .. } = self;
        let mut shown = f.debug_struct("Evolution");
        shown.field("options", options).field("model", model).field("n_updates", n_updates);
        shown.field("n_decisions", n_decisions).finish_non_exhaustive()
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EvolutionState {
    noise: Stream,
    seeds: Stream,
    n_updates: u64,
    n_decisions: u64,
}

impl Evolution {
    /// A training of `model`, with `play` to play episodes.
    ///
    /// # Errors
    /// If an option is out of its range.
    pub fn new(
        model: Box<dyn Model>,
        play: Play,
        options: EvolutionOptions,
        budget: u64,
        streams: SeedStreams,
    ) -> Result<Self, TrainingError> {
        options.check()?;
        let moved = |name: &str, part: &str| name.starts_with(ACTORS) && name.starts_with(part);
        let named = |part: &String| model.parameters().iter().any(|(name, _)| moved(name, part));
        let lost = options.only.iter().find(|part| !named(part));
        let value = lost.cloned().unwrap_or_default();
        within(lost.is_none(), "only", value, "beginnings of names of the actors' tensors")?;
        let (noise, seeds) = (streams.stream("disturbances"), streams.stream("episodes"));
        Ok(Self { options, budget, model, play, noise, seeds, n_updates: 0, n_decisions: 0 })
    }

    /// Sets the model's weights to `from`, with the disturbed ones moved by `by` times the direction.
    fn moved(&self, from: &Tensors, direction: &[f64], by: f64) -> Result<(), TrainingError> {
        let mut moved = Tensors::default();
        let mut along = direction.iter();
        for (name, shape, numbers) in from.iter() {
            let numbers = if self.moves(name) {
                let steps = along.by_ref().take(numbers.len());
                numbers.iter().zip(steps).map(|(number, step)| number + (by * step) as f32).collect()
            } else {
                numbers.to_vec()
            };
            moved.insert(name, shape.to_vec(), numbers)?;
        }
        self.model.parameters().set(&moved)
    }

    fn moves(&self, name: &str) -> bool {
        let only = &self.options.only;
        name.starts_with(ACTORS)
            && (only.is_empty() || only.iter().any(|part| name.starts_with(part.as_str())))
    }

    fn judge(&self, seeds: &[u64]) -> Result<(f64, Vec<Finished>), TrainingError> {
        let played = (self.play)(self.model.actor()?.into(), seeds)?;
        let sum: f64 = played.iter().map(|episode| episode.total_reward).sum();
        Ok((sum / played.len().max(1) as f64, played))
    }
}

/// Ranks of returns, from −½ to ½; equal returns share their mean rank.
fn ranks(returns: &[f64]) -> Vec<f64> {
    let others = (returns.len().max(2) - 1) as f64;
    let rank = |ranked: &f64| {
        let below = returns.iter().filter(|other| other.total_cmp(ranked).is_lt()).count();
        let equal = returns.iter().filter(|other| other.total_cmp(ranked).is_eq()).count();
        (below as f64 + (equal as f64 - 1.0) / 2.0) / others - 0.5
    };
    returns.iter().map(rank).collect()
}

impl Learner for Evolution {
    fn update(&mut self) -> Result<Progress, TrainingError> {
        let present = self.model.parameters().to_tensors()?;
        let n: usize =
            present.iter().filter(|(name, ..)| self.moves(name)).map(|(_, _, numbers)| numbers.len()).sum();
        let seeds: Vec<u64> = (0..self.options.episodes).map(|_| self.seeds.next_u64()).collect();
        let (mut returns, mut finished, mut disturbances) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..self.options.pairs {
            let disturbance: Vec<f64> = (0..n).map(|_| self.noise.normal(0.0, 1.0)).collect();
            for sign in [1.0, -1.0] {
                self.moved(&present, &disturbance, sign * self.options.deviation)?;
                let (mean, played) = self.judge(&seeds)?;
                returns.push(mean);
                finished.extend(played);
            }
            disturbances.push(disturbance);
        }
        let ranks = ranks(&returns);
        let mut direction = vec![0.0; n];
        for (disturbance, pair) in disturbances.iter().zip(ranks.chunks_exact(2)) {
            for (sum, number) in direction.iter_mut().zip(disturbance) {
                *sum += (pair[0] - pair[1]) * number;
            }
        }
        let norm = direction.iter().map(|number| number * number).sum::<f64>().sqrt();
        let share = self.n_decisions as f64 / self.budget.max(1) as f64;
        let length = self.options.learning_rate.at(share) * self.options.deviation * (n as f64).sqrt();
        self.moved(&present, &direction, if norm > 0.0 { length / norm } else { 0.0 })?;
        self.n_updates += 1;
        self.n_decisions += finished.len() as u64;
        let spread = returns.iter().copied().fold(f64::NEG_INFINITY, f64::max)
            - returns.iter().copied().fold(f64::INFINITY, f64::min);
        let (n_updates, n_decisions) = (self.n_updates, self.n_decisions);
        Ok(Progress { n_updates, n_decisions, finished, figures: vec![("spread", spread)] })
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
        let (noise, seeds) = (self.noise.clone(), self.seeds.clone());
        let (n_updates, n_decisions) = (self.n_updates, self.n_decisions);
        Saved::new(tensors, &EvolutionState { noise, seeds, n_updates, n_decisions })
    }

    fn restore(&mut self, saved: &Saved) -> Result<(), TrainingError> {
        let state: EvolutionState = saved.state()?;
        self.model.parameters().set(&saved.tensors.below("model."))?;
        (self.noise, self.seeds) = (state.noise, state.seeds);
        (self.n_updates, self.n_decisions) = (state.n_updates, state.n_decisions);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor::{Choice, Scratch};
    use crate::environment::{Space, Status};
    use crate::evaluation::evaluate;
    use crate::textbook::{Grid, Walls};
    use crate::training::model::{MlpModel, MlpOptions};

    fn finished(total_reward: f64) -> Finished {
        Finished { total_reward, n_steps: 1, status: Status::Terminated }
    }

    /// The training of a network of two inputs and two logits. The return is minus the squared distance of its logits at (1, 1)
    /// from (2, −1).
    fn plane() -> Evolution {
        plane_of(&[]).unwrap()
    }

    /// The training of [`plane`] with only these tensors disturbed, or all if none is named.
    fn plane_of(only: &[&str]) -> Result<Evolution, TrainingError> {
        let play: Play = Arc::new(|actor: Arc<dyn Actor>, seeds: &[u64]| {
            let mut logits = [0.0; 2];
            actor.logits(0, &[1.0, 1.0], &mut Scratch::default(), &mut logits).unwrap();
            let loss = f64::from((logits[0] - 2.0).powi(2) + (logits[1] + 1.0).powi(2));
            Ok(seeds.iter().map(|_| finished(-loss)).collect())
        });
        let layers = MlpOptions { hidden: vec![], ..MlpOptions::default() };
        let model = MlpModel::new(&[Space::uniform(2, (0.0, 1.0), 2)], 0, &layers, SeedStreams::new(1));
        let options = EvolutionOptions {
            learning_rate: Schedule::Constant(0.5),
            only: only.iter().map(|part| (*part).to_owned()).collect(),
            ..EvolutionOptions::default()
        };
        Evolution::new(Box::new(model?), play, options, 1000, SeedStreams::new(2))
    }

    fn mean(progress: &Progress) -> f64 {
        progress.finished.iter().map(|one| one.total_reward).sum::<f64>() / progress.finished.len() as f64
    }

    #[test]
    fn it_climbs_to_the_top_of_a_hill() {
        let mut evolution = plane();
        let first = mean(&evolution.update().unwrap());
        let last = (0..60).map(|_| mean(&evolution.update().unwrap())).last().unwrap();
        assert!(first < -4.0 && last > -0.1, "{first} {last}");
    }

    /// Moving the biases alone reaches the optimum, too, because the return depends only on logits.
    #[test]
    fn only_what_is_named_is_moved() {
        let mut evolution = plane_of(&["actor.0.0.bias"]).unwrap();
        let weights = |evolution: &Evolution| evolution.model().parameters().to_tensors().unwrap();
        let before = weights(&evolution);
        let last = (0..60).map(|_| mean(&evolution.update().unwrap())).last().unwrap();
        assert!(last > -0.1, "{last}");
        let changed = |name: &str| before.get(name).unwrap() != weights(&evolution).get(name).unwrap();
        assert!(changed("actor.0.0.bias") && !changed("actor.0.0.weight"));
        for other in ["actor.0.bias", "critic"] {
            let error = plane_of(&[other]).unwrap_err().to_string();
            assert_eq!(
                error,
                format!("`only` is {other}, expected beginnings of names of the actors' tensors")
            );
        }
    }

    #[test]
    fn ranks_are_shared_by_equals() {
        assert_eq!(ranks(&[3.0, 1.0, 2.0]), [0.5, -0.5, 0.0]);
        assert_eq!(ranks(&[1.0, 1.0]), [0.0, 0.0]);
    }

    #[test]
    fn a_training_that_was_stopped_goes_on_bit_for_bit() {
        let mut whole = plane();
        (0..3).for_each(|_| drop(whole.update().unwrap()));
        let mut resumed = plane();
        resumed.restore(&whole.save().unwrap()).unwrap();
        for _ in 0..3 {
            assert_eq!(mean(&whole.update().unwrap()), mean(&resumed.update().unwrap()));
        }
        let weights = |evolution: &Evolution| evolution.model().parameters().to_tensors().unwrap();
        assert_eq!(weights(&whole), weights(&resumed));
    }

    #[test]
    fn it_learns_in_an_environment_as_well() {
        let grid = || Grid::new((3, 3), Walls::Masked, 20);
        let play: Play = Arc::new(move |actor: Arc<dyn Actor>, seeds: &[u64]| {
            Ok(evaluate(grid, &*actor, Choice::MostProbable, seeds).unwrap())
        });
        let spaces = crate::environment::Environment::spaces(&grid()).to_vec();
        let layers = MlpOptions { hidden: vec![8], initial_deviation: Some(0.3), ..MlpOptions::default() };
        let model = MlpModel::new(&spaces, 0, &layers, SeedStreams::new(1)).unwrap();
        let options = EvolutionOptions { pairs: 10, episodes: 8, ..EvolutionOptions::default() };
        let options = EvolutionOptions { deviation: 0.3, ..options };
        let mut evolution =
            Evolution::new(Box::new(model), play, options, 10_000, SeedStreams::new(5)).unwrap();
        let first = mean(&evolution.update().unwrap());
        let last = (0..20).map(|_| mean(&evolution.update().unwrap())).last().unwrap();
        assert!(last > first, "{first} {last}");
    }
}
