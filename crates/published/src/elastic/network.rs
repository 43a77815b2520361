//! Networks that decide how many workers jobs get in rounds, and their views of the jobs of a round.

use std::sync::Arc;

use serde_json::Value;

use super::dl2_network::Dl2Network;
use super::{ObservationKind, SYSTEM, Window};
use crate::gangs::{N_FEATURES, read_scorer};
use apportion_learn::actor::Actor;
use apportion_learn::checkpoint::NetworkKind;
use apportion_learn::trained::{Ports, Trained, TrainedError};

/// A network that picks the job that grows.
#[derive(Clone, Debug)]
pub enum ElasticNetwork {
    /// A network that scores climbs, one at a time, for any number of jobs and worker types.
    Scorer(Arc<dyn Actor>),
    /// A network over a window of jobs, for the worker types of its matrix.
    Windowed(Windowed),
    /// A network of DL2's own world.
    Dl2(Dl2Network),
}

/// A network over a whole observation of the elastic world.
#[derive(Clone, Debug)]
pub struct Windowed {
    pub(super) actor: Arc<dyn Actor>,
    /// The number of inputs.
    n_seen: usize,
    n_actions: usize,
}

impl ElasticNetwork {
    /// The network in a file of weights of the elastic world.
    ///
    /// # Errors
    /// If the file holds something else, or a network with the observation `kept_pairs`, which rounds do not have.
    pub fn read(trained: &Trained) -> Result<Self, TrainedError> {
        let spec = trained.spec();
        let of_another = |system: &Value| system.as_str().is_some_and(|system| system != SYSTEM.name);
        let sight = spec.get("world").and_then(|world| world.get("sight"));
        let is_kept = sight.and_then(Value::as_str) == Some("kept_pairs");
        if spec.get("system").is_some_and(of_another) || is_kept {
            let expected = "network of `system: elastic` with `sight: pairs` or `window`";
            return Err(TrainedError::Kind { expected });
        }
        if let Trained::Own(checkpoint) = trained
            && let NetworkKind::Own { .. } = &checkpoint.header.network
        {
            return Ok(Self::Scorer(read_scorer(trained)?));
        }
        let (actor, ports) = trained.actor()?;
        let [Ports { observation, logits }] = &ports[..] else {
            return Err(TrainedError::Agents { found: ports.len(), expected: 1 });
        };
        if (observation.length, logits.length) == (N_FEATURES, 1) {
            return Ok(Self::Scorer(read_scorer(trained)?));
        }
        let windowed = Windowed { actor, n_seen: observation.length, n_actions: logits.length };
        let fits = |n_types: usize| windowed.sees(n_types).is_some();
        if !(1..logits.length).any(fits) {
            let expected = format!("as many as the elastic world shows beside {} actions", logits.length);
            return Err(observation.other_than(expected));
        }
        Ok(Self::Windowed(windowed))
    }
}

impl Windowed {
    /// The network's kind of observation and number of jobs, if it has `n_types` worker types; none if it has another number.
    pub(super) fn sees(&self, n_types: usize) -> Option<(ObservationKind, usize)> {
        let n_climbs =
            self.n_actions.checked_sub(1).filter(|n| *n > 0 && n.is_multiple_of(n_types.max(1)))?;
        let n_jobs = n_climbs / n_types.max(1);
        let kinds = [ObservationKind::Window, ObservationKind::Pairs].into_iter();
        let mut fitting = kinds.filter(|kind| Window::length_of(*kind, n_jobs, n_types) == self.n_seen);
        fitting.next().map(|kind| (kind, n_jobs))
    }

    /// The network's kind of observation and number of jobs, if it has `n_types` worker types.
    ///
    /// # Errors
    /// If it has another number of worker types.
    pub(super) fn fitted(&self, n_types: usize) -> Result<(ObservationKind, usize), String> {
        self.sees(n_types).ok_or_else(|| {
            let (n_seen, n_actions) = (self.n_seen, self.n_actions);
            format!(
                "its network has {n_seen} inputs and {n_actions} outputs, which is so for another number of worker types than \
                 the {n_types} of the throughputs: train one at those"
            )
        })
    }
}
