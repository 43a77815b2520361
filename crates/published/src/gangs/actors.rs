//! Networks that decide gang by gang, read from their weights.

use std::sync::Arc;

use super::features::N_FEATURES;
use super::observation::{N_WINDOW_ROWS, N_WINDOW_TYPES, ObservationKind};
use apportion_learn::actor::{Actor, ActorError, Scratch};
use apportion_learn::checkpoint::{CheckpointError, NetworkKind};
use apportion_learn::network::{Activation, Mlp, NetworkError};
use apportion_learn::tensors::Tensors;
use apportion_learn::trained::{Ports, Trained, TrainedError};

/// The kind, in files of weights, of networks that score one row of features at a time.
pub const SCORER: &str = "gangs_scorer";

/// A network that scores each row of features by itself, a logit each.
#[derive(Clone, Debug, PartialEq)]
pub struct Scorer(Mlp);

impl Scorer {
    /// The scorer of the tensors `actor.0`, with tanh between its layers.
    ///
    /// # Errors
    /// If the network is damaged, or does not map [`N_FEATURES`] numbers to one.
    pub fn from_tensors(tensors: &Tensors) -> Result<Self, NetworkError> {
        let network = Mlp::from_tensors(tensors, "actor.0", Activation::Tanh)?;
        let (inputs, outputs) = (network.n_inputs(), network.n_outputs());
        if (inputs, outputs) != (N_FEATURES, 1) {
            return Err(NetworkError::Shape {
                name: "actor.0".to_owned(),
                shape: vec![outputs, inputs],
                expected: format!("one output of {N_FEATURES} inputs, as a scorer of rows has"),
            });
        }
        Ok(Self(network))
    }

    /// The score of one row.
    pub fn score(&self, row: &[f32], scratch: &mut Scratch) -> f32 {
        let mut score = [0.0];
        self.0.forward(row, scratch, &mut score);
        score[0]
    }
}

impl Actor for Scorer {
    fn logits(
        &self,
        _agent: usize,
        observation: &[f32],
        scratch: &mut Scratch,
        logits: &mut [f32],
    ) -> Result<(), ActorError> {
        for (row, logit) in observation.chunks_exact(N_FEATURES).zip(logits) {
            *logit = self.score(row, scratch);
        }
        Ok(())
    }
}

/// An actor that calls a network of one row for each row of an observation.
#[cfg(feature = "onnx")]
#[derive(Clone, Debug)]
struct RowByRow(Arc<dyn Actor>);

#[cfg(feature = "onnx")]
impl Actor for RowByRow {
    fn logits(
        &self,
        agent: usize,
        observation: &[f32],
        scratch: &mut Scratch,
        logits: &mut [f32],
    ) -> Result<(), ActorError> {
        let mut rows = observation.chunks_exact(N_FEATURES).zip(logits.chunks_exact_mut(1));
        rows.try_for_each(|(row, logit)| self.0.logits(agent, row, scratch, logit))
    }
}

/// The scorer in a file of weights.
///
/// # Errors
/// If the file holds something else.
pub fn read_scorer(trained: &Trained) -> Result<Arc<dyn Actor>, TrainedError> {
    match trained {
        Trained::Own(checkpoint) => match &checkpoint.header.network {
            NetworkKind::Own { name } if name == SCORER => {
                let scorer = Scorer::from_tensors(&checkpoint.weights());
                Ok(Arc::new(scorer.map_err(CheckpointError::from)?))
            }
            _ => Err(TrainedError::Kind { expected: "scorer of jobs on worker types" }),
        },
        #[cfg(feature = "onnx")]
        Trained::Onnx(_) => Ok(Arc::new(RowByRow(trained.actor_of(&[(N_FEATURES, 1)])?))),
    }
}

/// The network of a window in a file of weights, and its kind of observation.
///
/// # Errors
/// If the file holds something else.
pub fn read_window(trained: &Trained) -> Result<(Arc<dyn Actor>, ObservationKind), TrainedError> {
    let (actor, ports) = trained.actor()?;
    let [Ports { observation, logits }] = &ports[..] else {
        return Err(TrainedError::Agents { found: ports.len(), expected: 1 });
    };
    let n_slots = observation.length / N_WINDOW_ROWS;
    if n_slots == 0 || !observation.length.is_multiple_of(N_WINDOW_ROWS) {
        return Err(observation.other_than(format!("{N_WINDOW_ROWS} for each job of a window")));
    }
    let window = format!("{N_WINDOW_TYPES} for each of {n_slots} jobs, and one to stop");
    logits.expect(n_slots * N_WINDOW_TYPES + 1, &window)?;
    Ok((actor, ObservationKind::Window { n_slots }))
}
