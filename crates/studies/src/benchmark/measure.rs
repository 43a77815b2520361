//! Measurement of one case.

use thiserror::Error;

use crate::benchmark::changes::{Changes, changes};
use crate::benchmark::partition::{self, PartitionError};
use crate::benchmark::results::{Row, Seconds, Status};
use apportion::allocation::Allocation;
use apportion::catalog::{Catalog, CatalogError, PolicyOptions};
use apportion::index::WorkerTypeId;
use apportion::policy::{ObjectiveReport, Policy, PolicyError, ProgramPolicy, Sense, SolveReport};
use apportion::problem::Problem;
use apportion::solver::timing::Stopwatch;
use apportion::solver::{Feature, Limits, SolveError, Termination, registry};

/// Name in place of a backend's for the chain of backends that users get where they name none.
pub const DEFAULT: &str = "default";
/// Name in place of a backend's for policies that solve nothing.
pub const RULE: &str = "rule";
/// Time for which a case is repeated if its number of repeats is not given, s.
const REPEAT_S: f64 = 0.2;
/// The fewest repeats then: a single time has no range.
const REPEATS_MIN: usize = 3;
/// Time after which a case may have fewer than the fewest repeats, s.
const REPEAT_LONG_S: f64 = 1.0;
/// The most repeats if their number is not given.
const REPEATS_MAX: usize = 25;

/// A case to measure: everything but its problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Case<'a> {
    /// Name of the policy, or its file.
    pub policy: &'a str,
    /// The only backend to use, or [`DEFAULT`].
    pub backend: &'a str,
    /// Number of parts that are solved separately; 1 = the whole problem.
    pub partitions: usize,
    /// Seed of the partition.
    pub seed: u64,
    /// Number of arrivals and departures to decide on afterwards, one by one.
    pub changes: u32,
    /// Number of decisions to measure after the first, which is a warm-up. None: as many as fit into a fifth of a second, at
    /// least three unless these take more than a second, and at most 25.
    pub repeats: Option<u32>,
    /// Names of the jobs, by position; empty where jobs are known by their numbers.
    pub job_names: &'a [String],
    /// Limit on the processor time of all decisions together, s, or on time by the clock where the system tells no processor
    /// time. No decision begins after it, and a case is not done if its first decision takes longer.
    pub limit_seconds: f64,
}

/// Reason why a case gave no decision.
#[derive(Clone, Debug, PartialEq, Error)]
enum CaseError {
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error(transparent)]
    Solve(#[from] SolveError),
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error(transparent)]
    Partition(#[from] PartitionError),
    #[error("{}", not_done_within(*limit_seconds))]
    Limit { limit_seconds: f64 },
}

impl CaseError {
    /// The error with the names of jobs and worker types. In a part of a problem, positions are the part's own.
    fn named(self, problem: &Problem, names: &[String]) -> Self {
        let numbered = |at: usize| format!("job number {at}, counted from 0");
        let job = |at: usize| names.get(at).map_or_else(|| numbered(at), |name| format!("job `{name}`"));
        let kind = |kind: WorkerTypeId| format!("worker type `{}`", problem.cluster().types()[kind].name);
        match self {
            Self::Policy(error) => Self::Policy(error.named(job, kind)),
            Self::Partition(PartitionError::Policy(error)) => {
                let in_part = |at: usize| format!("{} in its part", numbered(at));
                Self::Partition(PartitionError::Policy(error.named(in_part, kind)))
            }
            error => error,
        }
    }

    /// Status of a case with this error, solved by a backend.
    fn status(&self, backend: &str) -> Status {
        let of_solve = |error: &SolveError| match error {
            SolveError::Unsupported { .. } | SolveError::Declined { .. } => Status::Declined,
            SolveError::NotOptimal { termination, .. } => match termination {
                Termination::Optimal if is_silent(backend) => Status::Unproven,
                Termination::TimeLimit | Termination::IterationLimit | Termination::Interrupted => {
                    Status::Limit
                }
                Termination::Infeasible => Status::Infeasible,
                Termination::Unbounded => Status::Unbounded,
                _ => Status::Failed,
            },
            _ => Status::Error,
        };
        match self {
            Self::Solve(error)
            | Self::Policy(PolicyError::Solve(error))
            | Self::Partition(PartitionError::Policy(PolicyError::Solve(error))) => of_solve(error),
            Self::Partition(PartitionError::Part { .. } | PartitionError::TooMany { .. }) => Status::Declined,
            Self::Limit { .. } => Status::Limit,
            Self::Policy(error) | Self::Partition(PartitionError::Policy(error)) => match error {
                PolicyError::Infeasible { .. } | PolicyError::Conflict { .. } => Status::Infeasible,
                PolicyError::Unbounded { .. } => Status::Unbounded,
                _ => Status::Failed,
            },
            Self::Catalog(_) | Self::Partition(_) => Status::Error,
        }
    }
}

/// Whether a backend never gives dual values, so that nothing can prove its answers.
fn is_silent(backend: &str) -> bool {
    registry::entry(backend).is_ok_and(|entry| !entry.make().supports(Feature::Duals))
}

/// A measured decision.
#[derive(Clone, Debug)]
struct Taken {
    seconds: Seconds,
    objective: Option<ObjectiveReport>,
    /// Solve report of all parts together; none for rules.
    solve: Option<SolveReport>,
    allocation: Allocation,
}

/// Decides on `problem`, once to warm up and then as often as the case says, and returns a row with the times of the median
/// decision. `processor` returns the processor time of the thread so far, s, where the system knows it. Failures are in the
/// row's status and message; the instance's name and memory are left to the caller. `told` is given the row after each
/// decision, so that a caller that breaks off has the last one. The first decision counts until there is a second.
pub fn measure(
    catalog: &Catalog,
    problem: &Problem,
    case: &Case<'_>,
    processor: &dyn Fn() -> Option<f64>,
    told: &mut dyn FnMut(&Row),
) -> Row {
    let mut row = Row::of(case.policy, "", case.backend, case.partitions);
    (row.n_jobs, row.n_types, row.seed) = (problem.n_jobs(), problem.n_types(), case.seed);
    if let Err(error) = repeat(catalog, problem, case, processor, &mut row, told) {
        row.status = error.status(case.backend);
        row.message = Some(error.named(problem, case.job_names).to_string());
        row.seconds = None;
        told(&row);
    }
    row
}

/// Measures changes after a decision that is done, if the case asks for them, and puts their times, or why there are none,
/// into the decision's row. Returns whether it was tried: changes are asked for, and the row is done and of the whole
/// problem.
pub fn measure_changes(
    catalog: &Catalog,
    problem: &Problem,
    case: &Case<'_>,
    processor: &dyn Fn() -> Option<f64>,
    row: &mut Row,
) -> bool {
    if case.changes == 0 || row.status != Status::Done || row.cut_by.is_some() {
        return false;
    }
    match one_by_one(catalog, problem, case, processor) {
        Ok(changes) => {
            row.changes = Some(case.changes);
            row.change_p50_seconds = changes.quantile(0.5);
            row.change_p99_seconds = changes.quantile(0.99);
        }
        Err(why) => row.message = Some(changes_unmeasured(&why)),
    }
    true
}

/// Message of a row without the changes that were asked for.
pub fn changes_unmeasured(why: &str) -> String {
    format!("changes were not measured: {why}")
}

/// Message of a case that ran into its time limit.
pub fn not_done_within(limit_seconds: f64) -> String {
    format!("not done within {limit_seconds} s")
}

/// The measured changes, or the reason why there are none.
fn one_by_one(
    catalog: &Catalog,
    problem: &Problem,
    case: &Case<'_>,
    processor: &dyn Fn() -> Option<f64>,
) -> Result<Changes, String> {
    if case.partitions > 1 {
        return Err("a session decides on the whole problem, not on parts of it".to_owned());
    }
    let backend = (case.backend != DEFAULT).then(|| case.backend.to_owned());
    let options = PolicyOptions { backend, ..PolicyOptions::default() };
    let policy = catalog.program(case.policy, &options).map_err(|error| error.to_string())?;
    let policy = policy.ok_or("a rule solves no program, which is what sessions go on from")?;
    let measured = changes(problem, policy, (case.changes, case.seed), processor);
    let measured = measured.map_err(|error| error.to_string())?;
    match measured.n_uncertified {
        0 => Ok(measured),
        n => Err(format!("{n} of {} decisions were not certified", case.changes)),
    }
}

fn repeat(
    catalog: &Catalog,
    problem: &Problem,
    case: &Case<'_>,
    processor: &dyn Fn() -> Option<f64>,
    row: &mut Row,
    told: &mut dyn FnMut(&Row),
) -> Result<(), CaseError> {
    let mut decide = decider(catalog, case)?;
    let (begin, used_before) = (Stopwatch::start(), processor());
    let is_over = || {
        let used = used_before.zip(processor()).map(|(before, now)| now - before);
        used.unwrap_or_else(|| begin.elapsed().as_secs_f64()) > case.limit_seconds
    };
    let mut once = || -> Result<Taken, CaseError> {
        decide.forget()?;
        let (clock, before) = (Stopwatch::start(), processor());
        let mut taken = decide.decide(problem)?;
        taken.seconds.total = clock.elapsed().as_secs_f64();
        taken.seconds.processor = before.zip(processor()).map(|(before, after)| after - before);
        Ok(taken)
    };
    let mut first = once()?;
    if is_over() {
        return Err(CaseError::Limit { limit_seconds: case.limit_seconds });
    }
    if first.objective.is_none() {
        first.objective = value(catalog, problem, case, &first.allocation)?;
    }
    fill(row, &first);
    row.put_times(&[first.seconds]);
    row.warm_ups = Some(0);
    told(row);
    row.warm_ups = Some(1);
    let clock = Stopwatch::start();
    let mut times: Vec<Seconds> = Vec::new();
    let is_enough = |n: usize| {
        if let Some(wanted) = case.repeats {
            return n >= wanted.max(1) as usize;
        }
        let spent = clock.elapsed().as_secs_f64();
        n > 0 && (n >= REPEATS_MAX || spent >= if n < REPEATS_MIN { REPEAT_LONG_S } else { REPEAT_S })
    };
    while !is_enough(times.len()) {
        if is_over() {
            row.warm_ups = Some(u32::from(!times.is_empty()));
            row.cut(Status::Limit, &not_done_within(case.limit_seconds), case.repeats);
            told(row);
            break;
        }
        times.push(once()?.seconds);
        row.put_times(&times);
        told(row);
    }
    Ok(())
}

/// Decider of a case: a policy on the whole problem, or a program on each of its parts.
enum Decider<'a> {
    /// Policy with its state before any decision.
    Whole(Box<dyn Policy>, serde_json::Value),
    Parts(&'a Catalog, &'a Case<'a>),
}

impl Decider<'_> {
    /// Restores the policy's state before any decision, as it may repeat or remember its last one.
    fn forget(&mut self) -> Result<(), CaseError> {
        match self {
            Self::Whole(policy, fresh) => Ok(policy.restore(fresh)?),
            Self::Parts(..) => Ok(()),
        }
    }

    fn decide(&mut self, problem: &Problem) -> Result<Taken, CaseError> {
        match self {
            Self::Whole(policy, _) => whole(problem, policy.as_mut()),
            Self::Parts(catalog, case) => in_parts(problem, catalog, case),
        }
    }
}

fn decider<'a>(catalog: &'a Catalog, case: &'a Case<'_>) -> Result<Decider<'a>, CaseError> {
    let policy: Box<dyn Policy> = match program(catalog, case)? {
        Some(_) if case.partitions > 1 => return Ok(Decider::Parts(catalog, case)),
        Some(policy) => Box::new(policy),
        None => catalog.policy(case.policy)?,
    };
    let fresh = policy.state();
    Ok(Decider::Whole(policy, fresh))
}

/// The policy as a program on the case's backend alone; `None` for rules.
fn program(catalog: &Catalog, case: &Case<'_>) -> Result<Option<ProgramPolicy>, CaseError> {
    let Some(mut policy) = catalog.program(case.policy, &PolicyOptions::default())? else { return Ok(None) };
    if case.backend != DEFAULT {
        let entry = registry::entry(case.backend)?;
        policy.solve_by(vec![entry.make()], vec![entry.make()], Limits::default());
    }
    Ok(Some(policy))
}

fn whole(problem: &Problem, policy: &mut dyn Policy) -> Result<Taken, CaseError> {
    let decision = policy.allocate(problem)?;
    let seconds = decision.solve.as_ref().map(seconds).unwrap_or_default();
    let (objective, solve, allocation) = (decision.objective, decision.solve, decision.allocation);
    Ok(Taken { seconds, objective, solve, allocation })
}

fn in_parts(problem: &Problem, catalog: &Catalog, case: &Case<'_>) -> Result<Taken, CaseError> {
    let clock = Stopwatch::start();
    let parts = partition::split(problem, case.partitions, case.seed)?;
    let splitting = clock.elapsed().as_secs_f64();
    let mut policies = Vec::with_capacity(parts.len());
    for _ in &parts {
        policies.extend(program(catalog, case)?);
    }
    let partitioned =
        partition::decide(problem, &parts, || policies.pop().unwrap_or_else(|| unreachable!("one a part")))?;
    let mut solve = SolveReport::default();
    for part in partitioned.parts.iter().filter_map(|part| part.solve.as_ref()) {
        solve = together(&solve, part);
    }
    let mut seconds = seconds(&solve);
    seconds.build += splitting;
    Ok(Taken { seconds, objective: None, solve: Some(solve), allocation: partitioned.allocation })
}

/// Objective of the whole problem at the parts' shares, which is not proven to be optimal.
fn value(
    catalog: &Catalog,
    problem: &Problem,
    case: &Case<'_>,
    allocation: &Allocation,
) -> Result<Option<ObjectiveReport>, CaseError> {
    let Some(policy) = catalog.program(case.policy, &PolicyOptions::default())? else {
        return Ok(None);
    };
    let (sense, value) = (policy.options().objective.sense(), policy.value_of(problem, allocation)?);
    let bound = if sense == Sense::Maximize { f64::INFINITY } else { f64::NEG_INFINITY };
    let (violation_max, gap_relative) = (allocation.violation_max(), f64::INFINITY);
    Ok(Some(ObjectiveReport {
        sense,
        value,
        bound,
        gap_relative,
        violation_max,
        optimal: false,
        first_level_only: false,
    }))
}

fn together(sum: &SolveReport, part: &SolveReport) -> SolveReport {
    let mut sum = sum.clone();
    sum.strategy = part.strategy;
    sum.backend.clone_from(&part.backend);
    sum.route.clone_from(&part.route);
    sum.seconds.build += part.seconds.build;
    sum.seconds.solve += part.seconds.solve;
    sum.seconds.certify += part.seconds.certify;
    sum.seconds.expand += part.seconds.expand;
    sum.iterations += part.iterations;
    sum.solves += part.solves;
    sum.searches += part.searches;
    sum.fallbacks.extend(part.fallbacks.iter().cloned());
    if part.size.terms >= sum.size.terms {
        sum.size = part.size;
    }
    sum
}

fn seconds(report: &SolveReport) -> Seconds {
    let parts = report.seconds;
    Seconds {
        build: parts.build,
        solve: parts.solve,
        certify: parts.certify,
        expand: parts.expand,
        ..Seconds::default()
    }
}

fn fill(row: &mut Row, taken: &Taken) {
    row.status = Status::Done;
    row.violation_max = Some(taken.allocation.violation_max());
    if let Some(objective) = &taken.objective {
        let finite = |value: f64| Some(value).filter(|value| value.is_finite());
        row.sense = Some(objective.sense.name().to_owned());
        row.objective = finite(objective.value);
        row.bound = finite(objective.bound);
        row.gap_relative = finite(objective.gap_relative);
        row.optimal = Some(objective.optimal);
    }
    match &taken.solve {
        None => RULE.clone_into(&mut row.backend),
        Some(solve) => {
            row.iterations = Some(solve.iterations);
            row.solves = Some(solve.solves + solve.searches);
            row.fallbacks = Some(solve.fallbacks.len());
            row.strategy = Some(solve.strategy.name().to_owned());
            row.backend_used.clone_from(&solve.backend);
            row.n_classes = Some(solve.size.classes);
            row.n_columns = Some(solve.size.columns);
            row.n_rows = Some(solve.size.rows);
            row.n_terms = Some(solve.size.terms);
        }
    }
}
