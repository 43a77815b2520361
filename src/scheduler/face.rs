//! The scheduler: jobs that come and go, workers, and a policy behind the mechanism, round by round.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::active::{Progress, Table};
use super::errors::{ReportError, SetupError, SubmitError};
use super::leases::{InForce, Lease, Round};
use super::options::Options;
use super::rounds::{Rounds, Situation};
use crate::cluster::Cluster;
use crate::index::{EntityId, Id, JobId, WorkerId, WorkerTypeId};
use crate::mechanism::{GrantedLease, Mechanism, Workers};
use crate::policy::{Decision, Policy};
use crate::problem::{ActiveJob, Entity, Problem, ProblemBuilder, ProblemError};
use crate::throughput::Throughputs;
use crate::units::{Seconds, Steps, StepsPerSecond};
use crate::workload::{Combination, Job};

/// What a job, or two that shared, got of workers of one type, since the last report of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Received {
    /// The jobs.
    pub jobs: Combination<JobId>,
    /// The type of the workers.
    pub worker_type: WorkerTypeId,
    /// How long they held them, once however many they were.
    pub time: Seconds,
    /// Steps that each member has done; 0 of a second member that there is not.
    pub steps: [Steps; 2],
}

/// Decides, round by round, which jobs run on which workers. The [module](super) says what it takes and gives.
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
    /// Jobs that went since the last round: leases lost may still name them.
    pub(super) gone: Vec<JobId>,
    pub(super) rounds: Rounds,
    pub(super) n_submitted: usize,
    /// Of them, those that came before the last round.
    pub(super) n_seen: usize,
    pub(super) n_rounds: u64,
    /// Start of the last round, s.
    pub(super) now: Seconds,
    pub(super) in_force: Option<InForce>,
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
        let cluster = Arc::new(options.usable(cluster, &throughputs));
        Ok(Self {
            table: Table::new(&cluster, throughputs)?,
            rounds: Rounds::new(policy, &cluster, &options),
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
        })
    }

    /// Takes in a job, which is called by its job type in leases. Its `arrival` is an instant on the clock of
    /// [`tick`](Self::tick).
    ///
    /// # Errors
    /// If the job has no throughput, fits nowhere in the cluster, or a number of it is out of range. Others go on.
    pub fn submit(&mut self, job: Job) -> Result<JobId, SubmitError> {
        let name = job.job_type.clone();
        self.take_in(name, job)
    }

    /// Takes in a job under a name of its user's.
    ///
    /// # Errors
    /// As [`submit`](Self::submit), and if a job of that name is here.
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
        self.check(id, &job)
            .and_then(|()| self.table.add(Progress::new(id, job, true), &self.cluster))
            .map_err(|error| self.refusal(error))?;
        let table = &self.table;
        let throughput = |jobs: Combination<JobId>, worker_type| table.throughput(jobs, worker_type);
        self.rounds.mechanism_mut().add_job(id, scale_factor, &throughput);
        self.names.insert(id, name);
        self.n_submitted += 1;
        Ok(id)
    }

    /// Would a problem with this job alone be one?
    fn check(&self, id: JobId, job: &Job) -> Result<(), ProblemError> {
        let alone = self.table.look_up(id.index(), job, &self.cluster)?.alone;
        let seen = ActiveJob {
            scale_factor: job.scale_factor,
            weight: job.weight,
            steps_remaining: job.total_steps,
            slo_remaining: job.slo.map(|slo| job.arrival + slo),
            // Only whether it is a number of seconds: a job may be submitted before it arrives.
            elapsed: Seconds::new(job.arrival.get().abs()),
            ..ActiveJob::new(id)
        };
        let mut builder = ProblemBuilder::new(Arc::clone(&self.cluster));
        builder.job(seen, &alone);
        builder.build().map(drop)
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
            ProblemError::Value { field, value, expected, .. } => {
                // (the instant of arrival is checked as the time since)
                let field = if field == "elapsed" { "arrival" } else { field };
                SubmitError::Value { field, value, expected }
            }
            other => SubmitError::Other(other),
        }
    }

    /// The job that is here and was [submitted under](Self::submit_as) this name.
    pub fn find(&self, name: &str) -> Option<JobId> {
        self.by_name.get(name).copied()
    }

    /// The jobs that are here, by id, with what leases call them.
    pub fn jobs(&self) -> impl ExactSizeIterator<Item = (JobId, &str)> {
        self.table.jobs.iter().map(|active| (active.progress.id, self.name(active.progress.id)))
    }

    fn name(&self, id: JobId) -> &str {
        self.names.get(&id).map_or("", String::as_str)
    }

    /// What is known of a job that is here.
    pub fn job(&self, id: JobId) -> Option<&Job> {
        self.table.get(id).map(|active| &active.progress.job)
    }

    /// Steps that a job has been reported to have done; none if it is not here.
    pub fn steps_done(&self, id: JobId) -> Option<Steps> {
        self.table.get(id).map(|active| Steps::new(active.progress.steps_run))
    }

    /// Lets a job go: it is done, or nobody wants it any more. False if it is not here.
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
        self.rounds.mechanism_mut().remove_job(id);
        true
    }

    /// Counts what jobs got of workers, in whatever round. Of a pair of which one job is gone, the time is forgotten with
    /// the pair; the other's steps count.
    ///
    /// # Errors
    /// If there never was such a job or worker type, or a number is out of range: then nothing is counted.
    pub fn record(&mut self, received: Received) -> Result<(), ReportError> {
        let Received { jobs, worker_type, time, steps } = received;
        self.check_report(jobs, worker_type)?;
        check_numbers([("time", time.get()), ("steps", steps[0].get()), ("steps", steps[1].get())])?;
        self.rounds.mechanism_mut().record(jobs, worker_type, time);
        for (id, steps) in jobs.members().zip(steps) {
            if let Some(position) = self.table.find(id) {
                self.table.jobs[position].progress.steps_run += steps.get();
            }
        }
        Ok(())
    }

    /// Takes what still holds workers of a type to do so for this long, beyond what was [recorded](Self::record): for a round
    /// that is decided before the one that runs has ended. It counts until the next record of the same jobs there, which
    /// counts in its place.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn project(
        &mut self,
        jobs: Combination<JobId>,
        worker_type: WorkerTypeId,
        time: Seconds,
    ) -> Result<(), ReportError> {
        self.check_report(jobs, worker_type)?;
        check_numbers([("time", time.get())])?;
        self.rounds.mechanism_mut().project(jobs, worker_type, time);
        Ok(())
    }

    /// A job ran alone on workers of a type, on the fewest servers, at this measured speed. It is averaged with what was
    /// believed of the job there, which at first is what the throughputs or the job itself say:
    ///
    ///   believed ← ½ · measured + ½ · believed
    ///
    /// and policies are shown what is believed; they are asked again if it changes by more than a hundredth. It changes
    /// nothing for a job that is gone.
    ///
    /// # Errors
    /// If there never was such a job or worker type, the job has no throughput there, or the speed is not a finite number
    /// above 0: then nothing has changed.
    pub fn measure(
        &mut self,
        id: JobId,
        worker_type: WorkerTypeId,
        speed: StepsPerSecond,
    ) -> Result<(), ReportError> {
        self.check_report(Combination::single(id), worker_type)?;
        if !(speed.get().is_finite() && speed.get() > 0.0) {
            return Err(ReportError::Value { field: "speed", value: speed.get() });
        }
        let Some(position) = self.table.find(id) else { return Ok(()) };
        if self.table.jobs[position].alone[worker_type.index()] <= 0.0 {
            return Err(ReportError::CannotRun { id, worker_type });
        }
        if self.table.measure(position, worker_type, speed.get()) {
            self.rounds.mechanism_mut().note_change();
        }
        Ok(())
    }

    /// Is a report about jobs and workers that there are, or were?
    fn check_report(&self, jobs: Combination<JobId>, worker_type: WorkerTypeId) -> Result<(), ReportError> {
        if let Some(id) = jobs.members().find(|id| id.index() >= self.n_submitted) {
            return Err(ReportError::UnknownJob { id });
        }
        if worker_type.index() >= self.cluster.n_types() {
            return Err(ReportError::UnknownType { worker_type });
        }
        Ok(())
    }

    /// A worker goes down, or comes up. One that is down is in no lease from the next round on.
    ///
    /// # Errors
    /// If the cluster has no such worker.
    pub fn set_up(&mut self, worker: WorkerId, up: bool) -> Result<(), ReportError> {
        if worker.index() >= self.workers().len() {
            return Err(ReportError::UnknownWorker { worker });
        }
        self.rounds.mechanism_mut().set_up(worker, up);
        self.refresh_up();
        Ok(())
    }

    /// Makes the cluster that is up what the mechanism says.
    pub(super) fn refresh_up(&mut self) {
        let workers = self.rounds.mechanism().workers();
        self.up = Arc::new(self.cluster.with_counts(|id| workers.n_up(id)));
    }

    /// Declares an owner of jobs, or changes what is known of one with that name: its weight, how it divides its share,
    /// whom it belongs to. Owners that are only named by their jobs have weight 1.
    ///
    /// # Errors
    /// If the weight is not a finite number above 0, there is no such parent, or the parent is below it.
    pub fn declare(&mut self, entity: Entity) -> Result<EntityId, ReportError> {
        if !(entity.weight.is_finite() && entity.weight > 0.0) {
            return Err(ReportError::Value { field: "weight", value: entity.weight });
        }
        let entities = &mut self.table.entities;
        let known = entities.iter().position(|other| other.name == entity.name).map(EntityId::from_index);
        let mut above = entity.parent;
        while let Some(parent) = above {
            if parent.index() >= entities.len() || Some(parent) == known {
                return Err(ReportError::UnknownEntity { parent });
            }
            above = entities[parent].parent;
        }
        self.rounds.mechanism_mut().note_change();
        match known {
            Some(id) => {
                entities.replace(id, entity);
                Ok(id)
            }
            None => Ok(entities.push(entity)),
        }
    }

    /// Starts a round at `now`, in seconds since any instant that stays the same: who runs on which workers from now until
    /// the round ends. An instant before the last round's counts as that one.
    ///
    /// A round may be decided ahead, while the one before it runs on: after what runs was [projected](Self::project), and its
    /// leases are to start when that ends.
    ///
    /// With a deadline, the policy is waited for so long at most, and [`Round::decided`] says if its answer is
    /// [late](super::Decided::Late). Without one it decides on this thread, however long it takes.
    pub fn tick(&mut self, now: Seconds, deadline: Option<Duration>) -> Round {
        self.now = self.now.max(now);
        let mut boundary =
            Boundary { now: self.now, table: &mut self.table, cluster: &self.up, adopted: None };
        let decided = self.rounds.decide(&mut boundary, deadline);
        if let Some(adopted) = boundary.adopted {
            self.in_force = Some(adopted);
        }
        self.n_seen = self.n_submitted;
        let number = self.n_rounds;
        self.n_rounds += 1;
        let mechanism = self.rounds.mechanism();
        let round = Round {
            number,
            from: self.now,
            until: self.now + self.options.round_length,
            leases: mechanism.leases().map(|lease| self.lease(&lease)).collect(),
            preempted: mechanism.preempted().map(|lease| self.lease(&lease)).collect(),
            decided,
        };
        for id in self.gone.drain(..) {
            self.names.remove(&id);
        }
        round
    }

    /// A lease in the user's words.
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

    /// The decision whose allocation is in force; none before the first.
    pub fn in_force(&self) -> Option<&InForce> {
        self.in_force.as_ref()
    }

    /// What a policy would be shown now.
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
        self.rounds.mechanism().workers()
    }

    /// The mechanism: what each job is owed and has received.
    pub fn mechanism(&self) -> &Mechanism {
        self.rounds.mechanism()
    }

    /// The options.
    pub fn options(&self) -> &Options {
        &self.options
    }
}

/// Refuses numbers that are none, or below 0.
fn check_numbers<const N: usize>(numbers: [(&'static str, f64); N]) -> Result<(), ReportError> {
    match numbers.into_iter().find(|(_, value)| !(value.is_finite() && *value >= 0.0)) {
        None => Ok(()),
        Some((field, value)) => Err(ReportError::Value { field, value }),
    }
}

/// The start of a round, over the scheduler's own table.
pub(super) struct Boundary<'a> {
    pub(super) now: Seconds,
    pub(super) table: &'a mut Table,
    pub(super) cluster: &'a Arc<Cluster>,
    /// The decision adopted at this round, if one was.
    pub(super) adopted: Option<InForce>,
}

impl Situation for Boundary<'_> {
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

    fn throughput(&self, jobs: Combination<JobId>, worker_type: WorkerTypeId) -> f64 {
        self.table.throughput(jobs, worker_type)
    }

    fn decided(&mut self, asked: Seconds, problem: &Problem, decision: &Decision) -> bool {
        let id = |index| problem.jobs()[index].id;
        let allocation = &decision.allocation;
        let row = |(row, jobs): (_, &Combination<_>)| (jobs.map(id), allocation.shares().row(row).to_vec());
        self.adopted = Some(InForce {
            asked,
            adopted: self.now,
            shares: allocation.combinations().enumerate().map(row).collect(),
            objective: decision.objective.clone(),
            solve: decision.solve.clone(),
            dropped: decision.dropped.iter().map(|index| id(*index)).collect(),
        });
        false
    }
}
