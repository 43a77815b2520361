//! Decisions: from observations to logits, and from logits to actions.

use std::fmt;

use thiserror::Error;

/// An actor, which turns an observation into logits, one number per action. An action's probability is proportional to the
/// exponential of its logit. Threads share an actor.
pub trait Actor: fmt::Debug + Send + Sync {
    /// Writes the logits of `agent` for one observation. `scratch` is room for intermediate numbers.
    ///
    /// # Errors
    /// If the network cannot be evaluated, which does not happen for networks of this program.
    fn logits(
        &self,
        agent: usize,
        observation: &[f32],
        scratch: &mut Scratch,
        logits: &mut [f32],
    ) -> Result<(), ActorError>;
}

/// Why an actor gives no decision.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ActorError {
    /// Logits that make no probabilities.
    #[error("the logit of action {action} is {found}, expected a number")]
    NotANumber {
        /// An action that is allowed.
        action: usize,
        /// The logit of the action.
        found: f32,
    },
    /// A network that cannot be evaluated.
    #[error("the network cannot be evaluated: {reason}")]
    Failed {
        /// Why it cannot be evaluated, in words.
        reason: String,
    },
}

/// Room for intermediate numbers, kept between decisions.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    pub(super) from: Vec<f32>,
    pub(super) to: Vec<f32>,
}

/// An actor that draws uniformly from the allowed actions: the control that every learner is measured against.
#[derive(Clone, Copy, Debug, Default)]
pub struct UniformActor;

impl Actor for UniformActor {
    fn logits(
        &self,
        _agent: usize,
        _observation: &[f32],
        _scratch: &mut Scratch,
        logits: &mut [f32],
    ) -> Result<(), ActorError> {
        logits.fill(0.0);
        Ok(())
    }
}

/// Turns logits into probabilities of the allowed actions, in place; masked actions have exactly 0.
///
/// If all actions are masked, all probabilities are 0. Masked logits do not matter; a logit of −∞ gives probability 0.
///
/// # Errors
/// If the logit of an allowed action is not a number or +∞, or those of all are −∞.
pub fn masked_softmax(logits: &mut [f32], mask: &[bool]) -> Result<(), ActorError> {
    let mut largest = f32::NEG_INFINITY;
    let mut first = None;
    for (action, (logit, _)) in logits.iter().zip(mask).enumerate().filter(|(_, (_, allowed))| **allowed) {
        if logit.is_nan() || *logit == f32::INFINITY {
            return Err(ActorError::NotANumber { action, found: *logit });
        }
        first = first.or(Some(action));
        largest = largest.max(*logit);
    }
    if let (Some(action), f32::NEG_INFINITY) = (first, largest) {
        return Err(ActorError::NotANumber { action, found: largest });
    }
    let mut sum = 0.0;
    for (logit, allowed) in logits.iter_mut().zip(mask) {
        *logit = if *allowed { (*logit - largest).exp() } else { 0.0 };
        sum += *logit;
    }
    if sum > 0.0 {
        for probability in logits {
            *probability /= sum;
        }
    }
    Ok(())
}

/// The action that a uniform number in [0, 1) draws from probabilities. An action of probability 0 is drawn only if all are 0.
pub fn draw(probabilities: &[f32], uniform: f64) -> usize {
    let total: f64 = probabilities.iter().map(|probability| f64::from(*probability)).sum();
    let mut left = uniform * total;
    let mut last = 0;
    for (action, probability) in probabilities.iter().enumerate() {
        if *probability > 0.0 {
            last = action;
            left -= f64::from(*probability);
            if left < 0.0 {
                break;
            }
        }
    }
    last
}

/// The most probable action; of equals, the first.
pub fn most_probable(probabilities: &[f32]) -> usize {
    let mut best = 0;
    for (action, probability) in probabilities.iter().enumerate() {
        if *probability > probabilities[best] {
            best = action;
        }
    }
    best
}

/// A way to choose an action from probabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "train", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// An action drawn from the probabilities.
    #[default]
    Sampled,
    /// The most probable action.
    MostProbable,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_those_of_the_formula() {
        let mut logits = [1.0, 50.0, 2.0, 3.0];
        masked_softmax(&mut logits, &[true, false, true, true]).unwrap();
        let sum = 1f32.exp() + 2f32.exp() + 3f32.exp();
        for (probability, expected) in
            logits.iter().zip([1f32.exp() / sum, 0.0, 2f32.exp() / sum, 3f32.exp() / sum])
        {
            assert!((probability - expected).abs() < 1e-6);
        }
        assert_eq!(logits[1], 0.0);
        let mut huge = [1e30, 0.0];
        masked_softmax(&mut huge, &[true, true]).unwrap();
        assert_eq!(huge, [1.0, 0.0]);
        let mut none = [1.0, 2.0];
        masked_softmax(&mut none, &[false, false]).unwrap();
        assert_eq!(none, [0.0, 0.0]);
    }

    #[test]
    fn logits_that_make_no_probabilities_are_refused() {
        let (nan, most, least) = (f32::NAN, f32::INFINITY, f32::NEG_INFINITY);
        let said = |mut logits: [f32; 3], mask: [bool; 3]| {
            masked_softmax(&mut logits, &mask).map(|()| logits).map_err(|error| error.to_string())
        };
        assert_eq!(said([nan, 1.0, least], [false, true, true]), Ok([0.0, 1.0, 0.0]));
        let expected = |action: usize, found: &str| {
            Err(format!("the logit of action {action} is {found}, expected a number"))
        };
        assert_eq!(said([1.0, nan, 2.0], [true; 3]), expected(1, "NaN"));
        assert_eq!(said([1.0, 2.0, most], [true; 3]), expected(2, "inf"));
        assert_eq!(said([5.0, least, least], [false, true, true]), expected(1, "-inf"));
    }

    #[test]
    fn draws_follow_the_probabilities() {
        let probabilities = [0.0, 0.25, 0.0, 0.75, 0.0];
        let mut counts = [0; 5];
        for draw_number in 0..1000 {
            counts[draw(&probabilities, f64::from(draw_number) / 1000.0)] += 1;
        }
        assert_eq!(counts, [0, 250, 0, 750, 0]);
        assert_eq!(draw(&[0.0, 0.3, 0.3, 0.0], 1.0 - 1e-17), 2, "rounding never draws what cannot happen");
        assert_eq!(most_probable(&[0.1, 0.4, 0.4]), 1);
    }
}
