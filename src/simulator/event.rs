//! Events of a simulation, passed to an observer as they happen.

use std::borrow::Borrow;
use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use crate::cluster::Cluster;
use crate::index::{JobId, WorkerId, WorkerTypeId};
use crate::policy::{Decision, PolicyError};
use crate::problem::Problem;
use crate::units::{DollarsPerWorkerHour, Seconds, Steps};
use crate::workload::{Combination, Job};

/// One event. `now` and all other instants count from the start of the workload: for a trace in a log, from its first arrival.
///
/// In a log it is one JSON object, whose `event` names the kind, with the names of worker types; wall times are left out.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Event"))]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event<'a, T = WorkerTypeId> {
    /// A job was taken in, at the boundary that follows its arrival.
    Arrival {
        /// The instant at which it was seen.
        now: Seconds,
        /// Its position in order of arrival, its id in other events.
        id: JobId,
        /// Whether it is in the measurement window.
        measured: bool,
        /// The job.
        job: &'a Job,
    },
    /// The policy has decided.
    Allocated {
        /// The instant.
        now: Seconds,
        /// Number of jobs in the problem.
        n_jobs: usize,
        /// The backend whose answer was taken; none for closed forms and heuristics.
        backend: Option<&'a str>,
        /// The route by which it was solved.
        route: Option<&'a str>,
        /// Iterations of all solves.
        iterations: u64,
        /// Backends that were tried before, with the faults of their answers.
        fallbacks: &'a [String],
        /// Jobs with a droppable constraint that was dropped.
        dropped: Vec<JobId>,
        /// Whether the policy has an objective, and the decision was not proven to be its optimum; false by default.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        uncertified: bool,
        /// The shares that it gives, without shares of 0; null in a log of an older program.
        #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<JobShares>>"))]
        shares: Option<AllocatedShares<'a>>,
        /// Wall time of build, solve and expansion, in seconds.
        #[serde(skip)]
        solve_seconds: f64,
    },
    /// A round starts.
    RoundStarted {
        /// The instant.
        now: Seconds,
        /// Its number, from 0.
        round: u64,
        /// Number of active jobs.
        n_active: usize,
        /// Number of leases granted.
        n_leases: usize,
    },
    /// A combination has workers for this round.
    Lease {
        /// The instant.
        now: Seconds,
        /// The jobs.
        jobs: Combination<JobId>,
        /// The type of the workers by name; in logs of older programs, its position in the header's cluster.
        worker_type: T,
        /// The workers.
        workers: &'a [WorkerId],
        /// The number of servers that they are on.
        n_servers: u32,
        /// Whether they are the workers of the previous round.
        extended: bool,
    },
    /// A combination lost its workers while a job of it has work left.
    Preempted {
        /// The instant.
        now: Seconds,
        /// The jobs.
        jobs: Combination<JobId>,
        /// The type of the workers it had, as in a lease.
        worker_type: T,
    },
    /// The run of a combination in a round.
    Slice(Slice<T>),
    /// A job is done.
    Completion {
        /// The instant at which its last step ended.
        at: Seconds,
        /// The job's id.
        id: JobId,
        /// Whether it is in the measurement window.
        measured: bool,
        /// The job.
        job: &'a Job,
        /// The time it would have taken on an isolated 1/n share: Σ steps / isolated throughput, n being the
        /// number of active jobs when they were run.
        isolated: Seconds,
    },
    /// A slice failed: its steps are lost.
    Failure {
        /// The instant.
        at: Seconds,
        /// The job's id.
        id: JobId,
        /// Failures in a row.
        attempts: u32,
    },
    /// A job failed too often and was removed.
    Dropped {
        /// The instant.
        at: Seconds,
        /// The job's id.
        id: JobId,
        /// Whether it is in the measurement window.
        measured: bool,
        /// The job.
        job: &'a Job,
    },
    /// A worker failed.
    WorkerDown {
        /// The instant.
        at: Seconds,
        /// The worker.
        worker: WorkerId,
    },
    /// A worker was repaired.
    WorkerUp {
        /// The instant.
        at: Seconds,
        /// The worker.
        worker: WorkerId,
    },
    /// The price of a worker type changed.
    PriceChange {
        /// The instant.
        at: Seconds,
        /// The worker type, as in a lease.
        worker_type: T,
        /// The new price.
        price: DollarsPerWorkerHour,
    },
    /// A time without a lease, from the end of a round to the next event.
    Idle {
        /// The instant from which nothing ran.
        from: Seconds,
        /// The instant until which nothing ran.
        until: Seconds,
    },
}

impl Event<'_> {
    /// The event as a log has it: with the names that a cluster gives its worker types.
    pub fn named<'n>(&'n self, cluster: &'n Cluster) -> Event<'n, &'n str> {
        let name = |id: &WorkerTypeId| cluster.types()[*id].name.as_str();
        match self {
            Self::Arrival { now, id, measured, job } => {
                Event::Arrival { now: *now, id: *id, measured: *measured, job }
            }
            Self::Allocated {
                now,
                n_jobs,
                backend,
                route,
                iterations,
                fallbacks,
                dropped,
                uncertified,
                shares,
                solve_seconds,
            } => Event::Allocated {
                now: *now,
                n_jobs: *n_jobs,
                backend: *backend,
                route: *route,
                iterations: *iterations,
                fallbacks,
                dropped: dropped.clone(),
                uncertified: *uncertified,
                shares: shares.clone(),
                solve_seconds: *solve_seconds,
            },
            Self::RoundStarted { now, round, n_active, n_leases } => {
                Event::RoundStarted { now: *now, round: *round, n_active: *n_active, n_leases: *n_leases }
            }
            Self::Lease { now, jobs, worker_type, workers, n_servers, extended } => Event::Lease {
                now: *now,
                jobs: *jobs,
                worker_type: name(worker_type),
                workers,
                n_servers: *n_servers,
                extended: *extended,
            },
            Self::Preempted { now, jobs, worker_type } => {
                Event::Preempted { now: *now, jobs: *jobs, worker_type: name(worker_type) }
            }
            Self::Slice(slice) => Event::Slice(slice.with_worker_type(name(&slice.worker_type))),
            Self::Completion { at, id, measured, job, isolated } => {
                Event::Completion { at: *at, id: *id, measured: *measured, job, isolated: *isolated }
            }
            Self::Failure { at, id, attempts } => Event::Failure { at: *at, id: *id, attempts: *attempts },
            Self::Dropped { at, id, measured, job } => {
                Event::Dropped { at: *at, id: *id, measured: *measured, job }
            }
            Self::WorkerDown { at, worker } => Event::WorkerDown { at: *at, worker: *worker },
            Self::WorkerUp { at, worker } => Event::WorkerUp { at: *at, worker: *worker },
            Self::PriceChange { at, worker_type, price } => {
                Event::PriceChange { at: *at, worker_type: name(worker_type), price: *price }
            }
            Self::Idle { from, until } => Event::Idle { from: *from, until: *until },
        }
    }
}

/// The run of one combination in one round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Slice"))]
pub struct Slice<T = WorkerTypeId> {
    /// The jobs.
    pub jobs: Combination<JobId>,
    /// The number of each member's start, from 1, in the log of a live scheduler; null for a member that has no start in this
    /// slice. Absent in a simulation's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "[Option<u32>; 2]"))]
    pub incarnations: Option<[Option<u32>; 2]>,
    /// The type of its workers, as in a lease.
    pub worker_type: T,
    /// The number of its workers.
    pub n_workers: u32,
    /// The instant at which it started.
    pub start: Seconds,
    /// The instant at which the last member's steps ended.
    pub end: Seconds,
    /// The time that counts as spent on the workers, in s. In the log of a live scheduler a slice whose start is its end is a
    /// correction: its time is added to the jobs' earlier slices, or subtracted if it is below 0.
    pub time: Seconds,
    /// The part of the time that was lost to saving and loading state.
    pub overhead: Seconds,
    /// The price of one of the workers, averaged over the slice if it changes in it.
    pub price: Option<DollarsPerWorkerHour>,
    /// Steps of the members; 0 if the slice failed.
    pub steps: [Steps; 2],
    /// Throughputs of the members, in steps/s.
    pub throughput: [f64; 2],
    /// Whether the steps count.
    pub succeeded: bool,
}

impl<T> Slice<T> {
    /// The slice with this in place of the type of its workers.
    pub fn with_worker_type<U>(&self, worker_type: U) -> Slice<U> {
        let Self { jobs, incarnations, worker_type: _, n_workers, start, end, time, overhead, price, .. } =
            *self;
        let Self { steps, throughput, succeeded, .. } = *self;
        Slice {
            jobs,
            incarnations,
            worker_type,
            n_workers,
            start,
            end,
            time,
            overhead,
            price,
            steps,
            throughput,
            succeeded,
        }
    }
}

/// The shares that an allocation gives a job alone, or two jobs that share workers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JobShares<'a> {
    /// The jobs.
    pub jobs: Combination<JobId>,
    /// The share of its time, from 0 to 1, for which it is to have workers of a type, by the type's name.
    #[serde(serialize_with = "as_object")]
    #[cfg_attr(feature = "schema", schemars(with = "std::collections::BTreeMap<String, f64>"))]
    pub shares: &'a [(&'a str, f64)],
}

/// The shares of an allocation above 0: jobs and pairs of jobs without any are not in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AllocatedShares<'a> {
    /// The jobs of each row, and the position at which its shares end.
    rows: Vec<(Combination<JobId>, usize)>,
    /// The shares of all rows by name of the worker type, row by row.
    shares: Vec<(&'a str, f64)>,
}

impl<'a> AllocatedShares<'a> {
    /// The shares of an allocation's rows: their jobs, and their shares by worker type of the cluster.
    pub fn of<R: IntoIterator<Item: Borrow<f64>>>(
        rows: impl IntoIterator<Item = (Combination<JobId>, R)>,
        cluster: &'a Cluster,
    ) -> Self {
        let names = || cluster.types().iter().map(|kind| kind.name.as_str());
        let mut all = Self::default();
        for (jobs, row) in rows {
            let shares = row.into_iter().map(|share| *share.borrow());
            all.push(jobs, names().zip(shares).filter(|(_, share)| *share > 0.0));
        }
        all
    }

    /// Adds a row with these shares by name of the worker type, if there are any.
    pub(crate) fn push(
        &mut self,
        jobs: Combination<JobId>,
        shares: impl IntoIterator<Item = (&'a str, f64)>,
    ) {
        let start = self.shares.len();
        self.shares.extend(shares);
        self.shares[start..].sort_unstable_by_key(|(name, _)| *name);
        if self.shares.len() > start {
            self.rows.push((jobs, self.shares.len()));
        }
    }

    /// Its rows.
    pub fn iter(&self) -> impl Iterator<Item = JobShares<'_>> {
        let mut start = 0;
        self.rows.iter().map(move |(jobs, end)| {
            let shares = &self.shares[start..*end];
            start = *end;
            JobShares { jobs: *jobs, shares }
        })
    }
}

impl Serialize for AllocatedShares<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

fn as_object<S: Serializer>(shares: &[(&str, f64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(shares.iter().copied())
}

/// A receiver of every event, in order.
pub trait Observer: fmt::Debug {
    /// Receives an event.
    fn observe(&mut self, event: &Event<'_>);

    /// Notes the policy's answer; it comes before [`Event::Allocated`].
    fn decided(&mut self, now: Seconds, problem: &Problem, decision: &Decision) {
        let _ = (now, problem, decision);
    }

    /// Notes that the policy was asked and gave no decision.
    fn refused(&mut self, now: Seconds, problem: &Problem, error: &PolicyError) {
        let _ = (now, problem, error);
    }
}

/// An observer that ignores all events.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn observe(&mut self, _event: &Event<'_>) {}
}

/// Two observers, in order.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn observe(&mut self, event: &Event<'_>) {
        self.0.observe(event);
        self.1.observe(event);
    }

    fn decided(&mut self, now: Seconds, problem: &Problem, decision: &Decision) {
        self.0.decided(now, problem, decision);
        self.1.decided(now, problem, decision);
    }

    fn refused(&mut self, now: Seconds, problem: &Problem, error: &PolicyError) {
        self.0.refused(now, problem, error);
        self.1.refused(now, problem, error);
    }
}

impl<O: Observer + ?Sized> Observer for &mut O {
    fn observe(&mut self, event: &Event<'_>) {
        (**self).observe(event);
    }

    fn decided(&mut self, now: Seconds, problem: &Problem, decision: &Decision) {
        (**self).decided(now, problem, decision);
    }

    fn refused(&mut self, now: Seconds, problem: &Problem, error: &PolicyError) {
        (**self).refused(now, problem, error);
    }
}
