//! Controls of learned policies: rules that decide by the same actions, and learn nothing.

use serde::{Deserialize, Serialize};

use super::partial_decision::PartialDecision;
use apportion::index::{Id, JobIndex, WorkerTypeId};
use apportion::problem::Problem;
use apportion::workload::random::Stream;

/// A rule that learns nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// A uniformly drawn action: any that fits, or stopping once a job has been given workers.
    Uniform,
    /// A uniformly drawn action that fits; stops when none is left.
    UniformBusy,
    /// The job and type that fit with the least remaining time on that type × workers; stops when none is left.
    LeastService,
}

impl Rule {
    /// The next gang of a decision; none = stop. Draws at most one number.
    pub(super) fn next(
        self,
        problem: &Problem,
        partial: &PartialDecision,
        draws: &mut Stream,
    ) -> Option<(JobIndex, WorkerTypeId)> {
        let fits = |(job, kind): &(JobIndex, WorkerTypeId)| partial.fits(problem, *job, *kind);
        let pairs = partial
            .open(problem)
            .flat_map(|job| problem.cluster().types().ids().map(move |kind| (job, kind)))
            .filter(fits);
        if self == Self::LeastService {
            let service = |(job, kind): &(JobIndex, WorkerTypeId)| {
                let active = &problem.jobs()[*job];
                active.steps_remaining.get() / problem.throughput()[(*job, *kind)]
                    * f64::from(active.scale_factor)
            };
            return pairs.min_by(|one, other| {
                let ids = |(job, kind): &(JobIndex, WorkerTypeId)| (problem.jobs()[*job].id, kind.index());
                service(one).total_cmp(&service(other)).then(ids(one).cmp(&ids(other)))
            });
        }
        let pairs: Vec<_> = pairs.collect();
        let n_actions = pairs.len() + usize::from(self == Self::Uniform && partial.has_placed());
        if pairs.is_empty() {
            return None;
        }
        pairs.get(draws.below(n_actions)).copied()
    }
}
