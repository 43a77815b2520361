//! The free MPS format.

use std::fmt::Write;

use crate::program::standard::{Program, Range, Sense};
use crate::program::text::names::unique_names;
use crate::program::text::{TextError, check_linear, number};

/// A linear program as free MPS text, with the section `OBJSENSE` for its direction.
///
/// # Errors
/// [`TextError::Cones`] if the program has any; [`TextError::Contradictory`] if a row's bounds are.
pub fn to_mps(program: &Program) -> Result<String, TextError> {
    check_linear(program, "MPS")?;
    if let Some(row) = program.rows.iter().position(|range| range.lower > range.upper) {
        return Err(TextError::Contradictory { format: "MPS", row });
    }
    let columns = unique_names(program.n_columns(), "x", |column| program.column_name(column));
    let rows = unique_names(program.n_rows(), "r", |row| program.row_name(row));
    let mut text = String::new();
    // writing to a string cannot fail
    let _ = write_all(&mut text, program, &columns, &rows);
    Ok(text)
}

fn write_all(text: &mut String, program: &Program, columns: &[String], rows: &[String]) -> std::fmt::Result {
    let sense = match program.sense {
        Sense::Maximize => "MAX",
        Sense::Minimize => "MIN",
    };
    writeln!(text, "NAME program\nOBJSENSE\n    {sense}\nROWS\n N obj")?;
    for (name, &range) in rows.iter().zip(&program.rows) {
        writeln!(text, " {} {name}", kind(range))?;
    }
    write_columns(text, program, columns, rows)?;
    text.push_str("RHS\n");
    if program.offset != 0.0 {
        // the right-hand side of the objective is subtracted from it
        writeln!(text, "    RHS obj {}", number(-program.offset))?;
    }
    for (name, &range) in rows.iter().zip(&program.rows) {
        let bound = if range.upper.is_finite() { range.upper } else { range.lower };
        if bound.is_finite() && bound != 0.0 {
            writeln!(text, "    RHS {name} {}", number(bound))?;
        }
    }
    text.push_str("RANGES\n");
    for (name, &range) in rows.iter().zip(&program.rows) {
        if range.lower.is_finite() && range.upper.is_finite() && !range.is_point() {
            writeln!(text, "    RNG {name} {}", number(range.upper - range.lower))?;
        }
    }
    text.push_str("BOUNDS\n");
    for (name, &range) in columns.iter().zip(&program.columns) {
        write_bounds(text, name, range)?;
    }
    text.push_str("ENDATA\n");
    Ok(())
}

/// The type of a row in MPS. A range is an at-most row with an entry in RANGES; a row without bounds is another N row.
fn kind(range: Range) -> char {
    match (range.lower.is_finite(), range.upper.is_finite()) {
        (true, true) if range.is_point() => 'E',
        (_, true) => 'L',
        (true, false) => 'G',
        (false, false) => 'N',
    }
}

/// Writes the terms column by column; a column without terms gets a 0 in the objective, because it must be listed.
fn write_columns(
    text: &mut String,
    program: &Program,
    columns: &[String],
    rows: &[String],
) -> std::fmt::Result {
    let mut terms = vec![Vec::new(); columns.len()];
    for row in 0..rows.len() {
        for (column, value) in program.row(row) {
            terms[column].push((row, value));
        }
    }
    text.push_str("COLUMNS\n");
    for ((name, terms), &cost) in columns.iter().zip(&terms).zip(&program.cost) {
        if cost != 0.0 || terms.is_empty() {
            writeln!(text, "    {name} obj {}", number(cost))?;
        }
        for &(row, value) in terms {
            writeln!(text, "    {name} {} {}", rows[row], number(value))?;
        }
    }
    Ok(())
}

/// Writes the bounds of a column; nothing for 0 to infinity, the format's default.
fn write_bounds(text: &mut String, name: &str, range: Range) -> std::fmt::Result {
    let Range { lower, upper } = range;
    if range == Range::NON_NEGATIVE {
        return Ok(());
    }
    if range == Range::FREE {
        return writeln!(text, " FR BND {name}");
    }
    if range.is_point() {
        return writeln!(text, " FX BND {name} {}", number(lower));
    }
    // the lower bound is written even if it is 0: readers differ on its value beside an upper bound below 0
    if lower == f64::NEG_INFINITY {
        writeln!(text, " MI BND {name}")?;
    } else {
        writeln!(text, " LO BND {name} {}", number(lower))?;
    }
    if upper == f64::INFINITY { Ok(()) } else { writeln!(text, " UP BND {name} {}", number(upper)) }
}
