//! The world of the system `rounds` in training documents.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::action_scheme::ActionScheme;
use super::agents::{Agents, AgentsOptions};
use super::cells::{Cells, cell_holds};
use super::environment::RoundsEnvironment;
use super::policy::LearnedRounds;
use super::scenario::{Condition, RoundsScenario};
use crate::dual_agent::network;
use crate::dual_agent::observe::Window;
use crate::gangs::{Reward, SCALE_FACTOR_MAX, Scenario};
use apportion_learn::actor::{Actor, Choice};
use apportion_learn::environment::Status;
use apportion_learn::system::{Registered, System, SystemError, check_counts, check_seen, options};
use apportion_learn::vectorized::Finished;

/// The system `rounds`.
pub const SYSTEM: Registered = Registered {
    name: "rounds",
    decides: "what those two agents decide, or DeepShare's, on the very workers of the simulator that every policy is \
              compared in",
    open,
};

fn open(world: &Value) -> Result<System, SystemError> {
    let options: RoundsWorld = options(world)?;
    check_seen("seen_jobs", options.seen_jobs)?;
    check_seen("seen_servers", options.seen_servers)?;
    let (make, data) = options.environment()?;
    let shown = make.clone();
    let network = options.scheme.network();
    Ok(System::new(SYSTEM.name, &data, move || Box::new(make()))
        .with_network(network)
        .with_play("less the mean completion time, in hours", move |actor, choice, seed| {
            options.judge(actor, choice, seed)
        })
        .with_teachers(move |teacher, seed, show| match teacher.name {
            "rule" => shown().demonstrate(seed, show),
            other => Err(format!("unknown teacher `{other}`, expected `rule`")),
        }))
}

/// An action scheme: the actions and their meaning for a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActionSchemeName {
    /// The dual-agent scheduler's two agents.
    #[default]
    Agents,
    /// DeepShare's agent, on cells of four servers.
    Cells,
}

impl ActionSchemeName {
    /// The kind of the network that decides, if it is not dense layers.
    pub(super) fn network(self) -> Option<&'static str> {
        (self == Self::Agents).then_some(network::NAME)
    }

    /// Description in error messages of the network that the scheme needs.
    pub(super) fn expected(self) -> &'static str {
        match self {
            Self::Agents => "network of two agents",
            Self::Cells => "network over cells",
        }
    }
}

/// A further cluster to learn on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FurtherCluster {
    /// Workers of each type.
    pub workers: u32,
    /// Workers of a server.
    pub per_server: u32,
    /// Arrival rates, in jobs per hour.
    pub rates: Vec<f64>,
    /// Jobs of an episode.
    pub jobs: usize,
}

/// Options of the world of `rounds`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RoundsWorld {
    /// The action scheme: the actions and their meaning for a round.
    #[serde(rename = "play")]
    pub scheme: ActionSchemeName,
    /// Name of a throughput matrix that ships with the program.
    pub throughputs: String,
    /// Workers of each worker type of the matrix.
    pub workers: u32,
    /// Workers of a server.
    pub per_server: u32,
    /// Arrival rates, in jobs per hour; the seed of an episode picks one.
    pub rates: Vec<f64>,
    /// Further clusters; the seed of an episode picks one of all clusters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<FurtherCluster>,
    /// Conditions that slow jobs, beside the type of their workers; the seed of an episode picks one.
    pub conditions: Vec<Condition>,
    /// Jobs of an episode.
    pub jobs: usize,
    /// Whether some jobs need several workers.
    pub multi_worker: bool,
    /// The number of jobs in view of two agents.
    pub seen_jobs: usize,
    /// The number of servers in view of two agents.
    pub seen_servers: usize,
    /// Whether the placement agent sees a rule's choice, which networks beside a rule need.
    pub advised: bool,
    /// Rounds after which two agents decide everything anew, if no job or worker has come or gone before.
    pub lease_rounds: u64,
    /// The quantity that is rewarded. Trainings are judged by completion times, whatever it is.
    pub reward: Reward,
    /// Steps after which an episode is cut off.
    pub step_limit: u64,
}

impl Default for RoundsWorld {
    fn default() -> Self {
        Self {
            scheme: ActionSchemeName::Agents,
            throughputs: "osdi20".to_owned(),
            workers: 8,
            per_server: 2,
            rates: vec![0.4, 0.6],
            further: Vec::new(),
            conditions: vec![Condition::default()],
            jobs: 40,
            multi_worker: true,
            seen_jobs: 48,
            seen_servers: 24,
            advised: false,
            lease_rounds: 12,
            reward: Reward::Presence,
            step_limit: 100_000,
        }
    }
}

impl RoundsWorld {
    pub(super) fn check(&self) -> Result<(), String> {
        let counts = [
            ("seen_jobs", self.seen_jobs as u64),
            ("seen_servers", self.seen_servers as u64),
            ("lease_rounds", self.lease_rounds),
        ];
        check_counts(&counts, self.step_limit)?;
        if self.conditions.is_empty() {
            return Err("`conditions` is [], expected at least one, as in `[{}]`".to_owned());
        }
        for Condition { contention, straggling, straggling_rounds } in &self.conditions {
            if !(contention.is_finite() && *contention >= 0.0) {
                return Err(format!("`contention` is {contention}, expected a finite number, at least 0"));
            }
            if !(0.0..1.0).contains(straggling) {
                return Err(format!("`straggling` is {straggling}, expected a number from 0, below 1"));
            }
            if *straggling_rounds == Some(0) {
                return Err("`straggling_rounds` is 0, expected a whole number above 0".to_owned());
            }
        }
        self.clusters().iter().try_for_each(|cluster| self.check_cluster(cluster))
    }

    fn check_cluster(
        &self,
        FurtherCluster { workers, per_server, jobs, .. }: &FurtherCluster,
    ) -> Result<(), String> {
        let counts = [
            ("workers", u64::from(*workers)),
            ("per_server", u64::from(*per_server)),
            ("jobs", *jobs as u64),
        ];
        check_counts(&counts, self.step_limit)?;
        let n_servers = (workers / per_server) as usize;
        let holds = cell_holds(n_servers, *per_server as usize, SCALE_FACTOR_MAX as usize);
        if self.scheme == ActionSchemeName::Cells
            && self.multi_worker
            && *workers >= SCALE_FACTOR_MAX
            && !holds
        {
            return Err(format!(
                "`per_server` is {per_server}, expected as many that a cell of four servers holds {SCALE_FACTOR_MAX} \
                 workers, the same number on each of one, two or four"
            ));
        }
        Ok(())
    }

    /// All clusters to learn on.
    fn clusters(&self) -> Vec<FurtherCluster> {
        let Self { workers, per_server, rates, jobs, .. } = self;
        let first =
            FurtherCluster { workers: *workers, per_server: *per_server, rates: rates.clone(), jobs: *jobs };
        [vec![first], self.further.clone()].concat()
    }

    pub(super) fn scenario(&self) -> Result<RoundsScenario, String> {
        self.check()?;
        let on = |cluster: FurtherCluster| {
            let FurtherCluster { workers, per_server, rates, jobs } = cluster;
            Scenario::on(&self.throughputs, (workers, per_server), &rates, (jobs, self.multi_worker))
        };
        let scenarios = self.clusters().into_iter().map(on).collect::<Result<_, _>>()?;
        Ok(RoundsScenario { scenarios, conditions: self.conditions.clone() })
    }

    /// The action scheme of these options.
    pub fn scheme(&self) -> Box<dyn ActionScheme> {
        match self.scheme {
            ActionSchemeName::Agents => {
                let window = Window { n_jobs: self.seen_jobs, n_servers: self.seen_servers };
                let (advised, lease_rounds) = (self.advised, self.lease_rounds);
                Box::new(Agents::new(AgentsOptions { window, advised, lease_rounds }))
            }
            ActionSchemeName::Cells => Box::new(Cells::default()),
        }
    }

    /// A maker of environments, still to be reset, and a text of the data that they are made of.
    pub(super) fn environment(
        &self,
    ) -> Result<(impl Fn() -> RoundsEnvironment + Clone + use<>, String), String> {
        let scenario = self.scenario()?;
        let data =
            scenario.scenarios.first().map_or_else(String::new, |first| format!("{:?}", first.throughputs));
        let world = self.clone();
        Ok((move || RoundsEnvironment::new(world.clone(), scenario.clone()), data))
    }

    /// Plays the episode of a seed. The return is less its mean completion time, h.
    pub(super) fn judge(&self, actor: Arc<dyn Actor>, choice: Choice, seed: u64) -> Result<Finished, String> {
        let policy = LearnedRounds::new("rounds", self.scheme(), actor, choice, seed);
        let scenario = self.scenario()?;
        let hours = scenario.completion_h(seed, Box::new(policy)).map_err(|error| error.to_string())?;
        Ok(Finished { total_reward: -hours, n_steps: scenario.n_jobs(seed), status: Status::Terminated })
    }
}
