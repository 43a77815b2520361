//! What backends claim of a program that none of them found an optimum of.

use super::{SolverContext, SolvingError};
use crate::program::Program;
use crate::solver::timing::Stopwatch;
use crate::solver::{SolveError, Termination, without_optimum};

impl SolverContext {
    /// The same error with what is proven in the place of a claim that the program has no optimum.
    pub(super) fn proven(&mut self, program: &Program, error: SolvingError) -> SolvingError {
        let SolvingError::Solve(SolveError::NotOptimal { attempts, termination }) = error else {
            return error;
        };
        let claims = [Termination::Infeasible, Termination::Unbounded, Termination::InfeasibleOrUnbounded];
        let termination = if claims.contains(&termination) {
            let clock = Stopwatch::start();
            let proven = without_optimum(program, termination, &self.limits());
            self.report.seconds.certify += clock.elapsed().as_secs_f64();
            proven.unwrap_or(Termination::Failed)
        } else {
            termination
        };
        SolveError::NotOptimal { attempts, termination }.into()
    }
}
