//! A training in one document: what is learned, how, from which seeds, and how long.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::actor_critic::{ActorCritic, ActorCriticOptions};
use super::exploration::{AsDrawn, Exploration};
use super::learner::Learner;
use super::model::{MlpModel, MlpOptions, Model};
use super::ppo::{Ppo, PpoOptions};
use super::run::Budget;
use super::{TrainingError, within};
use crate::learning::actor::{Actor, Choice};
use crate::learning::checkpoint::{NetworkKind, Provenance};
use crate::learning::environment::Environment;
use crate::learning::evaluation::evaluate;
use crate::learning::system::System;
use crate::learning::vectorized::{LaneError, Vectorized};
use crate::workload::random::SeedStreams;

/// The format of such documents.
pub const FORMAT: &str = "apportion/training-v1";

/// A training, whole: with the data and the version of the program, the same document gives the same weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainingSpec {
    /// [`FORMAT`].
    pub format: String,
    /// What is learned: the name of a [`System`].
    pub system: String,
    /// One line about it.
    #[serde(default)]
    pub summary: Option<String>,
    /// Options of the system's world; the published one by default.
    #[serde(default)]
    pub world: Value,
    /// Learn by proximal policy optimization. Exactly one algorithm is named.
    #[serde(default)]
    pub ppo: Option<PpoOptions>,
    /// Learn by actor and critic from replay.
    #[serde(default)]
    pub actor_critic: Option<ActorCriticOptions>,
    /// The networks.
    #[serde(default)]
    pub network: MlpOptions,
    /// Seed of everything random in the training, its episodes included.
    pub seed: u64,
    /// How long.
    pub budget: Budget,
    /// The episodes that judge on the way, and choose the weights that are kept.
    pub validation: Episodes,
    /// The episodes that judge in the end: the training never plays them.
    #[serde(default)]
    pub test: Option<Episodes>,
}

/// Episodes of fixed seeds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Episodes {
    /// Their seeds.
    pub seeds: Vec<u64>,
    /// How actions are chosen from probabilities.
    #[serde(default)]
    pub choice: Choice,
}

/// A learner in any environment.
pub type AnyLearner = Box<dyn Learner>;

impl TrainingSpec {
    /// # Errors
    /// If the document contradicts itself, or an option is out of its range.
    pub fn check(&self) -> Result<(), TrainingError> {
        let missing = "one algorithm: `ppo: {}` or `actor_critic: {}`";
        match (&self.ppo, &self.actor_critic) {
            (Some(options), None) => options.check(),
            (None, Some(options)) => options.check(),
            (Some(_), Some(_)) => within(false, "actor_critic", "given beside `ppo`", "one algorithm"),
            (None, None) => within(false, "ppo", "missing", missing),
        }?;
        self.budget.check()?;
        let hidden = &self.network.hidden;
        within(
            hidden.iter().all(|outputs| *outputs > 0),
            "hidden",
            format!("{hidden:?}"),
            "layers of at least one",
        )?;
        within(!self.validation.seeds.is_empty(), "validation.seeds", "empty", "at least one seed")?;
        if let Some(test) = &self.test {
            let shared = test.seeds.iter().find(|seed| self.validation.seeds.contains(seed));
            let value = shared.map(ToString::to_string).unwrap_or_default();
            within(shared.is_none(), "test.seeds", value, "seeds that validation has not seen")?;
        }
        Ok(())
    }

    /// The learner at its beginning.
    ///
    /// # Errors
    /// If the document contradicts itself, or an option is out of its range.
    pub fn learner(&self, system: &System) -> Result<AnyLearner, TrainingError> {
        self.check()?;
        let streams = SeedStreams::new(self.seed);
        let make = |_| system.environment();
        let model = |environments: &Vectorized<Box<dyn Environment>>| {
            let (spaces, state_length) = (environments.spaces(), environments.state_length());
            let model = MlpModel::new(spaces, state_length, &self.network, streams)?;
            Ok(Box::new(model) as Box<dyn Model>)
        };
        let budget = self.budget.decisions;
        if let Some(options) = &self.actor_critic {
            let explore = |_| Box::new(AsDrawn) as Box<dyn Exploration>;
            let learner = ActorCritic::new(make, (model, explore), options.clone(), budget, streams)?;
            return Ok(Box::new(learner));
        }
        let options = self.ppo.clone().unwrap_or_default();
        Ok(Box::new(Ppo::new(make, model, options, budget, streams)?))
    }

    /// The mean return of an actor over episodes of the system.
    ///
    /// # Errors
    /// If the environment breaks its contract.
    pub fn judge(system: &System, actor: &dyn Actor, episodes: &Episodes) -> Result<f64, TrainingError> {
        let played = evaluate(|| system.environment(), actor, episodes.choice, &episodes.seeds);
        let played = played.map_err(LaneError::from)?;
        Ok(played.iter().map(|episode| episode.total_reward).sum::<f64>() / played.len().max(1) as f64)
    }

    /// What files say of weights that this training has made.
    ///
    /// # Errors
    /// Never, for a document that was read.
    pub fn provenance(
        &self,
        system: &System,
        (n_updates, n_decisions): (u64, u64),
    ) -> Result<Provenance, TrainingError> {
        let spec = serde_json::to_value(self);
        Ok(Provenance {
            network: NetworkKind::Mlp {
                activation: self.network.activation,
                n_agents: system.environment().spaces().len(),
            },
            spec: spec.map_err(|error| TrainingError::Checkpoint { reason: error.to_string() })?,
            data_digest: system.data_digest.clone(),
            seed: self.seed,
            n_updates,
            n_decisions,
        })
    }
}

impl Learner for AnyLearner {
    fn update(&mut self) -> Result<super::learner::Progress, TrainingError> {
        (**self).update()
    }

    fn model(&self) -> &dyn Model {
        (**self).model()
    }

    fn n_updates(&self) -> u64 {
        (**self).n_updates()
    }

    fn n_decisions(&self) -> u64 {
        (**self).n_decisions()
    }

    fn save(&self) -> Result<super::learner::Saved, TrainingError> {
        (**self).save()
    }

    fn restore(&mut self, saved: &super::learner::Saved) -> Result<(), TrainingError> {
        (**self).restore(saved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Source;

    const TEXT: &str = "\
format: apportion/training-v1
system: deepshare
world: { jobs: 10 }
ppo: { n_steps: 64, learning_rate: { from: 0.001, to: 0.0 } }
network: { hidden: [8] }
seed: 5
budget: { decisions: 128, validate_every: 1 }
validation: { seeds: [1, 2] }
test: { seeds: [3] }
";

    fn read(text: &str) -> TrainingSpec {
        Source::new("training.yaml", text).parse_format(FORMAT).unwrap()
    }

    #[test]
    fn a_document_becomes_a_learner() {
        let spec = read(TEXT);
        let system = System::new(&spec.system, &spec.world).unwrap();
        let mut learner = spec.learner(&system).unwrap();
        assert_eq!(learner.update().unwrap().n_decisions, 64);
        let mean =
            TrainingSpec::judge(&system, &*learner.model().actor().unwrap(), &spec.validation).unwrap();
        assert!(mean.is_finite());
        let provenance = spec.provenance(&system, (1, 64)).unwrap();
        assert_eq!(TrainingSpec::deserialize(&provenance.spec).unwrap(), spec);
    }

    #[test]
    fn contradictions_are_refused() {
        let said = |from: &str, to: &str| read(&TEXT.replace(from, to)).check().unwrap_err().to_string();
        assert_eq!(
            said("seeds: [3]", "seeds: [4, 2]"),
            "`test.seeds` is 2, expected seeds that validation has not seen"
        );
        assert!(said("ppo: {", "summary: none # ").contains("expected one algorithm"));
        assert!(
            said("seed: 5", "seed: 5\nactor_critic: {}").contains("`actor_critic` is given beside `ppo`")
        );
        assert!(said("validate_every: 1", "validate_every: 0").contains("`validate_every` is 0"));
        assert!(said("[8]", "[8, 0]").contains("`hidden` is [8, 0]"));
        assert!(said("[1, 2]", "[]").contains("`validation.seeds` is empty"));
    }
}
