//! The partial allocation mechanism: each job's time is discounted by what its presence costs the others.
//!
//!   discount_m = Π_{m' ≠ m} thr(m', X) / thr(m', X₋ₘ)
//!
//! where X maximizes Σ log thr and X₋ₘ does so without job m. No job gains by misstating its throughputs, and
//! every job keeps at least 1/e of what it had. Source: Cole, Gkatzelis and Goel (EC '13); Gavel's
//! `max_min_fairness_strategy_proof`. Jobs of one class share one leave-one-out program.

use std::sync::Arc;

use crate::allocation::Allocation;
use crate::index::{CombinationId, Id, JobIndex};
use crate::problem::{Problem, ProblemBuilder, ProblemError};
use crate::program::Classes;
use crate::workload::Combination;

/// The problem without one of its jobs.
pub(super) fn without(problem: &Problem, left_out: JobIndex) -> Result<Problem, ProblemError> {
    let mut builder = ProblemBuilder::new(Arc::clone(problem.cluster()));
    for entity in problem.entities() {
        builder.entity(entity.clone());
    }
    for (index, job) in problem.jobs().enumerate().filter(|(index, _)| *index != left_out) {
        builder.job(job.clone(), problem.throughput().row(index));
    }
    for (name, column) in problem.extra() {
        let mut column = column.clone();
        column.remove(left_out.index());
        builder.extra(name.clone(), column);
    }
    builder.build()
}

/// The discount of every job of each class, given what each job gets with and without the class's first job.
pub(super) fn discount(with: &Allocation, without: &Allocation, left_out: JobIndex) -> f64 {
    let kept = with.effective_throughput().enumerate().filter(|(job, _)| *job != left_out);
    let logs = kept.zip(without.effective_throughput()).map(|((_, with), without)| (with / without).ln());
    // Rounding may make what is 1 a little more.
    logs.sum::<f64>().exp().min(1.0)
}

/// The rows of an allocation, each multiplied by its job's discount.
pub(super) fn discounted(
    allocation: &Allocation,
    classes: &Classes,
    discounts: &[f64],
) -> Vec<(Combination<JobIndex>, Vec<f64>)> {
    let row = |(id, combination): (CombinationId, &Combination<JobIndex>)| {
        let discount = discounts[classes.class_of(combination.first().index())];
        (*combination, allocation.shares().row(id).iter().map(|share| share * discount).collect())
    };
    allocation.combinations().enumerate().map(row).collect()
}
