//! Simulation of a trace up to an instant, and the situation then.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::forecast::error::ForecastError;
use crate::sweep::Run;
use crate::sweep::simulation::begin_with;
use apportion::index::{Id, JobId};
use apportion::scheduler::SchedulerState;
use apportion::simulator::{Checkpoint, Event, Observer, Options, Simulation, SimulationError, Slice, Step};
use apportion::solver::Interrupt;
use apportion::units::{Seconds, Steps};
use apportion::workload::{Arrivals, Job, Listed};

/// First start and end of a job; none of an event that has not happened.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Course {
    /// Start of the first round in which it had workers.
    pub started: Option<Seconds>,
    /// End of its last step.
    pub ended: Option<Seconds>,
}

/// A job as it is known at the instant of a forecast.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownJob {
    /// The job. If it has not ended, its total steps are those that its owner asked for; forecasts that draw steps ignore
    /// them.
    pub job: Job,
    /// Steps that it has run by the instant.
    pub steps_run: Steps,
    /// Course of the job up to the instant.
    pub course: Course,
}

/// State at an instant, from which the simulation forks.
///
/// Its origin does not matter: a simulation of a trace ([`Chronicle`]), or a scheduler in operation.
#[derive(Clone, Debug)]
pub struct Situation {
    /// Instant of the forecast.
    pub at: Seconds,
    /// Jobs that have arrived by then, in order of arrival; of the ended ones, as many as are remembered.
    pub jobs: Vec<KnownJob>,
    /// Positions in `jobs` of the jobs that have not ended, by id.
    pub active: BTreeMap<JobId, usize>,
    /// Simulation at the last boundary between rounds that is not after the instant.
    pub checkpoint: Checkpoint,
    /// Whether the round that starts at that boundary is still to be decided; else nothing runs until the next event.
    pub is_undecided: bool,
}

impl Situation {
    /// The situation of a scheduler at an instant of its clock. The run has its cluster, policy and rules; its trace is
    /// ignored. `jobs` are the jobs that it was given, in any order, each with its id there if it has not ended.
    ///
    /// The round in progress counts as over: at the instant the next one is decided.
    ///
    /// # Errors
    /// If the run has what forecasts do not know, or the scheduler has another cluster or kind of policy.
    pub fn taking_over(
        run: &Run,
        state: &SchedulerState,
        at: Seconds,
        mut jobs: Vec<(Option<JobId>, KnownJob)>,
    ) -> Result<Self, ForecastError> {
        check_run(run)?;
        jobs.sort_by(|(_, one), (_, other)| one.job.arrival.get().total_cmp(&other.job.arrival.get()));
        let positions = jobs.iter().enumerate();
        let active: BTreeMap<JobId, usize> =
            positions.filter_map(|(position, (id, _))| Some(((*id)?, position))).collect();
        let steps = active.iter().map(|(id, position)| (*id, jobs[*position].1.steps_run)).collect();
        let fresh = begin_with(run, Box::new(Listed::new(Vec::new())), None, Interrupt::default())?;
        let checkpoint = fresh.checkpoint().taking_over(state, at, &steps).map_err(|error| match error {
            SimulationError::Checkpoint { reason } => ForecastError::setting("policy", reason),
            other => other.into(),
        })?;
        let jobs = jobs.into_iter().map(|(_, known)| known).collect();
        Ok(Self { at, jobs, active, checkpoint, is_undecided: true })
    }

    /// Jobs that have not ended, by id.
    pub fn active(&self) -> impl ExactSizeIterator<Item = (JobId, &KnownJob)> {
        self.active.iter().map(|(id, position)| (*id, &self.jobs[*position]))
    }

    /// An active job.
    pub fn find(&self, id: JobId) -> Option<&KnownJob> {
        self.active.get(&id).map(|position| &self.jobs[*position])
    }
}

/// Jobs of a run's trace in order of arrival, with times from its first arrival.
///
/// # Errors
/// If the run has no trace.
pub fn jobs_of(run: &Run) -> Result<Vec<Job>, ForecastError> {
    if run.spec.workload.trace.is_none() {
        return Err(ForecastError::setting("trace", "there is none, expected jobs from a file"));
    }
    let mut arrivals = run.arrivals()?;
    Ok(std::iter::from_fn(|| arrivals.next_job()).collect())
}

/// Refuses runs whose forks would know the future: failures and prices to come are part of a simulation's state.
pub(super) fn check_run(run: &Run) -> Result<(), ForecastError> {
    let options = &run.options;
    let plain = apportion::simulator::Faults::default();
    let refused = [
        ("ideal", options.ideal, "without rounds there is no first round of a job"),
        ("faults", options.faults != plain, "failures to come are drawn beforehand"),
        ("prices", !options.prices.is_empty(), "prices to come are not known"),
        ("profiling", options.profiling.is_some(), "forks do not draw what is measured anew"),
        ("live", !options.live.is_off(), "forks start at boundaries between rounds, without an inside"),
    ];
    match refused.into_iter().find(|(_, is_asked, _)| *is_asked) {
        Some((field, _, why)) => Err(ForecastError::setting(field, format!("not in forecasts: {why}"))),
        None => Ok(()),
    }
}

/// Record of each job's course, by id, and of the last round.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) courses: Vec<Course>,
    /// Slices of the last round.
    slices: Vec<Slice>,
    /// Number of leases of the last round.
    n_leases: usize,
}

impl Log {
    fn course(&mut self, id: JobId) -> &mut Course {
        if self.courses.len() <= id.index() {
            self.courses.resize(id.index() + 1, Course::default());
        }
        &mut self.courses[id.index()]
    }

    /// Steps that a job had run by an instant in the last round.
    fn steps_by(&self, id: JobId, at: Seconds) -> f64 {
        let run = |slice: &Slice| {
            let member = slice.jobs.members().position(|member| member == id)?;
            let worked_s = (at - slice.start - slice.overhead).get().max(0.0);
            let steps = (slice.throughput[member] * worked_s).floor().min(slice.steps[member].get());
            slice.succeeded.then_some(steps)
        };
        self.slices.iter().filter_map(run).sum()
    }
}

impl Observer for Log {
    fn observe(&mut self, event: &Event<'_>) {
        match event {
            Event::Arrival { id, .. } => drop(self.course(*id)),
            Event::RoundStarted { n_leases, .. } => {
                self.slices.clear();
                self.n_leases = *n_leases;
            }
            Event::Lease { now, jobs, .. } => {
                for id in jobs.members() {
                    self.course(id).started.get_or_insert(*now);
                }
            }
            Event::Slice(slice) => self.slices.push(*slice),
            Event::Completion { at, id, .. } | Event::Dropped { at, id, .. } => {
                self.course(*id).ended = Some(*at);
            }
            _ => {}
        }
    }
}

/// Simulation of a trace that is continued from instant to instant.
#[derive(Debug)]
pub struct Chronicle {
    jobs: Arc<[Job]>,
    simulation: Simulation,
    log: Log,
    /// Whether the boundary after the last round is reached, and the next round is not decided.
    is_undecided: bool,
    is_over: bool,
    /// Last boundary that a situation may refer to, and whether it is undecided.
    kept: Option<(Checkpoint, bool)>,
    stop: Arc<AtomicBool>,
}

impl Chronicle {
    /// A chronicle at the start of a run of these jobs, which are in order of arrival. `stop` is a flag that ends it.
    ///
    /// # Errors
    /// If the run cannot start, or has options that forecasts do not support.
    pub fn new(
        run: &Run,
        jobs: Arc<[Job]>,
        interrupt: Interrupt,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, ForecastError> {
        check_run(run)?;
        let simulation = begin_with(run, Box::new(Listed::new(jobs.to_vec())), None, interrupt)?;
        let log = Log::default();
        Ok(Self { jobs, simulation, log, is_undecided: false, is_over: false, kept: None, stop })
    }

    /// Courses of the jobs so far, by id.
    pub fn courses(&self) -> &[Course] {
        &self.log.courses
    }

    /// Continues to the last boundary not after an instant, and returns the situation at the instant; none if all jobs have
    /// ended by then. The instant must not be before that of the last call.
    ///
    /// # Errors
    /// If the simulation fails, or is stopped.
    pub fn situation(&mut self, at: Seconds) -> Result<Option<Situation>, ForecastError> {
        let longest = longest_round(self.simulation.options());
        loop {
            self.reach()?;
            if self.is_over || self.simulation.now() > at {
                break;
            }
            if self.simulation.now() + longest > at {
                self.kept = Some((self.simulation.checkpoint(), true));
            }
            self.start()?;
            if self.log.n_leases == 0 {
                // Only this boundary can be kept, as the next one may be far away.
                self.kept = Some((self.simulation.checkpoint(), false));
            }
        }
        let is_drained = self.is_over && self.simulation.now() <= at;
        let kept = self.kept.as_ref().filter(|_| !is_drained);
        Ok(kept.map(|(checkpoint, is_undecided)| self.told(at, checkpoint, *is_undecided)))
    }

    fn told(&self, at: Seconds, checkpoint: &Checkpoint, is_undecided: bool) -> Situation {
        let run: BTreeMap<JobId, Steps> = checkpoint.active().map(|(id, _, steps)| (id, steps)).collect();
        let by_then = |event: Option<Seconds>| event.filter(|instant| *instant <= at);
        let known = |(position, job): (usize, &Job)| {
            let id = JobId::from_index(position);
            let course = self.log.courses.get(position).copied().unwrap_or_default();
            let course = Course { started: by_then(course.started), ended: by_then(course.ended) };
            let steps_run = match (course.ended, run.get(&id)) {
                (None, Some(steps)) => *steps + Steps::new(self.log.steps_by(id, at)),
                (None, None) => Steps::ZERO,
                (Some(_), _) => job.total_steps,
            };
            KnownJob { job: job.clone(), steps_run, course }
        };
        let arrived = self.jobs.iter().enumerate().take_while(|(_, job)| job.arrival <= at);
        let jobs: Vec<KnownJob> = arrived.map(known).collect();
        let active = jobs.iter().enumerate().filter(|(_, known)| known.course.ended.is_none());
        let active = active.map(|(position, _)| (JobId::from_index(position), position)).collect();
        Situation { at, jobs, active, checkpoint: checkpoint.clone(), is_undecided }
    }

    /// Continues until all of these jobs have ended, or to an instant.
    ///
    /// # Errors
    /// Fails as [`situation`](Self::situation) does.
    pub fn finish(&mut self, jobs: &[JobId], limit: Seconds) -> Result<(), ForecastError> {
        let has_ended =
            |log: &Log, id: &JobId| log.courses.get(id.index()).is_some_and(|course| course.ended.is_some());
        loop {
            self.reach()?;
            let is_done = jobs.iter().all(|id| has_ended(&self.log, id));
            if is_done || self.is_over || self.simulation.now() > limit {
                return Ok(());
            }
            self.start()?;
        }
    }

    /// Continues to the next boundary, if it is not reached yet.
    fn reach(&mut self) -> Result<(), ForecastError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(ForecastError::Interrupted { n_done: 0 });
        }
        if !self.is_undecided && !self.is_over {
            let step = self.simulation.reach_boundary(&mut self.log)?;
            self.is_over = step != Step::Advanced;
            self.is_undecided = !self.is_over;
        }
        Ok(())
    }

    fn start(&mut self) -> Result<(), ForecastError> {
        self.is_undecided = false;
        Ok(self.simulation.start_round(&mut self.log)?)
    }
}

/// Upper bound on the length of a round: a round in which a job loses more time than the round has ends later.
fn longest_round(options: &Options) -> Seconds {
    let lost = options.preemption_cost.iter().flat_map(|cost| {
        let by_type = cost.job_types.iter().map(|(_, time)| *time);
        by_type.chain([cost.checkpoint + cost.restore])
    });
    lost.fold(options.round_length, |longest, lost| longest.max(options.round_length + lost))
}

/// Jobs that have arrived by an instant, to be simulated as if no others came, and one job after it, which only keeps the
/// clock from stopping before the instant and is never reported.
pub(super) fn arrived_by(jobs: &[Job], at: Seconds) -> Arc<[Job]> {
    let arrived = jobs.iter().filter(|job| job.arrival <= at).cloned();
    let after = jobs.first().map(|job| job.clone().arrival(Seconds::new(at.get() + 1.0)));
    arrived.chain(after).collect()
}

/// Jobs of a source after the first `n_skipped`, which a resumed simulation passes over.
#[derive(Debug)]
pub(super) struct Resumed {
    pub(super) n_skipped: u32,
    pub(super) known: std::vec::IntoIter<Job>,
    pub(super) later: Box<dyn Arrivals>,
}

impl Arrivals for Resumed {
    fn next_job(&mut self) -> Option<Job> {
        if self.n_skipped > 0 {
            self.n_skipped -= 1;
            return Some(Job::new(""));
        }
        self.known.next().or_else(|| self.later.next_job())
    }
}
