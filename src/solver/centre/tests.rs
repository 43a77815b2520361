use super::*;
use crate::program::{Range, Sense};
use crate::solver::AnswerCertificate;
use crate::solver::draws::Draws;

/// Program that maximizes x₀ + x₁ + x₂ + t where the x share 1 and t is at most 2: every division of 1 is optimal.
fn divided() -> Program {
    let mut program = Program::new(Sense::Maximize);
    for _ in 0..3 {
        program.push_column(Range::NON_NEGATIVE, Range { lower: 0.0, upper: 1.0 }, 1.0);
    }
    program.push_column(Range::FREE, Range { lower: -5.0, upper: 2.0 }, 1.0);
    program.push_row(Range::at_most(1.0), [(0, 1.0), (1, 1.0), (2, 1.0)]);
    program.push_row(Range::at_least(-2.0), [(3, -1.0)]);
    program
}

fn centred(program: &Program, weights: BarrierWeights) -> Result<Solution, SolveError> {
    Centre::new(weights).solve(program, &Limits::default(), None)
}

fn weights(columns: &[f64], rows: &[f64]) -> BarrierWeights {
    BarrierWeights { columns: columns.to_vec(), rows: rows.to_vec() }
}

#[test]
fn optima_are_divided_by_weight() {
    let program = divided();
    let answer = centred(&program, weights(&[1.0, 1.0, 2.0, 1.0], &[1.0, 1.0])).unwrap();
    for (value, expected) in answer.columns.iter().zip([0.25, 0.25, 0.5, 2.0]) {
        assert!((value - expected).abs() < 1e-6, "{:?}", answer.columns);
    }
    assert!(AnswerCertificate::of(&program, &answer).optimal);
    assert!((answer.row_duals[0] - 1.0).abs() < 1e-6 && (answer.row_duals[1] + 1.0).abs() < 1e-6);
}

#[test]
fn what_no_optimum_leaves_idle_is_shared_with_the_slack() {
    // Without costs, the answer is the centre of the whole simplex, slack included.
    let mut program = divided();
    program.cost = vec![0.0; 4];
    let answer = centred(&program, weights(&[1.0, 2.0, 1.0, 1.0], &[4.0, 6.0])).unwrap();
    for (value, expected) in answer.columns.iter().zip([0.125, 0.25, 0.125, -4.0]) {
        assert!((value - expected).abs() < 1e-3, "{:?}", answer.columns);
    }
}

#[test]
fn what_it_cannot_centre_it_refuses() {
    let mut program = divided();
    program.columns[0] = Range { lower: 0.0, upper: 1.0 };
    let error = centred(&program, weights(&[1.0; 4], &[1.0; 2])).unwrap_err();
    assert!(error.to_string().contains("two-sided"), "{error}");
}

#[test]
fn it_starts_inside_where_there_is_room() {
    // A level below what two columns, which share 1, bring to two rows.
    let mut program = Program::new(Sense::Maximize);
    program.push_column(Range::NON_NEGATIVE, Range { lower: 0.0, upper: 1.0 }, 0.0);
    program.push_column(Range::NON_NEGATIVE, Range { lower: 0.0, upper: 1.0 }, 0.0);
    program.push_column(Range::FREE, Range { lower: 0.5, upper: 8.0 }, 1.0);
    program.push_row(Range::at_most(1.0), [(0, 1.0), (1, 1.0)]);
    program.push_row(Range::at_least(0.0), [(0, 4.0), (1, 1.0), (2, -1.0)]);
    program.push_row(Range::at_least(0.0), [(1, 8.0), (2, -1.0)]);
    let form = Form::of(&program, &weights(&[1.0; 3], &[1.0; 3])).unwrap();
    assert_eq!(interior_start(&form), [0.25, 0.25, 0.625, 0.5, 0.625, 1.375]);
    let answer = centred(&program, weights(&[1.0; 3], &[1.0; 3])).unwrap();
    assert!(AnswerCertificate::of(&program, &answer).optimal && answer.iterations < 15, "{answer:?}");
}

/// Program of three like jobs, alone and in pairs of themselves, on eight fast workers and eight slow ones: the highest level,
/// a free column, at which each has that part of a throughput of 7. The only optimum has the three alone on fast workers.
fn highest_level() -> Program {
    let mut program = Program::new(Sense::Maximize);
    for _ in 0..4 {
        program.push_column(Range::NON_NEGATIVE, Range { lower: 0.0, upper: 3.0 }, 0.0);
    }
    program.push_column(Range::FREE, Range { lower: 0.0, upper: 1.0 }, 1.0);
    program.push_row(Range::at_most(3.0), [(0, 1.0), (1, 1.0), (2, 2.0), (3, 2.0)]);
    program.push_row(Range::at_most(8.0), [(0, 1.0), (2, 1.0)]);
    program.push_row(Range::at_most(8.0), [(1, 1.0), (3, 1.0)]);
    program.push_row(Range::at_least(0.0), [(0, 7.0), (1, 1.0), (2, 7.0), (3, 1.0), (4, -21.0)]);
    program
}

#[test]
fn a_free_level_starts_below_what_the_other_columns_reach() {
    let program = highest_level();
    let weights = weights(&[3.0, 3.0, 3.0, 3.0, 1.0], &[3.0, 1.0, 1.0, 3.0]);
    let form = Form::of(&program, &weights).unwrap();
    // Each column has a twelfth of the row's 3; they reach 4, and the level's row is left half of it.
    let start = interior_start(&form);
    assert!((start[4] - 0.5 * 4.0 / 21.0).abs() < 1e-3, "{start:?}");
    let answer = centred(&program, weights).unwrap();
    for (value, expected) in answer.columns.iter().zip([3.0, 0.0, 0.0, 0.0, 1.0]) {
        assert!((value - expected).abs() < 1e-6, "{:?}", answer.columns);
    }
    assert!(AnswerCertificate::of(&program, &answer).optimal && answer.iterations < 15, "{answer:?}");
}

#[test]
fn a_column_without_bounds_has_no_price() {
    // The largest of −x, which x ≤ 0.8 keeps at its implied bound.
    let mut program = Program::new(Sense::Minimize);
    program.push_column(Range::NON_NEGATIVE, Range { lower: 0.0, upper: 1.0 }, 0.0);
    program.push_column(Range::FREE, Range { lower: -0.8, upper: 0.0 }, 1.0);
    program.push_row(Range::at_most(0.8), [(0, 1.0)]);
    program.push_row(Range::at_least(0.0), [(0, 1.0), (1, 1.0)]);
    let answer = centred(&program, weights(&[1.0; 2], &[1.0; 2])).unwrap();
    // All of the price is on the rows: more of x takes as much off the objective.
    for (dual, expected) in answer.row_duals.iter().zip([-1.0, 1.0]) {
        assert!((dual - expected).abs() < 1e-5, "{:?}", answer.row_duals);
    }
}

/// Program of the highest level of two to four classes of as many jobs, alone and in pairs of two classes, on three worker types,
/// with the weights of the program over jobs.
fn packed(draws: &mut Draws) -> (Program, BarrierWeights) {
    let (n, jobs) = (2 + draws.below(3), 1.0 + draws.below(3) as f64);
    let mut program = Program::new(Sense::Maximize);
    let mut weights = weights(&[], &[]);
    // Rows of time, of capacity, and of the level.
    let (mut terms, mut fastest) = (vec![Vec::new(); n + 3 + n], vec![0.0_f64; n]);
    for (one, other) in (0..n).flat_map(|one| (one..n).map(move |other| (one, other))) {
        for worker_type in 0..3 {
            let column = program.n_columns();
            program.push_column(Range::NON_NEGATIVE, Range { lower: 0.0, upper: jobs }, 0.0);
            weights.columns.push(if one == other { jobs } else { jobs * jobs });
            terms[n + worker_type].push((column, 1.0));
            for member in (one..=other).step_by((other - one).max(1)) {
                let throughput = (0.1 + draws.next()) / (worker_type + 1) as f64;
                fastest[member] = fastest[member].max(throughput);
                terms[member].push((column, 1.0));
                terms[n + 3 + member].push((column, throughput / jobs));
            }
        }
    }
    let level = program.n_columns();
    program.push_column(Range::FREE, Range { lower: 0.0, upper: 1.0 }, 1.0);
    weights.columns.push(1.0);
    for (row, mut terms) in terms.into_iter().enumerate() {
        weights.rows.push(if (n..n + 3).contains(&row) { 1.0 } else { jobs });
        let range = if row < n {
            Range::at_most(jobs)
        } else if row < n + 3 {
            Range::at_most(1.0 + draws.below(12) as f64)
        } else {
            terms.push((level, -fastest[row - n - 3]));
            Range::at_least(0.0)
        };
        program.push_row(range, terms);
    }
    (program, weights)
}

#[test]
fn levels_of_pairs_are_centred() {
    let mut draws = Draws(7);
    for case in 0..300 {
        let (program, weights) = packed(&mut draws);
        let answer = centred(&program, weights).unwrap_or_else(|error| panic!("{case}: {error}"));
        assert!(AnswerCertificate::of(&program, &answer).optimal, "{case}: {answer:?}");
    }
}
