//! Program-backed policies against brute force and against one another, through the catalog.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::strategy::Strategy;

use super::*;
use crate::index::{Id, JobId, JobIndex};
use crate::policy::{Binding, Decision, Policy, PolicyError};
use crate::problem::{ActiveJob, Problem, ProblemBuilder};
use crate::program::expression::Vocabulary;
use crate::program::{ConstraintText, Objective, ObjectiveText, Route, Sense};
use crate::units::{Seconds, Steps};

fn options(sense: Sense, text: &str) -> ProgramOptions {
    options_of(&ObjectiveText::new(sense, text))
}

/// Options of a policy with this objective over jobs alone, refined.
pub(super) fn options_of(text: &ObjectiveText) -> ProgramOptions {
    ProgramOptions {
        name: "tested".to_owned(),
        objective: Objective::check(text, Vocabulary::default()).unwrap(),
        view: crate::policy::ThroughputView::Measured,
        pairs: false,
        refine: Refine::Utilization,
        hierarchical: false,
        discounted: false,
        fidelity: crate::spec::Fidelity::Corrected,
        backend: None,
        strategy: None,
        time_limit: None,
        interrupt: crate::solver::Interrupt::default(),
    }
}

fn dropping() -> ProgramOptions {
    let mut text = ObjectiveText::new(Sense::Maximize, "sum_over_jobs(throughput)");
    text.for_each_job = vec![ConstraintText::droppable("throughput >= steps_remaining / slo_remaining")];
    options_of(&text)
}

/// The sum that refining maximizes: Σ throughput ÷ throughput at an equal share.
pub(super) fn worth(problem: &Problem, decision: &Decision) -> f64 {
    let got = decision.allocation.effective_throughput();
    let worth = |(index, got): (JobIndex, &f64)| {
        got / crate::policy::view::equal_share(problem, problem.throughput().row(index))
    };
    got.enumerate().map(worth).sum()
}

/// A problem of jobs, (throughputs, scale factor, steps, time to the SLO) each, on fast and slow workers.
fn problem(workers: [u32; 2], jobs: &[([f64; 2], u32, f64, Option<f64>)]) -> Problem {
    let cluster = crate::Cluster::try_new([("fast", workers[0]), ("slow", workers[1])]).unwrap();
    let mut builder = ProblemBuilder::new(Arc::new(cluster));
    for (index, (throughput, scale_factor, steps, slo)) in jobs.iter().enumerate() {
        let job = ActiveJob {
            scale_factor: *scale_factor,
            steps_remaining: Steps::new(*steps),
            slo_remaining: slo.map(Seconds::new),
            ..ActiveJob::new(JobId::from_index(index))
        };
        builder.job(job, throughput);
    }
    builder.build().unwrap()
}

#[test]
fn a_droppable_constraint_that_cannot_be_kept_is_dropped_and_named() {
    // One fast worker: two jobs need it all the time, a third half of it.
    let problem = problem(
        [1, 0],
        &[
            ([1.0, 0.0], 1, 100.0, Some(100.0)),
            ([1.0, 0.0], 1, 50.0, Some(100.0)),
            ([1.0, 0.0], 1, 50.0, Some(100.0)),
        ],
    );
    let mut policy = ProgramPolicy::try_new(dropping()).unwrap();
    let decision = policy.allocate(&problem).unwrap();
    assert_eq!(decision.dropped, [JobIndex::from_index(0)]);
    let got = decision.allocation.effective_throughput();
    assert!(
        (got[JobIndex::from_index(1)] - 0.5).abs() < 1e-6
            && (got[JobIndex::from_index(2)] - 0.5).abs() < 1e-6
    );
}

#[test]
fn a_droppable_constraint_that_takes_all_of_a_job_s_time_is_kept_to_the_last_digits() {
    // As deadlines of as many digits as a file has make it: a little beyond the fastest type's speed.
    for beyond in [1e-10, 8e-10, 2e-9, 8e-9] {
        let (steps, deadline) = (41.75e3, 1e3 * (1.0 - beyond));
        let jobs = [([41.75, 0.0], 1, steps, Some(deadline)), ([1.0, 1.0], 1, 50.0, None)];
        let mut policy = ProgramPolicy::try_new(dropping()).unwrap();
        let decision = policy.allocate(&problem([1, 1], &jobs)).unwrap();
        assert_eq!(decision.dropped, []);
        let objective = decision.objective.unwrap();
        assert!(objective.optimal && (objective.value - 42.75).abs() < 1e-6, "{beyond}: {objective:?}");
        let fallbacks = decision.solve.unwrap().fallbacks;
        assert!(!cfg!(feature = "highs") || fallbacks.is_empty(), "{beyond}: {fallbacks:?}");
    }
}

#[test]
fn constraints_that_no_job_could_keep_alone_take_no_search() {
    // There are workers for all; every other job has less time than its work takes, each by another part.
    let time = |index: u32| if index.is_multiple_of(2) { 50.0 + 3.0 * f64::from(index) } else { 200.0 };
    let jobs: Vec<_> = (0..16).map(|index| ([1.0, 0.5], 1, 100.0, Some(time(index)))).collect();
    let mut policy = ProgramPolicy::try_new(dropping()).unwrap();
    let decision = policy.allocate(&problem([16, 16], &jobs)).unwrap();
    let late: Vec<JobIndex> = (0..16).step_by(2).map(JobIndex::from_index).collect();
    assert_eq!(decision.dropped, late);
    let solves = decision.solve.unwrap().solves;
    assert!(solves <= 3, "one relaxation, the program and the most of its optima, not {solves}");
}

#[test]
fn finish_time_fairness_is_exact_where_a_job_is_nearly_done_and_long_overdue() {
    let text = "max_over_jobs((elapsed + steps_remaining / throughput) / (isolated_elapsed + steps_remaining / isolated_throughput))";
    let overdue =
        |elapsed: f64, isolated: f64, steps: f64, speed: [f64; 2]| (elapsed, isolated, steps, speed);
    let jobs = [
        overdue(18_184.8, 3_484.239, 0.000_254, [0.649, 0.0]),
        overdue(9_151.3, 994.56, 13_373.291, [1.117, 0.0]),
        overdue(19_117.4, 2_923.107, 1_184.949, [0.87, 0.591]),
        overdue(12_700.5, 12_402.147, 0.001_209, [0.62, 1.667]),
    ];
    let cluster = crate::Cluster::try_new([("fast", 1), ("slow", 1)]).unwrap();
    let mut builder = ProblemBuilder::new(Arc::new(cluster));
    for (index, (elapsed, isolated, steps, speed)) in jobs.iter().enumerate() {
        let job = ActiveJob {
            elapsed: Seconds::new(*elapsed),
            isolated_elapsed: Seconds::new(*isolated),
            steps_remaining: Steps::new(*steps),
            ..ActiveJob::new(JobId::from_index(index))
        };
        builder.job(job, speed);
    }
    let mut policy = ProgramPolicy::try_new(options(Sense::Minimize, text)).unwrap();
    let decision = policy.allocate(&builder.build().unwrap()).unwrap();
    let objective = decision.objective.unwrap();
    assert!(objective.optimal && objective.gap_relative <= 1e-8, "{objective:?}");
    assert!(decision.solve.unwrap().fallbacks.is_empty());
}

#[test]
fn a_job_alone_keeps_all_it_has_under_the_discount() {
    let problem = problem([1, 1], &[([2.0, 1.0], 1, 10.0, None)]);
    let text = options(Sense::Maximize, "sum_over_jobs(log(throughput / equal_share_throughput))");
    let mut policy = ProgramPolicy::try_new(ProgramOptions { discounted: true, ..text }).unwrap();
    let decision = policy.allocate(&problem).unwrap();
    assert!((decision.allocation.effective_throughput()[JobIndex::from_index(0)] - 2.0).abs() < 1e-6);
}

#[test]
fn two_like_jobs_on_one_worker_are_discounted_to_a_quarter() {
    // Each has 1/2 of the worker; without the other it would have all: 1/2 · (1/2)/1 = 1/4.
    let problem = problem([1, 0], &[([3.0, 0.0], 1, 10.0, None), ([3.0, 0.0], 1, 10.0, None)]);
    let text = options(Sense::Maximize, "sum_over_jobs(log(throughput / equal_share_throughput))");
    let mut policy = ProgramPolicy::try_new(ProgramOptions { discounted: true, ..text }).unwrap();
    let decision = policy.allocate(&problem).unwrap();
    for job in [0, 1] {
        let share = decision.allocation.effective_throughput()[JobIndex::from_index(job)] / 3.0;
        assert!((share - 0.25).abs() < 1e-6, "{share}");
    }
}

const NASH: &str = "sum_over_jobs(log(throughput / equal_share_throughput))";

/// Throughputs of all jobs under a policy.
fn throughputs(options: ProgramOptions, problem: &Problem) -> Vec<f64> {
    let decision = ProgramPolicy::try_new(options).unwrap().allocate(problem).unwrap();
    decision.allocation.effective_throughput().iter().copied().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// One problem after the other, each without one of the jobs, through the policy without a discount.
    #[test]
    fn discounts_are_those_of_the_problems_without_each_job(
        workers in [1_u32..5, 1_u32..5],
        kinds in prop::collection::vec(([0.0_f64..4.0, 0.5_f64..3.0], 1_u32..3, 1_usize..4), 1..6),
    ) {
        let jobs: Vec<_> = kinds
            .iter()
            .flat_map(|(speeds, size, copies)| {
                // Some cannot run on fast workers, where speeds are below 1.
                let speeds = [if speeds[0] < 1.0 { 0.0 } else { speeds[0] }, speeds[1]];
                std::iter::repeat_n((speeds, (*size).min(workers[1]), 10.0, None), *copies)
            })
            .collect();
        let nash = || options(Sense::Maximize, NASH);
        let kept = throughputs(ProgramOptions { discounted: true, ..nash() }, &problem(workers, &jobs));
        let all = throughputs(nash(), &problem(workers, &jobs));
        for (left_out, kept) in kept.iter().enumerate() {
            let mut rest = jobs.clone();
            rest.remove(left_out);
            let without = if rest.is_empty() { Vec::new() } else { throughputs(nash(), &problem(workers, &rest)) };
            let with = all.iter().enumerate().filter(|(job, _)| *job != left_out);
            let discount: f64 = with.zip(&without).map(|((_, with), without)| with / without).product();
            prop_assert!((kept - all[left_out] * discount).abs() <= 1e-6 * kept, "{left_out}: {kept} {}", all[left_out] * discount);
        }
    }
}

#[test]
fn a_discount_says_that_it_took_the_time() {
    let problem = problem([1, 0], &[([3.0, 0.0], 1, 10.0, None), ([3.0, 0.0], 1, 10.0, None)]);
    let options = ProgramOptions { discounted: true, ..options(Sense::Maximize, NASH) };
    let explanation = ProgramPolicy::try_new(options).unwrap().explain(&problem).unwrap();
    assert!(explanation.reason.ends_with("before the discount"), "{}", explanation.reason);
    for job in &explanation.jobs {
        // Half of the worker, of which half is taken.
        assert_eq!(job.binding, Binding::Discount);
        assert!((job.discount.unwrap() - 0.5).abs() < 1e-6 && (job.time - 0.25).abs() < 1e-6, "{job:?}");
    }
}

/// Levels at 1/2 per step/s: two jobs share the fast worker, at 1/2 step/s each and so at level 1. Slow workers go on:
/// by hand, what stops them there and what one worker more would do.
#[test]
fn later_levels_of_water_filling_name_what_bound_there() {
    let filling = "lexicographic_min_over_jobs(throughput / equal_share_throughput)";
    let explain = |slow: u32, n_slow: usize| {
        let mut jobs = vec![([1.0, 0.0], 1, 10.0, None); 2];
        jobs.extend(vec![([0.0, 4.0], 1, 10.0, None); n_slow]);
        let mut policy = ProgramPolicy::try_new(options(Sense::Maximize, filling)).unwrap();
        policy.explain(&problem([1, slow], &jobs)).unwrap().jobs
    };
    let near = |one: f64, other: f64| (one - other).abs() < 1e-6;
    let near_to = |one: Option<f64>, other: f64| one.is_some_and(|one| near(one, other));
    // Three share two slow workers: at 2/3 of the time, level (4 · 2/3)/(8/3) = 1, below the others' 3/2.
    let shared = explain(2, 3);
    let (first, second) = (shared[2].fixed.as_ref().unwrap(), shared[0].fixed.as_ref().unwrap());
    assert_eq!((first.step, second.step, second.steps), (1, 2, 2));
    assert_eq!((shared[2].binding, shared[0].binding), (Binding::Bottleneck, Binding::Capacity));
    // Σ thr = 4·w_slow, a level of 8/3 apiece: (4/3)/(8/3); then Σ thr = w_fast, 1/3 apiece: (1/2)/(1/3).
    assert!(
        near(first.level, 1.0) && near_to(first.one_more[1], 0.5) && near_to(first.one_more[0], 0.0),
        "{first:?}"
    );
    assert!(near(second.level, 1.5) && near_to(second.one_more[0], 1.5), "{second:?}");
    assert_eq!(second.one_more[1], None, "one slow worker more raises the first level");
    // One job has a slow worker to itself and two are idle; those that share have (1/2)/(1/4) = 2.
    let idle = explain(3, 1);
    let (first, second) = (idle[2].fixed.as_ref().unwrap(), idle[0].fixed.as_ref().unwrap());
    assert_eq!((first.step, second.step), (1, 2));
    // Equal share 4 · 3/4 = 3: level 4/3 with all its time, and as much more per unit of time; no worker would help.
    assert!(near(first.level, 4.0 / 3.0) && near(first.time_price, 4.0 / 3.0), "{first:?}");
    assert!(
        first.one_more.iter().all(|more| near_to(*more, 0.0)) && near(second.level, 2.0),
        "{first:?} {second:?}"
    );
    assert_eq!((idle[2].binding, idle[0].binding), (Binding::Bottleneck, Binding::Capacity));
}

#[test]
fn steps_that_are_not_stated_are_asked_for() {
    let problem = problem([1, 1], &[([2.0, 1.0], 1, 0.0, None)]);
    let makespan = options(Sense::Minimize, "max_over_jobs(steps_remaining / throughput)");
    let error = ProgramPolicy::try_new(makespan).unwrap().allocate(&problem).unwrap_err();
    assert!(
        matches!(&error, PolicyError::Missing { field, job: 0, .. } if field == "steps_remaining"),
        "{error}"
    );
}

/// Whether the droppable constraints of the jobs in `chosen` can all be kept at once, by a program of its own.
fn can_keep(jobs: &[([f64; 2], u32, f64, Option<f64>)], workers: [u32; 2], chosen: u32) -> bool {
    let kept = |index: usize| chosen & (1 << index) != 0;
    let jobs: Vec<_> = jobs
        .iter()
        .enumerate()
        .map(|(index, (throughput, scale_factor, steps, slo))| {
            (*throughput, *scale_factor, *steps, slo.filter(|_| kept(index)))
        })
        .collect();
    let mut hard = ObjectiveText::new(Sense::Maximize, "sum_over_jobs(throughput)");
    hard.for_each_job = vec![ConstraintText::hard("throughput >= steps_remaining / slo_remaining")];
    let objective = Objective::check(&hard, Vocabulary::default()).unwrap();
    let mut policy = ProgramPolicy::try_new(ProgramOptions { objective, ..dropping() }).unwrap();
    policy.allocate(&problem(workers, &jobs)).is_ok()
}

type DrawnJob = ([f64; 2], u32, f64, Option<f64>);

fn jobs(most: usize) -> impl Strategy<Value = Vec<DrawnJob>> {
    let job = (
        [0.5_f64..4.0, 0.2_f64..2.0],
        prop::sample::select(vec![1_u32, 1, 2]),
        10.0_f64..400.0,
        20.0_f64..300.0,
    );
    prop::collection::vec(job.prop_map(|(t, s, r, slo)| (t, s, r, Some(slo))), 1..=most)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn as_few_constraints_as_possible_are_dropped(jobs in jobs(6), fast in 2_u32..4, slow in 0_u32..3) {
        let workers = [fast, slow];
        let decision = ProgramPolicy::try_new(dropping()).unwrap().allocate(&problem(workers, &jobs)).unwrap();
        let most = (0..1_u32 << jobs.len()).filter(|chosen| can_keep(&jobs, workers, *chosen)).map(u32::count_ones).max();
        prop_assert_eq!(jobs.len() - decision.dropped.len(), most.unwrap_or(0) as usize);
    }

    #[test]
    fn classes_lose_nothing(jobs in jobs(5), copies in 1_usize..5) {
        // Copies of a job form a class; weights that differ in the last digit keep them apart.
        let texts = [
            (Sense::Maximize, "min_over_jobs(throughput / (weight * equal_share_throughput))"),
            (Sense::Maximize, "lexicographic_min_over_jobs(throughput / (weight * equal_share_throughput))"),
            (Sense::Maximize, "sum_over_jobs(weight * log(throughput / equal_share_throughput))"),
            (Sense::Minimize, "max_over_jobs(weight * steps_remaining / throughput)"),
            (Sense::Minimize, "max_over_jobs((60[s] + steps_remaining / throughput) / (weight * steps_remaining / isolated_throughput))"),
        ];
        let copied: Vec<DrawnJob> = jobs.iter().flat_map(|job| std::iter::repeat_n(*job, copies)).collect();
        for (sense, text) in texts {
            let build = |apart: bool| {
                let cluster = crate::Cluster::try_new([("fast", 3), ("slow", 4)]).unwrap();
                let mut builder = ProblemBuilder::new(Arc::new(cluster));
                for (index, (throughput, scale_factor, steps, _)) in copied.iter().enumerate() {
                    let weight = if apart { 1.0 + 1e-13 * index as f64 } else { 1.0 };
                    let id = JobId::from_index(index);
                    let steps_remaining = Steps::new(*steps);
                    let job = ActiveJob { scale_factor: *scale_factor, steps_remaining, weight, ..ActiveJob::new(id) };
                    builder.job(job, throughput);
                }
                builder.build().unwrap()
            };
            let mut policy = ProgramPolicy::try_new(options(sense, text)).unwrap();
            let value = |decision: Decision| decision.objective.unwrap().value;
            let together = value(policy.allocate(&build(false)).unwrap());
            let apart = value(policy.allocate(&build(true)).unwrap());
            prop_assert!((together - apart).abs() <= 1e-6 * apart.abs().max(1.0), "{text}: {together} {apart}");
        }
    }

    #[test]
    fn finish_time_fairness_by_levels_is_what_cones_say(jobs in jobs(7), fast in 2_u32..5, slow in 1_u32..5) {
        // A throughput named twice cannot be inverted, so the same ratio goes to second-order cones.
        let ratio = |time: &str| format!("max_over_jobs((90[s] + {time}) / (steps_remaining / isolated_throughput))");
        let by_levels = options(Sense::Minimize, &ratio("steps_remaining / throughput"));
        let twice = "0.5 * steps_remaining / throughput + 0.5 * steps_remaining / throughput";
        let by_cones = options(Sense::Minimize, &ratio(twice));
        prop_assert_eq!(by_levels.objective.route(), Route::Parametric);
        prop_assert_eq!(by_cones.objective.route(), Route::Conic);
        let problem = problem([fast, slow], &jobs);
        let value = |options| {
            let decision = ProgramPolicy::try_new(options).unwrap().allocate(&problem).unwrap();
            decision.objective.unwrap().value
        };
        let (levels, cones) = (value(by_levels), value(by_cones));
        prop_assert!((levels - cones).abs() <= 1e-6 * cones, "{levels} {cones}");
    }
}

/// 800 jobs on three types, no two alike.
fn unlike_jobs() -> Problem {
    let cluster = crate::Cluster::try_new([("fast", 90), ("middle", 120), ("slow", 60)]).unwrap();
    let mut draws = crate::workload::random::SeedStreams::new(5).stream("unlike");
    let mut builder = ProblemBuilder::new(Arc::new(cluster));
    for index in 0..800 {
        let speed = draws.uniform_in(1.0, 20.0);
        let throughput = [speed, speed * draws.uniform_in(0.2, 0.9), speed * draws.uniform_in(0.05, 0.4)];
        let job = ActiveJob {
            scale_factor: 1 + u32::from(draws.uniform() < 0.2),
            weight: draws.uniform_in(0.5, 4.0),
            steps_remaining: Steps::new(draws.uniform_in(1e3, 1e5)),
            ..ActiveJob::new(JobId::from_index(index))
        };
        builder.job(job, &throughput);
    }
    builder.build().unwrap()
}

#[test]
fn large_programs_have_the_value_that_the_chain_finds() {
    let problem = unlike_jobs();
    for (sense, text) in [
        (Sense::Maximize, "min_over_jobs(scale_factor * throughput / (weight * equal_share_throughput))"),
        (Sense::Minimize, "max_over_jobs(steps_remaining / throughput)"),
        (Sense::Maximize, "sum_over_jobs(weight * throughput / equal_share_throughput)"),
    ] {
        let decide = |backend: Option<&str>| {
            let backend = backend.map(str::to_owned);
            let options = ProgramOptions { backend, refine: Refine::None, ..options(sense, text) };
            ProgramPolicy::try_new(options).unwrap().allocate(&problem).unwrap()
        };
        let (ours, other) = (decide(None), decide(Some("simplex")));
        let (report, objective) = (ours.solve.unwrap(), ours.objective.unwrap());
        let interior = report.backend.as_deref() == Some("clarabel");
        assert!(interior || report.strategy == super::Strategy::Singles, "{text}: {report:?}");
        assert!(report.fallbacks.is_empty(), "{text}: {report:?}");
        assert!(objective.optimal, "{text}: {objective:?}");
        let value = other.objective.unwrap().value;
        assert!((objective.value - value).abs() <= 1e-7 * value.abs(), "{text}: {} {value}", objective.value);
    }
}

#[test]
fn what_soft_constraints_cost_is_in_value_and_bound() {
    // The fast worker does 4 steps/s of job 0 or 2 of job 1, which is to have one: that would cost two.
    let problem = problem([1, 0], &[([4.0, 0.0], 1, 100.0, None), ([2.0, 0.0], 1, 100.0, Some(100.0))]);
    for (penalty, expected, kept) in [(0.5, 4.0 - 0.5, 0.0), (5.0, 2.0 + 1.0, 1.0)] {
        let mut text = ObjectiveText::new(Sense::Maximize, "sum_over_jobs(throughput)");
        let deadline = "throughput >= steps_remaining / slo_remaining".to_owned();
        text.for_each_job = vec![ConstraintText::soft(deadline, penalty)];
        let objective = Objective::check(&text, Vocabulary::default()).unwrap();
        let options = ProgramOptions { objective, ..options(Sense::Maximize, "sum_over_jobs(throughput)") };
        let decision = ProgramPolicy::try_new(options).unwrap().allocate(&problem).unwrap();
        let report = decision.objective.as_ref().unwrap();
        assert!(report.optimal && (report.value - expected).abs() < 1e-7, "{report:?}");
        let throughput = decision.allocation.effective_throughput().as_slice()[1];
        assert!((throughput - kept).abs() < 1e-7, "{throughput}");
    }
}

#[test]
fn cones_go_to_the_backend_that_was_asked_for() {
    let problem = problem([1, 1], &[([2.0, 1.0], 1, 10.0, None), ([5.0, 1.0], 1, 10.0, None)]);
    let decide = |backend: Option<&str>| {
        let backend = backend.map(str::to_owned);
        let options =
            ProgramOptions { backend, ..options(Sense::Maximize, "sum_over_jobs(log(throughput))") };
        let decision = ProgramPolicy::try_new(options).unwrap().allocate(&problem).unwrap();
        (decision.solve.unwrap(), decision.objective.unwrap().value)
    };
    let (_, expected) = decide(None);
    // Microlp declines cones.
    let declining = cfg!(feature = "good_lp").then_some(("good_lp-microlp", "separable"));
    for (asked, answering) in declining.into_iter().chain([("clarabel", "clarabel")]) {
        let (report, value) = decide(Some(asked));
        assert_eq!(report.backend.as_deref(), Some(answering));
        assert!((value - expected).abs() < 1e-6, "{asked}: {value} {expected}");
    }
}

#[test]
fn sums_over_unlike_jobs_are_certified_and_agree_with_a_search() {
    type OfTwo<'a> = &'a dyn Fn(f64, f64) -> f64;
    // One type of 12 workers for 60 jobs whose work spreads over eight decades: shares are min(1, f(c/ν)).
    let works: Vec<f64> = (0..60).map(|job| 10.0_f64.powf(f64::from(job * 7 % 60) / 7.5)).collect();
    let jobs: Vec<_> = works.iter().map(|work| ([2.0, 0.0], 1, *work, None)).collect();
    let problem = problem([12, 0], &jobs);
    let inverse = |work: f64, price: f64| (work / price).sqrt().min(1.0);
    let root = |work: f64, price: f64| (work.sqrt() / price).powi(-2).min(1.0);
    let cases: [(Sense, &str, OfTwo<'_>, OfTwo<'_>); 2] = [
        (Sense::Minimize, "sum_over_jobs(steps_remaining / throughput)", &inverse, &|work, x| {
            work / (2.0 * x)
        }),
        (Sense::Maximize, "sum_over_jobs(sqrt(throughput / steps_remaining))", &root, &|work, x| {
            (2.0 * x / work).sqrt()
        }),
    ];
    for (sense, text, share, worth) in cases {
        let mut policy = ProgramPolicy::try_new(options(sense, text)).unwrap();
        let decision = policy.allocate(&problem).unwrap();
        let report = decision.solve.as_ref().unwrap();
        assert!(report.fallbacks.is_empty() && report.backend.as_deref() == Some("separable"), "{report:?}");
        let (mut low, mut high) = (-60.0_f64, 60.0_f64);
        for _ in 0..200 {
            let price = f64::midpoint(low, high);
            // More is asked for as the price of a root's share, which is in the denominator, rises.
            let total: f64 = works.iter().map(|work| share(*work, price.exp())).sum();
            let above = (total > 12.0) == (sense == Sense::Minimize);
            (low, high) = if above { (price, high) } else { (low, price) };
        }
        let price = low.exp();
        let expected: f64 = works.iter().map(|work| worth(*work, share(*work, price))).sum();
        let value = decision.objective.as_ref().unwrap().value;
        assert!((value / expected - 1.0).abs() < 1e-7, "{text}: {value} {expected}");
    }
}
