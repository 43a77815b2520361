//! A baseline for the process: an exponential average of each server's own measurements.

use crate::index::{Id, ServerId};

/// Mean and variance of each server's measurements, older ones with less weight.
#[derive(Clone, Debug)]
pub struct ExponentialAverage {
    /// Weight of the newest measurement.
    weight: f64,
    /// The variance before the first measurement.
    prior: f64,
    /// The mean, none before the first measurement: [server].
    mean: Vec<Option<f64>>,
    /// The variance of the next measurement: [server].
    variance: Vec<f64>,
}

impl ExponentialAverage {
    /// The averages of `n` servers without measurements.
    pub fn new(n: usize, weight: f64, prior_deviation: f64) -> Self {
        let prior = prior_deviation * prior_deviation;
        Self { weight, prior, mean: vec![None; n], variance: vec![prior; n] }
    }

    /// Mean and variance of the next measurement.
    pub fn predictive(&self, server: ServerId) -> (f64, f64) {
        (self.mean[server.index()].unwrap_or(0.0), self.variance[server.index()])
    }

    /// Adds a measurement. The variance starts from the prior one and follows the squares of prediction errors.
    pub fn observe(&mut self, server: ServerId, log_speed: f64) {
        let (mean, variance) = (&mut self.mean[server.index()], &mut self.variance[server.index()]);
        let surprise = log_speed - mean.unwrap_or(0.0);
        *variance += self.weight * (surprise * surprise - *variance);
        *variance = variance.max(1e-4 * self.prior);
        *mean = Some(mean.map_or(log_speed, |mean| mean + self.weight * surprise));
    }
}
