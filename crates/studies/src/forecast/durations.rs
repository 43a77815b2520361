//! How many steps jobs take in all, drawn from what jobs like them took.
//!
//! Steps of different job types are not alike, so what a job has run is counted as work: the time that its steps take
//! alone on the worker type where it is fastest. How long jobs like it take is estimated from those that have ended and
//! from those that have not: leaving the latter out would make jobs look short, because the long ones are those that
//! still run. The estimate is Kaplan and Meier's, with work in place of time: at the work of each job that ended, the
//! part of the jobs with at least as much work that ended there. The job to come counts among them, so that with n jobs
//! it ends between any two neighbours with probability 1/(n + 1), and beyond the longest with that probability, too.
//!
//! Beyond the longest job that ended, work is drawn from a Pareto distribution, whose exponent is Hill's estimate from
//! the longest fifth. A job that has run some work is drawn on the condition that it takes more than that.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::forecast::error::ForecastError;
use crate::forecast::past::{KnownJob, Situation};
use crate::forecast::whole::whole;
use crate::sweep::Run;
use apportion::units::Steps;
use apportion::workload::Job;
use apportion::workload::random::Stream;

/// A class of jobs with fewer that ended is left for a wider one.
const ENDED_MIN: usize = 20;
/// So is one in which fewer took longer than the job has run by now.
const LONGER_MIN: usize = 5;
/// The part of the jobs from which the tail is estimated.
const TAIL: f64 = 0.2;
/// Exponents of tails that are believed: below, a mean says nothing; above, there is no tail to speak of.
const EXPONENTS: [f64; 2] = [0.5, 20.0];
/// No job is drawn to take longer alone: a hundred years, in s.
const WORK_MAX_S: f64 = 100.0 * 365.25 * 86_400.0;

/// Jobs that are taken to be like one another, from the narrowest class to the widest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Of the same job type, scale factor and owner.
    Owner,
    /// Of the same job type and scale factor.
    ScaleFactor,
    /// Of the same job type.
    JobType,
    /// All jobs.
    All,
}

impl Class {
    /// All, from the narrowest.
    pub const EACH: [Self; 4] = [Self::Owner, Self::ScaleFactor, Self::JobType, Self::All];

    /// What its jobs have in common, in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Owner => "jobs of the same job type, scale factor and owner",
            Self::ScaleFactor => "jobs of the same job type and scale factor",
            Self::JobType => "jobs of the same job type",
            Self::All => "all jobs",
        }
    }

    /// What a job has in common with others of its class; none where it has no such class.
    fn key(self, job: &Job) -> Option<Key> {
        let (job_type, scale_factor) = (job.job_type.clone(), job.scale_factor);
        match self {
            Self::Owner => Some((self, job_type, scale_factor, Some(job.entity.clone()?))),
            Self::ScaleFactor => Some((self, job_type, scale_factor, None)),
            Self::JobType => Some((self, job_type, 0, None)),
            Self::All => Some((self, String::new(), 0, None)),
        }
    }
}

type Key = (Class, String, u32, Option<String>);

/// A job as far as it is observed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observed {
    /// What it has run, in s alone where it is fastest.
    pub work_s: f64,
    /// Whether that is all that it takes.
    pub has_ended: bool,
}

/// Work at which jobs ended.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ends {
    work_s: f64,
    n_ended: usize,
    /// The part of jobs that take more than the work before, and than this.
    survival: [f64; 2],
}

/// How much work jobs of a class take.
#[derive(Clone, Debug, PartialEq)]
pub struct Survival {
    ends: Vec<Ends>,
    /// Jobs that have ended.
    pub n_ended: usize,
    /// Jobs that have not, of which a part is known.
    pub n_active: usize,
    /// Of the tail.
    exponent: f64,
}

impl Survival {
    /// Estimated from these jobs, in any order.
    pub fn of(mut observed: Vec<Observed>) -> Self {
        observed.sort_by(|one, other| one.work_s.total_cmp(&other.work_s));
        let exponent = exponent(&observed);
        let mut ends: Vec<Ends> = Vec::new();
        let mut survival = 1.0;
        let mut first = 0;
        while first < observed.len() {
            let work_s = observed[first].work_s;
            let alike = observed[first..].iter().take_while(|one| one.work_s.total_cmp(&work_s).is_eq());
            let (n_alike, n_ended) =
                alike.fold((0, 0), |(alike, ended), one| (alike + 1, ended + usize::from(one.has_ended)));
            if n_ended > 0 {
                // (the jobs with at least so much work, and the one to come)
                let n_longer = (observed.len() - first + 1) as f64;
                let after = survival * (1.0 - n_ended as f64 / n_longer);
                ends.push(Ends { work_s, n_ended, survival: [survival, after] });
                survival = after;
            }
            first += n_alike;
        }
        let n_ended = observed.iter().filter(|one| one.has_ended).count();
        Self { ends, n_ended, n_active: observed.len() - n_ended, exponent }
    }

    /// Jobs that ended with more work.
    pub fn n_longer(&self, work_s: f64) -> usize {
        let from = self.ends.partition_point(|ends| ends.work_s <= work_s);
        self.ends[from..].iter().map(|ends| ends.n_ended).sum()
    }

    /// The work of a job that takes more than `above_s`, in s, by a uniform number in [0, 1): it ascends with it.
    pub fn quantile(&self, above_s: f64, uniform: f64) -> f64 {
        let first = self.ends.partition_point(|ends| ends.work_s <= above_s);
        let start = self.ends.get(first).map_or(1.0, |ends| ends.survival[0]);
        let sought = start * (1.0 - uniform);
        let position = first + self.ends[first..].partition_point(|ends| ends.survival[1] >= sought);
        let Some(ends) = self.ends.get(position) else {
            let longest = self.ends.last().map_or(above_s, |ends| ends.work_s.max(above_s));
            let left = self.ends.get(first).and(self.ends.last()).map_or(1.0, |ends| ends.survival[1]);
            return (longest * (sought / left).powf(-1.0 / self.exponent)).min(WORK_MAX_S);
        };
        let [before, after] = ends.survival;
        // Of jobs that ended alike, the first stands for the work up to there, the others for just this.
        let place = (before - sought) / (before - after) * ends.n_ended as f64;
        let from = if position == first { above_s } else { self.ends[position - 1].work_s };
        from + (ends.work_s - from) * place.min(1.0)
    }
}

/// Hill's estimate from the longest of these jobs, in order of work; those that have not ended count for what they have run.
fn exponent(observed: &[Observed]) -> f64 {
    let n_tail = whole((observed.len() as f64 * TAIL).ceil());
    let (shorter, longest) = observed.split_at(observed.len() - n_tail);
    let from = shorter.last().or(longest.first()).map_or(0.0, |one| one.work_s);
    let excess = |one: &Observed| if from > 0.0 { (one.work_s / from).ln() } else { 0.0 };
    let sum: f64 = longest.iter().map(excess).sum();
    let n_ended = longest.iter().filter(|one| one.has_ended).count() as f64;
    if n_ended == 0.0 || sum <= 0.0 {
        return 1.0;
    }
    (n_ended / sum).clamp(EXPONENTS[0], EXPONENTS[1])
}

/// What is known of a job's steps.
#[derive(Clone, Debug)]
pub enum Work {
    /// All of it.
    Known(Steps),
    /// How much jobs like it take.
    Drawn(Drawn),
}

/// How a job's steps are drawn.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// The class of jobs that are taken to be like it.
    pub class: Class,
    /// How much these take.
    pub survival: Arc<Survival>,
    /// Steps that it has run.
    steps_run: f64,
    /// Steps/s alone where it is fastest.
    rate: f64,
}

impl Work {
    /// The steps that the job takes in all; one draw, or none where they are known.
    pub fn draw(&self, stream: &mut Stream) -> Steps {
        match self {
            Self::Known(steps) => *steps,
            Self::Drawn(Drawn { survival, steps_run, rate, .. }) => {
                let work_s = survival.quantile(steps_run / rate, stream.uniform());
                Steps::new((work_s * rate).round().max(steps_run.floor() + 1.0))
            }
        }
    }
}

/// How much work jobs take, by class.
#[derive(Clone, Debug)]
pub struct Durations {
    classes: BTreeMap<Key, Arc<Survival>>,
}

impl Durations {
    /// Estimated from all jobs that had arrived at an instant.
    ///
    /// # Errors
    /// If none of them has ended.
    pub fn of(run: &Run, situation: &Situation) -> Result<Self, ForecastError> {
        if situation.jobs.iter().all(|known| known.course.ended.is_none()) {
            return Err(ForecastError::NothingEnded { at_h: situation.at.hours() });
        }
        let mut observed: BTreeMap<Key, Vec<Observed>> = BTreeMap::new();
        for KnownJob { job, steps_run, course } in &situation.jobs {
            let work_s = steps_run.get() / rate(run, job);
            let one = Observed { work_s, has_ended: course.ended.is_some() };
            for key in Class::EACH.iter().filter_map(|class| class.key(job)) {
                observed.entry(key).or_default().push(one);
            }
        }
        let estimated = observed.into_iter().map(|(key, observed)| (key, Arc::new(Survival::of(observed))));
        Ok(Self { classes: estimated.collect() })
    }

    /// How the steps of a job are drawn that has run some: from the narrowest class that has enough jobs.
    pub fn work(&self, run: &Run, job: &Job, steps_run: Steps) -> Work {
        let (steps_run, rate) = (steps_run.get(), rate(run, job));
        let is_enough = |survival: &Survival| {
            survival.n_ended >= ENDED_MIN && survival.n_longer(steps_run / rate) >= LONGER_MIN
        };
        let classes = Class::EACH.into_iter().filter_map(|class| {
            let survival = self.classes.get(&class.key(job)?)?;
            (class == Class::All || is_enough(survival)).then(|| (class, Arc::clone(survival)))
        });
        let mut classes = classes;
        match classes.next() {
            Some((class, survival)) => Work::Drawn(Drawn { class, survival, steps_run, rate }),
            // (the class of all jobs has been estimated from at least one)
            None => Work::Known(job.total_steps),
        }
    }
}

/// Steps/s of a job alone on the worker type of the run's cluster where it is fastest.
fn rate(run: &Run, job: &Job) -> f64 {
    let types = || run.cluster.types().iter().filter(|kind| kind.n_workers >= job.scale_factor);
    let fastest = match (&job.throughput, run.throughputs.find(&job.job_type, job.scale_factor)) {
        (Some(own), _) => {
            let on = |name: &str| own.iter().find(|(other, _)| other == name).map(|(_, speed)| speed.get());
            types().filter_map(|kind| on(&kind.name)).fold(0.0, f64::max)
        }
        (None, Some(row)) => {
            let columns = types().filter_map(|kind| run.throughputs.find_worker_type(&kind.name));
            columns.map(|column| run.throughputs.alone(row, column)).fold(0.0, f64::max)
        }
        (None, None) => 0.0,
    };
    // (a run that was loaded has only jobs that run somewhere)
    if fastest > 0.0 { fastest } else { 1.0 }
}
