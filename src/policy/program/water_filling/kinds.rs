//! The oracle for jobs that share workers: by a program over the kinds of jobs.

use super::{FillState, LexicographicOptimum, Oracle, RaisedStep, saturated, water_fill};
use crate::policy::program::hierarchy::Rising;
use crate::policy::program::kinds::{BoundUse, KindProgram};
use crate::policy::program::program_columns::ProgramColumns;
use crate::policy::program::solver_context::SolverContext;
use crate::policy::program::strategy::GaveUp;
use crate::policy::program::tolerances::EASING;
use crate::program::Demand;

/// The smallest parts of [`EASING`], which make up for rounding; where more is needed, programs over jobs do better.
const EASING_ROUNDING: &[f64] = EASING.split_at(3).0;

struct KindsOracle<'a, 'o> {
    kinds: &'a mut KindProgram,
    columns: &'a ProgramColumns<'o>,
}

/// The lexicographic optimum, filled from throughputs of 0; fails where programs over jobs must be written.
pub(in crate::policy::program) fn fill_kinds(
    solver: &mut SolverContext,
    columns: &mut ProgramColumns<'_>,
    rates: &impl Rising,
) -> Result<LexicographicOptimum, GaveUp> {
    let mut kinds = KindProgram::of(columns, solver, BoundUse::Level).map_err(GaveUp::Unfit)?;
    let nothing = vec![0.0; columns.reduced().instance.n_members()];
    let first = water_fill(&mut KindsOracle { kinds: &mut kinds, columns }, solver, rates, &nothing)?;
    let class_time = kinds.class_time(columns)?;
    Ok(LexicographicOptimum::new(columns, class_time, first))
}

impl Oracle for KindsOracle<'_, '_> {
    type Error = GaveUp;

    fn raise(
        &mut self,
        solver: &mut SolverContext,
        state: &FillState,
        slope: &[f64],
    ) -> Result<RaisedStep, GaveUp> {
        let mut raise = |eased: f64| {
            let demand = |(slope, base): (&f64, &f64)| Demand { slope: *slope, base: base * (1.0 - eased) };
            let demands: Vec<Demand> = slope.iter().zip(&state.reached).map(demand).collect();
            self.kinds.raise(solver, self.columns, &demands)
        };
        let mut outcome = raise(0.0);
        for eased in EASING_ROUNDING {
            outcome = outcome.or_else(|_| raise(*eased));
        }
        let raised = outcome?;
        let saturated = saturated(&raised.prices.throughput, slope, |_| true);
        Ok(RaisedStep { level: raised.level, bound: raised.bound, saturated, throughputs: Vec::new() })
    }
}
