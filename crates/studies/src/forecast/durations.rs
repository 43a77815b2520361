//! Total steps of jobs, drawn from those of similar jobs.
//!
//! Steps of different job types are not comparable, so a job's steps are counted as work: the time that they take alone on
//! the worker type where the job is fastest, s. The work of a job is [estimated](Survival) from all jobs that have arrived;
//! the more a job is [like](Likeness) it, the more that job counts. The total of a job that has run some work is drawn on
//! the condition that it is more than that.

use std::collections::BTreeMap;

use crate::forecast::error::ForecastError;
use crate::forecast::likeness::{Compared, Likeness, together};
use crate::forecast::past::{KnownJob, Situation};
use crate::forecast::survival::{Observed, Survival, exponent};
use crate::sweep::Run;
use apportion::index::JobId;
use apportion::units::Steps;
use apportion::workload::Job;
use apportion::workload::random::Stream;

/// The most jobs from which the work of others is estimated: the last arrivals, and all that have not ended.
const COMPARED_MAX: usize = 3000;
/// The largest probability with which two active jobs are taken to be alike.
const SHARED_MAX: f64 = 0.5;

/// Knowledge of a job's total steps.
#[derive(Clone, Debug)]
pub enum Work {
    /// Known total.
    Known(Steps),
    /// Total that is drawn from the work of similar jobs.
    Drawn(Drawn),
}

/// Distribution from which a job's total steps are drawn.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// Distribution of the job's work.
    survival: Survival,
    /// Kish's effective number of the ended jobs: the number of jobs of equal weight that tell as much.
    pub n_effective: f64,
    /// Steps that the job has run.
    steps_run: f64,
    /// Throughput alone on the fastest worker type, steps/s.
    rate: f64,
}

impl Work {
    /// Total steps of the job by a uniform number in [0, 1), with which they ascend where they are drawn.
    pub fn at(&self, uniform: f64) -> Steps {
        match self {
            Self::Known(steps) => *steps,
            Self::Drawn(Drawn { survival, steps_run, rate, .. }) => {
                let work_s = survival.quantile(uniform);
                Steps::new((work_s * rate).round().max(steps_run.floor() + 1.0))
            }
        }
    }
}

/// Work of all known jobs, from which the work of active jobs is estimated.
#[derive(Clone, Debug)]
pub struct Durations {
    /// Weights by which some jobs count more than others.
    pub likeness: Likeness,
    /// Probability with which two active jobs take the same place among all, from 0 to 1.
    pub shared: f64,
    /// Number of jobs that had ended.
    pub n_ended: usize,
    /// Number of jobs that had not ended, which count with the work that they had run.
    pub n_active: usize,
    /// Compared jobs in ascending order of work.
    compared: Vec<Compared>,
    /// Observed work of each, in the same order.
    observed: Vec<Observed>,
    exponent: f64,
    /// Active jobs by id.
    active: BTreeMap<JobId, Compared>,
}

impl Durations {
    /// An estimate from the jobs that had arrived at an instant.
    ///
    /// # Errors
    /// If none of the jobs has ended.
    pub fn of(run: &Run, situation: &Situation) -> Result<Self, ForecastError> {
        let mut numbered = Numbered::default();
        let all = situation
            .jobs
            .iter()
            .enumerate()
            .map(|(position, known)| numbered.compared(run, position, known));
        let all: Vec<Compared> = all.collect();
        let first = all.len().saturating_sub(COMPARED_MAX);
        let mut compared: Vec<Compared> = all
            .iter()
            .enumerate()
            .filter(|(position, job)| *position >= first || !job.observed.has_ended)
            .map(|(_, job)| *job)
            .collect();
        let n_ended = compared.iter().filter(|job| job.observed.has_ended).count();
        if n_ended == 0 {
            return Err(ForecastError::NothingEnded { at_h: situation.at.hours() });
        }
        // Jobs that have not run say nothing of durations, and may outnumber all others.
        let has_run = |job: &&Compared| job.observed.has_ended || job.observed.work_s > 0.0;
        let ran: Vec<Compared> = compared.iter().filter(has_run).copied().collect();
        let (likeness, together) = (Likeness::chosen(&ran), together(&ran));
        // The minimum is that of an urn with the ended jobs and the next one, where jobs have nothing in common.
        let shared = (together / (1.0 + together)).clamp(1.0 / (n_ended + 2) as f64, SHARED_MAX);
        compared.sort_by(|one, other| one.observed.work_s.total_cmp(&other.observed.work_s));
        let observed: Vec<Observed> = compared.iter().map(|job| job.observed).collect();
        let active = situation.active.iter().map(|(id, position)| (*id, all[*position])).collect();
        let n_active = compared.len() - n_ended;
        Ok(Self {
            likeness,
            shared,
            n_ended,
            n_active,
            exponent: exponent(&observed),
            compared,
            observed,
            active,
        })
    }

    /// Places of all active jobs in the distribution of work, as uniform numbers in [0, 1), by id. As the work of current
    /// jobs in general is uncertain, and independent draws would average that out, a job may take the place of any before
    /// it: by Pólya's urn, in which every place that was taken counts once more.
    pub fn places(&self, stream: &mut Stream) -> BTreeMap<JobId, f64> {
        // Number of different places that are in the urn at first.
        let fresh = 1.0 / self.shared - 1.0;
        let mut taken: Vec<f64> = Vec::with_capacity(self.active.len());
        let mut place = |id: &JobId| {
            let is_fresh = stream.uniform() * (fresh + taken.len() as f64) < fresh;
            let place = if is_fresh { stream.uniform() } else { taken[stream.below(taken.len())] };
            taken.push(place);
            (*id, place)
        };
        self.active.keys().map(&mut place).collect()
    }

    /// Distribution of the total steps of an active job, given the steps that it has run.
    pub fn work(&self, run: &Run, id: JobId, known: &KnownJob) -> Work {
        let Some(own) = self.active.get(&id) else { return Work::Known(known.job.total_steps) };
        let n_jobs = self.compared.len();
        let weights: Vec<f64> =
            self.compared.iter().map(|job| self.likeness.weight(own, job, n_jobs)).collect();
        let of_ended =
            || weights.iter().zip(&self.observed).filter(|(_, one)| one.has_ended).map(|(weight, _)| *weight);
        let n_effective =
            of_ended().sum::<f64>().powi(2) / of_ended().map(|weight| weight * weight).sum::<f64>();
        let (steps_run, rate) = (known.steps_run.get(), rate(run, &known.job));
        let survival = Survival::of(&self.observed, &weights, steps_run / rate, self.exponent);
        Work::Drawn(Drawn { survival, n_effective, steps_run, rate })
    }
}

/// Numbers of job types and owners, in order of appearance.
#[derive(Debug, Default)]
struct Numbered {
    kinds: BTreeMap<(String, u32), usize>,
    owners: BTreeMap<String, usize>,
}

impl Numbered {
    fn compared(&mut self, run: &Run, position: usize, known: &KnownJob) -> Compared {
        let KnownJob { job, steps_run, course } = known;
        let next = self.kinds.len();
        let kind = *self.kinds.entry((job.job_type.clone(), job.scale_factor)).or_insert(next);
        let next = self.owners.len();
        let owner = job.entity.clone().map(|owner| *self.owners.entry(owner).or_insert(next));
        let observed =
            Observed { work_s: steps_run.get() / rate(run, job), has_ended: course.ended.is_some() };
        Compared { position, kind, owner, observed }
    }
}

/// Throughput of a job alone on the run's worker type where it is fastest, steps/s.
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
    // Runs are checked when they are loaded: each job runs somewhere.
    if fastest > 0.0 { fastest } else { 1.0 }
}
