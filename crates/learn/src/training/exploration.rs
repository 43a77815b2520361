//! Explorations: rules that take other actions than those drawn from the network's probabilities.

use std::fmt;

use serde_json::Value;

use super::TrainingError;
use crate::vectorized::Moment;
use apportion::workload::random::Stream;

/// A rule that replaces drawn actions in training, such as a system's own injection of samples.
pub trait Exploration: fmt::Debug + Send {
    /// Notes the beginning of a round.
    fn begin_round(&mut self, stream: &mut Stream) {
        let _ = stream;
    }

    /// The action to take in the place of `drawn`, which must be an allowed one.
    fn choose(&mut self, moment: &Moment, drawn: usize, stream: &mut Stream) -> usize;

    /// The state of the exploration, for a checkpoint.
    fn state(&self) -> Value {
        Value::Null
    }

    /// Restores the state of an exploration.
    ///
    /// # Errors
    /// If the state is another exploration's.
    fn restore(&mut self, state: &Value) -> Result<(), TrainingError> {
        let _ = state;
        Ok(())
    }
}

/// The exploration that takes the drawn actions.
#[derive(Clone, Copy, Debug, Default)]
pub struct AsDrawn;

impl Exploration for AsDrawn {
    fn choose(&mut self, _moment: &Moment, drawn: usize, _stream: &mut Stream) -> usize {
        drawn
    }
}

/// The exploration that takes, with a chance, the action of `correct`, if there is one and it is allowed; otherwise the drawn
/// action.
#[derive(Clone, Copy, Debug)]
pub struct Corrected<F> {
    /// The probability, ε.
    pub chance: f64,
    /// A function that gives the action to take in a plainly bad moment, and none in others.
    pub correct: F,
}

impl<F: Fn(&Moment) -> Option<usize> + fmt::Debug + Send> Exploration for Corrected<F> {
    fn choose(&mut self, moment: &Moment, drawn: usize, stream: &mut Stream) -> usize {
        let tried = stream.uniform() < self.chance;
        let correction = if tried { (self.correct)(moment) } else { None };
        correction.filter(|action| moment.mask.get(*action) == Some(&true)).unwrap_or(drawn)
    }
}

/// The exploration that takes, with a chance, a uniformly drawn allowed action.
#[derive(Clone, Copy, Debug)]
pub struct EpsilonGreedy {
    /// The probability, ε.
    pub chance: f64,
}

impl Exploration for EpsilonGreedy {
    fn choose(&mut self, moment: &Moment, drawn: usize, stream: &mut Stream) -> usize {
        if stream.uniform() >= self.chance {
            return drawn;
        }
        let n_allowed = moment.mask.iter().filter(|allowed| **allowed).count();
        let chosen = stream.below(n_allowed.max(1));
        let mut allowed = (0..moment.mask.len()).filter(|action| moment.mask[*action]);
        allowed.nth(chosen).unwrap_or(drawn)
    }
}
