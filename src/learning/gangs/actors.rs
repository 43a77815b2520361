//! Networks that decide gang by gang, from their weights.

use std::sync::Arc;

use thiserror::Error;

use super::features::N_FEATURES;
use super::look::{N_WINDOW_ROWS, N_WINDOW_TYPES, Sight};
use crate::learning::actor::{Actor, Scratch};
use crate::learning::checkpoint::{Checkpoint, CheckpointError, NetworkKind};
use crate::learning::network::{Activation, Mlp, NetworkError};
use crate::learning::tensors::Tensors;

/// The name in files of networks that score one row of features at a time.
pub const SCORER: &str = "gangs_scorer";

/// One network for every row of features: a logit each.
#[derive(Clone, Debug, PartialEq)]
pub struct Scorer(Mlp);

impl Scorer {
    /// The network `actor.0`, with tanh between its layers.
    ///
    /// # Errors
    /// If it is damaged, or does not make one number of [`N_FEATURES`].
    pub fn from_tensors(tensors: &Tensors) -> Result<Self, GangActorError> {
        let network = Mlp::from_tensors(tensors, "actor.0", Activation::Tanh)?;
        let sizes = (network.n_inputs(), network.n_outputs());
        if sizes == (N_FEATURES, 1) { Ok(Self(network)) } else { Err(GangActorError::of(sizes, "scorer")) }
    }

    /// The score of one row.
    pub fn score(&self, row: &[f32], scratch: &mut Scratch) -> f32 {
        let mut score = [0.0];
        self.0.forward(row, scratch, &mut score);
        score[0]
    }
}

impl Actor for Scorer {
    fn logits(&self, _agent: usize, observation: &[f32], scratch: &mut Scratch, logits: &mut [f32]) {
        for (row, logit) in observation.chunks_exact(N_FEATURES).zip(logits) {
            *logit = self.score(row, scratch);
        }
    }
}

/// Weights that decide nothing here.
#[derive(Debug, Error)]
pub enum GangActorError {
    /// The file is no checkpoint, or a damaged one.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// Tensors that make no network.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A network of other sizes.
    #[error("its network makes {outputs} numbers of {inputs}, which is not what a {expected} does")]
    Sizes {
        /// Numbers that it takes.
        inputs: usize,
        /// Numbers that it gives.
        outputs: usize,
        /// What it ought to be.
        expected: &'static str,
    },
    /// A network of another kind.
    #[error("its network is not a {expected}")]
    Kind {
        /// What it ought to be.
        expected: &'static str,
    },
}

impl GangActorError {
    fn of((inputs, outputs): (usize, usize), expected: &'static str) -> Self {
        Self::Sizes { inputs, outputs, expected }
    }
}

/// The scorer in a file of weights.
///
/// # Errors
/// If the file holds something else.
pub fn read_scorer(checkpoint: &Checkpoint) -> Result<Scorer, GangActorError> {
    match &checkpoint.header.network {
        NetworkKind::Own { name } if name == SCORER => Scorer::from_tensors(&checkpoint.weights()),
        _ => Err(GangActorError::Kind { expected: "scorer of jobs on worker types" }),
    }
}

/// The network of a window in a file of weights, and how it looks.
///
/// # Errors
/// If the file holds something else.
pub fn read_window(checkpoint: &Checkpoint) -> Result<(Arc<dyn Actor>, Sight), GangActorError> {
    let expected = "network over a window of jobs";
    if !matches!(checkpoint.header.network, NetworkKind::Mlp { n_agents: 1, .. }) {
        return Err(GangActorError::Kind { expected });
    }
    let actor = checkpoint.actor()?;
    let network = &actor.networks()[0];
    let n_slots = network.n_inputs() / N_WINDOW_ROWS;
    let sizes = (network.n_inputs(), network.n_outputs());
    if n_slots == 0 || sizes != (n_slots * N_WINDOW_ROWS, n_slots * N_WINDOW_TYPES + 1) {
        return Err(GangActorError::of(sizes, expected));
    }
    Ok((Arc::new(actor), Sight::Window { n_slots }))
}
