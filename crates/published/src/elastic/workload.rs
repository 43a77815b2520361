//! Workloads of Poisson arrivals, any job type of the matrix, and durations as of Gavel's shorter jobs.

use thiserror::Error;

use crate::elastic::SLOT_S;
use crate::elastic::ladders::Ladders;
use crate::world::WorldJob;
use apportion::index::{Id, JobTypeId};
use apportion::workload::random::SeedStreams;

/// Options of a workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkloadOptions {
    /// The number of jobs.
    pub n_jobs: usize,
    /// Mean arrivals in a slot.
    pub rate_per_slot: f64,
    /// Powers of ten between which a job's minutes on one worker of its fastest type are drawn, uniformly in the power.
    pub minutes_log10: (f64, f64),
}

impl Default for WorkloadOptions {
    fn default() -> Self {
        Self { n_jobs: 60, rate_per_slot: 3.0, minutes_log10: (1.5, 3.0) }
    }
}

/// An option that is out of range.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{what} is {value}, expected {expected}")]
pub struct WorkloadError {
    /// The name of the option.
    what: &'static str,
    /// The value of the option.
    value: String,
    /// The values that are allowed, in words.
    expected: &'static str,
}

/// Draws a workload.
///
/// # Errors
/// If an option is out of range.
pub fn generate(
    ladders: &Ladders,
    options: &WorkloadOptions,
    seed: u64,
) -> Result<Vec<WorldJob>, WorkloadError> {
    check(options)?;
    let streams = SeedStreams::new(seed);
    let (mut types, mut minutes) = (streams.stream("elastic types"), streams.stream("elastic minutes"));
    let mut arrivals = streams.stream("elastic arrivals");
    let (least, most) = options.minutes_log10;
    let mut arrival_s = 0.0;
    let job = |_| {
        let job_type = JobTypeId::from_index(types.below(ladders.n_job_types()));
        let alone_s = 60.0 * 10_f64.powf(minutes.uniform_in(least, most));
        let work = alone_s * ladders.fastest_alone(job_type);
        let job = WorldJob { job_type, workers: 0, work, work_estimated: work, arrival_s, owner: 0 };
        arrival_s += arrivals.exponential(SLOT_S / options.rate_per_slot);
        job
    };
    Ok((0..options.n_jobs).map(job).collect())
}

fn check(options: &WorkloadOptions) -> Result<(), WorkloadError> {
    let fault = |what, value: String, expected| Err(WorkloadError { what, value, expected });
    let rate = options.rate_per_slot;
    if !(rate.is_finite() && rate > 0.0) {
        return fault("the rate", rate.to_string(), "a number of jobs a slot above 0");
    }
    let (least, most) = options.minutes_log10;
    if !(0.0 <= least && least <= most && most <= MINUTES_LOG10_MAX) {
        return fault("the range of minutes", format!("10^{least} to 10^{most}"), "two powers from 0 to 6");
    }
    Ok(())
}

/// The largest power of ten of a job's minutes: about two years.
const MINUTES_LOG10_MAX: f64 = 6.0;
