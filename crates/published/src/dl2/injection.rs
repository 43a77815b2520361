//! DL2's sample injection: in training, some drawn actions are replaced by actions that mend plainly bad allocations.
//! [`Injection`] looks at the drawn job, [`ReleasedInjection`] at every job of the window, as the released trainer does.
//!
//! The first rule that applies counts, if its action is allowed and the network gives it a probability above 10⁻²⁰:
//! 1. some job of the window has more tasks than 3 to 5 times (drawn each time) those of the job with the fewest: that job
//!    gets a bundle or a worker, each as likely;
//! 2. one of worker, parameter server and bundle has been less than a thousandth of all actions so far: the drawn job
//!    gets it;
//! 3. a job of the window has workers and no parameter server, or the other way: it gets the role that it lacks;
//! 4. the drawn job has more parameter servers than 3 to 7 times (drawn each slot) its workers: at one in two chances a
//!    worker or a bundle, each as likely;
//! 5. the drawn job has at least half as many workers as parameter servers: at one in two chances a parameter server; a
//!    bundle once in a hundred.
//!
//! The released trainer differs in this:
//! - It applies rules 2 to 5 to the jobs of the window one after another, whichever was drawn, and also where *nothing* was;
//!   the first job to which one applies counts. That is so for many jobs, so drawn actions are rare, *nothing* above all.
//! - A replacement by the first rule is itself replaced if another rule applies, and both of its actions must be probable.
//! - Drawn numbers are whole, and so is the quotient of the first rule, as in Python 2.
//! - A job that has neither worker nor parameter server may also get a bundle. A parameter server that is missing is given if
//!   a *worker* is probable.
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

/// The largest probability that counts as 0.
const LEAST: f32 = 1e-20;

/// The rules of injection, for a window whose last two rows are the jobs' workers and parameter servers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Injection {
    /// The number of jobs in the window.
    n_jobs: usize,
    /// The ratio of parameter servers to workers in the fourth rule, drawn for this slot.
    ratio: f64,
    /// The number of actions so far: [kind of task].
    kinds: [u64; 3],
}

impl Injection {
    /// The rules for a window of `n_jobs` jobs.
    pub fn new(n_jobs: usize) -> Self {
        Self { n_jobs, ratio: 3.0, kinds: [0; 3] }
    }

    /// Workers and parameter servers of a job, in the observation's unit.
    fn tasks(&self, moment: &Moment, job: usize) -> (f32, f32) {
        let rows = moment.observation.len() / self.n_jobs;
        let row = |row: usize| moment.observation[row * self.n_jobs + job];
        (row(rows - 2), row(rows - 1))
    }

    /// Whether a column has a job, which is so if any of its actions is allowed.
    fn is_there(moment: &Moment, job: usize) -> bool {
        (0..3).any(|kind| moment.mask[3 * job + kind])
    }

    /// The action that replaces the drawn one, if a rule applies.
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

/// The rules of injection as the released trainer has them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReleasedInjection(Injection);

impl ReleasedInjection {
    /// The rules for a window of `n_jobs` jobs.
    pub fn new(n_jobs: usize) -> Self {
        Self(Injection::new(n_jobs))
    }

    /// The action of the first rule, for the job with the fewest tasks where another job has many times as many.
    fn balancing(&self, moment: &Moment, stream: &mut Stream) -> Option<usize> {
        let jobs = (0..self.0.n_jobs).filter(|job| Injection::is_there(moment, *job));
        let held = jobs.map(|job| {
            let (workers, servers) = self.0.tasks(moment, job);
            (workers + servers, job)
        });
        let held: Vec<(f32, usize)> = held.collect();
        let (fewest, job) = held.iter().copied().min_by(|one, other| one.0.total_cmp(&other.0))?;
        let most = held.iter().map(|(held, _)| *held).fold(0.0, f32::max);
        let called_for = fewest > 0.0 && f64::from((most / fewest).floor()) > 3.0 + stream.below(3) as f64;
        let both = [WORKER, BUNDLE].iter().all(|kind| probable(moment, 3 * job + kind));
        (called_for && both).then(|| 3 * job + if stream.uniform() < 0.5 { BUNDLE } else { WORKER })
    }

    /// The result of rules 2 to 5 for a job of the window; none if the next job is to be looked at.
    fn of_job(&self, moment: &Moment, job: usize, stream: &mut Stream) -> Option<Given> {
        let [worker, server, bundle] = [WORKER, PARAMETER_SERVER, BUNDLE].map(|kind| 3 * job + kind);
        let can = |action: usize| moment.mask[action] && probable(moment, action);
        let n_actions: u64 = self.0.kinds.iter().sum();
        let (rarest, n_rarest) = self.0.kinds.iter().enumerate().min_by_key(|(_, n)| **n)?;
        if *n_rarest > 0 && n_rarest * 1000 < n_actions && can(3 * job + rarest) {
            return Some(Given::Action(3 * job + rarest));
        }
        let (workers, servers) = self.0.tasks(moment, job);
        if workers == 0.0 || servers == 0.0 {
            let neither = workers == 0.0 && servers == 0.0;
            let mut given = (neither && can(bundle) && stream.uniform() < 0.5).then_some(bundle);
            if workers == 0.0 && can(worker) {
                given = Some(worker);
            }
            if servers == 0.0 && moment.mask[server] && probable(moment, worker) {
                given = Some(server);
            }
            return Some(given.map_or(Given::Nothing, Given::Action));
        }
        let many = f64::from(servers) > f64::from(workers) * self.0.ratio;
        if many && stream.uniform() < 0.5 {
            let kind = if stream.uniform() < 0.5 { bundle } else { worker };
            return (can(bundle) && can(worker)).then_some(Given::Action(kind));
        }
        if workers >= 0.5 * servers && stream.uniform() < 0.5 {
            let kind = if stream.uniform() < 0.01 { bundle } else { server };
            return (can(bundle) && can(server)).then_some(Given::Action(kind));
        }
        None
    }
}

/// A result of the rules for a job of the window, after which no other job is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Given {
    /// This action replaces the one chosen before.
    Action(usize),
    /// The action chosen before stays.
    Nothing,
}

fn probable(moment: &Moment, action: usize) -> bool {
    moment.probabilities[action] > LEAST
}

impl Exploration for ReleasedInjection {
    fn begin_round(&mut self, stream: &mut Stream) {
        self.0.ratio = 3.0 + stream.below(5) as f64;
    }

    fn choose(&mut self, moment: &Moment, drawn: usize, stream: &mut Stream) -> usize {
        let mut chosen = self.balancing(moment, stream).unwrap_or(drawn);
        let jobs = (0..self.0.n_jobs).filter(|job| Injection::is_there(moment, *job));
        for job in jobs {
            match self.of_job(moment, job, stream) {
                Some(Given::Action(action)) => chosen = action,
                Some(Given::Nothing) => {}
                None => continue,
            }
            break;
        }
        // The chosen action must be allowed, which the released trainer does not check everywhere.
        let chosen = if moment.mask[chosen] { chosen } else { drawn };
        if chosen < 3 * self.0.n_jobs {
            self.0.kinds[chosen % 3] += 1;
        }
        chosen
    }

    fn state(&self) -> Value {
        self.0.state()
    }

    fn restore(&mut self, state: &Value) -> Result<(), TrainingError> {
        self.0.restore(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion::workload::random::SeedStreams;

    /// The different actions chosen for two jobs, with equal probabilities of all actions.
    fn chosen(rules: &(impl Exploration + Clone), tasks: [(f32, f32); 2], drawn: usize) -> Vec<usize> {
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
        let rules = Injection { kinds: [10; 3], ..Injection::new(2) };
        assert_eq!(chosen(&rules, [(6.0, 6.0), (1.0, 1.0)], 0), [3, 5], "the job that has least");
        assert_eq!(chosen(&rules, [(2.0, 2.0), (0.0, 2.0)], 6), [6], "stopping is let be");
        assert_eq!(chosen(&rules, [(2.0, 2.0), (0.0, 3.0)], 0), [3], "the worker that is missing");
        assert_eq!(chosen(&rules, [(3.0, 0.0), (1.0, 1.0)], 3), [1], "the parameter server that is missing");
        assert_eq!(
            chosen(&rules, [(1.0, 4.0), (2.0, 2.0)], 1),
            [0, 1, 2],
            "more parameter servers than enough"
        );
        assert_eq!(chosen(&rules, [(2.0, 2.0), (2.0, 2.0)], 0), [0, 1], "more workers than enough");
        let rules = Injection { kinds: [5000, 5000, 1], ..Injection::new(2) };
        assert_eq!(chosen(&rules, [(2.0, 2.0), (2.0, 2.0)], 0), [2], "a kind that is hardly ever chosen");
    }

    #[test]
    fn as_released_every_job_is_asked_whatever_was_drawn() {
        let injection = Injection { kinds: [10; 3], ..Injection::new(2) };
        let rules = ReleasedInjection(injection.clone());
        let even = [(2.0, 2.0), (2.0, 2.0)];
        assert_eq!(chosen(&injection, even, 6), [6], "stopping is let be");
        assert_eq!(
            chosen(&rules, even, 6),
            [1, 4, 6],
            "one of the jobs gets a parameter server, or nothing does"
        );
        assert_eq!(chosen(&rules, [(2.0, 2.0), (0.0, 2.0)], 0), [1, 3], "the first that has an answer");
        assert_eq!(chosen(&rules, [(0.0, 0.0), (2.0, 2.0)], 6), [1], "the last of what is missing");
        let rare = ReleasedInjection(Injection { kinds: [5000, 5000, 1], ..Injection::new(2) });
        assert_eq!(chosen(&rare, even, 6), [2], "a kind that is hardly ever chosen, for the first job");
        let never = ReleasedInjection(Injection { kinds: [5000, 5000, 0], ..Injection::new(2) });
        assert!(!chosen(&never, even, 6).contains(&2), "one that was never chosen is not rare there");
    }

    #[test]
    fn counts_and_ratio_survive_a_stop() {
        let mut rules = Injection::new(2);
        rules.begin_round(&mut SeedStreams::new(2).stream("ratio"));
        chosen(&rules, [(2.0, 2.0), (2.0, 2.0)], 0);
        let mut resumed = Injection::new(2);
        resumed.restore(&rules.state()).unwrap();
        assert_eq!(resumed, rules);
        assert!(resumed.restore(&Value::Null).is_err());
    }
}
