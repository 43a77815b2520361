//! A scheduler beside a simulation.

use super::*;

/// A scheduler that gets the events of a simulation, and has to grant the same leases.
#[derive(Debug)]
pub(super) struct Shadow {
    pub(super) scheduler: Scheduler,
    round: Option<Round>,
    n_leases: usize,
    n_preempted: usize,
    pub(super) n_compared: usize,
    pub(super) n_refilled: usize,
}

impl Observer for Shadow {
    fn observe(&mut self, event: &Event<'_>) {
        let of_round = |lease: &Lease| (lease.jobs, lease.worker_type);
        match event {
            Event::Arrival { id, job, .. } => assert_eq!(self.scheduler.submit((*job).clone()), Ok(*id)),
            Event::Slice(slice) => {
                let (jobs, worker_type, time) = (slice.jobs, slice.worker_type, slice.time);
                let steps = slice.steps;
                self.scheduler.record(Received { jobs, worker_type, time, steps }).unwrap();
                if slice.succeeded {
                    let speeds = slice.throughput.map(StepsPerSecond::new);
                    self.scheduler.observe(jobs, worker_type, speeds).unwrap();
                }
            }
            Event::Completion { id, .. } | Event::Dropped { id, .. } => assert!(self.scheduler.finish(*id)),
            Event::WorkerDown { worker, .. } => self.scheduler.set_up(*worker, false).unwrap(),
            Event::WorkerUp { worker, .. } => self.scheduler.set_up(*worker, true).unwrap(),
            Event::RoundStarted { now, round, n_active, n_leases } => {
                let found = self.scheduler.tick(*now, None);
                assert!(!matches!(found.decided, Decided::Failed { .. }), "{:?}", found.decided);
                assert_eq!((found.number, found.leases.len()), (*round, *n_leases), "at {now}");
                assert_eq!(self.scheduler.jobs().len(), *n_active);
                (self.n_leases, self.n_preempted) = (0, 0);
                self.round = Some(found);
            }
            Event::Lease { now, jobs, worker_type, workers, n_servers, extended } => {
                let round = self.round.as_mut().unwrap();
                if self.n_leases == round.leases.len() {
                    round.leases.extend(self.scheduler.refill(*now));
                    self.n_refilled += 1;
                }
                let found = &round.leases[self.n_leases];
                assert_eq!(of_round(found), (*jobs, *worker_type), "at {now}");
                assert_eq!(found.workers.as_slice(), *workers, "at {now}");
                assert_eq!((found.n_servers, found.extended), (*n_servers, *extended), "at {now}");
                self.n_leases += 1;
                self.n_compared += 1;
            }
            Event::Preempted { jobs, worker_type, .. } => {
                let found = &self.round.as_ref().unwrap().preempted[self.n_preempted];
                assert_eq!(of_round(found), (*jobs, *worker_type));
                self.n_preempted += 1;
            }
            _ => {}
        }
    }
}

impl Shadow {
    pub(super) fn new(scheduler: Scheduler) -> Self {
        Self { scheduler, round: None, n_leases: 0, n_preempted: 0, n_compared: 0, n_refilled: 0 }
    }
}

/// Some jobs, gangs among them, that come one after another.
pub(super) fn some_jobs(seed: u64) -> Vec<Job> {
    let workload = WorkloadOptions::continuous(Seconds::new(1_500.0)).jobs(25).multi_worker(true);
    let mut native = Native::try_new(workload, &throughputs(), seed).unwrap();
    let jobs = std::iter::from_fn(|| crate::workload::Arrivals::next_job(&mut native)).map(|job| {
        let steps = job.total_steps / 20.0;
        job.total_steps(steps)
    });
    jobs.filter(|job| job.scale_factor <= 4).collect()
}

pub(super) fn of_four(cluster: &str) -> Cluster {
    let cluster: Cluster = cluster.parse().unwrap();
    cluster.with_workers_per_server("v100", 4).unwrap()
}

/// Options under which workers fail and are repaired.
pub(super) fn with_worker_faults() -> simulator::Options {
    let mut options = simulator::Options::corrected();
    options.faults.workers = Some(WorkerFaults {
        mean_time_between_failures: Seconds::new(100_000.0),
        mean_time_to_repair: Seconds::new(3_000.0),
    });
    options
}
