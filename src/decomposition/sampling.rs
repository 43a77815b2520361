//! Samples of jobs: the search for prices over all jobs starts at the prices of a sample, found from a smaller sample.

use crate::decomposition::tolerances::SAMPLE_GROWTH;

/// The start of a search over all n jobs, improved by searches over samples of them. `next` gives the start that a search over
/// every `step`-th job leaves; where it gives none, the start before it stays. The first sample has about `sample_max` jobs
/// at most, and each one after it at most [`SAMPLE_GROWTH`] times as many as the one before.
pub(super) fn by_samples<S>(
    n: usize,
    sample_max: usize,
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
