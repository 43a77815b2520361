//! Intake: the work of every backend before it sends a program to its library.
//!
//! Programs that are not in standard form are refused; those whose answer needs no solver (contradictory
//! bounds, no columns) are answered here, because libraries disagree on them.

use crate::program::{Cone, ConeKind, Program, Range};
use crate::solver::backend::{Backend, Feature, Solution, SolveError, Termination};

/// Checks a program for a backend. Returns the answer if it needs no solver, none if the program is to be solved.
pub(super) fn admit(backend: &dyn Backend, program: &Program) -> Result<Option<Solution>, SolveError> {
    check(program)?;
    for cone in &program.cones {
        let feature = match cone.kind {
            ConeKind::Exponential => Feature::ExponentialCones,
            ConeKind::SecondOrder => Feature::SecondOrderCones,
        };
        if !backend.supports(feature) {
            return Err(SolveError::Unsupported { backend: backend.name(), feature });
        }
    }
    let contradictory = |range: &Range| range.lower > range.upper;
    if program.columns.iter().any(contradictory) || program.rows.iter().any(contradictory) {
        return Ok(Some(without_columns(Termination::Infeasible)));
    }
    Ok((program.n_columns() == 0).then(|| answer_without_columns(program)))
}

/// A solution that has nothing but its termination.
pub(super) fn without_columns(termination: Termination) -> Solution {
    Solution {
        termination,
        columns: Vec::new(),
        row_duals: Vec::new(),
        cone_duals: Vec::new(),
        objective: f64::NAN,
        iterations: 0,
        basis: None,
    }
}

/// The answer to a program without columns: optimal if its rows hold at 0 and its cones at their constants, else
/// infeasible.
fn answer_without_columns(program: &Program) -> Solution {
    let rows_hold = program.rows.iter().all(|range| range.lower <= 0.0 && 0.0 <= range.upper);
    if !rows_hold || !program.cones.iter().all(holds_at_constants) {
        return without_columns(Termination::Infeasible);
    }
    Solution {
        row_duals: vec![0.0; program.n_rows()],
        cone_duals: program.cones.iter().map(|cone| vec![0.0; cone.entries.len()]).collect(),
        objective: program.offset,
        ..without_columns(Termination::Optimal)
    }
}

fn holds_at_constants(cone: &Cone) -> bool {
    let value = |entry: usize| cone.entries[entry].constant;
    match cone.kind {
        ConeKind::Exponential => {
            let (x, y, z) = (value(0), value(1), value(2));
            (y > 0.0 && y * (x / y).exp() <= z) || (y == 0.0 && x <= 0.0 && z >= 0.0)
        }
        ConeKind::SecondOrder => {
            value(0) >= (1..cone.entries.len()).map(|entry| value(entry).powi(2)).sum::<f64>().sqrt()
        }
    }
}

/// Refuses programs that are not in standard form: lengths that disagree, positions out of range, a column twice in one
/// row, NaN anywhere, infinite numbers outside bounds, cones with the wrong number of entries.
pub(crate) fn check(program: &Program) -> Result<(), SolveError> {
    let malformed = |what: String| Err(SolveError::Malformed { what });
    let (n, rows, terms) = (program.n_columns(), program.n_rows(), program.term_values.len());
    if program.columns.len() != n || program.implied.len() != n {
        return malformed(format!(
            "{n} costs but {} bounds and {} implied bounds",
            program.columns.len(),
            program.implied.len()
        ));
    }
    let starts = &program.row_starts;
    let starts_ordered = starts.windows(2).all(|pair| pair[0] <= pair[1]);
    if starts.len() != rows + 1 || starts[0] != 0 || starts[rows] != terms || !starts_ordered {
        return malformed(format!("the starts of {rows} rows do not divide {terms} terms"));
    }
    if program.term_columns.len() != terms {
        return malformed(format!("{terms} coefficients but {} columns of them", program.term_columns.len()));
    }
    if !program.offset.is_finite() {
        return malformed(format!("the offset is {}", program.offset));
    }
    check_columns(program)?;
    check_rows(program)?;
    check_cones(program)
}

fn check_columns(program: &Program) -> Result<(), SolveError> {
    for column in 0..program.n_columns() {
        let cost = program.cost[column];
        let what = if !cost.is_finite() {
            format!("cost {cost}")
        } else if let Some(wrong) = wrong_range(program.columns[column]) {
            wrong
        } else if let Some(wrong) = wrong_range(program.implied[column]) {
            format!("implied {wrong}")
        } else {
            continue;
        };
        return Err(SolveError::Malformed {
            what: format!("column {} has {what}", program.column_name(column)),
        });
    }
    Ok(())
}

fn check_rows(program: &Program) -> Result<(), SolveError> {
    let mut last_row = vec![usize::MAX; program.n_columns()];
    for row in 0..program.n_rows() {
        let fail = |what: String| {
            Err(SolveError::Malformed { what: format!("row {} has {what}", program.row_name(row)) })
        };
        if let Some(wrong) = wrong_range(program.rows[row]) {
            return fail(wrong);
        }
        for (column, value) in program.row(row) {
            if column >= program.n_columns() {
                return fail(format!("a term in column {column} of {}", program.n_columns()));
            }
            if !value.is_finite() {
                return fail(format!("coefficient {value} of {}", program.column_name(column)));
            }
            if last_row[column] == row {
                return fail(format!("two terms in {}", program.column_name(column)));
            }
            last_row[column] = row;
        }
    }
    Ok(())
}

fn check_cones(program: &Program) -> Result<(), SolveError> {
    for (position, cone) in program.cones.iter().enumerate() {
        let fail = |what: String| Err(SolveError::Malformed { what: format!("cone {position} has {what}") });
        let entries = cone.entries.len();
        let right = match cone.kind {
            ConeKind::Exponential => entries == 3,
            ConeKind::SecondOrder => entries >= 2,
        };
        if !right {
            return fail(format!("{entries} entries"));
        }
        for entry in &cone.entries {
            if !entry.constant.is_finite() {
                return fail(format!("constant {}", entry.constant));
            }
            for (position, &(column, value)) in entry.terms.iter().enumerate() {
                if column >= program.n_columns() {
                    return fail(format!("a term in column {column} of {}", program.n_columns()));
                }
                if !value.is_finite() {
                    return fail(format!("coefficient {value} of {}", program.column_name(column)));
                }
                if entry.terms[..position].iter().any(|&(other, _)| other == column) {
                    return fail(format!("two terms in {}", program.column_name(column)));
                }
            }
        }
    }
    Ok(())
}

/// Description of a range with NaN or with an infinite bound on the wrong side; none for any other range.
fn wrong_range(range: Range) -> Option<String> {
    let wrong = range.lower.is_nan()
        || range.upper.is_nan()
        || range.lower == f64::INFINITY
        || range.upper == f64::NEG_INFINITY;
    wrong.then(|| format!("bounds {} and {}", range.lower, range.upper))
}
