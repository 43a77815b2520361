//! The normalized log as text: one form for all logs.

use std::fmt::Write;
use std::io;

use crate::forms::log::NAMES;
use crate::row::Row;

/// A row as a mapping of columns to values, for people: of the lines of a normalized log.
#[derive(Debug, schemars::JsonSchema, serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "a description for people: lines are read field by field")]
struct Described {
    /// The name of the job; no two jobs have the same.
    id: String,
    /// What its owner calls it.
    name: Option<String>,
    /// Its owner.
    user: Option<String>,
    /// Its owner's group: an account, a virtual cluster, a queue.
    group: Option<String>,
    /// When it was submitted, since 1970 in UTC, or since the log's own start.
    #[schemars(extend("x-unit" = "s"))]
    submitted_s: Option<f64>,
    /// When it could have run first.
    #[schemars(extend("x-unit" = "s"))]
    eligible_s: Option<f64>,
    /// When its first attempt started.
    #[schemars(extend("x-unit" = "s"))]
    started_s: Option<f64>,
    /// When its last attempt ended.
    #[schemars(extend("x-unit" = "s"))]
    ended_s: Option<f64>,
    /// How long it ran, over all attempts.
    #[schemars(extend("x-unit" = "s"))]
    ran_s: Option<f64>,
    /// Accelerators that it held at once; 0 if it asked for none, nothing if that is not known.
    #[schemars(extend("x-unit" = "accelerators"))]
    gpus: Option<u32>,
    /// The part of each accelerator that it asked for, above 0 and below 1; nothing for whole ones.
    gpu_fraction: Option<f64>,
    /// Servers that it ran on.
    nodes: Option<u32>,
    /// The accelerator's type, or types that would do, separated by `|`.
    gpu_type: Option<String>,
    /// How it ended.
    state: crate::row::State,
    /// How often it was started; nothing where that is not known.
    attempts: Option<u32>,
    /// What the log classes it as: a priority, a kind of work.
    class: Option<String>,
}

/// The JSON Schema of a line, as a mapping of columns to values.
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(Described)
}

/// Writes rows as a normalized log. Reading it back gives the same rows, but for their lines.
///
/// # Errors
/// If `out` cannot be written to.
pub fn write_rows<T: AsRef<str>>(
    out: &mut dyn io::Write,
    rows: impl IntoIterator<Item = Row<T>>,
) -> io::Result<()> {
    let mut line = NAMES.join(",");
    line.push('\n');
    for row in rows {
        push_row(&mut line, &row);
        if line.len() > 1 << 16 {
            out.write_all(line.as_bytes())?;
            line.clear();
        }
    }
    out.write_all(line.as_bytes())
}

fn push_row<T: AsRef<str>>(line: &mut String, row: &Row<T>) {
    push_text(line, Some(&row.id));
    for text in [&row.name, &row.user, &row.group] {
        line.push(',');
        push_text(line, text.as_ref());
    }
    for time in [row.submitted_s, row.eligible_s, row.started_s, row.ended_s, row.ran_s] {
        line.push(',');
        push_number(line, time);
    }
    line.push(',');
    push_number(line, row.n_workers);
    line.push(',');
    push_number(line, row.fraction);
    line.push(',');
    push_number(line, row.n_nodes);
    line.push(',');
    push_text(line, row.worker_type.as_ref());
    let _ = write!(line, ",{},", row.state.name());
    push_number(line, row.n_attempts);
    line.push(',');
    push_text(line, row.class.as_ref());
    line.push('\n');
}

fn push_number(line: &mut String, number: Option<impl std::fmt::Display>) {
    if let Some(number) = number {
        let _ = write!(line, "{number}");
    }
}

fn push_text<T: AsRef<str>>(line: &mut String, text: Option<&T>) {
    let Some(text) = text.map(T::as_ref) else { return };
    if text.contains([',', '"']) {
        let _ = write!(line, "\"{}\"", text.replace('"', "\"\""));
    } else {
        line.push_str(text);
    }
}
