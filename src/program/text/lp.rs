//! CPLEX's LP format.

use std::fmt::Write;

use crate::program::standard::{Program, Range, Sense};
use crate::program::text::names::unique_names;
use crate::program::text::{TextError, check_linear, number};

/// Most terms on a line, whose length readers limit.
const TERMS_PER_LINE: usize = 8;

/// A linear program as LP text. A row with two bounds becomes two rows, the second named `…_lower`; rows without
/// bounds are left out, with a comment.
///
/// ```
/// use apportion::program::{Program, Range, Sense, text::to_lp};
/// let mut program = Program::new(Sense::Maximize);
/// let x = program.push_column(Range::NON_NEGATIVE, Range::NON_NEGATIVE, 2.0);
/// program.push_row(Range::at_most(3.0), [(x, 1.0)]);
/// assert_eq!(
///     to_lp(&program)?,
///     "\\ 1 columns, 1 rows\nmaximize\n obj: + 2 x0\nsubject to\n r0: + 1 x0 <= 3\nbounds\nend\n"
/// );
/// # Ok::<(), apportion::program::text::TextError>(())
/// ```
///
/// # Errors
/// [`TextError::Cones`] if the program has any.
pub fn to_lp(program: &Program) -> Result<String, TextError> {
    check_linear(program, "LP")?;
    let columns = unique_names(program.n_columns(), "x", |column| program.column_name(column));
    // names of the rows, then names of the rows that hold the lower bounds of ranges
    let rows = unique_names(2 * program.n_rows(), "r", |row| match row.checked_sub(program.n_rows()) {
        None => program.row_name(row),
        Some(row) => format!("{}_lower", program.row_name(row)),
    });
    let mut text = String::new();
    // writing to a string cannot fail
    let _ = write_all(&mut text, program, &columns, &rows);
    Ok(text)
}

fn write_all(text: &mut String, program: &Program, columns: &[String], rows: &[String]) -> std::fmt::Result {
    writeln!(text, "\\ {} columns, {} rows", program.n_columns(), program.n_rows())?;
    text.push_str(match program.sense {
        Sense::Maximize => "maximize\n obj:",
        Sense::Minimize => "minimize\n obj:",
    });
    let costs = program.cost.iter().copied().enumerate().filter(|&(_, cost)| cost != 0.0);
    write_form(text, costs, columns)?;
    if program.offset != 0.0 {
        write_signed(text, program.offset)?;
    }
    text.push_str("\nsubject to\n");
    for (row, &range) in program.rows.iter().enumerate() {
        if range == Range::FREE {
            writeln!(text, "\\ {} has no bounds", rows[row])?;
        }
        // two rows for two bounds: readers disagree on `1 <= x <= 2`, and HiGHS 1.15 drops the first
        let sides = if range.is_point() {
            [Some((row, "=", range.upper)), None]
        } else {
            [
                range.upper.is_finite().then_some((row, "<=", range.upper)),
                range.lower.is_finite().then_some((
                    if range.upper.is_finite() { row + program.n_rows() } else { row },
                    ">=",
                    range.lower,
                )),
            ]
        };
        for (name, relation, bound) in sides.into_iter().flatten() {
            write!(text, " {}:", rows[name])?;
            write_form(text, program.row(row), columns)?;
            writeln!(text, " {relation} {}", number(bound))?;
        }
    }
    text.push_str("bounds\n");
    for (name, &range) in columns.iter().zip(&program.columns) {
        write_bounds(text, name, range)?;
    }
    text.push_str("end\n");
    Ok(())
}

/// Writes a linear form such as ` + 2 x - 3 y`, wrapped; without terms, ` 0 x` with the first column, because a form must not be empty.
fn write_form(
    text: &mut String,
    terms: impl Iterator<Item = (usize, f64)>,
    columns: &[String],
) -> std::fmt::Result {
    let mut written = 0;
    for (column, value) in terms {
        if written > 0 && written % TERMS_PER_LINE == 0 {
            text.push_str("\n  ");
        }
        write_signed(text, value)?;
        write!(text, " {}", columns[column])?;
        written += 1;
    }
    if let (0, Some(first)) = (written, columns.first()) {
        write!(text, " 0 {first}")?;
    }
    Ok(())
}

fn write_signed(text: &mut String, value: f64) -> std::fmt::Result {
    let sign = if value < 0.0 { '-' } else { '+' };
    write!(text, " {sign} {}", number(value.abs()))
}

/// Writes the bounds of a column; nothing for 0 to infinity, the format's default.
fn write_bounds(text: &mut String, name: &str, range: Range) -> std::fmt::Result {
    let Range { lower, upper } = range;
    if range == Range::NON_NEGATIVE {
        Ok(())
    } else if range == Range::FREE {
        writeln!(text, " {name} free")
    } else if range.is_point() {
        writeln!(text, " {name} = {}", number(lower))
    } else if upper == f64::INFINITY {
        writeln!(text, " {name} >= {}", number(lower))
    } else if lower == f64::NEG_INFINITY {
        writeln!(text, " -inf <= {name} <= {}", number(upper))
    } else {
        writeln!(text, " {} <= {name} <= {}", number(lower), number(upper))
    }
}
