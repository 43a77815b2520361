//! Features of a job on a worker type, scaled to similar size.

use super::partial_decision::PartialDecision;
use apportion::index::{JobIndex, WorkerTypeId};
use apportion::problem::Problem;

/// The number of features in a row.
pub const N_FEATURES: usize = 13;

/// The largest magnitude of a feature.
pub(super) const MOST: f32 = 8.0;

/// Position of the flag of *stop*, the last feature.
const STOP: usize = N_FEATURES - 1;

fn bounded(value: f64) -> f32 {
    (value as f32).clamp(-MOST, MOST)
}

fn free_part(problem: &Problem, partial: &PartialDecision, kind: WorkerTypeId) -> f64 {
    f64::from(partial.free(kind)) / f64::from(problem.cluster().types()[kind].n_workers.max(1))
}

/// ln of the workers that jobs wait for over free workers, 1 added to both; / 2.
fn crowding(partial: &PartialDecision) -> f64 {
    ((partial.n_wanted() as f64 + 1.0) / (partial.n_free() as f64 + 1.0)).ln() / 2.0
}

/// Writes the features of a job on a type on which it runs:
///
/// | number | feature |
/// |---|---|
/// | 0, 1 | ln of the hours left there, and on its fastest type; / 4 |
/// | 2 | ln of the speed there over the speed on its fastest type; / 2 |
/// | 3 | the same less its mean over all jobs: what it gains there that others would not; / 2 |
/// | 4 | log₂ of the workers that it needs; / 3 |
/// | 5 | ln of 1 + hours since it arrived; / 4 |
/// | 6 | ln of its weight; / 2 |
/// | 7, 8 | the last decision had it there; elsewhere |
/// | 9 | the part of the type that is free |
/// | 10 | ln of the workers that jobs wait for over those that are free, 1 added to both; / 2 |
/// | 11 | the part of the other jobs with less service left, and half of those with as much |
/// | 12 | 1 for *stop*, which has 0 for all else but number 10 |
pub(super) fn of_pair(
    problem: &Problem,
    partial: &PartialDecision,
    (job, kind): (JobIndex, WorkerTypeId),
    row: &mut [f32],
) {
    let (active, facts) = (&problem.jobs()[job], partial.facts(job));
    let ratio = (problem.throughput()[(job, kind)] / facts.fastest).ln();
    let held_elsewhere = facts.held.is_some_and(|held| held != kind);
    let numbers = [
        (facts.hours.ln() - ratio) / 4.0,
        facts.hours.ln() / 4.0,
        ratio / 2.0,
        (ratio - partial.mean_ratio(kind)) / 2.0,
        f64::from(active.scale_factor).log2() / 3.0,
        (active.elapsed.get() / 3600.0).ln_1p() / 4.0,
        active.weight.ln() / 2.0,
        f64::from(u8::from(facts.held == Some(kind))),
        f64::from(u8::from(held_elsewhere)),
        free_part(problem, partial, kind),
        crowding(partial),
        facts.rank,
        0.0,
    ];
    for (place, number) in row.iter_mut().zip(numbers) {
        *place = bounded(number);
    }
}

/// Writes the features of stopping.
pub(super) fn of_stop(partial: &PartialDecision, row: &mut [f32]) {
    row.fill(0.0);
    row[10] = bounded(crowding(partial));
    row[STOP] = 1.0;
}
