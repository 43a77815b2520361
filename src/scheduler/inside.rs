//! The inside of a round: idle workers for waiting jobs; and the worker types that a job can run on.

use std::time::Duration;

use super::boundary::Boundary;
use super::decided::Decided;
use super::driver::Driver;
use super::job_scheduler::Scheduler;
use super::leases::Lease;
use crate::index::JobId;
use crate::throughput::Throughputs;
use crate::units::Seconds;
use crate::workload::Job;

impl Scheduler {
    /// The worker types on which a job has a throughput, its own or the matrix's, by name, including types that the cluster lacks.
    pub fn worker_types_of(&self, job: &Job) -> Vec<String> {
        if let Some(own) = &job.throughput {
            let has_speed = own.iter().filter(|(_, speed)| speed.get() > 0.0);
            return has_speed.map(|(name, _)| name.clone()).collect();
        }
        let throughputs = &self.table.throughputs;
        let Some(row) = throughputs.find(&job.job_type, job.scale_factor) else { return Vec::new() };
        let types = throughputs.worker_types();
        let has_speed = types.enumerate().filter(|(column, _)| throughputs.alone(row, *column) > 0.0);
        has_speed.map(|(_, name)| name.clone()).collect()
    }

    /// The throughputs of jobs.
    pub fn throughputs(&self) -> &Throughputs {
        &self.table.throughputs
    }

    /// Lets a job rest until an instant, for example because it failed: until then it gets no workers, and workers that it holds
    /// alone are given up, for [`refill`](Self::refill). The time that it is owed goes on growing. False if it is not active.
    ///
    /// A policy is shown the job as before, and gives it a share. Under a policy that leaves idle workers to no job without a
    /// share, its workers stay idle.
    pub fn rest(&mut self, id: JobId, until: Seconds) -> bool {
        let is_here = self.table.find(id).is_some();
        if is_here {
            self.driver.rest(id, until);
        }
        is_here
    }

    /// Gives workers that have become idle inside the round, at `now`, to waiting jobs: those in the allocation in force, by the
    /// same priorities as at its start; a gang only if enough are idle. The leases end when the round does, and are extended or not
    /// at its end as all others. It is called after [`finish`](Self::finish). A policy that decides inside rounds does so at their
    /// start only: it gives nothing here.
    pub fn refill(&mut self, now: Seconds) -> Vec<Lease> {
        self.now = self.now.max(now);
        let Driver::Mechanized(rounds) = &mut self.driver else { return Vec::new() };
        let n_new = rounds.refill(self.now);
        self.leases_from(self.driver.n_leases() - n_new)
    }

    /// Gives idle workers as [`refill`](Self::refill) does, also to jobs that came after the allocation in force: they need not
    /// wait for the next round beside workers that idle. A policy that gives idle workers to no job without a share is asked at
    /// once, within the deadline, and accounts are settled then: received time has to be [recorded](Self::record) first. Answers
    /// the outcome of asking the policy, and the new leases.
    pub fn refill_with_arrivals(
        &mut self,
        now: Seconds,
        deadline: Option<Duration>,
    ) -> (Decided, Vec<Lease>) {
        self.now = self.now.max(now);
        let Driver::Mechanized(rounds) = &mut self.driver else { return (Decided::Unchanged, Vec::new()) };
        let mut boundary =
            Boundary { now: self.now, table: &mut self.table, cluster: &self.up, adopted: None };
        let (decided, n_new) = rounds.refill_with_arrivals(&mut boundary, deadline);
        self.in_force = boundary.adopted.or(self.in_force.take());
        (decided, self.leases_from(self.driver.n_leases() - n_new))
    }
}
