//! Columns of tables. Older versions named them without units, such as `jct` for `jct_s`.

use std::collections::BTreeSet;

use rusqlite::Connection;
use rusqlite::types::Value as Cell;

use apportion::metrics::{JobColumn, JobNumbers, JobValue, METRICS};

/// Names of a column: with and without its unit.
pub(super) type Names = [&'static str; 2];

/// Names of the metrics' columns.
pub(super) fn of_metrics() -> impl Iterator<Item = Names> {
    METRICS.iter().map(|metric| [metric.name, metric.bare_name()])
}

/// Names of some columns of jobs.
pub(super) fn of_jobs(columns: &'static [JobColumn]) -> impl Iterator<Item = Names> {
    columns.iter().map(|column| [column.name, column.bare_name()])
}

/// A name quoted for SQL.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Declarations of columns of jobs in a new table, as SQL.
pub(super) fn declared(columns: &[JobColumn]) -> String {
    let kind = |column: &JobColumn| if column.is_count() { "INTEGER" } else { "REAL" };
    let columns = columns.iter().map(|column| format!("{} {}", quoted(column.name), kind(column)));
    columns.collect::<Vec<_>>().join(", ")
}

/// Value of a job in a column.
pub(super) fn value(column: &JobColumn, numbers: &JobNumbers<'_>) -> Option<Cell> {
    (column.of)(numbers).map(|value| match value {
        JobValue::Count(count) => Cell::Integer(i64::try_from(count).unwrap_or(i64::MAX)),
        JobValue::Number(number) => Cell::Real(number),
    })
}

/// Names of the columns of a table.
pub(super) fn there(connection: &Connection, table: &str) -> rusqlite::Result<BTreeSet<String>> {
    let mut query = connection.prepare("SELECT name FROM pragma_table_info(?1)")?;
    query.query_map([table], |row| row.get(0))?.collect()
}

/// Quoted name of a column in a table with the columns `there`; none if it is missing.
pub(super) fn called(there: &BTreeSet<String>, names: Names) -> Option<String> {
    names.into_iter().find(|name| there.contains(*name)).map(quoted)
}

/// Quoted names of some columns of jobs, as a list in SQL, with `NULL` for missing ones.
pub(super) fn all_called(
    connection: &Connection,
    table: &str,
    columns: &'static [JobColumn],
) -> rusqlite::Result<String> {
    let there = there(connection, table)?;
    let called = |names: Names| called(&there, names).unwrap_or_else(|| "NULL".to_owned());
    Ok(of_jobs(columns).map(called).collect::<Vec<_>>().join(", "))
}

/// Renames columns of older versions to their names with units.
pub(super) fn rename(
    connection: &Connection,
    table: &str,
    columns: impl Iterator<Item = Names>,
) -> rusqlite::Result<()> {
    let there = there(connection, table)?;
    for [name, bare] in columns.filter(|[name, bare]| !there.contains(*name) && there.contains(*bare)) {
        let (bare, name) = (quoted(bare), quoted(name));
        connection.execute_batch(&format!("ALTER TABLE {table} RENAME COLUMN {bare} TO {name}"))?;
    }
    Ok(())
}
