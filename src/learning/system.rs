//! The learned schedulers there are: by name, from a world's options to environments.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::actor::{Actor, Choice};
use super::deepshare::{DeepShareEnvironment, RoundReward, Workloads};
use super::dl2::{Dl2World, demonstrate_rule};
use super::dual_agent::{DualAgentWorld, network};
use super::elastic::{self, ElasticWorld};
use super::environment::{Environment, Show};
use super::gangs::{GangsWorld, SCORER, demonstrate};
use super::rounds::{PlayName, RoundsWorld};
use super::vectorized::Finished;
use crate::policy::Policy;
use crate::spec::nearest::name_list;
use crate::spec::run::sha256;
use crate::throughput::elastic::ElasticThroughputs;
use crate::throughput::spread::SpreadThroughputs;
use crate::world::deepshare::{DecisionsPerRound, DeepShareSight, EpisodeOptions, Fidelity, Mix};
use crate::world::dual_agent::Tables;
use crate::world::elastic::Sight;

/// Something that can be learned: environments of one world.
#[derive(Clone)]
pub struct System {
    /// Its name in training documents.
    pub name: &'static str,
    /// SHA-256 of the data that its world is made of, in hexadecimal.
    pub data_digest: String,
    /// The network that decides, if it is not dense layers: its name in files.
    pub own_network: Option<&'static str>,
    /// Plays an episode to judge an actor, where that is not by the environment's rewards.
    pub play: Option<Play>,
    /// What the return of an episode is where an actor is judged: in words, with its unit.
    pub judged_by: &'static str,
    /// Plays an episode to judge an actor by the jobs' service times, where results were published so: see
    /// `validation.measure`. The return is less these times, over a baseline's.
    pub service: Option<Play>,
    /// The same by the jobs' mean service and completion times.
    pub times: Option<Play>,
    /// Shows what others do.
    pub demonstrate: Option<Demonstrate>,
    make: Arc<dyn Fn() -> Box<dyn Environment> + Send + Sync>,
}

/// Where a world is decided slot by slot.
const LESS_SLOTS: &str = "less the mean completion time, in slots of 20 minutes";

/// Plays the episode of a seed; says why it cannot. The return is less the mean completion time.
pub type Play = Arc<dyn Fn(Arc<dyn Actor>, Choice, u64) -> Result<Finished, String> + Send + Sync>;

/// Plays the episode of a seed as a teacher decides, and shows each action; says why it cannot.
pub type Demonstrate = Arc<dyn Fn(&Teacher<'_>, u64, &mut Show<'_>) -> Result<(), String> + Send + Sync>;

/// Makes a policy of a name; says why it cannot.
pub type MakePolicy<'a> = dyn Fn(&str) -> Result<Box<dyn Policy>, String> + 'a;

/// Who shows what to do.
pub struct Teacher<'a> {
    /// A name that the system knows, or that of a policy.
    pub name: &'a str,
    /// Makes a policy of a name; says why it cannot.
    pub policy: &'a MakePolicy<'a>,
}

impl fmt::Debug for Teacher<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Teacher").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, data_digest, .. } = self;
        f.debug_struct("System").field("name", name).field("data_digest", data_digest).finish_non_exhaustive()
    }
}

/// The world's options, as a training document has them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DeepShareWorld {
    /// Jobs of an episode.
    pub jobs: usize,
    /// Shares of the job types: `random` for each episode anew, `equal`, or a mix of the tables.
    pub mix: String,
    /// Whether the published simulator's quirks are kept.
    pub fidelity: FidelityName,
    /// What ends a round.
    pub round: RoundEnd,
    /// Whether crowded jobs are preempted before a round, as in published training; otherwise after it.
    pub preempts_first: bool,
    /// Whether invalid actions are masked.
    pub masked: bool,
    /// w1.
    pub contention_weight: f64,
    /// w2.
    pub utilization_weight: f64,
    /// What a round is worth.
    pub reward: RoundReward,
    /// How servers and candidates are seen.
    pub sight: DeepShareSight,
    /// Steps after which an episode is cut off.
    pub step_limit: u64,
}

impl Default for DeepShareWorld {
    fn default() -> Self {
        Self {
            jobs: 256,
            mix: "random".to_owned(),
            fidelity: FidelityName::Corrected,
            round: RoundEnd::Action,
            preempts_first: true,
            masked: false,
            contention_weight: 0.8,
            utilization_weight: 0.2,
            reward: RoundReward::Published,
            sight: DeepShareSight::Serials,
            step_limit: 20_000,
        }
    }
}

/// Which of the published simulator's ways to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FidelityName {
    /// As published, quirks included.
    Released,
    /// As intended.
    Corrected,
}

/// What ends a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoundEnd {
    /// Every action: how the published agents are trained.
    Action,
    /// The first invalid action: how they are used.
    Invalid,
    /// The first invalid action for which the baselines' placement finds nothing either: how their hybrids are used.
    NothingFits,
}

impl DeepShareWorld {
    /// An environment of these options, still to be reset.
    fn environment(&self, tables: &Arc<SpreadThroughputs>) -> Result<DeepShareEnvironment, String> {
        for (field, value) in [("jobs", self.jobs as u64), ("step_limit", self.step_limit)] {
            if value == 0 {
                return Err(format!("`{field}` is 0, expected a whole number above 0"));
            }
        }
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
            .map(|environment| environment.learning_by(self.sight, self.reward))
            .map_err(|error| error.to_string())
    }

    /// How its episodes are played.
    pub fn options(&self) -> EpisodeOptions {
        EpisodeOptions {
            fidelity: match self.fidelity {
                FidelityName::Released => Fidelity::RELEASED,
                FidelityName::Corrected => Fidelity::CORRECTED,
            },
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

/// Why there is no such system.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SystemError {
    /// No such name.
    #[error("unknown system `{name}`, expected one of {known}")]
    Unknown {
        /// The name.
        name: String,
        /// What there is.
        known: String,
    },
    /// Options that its world does not have.
    #[error("{reason}")]
    World {
        /// What is wrong.
        reason: String,
    },
}

/// Names and one line about each.
pub const SYSTEMS: [(&str, &str); 6] = [
    (
        "deepshare",
        "which queued job starts on which servers, where jobs that share a server slow each other down",
    ),
    ("dl2", "how many workers and parameter servers each job gets, slot by slot"),
    (
        "elastic",
        "how many workers of which type each job gets, slot by slot, at the speeds of a throughput matrix",
    ),
    (
        "gangs",
        "which job gets all its workers of which type, in the simulator that every policy is compared in",
    ),
    ("dual_agent", "who is next and, by a second agent, where it goes, on servers whose speeds drift"),
    (
        "rounds",
        "what those two agents decide, or DeepShare's, on the very workers of the simulator that every policy is compared in",
    ),
];

impl System {
    /// The system of this name in a world of these options; without options, the published one.
    ///
    /// # Errors
    /// If there is none of that name, or its world has no such options.
    pub fn new(name: &str, world: &Value) -> Result<Self, SystemError> {
        match name {
            "deepshare" => Self::deepshare(world),
            "dl2" => Self::dl2(world),
            "elastic" => Self::elastic(world),
            "gangs" => Self::gangs(world),
            "dual_agent" => Self::dual_agent(world),
            "rounds" => Self::rounds(world),
            _ => Err(SystemError::Unknown {
                name: name.to_owned(),
                known: name_list(SYSTEMS.iter().map(|(name, _)| *name)),
            }),
        }
    }

    fn deepshare(world: &Value) -> Result<Self, SystemError> {
        let fault = |reason: String| SystemError::World { reason };
        let options: DeepShareWorld = options(world)?;
        let tables = SpreadThroughputs::deepshare();
        let data_digest = sha256(format!("{tables:?}").as_bytes());
        let first = options.environment(&tables).map_err(fault)?;
        let judged = first.in_use(options.round == RoundEnd::NothingFits);
        let (served, timed) = (judged.clone(), judged.clone());
        Ok(Self {
            name: "deepshare",
            judged_by: "mean reward of a round",
            data_digest,
            own_network: None,
            play: Some(Arc::new(move |actor, choice, seed| judged.clone().judge(&*actor, choice, seed))),
            service: Some(Arc::new(move |actor, choice, seed| {
                served.clone().judge_service(&*actor, choice, seed)
            })),
            times: Some(Arc::new(move |actor, choice, seed| {
                timed.clone().judge_times(&*actor, choice, seed)
            })),
            demonstrate: None,
            make: Arc::new(move || Box::new(first.clone())),
        })
    }

    fn dl2(world: &Value) -> Result<Self, SystemError> {
        let options: Dl2World = options(world)?;
        check_seen("window", options.window)?;
        let tables = ElasticThroughputs::dl2();
        let data_digest = sha256(format!("{tables:?}").as_bytes());
        let first = options.environment(&tables).map_err(|reason| SystemError::World { reason })?;
        let (again, judged) = (first.clone(), first.clone());
        Ok(Self {
            name: "dl2",
            judged_by: LESS_SLOTS,
            data_digest,
            own_network: None,
            play: Some(Arc::new(move |actor, choice, seed| judged.clone().judge(&*actor, choice, seed))),
            service: None,
            times: None,
            demonstrate: Some(Arc::new(move |teacher, seed, show| {
                demonstrate_rule(&mut again.clone(), teacher.name, seed, show)
            })),
            make: Arc::new(move || Box::new(first.clone())),
        })
    }

    fn elastic(world: &Value) -> Result<Self, SystemError> {
        let options: ElasticWorld = options(world)?;
        check_seen("window", options.window)?;
        let first = options.environment().map_err(|reason| SystemError::World { reason })?;
        let (again, judged) = (first.clone(), first.clone());
        Ok(Self {
            name: "elastic",
            judged_by: LESS_SLOTS,
            data_digest: sha256(format!("{:?}", first.slots().ladders()).as_bytes()),
            own_network: (options.sight != Sight::Window).then_some(SCORER),
            play: Some(Arc::new(move |actor, choice, seed| judged.clone().judge(&*actor, choice, seed))),
            service: None,
            times: None,
            demonstrate: Some(Arc::new(move |teacher, seed, show| {
                elastic::demonstrate_rule(&mut again.clone(), teacher.name, seed, show)
            })),
            make: Arc::new(move || Box::new(first.clone())),
        })
    }

    fn gangs(world: &Value) -> Result<Self, SystemError> {
        let options: GangsWorld = options(world)?;
        check_seen("slots", options.slots)?;
        let (make, data) = options.environments().map_err(|reason| SystemError::World { reason })?;
        let make = Arc::new(make);
        let again = Arc::clone(&make);
        let lost = || unreachable!("the same options made one before");
        Ok(Self {
            name: "gangs",
            judged_by: "less the mean completion time, in hours",
            data_digest: sha256(data.as_bytes()),
            own_network: options.is_scored().then_some(SCORER),
            service: None,
            times: None,
            demonstrate: Some(Arc::new(move |teacher, seed, show| {
                let mut policy = (teacher.policy)(teacher.name)?;
                demonstrate(&mut again().unwrap_or_else(lost), &mut *policy, seed, show)
                    .map_err(|error| error.to_string())
            })),
            make: Arc::new(move || Box::new(make().unwrap_or_else(lost))),
            play: Some(Arc::new(move |actor, choice, seed| options.play(actor, choice, seed))),
        })
    }

    fn dual_agent(world: &Value) -> Result<Self, SystemError> {
        let fault = |reason: String| SystemError::World { reason };
        let options: DualAgentWorld = options(world)?;
        check_seen("seen_jobs", options.seen_jobs)?;
        check_seen("seen_servers", options.seen_servers)?;
        let tables = Arc::new(Tables::embedded().map_err(|error| fault(error.to_string()))?);
        let data_digest = sha256(format!("{tables:?}").as_bytes());
        let first = options.environment(&tables).map_err(fault)?;
        let again = first.clone();
        Ok(Self {
            name: "dual_agent",
            judged_by: "rewards of an episode, added up",
            data_digest,
            own_network: Some(network::NAME),
            play: None,
            service: None,
            times: None,
            demonstrate: Some(Arc::new(move |teacher, seed, show| {
                again.clone().demonstrate(teacher.name, seed, show)
            })),
            make: Arc::new(move || Box::new(first.clone())),
        })
    }

    fn rounds(world: &Value) -> Result<Self, SystemError> {
        let options: RoundsWorld = options(world)?;
        check_seen("seen_jobs", options.seen_jobs)?;
        check_seen("seen_servers", options.seen_servers)?;
        let (make, data) = options.environment().map_err(|reason| SystemError::World { reason })?;
        let make = Arc::new(make);
        let again = Arc::clone(&make);
        Ok(Self {
            name: "rounds",
            judged_by: "less the mean completion time, in hours",
            data_digest: sha256(data.as_bytes()),
            own_network: (options.play == PlayName::Agents).then_some(network::NAME),
            service: None,
            times: None,
            demonstrate: Some(Arc::new(move |teacher, seed, show| match teacher.name {
                "rule" => again().demonstrate(seed, show),
                other => Err(format!("unknown teacher `{other}`, expected `rule`")),
            })),
            make: Arc::new(move || Box::new(make())),
            play: Some(Arc::new(move |actor, choice, seed| options.judge(actor, choice, seed))),
        })
    }

    /// An environment, still to be reset.
    pub fn environment(&self) -> Box<dyn Environment> {
        (self.make)()
    }
}

/// The most jobs or servers that are seen at once. A training keeps thousands of observations, each as long as all that is
/// seen in it.
const N_SEEN_MAX: usize = 1024;

fn check_seen(field: &str, n: usize) -> Result<(), SystemError> {
    if n <= N_SEEN_MAX {
        return Ok(());
    }
    Err(SystemError::World { reason: format!("`{field}` is {n}, expected at most {N_SEEN_MAX}") })
}

/// A world's options; without any, the defaults.
fn options<T: Default + for<'de> Deserialize<'de>>(world: &Value) -> Result<T, SystemError> {
    if world.is_null() {
        return Ok(T::default());
    }
    T::deserialize(world).map_err(|error| SystemError::World { reason: error.to_string() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::learning::checker::{CheckOptions, check};

    #[test]
    fn every_system_passes_the_check() {
        for (name, _) in SYSTEMS {
            // Where episodes are long, short ones: the check looks at every action.
            let long = ["dual_agent", "elastic", "rounds"].contains(&name);
            let world = if long { json!({ "jobs": 12 }) } else { Value::Null };
            assert!(System::new(name, &Value::Null).is_ok());
            let system = System::new(name, &world).unwrap();
            assert_eq!(system.data_digest.len(), 64);
            check(|| system.environment(), CheckOptions { n_episodes: 3, ..CheckOptions::default() })
                .assert_passed();
        }
    }

    #[test]
    fn names_and_options_that_do_not_exist_are_refused() {
        let error = System::new("deepshaer", &Value::Null).unwrap_err().to_string();
        assert!(
            error.starts_with("unknown system `deepshaer`, expected one of `deepshare`, `dl2`, "),
            "{error}"
        );
        let said = |world: Value| System::new("deepshare", &world).unwrap_err().to_string();
        assert!(said(json!({ "jobs": 0 })).contains("`jobs` is 0"));
        assert!(said(json!({ "mix": "nothing" })).contains("unknown mix `nothing`"));
        assert!(said(json!({ "job": 3 })).contains("unknown field `job`"));
        let said = |world: Value| System::new("gangs", &world).unwrap_err().to_string();
        assert!(said(json!({ "rates": [] })).contains("`rates` is []"));
        assert!(said(json!({ "actor": "uniform" })).contains("`actor` is a rule"));
        assert!(said(json!({ "colocation": "pairs" })).contains("`colocation` is pairs, expected none"));
        assert!(System::new("gangs", &json!({ "actor": "values", "colocation": "pairs" })).is_ok());
        assert!(said(json!({ "throughputs": "osdi21" })).contains("osdi21"));
        assert!(said(json!({ "multi_worker": true })).contains("`workers` is 4, expected at least 8"));
        for (name, field) in [
            ("dl2", "window"),
            ("elastic", "window"),
            ("gangs", "slots"),
            ("dual_agent", "seen_jobs"),
            ("dual_agent", "seen_servers"),
        ] {
            let world: Value = [(field.to_owned(), json!(100_000_000_000_u64))].into_iter().collect();
            let error = System::new(name, &world).unwrap_err().to_string();
            assert_eq!(error, format!("`{field}` is 100000000000, expected at most 1024"));
        }
    }
}
