//! Trained networks from files: this program's weights, or an ONNX model.

use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;

use crate::actor::Actor;
use crate::checkpoint::{Checkpoint, CheckpointError};
#[cfg(feature = "onnx")]
use crate::onnx::OnnxActor;
use crate::onnx::{OnnxError, is_onnx};

/// A trained network from a file.
#[derive(Clone, Debug)]
pub enum Trained {
    /// This program's weights.
    Own(Box<Checkpoint>),
    /// An ONNX model.
    #[cfg(feature = "onnx")]
    Onnx(OnnxActor),
}

/// The input or the output of an agent's network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Name of the input or output in error messages.
    pub name: String,
    /// The number of its numbers.
    pub length: usize,
}

/// The input and the output of an agent's network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports {
    /// The input, which takes the observation.
    pub observation: Port,
    /// The output, which gives a logit for each action.
    pub logits: Port,
}

/// Why a file gives no usable network.
#[derive(Debug, Error)]
pub enum TrainedError {
    /// The weights are not this program's, or are damaged.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The ONNX model cannot decide.
    #[error(transparent)]
    Onnx(#[from] OnnxError),
    /// The network is of another kind.
    #[error("its network is not a {expected}")]
    Kind {
        /// The kind of network that is expected.
        expected: &'static str,
    },
    /// The file has networks for another number of agents.
    #[error("it has networks for {found} agents, expected {expected}")]
    Agents {
        /// The number of agents in the file.
        found: usize,
        /// The number of agents that decide.
        expected: usize,
    },
    /// A network has other sizes.
    #[error("its {place} has {found} numbers, expected {expected}")]
    Length {
        /// Name of the input or output.
        place: String,
        /// The number of its numbers.
        found: usize,
        /// The number that would fit, in words.
        expected: String,
    },
}

impl Port {
    /// Checks the length; `of` describes the expected numbers.
    ///
    /// # Errors
    /// If the length is another.
    pub fn expect(&self, length: usize, of: &str) -> Result<(), TrainedError> {
        if self.length == length { Ok(()) } else { Err(self.other_than(format!("{length}: {of}"))) }
    }

    /// The error that the length is not the expected one.
    pub fn other_than(&self, expected: impl Into<String>) -> TrainedError {
        TrainedError::Length { place: self.name.clone(), found: self.length, expected: expected.into() }
    }
}

impl Trained {
    /// Reads a network from a file's bytes. An ONNX file is recognized by its name or by its first bytes.
    ///
    /// # Errors
    /// If the file is damaged, something else, or of another version.
    pub fn read(name: &str, bytes: &[u8]) -> Result<Self, TrainedError> {
        if is_onnx(name, bytes) {
            #[cfg(feature = "onnx")]
            return Ok(Self::Onnx(OnnxActor::from_bytes(bytes)?));
            #[cfg(not(feature = "onnx"))]
            return Err(OnnxError::NotBuilt.into());
        }
        Ok(Self::Own(Box::new(Checkpoint::from_bytes(bytes)?)))
    }

    /// The specification of the training that made the network; null for an ONNX model without one.
    pub fn spec(&self) -> &Value {
        match self {
            Self::Own(checkpoint) => &checkpoint.header.spec,
            #[cfg(feature = "onnx")]
            Self::Onnx(actor) => actor.spec(),
        }
    }

    /// The actor, with the input and the output of each agent's network.
    ///
    /// # Errors
    /// If the weights are of a network that its system defines itself.
    pub fn actor(&self) -> Result<(Arc<dyn Actor>, Vec<Ports>), TrainedError> {
        let port = |name: String, length: usize| Port { name, length };
        match self {
            Self::Own(checkpoint) => {
                let actor = checkpoint.actor()?;
                let ports = actor.networks().iter().enumerate().map(|(agent, network)| Ports {
                    observation: port(format!("input of `actor.{agent}`"), network.n_inputs()),
                    logits: port(format!("output of `actor.{agent}`"), network.n_outputs()),
                });
                let ports = ports.collect();
                Ok((Arc::new(actor), ports))
            }
            #[cfg(feature = "onnx")]
            Self::Onnx(actor) => {
                let ports = actor.ports().map(|[(input, n_inputs), (output, n_outputs)]| Ports {
                    observation: port(format!("input `{input}`"), n_inputs),
                    logits: port(format!("output `{output}`"), n_outputs),
                });
                let ports = ports.collect();
                Ok((Arc::new(actor.clone()), ports))
            }
        }
    }

    /// The actor of agents with these sizes: (length of the observation, number of actions) of each.
    ///
    /// # Errors
    /// If its networks have other sizes, or another number of agents.
    pub fn actor_of(&self, sizes: &[(usize, usize)]) -> Result<Arc<dyn Actor>, TrainedError> {
        let (actor, ports) = self.actor()?;
        if ports.len() != sizes.len() {
            return Err(TrainedError::Agents { found: ports.len(), expected: sizes.len() });
        }
        for (ports, (n_seen, n_actions)) in ports.iter().zip(sizes) {
            ports.observation.expect(*n_seen, "as many as are seen")?;
            ports.logits.expect(*n_actions, "one for each action")?;
        }
        Ok(actor)
    }
}
