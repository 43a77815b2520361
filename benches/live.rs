//! Benchmarks of a live scheduler's rounds and submissions.

#![expect(clippy::unwrap_used, reason = "a benchmark of known inputs")]

use std::fs::File;
use std::io::Write;
use std::time::Duration;

use apportion_benches::pretend::{Jobs, Spent, World};
use apportion_benches::served::Served;
use apportion_benches::usage::time;
use apportion_live::core::Request;
use criterion::{Criterion, SamplingMode, criterion_group, criterion_main};

/// A function that picks the time of a part of a round.
type Part = fn(&Spent) -> Duration;

/// Processor time of a round of 1,000 jobs on 500 workers.
fn rounds(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("what_does_a_live_round_cost");
    group.sample_size(10).sampling_mode(SamplingMode::Flat).measurement_time(Duration::from_millis(100));
    for per_server in [4, 1] {
        let mut world = World::new(per_server, (1_000, 1.0), None);
        let _ = world.round();
        let parts: [(&str, Part); 3] =
            [("decision", |spent| spent.decision), ("turn", |spent| spent.turn), ("all", |spent| spent.all)];
        for (name, part) in parts {
            group.bench_function(format!("{name}, {per_server} workers a server"), |bencher| {
                bencher.iter_custom(|n| (0..n).map(|_| part(&world.round())).sum());
            });
        }
    }
    group.finish();
}

/// Time of an acknowledged submission to a scheduler with 1,000 jobs, and of a page synced on the same disk.
fn submissions(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let mut served = Served::start(folder.path());
    let mut jobs = Jobs::new();
    for _ in 0..1_000 {
        let (submission, speeds) = jobs.next(1.0);
        served.submit(submission, speeds);
    }
    let client = served.client();
    let mut group = criterion.benchmark_group("how_long_does_a_submission_take");
    group.bench_function("acknowledged", |bencher| {
        bencher.iter_custom(|n| {
            let mut took = Duration::ZERO;
            for _ in 0..n {
                let (submission, speeds) = jobs.next(1.0);
                let before = time();
                let job = served.submit(submission, speeds);
                took += time().saturating_sub(before);
                // The scheduler has 1,000 jobs again.
                client.ask(Request::Cancel(job)).unwrap().unwrap();
            }
            took
        });
    });
    let mut file = File::create(folder.path().join("page")).unwrap();
    group.bench_function("a page appended and synced", |bencher| {
        bencher.iter(|| {
            file.write_all(&[1; 4096]).unwrap();
            file.sync_all().unwrap();
        });
    });
    group.finish();
}

criterion_group!(benches, rounds, submissions);
criterion_main!(benches);
