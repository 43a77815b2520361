#![expect(clippy::float_cmp, reason = "these values are exact")]

use proptest::prelude::*;

use super::*;
use crate::program::Affine;
use crate::solver::backend::Termination;
use crate::solver::intake::without_columns;

fn answer(columns: &[f64], row_duals: &[f64]) -> Solution {
    Solution {
        columns: columns.to_vec(),
        row_duals: row_duals.to_vec(),
        ..without_columns(Termination::Optimal)
    }
}

/// Program that maximizes 3x + 2y subject to x + y ≤ 4, x + 3y ≤ 8, 0 ≤ x ≤ 3, 0 ≤ y: 11 at (3, 1), duals (2, 0).
fn two_shares() -> Program {
    let mut program = Program::new(Sense::Maximize);
    let x = Range { lower: 0.0, upper: 3.0 };
    program.push_column(x, x, 3.0);
    program.push_column(Range::NON_NEGATIVE, Range::NON_NEGATIVE, 2.0);
    program.push_row(Range::at_most(4.0), [(0, 1.0), (1, 1.0)]);
    program.push_row(Range::at_most(8.0), [(0, 1.0), (1, 3.0)]);
    program
}

#[test]
fn the_right_duals_prove_the_right_answer() {
    let certificate = AnswerCertificate::of(&two_shares(), &answer(&[3.0, 1.0], &[2.0, 0.0]));
    assert!(certificate.optimal, "{certificate:?}");
    assert!((certificate.bound - 11.0).abs() < 1e-12 && certificate.violation_max == 0.0, "{certificate:?}");
}

#[test]
fn a_status_proves_nothing() {
    let program = two_shares();
    for (what, columns, duals) in [
        ("a worse point", &[2.0, 1.0][..], &[2.0, 0.0][..]),
        ("a point outside a row", &[3.0, 1.1], &[2.0, 0.0]),
        ("a point outside a column", &[3.5, 0.5], &[2.0, 0.0]),
        ("duals of another row", &[3.0, 1.0], &[0.0, 2.0]),
        ("duals of the wrong sign", &[3.0, 1.0], &[-2.0, 0.0]),
        ("no duals", &[3.0, 1.0], &[]),
        ("no point", &[], &[2.0, 0.0]),
        ("a NaN", &[3.0, f64::NAN], &[2.0, 0.0]),
        ("a NaN dual", &[3.0, 1.0], &[f64::NAN, 0.0]),
    ] {
        let certificate = AnswerCertificate::of(&program, &answer(columns, duals));
        assert!(!certificate.optimal, "{what}: {certificate:?}");
        assert!(certificate.bound >= 11.0, "{what} falsified the bound: {certificate:?}");
    }
}

#[test]
fn an_answer_without_duals_is_certified_by_a_bound_from_elsewhere_only() {
    let program = two_shares();
    let silent = answer(&[3.0, 1.0], &[]);
    assert_eq!(AnswerCertificate::of(&program, &silent).bound, f64::INFINITY);
    assert!(AnswerCertificate::with_bound(&program, &silent, Some(11.0)).optimal);
    assert!(!AnswerCertificate::with_bound(&program, &silent, Some(11.1)).optimal);
}

#[test]
fn an_open_level_is_bounded_by_its_rows() {
    // max t, t ≤ 2x, x ≤ 1, with nothing said of t: a dual slightly too small costs slightly more
    let mut program = Program::new(Sense::Maximize);
    program.push_column(Range::NON_NEGATIVE, Range::NON_NEGATIVE, 1.0);
    program.push_column(Range::NON_NEGATIVE, Range::NON_NEGATIVE, 0.0);
    program.push_row(Range::at_most(0.0), [(0, 1.0), (1, -2.0)]);
    program.push_row(Range::at_most(1.0), [(1, 1.0)]);
    let bound = dual_bound(&program, &[0.9, 1.8], &[]);
    assert!((2.0..2.0 + 1e-6).contains(&bound), "{bound}");
}

#[test]
fn a_reduced_cost_towards_infinity_is_repaired_or_proves_nothing() {
    // min x + y over x − y = 1, x ≥ 0, y free, x ≥ 2: duals 1.5 off in the last digits
    let mut program = Program::new(Sense::Minimize);
    program.push_column(Range::at_least(2.0), Range::at_least(2.0), 1.0);
    program.push_column(Range::FREE, Range::FREE, 1.0);
    program.push_row(Range::exactly(1.0), [(0, 1.0), (1, -1.0)]);
    // the row makes y finite below but not above; its reduced cost 1 + y₀ must not be negative
    for off in [-1e-9, 0.0, 1e-9] {
        let bound = dual_bound(&program, &[-1.0 + off], &[]);
        assert!((bound - 3.0).abs() < 1e-6 && bound <= 3.0 + 1e-12, "{off}: {bound}");
    }
    let mut alone = Program::new(Sense::Minimize);
    alone.push_column(Range::FREE, Range::FREE, 1.0);
    assert_eq!(dual_bound(&alone, &[], &[]), f64::NEG_INFINITY);
}

#[test]
fn a_speck_of_the_wrong_sign_costs_nothing() {
    let bound = dual_bound(&two_shares(), &[2.0, -1e-9], &[]);
    assert!((bound - 11.0).abs() < 1e-6, "{bound}");
}

#[test]
fn second_order_duals_that_are_too_long_are_shortened() {
    // min t, t ≥ ‖(x − 3, y − 4)‖, x + y ≤ 2: 5/√2, with z = (1, ½√2, ½√2) and ½√2 for the row, negated
    let mut program = Program::new(Sense::Minimize);
    let range = Range { lower: -9.0, upper: 9.0 };
    program.push_column(range, range, 0.0);
    program.push_column(range, range, 0.0);
    program.push_column(Range::NON_NEGATIVE, Range::NON_NEGATIVE, 1.0);
    program.push_row(Range::at_most(2.0), [(0, 1.0), (1, 1.0)]);
    let entry = |constant, column| Affine { constant, terms: vec![(column, 1.0)] };
    program.cones.push(Cone {
        kind: ConeKind::SecondOrder,
        entries: vec![entry(0.0, 2), entry(-3.0, 0), entry(-4.0, 1)],
    });
    let optimum = 5.0 * std::f64::consts::FRAC_1_SQRT_2;
    for length in [0.5, 1.0, 1.0 + 1e-9, 1.1, 3.0] {
        let v = length * std::f64::consts::FRAC_1_SQRT_2;
        let bound = dual_bound(&program, &[-v], &[vec![1.0, v, v]]);
        let right = dual_bound(&program, &[-v], &[vec![-1.0, -v, -v]]);
        assert!(bound <= optimum + 1e-12 && right <= optimum + 1e-12, "{length}: {bound} {right}");
        if (length - 1.0).abs() < 1e-6 {
            assert!(right > optimum - 1e-6, "{length}: {right}");
        }
    }
}

#[test]
fn gaps_are_relative_to_small_objectives_too() {
    // max t, t ≤ 1e-7·x, x ≤ 1
    let mut program = Program::new(Sense::Maximize);
    let share = Range { lower: 0.0, upper: 1.0 };
    program.push_column(Range::NON_NEGATIVE, Range { lower: 0.0, upper: 1e-6 }, 1.0);
    program.push_column(share, share, 0.0);
    program.push_row(Range::at_most(0.0), [(0, 1.0), (1, -1e-7)]);
    assert!(AnswerCertificate::of(&program, &answer(&[1e-7, 1.0], &[1.0])).optimal);
    let worse = AnswerCertificate::of(&program, &answer(&[0.99e-7, 1.0], &[1.0]));
    assert!((worse.gap_relative - 0.01).abs() < 1e-6 && !worse.optimal, "{worse:?}");
    // an objective that only a violated row allows
    let better = AnswerCertificate::of(&program, &answer(&[1.01e-7, 1.0], &[1.0]));
    assert!(!better.optimal, "{better:?}");
}

#[test]
fn cones_are_checked_in_the_terms_of_their_logarithm() {
    let entry = |column| Affine { constant: 0.0, terms: vec![(column, 1.0)] };
    let exponential = Cone { kind: ConeKind::Exponential, entries: vec![entry(0), entry(1), entry(2)] };
    let violation = |x: &[f64]| cone_violation(&exponential, x);
    assert!(violation(&[1.0, 1.0, std::f64::consts::E]) < 1e-15);
    assert!((violation(&[1.5, 1.0, std::f64::consts::E]) - 1.0 / 3.0).abs() < 1e-12);
    assert_eq!(violation(&[-1.0, 0.0, 0.0]), 0.0);
    assert_eq!(violation(&[1.0, 0.0, 1.0]), 1.0);
    assert_eq!(violation(&[-1.0, 1.0, -0.5]), 1.0);
    let second = Cone { kind: ConeKind::SecondOrder, entries: vec![entry(0), entry(1), entry(2)] };
    assert_eq!(cone_violation(&second, &[5.0, 3.0, 4.0]), 0.0);
    assert!((cone_violation(&second, &[4.0, 3.0, 4.0]) - 0.2).abs() < 1e-12);
}

const COLUMNS: usize = 4;
const ROWS: usize = 3;

/// Numbers for a program around a feasible point: coefficients, slacks, duals.
#[derive(Clone, Debug)]
struct Numbers {
    maximize: bool,
    point: Vec<f64>,
    costs: Vec<f64>,
    coefficients: Vec<f64>,
    /// Distances of each row's value at the point from its bounds below and above, none for an infinite bound: [ROWS].
    slacks: Vec<(Option<f64>, Option<f64>)>,
    row_duals: Vec<f64>,
    cone_duals: Vec<f64>,
}

fn numbers() -> impl Strategy<Value = Numbers> {
    let value = || prop_oneof![1 => Just(0.0), 6 => -5.0..5.0_f64];
    let slack = || prop::option::weighted(0.7, prop_oneof![Just(0.0), 0.0..2.0_f64]);
    (
        any::<bool>(),
        prop::collection::vec(0.0..3.0_f64, COLUMNS),
        prop::collection::vec(value(), COLUMNS + 3),
        prop::collection::vec(value(), COLUMNS * ROWS),
        prop::collection::vec((slack(), slack()), ROWS),
        prop::collection::vec(value(), ROWS),
        prop::collection::vec(value(), 9),
    )
        .prop_map(|(maximize, point, costs, coefficients, slacks, row_duals, cone_duals)| Numbers {
            maximize,
            point,
            costs,
            coefficients,
            slacks,
            row_duals,
            cone_duals,
        })
}

/// A linear program around a feasible point, and that point.
fn around(numbers: &Numbers) -> (Program, Vec<f64>) {
    let sense = if numbers.maximize { Sense::Maximize } else { Sense::Minimize };
    let mut program = Program::new(sense);
    for column in 0..COLUMNS {
        let range = Range { lower: 0.0, upper: if column == 0 { f64::INFINITY } else { 3.0 } };
        program.push_column(range, range, numbers.costs[column]);
    }
    for row in 0..ROWS {
        let terms = &numbers.coefficients[row * COLUMNS..(row + 1) * COLUMNS];
        let value: f64 = terms.iter().zip(&numbers.point).map(|(a, x)| a * x).sum();
        let (below, above) = numbers.slacks[row];
        let range = Range {
            lower: below.map_or(f64::NEG_INFINITY, |slack| value - slack),
            upper: above.map_or(f64::INFINITY, |slack| value + slack),
        };
        program.push_row(range, terms.iter().copied().enumerate());
    }
    (program, numbers.point.clone())
}

/// Adds two exponential cones and a second-order cone, and extends the point so that they hold at it.
fn with_cones(program: &mut Program, point: &mut Vec<f64>, numbers: &Numbers) {
    let single = |constant, column| Affine { constant, terms: vec![(column, 1.0)] };
    for (position, of) in [(0, 1), (1, 2)] {
        let z = point[of] + 0.5;
        let column = program.push_column(Range::FREE, Range::FREE, numbers.costs[COLUMNS + position]);
        point.push(z.ln());
        // the second has its middle entry in a column too: y = x₃ + 1
        let middle = if position == 0 { Affine { constant: 1.0, terms: vec![] } } else { single(1.0, 3) };
        let y = middle.constant + if position == 0 { 0.0 } else { point[3] };
        point[column] = y * (z / y).ln();
        program.cones.push(Cone {
            kind: ConeKind::Exponential,
            entries: vec![single(0.0, column), middle, single(0.5, of)],
        });
    }
    let (v, w) = (point[1] - 1.0, point[2] - 2.0);
    let column = program.push_column(Range::NON_NEGATIVE, Range::NON_NEGATIVE, numbers.costs[COLUMNS + 2]);
    point.push((v * v + w * w).sqrt());
    program.cones.push(Cone {
        kind: ConeKind::SecondOrder,
        entries: vec![single(0.0, column), single(-1.0, 1), single(-2.0, 2)],
    });
}

fn holds(program: &Program, point: &[f64], bound: f64) -> bool {
    let objective = program.objective(point);
    let slack = 1e-12 * (1.0 + objective.abs());
    match program.sense {
        Sense::Maximize => objective <= bound + slack,
        Sense::Minimize => objective >= bound - slack,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_duals_whatever_bring_a_bound_below_a_feasible_point(numbers in numbers()) {
        let (program, point) = around(&numbers);
        let bound = dual_bound(&program, &numbers.row_duals, &[]);
        prop_assert!(holds(&program, &point, bound), "{bound} against {}", program.objective(&point));
    }

    #[test]
    fn no_cone_duals_whatever_bring_a_bound_below_a_feasible_point(numbers in numbers()) {
        let (mut program, mut point) = around(&numbers);
        with_cones(&mut program, &mut point, &numbers);
        let violation = violation(&program, &boxes(&program), &point);
        prop_assert!(violation < 1e-12, "the point itself is outside by {violation}");
        let duals: Vec<Vec<f64>> = numbers.cone_duals.chunks(3).map(<[f64]>::to_vec).collect();
        let bound = dual_bound(&program, &numbers.row_duals, &duals);
        prop_assert!(holds(&program, &point, bound), "{bound} against {}", program.objective(&point));
    }

    #[test]
    fn boxes_never_exclude_a_feasible_point(numbers in numbers()) {
        let (mut program, point) = around(&numbers);
        for (column, range) in program.columns.clone().into_iter().enumerate() {
            program.implied[column] = Range { upper: f64::INFINITY, ..range };
            program.columns[column].upper = f64::INFINITY;
        }
        for (value, range) in point.iter().zip(boxes(&program)) {
            let slack = 1e-12 * (1.0 + value.abs());
            prop_assert!(range.lower - slack <= *value && *value <= range.upper + slack, "{value} {range:?}");
        }
    }
}
