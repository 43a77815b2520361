//! The loop: one step is one round.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};

use super::arrivals::ArrivalQueue;
use super::event::Observer;
use super::faults::FaultState;
use super::ideal::Fluid;
use super::options::Options;
use super::outcome::{Limits, Outcome, SimulationError, Step};
use super::progress::{Links, Running};
use super::standstill::{Standstill, Vigil};
use crate::cluster::Cluster;
use crate::mechanism::Workers;
use crate::mechanism::key_order::KeyOrder;
use crate::policy::{Policy, RoundPolicy, RoundView};
use crate::problem::{Entity, Problem};
use crate::scheduler::Rounds;
use crate::scheduler::active::Table;
use crate::scheduler::direct::Direct;
use crate::scheduler::driver::Driver;
use crate::throughput::Throughputs;
use crate::units::Seconds;
use crate::workload::Arrivals;

/// The most arrivals, or failures and repairs, that are taken in before the limits of a run are looked at again.
pub(super) const EVENTS_AT_ONCE: usize = 4096;

/// The clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Clock {
    pub(super) now: f64,
    pub(super) round: u64,
    /// End of the last round that ran something.
    pub(super) round_end: Option<f64>,
    /// End of the round before that, from which the published system counts execution time.
    pub(super) round_base: f64,
    /// Number of jobs of the measurement window that are done.
    pub(super) n_measured_done: u32,
    /// Number of price changes that have happened.
    pub(super) n_prices: usize,
    /// Whether only a part of the events at this boundary has been taken in.
    pub(super) is_at_boundary: bool,
    /// The latest end of the running round, s, if it matters [inside](super::Live).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) until: Option<f64>,
    /// Whether the clock stands where the next round is decided, before the end of this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_ahead: bool,
}

/// The options and the cluster, which are fixed for the whole run.
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
    pub(super) arrivals: ArrivalQueue,
    pub(super) table: Table,
    pub(super) driver: Driver,
    pub(super) clock: Clock,
    pub(super) running: Vec<Running>,
    pub(super) faults: FaultState,
    pub(super) fluid: Option<Fluid>,
    pub(super) links: Links,
    /// A buffer for the order in which slices end.
    pub(super) ends: KeyOrder,
    pub(super) vigil: Vigil,
    /// The instant until which something stops on each worker, s: [worker]; empty if nothing has.
    pub(super) free_at: Vec<f64>,
    /// Why it makes no progress, once that is known.
    pub(super) standstill: Option<Standstill>,
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
        let for_scheduler = options.scheduler();
        let cluster = for_scheduler.usable(cluster, &throughputs);
        let driver = Driver::Mechanized(Box::new(Rounds::new(policy, &cluster, &for_scheduler)));
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
        let cluster = options.scheduler().usable(cluster, &throughputs);
        let workers = Workers::new(&cluster, options.semantics.mechanism.last_server);
        let driver = Driver::Direct(Box::new(Direct::new(policy, workers)));
        if options.ideal {
            let expected = "false for a policy that decides inside rounds";
            return Err(SimulationError::Option { field: "ideal", value: "true".to_owned(), expected });
        }
        options.live.check_direct()?;
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
        let table = Table::new(&cluster, throughputs)?.estimating(options.profiling, options.seed)?;
        let faults = FaultState::new(&options.faults, driver.workers(), options.seed);
        let fluid = options.ideal.then(Fluid::default);
        Ok(Self {
            setting: Setting { options, cluster: Arc::clone(&cluster) },
            cluster,
            arrivals: ArrivalQueue::new(arrivals, 0),
            table,
            driver,
            clock: Clock::default(),
            running: Vec::new(),
            faults,
            fluid,
            links: Links::default(),
            ends: KeyOrder::default(),
            vigil: Vigil::default(),
            free_at: Vec::new(),
            standstill: None,
        })
    }

    /// Declares owners of jobs with their weights and inner rules; others get weight 1 when first seen.
    #[must_use]
    pub fn with_entities(mut self, entities: impl IntoIterator<Item = Entity>) -> Self {
        for entity in entities {
            self.table.owners.declare(entity);
        }
        self
    }

    /// The present instant of the clock.
    pub fn now(&self) -> Seconds {
        Seconds::new(self.clock.now)
    }

    /// Number of rounds started.
    pub fn round(&self) -> u64 {
        self.clock.round
    }

    /// Number of jobs that have arrived and are not done.
    pub fn n_active(&self) -> usize {
        self.table.jobs.len()
    }

    /// Number of jobs that have arrived.
    pub fn n_arrived(&self) -> u32 {
        self.arrivals.n_taken()
    }

    /// Number of measured jobs that are done.
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
    /// If a job does not fit the throughputs, or the policy fails; observed events remain.
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
            if limits.wall.is_some_and(|(stopwatch, most)| stopwatch.elapsed() > most) {
                return Ok(Outcome::WallLimit);
            }
            match self.step(observer)? {
                Step::Advanced if self.is_in_vain(&limits.patience) => return Ok(Outcome::Standstill),
                Step::Advanced => {}
                Step::Finished => return Ok(Outcome::Finished),
                Step::Stalled => return Ok(Outcome::Stalled),
                Step::Unresolved => return Ok(Outcome::Standstill),
            }
        }
    }

    /// Goes on to the next boundary and starts the round there; if very many events happen at a boundary, it takes only a part of
    /// them.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn step(&mut self, observer: &mut dyn Observer) -> Result<Step, SimulationError> {
        if self.fluid.is_some() {
            return self.flow(observer);
        }
        let Some(step) = self.approach_boundary(observer)? else { return Ok(Step::Advanced) };
        if step == Step::Advanced {
            self.start_round(observer)?;
        }
        Ok(step)
    }

    /// The first half of a [`step`](Self::step) in rounds: goes on to the next boundary, where slices have ended and jobs have
    /// arrived; if decisions are made ahead, to the decision before it. Unless all is over, [`start_round`](Self::start_round) must
    /// follow.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn reach_boundary(&mut self, observer: &mut dyn Observer) -> Result<Step, SimulationError> {
        loop {
            if let Some(step) = self.approach_boundary(observer)? {
                return Ok(step);
            }
        }
    }

    /// Goes on towards the next boundary; none if it has not taken in all events there and is to be called again.
    fn approach_boundary(&mut self, observer: &mut dyn Observer) -> Result<Option<Step>, SimulationError> {
        if !self.clock.is_at_boundary {
            if let ControlFlow::Break(step) = self.advance_clock(observer)? {
                return Ok(Some(step));
            }
            if !self.clock.is_ahead {
                self.end_slices(observer);
                if self.is_finished() {
                    return Ok(Some(Step::Finished));
                }
            }
        }
        let is_all = self.take_in(observer)?;
        self.clock.is_at_boundary = !is_all;
        Ok(is_all.then_some(Step::Advanced))
    }

    /// Takes in arrivals, and then changes of the cluster, up to now; if there are very many, only a part. True if all are taken
    /// in.
    pub(super) fn take_in(&mut self, observer: &mut dyn Observer) -> Result<bool, SimulationError> {
        Ok(self.take_arrivals(observer)? && self.apply_changes(observer))
    }

    /// The problem that a policy would be shown now.
    ///
    /// # Errors
    /// If the problem cannot be stated.
    pub fn problem(&mut self) -> Result<Problem, SimulationError> {
        self.table.share_equally(&self.cluster);
        Ok(self.table.problem(self.now(), &self.cluster)?)
    }

    /// Passes to `look` the view that a policy inside rounds is shown first in the round that [`start_round`](Self::start_round)
    /// starts. Placements for [`start_placed_round`](Self::start_placed_round) are decided on it, too. None if the policy gives
    /// allocations.
    ///
    /// # Errors
    /// If the problem cannot be stated.
    pub fn look<T>(&mut self, look: impl FnOnce(&RoundView<'_>) -> T) -> Result<Option<T>, SimulationError> {
        let problem = self.problem()?;
        let Driver::Direct(direct) = &self.driver else { return Ok(None) };
        let round = (self.clock.round, self.now(), self.setting.options.round_length);
        let resizable = self.table.resizable(&self.cluster);
        Ok(Some(direct.look(round, (&problem, &resizable), look)))
    }

    /// Whether all measured jobs are done.
    pub(super) fn is_finished(&self) -> bool {
        let drained = self.arrivals.next_arrival().is_none() && self.table.jobs.is_empty();
        let measure = self.setting.options.measure.as_ref();
        drained || measure.is_some_and(|ids| self.clock.n_measured_done as usize >= ids.len())
    }
}
