//! Actions other than those drawn from the network's probabilities.

use std::fmt;

use serde_json::Value;

use super::TrainingError;
use crate::learning::vectorized::Moment;
use crate::workload::random::Stream;
use crate::world::elastic::{HELD, N_OF_PAIR};

/// What changes drawn actions in training. A system that injects samples of its own has its rules here.
pub trait Exploration: fmt::Debug + Send {
    /// A round begins.
    fn begin_round(&mut self, stream: &mut Stream) {
        let _ = stream;
    }

    /// The action to take where `drawn` was drawn; must be an allowed one.
    fn choose(&mut self, moment: &Moment, drawn: usize, stream: &mut Stream) -> usize;

    /// What a checkpoint keeps.
    fn state(&self) -> Value {
        Value::Null
    }

    /// Takes that up.
    ///
    /// # Errors
    /// If it is another's.
    fn restore(&mut self, state: &Value) -> Result<(), TrainingError> {
        let _ = state;
        Ok(())
    }
}

/// What is drawn is taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct AsDrawn;

impl Exploration for AsDrawn {
    fn choose(&mut self, _moment: &Moment, drawn: usize, _stream: &mut Stream) -> usize {
        drawn
    }
}

/// With a chance, another action: one that `correct` names, or nothing else if it names none.
#[derive(Clone, Copy, Debug)]
pub struct Corrected<F> {
    /// ε.
    pub chance: f64,
    /// What ought to be done in a moment that is plainly bad.
    pub correct: F,
}

impl<F: Fn(&Moment) -> Option<usize> + fmt::Debug + Send> Exploration for Corrected<F> {
    fn choose(&mut self, moment: &Moment, drawn: usize, stream: &mut Stream) -> usize {
        let tried = stream.uniform() < self.chance;
        let correction = if tried { (self.correct)(moment) } else { None };
        correction.filter(|action| moment.mask.get(*action) == Some(&true)).unwrap_or(drawn)
    }
}

/// DL2's first rule for jobs, as far as it goes without parameter servers: where some job in sight holds more workers than
/// 3 to 5 times (drawn each time) those of the job that holds fewest, one of the climbs of jobs that hold so few is made
/// instead, each as likely. For the elastic world, where what is seen is a row for each climb.
#[derive(Clone, Copy, Debug)]
pub struct FewestFirst {
    /// With which chance it is looked at.
    pub chance: f64,
}

impl Exploration for FewestFirst {
    fn choose(&mut self, moment: &Moment, drawn: usize, stream: &mut Stream) -> usize {
        if stream.uniform() >= self.chance {
            return drawn;
        }
        let rows = moment.observation.chunks_exact(N_OF_PAIR);
        let climbs = rows.zip(moment.mask).enumerate().take(moment.mask.len() - 1);
        let held: Vec<(usize, f64)> = climbs
            .filter(|(_, (_, allowed))| **allowed)
            .map(|(action, (row, _))| (action, (f64::from(row[HELD]) * 3.0).exp2() - 1.0))
            .collect();
        let fewest = held.iter().map(|(_, held)| *held).fold(f64::INFINITY, f64::min);
        let most = held.iter().map(|(_, held)| *held).fold(0.0, f64::max);
        if most <= stream.uniform_in(3.0, 5.0) * fewest + 1e-3 {
            return drawn;
        }
        let poor: Vec<usize> =
            held.iter().filter(|(_, held)| *held < fewest + 0.5).map(|(action, _)| *action).collect();
        poor[stream.below(poor.len())]
    }
}

/// With a chance, any allowed action.
#[derive(Clone, Copy, Debug)]
pub struct EpsilonGreedy {
    /// ε.
    pub chance: f64,
}

impl Exploration for EpsilonGreedy {
    fn choose(&mut self, moment: &Moment, drawn: usize, stream: &mut Stream) -> usize {
        if stream.uniform() >= self.chance {
            return drawn;
        }
        let n_allowed = moment.mask.iter().filter(|allowed| **allowed).count();
        let chosen = stream.below(n_allowed.max(1));
        let mut allowed = (0..moment.mask.len()).filter(|action| moment.mask[*action]);
        allowed.nth(chosen).unwrap_or(drawn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::random::SeedStreams;

    /// Climbs of jobs that hold so many workers, all allowed but those that hold 9; what is done where the first was drawn.
    fn chosen(chance: f64, held: &[f32]) -> Vec<usize> {
        let row = |held: &f32| {
            let mut row = [0.0; N_OF_PAIR];
            row[HELD] = (1.0 + held).log2() / 3.0;
            row
        };
        let observation: Vec<f32> = held.iter().chain(&[0.0]).flat_map(row).collect();
        let mask: Vec<bool> = held.iter().map(|held| *held < 9.0).chain([true]).collect();
        let probabilities = vec![0.1; mask.len()];
        let moment = Moment {
            agent: 0,
            observation: &observation,
            mask: &mask,
            state: &[],
            probabilities: &probabilities,
        };
        let mut stream = SeedStreams::new(1).stream("test");
        let mut all: Vec<usize> =
            (0..200).map(|_| FewestFirst { chance }.choose(&moment, 0, &mut stream)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    #[test]
    fn who_holds_fewest_climbs_where_another_holds_many_more() {
        assert_eq!(chosen(1.0, &[2.0, 0.0, 0.0, 9.0]), [1, 2], "any climb of those that hold nothing");
        assert_eq!(chosen(0.4, &[2.0, 0.0, 0.0, 9.0]), [0, 1, 2]);
        assert_eq!(chosen(0.0, &[2.0, 0.0, 0.0, 9.0]), [0]);
        assert_eq!(chosen(1.0, &[4.0, 1.0, 2.0]), [0, 1], "4 are more than 3 to 5 times 1, or not");
        assert_eq!(chosen(1.0, &[2.0, 1.0, 1.0]), [0]);
        assert_eq!(chosen(1.0, &[9.0, 9.0]), [0], "nobody can climb");
    }
}
