//! Nash welfare by prices, judged by its certificate and against solvers of the program with a cone for each class.

use super::dantzig_wolfe::{Searched, WarmPrices};
use super::jobs::solve;
use crate::decomposition::certificate::PrimalDual;
use crate::program::expression::Vocabulary;
use crate::program::singles::{Goal, LogarithmicSum};
use crate::program::{BoundObjective, Instance, Objective, ObjectiveText, Sense};
use crate::solver::draws::Draws;
use crate::solver::{AnswerCertificate, Limits, registry, solve_certified};

/// The property that makes an instance hard.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// No two classes are alike.
    Distinct,
    /// Speeds of 1 and 2 only.
    Ties,
    /// Speeds repeat every eleven classes.
    Alike,
    /// Some classes do not run on some types, or need more workers than there are.
    Zeros,
    /// A type has no workers.
    NoWorkers,
    /// All types have idle workers.
    Plenty,
    /// One type has idle workers, another hardly any workers.
    Uneven,
    /// Weights over six decades.
    Decades,
}

const KINDS: [Kind; 8] = [
    Kind::Distinct,
    Kind::Ties,
    Kind::Alike,
    Kind::Zeros,
    Kind::NoWorkers,
    Kind::Plenty,
    Kind::Uneven,
    Kind::Decades,
];

/// A random instance of n classes and k worker types with a property.
fn instance(kind: Kind, (n, k): (usize, usize), seed: u64) -> Instance {
    let mut draws = Draws(seed * 8 + kind as u64);
    (0..20).for_each(|_| _ = draws.next());
    let mut instance = Instance::default();
    let mut weight = Vec::new();
    for class in 0..n {
        let own = 10.0_f64.powf(draws.next());
        let speeds: Vec<f64> = (0..k)
            .map(|j| match kind {
                Kind::Ties => 1.0 + (draws.next() * 2.0).floor(),
                Kind::Alike => 1.0 + ((class % 11 + 1) * (j + 2)) as f64 * 0.618 % 1.0,
                Kind::Zeros if j > 0 && draws.next() < 0.4 => 0.0,
                _ => own * 10.0_f64.powf(-draws.next()),
            })
            .collect();
        instance.throughput.extend(speeds);
        instance.multiplicity.push(1.0 + draws.below(3) as f64);
        instance.scale_factor.push([1.0, 2.0, 4.0][draws.below(3)]);
        weight.push(if kind == Kind::Decades {
            10.0_f64.powf(6.0 * draws.next() - 3.0)
        } else {
            1.0 + draws.next()
        });
    }
    instance.data.insert("weight".to_owned(), weight);
    let part = n as f64 / k as f64;
    let workers = |j: usize, drawn: f64| match kind {
        Kind::Plenty => 9.0 * n as f64,
        Kind::Uneven => [9.0 * n as f64, 4.0, part, 1.0][j % 4],
        Kind::NoWorkers if j == 1 => 0.0,
        _ => ((0.2 + drawn) * part + if j == 0 { 8.0 } else { 0.0 }).floor(),
    };
    instance.capacity = (0..k).map(|j| workers(j, draws.next())).collect();
    instance.capacity[0] = instance.capacity[0].max(4.0);
    instance.worker_types = (0..k).map(|j| format!("type{j}")).collect();
    instance
}

/// The objective of Nash welfare.
fn objective() -> Objective {
    let text = ObjectiveText::new(Sense::Maximize, "sum_over_jobs(weight * log(throughput))");
    Objective::check(&text, Vocabulary::default()).unwrap()
}

/// A certified optimum of Nash welfare, searched without prices to start from.
fn bought(bound: &BoundObjective<'_>) -> (PrimalDual, AnswerCertificate) {
    bought_near(bound, &WarmPrices::default()).0
}

/// A certified optimum of Nash welfare, searched from warm-start prices; and the prices that the search leaves.
fn bought_near(
    bound: &BoundObjective<'_>,
    near: &WarmPrices,
) -> ((PrimalDual, AnswerCertificate), WarmPrices) {
    let LogarithmicSum { singles, logarithms } = bound.logarithms().unwrap();
    let goal = Goal::Logarithms(&logarithms);
    let Searched { optimum: shares, warm_prices: near } =
        solve(&singles, goal, near, &Limits::default()).unwrap();
    let judged = AnswerCertificate::of_jobs(&singles, goal, &shares);
    let weights: f64 = logarithms.weight.iter().sum();
    let most = weights.max(judged.primal.abs());
    assert!(judged.optimal && judged.bound - judged.primal <= 1e-9 * most, "{judged:?} of {weights}");
    let k = bound.instance().n_types();
    let time = bound.columns().iter().map(|column| shares.time[column.combination * k + column.worker_type]);
    let value = bound.value(&bound.point(&time.collect::<Vec<_>>()));
    assert!((value - judged.primal).abs() <= 1e-12 * most, "{value} is not {judged:?}");
    ((shares, judged), near)
}

#[test]
fn what_is_bought_is_optimal_by_its_certificate_and_the_program_with_cones() {
    let (objective, mut compared) = (objective(), 0);
    for (position, kind) in KINDS.into_iter().enumerate() {
        let sizes = [(70, 1 + position % 4), (1, 3), (3, 2), (230, 2 + position % 7), (90, 9 + position)];
        for (seed, size) in (0..).zip(sizes) {
            let instance = instance(kind, size, seed);
            let Ok(bound) = objective.bind(&instance) else { continue };
            let (_, judged) = bought(&bound);
            let formulation = bound.formulate();
            let program = &formulation.program;
            let mut chain = registry::default_chain(program);
            let Ok(other) = solve_certified(program, &mut chain, &Limits::default(), None) else { continue };
            let other = other.certificate;
            let [primal, above] = [other.primal, other.bound].map(|value| formulation.value(value));
            let size = judged.primal.abs().max(bound.logarithms().unwrap().logarithms.weight.iter().sum());
            let near = (primal - judged.primal).abs() <= 1e-7 * size;
            let slack = 1e-9 * size;
            let bounded = judged.bound >= primal - slack && above >= judged.primal - slack;
            assert!(near && bounded, "{kind:?} {seed}: {judged:?} {other:?}");
            compared += 1;
        }
    }
    assert!(compared >= 35, "{compared} of 40 compared");
}

#[test]
fn types_that_are_added_change_nothing() {
    let objective = objective();
    for (kind, k) in [(Kind::Distinct, 17), (Kind::Zeros, 23), (Kind::NoWorkers, 24), (Kind::Decades, 27)] {
        let instance = instance(kind, (300, k), 3);
        let bound = objective.bind(&instance).unwrap();
        let (shares, judged) = bought(&bound);
        assert_eq!((shares.time.len(), shares.worker_price.len()), (300 * k, k));
        let formulation = bound.formulate();
        let mut chain = registry::default_chain(&formulation.program);
        let other = solve_certified(&formulation.program, &mut chain, &Limits::default(), None).unwrap();
        let other = formulation.value(other.certificate.primal);
        assert!((other - judged.primal).abs() <= 1e-7 * judged.primal.abs(), "{kind:?}: {judged:?} {other}");
    }
}

#[test]
fn samples_of_many_classes_lead_to_the_prices_of_all() {
    let objective = objective();
    for (position, kind) in KINDS.into_iter().enumerate() {
        // The last half of the classes is unlike the first, and a sample of every k-th class has both.
        let mut instance = instance(kind, (2500, 2 + position % 3), 9);
        let half = instance.throughput.len() / 2;
        instance.throughput[half..].iter_mut().for_each(|speed| *speed *= *speed);
        bought(&objective.bind(&instance).unwrap());
    }
}

#[test]
fn prices_are_found_from_those_of_a_market_that_was_much_like_it() {
    let (objective, mut asked) = (objective(), [0, 0]);
    for (position, kind) in KINDS.into_iter().enumerate() {
        let mut instance = instance(kind, (900, 2 + position % 3), 4);
        let (_, near) = bought_near(&objective.bind(&instance).unwrap(), &WarmPrices::default());
        let k = instance.n_types();
        instance.throughput[5 * k..6 * k].iter_mut().for_each(|speed| *speed *= 0.7);
        let bound = objective.bind(&instance).unwrap();
        let ((cold, _), _) = bought_near(&bound, &WarmPrices::default());
        let ((warm, _), _) = bought_near(&bound, &near);
        for (one, other) in cold.worker_price.iter().zip(&warm.worker_price) {
            assert!(
                (one - other).abs() <= 1e-6 * one.max(1e-3 / instance.capacity[0]),
                "{kind:?}: {one} {other}"
            );
        }
        asked[0] += cold.passes;
        asked[1] += warm.passes;
    }
    assert!(asked[1] * 4 < asked[0] * 3, "{asked:?}");
}

#[test]
fn wrong_prices_weaken_the_bound_and_wrong_shares_show() {
    let objective = objective();
    let instance = instance(Kind::Distinct, (120, 3), 1);
    let bound = objective.bind(&instance).unwrap();
    let LogarithmicSum { singles, logarithms } = bound.logarithms().unwrap();
    let goal = Goal::Logarithms(&logarithms);
    let (right, best) = bought(&bound);
    let mut draws = Draws(5);
    for _ in 0..20 {
        let mut wrong = right.clone();
        let prices =
            wrong.worker_price.iter_mut().chain(&mut wrong.throughput_price).chain(&mut wrong.time_price);
        prices.for_each(|price| *price *= 2.0 * draws.next());
        let judged = AnswerCertificate::of_jobs(&singles, goal, &wrong);
        assert!(judged.bound >= best.primal, "{judged:?} below {best:?}");
    }
    let judge = |wrong: &PrimalDual| AnswerCertificate::of_jobs(&singles, goal, wrong).optimal;
    let with = |change: &dyn Fn(&mut PrimalDual)| {
        let mut wrong = right.clone();
        change(&mut wrong);
        judge(&wrong)
    };
    assert!(judge(&right));
    assert!(!with(&|wrong| wrong.time.iter_mut().for_each(|time| *time *= 1.01)));
    assert!(!with(&|wrong| wrong.time.iter_mut().for_each(|time| *time *= 0.99)));
    assert!(!with(&|wrong| wrong.time[..3].fill(0.0)));
    assert!(!with(&|wrong| wrong.throughput_price[3] = 0.0));
    assert!(!with(&|wrong| wrong.throughput_price[3] = f64::NAN));
}

#[test]
fn classes_with_nothing_in_common_but_one_type_divide_it_by_weight() {
    // By hand: of 6 workers, the third job uses 4 all of the time, as its weight is 9; the first two, with weights 1 and 2,
    // divide the time of the other 2 by weight.
    let mut instance = instance(Kind::Distinct, (3, 1), 0);
    instance.capacity = vec![6.0];
    instance.multiplicity = vec![1.0; 3];
    instance.scale_factor = vec![4.0; 3];
    instance.throughput = vec![2.0, 30.0, 0.1];
    instance.data.insert("weight".to_owned(), vec![1.0, 2.0, 9.0]);
    let objective = objective();
    let (shares, _) = bought(&objective.bind(&instance).unwrap());
    for (time, expected) in shares.time.iter().zip([1.0 / 6.0, 1.0 / 3.0, 1.0]) {
        assert!((time - expected).abs() < 1e-9, "{:?}", shares.time);
    }
}
