//! The droppable constraints to drop, over pairs, where not all can be met: by a program over kinds.
//!
//! With z_i, the fraction to which the droppable constraint of member i, a required throughput d_i, is kept, the time of a kind can
//! be divided only if for every speed θ
//!
//!   Σ_c (v_c − θ)⁺·y_c  ≥  Σ_i n_i·(d_i − θ)⁺·z_i
//!
//! (see [`feasibility`](super::feasibility): a constraint kept in part counts as fewer jobs). The largest Σ_i n_i·z_i
//! under these cuts bounds how many jobs' constraints any allocation keeps. As many constraints as the bound excludes
//! are dropped, in either of two orders: the smallest z_i first and, among equals, the highest price first; or by price
//! alone. If that makes the others feasible, no allocation drops fewer.

use super::LinearKinds;
use super::program::{push_scaled, with_rows};
use crate::policy::program::program_columns::ProgramColumns;
use crate::policy::program::solver_context::SolverContext;
use crate::policy::program::strategy::{GaveUp, Unfit};
use crate::policy::program::tolerances::COUNT_ROUNDING;
use crate::program::{DROPPABLE_SLACK, Demand, Program, Range};

/// A cut violated by no more than this fraction of what it requires counts as satisfied.
const LACK_MAX: f64 = 1e-9;
/// The most programs that are solved.
const ROUNDS_MAX: u32 = 100;

/// The cut for a kind at a speed.
#[derive(Clone, Copy, Debug, PartialEq)]
struct SpeedCut {
    kind: usize,
    speed: f64,
}

/// An optimum of the program.
struct KindRelaxation {
    /// An upper bound on the number of jobs with constraints that are kept.
    most: f64,
    /// The fraction of each member's constraint that is kept: [members].
    kept: Vec<f64>,
    /// The cost of keeping each member's constraint, by the prices of the cuts: [members].
    cost: Vec<f64>,
}

impl LinearKinds {
    /// The members with droppable constraints to drop so that those of all others can be met, provably as few as
    /// possible: [members]. Every member must be a single job. `dropped` has the members with constraints that are
    /// dropped already.
    pub(in crate::policy::program) fn drop_fewest(
        &mut self,
        solver: &mut SolverContext,
        columns: &ProgramColumns<'_>,
        dropped: &[bool],
    ) -> Result<Vec<bool>, GaveUp> {
        // With constraints that cannot be dropped, a dropped member would still require something.
        columns.bound().droppable_throughputs().ok_or(GaveUp::Unfit(Unfit::Constraints))?;
        let KindRelaxation { most, kept, cost } = self.relaxed(solver, columns, dropped)?;
        let most = (most + COUNT_ROUNDING).floor();
        let n_kept = dropped.iter().filter(|dropped| !**dropped).count() as f64;
        let requires = |member: &usize| !dropped[*member] && self.program.demands[*member].slope > 0.0;
        let mut costliest: Vec<usize> = (0..dropped.len()).filter(requires).collect();
        for by_fraction in [true, false] {
            let fraction =
                |member: usize| if by_fraction { (kept[member] / COUNT_ROUNDING).round() } else { 0.0 };
            costliest
                .sort_by(|a, b| fraction(*a).total_cmp(&fraction(*b)).then(cost[*b].total_cmp(&cost[*a])));
            let mut tried = dropped.to_vec();
            let (mut n_kept, mut first) = (n_kept, costliest.iter());
            while n_kept > most {
                tried[*first.next().ok_or(GaveUp::Unproven)?] = true;
                n_kept -= 1.0;
            }
            if self.all_others_met(solver, columns, &tried) {
                return Ok(tried);
            }
        }
        Err(GaveUp::Unproven)
    }

    /// Whether it is known that all members but the dropped ones can have their required throughputs.
    fn all_others_met(
        &mut self,
        solver: &mut SolverContext,
        columns: &ProgramColumns<'_>,
        dropped: &[bool],
    ) -> bool {
        let program = &mut self.program;
        let all = program.demands.clone();
        for (demand, dropped) in program.demands.iter_mut().zip(dropped) {
            demand.slope = if *dropped { 0.0 } else { demand.slope };
        }
        (program.solved, program.basis) = (None, None);
        let met = self.all_deadlines_met(solver, columns);
        self.program.demands = all;
        met
    }

    /// The linear relaxation: the largest number of jobs with constraints that are kept, in part or whole.
    fn relaxed(
        &self,
        solver: &mut SolverContext,
        columns: &ProgramColumns<'_>,
        dropped: &[bool],
    ) -> Result<KindRelaxation, GaveUp> {
        let n_kinds = self.program.members.len();
        let mut program = self.program.bound().with_demands(&vec![Demand::floor(0.0); n_kinds]).program;
        program.forget_names();
        program.cost.fill(0.0);
        // Columns from `parts` on are z_i.
        let parts = program.n_columns();
        for (dropped, jobs) in dropped.iter().zip(&columns.reduced().instance.multiplicity) {
            let range = Range { lower: 0.0, upper: if *dropped { 0.0 } else { 1.0 } };
            program.push_column(range, range, *jobs);
        }
        let first_row = program.n_rows();
        let mut cuts: Vec<SpeedCut> = Vec::new();
        let mut violated: Vec<SpeedCut> = (0..n_kinds).map(|kind| SpeedCut { kind, speed: 0.0 }).collect();
        let mut basis = None;
        for _ in 0..ROUNDS_MAX {
            for cut in violated {
                self.push(&mut program, columns, cut, parts);
                cuts.push(cut);
            }
            let from = basis.and_then(|basis| with_rows(basis, program.n_columns(), program.n_rows()));
            let answer = solver.solve_from_basis(&program, from)?;
            let x = &answer.solution.columns;
            violated = self.violated(columns, x, parts);
            violated.retain(|cut| !cuts.contains(cut));
            if violated.is_empty() {
                let mut cost = vec![0.0; dropped.len()];
                for (row, dual) in answer.solution.row_duals.iter().enumerate().skip(first_row) {
                    for (column, value) in program.row(row).filter(|(column, _)| *column >= parts) {
                        // Both are at most 0: the dual of an at-least row, and the coefficient of a requirement in
                        // it.
                        cost[column - parts] += dual * value;
                    }
                }
                return Ok(KindRelaxation { most: answer.bound, kept: x[parts..].to_vec(), cost });
            }
            basis = answer.solution.basis;
        }
        Err(GaveUp::Unproven)
    }

    /// The sum over a member's jobs of what they require above a speed.
    fn required_above(&self, columns: &ProgramColumns<'_>, member: usize, speed: f64) -> f64 {
        let jobs = columns.reduced().instance.multiplicity[member];
        // Less by a slack, so that rounding does not count a constraint that takes all of a job's time as lost.
        jobs * (self.program.demands[member].slope * (1.0 - DROPPABLE_SLACK) - speed).max(0.0)
    }

    fn push(&self, program: &mut Program, columns: &ProgramColumns<'_>, cut: SpeedCut, parts: usize) {
        let above = self.program.kind_columns[cut.kind].iter().filter(|column| column.speed > cut.speed);
        let mut terms: Vec<(usize, f64)> =
            above.map(|of| (of.column as usize, of.uses * (of.speed - cut.speed))).collect();
        let members = self.program.members[cut.kind].iter().map(|member| *member as usize);
        let required =
            members.map(|member| (parts + member, -self.required_above(columns, member, cut.speed)));
        terms.extend(required.filter(|(_, required)| *required < 0.0));
        terms.sort_unstable_by_key(|(column, _)| *column);
        push_scaled(program, 0.0, terms);
    }

    /// The cut of each kind that an answer violates most.
    fn violated(&self, columns: &ProgramColumns<'_>, x: &[f64], parts: usize) -> Vec<SpeedCut> {
        let mut violated = Vec::new();
        for (kind, members) in self.program.members.iter().enumerate() {
            let members = || members.iter().map(|member| *member as usize);
            let lack = |speed: f64| {
                let required =
                    |member: usize| self.required_above(columns, member, speed) * x[parts + member];
                let above = self.program.slots(kind, x).map(|slot| slot.time * (slot.speed - speed).max(0.0));
                members().map(required).sum::<f64>() - above.sum::<f64>()
            };
            let all: f64 = members().map(|member| self.required_above(columns, member, 0.0)).sum();
            let speeds = self.program.slots(kind, x).map(|slot| slot.speed);
            let most = speeds.map(|speed| (lack(speed), speed)).max_by(|a, b| a.0.total_cmp(&b.0));
            if let Some((_, speed)) = most.filter(|(lack, _)| *lack > LACK_MAX * all) {
                violated.push(SpeedCut { kind, speed });
            }
        }
        violated
    }
}
