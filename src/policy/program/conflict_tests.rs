//! Reports of constraints that no allocation keeps, and of those beside which the objective is infinite.

use std::sync::Arc;

use super::tests::options_of;
use super::*;
use crate::index::{Id, JobId, JobIndex};
use crate::policy::{Conflict, Decision, Policy, PolicyError};
use crate::problem::{ActiveJob, Problem, ProblemBuilder};
use crate::program::{ConstraintText, ObjectiveText, Program, Sense};
use crate::solver::{Backend, Feature, Limits, Solution, SolveError, Termination, WarmStart};
use crate::units::{Seconds, Steps};

/// A problem of jobs, (scale factor, steps/s, steps) each, on one worker type.
fn problem(n_workers: u32, jobs: &[(u32, f64, f64)]) -> Problem {
    let mut builder = ProblemBuilder::new(Arc::new(crate::Cluster::try_new([("v100", n_workers)]).unwrap()));
    for (index, (scale_factor, speed, steps)) in jobs.iter().enumerate() {
        let job = ActiveJob::new(JobId::from_index(index));
        let job = ActiveJob {
            scale_factor: *scale_factor,
            steps_remaining: Steps::new(*steps),
            slo_remaining: Some(Seconds::new(1e6)),
            ..job
        };
        builder.job(job, &[*speed]);
    }
    builder.build().unwrap()
}

fn policy(objective: (Sense, &str), of_jobs: &[ConstraintText], of_cluster: &[&str]) -> ProgramPolicy {
    let mut text = ObjectiveText::new(objective.0, objective.1);
    text.for_each_job = of_jobs.to_vec();
    text.constraints = of_cluster.iter().map(|row| ConstraintText::hard(*row)).collect();
    ProgramPolicy::try_new(options_of(&text)).unwrap()
}

fn conflicts(policy: &mut ProgramPolicy, problem: &Problem) -> (Vec<Conflict>, String) {
    match policy.allocate(problem).map(|decision| decision.objective) {
        Err(PolicyError::Conflict { policy, conflicts, size, names }) => {
            let said = PolicyError::Conflict { policy, conflicts: conflicts.clone(), size, names };
            (conflicts, said.to_string())
        }
        other => panic!("{other:?}"),
    }
}

const ROOTS: (Sense, &str) = (Sense::Maximize, "sum_over_jobs(sqrt(throughput))");

#[test]
fn roots_of_jobs_that_may_have_nothing_are_0() {
    let two = problem(2, &[(1, 1.0, 1.0), (1, 2.0, 1.0)]);
    let none = ConstraintText::hard("time_on(v100) <= 0");
    let some = ["sum_over_jobs(workers_on(v100)) <= 0[workers]"];
    for mut policy in [policy(ROOTS, &[none], &[]), policy(ROOTS, &[], &some)] {
        let decision: Decision = policy.allocate(&two).unwrap();
        let report = decision.objective.unwrap();
        assert!(report.optimal && report.value.abs() < 1e-9 && report.bound.abs() < 1e-9, "{report:?}");
        assert!(decision.allocation.effective_throughput().iter().all(|got| *got == 0.0));
        let explanation = policy.explain(&two).unwrap();
        let why = "a constraint forbids all that it counts, and beside cones that has no price";
        assert_eq!(explanation.prices_unknown, Some(why));
    }
    // The other job has as much as without the job that may have nothing.
    let mut policy = policy(ROOTS, &[ConstraintText::hard("time_on(v100) <= 1 - weight")], &[]);
    let mut builder = ProblemBuilder::new(Arc::clone(two.cluster()));
    for (index, (job, weight)) in two.jobs().iter().zip([1.0, 0.5]).enumerate() {
        builder.job(ActiveJob { weight, ..job.clone() }, two.throughput().row(JobIndex::from_index(index)));
    }
    let decision = policy.allocate(&builder.build().unwrap()).unwrap();
    assert!(decision.objective.is_some_and(|report| report.optimal && (report.value - 1.0).abs() < 1e-6));
}

#[test]
fn droppable_constraints_that_all_can_keep_are_named_where_they_make_the_objective_infinite() {
    let two = problem(2, &[(1, 1.0, 1.0), (1, 2.0, 1.0)]);
    let none = "time_on(v100) <= 0";
    let objectives = [
        (Sense::Maximize, "sum_over_jobs(log(throughput))"),
        (Sense::Minimize, "max_over_jobs(1[steps] / throughput)"),
    ];
    for objective in objectives {
        let (hard, said_of_hard) =
            conflicts(&mut policy(objective, &[ConstraintText::hard(none)], &[]), &two);
        let (found, said) = conflicts(&mut policy(objective, &[ConstraintText::droppable(none)], &[]), &two);
        let said_alike =
            said.replace(" (droppable: dropped for as few jobs as possible, whatever the objective)", "");
        assert_eq!(said_of_hard, said_alike);
        assert!(
            said != said_of_hard && said.contains("throughput > 0, without which the objective is infinite")
        );
        let droppable: Vec<bool> = found.iter().map(|conflict| conflict.is_droppable).collect();
        assert_eq!((hard.len(), droppable), (2, vec![true, false]));
    }
    // A constraint that was dropped forbids nothing: the first job has half of its time at least.
    let rows = [ConstraintText::droppable(none), ConstraintText::droppable("throughput >= 0.5[steps/s]")];
    let decision = policy(objectives[0], &rows, &[]).allocate(&two).unwrap();
    assert!(decision.dropped.len() == 2 && decision.objective.is_some_and(|report| report.optimal));
}

#[test]
fn two_rows_are_named_where_a_proof_takes_three() {
    let jobs = [
        (4, 1.103, 2047.0),
        (2, 5.473, 2594.0),
        (2, 6.393, 14150.0),
        (1, 3.729, 4916.0),
        (1, 0.5697, 5655.0),
        (1, 0.8915, 9454.0),
    ];
    let floor = ConstraintText::hard("throughput >= 0.5963 * isolated_throughput");
    let rows = [
        "min_over_jobs(throughput / isolated_throughput) >= 0.5512",
        "sum_over_jobs(workers_on(v100)) == 0.1162 * capacity(v100)",
    ];
    let makespan = (Sense::Minimize, "max_over_jobs(steps_remaining / throughput)");
    let (found, said) = conflicts(&mut policy(makespan, &[floor], &rows), &problem(4, &jobs));
    let named: Vec<&str> = found.iter().map(|conflict| conflict.constraint.as_str()).collect();
    assert_eq!(named, rows, "{said}");
}

/// A backend that claims of every program that it has no optimum.
#[derive(Debug)]
struct Claims(Termination);

impl Backend for Claims {
    fn name(&self) -> &'static str {
        "claims"
    }

    fn supports(&self, _: Feature) -> bool {
        true
    }

    fn solve(&mut self, _: &Program, _: &Limits, _: Option<&WarmStart>) -> Result<Solution, SolveError> {
        Ok(Solution {
            termination: self.0,
            columns: Vec::new(),
            row_duals: Vec::new(),
            cone_duals: Vec::new(),
            objective: f64::NAN,
            iterations: 0,
            basis: None,
        })
    }
}

#[test]
fn what_is_only_claimed_to_be_infeasible_or_unbounded_is_not_called_so() {
    let two = problem(2, &[(1, 1.0, 1.0), (1, 2.0, 1.0)]);
    let sum = (Sense::Maximize, "sum_over_jobs(throughput)");
    let row = ConstraintText::hard("throughput >= 0.5[steps/s]");
    for claim in [Termination::Infeasible, Termination::Unbounded, Termination::InfeasibleOrUnbounded] {
        for rows in [&[][..], std::slice::from_ref(&row)] {
            let mut policy = policy(sum, rows, &[]);
            let chain = || -> Vec<Box<dyn Backend>> { vec![Box::new(Claims(claim))] };
            policy.solve_by(chain(), chain(), Limits::default());
            let error = policy.allocate(&two).unwrap_err();
            let PolicyError::Solve(SolveError::NotOptimal { attempts, termination }) = &error else {
                panic!("{error}")
            };
            assert_eq!(*termination, Termination::Failed);
            assert!(attempts.contains("claims that the program is") && attempts.contains("is not proven"));
        }
    }
    // A proven conflict is reported as one, although the backend claims another termination.
    let none = ConstraintText::hard("throughput >= 5[steps/s]");
    let mut policy = policy(sum, &[none], &[]);
    policy.solve_by(vec![Box::new(Claims(Termination::Unbounded))], Vec::new(), Limits::default());
    assert!(matches!(policy.allocate(&two), Err(PolicyError::Conflict { .. })));
}

#[test]
fn what_an_equation_reaches_is_said_from_either_side() {
    let two = problem(2, &[(1, 1.0, 1.0), (1, 2.0, 1.0)]);
    let sum = (Sense::Maximize, "sum_over_jobs(throughput)");
    let said = |rows: &[&str]| conflicts(&mut policy(sum, &[], rows), &two).1;
    let most = said(&["sum_over_jobs(workers_on(v100)) == 8[workers]"]);
    assert!(
        most.contains("(with no other constraint it reaches 25.0 % of its right side at most)"),
        "{most}"
    );
    let least = said(&["sum_over_jobs(1 + time_on(v100)) == 0.5"]);
    assert!(
        least.contains("(with no other constraint it takes 400.0 % of its right side at least)"),
        "{least}"
    );
    let beside = said(&["sum_over_jobs(time_on(v100)) == 1", "sum_over_jobs(throughput) >= 2.5[steps/s]"]);
    assert!(
        beside.contains("== 1` for the whole cluster (could be kept beside the others with 150.0 %"),
        "{beside}"
    );
}

/// A report says of a hard constraint on every job that it may be droppable if and only if there is a decision where it is
/// droppable: `floors` are such constraints, beside rows of the cluster.
#[test]
fn what_could_be_dropped_is_said_where_that_leaves_a_decision() {
    let two = problem(1, &[(1, 1.0, 1.0), (1, 2.0, 1.0)]);
    let sum = (Sense::Maximize, "sum_over_jobs(throughput)");
    let roots = (Sense::Maximize, "sum_over_jobs(log(throughput))");
    let beyond = "throughput >= 5[steps/s]";
    let floor = "time_on(v100) >= 0.8";
    let none = "time_on(v100) <= 0";
    for (objective, floors, rows, expected) in [
        (sum, vec![beyond], vec![], vec![beyond]),
        (sum, vec![floor], vec![], vec![floor]),
        (sum, vec![floor], vec!["sum_over_jobs(workers_on(v100)) <= 0.1[workers]"], vec![floor]),
        (sum, vec![floor, "time_on(v100) <= 0.5"], vec![], vec![floor]),
        // Another contradiction stays.
        (sum, vec![beyond], vec!["sum_over_jobs(workers_on(v100)) >= 9[workers]"], vec![]),
        (sum, vec!["time_on(v100) == 0.9"], vec![], vec![]),
        // No droppable constraint is dropped where all jobs can keep it.
        (roots, vec![none], vec![], vec![]),
    ] {
        let hard: Vec<ConstraintText> = floors.iter().map(|text| ConstraintText::hard(*text)).collect();
        let (found, said) = conflicts(&mut policy(objective, &hard, &rows), &two);
        for (position, text) in floors.iter().enumerate() {
            let mut changed = hard.clone();
            changed[position] = ConstraintText::droppable(*text);
            let text_of = |rows: &[&str]| {
                let mut all = ObjectiveText::new(objective.0, objective.1);
                all.for_each_job.clone_from(&changed);
                all.constraints = rows.iter().map(|row| ConstraintText::hard(*row)).collect();
                all
            };
            let decided = match crate::program::Objective::check(
                &text_of(&rows),
                crate::program::expression::Vocabulary::default(),
            ) {
                Err(_) => false,
                Ok(_) => policy(objective, &changed, &rows).allocate(&two).is_ok(),
            };
            assert_eq!(decided, expected.contains(text), "{text}: {said}");
            let of = found.iter().filter(|one| one.constraint == *text);
            assert!(of.clone().all(|one| one.can_be_dropped == decided), "{said}");
            assert_eq!(said.contains("(with `droppable: true` it can be dropped)"), !expected.is_empty());
        }
        assert!(
            found.iter().all(|one| !one.can_be_dropped || expected.contains(&&*one.constraint)),
            "{said}"
        );
    }
}
