//! Networks in training: parameters with gradients.

use candle_core::{Device, Tensor, Var};
use nalgebra::DMatrix;
use serde::{Deserialize, Serialize};

use super::linear::linear;
use super::{TrainingError, within};
use crate::actor::Actor;
use crate::environment::Space;
use crate::network::{Activation, MlpActor};
use crate::tensors::Tensors;
use apportion::workload::random::{SeedStreams, Stream};

/// Parameters: named variables in a fixed order.
#[derive(Clone, Debug, Default)]
pub struct Parameters {
    named: Vec<(String, Var)>,
}

impl Parameters {
    /// Parameters of these variables, in this order.
    pub fn new(named: Vec<(String, Var)>) -> Self {
        Self { named }
    }

    /// Names and variables, in order.
    pub fn iter(&self) -> impl Iterator<Item = &(String, Var)> {
        self.named.iter()
    }

    /// The number of variables.
    pub fn len(&self) -> usize {
        self.named.len()
    }

    /// Whether there are no variables.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    /// Adds a variable.
    ///
    /// # Errors
    /// If the numbers are more or fewer than the shape needs.
    pub fn add(&mut self, name: String, shape: &[usize], numbers: Vec<f32>) -> Result<Var, TrainingError> {
        let variable = Var::from_vec(numbers, shape, &Device::Cpu)?;
        self.named.push((name, variable.clone()));
        Ok(variable)
    }

    /// The present values of all variables.
    ///
    /// # Errors
    /// Never, unless the library fails.
    pub fn to_tensors(&self) -> Result<Tensors, TrainingError> {
        let mut tensors = Tensors::default();
        for (name, variable) in self.iter() {
            let numbers = variable.flatten_all()?.to_vec1::<f32>()?;
            tensors.insert(name.as_str(), variable.dims().to_vec(), numbers)?;
        }
        Ok(tensors)
    }

    /// Sets all variables.
    ///
    /// # Errors
    /// If the tensor of a variable is missing or of another shape.
    pub fn set(&self, tensors: &Tensors) -> Result<(), TrainingError> {
        for (name, variable) in self.iter() {
            let numbers = fitting(tensors, name, variable.dims())?;
            variable.set(&Tensor::from_vec(numbers, variable.shape(), &Device::Cpu)?)?;
        }
        Ok(())
    }
}

/// The numbers of a tensor that must have a given shape.
///
/// # Errors
/// If there is no tensor of the name, or it has another shape.
pub fn fitting(tensors: &Tensors, name: &str, shape: &[usize]) -> Result<Vec<f32>, TrainingError> {
    let (found, numbers) = tensors.get(name)?;
    if found == shape {
        Ok(numbers.to_vec())
    } else {
        Err(TrainingError::Checkpoint {
            reason: format!("`{name}` has shape {found:?}, and this training's has {shape:?}"),
        })
    }
}

/// The networks of a team: an actor per agent, and one critic.
pub trait Model: std::fmt::Debug + Send {
    /// All variables that are learned.
    fn parameters(&self) -> &Parameters;

    /// Logits [batch × actions] of an agent for observations [batch × observation length], before masks.
    ///
    /// # Errors
    /// If the library fails.
    fn logits(&self, agent: usize, observations: &Tensor) -> candle_core::Result<Tensor>;

    /// Values `[batch]` of states [batch × state length], or of observations if the environment has no state.
    ///
    /// # Errors
    /// If the library fails.
    fn values(&self, states: &Tensor) -> candle_core::Result<Tensor>;

    /// The actors with their present weights, for decisions on any thread.
    ///
    /// # Errors
    /// If the library fails.
    fn actor(&self) -> Result<Box<dyn Actor>, TrainingError>;
}

/// Options of networks of dense layers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MlpOptions {
    /// Outputs of each hidden layer.
    pub hidden: Vec<usize>,
    /// The activation after each hidden layer.
    pub activation: Activation,
    /// Standard deviation of the initial weights, which are normal and redrawn beyond two deviations. Without it, weights start
    /// with orthogonal rows or columns: gain √2 inside, 0.01 at the actor's end and 1 at the critic's. Biases start at 0.
    pub initial_deviation: Option<f64>,
}

impl Default for MlpOptions {
    /// The layers of the PPO of stable-baselines3.
    fn default() -> Self {
        Self { hidden: vec![64, 64], activation: Activation::Tanh, initial_deviation: None }
    }
}

/// A model of dense layers: an actor for each agent, and a critic that shares no layers with them.
#[derive(Debug)]
pub struct MlpModel {
    parameters: Parameters,
    activation: Activation,
    actors: Vec<Layers>,
    critic: Layers,
}

/// The most weights of all networks together: some 40 MB, and four times that in training.
const WEIGHTS_MAX: u128 = 10_000_000;

/// The number of weights and biases of dense layers between an input and an output of these sizes; saturates at the largest number.
fn n_weights(hidden: &[usize], (n_inputs, n_outputs): (usize, usize)) -> u128 {
    let sizes = [n_inputs].into_iter().chain(hidden.iter().copied());
    let next = hidden.iter().copied().chain([n_outputs]);
    let of_layers = sizes.zip(next).map(|(from, to)| (from as u128 + 1).saturating_mul(to as u128));
    of_layers.fold(0, u128::saturating_add)
}

/// Layers, (weight, bias), from the input on.
type Layers = Vec<(Var, Var)>;

impl MlpModel {
    /// A model with the tensors `actor.AGENT.LAYER.weight`, `….bias`, `critic.LAYER.weight`, `….bias`.
    ///
    /// # Errors
    /// If there are more than 10,000,000 weights, or the library fails.
    pub fn new(
        spaces: &[Space],
        state_length: usize,
        options: &MlpOptions,
        streams: SeedStreams,
    ) -> Result<Self, TrainingError> {
        let seen = spaces.first().map_or(0, Space::observation_length);
        let judged = if state_length > 0 { state_length } else { seen };
        let ends = spaces.iter().map(|space| (space.observation_length(), space.n_actions));
        let of_networks = ends.chain([(judged, 1)]).map(|ends| n_weights(&options.hidden, ends));
        let n_weights = of_networks.fold(0, u128::saturating_add);
        let value = format!("{:?}, {n_weights} weights in all", options.hidden);
        within(n_weights <= WEIGHTS_MAX, "hidden", value, "layers that come to at most 10,000,000")?;
        let mut parameters = Parameters::default();
        let mut stream = streams.stream("initial weights");
        let mut network = |name: &str, (inputs, outputs): (usize, usize), gain: f64| {
            let mut layers = Vec::new();
            let mut sizes = vec![inputs];
            sizes.extend(&options.hidden);
            sizes.push(outputs);
            for (number, pair) in sizes.windows(2).enumerate() {
                let shape = [pair[1], pair[0]];
                let gain = if number + 2 < sizes.len() { std::f64::consts::SQRT_2 } else { gain };
                let numbers = match options.initial_deviation {
                    None => orthogonal(shape, gain, &mut stream),
                    Some(deviation) => truncated_normal(shape, deviation, &mut stream),
                };
                let weight = parameters.add(format!("{name}.{number}.weight"), &shape, numbers)?;
                let bias = parameters.add(format!("{name}.{number}.bias"), &[pair[1]], vec![0.0; pair[1]])?;
                layers.push((weight, bias));
            }
            Ok::<_, TrainingError>(layers)
        };
        let actors = spaces.iter().enumerate();
        let actors = actors
            .map(|(agent, space)| {
                network(&format!("actor.{agent}"), (space.observation_length(), space.n_actions), 0.01)
            })
            .collect::<Result<_, _>>()?;
        let critic = network("critic", (judged, 1), 1.0)?;
        Ok(Self { parameters, activation: options.activation, actors, critic })
    }

    fn forward(&self, layers: &Layers, input: &Tensor) -> candle_core::Result<Tensor> {
        let mut numbers = input.clone();
        for (number, (weight, bias)) in layers.iter().enumerate() {
            numbers = linear(&numbers, weight, bias)?;
            if number + 1 < layers.len() {
                numbers = match self.activation {
                    Activation::Tanh => numbers.tanh()?,
                    Activation::Relu => numbers.relu()?,
                };
            }
        }
        Ok(numbers)
    }
}

impl Model for MlpModel {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn logits(&self, agent: usize, observations: &Tensor) -> candle_core::Result<Tensor> {
        self.forward(&self.actors[agent], observations)
    }

    fn values(&self, states: &Tensor) -> candle_core::Result<Tensor> {
        self.forward(&self.critic, states)?.squeeze(1)
    }

    fn actor(&self) -> Result<Box<dyn Actor>, TrainingError> {
        let tensors = self.parameters.to_tensors()?;
        Ok(Box::new(MlpActor::from_tensors(&tensors, self.actors.len(), self.activation)?))
    }
}

/// A random matrix [rows × columns] in which the vectors along the shorter side are orthogonal and of length `gain`:
/// the Q of a QR decomposition of normal numbers, with the signs that make R's diagonal positive.
pub fn orthogonal([rows, columns]: [usize; 2], gain: f64, stream: &mut Stream) -> Vec<f32> {
    let (long, short) = (rows.max(columns), rows.min(columns));
    let normal = DMatrix::from_fn(long, short, |_, _| stream.normal(0.0, 1.0));
    let (q, r) = normal.qr().unpack();
    let entry = |row: usize, column: usize| {
        let (along, across) = if rows >= columns { (row, column) } else { (column, row) };
        let sign = if r[(across, across)] < 0.0 { -1.0 } else { 1.0 };
        (gain * sign * q[(along, across)]) as f32
    };
    (0..rows * columns).map(|at| entry(at / columns, at % columns)).collect()
}

fn truncated_normal([rows, columns]: [usize; 2], deviation: f64, stream: &mut Stream) -> Vec<f32> {
    let mut one = || loop {
        let number = stream.normal(0.0, 1.0);
        if number.abs() <= 2.0 {
            return (deviation * number) as f32;
        }
    };
    (0..rows * columns).map(|_| one()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor::Scratch;

    fn model(options: &MlpOptions) -> MlpModel {
        let spaces = [Space::uniform(64, (-1.0, 1.0), 8), Space::uniform(5, (-1.0, 1.0), 3)];
        MlpModel::new(&spaces, 0, options, SeedStreams::new(4)).unwrap()
    }

    #[test]
    fn the_actor_decides_as_the_model_in_training_does() {
        for activation in [Activation::Tanh, Activation::Relu] {
            let initial_deviation = Some(0.5);
            let model = model(&MlpOptions { activation, initial_deviation, ..MlpOptions::default() });
            let actor = model.actor().unwrap();
            let mut stream = SeedStreams::new(9).stream("inputs");
            for (agent, (inputs, outputs)) in [(64, 8), (5, 3)].into_iter().enumerate() {
                let seen: Vec<f32> = (0..4 * inputs).map(|_| stream.uniform_in(-1.0, 1.0) as f32).collect();
                let batch = Tensor::from_slice(&seen, (4, inputs), &Device::Cpu).unwrap();
                let expected = model.logits(agent, &batch).unwrap().to_vec2::<f32>().unwrap();
                for (row, expected) in expected.iter().enumerate() {
                    let mut logits = vec![0.0; outputs];
                    let one = &seen[row * inputs..(row + 1) * inputs];
                    actor.logits(agent, one, &mut Scratch::default(), &mut logits).unwrap();
                    for (found, expected) in logits.iter().zip(expected) {
                        assert!((found - expected).abs() < 1e-5, "{found} {expected}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_default_has_as_many_weights_as_stable_baselines_has() {
        let space = [Space::uniform(64, (0.0, 18.0), 8)];
        let model = MlpModel::new(&space, 0, &MlpOptions::default(), SeedStreams::new(0)).unwrap();
        let tensors = model.parameters().to_tensors().unwrap();
        let count = |part: &str| tensors.below(part).n_numbers();
        assert_eq!((count("actor."), count("critic.")), (8_840, 8_385));
    }

    #[test]
    fn orthogonal_matrices_are() {
        let mut stream = SeedStreams::new(1).stream("test");
        for shape in [[3, 7], [7, 3], [4, 4]] {
            let numbers = orthogonal(shape, 2.0, &mut stream);
            let matrix = DMatrix::from_row_slice(shape[0], shape[1], &numbers);
            let gram =
                if shape[0] < shape[1] { &matrix * matrix.transpose() } else { matrix.transpose() * &matrix };
            let apart =
                (gram - DMatrix::identity(shape[0].min(shape[1]), shape[0].min(shape[1])) * 4.0).abs().max();
            assert!(apart < 1e-5, "{shape:?}: {apart}");
        }
        let normal = truncated_normal([50, 50], 0.02, &mut stream);
        assert!(normal.iter().all(|number| number.abs() <= 0.04));
    }
}
