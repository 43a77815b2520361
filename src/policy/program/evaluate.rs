//! The variables of an objective at any allocation, with throughputs as a policy's view has them.

use crate::allocation::Allocation;
use crate::index::{Id, JobIndex, WorkerTypeId};
use crate::policy::view::ThroughputView;
use crate::problem::Problem;
use crate::program::Point;

/// The variables of an objective over single jobs, pairs included in what they get.
pub(super) fn point(problem: &Problem, view: &ThroughputView, allocation: &Allocation) -> Point {
    let (n, k) = (problem.n_jobs(), problem.n_types());
    let mut point = Point::zero(n, k, |_| true);
    let mut seen = vec![0.0; k];
    let mut add = |job: JobIndex, kind: usize, share: f64, throughput: f64| {
        point.add(job.index(), kind, share * throughput, share);
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
                    add(combination.first(), kind, share, seen[kind]);
                }
                Some(second) => {
                    let together = problem.colocated(*combination, worker_type).unwrap_or_default();
                    for (job, measured) in [combination.first(), second].into_iter().zip(together) {
                        add(job, kind, share, measured * view.factor(problem, job, worker_type));
                    }
                }
            }
        }
    }
    point
}
