//! Simplex: the primal simplex method in pure Rust, for small programs with a basis to start from.
//!
//! The basis may be written down from the program's structure, or be that of a program much like this one. Where few
//! steps lead from it to the optimum, the preparation of a large library costs more than the steps. Here
//! a start costs the factors of the basis (`factor`) and one pass over all columns. Any selection of columns will do:
//! where they are dependent, logicals replace some, and the basis need not be feasible. Without a start, the method
//! takes more steps than HiGHS, each with a pass over all columns.

mod factor;
mod tableau;
mod walk;

use crate::program::Program;
use crate::solver::backend::{Backend, Basis, Feature, Limits, Solution, SolveError, Termination, WarmStart};
use crate::solver::intake::{admit, without_columns};
use crate::solver::scaling::{Factors, Scaled};
use tableau::{State, Tableau, sign};

/// The simplex backend.
#[derive(Debug, Default)]
pub struct Simplex {
    /// Scaling factors of the last program; used again where the next has the same shape and comes with a basis.
    factors: Option<Factors>,
    /// Whether factors are never used again.
    forgetful: bool,
}

impl Simplex {
    /// A backend that scales every program anew, so that its answers depend on the program and the basis alone.
    pub fn forgetful() -> Self {
        Self { factors: None, forgetful: true }
    }
}

impl Backend for Simplex {
    fn name(&self) -> &'static str {
        "simplex"
    }

    fn supports(&self, feature: Feature) -> bool {
        match feature {
            Feature::Duals | Feature::AnyStructure | Feature::VertexSolutions | Feature::WarmStart => true,
            Feature::CentralSolutions | Feature::ExponentialCones | Feature::SecondOrderCones => false,
        }
    }

    fn solve(
        &mut self,
        program: &Program,
        limits: &Limits,
        warm: Option<&WarmStart>,
    ) -> Result<Solution, SolveError> {
        if let Some(answer) = admit(self, program)? {
            return Ok(answer);
        }
        let (n_columns, n_rows) = (program.n_columns(), program.n_rows());
        let fits = |basis: &&Basis| basis.columns.len() == n_columns && basis.rows.len() == n_rows;
        let basis = warm.and_then(|warm| warm.basis.as_ref()).filter(fits);
        let alike = |factors: &Factors| factors.columns.len() == n_columns && factors.rows.len() == n_rows;
        let factors = self.factors.take().filter(|factors| basis.is_some() && alike(factors));
        let scaled = factors.map_or_else(|| Scaled::of(program), |factors| Scaled::by(program, factors));
        let tableau = Tableau::of(&scaled.program);
        let mut state = basis
            .map_or_else(|| tableau.state(&Basis::of_rows(&scaled.program)), |basis| tableau.state(basis));
        let (termination, steps) = walk::walk(&tableau, &mut state, limits);
        let found = match termination {
            Termination::Infeasible | Termination::Unbounded => without_columns(termination),
            _ => answer(&scaled.program, &tableau, &state, termination),
        };
        let found = scaled.recover(program, Solution { iterations: steps, ..found });
        self.factors = (!self.forgetful).then(|| scaled.into_factors());
        Ok(found)
    }
}

/// The answer of a state, in scaled units.
fn answer(program: &Program, tableau: &Tableau, state: &State, termination: Termination) -> Solution {
    let n = tableau.n_columns();
    let within =
        |variable: usize| state.value[variable].max(tableau.lower[variable]).min(tableau.upper[variable]);
    let columns: Vec<f64> = (0..n).map(within).collect();
    let cost = |variable: &u32| tableau.cost.get(*variable as usize).copied().unwrap_or(0.0);
    let mut costs: Vec<f64> = state.basic.iter().map(cost).collect();
    let mut prices = vec![0.0; tableau.n_rows];
    state.factor.backward(&mut costs, &mut prices);
    for price in &mut prices {
        *price *= sign(program);
    }
    Solution {
        objective: program.objective(&columns),
        columns,
        row_duals: prices,
        basis: Some(Basis { columns: state.status[..n].to_vec(), rows: state.status[n..].to_vec() }),
        ..without_columns(termination)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Range, Sense};
    use crate::solver::backend::BasisStatus;

    /// Program that maximizes a level t subject to size·t ≤ x and x ≤ 1.
    fn program(size: f64) -> Program {
        let mut program = Program::new(Sense::Maximize);
        program.push_column(Range::NON_NEGATIVE, Range { lower: 0.0, upper: 1.0 }, 0.0);
        let level = Range { lower: 0.0, upper: 2.0 / size };
        program.push_column(Range::FREE, level, 1.0);
        program.push_row(Range::at_most(1.0), [(0, 1.0)]);
        program.push_row(Range::at_least(0.0), [(0, 1.0), (1, -size)]);
        program
    }

    #[test]
    fn a_forgetful_backend_is_not_misled_by_what_it_solved_before() {
        let basis = Basis {
            columns: vec![BasisStatus::Basic; 2],
            rows: vec![BasisStatus::Upper, BasisStatus::Lower],
        };
        let slack =
            Basis { columns: vec![BasisStatus::Lower, BasisStatus::Free], rows: vec![BasisStatus::Basic; 2] };
        let mut simplex = Simplex::forgetful();
        for (size, basis) in [(1e16, basis), (1.0, slack)] {
            let warm = WarmStart { basis: Some(basis), ..WarmStart::default() };
            let found = simplex.solve(&program(size), &Limits::default(), Some(&warm)).unwrap();
            assert_eq!(found.termination, Termination::Optimal, "{size}");
            assert!((found.objective * size - 1.0).abs() < 1e-12, "{size}: {}", found.objective);
        }
    }
}
