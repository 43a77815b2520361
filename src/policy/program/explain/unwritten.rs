//! Answers to programs over members that were not solved: a decision's class times, with dual values of the rows from the
//! prices of members that proved its optimum.
//!
//! A search for prices, and a program over kinds, prove their optimum by prices λ_m of the throughput that is required of
//! member m, τ_m of its class time, and μ_j of a worker of type j, at which no column of any member or pair has a positive
//! reduced cost (weak duality). These are dual values of the program over members: of its time rows τ, of its capacity
//! rows μ. The level row of a member has a coefficient a·v in a column in which its jobs have throughput v,
//! so that a unit of its side is 1/a of throughput, and its dual value is −λ_m/a. The answer is judged as one of a solver
//! is: by the certificate of the program itself, and by complementary slackness with the decision.

use crate::policy::decision::ObjectiveReport;
use crate::policy::program::explain::prices::{DecisionUse, RowPrices};
use crate::policy::program::optimum::{MemberPrices, Optimum};
use crate::policy::program::solver_context::Answer;
use crate::program::{AuxiliaryRole, BoundObjective, Formulation, RowRole, Sense, ValueMap};
use crate::solver::{Solution, Termination};

/// The answer to the program that explains an optimum, from the prices of members that proved it; an error if none did,
/// if a row has no dual value by them, or if these do not prove the decision.
pub(in crate::policy::program) fn answer_by_prices(
    bound: &BoundObjective<'_>,
    solved: &Optimum,
    in_use: &DecisionUse,
    objective: Option<&ObjectiveReport>,
) -> Result<Answer, &'static str> {
    let prices = solved.prices.as_ref().ok_or("the optimum was not proven by prices of members")?;
    if solved.saturation_duals.is_some() || solved.reached.is_some() {
        return Err("each level of water filling has prices of its own");
    }
    let formulation = solved.explaining.clone().formulation(bound);
    if formulation.program.sense == Sense::Minimize || !formulation.program.is_linear() {
        return Err("prices of members are those of a linear program that is maximized");
    }
    let columns = columns(&formulation, &solved.class_time)?;
    let row_duals = row_duals(bound, &formulation, prices)?;
    let objective_value = formulation.program.objective(&columns);
    let solution = Solution {
        termination: Termination::Optimal,
        columns,
        row_duals,
        cone_duals: Vec::new(),
        objective: objective_value,
        iterations: 0,
        basis: None,
    };
    let answer = Answer { solution, bound: formulation.program_objective(solved.bound) };
    let answered = Optimum { answer: Some(answer.clone()), ..solved.clone() };
    RowPrices::of(bound, &answered, &formulation, in_use, objective)?;
    Ok(answer)
}

/// The program's columns at these class times: of a level, the highest one that all members reach.
fn columns(formulation: &Formulation, class_time: &[f64]) -> Result<Vec<f64>, &'static str> {
    let mut columns = class_time.to_vec();
    let level = columns.len();
    match &formulation.auxiliaries[..] {
        [] => return Ok(columns),
        [of] if matches!(of.role, AuxiliaryRole::Level | AuxiliaryRole::InverseLevel) => columns.push(0.0),
        _ => return Err("the program has other columns than class times and a level"),
    }
    let mut reached = f64::INFINITY;
    for row in formulation.level_rows() {
        let (mut coefficient, mut left) = (0.0, -formulation.program.rows[row].lower);
        for (column, value) in formulation.program.row(row) {
            if column == level {
                coefficient = value;
            } else {
                left += value * columns[column];
            }
        }
        if coefficient < 0.0 && left.is_finite() {
            reached = reached.min(-left / coefficient);
        }
    }
    columns[level] = if reached.is_finite() { reached } else { 0.0 };
    Ok(columns)
}

/// The dual values of the program's rows by prices of members; an error if it has other rows than those of time, capacity and
/// a level, as of the policy's own constraints.
fn row_duals(
    bound: &BoundObjective<'_>,
    formulation: &Formulation,
    prices: &MemberPrices,
) -> Result<Vec<f64>, &'static str> {
    let unit = match formulation.value_map {
        ValueMap::Scaled(scale) | ValueMap::Inverse(scale) => scale,
        ValueMap::Level(_) => 1.0,
    };
    let dual = |(row, role): (usize, &RowRole)| match *role {
        RowRole::Time { member } => Ok(prices.time[member] * formulation.row_scales[row] / unit),
        RowRole::Capacity { worker_type } => {
            Ok(prices.workers[worker_type] * formulation.row_scales[row] / unit)
        }
        RowRole::Level { member } => {
            let by_throughput = by_throughput(bound, formulation, row, member);
            Ok(by_throughput.map_or(0.0, |coefficient| -prices.throughput[member] / (coefficient * unit)))
        }
        RowRole::Constraint { .. } | RowRole::Part { .. } | RowRole::Hold => {
            Err("a row of the program is neither of time, of capacity nor of a level")
        }
    };
    formulation.rows.iter().enumerate().map(dual).collect()
}

/// A level row's coefficient of a column, per unit of the throughput that a job of the member has there; `None` if the row
/// asks for no throughput.
fn by_throughput(
    bound: &BoundObjective<'_>,
    formulation: &Formulation,
    row: usize,
    member: usize,
) -> Option<f64> {
    let term = bound.terms(member).iter().find(|term| term.throughput > 0.0)?;
    let (_, value) = formulation.program.row(row).find(|(column, _)| *column == term.column)?;
    formulation.program.rows[row].lower.is_finite().then_some(value / term.throughput)
}

#[cfg(test)]
mod tests;
