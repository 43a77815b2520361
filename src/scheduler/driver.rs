//! The driver of rounds: a policy behind the mechanism, or one that decides inside rounds.

use serde::{Deserialize, Serialize};

use super::active::Table;
use super::decided::RestoreError;
use super::direct::{Direct, DirectState};
use super::rounds::{Rounds, RoundsState};
use crate::cluster::Cluster;
use crate::index::{JobId, WorkerId, WorkerTypeId};
use crate::mechanism::{GrantedLease, Mechanism, Workers};
use crate::problem::Problem;
use crate::units::{Seconds, StepsPerSecond};
use crate::workload::Combination;

/// The policy, behind the mechanism or inside rounds.
#[derive(Debug)]
pub(crate) enum Driver {
    Mechanized(Box<Rounds>),
    Direct(Box<Direct>),
}

/// The state of a driver, to be saved.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DriverState {
    Mechanized(Box<RoundsState>),
    Direct(Box<DirectState>),
}

impl Driver {
    pub(crate) fn policy_name(&self) -> &str {
        match self {
            Self::Mechanized(rounds) => rounds.policy_name(),
            Self::Direct(direct) => direct.policy_name(),
        }
    }

    /// The mechanism, if there is one.
    pub(crate) fn mechanism(&self) -> Option<&Mechanism> {
        match self {
            Self::Mechanized(rounds) => Some(rounds.mechanism()),
            Self::Direct(_) => None,
        }
    }

    /// The mechanism, to be changed; policies inside rounds see the state themselves.
    fn mechanism_mut(&mut self) -> Option<&mut Mechanism> {
        match self {
            Self::Mechanized(rounds) => Some(rounds.mechanism_mut()),
            Self::Direct(_) => None,
        }
    }

    pub(crate) fn workers(&self) -> &Workers {
        match self {
            Self::Mechanized(rounds) => rounds.mechanism().workers(),
            Self::Direct(direct) => direct.workers(),
        }
    }

    pub(crate) fn set_up(&mut self, worker: WorkerId, up: bool) {
        match self {
            Self::Mechanized(rounds) => rounds.mechanism_mut().set_up(worker, up),
            Self::Direct(direct) => direct.set_up(worker, up),
        }
    }

    /// Notes a change in the data that an allocation depends on.
    pub(crate) fn note_change(&mut self) {
        if let Some(mechanism) = self.mechanism_mut() {
            mechanism.note_change();
        }
    }

    /// Adds a job that is new in the table.
    pub(crate) fn add_job(&mut self, table: &Table, id: JobId, scale_factor: u32) {
        if let Some(mechanism) = self.mechanism_mut() {
            let throughput = |jobs: Combination<JobId>, worker_type| table.throughput(jobs, worker_type);
            mechanism.add_job(id, scale_factor, &throughput);
        }
    }

    pub(crate) fn remove_job(&mut self, id: JobId) {
        if let Some(mechanism) = self.mechanism_mut() {
            mechanism.remove_job(id);
        }
    }

    /// Lets a job rest; a policy that decides inside rounds is shown it as before.
    pub(super) fn rest(&mut self, id: JobId, until: Seconds) {
        if let Some(mechanism) = self.mechanism_mut() {
            mechanism.rest(id, until);
        }
    }

    /// Counts time on workers of a type.
    pub(super) fn record(&mut self, jobs: Combination<JobId>, worker_type: WorkerTypeId, time: Seconds) {
        match self {
            Self::Mechanized(rounds) => rounds.mechanism_mut().record(jobs, worker_type, time),
            // Checkpointed steps are reported without a time.
            Self::Direct(direct) if time > Seconds::ZERO => direct.ran_of(jobs, worker_type).time += time,
            Self::Direct(_) => {}
        }
    }

    /// Counts time ahead for jobs that still hold workers; policies inside rounds are shown only the past.
    pub(super) fn project(&mut self, jobs: Combination<JobId>, worker_type: WorkerTypeId, time: Seconds) {
        if let Some(mechanism) = self.mechanism_mut() {
            mechanism.project(jobs, worker_type, time);
        }
    }

    /// Notes the speeds that a combination was measured at, for a policy that decides inside rounds. The mechanism uses none.
    pub(super) fn observe(
        &mut self,
        jobs: Combination<JobId>,
        worker_type: WorkerTypeId,
        speeds: [StepsPerSecond; 2],
    ) {
        let Self::Direct(direct) = self else { return };
        let ran = direct.ran_of(jobs, worker_type);
        for (known, seen) in ran.throughput.iter_mut().zip(speeds) {
            if seen.get() > 0.0 {
                *known = seen.get();
            }
        }
    }

    /// Checks whether the policy could ever place these jobs, with all workers up. A policy behind the mechanism gives shares, and
    /// the mechanism places all that fits.
    ///
    /// # Errors
    /// If it could not, with the policy's own reason.
    pub(super) fn check(&self, problem: &Problem, round_length: Seconds) -> Result<(), String> {
        match self {
            Self::Mechanized(_) => Ok(()),
            Self::Direct(direct) => direct.check(problem, round_length),
        }
    }

    /// The instant at which the policy wants to be asked again in any case.
    pub(crate) fn asks_again_at(&self) -> Option<Seconds> {
        self.mechanism().and_then(Mechanism::asks_again_at)
    }

    /// The instant at which a job is owed time again, if jobs wait for that beside idle workers.
    pub(crate) fn next_due(&self) -> Option<Seconds> {
        self.mechanism().and_then(Mechanism::next_due)
    }

    pub(crate) fn n_leases(&self) -> usize {
        match self {
            Self::Mechanized(rounds) => rounds.mechanism().leases().len(),
            Self::Direct(direct) => direct.n_leases(),
        }
    }

    pub(crate) fn lease(&self, index: usize) -> GrantedLease<'_> {
        match self {
            Self::Mechanized(rounds) => rounds.mechanism().lease(index),
            Self::Direct(direct) => direct.lease(index),
        }
    }

    /// Passes on every lease of the previous round that was not extended although a job of it is still here.
    pub(crate) fn each_lost(&self, table: &Table, tell: &mut dyn FnMut(GrantedLease<'_>)) {
        match self {
            Self::Mechanized(rounds) => rounds.mechanism().preempted().for_each(tell),
            Self::Direct(direct) => direct.each_lost(table, tell),
        }
    }

    pub(crate) fn state(&self) -> DriverState {
        match self {
            Self::Mechanized(rounds) => DriverState::Mechanized(Box::new(rounds.state())),
            Self::Direct(direct) => DriverState::Direct(Box::new(direct.state())),
        }
    }

    /// Restores the state of [`state`](Self::state).
    ///
    /// # Errors
    /// If it is of another driver: then nothing has changed.
    pub(crate) fn restore(&mut self, cluster: &Cluster, state: &DriverState) -> Result<(), RestoreError> {
        match (self, state) {
            (Self::Mechanized(rounds), DriverState::Mechanized(state)) => rounds.restore(cluster, state),
            (Self::Direct(direct), DriverState::Direct(state)) => direct.restore(state),
            _ => Err(RestoreError::Mechanism { reason: "they are of the other kind of policy".to_owned() }),
        }
    }
}
