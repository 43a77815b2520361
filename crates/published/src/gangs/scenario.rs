//! Scenarios of episodes (cluster, throughputs and generated jobs) and mean completion times under a policy.

use std::collections::BTreeMap;
use std::sync::Arc;

use apportion::cluster::Cluster;
use apportion::index::JobId;
use apportion::policy::Policy;
use apportion::simulator::{Event, Limits, Observer, Options, Outcome, Simulation, SimulationError};
use apportion::throughput::Throughputs;
use apportion::units::{JobsPerHour, Seconds};
use apportion::workload::{Arrivals, GeneratorError, Native, WorkloadOptions};

/// A family of episodes: jobs that arrive in an empty cluster, until all are done.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The cluster.
    pub cluster: Cluster,
    /// Throughputs of the jobs.
    pub throughputs: Arc<Throughputs>,
    /// Arrival rates; the seed of an episode picks one.
    pub rates: Vec<JobsPerHour>,
    /// Jobs of an episode.
    pub n_jobs: usize,
    /// Whether some jobs need several workers.
    pub multi_worker: bool,
}

/// The most workers that a generated job needs.
pub const SCALE_FACTOR_MAX: u32 = 8;

impl Scenario {
    /// A scenario on `workers` of each type of a matrix that ships with the program, `per_server` on a server.
    ///
    /// # Errors
    /// If there is no such matrix, no rate, or a count is 0 or too small. The error names the option as training documents do.
    pub fn on(
        throughputs: &str,
        (workers, per_server): (u32, u32),
        rates: &[f64],
        (n_jobs, multi_worker): (usize, bool),
    ) -> Result<Self, String> {
        if rates.is_empty() || !rates.iter().all(|rate| rate.is_finite() && *rate > 0.0) {
            return Err(format!("`rates` is {rates:?}, expected numbers above 0, at least one"));
        }
        if multi_worker && workers < SCALE_FACTOR_MAX {
            return Err(format!(
                "`workers` is {workers}, expected at least {SCALE_FACTOR_MAX}, as jobs need"
            ));
        }
        let throughputs = Throughputs::embedded(throughputs).map_err(|error| error.to_string())?;
        let types = throughputs.worker_types().iter();
        let mut cluster = Cluster::try_new(types.clone().map(|kind| (kind.as_str(), workers)))
            .map_err(|error| error.to_string())?;
        for kind in types {
            cluster = cluster.with_workers_per_server(kind, per_server).map_err(|error| error.to_string())?;
        }
        let rates = rates.iter().map(|rate| JobsPerHour::new(*rate)).collect();
        Ok(Self { cluster, throughputs, rates, n_jobs, multi_worker })
    }

    /// The episode of a seed: its simulation at time 0, under this policy.
    ///
    /// # Errors
    /// If no such jobs can be drawn, or they do not fit the cluster.
    pub fn simulation(&self, seed: u64, policy: Box<dyn Policy>) -> Result<Simulation, ScenarioError> {
        let parts = (&self.cluster, Arc::clone(&self.throughputs));
        Ok(Simulation::new(parts, self.arrivals(seed)?, policy, Options::default().with_seed(seed))?)
    }

    /// The jobs of a seed.
    ///
    /// # Errors
    /// If no such jobs can be drawn.
    pub fn arrivals(&self, seed: u64) -> Result<Box<dyn Arrivals>, ScenarioError> {
        self.arrivals_at(*of_seed(&self.rates, seed).ok_or(ScenarioError::NoRate)?, seed)
    }

    /// The jobs of a seed, at a given rate.
    ///
    /// # Errors
    /// If the generator refuses the rate.
    pub fn arrivals_at(&self, rate: JobsPerHour, seed: u64) -> Result<Box<dyn Arrivals>, ScenarioError> {
        let options =
            WorkloadOptions::continuous(rate.mean_gap()).jobs(self.n_jobs).multi_worker(self.multi_worker);
        Ok(Box::new(Native::try_new(options, &self.throughputs, seed)?))
    }

    /// Mean completion time of the jobs of a seed's episode under a policy, h.
    ///
    /// # Errors
    /// If the simulation fails, or the policy leaves jobs waiting for ever.
    pub fn completion_h(&self, seed: u64, policy: Box<dyn Policy>) -> Result<f64, ScenarioError> {
        self.hours(self.simulation(seed, policy)?)
    }

    /// Runs an episode to its end, for the mean completion time of its jobs, h.
    ///
    /// # Errors
    /// As [`completion_h`](Self::completion_h).
    pub fn hours(&self, mut simulation: Simulation) -> Result<f64, ScenarioError> {
        let mut presence = Presence::default();
        let outcome = simulation.run(&mut presence, &Limits::default())?;
        if matches!(outcome, Outcome::Stalled | Outcome::Standstill) {
            return Err(ScenarioError::Stalled);
        }
        Ok(presence.until(simulation.now()) / 3600.0 / self.n_jobs.max(1) as f64)
    }
}

/// The item that a seed picks: the seed modulo the number of items.
pub fn of_seed<T>(all: &[T], seed: u64) -> Option<&T> {
    all.get(usize::try_from(seed % all.len().max(1) as u64).unwrap_or(0))
}

/// Why an episode cannot be made or played.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The scenario has no arrival rate.
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

/// A quantity that is rewarded.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Reward {
    /// Less the hours that jobs were present, over the jobs of the episode: the sum is less the mean completion time.
    #[default]
    Presence,
    /// The sum over jobs of the part of its work that each did, as in DL2. Over an episode it adds up to the number of jobs under
    /// any policy.
    Progress,
}

/// An observer that adds up the quantities of rewards.
#[derive(Clone, Debug, Default)]
pub struct Presence {
    /// Sum of completion times of completed jobs, s.
    done_s: f64,
    /// Sum of arrival times of active jobs, s.
    arrivals_s: f64,
    n_active: f64,
    steps: BTreeMap<JobId, f64>,
    /// Sum over jobs of the part of its work that each has done.
    progress: f64,
}

impl Presence {
    /// Total time that jobs have been present, s; active jobs until `now`.
    pub fn until(&self, now: Seconds) -> f64 {
        self.done_s + self.n_active * now.get() - self.arrivals_s
    }

    /// Sum over jobs of the part of its work that each has done.
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
