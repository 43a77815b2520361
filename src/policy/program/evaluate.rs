//! A policy's objective at any allocation, for throughputs as the policy sees them or as they were measured.

use crate::allocation::Allocation;
use crate::index::{Id, JobIndex, WorkerTypeId};
use crate::policy::decision::PolicyError;
use crate::policy::program::entity_level::ReachedLevel;
use crate::policy::program::hierarchy::Hierarchy;
use crate::policy::program::policy::ProgramPolicy;
use crate::policy::program::reduce::{Selection, reduce};
use crate::policy::view::ThroughputView;
use crate::problem::Problem;
use crate::program::{Got, Point};
use crate::spec::Fidelity;

impl ProgramPolicy {
    /// The policy's objective at an allocation, for measured throughputs; `None` if the policy itself sees these.
    ///
    /// # Errors
    /// As [`value_of`](Self::value_of).
    pub fn measured_value_of(
        &self,
        problem: &Problem,
        allocation: &Allocation,
    ) -> Result<Option<f64>, PolicyError> {
        if self.options.view == ThroughputView::Measured {
            return Ok(None);
        }
        self.value_by_view(problem, allocation, &ThroughputView::Measured).map(Some)
    }

    /// The policy's objective at any allocation, as if this policy had given it; jobs have accumulated the isolated time that
    /// the problem states.
    ///
    /// # Errors
    /// If the problem lacks what the policy reads.
    pub fn value_of(&self, problem: &Problem, allocation: &Allocation) -> Result<f64, PolicyError> {
        self.value_by_view(problem, allocation, &self.options.view)
    }

    fn value_by_view(
        &self,
        problem: &Problem,
        allocation: &Allocation,
        view: &ThroughputView,
    ) -> Result<f64, PolicyError> {
        self.check_data(problem)?;
        let selection = Selection { pairs: false, view, ..self.selection(&[], &[], false) };
        let reduced = reduce(problem, &selection);
        let bound = self
            .options
            .objective
            .bind(&reduced.instance)
            .map_err(|error| self.bind_error(&error, &reduced))?;
        let point = point(problem, view, allocation);
        let published = self.options.fidelity == Fidelity::Published;
        let hierarchy =
            self.options.hierarchical.then(|| Hierarchy::new(problem, &reduced.classes, published));
        let level = hierarchy.as_ref().and_then(|hierarchy| ReachedLevel::unraised(&bound, Some(hierarchy)));
        let reached = level.zip(bound.throughputs(&point));
        Ok(reached.map_or_else(|| bound.value(&point), |((level, _), reached)| level.at(&reached)))
    }
}

/// The variables of an objective over single jobs, whose throughput, time and workers include those in pairs.
fn point(problem: &Problem, view: &ThroughputView, allocation: &Allocation) -> Point {
    let (n, k) = (problem.n_jobs(), problem.n_types());
    let mut point = Point::zero(n, k, |_| true);
    let mut seen = vec![0.0; k];
    let mut add = |job: JobIndex, kind: usize, share: f64, (throughput, n_jobs): (f64, f64)| {
        let workers = share * f64::from(problem.jobs()[job].scale_factor) / n_jobs;
        point.add(job.index(), kind, Got { throughput: share * throughput, time: share, workers });
    };
    for (id, combination) in allocation.combinations().enumerate() {
        for (kind, share) in allocation.shares().row(id).iter().copied().enumerate() {
            if share == 0.0 {
                continue;
            }
            let worker_type = WorkerTypeId::from_index(kind);
            match combination.second() {
                None => {
                    view.row(problem, combination.first(), &mut seen);
                    add(combination.first(), kind, share, (seen[kind], 1.0));
                }
                Some(second) => {
                    let together = problem.colocated(*combination, worker_type).unwrap_or_default();
                    for (job, measured) in [combination.first(), second].into_iter().zip(together) {
                        add(job, kind, share, (measured * view.factor(problem, job, worker_type), 2.0));
                    }
                }
            }
        }
    }
    point
}
