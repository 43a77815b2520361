//! The scorer in training: one network for every row of an observation.

use candle_core::Tensor;

use super::{N_FEATURES, Scorer};
use apportion::workload::random::SeedStreams;
use apportion_learn::actor::Actor;
use apportion_learn::environment::Space;
use apportion_learn::network::Activation;
use apportion_learn::training::model::{MlpModel, MlpOptions, Model, Parameters};
use apportion_learn::training::{TrainingError, within};

/// A scorer of rows of [`N_FEATURES`], with a critic of the mean of the rows. A row's score and the critic's value depend neither
/// on the number of rows nor on their order.
#[derive(Debug)]
pub struct ScorerModel(MlpModel);

impl ScorerModel {
    /// A scorer with drawn weights: tensors `actor.0.LAYER.weight`, `….bias`, `critic.LAYER.weight`, `….bias`.
    ///
    /// # Errors
    /// If the activation is not tanh.
    pub fn new(options: &MlpOptions, streams: SeedStreams) -> Result<Self, TrainingError> {
        let is_tanh = options.activation == Activation::Tanh;
        within(is_tanh, "activation", "relu", "`tanh`, which scorers have")?;
        let space = Space::uniform(N_FEATURES, (-1.0, 1.0), 1);
        Ok(Self(MlpModel::new(&[space], N_FEATURES, options, streams)?))
    }
}

impl Model for ScorerModel {
    fn parameters(&self) -> &Parameters {
        self.0.parameters()
    }

    fn logits(&self, agent: usize, observations: &Tensor) -> candle_core::Result<Tensor> {
        let (batch, length) = observations.dims2()?;
        let rows = observations.reshape((batch * length / N_FEATURES, N_FEATURES))?;
        self.0.logits(agent, &rows)?.reshape((batch, length / N_FEATURES))
    }

    fn values(&self, states: &Tensor) -> candle_core::Result<Tensor> {
        let (batch, length) = states.dims2()?;
        self.0.values(&states.reshape((batch, length / N_FEATURES, N_FEATURES))?.mean(1)?)
    }

    fn actor(&self) -> Result<Box<dyn Actor>, TrainingError> {
        Ok(Box::new(Scorer::from_tensors(&self.parameters().to_tensors()?)?))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;
    use apportion_learn::actor::Scratch;

    #[test]
    fn the_actor_scores_as_the_model_does() {
        let options = MlpOptions { hidden: vec![5], initial_deviation: Some(0.5), ..MlpOptions::default() };
        let model = ScorerModel::new(&options, SeedStreams::new(3)).unwrap();
        let mut stream = SeedStreams::new(4).stream("rows");
        let seen: Vec<f32> = (0..2 * 4 * N_FEATURES).map(|_| stream.uniform_in(-1.0, 1.0) as f32).collect();
        let batch = Tensor::from_slice(&seen, (2, 4 * N_FEATURES), &Device::Cpu).unwrap();
        let expected = model.logits(0, &batch).unwrap().to_vec2::<f32>().unwrap();
        let actor = model.actor().unwrap();
        for (one, expected) in seen.chunks_exact(4 * N_FEATURES).zip(expected) {
            let mut logits = [0.0; 4];
            actor.logits(0, one, &mut Scratch::default(), &mut logits).unwrap();
            for (found, expected) in logits.iter().zip(expected) {
                assert!((found - expected).abs() < 1e-5, "{found} {expected}");
            }
        }
        assert_eq!(model.values(&batch).unwrap().dims(), [2]);
        let relu = MlpOptions { activation: Activation::Relu, ..options };
        assert!(ScorerModel::new(&relu, SeedStreams::new(3)).unwrap_err().to_string().contains("tanh"));
    }
}
