//! Export of weights to ONNX, for other tools.

use crate::dual_agent::network::{NAME, SetActor, options_of};
use crate::dual_agent::onnx::{Sets, write_sets};
use crate::dual_agent::player::episode_of;
use crate::gangs::SCORER;
use crate::rounds;
use apportion_learn::checkpoint::{Checkpoint, CheckpointError, NetworkKind};
use apportion_learn::network::Activation;
use apportion_learn::onnx;

/// The network of a checkpoint as an ONNX file, with the header as metadata.
///
/// # Errors
/// If the network is of another kind than dense layers, a scorer or networks over sets, or is damaged.
pub fn to_onnx(checkpoint: &Checkpoint) -> Result<Vec<u8>, CheckpointError> {
    let header = serde_json::to_string(&checkpoint.slim().header);
    let header = header.map_err(|error| CheckpointError::Header { reason: error.to_string() })?;
    let layers = match &checkpoint.header.network {
        NetworkKind::Mlp { activation, n_agents } => (*activation, *n_agents),
        NetworkKind::Own { name } if name == SCORER => (Activation::Tanh, 1),
        NetworkKind::Own { name } if name == NAME => {
            // Reading the network as the program runs it reports tensors that do not fit together.
            SetActor::from_checkpoint(checkpoint)?;
            let (communicates, rule) = options_of(checkpoint)?;
            let spec = &checkpoint.header.spec;
            let episode = rounds::episode_of(spec)?.map_or_else(|| episode_of(spec), Ok)?;
            let sets = Sets { tensors: &checkpoint.weights(), communicates, rule, episode };
            return Ok(write_sets(&sets, &header)?);
        }
        NetworkKind::Own { name } => return Err(CheckpointError::Kind { name: name.clone() }),
    };
    Ok(onnx::write(&checkpoint.weights(), layers, &header)?)
}
