//! Counts on the command line.

use clap::builder::RangedU64ValueParser;

use crate::exit::Failure;

/// The most jobs of a drawn workload: they are held in memory at once.
pub(crate) const JOBS_MAX: u64 = 10_000_000;

/// A parser of counts from 1 to `most`.
pub(crate) fn from_one_to(most: u64) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=most)
}

/// Refuses more than [`JOBS_MAX`] jobs in all workloads of a world.
pub(crate) fn check_workloads(n_traces: usize, n_jobs: usize) -> Result<(), Failure> {
    let n_all = (n_traces as u64).saturating_mul(n_jobs as u64);
    if n_all <= JOBS_MAX {
        return Ok(());
    }
    let message =
        format!("{n_traces} workloads of {n_jobs} jobs, expected at most {JOBS_MAX} jobs in all of them");
    Err(Failure::usage(message, None))
}
