//! The forecast of one job.

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

/// The jobs that steps were drawn from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawnFrom {
    /// How many of them had ended.
    pub n_ended: usize,
    /// How many had not: of these what they had run is known.
    pub n_active: usize,
    /// Which of them count more.
    pub likeness: Likeness,
    /// How often two active jobs take the same place among all, from 0 to 1.
    pub shared: f64,
    /// The number of jobs of equal weight that would say as much of this job's steps as those that had ended.
    pub n_effective: f64,
}

/// The blocks that jobs to come were drawn from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blocked {
    /// How many.
    pub n_blocks: usize,
    /// How long each is.
    pub length: Seconds,
    /// Jobs in all of them.
    pub n_jobs: usize,
}

/// When a job will start and end, and what was assumed.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// What the job is called.
    pub job: String,
    /// The instant, from the trace's first arrival.
    pub at: Seconds,
    /// When the job arrived.
    pub arrival: Seconds,
    /// When it had workers first, if it had by then.
    pub started: Option<Seconds>,
    /// The time from the instant until it has workers first; none if it has had some.
    pub start: Option<Distribution>,
    /// The time from the instant until it ends.
    pub end: Distribution,
    /// Jobs that were active, this one among them.
    pub n_active: usize,
    /// What its steps were drawn from; none if they were known.
    pub drawn_from: Option<DrawnFrom>,
    /// What jobs to come were drawn from; none if none came.
    pub blocks: Option<Blocked>,
}

/// Forecasts when a job of a run's trace starts and ends, from what is known at an instant.
///
/// The job is known by its id in the trace, or its position in order of arrival where there are no ids. Nothing that the
/// trace has after the instant is looked at.
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

/// Forecasts when an active job starts and ends, from a situation of a run with the same cluster, policy and rules.
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

/// The job of this name: its id in the trace, or its position where the trace has no ids.
fn find(jobs: &[Job], name: &str) -> Result<JobId, ForecastError> {
    if jobs.is_empty() {
        return Err(ForecastError::NoJobs);
    }
    let named = jobs.iter().position(|job| job.name.as_deref() == Some(name));
    let is_unnamed = |position: &usize| jobs.get(*position).is_some_and(|job| job.name.is_none());
    // `0287` is not 287.
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
