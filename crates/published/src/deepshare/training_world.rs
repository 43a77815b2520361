//! The system `deepshare`, and the options of its world.

use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::environment::{DeepShareEnvironment, RoundReward, Workloads};
use crate::deepshare::{DecisionsPerRound, EpisodeOptions, Mix, ObservationKind};
use apportion::spec::Fidelity;
use apportion::throughput::spread::SpreadThroughputs;
use apportion_learn::system::{Registered, System, SystemError, check_counts, options};

/// The system `deepshare`.
pub const SYSTEM: Registered = Registered {
    name: "deepshare",
    decides: "which queued job starts on which servers, where jobs that share a server slow each other down",
    open,
};

fn open(world: &Value) -> Result<System, SystemError> {
    let options: DeepShareWorld = options(world)?;
    let tables = SpreadThroughputs::deepshare();
    let first = options.environment(&tables)?;
    let judged = first.in_use(options.round == RoundEnd::NothingFits);
    let (served, timed) = (judged.clone(), judged.clone());
    let system = System::new(SYSTEM.name, &format!("{tables:?}"), move || Box::new(first.clone()));
    let mut system = system.with_play("mean reward of a round", move |actor, choice, seed| {
        judged.clone().judge(&*actor, choice, seed)
    });
    system.service =
        Some(Arc::new(move |actor, choice, seed| served.clone().judge_service(&*actor, choice, seed)));
    system.times =
        Some(Arc::new(move |actor, choice, seed| timed.clone().judge_times(&*actor, choice, seed)));
    Ok(system)
}

/// Options of the world of `deepshare`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DeepShareWorld {
    /// Jobs of an episode.
    pub jobs: usize,
    /// Shares of the models: `random` for shares drawn anew for each episode, `equal`, or the name of a mix of the tables.
    pub mix: String,
    /// Whether the published simulator's quirks are kept.
    #[serde(serialize_with = "fidelity")]
    pub fidelity: Fidelity,
    /// The event that ends a round.
    pub round: RoundEnd,
    /// Whether crowded jobs are preempted before a round, as in published training; otherwise after it.
    pub preempts_first: bool,
    /// Whether invalid actions are masked.
    pub masked: bool,
    /// Weight of contention in the published reward, w1.
    pub contention_weight: f64,
    /// Weight of utilization in the published reward, w2.
    pub utilization_weight: f64,
    /// The reward of a round.
    pub reward: RoundReward,
    /// The kind of observation of servers and candidates.
    #[serde(rename = "sight")]
    pub observation_kind: ObservationKind,
    /// Steps after which an episode is cut off.
    pub step_limit: u64,
}

impl Default for DeepShareWorld {
    fn default() -> Self {
        Self {
            jobs: 256,
            mix: "random".to_owned(),
            fidelity: Fidelity::Corrected,
            round: RoundEnd::Action,
            preempts_first: true,
            masked: false,
            contention_weight: 0.8,
            utilization_weight: 0.2,
            reward: RoundReward::Published,
            observation_kind: ObservationKind::Serials,
            step_limit: 20_000,
        }
    }
}

/// Writes `fidelity` with the words of training documents.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn fidelity<S: Serializer>(fidelity: &Fidelity, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match fidelity {
        Fidelity::Corrected => "corrected",
        Fidelity::Published => "released",
    })
}

/// The event that ends a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RoundEnd {
    /// Every action, as the published agents are trained.
    Action,
    /// The first invalid action, as they are used.
    Invalid,
    /// The first invalid action for which the baselines' placement finds no room either, as their hybrids are used.
    NothingFits,
}

impl DeepShareWorld {
    /// An environment of these options, still to be reset.
    fn environment(&self, tables: &Arc<SpreadThroughputs>) -> Result<DeepShareEnvironment, String> {
        check_counts(&[("jobs", self.jobs as u64)], self.step_limit)?;
        for (field, value) in
            [("contention_weight", self.contention_weight), ("utilization_weight", self.utilization_weight)]
        {
            if !(value.is_finite() && value >= 0.0) {
                return Err(format!("`{field}` is {value}, expected a finite number, at least 0"));
            }
        }
        let mix = match self.mix.as_str() {
            "random" => Mix::Random,
            "equal" => Mix::Equal,
            name => Mix::Named(name.to_owned()),
        };
        let workloads = Workloads::Drawn(mix, self.jobs);
        let options = self.options();
        DeepShareEnvironment::new(Arc::clone(tables), workloads, options, self.masked, self.step_limit)
            .map(|environment| environment.learning_by(self.observation_kind, self.reward))
            .map_err(|error| error.to_string())
    }

    /// The options of its episodes.
    pub fn options(&self) -> EpisodeOptions {
        EpisodeOptions {
            fidelity: self.fidelity,
            decisions: match self.round {
                RoundEnd::Action => DecisionsPerRound::One,
                RoundEnd::Invalid | RoundEnd::NothingFits => DecisionsPerRound::UntilInvalid,
            },
            hybrid: self.round == RoundEnd::NothingFits,
            preempts_first: self.preempts_first,
            contention_weight: self.contention_weight,
            utilization_weight: self.utilization_weight,
        }
    }
}
