//! The constraints of a policy that contradict one another where no allocation keeps them all.

use crate::index::{Id, WorkerTypeId};
use crate::policy::decision::Conflict;
use crate::policy::program::reduce::Reduced;
use crate::program::expression::Subject;
use crate::program::{BoundObjective, Formulation, Range, RowRole, Sense};
use crate::solver::certificate::TOLERANCE;
use crate::solver::{Limits, conflict, registry, solve_certified};

/// Conflicting rows up to which it is found out how far each is from being kept beside the others: a program a row.
const RELAXED_MAX: usize = 32;

/// Constraints of the policy that no allocation keeps, as few as [`conflict`] finds, in order of jobs; empty if no
/// contradiction is proven.
pub(super) fn conflicts(reduced: &Reduced, bound: &BoundObjective<'_>, limits: &Limits) -> Vec<Conflict> {
    let formulation = bound.constraints_alone();
    let own: Vec<usize> =
        (0..formulation.rows.len()).filter(|row| place(&formulation, *row).is_some()).collect();
    let rows = conflict(&formulation.program, &own, limits).unwrap_or_default();
    let of = |row: &usize| {
        let (constraint, position) = place(&formulation, *row)?;
        let constraint = &bound.objective().constraints()[constraint];
        let on_type = constraint.subject == Some(Subject::WorkerType);
        let of_job = constraint.subject == Some(Subject::Job);
        let alike = if of_job { reduced.classes.members(position) } else { &[] };
        let reached = |kept: &[usize]| {
            let freed: Vec<usize> = own.iter().copied().filter(|other| !kept.contains(other)).collect();
            reached(bound, &formulation, *row, &freed, limits)
        };
        let others: Vec<usize> = rows.iter().copied().filter(|other| other != row).collect();
        let possible = reached(&[]);
        let several = possible.is_none() && (1..RELAXED_MAX).contains(&others.len());
        Some(Conflict {
            constraint: constraint.text.clone(),
            job: alike.first().map(|job| *job as usize),
            n_alike: alike.len().max(1),
            worker_type: on_type.then(|| WorkerTypeId::from_index(position)),
            possible,
            relaxed: if several { reached(&others) } else { None },
        })
    };
    let mut conflicts: Vec<Conflict> = rows.iter().filter_map(of).collect();
    conflicts.sort_by_key(|conflict| (conflict.worker_type, conflict.job));
    conflicts
}

/// The constraint and the place, a member or a worker type or 0, that a row is of, if it is of a constraint of the policy.
fn place(formulation: &Formulation, row: usize) -> Option<(usize, usize)> {
    match formulation.rows[row] {
        RowRole::Constraint { constraint, position } => Some((constraint, position)),
        _ => None,
    }
}

/// The part of its right side that the left side of a constraint reaches at most, or takes at least, where these rows, its own
/// among them, are not kept; `None` where the right side is no number above 0, or the constraint can be kept then.
fn reached(
    bound: &BoundObjective<'_>,
    formulation: &Formulation,
    row: usize,
    freed: &[usize],
    limits: &Limits,
) -> Option<f64> {
    let mut program = formulation.program.clone();
    let range = program.rows[row];
    let (end, sense) = match (range.lower.is_finite(), range.upper.is_finite()) {
        (true, false) => (range.lower, Sense::Maximize),
        (false, true) => (range.upper, Sense::Minimize),
        _ => return None,
    };
    for row in freed {
        program.rows[*row] = Range::FREE;
    }
    (program.sense, program.offset) = (sense, 0.0);
    program.cost.fill(0.0);
    for (column, value) in formulation.program.row(row) {
        program.cost[column] = value;
    }
    let best = solve_certified(&program, &mut registry::default_chain(&program), limits, None).ok()?;
    let primal = best.certificate.primal;
    let missing = if sense == Sense::Maximize { end - primal } else { primal - end };
    let point = bound.point(formulation.class_time(&best.solution.columns));
    let (constraint, position) = place(formulation, row)?;
    let part = bound.part_of_right_side(&bound.objective().constraints()[constraint], position, &point)?;
    (missing > TOLERANCE * end.abs()).then_some(part)
}
