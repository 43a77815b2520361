//! Summaries of runs, finished or not.

use crate::world::servers::ACCELERATOR;
use crate::world::state::{Status, World};
use apportion::index::JobId;

/// Sums over a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Totals {
    /// The number of decisions, ends of rounds among them.
    pub decisions: u64,
    /// The number of decisions that were rejected.
    pub rejections: u64,
    /// Accelerator slots × seconds that were held.
    pub slot_s: f64,
    /// Σ retention over the rounds in which jobs ran, and the number of these (job, round) pairs.
    pub retention: f64,
    pub job_rounds: u64,
    /// Time at which the last job so far was done, in seconds.
    pub end_s: f64,
}

/// The outcome of a job that is done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JobOutcome {
    /// The job.
    pub job: JobId,
    /// Job completion time, from its arrival until its work was done, in seconds.
    pub completion_s: f64,
    /// The part of that time in which it ran, in seconds.
    pub service_s: f64,
    /// The number of times that it stood still after having run.
    pub preemptions: u32,
}

impl JobOutcome {
    /// The part of the completion time in which the job did not run, in seconds.
    pub fn queueing_s(&self) -> f64 {
        self.completion_s - self.service_s
    }
}

/// A summary of a run in numbers. Means are over jobs that are done, and 0 if there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// The number of jobs that are done.
    pub n_done: usize,
    /// Mean time from arrival to completion, seconds.
    pub completion_s: f64,
    /// Median time from arrival to completion, by linear interpolation, seconds.
    pub completion_p50_s: f64,
    /// Its 99th percentile, in the same way.
    pub completion_p99_s: f64,
    /// Mean time in rounds in which a job ran, seconds: what DeepShare calls completion time.
    pub service_s: f64,
    /// 90th percentile of service time by linear interpolation, seconds.
    pub service_p90_s: f64,
    /// 99th percentile of service time by linear interpolation, seconds.
    pub service_p99_s: f64,
    /// Mean time in which a job did not run, seconds.
    pub queueing_s: f64,
    /// Time at which the last job was done, seconds.
    pub makespan_s: f64,
    /// Fraction of accelerator slots held until the last job was done.
    pub utilization: f64,
    /// Mean fraction of their rates alone that jobs retained, over jobs and rounds.
    pub retention: f64,
    /// The number of times that jobs stood still after having run, over all jobs that are done.
    pub preemptions: u64,
    /// The number of decisions, ends of rounds among them.
    pub decisions: u64,
    /// The number of decisions that were rejected.
    pub rejections: u64,
    /// The number of rounds.
    pub rounds: u64,
}

impl World {
    /// The outcome of each job that is done, by id.
    pub fn outcomes(&self) -> impl Iterator<Item = JobOutcome> {
        self.jobs.enumerate().filter(|(job, _)| self.status[*job] == Status::Done).map(|(id, job)| {
            JobOutcome {
                job: id,
                completion_s: self.completion_s[id] - job.arrival_s,
                service_s: self.service_s[id],
                preemptions: self.preemptions[id],
            }
        })
    }

    /// The summary of the run so far.
    pub fn summary(&self) -> Summary {
        let mut service: Vec<f64> = self.outcomes().map(|outcome| outcome.service_s).collect();
        service.sort_unstable_by(f64::total_cmp);
        let mut completion: Vec<f64> = self.outcomes().map(|outcome| outcome.completion_s).collect();
        completion.sort_unstable_by(f64::total_cmp);
        let n = service.len();
        let per_job = |sum: f64| if n == 0 { 0.0 } else { sum / n as f64 };
        let totals = &self.totals;
        let slots = f64::from(self.servers.total()[ACCELERATOR]) * totals.end_s;
        Summary {
            n_done: n,
            completion_s: per_job(self.outcomes().map(|outcome| outcome.completion_s).sum()),
            completion_p50_s: percentile(&completion, 0.5),
            completion_p99_s: percentile(&completion, 0.99),
            service_s: per_job(service.iter().sum()),
            service_p90_s: percentile(&service, 0.9),
            service_p99_s: percentile(&service, 0.99),
            queueing_s: per_job(self.outcomes().map(|outcome| outcome.queueing_s()).sum()),
            makespan_s: totals.end_s,
            utilization: if slots > 0.0 { totals.slot_s / slots } else { 0.0 },
            retention: if totals.job_rounds == 0 { 0.0 } else { totals.retention / totals.job_rounds as f64 },
            preemptions: self.outcomes().map(|outcome| u64::from(outcome.preemptions)).sum(),
            decisions: totals.decisions,
            rejections: totals.rejections,
            rounds: self.round,
        }
    }
}

/// A percentile of sorted numbers, by linear interpolation between ranks; 0 for an empty list.
pub(crate) fn percentile(sorted: &[f64], fraction: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let rank = fraction * last as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank of the list")]
    let below = rank.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * (rank - below as f64)
}
