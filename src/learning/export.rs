//! This program's weights for other tools.

use super::checkpoint::{Checkpoint, CheckpointError, NetworkKind};
use super::gangs::SCORER;
use super::network::Activation;
use super::onnx;

/// The network of a checkpoint as an ONNX file, with the header as metadata.
///
/// # Errors
/// If it is no dense layers, or damaged.
pub fn to_onnx(checkpoint: &Checkpoint) -> Result<Vec<u8>, CheckpointError> {
    let layers = match &checkpoint.header.network {
        NetworkKind::Mlp { activation, n_agents } => (*activation, *n_agents),
        NetworkKind::Own { name } if name == SCORER => (Activation::Tanh, 1),
        NetworkKind::Own { name } => return Err(CheckpointError::Kind { name: name.clone() }),
    };
    let header = serde_json::to_string(&checkpoint.slim().header);
    let header = header.map_err(|error| CheckpointError::Header { reason: error.to_string() })?;
    Ok(onnx::write(&checkpoint.weights(), layers, &header)?)
}
