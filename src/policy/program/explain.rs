//! Duals in the problem's own terms.

use crate::policy::decision::Decision;
use crate::policy::explain::{Binding, Explanation, Fixed, JobExplanation};
use crate::policy::program::reduce::Reduced;
use crate::policy::program::solve::Solved;
use crate::problem::Problem;
use crate::program::{BoundObjective, RowRole};

/// Prices below this share of the largest count as none.
const PRICE_MIN: f64 = 1e-6;

/// A discount of less than this part is rounding.
const DISCOUNT_MIN: f64 = 1e-6;

/// Adds prices to what the shares say.
pub(super) fn explain(
    problem: &Problem,
    bound: &BoundObjective<'_>,
    reduced: &Reduced,
    solved: &Solved,
    decision: Decision,
) -> Explanation {
    let (objective, formulation) = (bound.objective(), solved.explaining.clone().formulation(bound));
    let mut reason = format!("{}: {}", objective.route().name(), objective.reason());
    if !solved.discounts.is_empty() {
        reason.push_str("; the objective and its prices are those before the discount");
    }
    let mut explanation = Explanation::of_shares(problem, decision, reason);
    let solution = solved.answer.as_ref().map(|answer| &answer.solution);
    let at = solution.map_or(f64::NAN, |solution| formulation.program.objective(&solution.columns));
    let n = reduced.instance.n_members();
    let (mut leaf, mut time) = (vec![0.0; n], vec![0.0; n]);
    for (row, role) in formulation.rows.iter().enumerate() {
        let dual = solution.and_then(|solution| solution.row_duals.get(row)).copied().unwrap_or(0.0);
        let price = formulation.shadow_price(row, dual, at) * solved.price_factor;
        match role {
            RowRole::Capacity { worker_type } => explanation.types[*worker_type].one_more = Some(price),
            RowRole::Time { member } => time[*member] = price,
            RowRole::Level { member } => leaf[*member] = price,
            RowRole::Constraint { .. } | RowRole::Part { .. } | RowRole::Hold => {}
        }
    }
    explanation.program = Some(formulation.program);
    let largest = leaf.iter().fold(0.0_f64, |most, price| most.max(price.abs()));
    for (job, explained) in explanation.jobs.iter_mut().enumerate() {
        let member = reduced.classes.class_of(job);
        let n_jobs = reduced.classes.members(member).len() as f64;
        // The row speaks for the whole class: a job's part is a fraction of it.
        explained.throughput_price = Some(leaf[member] / n_jobs);
        explained.time_price = Some(time[member]);
        if largest > 0.0 && leaf[member].abs() > PRICE_MIN * largest {
            explained.binding = Binding::Bottleneck;
        }
        let level = explanation.decision.levels.as_ref().map_or(f64::NAN, |levels| levels[job]);
        fixed(explained, solved, member, n_jobs, level);
        explained.discount = solved.discounts.get(member).copied();
        if explained.discount.is_some_and(|kept| kept < 1.0 - DISCOUNT_MIN) {
            explained.binding = Binding::Discount;
        }
    }
    explanation
}

/// Says where water filling fixed a job of a member, and by what: the first step sets the objective.
fn fixed(explained: &mut JobExplanation, solved: &Solved, member: usize, n_jobs: f64, level: f64) {
    let Some(fixing) = &solved.fixing else { return };
    let Some(step) = fixing.step[member] else { return };
    let (one_more, time_price) = (&fixing.one_more[step], fixing.time_price[member]);
    // Where the inverse of the level is raised, its prices are: d(1/u) = −du/u².
    let factor = if solved.price_factor < 0.0 { -level * level } else { 1.0 };
    explained.fixed = Some(Fixed {
        step: step + 1,
        steps: fixing.one_more.len(),
        level,
        one_more: one_more.iter().map(|price| factor * price).collect(),
        throughput_price: factor * fixing.leaf_price[member] / n_jobs,
        time_price: factor * time_price,
    });
    if step > 0 {
        let largest = one_more.iter().fold(time_price, |most, price| most.max(*price));
        let by_time = time_price > PRICE_MIN * largest;
        explained.binding = if by_time { Binding::Time } else { Binding::Capacity };
    }
}
