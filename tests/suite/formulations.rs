//! Objectives, from their text to a certified optimum: hand-solved cases, bisection and random instances.

#![expect(clippy::unwrap_used, reason = "a test fails where it unwraps")]

use std::collections::BTreeMap;

use apportion::program::expression::Vocabulary;
use apportion::program::{
    BoundObjective, ConstraintText, Formulation, Instance, LevelCoefficients, LevelForm, Objective,
    ObjectiveText, Point, Route, Sense,
};
use apportion::solver::{Limits, Solution, registry, solve_certified};
use proptest::prelude::*;

/// Jobs alone: one member per row of throughputs, `n` jobs each.
fn instance(capacity: &[f64], throughput: &[&[f64]], multiplicity: &[f64]) -> Instance {
    let total: f64 = capacity.iter().sum();
    let n: f64 = multiplicity.iter().sum();
    let equal = throughput.iter().map(|row| row.iter().zip(capacity).map(|(t, w)| t * w / total).sum());
    let isolated = throughput.iter().map(|row| {
        let row_sum: f64 = capacity.iter().map(|w| w / n).sum::<f64>().max(1.0);
        row.iter().zip(capacity).map(|(t, w)| t * w / n / row_sum).sum()
    });
    let ones = vec![1.0; multiplicity.len()];
    let mut data = BTreeMap::new();
    for (name, column) in [("weight", &ones), ("scale_factor", &ones), ("elapsed", &vec![0.0; ones.len()])] {
        data.insert(name.to_owned(), column.clone());
    }
    data.insert("isolated_elapsed".to_owned(), vec![0.0; ones.len()]);
    data.insert("equal_share_throughput".to_owned(), equal.collect());
    data.insert("isolated_throughput".to_owned(), isolated.collect());
    Instance {
        capacity: capacity.to_vec(),
        multiplicity: multiplicity.to_vec(),
        data,
        type_data: BTreeMap::new(),
        worker_types: (0..capacity.len()).map(|j| format!("t{j}")).collect(),
        scale_factor: ones,
        throughput: throughput.concat(),
        pairs: Vec::new(),
        dropped: Vec::new(),
        eased: 0.0,
        oversized: false,
    }
}

fn objective(sense: Sense, text: &str) -> Objective {
    Objective::check(&ObjectiveText::new(sense, text), Vocabulary::default())
        .unwrap_or_else(|e| panic!("{text}: {e}"))
}

struct Optimum {
    formulation: Formulation,
    solution: Solution,
    point: Point,
    value: f64,
    bound: f64,
}

fn solve(bound: &BoundObjective<'_>, formulation: Formulation) -> Optimum {
    let mut chain = registry::default_chain(&formulation.program);
    let certified = solve_certified(&formulation.program, &mut chain, &Limits::default(), None)
        .unwrap_or_else(|error| panic!("{error}: {:?}", bound.objective().expression().to_string()));
    let point = bound.point(formulation.class_time(&certified.solution.columns));
    let value = bound.value(&point);
    let bound = formulation.value(certified.certificate.bound);
    Optimum { formulation, solution: certified.solution, point, value, bound }
}

fn optimum(objective: &Objective, instance: &Instance) -> Optimum {
    let bound = objective.bind(instance).unwrap();
    solve(&bound, bound.formulate())
}

fn close(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-6 * one.abs().max(other.abs()).max(1e-9)
}

#[track_caller]
fn assert_close(one: f64, other: f64) {
    assert!(close(one, other), "{one} against {other}");
}

/// Two jobs, one worker of each of two types. Job 0 runs at 4 and 1, job 1 at 2 and 1; equal shares are 2.5 and
/// 1.5. With a share x of the fast worker (and 1 − x of the slow one) for job 1 and the rest for job 0, they run
/// at 4 − 3x and 1 + x.
#[test]
fn max_min_of_two_jobs_is_what_one_works_out_by_hand() {
    let instance = instance(&[1.0, 1.0], &[&[4.0, 1.0], &[2.0, 1.0]], &[1.0, 1.0]);
    let text = "min_over_jobs(scale_factor * throughput / (weight * equal_share_throughput))";
    let optimum = optimum(&objective(Sense::Maximize, text), &instance);
    // (4 − 3x)/2.5 = (1 + x)/1.5  ⇔  6 − 4.5x = 2.5 + 2.5x  ⇔  x = 1/2: level (1 + 1/2)/1.5 = 1.
    assert_close(optimum.value, 1.0);
    assert_close(optimum.bound, 1.0);
    assert_close(optimum.point.throughput()[0], 2.5);
}

#[test]
fn makespan_of_two_jobs_is_what_one_works_out_by_hand() {
    let mut instance = instance(&[1.0, 1.0], &[&[4.0, 1.0], &[2.0, 1.0]], &[1.0, 1.0]);
    instance.data.insert("steps_remaining".to_owned(), vec![100.0, 60.0]);
    let objective = objective(Sense::Minimize, "max_over_jobs(steps_remaining / throughput)");
    assert_eq!(objective.route(), Route::Linear);
    let optimum = optimum(&objective, &instance);
    // (4 − 3x)/100 = (1 + x)/60  ⇔  240 − 180x = 100 + 100x  ⇔  x = 1/2: 100/2.5 = 40 s.
    assert_close(optimum.value, 40.0);
    assert_close(optimum.bound, 40.0);
}

#[test]
fn total_throughput_gives_each_worker_to_whom_it_serves_best() {
    let instance = instance(&[1.0, 1.0], &[&[4.0, 1.0], &[2.0, 1.0]], &[1.0, 1.0]);
    let optimum = optimum(&objective(Sense::Maximize, "sum_over_jobs(throughput)"), &instance);
    assert_close(optimum.value, 5.0);
}

#[test]
fn a_class_is_worth_as_many_jobs() {
    let single = instance(&[2.0, 3.0], &[&[4.0, 1.0], &[4.0, 1.0], &[4.0, 1.0], &[2.0, 1.0]], &[1.0; 4]);
    let grouped = instance(&[2.0, 3.0], &[&[4.0, 1.0], &[2.0, 1.0]], &[3.0, 1.0]);
    for (sense, text) in [
        (Sense::Maximize, "min_over_jobs(throughput / equal_share_throughput)"),
        (Sense::Maximize, "sum_over_jobs(throughput)"),
        (Sense::Maximize, "sum_over_jobs(weight * log(throughput))"),
        (Sense::Maximize, "sum_over_jobs(sqrt(throughput))"),
        (Sense::Minimize, "sum_over_jobs(1 / throughput)"),
    ] {
        let objective = objective(sense, text);
        let (one, other) = (optimum(&objective, &single), optimum(&objective, &grouped));
        assert_close(one.value, other.value);
        assert_close(one.bound, one.value);
        assert_close(other.bound, other.value);
    }
}

/// One type, w workers, n jobs of one speed: everyone gets w/n of the time.
#[test]
fn proportional_fairness_divides_one_type_by_weight() {
    let mut instance = instance(&[1.0], &[&[10.0], &[3.0]], &[1.0, 1.0]);
    instance.data.insert("weight".to_owned(), vec![3.0, 1.0]);
    let objective = objective(Sense::Maximize, "sum_over_jobs(weight * log(throughput))");
    assert_eq!(objective.route(), Route::Conic);
    let optimum = optimum(&objective, &instance);
    // Where the objective is flat to 1e-9 the point is known to the root of that.
    assert!((optimum.point.throughput()[0] - 7.5).abs() < 1e-3, "{:?}", optimum.point);
    assert!((optimum.point.throughput()[1] - 0.75).abs() < 1e-3, "{:?}", optimum.point);
    assert_close(optimum.value, 3.0 * 7.5_f64.ln() + 0.75_f64.ln());
    assert_close(optimum.bound, optimum.value);
}

/// Bisection over levels, each tried by the program at that level.
fn bisect(bound: &BoundObjective<'_>, sense: Sense) -> f64 {
    let range = bound.level_range();
    let (mut low, mut high) = (range.lower, range.upper);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        let reached = solve(bound, bound.at_level(middle));
        let lambda = reached.formulation.program.objective(&reached.solution.columns);
        let feasible = lambda >= 1.0;
        if feasible == (sense == Sense::Maximize) { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[test]
fn one_program_finds_the_makespan_that_bisection_finds() {
    let mut instance = instance(
        &[2.0, 1.0, 3.0],
        &[&[4.0, 1.0, 0.5], &[2.0, 1.0, 0.0], &[7.0, 0.0, 3.0], &[1.0, 1.0, 1.0]],
        &[2.0, 1.0, 1.0, 3.0],
    );
    instance.data.insert("steps_remaining".to_owned(), vec![1e5, 60.0, 5e4, 2e4]);
    let objective = objective(Sense::Minimize, "max_over_jobs(steps_remaining / throughput)");
    let optimum = optimum(&objective, &instance);
    let bisected = bisect(&objective.bind(&instance).unwrap(), Sense::Minimize);
    assert_close(optimum.value, bisected);
    assert_close(optimum.bound, bisected);
}

#[test]
fn finish_time_fairness_is_parametric_and_bisection_brackets_it() {
    let mut instance = instance(&[1.0, 1.0], &[&[4.0, 1.0], &[2.0, 1.0]], &[1.0, 1.0]);
    instance.data.insert("steps_remaining".to_owned(), vec![100.0, 60.0]);
    instance.data.insert("elapsed".to_owned(), vec![10.0, 0.0]);
    instance.data.insert("isolated_elapsed".to_owned(), vec![5.0, 0.0]);
    let text = "max_over_jobs((elapsed + steps_remaining / throughput) / (isolated_elapsed + steps_remaining / isolated_throughput))";
    let objective = objective(Sense::Minimize, text);
    assert_eq!(objective.route(), Route::Parametric);
    let bound = objective.bind(&instance).unwrap();
    let level = bisect(&bound, Sense::Minimize);
    // D = 5 + 100/2.5 = 45 and 60/1.5 = 40. Thr needed: 100/(45ρ − 10) + 60/(40ρ) along the frontier
    // thr0 = 4 − 3x, thr1 = 1 + x, that is thr0 + 3·thr1 = 7.
    let on_frontier = |rho: f64| 100.0 / (45.0 * rho - 10.0) + 3.0 * 60.0 / (40.0 * rho);
    assert_close(on_frontier(level), 7.0);
}

#[test]
fn cost_counts_each_type_by_its_price() {
    let mut instance = instance(&[1.0, 1.0], &[&[4.0, 1.0], &[2.0, 1.0]], &[1.0, 1.0]);
    instance.type_data.insert("price".to_owned(), vec![8.0, 0.5]);
    let text = "sum_over_jobs(sum_over_worker_types(throughput_on(type) / price(type)))";
    let optimum = optimum(&objective(Sense::Maximize, text), &instance);
    assert_close(optimum.value, 4.0 / 8.0 + 1.0 / 0.5);
}

#[test]
fn an_slo_asks_for_its_throughput_and_a_soft_one_pays() {
    let mut instance = instance(&[1.0], &[&[4.0], &[2.0]], &[1.0, 1.0]);
    instance.data.insert("steps_remaining".to_owned(), vec![100.0, 100.0]);
    instance.data.insert("slo_remaining".to_owned(), vec![f64::INFINITY, 200.0]);
    let mut text = ObjectiveText::new(Sense::Maximize, "sum_over_jobs(throughput)");
    for slo in
        ["throughput >= steps_remaining / slo_remaining", "steps_remaining / throughput <= slo_remaining"]
    {
        text.for_each_job = vec![ConstraintText::hard(slo)];
        let objective = Objective::check(&text, Vocabulary::default()).unwrap();
        assert_eq!(objective.route(), Route::Linear);
        let hard = optimum(&objective, &instance);
        // Job 1 needs 0.5 steps/s, a quarter of the time: 3 + 0.5.
        assert_close(hard.value, 3.5);
        assert_close(hard.bound, 3.5);
    }
    let slo = "throughput >= steps_remaining / slo_remaining".to_owned();
    text.for_each_job = vec![ConstraintText::soft(slo, 0.5)];
    let objective = Objective::check(&text, Vocabulary::default()).unwrap();
    let soft = optimum(&objective, &instance);
    // A step/s for job 1 costs two of job 0, and brings 1.5: cheaper to violate the soft constraint.
    assert_close(soft.value, 4.0 - 0.5 * 0.5);
    assert_close(soft.bound, soft.value);
}

#[test]
fn a_limit_on_each_worker_type_holds() {
    let instance = instance(&[2.0, 2.0], &[&[4.0, 1.0], &[2.0, 1.0]], &[3.0, 3.0]);
    let mut text = ObjectiveText::new(Sense::Maximize, "sum_over_jobs(throughput)");
    let limit = "sum_over_jobs(scale_factor * time_on(type)) <= 0.5 * capacity(type)".to_owned();
    text.for_each_worker_type = vec![ConstraintText::hard(limit)];
    let optimum = optimum(&Objective::check(&text, Vocabulary::default()).unwrap(), &instance);
    assert_close(optimum.value, 4.0 + 1.0);
}

#[test]
fn utilization_fills_what_the_level_leaves_idle() {
    let instance = instance(&[1.0, 5.0], &[&[4.0, 0.0], &[2.0, 1.0]], &[8.0, 1.0]);
    let objective = objective(Sense::Maximize, "min_over_jobs(throughput / equal_share_throughput)");
    let bound = objective.bind(&instance).unwrap();
    let first = solve(&bound, bound.formulate());
    let optimum = first.formulation.program.objective(&first.solution.columns);
    let equal = &instance.data["equal_share_throughput"];
    let second = solve(&bound, bound.refine_utilization(first.formulation.clone(), optimum, equal));
    assert_close(first.value, second.value);
    assert_close(second.point.throughput()[1], 1.0);
}

#[test]
fn rows_and_columns_say_what_they_are() {
    let instance = instance(&[1.0, 1.0], &[&[4.0, 1.0], &[2.0, 0.0]], &[1.0, 1.0]);
    let objective = objective(Sense::Maximize, "min_over_jobs(throughput)");
    let program = objective.bind(&instance).unwrap().formulate().program;
    let columns: Vec<_> = (0..program.n_columns()).map(|column| program.column_name(column)).collect();
    let expected = ["time[job class 0, t0]", "time[job class 0, t1]", "time[job class 1, t0]", "level"];
    assert_eq!(columns, expected);
    let rows: Vec<_> = (0..program.n_rows()).map(|row| program.row_name(row)).collect();
    let expected = [
        "time[job class 0]",
        "time[job class 1]",
        "capacity[t0]",
        "capacity[t1]",
        "level[job class 0]",
        "level[job class 1]",
    ];
    assert_eq!(rows, expected);
}

/// Objectives whose levels can be inverted, each with data in which it makes sense.
const INVERTIBLE: [(Sense, &str); 8] = [
    (Sense::Maximize, "min_over_jobs(scale_factor * throughput / (weight * equal_share_throughput))"),
    (Sense::Minimize, "max_over_jobs(steps_remaining / throughput)"),
    (
        Sense::Minimize,
        "max_over_jobs((elapsed + steps_remaining / throughput) / (isolated_elapsed + steps_remaining / isolated_throughput))",
    ),
    (Sense::Maximize, "min_over_jobs(log(throughput) - weight)"),
    (Sense::Maximize, "min_over_jobs(sqrt(throughput) * weight)"),
    (Sense::Maximize, "min_over_jobs(-weight / (throughput + 1[steps/s]))"),
    (Sense::Minimize, "max_over_jobs(weight - log(2 * throughput + equal_share_throughput))"),
    (Sense::Minimize, "max_over_jobs(inv(inv(throughput) + 1[s/steps]) * -3)"),
];

fn random_instance() -> impl Strategy<Value = Instance> {
    let jobs = prop::collection::vec((prop::collection::vec(0.0..10.0_f64, 3), 1..4_u8, 1.0..1e4_f64), 1..6);
    let capacity = prop::collection::vec(1..5_u8, 3);
    (jobs, capacity, 0.0..1e3_f64).prop_map(|(jobs, capacity, elapsed)| {
        let capacity: Vec<f64> = capacity.into_iter().map(f64::from).collect();
        // A tenth of the speeds become 0, but everyone runs somewhere.
        let speed = |(j, t): (usize, &f64)| if j > 0 && *t < 1.0 { 0.0 } else { t + 0.1 };
        let rows: Vec<Vec<f64>> =
            jobs.iter().map(|(row, _, _)| row.iter().enumerate().map(speed).collect()).collect();
        let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
        let multiplicity: Vec<f64> = jobs.iter().map(|(_, n, _)| f64::from(*n)).collect();
        let mut made = instance(&capacity, &rows, &multiplicity);
        let steps: Vec<f64> = jobs.iter().map(|(_, _, steps)| *steps).collect();
        made.data.insert("elapsed".to_owned(), steps.iter().map(|s| elapsed * (s % 1.0)).collect());
        made.data.insert("weight".to_owned(), steps.iter().map(|s| 1.0 + s % 3.0).collect());
        made.data.insert("steps_remaining".to_owned(), steps);
        made
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_is_required_for_a_level_reaches_that_level(
        instance in random_instance(), which in 0..INVERTIBLE.len(), throughput in 1e-3..1e3_f64
    ) {
        let (sense, text) = INVERTIBLE[which];
        let objective = objective(sense, text);
        let bound = objective.bind(&instance).unwrap();
        for member in 0..instance.n_members() {
            let level = bound.level(member, throughput).unwrap();
            let required = bound.required(member, level).unwrap();
            prop_assert!((required.value - throughput).abs() <= 1e-6 * throughput, "{text}: {required:?}");
            // The slope is that of a short chord.
            let step = 1e-6 * level.abs().max(1e-3);
            let chord = [-1.0, 1.0].map(|side| bound.required(member, level + side * step).unwrap().value);
            let slope = (chord[1] - chord[0]) / (2.0 * step);
            if chord.iter().all(|value| value.is_finite() && *value > 0.0) {
                let near = (required.slope - slope).abs() <= 1e-2 * slope.abs().max(1e-9);
                prop_assert!(near, "{text}: {required:?} against {slope}");
            }
            if let Some(LevelCoefficients { base, slope }) = bound.levels().unwrap().coefficients(member) {
                let linear = match objective.inversion().unwrap().form() {
                    LevelForm::Affine => base + slope * level,
                    LevelForm::AffineInInverse => base + slope / level,
                    LevelForm::General => unreachable!("has no coefficients"),
                };
                prop_assert!((linear - throughput).abs() <= 1e-6 * throughput, "{text}: {linear}");
            }
        }
    }

    #[test]
    fn an_optimum_lies_within_every_implied_bound_and_reaches_its_value(
        instance in random_instance(), which in 0..OBJECTIVES.len()
    ) {
        let (sense, text) = OBJECTIVES[which];
        let objective = objective(sense, text);
        let bound = objective.bind(&instance).unwrap();
        let optimum = solve(&bound, bound.formulate());
        prop_assert!(close(optimum.bound, optimum.value), "{text}: {} against {}", optimum.bound, optimum.value);
        let program = &optimum.formulation.program;
        for (column, (value, range)) in optimum.solution.columns.iter().zip(&program.implied).enumerate() {
            let slack = 1e-5 * value.abs().max(1.0);
            let within = range.lower - slack <= *value && *value <= range.upper + slack;
            prop_assert!(within, "{text}: {} = {value} in {range:?}", program.column_name(column));
            prop_assert!(range.lower.is_finite() && range.upper.is_finite(), "{text}: {range:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn one_program_finds_what_bisection_finds(instance in random_instance()) {
        for (sense, text) in &INVERTIBLE[..2] {
            let objective = objective(*sense, text);
            let found = optimum(&objective, &instance);
            let bisected = bisect(&objective.bind(&instance).unwrap(), *sense);
            prop_assert!(close(found.value, bisected), "{text}: {} against {bisected}", found.value);
        }
    }
}

/// Linear and conic objectives.
const OBJECTIVES: [(Sense, &str); 9] = [
    INVERTIBLE[0],
    INVERTIBLE[1],
    (Sense::Maximize, "sum_over_jobs(throughput)"),
    (Sense::Maximize, "sum_over_jobs(weight * min(throughput, 2[steps/s]))"),
    (Sense::Maximize, "sum_over_jobs(weight * log(throughput))"),
    (Sense::Maximize, "sum_over_jobs(sqrt(throughput))"),
    (Sense::Minimize, "sum_over_jobs(steps_remaining / throughput)"),
    (
        Sense::Maximize,
        "min_over_jobs(min(throughput / equal_share_throughput, 0.5 + throughput / isolated_throughput))",
    ),
    (
        Sense::Maximize,
        "sum_over_jobs(throughput / equal_share_throughput) - 2 * max_over_worker_types(sum_over_jobs(time_on(type)) * 1[workers] / max(capacity(type), 1[workers]))",
    ),
];
