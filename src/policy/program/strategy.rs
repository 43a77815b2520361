//! The strategy of a decision: which of four methods finds its optimum, and why.
//!
//! | strategy | method | when |
//! |---|---|---|
//! | `singles` | prices of worker types ([`decomposition`](crate::decomposition)); no program over all jobs is written | jobs alone: a level, a linear sum of 2,000 columns or more (`COLUMNS_LARGE`), a sum of logarithms |
//! | `kinds` | a program over the kinds of jobs, with cuts, its time divided among the jobs of each kind | more than 1,000 pairs of members (`PricingLimits`), two members a kind or more on average (`MEMBERS_PER_KIND`): a level or a linear sum |
//! | `pairs` | column generation | as many pairs, where `kinds` does not fit |
//! | `written` | the whole program, solved by a chain of backends | everything else |
//!
//! The backends of `written` are libraries and our own: `separable` leads the chain of sums of logarithms, and the
//! weighted analytic centre ([`centre`](crate::solver::centre)) the chain of an interior optimum. The report names the one
//! that solved the program.
//!
//! A member is a class of identical jobs. [`strategy`] chooses from the objective's form, the refinement and what was
//! asked for. Where a strategy finds on the way that it cannot go on, the next one takes over, and the report says why.
//!
//! Parts of a decision other than its optimum are chosen here as well: which pairs are columns from the start
//! ([`pricing_limits`]), how the droppable constraints to drop are found ([`droppable_strategy`]), and whether prices
//! raise a level that is tried ([`prices_suffice`]) or a program refines it ([`refines_by_program`]). What the objective
//! asks for is no choice of strategy: its kind of optimum and its refinement follow from the options alone (`OptimumKind`,
//! `Refinement`). Nor is the fallback of an infeasible or unrefined program, which is the same program with eased constraints.

use std::fmt;

use crate::decomposition::Unsolved;
use crate::policy::program::kinds::LinearKinds;
use crate::policy::program::optimum::{OptimumKind, Refinement};
use crate::policy::program::program_columns::{PricingLimits, ProgramColumns};
use crate::policy::program::solve::Task;
use crate::policy::program::solver_context::{COLUMNS_LARGE, SolverContext, SolvingError};
use crate::program::{BoundObjective, LevelCoefficients, LevelForm, Levels, Objective, Route, Sense};

/// The number of members that a kind must have, on average, for the kind program to be enough smaller than one over members.
const MEMBERS_PER_KIND: usize = 2;

/// The most worker types for which a program refines an optimum that a search for prices does not refine: with more
/// it takes a hundred times as long as all else.
const TYPES_WRITTEN: usize = 16;

/// The method by which the optimum of a decision is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// Prices of worker types, for jobs alone; a program is written over the few jobs at most that prices leave tied.
    Singles,
    /// A program over kinds of jobs that share workers.
    Kinds,
    /// Column generation over pairs of jobs that share workers.
    Pairs,
    /// The whole program, solved by a chain of backends.
    #[default]
    Written,
}

impl Strategy {
    /// All strategies.
    pub const ALL: [Self; 4] = [Self::Singles, Self::Kinds, Self::Pairs, Self::Written];

    /// The name of the strategy, as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Singles => "singles",
            Self::Kinds => "kinds",
            Self::Pairs => "pairs",
            Self::Written => "written",
        }
    }

    /// The strategy of this name.
    ///
    /// ```
    /// use apportion::policy::Strategy;
    ///
    /// assert_eq!(Strategy::named("kinds"), Some(Strategy::Kinds));
    /// assert_eq!(Strategy::named("kind"), None);
    /// ```
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|strategy| strategy.name() == name)
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Reason why a strategy does not fit a problem, or is not the best one for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unfit {
    /// A backend was named, or is the caller's own.
    Backend,
    /// An interior optimum is asked for.
    Interior,
    /// Programs are recorded.
    Recorded,
    /// The prices of a program are asked for.
    Explained,
    /// Another strategy was asked for.
    NotAsked,
    /// Programs of few columns are quicker.
    FewColumns,
    /// There are pairs of jobs.
    Paired,
    /// There are no pairs of jobs.
    NoPairs,
    /// Every pair is a column of the whole program.
    FewPairs,
    /// Kinds have fewer than two members (classes of identical jobs) on average.
    UnlikeJobs,
    /// The policy has constraints of its own.
    Constraints,
    /// The objective is of another form.
    Objective,
    /// The refinement needs a program.
    Refinement,
}

impl Unfit {
    /// Why a linear objective is no sum of throughputs times coefficients: its constraints, or its form.
    pub(super) fn without_linear_objective(bound: &BoundObjective<'_>) -> Self {
        if bound.asks_for_throughputs_only() { Self::Objective } else { Self::Constraints }
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Backend => "a backend was named, and solves written programs",
            Self::Interior => "an interior optimum is asked for",
            Self::Recorded => "programs are recorded",
            Self::Explained => "the prices of a program are asked for",
            Self::NotAsked => "another strategy was asked for",
            Self::FewColumns => "few columns are decided on sooner by a program",
            Self::Paired => "there are pairs of jobs",
            Self::NoPairs => "there are no pairs of jobs",
            Self::FewPairs => "every pair is a column of the whole program",
            Self::UnlikeJobs => "on average fewer than two classes of jobs have the same throughputs",
            Self::Constraints => "the policy has constraints of its own",
            Self::Objective => "the objective is of another form",
            Self::Refinement => "the refinement needs a program",
        })
    }
}

/// Reason for which a strategy was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The user asked for the strategy.
    Asked,
    /// No two jobs share workers.
    JobsAlone,
    /// Kinds have two members (classes of identical jobs) or more on average.
    SeveralOfAKind,
    /// The strategies before it do not fit the problem.
    Unfit(Unfit),
    /// The strategy before it gave up.
    GaveUp,
}

impl Default for Reason {
    fn default() -> Self {
        Self::Unfit(Unfit::Objective)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked => f.write_str("it was asked for"),
            Self::JobsAlone => f.write_str("no two jobs share workers"),
            Self::SeveralOfAKind => {
                f.write_str("on average two or more classes of jobs have the same throughputs")
            }
            Self::Unfit(unfit) => unfit.fmt(f),
            Self::GaveUp => f.write_str("the strategy before it gave up"),
        }
    }
}

/// Reason for which a strategy gave up on a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GaveUp {
    /// The problem turned out not to fit.
    Unfit(Unfit),
    /// Its search by prices has no optimum.
    Prices(Unsolved),
    /// No optimum was found that its certificate proves.
    Unproven,
    /// Its prices leave too many jobs undecided for a small program over them.
    TooManyTied,
    /// The time of kinds could not be divided among their jobs.
    Undivided,
    /// An optimum was found, but not the one among optima that the refinement asks for.
    Unrefined,
}

impl From<Unfit> for GaveUp {
    fn from(unfit: Unfit) -> Self {
        Self::Unfit(unfit)
    }
}

impl From<Unsolved> for GaveUp {
    fn from(unsolved: Unsolved) -> Self {
        Self::Prices(unsolved)
    }
}

impl fmt::Display for GaveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfit(unfit) => unfit.fmt(f),
            Self::Prices(unsolved) => unsolved.fmt(f),
            Self::TooManyTied => f.write_str("its prices left too many jobs undecided"),
            Self::Unproven => f.write_str("it found no optimum that its certificate proves"),
            Self::Undivided => f.write_str("the time of kinds could not be divided among their jobs"),
            Self::Unrefined => f.write_str("the optimum that it found could not be refined"),
        }
    }
}

/// The strategy for a decision's optimum, and why; an error if the one that was asked for does not fit the problem.
pub(super) fn strategy(
    task: &Task<'_, '_>,
    solver: &SolverContext,
) -> Result<(Strategy, Reason), SolvingError> {
    if let Some(asked) = solver.asked() {
        let fits = match asked {
            Strategy::Singles => singles(task, solver),
            Strategy::Kinds => kinds(task, solver),
            Strategy::Pairs => pairs(task),
            Strategy::Written => Ok(()),
        };
        let why = |unfit| SolvingError::Strategy { strategy: asked, why: GaveUp::Unfit(unfit) };
        return fits.map(|()| (asked, Reason::Asked)).map_err(why);
    }
    if !is_paired(task) {
        return Ok(match singles(task, solver) {
            Ok(()) => (Strategy::Singles, Reason::JobsAlone),
            Err(unfit) => (Strategy::Written, Reason::Unfit(unfit)),
        });
    }
    Ok(match (pairs(task), kinds(task, solver)) {
        (Ok(()), Ok(())) => (Strategy::Kinds, Reason::SeveralOfAKind),
        (Ok(()), Err(unfit)) => (Strategy::Pairs, Reason::Unfit(unfit)),
        (Err(unfit), _) => (Strategy::Written, Reason::Unfit(unfit)),
    })
}

/// Whether there are pairs, as columns or to become some.
fn is_paired(task: &Task<'_, '_>) -> bool {
    task.columns.is_priced() || !task.columns.reduced().instance.pairs.is_empty()
}

/// The strategy that takes over where `singles` or `kinds` gives up.
pub(super) fn after_giving_up(columns: &ProgramColumns<'_>) -> Strategy {
    if columns.is_priced() { Strategy::Pairs } else { Strategy::Written }
}

/// The limits of pair pricing for programs of an objective. `usual`: the policy's limits. Where `kinds` or `pairs` is
/// asked for, pairs are priced, however few they are.
///
/// Pairs are not priced where an answer has time for every column (interior), where there is no basis to go on from
/// (cones), and where a column is worth more than its throughput (`time_on`).
pub(super) fn pricing_limits(
    usual: PricingLimits,
    objective: &Objective,
    refinement: Refinement,
    asked: Option<Strategy>,
) -> PricingLimits {
    let is_conic = objective.route() == Route::Conic;
    if refinement == Refinement::NearCentre || is_conic || objective.reads_time() {
        return PricingLimits::UNPRICED;
    }
    match asked {
        Some(Strategy::Written) => PricingLimits::UNPRICED,
        Some(Strategy::Kinds | Strategy::Pairs) => PricingLimits { unpriced_max: 0, ..usual },
        Some(Strategy::Singles) | None => usual,
    }
}

/// Whether an optimum may be found without writing a program over jobs, if the objective allows it; the error says why not:
/// a backend was named, the programs themselves are asked for, or another strategy is.
pub(super) fn may_replace_program(solver: &SolverContext) -> Result<(), Unfit> {
    match solver.asked() {
        _ if solver.has_named_backend() => Err(Unfit::Backend),
        _ if solver.is_recording() => Err(Unfit::Recorded),
        _ if solver.is_explaining() => Err(Unfit::Explained),
        Some(Strategy::Written | Strategy::Pairs) => Err(Unfit::NotAsked),
        _ => Ok(()),
    }
}

/// Whether a search for prices may take the place of a program: all jobs run alone, and no program is asked for. The
/// levels of a parametric search are raised by prices then, also where a program finds the centre at the best level.
pub(super) fn prices_suffice(columns: &ProgramColumns<'_>, solver: &SolverContext) -> Result<(), Unfit> {
    if columns.is_priced() || !columns.reduced().instance.pairs.is_empty() {
        return Err(Unfit::Paired);
    }
    may_replace_program(solver)
}

/// Whether there are too many kinds for a program over them to be enough smaller than one over members.
pub(super) fn too_many_kinds(n_kinds: usize, n_members: usize, solver: &SolverContext) -> bool {
    n_kinds * MEMBERS_PER_KIND > n_members && solver.asked() != Some(Strategy::Kinds)
}

/// Whether a program refines an optimum that a search for prices does not refine. It finds the optimum that the search
/// looked for, so the decision is by the same strategy, and its report counts the program.
pub(super) fn refines_by_program(n_types: usize) -> bool {
    n_types <= TYPES_WRITTEN
}

/// The method by which the droppable constraints to drop are found.
pub(super) struct DroppableMethod {
    pub(super) strategy: Strategy,
    pub(super) reason: Reason,
    /// The program over kinds, for `kinds`.
    pub(super) kinds: Option<LinearKinds>,
}

/// The method by which the droppable constraints to drop are found: a program over kinds for pairs of several jobs a
/// kind, prices for many jobs alone, else written programs.
pub(super) fn droppable_strategy(columns: &ProgramColumns<'_>, solver: &SolverContext) -> DroppableMethod {
    let (strategy, reason, kinds) = if columns.is_priced() {
        match LinearKinds::of(columns, solver) {
            Ok(kinds) => (Strategy::Kinds, Reason::SeveralOfAKind, Some(kinds)),
            Err(unfit) => (Strategy::Pairs, Reason::Unfit(unfit), None),
        }
    } else {
        let few = columns.bound().columns().len() < COLUMNS_LARGE;
        match prices_suffice(columns, solver) {
            Ok(()) if few => (Strategy::Written, Reason::Unfit(Unfit::FewColumns), None),
            Ok(()) => (Strategy::Singles, Reason::JobsAlone, None),
            Err(Unfit::Paired) => (Strategy::Written, Reason::Unfit(Unfit::FewPairs), None),
            Err(unfit) => (Strategy::Written, Reason::Unfit(unfit), None),
        }
    };
    DroppableMethod { strategy, reason, kinds }
}

/// Whether `singles` fits; the error says why not.
fn singles(task: &Task<'_, '_>, solver: &SolverContext) -> Result<(), Unfit> {
    if is_paired(task) {
        return Err(Unfit::Paired);
    }
    let n_columns = task.columns.bound().columns().len();
    form(task, solver)?;
    let summed = task.kind == OptimumKind::Linear;
    let few = n_columns < COLUMNS_LARGE && solver.asked().is_none() && !solver.starts_warm();
    if summed && few { Err(Unfit::FewColumns) } else { Ok(()) }
}

/// Whether `kinds` fits; the error says why not.
fn kinds(task: &Task<'_, '_>, solver: &SolverContext) -> Result<(), Unfit> {
    pairs(task)?;
    form(task, solver)?;
    let instance = &task.columns.reduced().instance;
    let n_kinds = task.columns.pairing().map_or(0, |pairing| pairing.kinds.len());
    let unlike = too_many_kinds(n_kinds, instance.n_members(), solver);
    match task.kind {
        OptimumKind::Conic => Err(Unfit::Objective),
        OptimumKind::Parametric if task.refinement != Refinement::Utilization => Err(Unfit::Refinement),
        _ if unlike => Err(Unfit::UnlikeJobs),
        _ => Ok(()),
    }
}

/// Whether `pairs` fits; the error says why not.
fn pairs(task: &Task<'_, '_>) -> Result<(), Unfit> {
    match () {
        () if task.columns.is_priced() => Ok(()),
        () if is_paired(task) => Err(Unfit::FewPairs),
        () => Err(Unfit::NoPairs),
    }
}

/// Whether no level asks for throughput at a level of 0.
fn levels_begin_at_zero(bound: &BoundObjective<'_>) -> bool {
    let n = bound.instance().n_members();
    let base = |levels: &Levels, member| levels.coefficients(member).map_or(0.0, |of| of.base);
    bound.levels().is_some_and(|levels| (0..n).all(|member| base(levels, member) <= 0.0))
}

/// Whether the throughput that a level asks of a member is in proportion to the level, for every member.
fn levels_are_proportional(bound: &BoundObjective<'_>) -> bool {
    let n = bound.instance().n_members();
    let is_proportional = |of: LevelCoefficients| matches!(of, LevelCoefficients { base: 0.0, .. });
    let of_member = |levels: &Levels, member: usize| levels.coefficients(member).is_some_and(is_proportional);
    bound.levels().is_some_and(|levels| (0..n).all(|member| of_member(levels, member)))
}

/// Whether the objective's form and the refinement allow an optimum without a program over jobs; the error says why not.
fn form(task: &Task<'_, '_>, solver: &SolverContext) -> Result<(), Unfit> {
    let bound = task.columns.bound();
    let objective = task.columns.objective();
    if task.refinement.is_central() {
        return Err(Unfit::Interior);
    }
    may_replace_program(solver)?;
    let of_throughputs = || match () {
        () if bound.is_of_throughputs() => Ok(()),
        () if objective.constraints().is_empty() => Err(Unfit::Objective),
        () => Err(Unfit::Constraints),
    };
    match task.kind {
        OptimumKind::Lexicographic => {
            of_throughputs()?;
            if levels_begin_at_zero(&bound) { Ok(()) } else { Err(Unfit::Objective) }
        }
        OptimumKind::Parametric => of_throughputs(),
        OptimumKind::Conic if bound.adds_logarithms() => Ok(()),
        OptimumKind::Conic => Err(Unfit::Objective),
        OptimumKind::Linear => Ok(()),
        OptimumKind::Level if task.refinement != Refinement::Utilization => Err(Unfit::Refinement),
        OptimumKind::Level => {
            let is_affine =
                objective.inversion().is_some_and(|inversion| inversion.form() == LevelForm::Affine);
            let is_raised = is_affine && objective.sense() == Sense::Maximize;
            if !is_raised && !objective.is_by_inverse() {
                return Err(Unfit::Objective);
            }
            of_throughputs()?;
            if levels_are_proportional(&bound) { Ok(()) } else { Err(Unfit::Objective) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_strategy_has_a_name_of_its_own() {
        for strategy in Strategy::ALL {
            assert_eq!(Strategy::named(strategy.name()), Some(strategy));
        }
        assert_eq!(Strategy::named("structured"), None);
    }
}
