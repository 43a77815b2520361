//! A switching filter: each server is steady or a straggler.
//!
//! Between measurements the state is a Markov chain. A measurement decides it, because a straggler is far slower than its server is
//! otherwise. Measurements of steady servers go to a [`SpeedFilter`], which suits their slow drift.

use crate::index::{Id, ServerId};
use crate::throughput::server_speeds::filter::{FilterOptions, SpeedFilter};
use crate::throughput::server_speeds::kernel::ServerPlace;

/// Constants of both states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SwitchingOptions {
    /// The process without stragglers.
    pub steady: FilterOptions,
    /// The difference below the expected steady speed, as a logarithm, from which a measured server straggles.
    pub cut: f64,
    /// Fraction of servers that straggle in the long run.
    pub stragglers: f64,
    /// Mean seconds for which a straggler stays one.
    pub straggle_s: f64,
    /// The slowdown that is assumed of an unmeasured straggler, as a logarithm.
    pub depth: f64,
}

impl Default for SwitchingOptions {
    /// The default: constants for the step times that Alibaba publishes (PAI's mini-batch times of 2020).
    fn default() -> Self {
        let steady =
            FilterOptions { deviation: 0.07, drift_s: 86_400.0, noise: 0.04, ..FilterOptions::default() };
        Self { steady, cut: 0.6, stragglers: 0.05, straggle_s: 3600.0, depth: 1.6 }
    }
}

/// The probability that a server straggles, and its slowdown if it does, as a logarithm.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Straggling {
    chance: f64,
    depth: f64,
}

/// Estimates of servers' steady speeds, and of which servers straggle.
#[derive(Clone, Debug)]
pub struct SwitchingFilter {
    options: SwitchingOptions,
    steady: SpeedFilter,
    /// The straggling of each server: [server].
    straggling: Vec<Straggling>,
}

impl SwitchingFilter {
    /// A filter before any measurement.
    pub fn new(servers: &[ServerPlace], options: SwitchingOptions) -> Self {
        let unknown = Straggling { chance: options.stragglers, depth: options.depth };
        let steady = SpeedFilter::new(servers, options.steady);
        Self { options, steady, straggling: vec![unknown; servers.len()] }
    }

    /// Forgets all measurements.
    pub fn reset(&mut self) {
        self.steady.reset();
        self.straggling.fill(Straggling { chance: self.options.stragglers, depth: self.options.depth });
    }

    /// Lets time pass: chances return to their long-run value.
    pub fn predict(&mut self, elapsed_s: f64) {
        self.steady.predict(elapsed_s);
        let SwitchingOptions { stragglers, straggle_s, .. } = self.options;
        // Leaving at 1/T and entering at s/(1−s)/T, a chain forgets at 1/T/(1−s).
        let kept = (-elapsed_s / straggle_s / (1.0 - stragglers)).exp();
        for Straggling { chance, .. } in &mut self.straggling {
            *chance = stragglers + (*chance - stragglers) * kept;
        }
    }

    /// Adds a measurement.
    pub fn observe(&mut self, server: ServerId, log_speed: f64) {
        let slower = self.steady.mean(server) - log_speed;
        self.straggling[server.index()] = if slower > self.options.cut {
            Straggling { chance: 1.0, depth: slower }
        } else {
            self.steady.observe(server, log_speed);
            Straggling { chance: 0.0, depth: self.options.depth }
        };
    }

    /// The probability that a server straggles.
    pub fn chance(&self, server: ServerId) -> f64 {
        self.straggling[server.index()].chance
    }

    /// Logarithm of a server's expected speed against its type.
    pub fn expected(&self, server: ServerId) -> f64 {
        let Straggling { chance, depth } = self.straggling[server.index()];
        self.steady.mean(server) + (1.0 - chance * (1.0 - (-depth).exp())).ln()
    }

    /// Variance of the logarithm of its speed.
    pub fn variance(&self, server: ServerId) -> f64 {
        let Straggling { chance, depth } = self.straggling[server.index()];
        self.steady.variance(server) + chance * (1.0 - chance) * depth * depth
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::throughput::server_speeds::tests::servers;

    const ROUND_S: f64 = 300.0;

    #[test]
    fn a_straggler_is_known_at_once_and_forgiven_in_time() {
        let servers = servers(0.01);
        let mut filter = SwitchingFilter::new(&servers, SwitchingOptions::default());
        let server = ServerId::from_index(0);
        let close =
            |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        close(filter.chance(server), 0.05);
        filter.observe(server, 0.03);
        let steady = filter.expected(server);
        assert!(steady > 0.0 && steady < 0.03, "{steady}");
        filter.observe(server, -1.4);
        close(filter.expected(server), -1.4);
        for _ in 0..12 {
            filter.predict(ROUND_S);
        }
        let kept = (-1.0_f64 / 0.95).exp();
        close(filter.chance(server), 0.05 + 0.95 * kept);
        let slow = (-1.4 - steady).exp();
        close(filter.expected(server), steady + (1.0 - filter.chance(server) * (1.0 - slow)).ln());
        assert!(filter.variance(server) > 0.3);
        filter.reset();
        close(filter.chance(server), 0.05);
    }
}
