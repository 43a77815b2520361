//! The jobs whose droppable constraints are dropped when not all can be met: as few as possible, by branch and bound.
//!
//! Droppable constraints that could not be met with the whole cluster are dropped first. For the others the linear
//! relaxation is tight (see [`program::droppable`](crate::program::droppable)): at its vertices few constraints are
//! met in part, and dropping these nearly always drops as few as the rounded bound allows, which ends the search.
//! Without space sharing, relaxations need no program ([`singles::relaxation`]); with several jobs a kind, one
//! program over kinds mostly decides ([`LinearKinds::drop_fewest`](super::kinds::LinearKinds::drop_fewest)).

use crate::policy::program::program_columns::{ProgramColumns, SolvedFormulation};
use crate::policy::program::singles;
use crate::policy::program::solver_context::{SolverContext, SolvingError};
use crate::policy::program::strategy::{
    DroppableMethod, Reason, Strategy, after_giving_up, droppable_strategy,
};
use crate::policy::program::tolerances::COUNT_ROUNDING;
use crate::program::{DROPPABLE_SLACK, Range};

/// The most relaxations that are solved; then the best answer found, if there is one, ends the search.
const NODES_MAX: u32 = 4_000;

/// Drops members so that the droppable constraints of all others can be met; the pairs that this takes are columns
/// afterwards. False if members stand for several jobs and not all constraints can be met: each job must be a member of
/// its own first.
pub(super) fn drop_fewest(
    solver: &mut SolverContext,
    columns: &mut ProgramColumns<'_>,
) -> Result<bool, SolvingError> {
    let mut dropped = columns.bound().beyond_reach(DROPPABLE_SLACK);
    for (dropped, before) in dropped.iter_mut().zip(&columns.reduced().instance.dropped) {
        *dropped |= before;
    }
    let decided: Vec<Option<bool>> = dropped.iter().map(|dropped| dropped.then_some(false)).collect();
    if dropped.contains(&true) {
        columns.drop_constraints(dropped.clone());
    }
    let single = columns.reduced().instance.multiplicity.iter().all(|n| *n <= 1.0);
    let DroppableMethod { strategy, reason, kinds } = droppable_strategy(columns, solver);
    solver.report().droppable = Some((strategy, reason));
    if let Some(mut kinds) = kinds {
        if kinds.all_deadlines_met(solver, columns) {
            return Ok(true);
        }
        if !single {
            return Ok(false);
        }
        if let Ok(dropped) = kinds.drop_fewest(solver, columns, &dropped) {
            columns.drop_constraints(dropped);
            return Ok(true);
        }
        solver.report().droppable = Some((after_giving_up(columns), Reason::GaveUp));
    } else if strategy == Strategy::Singles && singles::all_droppable_met(solver, columns) {
        return Ok(true);
    }
    let by_prices = strategy == Strategy::Singles;
    let Some(Relaxation { met, .. }) = relaxation(solver, columns, &decided, by_prices)? else {
        return Ok(false);
    };
    if decided.iter().zip(met).all(|(decided, met)| decided.is_some() || met >= 1.0 - DROPPABLE_SLACK) {
        return Ok(true);
    }
    if single {
        let dropped = branch_and_bound(solver, columns, decided, by_prices)?;
        columns.drop_constraints(dropped);
    }
    Ok(single)
}

/// The range of the part of a droppable constraint that is met: up to all of it, or nothing.
fn up_to(all: bool) -> Range {
    Range { lower: 0.0, upper: if all { 1.0 } else { 0.0 } }
}

/// An optimum of the relaxation after some choices.
pub(super) struct Relaxation {
    /// An upper bound on the number of jobs with their droppable constraints met.
    pub(super) most: f64,
    /// The part of each member's droppable constraint that is met: [members].
    pub(super) met: Vec<f64>,
    /// The undecided members with a droppable constraint, the one with the highest cost first; empty if costs are not known.
    pub(super) costliest: Vec<usize>,
}

/// The relaxation that meets the droppable constraints of the most jobs after some choices; `None` if the choices
/// contradict one another.
///
/// A constraint that is decided to be met has a large weight, not a bound: so the program is feasible over any pairs,
/// and prices show which pairs are missing. If some such constraint is not met all the same, a second program counts
/// only these, to see if all can be met, and brings in the pairs that this takes; a third one then bounds them.
fn relaxation(
    solver: &mut SolverContext,
    columns: &mut ProgramColumns<'_>,
    decided: &[Option<bool>],
    by_prices: bool,
) -> Result<Option<Relaxation>, SolvingError> {
    if by_prices {
        if let Ok(relaxed) = singles::relaxation(solver, columns, decided) {
            return Ok(Some(relaxed));
        }
        solver.report().droppable = Some((Strategy::Written, Reason::GaveUp));
    }
    let relaxed = |(most, met)| Relaxation { most, met, costliest: Vec::new() };
    let n = decided.len() as f64;
    let due = decided.iter().filter(|decided| **decided == Some(true)).count() as f64;
    let all_due = |met: &[f64]| {
        decided.iter().zip(met).all(|(decided, met)| *decided != Some(true) || *met >= 1.0 - DROPPABLE_SLACK)
    };
    let asked = |of: fn(Option<bool>, f64) -> (Range, f64)| -> Vec<(Range, f64)> {
        decided.iter().map(|decided| of(*decided, n)).collect()
    };
    let mut solve = |asked: Vec<(Range, f64)>| {
        let SolvedFormulation { formulation, answer } =
            columns.solve(solver, |bound| bound.droppable(&asked))?;
        let met = answer.solution.columns[formulation.columns.len()..].to_vec();
        Ok::<_, SolvingError>((formulation.value(answer.bound), met))
    };
    let weighed = asked(|decided, n| match decided {
        Some(met) => (up_to(met), n),
        None => (up_to(true), 1.0),
    });
    let (most, met) = solve(weighed)?;
    if all_due(&met) {
        return Ok(Some(relaxed((most - (n - 1.0) * due, met))));
    }
    let (most, _) = solve(asked(|decided, _| (up_to(decided == Some(true)), 1.0)))?;
    if most < due - COUNT_ROUNDING {
        return Ok(None);
    }
    let bounded = asked(|decided, _| match decided {
        Some(met) => (Range::exactly(f64::from(u8::from(met))), 1.0),
        None => (up_to(true), 1.0),
    });
    match solve(bounded) {
        Ok(solved) => Ok(Some(relaxed(solved))),
        Err(error) if error.is_infeasible() => Ok(None),
        Err(error) => Err(error),
    }
}

/// A node of the search: choices made so far, and a bound on the number of jobs that they leave met.
struct Node {
    decided: Vec<Option<bool>>,
    most: f64,
}

/// The members that are dropped, all of them single jobs: [members].
fn branch_and_bound(
    solver: &mut SolverContext,
    columns: &mut ProgramColumns<'_>,
    decided: Vec<Option<bool>>,
    by_prices: bool,
) -> Result<Vec<bool>, SolvingError> {
    let n = decided.len();
    let mut best: Option<(f64, Vec<bool>)> = None;
    let mut open = vec![Node { decided, most: n as f64 }];
    let mut nodes = 0;
    while let Some(node) = open.pop() {
        let beaten = |most: f64, best: &Option<(f64, Vec<bool>)>| {
            best.as_ref().is_some_and(|(met, _)| (most + COUNT_ROUNDING).floor() <= *met)
        };
        if beaten(node.most, &best) {
            continue;
        }
        nodes += 1;
        if nodes > NODES_MAX
            && let Some((met, _)) = &best
        {
            let most = open.iter().map(|node| node.most).fold(node.most, f64::max);
            solver.report().fallbacks.push(cut_short(n, *met, most));
            break;
        }
        let Some(Relaxation { most, met, costliest }) =
            relaxation(solver, columns, &node.decided, by_prices)?
        else {
            continue;
        };
        // Requiring less of a job keeps an allocation feasible: constraints met in part may be dropped altogether.
        let rounded: Vec<bool> = met.iter().map(|met| *met < 1.0 - DROPPABLE_SLACK).collect();
        let count = rounded.iter().filter(|dropped| !**dropped).count() as f64;
        if best.as_ref().is_none_or(|(met, _)| count > *met) {
            best = Some((count, rounded));
        }
        if by_prices && !beaten(most, &best) {
            let count = (most + COUNT_ROUNDING).floor();
            let dropped = singles::drop_costliest(solver, columns, &node.decided, count, &costliest);
            best = dropped.ok().map(|dropped| (count, dropped)).or(best);
        }
        let fractional = (0..n)
            .filter(|member| (COUNT_ROUNDING..1.0 - DROPPABLE_SLACK).contains(&met[*member]))
            .max_by(|a, b| met[*a].total_cmp(&met[*b]).then(b.cmp(a)));
        let Some(member) = fractional.filter(|_| !beaten(most, &best)) else { continue };
        // The larger the part that is met, the likelier the whole can be: that branch is taken first.
        for choice in [false, true] {
            let mut decided = node.decided.clone();
            decided[member] = Some(choice);
            open.push(Node { decided, most });
        }
    }
    best.map(|(_, dropped)| dropped).ok_or(SolvingError::NoChoice)
}

/// The statement in the report on a search that was not finished.
fn cut_short(n: usize, met: f64, most: f64) -> String {
    let n = n as f64;
    let least = n - (most + COUNT_ROUNDING).floor();
    format!(
        "droppable constraints: {} of {n} dropped after {NODES_MAX} programs, at least {least} must be",
        n - met
    )
}
