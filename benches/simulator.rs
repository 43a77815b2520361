//! Benchmark of rounds per second.

#![expect(clippy::unwrap_used, reason = "a benchmark of known inputs")]

use std::hint::black_box;
use std::sync::Arc;

use apportion::policy::heuristic::Isolated;
use apportion::simulator::{Options, Simulation, Unobserved};
use apportion::workload::Listed;
use apportion::{Cluster, Job, StepsPerSecond, Throughputs};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// `n` jobs that never end on n workers of three types, with a fixed isolated allocation.
fn busy(n: u32) -> Simulation {
    let cluster: Cluster = format!("v100={},p100={},k80={}", n / 3, n / 3, n / 3).parse().unwrap();
    let jobs = (0..n).map(|index| {
        let speed = |factor: f64| StepsPerSecond::new(factor * (1.0 + f64::from(index % 7)));
        Job::new("endless")
            .steps(u32::MAX)
            .throughput("v100", speed(4.0))
            .throughput("p100", speed(2.0))
            .throughput("k80", speed(1.0))
    });
    let throughputs = Throughputs::embedded("osdi20").unwrap();
    let arrivals = Box::new(Listed::new(jobs.collect()));
    let system = (&cluster, Arc::clone(&throughputs));
    Simulation::new(system, arrivals, Box::new(Isolated::default()), Options::corrected()).unwrap()
}

fn how_many_rounds_a_second(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("how_many_rounds_a_second");
    group.throughput(Throughput::Elements(1));
    for n in [100, 1_000, 10_000] {
        let mut simulation = busy(n);
        simulation.step(&mut Unobserved).unwrap();
        group.bench_function(BenchmarkId::new("isolated", n), |bencher| {
            bencher.iter(|| black_box(simulation.step(&mut Unobserved).unwrap()));
        });
    }
    group.finish();
}

criterion_group!(benches, how_many_rounds_a_second);
criterion_main!(benches);
