//! Jobs that fit no worker type of the cluster that the scheduler was started with, or that its policy could never place:
//! they wait for another start.

use apportion::scheduler::SubmitError;

use super::answers::{JobView, State, view_of};
use super::record::{How, JobRecord};
use super::why::Why;
use super::{Core, JobNumber};

/// A job that the scheduler cannot take in, in the way in which it was started.
#[derive(Clone, Debug)]
pub(super) struct Unfit {
    /// Its record as it was on disk: if it had a last start, the start of the scheduler that takes the job in again waits for that.
    record: JobRecord,
    /// Why it cannot be taken in, and what would change that, in sentences.
    because: Vec<String>,
}

impl Core {
    /// Sets a job aside until a later start. Its record stays as it is.
    pub(super) fn set_unfit(&mut self, record: JobRecord, error: &SubmitError) {
        let policy_does_not = matches!(error, SubmitError::CannotPlace { .. });
        let mut because = vec![if policy_does_not {
            format!("The policy cannot run it: {error}.")
        } else {
            format!("No worker type of this cluster fits it: {error}.")
        }];
        let types = self.scheduler.worker_types_of(&record.job);
        let largest = match error {
            SubmitError::FitsNowhere { scale_factor, .. } => *scale_factor,
            _ => record.job.scale_factor,
        };
        let needs = match largest {
            1 => "1 worker".to_owned(),
            n => format!("{n} workers"),
        };
        because.push(if policy_does_not {
            "It runs when the scheduler is started with another policy, or with servers on which this one places it."
                .to_owned()
        } else if types.is_empty() {
            "It runs when the scheduler is started with throughputs that have its job type.".to_owned()
        } else {
            format!(
                "It runs when the scheduler is started with a cluster that has {needs} of one of the types {}.",
                types.join(", ")
            )
        });
        self.warn(format!("job {} waits. {}", record.number, because.join(" ")), Some(record.number), None);
        self.unfit.insert(record.number, Unfit { record, because });
    }

    pub(super) fn unfit_records(&self) -> impl Iterator<Item = &JobRecord> {
        self.unfit.values().map(|unfit| &unfit.record)
    }

    pub(super) fn unfit_views(&self) -> impl Iterator<Item = JobView> {
        self.unfit_records().map(|record| view_of(record, State::Waiting))
    }

    /// Why an unfit job waits; none if no unfit job has this number.
    pub(super) fn why_unfit(&self, number: JobNumber) -> Option<Why> {
        let Unfit { record, because } = self.unfit.get(&number)?;
        let last = record.last_end.iter().map(|end| format!("Its last start: {end}."));
        Some(Why {
            job: view_of(record, State::Waiting),
            because: because.iter().cloned().chain(last).collect(),
            worker_types: Vec::new(),
            decides_in_s: None,
            decided_s: None,
        })
    }

    /// Cancels an unfit job. If its last start is still running, its server's next orders stop it. False if no unfit job has this
    /// number.
    pub(super) fn cancel_unfit(&mut self, number: JobNumber) -> bool {
        let Some(Unfit { mut record, .. }) = self.unfit.remove(&number) else { return false };
        record.run = None;
        self.end_record(record, How::Cancelled, "cancelled by its user".to_owned());
        true
    }
}
