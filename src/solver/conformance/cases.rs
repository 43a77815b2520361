//! The programs of the suite, each solved by hand in a line.

use crate::program::{Affine, Cone, ConeKind, Program, Range, Sense};
use crate::solver::conformance::Case;
use crate::solver::conformance::Expected::{Infeasible, Optimal, Unbounded};

const SHARE: Range = Range { lower: 0.0, upper: 1.0 };

macro_rules! case {
    ($name:literal, $program:ident, $expected:expr) => {
        Case { name: $name, expected: $expected, duals_unique: false, program: $program }
    };
    ($name:literal, $program:ident, $expected:expr, duals) => {
        Case { name: $name, expected: $expected, duals_unique: true, program: $program }
    };
}

/// All cases.
pub const CASES: &[Case] = &[
    case!("maximize over at-most rows", at_most_rows, Optimal(11.0), duals),
    case!("minimize over at-least rows", at_least_rows, Optimal(9.0), duals),
    case!("minimize with at-most rows, and an offset", minimized_at_most, Optimal(-1.0), duals),
    case!("maximize with at-least rows", maximized_at_least, Optimal(-9.0), duals),
    case!("an equality, a range and a free column", mixed_rows, Optimal(-4.0), duals),
    case!("a range that binds above", range_binds_above, Optimal(6.0), duals),
    case!("a range that binds below", range_binds_below, Optimal(4.0), duals),
    case!("a free row", free_row, Optimal(3.0), duals),
    case!("a fixed column", fixed_column, Optimal(7.0), duals),
    case!("negative bounds", negative_bounds, Optimal(-5.0)),
    case!("contradictory rows", contradictory_rows, Infeasible),
    case!("contradictory equalities", contradictory_equalities, Infeasible),
    case!("contradictory bounds of a column", contradictory_columns, Infeasible),
    case!("contradictory bounds of a row", contradictory_range, Infeasible),
    case!("an empty row that cannot hold", empty_row_fails, Infeasible),
    case!("an empty row that holds", empty_row_holds, Optimal(1.0)),
    case!("unbounded along a ray", unbounded_ray, Unbounded),
    case!("unbounded without rows", unbounded_column, Unbounded),
    case!("unbounded below", unbounded_below, Unbounded),
    case!("a degenerate vertex", degenerate, Optimal(2.0)),
    case!("a degenerate assignment", assignment, Optimal(5.0)),
    case!("no rows", no_rows, Optimal(5.0)),
    case!("no rows and no bounds", no_rows_no_bounds, Optimal(3.0)),
    case!("no columns", no_columns, Optimal(7.0)),
    case!("no columns and a row that fails", no_columns_infeasible, Infeasible),
    case!("no objective", no_objective, Optimal(0.0)),
    case!("one job", one_job, Optimal(2.0)),
    case!("one job that needs more workers than one type has", one_wide_job, Optimal(1.5)),
    case!("a job without throughput", zero_throughput, Optimal(0.0)),
    case!("two jobs, two types", two_jobs, Optimal(4.0 / 3.0), duals),
    case!("levels of 1e-8", tiny_levels, Optimal(5e-8)),
    case!("coefficients from 1e-3 to 1e5", wide_coefficients, Optimal(203_000.0)),
    case!("bounds of 1e7", large_bounds, Optimal(3e7)),
    case!("logarithms", logarithms, Optimal(1.386_294_361_119_890_6), duals),
    case!("an exponential to minimize", exponential, Optimal(std::f64::consts::E + 1.0), duals),
    case!("logarithms of nothing", logarithm_of_nothing, Infeasible),
    case!("a disc", disc, Optimal(std::f64::consts::SQRT_2), duals),
    case!("a distance", distance, Optimal(3.535_533_905_932_737_7), duals),
];

/// A program of columns (bounds, which are its implied bounds too, and cost) and rows (bounds and coefficients).
fn program(sense: Sense, columns: &[(Range, f64)], rows: &[(Range, &[f64])]) -> Program {
    let mut program = Program::new(sense);
    for &(range, cost) in columns {
        program.push_column(range, range, cost);
    }
    for &(range, coefficients) in rows {
        program.push_row(range, coefficients.iter().copied().enumerate().filter(|&(_, value)| value != 0.0));
    }
    program
}

/// Bounds from `lower` to `upper`.
const fn between(lower: f64, upper: f64) -> Range {
    Range { lower, upper }
}

fn maximize(columns: &[(Range, f64)], rows: &[(Range, &[f64])]) -> Program {
    program(Sense::Maximize, columns, rows)
}

fn minimize(columns: &[(Range, f64)], rows: &[(Range, &[f64])]) -> Program {
    program(Sense::Minimize, columns, rows)
}

/// x = 3 at its bound, y = 1: the first row binds, the second has room.
fn at_most_rows() -> Program {
    maximize(
        &[(between(0.0, 3.0), 3.0), (Range::NON_NEGATIVE, 2.0)],
        &[(Range::at_most(4.0), &[1.0, 1.0]), (Range::at_most(8.0), &[1.0, 3.0])],
    )
}

/// Both rows bind at (3, 1): 2·3 + 3·1.
fn at_least_rows() -> Program {
    minimize(
        &[(Range::NON_NEGATIVE, 2.0), (Range::NON_NEGATIVE, 3.0)],
        &[(Range::at_least(4.0), &[1.0, 1.0]), (Range::at_least(6.0), &[1.0, 3.0])],
    )
}

/// The first case negated, plus 10.
fn minimized_at_most() -> Program {
    let mut program = at_most_rows();
    program.sense = Sense::Minimize;
    program.cost = vec![-3.0, -2.0];
    program.offset = 10.0;
    program
}

/// The second case negated.
fn maximized_at_least() -> Program {
    let mut program = at_least_rows();
    program.sense = Sense::Maximize;
    program.cost = vec![-2.0, -3.0];
    program
}

/// x = 2 + z, so the objective is 2 + 4z + 2y with y ≥ −1 − z: best at x = 0, y = 1, z = −2.
fn mixed_rows() -> Program {
    let mut program = minimize(
        &[(Range::NON_NEGATIVE, 1.0), (Range::at_least(-1.0), 2.0), (Range::FREE, 3.0)],
        &[(between(1.0, 3.0), &[1.0, 1.0, 0.0]), (Range::exactly(2.0), &[1.0, 0.0, -1.0])],
    );
    program.implied[2] = between(-10.0, 10.0);
    program
}

/// The optimum of 2x + y with 1 ≤ x + y ≤ 3 has all of the sum on x.
fn range_binds_above() -> Program {
    maximize(&[(Range::NON_NEGATIVE, 2.0), (Range::NON_NEGATIVE, 1.0)], &[(between(1.0, 3.0), &[1.0, 1.0])])
}

/// The optimum of 2x + 3y with 2 ≤ x + y ≤ 5 has the least sum, all on x.
fn range_binds_below() -> Program {
    minimize(&[(Range::NON_NEGATIVE, 2.0), (Range::NON_NEGATIVE, 3.0)], &[(between(2.0, 5.0), &[1.0, 1.0])])
}

/// A row without bounds restricts nothing and has a dual of 0.
fn free_row() -> Program {
    maximize(&[(Range::NON_NEGATIVE, 1.0)], &[(Range::FREE, &[5.0]), (Range::at_most(3.0), &[1.0])])
}

/// x = 2 is given; y ≤ 5 − 2.
fn fixed_column() -> Program {
    maximize(&[(Range::exactly(2.0), 2.0), (Range::NON_NEGATIVE, 1.0)], &[(Range::at_most(5.0), &[1.0, 1.0])])
}

/// Both columns are at their lower bounds, −2 and −3; the row has room.
fn negative_bounds() -> Program {
    minimize(
        &[(between(-2.0, -1.0), 1.0), (between(-3.0, 4.0), 1.0)],
        &[(Range::at_least(-6.0), &[1.0, 1.0])],
    )
}

fn contradictory_rows() -> Program {
    maximize(
        &[(Range::NON_NEGATIVE, 1.0), (Range::NON_NEGATIVE, 1.0)],
        &[(Range::at_least(3.0), &[1.0, 1.0]), (Range::at_most(1.0), &[1.0, 1.0])],
    )
}

fn contradictory_equalities() -> Program {
    minimize(
        &[(SHARE, 1.0), (SHARE, 1.0)],
        &[(Range::exactly(1.0), &[1.0, 1.0]), (Range::exactly(3.0), &[2.0, 2.0])],
    )
}

fn contradictory_columns() -> Program {
    maximize(&[(between(2.0, 1.0), 1.0)], &[(Range::at_most(5.0), &[1.0])])
}

fn contradictory_range() -> Program {
    maximize(&[(SHARE, 1.0)], &[(between(0.5, 0.25), &[1.0])])
}

fn empty_row_fails() -> Program {
    maximize(&[(SHARE, 1.0)], &[(Range::at_least(1.0), &[]), (Range::at_most(1.0), &[1.0])])
}

fn empty_row_holds() -> Program {
    maximize(&[(SHARE, 1.0)], &[(between(-1.0, 1.0), &[])])
}

/// The objective grows without end along (1, 1).
fn unbounded_ray() -> Program {
    maximize(
        &[(Range::NON_NEGATIVE, 1.0), (Range::NON_NEGATIVE, 1.0)],
        &[(Range::at_most(1.0), &[1.0, -1.0])],
    )
}

fn unbounded_column() -> Program {
    maximize(&[(Range::NON_NEGATIVE, 1.0)], &[])
}

fn unbounded_below() -> Program {
    minimize(&[(Range::FREE, 1.0), (SHARE, 1.0)], &[(Range::at_most(4.0), &[1.0, 1.0])])
}

/// Four rows meet in (1, 1).
fn degenerate() -> Program {
    maximize(
        &[(Range::NON_NEGATIVE, 1.0), (Range::NON_NEGATIVE, 1.0)],
        &[
            (Range::at_most(1.0), &[1.0, 0.0]),
            (Range::at_most(1.0), &[0.0, 1.0]),
            (Range::at_most(2.0), &[1.0, 1.0]),
            (Range::at_most(3.0), &[2.0, 1.0]),
        ],
    )
}

/// Three people, three tasks, costs 2 3 3 / 3 2 3 / 3 3 1: the diagonal.
fn assignment() -> Program {
    let costs = [2.0, 3.0, 3.0, 3.0, 2.0, 3.0, 3.0, 3.0, 1.0];
    let columns: Vec<(Range, f64)> = costs.iter().map(|&cost| (SHARE, cost)).collect();
    let mut program = minimize(&columns, &[]);
    for line in 0..3 {
        program.push_row(Range::exactly(1.0), (0..3).map(|other| (3 * line + other, 1.0)));
        program.push_row(Range::exactly(1.0), (0..3).map(|other| (3 * other + line, 1.0)));
    }
    program
}

/// Each column is at its better bound: 2·3 − 1.
fn no_rows() -> Program {
    maximize(&[(between(0.0, 3.0), 2.0), (between(1.0, 5.0), -1.0)], &[])
}

/// No column has a cost, so that the offset is the optimum.
fn no_rows_no_bounds() -> Program {
    let mut program = maximize(&[(Range::FREE, 0.0)], &[]);
    program.offset = 3.0;
    program
}

fn no_columns() -> Program {
    let mut program = maximize(&[], &[(between(-1.0, 1.0), &[])]);
    program.offset = 7.0;
    program
}

fn no_columns_infeasible() -> Program {
    maximize(&[], &[(Range::at_least(1.0), &[])])
}

fn no_objective() -> Program {
    maximize(&[(SHARE, 0.0), (SHARE, 0.0)], &[(Range::exactly(1.0), &[1.0, 1.0])])
}

/// A level, then shares of one job on two types of throughput 2 and 1: all on the first.
fn one_job() -> Program {
    maximize(
        &[(between(0.0, 2.0), 1.0), (SHARE, 0.0), (SHARE, 0.0)],
        &[
            (Range::at_most(0.0), &[1.0, -2.0, -1.0]),
            (Range::at_most(1.0), &[0.0, 1.0, 1.0]),
            (Range::at_most(1.0), &[0.0, 1.0, 0.0]),
            (Range::at_most(1.0), &[0.0, 0.0, 1.0]),
        ],
    )
}

/// The job holds 4 workers; the fast type has 2, so at most half of the time there: 2·½ + 1·½.
fn one_wide_job() -> Program {
    maximize(
        &[(between(0.0, 2.0), 1.0), (SHARE, 0.0), (SHARE, 0.0)],
        &[
            (Range::at_most(0.0), &[1.0, -2.0, -1.0]),
            (Range::at_most(1.0), &[0.0, 1.0, 1.0]),
            (Range::at_most(2.0), &[0.0, 4.0, 0.0]),
            (Range::at_most(8.0), &[0.0, 0.0, 4.0]),
        ],
    )
}

/// The second job runs nowhere, so the least level is zero; its coefficient is stored, and zero.
fn zero_throughput() -> Program {
    let mut program = maximize(&[(between(0.0, 3.0), 1.0), (SHARE, 0.0), (SHARE, 0.0)], &[]);
    program.push_row(Range::at_most(0.0), [(0, 1.0), (1, -3.0)]);
    program.push_row(Range::at_most(0.0), [(0, 1.0), (2, 0.0)]);
    program.push_row(Range::at_most(1.0), [(1, 1.0), (2, 1.0)]);
    program
}

/// Two jobs share two types: t ≤ 2a + b and t ≤ 2d with a + c ≤ 1 and b + d ≤ ⅔. Job 1 gets nothing from c, and 2·⅔ =
/// 4/3 from d = ⅔; job 0 has more, at a = 1.
fn two_jobs() -> Program {
    let time = between(0.0, 1.0);
    maximize(
        &[(between(0.0, 2.0), 1.0), (time, 0.0), (time, 0.0), (time, 0.0), (time, 0.0)],
        &[
            (Range::at_most(0.0), &[1.0, -2.0, -1.0, 0.0, 0.0]),
            (Range::at_most(0.0), &[1.0, 0.0, 0.0, 0.0, -2.0]),
            (Range::at_most(1.0), &[0.0, 1.0, 0.0, 1.0, 0.0]),
            (Range::at_most(2.0 / 3.0), &[0.0, 0.0, 1.0, 0.0, 1.0]),
        ],
    )
}

/// Throughput over remaining steps: job 1 reaches 5e-8 on its best type, job 0 more on the other.
fn tiny_levels() -> Program {
    maximize(
        &[(between(0.0, 1.0), 1.0), (SHARE, 0.0), (SHARE, 0.0), (SHARE, 0.0), (SHARE, 0.0)],
        &[
            (Range::at_most(0.0), &[1.0, -3e-7, -1e-7, 0.0, 0.0]),
            (Range::at_most(0.0), &[1.0, 0.0, 0.0, -2e-8, -5e-8]),
            (Range::at_most(1.0), &[0.0, 1.0, 1.0, 0.0, 0.0]),
            (Range::at_most(1.0), &[0.0, 0.0, 0.0, 1.0, 1.0]),
            (Range::at_most(1.0), &[0.0, 1.0, 0.0, 1.0, 0.0]),
            (Range::at_most(1.0), &[0.0, 0.0, 1.0, 0.0, 1.0]),
        ],
    )
}

/// x = 2 uses 2e4 of 5e4, y the other 3e4 / 1e-2.
fn wide_coefficients() -> Program {
    maximize(
        &[(Range::NON_NEGATIVE, 1e5), (Range::NON_NEGATIVE, 1e-3)],
        &[(Range::at_most(5e4), &[1e4, 1e-2]), (Range::at_most(2e-3), &[1e-3, 0.0])],
    )
}

/// x + 2y with x + y ≤ 2e7 and y ≤ 1e7.
fn large_bounds() -> Program {
    maximize(&[(Range::NON_NEGATIVE, 1.0), (between(0.0, 1e7), 2.0)], &[(Range::at_most(2e7), &[1.0, 1.0])])
}

/// The cone that says x ≤ ln z: (x, 1, z) in the exponential cone.
fn logarithm(of: usize, at_most: usize) -> Cone {
    Cone {
        kind: ConeKind::Exponential,
        entries: vec![
            Affine { constant: 0.0, terms: vec![(at_most, 1.0)] },
            Affine { constant: 1.0, terms: Vec::new() },
            Affine { constant: 0.0, terms: vec![(of, 1.0)] },
        ],
    }
}

/// ln x + 2 ln y with x + y ≤ 3: x = 1, y = 2.
fn logarithms() -> Program {
    let share = between(0.0, 3.0);
    let mut program = maximize(
        &[(share, 0.0), (share, 0.0), (Range::FREE, 1.0), (Range::FREE, 2.0)],
        &[(Range::at_most(3.0), &[1.0, 1.0])],
    );
    program.cones = vec![logarithm(0, 2), logarithm(1, 3)];
    program
}

/// eˣ + y with x ≥ 1 and y ≥ x: e + 1. Columns x, y, z ≥ eˣ.
fn exponential() -> Program {
    let mut program = minimize(
        &[(between(-9.0, 9.0), 0.0), (between(-9.0, 9.0), 1.0), (Range::NON_NEGATIVE, 1.0)],
        &[(Range::at_least(1.0), &[1.0, 0.0, 0.0]), (Range::at_least(0.0), &[-1.0, 1.0, 0.0])],
    );
    program.cones = vec![logarithm(2, 0)];
    program
}

/// ln x ≥ 1 with x ≤ 1.
fn logarithm_of_nothing() -> Program {
    let mut program = maximize(&[(SHARE, 0.0), (between(1.0, 2.0), 1.0)], &[]);
    program.cones = vec![logarithm(0, 1)];
    program
}

/// x + y over the unit disc.
fn disc() -> Program {
    let mut program = maximize(&[(between(-2.0, 2.0), 1.0), (between(-2.0, 2.0), 1.0)], &[]);
    let entry = |constant, terms| Affine { constant, terms };
    program.cones = vec![Cone {
        kind: ConeKind::SecondOrder,
        entries: vec![entry(1.0, vec![]), entry(0.0, vec![(0, 1.0)]), entry(0.0, vec![(1, 1.0)])],
    }];
    program
}

/// The distance from (3, 4) to the half-plane x + y ≤ 2: 5 / √2.
fn distance() -> Program {
    let mut program = minimize(
        &[(between(-9.0, 9.0), 0.0), (between(-9.0, 9.0), 0.0), (Range::NON_NEGATIVE, 1.0)],
        &[(Range::at_most(2.0), &[1.0, 1.0, 0.0])],
    );
    let entry = |constant, column| Affine { constant, terms: vec![(column, 1.0)] };
    program.cones = vec![Cone {
        kind: ConeKind::SecondOrder,
        entries: vec![entry(0.0, 2), entry(-3.0, 0), entry(-4.0, 1)],
    }];
    program
}

/// Programs that are not in standard form, each with a description of its fault.
pub(super) fn malformed() -> Vec<(&'static str, Program)> {
    let change = |what, edit: fn(&mut Program)| {
        let mut program = at_most_rows();
        edit(&mut program);
        (what, program)
    };
    vec![
        change("a NaN cost", |p| p.cost[0] = f64::NAN),
        change("an infinite cost", |p| p.cost[0] = f64::INFINITY),
        change("a NaN offset", |p| p.offset = f64::NAN),
        change("a NaN coefficient", |p| p.term_values[0] = f64::NAN),
        change("an infinite coefficient", |p| p.term_values[0] = f64::NEG_INFINITY),
        change("a NaN bound of a row", |p| p.rows[0].upper = f64::NAN),
        change("a NaN bound of a column", |p| p.columns[0].lower = f64::NAN),
        change("a NaN implied bound", |p| p.implied[0].lower = f64::NAN),
        change("a lower bound of plus infinity", |p| p.rows[0].lower = f64::INFINITY),
        change("too few bounds", |p| p.columns.truncate(1)),
        change("a term in a column that is not there", |p| p.term_columns[0] = 9),
        change("two terms of a row in one column", |p| p.term_columns[1] = 0),
        change("row starts that go backwards", |p| p.row_starts[1] = 9),
        change("no row starts", |p| p.row_starts.clear()),
        change("a term too few", |p| p.term_columns.truncate(1)),
        change("an exponential cone of two", |p| {
            p.cones = vec![Cone { kind: ConeKind::Exponential, entries: vec![Affine::default(); 2] }];
        }),
        change("a NaN constant in a cone", |p| {
            let entry = Affine { constant: f64::NAN, terms: Vec::new() };
            p.cones = vec![Cone { kind: ConeKind::SecondOrder, entries: vec![entry; 2] }];
        }),
    ]
}
