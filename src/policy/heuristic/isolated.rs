//! Isolated: every job has the time it would have on an n-th of the cluster of its own.
//!
//!   x`[m,j]` = w_j / (n·s_m), each row divided by max(1, its sum)
//!
//! | symbol | shape | unit    | here                              |
//! |--------|-------|---------|-----------------------------------|
//! | x      | [n×K] | 1       | shares                            |
//! | w_j    | `[K]`   | workers | `cluster.types()[j].n_workers`    |
//! | s_m    | `[n]`   | workers | `jobs()[m].scale_factor`          |
//!
//! Throughputs and weights do not matter. Time on types that a job cannot use is left unallocated, except under
//! `published`. Closed form, O(n·K). Source: Narayanan et al., OSDI '20, section 4 (the isolated share of finish-time
//! fairness).

use crate::index::WorkerTypeId;
use crate::policy::decision::{Decision, Policy, PolicyError, RoundRules, TypeOrder};
use crate::policy::heuristic::workers::{alphabetical, decide, keep_where_it_runs};
use crate::problem::Problem;
use crate::spec::Fidelity;
use crate::workload::Combination;

const NAME: &str = "isolated";

/// Every job on an n-th of the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Isolated {
    /// Fidelity to the published rule; under `corrected` a job has no time where it cannot run.
    pub fidelity: Fidelity,
}

impl Policy for Isolated {
    fn name(&self) -> &str {
        NAME
    }

    fn allocate(&mut self, problem: &Problem) -> Result<Decision, PolicyError> {
        let rows = shares(problem).into_iter().zip(problem.jobs().ids());
        let rows = rows.map(|(mut row, job)| {
            if self.fidelity == Fidelity::Corrected {
                keep_where_it_runs(problem, job, &mut row);
            }
            (Combination::single(job), row)
        });
        decide(NAME, problem, rows, AGNOSTIC)
    }
}

/// The rules of a policy that does not look at speed.
pub(super) const AGNOSTIC: RoundRules = RoundRules {
    skip_zero_priority: false,
    type_order: TypeOrder::Shuffled,
    pair_fillers: false,
    within_shares: false,
    recompute_after: None,
};

/// The isolated share: [n × K].
///
/// ```
/// # use std::sync::Arc;
/// # use apportion::problem::{ActiveJob, ProblemBuilder};
/// # use apportion::index::{Id, JobId};
/// use apportion::policy::heuristic::isolated::shares;
///
/// let mut problem = ProblemBuilder::new(Arc::new("v100=1,k80=1".parse()?));
/// for id in 0..4 {
///     problem.job(ActiveJob::new(JobId::from_index(id)), &[2.0, 1.0]);
/// }
/// assert_eq!(shares(&problem.build()?)[0], [0.25, 0.25]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn shares(problem: &Problem) -> Vec<Vec<f64>> {
    let n_jobs = problem.n_jobs() as f64;
    // Rows are summed in the alphabet's order, so that their last bits do not depend on how types are listed.
    let order = alphabetical(problem);
    let workers = |worker_type: &WorkerTypeId| f64::from(problem.cluster().types()[*worker_type].n_workers);
    problem
        .jobs()
        .iter()
        .map(|job| {
            let share =
                |worker_type: &WorkerTypeId| workers(worker_type) / n_jobs / f64::from(job.scale_factor);
            let time = order.iter().map(share).sum::<f64>().max(1.0);
            problem.cluster().types().ids().map(|worker_type| share(&worker_type) / time).collect()
        })
        .collect()
}

#[cfg(test)]
mod tests;
