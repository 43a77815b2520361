//! What members share against the same program written out: its own certificate, and the other solvers.

use super::dantzig_wolfe::WarmPrices;
use super::jobs::{SoftConstraintsKept, keep_soft_constraints, raise_above, solve};
use crate::decomposition::certificate::PrimalDual;
use crate::program::expression::Vocabulary;
use crate::program::singles::{Goal as Wanted, Singles as Sharing};
use crate::program::{Instance, Objective, ObjectiveText, Program, Range, Sense};
use crate::solver::draws::Draws;
use crate::solver::{Certificate, Limits, Solution, Termination, registry};

/// What makes members hard.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Distinct,
    /// Speeds of 1 and 2 only.
    Ties,
    /// Some members do not run on some types, or need more workers than there are.
    Zeros,
    /// A type has no workers.
    NoWorkers,
    /// One member alone holds the level.
    Alone,
    /// Some ask for nothing.
    Undemanding,
    /// There are ten types or more.
    Many,
    /// There are so many that some are added.
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
    for member in 0..n {
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
            Kind::Alone if member == 7 => 1e4,
            Kind::Undemanding if member % 3 == 0 => 0.0,
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

fn objective() -> Objective {
    let text = ObjectiveText::new(Sense::Maximize, "min_over_jobs(throughput)");
    Objective::check(&text, Vocabulary::default()).unwrap()
}

/// The program that says the same, term by term: columns of all members on all types, then the level.
fn written(sharing: &Sharing<'_>, wanted: Wanted<'_>) -> Program {
    let instance = sharing.instance();
    let (n, k) = (instance.n_members(), instance.n_types());
    let mut program = Program::new(Sense::Maximize);
    for member in 0..n {
        for j in 0..k {
            let worth = match wanted {
                Wanted::Worth { worth, by_type, .. } => worth[member] * by_type[j],
                _ => 0.0,
            };
            let range = Range { lower: 0.0, upper: sharing.most(member, j) };
            program.push_column(
                range,
                range,
                worth * instance.alone(member)[j] / instance.multiplicity[member],
            );
        }
    }
    let limit_of = |member| sharing.limit_above(member, wanted.base(member));
    let limit = (0..n).map(limit_of).fold(f64::INFINITY, f64::min);
    let (range, cost) = if let Wanted::Worth { level, .. } = wanted {
        (Range::exactly(level), 0.0)
    } else {
        (Range { lower: 0.0, upper: limit }, 1.0)
    };
    let level = program.push_column(range, range, cost);
    for member in 0..n {
        let jobs = instance.multiplicity[member];
        program.push_row(Range::at_most(jobs), (0..k).map(|j| (member * k + j, 1.0)));
        let throughput =
            instance.alone(member).iter().enumerate().map(|(j, speed)| (member * k + j, speed / jobs));
        program.push_row(
            Range::at_least(wanted.base(member)),
            throughput.chain([(level, -sharing.demand[member])]).collect::<Vec<_>>(),
        );
    }
    for j in 0..k {
        let used = (0..n).map(|member| (member * k + j, instance.scale_factor[member]));
        program.push_row(Range::at_most(instance.capacity[j]), used.collect::<Vec<_>>());
    }
    program
}

/// Judges shares by their own certificate, as the program's answer, and by another solver's.
fn judge(sharing: &Sharing<'_>, wanted: Wanted<'_>, shares: &PrimalDual) {
    let own = Certificate::of_jobs(sharing, wanted, shares);
    assert!(own.optimal && own.gap_relative < 1e-8, "{own:?}");
    let program = written(sharing, wanted);
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
    let of_program = Certificate::of(&program, &solution);
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
        let sharing = bound.singles(demand).unwrap();
        let nothing = WarmPrices::default();
        let Some((raised, _)) = solve(&sharing, Wanted::Level, &nothing, &limits) else { continue };
        judge(&sharing, Wanted::Level, &raised);
        let by_type: Vec<f64> =
            (0..instance.n_types()).map(|j| 1.0 / (1.0 + f64::from(u8::try_from(j).unwrap()))).collect();
        let held = Wanted::Worth {
            level: raised.level * (1.0 - 1e-9),
            worth: &worth,
            by_type: &by_type,
            given: &raised.time,
        };
        let Some((shares, _)) = solve(&sharing, held, &nothing, &limits) else { continue };
        judge(&sharing, held, &shares);
        settled += 1;
    }
    assert!(settled >= 21, "{settled} of 24 settled");
}

/// Where one member came and another went, prices are near those of before, and fewer askings find them.
#[test]
fn a_search_goes_on_from_where_one_like_it_ended() {
    let (objective, limits) = (objective(), Limits::default());
    let mut asked = [0, 0];
    for (kind, seed) in KINDS.into_iter().flat_map(|kind| (0..3).map(move |seed| (kind, seed))) {
        let (mut instance, mut demand, worth) = instance(kind, seed);
        let by_type = vec![1.0; instance.n_types()];
        let held = |level| Wanted::Worth { level, worth: &worth, by_type: &by_type, given: &[] };
        let mut near: [WarmPrices; 2] = Default::default();
        for change in 0..3 {
            let bound = objective.bind(&instance).unwrap();
            let sharing = bound.singles(demand.clone()).unwrap();
            let mut found = |of: usize, wanted: Wanted<'_>| {
                let (cold, _) = solve(&sharing, wanted, &WarmPrices::default(), &limits)?;
                let (warm, next) = solve(&sharing, wanted, &near[of], &limits)?;
                let values = [&cold, &warm].map(|of| Certificate::of_jobs(&sharing, wanted, of).primal);
                assert!((values[0] - values[1]).abs() <= 1e-8 * values[0], "{kind:?} {seed}: {values:?}");
                judge(&sharing, wanted, &warm);
                if change > 0 {
                    asked[0] += cold.asked;
                    asked[1] += warm.asked;
                }
                near[of] = next;
                Some(warm.level)
            };
            let Some(level) = found(0, Wanted::Level) else { break };
            let Some(_) = found(1, held(0.99 * level)) else { break };
            // one goes, and another comes in its place
            let gone = 11 + change;
            let k = instance.n_types();
            instance.throughput[gone * k..(gone + 1) * k].iter_mut().for_each(|speed| *speed *= 1.3);
            demand[gone] *= 0.8;
        }
    }
    assert!(asked[1] * 3 < asked[0] * 2, "{asked:?}");
}

#[test]
fn levels_above_what_members_have_are_optimal_too() {
    let (objective, limits) = (objective(), Limits::default());
    let mut settled = 0;
    // part of what they had, or all of it, where most have no room to rise
    let parts = [(0, 0.3), (1, 0.9), (2, 0.99), (3, 1.0)];
    for (kind, (seed, part)) in KINDS.into_iter().flat_map(|kind| parts.map(|part| (kind, part))) {
        let (instance, demand, other) = instance(kind, seed);
        let bound = objective.bind(&instance).unwrap();
        let mut sharing = bound.singles(demand).unwrap();
        let Some((first, _)) = solve(&sharing, Wanted::Level, &WarmPrices::default(), &limits) else {
            continue;
        };
        let base: Vec<f64> = sharing.demand.iter().map(|demand| part * first.level * demand).collect();
        let given: Vec<f64> = first.time.iter().map(|time| part * time).collect();
        let rises = |member: usize| sharing.limit_above(member, base[member]) > 1e-6 || kind != Kind::Alone;
        sharing.demand =
            (0..base.len()).map(|member| if rises(member) { other[member] } else { 0.0 }).collect();
        let wanted = Wanted::Above { base: &base, given: &given };
        let Some(raised) = raise_above(&sharing, wanted, Vec::new(), &limits) else { continue };
        if part < 1.0 {
            judge(&sharing, wanted, &raised.shares);
        }
        // a gap is judged beside what members have, and that is the least that any who rises has
        let mut wrong = raised.shares.clone();
        wrong.worker_price.iter_mut().for_each(|price| *price *= 1.5);
        let judged = Certificate::of_jobs(&sharing, wanted, &wrong);
        let rising = (0..base.len()).filter(|member| sharing.demand[*member] > 0.0);
        let had = rising.map(|member| base[member] / sharing.demand[member]).fold(f64::INFINITY, f64::min);
        let size = judged.primal.abs().max(judged.bound.abs()) + had;
        let gap = (judged.bound - judged.primal).abs() / size;
        assert!((judged.gap_relative - gap).abs() <= 1e-12 * gap, "{kind:?} {seed}: {judged:?}, {gap}");
        let again = raise_above(&sharing, wanted, raised.near, &limits).unwrap();
        let near = |one: f64, other: f64| (one - other).abs() <= 1e-9 * (one.abs() + first.level);
        assert!(
            near(again.shares.level, raised.shares.level),
            "{kind:?} {seed}: {} {} {}",
            again.shares.level,
            raised.shares.level,
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
    let sharing = bound.singles(demand).unwrap();
    let (right, _) = solve(&sharing, Wanted::Level, &WarmPrices::default(), &Limits::default()).unwrap();
    let best = Certificate::of_jobs(&sharing, Wanted::Level, &right).primal;
    let mut draws = Draws(5);
    let by_type: Vec<f64> =
        (0..instance.n_types()).map(|j| 1.0 / (1.0 + f64::from(u8::try_from(j).unwrap()))).collect();
    for wanted in [
        Wanted::Level,
        Wanted::Worth { level: 0.5 * right.level, worth: &worth, by_type: &by_type, given: &[] },
    ] {
        let value = match solve(&sharing, wanted, &WarmPrices::default(), &Limits::default()) {
            Some((shares, _)) => Certificate::of_jobs(&sharing, wanted, &shares).primal,
            None => best,
        };
        for _ in 0..20 {
            let mut wrong = right.clone();
            let prices =
                wrong.worker_price.iter_mut().chain(&mut wrong.throughput_price).chain(&mut wrong.time_price);
            prices.for_each(|price| *price *= 2.0 * draws.next());
            let judged = Certificate::of_jobs(&sharing, wanted, &wrong);
            assert!(judged.bound >= value * (1.0 - 1e-9), "{judged:?} below {value}");
        }
    }
    let mut wrong = right.clone();
    wrong.time.iter_mut().for_each(|time| *time *= 1.01);
    assert!(!Certificate::of_jobs(&sharing, Wanted::Level, &wrong).optimal);
    let mut wrong = right.clone();
    wrong.level *= 1.01;
    assert!(!Certificate::of_jobs(&sharing, Wanted::Level, &wrong).optimal);
    let mut wrong = right;
    wrong.throughput_price[3] = f64::NAN;
    assert!(!Certificate::of_jobs(&sharing, Wanted::Level, &wrong).optimal);
}

/// The program of promises, term by term: columns of all members on all types, then what is kept of each promise.
fn written_promises(sharing: &Sharing<'_>, due: &[bool]) -> Program {
    let instance = sharing.instance();
    let (n, k) = (instance.n_members(), instance.n_types());
    let mut program = Program::new(Sense::Maximize);
    for (member, j) in (0..n).flat_map(|member| (0..k).map(move |j| (member, j))) {
        let range = Range { lower: 0.0, upper: sharing.most(member, j) };
        program.push_column(range, range, 0.0);
    }
    for (due, jobs) in due.iter().zip(&instance.multiplicity) {
        let range = Range { lower: f64::from(u8::from(*due)), upper: 1.0 };
        program.push_column(range, range, *jobs);
    }
    for member in 0..n {
        let jobs = instance.multiplicity[member];
        let time = (0..k).map(|j| (member * k + j, 1.0)).chain([(n * k + member, -jobs)]);
        program.push_row(Range::at_most(0.0), time.collect::<Vec<_>>());
        let throughput =
            instance.alone(member).iter().enumerate().map(|(j, speed)| (member * k + j, speed / jobs));
        let throughput = throughput.chain([(n * k + member, -sharing.demand[member])]);
        program.push_row(Range::at_least(0.0), throughput.collect::<Vec<_>>());
    }
    for j in 0..k {
        let used = (0..n).map(|member| (member * k + j, instance.scale_factor[member]));
        program.push_row(Range::at_most(instance.capacity[j]), used.collect::<Vec<_>>());
    }
    program
}

/// What is kept fits, and no solver keeps more.
fn judge_promises(sharing: &Sharing<'_>, due: &[bool], kept: &SoftConstraintsKept) {
    let instance = sharing.instance();
    let (n, k) = (instance.n_members(), instance.n_types());
    let program = written_promises(sharing, due);
    let solution = Solution {
        termination: Termination::Optimal,
        columns: [&kept.time[..], &kept.part[..]].concat(),
        row_duals: vec![0.0; 2 * n + k],
        cone_duals: Vec::new(),
        objective: f64::NAN,
        iterations: 0,
        basis: None,
    };
    let own = Certificate::with_bound(&program, &solution, Some(kept.bound));
    assert!(own.optimal && own.violation_max < 1e-8 && own.gap_relative < 1e-8, "{own:?}");
    let mut other = registry::backend("clarabel").unwrap();
    let other = other.solve(&program, &Limits::default(), None).unwrap().objective;
    assert!((other - own.primal).abs() <= 1e-6 * own.primal, "{other} and {own:?}");
    let dear = |member: &usize| kept.part[*member] < 1e-9 && kept.cost[*member] < 1.0 - 1e-6;
    let lost: Vec<usize> = (0..n).filter(|member| sharing.demand[*member] > 0.0).filter(dear).collect();
    let within = |member: &usize| sharing.fastest(*member) >= sharing.demand[*member];
    assert!(!lost.iter().any(within), "cheap promises are kept: {lost:?}");
}

#[test]
fn promises_are_kept_as_another_solver_keeps_them() {
    let (objective, limits) = (objective(), Limits::default());
    let mut settled = 0;
    for (kind, seed) in KINDS.into_iter().flat_map(|kind| (0..4).map(move |seed| (kind, seed))) {
        let (instance, mut demand, _) = instance(kind, seed);
        for (member, demand) in demand.iter_mut().enumerate() {
            *demand *= instance.alone(member).iter().copied().fold(0.0, f64::max);
        }
        let bound = objective.bind(&instance).unwrap();
        let sharing = bound.singles(demand).unwrap();
        let mut due = vec![false; instance.n_members()];
        let Some(kept) = keep_soft_constraints(&sharing, &due, &limits) else { continue };
        judge_promises(&sharing, &due, &kept);
        // some of those that are let off, because they cost most, are due
        let let_off = (0..due.len()).filter(|member| kept.part[*member] < 1e-9);
        let can = |member: &usize| {
            sharing.fastest(*member) > sharing.demand[*member] && instance.scale_factor[*member] < 2.0
        };
        for member in let_off.filter(can).take(3) {
            due[member] = true;
        }
        let Some(kept) = keep_soft_constraints(&sharing, &due, &limits) else { continue };
        judge_promises(&sharing, &due, &kept);
        settled += 1;
    }
    assert!(settled >= 28, "{settled} of 32 settled");
}
