//! Level programs: the highest level at which each job has what the level asks of it.
//!
//! A level program (see [`demand`](crate::program::demand)) has a demand row for every member. If its dual is positive, no
//! allocation raises the member without lowering another one of the same level.

use crate::policy::program::program_columns::{ProgramColumns, SolvedFormulation};
use crate::policy::program::solver_context::{SolverContext, SolvingError};
use crate::program::{BoundObjective, Demand, Formulation};

/// The optimum of a level program.
#[derive(Clone, Debug)]
pub(super) struct LevelOptimum {
    /// Class time of the columns, [columns]; empty if a program over kinds raised the level: its time is not divided.
    pub(super) class_time: Vec<f64>,
    /// The throughput of each member at the optimum: [members].
    pub(super) throughputs: Vec<f64>,
    /// The level reached.
    pub(super) level: f64,
    /// An upper bound on the level that no allocation can exceed.
    pub(super) bound: f64,
    /// Fall of the level per unit of throughput asked for: ≥ 0, [members].
    pub(super) demand_price: Vec<f64>,
}

impl LevelOptimum {
    /// The level that the answer to a level program reaches.
    pub(super) fn of(columns: &ProgramColumns<'_>, solved: &SolvedFormulation) -> Self {
        let SolvedFormulation { formulation, answer } = solved;
        let class_time = formulation.class_time(&answer.solution.columns).to_vec();
        let objective = formulation.program.objective(&answer.solution.columns);
        let price = |row: usize| {
            let dual = answer.solution.row_duals.get(row).copied().unwrap_or(0.0);
            -formulation.shadow_price(row, dual, objective)
        };
        Self {
            throughputs: throughputs(&columns.bound(), &class_time),
            class_time,
            level: formulation.value(objective),
            bound: formulation.value(answer.bound),
            demand_price: formulation.level_rows().map(|row| price(row).max(0.0)).collect(),
        }
    }
}

/// The optimum of a level program, and the program with its answer.
#[derive(Clone, Debug)]
pub(super) struct SolvedLevel {
    pub(super) raised: LevelOptimum,
    pub(super) solved: SolvedFormulation,
}

/// The highest common level of `demands`, by a program. The memory of an `old` formulation over the same columns is used
/// again.
pub(super) fn raise_by_program(
    solver: &mut SolverContext,
    columns: &mut ProgramColumns<'_>,
    demands: &[Demand],
    mut old: Option<Formulation>,
) -> Result<SolvedLevel, SolvingError> {
    let solved = columns.solve(solver, |bound| bound.with_demands_again(demands, old.take()))?;
    Ok(SolvedLevel { raised: LevelOptimum::of(columns, &solved), solved })
}

/// The throughputs of all members at class times, or the other quantities that the objective's levels ask for: [members].
pub(super) fn throughputs(bound: &BoundObjective<'_>, class_time: &[f64]) -> Vec<f64> {
    bound.throughputs(&bound.point(class_time)).unwrap_or_default()
}
