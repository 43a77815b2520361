//! Training documents: the system, the algorithm, the seeds and the budget.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use rayon::prelude::*;
use schemars::{Schema, SchemaGenerator};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use super::beginning::Beginning;
use crate::dl2::injection::{Injection, ReleasedInjection};
use crate::dual_agent;
use crate::dual_agent::training_network::{SetModel, SetOptions};
use crate::elastic::exploration::FewestFirst;
use crate::gangs::training_scorer::ScorerModel;
use crate::systems;
use apportion::workload::random::SeedStreams;
use apportion_learn::actor::{Actor, Choice};
use apportion_learn::checkpoint::{NetworkKind, Provenance};
use apportion_learn::environment::{Environment, Space};
use apportion_learn::evaluation::evaluate;
use apportion_learn::system::System;
use apportion_learn::training::actor_critic::{ActorCritic, ActorCriticOptions, Credit};
use apportion_learn::training::evolution::{Evolution, EvolutionOptions};
use apportion_learn::training::exploration::{AsDrawn, EpsilonGreedy, Exploration};
use apportion_learn::training::learner::AnyLearner;
use apportion_learn::training::model::{MlpModel, MlpOptions, Model};
use apportion_learn::training::ppo::{Ppo, PpoOptions};
use apportion_learn::training::run::Budget;
use apportion_learn::training::warm_up::WarmUp;
use apportion_learn::training::{TrainingError, within};
use apportion_learn::vectorized::{Finished, LaneError, Vectorized};

/// The JSON Schema of training documents, in which the options of `world` depend on `system`.
pub fn schema() -> Schema {
    let mut generator = SchemaGenerator::default();
    let worlds = systems::worlds(&mut generator);
    let mut schema = generator.into_root_schema_for::<TrainingSpec>();
    let rule = |(name, options): &(&str, Schema)| {
        json!({
            "if": {"properties": {"system": {"const": name}}, "required": ["system"]},
            "then": {"properties": {"world": {"anyOf": [options, {"type": "null"}]}}},
        })
    };
    let rules: Vec<Value> = worlds.iter().map(rule).collect();
    let names: Vec<&str> = worlds.iter().map(|(name, _)| *name).collect();
    if let Some(system) = schema.pointer_mut("/properties/system") {
        system["enum"] = json!(names);
    }
    schema.insert("allOf".to_owned(), rules.into());
    schema
}

/// The `format` of training documents.
pub use crate::trainings::FORMAT;

/// A training of a learned scheduler, which `apportion train` runs. With the same data and version of the program, a document
/// always gives the same weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrainingSpec {
    /// Kind and version of the document.
    #[schemars(extend("const" = FORMAT))]
    pub format: String,
    /// Name of the system that is learned.
    pub system: String,
    /// One line about the training.
    #[serde(default)]
    pub summary: Option<String>,
    /// Options of the system's world; each has a default.
    #[serde(default, deserialize_with = "of_finite_numbers")]
    pub world: Value,
    /// Proximal policy optimization. Exactly one of `ppo`, `actor_critic` and `evolution` is given.
    #[serde(default)]
    pub ppo: Option<PpoOptions>,
    /// Actor-critic learning from replay.
    #[serde(default)]
    pub actor_critic: Option<ActorCriticOptions>,
    /// The rule that replaces drawn actions while actor and critic learn.
    #[serde(default, with = "serde_yaml::with::singleton_map")]
    #[schemars(with = "ExplorationName")]
    pub exploration: ExplorationName,
    /// Evolution strategies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evolution: Option<EvolutionOptions>,
    /// Weights to begin with in place of drawn ones: a name of weights that ship with the program, or the path, from this
    /// document's folder, of a file that `apportion train` made. Where there is no file `NAME.safetensors` in the folder, it is the
    /// weights that ship as NAME. The weights are of the same networks; a critic that they lack is drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The folder in which a relative path in `from` starts. The document does not hold it: until it is set, it is where the
    /// command runs.
    #[serde(skip)]
    pub folder: PathBuf,
    /// A warm-up, which first copies another policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUp>,
    /// The networks, of dense layers.
    #[serde(default)]
    pub network: MlpOptions,
    /// The networks over sets of two agents: of `dual_agent`, and of `rounds` with `play: agents`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sets: Option<SetOptions>,
    /// Seed of everything random in the training, its episodes included.
    pub seed: u64,
    /// The length of the training.
    pub budget: Budget,
    /// The episodes that judge the weights on the way, and so choose the weights that are kept.
    pub validation: Episodes,
    /// The episodes that judge the best weights in the end, as validation does; the training itself never plays them.
    #[serde(default)]
    pub test: Option<TestEpisodes>,
}

/// A rule that replaces drawn actions while actor and critic learn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExplorationName {
    /// No rule: actions are as drawn.
    #[default]
    AsDrawn,
    /// DL2's rules, for its own world, applied to the drawn job.
    Injection,
    /// DL2's rules as its released trainer has them: applied to every job of the window, whatever was drawn.
    InjectionReleased,
    /// With a chance, a climb of a job that holds the fewest workers, where another job holds more than 3 to 5 times as many: for
    /// the elastic world, seen as pairs.
    FewestFirst {
        /// The probability, ε.
        chance: f64,
    },
    /// With a chance, a uniformly drawn allowed action.
    EpsilonGreedy {
        /// The probability, ε.
        chance: f64,
    },
}

/// Episodes of fixed seeds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Episodes {
    /// Seeds of the episodes.
    pub seeds: Vec<u64>,
    /// The choice of actions from their probabilities.
    #[serde(default)]
    pub choice: Choice,
    /// The measure of the episodes.
    #[serde(default, skip_serializing_if = "Measure::is_reward")]
    pub measure: Measure,
}

/// Episodes of fixed seeds that judge the weights in the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TestEpisodes {
    /// Seeds of the episodes, none of which is one of validation.
    pub seeds: Vec<u64>,
    /// The choice of actions from their probabilities; as in validation by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
    /// The measure of the episodes, which is validation's.
    #[serde(default, skip_serializing_if = "Measure::is_reward")]
    pub measure: Measure,
}

/// A measure by which episodes are judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// The return that the system judges policies by.
    #[default]
    Reward,
    /// The jobs' service times, mean and 99th percentile, over those of the published `las`: in DeepShare's world, where results
    /// were published so.
    Service,
    /// The jobs' mean service and completion times over those of the published `las`: in DeepShare's world.
    Times,
}

impl Measure {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as the serializer calls it")]
    fn is_reward(&self) -> bool {
        *self == Self::Reward
    }

    fn name(self) -> &'static str {
        match self {
            Self::Reward => "reward",
            Self::Service => "service",
            Self::Times => "times",
        }
    }
}

/// Checks that no seed is given twice, which would count twice in a mean.
fn check_distinct(field: &'static str, seeds: &[u64]) -> Result<(), TrainingError> {
    let mut seen = BTreeSet::new();
    let twice = seeds.iter().find(|seed| !seen.insert(**seed));
    let value = twice.map(|seed| format!("{seed} twice")).unwrap_or_default();
    within(twice.is_none(), field, value, "each seed once")
}

/// Reads a value that has only finite numbers: JSON has no others, and they would be taken for missing values.
fn of_finite_numbers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    let value = serde_yaml::Value::deserialize(deserializer)?;
    match not_finite(&value) {
        Some(number) => Err(D::Error::custom(format!("`{number}` is no finite number"))),
        None => serde_json::to_value(value).map_err(D::Error::custom),
    }
}

fn not_finite(value: &serde_yaml::Value) -> Option<&serde_yaml::Number> {
    match value {
        serde_yaml::Value::Number(number) => (!number.is_finite()).then_some(number),
        serde_yaml::Value::Sequence(items) => items.iter().find_map(not_finite),
        serde_yaml::Value::Mapping(entries) => entries.values().find_map(not_finite),
        _ => None,
    }
}

impl TrainingSpec {
    /// Checks the whole document.
    ///
    /// # Errors
    /// If the document contradicts itself, or an option is out of its range.
    pub fn check(&self) -> Result<(), TrainingError> {
        self.check_algorithm()?;
        self.warm_up.as_ref().map_or(Ok(()), WarmUp::check)?;
        self.check_exploration()?;
        self.budget.check()?;
        self.check_networks()?;
        self.check_episodes()
    }

    /// Checks that there is one algorithm, and that it can learn what the world asks for.
    fn check_algorithm(&self) -> Result<(), TrainingError> {
        let missing = "one algorithm: `ppo: {}`, `actor_critic: {}` or `evolution: {}`";
        let given = [self.ppo.is_some(), self.actor_critic.is_some(), self.evolution.is_some()];
        let n_given = given.iter().filter(|given| **given).count();
        within(n_given > 0, "ppo", "missing", missing)?;
        let second = if self.evolution.is_some() { "evolution" } else { "actor_critic" };
        within(n_given == 1, second, "given beside another algorithm", "one algorithm")?;
        let values = self.system == "gangs" && self.world_says("actor", "values");
        let named = if self.ppo.is_some() { "ppo" } else { "actor_critic" };
        let alone = "`evolution: {}`, by which alone values are learned";
        within(!values || self.evolution.is_some(), named, "given where `world.actor` is `values`", alone)?;
        self.ppo.as_ref().map_or(Ok(()), PpoOptions::check)?;
        self.evolution.as_ref().map_or(Ok(()), EvolutionOptions::check)?;
        let Some(options) = &self.actor_critic else { return Ok(()) };
        options.check()?;
        // The budget fills the replay, or nothing would be learned: decisions that the last round adds beyond the budget do not
        // count. After a warm-up, or where weights are given, there is something to keep even without an update.
        let begins = self.warm_up.is_some() || self.from.is_some();
        let (decisions, kept) = (self.budget.decisions, options.replay as u64);
        let value = format!("{decisions} where `actor_critic.replay` is {kept}");
        let enough =
            "at least as many decisions as the replay has places, for nothing is learned before it is full";
        within(begins || decisions >= kept, "decisions", value, enough)?;
        let owned = self.system == "elastic" && self.world_says("reward", "own_progress");
        let whose =
            "`round` or `decision`: whose a reward is, `elastic` alone says, with `reward: own_progress`";
        within(options.credit != Credit::Job || owned, "credit", "job", whose)
    }

    fn check_exploration(&self) -> Result<(), TrainingError> {
        let injects = match self.exploration {
            ExplorationName::Injection => Some("injection"),
            ExplorationName::InjectionReleased => Some("injection_released"),
            _ => None,
        };
        let fine = injects.is_none() || self.system == "dl2";
        within(fine, "exploration", injects.unwrap_or_default(), "another, outside of `dl2`")?;
        let fewest = matches!(self.exploration, ExplorationName::FewestFirst { .. });
        let pairs = self.system == "elastic" && self.world_says("sight", "pairs");
        let elsewhere = "another, outside of `elastic` with `sight: pairs`";
        within(!fewest || pairs, "exploration", "fewest_first", elsewhere)
    }

    fn check_networks(&self) -> Result<(), TrainingError> {
        self.sets.as_ref().map_or(Ok(()), SetOptions::check)?;
        let over_sets =
            self.system == "dual_agent" || (self.system == "rounds" && !self.world_says("play", "cells"));
        let dense = over_sets && self.network != MlpOptions::default();
        within(!dense, "network", "given", "`sets`, which the networks of two agents are made by")?;
        let elsewhere = "`network`, outside of `dual_agent` and of `rounds` with `play: agents`";
        within(self.sets.is_none() || over_sets, "sets", "given", elsewhere)?;
        let beside = self.sets.as_ref().is_some_and(|sets| sets.residual.is_some());
        let advised = self.world.get("advised") == Some(&Value::Bool(true));
        let both = "given where `world.advised` is true, and nowhere else";
        within(beside == advised, "sets.residual", if beside { "given" } else { "missing" }, both)?;
        let hidden = &self.network.hidden;
        let fine = hidden.iter().all(|outputs| *outputs > 0);
        within(fine, "hidden", format!("{hidden:?}"), "layers of at least one")
    }

    fn check_episodes(&self) -> Result<(), TrainingError> {
        let measured = self.validation.measure == Measure::Reward || self.system == "deepshare";
        let elsewhere = "`reward`, outside of `deepshare`";
        within(measured, "validation.measure", self.validation.measure.name(), elsewhere)?;
        within(!self.validation.seeds.is_empty(), "validation.seeds", "empty", "at least one seed")?;
        check_distinct("validation.seeds", &self.validation.seeds)?;
        let Some(test) = &self.test else { return Ok(()) };
        check_distinct("test.seeds", &test.seeds)?;
        let shared = test.seeds.iter().find(|seed| self.validation.seeds.contains(seed));
        let value = shared.map(ToString::to_string).unwrap_or_default();
        within(shared.is_none(), "test.seeds", value, "seeds that validation has not seen")?;
        let alike = test.measure == Measure::Reward || test.measure == self.validation.measure;
        within(alike, "test.measure", test.measure.name(), "that of `validation`, beside which it is told")
    }

    /// The test episodes, with the choice and the measure that they take over from validation.
    pub fn test_episodes(&self) -> Option<Episodes> {
        let TestEpisodes { seeds, choice, .. } = self.test.as_ref()?;
        let Episodes { choice: of_validation, measure, .. } = self.validation;
        Some(Episodes { seeds: seeds.clone(), choice: choice.unwrap_or(of_validation), measure })
    }

    /// Whether an option of the world has this text as its value.
    fn world_says(&self, option: &str, value: &str) -> bool {
        self.world.get(option).and_then(Value::as_str) == Some(value)
    }

    /// The unit of the budget, and the number of units of a training that goes to its end.
    pub fn counted(&self) -> (&'static str, u64) {
        let Some(EvolutionOptions { pairs, episodes, .. }) = self.evolution else {
            return ("decisions", self.budget.decisions);
        };
        let of_update = (2 * pairs as u64 * episodes as u64).max(1);
        ("episodes", self.budget.decisions.div_ceil(of_update) * of_update)
    }

    /// The learner at the beginning of the training.
    ///
    /// # Errors
    /// If the document contradicts itself, an option is out of its range, or the training cannot begin with the weights that it
    /// names.
    pub fn learner(&self, system: &System) -> Result<AnyLearner, TrainingError> {
        self.check()?;
        let beginning = Beginning::load(self, system)?;
        let learner = self.learner_as_drawn(system)?;
        if let Some(beginning) = beginning {
            beginning.give(learner.model())?;
        }
        Ok(learner)
    }

    fn learner_as_drawn(&self, system: &System) -> Result<AnyLearner, TrainingError> {
        let streams = SeedStreams::new(self.seed);
        let make = |_| system.environment();
        let model = |environments: &Vectorized<Box<dyn Environment>>| {
            self.model(system, environments.spaces(), environments.state_length())
        };
        let budget = self.budget.decisions;
        if let Some(options) = &self.evolution {
            let environment = system.environment();
            let model = self.model(system, environment.spaces(), environment.state_length())?;
            let (system, choice) = (system.clone(), self.validation.choice);
            let play = move |actor: Arc<dyn Actor>, seeds: &[u64]| {
                Self::play(&system, &actor, Measure::Reward, (choice, seeds))
            };
            return Ok(Box::new(Evolution::new(model, Arc::new(play), options.clone(), budget, streams)?));
        }
        if let Some(options) = &self.actor_critic {
            let n_jobs = system.environment().spaces().first().map_or(0, |space| space.n_actions / 3);
            let explore = |_| match self.exploration {
                ExplorationName::AsDrawn => Box::new(AsDrawn) as Box<dyn Exploration>,
                ExplorationName::Injection => Box::new(Injection::new(n_jobs)),
                ExplorationName::InjectionReleased => Box::new(ReleasedInjection::new(n_jobs)),
                ExplorationName::FewestFirst { chance } => Box::new(FewestFirst { chance }),
                ExplorationName::EpsilonGreedy { chance } => Box::new(EpsilonGreedy { chance }),
            };
            let learner = ActorCritic::new(make, (model, explore), options.clone(), budget, streams)?;
            return Ok(Box::new(learner));
        }
        let options = self.ppo.clone().unwrap_or_default();
        Ok(Box::new(Ppo::new(make, model, options, budget, streams)?))
    }

    fn model(
        &self,
        system: &System,
        spaces: &[Space],
        state_length: usize,
    ) -> Result<Box<dyn Model>, TrainingError> {
        let streams = SeedStreams::new(self.seed);
        Ok(match system.own_network {
            Some(dual_agent::network::NAME) => {
                let options = self.sets.clone().unwrap_or_default();
                let proposals = self.world.get("proposals") == Some(&Value::Bool(true));
                Box::new(SetModel::new(spaces, state_length, (&options, proposals), streams)?)
            }
            Some(_) => Box::new(ScorerModel::new(&self.network, streams)?),
            None => Box::new(MlpModel::new(spaces, state_length, &self.network, streams)?),
        })
    }

    /// Plays episodes with an actor: as the finished policy would, where the system says how.
    fn play(
        system: &System,
        actor: &Arc<dyn Actor>,
        measure: Measure,
        (choice, seeds): (Choice, &[u64]),
    ) -> Result<Vec<Finished>, TrainingError> {
        let play = match measure {
            Measure::Reward => &system.play,
            Measure::Service => &system.service,
            Measure::Times => &system.times,
        };
        match play {
            None => {
                let played = evaluate(|| system.environment(), &**actor, choice, seeds);
                Ok(played.map_err(LaneError::from)?)
            }
            Some(play) => {
                let one = |seed: &u64| {
                    play(Arc::clone(actor), choice, *seed).map_err(|reason| TrainingError::Play { reason })
                };
                seeds.par_iter().map(one).collect()
            }
        }
    }

    /// The return of an actor in each episode, by the episodes' measure.
    ///
    /// # Errors
    /// If an episode cannot be played.
    pub fn returns(
        system: &System,
        actor: &Arc<dyn Actor>,
        episodes: &Episodes,
    ) -> Result<Vec<f64>, TrainingError> {
        let played = Self::play(system, actor, episodes.measure, (episodes.choice, &episodes.seeds))?;
        Ok(played.iter().map(|episode| episode.total_reward).collect())
    }

    /// The mean return of an actor over episodes.
    ///
    /// # Errors
    /// If an episode cannot be played.
    pub fn judge(system: &System, actor: &Arc<dyn Actor>, episodes: &Episodes) -> Result<f64, TrainingError> {
        let returns = Self::returns(system, actor, episodes)?;
        Ok(returns.iter().sum::<f64>() / returns.len().max(1) as f64)
    }

    /// The kind of network that is trained.
    pub(crate) fn kind(&self, system: &System) -> NetworkKind {
        match system.own_network {
            Some(name) => NetworkKind::Own { name: name.to_owned() },
            None => NetworkKind::Mlp {
                activation: self.network.activation,
                n_agents: system.environment().spaces().len(),
            },
        }
    }

    /// The provenance that files of this training's weights state. `from_digest` is the digest of the weights that the training
    /// began with, if it says `from`.
    ///
    /// # Errors
    /// Never, for a document that was read.
    pub fn provenance(
        &self,
        (system, from_digest): (&System, Option<&str>),
        (n_updates, n_decisions): (u64, u64),
    ) -> Result<Provenance, TrainingError> {
        let spec = serde_json::to_value(self);
        Ok(Provenance {
            network: self.kind(system),
            spec: spec.map_err(|error| TrainingError::Checkpoint { reason: error.to_string() })?,
            data_digest: system.data_digest.clone(),
            from_digest: from_digest.map(str::to_owned),
            raised: Vec::new(),
            seed: self.seed,
            n_updates,
            n_decisions,
        })
    }
}

#[cfg(test)]
#[path = "spec_tests.rs"]
mod tests;
