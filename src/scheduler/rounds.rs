//! Rounds: a policy and the mechanism, without a table of jobs.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::decided::{Decided, DecisionError, RestoreError};
use super::options::{EmptyCluster, Options, TypeDraws};
use super::policy_thread::{Answered, DecisionRequest, PolicyThread};
use crate::cluster::Cluster;
use crate::index::{Id, IndexVec, JobId, JobIndex, WorkerTypeId};
use crate::mechanism::{IdleWorkers, Mechanism, MechanismState, Rules};
use crate::policy::{Decision, Policy, PolicyError, TypeOrder};
use crate::problem::{Problem, ProblemError};
use crate::units::{Seconds, Steps};
use crate::workload::Combination;
use crate::workload::python_random::PythonRandom;
use crate::workload::random::{SeedStreams, Stream};

/// The start of a round, as the keeper of the job table sees it: the questions of [`Rounds`] to it.
pub trait Situation {
    /// Start of the round.
    fn now(&self) -> Seconds;
    /// Active jobs.
    fn n_jobs(&self) -> usize;
    /// The policy's problem.
    ///
    /// # Errors
    /// If it cannot be stated.
    fn problem(&mut self) -> Result<Problem, ProblemError>;
    /// The throughput of a job alone, or of both members of a pair together, in steps/s; 0 where one cannot run.
    fn throughput(&self, jobs: Combination<JobId>, worker_type: WorkerTypeId) -> f64;
    /// Notes a decision that is adopted, on a problem of the round at which the policy was `asked`. Returns whether any pair that
    /// it counts on was found unable to run.
    fn decided(&mut self, asked: Seconds, problem: &Problem, decision: &Decision) -> bool;
    /// Notes that the policy was asked and gave no decision.
    fn refused(&mut self, problem: &Problem, error: &PolicyError) {
        let _ = (problem, error);
    }
}

/// The source of random orders of worker types.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Draws {
    Stream(Stream),
    Python(Box<PythonRandom>),
}

/// The state of [`Rounds`] that must survive a checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoundsState {
    mechanism: MechanismState,
    policy: serde_json::Value,
    type_order: TypeOrder,
    draws: Draws,
    /// The order of the last round, if orders are drawn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    order: Vec<WorkerTypeId>,
    /// Whether the policy is to be asked again at the next round, due or not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    unanswered: bool,
}

impl RoundsState {
    /// Drops the policy's state: the policy that replaces it is asked at the next round.
    pub(super) fn forget_policy(&mut self) {
        (self.policy, self.unanswered) = (serde_json::Value::Null, true);
    }

    /// This state with the policy's state of another one, if it has none itself.
    pub(crate) fn or_policy_of(mut self, other: &Self) -> Self {
        if self.policy.is_null() {
            self.policy.clone_from(&other.policy);
        }
        self
    }

    /// The jobs of the mechanism, in no order.
    pub(super) fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.mechanism.jobs()
    }
}

/// A decision, and the jobs of its problem by position.
pub type Answer = (Decision, IndexVec<JobIndex, JobId>);

/// A [`Policy`] and the [`Mechanism`]: it decides when to ask the policy, and passes decisions to the mechanism. Allocation →
/// priorities → greedy selection → placement.
///
/// It keeps no table of jobs: the owner of the jobs tells the [mechanism](Self::mechanism_mut) about jobs that come and go,
/// received time and workers, and calls [`decide`](Self::decide) at the start of each round. [`Scheduler`](super::Scheduler) is
/// such an owner; the simulator is another.
#[derive(Debug)]
pub struct Rounds {
    policy: PolicyThread,
    mechanism: Mechanism,
    empty_cluster: EmptyCluster,
    /// Types with workers, fastest first.
    types: Vec<WorkerTypeId>,
    type_order: TypeOrder,
    draws: Draws,
    /// The order of types in this round.
    order: Vec<WorkerTypeId>,
    /// Whether a question has gone without a decision: the policy is asked again at the next round, due or not.
    unanswered: bool,
    /// The next lease to be placed, for an owner that asks for placements one by one.
    pub(super) next: usize,
}

impl Rounds {
    /// A policy behind the mechanism, for a cluster whose types are in order of speed
    /// (see [`Options::usable`]).
    pub fn new(policy: Box<dyn Policy>, cluster: &Cluster, options: &Options) -> Self {
        let mechanism = Mechanism::new(cluster, options.mechanism);
        let draws = match options.type_draws {
            TypeDraws::Stream => Draws::Stream(SeedStreams::new(options.seed).stream("worker_types")),
            TypeDraws::Python => Draws::Python(Box::new(PythonRandom::new(i128::from(options.seed) + 5))),
        };
        let has_workers = |id: &WorkerTypeId| mechanism.workers().n_up(*id) > 0;
        let types: Vec<_> = cluster.types().ids().filter(has_workers).collect();
        Self {
            policy: PolicyThread::new(policy),
            mechanism,
            empty_cluster: options.empty_cluster,
            order: types.clone(),
            types,
            type_order: TypeOrder::Speed,
            draws,
            unanswered: false,
            next: 0,
        }
    }

    /// The policy's name.
    pub fn policy_name(&self) -> &str {
        self.policy.name()
    }

    /// The mechanism: after [`decide`](Self::decide), its [leases](Mechanism::leases) are the round's.
    #[inline]
    pub fn mechanism(&self) -> &Mechanism {
        &self.mechanism
    }

    /// The mechanism, to report jobs, workers and received time to it.
    #[inline]
    pub fn mechanism_mut(&mut self) -> &mut Mechanism {
        &mut self.mechanism
    }

    /// Decides a round: [`Mechanism::leases`] has the result, whatever the outcome of asking the policy.
    ///
    /// Without a deadline the policy decides on the caller's thread, and a late answer is waited for. With one it decides on a
    /// thread of its own, and is waited for at most that long in total; with a deadline of zero, not at all.
    pub fn decide(&mut self, situation: &mut dyn Situation, mut deadline: Option<Duration>) -> Decided {
        self.mechanism.begin_round(situation.now());
        let mut decided = self.adopt_late(situation, &mut deadline);
        let ask_empty = self.empty_cluster == EmptyCluster::Resets;
        if self.may_ask(&decided)
            && (self.mechanism.due(situation.now()) || self.unanswered)
            && (situation.n_jobs() > 0 || ask_empty)
        {
            decided = self.ask(situation, &mut deadline);
        }
        if self.type_order == TypeOrder::Shuffled {
            self.order.copy_from_slice(&self.types);
            match &mut self.draws {
                Draws::Stream(stream) => stream.shuffle(&mut self.order),
                Draws::Python(python) => python.shuffle(&mut self.order),
            }
        }
        self.go_without(&decided);
        self.mechanism.assign(&self.order);
        let at_once = self.mechanism.options().idle_workers == IdleWorkers::Recompute;
        if at_once
            && self.mechanism.has_changed()
            && self.may_ask(&decided)
            && self.mechanism.waits_beside_idle()
        {
            decided = self.ask(situation, &mut deadline);
            self.go_without(&decided);
            self.mechanism.assign_again(&self.order);
        }
        decided
    }

    /// Gives workers that have become idle inside the round to waiting jobs, until it ends: by the order of worker types at its
    /// start, as [`Mechanism::refill`] does. Returns the number of new leases, the last of [`Mechanism::leases`].
    pub fn refill(&mut self, now: Seconds) -> usize {
        self.mechanism.refill(now, &self.order)
    }

    /// Gives idle workers as [`refill`](Self::refill) does, to all waiting jobs, including those that came after the last
    /// allocation. If the policy gives idle workers to no job without a share, and one of those could use some, it is asked at
    /// once, as at the start of a round; accounts are settled then. Returns the outcome of asking the policy, and the number of new
    /// leases.
    pub fn refill_with_arrivals(
        &mut self,
        situation: &mut dyn Situation,
        mut deadline: Option<Duration>,
    ) -> (Decided, usize) {
        let (mut decided, now) = (Decided::Unchanged, situation.now());
        let mut n_new = self.mechanism.refill_with_arrivals(now, &self.order);
        let at_once = self.mechanism.options().idle_workers == IdleWorkers::Recompute;
        if at_once
            && self.mechanism.has_changed()
            && self.may_ask(&decided)
            && self.mechanism.waits_beside_idle()
        {
            decided = self.ask(situation, &mut deadline);
            n_new += self.mechanism.refill_with_arrivals(now, &self.order);
        }
        (decided, n_new)
    }

    /// Whether the policy is here and has not failed at this round.
    fn may_ask(&self, decided: &Decided) -> bool {
        self.policy.request().is_none() && !matches!(decided, Decided::Failed { .. })
    }

    /// Lets jobs that came after the last decision have workers that would idle, if there is no new decision.
    fn go_without(&mut self, decided: &Decided) {
        if matches!(decided, Decided::Late { .. } | Decided::Failed { .. }) {
            self.mechanism.admit_all();
        }
        self.unanswered |= matches!(decided, Decided::Failed { .. });
    }

    /// Asks the policy: on this thread if there is no deadline, else on its own.
    fn ask(&mut self, situation: &mut dyn Situation, deadline: &mut Option<Duration>) -> Decided {
        let asked = situation.now();
        if deadline.is_none() {
            return match self.recompute(situation) {
                Ok(_) => Decided::Fresh { asked },
                Err(error) => Decided::Failed { error },
            };
        }
        let request = DecisionRequest { asked, n_changes: self.mechanism.n_changes() };
        let sent = situation
            .problem()
            .map_err(DecisionError::from)
            .and_then(|problem| Ok(self.policy.send(problem, request)?));
        match sent {
            Ok(()) => self.adopt_late(situation, deadline),
            Err(error) => Decided::Failed { error },
        }
    }

    /// Waits for the policy, if it has been asked, and adopts its answer. An answer on jobs that are all gone is dropped.
    fn adopt_late(&mut self, situation: &mut dyn Situation, deadline: &mut Option<Duration>) -> Decided {
        let Some(DecisionRequest { asked, n_changes }) = self.policy.request() else {
            return Decided::Unchanged;
        };
        let mut answered = self.policy.wait(Some(Duration::ZERO));
        if answered.is_none() {
            answered = self.policy.wait(*deadline);
            *deadline = deadline.map(|_| Duration::ZERO);
        }
        let (problem, decision) = match answered {
            None => return Decided::Late { since: asked },
            Some(Ok(Answered { problem, answer: Ok(decision) })) => (problem, decision),
            Some(Ok(Answered { problem, answer: Err(error) })) => {
                return Decided::Failed { error: by_id(error, &problem).into() };
            }
            Some(Err(error)) => return Decided::Failed { error: error.into() },
        };
        let is_here = |id| self.mechanism.has_job(id);
        if problem.n_jobs() > 0 && !problem.jobs().iter().any(|job| is_here(job.id)) {
            self.unanswered = true;
            return Decided::Unchanged;
        }
        let has_changed = self.mechanism.n_changes() > n_changes;
        self.adopt(situation, asked, &problem, &decision);
        if has_changed {
            self.mechanism.note_change();
        }
        Decided::Fresh { asked }
    }

    /// Asks the policy on this thread, settles accounts and adopts the decision. It does not assign.
    ///
    /// # Errors
    /// If the problem cannot be stated, or the policy fails: then nothing has changed.
    pub fn recompute(&mut self, situation: &mut dyn Situation) -> Result<Answer, DecisionError> {
        let problem = situation.problem()?;
        let decision = self.policy.decide(&problem).map_err(|error| {
            situation.refused(&problem, &error);
            by_id(error, &problem)
        })?;
        let asked = situation.now();
        let ids = self.adopt(situation, asked, &problem, &decision);
        Ok((decision, ids))
    }

    /// Resets the accounts of the mechanism and adopts a decision.
    fn adopt(
        &mut self,
        situation: &mut dyn Situation,
        asked: Seconds,
        problem: &Problem,
        decision: &Decision,
    ) -> IndexVec<JobIndex, JobId> {
        let now = situation.now();
        self.unanswered = false;
        self.mechanism.reset(now);
        let ids: IndexVec<JobIndex, JobId> = problem.jobs().iter().map(|job| job.id).collect();
        let rules = Rules {
            skip_zero_priority: decision.rules.skip_zero_priority,
            pair_fillers: decision.rules.pair_fillers,
            by_speed: decision.rules.type_order == TypeOrder::Speed,
            within_shares: decision.rules.within_shares,
        };
        let throughput = |jobs: Combination<JobId>, worker_type| situation.throughput(jobs, worker_type);
        self.mechanism.adopt(&decision.allocation, &ids, rules, &throughput);
        self.mechanism.ask_again_at(decision.rules.recompute_after.map(|after| now + after));
        if self.type_order != decision.rules.type_order {
            self.type_order = decision.rules.type_order;
            self.order.copy_from_slice(&self.types);
        }
        if situation.decided(asked, problem, decision) {
            self.mechanism.note_change();
        }
        ids
    }

    /// The state for [`restore`](Self::restore). A policy that is deciding is saved as it was when it was asked, to be asked again.
    pub fn state(&self) -> RoundsState {
        RoundsState {
            mechanism: self.mechanism.state(),
            policy: self.policy.state(),
            type_order: self.type_order,
            draws: self.draws.clone(),
            order: if self.type_order == TypeOrder::Shuffled { self.order.clone() } else { Vec::new() },
            unanswered: self.unanswered || self.policy.request().is_some(),
        }
    }

    /// Changes the steps to go of a job in the policy's memory by `more`, which may be negative.
    ///
    /// # Errors
    /// If the policy is deciding.
    pub(crate) fn restate_steps(&mut self, job: JobId, more: Steps) -> Result<(), PolicyError> {
        self.policy.restate_steps(job, more)
    }

    /// Restores the state of [`state`](Self::state), for the same cluster, policy and options.
    ///
    /// # Errors
    /// If the state does not fit these, or the policy is deciding: then nothing has changed.
    pub fn restore(&mut self, cluster: &Cluster, state: &RoundsState) -> Result<(), RestoreError> {
        let mechanism = Mechanism::restore(cluster, *self.mechanism.options(), &state.mechanism)
            .map_err(|reason| RestoreError::Mechanism { reason })?;
        let order = if state.order.is_empty() { self.types.clone() } else { state.order.clone() };
        if order.len() != self.types.len() || !self.types.iter().all(|of| order.contains(of)) {
            let reason = "the order of worker types is of others".to_owned();
            return Err(RestoreError::Mechanism { reason });
        }
        self.policy.restore(&state.policy)?;
        (self.mechanism, self.order) = (mechanism, order);
        self.type_order = state.type_order;
        self.draws = state.draws.clone();
        self.unanswered = state.unanswered;
        Ok(())
    }
}

/// An error of a policy, its jobs by the indices of their ids.
fn by_id(error: PolicyError, problem: &Problem) -> PolicyError {
    error.with_jobs(|position| problem.jobs().as_slice().get(position).map_or(position, |job| job.id.index()))
}
