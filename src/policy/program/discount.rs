//! The partial allocation mechanism: each job's time is discounted by what its presence costs the others.
//!
//!   discount_m = Π_{m' ≠ m} thr(m', X) / thr(m', X₋ₘ)
//!
//! where X maximizes Σ log thr and X₋ₘ does so without job m. No job gains by misstating its throughputs, and
//! every job keeps at least 1/e of what it had. Source: Cole, Gkatzelis and Goel (EC '13); Gavel's
//! `max_min_fairness_strategy_proof`. Jobs of one class share one leave-one-out program, which is the program of all
//! with one job less in that class.

use crate::allocation::Allocation;
use crate::index::{CombinationId, Id, JobIndex};
use crate::policy::program::options::ProgramOptions;
use crate::policy::program::reduce::Reduced;
use crate::program::{Classes, Instance};
use crate::workload::Combination;

/// Whether the decisions of a policy can be discounted. They cannot where time taken from one job could break a
/// constraint that other jobs are part of.
pub(super) fn fits(options: &ProgramOptions) -> bool {
    let mut constraints = options.objective.constraints().iter();
    let together = constraints.any(|constraint| constraint.droppable || constraint.subject.is_none());
    !(options.pairs || together || options.objective.depends_on_other_jobs())
}

/// The reduced problem without one job of member `left_out`; none if there is no other job. Only the instance is
/// without that job; the classes are still those of all jobs.
pub(super) fn without(reduced: &Reduced, left_out: usize) -> Option<Reduced> {
    let mut remaining = reduced.clone();
    let instance = &mut remaining.instance;
    if instance.multiplicity[left_out] > 1.0 {
        instance.multiplicity[left_out] -= 1.0;
        return Some(remaining);
    }
    remove(instance, left_out);
    remaining.equal_share.remove(left_out);
    (remaining.instance.n_members() > 0).then_some(remaining)
}

/// Takes a member out of an instance without pairs.
fn remove(instance: &mut Instance, member: usize) {
    instance.multiplicity.remove(member);
    for column in instance.data.values_mut() {
        column.remove(member);
    }
    if !instance.dropped.is_empty() {
        instance.dropped.remove(member);
    }
    let k = instance.n_types();
    instance.throughput.drain(member * k..(member + 1) * k);
    instance.scale_factor.remove(member);
}

/// The discount of a job of member `left_out`. `with` has the throughput of one job of each member in the presence of
/// that job, [members]; `without` in its absence, for the members that remain.
pub(super) fn discount(reduced: &Reduced, left_out: usize, with: &[f64], without: &[f64]) -> f64 {
    let others = reduced
        .instance
        .multiplicity
        .iter()
        .enumerate()
        .map(|(member, n_jobs)| if member == left_out { n_jobs - 1.0 } else { *n_jobs });
    let left = others.zip(with).filter(|(n_jobs, _)| *n_jobs > 0.0);
    let logs = left.zip(without).map(|((n_jobs, with), without)| n_jobs * (with / without).ln());
    // Rounding may raise a discount of 1 a little above 1.
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
