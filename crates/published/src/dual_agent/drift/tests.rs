//! Tests of the engine's estimates of servers' speeds against servers that drift by this model.

use super::*;
use crate::dual_agent::cluster::servers;
use apportion::throughput::server_speeds::{
    ExponentialAverage, FilterOptions, KernelOptions, Predictor, Record, Score, SpeedFilter, SwitchingFilter,
    SwitchingOptions, fit, score,
};
use apportion::workload::random::SeedStreams;

const ROUND_S: f64 = 300.0;

/// Measurements of rounds, each with about one server in ten, drawn at random.
fn simulated(servers: &Servers, options: DriftOptions, n_rounds: usize, seed: u64) -> Vec<Record> {
    let mut drift = Drift::new(servers, options, 300.0, seed);
    let mut draws = SeedStreams::new(seed).stream("who is seen");
    let round = |_| {
        drift.step();
        let job = JobId::from_index(0);
        let seen = servers.ids().filter(|_| draws.uniform() < 0.1);
        let measured = seen.collect::<Vec<_>>();
        let value = |server: ServerId| (server, drift.measured(server, job, 1.0));
        Record { elapsed_s: 300.0, measured: measured.into_iter().map(value).collect() }
    };
    (0..n_rounds).map(round).collect()
}

/// Predictions in a steady world, which no study trains in: no stragglers, 4 times the bias and 2 times the walk, racks correlated
/// by 0.9. In the default world, servers of a rack say too little about one another for this.
#[test]
fn the_process_foretells_better_than_what_knows_less() {
    let servers = servers(0.02);
    let drift = DriftOptions {
        bias: 0.2,
        walk: 0.1,
        rack_correlation: 0.9,
        stragglers: 0.0,
        ..DriftOptions::default()
    };
    let (fitted, _) = fit(servers.places(), &simulated(&servers, drift, 60, 1), 40);
    let tests: Vec<_> = (2..10).map(|seed| simulated(&servers, drift, 40, seed)).collect();
    let judged = |predictor: Predictor| {
        let scores = tests.iter().map(|records| score(predictor.clone(), records, 0));
        let n = tests.len() as f64;
        scores.fold(Score::default(), |mean, one| Score {
            log_likelihood: mean.log_likelihood + one.log_likelihood / n,
            coverage_90: mean.coverage_90 + one.coverage_90 / n,
        })
    };
    let filter =
        |options: FilterOptions| judged(Predictor::Filter(SpeedFilter::new(servers.places(), options)));
    let found = filter(fitted);
    let alone = filter(FilterOptions { kernel: KernelOptions { walking: 0.0, ..fitted.kernel }, ..fitted });
    let still = filter(FilterOptions { drift_s: f64::INFINITY, ..fitted });
    let averages = [0.05, 0.1, 0.2, 0.4, 0.8].map(|weight| {
        judged(Predictor::Average(ExponentialAverage::new(servers.len(), weight, fitted.deviation)))
    });
    let better = |one: &Score, other: &Score| one.log_likelihood.total_cmp(&other.log_likelihood);
    let average = averages.into_iter().max_by(better).unwrap();
    let all = format!("{fitted:?}: {found:?}; alone {alone:?}; still {still:?}; average {average:?}");
    assert!((0.85..=0.95).contains(&found.coverage_90), "{all}");
    for less in [alone, still, average] {
        assert!(found.log_likelihood > less.log_likelihood + 0.02, "{all}");
    }
}

#[test]
fn the_default_constants_foretell_about_as_well_as_any() {
    let servers = servers(0.02);
    let records = simulated(&servers, DriftOptions::default(), 150, 3);
    let (fitted, best) = fit(servers.places(), &records, 30);
    let filter = SpeedFilter::new(servers.places(), FilterOptions::default());
    let found = score(Predictor::Filter(filter), &records, 0);
    assert!(found.log_likelihood > best.log_likelihood - 0.1, "{found:?}, {best:?} of {fitted:?}");
}

/// Squared errors of expected speeds of both filters, over rounds in which one server in five is measured.
#[test]
fn it_is_nearer_to_the_truth_than_a_filter_to_which_stragglers_are_noise() {
    let servers = servers(0.02);
    let mut errors = [0.0; 2];
    for seed in 1..5 {
        let mut drift = Drift::new(&servers, DriftOptions::default(), ROUND_S, seed);
        let mut switching = SwitchingFilter::new(servers.places(), SwitchingOptions::default());
        let mut plain = SpeedFilter::new(servers.places(), FilterOptions::default());
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
