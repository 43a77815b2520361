//! Tests of learning from replay: its gradient is that of its loss, and it finds known optima.

use candle_core::{D, Var};

use super::*;
use crate::actor::{Scratch, masked_softmax};
use crate::textbook::{Bandit, Grid, Pairing, Walls};
use crate::training::distribution::{entropy, of_actions};
use crate::training::exploration::{AsDrawn, Corrected, EpsilonGreedy};
use crate::training::model::{MlpModel, MlpOptions};
use crate::vectorized::Moment;

fn learner<E: Environment>(
    make: impl Fn(usize) -> E,
    explore: impl Fn(usize) -> Box<dyn Exploration>,
    options: ActorCriticOptions,
) -> ActorCritic<E> {
    let streams = SeedStreams::new(11);
    let model = |environments: &Vectorized<E>| {
        let layers = MlpOptions { hidden: vec![24], ..MlpOptions::default() };
        Ok(Box::new(MlpModel::new(environments.spaces(), 0, &layers, streams)?) as Box<dyn Model>)
    };
    ActorCritic::new(make, (model, explore), options, 100_000, streams).unwrap()
}

fn as_drawn(_lane: usize) -> Box<dyn Exploration> {
    Box::new(AsDrawn)
}

/// Options of a small and quick training.
fn quick() -> ActorCriticOptions {
    ActorCriticOptions {
        batch: 64,
        replay: 256,
        learning_rate: Schedule::Constant(5e-3),
        ..ActorCriticOptions::default()
    }
}

fn train<E: Environment>(learner: &mut ActorCritic<E>, n_updates: usize) {
    for _ in 0..n_updates {
        learner.update().unwrap();
    }
}

fn probabilities<E: Environment>(learner: &ActorCritic<E>, observation: &[f32], mask: &[bool]) -> Vec<f32> {
    let mut numbers = vec![0.0; mask.len()];
    learner.model().actor().unwrap().logits(0, observation, &mut Scratch::default(), &mut numbers).unwrap();
    masked_softmax(&mut numbers, mask).unwrap();
    numbers
}

#[test]
fn slopes_are_the_gradient_of_the_loss() {
    let numbers = [0.3f32, -1.0, 0.7, 2.0, 0.1, -0.4, 0.9, 0.0];
    let mask = [true, true, false, true, true, true, true, true];
    let (actions, advantages, weight) = ([3, 1], [0.8f32, -1.5], 0.37);
    let logits = Var::from_slice(&numbers, (2, 4), &Device::Cpu).unwrap();
    let logs = log_probabilities(&logits, &penalty(&mask, 4).unwrap()).unwrap();
    let taken = of_actions(&logs, &actions).unwrap();
    let judged = (taken * Tensor::new(&advantages, &Device::Cpu).unwrap()).unwrap().sum_all().unwrap();
    let entropies = entropy(&logs).unwrap().sum_all().unwrap();
    let loss = ((judged.neg().unwrap() / 2.0).unwrap() - (entropies * (weight / 8.0)).unwrap()).unwrap();
    let expected =
        loss.backward().unwrap().get(&logits).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
    let probabilities = logs.exp().unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
    let (found, mean_entropy) = slopes(&probabilities, &actions, &advantages, weight);
    for (found, expected) in found.iter().zip(&expected) {
        assert!((found - expected).abs() < 1e-6, "{found} {expected}");
    }
    let mean = entropy(&logs).unwrap().mean(D::Minus1).unwrap().to_scalar::<f32>().unwrap();
    assert!((mean_entropy - f64::from(mean)).abs() < 1e-6);
}

#[test]
fn the_defaults_are_those_of_the_released_trainer() {
    let options: ActorCriticOptions = serde_json::from_str("{}").unwrap();
    assert_eq!((options.batch, options.replay, options.discount), (256, 8192, None));
    assert_eq!(
        (options.learning_rate, options.entropy_weight),
        (Schedule::Constant(1e-4), Schedule::Constant(0.1))
    );
    options.check().unwrap();
    // Files of weights hold the document that made them, which leaves out options that are as published.
    let written = serde_json::to_value(&options).unwrap();
    let later = ["baseline", "credit", "latest_round", "normalize_advantages", "critic_learning_rate"];
    assert!(later.iter().all(|field| written.get(field).is_none()), "{written}");
    let endless = Some(Schedule::Constant(f64::NAN));
    let endless = ActorCriticOptions { critic_learning_rate: endless, ..options.clone() };
    assert!(endless.check().unwrap_err().to_string().starts_with("`critic_learning_rate` is"));
    let bare = ActorCriticOptions { critic: false, discount: Some(0.9), ..options.clone() };
    assert!(bare.check().unwrap_err().to_string().contains("no critic"));
    assert!(ActorCriticOptions { replay: 10, ..options }.check().is_err());
}

#[test]
fn the_best_arm_is_found_by_every_variant() {
    let variants = [
        quick(),
        ActorCriticOptions { gradient: GradientAt::Recomputed, ..quick() },
        ActorCriticOptions { critic: false, ..quick() },
        ActorCriticOptions { normalize_advantages: true, baseline: Baseline::Round, ..quick() },
        ActorCriticOptions { priorities: None, n_environments: 2, ..quick() },
        ActorCriticOptions { latest_round: true, credit: Credit::Job, ..quick() },
    ];
    for options in variants {
        let mut learner = learner(|_| Bandit::new(vec![0.2, 0.5, 0.95]), as_drawn, options.clone());
        train(&mut learner, 700);
        let chances = probabilities(&learner, &[1.0], &[true; 3]);
        assert!(chances[2] > 0.9, "{options:?}: {chances:?}");
    }
}

#[test]
fn what_follows_counts_where_returns_are_discounted() {
    // In a corridor each step costs the same, so by the round's reward alone no direction is better.
    let end_probability = |discount| {
        let options = ActorCriticOptions { discount, gradient: GradientAt::Recomputed, ..quick() };
        let mut learner = learner(|_| Grid::new((4, 1), Walls::Masked, 30), as_drawn, options);
        train(&mut learner, 1500);
        probabilities(&learner, &[0.0, 1.0, 0.0, 0.0], &[true, true, false, false])[1]
    };
    assert!(end_probability(Some(0.9)) > 0.85);
    assert!(end_probability(None) < 0.85);
}

#[test]
fn the_critic_has_a_rate_of_its_own() {
    let of_critic = Some(Schedule::Constant(0.0));
    let options = ActorCriticOptions { critic_learning_rate: of_critic, ..quick() };
    let mut learner = learner(|_| Bandit::new(vec![0.2, 0.9]), as_drawn, options);
    let before = learner.model().parameters().to_tensors().unwrap();
    train(&mut learner, 300);
    let after = learner.model().parameters().to_tensors().unwrap();
    for (name, _, numbers) in before.iter() {
        let moved = numbers != after.get(name).unwrap().1;
        // The actor's observation is a constant, so the biases of its first layer move as well.
        assert_eq!(moved, name.starts_with("actor."), "{name}");
    }
}

#[test]
fn advantages_are_normalized_whatever_they_are_counted_in() {
    for scale in [1.0, 1e-3, 1e3] {
        let (mean, deviation) = normalization(&[1.0 * scale, 3.0 * scale, 5.0 * scale, 3.0 * scale]);
        assert!((mean / scale - 3.0).abs() < 1e-5 && (deviation / scale - 2f32.sqrt()).abs() < 2e-3);
    }
    assert!((0.0 / normalization(&[2.0, 2.0]).1).abs() < 1e-9, "equals are worth nothing");
}

#[test]
fn explorations_take_allowed_actions_only() {
    let mask = [true, false, true];
    let probabilities = [0.5, 0.0, 0.5];
    let moment =
        Moment { agent: 0, observation: &[], mask: &mask, state: &[], probabilities: &probabilities };
    let mut stream = SeedStreams::new(5).stream("test");
    let mut count = |exploration: &mut dyn Exploration| {
        let mut counts = [0; 3];
        (0..1000).for_each(|_| counts[exploration.choose(&moment, 0, &mut stream)] += 1);
        counts
    };
    assert_eq!(count(&mut AsDrawn), [1000, 0, 0]);
    let [first, masked, last] = count(&mut EpsilonGreedy { chance: 0.4 });
    assert!(masked == 0 && (750..850).contains(&first) && last > 150, "{first} {last}");
    let to_last = |_: &Moment<'_>| Some(2);
    let [_, masked, last] = count(&mut Corrected { chance: 0.4, correct: named(to_last) });
    assert!(masked == 0 && (350..450).contains(&last));
    let to_masked = |_: &Moment<'_>| Some(1);
    assert_eq!(count(&mut Corrected { chance: 1.0, correct: named(to_masked) }), [1000, 0, 0]);
}

/// A function as a pointer, which can be called and has `Debug`.
fn named(correct: fn(&Moment<'_>) -> Option<usize>) -> fn(&Moment<'_>) -> Option<usize> {
    correct
}

#[test]
fn a_training_that_was_stopped_goes_on_bit_for_bit() {
    let begin = || {
        let options = ActorCriticOptions {
            discount: Some(0.9),
            n_environments: 2,
            baseline: Baseline::Round,
            normalize_advantages: true,
            critic_learning_rate: Some(Schedule::Constant(0.02)),
            ..quick()
        };
        learner(
            |_| Grid::new((3, 3), Walls::Masked, 20),
            |_| Box::new(EpsilonGreedy { chance: 0.1 }) as Box<dyn Exploration>,
            options,
        )
    };
    // A training is stopped before the replay is full, and after.
    for n_updates in [50, 300] {
        let mut whole = begin();
        train(&mut whole, n_updates);
        let saved = whole.save().unwrap();
        let mut resumed = begin();
        resumed.restore(&saved).unwrap();
        assert_eq!(resumed.save().unwrap(), saved);
        train(&mut whole, 150);
        train(&mut resumed, 150);
        assert_eq!(whole.save().unwrap(), resumed.save().unwrap());
    }
}

#[test]
fn nothing_depends_on_the_number_of_threads() {
    let weights = |n_threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| {
            let options = ActorCriticOptions { n_environments: 3, ..quick() };
            let mut learner = learner(|_| Grid::new((3, 3), Walls::Masked, 20), as_drawn, options);
            train(&mut learner, 150);
            learner.save().unwrap()
        })
    };
    assert_eq!(weights(1), weights(4));
}

#[test]
fn teams_are_refused() {
    let streams = SeedStreams::new(1);
    let model = |environments: &Vectorized<Pairing>| {
        let model = MlpModel::new(environments.spaces(), 7, &MlpOptions::default(), streams)?;
        Ok(Box::new(model) as Box<dyn Model>)
    };
    let refused = ActorCritic::new(|_| Pairing::new(3), (model, as_drawn), quick(), 1, streams).unwrap_err();
    assert!(refused.to_string().contains("one for teams"), "{refused}");
}
