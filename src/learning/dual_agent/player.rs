//! The trained agents at work in a cloud of any size.

use crate::learning::actor::{Actor, Scratch, masked_softmax, most_probable};
use crate::world::dual_agent::observe::Window;
use crate::world::dual_agent::rule::LIMITS;
use crate::world::dual_agent::{Cloud, DualAgentEpisode, DualAgentSummary, EpisodeOptions};
use crate::world::{WorldError, WorldJob};

/// Plays a workload to its end by the most probable actions.
///
/// # Errors
/// If a limit is hit.
pub fn play(
    cloud: Cloud,
    options: EpisodeOptions,
    actor: &dyn Actor,
    jobs: &[WorldJob],
    seed: u64,
) -> Result<DualAgentSummary, WorldError> {
    let Window { n_jobs, .. } = options.window;
    let mut episode = DualAgentEpisode::new(cloud, options);
    let window = options.window;
    let mut done = episode.reset(jobs, seed).done;
    let mut scratch = Scratch::default();
    let (mut seen, mut mask, mut logits) = (Vec::new(), Vec::new(), Vec::new());
    while !done {
        if episode.cloud().world().round() >= LIMITS.rounds_max {
            let world = episode.cloud().world();
            let (n_done, n_jobs) = (world.n_done(), world.n_jobs());
            return Err(WorldError::Rounds { n_done, n_jobs, rounds_max: LIMITS.rounds_max });
        }
        let agent = episode.agent();
        let (length, n_actions) = if agent == 0 {
            (window.team_length(), n_jobs + 1)
        } else {
            (window.placement_length(), window.n_candidates())
        };
        seen.resize(length, 0.0);
        mask.resize(n_actions, false);
        logits.resize(n_actions, 0.0);
        episode.observe(&mut seen);
        episode.mask(&mut mask);
        actor.logits(agent, &seen, &mut scratch, &mut logits);
        masked_softmax(&mut logits, &mask);
        done = episode.step(most_probable(&logits)).done;
    }
    Ok(episode.cloud().summary())
}
