//! Sessions: decisions on a problem with jobs that come, go and change, each of which starts from the prices of the
//! decision before.
//!
//! A session owns a problem and the classes of its jobs, and keeps both as jobs come and go. A decision finds the
//! optimum over classes and certifies it: each job of a class has the same share (see
//! [`classes`](crate::program::classes)), so the certificate over classes is one of the decision over jobs, and nothing
//! is written job by job. From one decision to the next, a session keeps the classes and the prices of worker types at
//! which the last search for prices ended. An objective that needs a written program is solved from scratch.
//!
//! **Which optimum.** The objective and its bound are those of a decision from scratch. Of several optima, equal after
//! refinement too, one is as likely to come out as another: which one depends on where the search began, and so on the
//! decisions before. [`Session::forget`] begins anew. Simulations, which must go on after a checkpoint as if nothing had
//! happened, decide from scratch.
//!
//! **Isolated time.** A session keeps no account of it: each job has the isolated time that it was inserted or last updated
//! with, as it has the time since its arrival. [`Policy::allocate`](crate::policy::Policy::allocate) keeps the account
//! itself where it is asked for one decision after another.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::allocation::{AllocationBuilder, AllocationError, VIOLATION_MAX};
use crate::index::{Id, JobId, JobIndex};
use crate::policy::decision::{Decision, ObjectiveReport, PolicyError, RoundRules, SolveReport};
use crate::policy::program::hierarchy::{self, Hierarchy};
use crate::policy::program::optimum::{Optimum, Refinement};
use crate::policy::program::policy::ProgramPolicy;
use crate::policy::program::program_columns::{PricingLimits, ProgramColumns};
use crate::policy::program::reduce::{Keys, Reduced};
use crate::policy::program::tolerances::SHARE_MIN;
use crate::problem::{ActiveJob, Colocation, Problem, ProblemError};
use crate::program::{BoundObjective, Groups, Objective};
use crate::solver::timing::Stopwatch;
use crate::spec::Fidelity;

/// Reason for which a session does not begin, or refuses a change.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum SessionError {
    /// A policy with decisions that are not the same for all jobs of a class, or depend on more than the problem.
    #[error("policy `{policy}` cannot be asked again in a session: {reason}")]
    Policy {
        /// The policy.
        policy: String,
        /// Reason, in words.
        reason: &'static str,
    },
    /// A problem with data by position, which arrivals and departures would mix up.
    #[error("a session takes no problem with {what}")]
    Positions {
        /// Name of the data.
        what: &'static str,
    },
    /// A job with data out of range.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// A job that is there already.
    #[error("job {id} is there already")]
    Known {
        /// The job.
        id: JobId,
    },
    /// A job that is not there.
    #[error("there is no job {id}")]
    Unknown {
        /// The job.
        id: JobId,
    },
}

/// A decision over classes: the share of one job of each.
#[derive(Clone, Debug)]
pub struct ClassDecision {
    /// The policy's own objective, certified; none without jobs.
    pub objective: Option<ObjectiveReport>,
    /// Share of time of one job of each class: [classes × K].
    pub shares: Vec<f64>,
    /// The normalized level of one job of each class, where the policy has levels: `[classes]`.
    pub levels: Option<Vec<f64>>,
    /// Report on how the decision was solved.
    pub solve: SolveReport,
    /// Rules that the policy needs of the mechanism.
    pub rules: RoundRules,
}

/// A policy with a problem in which jobs come and go, and the last decision.
///
/// ```
/// use apportion::policy::Session;
/// use apportion::problem::ActiveJob;
/// use apportion::index::{Id, JobId};
/// use apportion::{Catalog, Cluster, Job, PolicyOptions, Problem, Throughputs};
///
/// let throughputs = Throughputs::embedded("osdi20")?;
/// let cluster: Cluster = "v100=4,p100=4,k80=4".parse()?;
/// let jobs = vec![Job::new("ResNet-50 (batch size 64)").steps(120_000); 20];
/// let problem = Problem::new(&cluster, &jobs, &throughputs)?;
/// let policy = Catalog::embedded().program("max_min_fairness_perf", &PolicyOptions::default())?;
/// let mut session = Session::new(policy.ok_or("a rule")?, problem)?;
/// session.decide()?;
///
/// let new = JobId::from_index(20);
/// session.insert(ActiveJob::new(new), &[4.0, 3.0, 1.0])?;
/// session.remove(JobId::from_index(3))?;
/// assert!(session.decide()?.objective.as_ref().is_some_and(|objective| objective.optimal));
/// println!("{:?}", session.shares(new));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Session {
    policy: ProgramPolicy,
    objective: Objective,
    problem: Problem,
    groups: Groups,
    positions: BTreeMap<JobId, JobIndex>,
    /// The decision on the problem as it is; none if nothing was decided since the last change.
    decision: Option<ClassDecision>,
}

impl Session {
    /// A session of `policy` on `problem`.
    ///
    /// # Errors
    /// If the policy has pairs, droppable constraints, discounts, entities that serve in order, or a named backend for an
    /// interior optimum; or if the problem has data by position.
    pub fn new(mut policy: ProgramPolicy, problem: Problem) -> Result<Self, SessionError> {
        if let Some(reason) = unfit(&policy, &problem) {
            return Err(SessionError::Policy { policy: policy.options.name.clone(), reason });
        }
        if !problem.extra().is_empty() {
            return Err(SessionError::Positions { what: "columns of its own" });
        }
        if matches!(problem.colocation(), Colocation::Pairs(_)) {
            return Err(SessionError::Positions { what: "throughputs by pair" });
        }
        policy.solver.start_warm();
        let positions = problem.jobs().enumerate().map(|(index, job)| (job.id, index)).collect();
        let groups = {
            let selection = policy.selection(&[], &[], true);
            let mut keys = Keys::of(&problem, &selection);
            Groups::of(problem.n_jobs(), keys.width(), |position, key| keys.write(position, key))
        };
        let objective = policy.options.objective.clone();
        Ok(Self { policy, objective, problem, groups, positions, decision: None })
    }

    /// The problem as it is. The order of jobs is the session's own.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The number of classes of jobs.
    pub fn n_classes(&self) -> usize {
        self.groups.len()
    }

    /// Adds a job, with its steps/s alone on each worker type: `[K]`.
    ///
    /// # Errors
    /// If it is there already, a number is out of its range, or it can run nowhere: then nothing has changed.
    ///
    /// # Panics
    /// If there is not one throughput per worker type.
    pub fn insert(&mut self, job: ActiveJob, throughput: &[f64]) -> Result<(), SessionError> {
        let id = job.id;
        if self.positions.contains_key(&id) {
            return Err(SessionError::Known { id });
        }
        let index = self.problem.insert(job, throughput)?;
        self.positions.insert(id, index);
        let key = self.key(index);
        self.groups.insert(&key);
        self.decision = None;
        Ok(())
    }

    /// Removes a job.
    ///
    /// # Errors
    /// If it is not there.
    pub fn remove(&mut self, id: JobId) -> Result<ActiveJob, SessionError> {
        let index = self.positions.remove(&id).ok_or(SessionError::Unknown { id })?;
        let gone = self.problem.swap_remove(index);
        self.groups.swap_remove(index.index());
        if let Some(moved) = self.problem.jobs().get(index) {
            self.positions.insert(moved.id, index);
        }
        self.decision = None;
        Ok(gone)
    }

    /// Changes a job's data, its throughputs and identity apart: steps left, isolated time, weight, …
    ///
    /// # Errors
    /// If it is not there, or a number is out of its range: then nothing has changed.
    pub fn update(&mut self, job: ActiveJob) -> Result<(), SessionError> {
        let index = *self.positions.get(&job.id).ok_or(SessionError::Unknown { id: job.id })?;
        self.problem.update(index, job)?;
        let key = self.key(index);
        self.groups.update(index.index(), &key);
        self.decision = None;
        Ok(())
    }

    /// Forgets the prices of earlier decisions: the next one is that of a session that has just begun.
    pub fn forget(&mut self) {
        self.policy.solver.start_warm();
        self.decision = None;
    }

    /// Decides on the problem as it is.
    ///
    /// # Errors
    /// As [`Policy::allocate`](crate::policy::Policy::allocate).
    pub fn decide(&mut self) -> Result<&ClassDecision, PolicyError> {
        let decided = self.decide_classes();
        if decided.is_err() {
            self.forget();
        }
        Ok(self.decision.insert(decided?))
    }

    /// The shares of a job in the decision on the problem as it is, `[K]`; none if nothing was decided since the last
    /// change, or there is no such job.
    pub fn shares(&self, id: JobId) -> Option<&[f64]> {
        let (decision, index) = (self.decision.as_ref()?, self.positions.get(&id)?);
        let (class, k) = (self.groups.class_of(index.index()), self.problem.n_types());
        decision.shares.get(class * k..(class + 1) * k)
    }

    /// The decision on the problem as it is, written out job by job and checked as one from scratch is; none if nothing
    /// was decided since the last change.
    ///
    /// # Errors
    /// If its shares break a constraint.
    pub fn written_out(&self) -> Result<Option<Decision>, PolicyError> {
        let Some(decided) = &self.decision else { return Ok(None) };
        let n = self.problem.n_jobs();
        let mut builder = AllocationBuilder::new(&self.problem);
        let pushed = builder.push_all_alone(self.groups.of_jobs(), decided.shares.clone(), 0);
        pushed.map_err(|source| self.broken(source))?;
        let allocation = builder.finish().map_err(|source| self.broken(source))?;
        let of_jobs = |levels: &Vec<f64>| (0..n).map(|job| levels[self.groups.class_of(job)]).collect();
        Ok(Some(Decision {
            objective: decided.objective.clone(),
            levels: decided.levels.as_ref().map(of_jobs),
            solve: Some(decided.solve.clone()),
            rules: decided.rules,
            ..Decision::of(allocation)
        }))
    }

    fn broken(&self, source: AllocationError) -> PolicyError {
        PolicyError::Allocation { policy: self.policy.options.name.clone(), source }
    }

    /// The key of a job's class.
    fn key(&self, index: JobIndex) -> Vec<u64> {
        let selection = self.policy.selection(&[], &[], true);
        let mut keys = Keys::of(&self.problem, &selection);
        let mut key = vec![0; keys.width()];
        keys.write(index.index(), &mut key);
        key
    }

    fn decide_classes(&mut self) -> Result<ClassDecision, PolicyError> {
        let clock = Stopwatch::start();
        let Self { policy, objective, problem, groups, .. } = self;
        policy.check_data(problem)?;
        policy.solver.begin_decision(objective.route().name());
        if problem.n_jobs() == 0 {
            let (rules, solve) = (policy.rules(), policy.solver.report().clone());
            return Ok(ClassDecision { objective: None, shares: Vec::new(), levels: None, solve, rules });
        }
        let selection = policy.selection(&[], &[], true);
        let reduced = Keys::of(problem, &selection).gather(groups.classes(), |class| groups.key(class));
        let binding = policy.binding(objective, &reduced)?;
        let mut columns = ProgramColumns::new(objective, reduced, binding, None, PricingLimits::UNPRICED);
        let as_listed = policy.options.fidelity == Fidelity::Published;
        let hierarchy = policy
            .options
            .hierarchical
            .then(|| Hierarchy::new(problem, &columns.reduced().classes, as_listed));
        let solved = policy.optimum(&mut columns, hierarchy.as_ref())?;
        let elapsed = clock.elapsed().as_secs_f64();
        let (bound, reduced) = (columns.bound(), columns.reduced());
        let shares = shares(&bound, reduced, &solved);
        let violation_max = check(reduced, &shares)
            .map_err(|source| PolicyError::Allocation { policy: policy.options.name.clone(), source })?;
        let point = bound.point(&solved.class_time);
        let violation_max = violation_max.max(policy.own_violation(&columns, &bound, &point)?);
        let value = solved.value(&bound, &point);
        let report = policy.objective_report(value, solved.bound, violation_max, || bound.largest());
        let levels = bound.throughputs(&point).zip(bound.levels()).map(|(throughputs, levels)| {
            throughputs
                .iter()
                .enumerate()
                .map(|(member, throughput)| levels.level(member, *throughput))
                .collect()
        });
        let solve = policy.solver.report();
        solve.seconds.build = elapsed - solve.seconds.solve - solve.seconds.certify;
        solve.seconds.expand = clock.elapsed().as_secs_f64() - elapsed;
        solve.size.classes = reduced.classes.len();
        let (solve, rules) = (solve.clone(), policy.rules());
        Ok(ClassDecision { objective: Some(report), shares, levels, solve, rules })
    }
}

/// Reason why a session cannot decide by a policy on a problem; `None` if it can. The decision must be one over
/// classes of jobs, and jobs must stay in their classes while they do not change.
fn unfit(policy: &ProgramPolicy, problem: &Problem) -> Option<&'static str> {
    let options = &policy.options;
    let in_order = || hierarchy::interchangeable(problem).contains(&false);
    match () {
        () if options.pairs => Some("its jobs share workers, two by two"),
        () if policy.droppable => Some("it may drop constraints of single jobs"),
        () if options.discounted => Some("it decides once more for every job that is there"),
        () if options.hierarchical && in_order() => Some("an entity serves its jobs in order"),
        () if policy.refinement == Refinement::NearCentre && options.backend.is_some() => {
            Some("the backend that it names ends at the centre over jobs, not over classes")
        }
        () => None,
    }
}

/// The shares of one job of each class: [classes × K].
fn shares(bound: &BoundObjective<'_>, reduced: &Reduced, solved: &Optimum) -> Vec<f64> {
    let k = reduced.instance.n_types();
    let mut shares = vec![0.0; reduced.classes.len() * k];
    for (column, time) in bound.columns().iter().zip(&solved.class_time) {
        // A job's part of the time of its class, computed as where decisions are written out job by job.
        let fraction = 1.0 / reduced.instance.multiplicity[column.combination];
        let share = time * fraction;
        if !(-VIOLATION_MAX..=SHARE_MIN).contains(&share) {
            shares[column.combination * k + column.worker_type] = share;
        }
    }
    shares
}

/// Checks the shares of classes, [classes × K], against the allocation polytope, as shares of jobs are checked: the
/// largest violation. An error names the first job of the class.
fn check(reduced: &Reduced, shares: &[f64]) -> Result<f64, AllocationError> {
    let (instance, k) = (&reduced.instance, reduced.instance.n_types());
    let mut workers = vec![0.0; k];
    let mut violation_max = 0.0_f64;
    for (class, row) in shares.chunks_exact(k).enumerate() {
        let first = || reduced.classes.members(class)[0] as usize;
        let mut time = 0.0;
        for (worker_type, share) in row.iter().enumerate() {
            if !(-VIOLATION_MAX..=1.0 + VIOLATION_MAX).contains(share) {
                return Err(AllocationError::Share { combination: first(), worker_type, share: *share });
            }
            time += share;
            workers[worker_type] += instance.multiplicity[class] * instance.scale_factor[class] * share;
        }
        if time > 1.0 + VIOLATION_MAX {
            return Err(AllocationError::Time { job: first(), time });
        }
        violation_max = violation_max.max(time - 1.0);
    }
    for (worker_type, (workers, capacity)) in workers.into_iter().zip(&instance.capacity).enumerate() {
        let excess = (workers - capacity) / capacity.max(1.0);
        if excess > VIOLATION_MAX {
            return Err(AllocationError::Capacity { worker_type, workers, capacity: *capacity });
        }
        violation_max = violation_max.max(excess);
    }
    Ok(violation_max)
}
