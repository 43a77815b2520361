//! The interface of all algorithms: trainings that can be updated, saved and restored.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::TrainingError;
use super::model::Model;
use crate::tensors::Tensors;
use crate::vectorized::Finished;

/// A training in progress.
pub trait Learner: fmt::Debug + Send {
    /// Makes one update: collects experience and learns from it.
    ///
    /// # Errors
    /// If the environment breaks its contract, or the numbers are no longer finite.
    fn update(&mut self) -> Result<Progress, TrainingError>;

    /// The networks with their present weights.
    fn model(&self) -> &dyn Model;

    /// Updates made so far.
    fn n_updates(&self) -> u64;

    /// Decisions taken in training so far.
    fn n_decisions(&self) -> u64;

    /// (samples, capacity) of a replay that is not full yet, before which nothing is learned; none otherwise.
    fn filling(&self) -> Option<(usize, usize)> {
        None
    }

    /// The whole state, from which the training can go on bit for bit.
    ///
    /// # Errors
    /// If the library fails.
    fn save(&self) -> Result<Saved, TrainingError>;

    /// Goes on where another training of the same kind was saved.
    ///
    /// # Errors
    /// If the state is of another kind of training.
    fn restore(&mut self, saved: &Saved) -> Result<(), TrainingError>;
}

/// The outcome of one update.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// Updates made so far, this one included.
    pub n_updates: u64,
    /// Decisions taken in training so far.
    pub n_decisions: u64,
    /// The episodes that ended in the update.
    pub finished: Vec<Finished>,
    /// Figures of the algorithm, by name, such as the loss or the entropy.
    pub figures: Vec<(&'static str, f64)>,
}

impl Progress {
    /// The mean total reward of the episodes that ended, if any did.
    pub fn mean_return(&self) -> Option<f64> {
        let n = self.finished.len();
        (n > 0).then(|| self.finished.iter().map(|episode| episode.total_reward).sum::<f64>() / n as f64)
    }
}

/// The saved state of a training between two updates.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved {
    /// Weights under `model.`, Adam's means under `adam.`, and the other arrays of the algorithm.
    pub tensors: Tensors,
    /// Everything else: random streams, counters, episodes under way.
    pub state: serde_json::Value,
}

impl Saved {
    /// A saved state of these tensors and this further state.
    ///
    /// # Errors
    /// If the state cannot be written.
    pub(super) fn new(tensors: Tensors, state: &impl Serialize) -> Result<Self, TrainingError> {
        let state = serde_json::to_value(state);
        let state = state.map_err(|error| TrainingError::Checkpoint { reason: error.to_string() })?;
        Ok(Self { tensors, state })
    }

    /// The further state, as the algorithm's type.
    ///
    /// # Errors
    /// If the state is another algorithm's.
    pub(super) fn state<S: for<'de> Deserialize<'de>>(&self) -> Result<S, TrainingError> {
        S::deserialize(&self.state).map_err(|error| TrainingError::Checkpoint { reason: error.to_string() })
    }
}

/// A learner of any algorithm in any environment.
pub type AnyLearner = Box<dyn Learner>;

impl Learner for AnyLearner {
    fn update(&mut self) -> Result<Progress, TrainingError> {
        (**self).update()
    }

    fn model(&self) -> &dyn Model {
        (**self).model()
    }

    fn n_updates(&self) -> u64 {
        (**self).n_updates()
    }

    fn n_decisions(&self) -> u64 {
        (**self).n_decisions()
    }

    fn filling(&self) -> Option<(usize, usize)> {
        (**self).filling()
    }

    fn save(&self) -> Result<Saved, TrainingError> {
        (**self).save()
    }

    fn restore(&mut self, saved: &Saved) -> Result<(), TrainingError> {
        (**self).restore(saved)
    }
}
