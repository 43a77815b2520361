//! The trait of all backends, and what goes in and out: limits and a warm start, a solution or an error.

use std::fmt;
use std::time::Duration;

use thiserror::Error;

use crate::program::Program;
use crate::solver::interrupt::Interrupt;
use crate::solver::timing::Stopwatch;

/// Something a program or caller may need of a solver.
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
    InteriorSolutions,
    /// Starts from an earlier basis or solution.
    WarmStart,
    /// Takes programs of any structure; a backend without this may decline one.
    AnyStructure,
}

/// When to give up, and how exact to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Wall time, if bounded.
    pub time: Option<Duration>,
    /// Iterations, if bounded.
    pub iterations: Option<u32>,
    /// Feasibility and optimality tolerance, relative to a well-scaled program.
    pub tolerance: f64,
    /// Threads a solver may use.
    pub threads: u32,
    /// Ends the solve early. Our own methods and Clarabel check it as they go; other backends get the time left to it
    /// as their limit.
    pub interrupt: Interrupt,
}

impl Limits {
    /// Is it time to give up, by a clock that was started with the work?
    pub fn is_over(&self, clock: &Stopwatch) -> bool {
        self.time.is_some_and(|time| clock.elapsed() >= time) || self.interrupt.is_raised()
    }
}

impl Default for Limits {
    /// No bound on time; 1e-9; one thread.
    fn default() -> Self {
        Self { time: None, iterations: None, tolerance: 1e-9, threads: 1, interrupt: Interrupt::default() }
    }
}

/// Why a backend stopped. Each value is a claim of the backend, which only a certificate proves.
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
    /// Out of time.
    TimeLimit,
    /// Broken off from outside.
    Interrupted,
    /// Out of iterations.
    IterationLimit,
    /// The backend gave up for numerical or internal reasons.
    Failed,
}

/// Where a column or row stands in a basis.
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
    /// The basis is feasible and need not be near an optimum, as when columns were added: the primal simplex method
    /// goes on from it, the dual one would start anew.
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
    /// Why the backend stopped.
    pub termination: Termination,
    /// Column values: `[columns]`; empty if there are none to give.
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

/// Why a backend gave no [`Solution`] at all.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum SolveError {
    /// The program needs what the backend lacks.
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
        /// Why the backend declined, in words.
        reason: String,
    },
    /// No such backend in this build.
    #[error("unknown backend `{name}`, expected one of {expected}")]
    UnknownBackend {
        /// The name asked for.
        name: String,
        /// The names there are.
        expected: String,
    },
    /// The program is not in standard form.
    #[error("malformed program: {what}")]
    Malformed {
        /// Why the program is malformed, in words.
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
        /// How the last one ended; [`Termination::Failed`] where it claims an optimum that breaks a constraint.
        termination: Termination,
    },
}

/// An implementation of a solver.
pub trait Backend: fmt::Debug + Send {
    /// The name of the backend, as users write it.
    fn name(&self) -> &'static str;

    /// Does the backend support a feature?
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
