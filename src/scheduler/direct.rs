//! Rounds decided one decision at a time: each is applied, or rejected with a reason.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::active::Table;
use super::decided::{Decided, DecisionError, RestoreError};
use super::policy_thread::panicked;
use crate::cluster::Cluster;
use crate::index::{Id, IndexVec, JobId, WorkerId, WorkerTypeId};
use crate::mechanism::{GrantedLease, Workers};
use crate::policy::{Location, Placed, PolicyError, Ran, Resizable, RoundDecision, RoundPolicy, RoundView};
use crate::problem::{Problem, ProblemError};
use crate::units::Seconds;
use crate::workload::{Combination, Job};

/// The number of decisions after which a round counts as endless: a multiple of its jobs and workers.
const DECISIONS_PER_JOB_OR_WORKER: usize = 16;

/// The start of a round: the jobs and the workers that are up.
#[derive(Debug)]
pub(crate) struct Start<'a> {
    pub(crate) round: u64,
    pub(crate) now: Seconds,
    pub(crate) round_length: Seconds,
    pub(crate) table: &'a mut Table,
    pub(crate) cluster: &'a Arc<Cluster>,
}

impl Start<'_> {
    fn problem(&mut self) -> Result<Problem, ProblemError> {
        self.table.share_equally(self.cluster);
        self.table.problem(self.now, self.cluster)
    }
}

/// A policy that decides inside rounds, and its placements.
#[derive(Debug)]
pub(crate) struct Direct {
    policy: Box<dyn RoundPolicy>,
    workers: Workers,
    locations: IndexVec<WorkerId, Location>,
    previous: Vec<Placed>,
    placed: Vec<Placed>,
    /// The runs since the last round was decided.
    ran: Vec<Ran>,
    /// For each placement, the number of its servers, and whether it had the same workers before.
    granted: Vec<(u32, bool)>,
    free: IndexVec<WorkerTypeId, Vec<WorkerId>>,
}

/// The state of a policy that decides inside rounds that must survive a checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DirectState {
    policy: serde_json::Value,
    placed: Vec<Placed>,
    down: Vec<WorkerId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ran: Vec<Ran>,
}

impl Direct {
    pub(crate) fn new(policy: Box<dyn RoundPolicy>, workers: Workers) -> Self {
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
            ran: Vec::new(),
            granted: Vec::new(),
            free: IndexVec::new(),
        }
    }

    pub(super) fn policy_name(&self) -> &str {
        self.policy.name()
    }

    pub(super) fn workers(&self) -> &Workers {
        &self.workers
    }

    pub(super) fn set_up(&mut self, worker: WorkerId, up: bool) {
        self.workers.set_up(worker, up);
    }

    pub(super) fn n_leases(&self) -> usize {
        self.placed.len()
    }

    /// Notes the run of a combination in the round that ends.
    pub(crate) fn note_ran(&mut self, ran: Ran) {
        self.ran.push(ran);
    }

    /// The run of a combination on a worker type since the last round was decided.
    pub(super) fn ran_of(&mut self, combination: Combination<JobId>, worker_type: WorkerTypeId) -> &mut Ran {
        let is_it = |ran: &Ran| ran.combination == combination && ran.worker_type == worker_type;
        let place = self.ran.iter().position(is_it).unwrap_or(self.ran.len());
        if place == self.ran.len() {
            self.ran.push(Ran { combination, worker_type, time: Seconds::ZERO, throughput: [0.0; 2] });
        }
        &mut self.ran[place]
    }

    /// Shows the view that the policy is shown first in a round that starts so.
    pub(crate) fn look<T>(
        &self,
        (round, now, round_length): (u64, Seconds, Seconds),
        (problem, resizable): (&Problem, &[Resizable]),
        look: impl FnOnce(&RoundView<'_>) -> T,
    ) -> T {
        look(&RoundView {
            round,
            now,
            round_length,
            cluster: problem.cluster(),
            locations: &self.locations,
            problem,
            resizable,
            previous: &self.placed,
            ran: &self.ran,
            placed: &[],
            free: &self.all(|worker| self.workers.is_up(worker)),
            rejected: None,
        })
    }

    /// Checks whether the policy could ever place these jobs, with all workers up.
    ///
    /// # Errors
    /// If it could not, with the policy's own reason.
    pub(super) fn check(&self, problem: &Problem, round_length: Seconds) -> Result<(), String> {
        self.policy.check(&RoundView {
            round: 0,
            now: Seconds::ZERO,
            round_length,
            cluster: problem.cluster(),
            locations: &self.locations,
            problem,
            resizable: &[],
            previous: &[],
            ran: &[],
            placed: &[],
            free: &self.all(|_| true),
            rejected: None,
        })
    }

    /// Begins a round without placements. Returns the runs since the last round was decided.
    fn begin(&mut self) -> Vec<Ran> {
        self.previous = std::mem::take(&mut self.placed);
        self.free = self.all(|worker| self.workers.is_up(worker));
        std::mem::take(&mut self.ran)
    }

    /// Makes the placements that a caller has decided on the view of [`look`](Self::look); the policy is not asked. After an error
    /// the placements are invalid.
    pub(crate) fn take(&mut self, table: &mut Table, decided: Vec<Placed>) -> Result<(), DecisionError> {
        self.begin();
        for placed in decided {
            table.refute(placed.combination, placed.worker_type);
            self.place(table, placed).map_err(|reason| self.undecided(reason))?;
        }
        self.grant();
        Ok(())
    }

    fn undecided(&self, reason: String) -> PolicyError {
        PolicyError::Undecided { policy: self.policy.name().to_owned(), reason }
    }

    /// Asks for decisions until the round ends. After an error the placements are invalid, unless
    /// [`decide_or_go_on`](Self::decide_or_go_on) restores them.
    pub(crate) fn decide(&mut self, start: &mut Start<'_>) -> Result<(), DecisionError> {
        let ran = self.begin();
        start.table.shrink_to(start.cluster);
        let mut problem = start.problem()?;
        let resizable = start.table.resizable(start.cluster);
        let decisions_max = DECISIONS_PER_JOB_OR_WORKER * (1 + start.table.jobs.len() + self.workers.len());
        let mut rejected: Option<String> = None;
        for decisions in 0..=decisions_max {
            let view = RoundView {
                round: start.round,
                now: start.now,
                round_length: start.round_length,
                cluster: start.cluster,
                locations: &self.locations,
                problem: &problem,
                resizable: &resizable,
                previous: &self.previous,
                ran: &ran,
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
                    start.table.refute(placed.combination, placed.worker_type);
                    self.place(start.table, placed).err()
                }
                RoundDecision::Preempt { job } => self.take_off(job).err(),
                RoundDecision::Resize { job, workers } => {
                    let done = self.resize(start.table, job, workers);
                    if done.is_ok() {
                        problem = start.problem()?;
                    }
                    done.err()
                }
            };
        }
        Err(DecisionError::Livelock { decisions: decisions_max, round: start.round })
    }

    /// Decides the round for jobs that really run: if the policy fails, or panics, they keep their workers, except workers that are
    /// down.
    pub(super) fn decide_or_go_on(&mut self, start: &mut Start<'_>) -> Decided {
        let asked = start.now;
        let sizes = start.table.sizes_now();
        let decided = catch_unwind(AssertUnwindSafe(|| self.decide(start)));
        let error = match decided {
            Ok(Ok(())) => return Decided::Fresh { asked },
            Ok(Err(error)) => error,
            Err(panic) => panicked(self.policy.name(), panic.as_ref()).into(),
        };
        start.table.take_back_sizes(sizes);
        let left = |placed: &Placed| {
            let mut here = placed.combination.members().filter(|job| start.table.find(*job).is_some());
            let first = here.next()?;
            let combination = here.next().map_or(Combination::single(first), |_| placed.combination);
            let is_up = placed.workers.iter().all(|worker| self.workers.is_up(*worker));
            is_up.then(|| Placed { combination, ..placed.clone() })
        };
        self.placed = self.previous.iter().filter_map(left).collect();
        self.grant();
        Decided::Failed { error }
    }

    /// Workers of each type that the condition selects.
    fn all(&self, asked: impl Fn(WorkerId) -> bool) -> IndexVec<WorkerTypeId, Vec<WorkerId>> {
        let of_type = |column| {
            let all = self.workers.of_type(WorkerTypeId::from_index(column));
            all.filter(|worker| asked(*worker)).collect()
        };
        (0..self.workers.n_types()).map(of_type).collect()
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
            return Ok(());
        }
        let Job { sizes, scale_factor, .. } = &table.jobs[position].progress.job;
        Err(if sizes.len() < 2 {
            format!("job {job} does not say that it can have other than {scale_factor} workers")
        } else {
            let sizes: Vec<_> = sizes.iter().map(u32::to_string).collect();
            format!("job {job} cannot have {workers} workers, only one of {}", sizes.join(", "))
        })
    }

    /// Ends a decided round: notes which placements keep their workers.
    fn grant(&mut self) {
        let granted = self
            .placed
            .iter()
            .map(|placed| (self.workers.n_servers_of(&placed.workers), self.previous.contains(placed)));
        self.granted = granted.collect();
    }

    pub(super) fn lease(&self, index: usize) -> GrantedLease<'_> {
        let Placed { combination, worker_type, workers } = &self.placed[index];
        let (n_servers, extended) = self.granted[index];
        GrantedLease { combination: *combination, worker_type: *worker_type, workers, n_servers, extended }
    }

    /// Passes on every placement of the previous round that was not continued although a job of it is still here.
    pub(super) fn each_lost(&self, table: &Table, tell: &mut dyn FnMut(GrantedLease<'_>)) {
        for old in &self.previous {
            let active = old.combination.members().any(|job| table.find(job).is_some());
            if active && !self.placed.contains(old) {
                let Placed { combination, worker_type, workers } = old;
                let (n_servers, extended) = (self.workers.n_servers_of(workers), false);
                let (combination, worker_type) = (*combination, *worker_type);
                tell(GrantedLease { combination, worker_type, workers, n_servers, extended });
            }
        }
    }

    pub(super) fn state(&self) -> DirectState {
        let all = (0..self.workers.len()).map(WorkerId::from_index);
        DirectState {
            policy: self.policy.state(),
            placed: self.placed.clone(),
            down: all.filter(|worker| !self.workers.is_up(*worker)).collect(),
            ran: self.ran.clone(),
        }
    }

    /// Restores the state of [`state`](Self::state).
    ///
    /// # Errors
    /// If it is of other workers, or the policy refuses its part: then nothing has changed.
    pub(super) fn restore(&mut self, state: &DirectState) -> Result<(), RestoreError> {
        let refuse = |reason: String| Err(RestoreError::Mechanism { reason });
        let n_workers = self.workers.len();
        if let Some(worker) = state.down.iter().find(|worker| worker.index() >= n_workers) {
            return refuse(format!("worker {worker} is not in the cluster"));
        }
        for Placed { worker_type, workers, .. } in &state.placed {
            let is_another = |worker: &&WorkerId| {
                worker.index() >= n_workers || self.locations[**worker].worker_type != *worker_type
            };
            if let Some(worker) = workers.iter().find(is_another) {
                return refuse(format!("worker {worker} is none of type {worker_type}"));
            }
        }
        if let Some(ran) = state.ran.iter().find(|ran| ran.worker_type.index() >= self.workers.n_types()) {
            return refuse(format!("there is no worker type {}", ran.worker_type));
        }
        self.policy.restore(&state.policy)?;
        for worker in (0..n_workers).map(WorkerId::from_index) {
            self.workers.set_up(worker, !state.down.contains(&worker));
        }
        self.placed.clone_from(&state.placed);
        self.ran.clone_from(&state.ran);
        self.grant();
        Ok(())
    }
}
