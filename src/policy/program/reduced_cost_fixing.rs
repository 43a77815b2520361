//! Reduced-cost fixing: what every optimum of a solved level program has in common, by complementary slackness.
//!
//! In every optimum of a maximization a column with a negative reduced cost is 0, and a row with a positive dual is
//! tight. Later levels of water filling are optima of earlier ones, so such columns stay at 0 and, where levels reached
//! are eased to solve the next one, such rows stay tight. Otherwise workers freed by easing could go to columns of small cost: with
//! throughputs five decades apart, 1e-9 of one job's throughput can be worth a third of another's.

use crate::policy::program::program_columns::ProgramColumns;
use crate::policy::program::solver_context::Answer;
use crate::program::{Formulation, Range, RowRole, Sense};

/// The part of the largest conceivable level that a column or a row must cost to count.
const WORTH_MIN: f64 = 1e-7;

/// The columns that no optimum uses: [columns of combinations]. Their reduced cost times all the time that they can have is a loss of
/// more than `least` of the objective, and they have no time in the answer: a column with time is never among them.
pub(super) fn unused_columns(formulation: &Formulation, answer: &Answer, least: f64) -> Vec<bool> {
    let (program, duals) = (&formulation.program, &answer.solution.row_duals);
    let sign = if program.sense == Sense::Maximize { 1.0 } else { -1.0 };
    let mut reduced = program.cost.clone();
    for (row, dual) in duals.iter().enumerate().filter(|(_, dual)| **dual != 0.0) {
        for (column, value) in program.row(row) {
            reduced[column] -= dual * value;
        }
    }
    let unused = |column: usize| {
        let lost = -sign * reduced[column] * program.implied[column].upper;
        lost > least && answer.solution.columns[column] == 0.0
    };
    (0..formulation.columns.len()).map(unused).collect()
}

/// The rows of time and capacity that are tight in every optimum found so far.
#[derive(Clone, Debug, Default)]
pub(super) struct TightRows {
    rows: Vec<RowRole>,
}

impl TightRows {
    /// Adds the rows that an optimum's duals prove tight, and fixes at 0 the columns that they prove unused.
    pub(super) fn record(
        &mut self,
        columns: &mut ProgramColumns<'_>,
        formulation: &Formulation,
        answer: &Answer,
    ) {
        let (program, duals) = (&formulation.program, &answer.solution.row_duals);
        if duals.len() != program.n_rows() {
            return;
        }
        let reach = |column: usize| program.implied[column].upper;
        let largest: f64 = (0..program.n_columns()).map(|column| program.cost[column] * reach(column)).sum();
        // A level that cannot rise has an implied bound that is 0 up to rounding, of either sign.
        let least = WORTH_MIN * largest.max(program.objective(&answer.solution.columns).abs());
        if least.is_nan() || least <= 0.0 {
            return;
        }
        columns.fix_unused(formulation, answer, least);
        for ((role, dual), range) in formulation.rows.iter().zip(duals).zip(&program.rows) {
            let shared = matches!(role, RowRole::Time { .. } | RowRole::Capacity { .. });
            if shared && dual * range.upper > least {
                self.rows.push(*role);
            }
        }
    }

    /// Requires a program over the same rows to keep them tight.
    pub(super) fn hold(&self, formulation: &mut Formulation) {
        for (role, range) in formulation.rows.iter().zip(&mut formulation.program.rows) {
            if self.rows.contains(role) {
                *range = Range::exactly(range.upper);
            }
        }
    }
}
