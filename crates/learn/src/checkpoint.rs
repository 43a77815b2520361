//! Trained weights as files: safetensors with a header that says what they are and how to make them again.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::network::{Activation, MlpActor, NetworkError};
use crate::tensors::{Tensors, TensorsError};
use apportion::spec::run::sha256;

/// The format that this version writes and reads.
pub const FORMAT: &str = "apportion/learned-v1";

/// The entry of the metadata that holds the header.
const KEY: &str = "apportion";

/// What can be done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Contents {
    /// Decide: the weights of the actors, as tensors of the model's names.
    Weights,
    /// Go on with the training, bit for bit: weights under `model.`, and all else that the algorithm keeps.
    Training,
}

/// What the weights are of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum NetworkKind {
    /// Dense layers, `actor.AGENT.LAYER.weight` and `….bias`.
    Mlp {
        /// What follows each hidden layer.
        activation: Activation,
        /// Networks of actors.
        n_agents: usize,
    },
    /// A network that a system defines itself.
    Own {
        /// Which one.
        name: String,
    },
}

/// Where weights come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// [`FORMAT`].
    format: String,
    /// What can be done with the file.
    pub contents: Contents,
    /// What the weights are of.
    pub network: NetworkKind,
    /// The whole specification of the training.
    pub spec: Value,
    /// SHA-256 of the data that it trains on, in hexadecimal.
    pub data_digest: String,
    /// SHA-256 of the file of weights that the training began with, in hexadecimal, if its specification says `from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_digest: Option<String>,
    /// Budgets that the training had before its specification's, if that was raised on the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub raised: Vec<Raised>,
    /// The seed of the training.
    pub seed: u64,
    /// Version of the program that wrote it.
    pub crate_version: String,
    /// Updates made so far.
    pub n_updates: u64,
    /// Decisions taken in training so far.
    pub n_decisions: u64,
    /// SHA-256 of names, shapes and numbers, in hexadecimal.
    tensors_digest: String,
    /// What the algorithm keeps beside arrays.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    state: Value,
}

/// A budget that was raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Raised {
    /// Decisions after which the training was to end.
    pub decisions: u64,
    /// Validations without a new best after which it was to end early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience: Option<u32>,
    /// Updates made until it was raised.
    pub n_updates: u64,
}

/// Weights, or a training between two updates, with where they come from.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Where they come from.
    pub header: Header,
    /// The arrays.
    pub tensors: Tensors,
}

/// A file that is no checkpoint of this version.
#[derive(Debug, Error)]
pub enum CheckpointError {
    /// No safetensors file, or a damaged one.
    #[error(transparent)]
    Tensors(#[from] TensorsError),
    /// A safetensors file of something else.
    #[error("it has no header `{KEY}`: it was not written by this program")]
    NoHeader,
    /// Another version.
    #[error("it is of format `{found}`, expected `{FORMAT}`")]
    Format {
        /// Its format.
        found: String,
    },
    /// A header that says something else.
    #[error("its header is damaged: {reason}")]
    Header {
        /// Why the header is damaged, in words.
        reason: String,
    },
    /// Numbers that differ from the ones written.
    #[error("its numbers are not those that were written: the file is damaged")]
    Digest,
    /// Weights without a training.
    #[error("it holds weights alone, with which no training can go on")]
    WeightsOnly,
    /// Weights that make no network.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A network that needs its own system to be read.
    #[error("its network is `{name}`, not dense layers")]
    Kind {
        /// Which network.
        name: String,
    },
}

/// What a header says of a training.
#[derive(Clone, Debug, PartialEq)]
pub struct Provenance {
    /// What the weights are of.
    pub network: NetworkKind,
    /// The whole specification.
    pub spec: Value,
    /// SHA-256 of the data that it trains on, in hexadecimal.
    pub data_digest: String,
    /// SHA-256 of the file of weights that it began with, in hexadecimal.
    pub from_digest: Option<String>,
    /// Budgets that it had before.
    pub raised: Vec<Raised>,
    /// The seed.
    pub seed: u64,
    /// Updates made so far.
    pub n_updates: u64,
    /// Decisions taken in training so far.
    pub n_decisions: u64,
}

impl Checkpoint {
    /// A training between two updates: all its arrays, and its other state.
    pub fn of_training(provenance: Provenance, tensors: Tensors, state: Value) -> Self {
        Self::new(Contents::Training, provenance, tensors, state)
    }

    /// Weights alone, by the model's names; critics are left out.
    pub fn of_weights(provenance: Provenance, weights: &Tensors) -> Self {
        let mut kept = Tensors::default();
        for (name, shape, numbers) in weights.iter().filter(|(name, ..)| !name.starts_with("critic.")) {
            // As many numbers as before.
            let _ = kept.insert(name, shape.to_vec(), numbers.to_vec());
        }
        Self::new(Contents::Weights, provenance, kept, Value::Null)
    }

    fn new(contents: Contents, provenance: Provenance, tensors: Tensors, state: Value) -> Self {
        let Provenance { network, spec, data_digest, from_digest, raised, seed, n_updates, n_decisions } =
            provenance;
        let header = Header {
            format: FORMAT.to_owned(),
            contents,
            network,
            spec,
            data_digest,
            from_digest,
            raised,
            seed,
            crate_version: env!("CARGO_PKG_VERSION").to_owned(),
            n_updates,
            n_decisions,
            tensors_digest: digest(&tensors),
            state,
        };
        Self { header, tensors }
    }

    /// What the algorithm kept beside arrays.
    ///
    /// # Errors
    /// If these are weights alone.
    pub fn state(&self) -> Result<&Value, CheckpointError> {
        match self.header.contents {
            Contents::Training => Ok(&self.header.state),
            Contents::Weights => Err(CheckpointError::WeightsOnly),
        }
    }

    /// The weights, by the model's names.
    pub fn weights(&self) -> Tensors {
        match self.header.contents {
            Contents::Training => self.tensors.below("model."),
            Contents::Weights => self.tensors.clone(),
        }
    }

    /// This checkpoint's weights, for deciding only.
    #[must_use]
    pub fn slim(&self) -> Self {
        let header = self.header.clone();
        let provenance = Provenance {
            network: header.network,
            spec: header.spec,
            data_digest: header.data_digest,
            from_digest: header.from_digest,
            raised: header.raised,
            seed: header.seed,
            n_updates: header.n_updates,
            n_decisions: header.n_decisions,
        };
        Self::of_weights(provenance, &self.weights())
    }

    /// The actors, if they are dense layers.
    ///
    /// # Errors
    /// If they are not, or are damaged.
    pub fn actor(&self) -> Result<MlpActor, CheckpointError> {
        match &self.header.network {
            NetworkKind::Mlp { activation, n_agents } => {
                Ok(MlpActor::from_tensors(&self.weights(), *n_agents, *activation)?)
            }
            NetworkKind::Own { name } => Err(CheckpointError::Kind { name: name.clone() }),
        }
    }

    /// The file's bytes: the same for the same checkpoint.
    ///
    /// # Errors
    /// If the header is too large.
    pub fn to_bytes(&self) -> Result<Vec<u8>, CheckpointError> {
        let header = serde_json::to_string(&self.header);
        let header = header.map_err(|error| CheckpointError::Header { reason: error.to_string() })?;
        Ok(self.tensors.to_safetensors((KEY, &header))?)
    }

    /// Reads a file's bytes.
    ///
    /// # Errors
    /// If they are damaged, something else, or of another version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CheckpointError> {
        let (tensors, header) = Tensors::from_safetensors(bytes, KEY)?;
        let header = header.ok_or(CheckpointError::NoHeader)?;
        let damaged = |error: serde_json::Error| CheckpointError::Header { reason: error.to_string() };
        // The format first: another version's header may have other fields.
        let fields: Value = serde_json::from_str(&header).map_err(damaged)?;
        let format = fields.get("format").and_then(Value::as_str).unwrap_or_default();
        if format != FORMAT {
            return Err(CheckpointError::Format { found: format.to_owned() });
        }
        let header = Header::deserialize(&fields).map_err(damaged)?;
        if digest(&tensors) != header.tensors_digest {
            return Err(CheckpointError::Digest);
        }
        Ok(Self { header, tensors })
    }
}

fn digest(tensors: &Tensors) -> String {
    let mut bytes = Vec::new();
    for (name, shape, numbers) in tensors.iter() {
        bytes.extend((name.len() as u64).to_le_bytes());
        bytes.extend(name.bytes());
        bytes.extend((shape.len() as u64).to_le_bytes());
        bytes.extend(shape.iter().flat_map(|extent| (*extent as u64).to_le_bytes()));
        bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    }
    sha256(&bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::actor::{Actor, Scratch};

    fn provenance() -> Provenance {
        Provenance {
            network: NetworkKind::Mlp { activation: Activation::Tanh, n_agents: 1 },
            spec: json!({ "format": "apportion/training-v1", "seed": 3 }),
            data_digest: "00ff".to_owned(),
            from_digest: Some("ff00".to_owned()),
            raised: Vec::new(),
            seed: 3,
            n_updates: 7,
            n_decisions: 14_336,
        }
    }

    fn training() -> Checkpoint {
        let mut tensors = Tensors::default();
        tensors.insert("model.actor.0.0.weight", vec![2, 1], vec![0.25, -1.5]).unwrap();
        tensors.insert("model.actor.0.0.bias", vec![2], vec![0.0, 2.0]).unwrap();
        tensors.insert("model.critic.0.weight", vec![1, 1], vec![4.0]).unwrap();
        tensors.insert("adam.first.actor.0.0.bias", vec![2], vec![0.5, 0.5]).unwrap();
        Checkpoint::of_training(provenance(), tensors, json!({ "n_updates": 7 }))
    }

    #[test]
    fn a_file_gives_back_the_training() {
        let bytes = training().to_bytes().unwrap();
        assert_eq!(bytes, training().to_bytes().unwrap());
        let read = Checkpoint::from_bytes(&bytes).unwrap();
        assert_eq!(read, training());
        assert_eq!(read.state().unwrap(), &json!({ "n_updates": 7 }));
        assert_eq!(read.header.crate_version, env!("CARGO_PKG_VERSION"));
    }

    #[test]
    fn the_slim_form_decides_the_same_and_goes_no_further() {
        let slim = Checkpoint::from_bytes(&training().slim().to_bytes().unwrap()).unwrap();
        assert!(!slim.tensors.contains("critic.0.weight"));
        assert_eq!(slim.header.spec, training().header.spec);
        assert_eq!(slim.header.from_digest.as_deref(), Some("ff00"));
        for checkpoint in [training(), slim.clone()] {
            let mut logits = [0.0; 2];
            checkpoint.actor().unwrap().logits(0, &[2.0], &mut Scratch::default(), &mut logits).unwrap();
            assert_eq!(logits, [0.5, -1.0]);
        }
        assert_eq!(slim.state().unwrap_err().to_string(), CheckpointError::WeightsOnly.to_string());
        assert_eq!(slim.slim(), slim);
    }

    #[test]
    fn a_changed_number_is_found_out() {
        let mut bytes = training().to_bytes().unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        let error = Checkpoint::from_bytes(&bytes).unwrap_err();
        assert!(matches!(error, CheckpointError::Digest), "{error}");
        for end in 0..last {
            assert!(Checkpoint::from_bytes(&bytes[..end]).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn other_files_and_versions_are_refused_by_name() {
        let plain = Tensors::default().to_safetensors(("other", "x")).unwrap();
        assert!(
            Checkpoint::from_bytes(&plain).unwrap_err().to_string().contains("not written by this program")
        );
        let with = |header: &str| {
            let bytes = Tensors::default().to_safetensors((KEY, header)).unwrap();
            Checkpoint::from_bytes(&bytes).unwrap_err().to_string()
        };
        assert_eq!(
            with(r#"{"format": "apportion/learned-v9"}"#),
            "it is of format `apportion/learned-v9`, expected `apportion/learned-v1`"
        );
        assert!(with("{").starts_with("its header is damaged"));
        assert!(with(r#"{"format": "apportion/learned-v1"}"#).contains("missing field"));
        let own = Provenance { network: NetworkKind::Own { name: "sets".to_owned() }, ..provenance() };
        let error = Checkpoint::of_weights(own, &Tensors::default()).actor().unwrap_err();
        assert_eq!(error.to_string(), "its network is `sets`, not dense layers");
    }
}
