//! HiGHS: dual simplex, and the interior-point method IPX with and without crossover to a vertex.
//!
//! Linear programs only. Every solve builds a fresh instance, without output; only the basis of a [`WarmStart`] passes from
//! one solve to the next. HiGHS judges by absolute tolerances, so programs are scaled
//! first (see the `scaling` module), and it has called answers optimal that were not, so certify them. Without
//! crossover it gives the duals of a maximization the wrong sign where presolve has solved it (1.15.0; the
//! conformance suite found it), so it is only ever asked to minimize.

mod ffi;
mod parallel;

use highs::{ColProblem, HighsModelStatus, HighsSolutionStatus, Model, SolvedModel};

use crate::program::{Program, Sense};
use crate::solver::backend::{Backend, Basis, Feature, Limits, Solution, SolveError, Termination, WarmStart};
use crate::solver::highs::parallel::most_parallel;
use crate::solver::intake::{admit, without_columns};
use crate::solver::scaling::Scaled;

/// Number of steps after which the interior-point method gives up where no limit is asked for: it takes some twenty, and
/// where coefficients are fifteen decades apart it goes on for ever.
const IPM_STEPS_MAX: usize = 500;

/// The number of rows that are multiples of one another above which presolve is off, as it compares each with each.
const PARALLEL_MAX: usize = 500;

/// HiGHS's number of the primal simplex method in its option `simplex_strategy`.
const PRIMAL: i32 = 4;

/// An algorithm of HiGHS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Dual simplex: a vertex, warm starts.
    Simplex,
    /// Interior point, then crossover: a vertex.
    InteriorPointToVertex,
    /// Interior point without crossover: near the analytic centre of the optimal face.
    InteriorPointToCentre,
}

/// The backend of HiGHS with one of its methods.
#[derive(Clone, Copy, Debug)]
pub struct Highs {
    method: Method,
}

impl Highs {
    /// The backend of a method.
    pub const fn new(method: Method) -> Self {
        Self { method }
    }
}

impl Backend for Highs {
    fn name(&self) -> &'static str {
        match self.method {
            Method::Simplex => "highs-simplex",
            Method::InteriorPointToVertex => "highs-ipm",
            Method::InteriorPointToCentre => "highs-interior",
        }
    }

    fn supports(&self, feature: Feature) -> bool {
        match feature {
            Feature::Duals | Feature::AnyStructure => true,
            Feature::VertexSolutions => self.method != Method::InteriorPointToCentre,
            Feature::CentralSolutions => self.method == Method::InteriorPointToCentre,
            Feature::WarmStart => self.method == Method::Simplex,
            Feature::ExponentialCones | Feature::SecondOrderCones => false,
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
        let scaled = Scaled::of(program);
        let mut model = load(&scaled.program).map_err(|message| self.failure(message))?;
        self.set_options(&mut model, limits).map_err(|message| self.failure(message))?;
        if program.n_rows() > PARALLEL_MAX && most_parallel(&scaled.program) > PARALLEL_MAX {
            let refused = |_| self.failure("HiGHS refused the option `presolve`");
            model.try_set_option("presolve", "off").map_err(refused)?;
        }
        if let (Method::Simplex, Some(warm)) = (self.method, warm) {
            let started = start_from(&mut model, &scaled, warm);
            if started && warm.feasible {
                model
                    .try_set_option("simplex_strategy", PRIMAL)
                    .map_err(|_| self.failure("HiGHS refused the option `simplex_strategy`"))?;
            }
        }
        let solved = model
            .try_solve()
            .map_err(|status| self.failure(format!("the solve ended with status {status:?}")))?;
        Ok(scaled.recover(program, read(solved, &scaled.program)))
    }
}

impl Highs {
    fn failure(self, message: impl Into<String>) -> SolveError {
        SolveError::Backend { backend: self.name(), message: message.into() }
    }

    fn set_options(self, model: &mut Model, limits: &Limits) -> Result<(), String> {
        let tolerance = limits.tolerance.clamp(1e-10, 1e-2);
        let solver = if self.method == Method::Simplex { "simplex" } else { "ipx" };
        let crossover = if self.method == Method::InteriorPointToCentre { "off" } else { "on" };
        let simplex = 10_000 + 200 * (model.num_cols() + model.num_rows());
        let [simplex, ipm] = [simplex, IPM_STEPS_MAX].map(|most| {
            let asked = limits.iterations.and_then(|count| usize::try_from(count).ok());
            i32::try_from(asked.unwrap_or(most)).unwrap_or(i32::MAX)
        });
        let fail = |option: &str| format!("HiGHS refused the option `{option}`");
        for (option, value) in [("solver", solver), ("run_crossover", crossover), ("parallel", "off")] {
            model.try_set_option(option, value).map_err(|_| fail(option))?;
        }
        for (option, value) in [
            ("primal_feasibility_tolerance", tolerance),
            ("dual_feasibility_tolerance", tolerance),
            ("ipm_optimality_tolerance", (tolerance * 1e-2).max(1e-12)),
            // the default, 1e-9, drops coefficients that matter
            ("small_matrix_value", 1e-12),
            ("time_limit", limits.time.map_or(f64::INFINITY, |time| time.as_secs_f64())),
        ] {
            model.try_set_option(option, value).map_err(|_| fail(option))?;
        }
        let threads = i32::try_from(limits.threads.max(1)).unwrap_or(i32::MAX);
        model.try_set_option("threads", threads).map_err(|_| fail("threads"))?;
        for (option, steps) in [
            ("simplex_iteration_limit", simplex),
            ("ipm_iteration_limit", ipm),
            ("crossover_iteration_limit", simplex),
        ] {
            // the name of the third is not in every release, and it only bounds a clean-up
            let refused = model.try_set_option(option, steps).is_err();
            if refused && option != "crossover_iteration_limit" {
                return Err(fail(option));
            }
        }
        Ok(())
    }
}

/// The factor that makes the objective one to minimize: 1 or −1.
fn sign(program: &Program) -> f64 {
    match program.sense {
        Sense::Maximize => -1.0,
        Sense::Minimize => 1.0,
    }
}

/// Hands a scaled program to a fresh HiGHS, column by column.
fn load(program: &Program) -> Result<Model, String> {
    let mut problem = ColProblem::new();
    let rows: Vec<_> = program.rows.iter().map(|range| problem.add_row(range.lower..=range.upper)).collect();
    let mut columns = vec![Vec::new(); program.n_columns()];
    for (row, &handle) in rows.iter().enumerate() {
        for (column, value) in program.row(row).filter(|&(_, value)| value != 0.0) {
            columns[column].push((handle, value));
        }
    }
    for (column, terms) in columns.iter().enumerate() {
        let range = program.columns[column];
        problem.add_column(sign(program) * program.cost[column], range.lower..=range.upper, terms);
    }
    problem
        .try_optimise(highs::Sense::Minimise)
        .map_err(|status| format!("HiGHS refused the program with status {status:?}"))
}

/// Starts from a basis of the right shape, else from column values; what does not fit is left out. True if a basis
/// was taken.
fn start_from(model: &mut Model, scaled: &Scaled, warm: &WarmStart) -> bool {
    let (columns, rows) = (scaled.program.n_columns(), scaled.program.n_rows());
    let fits = |basis: &&Basis| basis.columns.len() == columns && basis.rows.len() == rows;
    if let Some(basis) = warm.basis.as_ref().filter(fits)
        && ffi::set_basis(model, basis)
    {
        return true;
    }
    if let Some(values) = warm.columns.as_ref().filter(|values| values.len() == columns) {
        // a start that HiGHS refuses costs nothing but the start
        let _ = model.try_set_solution(Some(&scaled.columns_scaled(values)), None, None, None);
    }
    false
}

/// Reads HiGHS's answer, in scaled units.
fn read(mut solved: SolvedModel, program: &Program) -> Solution {
    let termination = termination_of(solved.status());
    let counts =
        [solved.simplex_iteration_count(), solved.ipm_iteration_count(), solved.crossover_iteration_count()];
    let iterations = counts.iter().map(|&count| u64::try_from(count).unwrap_or(0)).sum();
    let mut answer = Solution { iterations, ..without_columns(termination) };
    if matches!(
        termination,
        Termination::Infeasible | Termination::Unbounded | Termination::InfeasibleOrUnbounded
    ) {
        return answer;
    }
    if solved.primal_solution_status() != HighsSolutionStatus::None {
        let found = solved.get_solution();
        let has_duals = solved.int_info_value(c"dual_solution_status").is_ok_and(|status| status != 0);
        if found.columns().iter().all(|value| value.is_finite()) {
            answer.columns = found.columns().to_vec();
            answer.objective = program.objective(&answer.columns);
        }
        if has_duals && found.dual_rows().iter().all(|dual| dual.is_finite()) {
            answer.row_duals = found.dual_rows().iter().map(|dual| sign(program) * dual).collect();
        }
    }
    if solved.int_info_value(c"basis_validity").is_ok_and(|valid| valid == 1) {
        answer.basis = ffi::basis(&mut solved, program.n_columns(), program.n_rows());
    }
    answer
}

fn termination_of(status: HighsModelStatus) -> Termination {
    match status {
        HighsModelStatus::Optimal => Termination::Optimal,
        HighsModelStatus::Infeasible => Termination::Infeasible,
        HighsModelStatus::Unbounded => Termination::Unbounded,
        HighsModelStatus::UnboundedOrInfeasible => Termination::InfeasibleOrUnbounded,
        HighsModelStatus::ReachedTimeLimit => Termination::TimeLimit,
        HighsModelStatus::ReachedIterationLimit => Termination::IterationLimit,
        // the status by which interior point without crossover says that it came close
        HighsModelStatus::Unknown => Termination::Inaccurate,
        // programs without columns never get here, and no bound or target is ever set
        HighsModelStatus::ModelEmpty
        | HighsModelStatus::ObjectiveBound
        | HighsModelStatus::ObjectiveTarget
        | HighsModelStatus::ReachedSolutionLimit
        | HighsModelStatus::ReachedInterrupt
        | HighsModelStatus::ReachedMemoryLimit
        | HighsModelStatus::NotSet
        | HighsModelStatus::LoadError
        | HighsModelStatus::ModelError
        | HighsModelStatus::PresolveError
        | HighsModelStatus::SolveError
        | HighsModelStatus::PostsolveError
        // the enum may grow; an unknown status proves nothing
        | _ => Termination::Failed,
    }
}

#[cfg(test)]
mod tests;
