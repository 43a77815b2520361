//! Tests that proximal policy optimization finds known optima, and the same weights on any number of threads.

use super::*;
use crate::actor::{Actor, Scratch, masked_softmax};
use crate::textbook::{Bandit, CartPole, Grid, Pairing, Walls};
use crate::training::model::{MlpModel, MlpOptions};

fn ppo<E: Environment>(
    make: impl Fn(usize) -> E,
    options: PpoOptions,
    hidden: Vec<usize>,
    seed: u64,
) -> Ppo<E> {
    let streams = SeedStreams::new(seed);
    let model = |environments: &Vectorized<E>| {
        let layers = MlpOptions { hidden, ..MlpOptions::default() };
        let model = MlpModel::new(environments.spaces(), environments.state_length(), &layers, streams)?;
        Ok(Box::new(model) as Box<dyn Model>)
    };
    Ppo::new(make, model, options, 100_000, streams).unwrap()
}

/// Options of a small and quick training.
fn quick() -> PpoOptions {
    PpoOptions {
        n_environments: 4,
        n_steps: 64,
        n_epochs: 4,
        learning_rate: Schedule::Constant(3e-3),
        ..PpoOptions::default()
    }
}

/// The mean return of the last of `n_updates` updates in which an episode ended.
fn train(learner: &mut dyn Learner, n_updates: usize) -> f64 {
    let returns = (0..n_updates).filter_map(|_| learner.update().unwrap().mean_return());
    returns.last().unwrap()
}

fn probabilities(actor: &dyn Actor, observation: &[f32], mask: &[bool]) -> Vec<f32> {
    let mut numbers = vec![0.0; mask.len()];
    actor.logits(0, observation, &mut Scratch::default(), &mut numbers).unwrap();
    masked_softmax(&mut numbers, mask).unwrap();
    numbers
}

#[test]
fn the_defaults_are_those_of_stable_baselines() {
    let options: PpoOptions = serde_json::from_str("{}").unwrap();
    assert_eq!(options, PpoOptions::default());
    assert_eq!((options.n_steps, options.n_epochs, options.minibatch), (2048, 10, 64));
    assert_eq!(options.learning_rate, Schedule::Constant(3e-4));
    assert!(PpoOptions { discount: 1.5, ..options.clone() }.check().is_err());
    let error = PpoOptions { minibatch: 0, ..options }.check().unwrap_err().to_string();
    assert_eq!(error, "`minibatch` is 0, expected a whole number above 0");
}

#[test]
fn the_best_arm_is_found() {
    let mut learner = ppo(|_| Bandit::new(vec![0.2, 0.9, 0.5, 0.7]), quick(), vec![8], 1);
    let last = train(&mut learner, 30);
    let chances = probabilities(&*learner.model().actor().unwrap(), &[1.0], &[true; 4]);
    assert!(chances[1] > 0.95 && last > 0.8, "{chances:?} {last}");
}

#[test]
fn the_shortest_way_is_found_with_walls_and_with_masks() {
    for walls in [Walls::Bumped, Walls::Masked] {
        let best = Grid::new((4, 3), walls, 40).best_mean_return();
        let mut learner = ppo(|_| Grid::new((4, 3), walls, 40), quick(), vec![32], 2);
        train(&mut learner, 40);
        let mut episodes = Vec::new();
        for _ in 0..8 {
            episodes.extend(learner.update().unwrap().finished);
        }
        let mean = episodes.iter().map(|episode| episode.total_reward).sum::<f64>() / episodes.len() as f64;
        assert!(mean > best - 0.5, "{walls:?}: {mean}, best {best}");
    }
}

#[test]
fn a_pole_is_balanced() {
    let options = PpoOptions {
        n_environments: 4,
        n_steps: 256,
        learning_rate: Schedule::Linear { from: 2e-3, to: 5e-4 },
        n_epochs: 8,
        minibatch: 128,
        ..PpoOptions::default()
    };
    let mut learner = ppo(|_| CartPole::new(), options, vec![32, 32], 3);
    let best = (0..60).filter_map(|_| learner.update().unwrap().mean_return()).fold(0.0, f64::max);
    // Gymnasium counts a mean return of 475 of 500 as solved.
    assert!(best >= 475.0, "{best}");
}

#[test]
fn a_team_with_one_critic_pairs_almost_as_well_as_can_be() {
    const N: usize = 3;
    let options =
        PpoOptions { n_environments: 8, n_steps: 96, entropy_weight: Schedule::Constant(0.005), ..quick() };
    let mut learner = ppo(|_| Pairing::new(N), options, vec![32, 32], 4);
    train(&mut learner, 60);
    let actor = learner.model().actor().unwrap();
    let play = |actor: &dyn Actor, n: usize| {
        let mut pairs = Vectorized::new(|_| Pairing::new(N), 1, SeedStreams::new(99));
        let mut nobody = [crate::vectorized::Nobody];
        let finished = pairs.collect(actor, Length::Steps(2 * N * n), &mut nobody).unwrap();
        finished.iter().map(|episode| episode.total_reward).sum::<f64>() / n as f64
    };
    let mut seeds = SeedStreams::new(99).stream("episodes of copy 0");
    let best: f64 =
        (0..400).map(|_| f64::from(Pairing::new(N).best_return(seeds.next_u64()))).sum::<f64>() / 400.0;
    let (random, learned) = (play(&crate::actor::UniformActor, 400), play(&*actor, 400));
    // The part of the way from the random to the best return.
    let share = (learned - random) / (best - random);
    assert!(share > 0.9 && share <= 1.0, "random {random}, learned {learned}, best {best}");
}

#[test]
fn the_critic_may_learn_first_and_an_update_may_end_early() {
    let weights = |learner: &Ppo<Grid>| learner.model().parameters().to_tensors().unwrap();
    let begin = |options| ppo(|_| Grid::new((4, 3), Walls::Masked, 40), options, vec![16], 7);
    let mut learner = begin(PpoOptions { critic_first: 2, ..quick() });
    let mut changed = Vec::new();
    for _ in 0..3 {
        let before = weights(&learner);
        learner.update().unwrap();
        let after = weights(&learner);
        changed.push(["actor.", "critic."].map(|part| before.below(part) != after.below(part)));
    }
    assert_eq!(changed, [[false, true], [false, true], [true, true]]);
    let steps = |divergence_max| {
        let mut learner = begin(PpoOptions { divergence_max, ..quick() });
        learner.update().unwrap();
        learner.adam.n_steps()
    };
    // Four epochs of 256 decisions in minibatches of 64.
    assert_eq!([steps(None), steps(Some(1e9)), steps(Some(1e-9))], [16, 16, 4]);
    let error = PpoOptions { divergence_max: Some(0.0), ..quick() }.check().unwrap_err().to_string();
    assert_eq!(error, "`divergence_max` is 0, expected a finite number above 0");
}

#[test]
fn the_same_seed_gives_the_same_weights_on_any_number_of_threads() {
    let weights = |n_threads, seed| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| {
            let mut learner = ppo(|_| Grid::new((4, 3), Walls::Masked, 40), quick(), vec![16], seed);
            train(&mut learner, 3);
            learner.save().unwrap()
        })
    };
    let one = weights(1, 7);
    assert_eq!(one, weights(4, 7));
    assert_ne!(one.tensors, weights(1, 8).tensors);
}

#[test]
fn a_training_that_was_stopped_goes_on_bit_for_bit() {
    let begin = || ppo(|_| Grid::new((4, 3), Walls::Masked, 40), quick(), vec![16], 7);
    let mut whole = begin();
    train(&mut whole, 3);
    let saved = whole.save().unwrap();
    let mut resumed = begin();
    resumed.restore(&saved).unwrap();
    assert_eq!(resumed.save().unwrap(), saved);
    assert_eq!(whole.update().unwrap(), resumed.update().unwrap());
    train(&mut whole, 2);
    train(&mut resumed, 2);
    assert_eq!(whole.save().unwrap(), resumed.save().unwrap());
    let mut other = ppo(|_| Grid::new((4, 3), Walls::Masked, 40), quick(), vec![24], 7);
    let error = other.restore(&saved).unwrap_err().to_string();
    assert!(error.contains("has shape [16, 12], and this training's has [24, 12]"), "{error}");
}
