//! What one allocation costs, by solver and number of jobs, no two of them alike.

#[path = "../tests/suite/allocation_programs.rs"]
#[expect(dead_code, reason = "shared with the tests, which use more of it")]
mod allocation_programs;

use std::hint::black_box;
use std::time::Duration;

use allocation_programs::{Draws, Numbers};
use apportion::program::Program;
use apportion::solver::registry::{BACKENDS, default_chain};
use apportion::solver::{Certificate, Limits, WarmStart, solve_certified};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const JOBS: [usize; 3] = [64, 512, 2048];
/// microlp takes seconds beyond this.
const JOBS_MAX_MICROLP: usize = 512;

/// Max-min fairness of `n` jobs on three types, the same for every backend.
fn max_min(n: usize) -> Program {
    let numbers = Numbers::draw(&mut Draws::new(1), n, 3, 0.0);
    numbers.max_min(|m| numbers.fairness(m))
}

fn one_solve(c: &mut Criterion) {
    let mut group = c.benchmark_group("how_long_does_one_max_min_program_take");
    for n in JOBS {
        let program = max_min(n);
        group.throughput(Throughput::Elements(n as u64));
        for entry in BACKENDS {
            if entry.name == "good_lp-microlp" && n > JOBS_MAX_MICROLP {
                continue;
            }
            group.bench_function(BenchmarkId::new(entry.name, n), |bencher| {
                let mut backend = entry.make();
                bencher.iter(|| backend.solve(black_box(&program), &Limits::default(), None));
            });
        }
    }
    group.finish();
}

fn around_a_solve(c: &mut Criterion) {
    let mut group = c.benchmark_group("what_do_a_certificate_and_a_warm_start_cost");
    for n in JOBS {
        let program = max_min(n);
        group.throughput(Throughput::Elements(n as u64));
        let certified = solve_certified(&program, &mut default_chain(&program), &Limits::default(), None)
            .expect("the program has an optimum");
        group.bench_function(BenchmarkId::new("certificate", n), |bencher| {
            bencher.iter(|| Certificate::of(black_box(&program), &certified.solution));
        });
        let warm = WarmStart { basis: certified.solution.basis.clone(), ..WarmStart::default() };
        group.bench_function(BenchmarkId::new("same program from its basis, certified", n), |bencher| {
            let mut chain = default_chain(&program);
            bencher
                .iter(|| solve_certified(black_box(&program), &mut chain, &Limits::default(), Some(&warm)));
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).measurement_time(Duration::from_secs(2));
    targets = one_solve, around_a_solve
}
criterion_main!(benches);
