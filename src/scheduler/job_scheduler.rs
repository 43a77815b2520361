//! The scheduler: jobs that come and go, workers, and a policy behind the mechanism, round by round.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::active::{Progress, Table};
use super::boundary::Boundary;
use super::decided::Decided;
use super::direct::{Direct, Start};
use super::driver::Driver;
use super::errors::{SetupError, SubmitError};
use super::leases::{InForce, Lease, Round};
use super::options::Options;
use super::rounds::Rounds;
use crate::cluster::Cluster;
use crate::index::{Id, JobId};
use crate::mechanism::{GrantedLease, Mechanism, Workers};
use crate::policy::{Policy, RoundPolicy};
use crate::problem::{ActiveJob, Problem, ProblemBuilder, ProblemError};
use crate::throughput::Throughputs;
use crate::units::{Seconds, Steps};
use crate::workload::Job;

/// A scheduler: it decides, round by round, which jobs run on which workers. The [module](super) describes its input and output.
///
/// ```
/// use std::time::Duration;
/// use apportion::index::{Id, WorkerId};
/// use apportion::scheduler::{Decided, Options, Scheduler, SubmitError};
/// use apportion::{Catalog, Cluster, Job, Seconds, Throughputs};
///
/// let cluster: Cluster = "v100=2,k80=2".parse()?;
/// let policy = Catalog::embedded().policy("max_min_fairness_perf")?;
/// let mut scheduler =
///     Scheduler::new(&cluster, Throughputs::embedded("osdi20")?, policy, Options::default())?;
/// let gang = Job::new("ResNet-50 (batch size 64)").scale_factor(2).steps(120_000);
/// let mine = scheduler.submit_as("mine", gang)?;
/// let refused = scheduler.submit_as("vast", Job::new("A3C").scale_factor(4).steps(1_000));
/// assert!(matches!(refused, Err(SubmitError::NoThroughput { .. } | SubmitError::FitsNowhere { .. })));
///
/// let round = scheduler.tick(Seconds::ZERO, Some(Duration::from_secs(30)));
/// if let Decided::Late { since } | Decided::Fresh { asked: since } = &round.decided {
///     println!("asked at {since}");
/// }
/// let lease = &round.leases[0];
/// assert_eq!((lease.names[0].as_str(), lease.type_name.as_str(), lease.workers.len()), ("mine", "v100", 2));
///
/// // One of its workers fails: from the next round on it runs elsewhere.
/// scheduler.set_up(WorkerId::from_index(0), false)?;
/// let round = scheduler.tick(Seconds::new(360.0), None);
/// assert!(round.leases[0].jobs.contains(mine) && round.leases[0].type_name == "k80");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Scheduler {
    options: Options,
    /// The cluster with all its workers.
    pub(super) cluster: Arc<Cluster>,
    /// The cluster with the workers that are up.
    pub(super) up: Arc<Cluster>,
    pub(super) table: Table,
    pub(super) names: BTreeMap<JobId, String>,
    /// Jobs submitted under names of their own.
    pub(super) by_name: BTreeMap<String, JobId>,
    /// Jobs that went since the last round: lost leases may still name them.
    pub(super) gone: Vec<JobId>,
    pub(super) driver: Driver,
    pub(super) n_submitted: usize,
    /// The number of jobs that were submitted before the last round.
    pub(super) n_seen: usize,
    pub(super) n_rounds: u64,
    /// Start of the last round, s.
    pub(super) now: Seconds,
    pub(super) in_force: Option<InForce>,
    /// Start of the last round that a policy inside rounds decided; none before the first.
    pub(super) decided: Option<Seconds>,
}

impl Scheduler {
    /// A scheduler of a cluster whose workers are all up, without jobs. Worker types are put in the order in which the
    /// throughputs list them. Workers that may join later are part of the cluster, and [down](Self::set_up) until then.
    ///
    /// # Errors
    /// If the throughputs lack a worker type of the cluster, or an option is out of range.
    pub fn new(
        cluster: &Cluster,
        throughputs: Arc<Throughputs>,
        policy: Box<dyn Policy>,
        options: Options,
    ) -> Result<Self, SetupError> {
        options.check()?;
        let cluster = options.usable(cluster, &throughputs);
        let rounds = Rounds::new(policy, &cluster, &options);
        Self::with_driver((cluster, throughputs), Driver::Mechanized(Box::new(rounds)), options)
    }

    /// A scheduler for a policy that decides inside rounds: its placements are the leases, without a mechanism. It is asked at
    /// every [`tick`](Self::tick), on the caller's thread, and shown all that was [recorded](Self::record) and
    /// [observed](Self::observe) since the last one. It may give no job another number of workers.
    ///
    /// # Errors
    /// As [`new`](Self::new), and if the policy could place no job on this cluster.
    pub fn with_round_policy(
        cluster: &Cluster,
        throughputs: Arc<Throughputs>,
        policy: Box<dyn RoundPolicy>,
        options: Options,
    ) -> Result<Self, SetupError> {
        options.check()?;
        let cluster = options.usable(cluster, &throughputs);
        let workers = Workers::new(&cluster, options.mechanism.last_server);
        let direct = Direct::new(policy, workers);
        let scheduler = Self::with_driver((cluster, throughputs), Driver::Direct(Box::new(direct)), options)?;
        let problem = scheduler.problem()?;
        scheduler.driver.check(&problem, options.round_length).map_err(|reason| SetupError::CannotPlace {
            policy: scheduler.driver.policy_name().to_owned(),
            cluster: scheduler.cluster.to_string(),
            reason,
        })?;
        Ok(scheduler)
    }

    fn with_driver(
        (cluster, throughputs): (Cluster, Arc<Throughputs>),
        driver: Driver,
        options: Options,
    ) -> Result<Self, SetupError> {
        let cluster = Arc::new(cluster);
        Ok(Self {
            table: Table::new(&cluster, throughputs)?,
            driver,
            names: BTreeMap::new(),
            by_name: BTreeMap::new(),
            gone: Vec::new(),
            up: Arc::clone(&cluster),
            cluster,
            options,
            n_submitted: 0,
            n_seen: 0,
            n_rounds: 0,
            now: Seconds::ZERO,
            in_force: None,
            decided: None,
        })
    }

    /// Takes in a job, which is named by its job type in leases. Its `arrival` is an instant on the clock of [`tick`](Self::tick).
    ///
    /// # Errors
    /// If the job has no throughput, fits nowhere in the cluster, a number of it is out of range, or a policy that decides inside
    /// rounds could never place it. Active jobs are not affected.
    pub fn submit(&mut self, job: Job) -> Result<JobId, SubmitError> {
        let name = job.job_type.clone();
        self.take_in(name, job)
    }

    /// Takes in a job under a name of its own.
    ///
    /// # Errors
    /// As [`submit`](Self::submit), and if an active job has that name.
    pub fn submit_as(&mut self, name: impl Into<String>, job: Job) -> Result<JobId, SubmitError> {
        let name = name.into();
        if let Some(id) = self.find(&name) {
            return Err(SubmitError::NameTaken { name, id });
        }
        let id = self.take_in(name.clone(), job)?;
        self.by_name.insert(name, id);
        Ok(id)
    }

    fn take_in(&mut self, name: String, job: Job) -> Result<JobId, SubmitError> {
        let id = JobId::from_index(self.n_submitted);
        let scale_factor = job.scale_factor;
        let alone = self.alone(id, &job).map_err(|error| self.refusal(error))?;
        self.driver.check(&alone, self.options.round_length).map_err(|reason| {
            let policy = self.driver.policy_name().to_owned();
            SubmitError::CannotPlace { policy, reason }
        })?;
        let added = self.table.add(Progress::new(id, job, true), &self.cluster);
        added.map_err(|error| self.refusal(error))?;
        self.driver.add_job(&self.table, id, scale_factor);
        self.names.insert(id, name);
        self.n_submitted += 1;
        Ok(id)
    }

    /// The problem of this job alone, on all workers.
    pub(super) fn alone(&self, id: JobId, job: &Job) -> Result<Problem, ProblemError> {
        let looked_up = self.table.look_up(id.index(), job, &self.cluster)?;
        let seen = ActiveJob {
            scale_factor: job.scale_factor,
            weight: job.weight,
            steps_remaining: job.total_steps,
            slo_remaining: job.slo.map(|slo| job.arrival + slo),
            // Only its being a number of seconds matters: a job may be submitted before it arrives.
            elapsed: Seconds::new(job.arrival.get().abs()),
            row: looked_up.row,
            ..ActiveJob::new(id)
        };
        let mut builder = ProblemBuilder::new(Arc::clone(&self.cluster));
        builder.job(seen, &looked_up.alone);
        builder.colocation(self.table.measured());
        builder.build()
    }

    fn refusal(&self, error: ProblemError) -> SubmitError {
        match error {
            ProblemError::UnknownJobType { job_type, scale_factor, .. } => {
                let throughputs = self.table.throughputs.name().to_owned();
                SubmitError::NoThroughput { job_type, scale_factor, throughputs }
            }
            ProblemError::RunsNowhere { scale_factor, .. } => {
                SubmitError::FitsNowhere { scale_factor, cluster: self.cluster.to_string() }
            }
            ProblemError::Sizes { source, .. } => SubmitError::Sizes(source),
            ProblemError::Value { field, value, expected, .. } => {
                // The instant of arrival is checked as the time since.
                let field = if field == "elapsed" { "arrival" } else { field };
                SubmitError::Value { field, value, expected }
            }
            other => SubmitError::Other(other),
        }
    }

    /// The active job that was [submitted under](Self::submit_as) this name.
    pub fn find(&self, name: &str) -> Option<JobId> {
        self.by_name.get(name).copied()
    }

    /// The active jobs, by id, with their names in leases.
    pub fn jobs(&self) -> impl ExactSizeIterator<Item = (JobId, &str)> {
        self.table.jobs.iter().map(|active| (active.progress.id, self.name(active.progress.id)))
    }

    fn name(&self, id: JobId) -> &str {
        self.names.get(&id).map_or("", String::as_str)
    }

    /// An active job as it was submitted.
    pub fn job(&self, id: JobId) -> Option<&Job> {
        self.table.get(id).map(|active| &active.progress.job)
    }

    /// Steps that a job has been reported to have done; none if it is not active.
    pub fn steps_done(&self, id: JobId) -> Option<Steps> {
        self.table.get(id).map(|active| Steps::new(active.progress.steps_run))
    }

    /// Removes a job that is done, or not wanted any more. False if it is not active.
    pub fn finish(&mut self, id: JobId) -> bool {
        let Some(position) = self.table.find(id) else { return false };
        self.table.remove(position);
        if self.by_name.get(self.name(id)) == Some(&id) {
            let name = self.name(id).to_owned();
            self.by_name.remove(&name);
        }
        if id.index() < self.n_seen {
            self.gone.push(id);
        } else {
            // It has been in no round, so no lease names it.
            self.names.remove(&id);
        }
        self.driver.remove_job(id);
        true
    }

    /// Starts a round at `now`, in seconds since any fixed instant: it decides which jobs run on which workers from now until the
    /// round ends. An instant before the last round's counts as that one.
    ///
    /// A round may be decided ahead, while the previous one runs on: after its running jobs were [projected](Self::project). Its
    /// leases are then to start when the previous round ends.
    ///
    /// With a deadline, the policy is waited for at most that long, and [`Round::decided`] tells if its answer is
    /// [late](super::Decided::Late). Without one it decides on this thread, however long it takes; so does a policy that decides
    /// inside rounds, in any case.
    pub fn tick(&mut self, now: Seconds, deadline: Option<Duration>) -> Round {
        self.now = self.now.max(now);
        let number = self.n_rounds;
        let decided = self.decide(deadline);
        self.n_seen = self.n_submitted;
        self.n_rounds += 1;
        let mut preempted = Vec::new();
        self.driver.each_lost(&self.table, &mut |lost| preempted.push(self.lease(&lost)));
        let round = Round {
            number,
            from: self.now,
            until: self.now + self.options.round_length,
            leases: self.leases_from(0),
            preempted,
            decided,
        };
        for id in self.gone.drain(..) {
            self.names.remove(&id);
        }
        round
    }

    fn decide(&mut self, deadline: Option<Duration>) -> Decided {
        let now = self.now;
        match &mut self.driver {
            Driver::Mechanized(rounds) => {
                let mut boundary = Boundary { now, table: &mut self.table, cluster: &self.up, adopted: None };
                let decided = rounds.decide(&mut boundary, deadline);
                self.in_force = boundary.adopted.or(self.in_force.take());
                decided
            }
            Driver::Direct(direct) => {
                let decided = direct.decide_or_go_on(&mut Start {
                    round: self.n_rounds,
                    now,
                    round_length: self.options.round_length,
                    table: &mut self.table,
                    cluster: &self.up,
                });
                if matches!(decided, Decided::Fresh { .. }) {
                    self.decided = Some(now);
                }
                decided
            }
        }
    }

    /// The leases of the round from the position `first` on.
    pub(super) fn leases_from(&self, first: usize) -> Vec<Lease> {
        (first..self.driver.n_leases()).map(|index| self.lease(&self.driver.lease(index))).collect()
    }

    /// A lease with the user's names.
    pub(super) fn lease(&self, granted: &GrantedLease<'_>) -> Lease {
        let mut workers = granted.workers.to_vec();
        workers.sort_unstable();
        let name = |id: JobId| self.name(id).to_owned();
        Lease {
            jobs: granted.combination,
            names: granted.combination.members().map(name).collect(),
            worker_type: granted.worker_type,
            type_name: self.cluster.types()[granted.worker_type].name.clone(),
            workers,
            n_servers: granted.n_servers,
            extended: granted.extended,
        }
    }

    /// The decision whose allocation is in force; none before the first, nor with a policy that decides inside rounds.
    pub fn in_force(&self) -> Option<&InForce> {
        self.in_force.as_ref()
    }

    /// The start of the round at which the policy's last decision was adopted; none before the first.
    pub fn decided(&self) -> Option<Seconds> {
        self.in_force.as_ref().map(|decision| decision.adopted).or(self.decided)
    }

    /// Whether a job was active when the last round was decided.
    pub fn was_shown(&self, id: JobId) -> bool {
        id.index() < self.n_seen
    }

    /// The problem that a policy would be shown now.
    ///
    /// # Errors
    /// If it cannot be stated.
    pub fn problem(&self) -> Result<Problem, ProblemError> {
        self.table.problem(self.now, &self.up)
    }

    /// The cluster with all its workers; its worker types are in the order of all ids and vectors.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The workers: their types and servers, and which of them are up.
    pub fn workers(&self) -> &Workers {
        self.driver.workers()
    }

    /// The mechanism: the time that each job is owed and has received. None if the policy decides inside rounds.
    pub fn mechanism(&self) -> Option<&Mechanism> {
        self.driver.mechanism()
    }

    /// The policy's name.
    pub fn policy_name(&self) -> &str {
        self.driver.policy_name()
    }

    /// The options.
    pub fn options(&self) -> &Options {
        &self.options
    }
}
