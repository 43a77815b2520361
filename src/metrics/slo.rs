//! Service-level objectives: measured jobs that missed their deadline.

use super::completion::JobRecord;

/// The part of its deadline by which rounding may make a job late: its completion is a sum over its slices.
const ROUNDING: f64 = 1e-9;

/// Measured jobs that have an SLO and missed it, or were given up; none if no job has one.
pub fn violations(jobs: &[JobRecord]) -> Option<usize> {
    let with_slo = || jobs.iter().filter_map(|job| job.slo.map(|slo| (job, slo)));
    let missed = |job: &JobRecord, slo: f64| job.jct.is_none_or(|jct| jct.get() > slo * (1.0 + ROUNDING));
    with_slo().next()?;
    Some(with_slo().filter(|(job, slo)| missed(job, slo.get())).count())
}
