use nalgebra::{DMatrix, DVector};

use super::*;
use crate::index::{Id, ServerId, WorkerTypeId};
use crate::workload::random::SeedStreams;

const KERNEL: KernelOptions = KernelOptions { length: 0.8, walking: 0.4, n_steps: 3 };

/// The places of servers of five types in racks of eight, in the proportions of PAI's cluster of 2020, scaled.
pub(super) fn servers(scale: f64) -> Vec<ServerPlace> {
    let mut places = Vec::new();
    let mut rack = 0;
    for (number, of_type) in [135.0_f64, 104.0, 798.0, 497.0, 280.0].into_iter().enumerate() {
        let count = (of_type * scale).round().max(1.0);
        for server in (0_u32..).take_while(|server| f64::from(*server) < count) {
            rack += u32::from(server > 0 && server % 8 == 0);
            places.push(ServerPlace { worker_type: WorkerTypeId::from_index(number), rack });
        }
        rack += 1;
    }
    places
}

fn id(server: usize) -> ServerId {
    ServerId::from_index(server)
}

fn dense(servers: &[ServerPlace], options: &KernelOptions) -> DMatrix<f64> {
    let mut matrix = DMatrix::zeros(servers.len(), servers.len());
    for (row, entries) in kernel(servers, options).iter().enumerate() {
        for (column, similarity) in entries {
            matrix[(row, *column)] = *similarity;
        }
    }
    matrix
}

/// The kernel by its definition, step by step in dense matrices.
fn defined(servers: &[ServerPlace], options: &KernelOptions) -> DMatrix<f64> {
    let n = servers.len();
    let apart = |one: usize, other: usize| servers[one].rack != servers[other].rack;
    let mut weights = DMatrix::<f64>::zeros(n, n);
    for one in 0..n {
        let alike = |other: &usize| servers[*other].worker_type == servers[one].worker_type && *other != one;
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
                let alike = servers[row].worker_type == servers[column].worker_type;
                assert!(alike || matrix[(row, column)] == 0.0);
            }
        }
        assert!(matrix[(8, 9)] > matrix[(8, 20)], "a rack is nearer than another");
    }
    let alone = dense(&servers, &KernelOptions { walking: 0.0, ..KERNEL });
    assert_eq!(alone, DMatrix::identity(n, n));
}

/// The filter's result from all measurements at once: cov = σ² K\[m, n\] (1 + min(t, t′)/τ), and noise.
fn batch(
    servers: &[ServerPlace],
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
        let mut filter = SpeedFilter::new(&servers, options);
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
        for row in 0..servers.len() {
            let server = id(row);
            assert!((filter.mean(server) - mean[row]).abs() < 1e-9, "{} {}", filter.mean(server), mean[row]);
            assert!((filter.variance(server) - covariance[(row, row)]).abs() < 1e-9);
        }
        filter.reset();
        assert!(filter.mean(id(0)).abs() < f64::MIN_POSITIVE);
    }
}
