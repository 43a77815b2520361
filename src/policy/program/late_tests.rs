//! Tests of decisions whose time is over: of weighted entities, and of policies with a discount.

use std::sync::Arc;
use std::time::Duration;

use crate::index::{EntityId, Id, JobId, JobIndex};
use crate::policy::Policy;
use crate::policy::decision::Decision;
use crate::policy::program::tests::options_of;
use crate::policy::program::{ProgramOptions, ProgramPolicy};
use crate::policy::view::ThroughputView;
use crate::problem::{ActiveJob, Entity, InnerRule, Problem, ProblemBuilder};
use crate::program::{ConstraintText, ObjectiveText, Sense};
use crate::solver::{Limits, registry};
use crate::units::Seconds;

const LEVELS: &str =
    "lexicographic_min_over_jobs(scale_factor * throughput / (weight * equal_share_throughput))";
const NASH: &str = "sum_over_jobs(log(throughput / equal_share_throughput))";
const SPEEDS: [[f64; 2]; 7] =
    [[4.0, 1.0], [3.0, 2.0], [2.0, 2.0], [5.0, 1.0], [4.0, 3.0], [1.0, 1.0], [6.0, 2.0]];
/// Weight, owner and size of each job. The first entity serves in order of arrival, the second fairly.
const JOBS: [(f64, Option<usize>, u32); 7] = [
    (1.0, Some(0), 1),
    (2.0, Some(0), 1),
    (1.0, Some(1), 1),
    (3.0, Some(1), 2),
    (0.5, Some(1), 1),
    (2.0, None, 1),
    (1.5, None, 1),
];
/// The weights that fall to them at first: all of the first entity's 2 to its job that has waited longest; 6 to three jobs
/// in proportion to 1, 3 and 0.5; their own to the others.
const GRANTED: [f64; 7] = [0.0, 2.0, 6.0 / 4.5, 18.0 / 4.5, 3.0 / 4.5, 2.0, 1.5];

fn problem() -> Problem {
    let mut builder = ProblemBuilder::new(Arc::new("fast=2,slow=3".parse().unwrap()));
    for (name, weight, inner) in [("red", 2.0, InnerRule::Fifo), ("blue", 6.0, InnerRule::Fairness)] {
        builder.entity(Entity { name: name.to_owned(), weight, inner, parent: None });
    }
    for (position, (weight, owner, scale_factor)) in JOBS.into_iter().enumerate() {
        let job = ActiveJob {
            weight,
            scale_factor,
            entity: owner.map(EntityId::from_index),
            elapsed: Seconds::new(position as f64),
            ..ActiveJob::new(JobId::from_index(position))
        };
        builder.job(job, &SPEEDS[position]);
    }
    builder.build().unwrap()
}

fn policy(text: &ObjectiveText, options: impl FnOnce(&mut ProgramOptions)) -> ProgramPolicy {
    let mut of = options_of(text);
    options(&mut of);
    ProgramPolicy::try_new(of).unwrap()
}

/// The level of the shares of a decision, by hand: jobs to which no weight falls at first do not count.
fn level(decision: &Decision, speeds: impl Fn(usize, usize) -> f64) -> f64 {
    let allocation = &decision.allocation;
    let mut throughput = [0.0; 7];
    for (id, combination) in allocation.combinations().enumerate() {
        let job = combination.first().index();
        for (kind, share) in allocation.shares().row(id).iter().enumerate() {
            throughput[job] += share * speeds(job, kind);
        }
    }
    let equal_share = |job: usize| (2.0 * speeds(job, 0) + 3.0 * speeds(job, 1)) / 5.0;
    let of = |job: usize| f64::from(JOBS[job].2) * throughput[job] / (GRANTED[job] * equal_share(job));
    (0..7).filter(|job| GRANTED[*job] > 0.0).map(of).fold(f64::INFINITY, f64::min)
}

#[test]
fn late_entities_have_shares_their_true_level_and_a_bound_on_it() {
    let problem = problem();
    let free = ObjectiveText::new(Sense::Maximize, LEVELS);
    let row = ConstraintText::hard("time_on(fast) <= 0.9");
    let limited = ObjectiveText { for_each_job: vec![row], ..free.clone() };
    for text in [free, limited] {
        let hierarchical = |time_limit| {
            policy(&text, |options| (options.hierarchical, options.time_limit) = (true, time_limit))
        };
        let best = hierarchical(None).allocate(&problem).unwrap().objective.unwrap();
        let limit = Some(Duration::from_nanos(1));
        assert!(hierarchical(limit).allocate(&problem).is_err());
        let mut late = hierarchical(limit).best_so_far();
        let explained = late.explain(&problem).unwrap();
        assert!(explained.prices_unknown.is_some());
        for decision in [late.allocate(&problem).unwrap(), explained.decision] {
            let solve = decision.solve.as_ref().unwrap();
            let found = decision.objective.as_ref().unwrap();
            assert!(solve.out_of_time && !found.optimal && found.violation_max < 1e-6, "{found:?}");
            let by_hand = level(&decision, |job, kind| SPEEDS[job][kind]);
            assert!((found.value - by_hand).abs() <= 1e-9 * by_hand, "{found:?} {by_hand}");
            // Shares of the 5 workers by weight, of which 11.5 fall to the jobs, have this level; of isolated ones it is 0.1.
            let by_weight = 5.0 / 11.5 - 1e-9;
            let between = by_weight <= found.value && found.value <= best.value && best.value <= found.bound;
            assert!(between && found.bound < f64::INFINITY, "{found:?} {best:?}");
        }
    }
}

#[test]
fn late_entities_have_the_level_that_was_raised_and_its_bound() {
    let problem = problem();
    let text = ObjectiveText::new(Sense::Maximize, LEVELS);
    let hierarchical = |strategy| {
        let of = |options: &mut ProgramOptions| (options.hierarchical, options.strategy) = (true, strategy);
        policy(&text, of)
    };
    for strategy in [None, crate::policy::program::Strategy::named("written")] {
        let mut policy = hierarchical(strategy).best_so_far();
        let best = policy.allocate(&problem).unwrap().objective.unwrap();
        let level = policy.solver.found_so_far.level_of_entities().unwrap();
        assert!(level.is_raised() && (level.bound() - best.bound).abs() < 1e-12, "{level:?} {best:?}");
    }
}

#[test]
fn the_value_of_entities_at_measured_throughputs_counts_the_weights_that_fall_to_jobs() {
    let problem = problem();
    let text = ObjectiveText::new(Sense::Maximize, LEVELS);
    let mut blind = policy(&text, |options| {
        (options.hierarchical, options.view) = (true, ThroughputView::Unit { everywhere: false });
    });
    let decision = blind.allocate(&problem).unwrap();
    let measured = blind.measured_value_of(&problem, &decision.allocation).unwrap().unwrap();
    let by_hand = level(&decision, |job, kind| SPEEDS[job][kind]);
    assert!((measured - by_hand).abs() <= 1e-9 * by_hand, "{measured} {by_hand}");
    let seen = blind.value_of(&problem, &decision.allocation).unwrap();
    let by_hand = level(&decision, |_, _| 1.0);
    assert!((seen - by_hand).abs() <= 1e-9 * by_hand, "{seen} {by_hand}");
}

/// The sum of logarithms at the shares of a decision, by hand.
fn welfare(decision: &Decision) -> f64 {
    let of = |job: usize| {
        let equal_share = (2.0 * SPEEDS[job][0] + 3.0 * SPEEDS[job][1]) / 5.0;
        (decision.allocation.effective_throughput()[JobIndex::from_index(job)] / equal_share).ln()
    };
    (0..7).map(of).sum()
}

#[test]
fn late_discounts_are_none_and_the_value_is_that_of_the_shares() {
    let problem = problem();
    let text = ObjectiveText::new(Sense::Maximize, NASH);
    let discounted =
        |time_limit| policy(&text, |options| (options.discounted, options.time_limit) = (true, time_limit));
    let best = discounted(None).allocate(&problem).unwrap();
    assert!(!best.solve.as_ref().unwrap().undiscounted);
    let best = best.objective.unwrap();
    let limit = Some(Duration::from_nanos(1));
    assert!(discounted(limit).allocate(&problem).is_err());
    let mut late = discounted(limit).best_so_far();
    let explained = late.explain(&problem).unwrap();
    assert!(
        !explained.reason.contains("discount") && explained.jobs.iter().all(|job| job.discount.is_none())
    );
    for decision in [late.allocate(&problem).unwrap(), explained.decision] {
        let (found, solve) = (decision.objective.as_ref().unwrap(), decision.solve.as_ref().unwrap());
        assert!(solve.out_of_time && solve.undiscounted && !found.optimal, "{found:?}");
        let by_hand = welfare(&decision);
        assert!((found.value - by_hand).abs() <= 1e-9 * by_hand.abs().max(1.0), "{found:?} {by_hand}");
        assert!(found.value <= best.value && best.value <= found.bound, "{found:?} {best:?}");
    }
}

#[test]
fn discounts_that_come_too_late_leave_the_optimum_before_them() {
    let problem = problem();
    let text = ObjectiveText::new(Sense::Maximize, NASH);
    let mut policy = policy(&text, |_| {}).best_so_far();
    let mut decided = policy.solve(&problem).unwrap();
    let before = decided.decision.clone();
    policy.options.discounted = true;
    let conic = || vec![registry::backend("clarabel").unwrap()];
    policy.solve_by(conic(), conic(), Limits { time: Some(Duration::from_nanos(1)), ..Limits::default() });
    policy.discount_in_time(&problem, &mut decided).unwrap();
    let kept = decided.decision;
    assert!(decided.optimum.discounts.is_empty() && kept.allocation == before.allocation);
    let report = policy.solver.report().clone();
    assert!(report.out_of_time && report.undiscounted, "{report:?}");
    assert!((kept.objective.unwrap().value - welfare(&before)).abs() < 1e-9);
}
