//! Action schemes of learned schedulers: observations, masks and actions on a [`RoundState`], the same in training and in use.

use std::fmt;

use super::gang::{expected, expected_of, speeds};
use super::memory::{Expected, Memory};
use super::round_state::{RoundState, fastest_of};
use apportion::index::{Id, JobIndex, ServerId, WorkerId};
use apportion::policy::{Placed, RoundView};
use apportion::problem::ActiveJob;
use apportion::workload::Combination;
use apportion_learn::environment::Space;

/// An action scheme: the observations, masks and actions by which rounds are decided.
pub trait ActionScheme: fmt::Debug + Send {
    /// One space per agent.
    fn spaces(&self) -> Vec<Space>;

    /// Checks that the scheme can decide about these jobs on these servers.
    ///
    /// # Errors
    /// If it cannot, with the reason and what would help.
    fn check(&self, round: &RoundState) -> Result<(), String> {
        let _ = round;
        Ok(())
    }

    /// Begins the decisions of a round, in which continuing jobs have been placed already, and goes on to the first action.
    fn begin(&mut self, round: &mut RoundState);

    /// Whether nothing is left to be decided in this round.
    fn is_over(&self) -> bool;

    /// The agent that acts next.
    fn agent(&self) -> usize {
        0
    }

    /// Writes the observation.
    fn observe(&self, round: &RoundState, observation: &mut [f32]);

    /// Writes the mask of allowed actions: at least one until the round [is over](Self::is_over).
    fn mask(&self, round: &RoundState, mask: &mut [bool]);

    /// Carries out an allowed action, and goes on to the next.
    fn act(&mut self, round: &mut RoundState, action: usize);

    /// The teacher's action, if it has one.
    fn advice(&self, round: &RoundState) -> Option<usize>;

    /// Length of the critic's state; 0 if the critic judges the observation.
    fn state_length(&self) -> usize {
        0
    }

    /// Writes the critic's state.
    fn state(&self, round: &RoundState, state: &mut [f32]) {
        let _ = (round, state);
    }

    /// Notes a round in which every job continues and nothing is decided. The scheme is left as [`begin`](Self::begin) leaves it in
    /// such a round.
    fn pass(&mut self) {}

    /// Which jobs continue on their workers in this round without a decision.
    fn continuation(&self, memory: &mut Memory, view: &RoundView<'_>) -> Continuation;
}

/// The jobs that continue on their workers in a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Continuation {
    /// All jobs; nothing is decided in this round.
    Everything,
    /// No job; everything is decided anew.
    Nothing,
    /// Jobs that retained more than this part of their expected speed; other jobs go to the end of the queue.
    Retaining(f64),
}

/// The beginning of a round.
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and it is taken apart at once")]
#[derive(Debug)]
pub(super) enum Opened {
    /// Every job goes on where it is, and none waits: the placements, whose expectations the memory has already.
    Undisturbed(Vec<Placed>),
    /// The continuing jobs are placed: (the round, whether there is an action to be decided).
    Begun(RoundState, bool),
}

/// Begins a round. If every job goes on and none waits, as in most rounds, no state of the round is made.
///
/// # Errors
/// If the scheme cannot decide about these jobs on these servers.
pub(super) fn open(
    scheme: &mut dyn ActionScheme,
    memory: &mut Memory,
    view: &RoundView<'_>,
) -> Result<Opened, String> {
    memory.learn(view);
    let continuation = scheme.continuation(memory, view);
    if let Continuation::Retaining(least) = continuation
        && let Some(placed) = all_retaining(memory, view, least)
    {
        scheme.pass();
        for ((job, active), placed) in view.problem.jobs().enumerate().zip(&placed) {
            memory.expect(active.id, expected_again(memory, view, job, placed));
        }
        return Ok(Opened::Undisturbed(placed));
    }
    let (round, decides) = begin(scheme, memory, view, continuation)?;
    Ok(Opened::Begun(round, decides))
}

/// The placements of the round before, job by job, if every job had one, retained more than this part of its expected speed, and
/// its workers are still up.
fn all_retaining(memory: &Memory, view: &RoundView<'_>, least: f64) -> Option<Vec<Placed>> {
    if view.previous.is_empty() {
        return None;
    }
    let stays = |(job, active): (JobIndex, &ActiveJob)| {
        let combination = Combination::single(active.id);
        let is_its = |placed: &&Placed| placed.combination == combination;
        let at_its_place = view.previous.get(job.index()).filter(is_its);
        let placed = at_its_place.or_else(|| view.previous.iter().find(is_its))?;
        let is_up = |worker: &WorkerId| view.free[placed.worker_type].binary_search(worker).is_ok();
        let retains = memory.history(active.id)?.retained > least;
        (retains && placed.workers.iter().all(is_up)).then(|| placed.clone())
    };
    view.problem.jobs().enumerate().map(stays).collect()
}

/// The expected throughput of a job that goes on, as [`close`] would find it.
fn expected_again(memory: &Memory, view: &RoundView<'_>, job: JobIndex, placed: &Placed) -> Expected {
    let kind = placed.worker_type;
    let mut on: Vec<ServerId> = placed.workers.iter().map(|worker| view.locations[*worker].server).collect();
    on.sort_unstable();
    on.dedup();
    let slowest = speeds(|worker| memory.known(worker), &placed.workers).0;
    let fastest = fastest_of(view.problem, job);
    let sizes = (placed.workers.len(), on.len());
    let expected = expected_of(view.problem, (job, kind), sizes, (slowest, fastest)) * fastest;
    Expected { by_type: view.problem.throughput()[(job, kind)], expected }
}

/// Begins a round of which the memory has learned: continuing jobs are placed. Returns the round, and whether there is an action to
/// be decided.
///
/// # Errors
/// If the scheme cannot decide about these jobs on these servers.
pub(super) fn begin(
    scheme: &mut dyn ActionScheme,
    memory: &mut Memory,
    view: &RoundView<'_>,
    continuation: Continuation,
) -> Result<(RoundState, bool), String> {
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

/// Ends a decided round: stores the expected throughputs of its placed jobs in the memory.
pub(super) fn close(memory: &mut Memory, round: &RoundState) {
    for (job, placed) in round.placed() {
        let kind = placed.worker_type;
        let by_type = round.speed(*job, kind);
        let expected = expected(round, *job, kind, &placed.workers) * round.job_state(*job).fastest;
        memory.expect(placed.combination.first(), Expected { by_type, expected });
    }
}
