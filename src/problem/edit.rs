//! Problems that follow a cluster: jobs come, go and change, each checked as it was when the problem was made.

use super::{ActiveJob, Problem, ProblemError, check_job, check_speeds};
use crate::index::{Id, JobIndex};

impl Problem {
    /// Adds a job with its steps/s alone on each worker type, `[K]`, behind the others. Whether its id is there already
    /// is the caller's to know; so is that the problem has no data by position but throughputs.
    ///
    /// # Errors
    /// If a number is out of its range, or the job can run nowhere: then nothing has changed.
    ///
    /// # Panics
    /// If there is not one throughput per worker type.
    pub(crate) fn insert(&mut self, job: ActiveJob, throughput: &[f64]) -> Result<JobIndex, ProblemError> {
        let position = self.n_jobs();
        check_job(position, &job)?;
        check_speeds(position, &job, throughput, &self.cluster)?;
        self.throughput.push_row(throughput);
        Ok(self.jobs.push(job))
    }

    /// Takes a job out; the last one takes its place.
    ///
    /// # Panics
    /// If there is no such job.
    pub(crate) fn swap_remove(&mut self, index: JobIndex) -> ActiveJob {
        self.throughput.swap_remove_row(index);
        self.jobs.swap_remove(index)
    }

    /// Changes what is known of a job, its identity apart.
    ///
    /// # Errors
    /// If a number would be out of its range, or the job could run nowhere: then nothing has changed.
    pub(crate) fn update(&mut self, index: JobIndex, job: ActiveJob) -> Result<ActiveJob, ProblemError> {
        check_job(index.index(), &job)?;
        check_speeds(index.index(), &job, self.throughput.row(index), &self.cluster)?;
        Ok(self.jobs.replace(index, job))
    }
}
