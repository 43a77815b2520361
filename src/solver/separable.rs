//! Separable: an interior-point method for sums of logarithms, roots and inverses of linear forms, however unlike their
//! sizes.
//!
//! A cone that says y ≤ log u, y² ≤ u or y·u ≥ 1 is a function of one number u. As a cone it ties the sizes of its
//! entries together: ‖(2, y − u)‖ ≤ y + u of a y = 1e4 and a u = 1e-4 says nothing in double precision. Here y is left
//! out, and what remains is a program with a separable convex objective and rows (see `form`), for programs the
//! cones of which are such curves, each of a column of its own; others are declined.
//!
//! Method: infeasible primal-dual path following, predictor and corrector (Mehrotra, SIAM J. Optim. 2, 1992), on v·z
//! = μ·w for columns and slacks. A column has a larger weight w the more the functions are worth that have it in
//! their arguments, so that functions with worths orders of magnitude apart converge together. For the argument u of
//! a function with slope ± κ·u^(−p) and multiplier λ the product is another one:
//!
//!   z·u^p = κ·λ        Newton on its logarithm:   Δz/z + p·Δu/u − Δλ/λ = log(κ·λ / (z·u^p))
//!
//! which no unit of u changes. Where y is in rows, λ is the multiplier of s = |y − F(u)| ≥ 0, with s·λ = μ, and y is
//! replaced by F(u) ± s there. Steps solve normal equations (see `normal`) with u/(p·z) in D for u, where columns have
//! v/z.
//!
//! Duals of cones follow from λ and z in closed form. As with every backend, only the certificate proves an answer.

mod curve;
mod form;
mod path;

use crate::program::Program;
use crate::solver::backend::{Backend, Feature, Limits, Solution, SolveError, Termination, WarmStart};
use crate::solver::intake::admit;
use crate::solver::scaling::Scaled;
use crate::solver::tolerances::INACCURATE_MAX;
use form::Form;
use path::{End, Path};

const NAME: &str = "separable";

/// Number of multiplications for a step's elimination of blocks above which a program is declined: Clarabel's sparse
/// factors are faster then. 1,000 jobs on 456 worker types take 2e8, and some eighty times as long as by Clarabel.
const ELIMINATION_MAX: f64 = 1e8;

/// The separable backend.
#[derive(Clone, Copy, Debug, Default)]
pub struct Separable;

impl Backend for Separable {
    fn name(&self) -> &'static str {
        NAME
    }

    fn supports(&self, feature: Feature) -> bool {
        match feature {
            Feature::ExponentialCones
            | Feature::SecondOrderCones
            | Feature::Duals
            | Feature::CentralSolutions => true,
            Feature::VertexSolutions | Feature::WarmStart | Feature::AnyStructure => false,
        }
    }

    fn solve(
        &mut self,
        program: &Program,
        limits: &Limits,
        _warm: Option<&WarmStart>,
    ) -> Result<Solution, SolveError> {
        if let Some(answer) = admit(self, program)? {
            return Ok(answer);
        }
        let declined = |reason: &str| SolveError::Declined { backend: NAME, reason: reason.to_owned() };
        if program.is_linear() {
            return Err(declined("the program is linear"));
        }
        let scaled = Scaled::of(program);
        let form = Form::of(&scaled.program).map_err(declined)?;
        if form.matrix.elimination_cost() > ELIMINATION_MAX {
            return Err(declined("too many rows link its blocks"));
        }
        let mut path = Path::start(&form);
        let end = path.follow(limits);
        let mut answer = form.solution(&scaled.program, path.columns(), path.prices());
        answer.iterations = u64::from(path.steps());
        answer.termination = match end {
            End::TimeLimit => Termination::TimeLimit,
            End::IterationLimit => Termination::IterationLimit,
            End::Off(off) if off <= limits.tolerance => Termination::Optimal,
            End::Off(off) if off <= INACCURATE_MAX => Termination::Inaccurate,
            End::Off(_) => Termination::Failed,
        };
        Ok(scaled.recover(program, answer))
    }
}

#[cfg(test)]
mod tests;
