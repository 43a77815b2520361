//! Every allocation policy is a round policy, through the mechanism.

use serde::{Deserialize, Serialize};

use super::options::{EmptyCluster, Semantics, TypeDraws};
use super::outcome::SimulationError;
use crate::cluster::Cluster;
use crate::index::{Id, IndexVec, JobId, JobIndex, WorkerId, WorkerTypeId};
use crate::mechanism::{IdleWorkers, Mechanism, MechanismState, Rules};
use crate::policy::{
    Decision, Placed, Policy, PolicyError, RoundDecision, RoundPolicy, RoundView, TypeOrder,
};
use crate::problem::{Problem, ProblemError};
use crate::units::Seconds;
use crate::workload::Combination;
use crate::workload::python_random::PythonRandom;
use crate::workload::random::{SeedStreams, Stream};

/// What an adapter asks of whoever runs the round.
pub(super) trait Situation {
    /// Start of the round.
    fn now(&self) -> Seconds;
    /// Active jobs.
    fn n_jobs(&self) -> usize;
    /// The policy's problem.
    fn problem(&mut self) -> Result<Problem, ProblemError>;
    /// Does every member have a throughput there?
    fn runs(&self, jobs: Combination<JobId>, worker_type: WorkerTypeId) -> bool;
    /// The policy answered. Is any pair it counts on found unable to run?
    fn decided(&mut self, problem: &Problem, decision: &Decision) -> bool;
}

/// Where the orders of worker types are drawn from.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Draws {
    Stream(Stream),
    Python(Box<PythonRandom>),
}

/// What of an adapter must survive a checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MechanizedState {
    mechanism: MechanismState,
    policy: serde_json::Value,
    type_order: TypeOrder,
    draws: Draws,
}

/// A decision, and the jobs of its problem by position.
pub(super) type Answer = (Decision, IndexVec<JobIndex, JobId>);

/// A [`Policy`] that decides in rounds: allocation → priorities → greedy selection → placement.
#[derive(Debug)]
pub struct Mechanized {
    policy: Box<dyn Policy>,
    pub(super) mechanism: Mechanism,
    empty_cluster: EmptyCluster,
    /// Types with workers, fastest first.
    types: Vec<WorkerTypeId>,
    type_order: TypeOrder,
    draws: Draws,
    /// This round's order.
    order: Vec<WorkerTypeId>,
    /// The next lease to be placed through the seam.
    next: usize,
}

impl Mechanized {
    /// A policy behind the mechanism, for a cluster whose types are in order of speed.
    pub fn new(policy: Box<dyn Policy>, cluster: &Cluster, semantics: &Semantics, seed: u64) -> Self {
        let mechanism = Mechanism::new(cluster, semantics.mechanism);
        let draws = match semantics.type_draws {
            TypeDraws::Stream => Draws::Stream(SeedStreams::new(seed).stream("worker_types")),
            TypeDraws::Python => Draws::Python(Box::new(PythonRandom::new(i128::from(seed) + 5))),
        };
        let has_workers = |id: &WorkerTypeId| mechanism.workers().n_up(*id) > 0;
        let types: Vec<_> = cluster.types().ids().filter(has_workers).collect();
        Self {
            policy,
            mechanism,
            empty_cluster: semantics.empty_cluster,
            order: types.clone(),
            types,
            type_order: TypeOrder::Speed,
            draws,
            next: 0,
        }
    }

    /// Decides a round: [`Mechanism::leases`] has the result.
    pub(super) fn decide(&mut self, situation: &mut dyn Situation) -> Result<(), SimulationError> {
        let ask_empty = self.empty_cluster == EmptyCluster::Resets;
        if self.mechanism.due(situation.now()) && (situation.n_jobs() > 0 || ask_empty) {
            self.recompute(situation)?;
        }
        if self.type_order == TypeOrder::Shuffled {
            self.order.copy_from_slice(&self.types);
            match &mut self.draws {
                Draws::Stream(stream) => stream.shuffle(&mut self.order),
                Draws::Python(python) => python.shuffle(&mut self.order),
            }
        }
        self.mechanism.assign(&self.order);
        let at_once = self.mechanism.options().idle_workers == IdleWorkers::Recompute;
        if at_once && self.mechanism.has_changed() && self.mechanism.waits_beside_idle() {
            self.recompute(situation)?;
            self.mechanism.assign_again(&self.order);
        }
        Ok(())
    }

    /// Settles accounts and asks the policy.
    pub(super) fn recompute(&mut self, situation: &mut dyn Situation) -> Result<Answer, SimulationError> {
        self.mechanism.settle(situation.now());
        let problem = situation.problem()?;
        let decision = self.policy.allocate(&problem)?;
        let ids: IndexVec<JobIndex, JobId> = problem.jobs().iter().map(|job| job.id).collect();
        let rules = Rules {
            skip_zero_priority: decision.rules.skip_zero_priority,
            pair_fillers: decision.rules.pair_fillers,
        };
        let runs = |jobs: Combination<JobId>, worker_type| situation.runs(jobs, worker_type);
        self.mechanism.adopt(&decision.allocation, &ids, rules, &runs);
        let now = situation.now();
        self.mechanism.ask_again_at(decision.rules.recompute_after.map(|after| now + after));
        if self.type_order != decision.rules.type_order {
            self.type_order = decision.rules.type_order;
            self.order.copy_from_slice(&self.types);
        }
        if situation.decided(&problem, &decision) {
            self.mechanism.note_change();
        }
        Ok((decision, ids))
    }

    pub(super) fn state(&self) -> MechanizedState {
        MechanizedState {
            mechanism: self.mechanism.state(),
            policy: self.policy.state(),
            type_order: self.type_order,
            draws: self.draws.clone(),
        }
    }

    pub(super) fn restore(
        &mut self,
        cluster: &Cluster,
        state: &MechanizedState,
    ) -> Result<(), SimulationError> {
        let options = *self.mechanism.options();
        self.mechanism = Mechanism::restore(cluster, options, &state.mechanism)
            .map_err(|reason| SimulationError::Checkpoint { reason })?;
        self.policy.restore(&state.policy)?;
        self.type_order = state.type_order;
        self.draws = state.draws.clone();
        Ok(())
    }
}

/// A round as the seam shows it.
struct Seam<'a, 'b>(&'a RoundView<'b>);

impl Seam<'_, '_> {
    fn index(&self, job: JobId) -> Option<JobIndex> {
        self.0.problem.jobs().enumerate().find(|(_, active)| active.id == job).map(|(index, _)| index)
    }
}

impl Situation for Seam<'_, '_> {
    fn now(&self) -> Seconds {
        self.0.now
    }

    fn n_jobs(&self) -> usize {
        self.0.problem.n_jobs()
    }

    fn problem(&mut self) -> Result<Problem, ProblemError> {
        Ok(self.0.problem.clone())
    }

    fn runs(&self, jobs: Combination<JobId>, worker_type: WorkerTypeId) -> bool {
        let problem = self.0.problem;
        let Some(first) = self.index(jobs.first()) else { return false };
        match jobs.second() {
            None => problem.throughput()[(first, worker_type)] > 0.0,
            Some(second) => self.index(second).is_some_and(|second| {
                problem.colocated(Combination::pair(first, second), worker_type).is_some()
            }),
        }
    }

    fn decided(&mut self, _problem: &Problem, _decision: &Decision) -> bool {
        false
    }
}

impl RoundPolicy for Mechanized {
    fn begin(&mut self, view: &RoundView<'_>) -> Result<(), PolicyError> {
        for ran in view.ran {
            self.mechanism.record(ran.combination, ran.worker_type, ran.time);
        }
        for index in 0..self.mechanism.workers().len() {
            let worker = WorkerId::from_index(index);
            let free = |id| view.free[id].binary_search(&worker).is_ok();
            let up = self.mechanism.workers().worker_type(worker).is_some_and(free);
            self.mechanism.set_up(worker, up);
        }
        let mut seam = Seam(view);
        let gone: Vec<JobId> = self.mechanism.jobs().filter(|job| seam.index(*job).is_none()).collect();
        for job in gone {
            self.mechanism.remove_job(job);
        }
        for job in view.problem.jobs() {
            if !self.mechanism.has_job(job.id) {
                let runs = |jobs: Combination<JobId>, worker_type| seam.runs(jobs, worker_type);
                self.mechanism.add_job(job.id, job.scale_factor, &runs);
            }
        }
        self.next = 0;
        self.decide(&mut seam).map_err(|error| match error {
            SimulationError::Policy(error) => error,
            other => {
                PolicyError::Infeasible { policy: self.policy.name().to_owned(), reason: other.to_string() }
            }
        })
    }

    fn next(&mut self, _view: &RoundView<'_>) -> Result<RoundDecision, PolicyError> {
        if self.next == self.mechanism.leases().len() {
            return Ok(RoundDecision::EndRound);
        }
        let lease = self.mechanism.lease(self.next);
        self.next += 1;
        let mut workers = lease.workers.to_vec();
        workers.sort_unstable();
        let (combination, worker_type) = (lease.combination, lease.worker_type);
        Ok(RoundDecision::Place(Placed { combination, worker_type, workers }))
    }
}
