use std::sync::Arc;

use ndarray::Array3;
use proptest::prelude::*;

use super::*;
use apportion::throughput::{Measured, RowKey};
use apportion::units::{Seconds, Steps};
use apportion::workload::{Arrivals, Native, WorkloadOptions};

/// Kinds `a`, `b`, … at scale factor 1 on types `x`, `y`, …; co-located, each keeps this part of its speed.
fn matrix(speeds: &[Vec<f64>], retention: f64) -> Arc<Throughputs> {
    let (n_rows, n_types) = (speeds.len(), speeds[0].len());
    let colocated =
        Array3::from_shape_fn((n_types, n_rows, n_rows), |(j, row, _)| retention * speeds[row][j]);
    let name = |first: u8, index: usize| char::from(first + u8::try_from(index).unwrap()).to_string();
    Arc::new(
        Throughputs::try_new(Measured {
            name: "test".to_owned(),
            worker_types: (0..n_types).map(|j| name(b'x', j)).collect(),
            rows: (0..n_rows).map(|k| RowKey { job_type: name(b'a', k), scale_factor: 1 }).collect(),
            consolidated: speeds.to_vec(),
            spread: vec![vec![None; n_types]; n_rows],
            colocated,
        })
        .unwrap(),
    )
}

fn mix(kinds: &[(&str, f64)]) -> Vec<MixShare> {
    let share = |(job_type, probability): &(&str, f64)| MixShare {
        job_type: (*job_type).to_owned(),
        scale_factor: 1,
        probability: *probability,
        mean_steps: Steps::new(3600.0),
    };
    kinds.iter().map(share).collect()
}

fn bound(cluster: &str, throughputs: &Throughputs, mix: &[MixShare], pairs: bool) -> f64 {
    capacity(&cluster.parse().unwrap(), throughputs, mix, pairs).unwrap().bound.get()
}

#[track_caller]
fn assert_close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-6 * expected, "{found}, expected {expected}");
}

#[test]
fn one_kind_is_served_as_fast_as_the_workers_go() {
    // 3 workers at 2 steps/s make 6 steps/s; a job of 3600 steps an hour takes 1 step/s
    assert_close(bound("x=3", &matrix(&[vec![2.0]], 0.0), &mix(&[("a", 1.0)]), false), 6.0);
}

#[test]
fn each_kind_goes_where_it_has_the_advantage() {
    // a on x and b on y, 2 steps/s each, for 1/2 step/s each per job an hour
    let throughputs = matrix(&[vec![2.0, 1.0], vec![1.0, 2.0]], 0.0);
    assert_close(bound("x=1,y=1", &throughputs, &mix(&[("a", 0.5), ("b", 0.5)]), false), 4.0);
    // with 9 jobs in 10 of kind a, y is shared: a gets 2 + (1 − u), b gets 2u; 9·2u = 2 + 1 − u, u = 3/19
    assert_close(bound("x=1,y=1", &throughputs, &mix(&[("a", 0.9), ("b", 0.1)]), false), 60.0 / 19.0);
}

#[test]
fn sharing_workers_raises_the_capacity_where_it_pays() {
    let kinds = mix(&[("a", 0.5), ("b", 0.5)]);
    let speeds = [vec![1.0], vec![4.0]];
    // alone: one hour-job of a and b takes 1/2 + 1/8 of a worker
    assert_close(bound("x=1", &matrix(&speeds, 0.8), &kinds, false), 1.6);
    assert_close(bound("x=1", &matrix(&speeds, 0.8), &kinds, true), 1.6 * 1.6);
    assert_close(bound("x=1", &matrix(&speeds, 0.4), &kinds, true), 1.6);
}

#[test]
fn a_kind_that_runs_nowhere_leaves_no_rate() {
    let throughputs = matrix(&[vec![1.0], vec![0.0]], 0.0);
    let found =
        capacity(&"x=1".parse().unwrap(), &throughputs, &mix(&[("a", 0.5), ("b", 0.5)]), false).unwrap();
    assert!(found.bound.get().abs() < 1e-9, "{found:?}");
    assert!(found.is_exceeded_by(JobsPerHour::new(1e-3)));
}

#[test]
fn what_the_matrix_lacks_is_an_error() {
    let throughputs = matrix(&[vec![1.0]], 0.0);
    let on =
        |cluster: &str, kind| capacity(&cluster.parse().unwrap(), &throughputs, &mix(&[(kind, 1.0)]), false);
    assert!(matches!(on("x=1", "q"), Err(CapacityError::UnknownJobType { .. })));
    assert!(matches!(on("q=1", "a"), Err(CapacityError::Problem(_))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Two kinds on two types, compared with a search over all divisions of the two types.
    #[test]
    fn no_division_of_the_workers_does_better(
        speeds in proptest::collection::vec(proptest::collection::vec(0.2..5.0_f64, 2), 2),
        chance in 0.05..0.95_f64,
        n_workers in (1_u32..5, 1_u32..5),
    ) {
        let kinds = mix(&[("a", chance), ("b", 1.0 - chance)]);
        let found = bound(&format!("x={},y={}", n_workers.0, n_workers.1), &matrix(&speeds, 0.0), &kinds, false);
        let n = 400_u32;
        let mut best = 0.0_f64;
        for i in 0..=n {
            for j in 0..=n {
                let (u, v) = (f64::from(i) / f64::from(n), f64::from(j) / f64::from(n));
                let (x, y) = (f64::from(n_workers.0), f64::from(n_workers.1));
                let a = (speeds[0][0] * x * u + speeds[0][1] * y * v) / chance;
                let b = (speeds[1][0] * x * (1.0 - u) + speeds[1][1] * y * (1.0 - v)) / (1.0 - chance);
                best = best.max(a.min(b));
            }
        }
        prop_assert!(best <= found * (1.0 + 1e-9), "{best} {found}");
        prop_assert!(best >= found * 0.97, "{best} {found}");
    }
}

/// Number of jobs waiting or running when the last of `n_jobs` arrives, first come first served on equal workers.
fn n_waiting(throughputs: &Arc<Throughputs>, rate: f64, n_workers: usize, n_jobs: usize) -> usize {
    let options =
        WorkloadOptions::continuous(JobsPerHour::new(rate).mean_gap()).duration(Some(Seconds::new(900.0)));
    let mut jobs = Native::try_new(options, throughputs, 7).unwrap();
    let mut free_at = vec![0.0_f64; n_workers];
    let mut completions = Vec::new();
    let mut now = 0.0;
    for _ in 0..n_jobs {
        let job = jobs.next_job().unwrap();
        now = job.arrival.get();
        let speed = throughputs
            .alone(throughputs.find(&job.job_type, 1).unwrap(), apportion::index::Id::from_index(0));
        let first = (0..n_workers).min_by(|a, b| free_at[*a].total_cmp(&free_at[*b])).unwrap();
        free_at[first] = free_at[first].max(now) + job.total_steps.get() / speed;
        completions.push(free_at[first]);
    }
    completions.iter().filter(|end| **end > now).count()
}

#[test]
fn above_the_capacity_a_queue_grows_and_below_it_does_not() {
    let throughputs = matrix(&[vec![2.0], vec![5.0]], 0.0);
    let options = WorkloadOptions::continuous(Seconds::new(1.0)).duration(Some(Seconds::new(900.0)));
    let mix = Native::try_new(options, &throughputs, 7).unwrap().mix();
    // 4 workers, a quarter of an hour a job
    assert_close(bound("x=4", &throughputs, &mix, false), 16.0);
    let grown = |rate: f64| [4000, 16000].map(|n_jobs| n_waiting(&throughputs, rate, 4, n_jobs));
    let [early, late] = grown(16.0 * 1.05);
    assert!(late > 3 * early && late > 500, "{early} {late}");
    let [early, late] = grown(16.0 * 0.9);
    assert!(early < 60 && late < 60, "{early} {late}");
}
