//! The trait of all backends, and what goes in and out: limits and a warm start, a solution or an error.

use std::fmt;
use std::time::Duration;

use thiserror::Error;

use crate::program::Program;
use crate::solver::interrupt::Interrupt;
use crate::solver::timing::Stopwatch;

/// A capability of a solver that a program or a caller may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Exponential cones.
    ExponentialCones,
    /// Second-order cones.
    SecondOrderCones,
    /// Dual values of the rows.
    Duals,
    /// Ends at a vertex of the optimal face.
    VertexSolutions,
    /// Ends in the relative interior of the optimal face, near its analytic centre.
    CentralSolutions,
    /// Starts from an earlier basis or solution.
    WarmStart,
    /// Takes programs of any structure; a backend without this may decline one.
    AnyStructure,
}

/// Limits of a solve: when to give up, and how exact to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Limit on wall time, if there is one.
    pub time: Option<Duration>,
    /// Limit on iterations, if there is one.
    pub iterations: Option<u32>,
    /// Feasibility and optimality tolerance, relative to a well-scaled program.
    pub tolerance: f64,
    /// Threads a solver may use.
    pub threads: u32,
    /// Condition that ends the solve early. Our own methods and Clarabel check it as they go; for other backends, policies
    /// lower the time limit to the time that is left to it.
    pub interrupt: Interrupt,
}

impl Limits {
    /// Whether to give up: the time limit is over by `clock`, started with the work, or the interrupt is raised.
    pub fn is_over(&self, clock: &Stopwatch) -> bool {
        self.time.is_some_and(|time| clock.elapsed() >= time) || self.interrupt.is_raised()
    }
}

impl Default for Limits {
    /// Limits without a bound on time or iterations, with a tolerance of 1e-9 and one thread.
    fn default() -> Self {
        Self { time: None, iterations: None, tolerance: 1e-9, threads: 1, interrupt: Interrupt::default() }
    }
}

/// Reason why a backend stopped. Each value is a claim of the backend, which only a certificate proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Termination {
    /// The backend claims an optimum within tolerance.
    Optimal,
    /// The backend claims that no point satisfies the constraints.
    Infeasible,
    /// The backend claims that the objective is unbounded.
    Unbounded,
    /// The backend claims that the program is infeasible or unbounded, without saying which.
    InfeasibleOrUnbounded,
    /// The backend stopped close to an optimum, outside its own tolerance.
    Inaccurate,
    /// The time limit was reached or, in our own methods, the interrupt was raised.
    TimeLimit,
    /// The interrupt was raised.
    Interrupted,
    /// The limit on iterations was reached.
    IterationLimit,
    /// The backend gave up for numerical or internal reasons.
    Failed,
}

/// Status of a column or row in a basis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BasisStatus {
    /// In the basis.
    Basic,
    /// Out of the basis, at its lower bound.
    Lower,
    /// Out of the basis, at its upper bound.
    Upper,
    /// Free and out of the basis.
    Free,
}

/// A simplex basis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Basis {
    /// Status of each column.
    pub columns: Vec<BasisStatus>,
    /// Status of each row.
    pub rows: Vec<BasisStatus>,
}

impl Basis {
    /// The basis of the rows' own slacks: every column at its lower bound.
    pub(crate) fn of_rows(program: &Program) -> Self {
        Self {
            columns: vec![BasisStatus::Lower; program.n_columns()],
            rows: vec![BasisStatus::Basic; program.n_rows()],
        }
    }
}

/// A start for a solve, taken from an earlier one.
#[derive(Clone, Debug, Default)]
pub struct WarmStart {
    /// A basis of matching shape.
    pub basis: Option<Basis>,
    /// Whether the basis is feasible, though perhaps far from an optimum, as when columns were added. HiGHS goes on
    /// from it by the primal simplex method, as the dual one would start anew.
    pub feasible: bool,
    /// Column values of matching length, for backends that can start without a basis.
    pub columns: Option<Vec<f64>>,
}

/// A solver's answer: three separate things, why it stopped, a primal vector and a dual vector.
///
/// Signs of duals: for `maximize`, the Lagrangian is `cost·x − Σ y_i (row_i(x) − bound_i)`, so a binding upper
/// bound has y ≥ 0, "one more unit of the bound adds y to the objective". For `minimize` the same statement
/// holds: y is the change of the objective per unit of the bound.
#[derive(Clone, Debug)]
pub struct Solution {
    /// Reason why the backend stopped.
    pub termination: Termination,
    /// Column values: `[columns]`; empty if the backend gives none.
    pub columns: Vec<f64>,
    /// Change of the objective per unit of each row's binding bound: `[rows]`; empty if not given.
    pub row_duals: Vec<f64>,
    /// Change of the objective per unit added to each cone entry's constant: `[cones][entries]`; empty if not given.
    pub cone_duals: Vec<Vec<f64>>,
    /// Objective as the backend reports it.
    pub objective: f64,
    /// Iterations, summed over phases.
    pub iterations: u64,
    /// The final basis, if the backend has one.
    pub basis: Option<Basis>,
}

/// Error of a backend that gave no [`Solution`], or of a chain without a certified optimum.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum SolveError {
    /// The program needs a feature that the backend lacks.
    #[error("backend `{backend}` does not support {feature:?}")]
    Unsupported {
        /// The backend.
        backend: &'static str,
        /// The feature that the backend lacks.
        feature: Feature,
    },
    /// The backend is made for programs of another structure; neither is at fault.
    #[error("backend `{backend}` is not made for this program: {reason}")]
    Declined {
        /// The backend.
        backend: &'static str,
        /// Reason why the backend declined, in words.
        reason: String,
    },
    /// This build has no backend of this name.
    #[error("unknown backend `{name}`, expected one of {expected}")]
    UnknownBackend {
        /// The name asked for.
        name: String,
        /// The names of the backends in this build.
        expected: String,
    },
    /// The program is not in standard form.
    #[error("malformed program: {what}")]
    Malformed {
        /// Description of the fault in the program.
        what: String,
    },
    /// The library behind the backend failed.
    #[error("backend `{backend}` failed: {message}")]
    Backend {
        /// The backend.
        backend: &'static str,
        /// The message of the backend's library.
        message: String,
    },
    /// Every backend of the chain stopped without a certified optimum.
    #[error("no backend found a certified optimum: {attempts}")]
    NotOptimal {
        /// The outcome of each backend, in words.
        attempts: String,
        /// Claim that there is no optimum, if a backend made it; else the termination of the last backend, which is
        /// [`Termination::Failed`] where it claims an optimum that breaks a constraint.
        termination: Termination,
    },
}

/// An implementation of a solver.
pub trait Backend: fmt::Debug + Send {
    /// The name of the backend, as users write it.
    fn name(&self) -> &'static str;

    /// Whether the backend supports a feature.
    fn supports(&self, feature: Feature) -> bool;

    /// Solves a program, from a warm start where given and supported.
    ///
    /// # Errors
    /// [`SolveError::Unsupported`] before anything is sent, if the program needs what the backend lacks;
    /// [`SolveError::Backend`] if its library fails. Infeasible and unbounded programs are answers, not errors.
    fn solve(
        &mut self,
        program: &Program,
        limits: &Limits,
        warm: Option<&WarmStart>,
    ) -> Result<Solution, SolveError>;
}
