//! A bandit: an episode is one choice among arms.

use super::admit;
use crate::environment::{Environment, Refused, Space, Status, Transition};
use apportion::workload::random::{SeedStreams, Stream};

/// A bandit whose arms pay 1 with a probability each, and otherwise 0. The best mean return is the highest probability.
#[derive(Debug)]
pub struct Bandit {
    chances: Vec<f64>,
    spaces: [Space; 1],
    stream: Stream,
    over: bool,
}

impl Bandit {
    /// A bandit with an arm for each probability.
    pub fn new(chances: Vec<f64>) -> Self {
        let spaces = [Space::uniform(1, (0.0, 1.0), chances.len())];
        Self { chances, spaces, stream: SeedStreams::new(0).stream("bandit"), over: true }
    }
}

impl Environment for Bandit {
    fn spaces(&self) -> &[Space] {
        &self.spaces
    }

    fn reset(&mut self, seed: u64) {
        self.stream = SeedStreams::new(seed).stream("bandit");
        self.over = false;
    }

    fn observe(&self, observation: &mut [f32], mask: &mut [bool]) {
        observation.fill(1.0);
        mask.fill(true);
    }

    fn step(&mut self, action: usize) -> Result<Transition, Refused> {
        if self.over {
            return Err(Refused::Over);
        }
        admit(action, self.chances.len(), |_| true)?;
        self.over = true;
        let pays = self.stream.uniform() < self.chances[action];
        Ok(Transition::new(if pays { 1.0 } else { 0.0 }, Status::Terminated))
    }
}
