//! The loop of a run: arrivals → decisions → advance, until all jobs are done.

use std::fmt;

use thiserror::Error;

use crate::world::advance::Speeds;
use crate::world::apply::Decision;
use crate::world::state::World;
use crate::world::summary::Summary;

/// A policy that decides inside the rounds of a world.
pub trait WorldPolicy: fmt::Debug {
    /// Notes that a round starts.
    fn begin(&mut self, world: &World) {
        let _ = world;
    }

    /// The next decision of this round. [`World::rejected`] says why the one before was not applied, if it was not.
    fn next(&mut self, world: &World) -> Decision<'_>;
}

/// Limits after which a run is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most decisions in one round.
    pub decisions_max: u64,
    /// The most rounds.
    pub rounds_max: u64,
}

/// Why a run was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WorldError {
    /// A policy never ends its round.
    #[error("round {round} was not ended after {decisions_max} decisions")]
    Livelock {
        /// The round.
        round: u64,
        /// The limit.
        decisions_max: u64,
    },
    /// Jobs are left over after the most rounds.
    #[error("{n_done} of {n_jobs} jobs were done after {rounds_max} rounds")]
    Rounds {
        /// Jobs done.
        n_done: usize,
        /// Jobs in all.
        n_jobs: usize,
        /// The limit.
        rounds_max: u64,
    },
    /// Jobs are left over after the most decisions of an episode.
    #[error("{n_done} of {n_jobs} jobs were done after {decisions_max} decisions")]
    Decisions {
        /// Jobs done.
        n_done: usize,
        /// Jobs in all.
        n_jobs: usize,
        /// The limit.
        decisions_max: u64,
    },
}

/// Runs a world from where it is until all its jobs are done.
///
/// # Errors
/// If a limit is reached.
pub fn run<S, P>(
    world: &mut World,
    speeds: &mut S,
    policy: &mut P,
    limits: Limits,
) -> Result<Summary, WorldError>
where
    S: Speeds + ?Sized,
    P: WorldPolicy + ?Sized,
{
    let Limits { decisions_max, rounds_max } = limits;
    while !world.is_done() {
        if world.round() >= rounds_max {
            let (n_done, n_jobs) = (world.n_done(), world.n_jobs());
            return Err(WorldError::Rounds { n_done, n_jobs, rounds_max });
        }
        world.begin_round();
        policy.begin(world);
        let mut n_decisions = 0;
        loop {
            if n_decisions == decisions_max {
                return Err(WorldError::Livelock { round: world.round(), decisions_max });
            }
            n_decisions += 1;
            let decision = policy.next(world);
            let ended = decision == Decision::EndRound;
            // The policy learns of a rejection from the world.
            let _ = world.apply(decision);
            if ended {
                break;
            }
        }
        world.advance(speeds);
    }
    Ok(world.summary())
}
