//! How a learned scheduler decides a round: observations, masks and actions on a [`RoundState`], the same in training and
//! in use.

use std::fmt;

use super::gang::expected;
use super::memory::{Expected, Memory};
use super::round_state::RoundState;
use apportion::policy::RoundView;
use apportion_learn::environment::Space;

/// Observations, masks and actions by which rounds are decided.
pub trait ActionScheme: fmt::Debug + Send {
    /// One space per agent.
    fn spaces(&self) -> Vec<Space>;

    /// Can it decide about these jobs on these servers at all?
    ///
    /// # Errors
    /// If not; says why, and what would help.
    fn check(&self, round: &RoundState) -> Result<(), String> {
        let _ = round;
        Ok(())
    }

    /// Goes on to the first action of a round; what goes on from the round before has been placed already.
    fn begin(&mut self, round: &mut RoundState);

    /// Is nothing left to be decided in this round?
    fn is_over(&self) -> bool;

    /// The agent that acts next.
    fn agent(&self) -> usize {
        0
    }

    /// Writes the observation.
    fn observe(&self, round: &RoundState, observation: &mut [f32]);

    /// Writes which actions are allowed: at least one until the round [is over](Self::is_over).
    fn mask(&self, round: &RoundState, mask: &mut [bool]);

    /// Carries out an allowed action, and goes on to the next.
    fn act(&mut self, round: &mut RoundState, action: usize);

    /// The teacher's action.
    fn advice(&self, round: &RoundState) -> Option<usize>;

    /// Length of the critic's state; 0 if the observation will do.
    fn state_length(&self) -> usize {
        0
    }

    /// Writes them.
    fn state(&self, round: &RoundState, state: &mut [f32]) {
        let _ = (round, state);
    }

    /// Which jobs continue on their workers without a decision: all, unless something has changed.
    fn continuation(&self, memory: &mut Memory, view: &RoundView<'_>) -> Continuation;
}

/// Which jobs continue on their workers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Continuation {
    /// All jobs; nothing is decided in this round.
    Everything,
    /// No job; all is decided anew.
    Nothing,
    /// Jobs that retained more than this part of their speed; the others go to the end of the queue.
    Retaining(f64),
}

/// A round on its way: what goes on is placed, and the first action is there to be decided, if there is any.
///
/// # Errors
/// If these jobs on these servers cannot be decided about.
pub(super) fn open(
    scheme: &mut dyn ActionScheme,
    memory: &mut Memory,
    view: &RoundView<'_>,
) -> Result<(RoundState, bool), String> {
    memory.learn(view);
    let continuation = scheme.continuation(memory, view);
    let mut round = RoundState::new(view, memory);
    scheme.check(&round)?;
    let before: Vec<_> = round.problem().jobs().ids().collect();
    for job in before {
        let job_state = round.job_state(job);
        if job_state.previous.is_none() {
            continue;
        }
        match continuation {
            Continuation::Nothing => {}
            Continuation::Everything => drop(round.stay(job)),
            Continuation::Retaining(least) if job_state.retained > least => drop(round.stay(job)),
            Continuation::Retaining(_) => memory.send_back(round.problem().jobs()[job].id),
        }
    }
    if continuation == Continuation::Everything {
        return Ok((round, false));
    }
    round.sort_by_queue(memory);
    scheme.begin(&mut round);
    let decides = !scheme.is_over();
    Ok((round, decides))
}

/// Ends a decided round: stores what is expected of its placed jobs.
pub(super) fn close(memory: &mut Memory, round: &RoundState) {
    for (job, placed) in round.placed() {
        let kind = placed.worker_type;
        let by_type = round.speed(*job, kind);
        let expected = expected(round, *job, kind, &placed.workers) * round.job_state(*job).fastest;
        memory.expect(placed.combination.first(), Expected { by_type, expected });
    }
}
