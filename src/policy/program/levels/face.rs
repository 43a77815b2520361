//! Where an optimum is held: the face of the polytope that its dual values single out.
//!
//! Every optimum is 0 where a reduced cost is not, and uses up what has a price (complementary slackness). Holding what
//! members reached by that, too, and not by floors alone, keeps an easing of the floors from being spent on columns
//! that cost little: where throughputs are five decades apart, a part of 1e-9 of one job's can be a third of another's.

use super::Raised;
use crate::policy::program::master::Master;
use crate::program::{Formulation, Range, RowRole};

/// The part of the largest level there can be that a column or a row must be worth to count.
const WORTH_MIN: f64 = 1e-7;

/// What every optimum found so far has in common.
#[derive(Clone, Debug, Default)]
pub(super) struct Face {
    /// Rows of time and capacity that have no slack.
    full: Vec<RowRole>,
}

impl Face {
    /// Adds what the dual values of an optimum say; what has no time in any is left without from now on.
    pub(super) fn note(&mut self, master: &mut Master<'_>, raised: &Raised) {
        let (formulation, duals) = (&raised.formulation, &raised.answer.solution.row_duals);
        let program = &formulation.program;
        if duals.len() != program.n_rows() {
            return;
        }
        let reach = |column: usize| program.implied[column].upper;
        let largest: f64 = (0..program.n_columns()).map(|column| program.cost[column] * reach(column)).sum();
        // (where the level cannot rise, its bound may be anything about 0)
        let least = WORTH_MIN * largest.max(program.objective(&raised.answer.solution.columns).abs());
        if least.is_nan() || least <= 0.0 {
            return;
        }
        master.leave_idle(formulation, &raised.answer, least);
        for ((role, dual), range) in formulation.rows.iter().zip(duals).zip(&program.rows) {
            let shared = matches!(role, RowRole::Time { .. } | RowRole::Capacity { .. });
            if shared && dual * range.upper > least {
                self.full.push(*role);
            }
        }
    }

    /// Restricts a program over the same rows to it.
    pub(super) fn hold(&self, formulation: &mut Formulation) {
        let program = &mut formulation.program;
        for (role, range) in formulation.rows.iter().zip(&mut program.rows) {
            if self.full.contains(role) {
                *range = Range::exactly(range.upper);
            }
        }
    }
}
