//! Dual values in the problem's own terms: prices of workers, time, throughput and the policy's own constraints.

mod prices;
mod reasons;
mod unwritten;
#[cfg(test)]
mod tests;

pub(super) use prices::DecisionUse;
pub(super) use unwritten::answer_by_prices;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::index::{Id, JobIndex};
use crate::policy::decision::Decision;
use crate::policy::explain::{Binding, ConstraintExplanation, ConstraintRow, Explanation, Fixed, IDLE_MIN};
use crate::policy::program::explain::prices::{RowPrices, is_close, rise, row_sizes};
use crate::policy::program::explain::reasons::{Idle, Reasons};
use crate::policy::program::optimum::Optimum;
use crate::policy::program::recorded::SolvedProgram;
use crate::policy::program::reduce::Reduced;
use crate::problem::Problem;
use crate::program::expression::Subject;
use crate::program::{BoundObjective, Constraint, Objective};

/// A discount of less than this part is rounding.
const DISCOUNT_MIN: f64 = 1e-6;

/// A decision to be explained, with the solved program that gives the prices.
#[derive(Debug)]
pub(super) struct Explained {
    pub(super) reduced: Reduced,
    pub(super) solved: Optimum,
    pub(super) decision: Decision,
    /// The decision's throughputs, time and workers; none if the program that gives the prices is over other members.
    pub(super) in_use: Option<DecisionUse>,
}

/// Explains a decision: what its shares say, with the prices of the program that explains it.
pub(super) fn explain(problem: &Problem, bound: &BoundObjective<'_>, explained: Explained) -> Explanation {
    let Explained { reduced, solved, decision, in_use } = explained;
    let (objective, formulation) = (bound.objective(), solved.explaining.clone().formulation(bound));
    let mut reason = format!("{}: {}", objective.route().name(), objective.reason());
    if !solved.discounts.is_empty() {
        reason.push_str("; the objective and its prices are those before the discount");
    }
    let other = "the program that was written for them drops other jobs' constraints";
    let prices = in_use.as_ref().ok_or(other);
    let prices = prices
        .and_then(|in_use| RowPrices::of(bound, &solved, &formulation, in_use, decision.objective.as_ref()));
    let mut explanation = Explanation::of_shares(problem, decision, reason);
    let prices = prices.map(|prices| prices.without_idle(&explanation.types));
    let reasons = prices
        .as_ref()
        .ok()
        .map(|prices| Reasons::of(bound, &explanation.types, &solved, &formulation, prices));
    let known = prices.as_ref().ok();
    for (worker_type, kind) in explanation.types.iter_mut().enumerate() {
        kind.one_more = known.map(|prices| prices.capacity[worker_type].value);
    }
    explanation.held = derived(objective);
    let sizes = &row_sizes(&formulation);
    let constraint = |(position, constraint): (usize, &Constraint)| {
        let (decision, in_use) = (&explanation.decision, in_use.as_ref());
        let of = ConstraintSources { bound, reduced: &reduced, decision, in_use, prices: known, sizes };
        let rows = (0..of.n_rows(constraint)).map(|row| of.row(constraint, position, row));
        ConstraintExplanation {
            text: constraint.text.clone(),
            subject: constraint.subject,
            unit: constraint.dimension(objective.vocabulary()),
            penalty: constraint.soft,
            droppable: constraint.droppable,
            rows: rows.collect(),
        }
    };
    explanation.constraints = objective.constraints().iter().enumerate().map(constraint).collect();
    for job in 0..explanation.jobs.len() {
        let member = reduced.classes.class_of(job);
        let n_jobs = reduced.classes.members(member).len() as f64;
        let idle = idle(&explanation, bound, member, reasons.as_ref());
        let explained = &mut explanation.jobs[job];
        // The row speaks for the whole class: a job's part is a fraction of it.
        let asked = known.and_then(|prices| prices.level[member]).zip(rise(bound, &solved, member));
        explained.throughput_price = asked.map(|(price, rise)| price.value * rise / n_jobs);
        explained.time_price = known.map(|prices| prices.time[member].value);
        explained.sets_objective =
            known.and_then(|prices| prices.level[member]).is_some_and(|price| price.counts);
        let level = explanation.decision.levels.as_ref().map_or(f64::NAN, |levels| levels[job]);
        explained.fixed = known.and_then(|_| fixed(bound, &solved, member, level));
        if let Some(fixed) = &mut explained.fixed {
            let idle = fixed.one_more.iter_mut().zip(&explanation.types).filter(|(_, kind)| !kind.binds);
            idle.for_each(|(more, _)| *more = Some(0.0));
        }
        explained.limits = reasons.as_ref().map(|reasons| reasons.of_member(member)).unwrap_or_default();
        explained.binding = reasons::binding(explained, idle);
        explained.discount = solved.discounts.get(member).copied();
        if explained.discount.is_some_and(|kept| kept < 1.0 - DISCOUNT_MIN) {
            explained.binding = Binding::Discount;
        }
    }
    explanation.prices_unknown = prices.err();
    let levels = solved.saturation_duals.is_some().then_some(solved.price_factor < 0.0);
    explanation.program = Some(SolvedProgram {
        purpose: solved.explaining.purpose(levels),
        value_map: Some(formulation.value_map),
        optimum: solved.answer.as_ref().map(|answer| formulation.program.objective(&answer.solution.columns)),
        classes: Arc::new(reduced.classes),
        program: formulation.program,
    });
    explanation
}

/// The data that the objective or a constraint reads and that follow from the number of workers.
fn derived(objective: &Objective) -> Vec<String> {
    let vocabulary = objective.vocabulary();
    let is_derived = |slot: &usize| objective.uses(*slot) && vocabulary.datum(*slot).is_derived();
    (0..vocabulary.len()).filter(is_derived).map(|slot| vocabulary.datum(slot).name.to_string()).collect()
}

/// The idle workers that a member can run on.
fn idle(
    explanation: &Explanation,
    bound: &BoundObjective<'_>,
    member: usize,
    reasons: Option<&Reasons>,
) -> Idle {
    let Some(reasons) = reasons else { return Idle::None };
    let mut columns =
        bound.terms(member).iter().filter(|term| !explanation.types[term.worker_type].binds).peekable();
    if columns.peek().is_none() {
        Idle::None
    } else if columns.any(|term| reasons.gains(term.column)) {
        Idle::Wanted
    } else {
        Idle::Unwanted
    }
}

/// The sources of the rows of the policy's own constraints.
struct ConstraintSources<'a> {
    bound: &'a BoundObjective<'a>,
    reduced: &'a Reduced,
    decision: &'a Decision,
    in_use: Option<&'a DecisionUse>,
    prices: Option<&'a RowPrices>,
    sizes: &'a BTreeMap<(usize, usize), f64>,
}

impl ConstraintSources<'_> {
    /// Jobs, or worker types, that a constraint holds for; 1 for one on the whole cluster.
    fn n_rows(&self, constraint: &Constraint) -> usize {
        match constraint.subject {
            Some(Subject::Job) => self.reduced.classes.n_jobs(),
            Some(Subject::WorkerType) => self.reduced.instance.n_types(),
            None => 1,
        }
    }

    /// The row of a constraint, which is one of the objective's by position, for a job, a worker type or the whole cluster.
    fn row(&self, constraint: &Constraint, position: usize, row: usize) -> ConstraintRow {
        let (place, n_jobs, was_dropped) = match constraint.subject {
            Some(Subject::WorkerType) | None => (row, 1.0, false),
            Some(Subject::Job) => {
                let member = self.reduced.classes.class_of(row);
                let dropped = self.reduced.instance.dropped.get(member) == Some(&true);
                let reported = self.decision.dropped.binary_search(&JobIndex::from_index(row)).is_ok();
                let past = reported && constraint.reads_deadline();
                (member, self.reduced.classes.members(member).len() as f64, dropped || past)
            }
        };
        let dropped = constraint.droppable && was_dropped;
        let price = self.prices.filter(|_| !dropped).map(|prices| prices.own[position][place].value / n_jobs);
        let Some(in_use) = self.in_use else {
            return ConstraintRow { price, slack: f64::NAN, binds: false, exceeded: false, dropped };
        };
        let sides = self.bound.sides(constraint, place, &in_use.point);
        let room = sides.slack();
        let slack = if constraint.is_equality() { -room.abs() } else { room };
        let size = self.sizes.get(&(position, place));
        let close = is_close(sides, size.copied().unwrap_or(0.0));
        let exceeded = slack < 0.0 && !close;
        let slack = if slack.is_nan() { f64::INFINITY } else { slack };
        ConstraintRow { price, slack, binds: close || exceeded, exceeded, dropped }
    }
}

/// The step of water filling that fixed a member's jobs, with its prices; the first step sets the objective.
fn fixed(bound: &BoundObjective<'_>, solved: &Optimum, member: usize, level: f64) -> Option<Fixed> {
    let saturation_duals = solved.saturation_duals.as_ref()?;
    let step = saturation_duals.step[member]?;
    // Where the inverse of the level is raised, prices are changes of the inverse: d(1/u) = −du/u².
    let factor = if solved.price_factor < 0.0 { -level * level } else { 1.0 };
    let n_jobs = bound.instance().multiplicity[member];
    let n_types = bound.instance().n_types();
    let rows = |constraint: &Constraint| match constraint.subject {
        Some(Subject::Job) | None => vec![Some(0.0)],
        Some(Subject::WorkerType) => vec![Some(0.0); n_types],
    };
    let own = bound.objective().constraints();
    let mut constraints: Vec<Vec<Option<f64>>> = own.iter().map(rows).collect();
    // A row with a price at an earlier step raises that step's level first; the effect on this step is not known.
    let earlier =
        saturation_duals.first_own.iter().filter(|(_, first)| **first < step).map(|(row, _)| (*row, None));
    let here = saturation_duals.own[step].iter().map(|((of, position), price)| {
        ((*of, *position), Some(factor * bound.price_of_side(&own[*of], *position, *price)))
    });
    for ((of, position), price) in here.chain(earlier) {
        match own[of].subject {
            Some(Subject::Job) if position == member => {
                constraints[of][0] = price.map(|price| price / n_jobs);
            }
            Some(Subject::Job) => {}
            Some(Subject::WorkerType) | None => constraints[of][position] = price,
        }
    }
    let raises_earlier = |first: &Option<usize>| first.is_some_and(|first| first < step);
    let one_more = saturation_duals.one_more[step].iter().zip(&saturation_duals.first_one_more);
    Some(Fixed {
        step: step + 1,
        steps: saturation_duals.one_more.len(),
        level,
        one_more: one_more.map(|(price, first)| (!raises_earlier(first)).then_some(factor * price)).collect(),
        throughput_price: rise(bound, solved, member)
            .map(|rise| factor * saturation_duals.throughput_price[member] * rise / n_jobs),
        time_price: factor * saturation_duals.time_price[member],
        constraints,
    })
}

/// A job with at least this share of time runs all the time.
pub(super) const TIME_ALL: f64 = 1.0 - IDLE_MIN;
