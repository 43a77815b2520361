use super::curve::{Curve, Shape};
use super::*;
use crate::program::{Affine, Cone, ConeKind, Range, Sense};
use crate::solver::certificate::AnswerCertificate;

fn form(constant: f64, terms: &[(usize, f64)]) -> Affine {
    Affine { constant, terms: terms.to_vec() }
}

/// The cone that bounds the column y by 1/x, √x or log x of the column x.
fn cone(shape: Shape, x: usize, y: usize) -> Cone {
    let (kind, entries) = match shape {
        Shape::Logarithm { .. } => {
            (ConeKind::Exponential, vec![form(0.0, &[(y, 1.0)]), form(1.0, &[]), form(0.0, &[(x, 1.0)])])
        }
        Shape::Root { .. } => {
            let sides = [form(1.0, &[(x, 1.0)]), form(1.0, &[(x, -1.0)])];
            let [sum, difference] = sides;
            (ConeKind::SecondOrder, vec![sum, form(0.0, &[(y, 2.0)]), difference])
        }
        Shape::Inverse { .. } => (
            ConeKind::SecondOrder,
            vec![form(0.0, &[(x, 1.0), (y, 1.0)]), form(2.0, &[]), form(0.0, &[(x, -1.0), (y, 1.0)])],
        ),
    };
    Cone { kind, entries }
}

const INVERSE: Shape = Shape::Inverse { root: 2.0, is_sum: false };
const ROOT: Shape = Shape::Root { factor: 2.0, is_sum: false };
const LOGARITHM: Shape = Shape::Logarithm { scale: 1.0 };

/// Program with the objective Σ c_j·f(x_j) and the row Σ x ≤ 1: columns x₀, y₀, x₁, y₁, …
fn shared(shape: Shape, costs: &[f64]) -> Program {
    let sense = if shape == INVERSE { Sense::Minimize } else { Sense::Maximize };
    let y_range = if shape == LOGARITHM { Range::FREE } else { Range::NON_NEGATIVE };
    let mut program = Program::new(sense);
    for &cost in costs {
        let x = program.push_column(Range::NON_NEGATIVE, Range { lower: 0.0, upper: 1.0 }, 0.0);
        let y = program.push_column(y_range, y_range, cost);
        program.cones.push(cone(shape, x, y));
    }
    program.push_row(Range::at_most(1.0), (0..costs.len()).map(|job| (2 * job, 1.0)));
    program
}

/// Sizes that range over eight decades: [n].
fn unlike(n: u32) -> Vec<f64> {
    (0..n).map(|job| 10.0_f64.powf(f64::from(job % 17) / 2.0)).collect()
}

/// Solves a program, and compares the answer with the known value and the known shares.
fn check(program: &Program, value: f64, shares: impl Fn(usize) -> f64) -> Solution {
    let answer = Separable.solve(program, &Limits::default(), None).unwrap();
    let certificate = AnswerCertificate::of(program, &answer);
    assert_eq!(answer.termination, Termination::Optimal);
    // A multiplier of 1 beside one of 1e11, whose sum is rounded, costs some digits of what a small job is worth.
    assert!(certificate.gap_relative < 1e-7 && certificate.violation_max < 1e-10, "{certificate:?}");
    assert!((certificate.primal / value - 1.0).abs() < 1e-8, "{certificate:?} {value}");
    for job in 0..program.cones.len() {
        let (share, expected) = (answer.columns[2 * job], shares(job));
        assert!((share / expected - 1.0).abs() < 1e-3, "{job}: {share} {expected}");
    }
    answer
}

#[test]
fn inverses_of_unlike_sizes_have_their_closed_form() {
    // x_j = √c_j / Σ√c, and the optimum is (Σ√c)².
    for n in [1, 10, 40, 300] {
        let costs = unlike(n);
        let root: f64 = costs.iter().map(|cost| cost.sqrt()).sum();
        check(&shared(INVERSE, &costs), root * root, |job| costs[job].sqrt() / root);
    }
}

#[test]
fn roots_of_unlike_sizes_have_their_closed_form() {
    // x_j = c_j² / Σc², and the optimum is √Σc²; of shares below 1e-6 no digit counts.
    let costs: Vec<f64> = unlike(40).iter().map(|cost| cost.powf(0.25)).collect();
    let squares: f64 = costs.iter().map(|cost| cost * cost).sum();
    check(&shared(ROOT, &costs), squares.sqrt(), |job| costs[job] * costs[job] / squares);
}

#[test]
fn logarithms_of_unlike_sizes_have_their_closed_form() {
    // x_j = c_j / Σc
    let costs = unlike(40);
    let sum: f64 = costs.iter().sum();
    let value = costs.iter().map(|cost| cost * (cost / sum).ln()).sum();
    let answer = check(&shared(LOGARITHM, &costs), value, |job| costs[job] / sum);
    // One more of all there is to share is worth Σc.
    assert!((answer.row_duals[0] / sum - 1.0).abs() < 1e-6, "{:?}", answer.row_duals);
}

#[test]
fn answers_do_not_depend_on_units() {
    let costs = unlike(20);
    let solve = |factor: f64| {
        let mut program = shared(INVERSE, &costs);
        program.cost.iter_mut().for_each(|cost| *cost *= factor);
        Separable.solve(&program, &Limits::default(), None).unwrap()
    };
    let (one, million) = (solve(1.0), solve(1_048_576.0));
    assert_eq!(one.columns, million.columns);
}

/// Program with the objective t + Σ c_j·y_j, where y_j ≥ 1/x_j, a_j·y_j ≤ t and Σ x ≤ 1: t is the last column.
fn with_worst(costs: &[f64], parts: &[f64]) -> Program {
    let mut program = shared(INVERSE, costs);
    let level = program.push_column(Range::FREE, Range { lower: 0.0, upper: 1e12 }, 1.0);
    for (job, &part) in parts.iter().enumerate() {
        program.push_row(Range::at_most(0.0), [(2 * job + 1, part), (level, -1.0)]);
    }
    program
}

/// The optimum of [`with_worst`] by two nested searches in one number each: for a level t, x_j = max(a_j/t, √(c_j/ν)).
fn worst_by_search(costs: &[f64], parts: &[f64]) -> f64 {
    let share = |job: usize, level: f64, price: f64| (parts[job] / level).max((costs[job] / price).sqrt());
    let value = |level: f64| {
        let (mut low, mut high) = (-60.0_f64, 60.0_f64);
        for _ in 0..200 {
            let middle = f64::midpoint(low, high);
            let total: f64 = (0..costs.len()).map(|job| share(job, level, middle.exp())).sum();
            (low, high) = if total > 1.0 { (middle, high) } else { (low, middle) };
        }
        level + (0..costs.len()).map(|job| costs[job] / share(job, level, high.exp())).sum::<f64>()
    };
    // A level below Σa cannot be reached.
    let least: f64 = parts.iter().sum();
    let (mut low, mut high) = (least.ln() + 1e-12, least.ln() + 20.0);
    for _ in 0..200 {
        let (one, two) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        (low, high) = if value(one.exp()) < value(two.exp()) { (low, two) } else { (one, high) };
    }
    value(low.exp())
}

#[test]
fn the_worst_of_inverses_and_their_sum_agree_with_a_search() {
    for n in [3, 40] {
        let costs = unlike(n);
        let parts: Vec<f64> = (0..n).map(|job| 10.0_f64.powf(f64::from(job * 7 % 13) / 3.0)).collect();
        let program = with_worst(&costs, &parts);
        let answer = Separable.solve(&program, &Limits::default(), None).unwrap();
        let certificate = AnswerCertificate::of(&program, &answer);
        assert!(certificate.gap_relative < 1e-7 && certificate.violation_max < 1e-8, "{certificate:?}");
        let expected = worst_by_search(&costs, &parts);
        assert!((certificate.primal / expected - 1.0).abs() < 1e-7, "{certificate:?} {expected}");
    }
}

#[test]
fn functions_of_the_same_number_are_tied_and_have_their_closed_form() {
    // c/x + d·(1/x) with the second cone's entries twice as large, in units of its own: as (c + d/2)/x.
    let costs = unlike(20);
    let mut program = shared(INVERSE, &costs);
    for (job, cost) in costs.iter().enumerate() {
        let y = program.push_column(Range::NON_NEGATIVE, Range::NON_NEGATIVE, *cost);
        let mut second = cone(INVERSE, 2 * job, y);
        // y + 2x ≥ ‖(2, y − 2x)‖: y ≥ 1/(2x)
        for entry in [0, 2] {
            second.entries[entry].terms[0].1 *= 2.0;
        }
        program.cones.push(second);
    }
    let root: f64 = costs.iter().map(|cost| (1.5 * cost).sqrt()).sum();
    let answer = Separable.solve(&program, &Limits::default(), None).unwrap();
    let certificate = AnswerCertificate::of(&program, &answer);
    assert_eq!(answer.termination, Termination::Optimal);
    assert!(certificate.gap_relative < 1e-7 && certificate.violation_max < 1e-10, "{certificate:?}");
    assert!((certificate.primal / (root * root) - 1.0).abs() < 1e-8, "{certificate:?}");
}

#[test]
fn multipliers_of_a_curve_price_its_points_at_nothing_and_others_above() {
    let swapped = |mut cone: Cone| {
        let last = cone.entries.pop().unwrap();
        let negated = last.terms.iter().map(|(column, value)| (*column, -value)).collect();
        cone.entries.push(Affine { constant: -last.constant, terms: negated });
        cone
    };
    for (plain, u) in [(INVERSE, 0.3), (INVERSE, 40.0), (ROOT, 0.02), (ROOT, 3.0), (LOGARITHM, 0.7)] {
        let plain_cone = cone(plain, 0, 1);
        let cones =
            if plain == LOGARITHM { vec![plain_cone] } else { vec![plain_cone.clone(), swapped(plain_cone)] };
        for cone in cones {
            let curves = Curve::of(&cone);
            let curve = curves.iter().find(|curve| curve.column == 1).unwrap();
            let at: f64 = curve.form.constant + curve.form.terms[0].1 * u;
            let lambda = 1.7;
            let duals = curve.shape.duals(lambda, lambda * curve.shape.slope(at));
            let price = |u: f64, y: f64| -> f64 {
                let x = [u, y];
                let entry =
                    |entry: &Affine| entry.constant + entry.terms.iter().map(|(c, v)| v * x[*c]).sum::<f64>();
                cone.entries.iter().map(entry).zip(&duals).map(|(entry, dual)| entry * dual).sum()
            };
            let on = |u: f64| {
                let at = curve.form.constant + curve.form.terms[0].1 * u;
                (curve.shape.value(at) - curve.constant) / curve.factor
            };
            assert!(price(u, on(u)).abs() < 1e-12, "{plain:?} {u}: {}", price(u, on(u)));
            for other in [0.5 * u, 0.9 * u, 1.1 * u, 3.0 * u] {
                assert!(price(other, on(other)) > 1e-4 * u.min(1.0), "{plain:?} {u} {other}");
            }
        }
    }
}

#[test]
fn what_is_no_sum_of_curves_it_declines() {
    let declined = |program: &Program| {
        matches!(Separable.solve(program, &Limits::default(), None), Err(SolveError::Declined { .. }))
    };
    let mut linear = shared(ROOT, &[1.0, 2.0]);
    linear.cones.clear();
    assert!(declined(&linear));
    // a column y of two cones
    let mut twice = shared(ROOT, &[1.0, 2.0]);
    twice.cones[1] = cone(ROOT, 2, 1);
    assert!(declined(&twice));
    // a cone of another cone's column, before or behind it
    for reverse in [false, true] {
        let mut nested = shared(ROOT, &[1.0, 2.0]);
        nested.cones[1] = cone(ROOT, 1, 3);
        if reverse {
            nested.cones.reverse();
        }
        assert!(declined(&nested));
    }
    // a disc
    let mut disc = shared(ROOT, &[1.0, 2.0]);
    disc.cones[1].entries = vec![form(1.0, &[]), form(0.0, &[(2, 1.0)]), form(0.0, &[(3, 1.0)])];
    assert!(declined(&disc));
    // y with a bound that its function does not give it
    let mut bounded = shared(ROOT, &[1.0, 2.0]);
    bounded.columns[1].upper = 0.5;
    assert!(declined(&bounded));
    // a cone whose column has no cost
    assert!(declined(&shared(LOGARITHM, &[1.0, 0.0])));
}

#[test]
fn limits_are_kept_and_what_cannot_be_is_no_optimum() {
    let program = shared(INVERSE, &unlike(20));
    let few = Limits { iterations: Some(2), ..Limits::default() };
    assert_eq!(Separable.solve(&program, &few, None).unwrap().termination, Termination::IterationLimit);
    let mut impossible = shared(INVERSE, &[1.0, 2.0]);
    impossible.push_row(Range::at_least(3.0), [(0, 1.0), (2, 1.0)]);
    let answer = Separable.solve(&impossible, &Limits::default(), None).unwrap();
    assert_eq!(answer.termination, Termination::Failed);
}
