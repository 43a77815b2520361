//! A simulation between two rounds, to be saved and resumed: with the same result, bit for bit.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::arrivals::ArrivalQueue;
use super::faults::FaultState;
use super::ideal::Fluid;
use super::options::Options;
use super::outcome::SimulationError;
use super::progress::Running;
use super::simulation::{Clock, Simulation};
use super::standstill::{RESOLUTION, Vigil};
use crate::cluster::Cluster;
use crate::index::JobId;
use crate::policy::{Policy, RoundPolicy};
use crate::problem::{Entity, InnerRule};
use crate::scheduler::SchedulerState;
use crate::scheduler::active::{LastRun, Progress};
use crate::scheduler::driver::DriverState;
use crate::throughput::Throughputs;
use crate::throughput::estimator::EstimatorState;
use crate::units::{Seconds, Steps};
use crate::workload::{Arrivals, Job};

/// The format that this version writes and reads.
const FORMAT: &str = "apportion/checkpoint-v2";

/// All that a simulation needs to go on, apart from cluster, throughputs, policy and arrivals, which are made anew as they were.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    format: String,
    /// The options of the simulation.
    pub options: Options,
    /// The cluster, as it is written on command lines.
    cluster: String,
    clock: Clock,
    n_arrived: u32,
    jobs: Vec<Progress>,
    entities: Vec<String>,
    driver: DriverState,
    running: Vec<Running>,
    faults: FaultState,
    fluid: Option<Fluid>,
    vigil: Vigil,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    estimator: Option<EstimatorState>,
    /// The instant until which something stops on each worker, s; empty if nothing has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    free_at: Vec<f64>,
}

impl Checkpoint {
    /// The instant at which it was taken.
    pub fn now(&self) -> Seconds {
        Seconds::new(self.clock.now)
    }

    /// Number of jobs that had arrived.
    pub fn n_arrived(&self) -> u32 {
        self.n_arrived
    }

    /// Whether its policy decides inside rounds.
    pub fn is_inside_rounds(&self) -> bool {
        matches!(self.driver, DriverState::Direct(_))
    }

    /// The checkpoint of a simulation that continues a scheduler: at `now`, where a round starts, with the scheduler's jobs,
    /// owners, accounts and leases. `self` is that of a simulation without jobs at its start, with the same cluster, policy and
    /// options; another policy only after [`SchedulerState::without_policy`]. `steps` has the steps that jobs have run since the
    /// last report to the scheduler, by id.
    ///
    /// Workers that are down stay down.
    ///
    /// # Errors
    /// If the scheduler has another cluster, or only one of the two has a policy that decides inside rounds.
    pub fn taking_over(
        mut self,
        state: &SchedulerState,
        now: Seconds,
        steps: &BTreeMap<JobId, Steps>,
    ) -> Result<Self, SimulationError> {
        let refuse = |reason: String| Err(SimulationError::Checkpoint { reason });
        if state.cluster() != self.cluster {
            return refuse(format!(
                "the scheduler has the cluster `{}`, expected `{}`",
                state.cluster(),
                self.cluster
            ));
        }
        let (jobs, entities) = (state.jobs(), state.entities());
        self.driver = match (&self.driver, state.driver()) {
            (DriverState::Mechanized(fresh), Some(DriverState::Mechanized(rounds))) => {
                DriverState::Mechanized(Box::new(rounds.or_policy_of(fresh)))
            }
            (DriverState::Direct(_), Some(driver @ DriverState::Direct(_))) => driver,
            (_, None) => return refuse("the scheduler's state lacks what decides rounds".to_owned()),
            (DriverState::Mechanized(_), Some(_)) => {
                return refuse(
                    "the scheduler's policy places jobs itself, and this one gives shares".to_owned(),
                );
            }
            (DriverState::Direct(_), Some(_)) => {
                return refuse(
                    "the scheduler's policy gives shares, and this one places jobs itself".to_owned(),
                );
            }
        };
        self.n_arrived = u32::try_from(state.n_submitted()).unwrap_or(u32::MAX);
        self.entities = entities.iter().map(|entity| entity.name.clone()).collect();
        self.jobs = jobs.to_vec();
        for progress in &mut self.jobs {
            let known = steps.get(&progress.id).map_or(0.0, |steps| steps.get());
            progress.steps_run = progress.steps_run.max(known);
            progress.last_run = LastRun { now: now.get(), n_arrived: self.n_arrived };
        }
        self.clock = Clock { now: now.get(), ..Clock::default() };
        Ok(self)
    }

    /// The active jobs by id, each with the steps that it has run.
    pub fn active(&self) -> impl Iterator<Item = (JobId, &Job, Steps)> {
        self.jobs.iter().map(|progress| (progress.id, &progress.job, Steps::new(progress.steps_run)))
    }
}

impl Simulation {
    /// The state at this boundary. After a state taken where [`reach_boundary`](Self::reach_boundary) stopped,
    /// [`start_round`](Self::start_round) follows.
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            format: FORMAT.to_owned(),
            options: self.setting.options.clone(),
            cluster: self.setting.cluster.to_string(),
            clock: self.clock,
            n_arrived: self.arrivals.n_taken(),
            jobs: self.table.jobs.iter().map(|active| active.progress.clone()).collect(),
            entities: self.table.owners.iter().map(|entity| entity.name.clone()).collect(),
            driver: self.driver.state(),
            running: self.running.clone(),
            faults: self.faults.clone(),
            fluid: self.fluid.clone(),
            vigil: self.vigil.clone(),
            estimator: self.table.estimator.as_ref().map(|estimator| estimator.state().clone()),
            free_at: self.free_at.clone(),
        }
    }

    /// A simulation that goes on where a checkpoint was taken. Cluster, throughputs, arrivals, policy and
    /// [declared entities](Self::with_entities) are to be made as they were made for the first run; arrivals
    /// from their beginning.
    ///
    /// # Errors
    /// If the checkpoint is of another simulation.
    pub fn resume(
        (cluster, throughputs): (&Cluster, Arc<Throughputs>),
        arrivals: Box<dyn Arrivals>,
        policy: Box<dyn Policy>,
        checkpoint: &Checkpoint,
    ) -> Result<Self, SimulationError> {
        let nothing = Box::new(crate::workload::Listed::new(Vec::new()));
        let options = checkpoint.options.clone();
        let fresh = Self::new((cluster, throughputs), nothing, policy, options)?;
        fresh.take_up(arrivals, checkpoint)
    }

    /// Resumes a simulation by a policy that decides inside rounds.
    ///
    /// # Errors
    /// If the checkpoint is of another simulation.
    pub fn resume_with_round_policy(
        (cluster, throughputs): (&Cluster, Arc<Throughputs>),
        arrivals: Box<dyn Arrivals>,
        policy: Box<dyn RoundPolicy>,
        checkpoint: &Checkpoint,
    ) -> Result<Self, SimulationError> {
        let nothing = Box::new(crate::workload::Listed::new(Vec::new()));
        let options = checkpoint.options.clone();
        let fresh = Self::with_round_policy((cluster, throughputs), nothing, policy, options)?;
        fresh.take_up(arrivals, checkpoint)
    }

    fn take_up(
        mut self,
        arrivals: Box<dyn Arrivals>,
        checkpoint: &Checkpoint,
    ) -> Result<Self, SimulationError> {
        let refuse = |reason: String| Err(SimulationError::Checkpoint { reason });
        if checkpoint.format != FORMAT {
            return refuse(format!("it is of format `{}`, expected `{FORMAT}`", checkpoint.format));
        }
        let cluster = self.setting.cluster.to_string();
        if checkpoint.cluster != cluster {
            return refuse(format!("it is of cluster `{}`, expected `{cluster}`", checkpoint.cluster));
        }
        if !checkpoint.jobs.is_sorted_by(|one, other| one.id < other.id) {
            return refuse("its jobs are not in order".to_owned());
        }
        if checkpoint.clock.n_prices > self.setting.options.prices.len() {
            return refuse("it has seen more changes of prices than there are".to_owned());
        }
        let n_types = self.setting.cluster.n_types();
        if !checkpoint.jobs.iter().all(|progress| progress.has_types(n_types)) {
            return refuse("its jobs are of another number of worker types".to_owned());
        }
        if !checkpoint.free_at.is_empty() && checkpoint.free_at.len() != self.driver.workers().len() {
            return refuse("something stops on another number of workers".to_owned());
        }
        for name in &checkpoint.entities {
            let inner = InnerRule::Fairness;
            self.table.owners.push(Entity { name: name.clone(), weight: 1.0, inner, parent: None });
        }
        for progress in &checkpoint.jobs {
            self.table.add(progress.clone(), &self.setting.cluster)?;
        }
        match (&mut self.table.estimator, &checkpoint.estimator) {
            (Some(estimator), Some(state)) => estimator.restore(state.clone())?,
            (None, None) => {}
            _ => return refuse("only one of the two estimates throughputs".to_owned()),
        }
        self.driver.restore(&self.setting.cluster, &checkpoint.driver)?;
        let n_leases = self.driver.n_leases();
        if checkpoint.running.iter().any(|slice| slice.lease as usize >= n_leases) {
            return refuse("a slice runs without a lease".to_owned());
        }
        self.arrivals = ArrivalQueue::new(arrivals, checkpoint.n_arrived);
        self.clock = checkpoint.clock;
        self.running.clone_from(&checkpoint.running);
        self.faults = checkpoint.faults.clone();
        self.fluid.clone_from(&checkpoint.fluid);
        self.vigil.clone_from(&checkpoint.vigil);
        self.free_at.clone_from(&checkpoint.free_at);
        self.refresh_cluster();
        Ok(self)
    }
}

/// Refuses options out of their range.
pub(super) fn check_options(options: &Options, cluster: &Cluster) -> Result<(), SimulationError> {
    let fine = |fine: bool, field: &'static str, value: String, expected: &'static str| {
        if fine { Ok(()) } else { Err(SimulationError::Option { field, value, expected }) }
    };
    let positive = |value: f64| value.is_finite() && value > 0.0;
    let not_negative = |value: f64| value.is_finite() && value >= 0.0;
    options.scheduler().check()?;
    options.live.check(options)?;
    if let Some(window) = &options.measure {
        fine(!window.is_empty(), "measure", format!("{window:?}"), "a range that holds at least one job")?;
    }
    let noise = options.faults.throughput_noise;
    fine(not_negative(noise), "throughput_noise", noise.to_string(), "a finite number, at least 0")?;
    let chance = options.faults.jobs.probability;
    let within = (0.0..1.0).contains(&chance);
    fine(within, "probability", chance.to_string(), "a number from 0 to less than 1")?;
    if let Some(faults) = &options.faults.workers {
        for (field, value) in [
            ("mean_time_between_failures", faults.mean_time_between_failures),
            ("mean_time_to_repair", faults.mean_time_to_repair),
        ] {
            // A shorter time would not move the clock where it can just tell the parts of a round apart.
            let moves = value.get() >= options.round_length.get() * RESOLUTION;
            let expected = "a finite number of seconds above 0, at least a millionth of a round";
            fine(positive(value.get()) && moves, field, value.get().to_string(), expected)?;
        }
    }
    if let Some(stragglers) = &options.faults.stragglers {
        let within = (0.0..1.0).contains(&stragglers.spread);
        fine(within, "spread", stragglers.spread.to_string(), "a number from 0 to less than 1")?;
    }
    if let Some(contention) = &options.contention {
        let slowdown = contention.slowdown;
        fine(not_negative(slowdown), "slowdown", slowdown.to_string(), "a finite number, at least 0")?;
    }
    let in_order = options.prices.is_sorted_by(|one, other| one.at.get() <= other.at.get());
    fine(in_order, "prices", "out of order".to_owned(), "changes in order of time")?;
    for change in &options.prices {
        let known = cluster.find(&change.worker_type).is_some();
        fine(known, "prices", change.worker_type.clone(), "a worker type of the cluster")?;
    }
    Ok(())
}
