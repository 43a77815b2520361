//! Workloads to learn from: what an episode is of, and how long its jobs take.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cluster::Cluster;
use crate::index::JobId;
use crate::policy::Policy;
use crate::simulator::{Event, Limits, Observer, Options, Outcome, Simulation, SimulationError};
use crate::throughput::Throughputs;
use crate::units::{JobsPerHour, Seconds};
use crate::workload::{GeneratorError, Native, WorkloadOptions};

/// What episodes are of: jobs that arrive in an empty cluster, until all are done.
#[derive(Clone, Debug)]
pub struct Course {
    /// The cluster.
    pub cluster: Cluster,
    /// Speeds.
    pub throughputs: Arc<Throughputs>,
    /// Rates of arrival; the seed of an episode says which.
    pub rates: Vec<JobsPerHour>,
    /// Jobs of an episode.
    pub n_jobs: usize,
    /// Whether some need several workers.
    pub multi_worker: bool,
}

impl Course {
    /// The episode of a seed: its simulation at time 0, under this policy.
    ///
    /// # Errors
    /// If no such jobs can be drawn, or they do not fit the cluster.
    pub fn simulation(&self, seed: u64, policy: Box<dyn Policy>) -> Result<Simulation, CourseError> {
        let place = usize::try_from(seed % self.rates.len().max(1) as u64).unwrap_or(0);
        let rate = self.rates.get(place).copied().ok_or(CourseError::NoRate)?;
        let options =
            WorkloadOptions::continuous(rate.mean_gap()).jobs(self.n_jobs).multi_worker(self.multi_worker);
        let jobs = Native::try_new(options, &self.throughputs, seed)?;
        let parts = (&self.cluster, Arc::clone(&self.throughputs));
        Ok(Simulation::new(parts, Box::new(jobs), policy, Options::default().with_seed(seed))?)
    }

    /// Mean completion time of the jobs of a seed's episode under a policy, h. Jobs that a policy never completes count
    /// until the simulation stands still.
    ///
    /// # Errors
    /// If the simulation fails.
    pub fn completion_h(&self, seed: u64, policy: Box<dyn Policy>) -> Result<f64, CourseError> {
        let mut simulation = self.simulation(seed, policy)?;
        let mut presence = Presence::default();
        let outcome = simulation.run(&mut presence, &Limits::default())?;
        if outcome == Outcome::Stalled {
            return Err(CourseError::Stalled);
        }
        Ok(presence.until(simulation.now()) / 3600.0 / self.n_jobs.max(1) as f64)
    }
}

/// Why there is no such episode.
#[derive(Debug, thiserror::Error)]
pub enum CourseError {
    /// No rate of arrival.
    #[error("there is no rate of arrival")]
    NoRate,
    /// No such jobs can be drawn.
    #[error(transparent)]
    Generator(#[from] GeneratorError),
    /// The simulation failed.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// The policy left jobs waiting for ever.
    #[error("jobs wait for ever")]
    Stalled,
}

/// What a reward is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reward {
    /// Less the hours that jobs were there, over the jobs of the episode: the sum is less the mean completion time.
    #[default]
    Presence,
    /// Parts of their work that jobs did, added up: as DL2 has it. The sum is the number of jobs, whatever is done.
    Progress,
}

/// Adds up what rewards are made of.
#[derive(Clone, Debug, Default)]
pub struct Presence {
    /// Completion times of those that are done, s.
    done_s: f64,
    /// Arrivals of those that are there, s.
    arrivals_s: f64,
    n_active: f64,
    steps: BTreeMap<JobId, f64>,
    /// Parts of work done.
    progress: f64,
}

impl Presence {
    /// Time that jobs have been there in all, those that still are until `now`, in s.
    pub fn until(&self, now: Seconds) -> f64 {
        self.done_s + self.n_active * now.get() - self.arrivals_s
    }

    /// Parts of their work that jobs did, added up.
    pub fn progress(&self) -> f64 {
        self.progress
    }
}

impl Observer for Presence {
    fn observe(&mut self, event: &Event<'_>) {
        match event {
            Event::Arrival { id, job, .. } => {
                self.n_active += 1.0;
                self.arrivals_s += job.arrival.get();
                self.steps.insert(*id, job.total_steps.get());
            }
            Event::Completion { at, id, job, .. } => {
                self.n_active -= 1.0;
                self.arrivals_s -= job.arrival.get();
                self.done_s += at.get() - job.arrival.get();
                self.steps.remove(id);
            }
            Event::Slice(slice) => {
                for (job, steps) in slice.jobs.members().zip(slice.steps) {
                    let part = self.steps.get(&job).map_or(0.0, |whole| steps.get() / whole);
                    self.progress += part;
                }
            }
            _ => {}
        }
    }
}
