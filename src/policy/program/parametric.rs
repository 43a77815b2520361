//! Parametric search: the best worst level, where levels ask for throughputs that are not affine in them.
//!
//! At a level ρ better than the optimum ρ*, a level program maximizes the part τ of the required throughputs that all
//! jobs can have: throughput(m) ≥ τ·required(m, ρ). Its duals y give an inequality for every allocation,
//! Σ y·throughput ≤ B, so that Σ y·required(m, ρ*) ≤ B. The level at which both sides are equal is the next ρ, still no
//! worse than the optimum. The worst level of the allocation found bounds the optimum from the other side, and the two
//! meet in a handful of steps.
//!
//! An exception is a job that is nearly done and long overdue: the throughput that it needs depends on the last
//! digits of ρ. All jobs then get the part τ of what they need, which costs the others a part of their level, however
//! close ρ is. So where Newton's method stalls, levels a little worse than ρ are tried, further off each time, until
//! one is feasible.

use crate::decomposition::PrimalDual;
use crate::policy::program::kinds::KindProgram;
use crate::policy::program::levels::{self, LevelOptimum, SolvedLevel};
use crate::policy::program::optimum::{ExplainingProgram, MemberPrices, Optimum};
use crate::policy::program::program_columns::ProgramColumns;
use crate::policy::program::recorded::Purpose;
use crate::policy::program::singles::{self, PricedLevel};
use crate::policy::program::solver_context::{Answer, SolverContext, SolvingError};
use crate::policy::program::strategy::Strategy;
use crate::program::{Demand, Formulation, Levels, Sense};

/// The relative gap at which the search stops.
const GAP_MAX: f64 = 1e-9;
/// The relative width to which a cut's level is bisected: what a job needs may hang on the last digits of the level.
const CUT_WIDTH: f64 = 4.0 * f64::EPSILON;
/// The part of the gap that a step of Newton's method must close.
const PROGRESS_MIN: f64 = 0.01;
/// The most levels that are tried; Newton's method takes a handful.
const STEPS_MAX: u32 = 60;

/// The best worst level, from both sides.
#[derive(Clone, Debug)]
pub(super) struct Parametric {
    /// The allocation with the best worst level, an optimum of the demands at a level that was tried.
    pub(super) raised: LevelOptimum,
    /// The level that was tried.
    pub(super) tried: f64,
    /// The demands at that level.
    pub(super) demands: Vec<Demand>,
    /// The worst level of the allocation.
    pub(super) value: f64,
    /// A bound on the objective's optimum that no allocation can better.
    pub(super) bound: f64,
    pub(super) proof: Proof,
    /// The last program solved, from which further ones are made without allocating anew.
    pub(super) formulation: Option<Formulation>,
}

impl Parametric {
    /// Solves the program at the level found, in the place of the one tried last: its prices explain the optimum.
    pub(super) fn price_at_optimum(
        &mut self,
        solver: &mut SolverContext,
        columns: &mut ProgramColumns<'_>,
        levels: &Levels,
    ) -> Result<(), SolvingError> {
        let n = columns.reduced().instance.n_members();
        let required = (0..n).map(|member| levels.required(member, self.value).value);
        let demands: Vec<Demand> = required.map(|slope| Demand { slope, base: 0.0 }).collect();
        solver.set_purpose(Purpose::Tried { level: self.value });
        let SolvedLevel { raised, solved } =
            levels::raise_by_program(solver, columns, &demands, self.formulation.take())?;
        self.raised.demand_price = raised.demand_price;
        self.formulation = Some(solved.formulation);
        (self.tried, self.demands) = (self.value, demands);
        self.proof = Proof { answer: Some(solved.answer), ..Proof::default() };
        Ok(())
    }

    /// The optimum with these class times: [columns].
    pub(super) fn into_optimum(self, levels: &Levels, class_time: Vec<f64>) -> Optimum {
        let priced = self.raised.demand_price.iter().enumerate();
        let steepness: f64 =
            priced.map(|(member, price)| price * levels.required(member, self.value).slope).sum();
        let price_factor = if steepness == 0.0 { 0.0 } else { steepness.recip() };
        Optimum {
            explaining: ExplainingProgram::Tried { level: self.tried, demands: self.demands },
            prices: self.proof.member_prices(),
            answer: self.proof.answer,
            price_factor,
            ..Optimum::without_program(class_time, self.bound)
        }
    }
}

/// The proof of a level that was raised.
#[derive(Clone, Debug, Default)]
pub(super) struct Proof {
    /// The answer to its program, if one over members was written.
    pub(super) answer: Option<Answer>,
    /// The prices of a search, without times, if a search for prices raised the level.
    pub(super) search: Option<PrimalDual>,
    /// The prices of members by a program over kinds, if that raised the level.
    pub(super) kinds: Option<MemberPrices>,
}

impl Proof {
    /// The prices of members, if no program over them was written.
    pub(super) fn member_prices(&self) -> Option<MemberPrices> {
        self.kinds.clone().or_else(|| self.search.as_ref().map(MemberPrices::of))
    }
}

/// The largest part of some demands that all members can have, with its proof.
struct ProvenPart {
    raised: LevelOptimum,
    proof: Proof,
}

/// Finds the best worst level by Newton's method on duals. With `kinds`, levels are raised by the program over kinds
/// alone, and the search fails where that fails.
pub(super) fn best_worst(
    solver: &mut SolverContext,
    columns: &mut ProgramColumns<'_>,
    mut kinds: Option<&mut KindProgram>,
) -> Result<Parametric, SolvingError> {
    let (levels, mut ideal) = {
        let bound = columns.bound();
        (bound.levels_kept().ok_or(SolvingError::NoLevels)?, bound.ideal())
    };
    let sense = columns.objective().sense();
    let members = 0..columns.reduced().instance.n_members();
    let better = |a: f64, b: f64| if sense == Sense::Minimize { a < b } else { a > b };
    let worst = |a: f64, b: f64| if sense == Sense::Minimize { a.max(b) } else { a.min(b) };
    let (mut tried, mut off) = (ideal, GAP_MAX / 16.0);
    let mut best: Option<Parametric> = None;
    let mut last_formulation = None;
    for _ in 0..STEPS_MAX {
        let required = members.clone().map(|member| levels.required(member, tried).value);
        let demands: Vec<Demand> = required.map(|slope| Demand { slope, base: 0.0 }).collect();
        solver.set_purpose(Purpose::Tried { level: tried });
        let ProvenPart { raised, proof } =
            largest_common_part(solver, columns, kinds.as_deref_mut(), &demands, &mut last_formulation)?;
        let value = members
            .clone()
            .map(|member| levels.level(member, raised.throughputs[member]))
            .fold(if sense == Sense::Minimize { f64::NEG_INFINITY } else { f64::INFINITY }, worst);
        let attained =
            best.as_ref().map_or(value, |best| if better(value, best.value) { value } else { best.value });
        let next = newton_level(&levels, &raised, tried, attained).map_or(ideal, |next| worst(ideal, next));
        let found = Parametric { raised, tried, demands, value, bound: ideal, proof, formulation: None };
        let best = match &mut best {
            Some(best) if !better(value, best.value) => best,
            best => best.insert(found),
        };
        let stuck = (next - ideal).abs() <= PROGRESS_MIN * (best.value - ideal).abs();
        ideal = next;
        solver.found_so_far.keep_bound(ideal, sense);
        best.bound = if better(ideal, best.value) { ideal } else { best.value };
        if (best.value - ideal).abs() <= GAP_MAX * best.value.abs().max(f64::MIN_POSITIVE) {
            break;
        }
        tried = ideal;
        if stuck {
            off *= 8.0;
            let away = off * ideal.abs();
            let away = if sense == Sense::Minimize { away } else { -away };
            let middle = ideal + (best.value - ideal) / 2.0;
            tried = if better(middle, ideal + away) { middle } else { ideal + away };
        }
    }
    let found = best.ok_or(SolvingError::NoLevelTried)?;
    Ok(Parametric { formulation: last_formulation, ..found })
}

/// The largest part of `demands` that all members can have, by a program only where one must be written; the memory
/// of `last_formulation`, the last program, is used again.
fn largest_common_part(
    solver: &mut SolverContext,
    columns: &mut ProgramColumns<'_>,
    kinds: Option<&mut KindProgram>,
    demands: &[Demand],
    last_formulation: &mut Option<Formulation>,
) -> Result<ProvenPart, SolvingError> {
    if let Some(kinds) = kinds {
        let why = |why| SolvingError::Strategy { strategy: Strategy::Kinds, why };
        let raised = kinds.raise(solver, columns, demands).map_err(why)?;
        let (level, bound, prices) = (raised.level, raised.bound, raised.prices);
        let demand_price = prices.throughput.clone();
        let throughputs = demands.iter().map(|demand| demand.slope * level).collect();
        let raised = LevelOptimum { class_time: Vec::new(), throughputs, level, bound, demand_price };
        return Ok(ProvenPart { raised, proof: Proof { kinds: Some(prices), ..Proof::default() } });
    }
    // If prices do not converge at this level, they may at the next.
    match singles::raise_by_prices(solver, columns, demands) {
        Ok(PricedLevel { level, prices }) => {
            return Ok(ProvenPart {
                raised: level,
                proof: Proof { search: Some(prices), ..Proof::default() },
            });
        }
        Err(why) if solver.strategy() == Strategy::Singles => solver.give_up(why, Strategy::Written)?,
        Err(_) => {}
    }
    let SolvedLevel { raised, solved } =
        levels::raise_by_program(solver, columns, demands, last_formulation.take())?;
    *last_formulation = Some(solved.formulation);
    Ok(ProvenPart { raised, proof: Proof { answer: Some(solved.answer), ..Proof::default() } })
}

/// The level of which the required throughputs, at the prices of the duals, are worth exactly the bound of the duals:
/// by bisection between the level tried and an attained one. No allocation is better than it. `None` if the duals do
/// not exclude the level tried.
fn newton_level(levels: &Levels, raised: &LevelOptimum, tried: f64, attained: f64) -> Option<f64> {
    let asks_too_much = |level: f64| {
        let priced = raised.demand_price.iter().enumerate().filter(|(_, price)| **price > 0.0);
        priced.map(|(member, price)| price * levels.required(member, level).value).sum::<f64>() > raised.bound
    };
    if !asks_too_much(tried) {
        return None;
    }
    if !attained.is_finite() {
        return Some(tried);
    }
    let (mut outside, mut inside) = (tried, attained);
    while (inside - outside).abs() > CUT_WIDTH * inside.abs() {
        let middle = outside + (inside - outside) / 2.0;
        if !(middle - outside).is_normal() || !(inside - middle).is_normal() {
            break;
        }
        if asks_too_much(middle) { outside = middle } else { inside = middle }
    }
    Some(outside)
}
