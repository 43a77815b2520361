//! The last attempt at a program without a certified optimum, and proofs of claims that it has none.

use super::{Answer, SolverContext, SolvingError};
use crate::program::Program;
use crate::solver::timing::Stopwatch;
use crate::solver::{SolveError, Termination, registry, without_optimum};

/// Rows up to which a program that the chain has failed on is solved by our simplex, which is slow on larger ones.
const ROWS_LAST: usize = 128;

impl SolverContext {
    /// Solves a small linear program that the chain has found no certified optimum of by our simplex; else the error,
    /// with its claim proven.
    pub(super) fn last_resort(
        &mut self,
        program: &Program,
        error: SolvingError,
    ) -> Result<Answer, SolvingError> {
        // A backend that was asked for is not helped out.
        let small = self.simplex.is_some() && program.is_linear() && program.n_rows() <= ROWS_LAST;
        if small
            && error.is_unsolved()
            && let Ok(simplex) = registry::backend("simplex")
            && let (_, Ok(answer)) = self.try_backend(program, simplex)
        {
            return Ok(answer);
        }
        Err(self.with_proven_claim(program, error))
    }

    /// The error, in which a backend's claim that the program has no optimum is replaced by the termination that is proven.
    pub(super) fn with_proven_claim(&mut self, program: &Program, error: SolvingError) -> SolvingError {
        let SolvingError::Solve(SolveError::NotOptimal { mut attempts, termination }) = error else {
            return error;
        };
        let claims = [Termination::Infeasible, Termination::Unbounded, Termination::InfeasibleOrUnbounded];
        let termination = if claims.contains(&termination) {
            let clock = Stopwatch::start();
            let proven = without_optimum(program, termination, &self.limits());
            self.report.seconds.certify += clock.elapsed().as_secs_f64();
            if proven.is_none() {
                attempts.push_str("; that it has no optimum is not proven");
            }
            proven.unwrap_or(Termination::Failed)
        } else {
            termination
        };
        SolveError::NotOptimal { attempts, termination }.into()
    }
}
