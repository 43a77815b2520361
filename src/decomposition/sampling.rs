//! Samples of jobs: prices of all jobs are searched from those of ever larger samples.

use crate::decomposition::tolerances::SAMPLE_GROWTH;

/// The start of a search over all n jobs: `next` improves a start by a search over every `step`-th job, from the smallest
/// sample on, which has at most `sample_max` jobs; where it gives nothing, the start stays.
pub(super) fn by_samples<S>(
    (n, sample_max): (usize, usize),
    mut start: S,
    mut next: impl FnMut(usize, &S) -> Option<S>,
) -> S {
    let (mut step, mut steps) = (1, Vec::new());
    while n / step > sample_max {
        step *= SAMPLE_GROWTH.min((n / step).div_ceil(sample_max));
        steps.push(step);
    }
    for step in steps.into_iter().rev() {
        start = next(step, &start).unwrap_or(start);
    }
    start
}
