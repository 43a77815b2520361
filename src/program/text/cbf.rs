//! The Conic Benchmark Format (CBF), version 3: the first that has exponential cones.
//!
//! Constraints are affine forms in cones, and there are no ranges: each bound of a row is a constraint of its own, and so
//! is a bound of a column that no cone states. The format has no names either: comments for people give them by position.
//!
//! An exponential cone of the format is {(u, v, w): u ≥ v·exp(w/v), v > 0} and its closure: [`ConeKind::Exponential`]
//! with its entries in reverse order. Second-order cones are the same in both.

use std::fmt::Write;

use crate::program::standard::{Affine, ConeKind, Program, Range, Sense};
use crate::program::text::names::unique_names;
use crate::program::text::number;

/// The version of the format that is written.
const VERSION: u32 = 3;

/// An affine form of a constraint: its terms plus a constant.
struct Form {
    name: String,
    terms: Vec<(usize, f64)>,
    constant: f64,
}

/// Forms one after another, with the cones that they must lie in, as `(cone, number of forms)`.
#[derive(Default)]
struct Constraints {
    forms: Vec<Form>,
    cones: Vec<(&'static str, usize)>,
}

impl Constraints {
    /// Adds a form that must lie in a cone of one entry, which joins the cone before if that is of its kind.
    fn push(&mut self, cone: &'static str, form: Form) {
        self.forms.push(form);
        push_run(&mut self.cones, cone);
    }

    /// Adds the bounds of a form as constraints; comments of the text call it `name`.
    fn push_range(&mut self, name: &str, terms: &[(usize, f64)], range: Range) {
        let form = |side: &str, bound: f64| Form {
            name: format!("{name}{side}"),
            terms: terms.to_vec(),
            // 0 has no sign here.
            constant: if bound == 0.0 { 0.0 } else { -bound },
        };
        if range.is_point() {
            return self.push("L=", form("", range.upper));
        }
        if range.upper.is_finite() {
            self.push("L-", form("", range.upper));
        }
        if range.lower.is_finite() {
            self.push("L+", form(if range.upper.is_finite() { "_lower" } else { "" }, range.lower));
        }
    }
}

/// Adds one entry to the last of some cones if it is of this kind, else a cone of one entry.
fn push_run(cones: &mut Vec<(&'static str, usize)>, cone: &'static str) {
    match cones.last_mut() {
        Some((last, n)) if *last == cone => *n += 1,
        _ => cones.push((cone, 1)),
    }
}

/// The cone that states exactly these bounds of a column, if there is one.
fn cone_of(range: Range) -> Option<&'static str> {
    let zero = Range { lower: 0.0, upper: 0.0 };
    let non_positive = Range::at_most(0.0);
    [(Range::FREE, "F"), (Range::NON_NEGATIVE, "L+"), (non_positive, "L-"), (zero, "L=")]
        .into_iter()
        .find_map(|(known, cone)| (known == range).then_some(cone))
}

/// A program as CBF text, with cones or without.
///
/// ```
/// use apportion::program::{Program, Range, Sense, text::to_cbf};
/// let mut program = Program::new(Sense::Maximize);
/// let x = program.push_column(Range::NON_NEGATIVE, Range::NON_NEGATIVE, 2.0);
/// program.push_row(Range::at_most(3.0), [(x, 1.0)]);
/// assert_eq!(
///     to_cbf(&program),
///     "# 1 columns, 1 rows, 0 cones\n# variable 0: x0\n# constraint 0: r0\nVER\n3\n\nOBJSENSE\nMAX\n\n\
///      VAR\n1 1\nL+ 1\n\nCON\n1 1\nL- 1\n\nOBJACOORD\n1\n0 2\n\nACOORD\n1\n0 0 1\n\nBCOORD\n1\n0 -3\n"
/// );
/// ```
pub fn to_cbf(program: &Program) -> String {
    let columns = unique_names(program.n_columns(), "x", |column| program.column_name(column));
    let rows = unique_names(program.n_rows(), "r", |row| program.row_name(row));
    let mut variables: Vec<(&'static str, usize)> = Vec::new();
    for range in &program.columns {
        push_run(&mut variables, cone_of(*range).unwrap_or("F"));
    }
    let constraints = constraints(program, &columns, &rows);
    let mut text = String::new();
    // writing to a string cannot fail
    let _ = write_comments(&mut text, program, &columns, &rows, &constraints);
    let _ = write_all(&mut text, program, &variables, &constraints);
    text
}

/// The constraints of the text: the bounds of rows, the bounds of columns that no cone of variables states, and the cones.
fn constraints(program: &Program, columns: &[String], rows: &[String]) -> Constraints {
    let mut constraints = Constraints::default();
    for (row, name) in rows.iter().enumerate() {
        let terms: Vec<(usize, f64)> = program.row(row).collect();
        constraints.push_range(name, &terms, program.rows[row]);
    }
    for (column, name) in columns.iter().enumerate() {
        let range = program.columns[column];
        if cone_of(range).is_none() {
            constraints.push_range(&format!("bound of {name}"), &[(column, 1.0)], range);
        }
    }
    for (position, cone) in program.cones.iter().enumerate() {
        let mut entries: Vec<&Affine> = cone.entries.iter().collect();
        let kind = match cone.kind {
            ConeKind::SecondOrder => "Q",
            ConeKind::Exponential => {
                entries.reverse();
                "EXP"
            }
        };
        constraints.cones.push((kind, entries.len()));
        constraints.forms.extend(entries.into_iter().map(|entry| Form {
            name: format!("cone {position}"),
            terms: entry.terms.clone(),
            constant: entry.constant,
        }));
    }
    constraints
}

fn write_comments(
    text: &mut String,
    program: &Program,
    columns: &[String],
    rows: &[String],
    constraints: &Constraints,
) -> std::fmt::Result {
    let (n_columns, n_rows, n_cones) = (columns.len(), rows.len(), program.cones.len());
    writeln!(text, "# {n_columns} columns, {n_rows} rows, {n_cones} cones")?;
    for (position, name) in columns.iter().enumerate() {
        writeln!(text, "# variable {position}: {name}")?;
    }
    for (position, form) in constraints.forms.iter().enumerate() {
        writeln!(text, "# constraint {position}: {}", form.name)?;
    }
    let unbounded = rows.iter().zip(&program.rows).filter(|(_, range)| **range == Range::FREE);
    unbounded.into_iter().try_for_each(|(name, _)| writeln!(text, "# {name} has no bounds"))
}

fn write_all(
    text: &mut String,
    program: &Program,
    variables: &[(&'static str, usize)],
    constraints: &Constraints,
) -> std::fmt::Result {
    let sense = match program.sense {
        Sense::Maximize => "MAX",
        Sense::Minimize => "MIN",
    };
    writeln!(text, "VER\n{VERSION}\n\nOBJSENSE\n{sense}")?;
    write_cones(text, "VAR", program.n_columns(), variables)?;
    write_cones(text, "CON", constraints.forms.len(), &constraints.cones)?;
    let costs = program.cost.iter().enumerate().filter(|(_, cost)| **cost != 0.0);
    write_list(text, "OBJACOORD", costs.map(|(column, cost)| format!("{column} {}", number(*cost))))?;
    if program.offset != 0.0 {
        writeln!(text, "\nOBJBCOORD\n{}", number(program.offset))?;
    }
    let forms = || constraints.forms.iter().enumerate();
    let terms = forms().flat_map(|(row, form)| form.terms.iter().map(move |term| (row, term)));
    let terms = terms.filter(|(_, (_, value))| *value != 0.0);
    write_list(
        text,
        "ACOORD",
        terms.map(|(row, (column, value))| format!("{row} {column} {}", number(*value))),
    )?;
    let constants = forms().filter(|(_, form)| form.constant != 0.0);
    write_list(text, "BCOORD", constants.map(|(row, form)| format!("{row} {}", number(form.constant))))
}

/// Writes a section that assigns entries to cones; nothing without entries.
fn write_cones(
    text: &mut String,
    keyword: &str,
    n_entries: usize,
    cones: &[(&'static str, usize)],
) -> std::fmt::Result {
    if n_entries == 0 {
        return Ok(());
    }
    writeln!(text, "\n{keyword}\n{n_entries} {}", cones.len())?;
    cones.iter().try_for_each(|(cone, n)| writeln!(text, "{cone} {n}"))
}

/// Writes a section of lines, their number first; nothing without lines.
fn write_list(text: &mut String, keyword: &str, lines: impl Iterator<Item = String>) -> std::fmt::Result {
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(text, "\n{keyword}\n{}", lines.len())?;
    lines.iter().try_for_each(|line| writeln!(text, "{line}"))
}
