//! Events in the form in which they are read from a log, owning their data.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::cluster::Cluster;
use crate::index::{Id, JobId, WorkerId, WorkerTypeId};
use crate::simulator::{AllocatedShares, Event, Slice};
use crate::units::{DollarsPerWorkerHour, Seconds};
use crate::workload::{Combination, Job};

/// A row of [`AllocatedShares`] in the form in which it is read.
#[derive(Debug, Deserialize)]
pub(super) struct SharesRecord {
    jobs: Combination<JobId>,
    shares: BTreeMap<String, f64>,
}

/// [`AllocatedShares`] of rows that were read.
fn allocated(rows: &[SharesRecord]) -> AllocatedShares<'_> {
    let mut all = AllocatedShares::default();
    for SharesRecord { jobs, shares } in rows {
        all.push(*jobs, shares.iter().map(|(name, share)| (name.as_str(), *share)));
    }
    all
}

/// A worker type in the form in which it is read.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Kind {
    /// Its position in the header's cluster, in logs of older programs.
    Number(WorkerTypeId),
    /// Its name.
    Name(String),
}

impl Kind {
    /// Its position in the cluster.
    ///
    /// # Errors
    /// If the cluster has no such worker type.
    fn of(&self, cluster: &Cluster) -> Result<WorkerTypeId, String> {
        match self {
            Self::Number(id) => {
                let known = cluster.types().get(*id).map(|_| *id);
                known.ok_or_else(|| format!("the cluster has no worker type number {}", id.index()))
            }
            Self::Name(name) => {
                cluster.find(name).ok_or_else(|| format!("the cluster has no worker type `{name}`"))
            }
        }
    }
}

/// An [`Event`] in the form in which it is read, owning its data; an event of another kind is an error.
#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum Record {
    Arrival {
        now: Seconds,
        id: JobId,
        measured: bool,
        job: Job,
    },
    Allocated {
        now: Seconds,
        n_jobs: usize,
        backend: Option<String>,
        route: Option<String>,
        iterations: u64,
        fallbacks: Vec<String>,
        dropped: Vec<JobId>,
        #[serde(default)]
        uncertified: bool,
        #[serde(default)]
        shares: Option<Vec<SharesRecord>>,
    },
    RoundStarted {
        now: Seconds,
        round: u64,
        n_active: usize,
        n_leases: usize,
    },
    Lease {
        now: Seconds,
        jobs: Combination<JobId>,
        worker_type: Kind,
        workers: Vec<WorkerId>,
        n_servers: u32,
        extended: bool,
    },
    Preempted {
        now: Seconds,
        jobs: Combination<JobId>,
        worker_type: Kind,
    },
    Slice(Slice<Kind>),
    Completion {
        at: Seconds,
        id: JobId,
        measured: bool,
        job: Job,
        isolated: Seconds,
    },
    Failure {
        at: Seconds,
        id: JobId,
        attempts: u32,
    },
    Dropped {
        at: Seconds,
        id: JobId,
        measured: bool,
        job: Job,
    },
    WorkerDown {
        at: Seconds,
        worker: WorkerId,
    },
    WorkerUp {
        at: Seconds,
        worker: WorkerId,
    },
    PriceChange {
        at: Seconds,
        worker_type: Kind,
        price: DollarsPerWorkerHour,
    },
    Idle {
        from: Seconds,
        until: Seconds,
    },
}

impl Record {
    /// The event in a cluster.
    ///
    /// # Errors
    /// If the cluster does not have its worker type.
    pub(super) fn event(&self, cluster: &Cluster) -> Result<Event<'_>, String> {
        Ok(match self {
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
            } => Event::Allocated {
                now: *now,
                n_jobs: *n_jobs,
                backend: backend.as_deref(),
                route: route.as_deref(),
                iterations: *iterations,
                fallbacks,
                dropped: dropped.clone(),
                uncertified: *uncertified,
                shares: shares.as_deref().map(allocated),
                solve_seconds: 0.0,
            },
            Self::RoundStarted { now, round, n_active, n_leases } => {
                Event::RoundStarted { now: *now, round: *round, n_active: *n_active, n_leases: *n_leases }
            }
            Self::Lease { now, jobs, worker_type, workers, n_servers, extended } => Event::Lease {
                now: *now,
                jobs: *jobs,
                worker_type: worker_type.of(cluster)?,
                workers,
                n_servers: *n_servers,
                extended: *extended,
            },
            Self::Preempted { now, jobs, worker_type } => {
                Event::Preempted { now: *now, jobs: *jobs, worker_type: worker_type.of(cluster)? }
            }
            Self::Slice(slice) => Event::Slice(slice.with_worker_type(slice.worker_type.of(cluster)?)),
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
                Event::PriceChange { at: *at, worker_type: worker_type.of(cluster)?, price: *price }
            }
            Self::Idle { from, until } => Event::Idle { from: *from, until: *until },
        })
    }

    /// The instant at which it begins.
    pub(super) fn instant(&self) -> Seconds {
        match self {
            Self::Arrival { now, .. }
            | Self::Allocated { now, .. }
            | Self::RoundStarted { now, .. }
            | Self::Lease { now, .. }
            | Self::Preempted { now, .. } => *now,
            Self::Slice(slice) => slice.start,
            Self::Completion { at, .. }
            | Self::Failure { at, .. }
            | Self::Dropped { at, .. }
            | Self::WorkerDown { at, .. }
            | Self::WorkerUp { at, .. }
            | Self::PriceChange { at, .. } => *at,
            Self::Idle { from, .. } => *from,
        }
    }

    /// The jobs that it is of.
    pub(super) fn jobs(&self) -> Vec<JobId> {
        match self {
            Self::Lease { jobs, .. } | Self::Preempted { jobs, .. } | Self::Slice(Slice { jobs, .. }) => {
                jobs.members().collect()
            }
            Self::Arrival { id, .. }
            | Self::Completion { id, .. }
            | Self::Failure { id, .. }
            | Self::Dropped { id, .. } => vec![*id],
            _ => Vec::new(),
        }
    }

    /// Checks that it names only workers and worker types that the cluster has.
    pub(super) fn check(&self, cluster: &Cluster) -> Result<(), String> {
        self.event(cluster)?;
        let workers: &[WorkerId] = match self {
            Self::Lease { workers, .. } => workers,
            Self::WorkerDown { worker, .. } | Self::WorkerUp { worker, .. } => std::slice::from_ref(worker),
            _ => &[],
        };
        let unknown = workers.iter().find(|worker| worker.index() as u64 >= cluster.n_workers());
        unknown.map_or(Ok(()), |worker| Err(format!("the cluster has no worker number {}", worker.index())))
    }
}
