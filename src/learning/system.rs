//! The learned schedulers there are: by name, from a world's options to environments.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::deepshare::{DeepShareEnvironment, Workloads};
use super::environment::Environment;
use crate::spec::nearest::name_list;
use crate::spec::run::sha256;
use crate::throughput::spread::SpreadThroughputs;
use crate::world::deepshare::{DecisionsPerRound, EpisodeOptions, Fidelity, Mix};

/// Something that can be learned: environments of one world.
#[derive(Clone)]
pub struct System {
    /// Its name in training documents.
    pub name: &'static str,
    /// SHA-256 of the data that its world is made of, in hexadecimal.
    pub data_digest: String,
    make: Arc<dyn Fn() -> Box<dyn Environment> + Send + Sync>,
}

impl fmt::Debug for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, data_digest, .. } = self;
        f.debug_struct("System").field("name", name).field("data_digest", data_digest).finish_non_exhaustive()
    }
}

/// The world's options, as a training document has them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DeepShareWorld {
    /// Jobs of an episode.
    pub jobs: usize,
    /// Shares of the job types: `random` for each episode anew, `equal`, or a mix of the tables.
    pub mix: String,
    /// Whether the published simulator's quirks are kept.
    pub fidelity: FidelityName,
    /// What ends a round.
    pub round: RoundEnd,
    /// Whether crowded jobs are preempted before a round, as in published training; otherwise after it.
    pub preempts_first: bool,
    /// Whether invalid actions are masked.
    pub masked: bool,
    /// w1.
    pub contention_weight: f64,
    /// w2.
    pub utilization_weight: f64,
    /// Steps after which an episode is cut off.
    pub step_limit: u64,
}

impl Default for DeepShareWorld {
    fn default() -> Self {
        Self {
            jobs: 256,
            mix: "random".to_owned(),
            fidelity: FidelityName::Corrected,
            round: RoundEnd::Action,
            preempts_first: true,
            masked: false,
            contention_weight: 0.8,
            utilization_weight: 0.2,
            step_limit: 20_000,
        }
    }
}

/// Which of the published simulator's ways to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FidelityName {
    /// As published, quirks included.
    Released,
    /// As intended.
    Corrected,
}

/// What ends a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoundEnd {
    /// Every action: how the published agents are trained.
    Action,
    /// The first invalid action: how they are used.
    Invalid,
    /// The first invalid action for which the baselines' placement finds nothing either: how their hybrids are used.
    NothingFits,
}

impl DeepShareWorld {
    /// An environment of these options, still to be reset.
    fn environment(&self, tables: &Arc<SpreadThroughputs>) -> Result<DeepShareEnvironment, String> {
        for (field, value) in [("jobs", self.jobs as u64), ("step_limit", self.step_limit)] {
            if value == 0 {
                return Err(format!("`{field}` is 0, expected a whole number above 0"));
            }
        }
        for (field, value) in
            [("contention_weight", self.contention_weight), ("utilization_weight", self.utilization_weight)]
        {
            if !(value.is_finite() && value >= 0.0) {
                return Err(format!("`{field}` is {value}, expected a finite number, at least 0"));
            }
        }
        let mix = match self.mix.as_str() {
            "random" => Mix::Random,
            "equal" => Mix::Equal,
            name => Mix::Named(name.to_owned()),
        };
        let options = EpisodeOptions {
            fidelity: match self.fidelity {
                FidelityName::Released => Fidelity::RELEASED,
                FidelityName::Corrected => Fidelity::CORRECTED,
            },
            decisions: match self.round {
                RoundEnd::Action => DecisionsPerRound::One,
                RoundEnd::Invalid | RoundEnd::NothingFits => DecisionsPerRound::UntilInvalid,
            },
            hybrid: self.round == RoundEnd::NothingFits,
            preempts_first: self.preempts_first,
            contention_weight: self.contention_weight,
            utilization_weight: self.utilization_weight,
        };
        let workloads = Workloads::Drawn(mix, self.jobs);
        DeepShareEnvironment::new(Arc::clone(tables), workloads, options, self.masked, self.step_limit)
            .map_err(|error| error.to_string())
    }
}

/// Why there is no such system.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SystemError {
    /// No such name.
    #[error("unknown system `{name}`, expected one of {known}")]
    Unknown {
        /// The name.
        name: String,
        /// What there is.
        known: String,
    },
    /// Options that its world does not have.
    #[error("{reason}")]
    World {
        /// What is wrong.
        reason: String,
    },
}

/// Names and one line about each.
pub const SYSTEMS: [(&str, &str); 1] = [(
    "deepshare",
    "which queued job starts on which servers, where jobs that share a server slow each other down",
)];

impl System {
    /// The system of this name in a world of these options; without options, the published one.
    ///
    /// # Errors
    /// If there is none of that name, or its world has no such options.
    pub fn new(name: &str, world: &Value) -> Result<Self, SystemError> {
        match name {
            "deepshare" => Self::deepshare(world),
            _ => Err(SystemError::Unknown {
                name: name.to_owned(),
                known: name_list(SYSTEMS.iter().map(|(name, _)| *name)),
            }),
        }
    }

    fn deepshare(world: &Value) -> Result<Self, SystemError> {
        let fault = |reason: String| SystemError::World { reason };
        let options = if world.is_null() {
            DeepShareWorld::default()
        } else {
            DeepShareWorld::deserialize(world).map_err(|error| fault(error.to_string()))?
        };
        let tables = SpreadThroughputs::deepshare();
        let data_digest = sha256(format!("{tables:?}").as_bytes());
        let first = options.environment(&tables).map_err(fault)?;
        Ok(Self { name: "deepshare", data_digest, make: Arc::new(move || Box::new(first.clone())) })
    }

    /// An environment, still to be reset.
    pub fn environment(&self) -> Box<dyn Environment> {
        (self.make)()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::learning::checker::{CheckOptions, check};

    #[test]
    fn every_system_passes_the_check() {
        for (name, _) in SYSTEMS {
            let system = System::new(name, &Value::Null).unwrap();
            assert_eq!(system.data_digest.len(), 64);
            check(|| system.environment(), CheckOptions { n_episodes: 3, ..CheckOptions::default() })
                .assert_passed();
        }
    }

    #[test]
    fn names_and_options_that_do_not_exist_are_refused() {
        let error = System::new("deepshaer", &Value::Null).unwrap_err().to_string();
        assert_eq!(error, "unknown system `deepshaer`, expected one of `deepshare`");
        let said = |world: Value| System::new("deepshare", &world).unwrap_err().to_string();
        assert!(said(json!({ "jobs": 0 })).contains("`jobs` is 0"));
        assert!(said(json!({ "mix": "nothing" })).contains("unknown mix `nothing`"));
        assert!(said(json!({ "job": 3 })).contains("unknown field `job`"));
    }
}
