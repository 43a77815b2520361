//! Pairing by two agents in turn: one chooses the next item, the other its place.

use super::admit;
use crate::environment::{Environment, Refused, Space, Status, Transition};
use apportion::workload::random::SeedStreams;

/// Factor from the reward of a pair to that of the same pair in the next turn.
const DECAY: f32 = 0.7;

/// n items with weights and n places with speeds, drawn anew each episode. In each turn, the first agent chooses an item that is
/// left and the second a place that is free; the reward is weight × speed × 0.7ᵏ in the k-th turn, from 0. The best team takes the
/// heaviest item to the fastest place, then the second heaviest to the second fastest (rearrangement).
///
/// The first agent observes the weights, 0 where an item is gone; the second the weight of the chosen item, then the speeds, 0
/// where a place is taken. Both have n actions, masked where the item or place is gone.
#[derive(Debug)]
pub struct Pairing {
    n: usize,
    spaces: [Space; 2],
    /// Weights of items, 0 where an item is gone: [n].
    weights: Vec<f32>,
    /// Speeds of places, 0 where a place is taken: [n].
    speeds: Vec<f32>,
    chosen: Option<f32>,
    n_placed: usize,
}

impl Pairing {
    /// An environment of `n` items and `n` places.
    pub fn new(n: usize) -> Self {
        let spaces = [Space::uniform(n, (0.0, 1.0), n), Space::uniform(n + 1, (0.0, 1.0), n)];
        let gone = vec![0.0; n];
        Self { n, spaces, weights: gone.clone(), speeds: gone, chosen: None, n_placed: n }
    }

    /// The best return of the episode of a seed.
    pub fn best_return(&self, seed: u64) -> f32 {
        let [mut weights, mut speeds] = self.draw(seed);
        let descending = |one: &f32, other: &f32| other.total_cmp(one);
        weights.sort_by(descending);
        speeds.sort_by(descending);
        let pairs = weights.iter().zip(&speeds).enumerate();
        pairs.map(|(turn, (weight, speed))| weight * speed * decayed(turn)).sum()
    }

    fn draw(&self, seed: u64) -> [Vec<f32>; 2] {
        let mut stream = SeedStreams::new(seed).stream("pairing");
        [(); 2].map(|()| (0..self.n).map(|_| stream.uniform_in(0.1, 1.0) as f32).collect())
    }
}

fn decayed(turn: usize) -> f32 {
    (0..turn).fold(1.0, |worth, _| worth * DECAY)
}

impl Environment for Pairing {
    fn spaces(&self) -> &[Space] {
        &self.spaces
    }

    fn agent(&self) -> usize {
        usize::from(self.chosen.is_some())
    }

    fn reset(&mut self, seed: u64) {
        [self.weights, self.speeds] = self.draw(seed);
        self.chosen = None;
        self.n_placed = 0;
    }

    fn observe(&self, observation: &mut [f32], mask: &mut [bool]) {
        let left = if let Some(weight) = self.chosen {
            observation[0] = weight;
            observation[1..].copy_from_slice(&self.speeds);
            &self.speeds
        } else {
            observation.copy_from_slice(&self.weights);
            &self.weights
        };
        for (allowed, value) in mask.iter_mut().zip(left) {
            *allowed = *value > 0.0;
        }
    }

    fn step(&mut self, action: usize) -> Result<Transition, Refused> {
        if self.n_placed == self.n {
            return Err(Refused::Over);
        }
        let left = if self.chosen.is_some() { &mut self.speeds } else { &mut self.weights };
        admit(action, self.n, |action| left[action] > 0.0)?;
        let value = std::mem::take(&mut left[action]);
        let Some(weight) = self.chosen.take() else {
            self.chosen = Some(value);
            return Ok(Transition { rounds: 0, ..Transition::new(0.0, Status::Running) });
        };
        let reward = weight * value * decayed(self.n_placed);
        self.n_placed += 1;
        let status = if self.n_placed == self.n { Status::Terminated } else { Status::Running };
        Ok(Transition::new(reward, status))
    }

    fn state_length(&self) -> usize {
        2 * self.n + 1
    }

    fn state(&self, state: &mut [f32]) {
        state[0] = self.chosen.unwrap_or(0.0);
        state[1..=self.n].copy_from_slice(&self.weights);
        state[self.n + 1..].copy_from_slice(&self.speeds);
    }
}
