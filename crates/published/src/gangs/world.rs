//! The world of the system `gangs` in training documents.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::actors::SCORER;
use super::environment::{GangEnvironment, GangEnvironmentOptions};
use super::observation::ObservationKind;
use super::policy::{Asked, Decider, GangPolicy, Sequential};
use super::scenario::{Reward, Scenario};
use super::teacher::demonstrate;
use super::values::{ByValues, Weighing};
use crate::document::ActorName;
use apportion::catalog::PolicyOptions;
use apportion::spec::policy::Colocation;
use apportion_learn::actor::{Actor, Choice};
use apportion_learn::environment::Status;
use apportion_learn::system::{Registered, System, SystemError, check_counts, check_seen, options};
use apportion_learn::vectorized::Finished;

/// The system `gangs`.
pub const SYSTEM: Registered = Registered {
    name: "gangs",
    decides: "which job gets all its workers of which type, in the simulator that every policy is compared in",
    open,
};

fn open(world: &Value) -> Result<System, SystemError> {
    let options: GangsWorld = options(world)?;
    check_seen("slots", options.slots)?;
    let (make, data) = options.environments()?;
    let make = move || make().unwrap_or_else(|| unreachable!("the same options made one before"));
    let shown = make.clone();
    let network = options.is_scored().then_some(SCORER);
    Ok(System::new(SYSTEM.name, &data, move || Box::new(make()))
        .with_network(network)
        .with_play("less the mean completion time, in hours", move |actor, choice, seed| {
            options.play(actor, choice, seed)
        })
        .with_teachers(move |teacher, seed, show| {
            let mut policy = (teacher.policy)(teacher.name)?;
            demonstrate(&mut shown(), &mut *policy, seed, show).map_err(|error| error.to_string())
        }))
}

/// Options of the world of `gangs`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GangsWorld {
    /// The actor that is learned: `window`, `pairs` or `values`. Values are learned by `evolution` alone.
    pub actor: ActorName,
    /// Which jobs may share workers; `pairs` only with `actor: values`.
    pub colocation: Colocation,
    /// Name of a throughput matrix that ships with the program.
    pub throughputs: String,
    /// Workers of each worker type of the matrix.
    pub workers: u32,
    /// Arrival rates, in jobs per hour; the seed of an episode picks one.
    pub rates: Vec<f64>,
    /// Jobs of an episode.
    pub jobs: usize,
    /// Whether some jobs need several workers.
    pub multi_worker: bool,
    /// The number of jobs in view: of a window always, of pairs only in training by reward.
    pub slots: usize,
    /// The quantity that is rewarded.
    pub reward: Reward,
    /// Steps after which an episode is cut off.
    pub step_limit: u64,
}

impl Default for GangsWorld {
    fn default() -> Self {
        Self {
            actor: ActorName::Pairs,
            colocation: Colocation::None,
            throughputs: "osdi20".to_owned(),
            workers: 4,
            rates: vec![0.3, 0.45, 0.6],
            jobs: 40,
            multi_worker: false,
            slots: 20,
            reward: Reward::Presence,
            step_limit: 100_000,
        }
    }
}

impl GangsWorld {
    fn scenario(&self) -> Result<Scenario, String> {
        let counts =
            [("workers", u64::from(self.workers)), ("jobs", self.jobs as u64), ("slots", self.slots as u64)];
        check_counts(&counts, self.step_limit)?;
        if self.colocation == Colocation::Pairs && self.actor != ActorName::Values {
            return Err("`colocation` is pairs, expected none where the actor is not `values`".to_owned());
        }
        Scenario::on(&self.throughputs, (self.workers, 1), &self.rates, (self.jobs, self.multi_worker))
    }

    fn observation_kind(&self, in_training: bool) -> Result<ObservationKind, String> {
        match self.actor {
            ActorName::Window => Ok(ObservationKind::Window { n_slots: self.slots }),
            ActorName::Pairs | ActorName::Values => {
                Ok(ObservationKind::Pairs { n_slots: in_training.then_some(self.slots) })
            }
            _ => Err("`actor` is a rule, expected `window`, `pairs` or `values`".to_owned()),
        }
    }

    /// A maker of environments, still to be reset, and a text of the data that they are made of.
    fn environments(&self) -> Result<(impl Fn() -> Option<GangEnvironment> + Clone + use<>, String), String> {
        let options = GangEnvironmentOptions {
            scenario: self.scenario()?,
            observation_kind: self.observation_kind(true)?,
            reward: self.reward,
            step_limit: self.step_limit,
        };
        GangEnvironment::new(options.clone()).map_err(|error| error.to_string())?;
        let data = format!("{:?}", options.scenario.throughputs);
        Ok((move || GangEnvironment::new(options.clone()).ok(), data))
    }

    /// Plays the episode of a seed with the actor as a finished policy. The return is less the mean completion time, h.
    fn play(&self, actor: Arc<dyn Actor>, choice: Choice, seed: u64) -> Result<Finished, String> {
        let decider = if self.actor == ActorName::Values {
            let pairs = self.colocation == Colocation::Pairs;
            let values = ByValues::new(
                "gangs",
                Some(actor),
                Weighing { pairs, ..Weighing::default() },
                &PolicyOptions::default(),
            )
            .map_err(|error| error.to_string())?;
            Decider::Values(Box::new(values))
        } else {
            let observation_kind = self.observation_kind(false)?;
            Decider::Sequential(Sequential { actor, observation_kind, choice })
        };
        let policy = GangPolicy::new("gangs", decider, Asked::Events, seed);
        let hours =
            self.scenario()?.completion_h(seed, Box::new(policy)).map_err(|error| error.to_string())?;
        Ok(Finished { total_reward: -hours, n_steps: self.jobs, status: Status::Terminated })
    }

    /// Whether the network is a scorer of rows, rather than dense layers over the whole observation.
    fn is_scored(&self) -> bool {
        self.actor != ActorName::Window
    }
}
