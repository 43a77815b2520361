//! The constraints of a policy that contradict one another where no allocation keeps them all.

use crate::index::{Id, WorkerTypeId};
use crate::policy::decision::{Conflict, PolicyError};
use crate::policy::program::reduce::Reduced;
use crate::program::expression::Subject;
use crate::program::{BoundObjective, Column, Formulation, Range, RowRole, Sense};
use crate::solver::certificate::TOLERANCE;
use crate::solver::{ConflictSize, ConflictingRows, Limits, conflict, registry, solve_certified};

/// The most rows of a conflict for which it is computed, by a program a row, how nearly each can be kept beside the
/// others.
const RELAXED_MAX: usize = 32;

/// The most members that are tested, by a program each, for throughput that the objective needs and the constraints
/// forbid.
const NEEDY_MAX: usize = 256;

/// The throughput that the test asks for a member, relative to its largest. Time and workers are unlimited in the
/// test and constraints homogeneous, so that allocations can be scaled: if this throughput is impossible, any other
/// is.
const NEEDED_MIN: f64 = 1e-3;

/// The text in place of a constraint's where the objective is infinite without throughput of a job.
const NEEDED: &str = "throughput > 0, without which the objective is infinite";

/// The stage of a decision at which constraints are found to contradict one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Before it is known which droppable constraints are dropped.
    Undropped,
    /// After it is known which are dropped: all other droppable constraints are kept.
    Dropped,
}

/// Constraints that no allocation keeps together.
#[derive(Debug)]
pub(super) struct Conflicts {
    conflicts: Vec<Conflict>,
    size: ConflictSize,
}

impl Conflicts {
    /// The error of a policy of this name; none if no contradiction was proven.
    pub(super) fn error_of(self, policy: &str) -> Option<PolicyError> {
        let Self { conflicts, size } = self;
        let (policy, names) = (policy.to_owned(), Box::default());
        (!conflicts.is_empty()).then_some(PolicyError::Conflict { policy, conflicts, size, names })
    }
}

/// Constraints of the policy that no allocation keeps together, as few as [`conflict`] finds, by worker type and job.
/// If all can be kept, constraints that forbid throughput without which the objective is infinite; after constraints
/// were dropped, these include droppable ones that were not. Empty if no contradiction is proven.
pub(super) fn conflicts(
    reduced: &Reduced,
    bound: &BoundObjective<'_>,
    stage: Stage,
    limits: &Limits,
) -> Conflicts {
    let formulation = bound.constraints_alone(false);
    let candidates = own_rows(&formulation);
    let found = conflict(&formulation.program, &candidates, limits);
    if let Some(ConflictingRows { rows, size }) = found.filter(|found| !found.rows.is_empty()) {
        let of = |row: &usize| conflict_of_row(reduced, bound, &formulation, *row, &rows, limits);
        return in_order(rows.iter().filter_map(of), size);
    }
    match stage {
        Stage::Dropped if bound.has_droppable() => {
            conflicts_with_need(reduced, bound, &bound.constraints_alone(true), limits)
        }
        Stage::Undropped | Stage::Dropped => conflicts_with_need(reduced, bound, &formulation, limits),
    }
}

/// The rows of the policy's own constraints.
fn own_rows(formulation: &Formulation) -> Vec<usize> {
    (0..formulation.rows.len()).filter(|row| place(formulation, *row).is_some()).collect()
}

/// Constraints of a formulation that forbid throughput without which the objective is infinite; empty if there are none.
fn conflicts_with_need(
    reduced: &Reduced,
    bound: &BoundObjective<'_>,
    formulation: &Formulation,
    limits: &Limits,
) -> Conflicts {
    let candidates = own_rows(formulation);
    let needy = (0..bound.instance().n_members().min(NEEDY_MAX)).filter(|member| is_needed(bound, *member));
    for member in needy {
        let mut asked = without_capacity(formulation.clone());
        let terms = bound.terms(member).iter().map(|term| (term.column, term.throughput));
        let most = terms.clone().fold(0.0_f64, |most, (_, throughput)| most.max(throughput));
        if most > 0.0 {
            asked
                .program
                .push_row(Range::at_least(NEEDED_MIN), terms.map(|(column, value)| (column, value / most)));
            asked.program.forget_names();
        }
        let Some(found) = conflict(&asked.program, &candidates, limits) else { continue };
        let ConflictingRows { rows, size } = found;
        if !rows.iter().all(|row| is_homogeneous(&formulation.program.rows[*row])) {
            continue;
        }
        let alike = reduced.classes.members(member);
        let needed = Conflict {
            constraint: NEEDED.to_owned(),
            job: alike.first().map(|job| *job as usize),
            n_alike: alike.len().max(1),
            worker_type: None,
            is_droppable: false,
            possible: None,
            relaxed: None,
            can_be_dropped: false,
        };
        let of = |row: &usize| conflict_of_row(reduced, bound, formulation, *row, &[], limits);
        // Fewer constraints may forbid throughput of another member.
        let is_several = size == ConflictSize::Smallest && rows.len() > 1;
        let size = if is_several { ConflictSize::Irreducible } else { size };
        return in_order(rows.iter().filter_map(of).chain([needed]), size);
    }
    Conflicts { conflicts: Vec::new(), size: ConflictSize::Unreduced }
}

fn in_order(conflicts: impl Iterator<Item = Conflict>, size: ConflictSize) -> Conflicts {
    let mut conflicts: Vec<Conflict> = conflicts.collect();
    conflicts.sort_by_key(|conflict| (conflict.worker_type, conflict.job));
    Conflicts { conflicts, size }
}

/// A formulation without rows of time and capacity, and without the bounds on columns that follow from them.
fn without_capacity(mut formulation: Formulation) -> Formulation {
    for (row, role) in formulation.rows.iter().enumerate() {
        if matches!(role, RowRole::Time { .. } | RowRole::Capacity { .. }) {
            formulation.program.rows[row] = Range::FREE;
        }
    }
    for (range, implied) in formulation.program.columns.iter().zip(&mut formulation.program.implied) {
        *implied = *range;
    }
    formulation
}

/// Whether each finite bound of a row is 0.
fn is_homogeneous(range: &Range) -> bool {
    [range.lower, range.upper].into_iter().all(|bound| bound == 0.0 || bound.is_infinite())
}

/// Whether the objective is infinite where a member has no time and all others have some.
fn is_needed(bound: &BoundObjective<'_>, member: usize) -> bool {
    let is_of = |combination| bound.instance().parts(combination).any(|(part, ..)| part == member);
    let time = |column: &Column| if is_of(column.combination) { 0.0 } else { 1.0 };
    let class_time: Vec<f64> = bound.columns().iter().map(time).collect();
    bound.value(&bound.point(&class_time)).is_infinite()
}

/// The conflict of one row: the value that it could reach alone, and beside the other rows of the contradiction.
fn conflict_of_row(
    reduced: &Reduced,
    bound: &BoundObjective<'_>,
    formulation: &Formulation,
    row: usize,
    rows: &[usize],
    limits: &Limits,
) -> Option<Conflict> {
    let (constraint, position) = place(formulation, row)?;
    let constraint = &bound.objective().constraints()[constraint];
    let on_type = constraint.subject == Some(Subject::WorkerType);
    let of_job = constraint.subject == Some(Subject::Job);
    let alike = if of_job { reduced.classes.members(position) } else { &[] };
    let reached = |kept: &[usize]| {
        let of_policy = (0..formulation.rows.len()).filter(|other| place(formulation, *other).is_some());
        let freed: Vec<usize> = of_policy.filter(|other| !kept.contains(other)).collect();
        reached(bound, formulation, row, &freed, limits)
    };
    let others: Vec<usize> = rows.iter().copied().filter(|other| *other != row).collect();
    let possible = reached(&[]);
    let several = possible.is_none() && (1..RELAXED_MAX).contains(&others.len());
    Some(Conflict {
        constraint: constraint.text.clone(),
        job: alike.first().map(|job| *job as usize),
        n_alike: alike.len().max(1),
        worker_type: on_type.then(|| WorkerTypeId::from_index(position)),
        is_droppable: constraint.droppable,
        possible,
        relaxed: if several { reached(&others) } else { None },
        can_be_dropped: false,
    })
}

/// The constraint of the policy that a row belongs to, and its place: a member, a worker type, or 0. None for any
/// other row.
fn place(formulation: &Formulation, row: usize) -> Option<(usize, usize)> {
    match formulation.rows[row] {
        RowRole::Constraint { constraint, position } => Some((constraint, position)),
        _ => None,
    }
}

/// The value nearest to its right side that the left side of a constraint can have without the rows `freed`, its own
/// among them: the largest value, or the least where that is to be small, relative to the right side. `None` where
/// the right side is no number above 0, or where the constraint can then be kept.
fn reached(
    bound: &BoundObjective<'_>,
    formulation: &Formulation,
    row: usize,
    freed: &[usize],
    limits: &Limits,
) -> Option<f64> {
    let mut program = formulation.program.clone();
    let range = program.rows[row];
    for row in freed {
        program.rows[*row] = Range::FREE;
    }
    program.offset = 0.0;
    program.cost.fill(0.0);
    for (column, value) in formulation.program.row(row) {
        program.cost[column] = value;
    }
    // An equation may be missed on either side.
    [(range.lower, Sense::Maximize), (range.upper, Sense::Minimize)].into_iter().find_map(|(end, sense)| {
        if end.is_infinite() {
            return None;
        }
        program.sense = sense;
        let best = solve_certified(&program, &mut registry::default_chain(&program), limits, None).ok()?;
        let primal = best.certificate.primal;
        let missing = if sense == Sense::Maximize { end - primal } else { primal - end };
        let point = bound.point(formulation.class_time(&best.solution.columns));
        let (constraint, position) = place(formulation, row)?;
        let part =
            bound.part_of_right_side(&bound.objective().constraints()[constraint], position, &point)?;
        (missing > TOLERANCE * end.abs()).then_some(part)
    })
}
