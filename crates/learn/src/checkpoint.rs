//! Files of trained weights: safetensors with a header that describes the weights and how to make them again.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::network::{Activation, MlpActor, NetworkError};
use crate::tensors::{Tensors, TensorsError};
use apportion::spec::run::sha256;

/// The format of the files that this version writes and reads.
pub const FORMAT: &str = "apportion/learned-v1";

/// The key of the metadata's entry that holds the header.
const KEY: &str = "apportion";

/// The contents of a file, and so its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Contents {
    /// The weights of the actors, by the model's names, for decisions.
    Weights,
    /// A whole training, which can go on bit for bit: weights under `model.`, and all other state of the algorithm.
    Training,
}

/// A kind of network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum NetworkKind {
    /// Dense layers, `actor.AGENT.LAYER.weight` and `….bias`.
    Mlp {
        /// The activation after each hidden layer.
        activation: Activation,
        /// The number of agents, each with a network.
        n_agents: usize,
    },
    /// A network that a system defines itself.
    Own {
        /// Name of the network.
        name: String,
    },
}

/// The header of a file of weights, which says where they come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The format, [`FORMAT`].
    format: String,
    /// The contents of the file.
    pub contents: Contents,
    /// The kind of network.
    pub network: NetworkKind,
    /// The whole specification of the training, or of an import.
    pub spec: Value,
    /// SHA-256 of the data that the training uses, in hexadecimal.
    pub data_digest: String,
    /// SHA-256 of the file of weights that the training began with, in hexadecimal, if its specification says `from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_digest: Option<String>,
    /// Budgets that the training had before its specification's, if that was raised on the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub raised: Vec<Raised>,
    /// The seed of the training.
    pub seed: u64,
    /// Version of the program that wrote the file.
    pub crate_version: String,
    /// Updates made so far.
    pub n_updates: u64,
    /// Decisions taken in training so far.
    pub n_decisions: u64,
    /// SHA-256 of the tensors' names, shapes and numbers, in hexadecimal.
    tensors_digest: String,
    /// The algorithm's state beside arrays.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    state: Value,
}

/// A budget of a training before it was raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Raised {
    /// Decisions after which the training was to end.
    pub decisions: u64,
    /// Validations without a new best after which the training was to end early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience: Option<u32>,
    /// Updates made until it was raised.
    pub n_updates: u64,
}

/// Weights, or a training between two updates, with their header.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The header.
    pub header: Header,
    /// The arrays.
    pub tensors: Tensors,
}

/// Why a file is no checkpoint of this version.
#[derive(Debug, Error)]
pub enum CheckpointError {
    /// The file is no safetensors file, or a damaged one.
    #[error(transparent)]
    Tensors(#[from] TensorsError),
    /// The safetensors file has no header of this program.
    #[error("it has no header `{KEY}`: it was not written by this program")]
    NoHeader,
    /// The file is of another format.
    #[error("it is of format `{found}`, expected `{FORMAT}`")]
    Format {
        /// The format of the file.
        found: String,
    },
    /// The header cannot be read.
    #[error("its header is damaged: {reason}")]
    Header {
        /// Why the header is damaged, in words.
        reason: String,
    },
    /// The numbers differ from the ones that were written.
    #[error("its numbers are not those that were written: the file is damaged")]
    Digest,
    /// The file holds weights without a training.
    #[error("it holds weights alone, with which no training can go on")]
    WeightsOnly,
    /// The weights make no network.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The network needs its own system to be read.
    #[error("its network is `{name}`, not dense layers")]
    Kind {
        /// Name of the network.
        name: String,
    },
}

/// The provenance of weights, which becomes part of the header.
#[derive(Clone, Debug, PartialEq)]
pub struct Provenance {
    /// The kind of network.
    pub network: NetworkKind,
    /// The whole specification of the training.
    pub spec: Value,
    /// SHA-256 of the data that the training uses, in hexadecimal.
    pub data_digest: String,
    /// SHA-256 of the file of weights that the training began with, in hexadecimal.
    pub from_digest: Option<String>,
    /// Budgets that the training had before they were raised.
    pub raised: Vec<Raised>,
    /// The seed of the training.
    pub seed: u64,
    /// Updates made so far.
    pub n_updates: u64,
    /// Decisions taken in training so far.
    pub n_decisions: u64,
}

impl Checkpoint {
    /// A checkpoint of a training between two updates: all its arrays, and its other state.
    pub fn of_training(provenance: Provenance, tensors: Tensors, state: Value) -> Self {
        Self::new(Contents::Training, provenance, tensors, state)
    }

    /// A checkpoint of weights alone, by the model's names; critics are left out.
    pub fn of_weights(provenance: Provenance, weights: &Tensors) -> Self {
        let mut kept = Tensors::default();
        for (name, shape, numbers) in weights.iter().filter(|(name, ..)| !name.starts_with("critic.")) {
            // Shape and numbers come from a tensor, so the insertion cannot fail.
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

    /// The algorithm's state beside arrays.
    ///
    /// # Errors
    /// If the checkpoint holds weights alone.
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

    /// A checkpoint of this one's weights alone, for decisions.
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
    /// If the networks are not dense layers, or are damaged.
    pub fn actor(&self) -> Result<MlpActor, CheckpointError> {
        match &self.header.network {
            NetworkKind::Mlp { activation, n_agents } => {
                Ok(MlpActor::from_tensors(&self.weights(), *n_agents, *activation)?)
            }
            NetworkKind::Own { name } => Err(CheckpointError::Kind { name: name.clone() }),
        }
    }

    /// The bytes of the checkpoint's file, which are equal for equal checkpoints.
    ///
    /// # Errors
    /// If the header is too large.
    pub fn to_bytes(&self) -> Result<Vec<u8>, CheckpointError> {
        let header = serde_json::to_string(&self.header);
        let header = header.map_err(|error| CheckpointError::Header { reason: error.to_string() })?;
        Ok(self.tensors.to_safetensors((KEY, &header))?)
    }

    /// Reads a checkpoint from a file's bytes.
    ///
    /// # Errors
    /// If the file is damaged, something else, or of another version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CheckpointError> {
        let (tensors, header) = Tensors::from_safetensors(bytes, KEY)?;
        let header = header.ok_or(CheckpointError::NoHeader)?;
        let damaged = |error: serde_json::Error| CheckpointError::Header { reason: error.to_string() };
        // The format is checked first, because another version's header may have other fields.
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
