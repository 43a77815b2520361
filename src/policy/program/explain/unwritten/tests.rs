//! Dual values from prices of members, compared with those of written programs and with optima of more workers.

use std::sync::Arc;

use crate::index::{Id, JobId};
use crate::policy::program::explain::Explained;
use crate::policy::program::packed_tests::{assorted, objectives, policy, problem_of};
use crate::policy::program::tests::options_of;
use crate::policy::program::{ProgramOptions, ProgramPolicy, Strategy};
use crate::policy::{Explanation, Policy};
use crate::problem::{ActiveJob, Problem, ProblemBuilder};
use crate::program::{ObjectiveText, Sense};
use crate::units::{Seconds, Steps};

/// Twenty jobs on three types, no two alike.
fn unlike(workers: [u32; 3]) -> Problem {
    let [a, b, c] = workers;
    let cluster = crate::Cluster::try_new([("a", a), ("b", b), ("c", c)]).unwrap();
    let mut builder = ProblemBuilder::new(Arc::new(cluster));
    // multiples of the golden ratio are spread evenly
    let mut at = 0.0;
    let mut draw = || {
        at += 0.618_033_988_749_894_9_f64;
        at.fract()
    };
    for index in 0..20 {
        let job = ActiveJob {
            scale_factor: [1, 1, 2][index % 3],
            weight: 1.0 + draw(),
            steps_remaining: Steps::new(1e5 * (0.1 + draw())),
            elapsed: Seconds::new(1e4 * draw()),
            isolated_elapsed: Seconds::new(5e3 * draw()),
            ..ActiveJob::new(JobId::from_index(index))
        };
        let speed = 1.0 + 9.0 * draw();
        builder.job(job, &[speed, speed * (0.2 + 0.7 * draw()), speed * draw().powi(2)]);
    }
    builder.build().unwrap()
}

/// The decision of a policy, explained by the prices of members that proved it: the program over members is not solved.
#[track_caller]
fn explained(policy: &mut ProgramPolicy, problem: &Problem, strategy: Strategy) -> Explanation {
    let state = policy.state();
    let Explained { solved, decision, .. } = policy.solve_to_explain(problem).unwrap();
    assert!(solved.prices.is_some() && solved.answer.is_some(), "{strategy}: {:?}", decision.solve);
    assert_eq!(decision.solve.unwrap().strategy, strategy);
    policy.restore(&state).unwrap();
    let explanation = policy.explain(problem).unwrap();
    assert_eq!(explanation.prices_unknown, None);
    explanation
}

fn by(strategy: Strategy, options: &ProgramOptions) -> ProgramPolicy {
    ProgramPolicy::try_new(ProgramOptions { strategy: Some(strategy), ..options.clone() }).unwrap()
}

#[track_caller]
fn near(one: Option<f64>, other: Option<f64>) {
    let (one, other) = (one.unwrap_or(0.0), other.unwrap_or(0.0));
    assert!((one - other).abs() <= 1e-5 * (1e-2 + other.abs()), "{one}, not {other}");
}

#[test]
fn prices_of_a_search_are_those_of_the_program_that_it_stands_for() {
    let problem = unlike([3, 4, 6]);
    for (sense, text) in [
        (Sense::Maximize, "min_over_jobs(scale_factor * throughput / (weight * equal_share_throughput))"),
        (Sense::Minimize, "max_over_jobs(steps_remaining / throughput)"),
        (
            Sense::Minimize,
            "max_over_jobs((elapsed + steps_remaining / throughput) / (isolated_elapsed + steps_remaining / isolated_throughput))",
        ),
    ] {
        let options = options_of(&ObjectiveText::new(sense, text));
        let one = explained(&mut by(Strategy::Singles, &options), &problem, Strategy::Singles);
        let other = by(Strategy::Written, &options).explain(&problem).unwrap();
        for (one, other) in one.types.iter().zip(&other.types) {
            near(one.one_more, other.one_more);
        }
        for (one, other) in one.jobs.iter().zip(&other.jobs) {
            near(one.time_price, other.time_price);
            near(one.throughput_price, other.throughput_price);
        }
    }
}

/// Whole workers for whole jobs leave several optimal prices: a worker more gains no more than any of them says.
#[test]
fn prices_of_a_sum_bound_what_a_worker_more_gains() {
    let options = options_of(&ObjectiveText::new(Sense::Maximize, "sum_over_jobs(weight * throughput)"));
    let explanation = explained(&mut by(Strategy::Singles, &options), &unlike([3, 4, 6]), Strategy::Singles);
    let value = explanation.objective().unwrap().value;
    for (kind, workers) in [[4, 4, 6], [3, 5, 6], [3, 4, 7]].into_iter().enumerate() {
        let more = by(Strategy::Singles, &options).allocate(&unlike(workers)).unwrap();
        let gained = more.objective.unwrap().value - value;
        let price = explanation.types[kind].one_more.unwrap();
        assert!(gained <= price + 1e-6 * value, "gained {gained}, priced {price}");
    }
}

/// A worker more gains no more than its price says, and by these prices all rows together are worth the optimum.
#[test]
fn prices_of_kinds_are_dual_values_of_the_program_over_members() {
    let jobs = assorted(24, 7);
    let workers = 3;
    let problem = problem_of(&jobs, workers, 3);
    for (sense, text) in [
        (Sense::Maximize, "min_over_jobs(scale_factor * throughput / weight)"),
        (objectives()[2].0, objectives()[2].1),
        (Sense::Maximize, "sum_over_jobs(throughput)"),
    ] {
        let options = policy((sense, text, false), true).options().clone();
        let explanation = explained(&mut by(Strategy::Kinds, &options), &problem, Strategy::Kinds);
        let value = explanation.objective().unwrap().value;
        let more = by(Strategy::Kinds, &options).allocate(&problem_of(&jobs, workers + 1, 3)).unwrap();
        let gained = (more.objective.unwrap().value - value).abs();
        let one_more: f64 = explanation.types.iter().map(|kind| kind.one_more.unwrap().abs()).sum();
        assert!(gained <= one_more + 1e-6 * value.abs(), "{text}: gained {gained}, priced {one_more}");
        let time: f64 = explanation.jobs.iter().map(|job| job.time_price.unwrap().abs()).sum();
        let worth = one_more * f64::from(workers) + time;
        assert!((worth - value.abs()).abs() <= 1e-6 * worth, "{text}: {worth}, not {value}");
    }
}
