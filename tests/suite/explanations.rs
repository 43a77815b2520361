//! Reasons and prices against optima that are decided on again with other numbers.

#![expect(clippy::unwrap_used, reason = "a failure here fails the test")]

use apportion::policy::{Explanation, Limit};

use super::policy_forms::{near, read, value};

fn explain(policy: &str, snapshot: &str) -> Explanation {
    let (mut policy, problem) = read(policy, snapshot);
    let explanation = policy.explain(&problem).unwrap();
    assert_eq!(explanation.prices_unknown, None);
    explanation
}

/// Job `b` sets the level: its cap has a price, that of `a`, whose level would be better, has none.
#[test]
fn prices_of_a_parametric_optimum_are_of_its_level_and_not_of_one_that_was_tried() {
    let rho = "(elapsed + steps_remaining / throughput) / (isolated_elapsed + steps_remaining / isolated_throughput)";
    let policy =
        |cap: &str| format!("minimize: max_over_jobs({rho})\nfor_each_job: [time_on(v100) <= {cap}]\n");
    let two = "cluster: {v100: 4}\njobs:
  - {id: a, steps_remaining: 5000, elapsed: 3600, isolated_elapsed: 2000, scale_factor: 2, throughput: {v100: 1}}
  - {id: b, steps_remaining: 20000, scale_factor: 2, throughput: {v100: 3}}\n";
    let explanation = explain(&policy("0.1"), two);
    let prices: Vec<f64> = explanation.constraints[0].rows.iter().map(|row| row.price.unwrap()).collect();
    near(prices[0], 0.0);
    let moved = (value(&policy("0.100001"), two) - value(&policy("0.099999"), two)) / 2e-6;
    assert!((prices[1] - moved).abs() <= 1e-3 * moved.abs(), "{prices:?}, not {moved}");
    let sets: Vec<bool> = explanation.jobs.iter().map(|job| job.sets_objective).collect();
    assert_eq!(sets, [false, true]);
}

#[test]
fn rows_with_room_are_no_reasons() {
    let two = "cluster: {v100: 1}\njobs: [{id: a, throughput: {v100: 4}}, {id: b, throughput: {v100: 4}}]\n";
    let text = "maximize: sum_over_jobs(min(throughput / isolated_throughput, 0.5))
constraints: [sum_over_jobs(sqrt(throughput / isolated_throughput)) >= 1, sum_over_jobs(throughput / isolated_throughput) >= 0.5]
for_each_job: [time_on(v100) <= 0.9]\n";
    for job in explain(text, two).jobs {
        let is_of_policy = |limit: &Limit| matches!(limit, Limit::Constraint(_));
        assert!(!job.limits.iter().any(is_of_policy) && !job.limits.contains(&Limit::Time), "{job:?}");
    }
}

const NONE_FAST: &str = "cluster: {v100: 0, k80: 2}\njobs:
  - {id: a, throughput: {v100: 4, k80: 1}}\n  - {id: b, throughput: {v100: 4, k80: 1}}
  - {id: c, throughput: {v100: 2, k80: 2}}\n";

#[test]
fn a_type_without_workers_has_no_price() {
    for text in ["sqrt(throughput)", "log(throughput / isolated_throughput)", "throughput"] {
        let explanation = explain(&format!("maximize: sum_over_jobs({text})\n"), NONE_FAST);
        near(explanation.types[0].one_more.unwrap(), 0.0);
        assert!(explanation.types[1].one_more.unwrap() > 0.1, "{text}");
    }
    let filling = explain("maximize: lexicographic_min_over_jobs(throughput)\n", NONE_FAST);
    let levels = filling.jobs.iter().filter_map(|job| job.fixed.as_ref());
    assert!(levels.filter_map(|fixed| fixed.one_more[0]).all(|more| more == 0.0));
}

/// A slack constraint makes the program one with cones, and changes no price.
#[test]
fn a_price_of_throughput_is_in_the_same_unit_beside_cones() {
    let level = "maximize: min_over_jobs(throughput / isolated_throughput)\n";
    let slack = "constraints: [sum_over_jobs(sqrt(throughput / isolated_throughput)) >= 1]\n";
    let of = |text: &str| -> Vec<f64> {
        explain(text, NONE_FAST).jobs.iter().map(|job| job.throughput_price.unwrap()).collect()
    };
    let (alone, beside) = (of(level), of(&format!("{level}{slack}")));
    for (alone, beside) in alone.iter().zip(&beside) {
        near(*beside, *alone);
    }
}

/// The fast jobs of the first level take a faster worker more first; the rest of its time raises the level of the others.
#[test]
fn a_worker_that_raises_an_earlier_level_is_not_priced_for_a_later_one() {
    let jobs = "jobs:\n  - {id: a, throughput: {v100: 1}}\n  - {id: b, throughput: {v100: 1}}
  - {id: c, throughput: {v100: 1.1, k80: 1.1}}\n  - {id: d, throughput: {v100: 1.1, k80: 1.1}}\n";
    let levels = |n: u32| {
        let text = "maximize: lexicographic_min_over_jobs(throughput)\n";
        explain(text, &format!("cluster: {{v100: {n}, k80: 1}}\n{jobs}"))
    };
    let (one, two) = (levels(1), levels(2));
    let [before, after] = [&one, &two].map(|found| found.decision.levels.as_ref().unwrap()[2]);
    assert!(after > before + 0.1, "{before}, {after}");
    let fixed = one.jobs[2].fixed.as_ref().unwrap();
    assert_eq!((fixed.step, fixed.one_more[0]), (2, None));
    near(fixed.one_more[1].unwrap(), 0.55);
}
