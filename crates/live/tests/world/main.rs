//! Whole worlds of a scheduler and nodes, in which messages are lost, repeated, reordered and late, and all parts are ended at any
//! instruction. Only the scheduler's core and the agents' are real; checked are the ranks that really run on the nodes, not the
//! scheduler's beliefs.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers")]

mod accounts;
mod arrivals;
mod held_jobs;
mod drained;
mod explained;
mod failures;
mod frozen;
mod fidelity;
mod late;
mod log;
mod node;
mod placing;
mod prices;
mod random;
mod removed;
mod resized;
mod restarts;
mod silent;
mod small;
mod world;

use proptest::prelude::*;

use world::{Faults, World};

/// The number of sequences per kind of faults: with four kinds, at least 10,000 in all.
const SEQUENCES: u32 = 2_500;

proptest! {
    #![proptest_config(ProptestConfig { cases: SEQUENCES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_where_nothing_fails(seed: u64) {
        let faults = Faults::default();
        World::run(seed, faults);
    }

    #[test]
    fn messages_are_lost_repeated_and_late(seed: u64) {
        let faults = Faults { loss: 0.2, repeats: 0.2, late: 0.1, ..Faults::default() };
        World::run(seed, faults);
    }

    #[test]
    fn the_scheduler_ends_at_any_instruction(seed: u64) {
        let faults = Faults { loss: 0.05, repeats: 0.05, late: 0.02, crashes: 0.02, ..Faults::default() };
        World::run(seed, faults);
    }

    #[test]
    fn time_that_two_jobs_share_is_in_the_log_once_wherever_the_scheduler_ends(seed in 0u64..1 << 32) {
        let faults = Faults { loss: 0.05, repeats: 0.05, crashes: 0.03, jobs: 0.01, ..Faults::default() };
        World::run(3 * seed + 2, faults);
    }

    #[test]
    fn everything_fails(seed: u64) {
        let faults = Faults { loss: 0.1, repeats: 0.1, late: 0.05, crashes: 0.01, agents: 0.02, nodes: 0.005, jobs: 0.02 };
        World::run(seed, faults);
    }
}

/// Runs the world of a seed that failed: `APPORTION_WORLD_SEED=7 cargo test -p apportion-live --test world one_world`.
#[test]
fn one_world() {
    let seed = option_env!("APPORTION_WORLD_SEED").and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let faults =
        Faults { loss: 0.1, repeats: 0.1, late: 0.05, crashes: 0.01, agents: 0.02, nodes: 0.005, jobs: 0.02 };
    World::run(seed, faults);
}
