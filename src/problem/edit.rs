//! Changes to a problem that follows a cluster: jobs are added, removed and updated, with the checks of a new problem.

use super::{ActiveJob, Problem, ProblemError, check_job, check_speeds};
use crate::index::{Id, JobIndex};

impl Problem {
    /// Adds a job with its steps/s alone on each worker type, `[K]`, behind the others. The caller ensures that the id
    /// is new and that the problem has no data by position except throughputs.
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

    /// Removes a job and returns it; the last job takes its place.
    ///
    /// # Panics
    /// If there is no such job.
    pub(crate) fn swap_remove(&mut self, index: JobIndex) -> ActiveJob {
        self.throughput.swap_remove_row(index);
        self.jobs.swap_remove(index)
    }

    /// Replaces a job and returns the old one; its throughputs stay.
    ///
    /// # Errors
    /// If a number would be out of its range, or the job could run nowhere: then nothing has changed.
    pub(crate) fn update(&mut self, index: JobIndex, job: ActiveJob) -> Result<ActiveJob, ProblemError> {
        check_job(index.index(), &job)?;
        check_speeds(index.index(), &job, self.throughput.row(index), &self.cluster)?;
        Ok(self.jobs.replace(index, job))
    }
}
