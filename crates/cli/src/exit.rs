//! The ends of the command: exit codes, and the errors that lead to each.

use std::io;
use std::process::ExitCode;

use thiserror::Error;

use apportion::catalog::CatalogError;
use apportion::policy::PolicyError;
use apportion::policy::program::ProgramPolicyError;
use apportion::solver::{SolveError, Termination};
use apportion::spec::SpecError;

/// The name of the action of printing results.
pub(super) const TO_STANDARD_OUTPUT: &str = "write to standard output";

/// The command's exit codes. Stable: codes are added, never changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitStatus {
    /// Done.
    Done = 0,
    /// A bug of this program, or an error of the system: a full disk, a lost file.
    Bug = 1,
    /// Bad input: a document, data, a flag.
    BadInput = 2,
    /// Well-posed input without a solution: infeasible or unbounded.
    NoSolution = 3,
    /// A limit was hit; all that was finished is written and marked.
    Limit = 4,
    /// A comparison found a broken bound, or `check` an untrue claim.
    BoundBroken = 5,
    /// Interrupted; all that was finished is kept, and running the command again resumes.
    Interrupted = 130,
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status as u8)
    }
}

/// Why a command did not do all that it was asked to.
#[derive(Debug, Error)]
pub enum Failure {
    /// An input document is at fault.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A flag or its value is at fault.
    #[error("{message}")]
    Usage {
        /// Why the flag or its value is refused.
        message: String,
        /// A remedy, in words.
        help: Option<String>,
    },
    /// The policy gave no decision.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The policy gave no decision in the course of a simulation.
    #[error("{place}: {error}")]
    Decision {
        /// The instant, and the jobs.
        place: String,
        /// The policy's error.
        error: PolicyError,
    },
    /// The system refused an action.
    #[error("cannot {action}: {source}")]
    Io {
        /// The action that failed: `write results/runs.csv`.
        action: String,
        /// Why it failed.
        source: io::Error,
    },
    /// An impossible state; the user is asked for a report.
    #[error("{message}")]
    Bug {
        /// A description of the bug.
        message: String,
    },
    /// A limit was hit; all that was finished is written.
    #[error("{message}")]
    Limit {
        /// The limit, and the work that was finished.
        message: String,
    },
    /// A comparison found a broken bound.
    #[error("{message}")]
    BoundBroken {
        /// The bound, and how far it is exceeded.
        message: String,
    },
    /// The user asked to stop.
    #[error("interrupted: {message}")]
    Interrupted {
        /// The finished work, and how to go on.
        message: String,
    },
}

/// A policy that cannot be made: its file's fault, or that of a flag that does not fit it.
impl From<CatalogError> for Failure {
    fn from(error: CatalogError) -> Self {
        match error {
            CatalogError::Spec(error) => Self::Spec(error),
            CatalogError::Program { policy, source } => match source {
                ProgramPolicyError::Backend(error) => Self::Policy(PolicyError::Solve(error)),
                source => Self::usage(format!("policy `{policy}`: {source}"), None),
            },
            error => Self::usage(error.to_string(), None),
        }
    }
}

impl Failure {
    /// A failure about a flag.
    pub fn usage(message: impl Into<String>, help: Option<String>) -> Self {
        Self::Usage { message: message.into(), help }
    }

    /// A failure of the system in an action, such as `write results/runs.csv`.
    pub fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let action = action.into();
        move |source| Self::Io { action, source }
    }

    /// The exit code of the failure.
    pub fn status(&self) -> ExitStatus {
        match self {
            Self::Spec(_) | Self::Usage { .. } => ExitStatus::BadInput,
            Self::Policy(error) | Self::Decision { error, .. } => of_policy(error),
            Self::Io { .. } | Self::Bug { .. } => ExitStatus::Bug,
            Self::Limit { .. } => ExitStatus::Limit,
            Self::BoundBroken { .. } => ExitStatus::BoundBroken,
            Self::Interrupted { .. } => ExitStatus::Interrupted,
        }
    }
}

fn of_policy(error: &PolicyError) -> ExitStatus {
    match error {
        PolicyError::Missing { .. }
        | PolicyError::Data { .. }
        | PolicyError::Overflow { .. }
        | PolicyError::Undecided { .. }
        | PolicyError::Problem { .. }
        | PolicyError::Strategy { .. }
        | PolicyError::State { .. } => ExitStatus::BadInput,
        PolicyError::Infeasible { .. } | PolicyError::Conflict { .. } | PolicyError::Unbounded { .. } => {
            ExitStatus::NoSolution
        }
        PolicyError::Solve(error) => of_solve(error),
        // `Allocation`, `Fault`, and variants that the engine may add later, the meaning of which this command does not know.
        _ => ExitStatus::Bug,
    }
}

fn of_solve(error: &SolveError) -> ExitStatus {
    match error {
        SolveError::Unsupported { .. } | SolveError::Declined { .. } | SolveError::UnknownBackend { .. } => {
            ExitStatus::BadInput
        }
        SolveError::NotOptimal { termination, .. } => match termination {
            Termination::Infeasible | Termination::Unbounded => ExitStatus::NoSolution,
            _ => ExitStatus::Limit,
        },
        _ => ExitStatus::Bug,
    }
}
