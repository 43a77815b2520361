//! Scenarios of episodes inside rounds: workloads, and conditions that slow their jobs.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::gangs::{Scenario, ScenarioError, of_seed};
use apportion::policy::RoundPolicy;
use apportion::simulator::{Contention, Options, Simulation, Stragglers};
use apportion::units::JobsPerHour;

/// A condition that slows jobs in an episode, beside the type of their workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Condition {
    /// The slowdown of a job on several servers for each other such job on its busiest link; 0 = none.
    pub contention: f64,
    /// The range of workers' speeds: each is uniform between 1 less this and 1.
    pub straggling: f64,
    /// Rounds after which these speeds are drawn anew; never by default.
    pub straggling_rounds: Option<u64>,
}

/// The scenarios of episodes that are decided inside rounds, each under several conditions.
#[derive(Clone, Debug)]
pub struct RoundsScenario {
    /// Cluster, speeds and jobs. The seed picks a scenario and a rate: scenarios take turns, each with all its rates in turn.
    pub scenarios: Vec<Scenario>,
    /// Conditions that slow jobs; the seed picks one, and each is used with every rate in turn.
    pub conditions: Vec<Condition>,
}

/// The setting of an episode.
#[derive(Clone, Copy, Debug)]
pub(super) struct OfSeed<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) rate: JobsPerHour,
    pub(super) condition: Condition,
}

impl RoundsScenario {
    /// The episode of a seed: its simulation at time 0, under this policy.
    ///
    /// # Errors
    /// If no such jobs can be drawn, or they do not fit the cluster.
    pub fn simulation(&self, seed: u64, policy: Box<dyn RoundPolicy>) -> Result<Simulation, ScenarioError> {
        let OfSeed { scenario, rate, condition } = self.of(seed)?;
        let Scenario { cluster, throughputs, .. } = scenario;
        let mut options = Options::default().with_seed(seed);
        let Condition { contention, straggling, straggling_rounds } = condition;
        options.contention = (contention > 0.0).then_some(Contention { slowdown: contention });
        options.faults.stragglers =
            (straggling > 0.0).then_some(Stragglers { spread: straggling, redraw_rounds: straggling_rounds });
        let parts = (cluster, Arc::clone(throughputs));
        Ok(Simulation::with_round_policy(parts, scenario.arrivals_at(rate, seed)?, policy, options)?)
    }

    /// Mean completion time of the jobs of a seed's episode under a policy, h.
    ///
    /// # Errors
    /// If the simulation fails, or stands still while jobs wait.
    pub fn completion_h(&self, seed: u64, policy: Box<dyn RoundPolicy>) -> Result<f64, ScenarioError> {
        self.of(seed)?.scenario.hours(self.simulation(seed, policy)?)
    }

    /// The number of jobs of the episode of a seed.
    pub(super) fn n_jobs(&self, seed: u64) -> usize {
        of_seed(&self.scenarios, seed).map_or(0, |scenario| scenario.n_jobs)
    }

    /// The setting of the episode of a seed.
    pub(super) fn of(&self, seed: u64) -> Result<OfSeed<'_>, ScenarioError> {
        let scenario = of_seed(&self.scenarios, seed).ok_or(ScenarioError::NoRate)?;
        let of_rates = seed / self.scenarios.len() as u64;
        let rate = *of_seed(&scenario.rates, of_rates).ok_or(ScenarioError::NoRate)?;
        let of_conditions = of_rates / scenario.rates.len() as u64;
        let condition = of_seed(&self.conditions, of_conditions).copied().unwrap_or_default();
        Ok(OfSeed { scenario, rate, condition })
    }
}
