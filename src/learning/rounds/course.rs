//! Workloads to learn from: what an episode is of, and how long its jobs take.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;
use crate::learning::gangs::{CourseError, Presence};
use crate::policy::RoundPolicy;
use crate::simulator::{Contention, Limits, Options, Outcome, Simulation, Stragglers};
use crate::throughput::Throughputs;
use crate::units::JobsPerHour;
use crate::workload::{Arrivals, Native, WorkloadOptions};

/// What slows jobs in an episode, beside the type of their workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Condition {
    /// By how much a job on several servers is slowed for each other such job on its busiest link; 0 = not at all.
    pub contention: f64,
    /// Each worker's speed is uniform between this much below 1 and 1.
    pub straggling: f64,
    /// Rounds after which those speeds are drawn anew; none = never.
    pub straggling_rounds: Option<u64>,
}

/// What episodes are of: jobs that arrive in an empty cluster, until all are done.
#[derive(Clone, Debug)]
pub struct RoundsCourse {
    /// The cluster.
    pub cluster: Cluster,
    /// Speeds.
    pub throughputs: Arc<Throughputs>,
    /// Rates of arrival; the seed of an episode says which.
    pub rates: Vec<JobsPerHour>,
    /// What slows jobs; the seed says which.
    pub conditions: Vec<Condition>,
    /// Jobs of an episode.
    pub n_jobs: usize,
    /// Whether some need several workers.
    pub multi_worker: bool,
}

impl RoundsCourse {
    /// The episode of a seed: its simulation at time 0, under this policy.
    ///
    /// # Errors
    /// If no such jobs can be drawn, or they do not fit the cluster.
    pub fn simulation(&self, seed: u64, policy: Box<dyn RoundPolicy>) -> Result<Simulation, CourseError> {
        let n_rates = self.rates.len().max(1) as u64;
        let condition = of_seed(&self.conditions, seed / n_rates).copied().unwrap_or_default();
        let parts = (&self.cluster, Arc::clone(&self.throughputs));
        let mut options = Options::default().with_seed(seed);
        let Condition { contention, straggling, straggling_rounds } = condition;
        options.contention = (contention > 0.0).then_some(Contention { slowdown: contention });
        options.faults.stragglers =
            (straggling > 0.0).then_some(Stragglers { spread: straggling, redraw_rounds: straggling_rounds });
        Ok(Simulation::with_round_policy(parts, self.arrivals(seed)?, policy, options)?)
    }

    /// The jobs of a seed.
    ///
    /// # Errors
    /// If no such jobs can be drawn.
    pub fn arrivals(&self, seed: u64) -> Result<Box<dyn Arrivals>, CourseError> {
        let rate = *of_seed(&self.rates, seed).ok_or(CourseError::NoRate)?;
        let options =
            WorkloadOptions::continuous(rate.mean_gap()).jobs(self.n_jobs).multi_worker(self.multi_worker);
        Ok(Box::new(Native::try_new(options, &self.throughputs, seed)?))
    }

    /// Mean completion time of the jobs of a seed's episode under a policy, h.
    ///
    /// # Errors
    /// If the simulation fails, or stands still while jobs wait.
    pub fn completion_h(&self, seed: u64, policy: Box<dyn RoundPolicy>) -> Result<f64, CourseError> {
        let mut simulation = self.simulation(seed, policy)?;
        let mut presence = Presence::default();
        let outcome = simulation.run(&mut presence, &Limits::default())?;
        if outcome == Outcome::Stalled {
            return Err(CourseError::Stalled);
        }
        Ok(presence.until(simulation.now()) / 3600.0 / self.n_jobs.max(1) as f64)
    }
}

fn of_seed<T>(all: &[T], seed: u64) -> Option<&T> {
    all.get(usize::try_from(seed % all.len().max(1) as u64).unwrap_or(0))
}
