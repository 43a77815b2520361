//! DL2's sample injection: in training, some drawn actions are replaced by the ones that plainly bad allocations
//! call for.
//!
//! In order, the first that applies, and only if the network gives the action a probability above 10⁻²⁰:
//! 1. some job of the window has more tasks than 3 to 5 times (drawn each time) those of the job that has the fewest: that
//!    one gets a bundle or a worker, each as likely;
//! 2. worker, parameter server or bundle, whichever has been less than a thousandth of all actions so far: the drawn job
//!    gets it;
//! 3. a job has no worker, or no parameter server, but the other: it gets what it lacks;
//! 4. the drawn job has more parameter servers than 3 to 7 times (drawn each slot) its workers: at one in two chances a
//!    worker or a bundle, each as likely;
//! 5. the drawn job has at least half as many workers as parameter servers: at one in two chances a parameter server; a
//!    bundle once in a hundred.
//!
//! Source: Peng et al.'s released trainer.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use apportion::workload::random::Stream;
use apportion_learn::training::TrainingError;
use apportion_learn::training::exploration::Exploration;
use apportion_learn::vectorized::Moment;

const WORKER: usize = 0;
const PARAMETER_SERVER: usize = 1;
const BUNDLE: usize = 2;

/// Probabilities that are none.
const LEAST: f32 = 1e-20;

/// The rules, for a window whose last two rows are the jobs' workers and parameter servers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Injection {
    /// Jobs of the window.
    n_jobs: usize,
    /// Of the fourth rule, this slot's.
    ratio: f64,
    /// Actions so far, by kind.
    kinds: [u64; 3],
}

impl Injection {
    /// For a window of so many jobs.
    pub fn new(n_jobs: usize) -> Self {
        Self { n_jobs, ratio: 3.0, kinds: [0; 3] }
    }

    /// Workers and parameter servers of a job, in the observation's unit.
    fn tasks(&self, moment: &Moment, job: usize) -> (f32, f32) {
        let rows = moment.observation.len() / self.n_jobs;
        let row = |row: usize| moment.observation[row * self.n_jobs + job];
        (row(rows - 2), row(rows - 1))
    }

    /// Is anybody in this column? Those that are may have something.
    fn is_there(moment: &Moment, job: usize) -> bool {
        (0..3).any(|kind| moment.mask[3 * job + kind])
    }

    /// What ought to be done instead.
    fn called_for(&self, moment: &Moment, drawn: usize, stream: &mut Stream) -> Option<usize> {
        let can = |action: &usize| moment.mask[*action] && moment.probabilities[*action] > LEAST;
        let jobs: Vec<usize> = (0..self.n_jobs).filter(|job| Self::is_there(moment, *job)).collect();
        let held = |job: usize| {
            let (workers, servers) = self.tasks(moment, job);
            workers + servers
        };
        let fewest = jobs.iter().copied().min_by(|one, other| held(*one).total_cmp(&held(*other)))?;
        let most = jobs.iter().copied().map(held).fold(0.0, f32::max);
        if f64::from(most) > stream.uniform_in(3.0, 5.0) * f64::from(held(fewest)) {
            let kind = if stream.uniform() < 0.5 { BUNDLE } else { WORKER };
            if can(&(3 * fewest + kind)) {
                return Some(3 * fewest + kind);
            }
        }
        if drawn == 3 * self.n_jobs {
            return None;
        }
        let job = drawn / 3;
        let n_actions: u64 = self.kinds.iter().sum();
        let rare = (0..3).find(|kind| self.kinds[*kind] * 1000 < n_actions);
        if let Some(action) = rare.map(|kind| 3 * job + kind).filter(can) {
            return Some(action);
        }
        let lacking = jobs.iter().find_map(|job| match self.tasks(moment, *job) {
            (workers, servers) if workers == 0.0 && servers > 0.0 => Some(3 * job + WORKER),
            (workers, servers) if servers == 0.0 && workers > 0.0 => Some(3 * job + PARAMETER_SERVER),
            _ => None,
        });
        if let Some(action) = lacking.filter(can) {
            return Some(action);
        }
        let (workers, servers) = self.tasks(moment, job);
        if f64::from(servers) > self.ratio * f64::from(workers) {
            let kind = if stream.uniform() < 0.5 { WORKER } else { BUNDLE };
            return Some(3 * job + kind).filter(can).filter(|_| stream.uniform() < 0.5);
        }
        if workers >= servers / 2.0 {
            let kind = if stream.uniform() < 0.01 { BUNDLE } else { PARAMETER_SERVER };
            return Some(3 * job + kind).filter(can).filter(|_| stream.uniform() < 0.5);
        }
        None
    }
}

impl Exploration for Injection {
    fn begin_round(&mut self, stream: &mut Stream) {
        self.ratio = stream.uniform_in(3.0, 7.0);
    }

    fn choose(&mut self, moment: &Moment, drawn: usize, stream: &mut Stream) -> usize {
        let chosen = self.called_for(moment, drawn, stream).unwrap_or(drawn);
        if chosen < 3 * self.n_jobs {
            self.kinds[chosen % 3] += 1;
        }
        chosen
    }

    fn state(&self) -> Value {
        serde_json::json!(self)
    }

    fn restore(&mut self, state: &Value) -> Result<(), TrainingError> {
        let saved = Self::deserialize(state);
        *self = saved.map_err(|error| TrainingError::Checkpoint { reason: error.to_string() })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion::workload::random::SeedStreams;

    /// Two jobs; all actions as likely.
    fn chosen(rules: &mut Injection, tasks: [(f32, f32); 2], drawn: usize) -> Vec<usize> {
        let observation = [1.0, 1.0, tasks[0].0, tasks[1].0, tasks[0].1, tasks[1].1];
        let (mask, probabilities) = ([true; 7], [1.0 / 7.0; 7]);
        let moment = Moment {
            agent: 0,
            observation: &observation,
            mask: &mask,
            state: &[],
            probabilities: &probabilities,
        };
        let mut stream = SeedStreams::new(1).stream("test");
        let mut all: Vec<usize> = (0..60)
            .map(|_| {
                let mut fresh = rules.clone();
                fresh.choose(&moment, drawn, &mut stream)
            })
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    #[test]
    fn each_rule_replaces_what_it_is_for() {
        let mut rules = Injection { kinds: [10; 3], ..Injection::new(2) };
        assert_eq!(chosen(&mut rules, [(6.0, 6.0), (1.0, 1.0)], 0), [3, 5], "the job that has least");
        assert_eq!(chosen(&mut rules, [(2.0, 2.0), (0.0, 2.0)], 6), [6], "stopping is let be");
        assert_eq!(chosen(&mut rules, [(2.0, 2.0), (0.0, 3.0)], 0), [3], "the worker that is missing");
        assert_eq!(
            chosen(&mut rules, [(3.0, 0.0), (1.0, 1.0)], 3),
            [1],
            "the parameter server that is missing"
        );
        assert_eq!(
            chosen(&mut rules, [(1.0, 4.0), (2.0, 2.0)], 1),
            [0, 1, 2],
            "more parameter servers than enough"
        );
        assert_eq!(chosen(&mut rules, [(2.0, 2.0), (2.0, 2.0)], 0), [0, 1], "more workers than enough");
        let mut rules = Injection { kinds: [5000, 5000, 1], ..Injection::new(2) };
        assert_eq!(chosen(&mut rules, [(2.0, 2.0), (2.0, 2.0)], 0), [2], "a kind that is hardly ever chosen");
    }

    #[test]
    fn counts_and_ratio_survive_a_stop() {
        let mut rules = Injection::new(2);
        rules.begin_round(&mut SeedStreams::new(2).stream("ratio"));
        chosen(&mut rules, [(2.0, 2.0), (2.0, 2.0)], 0);
        let mut resumed = Injection::new(2);
        resumed.restore(&rules.state()).unwrap();
        assert_eq!(resumed, rules);
        assert!(resumed.restore(&Value::Null).is_err());
    }
}
