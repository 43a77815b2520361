//! Linear solvers through the modelling layer good_lp: microlp (pure Rust), and HiGHS.
//!
//! good_lp has no cones, no basis and no iteration limit; microlp gives no duals, so its answers are certified
//! only with a bound that another backend left. good_lp folds HiGHS's "infeasible or unbounded" into
//! infeasible, which is undone here; its Clarabel adapter calls unbounded programs optimal and is not used.

use good_lp::{
    Constraint, Expression, ProblemVariables, ResolutionError, Solution as _, SolutionStatus, SolverModel,
    Variable, WithTimeLimit, variable, variable::UnsolvedProblem,
};

use crate::program::{Program, Sense};
use crate::solver::backend::{Backend, Feature, Limits, Solution, SolveError, Termination, WarmStart};
use crate::solver::intake::{admit, without_columns};
use crate::solver::scaling::Scaled;

/// Which of good_lp's solvers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inner {
    /// A simplex method in pure Rust, for small programs.
    MicroLp,
    /// HiGHS, with its own choice of method.
    #[cfg(feature = "highs")]
    Highs,
}

/// One of good_lp's solvers.
#[derive(Clone, Copy, Debug)]
pub struct GoodLp {
    inner: Inner,
}

impl GoodLp {
    /// The backend of one of good_lp's solvers.
    pub const fn new(inner: Inner) -> Self {
        Self { inner }
    }
}

impl Backend for GoodLp {
    fn name(&self) -> &'static str {
        match self.inner {
            Inner::MicroLp => "good_lp-microlp",
            #[cfg(feature = "highs")]
            Inner::Highs => "good_lp-highs",
        }
    }

    fn supports(&self, feature: Feature) -> bool {
        match feature {
            Feature::Duals => self.inner != Inner::MicroLp,
            Feature::VertexSolutions | Feature::AnyStructure => true,
            Feature::ExponentialCones
            | Feature::SecondOrderCones
            | Feature::InteriorSolutions
            | Feature::WarmStart => false,
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
        let model = Modelled::of(&scaled.program);
        let answer = match self.inner {
            Inner::MicroLp => microlp(model, limits),
            #[cfg(feature = "highs")]
            Inner::Highs => highs(model, limits, &scaled.program),
        };
        let mut answer = answer.map_err(|message| SolveError::Backend { backend: self.name(), message })?;
        if !answer.columns.is_empty() {
            answer.objective = scaled.program.objective(&answer.columns);
        }
        Ok(scaled.recover(program, answer))
    }
}

/// A program in good_lp's terms.
struct Modelled {
    variables: ProblemVariables,
    columns: Vec<Variable>,
    objective: Expression,
    sense: Sense,
    /// The row of each constraint: a range with two bounds has two.
    #[cfg_attr(not(feature = "highs"), expect(dead_code, reason = "only solvers with duals need it"))]
    origins: Vec<usize>,
    constraints: Vec<Constraint>,
}

impl Modelled {
    fn of(program: &Program) -> Self {
        let mut variables = ProblemVariables::new();
        let columns: Vec<Variable> = program
            .columns
            .iter()
            .map(|range| variables.add(variable().min(range.lower).max(range.upper)))
            .collect();
        let mut objective = Expression::with_capacity(columns.len());
        for (&cost, &column) in program.cost.iter().zip(&columns) {
            objective.add_mul(cost, column);
        }
        let (mut origins, mut constraints) = (Vec::new(), Vec::new());
        for (row, range) in program.rows.iter().enumerate() {
            let form = || {
                let mut form = Expression::with_capacity(program.row(row).len());
                for (column, value) in program.row(row).filter(|&(_, value)| value != 0.0) {
                    form.add_mul(value, columns[column]);
                }
                form
            };
            let mut push = |constraint: Constraint| {
                origins.push(row);
                constraints.push(constraint);
            };
            if range.is_point() {
                push(form().eq(range.upper));
                continue;
            }
            if range.upper < f64::INFINITY {
                push(form().leq(range.upper));
            }
            if range.lower > f64::NEG_INFINITY {
                push(form().geq(range.lower));
            }
        }
        Self { variables, columns, objective, sense: program.sense, origins, constraints }
    }

    fn unsolved(variables: ProblemVariables, sense: Sense, objective: Expression) -> UnsolvedProblem {
        match sense {
            Sense::Maximize => variables.maximise(objective),
            Sense::Minimize => variables.minimise(objective),
        }
    }
}

fn microlp(model: Modelled, limits: &Limits) -> Result<Solution, String> {
    let mut problem =
        Modelled::unsolved(model.variables, model.sense, model.objective).using(good_lp::microlp);
    for constraint in model.constraints {
        problem.add_constraint(constraint);
    }
    if let Some(time) = limits.time {
        problem = problem.with_time_limit(time.as_secs_f64());
    }
    match problem.solve() {
        Ok(found) => Ok(Solution {
            columns: model.columns.iter().map(|&column| found.value(column)).collect(),
            ..without_columns(termination_of(found.status()))
        }),
        Err(error) => refusal(error),
    }
}

#[cfg(feature = "highs")]
fn highs(model: Modelled, limits: &Limits, program: &Program) -> Result<Solution, String> {
    let tolerance = limits.tolerance.clamp(1e-10, 1e-2);
    let mut problem = Modelled::unsolved(model.variables, model.sense, model.objective)
        .using(good_lp::highs)
        .set_threads(limits.threads.max(1))
        .set_parallel(good_lp::solvers::highs::HighsParallelType::Off)
        .set_option("primal_feasibility_tolerance", tolerance)
        .set_option("dual_feasibility_tolerance", tolerance)
        .set_option("small_matrix_value", 1e-12);
    for constraint in model.constraints {
        problem.add_constraint(constraint);
    }
    if let Some(time) = limits.time {
        problem = problem.with_time_limit(time.as_secs_f64());
    }
    if let Some(iterations) = limits.iterations {
        problem =
            problem.set_option("simplex_iteration_limit", i32::try_from(iterations).unwrap_or(i32::MAX));
    }
    match problem.solve() {
        Ok(found) => {
            let mut answer = without_columns(termination_of(found.status()));
            let found = found.into_inner();
            answer.columns = found.columns().to_vec();
            answer.row_duals = vec![0.0; program.n_rows()];
            for (&row, &dual) in model.origins.iter().zip(found.dual_rows()) {
                answer.row_duals[row] += dual;
            }
            Ok(answer)
        }
        // it says so, too, of programs that are unbounded or infeasible
        Err(ResolutionError::Infeasible) => Ok(without_columns(Termination::InfeasibleOrUnbounded)),
        Err(error) => refusal(error),
    }
}

fn termination_of(status: SolutionStatus) -> Termination {
    match status {
        SolutionStatus::Optimal => Termination::Optimal,
        // good_lp has one status for every limit; only a time limit is ever set for microlp
        SolutionStatus::TimeLimit => Termination::TimeLimit,
        // a gap of an integer program; ours have none
        SolutionStatus::GapLimit => Termination::Failed,
    }
}

fn refusal(error: ResolutionError) -> Result<Solution, String> {
    match error {
        ResolutionError::Infeasible => Ok(without_columns(Termination::Infeasible)),
        ResolutionError::Unbounded => Ok(without_columns(Termination::Unbounded)),
        ResolutionError::Other(message) if message.starts_with("Time limit") => {
            Ok(without_columns(Termination::TimeLimit))
        }
        ResolutionError::Other(message) => Err(message.to_owned()),
        ResolutionError::Str(message) => Err(message),
    }
}
