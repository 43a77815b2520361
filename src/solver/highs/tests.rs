use highs::HighsModelStatus;

use super::ffi::read_model;
use super::*;
use crate::program::text::{to_lp, to_mps};
use crate::solver::conformance::{CASES, Expected};

/// The optimum that HiGHS finds of the program it reads from a text.
fn solved_from(text: &str, extension: &str) -> Result<f64, String> {
    let file = tempfile::Builder::new().suffix(extension).tempfile().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let model = read_model(file.path()).ok_or("HiGHS cannot read it")?;
    let solved = model.try_solve().map_err(|status| format!("{status:?}"))?;
    match solved.status() {
        HighsModelStatus::Optimal => Ok(solved.objective_value()),
        other => Err(format!("{other:?}")),
    }
}

/// HiGHS's own readers are the judge of our LP and MPS text.
#[test]
fn lp_and_mps_text_read_back_as_the_same_program() {
    let mut checked = 0;
    for case in CASES {
        let program = (case.program)();
        for (text, extension) in [(to_lp(&program), ".lp"), (to_mps(&program), ".mps")] {
            let Ok(text) = text else { continue };
            if program.n_columns() == 0 {
                continue;
            }
            match (case.expected, solved_from(&text, extension)) {
                (Expected::Optimal(value), Ok(found)) => {
                    let close = (found - value).abs() <= 1e-6 * value.abs().max(1.0);
                    assert!(close, "{}{extension}: {found} instead of {value}\n{text}", case.name);
                }
                (Expected::Optimal(_), Err(what)) => panic!("{}{extension}: {what}\n{text}", case.name),
                (_, found) => assert!(found.is_err(), "{}{extension}: {found:?}\n{text}", case.name),
            }
            checked += 1;
        }
    }
    assert!(checked > 50, "{checked}");
}

#[test]
fn text_with_one_of_everything_is_readable() {
    let program = crate::program::text::tests::one_of_everything();
    // readers drop the row without bounds; the range is two rows of LP text
    for (text, extension, rows) in
        [(to_lp(&program).unwrap(), ".lp", 6), (to_mps(&program).unwrap(), ".mps", 5)]
    {
        let file = tempfile::Builder::new().suffix(extension).tempfile().unwrap();
        std::fs::write(file.path(), &text).unwrap();
        let model = read_model(file.path());
        let shape = model.map(|model| (model.num_cols(), model.num_rows()));
        assert_eq!(shape, Some((7, rows)), "{extension}\n{text}");
    }
}

#[test]
fn limits_are_kept_and_told() {
    let mut program = Program::new(Sense::Maximize);
    let share = crate::program::Range { lower: 0.0, upper: 1.0 };
    for column in 0..40 {
        program.push_column(share, share, 1.0 + f64::from(column % 7));
    }
    for row in 0..30_usize {
        let terms = (0..40).map(|column| (column, 1.0 + ((row * 7 + column * 5) % 11) as f64));
        program.push_row(crate::program::Range::at_most(20.0 + row as f64), terms.collect::<Vec<_>>());
    }
    let limits = Limits { iterations: Some(1), ..Limits::default() };
    let answer = Highs::new(Method::Simplex).solve(&program, &limits, None).unwrap();
    assert_eq!(answer.termination, Termination::IterationLimit);
    let limits = Limits { time: Some(std::time::Duration::ZERO), ..Limits::default() };
    let answer = Highs::new(Method::Simplex).solve(&program, &limits, None).unwrap();
    assert_eq!(answer.termination, Termination::TimeLimit);
}

#[test]
fn a_start_of_another_shape_is_left_out() {
    let program = (CASES[0].program)();
    let basis = Basis { columns: Vec::new(), rows: Vec::new() };
    let warm = WarmStart { basis: Some(basis), columns: Some(vec![0.0; 9]), ..WarmStart::default() };
    let answer = Highs::new(Method::Simplex).solve(&program, &Limits::default(), Some(&warm)).unwrap();
    assert_eq!(answer.termination, Termination::Optimal);
}

/// Presolve would find the optimum without a step, after it has compared all rows with one another.
#[test]
fn rows_that_are_multiples_of_one_another_are_not_compared_where_they_are_many() {
    let program = |n_rows: u32| {
        let mut program = Program::new(Sense::Maximize);
        let share = crate::program::Range { lower: 0.0, upper: 1.0 };
        for column in 0..5 {
            program.push_column(share, share, 1.0 + f64::from(column));
        }
        for row in 0..n_rows {
            let limit = crate::program::Range::at_most(1.0 + f64::from(row));
            program.push_row(limit, (0..5).map(|column| (column, 1.0)));
        }
        program
    };
    for (n_rows, presolved) in [(100, true), (2_000, false)] {
        let answer = Highs::new(Method::Simplex).solve(&program(n_rows), &Limits::default(), None).unwrap();
        assert!((answer.objective - 5.0).abs() < 1e-9, "{answer:?}");
        assert_eq!(answer.iterations == 0, presolved, "{n_rows} rows");
    }
}
