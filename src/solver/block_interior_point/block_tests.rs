//! Programs of blocks against certificates and against another solver.

use super::*;
use crate::program::Sense;
use crate::solver::draws::Draws;
use crate::solver::{Certificate, registry};

/// What makes a program hard, or not one that has an optimum.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Numbers all different.
    Distinct,
    /// Speeds of 1 and 2 only: ties everywhere.
    Ties,
    /// A few kinds of jobs, many of each.
    FewKinds,
    /// Some jobs cannot run on some types.
    Zeros,
    /// A type has no workers.
    NoWorkers,
    /// More workers than can be used.
    Plenty,
    /// The level must be higher than any can be.
    Infeasible,
    /// Some jobs may have negative time without end.
    Unbounded,
}

const KINDS: [Kind; 8] = [
    Kind::Distinct,
    Kind::Ties,
    Kind::FewKinds,
    Kind::Zeros,
    Kind::NoWorkers,
    Kind::Plenty,
    Kind::Infeasible,
    Kind::Unbounded,
];

/// Jobs on types: the level of the worst (with the sum at a level held where `held`), or the sum alone.
fn program(kind: Kind, seed: u64, levelled: bool, held: Option<f64>) -> Program {
    let mut draws = Draws(seed * 8 + kind as u64);
    (0..20).for_each(|_| _ = draws.next());
    let (n, k) = (200 + draws.below(120), 1 + draws.below(4));
    let share = Range { lower: 0.0, upper: 1.0 };
    let mut program = Program::new(Sense::Maximize);
    let kinds: Vec<Vec<f64>> =
        (0..5).map(|_| (0..k).map(|_| 10.0_f64.powf(draws.next())).collect()).collect();
    let mut rates: Vec<Vec<f64>> = Vec::new();
    for _ in 0..n {
        let own = 10.0_f64.powf(draws.next());
        let mut rate: Vec<f64> = match kind {
            Kind::Ties => (0..k).map(|_| 1.0 + draws.below(2) as f64).collect(),
            Kind::FewKinds => kinds[draws.below(5)].clone(),
            _ => (0..k).map(|_| own * 10.0_f64.powf(-draws.next())).collect(),
        };
        if kind == Kind::Zeros {
            let sure = draws.below(k);
            for (at, rate) in rate.iter_mut().enumerate() {
                *rate = if at == sure || draws.next() < 0.5 { *rate } else { 0.0 };
            }
        }
        rates.push(rate);
    }
    for rate in &rates {
        for rate in rate {
            let cost = if levelled && held.is_none() { 0.0 } else { rate / 10.0 };
            let open = kind == Kind::Unbounded && draws.next() < 0.1;
            let range = if open { Range::at_most(1.0) } else { Range::NON_NEGATIVE };
            program.push_column(
                range,
                if open { range } else { share },
                if open { -cost - 0.1 } else { cost },
            );
        }
    }
    for m in 0..n {
        program.push_row(Range::at_most(1.0), (0..k).map(|j| (m * k + j, 1.0)));
    }
    let part = if kind == Kind::Plenty { 2.0 } else { 0.3 };
    for j in 0..k {
        let room = if kind == Kind::NoWorkers && j > 0 { 0.0 } else { part * n as f64 / k as f64 };
        let sizes: Vec<(usize, f64)> =
            (0..n).map(|m| (m * k + j, [1.0, 1.0, 2.0, 4.0][m % 4] / 4.0)).collect();
        program.push_row(Range::at_most(room), sizes);
    }
    if levelled {
        let least = if kind == Kind::Infeasible { 1e3 } else { held.unwrap_or(0.0) };
        let range = Range { lower: least, upper: f64::INFINITY };
        let cost = if held.is_none() { 1.0 } else { 0.0 };
        let level = program.push_column(range, Range { lower: least, upper: 2e3 }, cost);
        for (m, rate) in rates.iter().enumerate() {
            let terms = rate.iter().enumerate().filter(|(_, rate)| **rate > 0.0);
            let terms = terms.map(|(j, rate)| (m * k + j, rate / 10.0));
            program.push_row(Range::at_least(0.0), terms.chain([(level, -1.0)]));
        }
    }
    program
}

/// The answer: one that claims to be optimal is, and is the optimum of another solver.
fn compared(program: &Program, what: &str) -> Solution {
    let answer = BlockInteriorPoint.solve(program, &Limits::default(), None).unwrap();
    if answer.termination != Termination::Optimal {
        return answer;
    }
    let certificate = Certificate::of(program, &answer);
    assert!(certificate.optimal && certificate.gap_relative < 1e-8, "{what}: {certificate:?}");
    assert!(certificate.violation_max < 1e-8, "{what}: {certificate:?}");
    let name = if cfg!(feature = "highs") { "highs-simplex" } else { "clarabel" };
    let other = registry::backend(name).unwrap().solve(program, &Limits::default(), None).unwrap();
    let off = (answer.objective - other.objective).abs();
    assert!(
        off <= 1e-7 * other.objective.abs().max(1e-3),
        "{what}: {} and {}",
        answer.objective,
        other.objective
    );
    answer
}

#[test]
fn optima_of_blocks_are_those_of_another_solver() {
    for kind in KINDS {
        for seed in 0..5 {
            let levels = program(kind, seed, true, None);
            let first = compared(&levels, &format!("{kind:?} {seed} level"));
            let sum = compared(&program(kind, seed, false, None), &format!("{kind:?} {seed} sum"));
            match kind {
                Kind::Infeasible => assert_eq!(first.termination, Termination::Infeasible, "{seed}"),
                Kind::Unbounded => assert_ne!(first.termination, Termination::Infeasible, "{seed}"),
                _ => assert_eq!([first.termination, sum.termination], [Termination::Optimal; 2], "{seed}"),
            }
            // a level that is held leaves the path no room: it may end short of an optimum, and says so
            if first.termination == Termination::Optimal {
                let held = program(kind, seed, true, Some(first.objective * (1.0 - 1e-9)));
                let held = compared(&held, &format!("{kind:?} {seed} held"));
                assert_ne!(held.termination, Termination::Infeasible, "{kind:?} {seed}");
            }
        }
    }
}

#[test]
fn answers_do_not_depend_on_the_order_of_blocks() {
    let program = program(Kind::Distinct, 0, true, None);
    let answer = compared(&program, "as it is");
    // jobs are turned around: their columns, their rows and their levels' rows; the level is the last column
    let (n, k) = (program.n_columns() - 1, program.row(0).len());
    let place = |column: usize| if column == n { n } else { n - k - column / k * k + column % k };
    let mut turned = Program::new(program.sense);
    for column in 0..=n {
        let from = place(column);
        turned.push_column(program.columns[from], program.implied[from], program.cost[from]);
    }
    let jobs = n / k;
    for row in (0..jobs).rev().chain(jobs..jobs + k).chain((jobs + k..program.n_rows()).rev()) {
        turned.push_row(program.rows[row], program.row(row).map(|(column, value)| (place(column), value)));
    }
    let other = compared(&turned, "turned around");
    for (column, one) in answer.columns.iter().enumerate() {
        let other = other.columns[place(column)];
        assert!((one - other).abs() < 1e-6, "{one} and {other}");
    }
}
