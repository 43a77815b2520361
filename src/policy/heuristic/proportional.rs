//! Proportional: every job has the same time, spread over the worker types in proportion to their workers.
//!
//!   x`[m,j]` = λ·w_j / Σ_k w_k,   λ = min(1, Σ_k w_k / Σ_m s_m)
//!
//! The symbols are those of [`isolated`](super::isolated). λ is the largest level at which no job has more than
//! all of its time and no worker type is given away more than once: the equal share by which fairness policies
//! normalize, scaled down to what the cluster holds. Time on types that a job cannot use is left unallocated, except
//! under `published`. Where [`isolated`](super::isolated) gives every job the same workers, this gives every job the same
//! time, however many workers it needs at once.
//!
//! Source: Narayanan et al., OSDI '20, section 4.1 (the equal share). The published code only normalizes by it,
//! with λ = 1, which is no allocation as soon as jobs ask for more workers than there are. Closed form, O(n·K).

use crate::policy::decision::{Decision, Policy, PolicyError};
use crate::policy::heuristic::isolated::AGNOSTIC;
use crate::policy::heuristic::workers::{decide, keep_where_it_runs};
use crate::problem::Problem;
use crate::spec::Fidelity;
use crate::workload::Combination;

const NAME: &str = "proportional";

/// Every job on all worker types, by their size, for the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Proportional {
    /// Fidelity to the published rule; under `corrected` a job has no time where it cannot run.
    pub fidelity: Fidelity,
}

impl Policy for Proportional {
    fn name(&self) -> &str {
        NAME
    }

    fn allocate(&mut self, problem: &Problem) -> Result<Decision, PolicyError> {
        let types = problem.cluster().types();
        let n_workers: f64 = types.iter().map(|worker_type| f64::from(worker_type.n_workers)).sum();
        let asked: f64 = problem.jobs().iter().map(|job| f64::from(job.scale_factor)).sum();
        // At least one worker is asked for where there is a job; without jobs there is no row.
        let divisor = n_workers.max(asked);
        let row: Vec<f64> =
            types.iter().map(|worker_type| f64::from(worker_type.n_workers) / divisor).collect();
        let rows = problem.jobs().ids().map(|job| {
            let mut row = row.clone();
            if self.fidelity == Fidelity::Corrected {
                keep_where_it_runs(problem, job, &mut row);
            }
            (Combination::single(job), row)
        });
        decide(NAME, problem, rows, AGNOSTIC)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::heuristic::fifo::tests::problem;

    fn row(fidelity: Fidelity, sizes: &[(u32, [f64; 2])]) -> Vec<f64> {
        let decision = Proportional { fidelity }.allocate(&problem([3, 1], sizes)).unwrap();
        decision.allocation.shares().rows().flatten().copied().collect()
    }

    #[test]
    fn few_jobs_have_all_of_their_time_but_where_they_cannot_run() {
        let jobs = [(1, [2.0, 1.0]), (2, [5.0, 0.0])];
        assert_eq!(row(Fidelity::Published, &jobs), [0.75, 0.25, 0.75, 0.25]);
        assert_eq!(row(Fidelity::Corrected, &jobs), [0.75, 0.25, 0.75, 0.0]);
        // A job of two workers has no use of a type with one.
        assert_eq!(row(Fidelity::Corrected, &[(2, [2.0, 1.0])]), [0.75, 0.0]);
    }

    #[test]
    fn many_jobs_fill_the_cluster_exactly() {
        // 8 workers asked of 4: every job has half of its time.
        let jobs = [(1, [2.0, 1.0]), (2, [5.0, 0.0]), (3, [1.0, 1.0]), (2, [1.0, 1.0])];
        assert_eq!(row(Fidelity::Published, &jobs), [0.375, 0.125].repeat(4));
    }
}
