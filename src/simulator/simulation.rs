//! The loop: one step is one round.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::active::{Progress, Table};
use super::adapter::{Mechanized, Situation};
use super::apply::Direct;
use super::event::{Event, Observer, Slice};
use super::faults::FaultState;
use super::feed::Feed;
use super::ideal::Fluid;
use super::options::{ExecutionTime, Options};
use super::progress::{Conditions, Fate, Links, Running};
use crate::cluster::Cluster;
use crate::index::{Id, JobId, WorkerTypeId};
use crate::mechanism::{LastServer, Workers};
use crate::policy::{Decision, Policy, PolicyError, Ran, RoundPolicy};
use crate::problem::{Entity, Problem, ProblemError};
use crate::throughput::Throughputs;
use crate::throughput::estimator::EstimatorError;
use crate::units::{Seconds, Steps};
use crate::workload::{Arrivals, Combination};

/// Why a simulation cannot go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SimulationError {
    /// A job, or the cluster, does not fit the throughputs.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// The policy gave no decision.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// Throughputs cannot be estimated so.
    #[error(transparent)]
    Estimator(#[from] EstimatorError),
    /// An option out of its range.
    #[error("{field} is {value}, expected {expected}")]
    Option {
        /// The field.
        field: &'static str,
        /// What it is.
        value: String,
        /// What it ought to be.
        expected: &'static str,
    },
    /// A source whose jobs go back in time.
    #[error("job {job} arrives at {arrival}, before the one before it")]
    OutOfOrder {
        /// Which job.
        job: JobId,
        /// Its arrival.
        arrival: Seconds,
    },
    /// A round policy that does not come to an end.
    #[error("the policy made {decisions} decisions in round {round} without ending it")]
    Livelock {
        /// How many.
        decisions: usize,
        /// In which round.
        round: u64,
    },
    /// A checkpoint of something else.
    #[error("the checkpoint does not fit this simulation: {reason}")]
    Checkpoint {
        /// In which respect.
        reason: String,
    },
}

/// When to stop before the end; nothing by default.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Simulated time.
    pub time: Option<Seconds>,
    /// Active jobs: a cluster that cannot keep up has ever more of them.
    pub active_jobs: Option<usize>,
    /// Rounds of this call.
    pub rounds: Option<u64>,
    /// Becomes true when somebody wants an end.
    pub interrupt: Option<Arc<AtomicBool>>,
}

/// How [`Simulation::run`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All measured jobs are done.
    Finished,
    /// The limit on simulated time was reached.
    TimeLimit,
    /// The limit on active jobs was reached.
    ActiveLimit,
    /// The limit on rounds was reached.
    RoundLimit,
    /// Somebody wanted an end.
    Interrupted,
    /// Jobs are waiting, nothing runs, and nothing will ever change.
    Stalled,
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A round was started, or the clock was moved on.
    Advanced,
    /// All measured jobs are done.
    Finished,
    /// Nothing can ever happen again.
    Stalled,
}

/// Where time stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Clock {
    pub(super) now: f64,
    pub(super) round: u64,
    /// End of the last round that ran something.
    pub(super) round_end: Option<f64>,
    /// End of the one before, from which the published system counts execution time.
    pub(super) round_base: f64,
    /// Jobs of the measurement window that are done.
    pub(super) n_measured_done: u32,
    /// Price changes that have happened.
    pub(super) n_prices: usize,
}

/// Who decides.
#[derive(Debug)]
pub(super) enum Driver {
    Mechanized(Box<Mechanized>),
    Direct(Box<Direct>),
}

/// What is fixed for the whole run.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) options: Options,
    /// The cluster with all its workers.
    pub(super) cluster: Arc<Cluster>,
}

/// A simulation: a clock, jobs and a policy.
///
/// ```
/// use std::sync::Arc;
/// use apportion::simulator::{Limits, Options, Outcome, Simulation, Unobserved};
/// # use apportion::{Allocation, Cluster, Job, Problem, Seconds, StepsPerSecond, Throughputs};
/// # use apportion::policy::{Decision, Policy, PolicyError};
/// # use apportion::throughput::Measured;
/// # use apportion::workload::{Combination, Listed};
/// # #[derive(Debug)]
/// # struct First;
/// # impl Policy for First {
/// #     fn name(&self) -> &str { "first" }
/// #     fn allocate(&mut self, problem: &Problem) -> Result<Decision, PolicyError> {
/// #         let first = problem.jobs().ids().next();
/// #         let rows = first.map(|job| (Combination::single(job), vec![1.0]));
/// #         Ok(Decision::of(Allocation::check(problem, rows).unwrap()))
/// #     }
/// # }
/// # let cluster: Cluster = "v100=1".parse()?;
/// # let measured = Measured { name: "none".into(), worker_types: vec!["v100".into()], rows: vec![],
/// #     consolidated: vec![], spread: vec![], colocated: ndarray::Array3::zeros((1, 0, 0)) };
/// # let throughputs = Arc::new(Throughputs::try_new(measured)?);
/// let jobs = vec![Job::new("mine").steps(1000).throughput("v100", StepsPerSecond::new(2.0))];
/// let arrivals = Box::new(Listed::new(jobs));
/// let policy = Box::new(First);
/// let mut simulation = Simulation::new((&cluster, throughputs), arrivals, policy, Options::default())?;
/// assert_eq!(simulation.run(&mut Unobserved, &Limits::default())?, Outcome::Finished);
/// assert_eq!(simulation.now(), Seconds::new(500.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Simulation {
    pub(super) setting: Setting,
    /// The cluster as it is now: workers that are up, current prices.
    pub(super) cluster: Arc<Cluster>,
    pub(super) feed: Feed,
    pub(super) table: Table,
    pub(super) driver: Driver,
    pub(super) clock: Clock,
    pub(super) running: Vec<Running>,
    pub(super) faults: FaultState,
    pub(super) fluid: Option<Fluid>,
    links: Links,
    ran: Vec<Ran>,
}

impl Simulation {
    /// A simulation at time 0 of a policy behind the mechanism. Worker types are put in the order in which the
    /// throughputs list them.
    ///
    /// # Errors
    /// If the throughputs lack a worker type of the cluster, or an option is out of range.
    pub fn new(
        (cluster, throughputs): (&Cluster, Arc<Throughputs>),
        arrivals: Box<dyn Arrivals>,
        policy: Box<dyn Policy>,
        options: Options,
    ) -> Result<Self, SimulationError> {
        let cluster = usable(cluster, &throughputs, &options);
        let mechanized = Mechanized::new(policy, &cluster, &options.semantics, options.seed);
        let driver = Driver::Mechanized(Box::new(mechanized));
        Self::with_driver((cluster, throughputs), arrivals, driver, options)
    }

    /// A simulation at time 0 of a policy that decides inside rounds.
    ///
    /// # Errors
    /// As [`new`](Self::new); and `ideal` has no meaning without an allocation.
    pub fn with_round_policy(
        (cluster, throughputs): (&Cluster, Arc<Throughputs>),
        arrivals: Box<dyn Arrivals>,
        policy: Box<dyn RoundPolicy>,
        options: Options,
    ) -> Result<Self, SimulationError> {
        let cluster = usable(cluster, &throughputs, &options);
        let workers = Workers::new(&cluster, options.semantics.mechanism.last_server);
        let driver = Driver::Direct(Box::new(Direct::new(policy, workers)));
        if options.ideal {
            let expected = "false for a policy that decides inside rounds";
            return Err(SimulationError::Option { field: "ideal", value: "true".to_owned(), expected });
        }
        Self::with_driver((cluster, throughputs), arrivals, driver, options)
    }

    fn with_driver(
        (cluster, throughputs): (Cluster, Arc<Throughputs>),
        arrivals: Box<dyn Arrivals>,
        driver: Driver,
        options: Options,
    ) -> Result<Self, SimulationError> {
        super::checkpoint::check_options(&options, &cluster)?;
        let cluster = Arc::new(cluster);
        let table = Table::new(&cluster, throughputs)?.estimating(&options)?;
        let faults = FaultState::new(&options.faults, driver.workers(), options.seed);
        let fluid = options.ideal.then(Fluid::default);
        Ok(Self {
            setting: Setting { options, cluster: Arc::clone(&cluster) },
            cluster,
            feed: Feed::new(arrivals, 0),
            table,
            driver,
            clock: Clock::default(),
            running: Vec::new(),
            faults,
            fluid,
            links: Links::default(),
            ran: Vec::new(),
        })
    }

    /// Declares owners of jobs with their weights and inner rules; others get weight 1 when first seen.
    #[must_use]
    pub fn with_entities(mut self, entities: impl IntoIterator<Item = Entity>) -> Self {
        for entity in entities {
            let known = self.table.entities.iter().position(|other| other.name == entity.name);
            match known {
                Some(position) => self.table.entities[Id::from_index(position)] = entity,
                None => drop(self.table.entities.push(entity)),
            }
        }
        self
    }

    /// The clock.
    pub fn now(&self) -> Seconds {
        Seconds::new(self.clock.now)
    }

    /// Rounds started.
    pub fn round(&self) -> u64 {
        self.clock.round
    }

    /// Jobs that have arrived and are not done.
    pub fn n_active(&self) -> usize {
        self.table.jobs.len()
    }

    /// Jobs that have arrived.
    pub fn n_arrived(&self) -> u32 {
        self.feed.n_taken()
    }

    /// Measured jobs that are done.
    pub fn n_measured_done(&self) -> u32 {
        self.clock.n_measured_done
    }

    /// The cluster, with its worker types in the order of all ids and vectors.
    pub fn cluster(&self) -> &Cluster {
        &self.setting.cluster
    }

    /// The options.
    pub fn options(&self) -> &Options {
        &self.setting.options
    }

    /// Runs until all measured jobs are done, or a limit is reached.
    ///
    /// # Errors
    /// If a job does not fit the throughputs, or the policy fails; what was observed remains.
    pub fn run(&mut self, observer: &mut dyn Observer, limits: &Limits) -> Result<Outcome, SimulationError> {
        let first = self.clock.round;
        loop {
            if limits.interrupt.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)) {
                return Ok(Outcome::Interrupted);
            }
            if limits.time.is_some_and(|time| self.clock.now >= time.get()) {
                return Ok(Outcome::TimeLimit);
            }
            if limits.active_jobs.is_some_and(|most| self.table.jobs.len() > most) {
                return Ok(Outcome::ActiveLimit);
            }
            if limits.rounds.is_some_and(|most| self.clock.round - first >= most) {
                return Ok(Outcome::RoundLimit);
            }
            match self.step(observer)? {
                Step::Advanced => {}
                Step::Finished => return Ok(Outcome::Finished),
                Step::Stalled => return Ok(Outcome::Stalled),
            }
        }
    }

    /// Goes on to the next boundary and starts the round there.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn step(&mut self, observer: &mut dyn Observer) -> Result<Step, SimulationError> {
        if self.fluid.is_some() {
            return self.flow(observer);
        }
        if !self.advance_clock(observer) {
            return Ok(if self.is_finished() { Step::Finished } else { Step::Stalled });
        }
        self.end_slices(observer);
        if self.is_finished() {
            return Ok(Step::Finished);
        }
        self.take_arrivals(observer)?;
        self.apply_changes(observer);
        self.start_round(observer)?;
        Ok(Step::Advanced)
    }

    /// Are all measured jobs done?
    pub(super) fn is_finished(&self) -> bool {
        let drained = self.feed.next_arrival().is_none() && self.table.jobs.is_empty();
        let measure = self.setting.options.measure.as_ref();
        drained || measure.is_some_and(|ids| self.clock.n_measured_done as usize >= ids.len())
    }

    /// Moves on to the end of the running round, or to the next event; false if there is none.
    fn advance_clock(&mut self, observer: &mut dyn Observer) -> bool {
        let latest = self.running.iter().map(|slice| slice.end).fold(0.0, f64::max);
        if !self.running.is_empty() && latest > 0.0 {
            self.clock.round_base = self.clock.round_end.unwrap_or(self.clock.round_base);
            self.clock.round_end = Some(latest);
            self.clock.now = latest;
            return true;
        }
        let before = self.clock.now;
        if let Some(next) = self.next_event() {
            self.clock.now = before.max(next.get());
        } else {
            // Nothing will happen by itself. A change that the reset interval holds back counts now.
            let Driver::Mechanized(mechanized) = &mut self.driver else { return false };
            if !mechanized.mechanism.has_changed() || self.table.jobs.is_empty() {
                return false;
            }
            mechanized.mechanism.forget_reset();
        }
        if self.clock.now > before {
            let (from, until) = (Seconds::new(before), Seconds::new(self.clock.now));
            observer.observe(&Event::Idle { from, until });
        }
        true
    }

    /// The next arrival, repair or change of price.
    pub(super) fn next_event(&self) -> Option<Seconds> {
        let price = self.setting.options.prices.get(self.clock.n_prices).map(|change| change.at);
        let waiting = !self.table.jobs.is_empty();
        let repair = if waiting { self.faults.next_repair(self.driver.workers()) } else { None };
        let other = if waiting { price } else { None };
        [self.feed.next_arrival(), repair, other].into_iter().flatten().min_by(Seconds::total_cmp)
    }

    /// Ends the running slices, the latest first, equal ones by job.
    fn end_slices(&mut self, observer: &mut dyn Observer) {
        self.ran.clear();
        let mut running = std::mem::take(&mut self.running);
        running.sort_unstable_by(|one, other| {
            let key = |slice: &Running| (slice.jobs.is_pair(), slice.jobs);
            other.end.total_cmp(&one.end).then_with(|| key(one).cmp(&key(other)))
        });
        for slice in &running {
            self.end_slice(slice, observer);
        }
        running.clear();
        self.running = running;
    }

    fn end_slice(&mut self, slice: &Running, observer: &mut dyn Observer) {
        let base = match self.setting.options.semantics.execution_time {
            ExecutionTime::OwnSlice => slice.start,
            ExecutionTime::SinceLastRound => self.clock.round_base,
        };
        let succeeded = slice.fate == Fate::Succeeds;
        let time = Seconds::new(slice.end - base);
        let counted = succeeded || slice.fate == Fate::WorkerFails || slice.fate == Fate::JobFails;
        let steps = |part: usize| Steps::new(if succeeded { slice.parts[part].steps } else { 0.0 });
        observer.observe(&Event::Slice(Slice {
            jobs: slice.jobs,
            worker_type: slice.worker_type,
            n_workers: slice.n_workers,
            start: Seconds::new(slice.start),
            end: Seconds::new(slice.end),
            time: if counted { time } else { Seconds::ZERO },
            overhead: Seconds::new(slice.overhead),
            price: self.cluster.types()[slice.worker_type].price,
            steps: [steps(0), steps(1)],
            throughput: [slice.parts[0].throughput, slice.parts[1].throughput],
            succeeded,
        }));
        if counted {
            self.ran.push(Ran { combination: slice.jobs, worker_type: slice.worker_type, time });
            if let Driver::Mechanized(mechanized) = &mut self.driver {
                mechanized.mechanism.record_lease(slice.lease as usize, time);
            }
        }
        match slice.fate {
            Fate::Succeeds => {
                let measured = [slice.parts[0].throughput, slice.parts[1].throughput];
                if self.table.observe(slice.jobs, slice.worker_type, measured) {
                    self.driver.note_change();
                }
                for (job, part) in slice.jobs.members().zip(&slice.parts) {
                    self.progress(job, part.steps, (part.end, !slice.jobs.is_pair()), observer);
                }
            }
            Fate::TooShort | Fate::JobFails => self.fail(slice, observer),
            Fate::WorkerFails => {}
        }
    }

    /// A job ran some steps; it may be done.
    pub(super) fn progress(
        &mut self,
        job: JobId,
        steps: f64,
        (end, alone): (f64, bool),
        observer: &mut dyn Observer,
    ) {
        let Some(position) = self.table.find(job) else { return };
        let progress = &mut self.table.jobs[position].progress;
        progress.steps_run += steps;
        if alone {
            progress.attempts = 0;
        }
        if progress.steps_remaining() > 0.0 {
            return;
        }
        let Progress { id, measured, job, .. } = &*progress;
        let (at, isolated) = (Seconds::new(end), progress.isolated());
        observer.observe(&Event::Completion { at, id: *id, measured: *measured, job, isolated });
        self.remove(position);
    }

    /// A slice failed; too often in a row, and its job is given up. Failures of pairs are not counted.
    fn fail(&mut self, slice: &Running, observer: &mut dyn Observer) {
        self.driver.note_change();
        let Some(position) = self.table.find(slice.jobs.first()) else { return };
        if slice.jobs.is_pair() {
            return;
        }
        let progress = &mut self.table.jobs[position].progress;
        progress.attempts += 1;
        let Progress { id, attempts, measured, ref job, .. } = *progress;
        let at = Seconds::new(slice.end);
        observer.observe(&Event::Failure { at, id, attempts });
        if attempts >= self.setting.options.faults.jobs.attempts_max {
            observer.observe(&Event::Dropped { at, id, measured, job });
            self.remove(position);
        }
    }

    fn remove(&mut self, position: usize) {
        let gone = self.table.remove(position);
        self.clock.n_measured_done += u32::from(gone.progress.measured);
        if let Driver::Mechanized(mechanized) = &mut self.driver {
            mechanized.mechanism.remove_job(gone.progress.id);
        }
    }

    /// Takes in the jobs that have arrived.
    pub(super) fn take_arrivals(&mut self, observer: &mut dyn Observer) -> Result<(), SimulationError> {
        let now = self.now();
        while let Some((id, job)) = self.feed.take_until(now) {
            if self.feed.next_arrival().is_some_and(|next| next.get() < job.arrival.get()) {
                let arrival = self.feed.next_arrival().unwrap_or_default();
                let job = JobId::from_index(id.index() + 1);
                return Err(SimulationError::OutOfOrder { job, arrival });
            }
            let window = self.setting.options.measure.as_ref();
            let measured = window.is_none_or(|ids| ids.contains(&(self.feed.n_taken() - 1)));
            observer.observe(&Event::Arrival { now, id, measured, job: &job });
            let mut progress = Progress::new(id, job, measured);
            progress.noise = self.faults.noise(&self.setting.options.faults, id, self.cluster.n_types());
            let scale_factor = progress.job.scale_factor;
            self.table.add(progress, &self.setting.cluster)?;
            if let Driver::Mechanized(mechanized) = &mut self.driver {
                let table = &self.table;
                let runs = |jobs: Combination<JobId>, worker_type| table.runs(jobs, worker_type);
                mechanized.mechanism.add_job(id, scale_factor, &runs);
            }
        }
        Ok(())
    }

    /// Asks for decisions and starts what was decided.
    fn start_round(&mut self, observer: &mut dyn Observer) -> Result<(), SimulationError> {
        let now = self.now();
        self.faults.start_round(&self.setting.options.faults, self.clock.round);
        let mut moment = Moment { now, table: &mut self.table, cluster: &self.cluster, observer };
        match &mut self.driver {
            Driver::Mechanized(mechanized) => mechanized.decide(&mut moment)?,
            Driver::Direct(direct) => {
                direct.decide(&mut moment, (self.clock.round, &self.setting.options), &self.ran)?;
            }
        }
        let n_leases = self.driver.n_leases();
        let (round, n_active) = (self.clock.round, self.table.jobs.len());
        observer.observe(&Event::RoundStarted { now, round, n_active, n_leases });
        self.clock.round += 1;
        self.driver.tell_preempted(now, &self.table, observer);
        let workers = self.driver.workers();
        if self.setting.options.contention.is_some() {
            self.links.count(workers, (0..n_leases).map(|index| self.driver.lease(index)));
        }
        for index in 0..n_leases {
            self.start_slice(index, observer);
        }
        Ok(())
    }

    fn start_slice(&mut self, index: usize, observer: &mut dyn Observer) {
        let lease = self.driver.lease(index);
        observer.observe(&Event::Lease {
            now: Seconds::new(self.clock.now),
            jobs: lease.combination,
            worker_type: lease.worker_type,
            workers: lease.workers,
            n_servers: lease.n_servers,
            extended: lease.extended,
        });
        let conditions = Conditions {
            options: &self.setting.options,
            table: &self.table,
            workers: self.driver.workers(),
            links: &self.links,
        };
        let position = u32::try_from(index).expect("fewer than 2^32 leases");
        let Some(mut slice) = conditions.plan((position, &lease), self.clock.now, &self.faults) else {
            return;
        };
        let failure = self.faults.first_failure(lease.workers);
        if self.faults.job_fails(&self.setting.options.faults) {
            slice.fate = Fate::JobFails;
        }
        if let Some(at) = failure.filter(|at| at.get() < slice.end) {
            slice.lose_worker(at);
        }
        self.running.push(slice);
        if self.setting.options.preemption_cost.is_none() {
            return;
        }
        for job in slice.jobs.members() {
            if let Some(position) = self.table.find(job) {
                self.table.jobs[position].progress.has_run = true;
            }
        }
    }
}

/// The cluster as a simulation uses it: types in order of speed, without workers that fill no server.
fn usable(cluster: &Cluster, throughputs: &Throughputs, options: &Options) -> Cluster {
    let cluster = cluster.ordered_as(throughputs.worker_types().as_slice());
    match options.semantics.mechanism.last_server {
        LastServer::Smaller => cluster,
        LastServer::Dropped => cluster.with_counts(|id: WorkerTypeId| {
            let kind = &cluster.types()[id];
            kind.n_workers / kind.workers_per_server * kind.workers_per_server
        }),
    }
}

/// A boundary as the adapter sees it.
#[derive(Debug)]
pub(super) struct Moment<'a> {
    pub(super) now: Seconds,
    pub(super) table: &'a mut Table,
    pub(super) cluster: &'a Arc<Cluster>,
    pub(super) observer: &'a mut dyn Observer,
}

impl Situation for Moment<'_> {
    fn now(&self) -> Seconds {
        self.now
    }

    fn n_jobs(&self) -> usize {
        self.table.jobs.len()
    }

    fn problem(&mut self) -> Result<Problem, ProblemError> {
        self.table.share_equally(self.cluster);
        self.table.problem(self.now, self.cluster)
    }

    fn runs(&self, jobs: Combination<JobId>, worker_type: WorkerTypeId) -> bool {
        self.table.runs(jobs, worker_type)
    }

    fn decided(&mut self, problem: &Problem, decision: &Decision) -> bool {
        self.observer.decided(self.now, problem, decision);
        let solve = decision.solve.as_ref();
        self.observer.observe(&Event::Allocated {
            now: self.now,
            n_jobs: problem.n_jobs(),
            backend: solve.map(|solve| solve.backend.as_str()),
            route: solve.map(|solve| solve.route.as_str()),
            iterations: solve.map_or(0, |solve| solve.iterations),
            fallbacks: solve.map_or(&[], |solve| solve.fallbacks.as_slice()),
            dropped: decision.dropped.iter().map(|job| problem.jobs()[*job].id).collect(),
            solve_seconds: solve
                .map_or(0.0, |solve| solve.seconds.build + solve.seconds.solve + solve.seconds.expand),
        });
        self.table.try_out(problem, decision)
    }
}
