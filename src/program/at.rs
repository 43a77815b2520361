//! The place for which an expression is evaluated.

use super::expression::Subject;

/// The member and the worker type for which an expression is evaluated; each is 0 where the expression does not need it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) member: usize,
    pub(crate) worker_type: usize,
    /// Whether the expression is evaluated for each job of the member.
    pub(crate) of_job: bool,
}

impl At {
    /// The member, where the expression is evaluated for each of its jobs.
    pub(crate) fn job(self) -> Option<usize> {
        self.of_job.then_some(self.member)
    }

    /// The place of the job or the worker type at a position; of neither for the whole cluster.
    pub(crate) fn of(subject: Option<Subject>, position: usize) -> Self {
        match subject {
            None => Self::default(),
            Some(Subject::Job) => Self { member: position, worker_type: 0, of_job: true },
            Some(Subject::WorkerType) => Self { worker_type: position, ..Self::default() },
        }
    }

    /// The position of the place among the places of a subject; 0 for the whole cluster.
    pub(crate) fn position(self, subject: Option<Subject>) -> usize {
        match subject {
            None => 0,
            Some(Subject::Job) => self.member,
            Some(Subject::WorkerType) => self.worker_type,
        }
    }
}
