//! The interface between environments, which are controlled, and learners.

use std::fmt;

use thiserror::Error;

/// The space of an agent's observations and actions, fixed for an environment's life.
#[derive(Clone, Debug, PartialEq)]
pub struct Space {
    /// Smallest value of each number of the observation.
    pub low: Vec<f32>,
    /// Largest value of each number of the observation.
    pub high: Vec<f32>,
    /// The number of actions, which are numbered from 0. Sets of varying size are padded to their largest size; the mask says which
    /// actions exist.
    pub n_actions: usize,
}

impl Space {
    /// A space of observations of `length` numbers, each from `low` to `high`.
    pub fn uniform(length: usize, (low, high): (f32, f32), n_actions: usize) -> Self {
        Self { low: vec![low; length], high: vec![high; length], n_actions }
    }

    /// Length of an observation.
    pub fn observation_length(&self) -> usize {
        self.low.len()
    }
}

/// The status of an episode after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// The episode goes on.
    Running,
    /// The episode is over for good: nothing can be gained after it, so its last state has the value 0.
    Terminated,
    /// The episode was cut off by a limit on its length: the rewards that would have followed are estimated from its last state.
    Truncated,
}

impl Status {
    /// Whether the environment must be reset before it takes another action.
    pub fn is_over(self) -> bool {
        self != Self::Running
    }

    /// The status after `n_steps` steps of an episode that is cut off at a number of steps.
    pub fn after(n_steps: u64, step_limit: u64, is_done: bool) -> Self {
        if is_done {
            Self::Terminated
        } else if n_steps >= step_limit {
            Self::Truncated
        } else {
            Self::Running
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Running => "running",
            Self::Terminated => "terminated",
            Self::Truncated => "truncated",
        })
    }
}

/// The outcome of an action.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transition {
    /// The reward of the team of agents since the action before.
    pub reward: f32,
    /// The number of rounds that passed: 0 if the same round has more decisions.
    pub rounds: u32,
    /// Whether the action is a sample to learn from; not, for example, if it could not be carried out. Learners that replay single
    /// actions leave out other actions; learners on whole episodes do not.
    pub counts: bool,
    /// The job to which the reward is attributed, by its number; none where it is attributed to no single job.
    pub owner: Option<usize>,
    /// The status of the episode.
    pub status: Status,
}

impl Transition {
    /// A transition of one round that is a sample to learn from.
    pub fn new(reward: f32, status: Status) -> Self {
        Self { reward, rounds: 1, counts: true, owner: None, status }
    }
}

/// Why an action was not carried out; the environment is then unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// The action is masked.
    #[error("action {action} is masked")]
    Masked {
        /// The action.
        action: usize,
    },
    /// There is no such action.
    #[error("there is no action {action}, only {n_actions}")]
    Unknown {
        /// The action.
        action: usize,
        /// The number of actions.
        n_actions: usize,
    },
    /// The episode is over.
    #[error("the episode is over: reset it")]
    Over,
}

impl Refused {
    /// Checks an action against the mask of all actions.
    ///
    /// # Errors
    /// If there is no such action, or it is masked.
    pub fn check(mask: &[bool], action: usize) -> Result<(), Self> {
        match mask.get(action) {
            None => Err(Self::Unknown { action, n_actions: mask.len() }),
            Some(false) => Err(Self::Masked { action }),
            Some(true) => Ok(()),
        }
    }
}

/// An environment that one agent controls, or several in turn, one action at a time.
///
/// Everything that happens is a function of the seed given to [`reset`](Self::reset) and of the actions since, so a training can
/// stop and go on bit for bit. [`check`](crate::checker::check) checks an environment against every sentence here.
///
/// After the step that ended an episode, the environment still shows the last state, from which the rest of a truncated episode is
/// estimated.
pub trait Environment: fmt::Debug + Send {
    /// The spaces, one per agent and at least one, which never change.
    fn spaces(&self) -> &[Space];

    /// The number of the agent that acts next, to which observation, mask and action belong.
    fn agent(&self) -> usize {
        0
    }

    /// Begins an episode.
    fn reset(&mut self, seed: u64);

    /// Writes the observation and the mask of allowed actions of the agent that acts next: every entry of both.
    ///
    /// `observation` has its space's [`observation_length`](Space::observation_length), `mask` its `n_actions`; at
    /// least one action is allowed while the episode runs.
    fn observe(&self, observation: &mut [f32], mask: &mut [bool]);

    /// Carries out an action.
    ///
    /// # Errors
    /// If the action is masked or unknown, or the episode is over; the environment is then unchanged.
    fn step(&mut self, action: usize) -> Result<Transition, Refused>;

    /// The number of steps after which an episode is truncated if it has not terminated; without a limit, none is truncated.
    fn step_limit(&self) -> Option<u64> {
        None
    }

    /// Length of the critic's state; 0 if the critic judges the agent's own observation.
    fn state_length(&self) -> usize {
        0
    }

    /// Writes the critic's state, which all agents' knowledge together makes up.
    fn state(&self, state: &mut [f32]) {
        let _ = state;
    }

    /// Sets the progress of the training, from 0 to 1: episodes that begin later may be harder.
    fn set_progress(&mut self, share: f64) {
        let _ = share;
    }
}

/// A function that receives the agent, observation, mask and action of each step.
pub type Show<'a> = dyn FnMut(usize, &[f32], &[bool], usize) + 'a;

impl<E: Environment + ?Sized> Environment for Box<E> {
    fn spaces(&self) -> &[Space] {
        (**self).spaces()
    }

    fn agent(&self) -> usize {
        (**self).agent()
    }

    fn reset(&mut self, seed: u64) {
        (**self).reset(seed);
    }

    fn observe(&self, observation: &mut [f32], mask: &mut [bool]) {
        (**self).observe(observation, mask);
    }

    fn step(&mut self, action: usize) -> Result<Transition, Refused> {
        (**self).step(action)
    }

    fn step_limit(&self) -> Option<u64> {
        (**self).step_limit()
    }

    fn state_length(&self) -> usize {
        (**self).state_length()
    }

    fn state(&self, state: &mut [f32]) {
        (**self).state(state);
    }

    fn set_progress(&mut self, share: f64) {
        (**self).set_progress(share);
    }
}
