//! The world of decisions inside rounds, as training documents have it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::agents::{Agents, AgentsOptions};
use super::cells::{Cells, cell_holds};
use super::course::{Condition, RoundsCourse};
use super::environment::RoundsEnvironment;
use super::play::Play;
use super::policy::LearnedRounds;
use crate::learning::actor::{Actor, Choice};
use crate::learning::environment::Status;
use crate::learning::gangs::{Course, Reward, SCALE_FACTOR_MAX};
use crate::learning::vectorized::Finished;
use crate::world::dual_agent::observe::Window;

/// Whose decisions are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlayName {
    /// The dual-agent scheduler's.
    #[default]
    Agents,
    /// DeepShare's.
    Cells,
}

/// Options of the world.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RoundsWorld {
    /// Whose decisions are made: `agents` or `cells`.
    pub play: PlayName,
    /// A throughput matrix that ships with the program.
    pub throughputs: String,
    /// Workers of each of its types.
    pub workers: u32,
    /// Workers of a server.
    pub per_server: u32,
    /// Rates of arrival, in jobs per hour; the seed of an episode says which.
    pub rates: Vec<f64>,
    /// What slows jobs beside the type of their workers; the seed says which.
    pub conditions: Vec<Condition>,
    /// Jobs of an episode.
    pub jobs: usize,
    /// Whether some need several workers.
    pub multi_worker: bool,
    /// Jobs that two agents see.
    pub seen_jobs: usize,
    /// Servers that they see.
    pub seen_servers: usize,
    /// Whether the placement agent sees what a rule would do, as networks beside a rule have to.
    pub advised: bool,
    /// Rounds after which two agents decide all anew, if no job or worker has come or gone before.
    pub lease_rounds: u64,
    /// What a reward is for; trainings are judged by completion times whatever it is.
    pub reward: Reward,
    /// Steps after which an episode is cut off.
    pub step_limit: u64,
}

impl Default for RoundsWorld {
    fn default() -> Self {
        Self {
            play: PlayName::Agents,
            throughputs: "osdi20".to_owned(),
            workers: 8,
            per_server: 2,
            rates: vec![0.4, 0.6],
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
            ("workers", u64::from(self.workers)),
            ("per_server", u64::from(self.per_server)),
            ("jobs", self.jobs as u64),
            ("seen_jobs", self.seen_jobs as u64),
            ("seen_servers", self.seen_servers as u64),
            ("lease_rounds", self.lease_rounds),
            ("step_limit", self.step_limit),
        ];
        if let Some((field, _)) = counts.into_iter().find(|(_, value)| *value == 0) {
            return Err(format!("`{field}` is 0, expected a whole number above 0"));
        }
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
        let n_servers = (self.workers / self.per_server) as usize;
        let holds = cell_holds(n_servers, self.per_server as usize, SCALE_FACTOR_MAX as usize);
        if self.play == PlayName::Cells && self.multi_worker && self.workers >= SCALE_FACTOR_MAX && !holds {
            return Err(format!(
                "`per_server` is {}, expected as many that a cell of four servers holds {SCALE_FACTOR_MAX} workers, the \
                 same number on each of one, two or four",
                self.per_server
            ));
        }
        Ok(())
    }

    fn course(&self) -> Result<RoundsCourse, String> {
        self.check()?;
        let servers = (self.workers, self.per_server);
        let jobs = (self.jobs, self.multi_worker);
        let course = Course::on(&self.throughputs, servers, &self.rates, jobs)?;
        Ok(RoundsCourse { course, conditions: self.conditions.clone() })
    }

    /// What sees and acts.
    pub fn play(&self) -> Box<dyn Play> {
        match self.play {
            PlayName::Agents => {
                let window = Window { n_jobs: self.seen_jobs, n_servers: self.seen_servers };
                let (advised, lease_rounds) = (self.advised, self.lease_rounds);
                Box::new(Agents::new(AgentsOptions { window, advised, lease_rounds }))
            }
            PlayName::Cells => Box::new(Cells::default()),
        }
    }

    /// An environment, still to be reset, and the data that it is made of.
    pub(in crate::learning) fn environment(
        &self,
    ) -> Result<(impl Fn() -> RoundsEnvironment + use<>, String), String> {
        let course = self.course()?;
        let data = format!("{:?}", course.course.throughputs);
        let world = self.clone();
        Ok((move || RoundsEnvironment::new(world.clone(), course.clone()), data))
    }

    /// Plays the episode of a seed: the return is less its mean completion time in hours.
    pub(in crate::learning) fn judge(
        &self,
        actor: Arc<dyn Actor>,
        choice: Choice,
        seed: u64,
    ) -> Result<Finished, String> {
        let policy = LearnedRounds::new("rounds", self.play(), actor, choice, seed);
        let hours = self.course()?.completion_h(seed, Box::new(policy)).map_err(|error| error.to_string())?;
        Ok(Finished { total_reward: -hours, n_steps: self.jobs, status: Status::Terminated })
    }
}
