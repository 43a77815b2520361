//! Errors of options that make no policy, and of a policy's programs, in the users' terms.

use thiserror::Error;

use crate::policy::decision::PolicyError;
use crate::policy::program::policy::ProgramPolicy;
use crate::policy::program::program_columns::ProgramColumns;
use crate::policy::program::reduce::Reduced;
use crate::policy::program::solver_context::SolvingError;
use crate::program::{BindError, BoundObjective, Sense};
use crate::solver::{SolveError, Termination, check};
use crate::spec::nearest::suggestion;

/// Reason for which options do not make a policy.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ProgramPolicyError {
    /// A lexicographic objective with a level that is affine neither in throughput nor in its inverse.
    #[error(
        "the lexicographic optimum needs an objective whose level is affine in throughput or in 1/throughput"
    )]
    NotFillable,
    /// A lexicographic objective with a soft constraint: levels after the first do not know what its excess cost the
    /// first.
    #[error(
        "one level is raised after the other, where no constraint can be soft: use `min_over_jobs` without `water_filling`"
    )]
    SoftLexicographic,
    /// A hierarchical policy without a lexicographic objective that divides by `weight`.
    #[error("a hierarchical policy needs `lexicographic_min_over_jobs` of something divided by `weight`")]
    NotHierarchical,
    /// A discounted policy with an objective, pairs or constraints for which the discount of Nash welfare has no
    /// meaning.
    #[error(
        "a discounted policy needs an objective of throughput and data that do not depend on the other jobs, without `pairs` and without constraints that may be dropped or are on the whole cluster"
    )]
    NotDiscountable,
    /// A backend that does not exist.
    #[error(transparent)]
    Backend(#[from] SolveError),
}

impl ProgramPolicy {
    /// The error of a program. If the program has infinite numbers, the error names their cause: an objective that is
    /// infinite for every allocation, or a datum that a job does not have.
    pub(super) fn error_of(&self, error: SolvingError, columns: &ProgramColumns<'_>) -> PolicyError {
        let SolvingError::Solve(SolveError::Malformed { .. }) = error else { return self.error(error) };
        let (policy, bound) = (self.options.name.clone(), columns.bound());
        let (ideal, maximized) = (bound.ideal(), bound.objective().sense() == Sense::Maximize);
        if ideal.is_infinite() && (ideal < 0.0) == maximized {
            let sign = if maximized { "-" } else { "" };
            let reason = format!("the objective is {sign}∞ whatever is allocated");
            return PolicyError::Infeasible { policy, reason };
        }
        match infinite_by(&bound) {
            Some((field, member)) => {
                let needed =
                    if field == "slo_remaining" { "a deadline that is to come" } else { "a finite number" };
                PolicyError::Missing {
                    policy,
                    field,
                    job: columns.reduced().classes.members(member)[0] as usize,
                    expected: format!("{needed}: without one, numbers of this policy are infinite"),
                }
            }
            None => self.error(error),
        }
    }

    /// The error of a program.
    pub(super) fn error(&self, error: SolvingError) -> PolicyError {
        let policy = self.options.name.clone();
        match error {
            SolvingError::Solve(SolveError::NotOptimal { attempts, termination }) => match termination {
                Termination::Infeasible => PolicyError::Infeasible { policy, reason: attempts },
                Termination::Unbounded => PolicyError::Unbounded { policy, reason: attempts },
                termination => PolicyError::Solve(SolveError::NotOptimal { attempts, termination }),
            },
            SolvingError::Solve(SolveError::Malformed { what }) => {
                PolicyError::Overflow { policy, what: what.clone() }
            }
            SolvingError::Solve(error) => PolicyError::Solve(error),
            SolvingError::Strategy { strategy, why } => PolicyError::Strategy { policy, strategy, why },
            SolvingError::NoColumns
            | SolvingError::NoLevels
            | SolvingError::NoLevelTried
            | SolvingError::NoChoice => PolicyError::Infeasible { policy, reason: error.to_string() },
        }
    }

    /// The error of data that an objective reads.
    pub(super) fn bind_error(&self, error: &BindError, reduced: &Reduced) -> PolicyError {
        let policy = self.options.name.clone();
        match error {
            BindError::Value { name, position, value, expected } if self.data.contains(name) => {
                let job = reduced.classes.members(*position)[0] as usize;
                let found =
                    if value.is_nan() { "and it has none".to_owned() } else { format!("not {value}") };
                let expected = format!("a number {expected}, {found}");
                PolicyError::Missing { policy, field: name.clone(), job, expected }
            }
            BindError::Value { name, position, value, .. }
                if value.is_nan() && reduced.instance.type_data.contains_key(name) =>
            {
                let kind = &reduced.instance.worker_types[*position];
                let problem =
                    format!("which worker type `{kind}` does not have: give it in the snapshot or the run");
                PolicyError::Data { policy, field: name.clone(), problem }
            }
            BindError::Value { name, value, expected, .. } => PolicyError::Data {
                policy,
                field: name.clone(),
                problem: format!("a number {expected}, not {value}"),
            },
            BindError::Missing { name } => {
                let problem =
                    "which the problem does not have: give it in the snapshot or the run".to_owned();
                PolicyError::Data { policy, field: name.clone(), problem }
            }
            BindError::UnknownWorkerType { name, named_by, known } => {
                let expected: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
                let meant = suggestion(name, known.iter().map(String::as_str));
                let problem = format!(
                    "the worker type that {named_by} names, expected one of the cluster's, {}{}",
                    expected.join(", "),
                    meant.map(|meant| format!(" ({meant})")).unwrap_or_default()
                );
                PolicyError::Data { policy, field: name.clone(), problem }
            }
            other => PolicyError::Infeasible { policy, reason: other.to_string() },
        }
    }
}

/// The datum that alone makes numbers of the program infinite, as with 1 in its place none is, and a member that has
/// no finite value of it.
fn infinite_by(bound: &BoundObjective<'_>) -> Option<(String, usize)> {
    let is_finite = |bound: &BoundObjective<'_>| check(&bound.formulate().program).is_ok();
    let (instance, objective) = (bound.instance(), bound.objective());
    if is_finite(bound) {
        return None;
    }
    instance.data.iter().find_map(|(name, values)| {
        let member = values.iter().position(|value| value.is_infinite())?;
        let mut finite = instance.clone();
        let stated = |value: &f64| if value.is_infinite() { 1.0 } else { *value };
        finite.data.insert(name.clone(), values.iter().map(stated).collect());
        let is_cause = objective.bind(&finite).is_ok_and(|bound| is_finite(&bound));
        is_cause.then(|| (name.clone(), member))
    })
}
