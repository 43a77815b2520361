//! Prioritized replay (Schaul et al., 2016), with the constants of DL2's released trainer.

use serde::{Deserialize, Serialize};

use apportion::workload::random::Stream;

/// Options of prioritized replay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PriorityOptions {
    /// The number that is added to an error before it becomes a priority.
    pub error_added: f64,
    /// The largest error that counts.
    pub error_max: f64,
    /// The power that an error is raised to.
    pub exponent: f64,
    /// Initial β of the importance weights.
    pub correction: f64,
    /// Increase of β at each draw, up to 1.
    pub correction_step: f64,
}

impl Default for PriorityOptions {
    fn default() -> Self {
        Self { error_added: 0.01, error_max: 4.0, exponent: 0.9, correction: 0.1, correction_step: 1e-4 }
    }
}

/// Priorities of the positions of a ring, in a tree of their sums.
#[derive(Clone, Debug, PartialEq)]
pub struct SumTree {
    /// Sums of the nodes: node 1 is the root, node i has the children 2i and 2i + 1, and the leaves are the second half.
    sums: Vec<f64>,
    n_leaves: usize,
}

impl SumTree {
    /// A tree of `n` places, all with priority 0.
    pub fn new(n: usize) -> Self {
        let n_leaves = n.next_power_of_two();
        Self { sums: vec![0.0; 2 * n_leaves], n_leaves }
    }

    /// Sets the priority of a place.
    pub fn set(&mut self, place: usize, priority: f64) {
        let mut node = self.n_leaves + place;
        self.sums[node] = priority;
        while node > 1 {
            node /= 2;
            self.sums[node] = self.sums[2 * node] + self.sums[2 * node + 1];
        }
    }

    /// The priority of a place.
    pub fn get(&self, place: usize) -> f64 {
        self.sums[self.n_leaves + place]
    }

    /// The sum of all priorities.
    pub fn total(&self) -> f64 {
        self.sums[1]
    }

    /// The position where the running sum of the priorities passes `mass`, from 0 to [`total`](Self::total). A position of priority
    /// 0 is found only if all are 0.
    pub fn find(&self, mut mass: f64) -> usize {
        let mut node = 1;
        while node < self.n_leaves {
            let left = 2 * node;
            // The right child is taken only if it has priorities: rounding may leave more mass than the tree has.
            if mass < self.sums[left] || self.sums[left + 1] <= 0.0 {
                node = left;
            } else {
                mass -= self.sums[left];
                node = left + 1;
            }
        }
        node - self.n_leaves
    }
}

/// Drawn positions, with their importance weights.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawn {
    /// Positions in the ring; one may occur twice.
    pub places: Vec<usize>,
    /// Importance weight of each, (P/P_min)^−β, at most 1.
    pub weights: Vec<f32>,
}

/// A ring of the latest samples, with priorities from their errors.
#[derive(Clone, Debug, PartialEq)]
pub struct Replay<T> {
    options: PriorityOptions,
    samples: Vec<T>,
    tree: SumTree,
    capacity: usize,
    /// The position of the next sample.
    next: usize,
    n_draws: u64,
}

impl<T> Replay<T> {
    /// A replay of at most `capacity` samples.
    pub fn new(capacity: usize, options: PriorityOptions) -> Self {
        Self { options, samples: Vec::new(), tree: SumTree::new(capacity), capacity, next: 0, n_draws: 0 }
    }

    /// Adds a sample with a priority, in the place of the oldest if there is no room.
    pub fn push(&mut self, sample: T, priority: f64) {
        if self.samples.len() < self.capacity {
            self.samples.push(sample);
        } else {
            self.samples[self.next] = sample;
        }
        self.tree.set(self.next, priority);
        self.next = (self.next + 1) % self.capacity;
    }

    /// The samples, in the order of their positions.
    pub fn samples(&self) -> &[T] {
        &self.samples
    }

    /// Whether the replay has all its samples.
    pub fn is_full(&self) -> bool {
        self.samples.len() == self.capacity
    }

    /// Draws `n` positions by priority: one from each of n equal parts of the sum of priorities.
    pub fn draw(&mut self, n: usize, stream: &mut Stream) -> Drawn {
        let correction = self.options.correction + self.options.correction_step * self.n_draws as f64;
        let correction = correction.min(1.0);
        self.n_draws += 1;
        let part = self.tree.total() / n as f64;
        let place =
            |number| self.tree.find(part * (number as f64 + stream.uniform())).min(self.samples.len() - 1);
        let places: Vec<usize> = (0..n).map(place).collect();
        let filled = 0..self.samples.len();
        let smallest = filled.map(|place| self.tree.get(place)).fold(f64::INFINITY, f64::min);
        let weight = |place: &usize| (self.tree.get(*place) / smallest).powf(-correction) as f32;
        Drawn { weights: places.iter().map(weight).collect(), places }
    }

    /// Draws `n` different positions uniformly, or all if there are fewer.
    pub fn draw_uniformly(&mut self, n: usize, stream: &mut Stream) -> Drawn {
        let mut places: Vec<usize> = (0..self.samples.len()).collect();
        let n = n.min(places.len());
        for front in 0..n {
            let other = front + stream.below(places.len() - front);
            places.swap(front, other);
        }
        places.truncate(n);
        self.n_draws += 1;
        Drawn { weights: vec![1.0; n], places }
    }

    /// The positions of the latest `n` samples, or of all if there are fewer.
    pub fn latest(&self, n: usize) -> Drawn {
        let n = n.min(self.samples.len());
        let place = |back: usize| (self.next + self.capacity - 1 - back) % self.capacity;
        Drawn { weights: vec![1.0; n], places: (0..n).rev().map(place).collect() }
    }

    /// Sets the priorities of positions from their errors, such as the critic's.
    pub fn learn_from(&mut self, errors: impl IntoIterator<Item = (usize, f64)>) {
        for (place, error) in errors {
            let error = (error.abs() + self.options.error_added).min(self.options.error_max);
            self.tree.set(place, error.powf(self.options.exponent));
        }
    }

    /// The state beside the samples, for a checkpoint.
    pub fn state(&self) -> ReplayState {
        let priorities = (0..self.samples.len()).map(|place| self.tree.get(place)).collect();
        ReplayState { priorities, next: self.next, n_draws: self.n_draws }
    }

    /// Restores samples and state, or returns false if they do not fit.
    pub fn restore(&mut self, samples: Vec<T>, state: &ReplayState) -> bool {
        let n = samples.len();
        let next_fits = if n < self.capacity { state.next == n } else { state.next < self.capacity };
        if n > self.capacity || state.priorities.len() != n || !next_fits {
            return false;
        }
        self.tree = SumTree::new(self.capacity);
        for (place, priority) in state.priorities.iter().enumerate() {
            self.tree.set(place, *priority);
        }
        self.samples = samples;
        self.next = state.next;
        self.n_draws = state.n_draws;
        true
    }
}

/// The state of a replay beside its samples: priorities in order of positions, the next position and the number of draws.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayState {
    priorities: Vec<f64>,
    next: usize,
    n_draws: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion::workload::random::SeedStreams;

    #[test]
    fn the_tree_finds_what_a_scan_finds() {
        let mut stream = SeedStreams::new(1).stream("tree");
        for n in [1, 2, 5, 8, 13] {
            let mut tree = SumTree::new(n);
            let mut priorities = vec![0.0; n];
            for _ in 0..200 {
                let (place, priority) = (stream.below(n), [0.0, 0.5, 1.0, 3.0][stream.below(4)]);
                tree.set(place, priority);
                priorities[place] = priority;
                let total: f64 = priorities.iter().sum();
                assert!((tree.total() - total).abs() < 1e-12);
                let mass = stream.uniform() * total;
                let mut left = mass;
                let scanned = priorities.iter().position(|priority| {
                    left -= priority;
                    left < 0.0
                });
                if let Some(scanned) = scanned {
                    assert_eq!(tree.find(mass), scanned, "{priorities:?} {mass}");
                    assert!(priorities[tree.find(total)] > 0.0, "the end is no empty place");
                }
            }
        }
    }

    #[test]
    fn places_are_drawn_in_proportion_and_weighted_against_it() {
        let options = PriorityOptions { correction: 1.0, ..PriorityOptions::default() };
        let mut replay = Replay::new(4, options);
        for (sample, priority) in [1.0, 2.0, 5.0, 2.0].into_iter().enumerate() {
            replay.push(sample, priority);
        }
        assert!(replay.is_full());
        let mut stream = SeedStreams::new(2).stream("draws");
        let drawn = replay.draw(1000, &mut stream);
        let count = |place| drawn.places.iter().filter(|drawn| **drawn == place).count();
        assert_eq!(
            [count(0), count(1), count(2), count(3)],
            [100, 200, 500, 200],
            "one from each of equal parts"
        );
        for (place, weight) in drawn.places.iter().zip(&drawn.weights) {
            assert!((weight - [1.0, 0.5, 0.2, 0.5][*place]).abs() < 1e-6);
        }
        let uniform = replay.draw_uniformly(4, &mut stream);
        let mut places = uniform.places.clone();
        places.sort_unstable();
        assert_eq!(places, [0, 1, 2, 3]);
    }

    #[test]
    fn errors_become_priorities_and_the_oldest_makes_room() {
        let mut replay = Replay::new(2, PriorityOptions::default());
        replay.push('a', 1.0);
        replay.push('b', 1.0);
        replay.learn_from([(0, -0.49), (1, 100.0)]);
        let state = replay.state();
        assert!((state.priorities[0] - 0.5f64.powf(0.9)).abs() < 1e-12);
        assert!((state.priorities[1] - 4f64.powf(0.9)).abs() < 1e-12);
        replay.push('c', 3.0);
        assert_eq!(replay.samples(), ['c', 'b']);
        assert_eq!((replay.latest(0).places, replay.latest(1).places), (vec![], vec![0]));
        assert_eq!(replay.latest(5).places, [1, 0], "b came before c");
        let mut other = Replay::new(2, PriorityOptions::default());
        assert!(other.restore(vec!['c', 'b'], &replay.state()));
        let mut streams = [(); 2].map(|()| SeedStreams::new(3).stream("same"));
        assert_eq!(other.draw(5, &mut streams[0]), replay.draw(5, &mut streams[1]));
        assert!(!other.restore(vec!['c'], &replay.state()));
        let mut smaller = Replay::new(1, PriorityOptions::default());
        assert!(!smaller.restore(vec!['c', 'b'], &replay.state()));
    }
}
