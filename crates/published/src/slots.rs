//! Worlds decided slot by slot, as environments: an action gives a job more tasks in this slot, or ends the slot.

use std::fmt;

use crate::world::{PlayError, Summary, World, summary_of};
use apportion::index::{Id, JobId};
use apportion_learn::actor::{Actor, Choice};
use apportion_learn::environment::{Environment, Refused, Show, Space, Status, Transition};
use apportion_learn::evaluation::play;
use apportion_learn::system::System;
use apportion_learn::vectorized::Finished;

/// The outcome of an action.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepOutcome {
    /// The reward: of the slot that the action ended, or of the action itself where it has an owner; 0 otherwise.
    pub reward: f64,
    /// Whether the action is a sample to learn from: it was applied, or was the chosen end of the slot.
    pub valid: bool,
    /// The job that the reward is for; none where the reward is the slot's.
    pub owner: Option<JobId>,
    /// Whether the slot ended.
    pub slot_ended: bool,
    /// Whether all jobs are done.
    pub done: bool,
}

/// A world that is decided slot by slot.
pub trait Slots: Clone + fmt::Debug + Send + Sync + 'static {
    /// Begins an episode with the workload of a seed.
    fn begin(&mut self, seed: u64);

    /// The world as it is.
    fn world(&self) -> &World;

    /// Writes the observation, and the mask of actions that may be chosen.
    fn observe(&self, observation: &mut [f32], mask: &mut [bool]);

    /// Plays an action that may be chosen.
    fn step(&mut self, action: usize) -> StepOutcome;
}

/// Episodes of a world that is decided slot by slot, with a workload each.
#[derive(Clone, Debug)]
pub struct SlotEnvironment<W> {
    slots: W,
    spaces: [Space; 1],
    slot_s: f64,
    step_limit: u64,
    /// Room for the mask of actions, and for an observation that is written and not used.
    mask: Vec<bool>,
    seen: Vec<f32>,
    n_steps: u64,
    status: Option<Status>,
}

/// The system of a world that is decided slot by slot: policies are judged by completion times, and the world's own rules can be
/// teachers.
pub(super) fn system_of<W: Slots>(
    (name, data): (&'static str, &str),
    environment: SlotEnvironment<W>,
    demonstrate: fn(&mut SlotEnvironment<W>, &str, u64, &mut Show<'_>) -> Result<(), String>,
) -> System {
    let (judged, shown) = (environment.clone(), environment.clone());
    System::new(name, data, move || Box::new(environment.clone()))
        .with_play("less the mean completion time, in slots of 20 minutes", move |actor, choice, seed| {
            judged.clone().judge(&*actor, choice, seed)
        })
        .with_teachers(move |teacher, seed, show| demonstrate(&mut shown.clone(), teacher.name, seed, show))
}

impl<W: Slots> SlotEnvironment<W> {
    /// Episodes of this world, whose slots have `slot_s` seconds and which are cut off after `step_limit` steps.
    pub(super) fn of_slots(slots: W, space: Space, (slot_s, step_limit): (f64, u64)) -> Self {
        let (mask, seen) = (vec![false; space.n_actions], vec![0.0; space.observation_length()]);
        Self { slots, spaces: [space], slot_s, step_limit, mask, seen, n_steps: 0, status: None }
    }

    /// The world that is played.
    pub fn slots(&self) -> &W {
        &self.slots
    }

    /// Plays the episode of a seed. The return is less the mean completion time in slots, whatever the
    /// reward in training, because work done adds up to the number of jobs under any policy. An episode that is cut off at
    /// the step limit counts as if every step had taken a slot.
    pub(super) fn judge(mut self, actor: &dyn Actor, choice: Choice, seed: u64) -> Result<Finished, String> {
        let played = play(&mut self, actor, choice, seed).map_err(|error| error.to_string())?;
        let total_reward = match played.status {
            Status::Terminated => -self.slots.world().summary().completion_s / self.slot_s,
            _ => -(played.n_steps as f64),
        };
        Ok(Finished { total_reward, ..played })
    }

    /// Plays the episode of a seed to its end, and sums up what became of its jobs.
    ///
    /// # Errors
    /// If the actor gives no probabilities, or jobs are left over at the step limit.
    pub fn play(&mut self, actor: &dyn Actor, choice: Choice, seed: u64) -> Result<Summary, PlayError> {
        let played = play(self, actor, choice, seed)?;
        summary_of(played, self.slots.world())
    }
}

impl<W: Slots> Environment for SlotEnvironment<W> {
    fn spaces(&self) -> &[Space] {
        &self.spaces
    }

    fn reset(&mut self, seed: u64) {
        self.slots.begin(seed);
        (self.n_steps, self.status) = (0, Some(Status::Running));
    }

    fn observe(&self, observation: &mut [f32], mask: &mut [bool]) {
        self.slots.observe(observation, mask);
    }

    fn step(&mut self, action: usize) -> Result<Transition, Refused> {
        if self.status != Some(Status::Running) {
            return Err(Refused::Over);
        }
        self.slots.observe(&mut self.seen, &mut self.mask);
        Refused::check(&self.mask, action)?;
        let outcome = self.slots.step(action);
        self.n_steps += 1;
        let status = Status::after(self.n_steps, self.step_limit, outcome.done);
        self.status = Some(status);
        Ok(Transition {
            reward: outcome.reward as f32,
            rounds: u32::from(outcome.slot_ended),
            counts: outcome.valid,
            owner: outcome.owner.map(JobId::index),
            status,
        })
    }

    fn step_limit(&self) -> Option<u64> {
        Some(self.step_limit)
    }
}

/// Whether resizing a job costs nothing, which documents leave out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde asks")]
pub(super) fn is_free(scaling_cost_s: &f64) -> bool {
    *scaling_cost_s == 0.0
}

/// Checks a scaling cost, s.
///
/// # Errors
/// If it is negative or not finite.
pub(super) fn check_scaling_cost(scaling_cost_s: f64) -> Result<(), String> {
    let fits = scaling_cost_s >= 0.0 && scaling_cost_s.is_finite();
    let error = || format!("`scaling_cost_s` is {scaling_cost_s}, expected a number of at least 0");
    fits.then_some(()).ok_or_else(error)
}
