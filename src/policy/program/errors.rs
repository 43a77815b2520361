//! What errors of a policy's programs mean to its users.

use crate::policy::decision::PolicyError;
use crate::policy::program::policy::ProgramPolicy;
use crate::policy::program::reduce::Reduced;
use crate::policy::program::solver_context::SolvingError;
use crate::program::BindError;
use crate::solver::{SolveError, Termination};

impl ProgramPolicy {
    /// The error of a program.
    pub(super) fn error(&self, error: SolvingError) -> PolicyError {
        let policy = self.options.name.clone();
        match error {
            SolvingError::Solve(SolveError::NotOptimal { attempts, termination }) => match termination {
                Termination::Infeasible => PolicyError::Infeasible { policy, reason: attempts },
                Termination::Unbounded => PolicyError::Unbounded { policy, reason: attempts },
                termination => PolicyError::Solve(SolveError::NotOptimal { attempts, termination }),
            },
            SolvingError::Solve(SolveError::Malformed { what }) => PolicyError::Data {
                policy,
                field: "numbers that are less far apart".to_owned(),
                problem: format!("as the program of these overflows: {what}"),
            },
            SolvingError::Solve(error) => PolicyError::Solve(error),
            SolvingError::Strategy { strategy, why } => PolicyError::Strategy { policy, strategy, why },
            SolvingError::Empty => PolicyError::Infeasible { policy, reason: error.to_string() },
        }
    }

    /// The error of data that an objective reads.
    pub(super) fn bind_error(&self, error: &BindError, reduced: &Reduced) -> PolicyError {
        let policy = self.options.name.clone();
        match error {
            BindError::Value { name, position, value, expected } if self.data.contains(name) => {
                let job = reduced.classes.members(*position)[0] as usize;
                let expected = format!("a number {expected}, not {value}");
                PolicyError::Missing { policy, field: name.clone(), job, expected }
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
            other => PolicyError::Infeasible { policy, reason: other.to_string() },
        }
    }
}
