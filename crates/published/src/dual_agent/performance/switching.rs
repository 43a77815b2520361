//! Stragglers told apart from what drifts.
//!
//! A server is in one of two states, as a switching filter has it: steady, or a straggler. How likely it straggles is a
//! Markov chain between measurements, and certain at one: a straggler is far below what its server does otherwise. What
//! is left of the measurements is of the steady speeds, which drift little and are what [`PerformanceFilter`] is good at.

use crate::dual_agent::performance::filter::{FilterOptions, PerformanceFilter};
use crate::world::Servers;
use apportion::index::{Id, ServerId};

/// Constants of both states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SwitchingOptions {
    /// Of the process without stragglers.
    pub steady: FilterOptions,
    /// How far below its expected steady speed, as a logarithm, a measured server straggles.
    pub cut: f64,
    /// Fraction of servers that straggle in the long run.
    pub stragglers: f64,
    /// Mean seconds for which they do.
    pub straggle_s: f64,
    /// How much slower one is that nobody has measured, as a logarithm.
    pub depth: f64,
}

impl Default for SwitchingOptions {
    /// Those of the default drift.
    fn default() -> Self {
        let steady =
            FilterOptions { deviation: 0.07, drift_s: 86_400.0, noise: 0.04, ..FilterOptions::default() };
        Self { steady, cut: 0.6, stragglers: 0.05, straggle_s: 3600.0, depth: 1.6 }
    }
}

/// How likely a server straggles, and how much slower it then is, as a logarithm.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Straggling {
    chance: f64,
    depth: f64,
}

/// What measurements tell of servers' steady speeds, and of who straggles.
#[derive(Clone, Debug)]
pub struct SwitchingFilter {
    options: SwitchingOptions,
    steady: PerformanceFilter,
    /// [server].
    straggling: Vec<Straggling>,
}

impl SwitchingFilter {
    /// Before any measurement.
    pub fn new(servers: &Servers, options: SwitchingOptions) -> Self {
        let unknown = Straggling { chance: options.stragglers, depth: options.depth };
        let steady = PerformanceFilter::new(servers, options.steady);
        Self { options, steady, straggling: vec![unknown; servers.len()] }
    }

    /// Forgets all measurements.
    pub fn reset(&mut self) {
        self.steady.reset();
        self.straggling.fill(Straggling { chance: self.options.stragglers, depth: self.options.depth });
    }

    /// Time passes: chances go back to what they are in the long run.
    pub fn predict(&mut self, elapsed_s: f64) {
        self.steady.predict(elapsed_s);
        let SwitchingOptions { stragglers, straggle_s, .. } = self.options;
        // Leaving at 1/T and entering at s/(1−s)/T, a chain forgets at 1/T/(1−s).
        let kept = (-elapsed_s / straggle_s / (1.0 - stragglers)).exp();
        for Straggling { chance, .. } in &mut self.straggling {
            *chance = stragglers + (*chance - stragglers) * kept;
        }
    }

    /// A server was measured.
    pub fn observe(&mut self, server: ServerId, log_speed: f64) {
        let slower = self.steady.mean(server) - log_speed;
        self.straggling[server.index()] = if slower > self.options.cut {
            Straggling { chance: 1.0, depth: slower }
        } else {
            self.steady.observe(server, log_speed);
            Straggling { chance: 0.0, depth: self.options.depth }
        };
    }

    /// How likely a server straggles.
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
    use crate::dual_agent::cluster::servers;
    use crate::dual_agent::drift::{Drift, DriftOptions};
    use apportion::index::JobId;
    use apportion::workload::random::SeedStreams;

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

    /// Over rounds in which one server in five is used: what is expected of each against what it does.
    #[test]
    fn it_is_nearer_to_the_truth_than_a_filter_to_which_stragglers_are_noise() {
        let servers = servers(0.02);
        let mut errors = [0.0; 2];
        for seed in 1..5 {
            let mut drift = Drift::new(&servers, DriftOptions::default(), ROUND_S, seed);
            let mut switching = SwitchingFilter::new(&servers, SwitchingOptions::default());
            let mut plain = PerformanceFilter::new(&servers, FilterOptions::default());
            let mut draws = SeedStreams::new(seed).stream("who is seen");
            for _ in 0..100 {
                switching.predict(ROUND_S);
                plain.predict(ROUND_S);
                for server in servers.ids().filter(|_| draws.uniform() < 0.2) {
                    let measured = drift.measured(server, JobId::from_index(0), 1.0);
                    switching.observe(server, measured);
                    plain.observe(server, measured);
                }
                drift.step();
                for server in servers.ids() {
                    let truth = drift.log_speed(server, 1.0).exp();
                    let expected = [switching.expected(server), plain.mean(server)];
                    for (error, expected) in errors.iter_mut().zip(expected) {
                        *error += (expected.exp() - truth).powi(2);
                    }
                }
            }
        }
        assert!(errors[0] < 0.8 * errors[1], "{errors:?}");
    }
}
