//! A scheduler between two rounds, to be saved and restored: with the same leases.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::active::{Progress, Table};
use super::decided::RestoreError;
use super::direct::DirectState;
use super::driver::DriverState;
use super::job_scheduler::Scheduler;
use super::leases::InForce;
use super::rounds::RoundsState;
use crate::index::{Id, JobId};
use crate::policy::ObjectiveReport;
use crate::problem::Entity;
use crate::units::{Seconds, Steps};
use crate::workload::{Combination, Job};

/// The format that this version writes and reads.
const FORMAT: &str = "apportion/scheduler-v1";

/// All that a scheduler needs to go on, apart from cluster, throughputs, policy and options, which are made anew as they were.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchedulerState {
    format: String,
    /// The cluster, as it is written on command lines.
    cluster: String,
    /// The policy's name.
    policy: String,
    now: f64,
    n_rounds: u64,
    n_submitted: usize,
    jobs: Vec<Progress>,
    /// The names of active jobs, and of jobs that went since the last round.
    names: BTreeMap<JobId, String>,
    /// Jobs submitted under names of their own.
    by_name: BTreeMap<String, JobId>,
    gone: Vec<JobId>,
    entities: Vec<Entity>,
    /// The state of a policy behind the mechanism, with the mechanism's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rounds: Option<Box<RoundsState>>,
    /// The state of a policy that decides inside rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    direct: Option<Box<DirectState>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decided: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    in_force: Option<InForceState>,
}

/// The decision in force, to be saved without the solver's report.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct InForceState {
    asked: f64,
    adopted: f64,
    shares: Vec<(Combination<JobId>, Vec<f64>)>,
    /// The upper bound of the ids of jobs that it was asked about; 0 in states of earlier versions: then jobs without a share count
    /// as not shown until the next decision.
    #[serde(default)]
    n_shown: usize,
    /// The policy's objective; none also if a number of it is not finite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    objective: Option<ObjectiveReport>,
    dropped: Vec<JobId>,
}

impl From<&InForce> for InForceState {
    fn from(in_force: &InForce) -> Self {
        let finite = |report: &&ObjectiveReport| {
            let numbers = [report.value, report.bound, report.gap_relative, report.violation_max];
            numbers.iter().all(|number| number.is_finite())
        };
        Self {
            asked: in_force.asked.get(),
            adopted: in_force.adopted.get(),
            shares: in_force.shares.clone(),
            n_shown: in_force.n_shown,
            objective: in_force.objective.as_ref().filter(finite).cloned(),
            dropped: in_force.dropped.clone(),
        }
    }
}

impl From<&InForceState> for InForce {
    fn from(state: &InForceState) -> Self {
        Self {
            asked: Seconds::new(state.asked),
            adopted: Seconds::new(state.adopted),
            shares: state.shares.clone(),
            n_shown: state.n_shown,
            objective: state.objective.clone(),
            solve: None,
            dropped: state.dropped.clone(),
        }
    }
}

impl SchedulerState {
    /// The job that was submitted under this name, if it is active.
    pub fn find(&self, name: &str) -> Option<JobId> {
        self.by_name.get(name).copied()
    }

    /// The active jobs by id, each with the steps that it has run.
    pub fn active(&self) -> impl Iterator<Item = (JobId, &Job, Steps)> {
        self.jobs.iter().map(|progress| (progress.id, &progress.job, Steps::new(progress.steps_run)))
    }

    /// This state without the policy's state, for a simulation that continues with another policy behind the mechanism: that one is
    /// asked at the next round.
    #[must_use]
    pub fn without_policy(mut self) -> Self {
        if let Some(rounds) = &mut self.rounds {
            rounds.forget_policy();
        }
        self
    }

    /// The number of jobs that were ever submitted.
    pub fn n_submitted(&self) -> usize {
        self.n_submitted
    }

    /// The cluster, as it is written on command lines.
    pub(crate) fn cluster(&self) -> &str {
        &self.cluster
    }

    /// The jobs.
    pub(crate) fn jobs(&self) -> &[Progress] {
        &self.jobs
    }

    /// The owners.
    pub(crate) fn entities(&self) -> &[Entity] {
        &self.entities
    }

    /// The driver's state; none if it is damaged.
    pub(crate) fn driver(&self) -> Option<DriverState> {
        match (&self.rounds, &self.direct) {
            (Some(rounds), None) => Some(DriverState::Mechanized(rounds.clone())),
            (None, Some(direct)) => Some(DriverState::Direct(direct.clone())),
            _ => None,
        }
    }
}

impl Scheduler {
    /// The state for [`restore`](Self::restore): jobs with their ids and names, their progress and measurements, owners, workers
    /// that are down, the mechanism, the policy's state, and the allocation in force without the solver's report. A policy that is
    /// deciding is saved as it was when it was asked, and asked again at the next round.
    ///
    /// For a policy that decides inside rounds: its state, its placements, and all that was recorded and observed since.
    pub fn state(&self) -> SchedulerState {
        let (rounds, direct) = match self.driver.state() {
            DriverState::Mechanized(rounds) => (Some(rounds), None),
            DriverState::Direct(direct) => (None, Some(direct)),
        };
        SchedulerState {
            format: FORMAT.to_owned(),
            cluster: self.cluster.to_string(),
            policy: self.driver.policy_name().to_owned(),
            now: self.now.get(),
            n_rounds: self.n_rounds,
            n_submitted: self.n_submitted,
            jobs: self.table.jobs.iter().map(|active| active.progress.clone()).collect(),
            names: self.names.clone(),
            by_name: self.by_name.clone(),
            gone: self.gone.clone(),
            entities: self.table.owners.iter().cloned().collect(),
            rounds,
            direct,
            decided: self.decided.map(Seconds::get),
            in_force: self.in_force.as_ref().map(InForceState::from),
        }
    }

    /// Restores the state of [`state`](Self::state): a scheduler made anew with the same cluster, throughputs, policy and options
    /// goes on like the saved one, lease for lease.
    ///
    /// # Errors
    /// If the state is of another scheduler, or the policy is deciding or refuses its part: then nothing has changed.
    pub fn restore(&mut self, state: &SchedulerState) -> Result<(), RestoreError> {
        let table = self.restored_table(state)?;
        let Some(driver) = state.driver() else {
            let reason = "it has not one policy's rounds".to_owned();
            return Err(RestoreError::Scheduler { reason });
        };
        self.driver.restore(&self.cluster, &driver)?;
        self.table = table;
        self.names.clone_from(&state.names);
        self.by_name.clone_from(&state.by_name);
        self.gone.clone_from(&state.gone);
        self.n_submitted = state.n_submitted;
        // It is not saved which of them came after its last round: their names are kept until the next.
        self.n_seen = state.n_submitted;
        self.n_rounds = state.n_rounds;
        self.now = Seconds::new(state.now);
        self.in_force = state.in_force.as_ref().map(InForce::from);
        self.decided = state.decided.map(Seconds::new);
        self.refresh_up();
        Ok(())
    }

    /// The saved jobs and owners, if they fit the cluster and the throughputs.
    fn restored_table(&self, state: &SchedulerState) -> Result<Table, RestoreError> {
        let refuse = |reason: String| Err(RestoreError::Scheduler { reason });
        if state.format != FORMAT {
            return refuse(format!("it is of format `{}`, expected `{FORMAT}`", state.format));
        }
        let cluster = self.cluster.to_string();
        if state.cluster != cluster {
            return refuse(format!("it is of cluster `{}`, expected `{cluster}`", state.cluster));
        }
        let policy = self.driver.policy_name();
        if state.policy != policy {
            return refuse(format!("it is of policy `{}`, expected `{policy}`", state.policy));
        }
        if !state.jobs.is_sorted_by(|one, other| one.id < other.id) {
            return refuse("its jobs are not in order".to_owned());
        }
        let here = |id: &JobId| state.jobs.binary_search_by_key(id, |progress| progress.id).is_ok();
        let known = |id: &JobId| id.index() < state.n_submitted;
        if !state.jobs.iter().all(|progress| known(&progress.id)) || !state.gone.iter().all(known) {
            return refuse("it has jobs that were never submitted".to_owned());
        }
        if let Some(rounds) = &state.rounds {
            let of_mechanism: BTreeSet<JobId> = rounds.jobs().collect();
            if !of_mechanism.iter().eq(state.jobs.iter().map(|progress| &progress.id)) {
                return refuse("its mechanism has other jobs".to_owned());
            }
        }
        if !state.by_name.values().all(here) {
            return refuse("it has names of jobs that are not here".to_owned());
        }
        if !state.jobs.iter().all(|progress| progress.has_types(self.cluster.n_types())) {
            return refuse("its jobs are of another number of worker types".to_owned());
        }
        if !are_above(&state.entities) {
            return refuse("its owners are not a tree".to_owned());
        }
        let mut table = Table::new(&self.cluster, Arc::clone(&self.table.throughputs))?;
        table.owners = state.entities.iter().cloned().collect();
        for progress in &state.jobs {
            table.add(progress.clone(), &self.cluster)?;
            if state.direct.is_some() {
                let alone = self.alone(progress.id, &progress.job)?;
                self.driver
                    .check(&alone, self.options().round_length)
                    .map_err(|reason| RestoreError::Scheduler { reason })?;
            }
        }
        Ok(table)
    }
}

/// Whether every chain of owners ends.
fn are_above(entities: &[Entity]) -> bool {
    entities.iter().all(|entity| {
        let (mut above, mut steps) = (entity.parent, 0);
        while let Some(parent) = above {
            steps += 1;
            match entities.get(parent.index()) {
                Some(next) if steps <= entities.len() => above = next.parent,
                _ => return false,
            }
        }
        true
    })
}
