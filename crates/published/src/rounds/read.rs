//! Networks that decide inside rounds, read from their weights.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::action_scheme::ActionScheme;
use super::world::{ActionSchemeName, RoundsWorld};
use crate::dual_agent::EpisodeOptions;
use crate::dual_agent::network::SetActor;
use crate::dual_agent::observe::Window;
use crate::dual_agent::player;
use apportion_learn::actor::{Actor, UniformActor};
use apportion_learn::checkpoint::CheckpointError;
use apportion_learn::trained::{Trained, TrainedError};

/// An actor, and the action scheme that it decides by.
pub type Decider = (Arc<dyn Actor>, Box<dyn ActionScheme>);

/// A decider without weights, which draws uniformly from the allowed actions.
pub fn uniform(scheme: ActionSchemeName) -> Decider {
    let world = RoundsWorld { scheme, ..RoundsWorld::default() };
    (Arc::new(UniformActor), world.scheme())
}

/// The decider in a file of weights. Two agents may also have been trained in the dual-agent scheduler's own world, whose rows are
/// the same.
///
/// # Errors
/// If the file holds something else.
pub fn read_decider(trained: &Trained, scheme: ActionSchemeName) -> Result<Decider, TrainedError> {
    #[cfg(feature = "onnx")]
    if let (Trained::Onnx(_), ActionSchemeName::Agents, None) = (trained, scheme, trained.spec().get("world"))
    {
        let (actor, ports) = trained.actor()?;
        let [order, placement] = &ports[..] else {
            return Err(TrainedError::Agents { found: ports.len(), expected: 2 });
        };
        // The window of a model that this program did not write follows from its sizes.
        let window = player::window_of(order, placement)?;
        let [seen_jobs, seen_servers] = [window.n_jobs, window.n_servers];
        return Ok((actor, RoundsWorld { seen_jobs, seen_servers, ..RoundsWorld::default() }.scheme()));
    }
    let world = world_of(trained.spec(), scheme)?;
    let seen = world.scheme();
    let sizes: Vec<(usize, usize)> =
        seen.spaces().iter().map(|space| (space.observation_length(), space.n_actions)).collect();
    let actor: Arc<dyn Actor> = if let (Trained::Own(checkpoint), Some(_)) = (trained, scheme.network()) {
        Arc::new(SetActor::from_checkpoint(checkpoint)?)
    } else {
        trained.actor_of(&sizes)?
    };
    Ok((actor, seen))
}

/// The options of episodes, for networks over sets, of a training of two agents inside rounds; none for another training.
///
/// # Errors
/// If its world cannot be read.
pub fn episode_of(spec: &Value) -> Result<Option<EpisodeOptions>, CheckpointError> {
    if spec.get("system").and_then(Value::as_str) != Some("rounds") {
        return Ok(None);
    }
    let world = read_world(spec)?.unwrap_or_default();
    let window = Window { n_jobs: world.seen_jobs, n_servers: world.seen_servers };
    Ok(Some(EpisodeOptions { window, advised: world.advised, ..EpisodeOptions::default() }))
}

/// The world of a training inside rounds, if it has one.
fn read_world(spec: &Value) -> Result<Option<RoundsWorld>, CheckpointError> {
    let fault = |reason: String| CheckpointError::Header { reason };
    let world = spec.get("world").filter(|world| !world.is_null());
    let world = world.map(RoundsWorld::deserialize).transpose().map_err(|error| fault(error.to_string()))?;
    world.as_ref().map_or(Ok(()), RoundsWorld::check).map_err(fault)?;
    Ok(world)
}

/// The world of rounds that fits weights of a training with this specification.
fn world_of(spec: &Value, scheme: ActionSchemeName) -> Result<RoundsWorld, TrainedError> {
    let system = spec.get("system").and_then(Value::as_str);
    if system == Some("dual_agent") && scheme == ActionSchemeName::Agents {
        let options = player::episode_of(spec)?;
        if options.proposals {
            return Err(TrainedError::Kind { expected: "network of agents that choose servers" });
        }
        let [seen_jobs, seen_servers] = [options.window.n_jobs, options.window.n_servers];
        let advised = options.advised;
        return Ok(RoundsWorld { scheme, seen_jobs, seen_servers, advised, ..RoundsWorld::default() });
    }
    let usual = RoundsWorld { scheme, ..RoundsWorld::default() };
    let world = if system == Some("rounds") { read_world(spec)?.unwrap_or_default() } else { usual };
    if world.scheme != scheme {
        return Err(TrainedError::Kind { expected: scheme.expected() });
    }
    Ok(world)
}
