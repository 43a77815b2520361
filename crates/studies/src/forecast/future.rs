//! Forks of a simulation, each over one possible future.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rayon::prelude::*;

use crate::forecast::arrivals::{Blocks, Resampled};
use crate::forecast::durations::{Durations, Work};
use crate::forecast::error::ForecastError;
use crate::forecast::past::{Course, KnownJob, Resumed, Situation};
use crate::sweep::Run;
use crate::sweep::simulation::begin_with;
use apportion::index::{Id, JobId};
use apportion::simulator::{Event, Observer, Step};
use apportion::solver::Interrupt;
use apportion::units::{Seconds, Steps};
use apportion::workload::random::SeedStreams;
use apportion::workload::{Arrivals, Job, Listed};

/// The most forks that are accepted.
pub const FORKS_MAX: usize = 10_000_000;

/// Knowledge of the total steps of jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobSteps {
    /// The total steps of jobs that have not ended are drawn anew in each fork.
    Drawn,
    /// The total steps are those of the trace.
    Known,
}

/// Jobs that arrive after the instant of the forecast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arriving {
    /// Jobs like those that arrived before, drawn anew in each fork.
    Resampled,
    /// No jobs.
    None,
}

/// Settings of a forecast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Number of forks; 1000 by default.
    pub n_forks: usize,
    /// Seed from which every random stream is split.
    pub seed: u64,
    /// Knowledge of the total steps of jobs; drawn by default.
    pub steps: JobSteps,
    /// Jobs to come; resampled by default.
    pub arriving: Arriving,
    /// Length of the time before the forecast from which arrivals are resampled; two weeks by default.
    pub history: Seconds,
    /// Time after the instant at which a fork ends at the latest; 30 days by default.
    pub limit: Seconds,
}

impl Default for Settings {
    fn default() -> Self {
        let days = |n: f64| Seconds::new(n * 86_400.0);
        Self {
            n_forks: 1000,
            seed: 0,
            steps: JobSteps::Drawn,
            arriving: Arriving::Resampled,
            history: days(14.0),
            limit: days(30.0),
        }
    }
}

impl Settings {
    /// Refuses settings out of their range.
    pub(super) fn check(&self) -> Result<(), ForecastError> {
        if self.n_forks == 0 || self.n_forks > FORKS_MAX {
            let message = format!("{}, expected from 1 to {FORKS_MAX}", self.n_forks);
            return Err(ForecastError::setting("forks", message));
        }
        for (field, time) in [("history", self.history), ("limit", self.limit)] {
            if !time.is_finite() || time <= Seconds::ZERO {
                return Err(ForecastError::setting(field, format!("{time}, expected a time above 0")));
            }
        }
        Ok(())
    }
}

/// Ways to stop forks, and a function that is called after each.
#[derive(Clone, Default)]
pub struct Attended<'a> {
    /// A flag: once it is raised, no fork goes on.
    pub stop: Arc<AtomicBool>,
    /// Interrupt that breaks off decisions.
    pub interrupt: Interrupt,
    /// Function that is called after each fork, on any thread.
    pub forked: Option<&'a (dyn Fn() + Sync)>,
}

impl std::fmt::Debug for Attended<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attended").field("stop", &self.stop).finish_non_exhaustive()
    }
}

/// Possible futures of a situation: distributions of the steps of active jobs and of the jobs to come.
#[derive(Debug)]
pub struct Outlook<'a> {
    run: &'a Run,
    situation: &'a Situation,
    settings: Settings,
    /// Jobs from which steps are drawn; none where steps are known.
    durations: Option<Durations>,
    /// Total steps of the active jobs: known or drawn.
    works: BTreeMap<JobId, Work>,
    /// Blocks from which jobs to come are drawn; none where no jobs come.
    blocks: Option<Arc<Blocks>>,
}

impl<'a> Outlook<'a> {
    /// The possible futures of a situation of a run.
    ///
    /// # Errors
    /// If a setting is out of its range, or nothing has happened from which to draw.
    pub fn new(run: &'a Run, situation: &'a Situation, settings: &Settings) -> Result<Self, ForecastError> {
        settings.check()?;
        if settings.steps == JobSteps::Drawn && situation.checkpoint.is_inside_rounds() {
            return Err(ForecastError::Remembers { policy: run.spec.policy.clone() });
        }
        let durations = match settings.steps {
            JobSteps::Known => None,
            JobSteps::Drawn => Some(Durations::of(run, situation)?),
        };
        let work = |(id, known): (JobId, &KnownJob)| match &durations {
            Some(durations) => (id, durations.work(run, id, known)),
            None => (id, Work::Known(known.job.total_steps)),
        };
        let works: BTreeMap<JobId, Work> = situation.active().map(work).collect();
        let blocks = match settings.arriving {
            Arriving::None => None,
            Arriving::Resampled => Some(Arc::new(Blocks::of(run, situation, settings.history, &works)?)),
        };
        Ok(Self { run, situation, settings: *settings, durations, works, blocks })
    }

    /// Blocks from which jobs to come are drawn; none where no jobs come.
    pub fn blocks(&self) -> Option<&Blocks> {
        self.blocks.as_deref()
    }

    /// Jobs from which the steps of active jobs are drawn; none where steps are known.
    pub fn durations(&self) -> Option<&Durations> {
        self.durations.as_ref()
    }

    /// Total steps of an active job: known or drawn.
    pub fn work(&self, job: JobId) -> Option<&Work> {
        self.works.get(&job)
    }

    /// Courses of some jobs in every fork: `[fork][job]`. They depend on the settings alone, not on the number of threads.
    ///
    /// # Errors
    /// If a simulation fails, or the forks are stopped.
    pub fn forks(&self, jobs: &[JobId], attended: &Attended<'_>) -> Result<Vec<Vec<Course>>, ForecastError> {
        let n_done = AtomicUsize::new(0);
        let fork = |index: usize| {
            if attended.stop.load(Ordering::Relaxed) {
                return Err(ForecastError::Interrupted { n_done: n_done.load(Ordering::Relaxed) });
            }
            let Some(courses) = self.fork(index, jobs, attended)? else {
                return Err(ForecastError::Interrupted { n_done: n_done.load(Ordering::Relaxed) });
            };
            n_done.fetch_add(1, Ordering::Relaxed);
            if let Some(forked) = attended.forked {
                forked();
            }
            Ok(courses)
        };
        (0..self.settings.n_forks).into_par_iter().map(fork).collect()
    }

    /// Courses of some jobs in one fork; none if it is stopped.
    fn fork(
        &self,
        index: usize,
        jobs: &[JobId],
        attended: &Attended<'_>,
    ) -> Result<Option<Vec<Course>>, ForecastError> {
        let streams = SeedStreams::new(self.settings.seed);
        let name = |what: &str| format!("forecast at {} s, fork {index}: {what}", self.situation.at.get());
        let mut stream = streams.stream(name("steps"));
        let places =
            self.durations.as_ref().map(|durations| durations.places(&mut stream)).unwrap_or_default();
        let place = |id: &JobId| places.get(id).copied().unwrap_or_default();
        let totals = self.works.iter().map(|(id, work)| (*id, work.at(place(id)))).collect();
        let later: Box<dyn Arrivals> = match &self.blocks {
            Some(blocks) => Box::new(Resampled::new(Arc::clone(blocks), streams.stream(name("arrivals")))),
            None => Box::new(Listed::new(Vec::new())),
        };
        self.go_on(totals, later, jobs, attended)
    }

    /// Courses of some jobs if all jobs have the steps of the trace, and `later` are the jobs to come.
    ///
    /// # Errors
    /// If the simulation fails.
    pub fn with_future(&self, later: Vec<Job>, jobs: &[JobId]) -> Result<Vec<Course>, ForecastError> {
        let totals = self.situation.active().map(|(id, known)| (id, known.job.total_steps)).collect();
        let courses = self.go_on(totals, Box::new(Listed::new(later)), jobs, &Attended::default())?;
        Ok(courses.unwrap_or_default())
    }

    /// Continues from the situation with given total steps of the active jobs, and given jobs after those that have arrived.
    /// None if it is stopped.
    fn go_on(
        &self,
        mut totals: BTreeMap<JobId, Steps>,
        later: Box<dyn Arrivals>,
        jobs: &[JobId],
        attended: &Attended<'_>,
    ) -> Result<Option<Vec<Course>>, ForecastError> {
        let Situation { at, checkpoint, is_undecided, .. } = self.situation;
        let n_skipped = checkpoint.n_arrived();
        let waiting = totals.range(JobId::from_index(n_skipped as usize)..);
        let waiting =
            waiting.filter_map(|(id, total)| Some(self.situation.find(*id)?.job.clone().total_steps(*total)));
        let waiting: Vec<Job> = waiting.collect();
        // A job that ended between the checkpoint and the instant keeps its total.
        for (id, job, _) in checkpoint.active() {
            totals.entry(id).or_insert(job.total_steps);
        }
        let arrivals = Box::new(Resumed { n_skipped, known: waiting.into_iter(), later });
        let mut simulation = begin_with(self.run, arrivals, Some(checkpoint), attended.interrupt.clone())?;
        simulation.restate_steps(|id, steps_run| totals.get(&id).copied().unwrap_or(steps_run))?;
        let mut watch = Watch::of(jobs, self.situation);
        if *is_undecided {
            simulation.start_round(&mut watch)?;
        }
        let limit = *at + self.settings.limit;
        while watch.n_open > 0 && simulation.now() <= limit {
            if attended.stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            if simulation.step(&mut watch)? != Step::Advanced {
                break;
            }
        }
        let by_limit = |event: Option<Seconds>| event.filter(|instant| *instant <= limit);
        let within =
            |course: Course| Course { started: by_limit(course.started), ended: by_limit(course.ended) };
        Ok(Some(watch.courses.into_iter().map(within).collect()))
    }
}

/// Observer that records the courses of a few jobs.
#[derive(Debug)]
struct Watch<'a> {
    jobs: &'a [JobId],
    courses: Vec<Course>,
    /// Number of these jobs that have not ended.
    n_open: usize,
}

impl<'a> Watch<'a> {
    fn of(jobs: &'a [JobId], situation: &Situation) -> Self {
        let course = |id: &JobId| situation.find(*id).map(|known| known.course).unwrap_or_default();
        let courses: Vec<Course> = jobs.iter().map(course).collect();
        let n_open = courses.iter().filter(|course| course.ended.is_none()).count();
        Self { jobs, courses, n_open }
    }

    fn course(&mut self, id: JobId) -> Option<&mut Course> {
        let position = self.jobs.iter().position(|other| *other == id)?;
        Some(&mut self.courses[position])
    }
}

impl Observer for Watch<'_> {
    fn observe(&mut self, event: &Event<'_>) {
        match event {
            Event::Lease { now, jobs, .. } => {
                for id in jobs.members() {
                    if let Some(course) = self.course(id) {
                        course.started.get_or_insert(*now);
                    }
                }
            }
            Event::Completion { at, id, .. } | Event::Dropped { at, id, .. } => {
                if let Some(course) = self.course(*id) {
                    course.ended = Some(*at);
                    self.n_open -= 1;
                }
            }
            _ => {}
        }
    }
}
