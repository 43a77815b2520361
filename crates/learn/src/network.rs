//! Dense layers for decisions, one observation at a time, without a library.

use thiserror::Error;

use crate::actor::{Actor, ActorError, Scratch};
use crate::tensors::{Tensors, TensorsError};

/// An activation, applied to a layer's sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "train", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// Hyperbolic tangent.
    #[default]
    Tanh,
    /// The positive part, max(0, x).
    Relu,
}

impl Activation {
    fn apply(self, numbers: &mut [f32]) {
        match self {
            Self::Tanh => numbers.iter_mut().for_each(|number| *number = number.tanh()),
            Self::Relu => numbers.iter_mut().for_each(|number| *number = number.max(0.0)),
        }
    }
}

/// One layer: y = W x + b.
#[derive(Clone, Debug, PartialEq)]
struct Dense {
    /// Weights [inputs × outputs], so that one input's weights lie together.
    weights: Vec<f32>,
    /// Bias [outputs].
    bias: Vec<f32>,
}

impl Dense {
    fn forward(&self, input: &[f32], output: &mut Vec<f32>) {
        output.clear();
        output.extend_from_slice(&self.bias);
        for (value, weights) in input.iter().zip(self.weights.chunks_exact(self.bias.len())) {
            if *value != 0.0 {
                for (sum, weight) in output.iter_mut().zip(weights) {
                    *sum += value * weight;
                }
            }
        }
    }
}

/// Dense layers with an activation after each but the last.
#[derive(Clone, Debug, PartialEq)]
pub struct Mlp {
    layers: Vec<Dense>,
    n_inputs: usize,
    activation: Activation,
}

/// Why tensors make no network of dense layers.
#[derive(Debug, Error)]
pub enum NetworkError {
    /// A tensor is missing.
    #[error(transparent)]
    Tensors(#[from] TensorsError),
    /// Sizes do not fit together.
    #[error("`{name}` has shape {shape:?}, expected {expected}")]
    Shape {
        /// The tensor.
        name: String,
        /// The tensor's shape.
        shape: Vec<usize>,
        /// The shape that would fit, in words.
        expected: String,
    },
    /// There is no layer.
    #[error("there is no layer `{prefix}.0`")]
    Empty {
        /// The network's name.
        prefix: String,
    },
}

impl Mlp {
    /// The network named `prefix`: tensors `prefix.0.weight` `[outputs × inputs]`, `prefix.0.bias` `[outputs]`,
    /// `prefix.1.weight` and so on.
    ///
    /// # Errors
    /// If there is no layer, or the sizes do not fit together.
    pub fn from_tensors(
        tensors: &Tensors,
        prefix: &str,
        activation: Activation,
    ) -> Result<Self, NetworkError> {
        let mut layers: Vec<Dense> = Vec::new();
        let mut first = 0;
        loop {
            let (weight_name, bias_name) =
                (format!("{prefix}.{}.weight", layers.len()), format!("{prefix}.{}.bias", layers.len()));
            if !tensors.contains(&weight_name) {
                break;
            }
            let (shape, weights) = tensors.get(&weight_name)?;
            let &[outputs, inputs] = shape else {
                return Err(mismatch(&weight_name, shape, "two dimensions".to_owned()));
            };
            match layers.last() {
                None => first = inputs,
                Some(before) if before.bias.len() != inputs => {
                    let expected =
                        format!("{} inputs, as many as the layer before has outputs", before.bias.len());
                    return Err(mismatch(&weight_name, shape, expected));
                }
                Some(_) => {}
            }
            let (bias_shape, bias) = tensors.get(&bias_name)?;
            if bias_shape != [outputs] || outputs == 0 {
                return Err(mismatch(&bias_name, bias_shape, format!("[{outputs}], and at least one")));
            }
            let transposed =
                (0..inputs * outputs).map(|at| weights[at % outputs * inputs + at / outputs]).collect();
            layers.push(Dense { weights: transposed, bias: bias.to_vec() });
        }
        if layers.is_empty() {
            return Err(NetworkError::Empty { prefix: prefix.to_owned() });
        }
        Ok(Self { layers, n_inputs: first, activation })
    }

    /// The number of layers, each of a weight and a bias.
    pub fn n_layers(&self) -> usize {
        self.layers.len()
    }

    /// The number of inputs.
    pub fn n_inputs(&self) -> usize {
        self.n_inputs
    }

    /// The number of outputs.
    pub fn n_outputs(&self) -> usize {
        self.layers.last().map_or(0, |layer| layer.bias.len())
    }

    /// Writes the outputs for one input vector.
    pub fn forward(&self, input: &[f32], scratch: &mut Scratch, output: &mut [f32]) {
        let Scratch { from, to } = scratch;
        from.clear();
        from.extend_from_slice(input);
        for (number, layer) in self.layers.iter().enumerate() {
            layer.forward(from, to);
            if number + 1 < self.layers.len() {
                self.activation.apply(to);
            }
            std::mem::swap(from, to);
        }
        output.copy_from_slice(from);
    }
}

fn mismatch(name: &str, shape: &[usize], expected: String) -> NetworkError {
    NetworkError::Shape { name: name.to_owned(), shape: shape.to_vec(), expected }
}

/// An actor of agents that each decide by a network of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct MlpActor {
    networks: Vec<Mlp>,
}

impl MlpActor {
    /// An actor of the networks `actor.0`, `actor.1` and so on, one per agent.
    ///
    /// # Errors
    /// If there are fewer networks, or one is damaged.
    pub fn from_tensors(
        tensors: &Tensors,
        n_agents: usize,
        activation: Activation,
    ) -> Result<Self, NetworkError> {
        let network = |agent| Mlp::from_tensors(tensors, &format!("actor.{agent}"), activation);
        Ok(Self { networks: (0..n_agents).map(network).collect::<Result<_, _>>()? })
    }

    /// The network of each agent.
    pub fn networks(&self) -> &[Mlp] {
        &self.networks
    }
}

impl Actor for MlpActor {
    fn logits(
        &self,
        agent: usize,
        observation: &[f32],
        scratch: &mut Scratch,
        logits: &mut [f32],
    ) -> Result<(), ActorError> {
        self.networks[agent].forward(observation, scratch, logits);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_layers() -> Tensors {
        let mut tensors = Tensors::default();
        tensors.insert("actor.0.0.weight", vec![2, 3], vec![1.0, 2.0, 3.0, -1.0, 0.5, 0.0]).unwrap();
        tensors.insert("actor.0.0.bias", vec![2], vec![0.5, -0.5]).unwrap();
        tensors.insert("actor.0.1.weight", vec![1, 2], vec![2.0, -3.0]).unwrap();
        tensors.insert("actor.0.1.bias", vec![1], vec![0.25]).unwrap();
        tensors
    }

    #[test]
    fn a_small_network_worked_by_hand() {
        // x = (1, -1, 0.1): sums 1·1 − 2·1 + 3·0.1 + 0.5 = −0.2 and −1 − 0.5 + 0 − 0.5 = −2.
        let input = [1.0, -1.0, 0.1];
        let (mut scratch, mut output) = (Scratch::default(), [0.0]);
        let tanh = MlpActor::from_tensors(&two_layers(), 1, Activation::Tanh).unwrap();
        tanh.logits(0, &input, &mut scratch, &mut output).unwrap();
        let expected = 2.0 * (-0.2f32).tanh() - 3.0 * (-2f32).tanh() + 0.25;
        assert!((output[0] - expected).abs() < 1e-6, "{} {expected}", output[0]);
        let relu = Mlp::from_tensors(&two_layers(), "actor.0", Activation::Relu).unwrap();
        relu.forward(&[1.0, 0.0, 0.0], &mut scratch, &mut output);
        assert!((output[0] - (2.0 * 1.5 + 0.25)).abs() < 1e-6);
        assert_eq!((relu.n_inputs(), relu.n_outputs()), (3, 1));
    }

    #[test]
    fn tensors_that_do_not_fit_are_named() {
        let said = |change: &dyn Fn(&mut Tensors)| {
            let mut tensors = two_layers();
            change(&mut tensors);
            Mlp::from_tensors(&tensors, "actor.0", Activation::Tanh).unwrap_err().to_string()
        };
        let insert = |tensors: &mut Tensors, name: &str, shape: &[usize]| {
            tensors.remove(name);
            tensors.insert(name, shape.to_vec(), vec![0.0; shape.iter().product()]).unwrap();
        };
        let text = said(&|tensors| insert(tensors, "actor.0.1.weight", &[1, 3]));
        assert!(text.contains("`actor.0.1.weight` has shape [1, 3], expected 2 inputs"), "{text}");
        let text = said(&|tensors| insert(tensors, "actor.0.0.weight", &[6]));
        assert!(text.contains("two dimensions"), "{text}");
        let text = said(&|tensors| insert(tensors, "actor.0.0.bias", &[3]));
        assert!(text.contains("`actor.0.0.bias` has shape [3], expected [2]"), "{text}");
        let text = said(&|tensors| tensors.remove("actor.0.1.bias"));
        assert!(text.contains("actor.0.1.bias"), "{text}");
        let text = said(&|tensors| tensors.remove("actor.0.0.weight"));
        assert!(text.contains("no layer `actor.0.0`"), "{text}");
    }
}
