//! Clarabel: an interior-point method for linear and conic programs, in pure Rust.
//!
//! It takes   minimize q·x   subject to   A x + s = b,  s ∈ K,   and answers x and z ∈ K*. A row with two
//! different bounds becomes two of its rows, equal bounds one in the zero cone; bounds of columns are rows too.
//! It ends near the analytic centre of the optimal face.

use ::clarabel::algebra::CscMatrix;
use ::clarabel::solver::{
    DefaultInfo, DefaultSettings, DefaultSolver, IPSolver, SolverStatus, SupportedConeT,
};

use crate::program::{ConeKind, Program, Range, Sense};
use crate::solver::backend::{Backend, Feature, Limits, Solution, SolveError, Termination, WarmStart};
use crate::solver::intake::{admit, without_columns};
use crate::solver::scaling::Scaled;
use crate::solver::tolerances::INACCURATE_MAX;

const NAME: &str = "clarabel";

/// The Clarabel backend.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clarabel;

impl Backend for Clarabel {
    fn name(&self) -> &'static str {
        NAME
    }

    fn supports(&self, feature: Feature) -> bool {
        match feature {
            Feature::ExponentialCones
            | Feature::SecondOrderCones
            | Feature::Duals
            | Feature::AnyStructure
            | Feature::CentralSolutions => true,
            Feature::VertexSolutions | Feature::WarmStart => false,
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
        let scaled = Scaled::of(program);
        let form = Form::of(&scaled.program);
        if form.height() == 0 {
            return Ok(scaled.recover(program, without_rows(&scaled.program)));
        }
        let n = scaled.program.n_columns();
        let q: Vec<f64> = scaled.program.cost.iter().map(|cost| -form.sign * cost).collect();
        let mut solver = DefaultSolver::new(
            &CscMatrix::zeros((n, n)),
            &q,
            &form.matrix(n),
            &form.bounds,
            &form.cones,
            settings(limits),
        )
        .map_err(|error| SolveError::Backend { backend: NAME, message: error.to_string() })?;
        let interrupt = limits.interrupt.clone();
        solver.set_termination_callback(move |_: &DefaultInfo<f64>| interrupt.is_raised());
        solver.solve();
        Ok(scaled.recover(program, form.read(&scaled.program, &solver)))
    }
}

/// Clarabel's settings. Its tolerances are a hundred times closer than the limits ask, which takes one or two more
/// iterations; its "reduced" tolerances, which it falls back on where rounding stops it earlier, are those of the
/// limits.
fn settings(limits: &Limits) -> DefaultSettings<f64> {
    let tolerance = limits.tolerance.clamp(1e-11, 1e-2);
    let aim = (tolerance * 1e-2).max(1e-12);
    DefaultSettings {
        verbose: false,
        max_iter: limits.iterations.unwrap_or(500),
        time_limit: limits.time.map_or(f64::INFINITY, |time| time.as_secs_f64()),
        tol_gap_abs: aim,
        tol_gap_rel: aim,
        tol_feas: aim,
        reduced_tol_gap_abs: tolerance,
        reduced_tol_gap_rel: tolerance,
        reduced_tol_feas: tolerance,
        max_threads: limits.threads.max(1),
        direct_solve_method: "qdldl".to_owned(),
        ..DefaultSettings::default()
    }
}

/// The answer to a program without rows and bounds: 0 for all columns if no column has a cost, else unbounded.
fn without_rows(program: &Program) -> Solution {
    if program.cost.iter().any(|&cost| cost != 0.0) {
        return without_columns(Termination::Unbounded);
    }
    let mut answer = without_columns(Termination::Optimal);
    answer.columns = vec![0.0; program.n_columns()];
    answer.objective = 0.0;
    answer
}

/// The part of a program that a row of Clarabel's came from.
#[derive(Clone, Copy, Debug)]
enum Origin {
    /// Both bounds of a row, or its upper one.
    Upper(usize),
    /// The lower bound of a row.
    Lower(usize),
    /// A bound of a column, whose dual is not reported.
    Column,
    /// An entry of a cone.
    Cone(usize),
}

/// A program in Clarabel's form, rows in its order: equalities, inequalities, cones.
#[derive(Debug)]
struct Form {
    /// The sense of the program: +1 to maximize, −1 to minimize.
    sign: f64,
    /// The origin of each row: [rows].
    origins: Vec<Origin>,
    /// The right-hand side b: [rows].
    bounds: Vec<f64>,
    /// Position of each row's first term, then the number of terms: [rows + 1].
    row_starts: Vec<usize>,
    term_columns: Vec<usize>,
    term_values: Vec<f64>,
    /// The cones that the slacks s of consecutive rows are in.
    cones: Vec<SupportedConeT<f64>>,
}

impl Form {
    fn of(program: &Program) -> Self {
        let sign = match program.sense {
            Sense::Maximize => 1.0,
            Sense::Minimize => -1.0,
        };
        let mut form = Self {
            sign,
            origins: Vec::new(),
            bounds: Vec::new(),
            row_starts: vec![0],
            term_columns: Vec::new(),
            term_values: Vec::new(),
            cones: Vec::new(),
        };
        for equalities in [true, false] {
            let before = form.height();
            for (row, &range) in program.rows.iter().enumerate() {
                let origins = (Origin::Upper(row), Origin::Lower(row));
                form.push_range(range, equalities, origins, || program.row(row));
            }
            for (column, &range) in program.columns.iter().enumerate() {
                let origins = (Origin::Column, Origin::Column);
                form.push_range(range, equalities, origins, || std::iter::once((column, 1.0)));
            }
            let height = form.height() - before;
            if height > 0 {
                form.cones.push(if equalities {
                    SupportedConeT::ZeroConeT(height)
                } else {
                    SupportedConeT::NonnegativeConeT(height)
                });
            }
        }
        for (position, cone) in program.cones.iter().enumerate() {
            for entry in &cone.entries {
                form.push(Origin::Cone(position), entry.constant, -1.0, entry.terms.iter().copied());
            }
            form.cones.push(match cone.kind {
                ConeKind::Exponential => SupportedConeT::ExponentialConeT(),
                ConeKind::SecondOrder => SupportedConeT::SecondOrderConeT(cone.entries.len()),
            });
        }
        form
    }

    fn height(&self) -> usize {
        self.bounds.len()
    }

    /// Adds the rows of a range: only if it is an equality where `equalities` are collected, else only if it is not.
    fn push_range<I: Iterator<Item = (usize, f64)>>(
        &mut self,
        range: Range,
        equalities: bool,
        (upper, lower): (Origin, Origin),
        terms: impl Fn() -> I,
    ) {
        let is_equality = range.is_point();
        if equalities {
            if is_equality {
                self.push(upper, range.upper, 1.0, terms());
            }
            return;
        }
        if is_equality {
            return;
        }
        if range.upper < f64::INFINITY {
            self.push(upper, range.upper, 1.0, terms());
        }
        if range.lower > f64::NEG_INFINITY {
            self.push(lower, -range.lower, -1.0, terms());
        }
    }

    fn push(&mut self, origin: Origin, bound: f64, sign: f64, terms: impl Iterator<Item = (usize, f64)>) {
        for (column, value) in terms.filter(|&(_, value)| value != 0.0) {
            self.term_columns.push(column);
            self.term_values.push(sign * value);
        }
        self.row_starts.push(self.term_values.len());
        self.bounds.push(bound);
        self.origins.push(origin);
    }

    /// The coefficients A, column by column.
    fn matrix(&self, n_columns: usize) -> CscMatrix<f64> {
        let mut starts = vec![0; n_columns + 1];
        for &column in &self.term_columns {
            starts[column + 1] += 1;
        }
        for column in 0..n_columns {
            starts[column + 1] += starts[column];
        }
        let mut next = starts.clone();
        let mut rows = vec![0; self.term_values.len()];
        let mut values = vec![0.0; self.term_values.len()];
        for row in 0..self.height() {
            for term in self.row_starts[row]..self.row_starts[row + 1] {
                let place = &mut next[self.term_columns[term]];
                rows[*place] = row;
                values[*place] = self.term_values[term];
                *place += 1;
            }
        }
        CscMatrix::new(self.height(), n_columns, starts, rows, values)
    }

    fn read(&self, program: &Program, solver: &DefaultSolver<f64>) -> Solution {
        let found = &solver.solution;
        let close = found.r_prim.max(found.r_dual) <= INACCURATE_MAX
            && (found.obj_val - found.obj_val_dual).abs() <= INACCURATE_MAX * found.obj_val.abs().max(1.0);
        let mut answer = without_columns(termination_of(found.status, close));
        answer.iterations = u64::from(found.iterations);
        if matches!(answer.termination, Termination::Infeasible | Termination::InfeasibleOrUnbounded) {
            return answer;
        }
        if found.x.iter().all(|value| value.is_finite()) {
            answer.columns.clone_from(&found.x);
            answer.objective = program.objective(&found.x);
        }
        if found.z.iter().all(|value| value.is_finite()) {
            answer.row_duals = vec![0.0; program.n_rows()];
            answer.cone_duals =
                program.cones.iter().map(|cone| Vec::with_capacity(cone.entries.len())).collect();
            for (&origin, &z) in self.origins.iter().zip(&found.z) {
                match origin {
                    Origin::Upper(row) => answer.row_duals[row] += self.sign * z,
                    Origin::Lower(row) => answer.row_duals[row] -= self.sign * z,
                    Origin::Cone(cone) => answer.cone_duals[cone].push(self.sign * z),
                    Origin::Column => {}
                }
            }
        }
        answer
    }
}

fn termination_of(status: SolverStatus, close: bool) -> Termination {
    match status {
        // "almost" is measured by the tolerance that the limits ask for
        SolverStatus::Solved | SolverStatus::AlmostSolved => Termination::Optimal,
        SolverStatus::NumericalError | SolverStatus::InsufficientProgress if close => Termination::Inaccurate,
        SolverStatus::PrimalInfeasible | SolverStatus::AlmostPrimalInfeasible => Termination::Infeasible,
        // This status claims a ray along which the objective improves, whether or not any point is feasible.
        SolverStatus::DualInfeasible | SolverStatus::AlmostDualInfeasible => {
            Termination::InfeasibleOrUnbounded
        }
        SolverStatus::CallbackTerminated => Termination::Interrupted,
        SolverStatus::MaxIterations => Termination::IterationLimit,
        SolverStatus::MaxTime => Termination::TimeLimit,
        SolverStatus::Unsolved | SolverStatus::NumericalError | SolverStatus::InsufficientProgress => {
            Termination::Failed
        }
    }
}
