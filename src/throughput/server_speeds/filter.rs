//! The exact filter of the process, a measurement at a time.

use serde::{Deserialize, Serialize};

use crate::index::{Id, ServerId};
use crate::throughput::server_speeds::kernel::{KernelOptions, ServerPlace, kernel};

/// Constants of the process: cov(f_m(t), f_n(t′)) = σ² K\[m, n\] (1 + min(t, t′)/τ), measured with noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FilterOptions {
    /// The constants of K.
    pub kernel: KernelOptions,
    /// σ, the standard deviation.
    pub deviation: f64,
    /// τ, the time of drift, s; infinite = no drift.
    pub drift_s: f64,
    /// The standard deviation of a measurement over a round.
    pub noise: f64,
}

impl FilterOptions {
    /// Constants that [`fit()`](super::fit()) finds for the step times that Alibaba publishes (PAI's mini-batch times of 2020),
    /// stragglers counted as noise.
    pub const FITTED: Self = Self {
        kernel: KernelOptions { length: 1.1, walking: 0.12, n_steps: 2 },
        deviation: 0.21,
        drift_s: 1270.0,
        noise: 0.19,
    };
}

impl Default for FilterOptions {
    /// The default: [`FITTED`](Self::FITTED).
    fn default() -> Self {
        Self::FITTED
    }
}

/// The estimates of a filter, to be saved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilterState {
    /// Mean and covariance of each block of servers.
    blocks: Vec<(Vec<f64>, Vec<f64>)>,
    /// Seconds since the last measurement, none before the first: [server].
    since_s: Vec<Option<f64>>,
}

/// Servers that are correlated with one another, and with no other servers.
#[derive(Clone, Debug)]
struct Block {
    /// σ² K, row by row.
    prior: Vec<f64>,
    /// The means: [server].
    mean: Vec<f64>,
    /// The covariance, row by row.
    covariance: Vec<f64>,
}

/// Means and covariances of the servers' log speeds. They are exact: the same as from all measurements at once. A measurement costs
/// the square of its block's servers.
#[derive(Clone, Debug)]
pub struct SpeedFilter {
    options: FilterOptions,
    blocks: Vec<Block>,
    /// Block and row of each server.
    place: Vec<(usize, usize)>,
    /// Seconds since the last measurement, infinite before the first: [server].
    since_s: Vec<f64>,
    gain: Vec<f64>,
}

impl SpeedFilter {
    /// A filter before any measurement.
    pub fn new(servers: &[ServerPlace], options: FilterOptions) -> Self {
        let rows = kernel(servers, &options.kernel);
        let n = servers.len();
        let mut is_found = vec![false; n];
        let mut members: Vec<Vec<usize>> = Vec::new();
        for first in 0..n {
            if std::mem::replace(&mut is_found[first], true) {
                continue;
            }
            let mut found = vec![first];
            let mut next = 0;
            while let Some(&row) = found.get(next) {
                next += 1;
                for (column, _) in &rows[row] {
                    if !std::mem::replace(&mut is_found[*column], true) {
                        found.push(*column);
                    }
                }
            }
            found.sort_unstable();
            members.push(found);
        }
        let mut place = vec![(0, 0); n];
        let variance = options.deviation * options.deviation;
        let block = |(number, servers): (usize, &Vec<usize>)| {
            for (row, server) in servers.iter().enumerate() {
                place[*server] = (number, row);
            }
            let n = servers.len();
            let mut prior = vec![0.0; n * n];
            for (row, server) in servers.iter().enumerate() {
                for (column, similarity) in &rows[*server] {
                    prior[row * n + place[*column].1] = variance * similarity;
                }
            }
            Block { mean: vec![0.0; n], covariance: prior.clone(), prior }
        };
        let blocks = members.iter().enumerate().map(block).collect();
        Self { options, blocks, place, since_s: vec![f64::INFINITY; n], gain: Vec::new() }
    }

    /// Forgets all measurements.
    pub fn reset(&mut self) {
        for block in &mut self.blocks {
            block.mean.fill(0.0);
            block.covariance.copy_from_slice(&block.prior);
        }
        self.since_s.fill(f64::INFINITY);
    }

    /// The constants.
    pub fn options(&self) -> &FilterOptions {
        &self.options
    }

    /// Its estimates.
    pub fn state(&self) -> FilterState {
        let blocks = self.blocks.iter().map(|block| (block.mean.clone(), block.covariance.clone())).collect();
        let since_s = self.since_s.iter().map(|since| since.is_finite().then_some(*since)).collect();
        FilterState { blocks, since_s }
    }

    /// Restores estimates; false, with nothing changed, if they were saved for other servers.
    pub fn restore(&mut self, state: &FilterState) -> bool {
        let alike = |(block, (mean, covariance)): (&Block, &(Vec<f64>, Vec<f64>))| {
            block.mean.len() == mean.len() && block.covariance.len() == covariance.len()
        };
        if self.since_s.len() != state.since_s.len()
            || self.blocks.len() != state.blocks.len()
            || !self.blocks.iter().zip(&state.blocks).all(alike)
        {
            return false;
        }
        for (block, (mean, covariance)) in self.blocks.iter_mut().zip(&state.blocks) {
            block.mean.copy_from_slice(mean);
            block.covariance.copy_from_slice(covariance);
        }
        self.since_s = state.since_s.iter().map(|since| since.unwrap_or(f64::INFINITY)).collect();
        true
    }

    /// Lets time pass: Σ ← Σ + (Δt/τ) σ² K.
    pub fn predict(&mut self, elapsed_s: f64) {
        let weight = elapsed_s / self.options.drift_s;
        if weight > 0.0 {
            for block in &mut self.blocks {
                for (entry, prior) in block.covariance.iter_mut().zip(&block.prior) {
                    *entry += weight * prior;
                }
            }
        }
        for since in &mut self.since_s {
            *since += elapsed_s;
        }
    }

    /// Adds a measurement: g = Σ\[·, m\]/(Σ\[m, m\] + s²), μ ← μ + g (y − μ_m), Σ ← Σ − g Σ\[m, ·\].
    pub fn observe(&mut self, server: ServerId, log_speed: f64) {
        let (number, row) = self.place[server.index()];
        let block = &mut self.blocks[number];
        let n = block.mean.len();
        let noise = self.options.noise * self.options.noise;
        self.gain.clear();
        self.gain.extend_from_slice(&block.covariance[row * n..(row + 1) * n]);
        let variance = self.gain[row] + noise;
        let surprise = (log_speed - block.mean[row]) / variance;
        for (mean, covariance) in block.mean.iter_mut().zip(&self.gain) {
            *mean += covariance * surprise;
        }
        for (entries, left) in block.covariance.chunks_exact_mut(n).zip(&self.gain) {
            let weight = left / variance;
            if weight != 0.0 {
                for (entry, right) in entries.iter_mut().zip(&self.gain) {
                    *entry -= weight * right;
                }
            }
        }
        self.since_s[server.index()] = 0.0;
    }

    /// Expected log speed of a server against its type.
    #[inline]
    pub fn mean(&self, server: ServerId) -> f64 {
        let (block, row) = self.place[server.index()];
        self.blocks[block].mean[row]
    }

    /// The variance of a server's log speed.
    #[inline]
    pub fn variance(&self, server: ServerId) -> f64 {
        let (number, row) = self.place[server.index()];
        let block = &self.blocks[number];
        block.covariance[row * block.mean.len() + row].max(0.0)
    }

    /// Seconds since it was last measured; infinite if it never was.
    #[inline]
    pub fn since_s(&self, server: ServerId) -> f64 {
        self.since_s[server.index()]
    }
}
