//! Trained agents at work in a cloud of any size.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::DualAgentWorld;
use super::network::SetActor;
use crate::dual_agent::observe::Window;
use crate::dual_agent::rule::LIMITS;
use crate::dual_agent::{Cloud, DualAgentEpisode, DualAgentSummary, EpisodeOptions};
use crate::world::{PlayError, WorldError, WorldJob};
use apportion_learn::actor::{Actor, Scratch, masked_softmax, most_probable};
use apportion_learn::checkpoint::CheckpointError;
#[cfg(feature = "onnx")]
use apportion_learn::trained::Ports;
use apportion_learn::trained::{Trained, TrainedError};
use apportion_learn::vectorized::PlayError as EpisodeError;

/// The agents of a file, with the options of the episodes that they were trained in. For an ONNX model that this program did not
/// write, the window follows from the sizes of inputs and outputs.
///
/// # Errors
/// If the file holds something else.
pub fn read_agents(trained: &Trained) -> Result<(Arc<dyn Actor>, EpisodeOptions), TrainedError> {
    match trained {
        Trained::Own(checkpoint) => {
            let actor = SetActor::from_checkpoint(checkpoint)?;
            Ok((Arc::new(actor), episode_of(&checkpoint.header.spec)?))
        }
        #[cfg(feature = "onnx")]
        Trained::Onnx(_) => {
            let (actor, ports) = trained.actor()?;
            let [order, placement] = &ports[..] else {
                return Err(TrainedError::Agents { found: ports.len(), expected: 2 });
            };
            if trained.spec().get("world").is_none() {
                let window = window_of(order, placement)?;
                return Ok((actor, EpisodeOptions { window, ..EpisodeOptions::default() }));
            }
            let options = episode_of(trained.spec())?;
            let window = options.window;
            order.observation.expect(window.team_length(), "what is seen by its header")?;
            order.logits.expect(window.n_jobs + 1, "jobs, and to stop")?;
            placement.observation.expect(options.placement_length(), "what is seen by its header")?;
            placement.logits.expect(window.n_candidates(), "candidates")?;
            Ok((actor, options))
        }
    }
}

/// The options of the episodes of a training with this specification.
///
/// # Errors
/// If its world is not one of the dual-agent scheduler's.
pub fn episode_of(spec: &Value) -> Result<EpisodeOptions, CheckpointError> {
    let world = spec.get("world").filter(|world| !world.is_null());
    let world = world.map_or_else(|| Ok(DualAgentWorld::default()), DualAgentWorld::deserialize);
    let options = world.map_err(|error| error.to_string()).and_then(|world| world.episode());
    options.map_err(|reason| CheckpointError::Header { reason })
}

/// The window of networks with inputs and outputs of these sizes.
#[cfg(feature = "onnx")]
pub fn window_of(order: &Ports, placement: &Ports) -> Result<Window, TrainedError> {
    let one_less = |ports: &Ports, of: &str| match ports.logits.length {
        0 | 1 => Err(ports.logits.other_than(format!("one for each {of} that is seen, and one more"))),
        length => Ok(length - 1),
    };
    let window = Window { n_jobs: one_less(order, "job")?, n_servers: one_less(placement, "server")? };
    let seen = format!("what is seen of {} jobs and {} servers", window.n_jobs, window.n_servers);
    order.observation.expect(window.team_length(), &seen)?;
    placement.observation.expect(window.placement_length(), &format!("{seen}, and candidates"))?;
    Ok(window)
}

/// Plays a workload to its end by the most probable actions.
///
/// # Errors
/// If a limit is hit, or the actor gives no probabilities.
pub fn play(
    cloud: Cloud,
    options: EpisodeOptions,
    actor: &dyn Actor,
    jobs: &[WorldJob],
    seed: u64,
) -> Result<DualAgentSummary, PlayError> {
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
            return Err(WorldError::Rounds { n_done, n_jobs, rounds_max: LIMITS.rounds_max }.into());
        }
        let agent = episode.agent();
        let (length, n_actions) = if agent == 0 {
            (window.team_length(), n_jobs + 1)
        } else {
            (options.placement_length(), window.n_candidates())
        };
        seen.resize(length, 0.0);
        mask.resize(n_actions, false);
        logits.resize(n_actions, 0.0);
        episode.observe(&mut seen);
        episode.mask(&mut mask);
        actor.logits(agent, &seen, &mut scratch, &mut logits).map_err(EpisodeError::from)?;
        masked_softmax(&mut logits, &mask).map_err(EpisodeError::from)?;
        done = episode.step(most_probable(&logits)).done;
    }
    Ok(episode.cloud().summary())
}
