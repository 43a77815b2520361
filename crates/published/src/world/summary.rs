//! What a finished or unfinished run came to.

use crate::world::servers::ACCELERATOR;
use crate::world::state::{Status, World};
use apportion::index::JobId;

/// Sums over a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Totals {
    /// Decisions asked for, ends of rounds among them.
    pub decisions: u64,
    /// Decisions that were not applied.
    pub rejections: u64,
    /// Seconds of accelerator slots held.
    pub slot_s: f64,
    /// Σ retention over rounds in which jobs ran, and how many those were.
    pub retention: f64,
    pub job_rounds: u64,
    /// When the last job so far was done, seconds.
    pub end_s: f64,
}

/// What became of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JobOutcome {
    /// The job.
    pub job: JobId,
    /// From its arrival until its work was done, seconds.
    pub completion_s: f64,
    /// Of that, the time in which it ran.
    pub service_s: f64,
    /// Times it stood still after having run.
    pub preemptions: u32,
}

impl JobOutcome {
    /// Time in which it did not run, seconds.
    pub fn queueing_s(&self) -> f64 {
        self.completion_s - self.service_s
    }
}

/// A run in numbers. Means are over jobs that are done; a run without any has zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Jobs that are done.
    pub n_done: usize,
    /// Mean time from arrival to completion, seconds.
    pub completion_s: f64,
    /// Mean time in rounds in which a job ran, seconds: what DeepShare calls completion time.
    pub service_s: f64,
    /// Percentiles of service time by linear interpolation, seconds.
    pub service_p90_s: f64,
    /// See `service_p90_s`.
    pub service_p99_s: f64,
    /// Mean time in which a job did not run, seconds.
    pub queueing_s: f64,
    /// When the last job was done, seconds.
    pub makespan_s: f64,
    /// Fraction of accelerator slots held until the last job was done.
    pub utilization: f64,
    /// Mean fraction of their rates alone that jobs retained, over jobs and rounds.
    pub retention: f64,
    /// Times a job stood still after having run, all jobs.
    pub preemptions: u64,
    /// Decisions asked for, ends of rounds among them.
    pub decisions: u64,
    /// Decisions that were not applied.
    pub rejections: u64,
    /// Rounds.
    pub rounds: u64,
}

impl World {
    /// What became of each job that is done, by id.
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

    /// The run so far in numbers.
    pub fn summary(&self) -> Summary {
        let mut service: Vec<f64> = self.outcomes().map(|outcome| outcome.service_s).collect();
        service.sort_unstable_by(f64::total_cmp);
        let n = service.len();
        let per_job = |sum: f64| if n == 0 { 0.0 } else { sum / n as f64 };
        let totals = &self.totals;
        let slots = f64::from(self.servers.total()[ACCELERATOR]) * totals.end_s;
        Summary {
            n_done: n,
            completion_s: per_job(self.outcomes().map(|outcome| outcome.completion_s).sum()),
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

/// By linear interpolation between ranks; 0 of nothing.
pub(crate) fn percentile(sorted: &[f64], fraction: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let rank = fraction * last as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank of the list")]
    let below = rank.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * (rank - below as f64)
}

impl Summary {
    /// The mean of several runs, number by number; counts are rounded down.
    pub fn mean(runs: &[Self]) -> Self {
        let n = runs.len().max(1);
        let mean = |of: fn(&Self) -> f64| runs.iter().map(of).sum::<f64>() / n as f64;
        let count = |of: fn(&Self) -> u64| runs.iter().map(of).sum::<u64>() / n as u64;
        Self {
            n_done: runs.iter().map(|run| run.n_done).sum::<usize>() / n,
            completion_s: mean(|run| run.completion_s),
            service_s: mean(|run| run.service_s),
            service_p90_s: mean(|run| run.service_p90_s),
            service_p99_s: mean(|run| run.service_p99_s),
            queueing_s: mean(|run| run.queueing_s),
            makespan_s: mean(|run| run.makespan_s),
            utilization: mean(|run| run.utilization),
            retention: mean(|run| run.retention),
            preemptions: count(|run| run.preemptions),
            decisions: count(|run| run.decisions),
            rejections: count(|run| run.rejections),
            rounds: count(|run| run.rounds),
        }
    }
}
