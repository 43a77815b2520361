//! The drifting speed of each server relative to its type.
//!
//! z = bias + walk + straggle is the logarithm of a factor on speed:
//!
//! - the **bias** is fixed, normal, and correlated within racks of a type;
//! - the **walk** is an Ornstein–Uhlenbeck process, so that it stays bounded;
//! - a **straggler** is slowed by a factor of about five for an exponential time, and at any time 5 % of servers are stragglers.
//!
//! Each job has its own factor on bias and walk. Magnitudes are fitted to the coefficients of variation of step times that
//! Alibaba publishes of 100 jobs of ten workers (PAI's mini-batch times): deviation 0.07 in the median and log-normal over
//! jobs, one worker in twenty a straggler by a factor exp|N(1.6, 0.4)|. That a server straggles for an hour is an
//! assumption: the publication does not say on which server a worker ran.
//!
//! Every number is a function of (seed, server, round, use) alone, so a server's speed depends neither on the schedule nor on other
//! draws.

use std::f64::consts::TAU;

use crate::dual_agent::cluster::type_of;
use crate::world::Servers;
use apportion::index::{Id, JobId, ServerId};
use apportion::workload::random::mixed;

/// Constants of the model of drift.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DriftOptions {
    /// Standard deviation of the bias.
    pub bias: f64,
    /// Correlation of biases within a rack.
    pub rack_correlation: f64,
    /// Standard deviation of the walk in the long run.
    pub walk: f64,
    /// Seconds in which the walk forgets all but 1/e.
    pub relaxation_s: f64,
    /// Fraction of servers that straggle in the long run.
    pub stragglers: f64,
    /// Mean and standard deviation of the logarithm of a straggler's slowdown.
    pub depth: (f64, f64),
    /// Mean seconds for which a server straggles.
    pub straggle_s: f64,
    /// Standard deviation, over jobs, of the logarithm of their factor on bias and walk.
    pub sensitivity: f64,
    /// Standard deviation of the logarithm of a step time measured over a round.
    pub noise: f64,
}

impl Default for DriftOptions {
    fn default() -> Self {
        Self {
            bias: 0.05,
            rack_correlation: 0.5,
            walk: 0.05,
            relaxation_s: 12.0 * 3600.0,
            stragglers: 0.05,
            depth: (1.6, 0.4),
            straggle_s: 3600.0,
            sensitivity: 0.5,
            noise: 0.02,
        }
    }
}

/// The use of a drawn number.
#[derive(Clone, Copy)]
#[repr(u64)]
enum Use {
    Bias,
    Rack,
    Walk,
    Straggle,
    Depth,
    Sensitivity,
    Noise,
}

/// 64 random bits of a seed and a counter, whose words are mixed in one after another.
fn bits(seed: u64, words: [u64; 4]) -> u64 {
    words.into_iter().fold(seed, |state, word| mixed(state ^ word))
}

/// A number uniform in [0, 1).
fn uniform(seed: u64, of: Use, which: u64, when: u64, part: u64) -> f64 {
    (bits(seed, [of as u64, which, when, part]) >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
}

fn normal(seed: u64, of: Use, which: u64, when: u64) -> f64 {
    let radius = (-2.0 * (1.0 - uniform(seed, of, which, when, 0)).ln()).sqrt();
    radius * (TAU * uniform(seed, of, which, when, 1)).cos()
}

/// The current speeds of the servers.
#[derive(Clone, Debug)]
pub struct Drift {
    options: DriftOptions,
    round_s: f64,
    seed: u64,
    round: u64,
    /// Bias of each server: [server].
    bias: Vec<f64>,
    /// Walk of each server: [server].
    walk: Vec<f64>,
    /// Logarithm of each server's slowdown as a straggler, negative; 0 if it does not straggle: [server].
    straggle: Vec<f64>,
}

impl Drift {
    /// Speeds at the start, for rounds of `round_s` seconds.
    pub fn new(servers: &Servers, options: DriftOptions, round_s: f64, seed: u64) -> Self {
        let (mut bias, mut walk, mut straggle) = (Vec::new(), Vec::new(), Vec::new());
        for server in servers.ids() {
            let which = server.index() as u64;
            let group = (type_of(servers, server) as u64) << 32 | u64::from(servers.rack(server));
            let shared = options.rack_correlation.sqrt() * normal(seed, Use::Rack, group, 0);
            let own = (1.0 - options.rack_correlation).sqrt() * normal(seed, Use::Bias, which, 0);
            bias.push(options.bias * (shared + own));
            walk.push(options.walk * normal(seed, Use::Walk, which, 0));
            let slow = uniform(seed, Use::Straggle, which, 0, 0) < options.stragglers;
            straggle.push(if slow { depth(&options, seed, which, 0) } else { 0.0 });
        }
        Self { options, round_s, seed, round: 0, bias, walk, straggle }
    }

    /// The constants of the model.
    pub fn options(&self) -> &DriftOptions {
        &self.options
    }

    /// Advances to the next round.
    pub fn step(&mut self) {
        self.round += 1;
        let Self { options, round_s, seed, round, .. } = *self;
        let kept = (-round_s / options.relaxation_s).exp();
        let fresh = options.walk * (1.0 - kept * kept).sqrt();
        let leaves = 1.0 - (-round_s / options.straggle_s).exp();
        let enters = leaves * options.stragglers / (1.0 - options.stragglers);
        for server in 0..self.bias.len() {
            let which = server as u64;
            self.walk[server] = kept * self.walk[server] + fresh * normal(seed, Use::Walk, which, round);
            let changes = uniform(seed, Use::Straggle, which, round, 0);
            let slow = self.straggle[server] != 0.0;
            if slow && changes < leaves {
                self.straggle[server] = 0.0;
            } else if !slow && changes < enters {
                self.straggle[server] = depth(&options, seed, which, round);
            }
        }
    }

    /// A job's factor on bias and walk.
    pub fn sensitivity(&self, job: JobId) -> f64 {
        let drawn = normal(self.seed, Use::Sensitivity, job.index() as u64, 0);
        (self.options.sensitivity * drawn).exp()
    }

    /// Log speed z of a server for a job of this sensitivity.
    pub fn log_speed(&self, server: ServerId, sensitivity: f64) -> f64 {
        self.steady(server, sensitivity) + self.straggle[server.index()]
    }

    /// Log speed z of a server without straggling.
    pub fn steady(&self, server: ServerId, sensitivity: f64) -> f64 {
        let server = server.index();
        sensitivity * (self.bias[server] + self.walk[server])
    }

    /// Log speed z of a server as measured by a job's step times in this round.
    pub fn measured(&self, server: ServerId, job: JobId, sensitivity: f64) -> f64 {
        let which = (job.index() as u64) << 32 | server.index() as u64;
        self.log_speed(server, sensitivity)
            + self.options.noise * normal(self.seed, Use::Noise, which, self.round)
    }
}

fn depth(options: &DriftOptions, seed: u64, which: u64, round: u64) -> f64 {
    let (mean, deviation) = options.depth;
    -(mean + deviation * normal(seed, Use::Depth, which, round)).abs()
}

#[cfg(test)]
mod tests;
