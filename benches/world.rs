//! Benchmarks of decisions per second in the worlds of learned schedulers, with observation and mask.

#![expect(clippy::unwrap_used, reason = "a benchmark of known inputs")]

use std::hint::black_box;

use apportion::spec::Fidelity;
use apportion::throughput::elastic::{ElasticThroughputs, SurfaceOptions};
use apportion::throughput::spread::SpreadThroughputs;
use apportion::workload::random::{SeedStreams, Stream};
use apportion_published::deepshare::{self, DecisionsPerRound, DeepShareEpisode, Mix};
use apportion_published::dl2::{
    self, Dl2Episode, Dl2Options, Dl2Speeds, ObservationKind, RewardKind, SpeedModel, SpeedOptions, Window,
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// One action in DeepShare's world, with a round for each: observe, mask, draw, step, and reset when all jobs are done.
fn deepshare(criterion: &mut Criterion) {
    let tables = SpreadThroughputs::deepshare();
    let options = deepshare::EpisodeOptions {
        fidelity: Fidelity::Corrected,
        decisions: DecisionsPerRound::One,
        hybrid: false,
        preempts_first: false,
        contention_weight: 0.7,
        utilization_weight: 0.3,
    };
    let jobs = deepshare::generate(&tables, &Mix::Random, 256, 0).unwrap();
    let mut episode = DeepShareEpisode::new(&tables, options);
    episode.reset(&jobs);
    let mut draws = SeedStreams::new(0).stream("bench");
    let mut observation = [0.0; deepshare::OBSERVATION_LEN];
    let mut group = criterion.benchmark_group("how_many_decisions_a_second");
    group.throughput(Throughput::Elements(1));
    group.bench_function("deepshare", |bencher| {
        bencher.iter(|| {
            episode.observe(&mut observation);
            black_box(deepshare::mask(episode.world(), options.fidelity));
            if episode.step(draws.below(deepshare::N_ACTIONS)).done {
                episode.reset(&jobs);
            }
            black_box(&observation);
        });
    });
    group.finish();
}

/// One allowed action in DL2's world: observe, mask, draw, step, and reset when all jobs are done.
fn dl2(criterion: &mut Criterion) {
    let tables = ElasticThroughputs::dl2();
    let epochs: Vec<f64> = tables.job_types.iter().map(|job_type| job_type.samples_per_epoch).collect();
    let mut group = criterion.benchmark_group("how_many_decisions_a_second");
    group.throughput(Throughput::Elements(1));
    for (n_servers, n_window, n_jobs, rate) in [(48, 20, 60, 3), (500, 40, 200, 10)] {
        let cluster = Dl2Options { n_servers, ..Dl2Options::default() };
        let model = SpeedModel::Measured(SurfaceOptions::CORRECTED);
        let speeds = SpeedOptions { model, error: 0.0, seed: 0, tasks_max: cluster.tasks_max };
        let speeds = Dl2Speeds::new(&tables, speeds).unwrap();
        let window = Window::new(ObservationKind::Scaled, n_window, cluster.tasks_max, epochs.clone());
        let options = dl2::EpisodeOptions { cluster, starting_bundle: true, reward: RewardKind::Progress };
        let workload = dl2::WorkloadOptions { n_jobs, rate, ..dl2::WorkloadOptions::default() };
        let jobs = dl2::generate(&tables, &workload, 0).unwrap();
        let mut mask = vec![false; window.n_actions()];
        let mut observation = vec![0.0; window.n_rows() * window.n_jobs()];
        let mut episode = Dl2Episode::new(dl2::world(&tables, cluster), speeds, window, options);
        episode.reset(&jobs, 0);
        let mut draws = SeedStreams::new(0).stream("bench");
        group.bench_function(format!("dl2 on {n_servers} servers"), |bencher| {
            bencher.iter(|| {
                episode.window().observe(episode.world(), &mut observation);
                episode.window().mask(episode.world(), &mut mask);
                if episode.step(allowed(&mask, &mut draws)).done {
                    episode.reset(&jobs, 0);
                }
                black_box(&observation);
            });
        });
    }
    group.finish();
}

/// A uniformly drawn allowed action.
fn allowed(mask: &[bool], draws: &mut Stream) -> usize {
    let n = mask.iter().filter(|allowed| **allowed).count();
    let chosen = draws.below(n);
    mask.iter().enumerate().filter(|(_, allowed)| **allowed).nth(chosen).map_or(0, |(action, _)| action)
}

criterion_group!(benches, deepshare, dl2);
criterion_main!(benches);
