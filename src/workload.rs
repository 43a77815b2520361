//! Workloads: jobs and their combinations, traces of jobs, and generators.

pub mod combination;
pub mod generator;
pub mod job;
pub mod python_random;
pub mod random;

pub use combination::Combination;
pub use generator::{Gavel, GeneratorError, JobTable, MixShare, Native, WorkloadOptions};
pub use job::{Job, SizesError};

use std::fmt;

/// A source of jobs, in order of arrival; possibly without end.
///
/// It is deterministic: two sources made alike give the same jobs, so a resumed simulation makes its source anew and skips the jobs
/// that it has had.
pub trait Arrivals: fmt::Debug + Send {
    /// The next job; its arrival is not before the last one's.
    fn next_job(&mut self) -> Option<Job>;
}

/// Jobs given one by one.
#[derive(Clone, Debug)]
pub struct Listed(std::vec::IntoIter<Job>);

impl Listed {
    /// A source of these jobs, sorted by arrival (jobs of equal arrival keep their order).
    pub fn new(mut jobs: Vec<Job>) -> Self {
        jobs.sort_by(|one, other| one.arrival.total_cmp(&other.arrival));
        Self(jobs.into_iter())
    }
}

impl Arrivals for Listed {
    fn next_job(&mut self) -> Option<Job> {
        self.0.next()
    }
}
