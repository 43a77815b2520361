//! Linear objectives over pairs: the largest weighted sum of throughputs, with the required throughput of each member as a
//! lower bound.
//!
//! Kinds are divided until throughput has the same coefficient for all members of each: then the sum depends on the total
//! throughput of each kind alone. Required throughputs are demands whose level is first raised to 1, at most, and then held there while the
//! sum is maximized; both programs get the same cuts.

use std::collections::BTreeMap;

use super::bound::ProvenSum;
use super::program::level_unit;
use super::{BoundUse, GAP_MAX, KindProgram, KindSolution};
use crate::policy::program::optimum::Optimum;
use crate::policy::program::program_columns::ProgramColumns;
use crate::policy::program::solver_context::SolverContext;
use crate::policy::program::strategy::{GaveUp, Unfit};
use crate::program::{Demand, HOLD_SLACK, LinearSumOfJobs, Range};

/// A level below 1 by this fraction is 1 up to rounding.
const LEVEL_WIDTH: f64 = 1e-10;

/// A linear objective over kinds, in each of which a unit of throughput is worth the same to every member.
#[derive(Debug)]
pub(in crate::policy::program) struct LinearKinds {
    /// The kind program; its demands are the required throughputs.
    pub(super) program: KindProgram,
    /// The worth of a unit of throughput in the objective: [kinds].
    worth: Vec<f64>,
    /// The factor of that worth on each worker type: `[K]`.
    by_type: Vec<f64>,
}

/// The costs of columns, scaled.
struct Costs {
    /// The cost of each column over `scale`: [columns, the level behind them].
    columns: Vec<f64>,
    /// The largest cost, or 1 if there is none.
    scale: f64,
}

impl LinearKinds {
    /// The linear objective of a decision; an error if the objective is not linear, or if few members share a kind
    /// and a worth.
    pub(in crate::policy::program) fn of(
        columns: &ProgramColumns<'_>,
        solver: &SolverContext,
    ) -> Result<Self, Unfit> {
        let kinds = &columns.pairing().ok_or(Unfit::NoPairs)?.kinds;
        let LinearSumOfJobs { required, linear } = columns
            .bound()
            .linear_objective_of_jobs()
            .ok_or_else(|| Unfit::without_linear_objective(&columns.bound()))?;
        let mut members: BTreeMap<(usize, u64), Vec<u32>> = BTreeMap::new();
        for (member, worth) in (0_u32..).zip(&linear.coefficient) {
            members.entry((kinds.class_of(member as usize), worth.to_bits())).or_default().push(member);
        }
        let worth = members.keys().map(|(_, worth)| f64::from_bits(*worth)).collect();
        let members = members.into_values().collect();
        let mut program = KindProgram::of_members(columns, solver, members, BoundUse::Inequality)?;
        program.demands = required.into_iter().map(|slope| Demand { slope, base: 0.0 }).collect();
        Ok(Self { program, worth, by_type: linear.by_type })
    }

    /// An allocation that gives all members their required throughputs; an error if there is none, or none was found.
    pub(super) fn feasible(
        &mut self,
        solver: &mut SolverContext,
        columns: &ProgramColumns<'_>,
    ) -> Result<KindSolution, GaveUp> {
        let solved = self.program.solve_level(solver, columns, 1.0)?;
        let required = self.program.demands.iter().any(|demand| demand.slope > 0.0);
        if !required || solved.level >= 1.0 - LEVEL_WIDTH { Ok(solved) } else { Err(GaveUp::Unproven) }
    }

    /// Whether it is known that all members can have their required throughputs.
    pub(in crate::policy::program) fn all_deadlines_met(
        &mut self,
        solver: &mut SolverContext,
        columns: &ProgramColumns<'_>,
    ) -> bool {
        self.feasible(solver, columns).is_ok()
    }

    /// The optimum of the objective. With `refined`, it is the one that uses the workers best among the optima.
    pub(in crate::policy::program) fn maximize(
        mut self,
        solver: &mut SolverContext,
        columns: &mut ProgramColumns<'_>,
        refined: bool,
    ) -> Result<Optimum, GaveUp> {
        let mut solved = self.feasible(solver, columns)?;
        let level = solved.formulation.columns.len();
        let held = Range::exactly(solved.level.min(1.0) / level_unit(&solved.formulation));
        let program = &mut solved.formulation.program;
        (program.columns[level], program.implied[level]) = (held, held);
        let Costs { columns: cost, scale } = self.costs(|kind, j| self.worth[kind] * self.by_type[j]);
        program.cost = cost;
        let mut solved = self.program.add_cuts(solver, columns, solved)?;
        let cost = &solved.formulation.program.cost;
        let value: f64 = cost.iter().zip(&solved.time).map(|(cost, time)| cost * time).sum();
        let worth = |kind: usize, j: usize| self.worth[kind] * self.by_type[j] / scale;
        let ProvenSum { bound, prices } = self.program.linear_bound(columns, &solved, worth)?;
        if bound - value > GAP_MAX * value {
            return Err(GaveUp::Unproven);
        }
        if refined {
            let refine = |solver: &mut SolverContext| self.refine(solver, columns, solved, value);
            solved = solver.among_optima(refine).map_err(|_| GaveUp::Unrefined)?;
        }
        self.program.solved = Some(solved);
        let optimum = Optimum::without_program(self.program.class_time(columns)?, bound * scale);
        Ok(Optimum { prices: Some(prices.over(scale.recip())), ..optimum })
    }

    /// The allocation with the largest Σ throughput ÷ equal share among the optima.
    fn refine(
        &mut self,
        solver: &mut SolverContext,
        columns: &ProgramColumns<'_>,
        mut solved: KindSolution,
        value: f64,
    ) -> Result<KindSolution, GaveUp> {
        let first = |kind: usize| self.program.members[kind][0] as usize;
        let Costs { columns: cost, .. } =
            self.costs(|kind, _| columns.reduced().equal_share[first(kind)].recip());
        let program = &mut solved.formulation.program;
        let value_of = std::mem::replace(&mut program.cost, cost);
        let terms = value_of.into_iter().enumerate().filter(|(_, cost)| *cost != 0.0);
        program.push_row(Range::at_least(value - HOLD_SLACK * value), terms);
        self.program.add_cuts(solver, columns, solved)
    }

    /// The costs of all columns of the kind program where a unit of throughput is worth `worth` `(kind, worker type)`,
    /// divided by the largest cost.
    fn costs(&self, worth: impl Fn(usize, usize) -> f64) -> Costs {
        let columns = &self.program.binding.columns;
        // The level is the last column.
        let mut cost = vec![0.0; columns.len() + 1];
        for (kind, of_kind) in self.program.kind_columns.iter().enumerate() {
            for of in of_kind {
                let column = of.column as usize;
                cost[column] += worth(kind, columns[column].worker_type) * of.speed * of.uses;
            }
        }
        let most = cost.iter().copied().fold(0.0, f64::max);
        let scale = if most > 0.0 { most } else { 1.0 };
        Costs { columns: cost.into_iter().map(|cost| cost / scale).collect(), scale }
    }
}
