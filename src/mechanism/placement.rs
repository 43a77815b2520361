//! Workers on servers, and the choice among them for a combination.

use std::ops::Range;

use super::options::{Gangs, LastServer, MechanismOptions};
use crate::cluster::Cluster;
use crate::index::{Id, IndexVec, ServerId, WorkerId, WorkerTypeId};

/// The workers that exist, by type and server. Ids count up type by type, server by server.
#[derive(Clone, Debug)]
pub struct Workers {
    types: IndexVec<WorkerTypeId, TypeWorkers>,
    server: IndexVec<WorkerId, ServerId>,
    up: IndexVec<WorkerId, bool>,
}

#[derive(Clone, Debug)]
struct TypeWorkers {
    workers: Range<u32>,
    servers: Range<u32>,
    per_server: u32,
    n_up: u32,
}

impl Workers {
    /// The workers of a cluster, all up.
    ///
    /// # Panics
    /// If there are 2^32 or more.
    pub fn new(cluster: &Cluster, last_server: LastServer) -> Self {
        let mut all = Self { types: IndexVec::new(), server: IndexVec::new(), up: IndexVec::new() };
        let mut n_servers = 0;
        for kind in cluster.types() {
            let per_server = kind.workers_per_server.max(1);
            let n_workers = match last_server {
                LastServer::Smaller => kind.n_workers,
                LastServer::Dropped => kind.n_workers / per_server * per_server,
            };
            let first = u32::try_from(all.server.len()).expect("fewer than 2^32 workers");
            let first_server = n_servers;
            for position in 0..n_workers {
                all.server.push(ServerId::from_index((first_server + position / per_server) as usize));
                all.up.push(true);
            }
            n_servers += n_workers.div_ceil(per_server);
            all.types.push(TypeWorkers {
                workers: first..first + n_workers,
                servers: first_server..n_servers,
                per_server,
                n_up: n_workers,
            });
        }
        all
    }

    /// The number of workers, up or down.
    pub fn len(&self) -> usize {
        self.server.len()
    }

    /// Whether there are no workers.
    pub fn is_empty(&self) -> bool {
        self.server.is_empty()
    }

    /// The number of servers.
    pub fn n_servers(&self) -> usize {
        self.types.iter().map(|kind| kind.servers.len()).sum()
    }

    /// The number of worker types.
    pub fn n_types(&self) -> usize {
        self.types.len()
    }

    /// Workers of a type that are up.
    pub fn n_up(&self, worker_type: WorkerTypeId) -> u32 {
        self.types[worker_type].n_up
    }

    /// Workers of a type, up or down.
    pub fn of_type(&self, worker_type: WorkerTypeId) -> impl Iterator<Item = WorkerId> + use<> {
        self.types[worker_type].workers.clone().map(|worker| WorkerId::from_index(worker as usize))
    }

    /// The type of a worker; none if there is no such worker.
    pub fn worker_type(&self, worker: WorkerId) -> Option<WorkerTypeId> {
        let holds = |kind: &TypeWorkers| kind.workers.contains(&(u32::try_from(worker.index()).unwrap_or(0)));
        self.types.enumerate().find(|(_, kind)| holds(kind)).map(|(id, _)| id)
    }

    /// The server of a worker.
    pub fn server(&self, worker: WorkerId) -> ServerId {
        self.server[worker]
    }

    /// Whether a worker is up.
    pub fn is_up(&self, worker: WorkerId) -> bool {
        self.up.get(worker).copied().unwrap_or(false)
    }

    /// Takes a worker away, or gives it back.
    pub fn set_up(&mut self, worker: WorkerId, up: bool) {
        if self.up[worker] == up {
            return;
        }
        self.up[worker] = up;
        if let Some(worker_type) = self.worker_type(worker) {
            let n_up = &mut self.types[worker_type].n_up;
            if up {
                *n_up += 1;
            } else {
                *n_up -= 1;
            }
        }
    }

    /// The number of servers that these workers are on.
    pub fn n_servers_of(&self, workers: &[WorkerId]) -> u32 {
        let mut count = 0;
        for (position, worker) in workers.iter().enumerate() {
            let server = self.server[*worker];
            if !workers[..position].iter().any(|other| self.server[*other] == server) {
                count += 1;
            }
        }
        count
    }

    /// The fewest servers of a type that can hold a number of workers.
    pub fn n_servers_least(&self, worker_type: WorkerTypeId, n_workers: usize) -> u32 {
        u32::try_from(n_workers).unwrap_or(u32::MAX).div_ceil(self.types[worker_type].per_server)
    }
}

/// The workers of one type that are still free in this round.
#[derive(Clone, Debug, Default)]
pub(super) struct Free {
    /// The round in which each worker was last taken: [worker].
    taken: Vec<u64>,
    round: u64,
    /// Free workers of each server: [server], kept only where servers hold more than one.
    on_server: Vec<u32>,
    /// Every worker of the type below this one is taken or down.
    cursor: u32,
}

impl Free {
    /// Starts a round, in which every worker that is up is free.
    pub(super) fn start_round(&mut self, workers: &Workers) {
        self.round += 1;
        self.taken.resize(workers.len(), 0);
        self.on_server.resize(workers.n_servers(), 0);
    }

    pub(super) fn start_type(&mut self, workers: &Workers, worker_type: WorkerTypeId) {
        let kind = &workers.types[worker_type];
        self.cursor = kind.workers.start;
        if kind.per_server > 1 {
            for server in kind.servers.clone() {
                self.on_server[server as usize] = 0;
            }
            for worker in kind.workers.clone() {
                let worker = WorkerId::from_index(worker as usize);
                if self.is_free(workers, worker) {
                    self.on_server[workers.server[worker].index()] += 1;
                }
            }
        }
    }

    pub(super) fn is_free(&self, workers: &Workers, worker: WorkerId) -> bool {
        self.taken[worker.index()] != self.round && workers.up[worker]
    }

    pub(super) fn take(&mut self, workers: &Workers, worker: WorkerId) {
        self.taken[worker.index()] = self.round;
        let left = &mut self.on_server[workers.server[worker].index()];
        *left = left.saturating_sub(1);
    }

    /// Takes `n` free workers of a type and adds them to `into`.
    ///
    /// # Panics
    /// If fewer are free: the selection has to count them.
    pub(super) fn grant(
        &mut self,
        workers: &Workers,
        (worker_type, n): (WorkerTypeId, u32),
        options: &MechanismOptions,
        into: &mut Vec<WorkerId>,
    ) {
        let kind = &workers.types[worker_type];
        let start = into.len();
        if options.gangs == Gangs::FewestServers && kind.per_server > 1 {
            let mut missing = n;
            while missing > 0 {
                let server = self.best_server(kind, missing);
                let first = kind.workers.start + (server - kind.servers.start) * kind.per_server;
                let end = (first + kind.per_server).min(kind.workers.end);
                missing -= self.take_from(workers, first..end, missing, into);
            }
            into[start..].sort_unstable();
        } else {
            let free = |worker: &u32| self.is_free(workers, WorkerId::from_index(*worker as usize));
            self.cursor = (self.cursor..kind.workers.end).find(free).unwrap_or(kind.workers.end);
            let taken = self.take_from(workers, self.cursor..kind.workers.end, n, into);
            assert_eq!(taken, n, "selection counted the free workers of type {worker_type}");
        }
    }

    /// The server with the fewest free workers among those with enough for all that are still missing; else the server with the
    /// most.
    fn best_server(&self, kind: &TypeWorkers, missing: u32) -> u32 {
        let mut best = (u32::MAX, kind.servers.start);
        let mut most = (0, kind.servers.start);
        for server in kind.servers.clone() {
            let free = self.on_server[server as usize];
            if free == missing {
                return server;
            }
            if free > missing && free < best.0 {
                best = (free, server);
            }
            if free > most.0 {
                most = (free, server);
            }
        }
        assert!(most.0 > 0, "selection counted the free workers");
        if best.0 == u32::MAX { most.1 } else { best.1 }
    }

    fn take_from(&mut self, workers: &Workers, range: Range<u32>, n: u32, into: &mut Vec<WorkerId>) -> u32 {
        let mut taken = 0;
        for worker in range {
            if taken == n {
                break;
            }
            let worker = WorkerId::from_index(worker as usize);
            if self.is_free(workers, worker) {
                self.take(workers, worker);
                into.push(worker);
                taken += 1;
            }
        }
        taken
    }
}
