//! Optima against the same program written out: their own certificate, and the other solvers.

use super::dantzig_wolfe::{Searched, WarmPrices};
use super::jobs::{DroppableKept, keep_droppable, raise_above, solve};
use crate::decomposition::certificate::PrimalDual;
use crate::program::expression::Vocabulary;
use crate::program::singles::{Goal, Singles};
use crate::program::{Instance, Objective, ObjectiveText, Program, Range, Sense};
use crate::solver::draws::Draws;
use crate::solver::{AnswerCertificate, Limits, Solution, Termination, registry};

/// The property that makes an instance hard.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// No two classes are alike.
    Distinct,
    /// Speeds of 1 and 2 only.
    Ties,
    /// Some classes do not run on some types, or need more workers than there are.
    Zeros,
    /// A type has no workers.
    NoWorkers,
    /// One class alone limits the level.
    Alone,
    /// Some classes demand nothing.
    Undemanding,
    /// There are ten types or more.
    Many,
    /// There are so many types that empty types are added.
    Padded,
}

const KINDS: [Kind; 8] = [
    Kind::Distinct,
    Kind::Ties,
    Kind::Zeros,
    Kind::NoWorkers,
    Kind::Alone,
    Kind::Undemanding,
    Kind::Many,
    Kind::Padded,
];

/// A random instance with a property, and the demand and worth of each class.
fn instance(kind: Kind, seed: u64) -> (Instance, Vec<f64>, Vec<f64>) {
    let mut draws = Draws(seed * 8 + kind as u64);
    (0..20).for_each(|_| _ = draws.next());
    let (n, k) = (60 + draws.below(200), 1 + draws.below(4));
    let k = match kind {
        Kind::Many => 8 + 2 * k,
        Kind::Padded => 14 + 5 * k,
        _ => k,
    };
    let mut instance = Instance::default();
    let (mut demand, mut worth) = (Vec::new(), Vec::new());
    for class in 0..n {
        let own = 10.0_f64.powf(draws.next());
        let speeds = (0..k).map(|j| match kind {
            Kind::Ties => 1.0 + (draws.next() * 2.0).floor(),
            Kind::Zeros if j > 0 && draws.next() < 0.4 => 0.0,
            _ => own * 10.0_f64.powf(-draws.next()),
        });
        instance.throughput.extend(speeds.collect::<Vec<_>>());
        instance.multiplicity.push(1.0 + (draws.next() * 3.0).floor());
        instance.scale_factor.push([1.0, 2.0, 4.0][draws.below(3)]);
        let asked = 0.1 + draws.next();
        demand.push(match kind {
            Kind::Alone if class == 7 => 1e4,
            Kind::Undemanding if class % 3 == 0 => 0.0,
            _ => asked,
        });
        worth.push(0.1 + draws.next());
    }
    let part = n as f64 / k as f64;
    instance.capacity =
        (0..k).map(|j| ((0.2 + draws.next()) * part + if j == 0 { 8.0 } else { 0.0 }).floor()).collect();
    if kind == Kind::NoWorkers && k > 1 {
        instance.capacity[1] = 0.0;
    }
    instance.worker_types = (0..k).map(|j| format!("type{j}")).collect();
    (instance, demand, worth)
}

/// An objective under which jobs share no workers.
fn objective() -> Objective {
    let text = ObjectiveText::new(Sense::Maximize, "min_over_jobs(throughput)");
    Objective::check(&text, Vocabulary::default()).unwrap()
}

/// The program that `goal` states over these jobs, term by term: columns of all classes on all types, then the level.
fn written(singles: &Singles<'_>, goal: Goal<'_>) -> Program {
    let instance = singles.instance();
    let (n, k) = (instance.n_members(), instance.n_types());
    let mut program = Program::new(Sense::Maximize);
    for class in 0..n {
        for j in 0..k {
            let worth = match goal {
                Goal::Worth { worth, by_type, .. } => worth[class] * by_type[j],
                _ => 0.0,
            };
            let range = Range { lower: 0.0, upper: singles.most(class, j) };
            program.push_column(
                range,
                range,
                worth * instance.alone(class)[j] / instance.multiplicity[class],
            );
        }
    }
    let limit_of = |class| singles.limit_above(class, goal.base(class));
    let limit = (0..n).map(limit_of).fold(f64::INFINITY, f64::min);
    let (range, cost) = if let Goal::Worth { level, .. } = goal {
        (Range::exactly(level), 0.0)
    } else {
        (Range { lower: 0.0, upper: limit }, 1.0)
    };
    let level = program.push_column(range, range, cost);
    for class in 0..n {
        let jobs = instance.multiplicity[class];
        program.push_row(Range::at_most(jobs), (0..k).map(|j| (class * k + j, 1.0)));
        let throughput =
            instance.alone(class).iter().enumerate().map(|(j, speed)| (class * k + j, speed / jobs));
        program.push_row(
            Range::at_least(goal.base(class)),
            throughput.chain([(level, -singles.demand[class])]).collect::<Vec<_>>(),
        );
    }
    for j in 0..k {
        let used = (0..n).map(|class| (class * k + j, instance.scale_factor[class]));
        program.push_row(Range::at_most(instance.capacity[j]), used.collect::<Vec<_>>());
    }
    program
}

/// Judges an optimum by its own certificate, by the written program's, and by another solver's optimum.
fn judge(singles: &Singles<'_>, goal: Goal<'_>, shares: &PrimalDual) {
    let own = AnswerCertificate::of_jobs(singles, goal, shares);
    assert!(own.optimal && own.gap_relative < 1e-8, "{own:?}");
    let program = written(singles, goal);
    let prices = shares.time_price.iter().zip(&shares.throughput_price);
    let mut row_duals: Vec<f64> = prices.flat_map(|(time, throughput)| [*time, -throughput]).collect();
    row_duals.extend(&shares.worker_price);
    let solution = Solution {
        termination: Termination::Optimal,
        columns: [&shares.time[..], &[shares.level]].concat(),
        row_duals,
        cone_duals: Vec::new(),
        objective: f64::NAN,
        iterations: 0,
        basis: None,
    };
    let of_program = AnswerCertificate::of(&program, &solution);
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
    assert!(
        near(own.primal, of_program.primal) && near(own.bound, of_program.bound),
        "{own:?} {of_program:?}"
    );
    assert!(of_program.optimal && of_program.violation_max < 1e-8, "{of_program:?}");
    let mut other = registry::backend("clarabel").unwrap();
    let other = other.solve(&program, &Limits::default(), None).unwrap().objective;
    assert!((other - own.primal).abs() <= 1e-6 * own.primal.abs(), "{other} and {own:?}");
}

#[test]
fn shares_are_optimal_by_their_certificate_that_of_the_program_and_another_solver() {
    let (objective, limits) = (objective(), Limits::default());
    let mut settled = 0;
    for (kind, seed) in KINDS.into_iter().flat_map(|kind| (0..3).map(move |seed| (kind, seed))) {
        let (instance, demand, worth) = instance(kind, seed);
        let bound = objective.bind(&instance).unwrap();
        let singles = bound.singles(demand).unwrap();
        let nothing = WarmPrices::default();
        let Ok(Searched { optimum: raised, .. }) = solve(&singles, Goal::Level, &nothing, &limits) else {
            continue;
        };
        judge(&singles, Goal::Level, &raised);
        let by_type: Vec<f64> =
            (0..instance.n_types()).map(|j| 1.0 / (1.0 + f64::from(u8::try_from(j).unwrap()))).collect();
        let held = Goal::Worth {
            level: raised.level * (1.0 - 1e-9),
            worth: &worth,
            by_type: &by_type,
            given: &raised.time,
        };
        let Ok(Searched { optimum: shares, .. }) = solve(&singles, held, &nothing, &limits) else { continue };
        judge(&singles, held, &shares);
        settled += 1;
    }
    assert!(settled >= 21, "{settled} of 24 settled");
}

/// Where one class is replaced by another, prices are near those before, and a search that starts at those takes fewer passes.
#[test]
fn a_search_goes_on_from_where_one_like_it_ended() {
    let (objective, limits) = (objective(), Limits::default());
    let mut asked = [0, 0];
    for (kind, seed) in KINDS.into_iter().flat_map(|kind| (0..3).map(move |seed| (kind, seed))) {
        let (mut instance, mut demand, worth) = instance(kind, seed);
        let by_type = vec![1.0; instance.n_types()];
        let held = |level| Goal::Worth { level, worth: &worth, by_type: &by_type, given: &[] };
        let mut near: [WarmPrices; 2] = Default::default();
        for change in 0..3 {
            let bound = objective.bind(&instance).unwrap();
            let singles = bound.singles(demand.clone()).unwrap();
            let mut found = |of: usize, goal: Goal<'_>| {
                let cold = solve(&singles, goal, &WarmPrices::default(), &limits).ok()?.optimum;
                let Searched { optimum: warm, warm_prices: next } =
                    solve(&singles, goal, &near[of], &limits).ok()?;
                let values = [&cold, &warm].map(|of| AnswerCertificate::of_jobs(&singles, goal, of).primal);
                assert!((values[0] - values[1]).abs() <= 1e-8 * values[0], "{kind:?} {seed}: {values:?}");
                judge(&singles, goal, &warm);
                if change > 0 {
                    asked[0] += cold.passes;
                    asked[1] += warm.passes;
                }
                near[of] = next;
                Some(warm.level)
            };
            let Some(level) = found(0, Goal::Level) else { break };
            let Some(_) = found(1, held(0.99 * level)) else { break };
            // One class is replaced by another.
            let gone = 11 + change;
            let k = instance.n_types();
            instance.throughput[gone * k..(gone + 1) * k].iter_mut().for_each(|speed| *speed *= 1.3);
            demand[gone] *= 0.8;
        }
    }
    assert!(asked[1] * 3 < asked[0] * 2, "{asked:?}");
}

#[test]
fn levels_above_what_classes_have_are_optimal_too() {
    let (objective, limits) = (objective(), Limits::default());
    let mut settled = 0;
    // The base is a part of the first level's throughputs, or all of them, above which most classes cannot rise.
    let parts = [(0, 0.3), (1, 0.9), (2, 0.99), (3, 1.0)];
    for (kind, (seed, part)) in KINDS.into_iter().flat_map(|kind| parts.map(|part| (kind, part))) {
        let (instance, demand, other) = instance(kind, seed);
        let bound = objective.bind(&instance).unwrap();
        let mut singles = bound.singles(demand).unwrap();
        let Ok(Searched { optimum: first, .. }) =
            solve(&singles, Goal::Level, &WarmPrices::default(), &limits)
        else {
            continue;
        };
        let base: Vec<f64> = singles.demand.iter().map(|demand| part * first.level * demand).collect();
        let given: Vec<f64> = first.time.iter().map(|time| part * time).collect();
        let rises = |class: usize| singles.limit_above(class, base[class]) > 1e-6 || kind != Kind::Alone;
        singles.demand = (0..base.len()).map(|class| if rises(class) { other[class] } else { 0.0 }).collect();
        let goal = Goal::Above { base: &base, given: &given };
        let Ok(raised) = raise_above(&singles, goal, Vec::new(), &limits) else { continue };
        if part < 1.0 {
            judge(&singles, goal, &raised.answer);
        }
        // A gap is judged relative to the level plus the least base, in levels, of the classes that rise.
        let mut wrong = raised.answer.clone();
        wrong.worker_price.iter_mut().for_each(|price| *price *= 1.5);
        let judged = AnswerCertificate::of_jobs(&singles, goal, &wrong);
        let rising = (0..base.len()).filter(|class| singles.demand[*class] > 0.0);
        let had = rising.map(|class| base[class] / singles.demand[class]).fold(f64::INFINITY, f64::min);
        let size = judged.primal.abs().max(judged.bound.abs()) + had;
        let gap = (judged.bound - judged.primal).abs() / size;
        assert!((judged.gap_relative - gap).abs() <= 1e-12 * gap, "{kind:?} {seed}: {judged:?}, {gap}");
        let again = raise_above(&singles, goal, raised.near, &limits).unwrap();
        let near = |one: f64, other: f64| (one - other).abs() <= 1e-9 * (one.abs() + first.level);
        assert!(
            near(again.answer.level, raised.answer.level),
            "{kind:?} {seed}: {} {} {}",
            again.answer.level,
            raised.answer.level,
            first.level
        );
        settled += 1;
    }
    assert!(settled >= 28, "{settled} of 32 settled");
}

#[test]
fn a_wrong_price_weakens_the_bound_and_a_wrong_share_shows() {
    let objective = objective();
    let (instance, demand, worth) = instance(Kind::Distinct, 1);
    let bound = objective.bind(&instance).unwrap();
    let singles = bound.singles(demand).unwrap();
    let right = solve(&singles, Goal::Level, &WarmPrices::default(), &Limits::default()).unwrap().optimum;
    let best = AnswerCertificate::of_jobs(&singles, Goal::Level, &right).primal;
    let mut draws = Draws(5);
    let by_type: Vec<f64> =
        (0..instance.n_types()).map(|j| 1.0 / (1.0 + f64::from(u8::try_from(j).unwrap()))).collect();
    for goal in
        [Goal::Level, Goal::Worth { level: 0.5 * right.level, worth: &worth, by_type: &by_type, given: &[] }]
    {
        let value = match solve(&singles, goal, &WarmPrices::default(), &Limits::default()) {
            Ok(found) => AnswerCertificate::of_jobs(&singles, goal, &found.optimum).primal,
            Err(_) => best,
        };
        for _ in 0..20 {
            let mut wrong = right.clone();
            let prices =
                wrong.worker_price.iter_mut().chain(&mut wrong.throughput_price).chain(&mut wrong.time_price);
            prices.for_each(|price| *price *= 2.0 * draws.next());
            let judged = AnswerCertificate::of_jobs(&singles, goal, &wrong);
            assert!(judged.bound >= value * (1.0 - 1e-9), "{judged:?} below {value}");
        }
    }
    let mut wrong = right.clone();
    wrong.time.iter_mut().for_each(|time| *time *= 1.01);
    assert!(!AnswerCertificate::of_jobs(&singles, Goal::Level, &wrong).optimal);
    let mut wrong = right.clone();
    wrong.level *= 1.01;
    assert!(!AnswerCertificate::of_jobs(&singles, Goal::Level, &wrong).optimal);
    let mut wrong = right;
    wrong.throughput_price[3] = f64::NAN;
    assert!(!AnswerCertificate::of_jobs(&singles, Goal::Level, &wrong).optimal);
}

/// The program of droppable constraints, term by term: columns of all classes on all types, then the kept parts.
fn written_droppable(singles: &Singles<'_>, due: &[bool]) -> Program {
    let instance = singles.instance();
    let (n, k) = (instance.n_members(), instance.n_types());
    let mut program = Program::new(Sense::Maximize);
    for (class, j) in (0..n).flat_map(|class| (0..k).map(move |j| (class, j))) {
        let range = Range { lower: 0.0, upper: singles.most(class, j) };
        program.push_column(range, range, 0.0);
    }
    for (due, jobs) in due.iter().zip(&instance.multiplicity) {
        let range = Range { lower: f64::from(u8::from(*due)), upper: 1.0 };
        program.push_column(range, range, *jobs);
    }
    for class in 0..n {
        let jobs = instance.multiplicity[class];
        let time = (0..k).map(|j| (class * k + j, 1.0)).chain([(n * k + class, -jobs)]);
        program.push_row(Range::at_most(0.0), time.collect::<Vec<_>>());
        let throughput =
            instance.alone(class).iter().enumerate().map(|(j, speed)| (class * k + j, speed / jobs));
        let throughput = throughput.chain([(n * k + class, -singles.demand[class])]);
        program.push_row(Range::at_least(0.0), throughput.collect::<Vec<_>>());
    }
    for j in 0..k {
        let used = (0..n).map(|class| (class * k + j, instance.scale_factor[class]));
        program.push_row(Range::at_most(instance.capacity[j]), used.collect::<Vec<_>>());
    }
    program
}

/// Judges kept droppable constraints: they fit, and no solver keeps more.
fn judge_droppable(singles: &Singles<'_>, due: &[bool], kept: &DroppableKept) {
    let instance = singles.instance();
    let (n, k) = (instance.n_members(), instance.n_types());
    let program = written_droppable(singles, due);
    let solution = Solution {
        termination: Termination::Optimal,
        columns: [&kept.time[..], &kept.part[..]].concat(),
        row_duals: vec![0.0; 2 * n + k],
        cone_duals: Vec::new(),
        objective: f64::NAN,
        iterations: 0,
        basis: None,
    };
    let own = AnswerCertificate::with_bound(&program, &solution, Some(kept.bound));
    assert!(own.optimal && own.violation_max < 1e-8 && own.gap_relative < 1e-8, "{own:?}");
    let mut other = registry::backend("clarabel").unwrap();
    let other = other.solve(&program, &Limits::default(), None).unwrap().objective;
    assert!((other - own.primal).abs() <= 1e-6 * own.primal, "{other} and {own:?}");
    let dear = |class: &usize| kept.part[*class] < 1e-9 && kept.cost[*class] < 1.0 - 1e-6;
    let lost: Vec<usize> = (0..n).filter(|class| singles.demand[*class] > 0.0).filter(dear).collect();
    let within = |class: &usize| singles.fastest(*class) >= singles.demand[*class];
    assert!(!lost.iter().any(within), "cheap constraints are kept: {lost:?}");
}

#[test]
fn constraints_are_kept_as_another_solver_keeps_them() {
    let (objective, limits) = (objective(), Limits::default());
    let mut settled = 0;
    for (kind, seed) in KINDS.into_iter().flat_map(|kind| (0..4).map(move |seed| (kind, seed))) {
        let (instance, mut demand, _) = instance(kind, seed);
        for (class, demand) in demand.iter_mut().enumerate() {
            *demand *= instance.alone(class).iter().copied().fold(0.0, f64::max);
        }
        let bound = objective.bind(&instance).unwrap();
        let singles = bound.singles(demand).unwrap();
        let mut due = vec![false; instance.n_members()];
        let Ok(kept) = keep_droppable(&singles, &due, &limits) else { continue };
        judge_droppable(&singles, &due, &kept);
        // Some of the constraints that were dropped are due now.
        let dropped = (0..due.len()).filter(|class| kept.part[*class] < 1e-9);
        let can = |class: &usize| {
            singles.fastest(*class) > singles.demand[*class] && instance.scale_factor[*class] < 2.0
        };
        for class in dropped.filter(can).take(3) {
            due[class] = true;
        }
        let Ok(kept) = keep_droppable(&singles, &due, &limits) else { continue };
        judge_droppable(&singles, &due, &kept);
        settled += 1;
    }
    assert!(settled >= 28, "{settled} of 32 settled");
}
