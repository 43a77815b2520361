//! Duals in the problem's own terms.

use crate::policy::decision::Decision;
use crate::policy::explain::{Binding, Explanation};
use crate::policy::program::reduce::Reduced;
use crate::policy::program::solve::Solved;
use crate::problem::Problem;
use crate::program::{Objective, RowRole};

/// Prices below this share of the largest count as none.
const PRICE_MIN: f64 = 1e-6;

/// Adds prices to what the shares say.
pub(super) fn explain(
    problem: &Problem,
    objective: &Objective,
    reduced: &Reduced,
    solved: &Solved,
    decision: Decision,
) -> Explanation {
    let reason = format!("{}: {}", objective.route().name(), objective.reason());
    let mut explanation = Explanation::of_shares(problem, decision, reason);
    let program = &solved.formulation.program;
    explanation.program = Some(program.clone());
    let at = program.objective(&solved.answer.solution.columns);
    let n = reduced.instance.n_members();
    let (mut leaf, mut time) = (vec![0.0; n], vec![0.0; n]);
    for (row, role) in solved.formulation.rows.iter().enumerate() {
        let dual = solved.answer.solution.row_duals.get(row).copied().unwrap_or(0.0);
        let price = solved.formulation.shadow_price(row, dual, at) * solved.price_factor;
        match role {
            RowRole::Capacity { worker_type } => explanation.types[*worker_type].one_more = Some(price),
            RowRole::Time { member } => time[*member] = price,
            RowRole::Level { member } => leaf[*member] = price,
            RowRole::Constraint { .. } | RowRole::Part { .. } | RowRole::Hold => {}
        }
    }
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
    }
    explanation
}
