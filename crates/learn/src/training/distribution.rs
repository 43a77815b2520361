//! Probabilities of actions as functions of logits, with gradients.

use candle_core::{D, Device, Result, Tensor};

/// The number that is added to a masked action's logit, which makes its probability and its gradient exactly 0.
const MASKED: f32 = -1e9;

/// Numbers to add to logits, [rows × actions], so that masked actions are never taken.
///
/// # Errors
/// If there are not rows × actions flags.
pub fn penalty(mask: &[bool], n_actions: usize) -> Result<Tensor> {
    let numbers: Vec<f32> = mask.iter().map(|allowed| if *allowed { 0.0 } else { MASKED }).collect();
    Tensor::from_vec(numbers, (mask.len() / n_actions, n_actions), &Device::Cpu)
}

/// Logarithms of the probabilities, [rows × actions]; those of masked actions are far below all others.
///
/// # Errors
/// If the shapes do not fit.
pub fn log_probabilities(logits: &Tensor, penalty: &Tensor) -> Result<Tensor> {
    let masked = (logits + penalty)?;
    let shifted = masked.broadcast_sub(&masked.max_keepdim(D::Minus1)?.detach())?;
    let sum = shifted.exp()?.sum_keepdim(D::Minus1)?.log()?;
    shifted.broadcast_sub(&sum)
}

/// The entropy −Σ p log p of each row, `[rows]`, in nats.
///
/// # Errors
/// If the library fails.
pub fn entropy(log_probabilities: &Tensor) -> Result<Tensor> {
    (log_probabilities.exp()? * log_probabilities)?.sum(D::Minus1)?.neg()
}

/// The number of each row at its action: [rows × actions] → `[rows]`.
///
/// # Errors
/// If there are not as many actions as rows.
pub fn of_actions(numbers: &Tensor, actions: &[usize]) -> Result<Tensor> {
    let indices: Vec<u32> = actions.iter().map(|action| u32::try_from(*action).unwrap_or(u32::MAX)).collect();
    let indices = Tensor::from_vec(indices, (actions.len(), 1), &Device::Cpu)?;
    numbers.gather(&indices, 1)?.squeeze(1)
}

#[cfg(test)]
mod tests {
    use candle_core::Var;

    use super::*;
    use crate::actor::masked_softmax;

    #[test]
    fn probabilities_are_those_that_deciding_uses() {
        let mask = [true, false, true, true, true, true];
        let logits = Tensor::new(&[[1f32, 9.0, -2.0], [0.5, 40.0, 3.0]], &Device::Cpu).unwrap();
        let logs = log_probabilities(&logits, &penalty(&mask, 3).unwrap()).unwrap();
        let found = logs.exp().unwrap().to_vec2::<f32>().unwrap();
        for (row, found) in found.iter().enumerate() {
            let mut expected = logits.to_vec2::<f32>().unwrap()[row].clone();
            masked_softmax(&mut expected, &mask[3 * row..3 * row + 3]).unwrap();
            for (found, expected) in found.iter().zip(expected) {
                assert!((found - expected).abs() < 1e-6);
            }
        }
        assert_eq!(found[0][1], 0.0);
        let taken = of_actions(&logs, &[2, 1]).unwrap().to_vec1::<f32>().unwrap();
        assert!((taken[0] + 3.0 + (1.0 + (-3f32).exp()).ln()).abs() < 1e-5, "{taken:?}");
    }

    #[test]
    fn a_masked_action_has_neither_entropy_nor_gradient() {
        let logits = Var::new(&[[0.3f32, 7.0, 0.3]], &Device::Cpu).unwrap();
        let logs = log_probabilities(&logits, &penalty(&[true, false, true], 3).unwrap()).unwrap();
        let entropies = entropy(&logs).unwrap();
        assert!((entropies.to_vec1::<f32>().unwrap()[0] - 2f32.ln()).abs() < 1e-6);
        let loss =
            (entropies.sum_all().unwrap() + of_actions(&logs, &[0]).unwrap().sum_all().unwrap()).unwrap();
        let gradients = loss.backward().unwrap();
        let slopes = gradients.get(&logits).unwrap().to_vec2::<f32>().unwrap();
        assert_eq!(slopes[0][1], 0.0);
        assert!((slopes[0][0] - 0.5).abs() < 1e-6 && (slopes[0][2] + 0.5).abs() < 1e-6, "{slopes:?}");
    }
}
