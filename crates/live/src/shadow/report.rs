//! The report of a shadow's record: the waits of jobs there and here.

use schemars::JsonSchema;
use serde::Serialize;

use super::key::JobKey;
use super::record::{Entry, Record};

/// A job in a report. Times are in s.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// Its number under the other scheduler, or that of its array.
    pub job: u64,
    /// The number of its task in the array; none if it is a job by itself.
    pub task: Option<u64>,
    /// Its name.
    pub name: String,
    /// The user that submitted it.
    pub user: String,
    /// Workers it needs at once.
    pub n_workers: u32,
    /// The instant of its submission, in s since 1970.
    pub submitted_s: f64,
    /// The instant at which it could first run, in s since 1970: later than its submission if it was held, or waited for other jobs
    /// or a later time.
    pub ready_s: f64,
    /// The wait from `ready_s` to its start under the other scheduler, in s. It lasts until the last look if the job waits, until
    /// its end if it was withdrawn before it was started, and until it was first missing if it is not shown any more.
    pub wait_there_s: f64,
    /// Whether it still waits there.
    pub waits_there: bool,
    /// The wait from `ready_s` to its start in the shadow, in s. It lasts until the last look if the job waits, and until it was
    /// left out if it was not started before.
    pub wait_here_s: f64,
    /// Whether it still waits in the shadow.
    pub waits_here: bool,
    /// The time from `ready_s` to its end under the other scheduler, in s; none before its end.
    pub completion_there_s: Option<f64>,
    /// The time from `ready_s` to its end in the shadow, in s; none before its end.
    pub completion_here_s: Option<f64>,
    /// Why it is not in the averages; none if it is.
    pub not_counted: Option<String>,
}

/// Averages over the jobs that are compared, in s; none if there is no such job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Averages {
    /// The number of compared jobs: submitted since the shadow began, and not left out.
    pub n_jobs: usize,
    /// The number of compared jobs that still wait there: the mean wait there is a lower bound.
    pub n_waiting_there: usize,
    /// The number of compared jobs that still wait here: the mean wait here is a lower bound.
    pub n_waiting_here: usize,
    /// Mean wait under the other scheduler, waits so far included.
    pub mean_wait_there_s: Option<f64>,
    /// Mean wait in the shadow, waits so far included.
    pub mean_wait_here_s: Option<f64>,
    /// The number of jobs that have ended both there and here.
    pub n_ended: usize,
    /// The mean job completion time of ended jobs under the other scheduler.
    pub mean_completion_there_s: Option<f64>,
    /// The mean job completion time of ended jobs in the shadow.
    pub mean_completion_here_s: Option<f64>,
}

/// A report.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Report {
    /// The policy that decides.
    pub policy: String,
    /// The instant at which the shadow began, in s since 1970.
    pub since_s: f64,
    /// The instant of its last look, in s since 1970.
    pub looked_s: f64,
    /// The number of rounds that were decided.
    pub n_rounds: u64,
    /// Averages.
    pub averages: Averages,
    /// All jobs, by number.
    pub jobs: Vec<Row>,
}

impl Report {
    /// The report of a record.
    pub fn of(record: &Record) -> Self {
        let row = |(job, entry): (&JobKey, &Entry)| row(*job, entry, record);
        let jobs: Vec<Row> = record.jobs.iter().map(row).collect();
        Self {
            policy: record.policy.clone(),
            since_s: record.since_s,
            looked_s: record.looked_s,
            n_rounds: record.n_rounds,
            averages: averages(&jobs),
            jobs,
        }
    }
}

fn row(key: JobKey, entry: &Entry, record: &Record) -> Row {
    let Entry { seen, here, left_out, left_s, gone_s, .. } = entry;
    // Its wait ends with its start, or at the first instant at which it was known not to wait any more.
    let wait = |over: Option<f64>| (over.unwrap_or(record.looked_s) - seen.ready_s()).max(0.0);
    let there = &seen.there;
    let over_there = there.started_s.or(there.ended_s).or(*gone_s);
    // Records of earlier versions do not have the instant at which a job was left out.
    let left = left_out.as_ref().map(|_| left_s.or(there.ended_s).unwrap_or(seen.ready_s()));
    let over_here = here.started_s.or(left);
    let completion = |ended: Option<f64>| ended.map(|ended| (ended - seen.ready_s()).max(0.0));
    // Such a job takes its place in the shadow, and is not counted in averages.
    let before =
        (seen.submitted_s < record.since_s).then(|| "it was submitted before the shadow began".to_owned());
    Row {
        job: key.job,
        task: key.task,
        name: seen.name.clone(),
        user: seen.user.clone(),
        n_workers: seen.n_workers,
        submitted_s: seen.submitted_s,
        ready_s: seen.ready_s(),
        wait_there_s: wait(over_there),
        waits_there: over_there.is_none(),
        wait_here_s: wait(over_here),
        waits_here: over_here.is_none(),
        completion_there_s: completion(there.ended_s),
        completion_here_s: completion(here.ended_s),
        not_counted: left_out.clone().or(before),
    }
}

fn averages(jobs: &[Row]) -> Averages {
    let counted: Vec<&Row> = jobs.iter().filter(|row| row.not_counted.is_none()).collect();
    let mean = |values: Vec<f64>| {
        let n_values = values.len();
        (n_values > 0).then(|| values.into_iter().sum::<f64>() / n_values as f64)
    };
    let ended: Vec<(f64, f64)> =
        counted.iter().filter_map(|row| row.completion_there_s.zip(row.completion_here_s)).collect();
    Averages {
        n_jobs: counted.len(),
        n_waiting_there: counted.iter().filter(|row| row.waits_there).count(),
        n_waiting_here: counted.iter().filter(|row| row.waits_here).count(),
        mean_wait_there_s: mean(counted.iter().map(|row| row.wait_there_s).collect()),
        mean_wait_here_s: mean(counted.iter().map(|row| row.wait_here_s).collect()),
        n_ended: ended.len(),
        mean_completion_there_s: mean(ended.iter().map(|(there, _)| *there).collect()),
        mean_completion_here_s: mean(ended.iter().map(|(_, here)| *here).collect()),
    }
}
