//! [`Rounds`] as a [`RoundPolicy`]: an allocation policy and its mechanism place leases in a round, one by one.

use super::decided::{Decided, DecisionError};
use super::rounds::{Rounds, Situation};
use crate::index::{Id, JobId, JobIndex, WorkerId, WorkerTypeId};
use crate::policy::{Decision, Placed, PolicyError, RoundDecision, RoundPolicy, RoundView};
use crate::problem::{Problem, ProblemError};
use crate::units::Seconds;
use crate::workload::Combination;

/// A view of a round, as the situation in which [`Rounds`] decides.
struct RoundSituation<'a, 'b>(&'a RoundView<'b>);

impl RoundSituation<'_, '_> {
    fn index(&self, job: JobId) -> Option<JobIndex> {
        self.0.problem.jobs().enumerate().find(|(_, active)| active.id == job).map(|(index, _)| index)
    }
}

impl Situation for RoundSituation<'_, '_> {
    fn now(&self) -> Seconds {
        self.0.now
    }

    fn n_jobs(&self) -> usize {
        self.0.problem.n_jobs()
    }

    fn problem(&mut self) -> Result<Problem, ProblemError> {
        Ok(self.0.problem.clone())
    }

    fn throughput(&self, jobs: Combination<JobId>, worker_type: WorkerTypeId) -> f64 {
        let problem = self.0.problem;
        let Some(first) = self.index(jobs.first()) else { return 0.0 };
        let Some(second) = jobs.second() else { return problem.throughput()[(first, worker_type)] };
        let second = self.index(second);
        let both = second.and_then(|second| problem.colocated(Combination::pair(first, second), worker_type));
        both.map_or(0.0, |both| both.iter().sum())
    }

    fn decided(&mut self, _asked: Seconds, _problem: &Problem, _decision: &Decision) -> bool {
        false
    }
}

impl RoundPolicy for Rounds {
    fn name(&self) -> &str {
        self.policy_name()
    }

    fn begin(&mut self, view: &RoundView<'_>) -> Result<(), PolicyError> {
        let mechanism = self.mechanism_mut();
        for ran in view.ran {
            mechanism.record(ran.combination, ran.worker_type, ran.time);
        }
        for index in 0..mechanism.workers().len() {
            let worker = WorkerId::from_index(index);
            let free = |id| view.free[id].binary_search(&worker).is_ok();
            let up = mechanism.workers().worker_type(worker).is_some_and(free);
            mechanism.set_up(worker, up);
        }
        let mut situation = RoundSituation(view);
        let gone: Vec<JobId> = mechanism.jobs().filter(|job| situation.index(*job).is_none()).collect();
        for job in gone {
            mechanism.remove_job(job);
        }
        for job in view.problem.jobs() {
            if !mechanism.has_job(job.id) {
                let throughput =
                    |jobs: Combination<JobId>, worker_type| situation.throughput(jobs, worker_type);
                mechanism.add_job(job.id, job.scale_factor, &throughput);
            }
        }
        self.next = 0;
        match self.decide(&mut situation, None) {
            Decided::Unchanged | Decided::Fresh { .. } | Decided::Late { .. } => Ok(()),
            Decided::Failed { error: DecisionError::Policy(error) } => Err(error),
            Decided::Failed { error: DecisionError::Problem(error) } => {
                let policy = self.policy_name().to_owned();
                Err(PolicyError::Problem { policy, source: error })
            }
            Decided::Failed { error: error @ DecisionError::Livelock { .. } } => {
                let policy = self.policy_name().to_owned();
                Err(PolicyError::Undecided { policy, reason: error.to_string() })
            }
        }
    }

    fn next(&mut self, _view: &RoundView<'_>) -> Result<RoundDecision, PolicyError> {
        if self.next == self.mechanism().leases().len() {
            return Ok(RoundDecision::EndRound);
        }
        let lease = self.mechanism().lease(self.next);
        let mut workers = lease.workers.to_vec();
        workers.sort_unstable();
        let (combination, worker_type) = (lease.combination, lease.worker_type);
        self.next += 1;
        Ok(RoundDecision::Place(Placed { combination, worker_type, workers }))
    }
}
