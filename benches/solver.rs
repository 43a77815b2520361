//! Benchmarks of decisions and of their parts: the cases of `apportion bench`, small enough to be repeated.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use apportion::index::{Id, JobIndex};
use apportion::policy::{Policy, ProgramPolicy, Session};
use apportion::problem::ActiveJob;
use apportion::program::Program;
use apportion::solver::registry::{BACKENDS, default_chain};
use apportion::solver::{AnswerCertificate, Limits, solve_certified};
use apportion::{Catalog, PolicyOptions, Problem, Throughputs};
use apportion_studies::benchmark::{Instance, partition, split};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const JOBS: [usize; 3] = [64, 512, 2048];
/// The most jobs for slow backends.
const JOBS_MAX_SLOW: usize = 512;
/// Numbers of parts that a problem is split into.
const PARTS: [usize; 3] = [1, 2, 8];
/// The number of jobs of the problem in which one job comes or goes.
const JOBS_IN_SESSION: usize = 10_000;

fn drawn(instance: &Instance, n_jobs: usize) -> Problem {
    let throughputs: Arc<Throughputs> = Throughputs::embedded("osdi20").expect("embedded");
    instance.problem(n_jobs, 0, &throughputs).expect("a problem")
}

fn standard() -> Instance {
    Instance::Matrix { throughputs: "osdi20".to_owned(), distinct: false }
}

fn no_two_alike() -> Instance {
    Instance::Random { types: 3, heterogeneity: 10.0, density: 1.0 }
}

/// The published workload, with a different weight for each job.
fn unlike() -> Instance {
    Instance::Matrix { throughputs: "osdi20".to_owned(), distinct: true }
}

fn few_of_many_types() -> Instance {
    Instance::Restricted { types: 456, types_per_job: 8 }
}

fn policy(name: &str) -> ProgramPolicy {
    let built = Catalog::embedded().program(name, &PolicyOptions::default());
    built.expect("a policy").expect("a program")
}

/// The first program of a policy.
fn program(name: &str, problem: &Problem) -> Program {
    policy(name).programs(problem).expect("an optimum").swap_remove(0)
}

fn one_decision(c: &mut Criterion) {
    let cases = [
        ("max_min_fairness_perf", standard(), "standard", &[2048, 131_072][..]),
        ("max_min_fairness_packed", standard(), "standard", &[2048, 131_072]),
        ("max_min_fairness_water_filling_perf", standard(), "standard", &[2048, 131_072]),
        ("max_min_fairness_water_filling_packed", standard(), "standard", &[2048]),
        ("max_min_fairness_hierarchical_perf", standard(), "standard", &[2048]),
        ("max_min_fairness_packed", unlike(), "unlike", &[512]),
        ("max_min_fairness_water_filling_packed", unlike(), "unlike", &[256]),
        ("max_min_fairness_perf", no_two_alike(), "no two alike", &[512]),
        ("finish_time_fairness_perf", no_two_alike(), "no two alike", &[512]),
        ("min_total_duration_perf", no_two_alike(), "no two alike", &[512]),
        ("proportional_fairness", no_two_alike(), "no two alike", &[512]),
        ("max_sum_throughput_perf", no_two_alike(), "no two alike", &[512, 2048]),
        ("max_sum_throughput_normalized_by_cost_perf_SLOs", no_two_alike(), "no two alike", &[512, 2048]),
        ("max_min_fairness_perf", few_of_many_types(), "few of many types", &[500, 1750]),
        ("max_sum_throughput_perf", few_of_many_types(), "few of many types", &[500]),
    ];
    let mut group = c.benchmark_group("how_long_does_one_decision_take");
    for (name, instance, kind, sizes) in cases {
        for n_jobs in sizes {
            let problem = drawn(&instance, *n_jobs);
            let mut policy = policy(name);
            group.throughput(Throughput::Elements(*n_jobs as u64));
            group.bench_function(BenchmarkId::new(format!("{name}, {kind}"), n_jobs), |bencher| {
                bencher.iter(|| policy.allocate(black_box(&problem)).expect("an optimum"));
            });
        }
    }
    group.finish();
}

/// The partitioned baseline: jobs are split at random, the parts solved apart and put together again.
fn in_parts(c: &mut Criterion) {
    let mut group = c.benchmark_group("how_long_does_a_decision_in_parts_take");
    for (name, instance, kind) in [
        ("max_min_fairness_packed", standard(), "standard"),
        ("max_min_fairness_perf", no_two_alike(), "no two alike"),
    ] {
        let problem = drawn(&instance, JOBS_MAX_SLOW);
        for n_parts in PARTS {
            group.bench_function(BenchmarkId::new(format!("{name}, {kind}"), n_parts), |bencher| {
                bencher.iter(|| {
                    let parts = split(black_box(&problem), n_parts, 0).expect("parts");
                    partition::decide(&problem, &parts, || policy(name)).expect("an optimum")
                });
            });
        }
    }
    group.finish();
}

fn one_solve(c: &mut Criterion) {
    let mut group = c.benchmark_group("how_long_does_one_max_min_program_take");
    for n_jobs in JOBS {
        let program = program("max_min_fairness_perf", &drawn(&no_two_alike(), n_jobs));
        group.throughput(Throughput::Elements(n_jobs as u64));
        for entry in BACKENDS {
            let slow = matches!(entry.name, "good_lp-microlp" | "simplex") && n_jobs > JOBS_MAX_SLOW;
            if slow || entry.name == "separable" {
                continue;
            }
            group.bench_function(BenchmarkId::new(entry.name, n_jobs), |bencher| {
                let mut backend = entry.make();
                bencher.iter(|| backend.solve(black_box(&program), &Limits::default(), None));
            });
        }
    }
    group.finish();
}

fn around_a_solve(c: &mut Criterion) {
    let mut group = c.benchmark_group("what_does_a_certificate_cost");
    for n_jobs in JOBS {
        let program = program("max_min_fairness_perf", &drawn(&no_two_alike(), n_jobs));
        group.throughput(Throughput::Elements(n_jobs as u64));
        let certified = solve_certified(&program, &mut default_chain(&program), &Limits::default(), None)
            .expect("the program has an optimum");
        group.bench_function(BenchmarkId::new("certificate", n_jobs), |bencher| {
            bencher.iter(|| AnswerCertificate::of(black_box(&program), &certified.solution));
        });
    }
    group.finish();
}

/// Decisions after one job has come or gone: from scratch, and in a session.
fn the_next_round(c: &mut Criterion) {
    let mut group = c.benchmark_group("what_does_one_arrival_or_departure_cost");
    for (kind, instance) in [("standard", standard()), ("no two alike", no_two_alike())] {
        let problem = drawn(&instance, JOBS_IN_SESSION);
        group.bench_function(BenchmarkId::new("from scratch", kind), |bencher| {
            let mut policy = policy("max_min_fairness_perf");
            bencher.iter(|| policy.allocate(black_box(&problem)).expect("an optimum"));
        });
        let mut session = Session::new(policy("max_min_fairness_perf"), problem.clone()).expect("a session");
        session.decide().expect("an optimum");
        let mut away: Option<(ActiveJob, Vec<f64>)> = None;
        let mut next = 0;
        group.bench_function(BenchmarkId::new("session", kind), |bencher| {
            bencher.iter(|| {
                if let Some((job, speeds)) = away.take() {
                    session.insert(job, &speeds).expect("it was away");
                } else {
                    next = (next + 7) % (JOBS_IN_SESSION - 1);
                    let index = JobIndex::from_index(next);
                    let speeds = session.problem().throughput().row(index).to_vec();
                    let id = session.problem().jobs()[index].id;
                    away = Some((session.remove(id).expect("it was there"), speeds));
                }
                session.decide().expect("an optimum").solve.iterations
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10).measurement_time(Duration::from_secs(2));
    targets = one_decision, in_parts, one_solve, around_a_solve, the_next_round
}
criterion_main!(benches);
