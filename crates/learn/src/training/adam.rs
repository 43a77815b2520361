//! Adam (Kingma and Ba, 2015), with a limit on the gradient's norm.

use candle_core::backprop::GradStore;
use candle_core::{Device, Tensor};
use serde::{Deserialize, Serialize};

use super::TrainingError;
use super::model::Parameters;
use crate::tensors::Tensors;

/// Constants of Adam.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdamOptions {
    /// Decay of the mean of the gradients, β₁.
    pub first_decay: f64,
    /// Decay of the mean of their squares, β₂.
    pub second_decay: f64,
    /// The number added to the root of the mean of the squares, ε.
    pub epsilon: f64,
    /// Largest Euclidean norm of the whole gradient; longer gradients are shortened to it.
    pub gradient_norm_max: Option<f64>,
}

impl Default for AdamOptions {
    fn default() -> Self {
        Self { first_decay: 0.9, second_decay: 0.999, epsilon: 1e-8, gradient_norm_max: None }
    }
}

/// Adam, with its two means for each parameter.
#[derive(Clone, Debug)]
pub struct Adam {
    options: AdamOptions,
    first: Vec<Vec<f32>>,
    second: Vec<Vec<f32>>,
    n_steps: u64,
}

impl Adam {
    /// Adam for these parameters, in their order.
    pub fn new(parameters: &Parameters, options: AdamOptions) -> Self {
        let zeros: Vec<Vec<f32>> =
            parameters.iter().map(|(_, variable)| vec![0.0; variable.elem_count()]).collect();
        Self { options, first: zeros.clone(), second: zeros, n_steps: 0 }
    }

    /// Takes a step down the gradient. Returns the gradient's norm before it was shortened.
    ///
    /// # Errors
    /// If the gradient is not finite; the parameters are then unchanged.
    pub fn step(
        &mut self,
        parameters: &Parameters,
        gradients: &GradStore,
        rate: f64,
    ) -> Result<f64, TrainingError> {
        self.step_by(parameters, gradients, |_| rate)
    }

    /// Takes a step down the gradient at a rate for each parameter, by its name. Returns the gradient's norm before it
    /// was shortened.
    ///
    /// # Errors
    /// If the gradient is not finite; the parameters are then unchanged.
    pub fn step_by(
        &mut self,
        parameters: &Parameters,
        gradients: &GradStore,
        rate: impl Fn(&str) -> f64,
    ) -> Result<f64, TrainingError> {
        let mut flat = Vec::with_capacity(parameters.len());
        let mut square = 0.0;
        for (_, variable) in parameters.iter() {
            let numbers = match gradients.get(variable) {
                Some(gradient) => gradient.flatten_all()?.to_vec1::<f32>()?,
                None => vec![0.0; variable.elem_count()],
            };
            square += numbers.iter().map(|number| f64::from(*number).powi(2)).sum::<f64>();
            flat.push(numbers);
        }
        let norm = square.sqrt();
        if !norm.is_finite() {
            return Err(TrainingError::Diverged { what: "the gradient" });
        }
        let scale =
            self.options.gradient_norm_max.map_or(1.0, |largest| (largest / (norm + 1e-6)).min(1.0)) as f32;
        self.n_steps += 1;
        let exponent = i32::try_from(self.n_steps).unwrap_or(i32::MAX);
        let unbiased = |decay: f64| 1.0 - decay.powi(exponent);
        let [kept_1, kept_2] = [self.options.first_decay as f32, self.options.second_decay as f32];
        let first_unbiased = unbiased(self.options.first_decay);
        let root = unbiased(self.options.second_decay).sqrt() as f32;
        let epsilon = self.options.epsilon as f32;
        for (number, (name, variable)) in parameters.iter().enumerate() {
            let stride = (rate(name) / first_unbiased) as f32;
            let mut weights = variable.flatten_all()?.to_vec1::<f32>()?;
            let (first, second) = (&mut self.first[number], &mut self.second[number]);
            for (place, weight) in weights.iter_mut().enumerate() {
                let gradient = flat[number][place] * scale;
                first[place] = kept_1 * first[place] + (1.0 - kept_1) * gradient;
                second[place] = kept_2 * second[place] + (1.0 - kept_2) * gradient * gradient;
                *weight -= stride * first[place] / (second[place].sqrt() / root + epsilon);
            }
            variable.set(&Tensor::from_vec(weights, variable.shape(), &Device::Cpu)?)?;
        }
        Ok(norm)
    }

    /// The number of steps so far.
    pub fn n_steps(&self) -> u64 {
        self.n_steps
    }

    /// The means, as tensors `first.NAME` and `second.NAME`.
    ///
    /// # Errors
    /// Never, for the parameters that Adam was made for.
    pub fn to_tensors(&self, parameters: &Parameters) -> Result<Tensors, TrainingError> {
        let mut tensors = Tensors::default();
        for (number, (name, variable)) in parameters.iter().enumerate() {
            for (kind, means) in [("first", &self.first), ("second", &self.second)] {
                tensors.insert(format!("{kind}.{name}"), variable.dims().to_vec(), means[number].clone())?;
            }
        }
        Ok(tensors)
    }

    /// Restores the means, and the number of steps.
    ///
    /// # Errors
    /// If a tensor is missing or of another shape.
    pub fn restore(
        &mut self,
        parameters: &Parameters,
        tensors: &Tensors,
        n_steps: u64,
    ) -> Result<(), TrainingError> {
        for (number, (name, variable)) in parameters.iter().enumerate() {
            for (kind, means) in [("first", &mut self.first), ("second", &mut self.second)] {
                means[number] = super::model::fitting(tensors, &format!("{kind}.{name}"), variable.dims())?;
            }
        }
        self.n_steps = n_steps;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Var;

    use super::*;

    fn parameter(numbers: &[f32]) -> Parameters {
        let variable = Var::from_slice(numbers, numbers.len(), &Device::Cpu).unwrap();
        Parameters::new(vec![("x".to_owned(), variable)])
    }

    /// Gradients (3, −4), whatever the values of the parameters.
    fn gradients(parameters: &Parameters) -> GradStore {
        let slopes = Tensor::new(&[3f32, -4.0], &Device::Cpu).unwrap();
        let (_, variable) = parameters.iter().next().unwrap();
        (variable.as_tensor() * slopes).unwrap().sum_all().unwrap().backward().unwrap()
    }

    fn numbers(parameters: &Parameters) -> Vec<f32> {
        parameters.iter().next().unwrap().1.to_vec1().unwrap()
    }

    #[test]
    fn two_steps_worked_by_hand() {
        // With a constant gradient g both means are unbiased estimates of g and g²: each step is rate·g/(|g| + ε).
        let parameters = parameter(&[1.0, 1.0]);
        let mut adam = Adam::new(&parameters, AdamOptions { epsilon: 1.0, ..AdamOptions::default() });
        for step in 1..=2 {
            let norm = adam.step(&parameters, &gradients(&parameters), 0.1).unwrap();
            assert!((norm - 5.0).abs() < 1e-6);
            let expected = [1.0 - 0.1 * 0.75 * step as f32, 1.0 + 0.1 * 0.8 * step as f32];
            for (found, expected) in numbers(&parameters).iter().zip(expected) {
                assert!((found - expected).abs() < 1e-5, "{found} {expected}");
            }
        }
    }

    #[test]
    fn a_long_gradient_is_shortened() {
        let (short, long) = (parameter(&[0.0, 0.0]), parameter(&[0.0, 0.0]));
        let options = AdamOptions { epsilon: 1.0, gradient_norm_max: Some(0.5), ..AdamOptions::default() };
        Adam::new(&long, options).step(&long, &gradients(&long), 1.0).unwrap();
        // The gradient is shortened to (0.3, −0.4): steps of 0.3/(0.3 + 1) and 0.4/(0.4 + 1).
        for (found, expected) in numbers(&long).iter().zip([-0.3 / 1.3, 0.4 / 1.4]) {
            assert!((found - expected).abs() < 1e-5, "{found} {expected}");
        }
        let loose = AdamOptions { gradient_norm_max: Some(6.0), ..options };
        Adam::new(&short, loose).step(&short, &gradients(&short), 1.0).unwrap();
        assert!((numbers(&short)[0] + 0.75).abs() < 1e-5);
    }
}
