//! Reasons for which a policy gives no decision: missing data, programs without an optimum, constraints in conflict.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::allocation::AllocationError;
use crate::index::{Id, WorkerTypeId};
use crate::policy::program::{GaveUp, Strategy};
use crate::problem::ProblemError;
use crate::solver::{ConflictSize, SolveError};
use crate::units::Decimals;

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
const DROPPED_ONLY: &str = " (droppable: dropped for as few jobs as possible, whatever the objective)";

/// A part of a right side below which it may be rounding of the solver.
const ROUNDING: f64 = 1e-9;

/// The words beside a conflicting constraint without which, for as few jobs as possible, there is a decision.
const CAN_BE_DROPPED: &str = " (with `droppable: true` it can be dropped)";

/// Words about several conflicting constraints that are not known to be the fewest.
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
    // 0 has no sign, and a part below the whole is not rounded to 100 %.
    let percent = |part: f64| {
        let part = if part.abs() < ROUNDING { 0.0 } else { part };
        let is_all = |said: &String| {
            said.strip_prefix("100.").is_some_and(|rest| rest.bytes().all(|digit| digit == b'0'))
        };
        let mut decimals = (1..=12).map(|decimals| Decimals(part * 100.0, decimals).to_string());
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
        /// Whether the conflicting constraints are known to be the fewest.
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
        /// The cause, in words.
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
            (0.0001, "0.01"),
            (1.0, "100"),
            (1.000_004, "100.0004"),
        ] {
            assert!(said(part).contains(&format!(" {percent} % ")), "{}", said(part));
        }
    }
}
