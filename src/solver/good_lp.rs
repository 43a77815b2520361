//! Microlp, a simplex method in pure Rust, through the modelling layer good_lp.
//!
//! good_lp has no cones, no basis and no iteration limit; microlp gives no duals, so its answers are certified
//! only with a bound that another backend left. good_lp's Clarabel adapter calls unbounded programs optimal, and its
//! HiGHS adapter is a second way to what `highs` reaches by itself: neither is used.

use good_lp::{
    Constraint, Expression, ProblemVariables, ResolutionError, Solution as _, SolutionStatus, SolverModel,
    Variable, WithTimeLimit, variable, variable::UnsolvedProblem,
};

use crate::program::{Program, Sense};
use crate::solver::backend::{Backend, Feature, Limits, Solution, SolveError, Termination, WarmStart};
use crate::solver::intake::{admit, without_columns};
use crate::solver::scaling::Scaled;

const NAME: &str = "good_lp-microlp";

/// Microlp through good_lp, for small programs.
#[derive(Clone, Copy, Debug, Default)]
pub struct MicroLp;

impl Backend for MicroLp {
    fn name(&self) -> &'static str {
        NAME
    }

    fn supports(&self, feature: Feature) -> bool {
        match feature {
            Feature::VertexSolutions | Feature::AnyStructure => true,
            Feature::ExponentialCones
            | Feature::Duals
            | Feature::SecondOrderCones
            | Feature::CentralSolutions
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
        let mut answer =
            microlp(model, limits).map_err(|message| SolveError::Backend { backend: NAME, message })?;
        if !answer.columns.is_empty() {
            answer.objective = scaled.program.objective(&answer.columns);
        }
        Ok(scaled.recover(program, answer))
    }
}

/// A program as variables, an objective and constraints of good_lp.
struct Modelled {
    variables: ProblemVariables,
    columns: Vec<Variable>,
    objective: Expression,
    sense: Sense,
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
        let mut constraints = Vec::new();
        for (row, range) in program.rows.iter().enumerate() {
            let form = || {
                let mut form = Expression::with_capacity(program.row(row).len());
                for (column, value) in program.row(row).filter(|&(_, value)| value != 0.0) {
                    form.add_mul(value, columns[column]);
                }
                form
            };
            if range.is_point() {
                constraints.push(form().eq(range.upper));
                continue;
            }
            if range.upper < f64::INFINITY {
                constraints.push(form().leq(range.upper));
            }
            if range.lower > f64::NEG_INFINITY {
                constraints.push(form().geq(range.lower));
            }
        }
        Self { variables, columns, objective, sense: program.sense, constraints }
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

fn termination_of(status: SolutionStatus) -> Termination {
    match status {
        SolutionStatus::Optimal => Termination::Optimal,
        // good_lp has one status for every limit; only a time limit is ever set
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
