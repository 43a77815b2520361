//! The strategy `kinds`: optima for jobs that share workers, by a program over the kinds of jobs.

use crate::policy::program::kinds::{BoundUse, KindProgram, LinearKinds};
use crate::policy::program::optimum::{Optimum, OptimumKind, Refinement};
use crate::policy::program::solve::Task;
use crate::policy::program::solver_context::SolverContext;
use crate::policy::program::strategy::GaveUp;
use crate::program::Demand;

impl Task<'_, '_> {
    /// The refined optimum of a level that is in proportion to throughputs, or the inverse of which is; or of a
    /// linear sum.
    pub(super) fn solve_kinds(&mut self, solver: &mut SolverContext) -> Result<Optimum, GaveUp> {
        if self.kind == OptimumKind::Linear {
            let linear = LinearKinds::of(self.columns, solver).map_err(GaveUp::Unfit)?;
            let refined = self.refinement == Refinement::Utilization;
            return linear.maximize(solver, self.columns, refined);
        }
        let demand = self.demand_in_proportion()?;
        let mut kinds = KindProgram::of(self.columns, solver, BoundUse::Level).map_err(GaveUp::Unfit)?;
        let demands: Vec<Demand> = demand.iter().map(|slope| Demand { slope: *slope, base: 0.0 }).collect();
        let raised = kinds.raise(solver, self.columns, &demands)?;
        solver.among_optima(|solver| kinds.refine(solver, self.columns, raised.level))?;
        let class_time = kinds.class_time(self.columns)?;
        let optimum = Optimum::without_program(class_time, self.bound_of_objective(raised.bound));
        Ok(Optimum { prices: Some(raised.prices), ..optimum })
    }
}
