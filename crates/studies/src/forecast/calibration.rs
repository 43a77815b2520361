//! Calibration of forecasts: intervals at many instants of a trace, compared with the simulation of the whole trace.
//!
//! A forecast gives the distribution of a time over its forks. If it is true, the [rank](Distribution::rank) of the actual
//! time is uniform from 0 to 1, and an interval of 80 % counts as holding it if the rank is from 0.1 to 0.9. Many jobs start
//! at the same boundary in many forks; the rank is drawn among equal times, so that such jobs count neither as held nor as
//! missed more often than they are.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::forecast::distribution::Distribution;
use crate::forecast::error::ForecastError;
use crate::forecast::future::{Attended, Outlook, Settings};
use crate::forecast::past::{Chronicle, Course, Situation, jobs_of};
use crate::forecast::whole::whole;
use crate::sweep::Run;
use apportion::index::{Id, JobId};
use apportion::units::Seconds;
use apportion::workload::Job;
use apportion::workload::random::{SeedStreams, Stream};

/// Nominal levels of the intervals.
pub const LEVELS: [f64; 4] = [0.5, 0.8, 0.9, 0.95];

/// The most instants that are accepted.
const TIMES_MAX: f64 = 1e5;

/// Instants of a calibration, and number of jobs at each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// First instant.
    pub from: Seconds,
    /// Latest possible instant.
    pub to: Seconds,
    /// Time between two instants.
    pub every: Seconds,
    /// Number of active jobs at each instant, drawn at random; all where there are no more.
    pub n_jobs: usize,
}

impl Plan {
    /// A plan of twenty instants in the third quarter of the time in which a run's jobs arrive: enough has happened before,
    /// and jobs still come after.
    ///
    /// # Errors
    /// If the run has no trace.
    pub fn of(run: &Run) -> Result<Self, ForecastError> {
        let last = jobs_of(run)?.last().map_or(Seconds::ZERO, |job| job.arrival);
        let (from, to) = (last * 0.5, last * 0.75);
        Ok(Self { from, to, every: (to - from) / 19.0, n_jobs: 5 })
    }

    fn times(&self) -> Result<Vec<Seconds>, ForecastError> {
        let Self { from, to, every, n_jobs } = *self;
        if !(every > Seconds::ZERO && every.is_finite()) {
            return Err(ForecastError::setting("every", format!("{every}, expected a time above 0")));
        }
        if from > to {
            let (from_h, to_h) = (from.hours(), to.hours());
            let message = format!(
                "{from_h:.2} h is after the last time, {to_h:.2} h: `--to`, or three quarters of the way to the last arrival"
            );
            return Err(ForecastError::setting("from", message));
        }
        // If the difference is a multiple except for rounding, the last instant counts.
        let n_steps = ((to - from) / every + 1e-9).floor();
        if n_steps >= TIMES_MAX {
            let message = format!("{every} makes {n_steps} instants, expected fewer than {TIMES_MAX}");
            return Err(ForecastError::setting("every", message));
        }
        if n_jobs == 0 {
            return Err(ForecastError::setting("jobs-per-point", "0, expected at least 1"));
        }
        Ok((0..=whole(n_steps)).map(|step| from + every * step as f64).collect())
    }
}

/// Event that is forecast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// Start of the first round in which a job has workers, for jobs that have had none.
    Start,
    /// End of a job.
    End,
}

/// Coverage of the intervals of one level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Held {
    /// Event that was forecast.
    pub happening: Happening,
    /// Nominal level, from 0 to 1.
    pub level: f64,
    /// Number of forecasts.
    pub n: usize,
    /// Number of forecasts whose interval held the event.
    pub n_held: usize,
    /// Number of forecasts in which the event came before the interval.
    pub n_before: usize,
    /// Number of forecasts in which the event came after the interval.
    pub n_after: usize,
    /// Mean length of the intervals. Times after the limit count as at the limit.
    pub width: Seconds,
}

impl Held {
    /// Part of the forecasts whose interval held the event.
    pub fn part(&self) -> f64 {
        self.n_held as f64 / self.n as f64
    }

    /// Standard error of [`part`](Self::part): half of Wilson's interval. It is near the binomial standard error for many
    /// forecasts, and not 0 where all held. Forecasts of one trace are not independent: the true error is larger.
    pub fn standard_error(&self) -> f64 {
        let (part, n) = (self.part(), self.n as f64);
        (part * (1.0 - part) / n + 0.25 / (n * n)).sqrt() / (1.0 + 1.0 / n)
    }
}

/// A forecast compared with the actual event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    /// Rank of the actual time among those of the forks, from 0 to 1.
    pub rank: f64,
    /// Length of the interval of each level.
    pub widths: [Seconds; LEVELS.len()],
}

impl Judged {
    fn of(forecast: &Distribution, happened: Option<Seconds>, uniform: f64) -> Self {
        Self { rank: forecast.rank(happened, uniform), widths: LEVELS.map(|level| forecast.width(level)) }
    }
}

/// Forecasts of a trace compared with the actual events.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// Number of instants at which jobs were active.
    pub n_times: usize,
    /// Judged forecasts of starts, then of ends.
    pub judged: [Vec<Judged>; 2],
    /// Number of forecasts of ends in which more than a twentieth of the forks did not reach the end.
    pub n_censored: usize,
}

impl Calibration {
    /// Coverage by event and level; only where there were forecasts.
    pub fn rows(&self) -> Vec<Held> {
        let both = [Happening::Start, Happening::End].into_iter().zip(&self.judged);
        let row = |happening, judged: &[Judged], position: usize| {
            let level = LEVELS[position];
            let (low, high) = ((1.0 - level) / 2.0, f64::midpoint(1.0, level));
            let n_of = |is_one: &dyn Fn(f64) -> bool| judged.iter().filter(|one| is_one(one.rank)).count();
            let n_before = n_of(&|rank| rank < low);
            let n_after = n_of(&|rank| rank > high);
            let n = judged.len();
            let width = judged.iter().map(|one| one.widths[position]).sum::<Seconds>() / n as f64;
            Held { happening, level, n, n_held: n - n_before - n_after, n_before, n_after, width }
        };
        let of = |(happening, judged): (Happening, &Vec<Judged>)| {
            std::array::from_fn::<Held, { LEVELS.len() }, _>(|position| row(happening, judged, position))
        };
        both.filter(|(_, judged)| !judged.is_empty()).flat_map(of).collect()
    }
}

/// A forecast of one job at an instant.
struct Point {
    job: JobId,
    at: Seconds,
    /// Forecast of the start; none if the job had started.
    start: Option<Distribution>,
    end: Distribution,
}

/// Compares forecasts at many instants of a run's trace with what the simulation of the whole trace then did. Each forecast
/// knows what is known at its instant, and no more.
///
/// # Errors
/// If the plan or a setting is out of its range, nothing is active at any instant, a simulation fails, or it is stopped.
pub fn calibrate(
    run: &Run,
    plan: &Plan,
    settings: &Settings,
    attended: &Attended<'_>,
) -> Result<Calibration, ForecastError> {
    let times = plan.times()?;
    settings.check()?;
    let jobs: Arc<[Job]> = jobs_of(run)?.into();
    if jobs.is_empty() {
        return Err(ForecastError::NoJobs);
    }
    let stop = Arc::clone(&attended.stop);
    let mut chronicle = Chronicle::new(run, jobs, attended.interrupt.clone(), stop)?;
    let mut stream = SeedStreams::new(settings.seed).stream("calibration of forecasts");
    let mut points = Vec::new();
    let mut n_times = 0;
    for at in &times {
        let Some(situation) = chronicle.situation(*at)? else { continue };
        let drawn = drawn_jobs(&situation, plan.n_jobs, &mut stream);
        if !drawn.is_empty() {
            n_times += 1;
            points.extend(forecasts(run, &situation, (&drawn, settings), attended)?);
        }
    }
    if points.is_empty() {
        return Err(ForecastError::NothingActive { n_times: times.len() });
    }
    let forecast: BTreeSet<JobId> = points.iter().map(|point| point.job).collect();
    let forecast: Vec<JobId> = forecast.into_iter().collect();
    chronicle.finish(&forecast, plan.to + settings.limit)?;
    Ok(scored(&points, chronicle.courses(), n_times, &mut stream))
}

/// A number of active jobs, each drawn with the same probability, in order of id.
fn drawn_jobs(situation: &Situation, n_jobs: usize, stream: &mut Stream) -> Vec<JobId> {
    let mut drawn: Vec<JobId> = situation.active.keys().copied().collect();
    stream.shuffle(&mut drawn);
    drawn.truncate(n_jobs);
    drawn.sort_unstable();
    drawn
}

/// Forecasts of some jobs, all from the same forks.
fn forecasts(
    run: &Run,
    situation: &Situation,
    (jobs, settings): (&[JobId], &Settings),
    attended: &Attended<'_>,
) -> Result<Vec<Point>, ForecastError> {
    let outlook = Outlook::new(run, situation, settings)?;
    let forks = outlook.forks(jobs, attended)?;
    let at = situation.at;
    let point = |(position, job): (usize, &JobId)| {
        let over = |of: fn(&Course) -> Option<Seconds>| {
            let times = forks.iter().map(|courses| of(&courses[position]).map(|instant| instant - at));
            Distribution::of(times, settings.limit)
        };
        let waits = situation.find(*job).is_some_and(|known| known.course.started.is_none());
        let start = waits.then(|| over(|course| course.started));
        Point { job: *job, at, start, end: over(|course| course.ended) }
    };
    Ok(jobs.iter().enumerate().map(point).collect())
}

fn scored(points: &[Point], courses: &[Course], n_times: usize, stream: &mut Stream) -> Calibration {
    let mut judged = [Vec::new(), Vec::new()];
    let mut n_censored = 0;
    for Point { job, at, start, end } in points {
        let course = courses.get(job.index()).copied().unwrap_or_default();
        let from_then = |event: Option<Seconds>| event.map(|instant| instant - *at);
        if let Some(start) = start {
            judged[0].push(Judged::of(start, from_then(course.started), stream.uniform()));
        }
        judged[1].push(Judged::of(end, from_then(course.ended), stream.uniform()));
        let n_late = end.n_forks() - end.n_happened();
        n_censored += usize::from(n_late * 20 > end.n_forks());
    }
    Calibration { n_times, judged, n_censored }
}
