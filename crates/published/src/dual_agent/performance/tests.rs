use nalgebra::{DMatrix, DVector};

use super::*;
use crate::dual_agent::cluster::{servers, type_of};
use crate::dual_agent::drift::{Drift, DriftOptions};
use crate::world::Servers;
use apportion::index::{Id, ServerId};
use apportion::workload::random::SeedStreams;

const KERNEL: KernelOptions = KernelOptions { length: 0.8, walking: 0.4, n_steps: 3 };

fn id(server: usize) -> ServerId {
    ServerId::from_index(server)
}

fn dense(servers: &Servers, options: &KernelOptions) -> DMatrix<f64> {
    let mut matrix = DMatrix::zeros(servers.len(), servers.len());
    for (row, entries) in kernel(servers, options).iter().enumerate() {
        for (column, similarity) in entries {
            matrix[(row, *column)] = *similarity;
        }
    }
    matrix
}

/// The kernel as it is defined, step by step in dense matrices.
fn defined(servers: &Servers, options: &KernelOptions) -> DMatrix<f64> {
    let n = servers.len();
    let apart = |one: usize, other: usize| servers.rack(id(one)) != servers.rack(id(other));
    let mut weights = DMatrix::<f64>::zeros(n, n);
    for one in 0..n {
        let alike =
            |other: &usize| type_of(servers, id(*other)) == type_of(servers, id(one)) && *other != one;
        let mut near: Vec<usize> = (0..n).filter(alike).collect();
        near.sort_by_key(|other| (apart(one, *other), other.abs_diff(one), *other));
        for other in near.into_iter().take(10) {
            let distance = f64::from(apart(one, other));
            let weight = (-distance.powi(2) / (2.0 * options.length.powi(2))).exp();
            (weights[(one, other)], weights[(other, one)]) = (weight, weight);
        }
    }
    let degrees = weights.column_sum();
    let step = DMatrix::from_fn(n, n, |row, column| {
        let stays = f64::from(row == column);
        let walks = if degrees[row] > 0.0 {
            weights[(row, column)] / (degrees[row] * degrees[column]).sqrt().max(1e-300)
        } else {
            stays
        };
        (1.0 - options.walking) * stays + options.walking * walks
    });
    (0..options.n_steps).fold(DMatrix::identity(n, n), |kernel, _| &kernel * &step)
}

#[test]
fn the_kernel_is_what_it_is_defined_as() {
    for (scale, walking, n_steps) in [(0.002, 0.4, 3), (0.012, 0.12, 2), (0.05, 0.5, 4), (0.05, 0.0, 2)] {
        let servers = servers(scale);
        let options = KernelOptions { walking, n_steps, ..KERNEL };
        let difference = dense(&servers, &options) - defined(&servers, &options);
        assert!(difference.abs().max() < 1e-14, "{scale}");
    }
}

#[test]
fn the_kernel_is_a_covariance_within_types() {
    let servers = servers(0.03);
    let n = servers.len();
    for walking in [0.05, 0.3, 0.5] {
        let matrix = dense(&servers, &KernelOptions { walking, ..KERNEL });
        assert!((&matrix - matrix.transpose()).abs().max() < 1e-12);
        let least = matrix.clone().symmetric_eigenvalues().min();
        assert!(least > -1e-12, "{walking}: {least}");
        for row in 0..n {
            for column in 0..n {
                let alike = type_of(&servers, id(row)) == type_of(&servers, id(column));
                assert!(alike || matrix[(row, column)] == 0.0);
            }
        }
        assert!(matrix[(8, 9)] > matrix[(8, 20)], "a rack is nearer than another");
    }
    let alone = dense(&servers, &KernelOptions { walking: 0.0, ..KERNEL });
    assert_eq!(alone, DMatrix::identity(n, n));
}

/// Σ of all measurements at once: cov = σ² K\[m, n\] (1 + min(t, t′)/τ), and noise.
fn batch(
    servers: &Servers,
    options: &FilterOptions,
    seen: &[(f64, ServerId, f64)],
    now_s: f64,
) -> (DVector<f64>, DMatrix<f64>) {
    let matrix = dense(servers, &options.kernel);
    let covariance = |(t, m): (f64, ServerId), (u, n): (f64, ServerId)| {
        options.deviation.powi(2) * matrix[(m.index(), n.index())] * (1.0 + t.min(u) / options.drift_s)
    };
    let n = servers.len();
    let gram = DMatrix::from_fn(seen.len(), seen.len(), |row, column| {
        let noise = if row == column { options.noise.powi(2) } else { 0.0 };
        covariance((seen[row].0, seen[row].1), (seen[column].0, seen[column].1)) + noise
    });
    let cross = DMatrix::from_fn(n, seen.len(), |row, column| {
        covariance((now_s, id(row)), (seen[column].0, seen[column].1))
    });
    let own = DMatrix::from_fn(n, n, |row, column| covariance((now_s, id(row)), (now_s, id(column))));
    let values = DVector::from_iterator(seen.len(), seen.iter().map(|(.., value)| *value));
    let inverse = gram.try_inverse().unwrap();
    (&cross * &inverse * values, own - &cross * inverse * cross.transpose())
}

#[test]
fn the_filter_gives_what_all_measurements_at_once_give() {
    let servers = servers(0.012);
    for (seed, drift_s) in [(1, 900.0), (2, 7200.0), (3, f64::INFINITY)] {
        let options = FilterOptions { kernel: KERNEL, deviation: 0.3, drift_s, noise: 0.1 };
        let mut filter = PerformanceFilter::new(&servers, options);
        let mut draws = SeedStreams::new(seed).stream("test");
        let (mut now_s, mut seen) = (0.0, Vec::new());
        for _ in 0..60 {
            if draws.uniform() < 0.5 {
                let elapsed_s = draws.uniform_in(10.0, 1000.0);
                now_s += elapsed_s;
                filter.predict(elapsed_s);
            } else {
                let (server, value) = (id(draws.below(servers.len())), draws.normal(0.0, 0.4));
                filter.observe(server, value);
                seen.push((now_s, server, value));
            }
        }
        let (mean, covariance) = batch(&servers, &options, &seen, now_s);
        for server in servers.ids() {
            let row = server.index();
            assert!((filter.mean(server) - mean[row]).abs() < 1e-9, "{} {}", filter.mean(server), mean[row]);
            assert!((filter.variance(server) - covariance[(row, row)]).abs() < 1e-9);
        }
        filter.reset();
        assert!(filter.mean(id(0)).abs() < f64::MIN_POSITIVE);
    }
}

/// Rounds in which each server is seen by chance.
fn simulated(servers: &Servers, options: DriftOptions, n_rounds: usize, seed: u64) -> Vec<Record> {
    let mut drift = Drift::new(servers, options, 300.0, seed);
    let mut draws = SeedStreams::new(seed).stream("who is seen");
    let round = |_| {
        drift.step();
        let job = apportion::index::JobId::from_index(0);
        let seen = servers.ids().filter(|_| draws.uniform() < 0.1);
        let measured = seen.collect::<Vec<_>>();
        let value = |server: ServerId| (server, drift.measured(server, job, 1.0));
        Record { elapsed_s: 300.0, measured: measured.into_iter().map(value).collect() }
    };
    (0..n_rounds).map(round).collect()
}

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
    let (fitted, _) = fit(&servers, &simulated(&servers, drift, 60, 1), 40);
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
        |options: FilterOptions| judged(Predictor::Filter(PerformanceFilter::new(&servers, options)));
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
    let (fitted, best) = fit(&servers, &records, 30);
    let filter = PerformanceFilter::new(&servers, FilterOptions::default());
    let found = score(Predictor::Filter(filter), &records, 0);
    assert!(found.log_likelihood > best.log_likelihood - 0.1, "{found:?}, {best:?} of {fitted:?}");
}
