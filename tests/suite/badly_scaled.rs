//! Decisions on numbers that are many decades apart: they end, and their certificates are of the shares that they give.

#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]

use std::time::Duration;

use apportion::Throughputs;
use apportion::catalog::{Catalog, PolicyOptions};
use apportion::policy::{Decision, Policy, PolicyError, ProgramPolicy};
use apportion::problem::Problem;
use apportion::solver::{SolveError, Termination};
use apportion::spec::{Snapshot, Source};

fn problem(text: &str) -> Problem {
    let text = format!("format: apportion/snapshot-v1\n{text}");
    let snapshot = Snapshot::read(&Source::new("snapshot.yaml", text)).unwrap();
    Problem::from_snapshot(&snapshot, &Throughputs::embedded("osdi20").unwrap()).unwrap()
}

fn program(policy: &str) -> ProgramPolicy {
    Catalog::embedded().program(policy, &PolicyOptions::default()).unwrap().unwrap()
}

/// The decision, whose report says the value of the shares given, and whether that is an optimum.
#[track_caller]
fn decided(policy: &str, problem: &Problem) -> Decision {
    let mut program = program(policy);
    let decision = program.allocate(problem).unwrap();
    let report = decision.objective.clone().unwrap();
    let value = program.value_of(problem, &decision.allocation).unwrap();
    assert!((value - report.value).abs() <= 1e-9 * value.abs(), "{value} is given, {} said", report.value);
    let gap = (value - report.bound).abs() / value.abs().max(report.bound.abs());
    assert_eq!(report.optimal, gap <= 1e-6, "{report:?}");
    decision
}

/// An interior-point method without a limit on its steps goes on for ever on both.
#[test]
fn decisions_end_where_speeds_are_fifteen_decades_apart() {
    let cost = problem(
        "
cluster: {v100: 8, k80: 4}
prices: {v100: 50.0, k80: 3.0e-5}
jobs:
  - {id: 1, throughput: {v100: 0.9, k80: 0.0195}}
  - {id: 3, scale_factor: 4, throughput: {v100: 7.0e+7, k80: 1.0e-9}}
  - {id: 4, throughput: {v100: 0.0003, k80: 7.0}}
  - {id: 5, scale_factor: 3, throughput: {v100: 10.0, k80: 9.0e-6}}
",
    );
    assert!(decided("max_sum_throughput_normalized_by_cost_perf", &cost).objective.unwrap().optimal);
    let levels = problem(
        "
cluster: {v100: 5, p100: 3, k80: 8}
jobs:
  - {id: 2, scale_factor: 3, throughput: {v100: 0.0, p100: 0.1, k80: 3.0e+7}}
  - {id: 6, scale_factor: 8, weight: 5, throughput: {v100: 0.5, p100: 20000.0, k80: 200000.0}}
  - {id: 7, throughput: {v100: 8.0e-8, p100: 700000.0, k80: 2.0e-6}}
  - {id: j8, scale_factor: 3, throughput: {v100: 70000.0, p100: 5.0e-7, k80: 900000.0}}
  - {id: 10, scale_factor: 2, throughput: {v100: 4000.0, p100: 100.0, k80: 3.0e-7}}
  - {id: 11, throughput: {v100: 3000.0, p100: 4.0e+7, k80: 30.0}}
",
    );
    assert!(decided("max_min_fairness_water_filling_perf", &levels).objective.unwrap().optimal);
}

#[test]
fn shares_on_which_the_objective_depends_are_given_however_small() {
    for (one, other) in [(1e13, 1.0), (2e6, 1e-6), (1.0, 1.0), (3e8, 2e-9)] {
        let jobs = format!(
            "
cluster: {{v100: 1}}
jobs:
  - {{id: high, weight: {one:e}, steps_remaining: 4.0e+12, throughput: {{v100: 4}}}}
  - {{id: low, weight: {other:e}, steps_remaining: 1, throughput: {{v100: 4}}}}
"
        );
        let problem = problem(&jobs);
        for policy in
            ["max_min_fairness_perf", "max_min_fairness_water_filling_perf", "min_total_duration_perf"]
        {
            let decision = decided(policy, &problem);
            assert!(decision.objective.unwrap().optimal);
            assert!(decision.allocation.effective_throughput().as_slice().iter().all(|given| *given > 0.0));
        }
    }
}

/// The weight of one job is a million million times the other's, so that what the other gets hardly shows in the sum.
#[test]
fn no_worker_idles_that_a_job_of_small_weight_could_use() {
    let problem = problem(
        "
cluster: {v100: 1, k80: 1}
jobs:
  - {id: high, weight: 1.0e+12, throughput: {v100: 4, k80: 1}}
  - {id: low, weight: 1, throughput: {v100: 4, k80: 1}}
",
    );
    let decision = decided("proportional_fairness", &problem);
    let given = decision.allocation.effective_throughput().as_slice();
    assert!(given.iter().zip([4.0, 1.0]).all(|(given, all)| *given > 0.999_999 * all), "{given:?}");
}

/// A linear program that chooses among optima is solved by no backend where prices and speeds are fifteen decades apart. Idle workers
/// go to jobs all the same.
#[test]
fn no_worker_idles_beside_an_optimum_that_no_program_refines() {
    let problem = problem(
        "
cluster: {v100: 5, p100: 3, k80: 8}
prices: {v100: 1.126e-5, p100: 77.315, k80: 8676.327}
jobs:
  - {id: 0, scale_factor: 2, throughput: {v100: 0.0, p100: 1.21e-2, k80: 2.72e+6}}
  - {id: 1, throughput: {v100: 6.41e+5, p100: 2.14e-8, k80: 0.0}}
  - {id: 2, scale_factor: 3, throughput: {v100: 0.0, p100: 1.16e-1, k80: 2.78e+7}}
  - {id: 3, throughput: {v100: 6.63e+2, p100: 3.06e+0, k80: 1.09e+4}}
  - {id: 4, throughput: {v100: 6.07e-7, p100: 3.31e+2, k80: 1.57e-9}}
  - {id: 5, scale_factor: 2, throughput: {v100: 2.04e+5, p100: 4.60e-1, k80: 8.43e-5}}
  - {id: 6, scale_factor: 8, throughput: {v100: 5.01e-1, p100: 2.39e+4, k80: 2.14e+5}}
  - {id: 7, throughput: {v100: 7.79e-8, p100: 6.62e+5, k80: 1.91e-6}}
  - {id: j8, scale_factor: 3, throughput: {v100: 6.63e+4, p100: 5.17e-7, k80: 8.65e+5}}
  - {id: 9, scale_factor: 2, throughput: {v100: 5.27e-6, p100: 3.27e+1, k80: 5.42e-1}}
  - {id: 10, scale_factor: 2, throughput: {v100: 4.18e+3, p100: 9.84e+1, k80: 2.72e-7}}
  - {id: 11, throughput: {v100: 2.93e+3, p100: 4.37e+7, k80: 2.87e+1}}
",
    );
    let decision = decided("max_sum_throughput_normalized_by_cost_perf", &problem);
    let shares: Vec<&[f64]> = decision.allocation.shares().rows().collect();
    let sizes: Vec<f64> = problem.jobs().iter().map(|job| f64::from(job.scale_factor)).collect();
    for (column, all) in [5.0, 3.0, 8.0].into_iter().enumerate() {
        let used: f64 = shares.iter().zip(&sizes).map(|(row, size)| row[column] * size).sum();
        // Solvers keep rows to a tolerance of their own, and less than this is left.
        if all - used <= 1e-3 * all {
            continue;
        }
        for (job, (row, size)) in shares.iter().zip(&sizes).enumerate() {
            let free = (1.0 - row.iter().sum::<f64>()).min((all - used) / size);
            let speeds = &problem.throughput().as_slice()[3 * job..3 * job + 3];
            let has: f64 = row.iter().zip(speeds).map(|(share, speed)| share * speed).sum();
            assert!(free * speeds[column] <= 1e-3 * has, "job {job} could use {free} on type {column}");
        }
    }
}

/// Two methods of one library call this program unbounded; costs of 60,000 and 1e-7 are in it, and nothing is unbounded.
#[test]
fn a_program_that_backends_call_unbounded_is_solved_by_another() {
    let problem = problem(
        "
cluster: {v100: 1, p100: 1, k80: 3}
prices: {v100: 1, p100: 1, k80: 1}
jobs:
  - {id: a, steps_remaining: 600, slo_remaining: 5741000, throughput: {v100: 1.0e-7, p100: 0.1, k80: 60000}}
  - {id: b, steps_remaining: 19000, throughput: {k80: 0.4}}
",
    );
    let decision = decided("max_sum_throughput_normalized_by_cost_perf_SLOs", &problem);
    let value = decision.objective.unwrap().value;
    assert!((value - 60_000.4).abs() < 1e-6 * value, "{value}");
}

const FLOORS: &str = "
cluster: {v100: 2, k80: 1}
jobs:
  - {id: a, throughput: {v100: 4, k80: 1}}
  - {id: b, throughput: {v100: 4, k80: 2}}
  - {id: c, throughput: {v100: 4}}
";

fn floors(constraint: &str) -> Result<Decision, PolicyError> {
    let text = format!(
        "format: apportion/policy-v1\nname: floors\nsummary: s\nkind: program\nmaximize: min_over_jobs(throughput)\nfor_each_job:\n  - {constraint}\n"
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("floors.yaml");
    std::fs::write(&path, text).unwrap();
    let mut policy = Catalog::embedded().policy(path.to_str().unwrap()).unwrap();
    policy.allocate(&problem(FLOORS))
}

#[test]
fn constraints_whose_numbers_overflow_are_refused_and_limits_of_infinity_are_none() {
    for constraint in [
        "throughput >= (weight + 1)^2000 * isolated_throughput",
        "(weight + 1)^2000 * throughput <= 1[steps/s]",
        "throughput == (weight + 1)^2000 * isolated_throughput",
        "((weight + 1)^2000 - (weight + 1)^2000) * throughput >= 100[steps/s]",
        "throughput >= 1e200 * 1e200 * isolated_throughput",
        "{constraint: throughput >= (weight + 1)^2000 * isolated_throughput, soft: 1}",
    ] {
        let error = floors(constraint).expect_err(constraint).to_string();
        assert!(error.contains("numbers that are less far apart") && error.contains("constraint"), "{error}");
    }
    let error = floors("throughput >= slo_remaining * 1[steps/s] / 1[s]").unwrap_err().to_string();
    assert!(error.contains("needs `slo_remaining` of job 2, expected a deadline that is to come"), "{error}");
    let value = |constraint| floors(constraint).unwrap().objective.unwrap().value;
    let limit = value("throughput <= slo_remaining * 1[steps/s] / 1[s]");
    assert!((limit - value("throughput >= 0[steps/s]")).abs() < 1e-7, "{limit}");
}

#[test]
fn constraints_that_no_allocation_keeps_are_named_and_no_others() {
    // Each job has 4 at most.
    let Err(PolicyError::Conflict { conflicts, .. }) = floors("throughput >= 5[steps/s]") else {
        panic!("infeasible")
    };
    assert_eq!(conflicts.len(), 1);
    assert_eq!(conflicts[0].constraint, "throughput >= 5[steps/s]");
    assert!((conflicts[0].possible.unwrap() - 0.8).abs() < 1e-9, "{conflicts:?}");
    // Any two of them can have 4 at once, not all three.
    let Err(error @ PolicyError::Conflict { .. }) = floors("throughput >= 4[steps/s]") else {
        panic!("infeasible")
    };
    let PolicyError::Conflict { conflicts, .. } = &error else { panic!("as above") };
    let mut jobs: Vec<_> = conflicts.iter().filter_map(|conflict| conflict.job).collect();
    jobs.sort_unstable();
    assert_eq!(jobs, [0, 1, 2]);
    assert!(conflicts.iter().all(|conflict| conflict.possible.is_none()), "{conflicts:?}");
    // The workers that remain if the other two jobs have theirs: a k80 for the first two.
    for (conflict, left) in conflicts.iter().zip([0.25, 0.5, 0.0]) {
        assert!((conflict.relaxed.unwrap() - left).abs() < 1e-9, "{conflict:?}");
    }
    let named = "`throughput >= 4[steps/s]` for the job at position 1 (could be kept beside the others with 50.0 % of its right side) (with `droppable: true` it can be dropped); ";
    assert!(error.to_string().contains(named), "{error}");
    assert!(floors("throughput >= 3[steps/s]").is_ok());
}

#[test]
fn a_decision_whose_time_is_over_says_so() {
    let options = PolicyOptions {
        backend: Some("clarabel".to_owned()),
        time_limit: Some(Duration::from_nanos(1)),
        ..PolicyOptions::default()
    };
    let mut policy = Catalog::embedded().build("max_min_fairness_perf", &options).unwrap();
    let error = policy.allocate(&problem(FLOORS)).unwrap_err();
    let PolicyError::Solve(SolveError::NotOptimal { attempts, termination }) = error else {
        panic!("{error}")
    };
    assert_eq!(termination, Termination::TimeLimit);
    assert!(attempts.contains("the time limit"), "{attempts}");
}

/// A policy blind to speed reports its objective at the throughputs of its view, which are not the measured ones.
#[test]
fn the_objective_of_a_blind_policy_is_known_at_measured_throughputs_too() {
    let problem = problem(
        "
cluster: {a100: 2, t4: 2}
jobs:
  - {id: 1, steps_remaining: 1000, throughput: {a100: 10, t4: 0}}
  - {id: 2, steps_remaining: 1000, throughput: {a100: 10, t4: 5}}
  - {id: 3, steps_remaining: 1000, throughput: {a100: 8, t4: 2}}
",
    );
    let mut blind = program("min_total_duration");
    let decision = blind.allocate(&problem).unwrap();
    let measured = blind.measured_value_of(&problem, &decision.allocation).unwrap().unwrap();
    let longest = decision.allocation.effective_throughput().as_slice().iter().map(|speed| 1000.0 / speed);
    let longest = longest.fold(0.0, f64::max);
    assert!((measured - longest).abs() <= 1e-9 * longest, "{measured} is not {longest}");
    assert!((decision.objective.unwrap().value - 125.0).abs() < 1e-6);
    let mut seeing = program("min_total_duration_perf");
    let decision = seeing.allocate(&problem).unwrap();
    assert_eq!(seeing.measured_value_of(&problem, &decision.allocation).unwrap(), None);
}

/// A solver's answer has a share a little below 0. No job has such a share, and the objective without it is 36 times as large.
#[test]
fn shares_below_zero_are_worth_nothing() {
    let problem = problem(
        "
cluster: {type0: 1, type1: 1, v100: 8, type2: 1}
jobs:
  - {id: 0, scale_factor: 1, steps_remaining: 1.31, throughput: {type0: 6.43e-05, type1: 13900.0, v100: 0.000752, type2: 119000.0}}
  - {id: 1, scale_factor: 1, steps_remaining: 1000000000.0, throughput: {type0: 18.4, type1: 4.86e-06, v100: 0.00113, type2: 1.42e-05}}
  - {id: 2, scale_factor: 6, steps_remaining: 194000.0, throughput: {type0: 1670.0, type1: 48.6, v100: 2.19e-05, type2: 0.00721}}
  - {id: 3, scale_factor: 5, steps_remaining: 0.0937, throughput: {type0: 0.00113, type1: 0.4, v100: 81.2, type2: 0.0}}
  - {id: 4, scale_factor: 1, steps_remaining: 0.0209, throughput: {type0: 135000.0, type1: 0.16, v100: 0.0206, type2: 22.5}}
  - {id: 5, scale_factor: 1, steps_remaining: 22.2, throughput: {type0: 1.23e-06, type1: 0.0, v100: 0.000114, type2: 495.0}}
  - {id: 6, scale_factor: 4, steps_remaining: 4.27, throughput: {type0: 0.00211, type1: 0.0, v100: 1.63e-06, type2: 2.76e-05}}
  - {id: 7, scale_factor: 7, steps_remaining: 66.8, throughput: {type0: 0.0831, type1: 7780.0, v100: 2.08e-06, type2: 2.28e-06}}
  - {id: j8, scale_factor: 2, steps_remaining: 435000000.0, throughput: {type0: 3.57, type1: 19.8, v100: 16.3, type2: 0.000281}}
  - {id: 9, scale_factor: 1, steps_remaining: 385.0, throughput: {type0: 94700.0, type1: 2.42e-05, v100: 0.0, type2: 0.000821}}
  - {id: 10, scale_factor: 7, steps_remaining: 2960000000.0, throughput: {type0: 0.0, type1: 248000.0, v100: 363.0, type2: 2.39e-06}}
",
    );
    for backend in ["highs-simplex", "good_lp-microlp", "clarabel"] {
        let options = PolicyOptions { backend: Some(backend.to_owned()), ..PolicyOptions::default() };
        // A build may have none of this name.
        let Ok(Some(mut policy)) = Catalog::embedded().program("min_total_duration_perf", &options) else {
            continue;
        };
        let decision = policy.allocate(&problem).unwrap();
        let value = policy.value_of(&problem, &decision.allocation).unwrap();
        let said = decision.objective.unwrap().value;
        assert!((value - said).abs() <= 1e-9 * value, "{backend}: {value} is given, {said} said");
    }
}

/// Throughputs that deadlines require may be less than solvers tell from 0: a job without its own is reported as dropped.
#[test]
fn a_deadline_that_is_not_kept_is_dropped() {
    let problem = problem(
        "
cluster: {v100: 1}
prices: {v100: 2070}
jobs:
  - {id: 0, steps_remaining: 2.72e+8, slo_remaining: 192000, throughput: {v100: 42200}}
  - {id: 1, steps_remaining: 5320, slo_remaining: 17200, throughput: {v100: 1.49}}
  - {id: 2, steps_remaining: 0.00161, throughput: {v100: 2.35e+7}}
  - {id: 7, steps_remaining: 0.0187, slo_remaining: 4240000, throughput: {v100: 99.4}}
  - {id: 10, steps_remaining: 4.54e+10, slo_remaining: 263000, throughput: {v100: 2640000}}
",
    );
    let decision = decided("max_sum_throughput_normalized_by_cost_perf_SLOs", &problem);
    for (job, active) in problem.jobs().enumerate() {
        let Some(left) = active.slo_remaining else { continue };
        let (asked, given) =
            (active.steps_remaining.get() / left.get(), decision.allocation.effective_throughput()[job]);
        let is_dropped = decision.dropped.contains(&job);
        assert!(is_dropped || given >= asked * (1.0 - 1e-6), "{given} of {asked}: {:?}", decision.dropped);
    }
}
