use super::*;
use crate::program::{Affine, Cone, ConeKind, Sense};
use crate::solver::Certificate;
use crate::solver::conformance::CASES;

/// `n` jobs of throughput 1..k on k types with room for half of them; their level, or the sum of their logarithms.
fn jobs(n: usize, k: usize, logarithms: bool) -> Program {
    let share = Range { lower: 0.0, upper: 1.0 };
    let mut program = Program::new(Sense::Maximize);
    for _ in 0..n * k {
        program.push_column(Range::NON_NEGATIVE, share, 0.0);
    }
    for m in 0..n {
        program.push_row(Range::at_most(1.0), (0..k).map(|j| (m * k + j, 1.0)));
    }
    for j in 0..k {
        program
            .push_row(Range::at_most((n as f64 / 2.0 / k as f64).max(0.5)), (0..n).map(|m| (m * k + j, 1.0)));
    }
    let rate = |m: usize, j: usize| 1.0 + ((m * 7 + j * 3) % 11) as f64;
    if logarithms {
        for m in 0..n {
            let column = program.push_column(Range::FREE, Range::FREE, 1.0 + (m % 3) as f64);
            let form = Affine { constant: 0.0, terms: (0..k).map(|j| (m * k + j, rate(m, j))).collect() };
            let first = Affine { constant: 0.0, terms: vec![(column, 1.0)] };
            let one = Affine { constant: 1.0, terms: Vec::new() };
            program.cones.push(Cone { kind: ConeKind::Exponential, entries: vec![first, one, form] });
        }
    } else {
        let level = program.push_column(Range::NON_NEGATIVE, Range { lower: 0.0, upper: 12.0 }, 1.0);
        for m in 0..n {
            let terms = (0..k).map(|j| (m * k + j, rate(m, j))).chain([(level, -1.0)]);
            program.push_row(Range::at_least(0.0), terms);
        }
    }
    program
}

fn solve(program: &Program, threads: u32) -> Solution {
    BlockInteriorPoint.solve(program, &Limits { threads, ..Limits::default() }, None).unwrap()
}

#[test]
fn types_and_a_level_link_and_jobs_are_blocks() {
    for (n, k) in [(40, 3), (100, 8), (33, 1)] {
        let structure = Structure::of(&jobs(n, k, false)).unwrap();
        assert_eq!((structure.n_blocks(), structure.linking_rows.len()), (n, k));
        assert_eq!(structure.linking_columns.len(), 1);
    }
}

#[test]
fn what_pairs_couple_is_declined_or_solved_but_never_guessed() {
    // every two of 60 jobs share a column: no row is short, and no block is left
    let n = 60;
    let mut program = Program::new(Sense::Maximize);
    let mut time = vec![Vec::new(); n];
    for a in 0..n {
        for b in a + 1..n {
            let column = program.push_column(Range::NON_NEGATIVE, Range { lower: 0.0, upper: 1.0 }, 1.0);
            time[a].push((column, 1.0));
            time[b].push((column, 1.0));
        }
    }
    for terms in time {
        program.push_row(Range::at_most(1.0), terms);
    }
    match BlockInteriorPoint.solve(&program, &Limits::default(), None) {
        Err(SolveError::Declined { .. }) => {}
        Ok(answer) => assert!(Certificate::of(&program, &answer).optimal),
        Err(error) => panic!("{error}"),
    }
}

/// `n` jobs that run on three of `k` types each, and what they are worth together.
fn on_three_of(n: usize, k: usize, logarithms: bool) -> Program {
    let mut program = Program::new(Sense::Maximize);
    let mut of_type = vec![Vec::new(); k];
    let share = Range { lower: 0.0, upper: 1.0 };
    for m in 0..n {
        let columns: Vec<(usize, f64)> = (0..3)
            .map(|i| {
                let rate = 1.0 + ((m * 7 + i * 3) % 11) as f64;
                let column = program.push_column(share, share, if logarithms { 0.0 } else { rate });
                of_type[(m * 5 + i * (7 + m % 13)) % k].push((column, 1.0));
                (column, rate)
            })
            .collect();
        program.push_row(Range::at_most(1.0), columns.iter().map(|(column, _)| (*column, 1.0)));
        if logarithms {
            let worth = program.push_column(Range::FREE, Range::FREE, 1.0);
            let first = Affine { constant: 0.0, terms: vec![(worth, 1.0)] };
            let one = Affine { constant: 1.0, terms: Vec::new() };
            let form = Affine { constant: 0.0, terms: columns };
            program.cones.push(Cone { kind: ConeKind::Exponential, entries: vec![first, one, form] });
        }
    }
    for terms in of_type {
        program.push_row(Range::at_most(0.5), terms);
    }
    program
}

#[test]
fn few_blocks_for_many_rows_that_link_are_declined_before_any_work() {
    for (n, logarithms, declined) in [(300, false, true), (300, true, false), (600, false, false)] {
        let program = on_three_of(n, 100, logarithms);
        match BlockInteriorPoint.solve(&program, &Limits::default(), None) {
            Err(SolveError::Declined { reason, .. }) => {
                assert!(declined && reason.contains("rows link no more than"), "{n} jobs: {reason}");
            }
            Ok(answer) => assert!(!declined && Certificate::of(&program, &answer).optimal, "{n} jobs"),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn answers_are_the_same_bytes_on_any_number_of_threads() {
    for logarithms in [false, true] {
        let program = jobs(4_200, 3, logarithms);
        let one = solve(&program, 1);
        assert!(Certificate::of(&program, &one).gap_relative < 1e-8);
        let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        for threads in [2, 3] {
            let other = solve(&program, threads);
            assert_eq!(bits(&one.columns), bits(&other.columns));
            assert_eq!(bits(&one.row_duals), bits(&other.row_duals));
        }
    }
}

#[test]
fn most_cases_of_the_conformance_suite_are_taken() {
    let declined = |case: &&crate::solver::conformance::Case| {
        let answer = BlockInteriorPoint.solve(&(case.program)(), &Limits::default(), None);
        matches!(answer, Err(SolveError::Declined { .. }))
    };
    let names: Vec<&str> = CASES.iter().filter(declined).map(|case| case.name).collect();
    assert_eq!(names, ["no rows and no bounds", "an exponential to minimize", "logarithms of nothing"]);
}

#[test]
fn jobs_of_one_kind_share_alike() {
    let mut program = jobs(50, 2, false);
    for value in &mut program.term_values[200..] {
        *value = value.signum();
    }
    let answer = solve(&program, 1);
    for share in &answer.columns[..100] {
        assert!((share - 0.25).abs() < 1e-6, "{share}");
    }
}
