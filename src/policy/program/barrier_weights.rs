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
pub(super) fn of_classes(
    objective: &Objective,
    reduced: &Reduced,
    formulation: &Formulation,
) -> BarrierWeights {
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
        AuxiliaryRole::Part { member, .. } => member.map_or(1.0, n_jobs),
        _ => 1.0,
    });
    let rows = formulation.rows.iter().map(|role| match role {
        RowRole::Time { member } | RowRole::Level { member } => n_jobs(*member),
        RowRole::Constraint { constraint, position } => of_constraint(*constraint, *position),
        RowRole::Part { member, .. } => member.map_or(1.0, n_jobs),
        RowRole::Capacity { .. } | RowRole::Hold => 1.0,
    });
    BarrierWeights { columns: columns.chain(auxiliaries).collect(), rows: rows.collect() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::index::{Id, JobId};
    use crate::policy::Policy;
    use crate::policy::program::tests::options_of;
    use crate::policy::program::{ProgramOptions, ProgramPolicy, Refine};
    use crate::problem::{ActiveJob, ProblemBuilder};
    use crate::program::{ObjectiveText, Sense};

    /// The time on the fast workers of each of three jobs with weights that differ by `apart`, beside four others.
    fn times(text: &str, apart: f64) -> Vec<f64> {
        let mut builder = ProblemBuilder::new(Arc::new("fast=2,slow=1".parse().unwrap()));
        let like = [0.0, 1.0, 2.0].map(|at| (2.0 + at * apart, [4.0, 0.0]));
        let others = [(0.12, [3.0, 0.0]), (0.1, [0.0, 1.0]), (0.1, [0.0, 1.0]), (0.1, [0.0, 1.0])];
        for (index, (weight, speeds)) in like.into_iter().chain(others).enumerate() {
            builder.job(ActiveJob { weight, ..ActiveJob::new(JobId::from_index(index)) }, &speeds);
        }
        let options = options_of(&ObjectiveText::new(Sense::Maximize, text));
        let options = ProgramOptions { refine: Refine::Interior, ..options };
        let decision = ProgramPolicy::try_new(options).unwrap().allocate(&builder.build().unwrap()).unwrap();
        let report = decision.solve.as_ref().unwrap();
        assert!(report.fallbacks.is_empty() && report.backend.as_deref() == Some("centre"), "{report:?}");
        decision.allocation.effective_throughput().as_slice()[..3].iter().map(|speed| speed / 4.0).collect()
    }

    #[test]
    fn the_centre_over_classes_is_that_over_jobs() {
        let part = "min_over_jobs(weight * throughput / isolated_throughput)";
        let square = "min_over_jobs(weight * weight * throughput / isolated_throughput)";
        // Its optima divide the fast workers among four jobs, three of which are alike, in any way.
        let of_each = "sum_over_jobs(min(weight * throughput, 100 * weight * isolated_throughput) / (weight * isolated_throughput))";
        for text in [part.to_owned(), format!("{part} + {square}"), of_each.to_owned()] {
            let (alike, unlike) = (times(&text, 0.0), times(&text, 1e-7));
            for (one, other) in alike.iter().zip(&unlike) {
                assert!((one - other).abs() < 1e-4, "{text}: {alike:?}, {unlike:?}");
            }
        }
    }
}
