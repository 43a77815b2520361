//! The interface of policies: the trait that a policy implements, and its decision.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::allocation::{Allocation, AllocationError};
use crate::index::{Id, JobId, JobIndex, WorkerTypeId};
use crate::policy::explain::Explanation;
use crate::policy::program::{GaveUp, Reason, Strategy};
use crate::problem::{Problem, ProblemError};
pub use crate::program::Sense;
use crate::solver::{ConflictSize, SolveError};
use crate::units::{Seconds, Steps};

/// A policy that decides time shares: a function of the problem and of its own declared, serializable state.
pub trait Policy: fmt::Debug + Send {
    /// The name by which users know the policy.
    fn name(&self) -> &str;

    /// Decides the time shares of the jobs in `problem`; called at re-computation events only. A problem
    /// without jobs is answered by an allocation without rows.
    ///
    /// # Errors
    /// If the problem lacks what the policy needs, is infeasible, or no solver certifies an optimum.
    fn allocate(&mut self, problem: &Problem) -> Result<Decision, PolicyError>;

    /// Explains the decision on `problem` without taking it: the policy's state stays as it was.
    ///
    /// # Errors
    /// As [`allocate`](Self::allocate).
    fn explain(&mut self, problem: &Problem) -> Result<Explanation, PolicyError> {
        let state = self.state();
        let decision = self.allocate(problem)?;
        self.restore(&state)?;
        Ok(Explanation::of_shares(problem, decision, "it gives no prices".to_owned()))
    }

    /// The state that must survive a checkpoint, as JSON; `null` if there is none.
    fn state(&self) -> serde_json::Value {
        serde_json::Value::Null
    }

    /// Restores a state that [`state`](Self::state) returned.
    ///
    /// # Errors
    /// If the value was not written by this policy.
    fn restore(&mut self, state: &serde_json::Value) -> Result<(), PolicyError> {
        if state.is_null() { Ok(()) } else { Err(PolicyError::State { policy: self.name().to_owned() }) }
    }

    /// Adds steps to those that a job had left in the last problem, or takes them away if they are negative, without
    /// a run of the job. A policy that remembers the job's steps corrects them; one that remembers none has nothing
    /// to do.
    fn restate_steps(&mut self, job: JobId, more: Steps) {
        let _ = (job, more);
    }
}

/// A policy's decision, with its evidence.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The shares, checked.
    pub allocation: Allocation,
    /// The policy's own objective; none for heuristics.
    pub objective: Option<ObjectiveReport>,
    /// The normalized level of every job, where the policy has levels: `[n]`.
    pub levels: Option<Vec<f64>>,
    /// Report on how the decision was solved; none for closed forms and heuristics.
    pub solve: Option<SolveReport>,
    /// Jobs whose droppable constraints were dropped.
    pub dropped: Vec<JobIndex>,
    /// Rules that the policy needs of the mechanism.
    pub rules: RoundRules,
}

impl Decision {
    /// A decision without an objective, under the default rules.
    pub fn of(allocation: Allocation) -> Self {
        Self {
            allocation,
            objective: None,
            levels: None,
            solve: None,
            dropped: Vec::new(),
            rules: RoundRules::default(),
        }
    }
}

/// The objective's value with its proof.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectiveReport {
    /// Direction in which the objective is optimized.
    pub sense: Sense,
    /// Value of the allocation returned, recomputed from it, in the objective's unit; penalties of soft constraints
    /// included.
    pub value: f64,
    /// Bound from dual values that no allocation can beat; where droppable constraints were dropped, no allocation
    /// that drops those of the same jobs.
    pub bound: f64,
    /// |bound − value| / max(|value|, |bound|); for sums of logarithms, max with 1 besides. Where both are
    /// below 1e-11 of the largest value that the objective can have, the optimum is 0 but for rounding, and the gap is no larger than
    /// the certificate's tolerance.
    pub gap_relative: f64,
    /// Largest constraint violation of the shares returned.
    pub violation_max: f64,
    /// Whether the gap is within the certificate's tolerance.
    pub optimal: bool,
    /// Whether the optimum is lexicographic. Then this report is on its first level, the least of all jobs', and
    /// nothing is certified of the levels above it.
    pub first_level_only: bool,
}

/// Wall time of the parts of a solve, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SolveSeconds {
    /// Grouping of jobs and building of the program.
    pub build: f64,
    /// Time inside backends.
    pub solve: f64,
    /// Certification of the backends' answers.
    pub certify: f64,
    /// Expansion of classes to jobs and the check of the allocation.
    pub expand: f64,
}

impl SolveSeconds {
    /// Sum of all parts, in seconds.
    pub fn total(self) -> f64 {
        self.build + self.solve + self.certify + self.expand
    }
}

/// Size of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramSize {
    /// Classes of interchangeable jobs.
    pub classes: usize,
    /// Columns.
    pub columns: usize,
    /// Rows, cones apart.
    pub rows: usize,
    /// Coefficients of the rows.
    pub terms: usize,
}

/// Report on how a decision was solved.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct SolveReport {
    /// Strategy by which the optimum was found.
    pub strategy: Strategy,
    /// Reason for which that strategy was chosen.
    pub reason: Reason,
    /// Strategies that were tried before, each with why it gave up.
    pub gave_up: Vec<(Strategy, GaveUp)>,
    /// Strategy by which the droppable constraints to drop were found, and the reason for it; none where a policy has none.
    pub droppable: Option<(Strategy, Reason)>,
    /// The backend that solved the program of the optimum or, where none was written for it, the last program that was: of
    /// droppable constraints, or of a choice among optima. None if none was written.
    pub backend: Option<String>,
    /// `linear`, `parametric` or `conic`: [`Route::name`](crate::program::Route::name).
    pub route: String,
    /// Wall time by part of the solve.
    pub seconds: SolveSeconds,
    /// Iterations of all programs, and passes over all jobs of all searches.
    pub iterations: u64,
    /// Programs written that a backend worked on; one that two worked on counts twice.
    pub solves: u32,
    /// Searches for prices, which write no program.
    pub searches: u32,
    /// The largest program, searches counting as the programs that they stand for.
    pub size: ProgramSize,
    /// Jobs whose time on slower worker types was exchanged for idle time on faster ones, which the policy does not tell apart.
    pub exchanged: usize,
    /// Was the time for it over before the optimum was found, or chosen among optima? Then the decision is the best found so far.
    pub out_of_time: bool,
    /// Was the time over before all discounts of a policy that has them were found? Then the shares are without any.
    pub undiscounted: bool,
    /// What was done otherwise than planned, each with the reason: backends that were tried and not believed, optima that
    /// were not refined.
    pub fallbacks: Vec<String>,
}

/// The order in which a round fills worker types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TypeOrder {
    /// Order of the throughput matrix, fastest first.
    #[default]
    Speed,
    /// Random order, shuffled anew each round, for policies that do not look at speed.
    Shuffled,
}

/// Rules that a policy needs of the mechanism: data, so that nothing downstream asks for its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RoundRules {
    /// Combinations with priority 0 are skipped, not used as fillers.
    pub skip_zero_priority: bool,
    /// The order of worker types.
    pub type_order: TypeOrder,
    /// Whether pairs without a share fill workers left free, as single jobs do: for policies that share space.
    pub pair_fillers: bool,
    /// Whether nothing runs longer than its share of the time, though workers idle: for policies that limit the total
    /// over jobs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub within_shares: bool,
    /// Time after this decision from which the policy is asked again, at the next boundary, though nothing has
    /// changed and the last reset was a moment ago: for rules of which time itself is a part. None = when something
    /// changes.
    pub recompute_after: Option<Seconds>,
}

/// A constraint of a policy that contradicts others, or cannot be kept by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Conflict {
    /// The constraint as the policy has it.
    pub constraint: String,
    /// Position of the job with this constraint, the first of several that are alike; none if it is not on a job.
    pub job: Option<usize>,
    /// Number of jobs that are alike.
    pub n_alike: usize,
    /// Worker type with this constraint; none if it is on a job, or on the whole cluster.
    pub worker_type: Option<WorkerTypeId>,
    /// Whether it is droppable, and kept since all droppable constraints of its jobs can be.
    pub is_droppable: bool,
    /// Largest, or least, value that its left side can have where no other constraint is kept, as a part of its right
    /// side; none if it can be kept by itself, or the right side is 0.
    pub possible: Option<f64>,
    /// The part of its right side with which it could be kept beside the other conflicting constraints; none if that is not
    /// known, or `possible` says more.
    pub relaxed: Option<f64>,
    /// Whether it is known that there is a decision where this constraint, and no other, is marked `droppable: true` beside those
    /// that are.
    pub can_be_dropped: bool,
}

/// Names of the jobs and worker types that conflicting constraints are on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConflictNames {
    /// Names of jobs, by position.
    jobs: BTreeMap<usize, String>,
    /// Names of worker types, by position.
    worker_types: BTreeMap<usize, String>,
}

impl ConflictNames {
    fn job(&self, at: usize) -> String {
        self.jobs.get(&at).cloned().unwrap_or_else(|| format!("the job at position {at}"))
    }

    fn worker_type(&self, kind: WorkerTypeId) -> String {
        let name = self.worker_types.get(&kind.index()).cloned();
        name.unwrap_or_else(|| format!("worker type {}", kind.index()))
    }
}

/// The words beside a conflicting constraint that is droppable.
const DROPPED_ONLY: &str = " (droppable: as few jobs as possible are let off, whatever the objective)";

/// The words beside a conflicting constraint without which, for as few jobs as possible, there is a decision.
const CAN_BE_DROPPED: &str = " (with `droppable: true` it can be dropped)";

/// What is said of several conflicting constraints that are not known to be the fewest.
const fn said_of(size: ConflictSize) -> &'static str {
    match size {
        ConflictSize::Smallest => "",
        ConflictSize::Irreducible => " (each of these is needed, though another set may be smaller)",
        ConflictSize::Unreduced => " (some of these may not be needed)",
    }
}

/// Conflicting constraints in words, with the names of jobs and worker types.
pub fn in_words(
    conflicts: &[Conflict],
    size: ConflictSize,
    job: impl Fn(usize) -> String,
    worker_type: impl Fn(WorkerTypeId) -> String,
) -> String {
    // 0 has no sign, and what is not all is not said to be 100 %.
    let percent = |part: f64| {
        let part = if part.abs() < 5e-4 { 0.0 } else { part };
        let is_all = |said: &String| {
            said.strip_prefix("100.").is_some_and(|rest| rest.bytes().all(|digit| digit == b'0'))
        };
        let mut decimals = (1..=12).map(|decimals| format!("{:.decimals$}", part * 100.0));
        decimals.find(|said| !is_all(said)).unwrap_or_else(|| (part * 100.0).to_string())
    };
    let of = |conflict: &Conflict| {
        let Conflict { constraint, n_alike, possible, relaxed, .. } = conflict;
        let place = match (conflict.job, conflict.worker_type) {
            (Some(at), _) if *n_alike > 1 => format!("{} and {} more like it", job(at), n_alike - 1),
            (Some(at), _) => job(at),
            (None, Some(kind)) => worker_type(kind),
            (None, None) => "the whole cluster".to_owned(),
        };
        let alone = possible.map(|part| {
            let (takes, end) = if part < 1.0 { ("reaches", "most") } else { ("takes", "least") };
            let percent = percent(part);
            format!(" (with no other constraint it {takes} {percent} % of its right side at {end})")
        });
        let relaxed = relaxed.map(|part| {
            format!(" (could be kept beside the others with {} % of its right side)", percent(part))
        });
        let droppable = if conflict.is_droppable { DROPPED_ONLY } else { "" };
        let remedy = if conflict.can_be_dropped { CAN_BE_DROPPED } else { "" };
        format!("`{constraint}` for {place}{droppable}{}{remedy}", alone.or(relaxed).unwrap_or_default())
    };
    let parts: Vec<String> = conflicts.iter().map(of).collect();
    match parts.as_slice() {
        [one] => one.clone(),
        several => format!("all of: {}{}", several.join("; "), said_of(size)),
    }
}

impl PolicyError {
    /// This error with other numbers for its jobs, which `job` gives for their positions in the problem.
    #[must_use]
    pub fn with_jobs(self, job: impl Fn(usize) -> usize) -> Self {
        match self {
            Self::Missing { policy, field, job: position, expected } => {
                Self::Missing { policy, field, job: job(position), expected }
            }
            Self::Conflict { policy, mut conflicts, size, mut names } => {
                for conflict in &mut conflicts {
                    conflict.job = conflict.job.map(&job);
                }
                names.jobs = names.jobs.into_iter().map(|(at, name)| (job(at), name)).collect();
                Self::Conflict { policy, conflicts, size, names }
            }
            other => other,
        }
    }

    /// This error with these names of the jobs and worker types of its conflicting constraints, by which its text calls them.
    #[must_use]
    pub fn named(self, job: impl Fn(usize) -> String, worker_type: impl Fn(WorkerTypeId) -> String) -> Self {
        let Self::Conflict { policy, conflicts, size, .. } = self else { return self };
        let jobs = conflicts.iter().filter_map(|conflict| conflict.job);
        let types = conflicts.iter().filter_map(|conflict| conflict.worker_type);
        let names = ConflictNames {
            jobs: jobs.map(|at| (at, job(at))).collect(),
            worker_types: types.map(|kind| (kind.index(), worker_type(kind))).collect(),
        };
        Self::Conflict { policy, conflicts, size, names: Box::new(names) }
    }
}

/// Reason for which a policy gave no decision.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// A datum the policy reads is missing or out of range for some job.
    #[error("policy `{policy}` needs `{field}` of job {job}, expected {expected}")]
    Missing {
        /// The policy.
        policy: String,
        /// The datum.
        field: String,
        /// Position of the job.
        job: usize,
        /// Values that are allowed, in words.
        expected: String,
    },
    /// A datum the policy reads that the problem does not have at all, or of which one value is out of range.
    #[error("policy `{policy}` needs `{field}`, {problem}")]
    Data {
        /// The policy.
        policy: String,
        /// The datum.
        field: String,
        /// Fault of the datum, in words.
        problem: String,
    },
    /// Numbers of the policy's program overflow.
    #[error(
        "policy `{policy}` needs numbers that are less far apart, as the program of these overflows: {what}"
    )]
    Overflow {
        /// The policy.
        policy: String,
        /// Which numbers of the program do.
        what: String,
    },
    /// The program has no feasible point.
    #[error("policy `{policy}` is infeasible: {reason}")]
    Infeasible {
        /// The policy.
        policy: String,
        /// Reason, in words.
        reason: String,
    },
    /// Constraints of the policy contradict one another.
    #[error("policy `{policy}` is infeasible: no allocation keeps {}", in_words(conflicts, *size, |at| names.job(at), |kind| names.worker_type(kind)))]
    Conflict {
        /// The policy.
        policy: String,
        /// A set of them that no allocation keeps, from which all that were found not to be needed for that are left out.
        conflicts: Vec<Conflict>,
        /// How few they are known to be.
        size: ConflictSize,
        /// Names of their jobs and worker types, as far as they are known.
        names: Box<ConflictNames>,
    },
    /// The program's objective is unbounded.
    #[error("policy `{policy}` is unbounded: {reason}")]
    Unbounded {
        /// The policy.
        policy: String,
        /// Reason, in words.
        reason: String,
    },
    /// A strategy that was asked for and does not fit the problem, or gave up on it.
    #[error("policy `{policy}` cannot decide by `{strategy}`: {why}")]
    Strategy {
        /// The policy.
        policy: String,
        /// The strategy that was asked for.
        strategy: Strategy,
        /// Reason for which the strategy was not used.
        why: GaveUp,
    },
    /// No solver certified an optimum.
    #[error(transparent)]
    Solve(#[from] SolveError),
    /// The shares found break a constraint: our bug or a solver's.
    #[error("policy `{policy}` returned shares that break a constraint")]
    Allocation {
        /// The policy.
        policy: String,
        /// The constraint that the shares break.
        #[source]
        source: AllocationError,
    },
    /// A network with an output from which nothing can be decided.
    #[error("policy `{policy}` cannot decide: {reason}")]
    Undecided {
        /// The policy.
        policy: String,
        /// Reason, in words.
        reason: String,
    },
    /// The policy panicked, or there is no thread on which it could decide: our bug, its author's or the machine's.
    #[error("policy `{policy}` failed: {reason}")]
    Fault {
        /// The policy.
        policy: String,
        /// What happened, in words.
        reason: String,
    },
    /// An answer of a policy that solves no program came when the time for it was over.
    #[error("policy `{policy}` answered too late: the time of a decision, or of the run, was over")]
    BrokenOff {
        /// The policy.
        policy: String,
    },
    /// A problem that cannot be stated, so that it cannot be shown to the policy.
    #[error("policy `{policy}` has nothing to decide on: {source}")]
    Problem {
        /// The policy.
        policy: String,
        /// Fault of the problem.
        source: ProblemError,
    },
    /// A state in a checkpoint that was not written by this policy.
    #[error("the saved state is not one of policy `{policy}`")]
    State {
        /// The policy.
        policy: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_keep_their_type_when_they_get_names() {
        let conflict = |job, worker_type| Conflict {
            constraint: "a <= b".to_owned(),
            job,
            n_alike: 1,
            worker_type,
            is_droppable: false,
            possible: None,
            relaxed: None,
            can_be_dropped: false,
        };
        let conflicts = vec![conflict(Some(2), None), conflict(None, Some(WorkerTypeId::from_index(1)))];
        let (policy, size) = ("mine".to_owned(), ConflictSize::Smallest);
        let error = PolicyError::Conflict { policy, conflicts, size, names: Box::default() };
        let said = error.to_string();
        assert!(
            said.contains("for the job at position 2; ") && said.ends_with("for worker type 1"),
            "{said}"
        );
        let named = error.named(|at| format!("job `j{at}`"), |kind| format!("type `t{}`", kind.index()));
        let PolicyError::Conflict { conflicts, .. } = &named else { panic!("{named}") };
        assert_eq!(conflicts.len(), 2);
        let said = named.to_string();
        assert!(said.contains("for job `j2`; ") && said.ends_with("for type `t1`"), "{said}");
        let moved = named.with_jobs(|at| at + 5).to_string();
        assert!(moved.contains("for job `j2`; "), "{moved}");
    }

    #[test]
    fn a_part_that_is_not_all_is_not_said_to_be_100_percent() {
        let said = |part| {
            let conflict = Conflict {
                constraint: "c".to_owned(),
                job: None,
                n_alike: 1,
                worker_type: None,
                is_droppable: false,
                possible: Some(part),
                relaxed: None,
                can_be_dropped: false,
            };
            in_words(&[conflict], ConflictSize::Smallest, |job| job.to_string(), |_| String::new())
        };
        for (part, percent) in [
            (0.999_998, "99.9998"),
            (0.9999, "99.99"),
            (0.995, "99.5"),
            (0.1, "10.0"),
            (0.0001, "0.0"),
            (1.0, "100"),
            (1.000_004, "100.0004"),
        ] {
            assert!(said(part).contains(&format!(" {percent} % ")), "{}", said(part));
        }
    }
}
