//! An exponential average for each server by itself: what the process has to beat.

use apportion::index::{Id, ServerId};

/// Mean and variance of each server's measurements, the older the less.
#[derive(Clone, Debug)]
pub struct ExponentialAverage {
    /// Weight of the newest measurement.
    weight: f64,
    /// What is assumed before the first: its variance.
    prior: f64,
    /// [server].
    mean: Vec<Option<f64>>,
    /// Of one measurement about the next: [server].
    variance: Vec<f64>,
}

impl ExponentialAverage {
    /// Of `n` servers.
    pub fn new(n: usize, weight: f64, prior_deviation: f64) -> Self {
        let prior = prior_deviation * prior_deviation;
        Self { weight, prior, mean: vec![None; n], variance: vec![prior; n] }
    }

    /// What the next measurement is expected to be: its mean and variance.
    pub fn predictive(&self, server: ServerId) -> (f64, f64) {
        (self.mean[server.index()].unwrap_or(0.0), self.variance[server.index()])
    }

    /// A server was measured. Its variance starts from the servers' own and follows what surprises there were.
    pub fn observe(&mut self, server: ServerId, log_speed: f64) {
        let (mean, variance) = (&mut self.mean[server.index()], &mut self.variance[server.index()]);
        let surprise = log_speed - mean.unwrap_or(0.0);
        *variance += self.weight * (surprise * surprise - *variance);
        *variance = variance.max(1e-4 * self.prior);
        *mean = Some(mean.map_or(log_speed, |mean| mean + self.weight * surprise));
    }
}
