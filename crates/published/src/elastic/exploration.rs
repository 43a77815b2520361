//! A rule that replaces drawn actions while actor and critic learn in the elastic world.

use apportion::workload::random::Stream;
use apportion_learn::training::exploration::Exploration;
use apportion_learn::vectorized::Moment;

use super::{HELD, N_OF_PAIR};

/// DL2's first rule of injection, without parameter servers: where a job in view holds more than 3 to 5 times (drawn each time) as
/// many workers as the job with the fewest, a uniformly drawn climb of a job with the fewest is made instead. For the elastic world
/// with an observation of one row for each climb.
#[derive(Clone, Copy, Debug)]
pub struct FewestFirst {
    /// The probability that the rule is applied to an action.
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

#[cfg(test)]
mod tests {
    use apportion::workload::random::SeedStreams;

    use super::*;

    /// The actions that replace the first action, for climbs of jobs that hold `held` workers; jobs with 9 workers are masked.
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
