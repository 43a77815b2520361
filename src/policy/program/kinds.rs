//! The strategy `kinds`: levels and linear objectives over pairs of jobs, by a program over kinds of jobs.
//!
//! A *member* is a class of identical jobs, a *kind* the members with the same throughputs, alone and beside any other
//! (see [`pairs`](super::pairs)). Kinds are few; what a job requires may differ from member to member. A program over
//! members has a column for every two of them. The *kind program* has one for every two kinds: it decides
//! how much time the members of a kind have together. Cuts, added as they are violated, say when that time can be
//! divided among the members ([`feasibility`] derives them, [`divide`] divides). They do not say that a job cannot run
//! beside itself; where a division fails for that reason, a linear program over the members of the kind yields the
//! missing cut (Benders, *Partitioning procedures for solving mixed-variables programming problems*, 1962). The answer
//! is an optimum over all pairs of members, which a bound from their own numbers proves ([`bound`]).

mod bound;
mod class_time;
mod deadlines;
mod divide;
mod feasibility;
mod linear;
mod program;

use self::divide::MemberTime;
pub(super) use self::linear::LinearKinds;
use self::program::{FeasibilityCut, KindColumn};
use crate::policy::program::optimum::MemberPrices;
use crate::policy::program::pairs::Pairing;
use crate::policy::program::program_columns::ProgramColumns;
use crate::policy::program::solver_context::SolverContext;
use crate::policy::program::strategy::{GaveUp, Unfit, may_replace_program, too_many_kinds};
use crate::program::expression::Vocabulary;
use crate::program::{
    Binding, BoundObjective, Demand, Formulation, Instance, Objective, ObjectiveText, Sense,
};
use crate::solver::Basis;

/// The gap between an optimum and its bound, relative to it, up to which it counts as proven.
const GAP_MAX: f64 = 1e-8;
/// A solved kind program, and the time of each kind divided among its members.
#[derive(Clone, Debug)]
struct KindSolution {
    formulation: Formulation,
    /// The cuts in the order of their rows, which are the last ones until the refinement of a sum adds the row that
    /// holds the sum.
    cuts: Vec<FeasibilityCut>,
    /// Dual values of the rows.
    duals: Vec<f64>,
    /// Class time of the columns.
    time: Vec<f64>,
    level: f64,
    /// The time of each kind's members: [kinds].
    divided: Vec<Vec<MemberTime>>,
    /// The least fraction of its required throughput that the division of any kind gives its members.
    fraction: f64,
}

/// The largest level of some demands, and the bound and prices that prove it.
#[derive(Clone, Debug)]
pub(super) struct ProvenLevel {
    /// The level that all members have.
    pub(super) level: f64,
    /// An upper bound on the level of every allocation.
    pub(super) bound: f64,
    /// The value of all time and workers at the prices that prove the bound, in levels: what gaps are relative to.
    size: f64,
    /// The prices that prove the bound, per unit of the level.
    pub(super) prices: MemberPrices,
}

/// The use of the prices of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BoundUse {
    /// To bound the level, and to tell which members are saturated. Where some member has all of its time at its
    /// fastest, that alone bounds the level.
    Level,
    /// To bound more than this level: the demands of other levels in a parametric search, or a linear objective. There
    /// the inequality in the prices of all members is stronger than one member's fastest time, which is not used.
    Inequality,
}

/// The kind program of a decision, with the members of each kind. For a linear objective the members of a kind are
/// also alike in what their throughput is worth.
#[derive(Debug)]
pub(super) struct KindProgram {
    /// Members of each kind, in descending order of their demands when these were last set: [kinds].
    members: Vec<Vec<u32>>,
    /// The largest minimum of throughputs, of which level programs over kinds are made.
    objective: Objective,
    /// The kinds as members of an instance, with their pairs.
    instance: Instance,
    binding: Binding,
    /// Columns of each kind, the fastest first: [kinds].
    kind_columns: Vec<Vec<KindColumn>>,
    /// The demands of members: [members].
    demands: Vec<Demand>,
    solved: Option<KindSolution>,
    /// The basis at which the last program ended.
    basis: Option<Basis>,
    bound_use: BoundUse,
}

impl KindProgram {
    /// The kind program of a decision whose objective is a level of throughputs.
    pub(super) fn of(
        columns: &ProgramColumns<'_>,
        solver: &SolverContext,
        bound_use: BoundUse,
    ) -> Result<Self, Unfit> {
        let kinds = &columns.pairing().ok_or(Unfit::NoPairs)?.kinds;
        if !columns.bound().is_of_throughputs() {
            return Err(Unfit::Objective);
        }
        let members = (0..kinds.len()).map(|kind| kinds.members(kind).to_vec()).collect();
        Self::of_members(columns, solver, members, bound_use)
    }

    /// The kind program where kinds are divided further, into these groups of members.
    fn of_members(
        columns: &ProgramColumns<'_>,
        solver: &SolverContext,
        members: Vec<Vec<u32>>,
        bound_use: BoundUse,
    ) -> Result<Self, Unfit> {
        let pairing = columns.pairing().ok_or(Unfit::NoPairs)?;
        let of_members = &columns.reduced().instance;
        may_replace_program(solver)?;
        if too_many_kinds(members.len(), of_members.n_members(), solver) {
            return Err(Unfit::UnlikeJobs);
        }
        let text = ObjectiveText::new(Sense::Maximize, "min_over_jobs(throughput)");
        let objective = Objective::check(&text, Vocabulary::default()).map_err(|_| Unfit::Objective)?;
        let instance = over_kinds(&members, of_members, pairing);
        let binding = objective.bind(&instance).map_err(|_| Unfit::Objective)?.binding().clone();
        let kind_columns = columns_of_kinds(&instance, &binding);
        let (demands, solved, basis) = (Vec::new(), None, None);
        Ok(Self { members, objective, instance, binding, kind_columns, demands, solved, basis, bound_use })
    }

    /// Maximizes the level of demands, [members].
    pub(super) fn raise(
        &mut self,
        solver: &mut SolverContext,
        columns: &ProgramColumns<'_>,
        demands: &[Demand],
    ) -> Result<ProvenLevel, GaveUp> {
        let finite = |demand: &Demand| demand.slope.is_finite() && demand.base.is_finite();
        if !demands.iter().all(finite) || demands.iter().all(|demand| demand.slope <= 0.0) {
            return Err(GaveUp::Unproven);
        }
        demands.clone_into(&mut self.demands);
        let solved = self.solve_level(solver, columns, f64::INFINITY)?;
        let raised = self.proven(columns, &solved)?;
        self.solved = Some(solved);
        let proven = raised.bound - raised.level <= GAP_MAX * raised.size;
        if proven { Ok(raised) } else { Err(GaveUp::Unproven) }
    }

    /// Chooses, among the allocations that reach a level that was raised, the one with the largest Σ throughput ÷ equal
    /// share.
    pub(super) fn refine(
        &mut self,
        solver: &mut SolverContext,
        columns: &ProgramColumns<'_>,
        level: f64,
    ) -> Result<(), GaveUp> {
        let solved = self.solved.take().ok_or(GaveUp::Unrefined)?;
        let first = self.members.iter().map(|members| members[0] as usize);
        let equal_share: Vec<f64> = first.map(|member| columns.reduced().equal_share[member]).collect();
        let held = solved.formulation.program_objective(level.min(solved.level));
        let formulation = self.bound().refine_utilization(solved.formulation, held, &equal_share);
        let solved = self.add_cuts(solver, columns, KindSolution { formulation, ..solved });
        self.solved = Some(solved.map_err(|_| GaveUp::Unrefined)?);
        Ok(())
    }

    /// Refined class times, [columns]: every member has its demand's slope as throughput, or the largest common part of
    /// it that all can have.
    pub(super) fn class_time_at(
        &mut self,
        solver: &mut SolverContext,
        columns: &mut ProgramColumns<'_>,
        demands: &[Demand],
    ) -> Result<Vec<f64>, GaveUp> {
        let raised = self.raise(solver, columns, demands).map_err(|_| GaveUp::Unrefined)?;
        self.refine(solver, columns, raised.level.min(1.0))?;
        self.class_time(columns)
    }

    /// The objective bound to the kinds.
    fn bound(&self) -> BoundObjective<'_> {
        let bound = self.objective.bind_again(&self.instance, &self.binding);
        bound.unwrap_or_else(|error| unreachable!("bound before: {error}"))
    }
}

/// The instance that has the kinds for members.
fn over_kinds(members: &[Vec<u32>], of_members: &Instance, pairing: &Pairing) -> Instance {
    let n_jobs = |members: &Vec<u32>| members.iter().map(|m| of_members.multiplicity[*m as usize]).sum();
    let multiplicity: Vec<f64> = members.iter().map(n_jobs).collect();
    let firsts: Vec<usize> = members.iter().map(|members| members[0] as usize).collect();
    let kind = |part: usize| (part, pairing.kinds.class_of(firsts[part]));
    let all = (0..members.len()).flat_map(|a| (a..members.len()).map(move |b| (a, b)));
    let pairs = all.filter(|(a, b)| a != b || multiplicity[*a] > 1.0);
    let pairs = pairs.filter_map(|(a, b)| pairing.pair_of(kind(a), kind(b))).collect();
    Instance {
        capacity: of_members.capacity.clone(),
        worker_types: of_members.worker_types.clone(),
        scale_factor: firsts.iter().map(|member| of_members.scale_factor[*member]).collect(),
        throughput: firsts.iter().flat_map(|member| of_members.alone(*member)).copied().collect(),
        pairs,
        oversized: of_members.oversized,
        multiplicity,
        ..Instance::default()
    }
}

/// The columns of each kind, the fastest first.
fn columns_of_kinds(instance: &Instance, binding: &Binding) -> Vec<Vec<KindColumn>> {
    let mut of_kinds = vec![Vec::new(); instance.n_members()];
    for (column, of) in (0_u32..).zip(binding.columns.iter()) {
        for (kind, uses, speeds) in instance.parts(of.combination) {
            of_kinds[kind].push(KindColumn { speed: speeds[of.worker_type], column, uses });
        }
    }
    for columns in &mut of_kinds {
        columns.sort_by(|a: &KindColumn, b| b.speed.total_cmp(&a.speed).then(a.column.cmp(&b.column)));
    }
    of_kinds
}

#[cfg(test)]
mod tests;
