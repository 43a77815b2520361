//! Networks from files: this program's weights, or an ONNX model.

use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;

use crate::actor::Actor;
use crate::checkpoint::{Checkpoint, CheckpointError};
#[cfg(feature = "onnx")]
use crate::onnx::OnnxActor;
use crate::onnx::{OnnxError, is_onnx};

/// What a file of weights holds.
#[derive(Clone, Debug)]
pub enum Trained {
    /// Weights of this program.
    Own(Box<Checkpoint>),
    /// An ONNX model.
    #[cfg(feature = "onnx")]
    Onnx(OnnxActor),
}

/// One end of an agent's network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// As complaints name it.
    pub name: String,
    /// Numbers that go through it.
    pub length: usize,
}

/// Both ends of an agent's network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports {
    /// The input, which takes the observation.
    pub observation: Port,
    /// The output, which gives a logit for each action.
    pub logits: Port,
}

/// A file that decides nothing here.
#[derive(Debug, Error)]
pub enum TrainedError {
    /// No weights of this program, or damaged ones.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// No ONNX model that decides.
    #[error(transparent)]
    Onnx(#[from] OnnxError),
    /// A network of another kind.
    #[error("its network is not a {expected}")]
    Kind {
        /// The kind of network that is expected.
        expected: &'static str,
    },
    /// Another number of agents.
    #[error("it has networks for {found} agents, expected {expected}")]
    Agents {
        /// How many it has.
        found: usize,
        /// How many decide.
        expected: usize,
    },
    /// A network of other sizes.
    #[error("its {place} has {found} numbers, expected {expected}")]
    Length {
        /// Which end of which network.
        place: String,
        /// The numbers that go through it.
        found: usize,
        /// The number that would fit, in words.
        expected: String,
    },
}

impl Port {
    /// Is it of this length?
    ///
    /// # Errors
    /// If not.
    pub fn expect(&self, length: usize, of: &str) -> Result<(), TrainedError> {
        if self.length == length { Ok(()) } else { Err(self.other_than(format!("{length}: {of}"))) }
    }

    /// The complaint that it has not what is expected.
    pub fn other_than(&self, expected: impl Into<String>) -> TrainedError {
        TrainedError::Length { place: self.name.clone(), found: self.length, expected: expected.into() }
    }
}

impl Trained {
    /// Reads a file's bytes. An ONNX file is told by its name, or by how it begins.
    ///
    /// # Errors
    /// If they are damaged, something else, or of another version.
    pub fn read(name: &str, bytes: &[u8]) -> Result<Self, TrainedError> {
        if is_onnx(name, bytes) {
            #[cfg(feature = "onnx")]
            return Ok(Self::Onnx(OnnxActor::from_bytes(bytes)?));
            #[cfg(not(feature = "onnx"))]
            return Err(OnnxError::NotBuilt.into());
        }
        Ok(Self::Own(Box::new(Checkpoint::from_bytes(bytes)?)))
    }

    /// The specification of the training that made it; null of an ONNX model that says nothing of it.
    pub fn spec(&self) -> &Value {
        match self {
            Self::Own(checkpoint) => &checkpoint.header.spec,
            #[cfg(feature = "onnx")]
            Self::Onnx(actor) => actor.spec(),
        }
    }

    /// The actor, with both ends of each agent's network.
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

    /// The actor of agents that see so many numbers and have so many actions, each.
    ///
    /// # Errors
    /// If it is of others.
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
