//! The analytic centre over jobs, computed over classes of jobs.
//!
//! The centre gives interchangeable jobs equal shares: exchanging them maps the optimal face to itself, and the centre is
//! unique. So it is the centre (see [`centre`](crate::solver::centre)) of the program over classes with barrier weights: a
//! column counts once for each job, or pair of jobs, whose time it sums up, and a row once for each job that it constrains.
//! Each of these jobs or pairs then has an equal part of the class's time. Classes of n_a and n_b jobs have n_a·n_b pairs, a
//! class of n jobs has n(n − 1)/2 with itself.

use crate::policy::program::reduce::Reduced;
use crate::program::expression::Subject;
use crate::program::{AuxiliaryRole, Formulation, Objective, RowRole};
use crate::solver::centre::BarrierWeights;

/// The number of columns and rows of the program over jobs for each of those of the program over classes.
pub(super) fn weights(objective: &Objective, reduced: &Reduced, formulation: &Formulation) -> BarrierWeights {
    let n_jobs = |member: usize| reduced.instance.multiplicity[member];
    let of_combination = |combination: usize| match combination.checked_sub(reduced.instance.n_members()) {
        None => n_jobs(combination),
        Some(pair) => match reduced.pairs[pair] {
            (a, b) if a == b => n_jobs(a) * (n_jobs(a) - 1.0) / 2.0,
            (a, b) => n_jobs(a) * n_jobs(b),
        },
    };
    let of_constraint = |constraint: usize, position: usize| match objective.constraints()[constraint].subject
    {
        Some(Subject::Job) => n_jobs(position),
        Some(Subject::WorkerType) | None => 1.0,
    };
    let columns = formulation.columns.iter().map(|column| of_combination(column.combination));
    let auxiliaries = formulation.auxiliaries.iter().map(|auxiliary| match auxiliary.role {
        AuxiliaryRole::Slack { constraint, position } => of_constraint(constraint, position),
        _ => 1.0,
    });
    let rows = formulation.rows.iter().map(|role| match role {
        RowRole::Time { member } | RowRole::Level { member } => n_jobs(*member),
        RowRole::Constraint { constraint, position } => of_constraint(*constraint, *position),
        RowRole::Capacity { .. } | RowRole::Part { .. } | RowRole::Hold => 1.0,
    });
    BarrierWeights { columns: columns.chain(auxiliaries).collect(), rows: rows.collect() }
}
