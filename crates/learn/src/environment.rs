//! The seam between what is to be controlled and what learns to control it.

use std::fmt;

use thiserror::Error;

/// What an agent sees and may do: fixed for an environment's life.
#[derive(Clone, Debug, PartialEq)]
pub struct Space {
    /// Smallest value of each number of the observation.
    pub low: Vec<f32>,
    /// Largest value of each number of the observation.
    pub high: Vec<f32>,
    /// Actions are numbered from 0 to one less than this. Sets of varying size are padded to their largest: the
    /// mask says which actions exist.
    pub n_actions: usize,
}

impl Space {
    /// Observations of `length` numbers, each from `low` to `high`.
    pub fn uniform(length: usize, (low, high): (f32, f32), n_actions: usize) -> Self {
        Self { low: vec![low; length], high: vec![high; length], n_actions }
    }

    /// Numbers in an observation.
    pub fn observation_length(&self) -> usize {
        self.low.len()
    }
}

/// Where an episode stands after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// It goes on.
    Running,
    /// It is over for good: nothing can be gained after it, so its last state is worth nothing.
    Terminated,
    /// It was cut off by a limit on its length: what would have come after is estimated from its last state.
    Truncated,
}

impl Status {
    /// Whether the environment must be reset before it takes another action.
    pub fn is_over(self) -> bool {
        self != Self::Running
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

/// What an action led to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transition {
    /// What the team of agents gained since the action before.
    pub reward: f32,
    /// Rounds that passed: 0 if more is decided within the same round.
    pub rounds: u32,
    /// Whether there is something to learn from it; not, for example, if the action could not be carried out.
    /// Learners that replay single actions leave it out; learners on whole episodes do not.
    pub counts: bool,
    /// The job to which the reward is attributed, by its number; none where it is attributed to no single job.
    pub owner: Option<usize>,
    /// Where the episode stands.
    pub status: Status,
}

impl Transition {
    /// A step of one round, from which there is something to learn.
    pub fn new(reward: f32, status: Status) -> Self {
        Self { reward, rounds: 1, counts: true, owner: None, status }
    }
}

/// An action that was not carried out; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// The mask forbade it.
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
        /// How many there are.
        n_actions: usize,
    },
    /// The episode is over.
    #[error("the episode is over: reset it")]
    Over,
}

/// Something that one agent controls, or several in turn, one action at a time.
///
/// Everything that happens is a function of the seed given to [`reset`](Self::reset) and of the actions since: this
/// is what lets a training stop and go on, bit for bit. [`check`](crate::checker::check) holds an environment to
/// every sentence here.
///
/// After the step that ended an episode, the environment still shows the last state, whose value an episode that was
/// cut off is estimated by.
pub trait Environment: fmt::Debug + Send {
    /// One space per agent; at least one. Always the same.
    fn spaces(&self) -> &[Space];

    /// The agent that acts next. Observation, mask and action are its own.
    fn agent(&self) -> usize {
        0
    }

    /// Begins an episode.
    fn reset(&mut self, seed: u64);

    /// Writes what the agent sees and which of its actions it may take: every entry of both.
    ///
    /// `observation` has its space's [`observation_length`](Space::observation_length), `mask` its `n_actions`; at
    /// least one action is allowed while the episode runs.
    fn observe(&self, observation: &mut [f32], mask: &mut [bool]);

    /// Carries an action out.
    ///
    /// # Errors
    /// If it is masked or unknown, or the episode is over; nothing has changed then.
    fn step(&mut self, action: usize) -> Result<Transition, Refused>;

    /// Steps after which an episode is truncated if it has not terminated: none is truncated without such a limit.
    fn step_limit(&self) -> Option<u64> {
        None
    }

    /// Numbers in the state that a critic judges in training; 0 if the agent's own observation will do.
    fn state_length(&self) -> usize {
        0
    }

    /// Writes the state that a critic judges: all that the agents know together.
    fn state(&self, state: &mut [f32]) {
        let _ = state;
    }

    /// How far a training has come, from 0 to 1: episodes that begin after this may be harder.
    fn set_progress(&mut self, share: f64) {
        let _ = share;
    }
}

/// Receives the agent, observation, mask and action of each step.
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
