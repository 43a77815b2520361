//! Forecast of one job.

use std::sync::Arc;

use crate::forecast::distribution::Distribution;
use crate::forecast::durations::Work;
use crate::forecast::error::ForecastError;
use crate::forecast::future::{Attended, Outlook, Settings};
use crate::forecast::likeness::Likeness;
use crate::forecast::past::{Chronicle, Course, KnownJob, Situation, arrived_by, jobs_of};
use crate::sweep::Run;
use apportion::index::{Id, JobId};
use apportion::units::Seconds;
use apportion::workload::Job;

/// Jobs from which total steps were drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawnFrom {
    /// Number of these jobs that had ended.
    pub n_ended: usize,
    /// Number of these jobs that had not ended, which count with the work that they had run.
    pub n_active: usize,
    /// Weights by which some of them count more than others.
    pub likeness: Likeness,
    /// Probability with which two active jobs take the same place among all, from 0 to 1.
    pub shared: f64,
    /// Number of jobs of equal weight that would tell as much of this job's steps as the ended ones.
    pub n_effective: f64,
}

/// Blocks from which jobs to come were drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blocked {
    /// Number of blocks.
    pub n_blocks: usize,
    /// Length of a block.
    pub length: Seconds,
    /// Number of jobs in all blocks.
    pub n_jobs: usize,
}

/// Forecast of a job's start and end, with its assumptions.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// Name of the job.
    pub job: String,
    /// Instant of the forecast, from the trace's first arrival.
    pub at: Seconds,
    /// Arrival of the job.
    pub arrival: Seconds,
    /// Start of the job's first round with workers, if it had started by the instant.
    pub started: Option<Seconds>,
    /// Time from the instant until it first has workers; none if it has had some.
    pub start: Option<Distribution>,
    /// Time from the instant until it ends.
    pub end: Distribution,
    /// Number of active jobs, including this one.
    pub n_active: usize,
    /// Jobs from which steps were drawn; none if steps were known.
    pub drawn_from: Option<DrawnFrom>,
    /// Blocks from which jobs to come were drawn; none if none came.
    pub blocks: Option<Blocked>,
}

/// Forecasts the start and end of a job of a run's trace, from what is known at an instant.
///
/// The job is named by its id in the trace, or by its position in order of arrival where there are no ids. Nothing in the
/// trace after the instant is used.
///
/// # Errors
/// If there is no such job, it has not arrived by then or has ended, or as [`Outlook::new`] and [`Outlook::forks`] say.
pub fn forecast(
    run: &Run,
    (name, at): (&str, Seconds),
    settings: &Settings,
    attended: &Attended<'_>,
) -> Result<Forecast, ForecastError> {
    settings.check()?;
    let jobs = jobs_of(run)?;
    let id = find(&jobs, name)?;
    let arrival = jobs[id.index()].arrival;
    if arrival > at {
        let (arrival_h, at_h) = (arrival.hours(), at.hours());
        return Err(ForecastError::NotArrived { name: name.to_owned(), arrival_h, at_h });
    }
    let past = arrived_by(&jobs, at);
    let stop = Arc::clone(&attended.stop);
    let mut chronicle = Chronicle::new(run, past, attended.interrupt.clone(), stop)?;
    let situation = chronicle.situation(at)?;
    let course = chronicle.courses().get(id.index()).copied().unwrap_or_default();
    if let Some(end) = course.ended.filter(|end| *end <= at) {
        let (end_h, at_h) = (end.hours(), at.hours());
        return Err(ForecastError::Ended { name: name.to_owned(), end_h, at_h });
    }
    let Some(situation) = situation else {
        return Err(ForecastError::NothingActive { n_times: 1 });
    };
    forecast_from(run, &situation, (name, id), settings, attended)
}

/// Forecasts the start and end of an active job, from a situation of a run with the same cluster, policy and rules.
///
/// # Errors
/// If the job is not active there, or as [`Outlook::new`] and [`Outlook::forks`] say.
pub fn forecast_from(
    run: &Run,
    situation: &Situation,
    (name, id): (&str, JobId),
    settings: &Settings,
    attended: &Attended<'_>,
) -> Result<Forecast, ForecastError> {
    let Some(known) = situation.find(id) else {
        return Err(ForecastError::NotActive { name: name.to_owned() });
    };
    let outlook = Outlook::new(run, situation, settings)?;
    let courses: Vec<Course> = outlook.forks(&[id], attended)?.into_iter().flatten().collect();
    Ok(described(&outlook, (name, id), (situation, known), (&courses, settings.limit)))
}

fn described(
    outlook: &Outlook<'_>,
    (name, id): (&str, JobId),
    (situation, known): (&Situation, &KnownJob),
    (courses, limit): (&[Course], Seconds),
) -> Forecast {
    let at = situation.at;
    let from_then = |event: Option<Seconds>| event.map(|instant| (instant - at).max(Seconds::ZERO));
    let over = |of: fn(&Course) -> Option<Seconds>| {
        Distribution::of(courses.iter().map(|course| from_then(of(course))), limit)
    };
    let drawn_from = match (outlook.durations(), outlook.work(id)) {
        (Some(durations), Some(Work::Drawn(drawn))) => Some(DrawnFrom {
            n_ended: durations.n_ended,
            n_active: durations.n_active,
            likeness: durations.likeness,
            shared: durations.shared,
            n_effective: drawn.n_effective,
        }),
        _ => None,
    };
    let blocks = outlook.blocks().map(|blocks| Blocked {
        n_blocks: blocks.n_blocks(),
        length: blocks.length,
        n_jobs: blocks.n_jobs(),
    });
    Forecast {
        job: name.to_owned(),
        at,
        arrival: known.job.arrival,
        started: known.course.started,
        start: known.course.started.is_none().then(|| over(|course| course.started)),
        end: over(|course| course.ended),
        n_active: situation.active.len(),
        drawn_from,
        blocks,
    }
}

/// The job with a name: its id in the trace, or its position where the trace has no ids.
fn find(jobs: &[Job], name: &str) -> Result<JobId, ForecastError> {
    if jobs.is_empty() {
        return Err(ForecastError::NoJobs);
    }
    let named = jobs.iter().position(|job| job.name.as_deref() == Some(name));
    let is_unnamed = |position: &usize| jobs.get(*position).is_some_and(|job| job.name.is_none());
    // The text `0287` is not the position 287.
    let is_written_so = |position: &usize| position.to_string() == name;
    let found = named.or_else(|| name.parse().ok().filter(is_written_so).filter(is_unnamed));
    match found {
        Some(position) => Ok(JobId::from_index(position)),
        None if jobs.iter().all(|job| job.name.is_none()) => {
            let message = format!(
                "`{name}` is none of the trace's, which are known by their positions in order of arrival, from 0 to {}",
                jobs.len() - 1
            );
            Err(ForecastError::setting("job", message))
        }
        None => Err(ForecastError::unknown_job(name, jobs.iter().filter_map(|job| job.name.as_deref()))),
    }
}
