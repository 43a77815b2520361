//! The normalized log as text: one format for all logs.

use std::fmt::Write;
use std::io;

use crate::forms::log::NAMES;
use crate::row::Row;

/// A line of a normalized log, as a mapping of columns to values.
#[derive(Debug, schemars::JsonSchema, serde::Serialize)]
#[serde(deny_unknown_fields)]
pub struct Described<'a> {
    /// The name of the job; no two jobs have the same.
    pub id: &'a str,
    /// Name that the owner gives the job.
    pub name: Option<&'a str>,
    /// Owner of the job.
    pub user: Option<&'a str>,
    /// Group of the owner: an account, a virtual cluster, a queue.
    pub group: Option<&'a str>,
    /// Time of submission, since 1970 in UTC or since the log's own start.
    #[schemars(extend("x-unit" = "s"))]
    pub submitted_s: Option<f64>,
    /// Time from which the job could run.
    #[schemars(extend("x-unit" = "s"))]
    pub eligible_s: Option<f64>,
    /// Start of the first attempt.
    #[schemars(extend("x-unit" = "s"))]
    pub started_s: Option<f64>,
    /// End of the last attempt.
    #[schemars(extend("x-unit" = "s"))]
    pub ended_s: Option<f64>,
    /// Running time over all attempts.
    #[schemars(extend("x-unit" = "s"))]
    pub ran_s: Option<f64>,
    /// Accelerators that the job held at once; 0 if it asked for none, nothing if that is not known.
    #[schemars(extend("x-unit" = "accelerators"))]
    pub gpus: Option<u32>,
    /// Part of each accelerator that the job asked for, above 0 and below 1; nothing for whole ones.
    pub gpu_fraction: Option<f64>,
    /// Number of servers that the job ran on.
    pub nodes: Option<u32>,
    /// Accelerator type, or alternative types separated by `|`.
    pub gpu_type: Option<&'a str>,
    /// State in which the job ended, or was when the log was taken.
    pub state: crate::row::State,
    /// Number of starts; nothing where that is not known.
    pub attempts: Option<u32>,
    /// Class that the log gives the job: a priority, a kind of work.
    pub class: Option<&'a str>,
}

impl<'a> From<&'a Row> for Described<'a> {
    fn from(row: &'a Row) -> Self {
        Self {
            id: &row.id,
            name: row.name.as_deref(),
            user: row.user.as_deref(),
            group: row.group.as_deref(),
            submitted_s: row.submitted_s,
            eligible_s: row.eligible_s,
            started_s: row.started_s,
            ended_s: row.ended_s,
            ran_s: row.ran_s,
            gpus: row.n_workers,
            gpu_fraction: row.fraction,
            nodes: row.n_nodes,
            gpu_type: row.worker_type.as_deref(),
            state: row.state,
            attempts: row.n_attempts,
            class: row.class.as_deref(),
        }
    }
}

/// The JSON Schema of a line, as a mapping of columns to values.
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(Described<'_>)
}

/// Writes rows as a normalized log. Reading it back gives the same rows, except for their line numbers.
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
