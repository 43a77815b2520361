//! Benchmarks of decisions in training, and of updates.

#![expect(clippy::unwrap_used, reason = "a benchmark of known inputs")]
#![expect(clippy::cast_possible_truncation, reason = "the numbers of networks are 32-bit floats")]

use apportion::workload::random::SeedStreams;
use apportion_learn::actor::{Actor, UniformActor};
use apportion_learn::environment::{Environment, Space};
use apportion_learn::network::{Activation, MlpActor};
use apportion_learn::system::Registered;
use apportion_learn::tensors::Tensors;
use apportion_learn::textbook::{CartPole, Grid, Walls};
use apportion_learn::vectorized::{Length, Nobody, Vectorized};
use apportion_published::systems;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const STEPS: usize = 1_000;

/// An actor of random dense layers with two hidden layers. For DeepShare's space and `hidden` of 64 it has the size of DeepShare's
/// actor: 64 → 64 → 64 → 8.
fn actor(space: &Space, hidden: usize) -> MlpActor {
    let sizes = [space.observation_length(), hidden, hidden, space.n_actions];
    let mut stream = SeedStreams::new(1).stream("weights");
    let mut tensors = Tensors::default();
    for (layer, pair) in sizes.windows(2).enumerate() {
        let weights = (0..pair[0] * pair[1]).map(|_| stream.normal(0.0, 0.1) as f32).collect();
        tensors.insert(format!("actor.0.{layer}.weight"), vec![pair[1], pair[0]], weights).unwrap();
        tensors.insert(format!("actor.0.{layer}.bias"), vec![pair[1]], vec![0.0; pair[1]]).unwrap();
    }
    MlpActor::from_tensors(&tensors, 1, Activation::Tanh).unwrap()
}

fn steps<E: Environment>(name: &str, make: impl Fn() -> E, criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group(name);
    let space = make().spaces()[0].clone();
    let network = actor(&space, 64);
    for n_lanes in [1, 16] {
        group.throughput(Throughput::Elements((STEPS * n_lanes) as u64));
        for (kind, actor) in [("at random", &UniformActor as &dyn Actor), ("by 64 × 64", &network)] {
            let mut lanes = Vectorized::new(|_| make(), n_lanes, SeedStreams::new(1));
            let mut nobody = vec![Nobody; n_lanes];
            group.bench_function(BenchmarkId::new(kind, n_lanes), |bencher| {
                bencher.iter(|| lanes.collect(actor, Length::Steps(STEPS), &mut nobody).unwrap());
            });
        }
    }
}

fn how_many_decisions_a_second(criterion: &mut Criterion) {
    steps("how_many_decisions_a_second/grid", || Grid::new((4, 4), Walls::Masked, 50), criterion);
    steps("how_many_decisions_a_second/cart pole", CartPole::new, criterion);
    let deepshare = systems::open("deepshare", &serde_json::Value::Null).unwrap();
    steps("how_many_decisions_a_second/deepshare", || deepshare.environment(), criterion);

    let mut group = criterion.benchmark_group("how_many_decisions_a_second/at random");
    for Registered { name, open, .. } in systems::SYSTEMS {
        let system = open(&serde_json::Value::Null).unwrap();
        let mut lanes = Vectorized::new(|_| system.environment(), 16, SeedStreams::new(1));
        let mut nobody = vec![Nobody; 16];
        group.throughput(Throughput::Elements((STEPS * 16) as u64));
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter(|| lanes.collect(&UniformActor, Length::Steps(STEPS), &mut nobody).unwrap());
        });
    }
}

fn what_does_an_update_cost(criterion: &mut Criterion) {
    use std::hint::black_box;

    use apportion_learn::training::learner::Learner;
    use apportion_learn::training::model::{MlpModel, MlpOptions, Model};
    use apportion_learn::training::ppo::{Ppo, PpoOptions};

    let mut group = criterion.benchmark_group("what_does_a_minibatch_cost");
    group.sample_size(10);
    for minibatch in [64, 256] {
        // Observations have 64 numbers, and most of an update's time is spent on minibatches.
        let options = PpoOptions { n_steps: 1024, n_epochs: 1, minibatch, ..PpoOptions::default() };
        let streams = SeedStreams::new(1);
        let model = |lanes: &Vectorized<Grid>| {
            let model = MlpModel::new(lanes.spaces(), 0, &MlpOptions::default(), streams)?;
            Ok(Box::new(model) as Box<dyn Model>)
        };
        let make = |_| Grid::new((8, 8), Walls::Bumped, 50);
        let mut learner = Ppo::new(make, model, options, 1_000_000, streams).unwrap();
        group.throughput(Throughput::Elements((1024 / minibatch) as u64));
        group.bench_function(BenchmarkId::from_parameter(minibatch), |bencher| {
            bencher.iter(|| black_box(learner.update().unwrap()));
        });
    }
}

criterion_group!(benches, how_many_decisions_a_second, what_does_an_update_cost);
criterion_main!(benches);
