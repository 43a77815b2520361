//! A boundary between rounds, as the policy sees it.

use std::sync::Arc;

use super::event::{AllocatedShares, Event, Observer};
use crate::cluster::Cluster;
use crate::index::{JobId, WorkerTypeId};
use crate::policy::{Decision, PolicyError};
use crate::problem::{Problem, ProblemError};
use crate::scheduler::Situation;
use crate::scheduler::active::Table;
use crate::units::Seconds;
use crate::workload::Combination;

/// The jobs and workers at a boundary, from which the policy's problem is made.
#[derive(Debug)]
pub(super) struct EventSnapshot<'a> {
    pub(super) now: Seconds,
    pub(super) table: &'a mut Table,
    pub(super) cluster: &'a Arc<Cluster>,
    pub(super) observer: &'a mut dyn Observer,
}

impl Situation for EventSnapshot<'_> {
    fn now(&self) -> Seconds {
        self.now
    }

    fn n_jobs(&self) -> usize {
        self.table.jobs.len()
    }

    fn problem(&mut self) -> Result<Problem, ProblemError> {
        self.table.share_equally(self.cluster);
        self.table.problem(self.now, self.cluster)
    }

    fn throughput(&self, jobs: Combination<JobId>, worker_type: WorkerTypeId) -> f64 {
        self.table.throughput(jobs, worker_type)
    }

    fn decided(&mut self, _asked: Seconds, problem: &Problem, decision: &Decision) -> bool {
        self.observer.decided(self.now, problem, decision);
        let solve = decision.solve.as_ref();
        self.observer.observe(&Event::Allocated {
            now: self.now,
            n_jobs: problem.n_jobs(),
            backend: solve.and_then(|solve| solve.backend.as_deref()),
            route: solve.map(|solve| solve.route.as_str()),
            iterations: solve.map_or(0, |solve| solve.iterations),
            fallbacks: solve.map_or(&[], |solve| solve.fallbacks.as_slice()),
            dropped: decision.dropped.iter().map(|job| problem.jobs()[*job].id).collect(),
            uncertified: decision.objective.as_ref().is_some_and(|objective| !objective.optimal),
            shares: Some(shares(problem, decision, self.cluster)),
            solve_seconds: solve.map_or(0.0, |solve| solve.seconds.total()),
        });
        self.table.try_out(problem, decision)
    }

    fn refused(&mut self, problem: &Problem, error: &PolicyError) {
        self.observer.refused(self.now, problem, error);
    }
}

/// The shares of an allocation above 0, by job and worker type.
fn shares<'a>(problem: &Problem, decision: &Decision, cluster: &'a Cluster) -> AllocatedShares<'a> {
    let allocation = &decision.allocation;
    let jobs = allocation.combinations().iter().map(|jobs| jobs.map(|job| problem.jobs()[job].id));
    AllocatedShares::of(jobs.zip(allocation.shares().rows()), cluster)
}
