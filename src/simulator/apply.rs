//! Rounds decided one decision at a time: each is applied, or rejected with a reason.

use serde::{Deserialize, Serialize};

use super::options::Options;
use super::outcome::SimulationError;
use super::simulation::{Driver, Simulation};
use super::snapshot::EventSnapshot;
use crate::index::{Id, IndexVec, JobId, WorkerId, WorkerTypeId};
use crate::mechanism::{GrantedLease, Workers};
use crate::policy::{Location, Placed, Ran, RoundDecision, RoundPolicy, RoundView};
use crate::scheduler::active::Table;
use crate::scheduler::{RoundsState, Situation};
use crate::units::Seconds;
use crate::workload::Combination;

/// Decisions after which a round is taken not to end: a multiple of its jobs and workers.
const DECISIONS_PER_JOB_OR_WORKER: usize = 16;

/// A policy that decides inside rounds, and what it has placed.
#[derive(Debug)]
pub(super) struct Direct {
    policy: Box<dyn RoundPolicy>,
    workers: Workers,
    locations: IndexVec<WorkerId, Location>,
    previous: Vec<Placed>,
    placed: Vec<Placed>,
    /// Servers of each placement, and whether it had the same workers before.
    granted: Vec<(u32, bool)>,
    free: IndexVec<WorkerTypeId, Vec<WorkerId>>,
}

/// The state of a driver, to be saved.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum DriverState {
    Mechanized(Box<RoundsState>),
    Direct { policy: serde_json::Value, placed: Vec<PlacedState>, down: Vec<WorkerId> },
}

/// A placement, to be saved.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlacedState {
    combination: Combination<JobId>,
    worker_type: WorkerTypeId,
    workers: Vec<WorkerId>,
}

impl Direct {
    pub(super) fn new(policy: Box<dyn RoundPolicy>, workers: Workers) -> Self {
        let locate = |kind: WorkerTypeId| {
            let location = |worker| Location { worker_type: kind, server: workers.server(worker) };
            workers.of_type(kind).map(location).collect::<Vec<_>>()
        };
        let locations = (0..workers.n_types()).flat_map(|kind| locate(WorkerTypeId::from_index(kind)));
        Self {
            policy,
            locations: locations.collect(),
            workers,
            previous: Vec::new(),
            placed: Vec::new(),
            granted: Vec::new(),
            free: IndexVec::new(),
        }
    }

    /// Asks for decisions until the round ends.
    pub(super) fn decide(
        &mut self,
        snapshot: &mut EventSnapshot<'_>,
        (round, options): (u64, &Options),
        ran: &[Ran],
    ) -> Result<(), SimulationError> {
        self.previous = std::mem::take(&mut self.placed);
        self.free = self.all_up();
        let mut problem = snapshot.problem()?;
        let decisions_max =
            DECISIONS_PER_JOB_OR_WORKER * (1 + snapshot.table.jobs.len() + self.workers.len());
        let mut rejected: Option<String> = None;
        for decisions in 0..=decisions_max {
            let view = RoundView {
                round,
                now: snapshot.now,
                round_length: options.round_length,
                cluster: snapshot.cluster,
                locations: &self.locations,
                problem: &problem,
                previous: &self.previous,
                ran,
                placed: &self.placed,
                free: &self.free,
                rejected: rejected.as_deref(),
            };
            if decisions == 0 {
                self.policy.begin(&view)?;
            }
            rejected = match self.policy.next(&view)? {
                RoundDecision::EndRound => {
                    self.grant();
                    return Ok(());
                }
                RoundDecision::Place(placed) => {
                    snapshot.table.refute(placed.combination, placed.worker_type);
                    self.place(snapshot.table, placed).err()
                }
                RoundDecision::Preempt { job } => self.take_off(job).err(),
                RoundDecision::Resize { job, workers } => {
                    let done = self.resize(snapshot.table, job, workers);
                    if done.is_ok() {
                        problem = snapshot.problem()?;
                    }
                    done.err()
                }
            };
        }
        Err(SimulationError::Livelock { decisions: decisions_max, round })
    }

    /// Workers that are up, of each type.
    fn all_up(&self) -> IndexVec<WorkerTypeId, Vec<WorkerId>> {
        let up = |column| {
            let all = self.workers.of_type(WorkerTypeId::from_index(column));
            all.filter(|worker| self.workers.is_up(*worker)).collect()
        };
        (0..self.workers.n_types()).map(up).collect()
    }

    fn place(&mut self, table: &Table, placed: Placed) -> Result<(), String> {
        let Placed { combination, worker_type, workers } = &placed;
        for job in combination.members() {
            let active = table.get(job).ok_or_else(|| format!("job {job} is not active"))?;
            let needs = active.progress.job.scale_factor;
            if workers.len() != needs as usize {
                return Err(format!("job {job} needs {needs} workers, got {}", workers.len()));
            }
            if self.placed.iter().any(|other| other.combination.contains(job)) {
                return Err(format!("job {job} is placed already"));
            }
        }
        if worker_type.index() >= self.free.len() || !table.runs(*combination, *worker_type) {
            return Err(format!("jobs {combination:?} cannot run on worker type {worker_type}"));
        }
        let ascending = workers.windows(2).all(|pair| pair[0] < pair[1]);
        let free = &self.free[*worker_type];
        if let Some(worker) = workers.iter().find(|worker| free.binary_search(worker).is_err()) {
            return Err(format!("worker {worker} is not a free one of type {worker_type}"));
        }
        if !ascending {
            return Err("workers are not in ascending order".to_owned());
        }
        self.free[*worker_type].retain(|worker| workers.binary_search(worker).is_err());
        self.placed.push(placed);
        Ok(())
    }

    fn take_off(&mut self, job: JobId) -> Result<(), String> {
        let position = self.placed.iter().position(|placed| placed.combination.contains(job));
        let position = position.ok_or_else(|| format!("job {job} is not placed in this round"))?;
        let placed = self.placed.remove(position);
        self.free[placed.worker_type].extend(placed.workers);
        self.free[placed.worker_type].sort_unstable();
        Ok(())
    }

    fn resize(&self, table: &mut Table, job: JobId, workers: u32) -> Result<(), String> {
        if self.placed.iter().any(|placed| placed.combination.contains(job)) {
            return Err(format!("job {job} is placed already"));
        }
        let position = table.find(job).ok_or_else(|| format!("job {job} is not active"))?;
        if table.resize(position, workers) {
            Ok(())
        } else {
            Err(format!("job {job} has no throughputs on {workers} workers"))
        }
    }

    /// Ends a decided round: which placements keep their workers?
    fn grant(&mut self) {
        let granted = self
            .placed
            .iter()
            .map(|placed| (self.workers.n_servers_of(&placed.workers), self.previous.contains(placed)));
        self.granted = granted.collect();
    }

    fn lease(&self, index: usize) -> GrantedLease<'_> {
        let Placed { combination, worker_type, workers } = &self.placed[index];
        let (n_servers, extended) = self.granted[index];
        GrantedLease { combination: *combination, worker_type: *worker_type, workers, n_servers, extended }
    }
}

impl Simulation {
    /// Shows what a policy that decides inside rounds will be shown first in the round that
    /// [`start_round`](Self::start_round) starts; nothing where an allocation decides.
    ///
    /// # Errors
    /// If the problem cannot be stated.
    pub fn look<T>(&mut self, look: impl FnOnce(&RoundView<'_>) -> T) -> Result<Option<T>, SimulationError> {
        let problem = self.problem()?;
        let Driver::Direct(direct) = &self.driver else { return Ok(None) };
        let free = direct.all_up();
        Ok(Some(look(&RoundView {
            round: self.clock.round,
            now: self.now(),
            round_length: self.setting.options.round_length,
            cluster: &self.cluster,
            locations: &direct.locations,
            problem: &problem,
            previous: &direct.placed,
            ran: &self.ran,
            placed: &[],
            free: &free,
            rejected: None,
        })))
    }
}

impl Driver {
    pub(super) fn workers(&self) -> &Workers {
        match self {
            Self::Mechanized(rounds) => rounds.mechanism().workers(),
            Self::Direct(direct) => &direct.workers,
        }
    }

    pub(super) fn set_up(&mut self, worker: WorkerId, up: bool) {
        match self {
            Self::Mechanized(rounds) => rounds.mechanism_mut().set_up(worker, up),
            Self::Direct(direct) => direct.workers.set_up(worker, up),
        }
    }

    /// Notes a change of something that an allocation depends on; round policies see the state themselves.
    pub(super) fn note_change(&mut self) {
        if let Self::Mechanized(rounds) = self {
            rounds.mechanism_mut().note_change();
        }
    }

    /// When the policy wants to be asked again, whatever happens until then.
    pub(super) fn asks_again_at(&self) -> Option<Seconds> {
        match self {
            Self::Mechanized(rounds) => rounds.mechanism().asks_again_at(),
            Self::Direct(_) => None,
        }
    }

    /// When a job is owed time again, where jobs wait for that beside idle workers.
    pub(super) fn next_due(&self) -> Option<Seconds> {
        match self {
            Self::Mechanized(rounds) => rounds.mechanism().next_due(),
            Self::Direct(_) => None,
        }
    }

    pub(super) fn n_leases(&self) -> usize {
        match self {
            Self::Mechanized(rounds) => rounds.mechanism().leases().len(),
            Self::Direct(direct) => direct.placed.len(),
        }
    }

    pub(super) fn lease(&self, index: usize) -> GrantedLease<'_> {
        match self {
            Self::Mechanized(rounds) => rounds.mechanism().lease(index),
            Self::Direct(direct) => direct.lease(index),
        }
    }

    /// Every lease of the round before that was not extended although a job of it is still here.
    pub(super) fn each_lost(&self, table: &Table, tell: &mut dyn FnMut(GrantedLease<'_>)) {
        match self {
            Self::Mechanized(rounds) => rounds.mechanism().preempted().for_each(tell),
            Self::Direct(direct) => {
                for old in &direct.previous {
                    let active = old.combination.members().any(|job| table.find(job).is_some());
                    if active && !direct.placed.contains(old) {
                        let Placed { combination, worker_type, workers } = old;
                        let (n_servers, extended) = (direct.workers.n_servers_of(workers), false);
                        let (combination, worker_type) = (*combination, *worker_type);
                        tell(GrantedLease { combination, worker_type, workers, n_servers, extended });
                    }
                }
            }
        }
    }

    pub(super) fn state(&self) -> DriverState {
        match self {
            Self::Mechanized(rounds) => DriverState::Mechanized(Box::new(rounds.state())),
            Self::Direct(direct) => DriverState::Direct {
                policy: direct.policy.state(),
                placed: direct.placed.iter().map(|placed| placed.clone().into()).collect(),
                down: (0..direct.workers.len())
                    .map(WorkerId::from_index)
                    .filter(|worker| !direct.workers.is_up(*worker))
                    .collect(),
            },
        }
    }

    pub(super) fn restore(
        &mut self,
        cluster: &crate::cluster::Cluster,
        state: &DriverState,
    ) -> Result<(), SimulationError> {
        match (self, state) {
            (Self::Mechanized(rounds), DriverState::Mechanized(state)) => Ok(rounds.restore(cluster, state)?),
            (Self::Direct(direct), DriverState::Direct { policy, placed, down }) => {
                direct.policy.restore(policy)?;
                direct.placed = placed.iter().map(|placed| placed.clone().into()).collect();
                for worker in down {
                    if worker.index() >= direct.workers.len() {
                        let reason = format!("worker {worker} is not in the cluster");
                        return Err(SimulationError::Checkpoint { reason });
                    }
                    direct.workers.set_up(*worker, false);
                }
                direct.grant();
                Ok(())
            }
            _ => {
                let reason = "it is of the other kind of policy".to_owned();
                Err(SimulationError::Checkpoint { reason })
            }
        }
    }
}

impl From<Placed> for PlacedState {
    fn from(placed: Placed) -> Self {
        let Placed { combination, worker_type, workers } = placed;
        Self { combination, worker_type, workers }
    }
}

impl From<PlacedState> for Placed {
    fn from(state: PlacedState) -> Self {
        let PlacedState { combination, worker_type, workers } = state;
        Self { combination, worker_type, workers }
    }
}
