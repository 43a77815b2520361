//! Raising levels on the polytope: one level, every level in turn (water filling), or a level that enters the
//! demands nonlinearly (parametric search).
//!
//! All three solve level programs (see [`demand`](crate::program::demand)) and read their dual values: a
//! member whose demand has a positive dual cannot be raised by any allocation without lowering another of the
//! same level, so no integer program and no tolerance-based search is needed to find who is saturated. Where members are
//! alone on worker types, levels are raised one after another without a program (`shared`).

mod face;
mod leap;
mod pooled;
mod rest;
mod shared;

use std::iter::once;

use self::face::Face;
pub(super) use self::pooled::fill_pooled;
pub(super) use self::rest::Rest;
pub(super) use self::shared::{FilledShared, fill_shared};
use crate::decomposition::PrimalDual;
use crate::policy::program::master::Master;
use crate::policy::program::pools::Pools;
use crate::policy::program::recorded::Purpose;
use crate::policy::program::sharing::{self, Reached};
use crate::policy::program::solving::{Answer, Solving, SolvingError};
use crate::policy::program::strategy::{GaveUp, Strategy};
use crate::policy::program::tolerances::GIVEN_UP;
use crate::program::{BoundObjective, Demand, Formulation, Levels, RowRole, Sense};

/// Share of the level's price above which a demand counts as binding; the prices sum to 1.
const PRICE_MIN: f64 = 1e-7;
/// Largest slack, relative to the demand's scale, of a demand that counts as binding.
const SLACK_MAX: f64 = 1e-6;
/// The relative gap at which a parametric search stops.
const GAP_MAX: f64 = 1e-9;
/// The part of what a job has from which on it is told that so much was gained by giving back.
const TOLD: f64 = 1e-6;
/// The width to which a cut is found, relative to it: what a job needs may hang on the last digits.
const CUT_WIDTH: f64 = 4.0 * f64::EPSILON;
/// The part of the gap that a step of Newton's method must close.
const PROGRESS_MIN: f64 = 0.01;
/// Steps of a parametric search; Newton's method takes a handful.
const STEPS_MAX: u32 = 60;

/// An optimum of a level program.
#[derive(Clone, Debug)]
pub(super) struct Raised {
    /// Class time of the columns: [columns].
    pub(super) class_time: Vec<f64>,
    /// The throughput of each member there: [members].
    pub(super) throughputs: Vec<f64>,
    /// The level reached.
    pub(super) level: f64,
    /// What no allocation can exceed.
    pub(super) bound: f64,
    /// How much the level falls per unit of throughput asked for: ≥ 0, [members].
    pub(super) demand_price: Vec<f64>,
    /// The program.
    pub(super) formulation: Formulation,
    /// The program's answer.
    pub(super) answer: Answer,
}

/// Raises the common level of `demands` as far as the polytope allows. An `old` formulation over the same columns is
/// used again.
pub(super) fn raise(
    solving: &mut Solving,
    master: &mut Master<'_>,
    demands: &[Demand],
    mut old: Option<Formulation>,
) -> Result<Raised, SolvingError> {
    let solved = master.solve(solving, |bound| bound.with_demands_again(demands, old.take()))?;
    Ok(raised(master, solved))
}

/// The optimum of a level program.
fn raised(master: &Master<'_>, (formulation, answer): (Formulation, Answer)) -> Raised {
    let class_time = formulation.class_time(&answer.solution.columns).to_vec();
    let objective = formulation.program.objective(&answer.solution.columns);
    let price = |row: usize| {
        let dual = answer.solution.row_duals.get(row).copied().unwrap_or(0.0);
        -formulation.shadow_price(row, dual, objective)
    };
    let demand_price = formulation.level_rows().map(|row| price(row).max(0.0)).collect();
    Raised {
        throughputs: throughputs(&master.bound(), &class_time),
        class_time,
        level: formulation.value(objective),
        bound: formulation.value(answer.bound),
        demand_price,
        formulation,
        answer,
    }
}

/// The throughputs of all members at class times.
pub(super) fn throughputs(bound: &BoundObjective<'_>, class_time: &[f64]) -> Vec<f64> {
    bound.throughputs(&bound.point(class_time)).unwrap_or_default()
}

/// Who cannot be raised: members with a slope whose demand binds at a positive price. At least one.
fn saturated(raised: &Raised, demands: &[Demand]) -> Vec<usize> {
    let sloped = || (0..demands.len()).filter(|member| demands[*member].slope > 0.0);
    // Prices times slopes are shares of the level's price, which sum to 1.
    let share = |member: usize| raised.demand_price[member] * demands[member].slope;
    let rows = raised.formulation.level_rows();
    let binding = |member: &usize| {
        let asked = demands[*member].slope * raised.level + demands[*member].base;
        let slack =
            (raised.throughputs[*member] - asked) / raised.formulation.row_scales[rows.start + *member];
        share(*member) > PRICE_MIN && slack <= SLACK_MAX
    };
    let found: Vec<usize> = sloped().filter(binding).collect();
    if !found.is_empty() {
        return found;
    }
    sloped().max_by(|a, b| share(*a).total_cmp(&share(*b))).into_iter().collect()
}

/// What bound where members were fixed: dual values of that level's program, as changes of its level.
#[derive(Clone, Debug, Default)]
pub(super) struct Fixing {
    /// Of the program in which each member was fixed, the first being 0; none if it never rose: [members].
    pub(super) step: Vec<Option<usize>>,
    /// Per unit of throughput asked of the member there, ≤ 0: [members].
    pub(super) throughput_price: Vec<f64>,
    /// Per unit of time that the member had more there: [members].
    pub(super) time_price: Vec<f64>,
    /// Per worker more of each type: [steps][K].
    pub(super) one_more: Vec<Vec<f64>>,
    /// Of rows of the policy's own constraints, where it is not 0, by (constraint, member or worker type), per unit of
    /// the row: [steps].
    pub(super) own: Vec<Vec<((usize, usize), f64)>>,
}

/// The part of the first level, at most `level`, that `throughputs` keep, having been `base` below it, by what they rose per
/// unit of it: [members] each.
pub(super) fn first_level(level: f64, slope: &[f64], throughputs: &[f64], base: &[f64]) -> f64 {
    let raised = (0..base.len()).filter(|member| slope[*member] > 0.0);
    let kept = raised.map(|member| (throughputs[member] - base[member]) / slope[member]);
    kept.fold(level, f64::min)
}

impl Fixing {
    fn new(n: usize) -> Self {
        let (throughput_price, time_price) = (vec![0.0; n], vec![0.0; n]);
        Self { step: vec![None; n], throughput_price, time_price, one_more: Vec::new(), own: Vec::new() }
    }

    /// Takes down the prices of a program in which these members were fixed.
    fn note(&mut self, raised: &Raised, n_types: usize, fixed: &[usize]) {
        let step = self.one_more.len();
        for member in fixed {
            self.step[*member] = Some(step);
        }
        let (mut one_more, mut own) = (vec![0.0; n_types], Vec::new());
        let at = raised.formulation.program.objective(&raised.answer.solution.columns);
        for (row, role) in raised.formulation.rows.iter().enumerate() {
            let dual = raised.answer.solution.row_duals.get(row).copied().unwrap_or(0.0);
            let price = || raised.formulation.shadow_price(row, dual, at);
            let here = |member: &usize| self.step[*member] == Some(step);
            match role {
                RowRole::Capacity { worker_type } => one_more[*worker_type] = price(),
                RowRole::Time { member } if here(member) => self.time_price[*member] = price(),
                RowRole::Level { member } if here(member) => self.throughput_price[*member] = price(),
                RowRole::Constraint { constraint, position } if dual != 0.0 => {
                    own.push(((*constraint, *position), price()));
                }
                _ => {}
            }
        }
        self.one_more.push(one_more);
        self.own.push(own);
    }
}

/// The lexicographic optimum: throughputs of all members, and an allocation that reaches them.
#[derive(Clone, Debug)]
pub(super) struct Filled {
    /// Class time of the columns: [columns].
    pub(super) class_time: Vec<f64>,
    /// The first program solved, whose level is the max-min optimum.
    pub(super) first: Raised,
    /// What its members' throughputs rose by per unit of that level: [members].
    pub(super) first_slope: Vec<f64>,
    /// The throughput of each member in the end: [members].
    pub(super) throughputs: Vec<f64>,
    /// Who was fixed when, and by what.
    pub(super) fixing: Fixing,
}

/// Raises all members together, `slope(weights)` apiece, freezing those that saturate and asking for new weights,
/// until every member is frozen. `slopes` gets who is frozen and returns each member's throughput per unit of
/// level, 0 for members that wait; at least one unfrozen member must have a slope.
pub(super) fn fill(
    solving: &mut Solving,
    master: &mut Master<'_>,
    slopes: impl FnMut(&[bool]) -> Vec<f64>,
    base: &[f64],
) -> Result<Filled, SolvingError> {
    let filled = level_by_level(solving, master, slopes, base);
    master.leave_none();
    filled
}

fn level_by_level(
    solving: &mut Solving,
    master: &mut Master<'_>,
    mut slopes: impl FnMut(&[bool]) -> Vec<f64>,
    base: &[f64],
) -> Result<Filled, SolvingError> {
    let n = base.len();
    let mut frozen = vec![false; n];
    let mut reached = base.to_vec();
    let mut first = None;
    let n_types = master.reduced().instance.n_types();
    let mut fixing = Fixing::new(n);
    let mut face = Face::default();
    loop {
        let mut slope = slopes(&frozen);
        for (slope, frozen) in slope.iter_mut().zip(&frozen) {
            *slope = if *frozen { 0.0 } else { *slope };
        }
        if first.is_some() {
            // where the last program ended, at a level of zero above it, this one begins
            solving.hold_basis(0);
            solving.purpose(Purpose::NextLevel);
        }
        // (what the first level is judged beside is its own value)
        let had = first.as_ref().map_or(0.0, |_| least_had(&slope, &reached));
        let (raised, demands) = raise_held(solving, master, (&slope, &reached, had), &face)?;
        face.note(master, &raised);
        let rise = raised.level.max(0.0);
        let fixed = saturated(&raised, &demands);
        fixing.note(&raised, n_types, &fixed);
        for member in fixed {
            frozen[member] = true;
        }
        // What the point found really gives: the next program is feasible at it, whatever was rounded.
        for (member, reached) in reached.iter_mut().enumerate() {
            *reached = (*reached + slope[member] * rise).min(raised.throughputs[member].max(0.0));
        }
        let (class_time, throughputs) = (raised.class_time.clone(), raised.throughputs.clone());
        let (first, first_slope) = first.get_or_insert((raised, slope.clone()));
        if frozen.iter().all(|frozen| *frozen) || slope.iter().all(|slope| *slope == 0.0) {
            let (first, first_slope) = (first.clone(), first_slope.clone());
            return Ok(Filled { class_time, first, first_slope, throughputs, fixing });
        }
    }
}

/// The least level at which members that rise would have what they have, having risen as fast from nothing.
fn least_had(slope: &[f64], reached: &[f64]) -> f64 {
    let rising = slope.iter().zip(reached).filter(|(slope, _)| **slope > 0.0);
    let had = rising.map(|(slope, reached)| reached / slope).fold(f64::INFINITY, f64::min);
    if had.is_finite() { had } else { 0.0 }
}

/// Raises the level above what was reached: a rise is as exact as what members `had` and it together. Reached is what a
/// solver found, feasible within its tolerance only, and leaves no room for an interior-point method: where the next
/// program is not solved, the least part of what was reached that helps is given back, on the face of what was optimal so
/// far if that can be. Should the level gain by it, the decision says so. The columns so far reach what was reached; all
/// pairs become columns only where nothing else helps.
fn raise_held(
    solving: &mut Solving,
    master: &mut Master<'_>,
    (slope, reached, had): (&[f64], &[f64], f64),
    face: &Face,
) -> Result<(Raised, Vec<Demand>), SolvingError> {
    let mut outcome = Err(SolvingError::Empty);
    let on_face = [1e-11, 1e-10].iter().chain(&GIVEN_UP[1..]).map(|eased| (*eased, true));
    let without = GIVEN_UP[1..].iter().map(|eased| (*eased, false));
    for (eased, on_face) in once((0.0, false)).chain(on_face).chain(without) {
        if eased > 0.0 && !on_face {
            master.leave_none();
        }
        let demand = |(slope, base): (&f64, &f64)| Demand { slope: *slope, base: base * (1.0 - eased) };
        let demands: Vec<Demand> = slope.iter().zip(reached).map(demand).collect();
        let formulate = |bound: &BoundObjective<'_>| {
            let mut formulation = bound.with_demands(&demands);
            if on_face {
                face.hold(&mut formulation);
            }
            formulation.program.offset += formulation.program_objective(had);
            formulation
        };
        let solved = master.solve_priced(solving, formulate);
        let above =
            |raised: Raised| Raised { level: raised.level - had, bound: raised.bound - had, ..raised };
        let raised = solved.map(|solved| above(raised(master, solved)));
        if let Ok(raised) = &raised {
            // The level is concave in what is asked for: so much it gained at least.
            let given_back = reached.iter().map(|base| base * eased);
            let gained: f64 =
                raised.demand_price.iter().zip(given_back).map(|(price, part)| price * part).sum();
            let part =
                slope.iter().zip(&raised.throughputs).map(|(slope, throughput)| gained * slope / throughput);
            let part = part.filter(|part| part.is_finite()).fold(0.0, f64::max);
            if part > TOLD {
                let told =
                    format!("levels reached are held up to {eased:.0e}: the next gains {part:.1e} of itself");
                solving.report().fallbacks.push(told);
            }
        }
        outcome = raised.map(|raised| (raised, demands));
        if !outcome.as_ref().is_err_and(SolvingError::is_unsolved) {
            return outcome;
        }
    }
    if master.is_priced() {
        master.admit_all();
        return raise_held(solving, master, (slope, reached, had), face);
    }
    outcome
}

/// The best worst level, from both sides.
#[derive(Clone, Debug)]
pub(super) struct Parametric {
    /// Class time of the columns, [columns]; none where pools have it.
    pub(super) class_time: Vec<f64>,
    /// The throughput of each member there: [members].
    pub(super) throughputs: Vec<f64>,
    /// The worst level there.
    pub(super) value: f64,
    /// What no allocation can better.
    pub(super) bound: f64,
    /// The demands of the program that found it,
    pub(super) demands: Vec<Demand>,
    /// the answer to that, if it was written,
    pub(super) answer: Option<Answer>,
    /// and how much its level fell per unit of throughput asked for: ≥ 0, [members].
    pub(super) demand_price: Vec<f64>,
    /// The other prices that prove it, without times, if no program was written.
    pub(super) prices: Option<PrimalDual>,
    /// The last program solved, to make others of.
    pub(super) formulation: Option<Formulation>,
}

/// Betters the worst level by Newton's method on duals.
///
/// At a level ρ better than the optimum the program maximizes τ with throughput(m) ≥ τ·required(m, ρ). Its duals y
/// give a bound that holds for every allocation, Σ y·throughput ≤ B, so the optimum ρ* satisfies
/// Σ y·required(m, ρ*) ≤ B: the root of that one-dimensional equation is the next ρ, still no worse than the
/// optimum. The allocation found bounds it from the other side by its own worst level. The two meet in a handful
/// of steps, but where what one job needs hangs on the last digits of ρ (it is nearly done and long overdue): every
/// job then gets the part τ of what it needs, which costs the others a part of their level, however close ρ is. So
/// where Newton's method stops short, levels a little worse than ρ are tried, further off each time, until one can
/// be reached by all.
///
/// With `pools`, which raise levels in place of programs over members, it fails where they do.
pub(super) fn best_worst(
    solving: &mut Solving,
    master: &mut Master<'_>,
    mut pools: Option<&mut Pools>,
) -> Result<Parametric, SolvingError> {
    let (levels, mut ideal) = {
        let bound = master.bound();
        (bound.levels_kept().ok_or(SolvingError::Empty)?, bound.ideal())
    };
    let sense = master.objective().sense();
    let members = 0..master.reduced().instance.n_members();
    let better = |a: f64, b: f64| if sense == Sense::Minimize { a < b } else { a > b };
    let worst = |a: f64, b: f64| if sense == Sense::Minimize { a.max(b) } else { a.min(b) };
    let (mut tried, mut off) = (ideal, GAP_MAX / 16.0);
    let mut best: Option<Parametric> = None;
    let mut old = None;
    for _ in 0..STEPS_MAX {
        let required = members.clone().map(|member| levels.required(member, tried).value);
        let demands: Vec<Demand> = required.map(|slope| Demand { slope, base: 0.0 }).collect();
        solving.purpose(Purpose::Tried { level: tried });
        let (reached, answer) = tried_at(solving, master, pools.as_deref_mut(), &demands, &mut old)?;
        let value = members
            .clone()
            .map(|member| levels.level(member, reached.throughputs[member]))
            .fold(if sense == Sense::Minimize { f64::NEG_INFINITY } else { f64::INFINITY }, worst);
        let attained =
            best.as_ref().map_or(value, |best| if better(value, best.value) { value } else { best.value });
        let next = cut(&levels, &reached, tried, attained).map_or(ideal, |next| worst(ideal, next));
        let Reached { class_time, throughputs, demand_price, prices, .. } = reached;
        let bound = ideal;
        let found = Parametric {
            class_time,
            throughputs,
            value,
            bound,
            demands,
            answer,
            demand_price,
            prices,
            formulation: None,
        };
        let best = match &mut best {
            Some(best) if !better(value, best.value) => best,
            best => best.insert(found),
        };
        let stuck = (next - ideal).abs() <= PROGRESS_MIN * (best.value - ideal).abs();
        ideal = next;
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
    let found = best.ok_or(SolvingError::Empty)?;
    Ok(Parametric { formulation: old, ..found })
}

/// The level of demands raised, by a program only where one must be written; `old` is made one of it.
fn tried_at(
    solving: &mut Solving,
    master: &mut Master<'_>,
    pools: Option<&mut Pools>,
    demands: &[Demand],
    old: &mut Option<Formulation>,
) -> Result<(Reached, Option<Answer>), SolvingError> {
    if let Some(pools) = pools {
        let raised = pools.raise(solving, master, demands).ok_or(SolvingError::Empty)?;
        let throughputs = demands.iter().map(|demand| demand.slope * raised.level).collect();
        let (class_time, bound, demand_price) = (Vec::new(), raised.bound, raised.demand_price);
        return Ok((Reached { class_time, throughputs, bound, demand_price, prices: None }, None));
    }
    // (another level may be raised by prices though this one is not)
    if let Some(reached) = sharing::raise(solving, master, demands) {
        return Ok((reached, None));
    }
    if solving.strategy() == Strategy::Singles {
        solving.give_up(GaveUp::Unproven, Strategy::Written)?;
    }
    let Raised { class_time, throughputs, bound, demand_price, answer, formulation, .. } =
        raise(solving, master, demands, old.take())?;
    *old = Some(formulation);
    Ok((Reached { class_time, throughputs, bound, demand_price, prices: None }, Some(answer)))
}

/// The level at which what the duals ask for equals what they bound, by bisection between a level no allocation
/// betters and an attained one; nothing if the duals do not exclude the level tried.
fn cut(levels: &Levels, raised: &Reached, tried: f64, attained: f64) -> Option<f64> {
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

#[cfg(test)]
mod tests;
