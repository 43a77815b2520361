//! The table of played workloads.

use crate::world::Workload;
use apportion_published::world::Summary;
use apportion_studies::report::{Cell, Table};

/// A column: its name, and its cell for a run.
pub(super) type Column = (&'static str, fn(&Summary) -> Cell);

/// Jobs that have ended.
pub(super) const JOBS_DONE: Column = ("jobs_done", |run| Cell::Count(run.n_done as u64));

/// A row for each policy, or for each workload of each.
pub(super) fn table_of<P>(
    players: &[(String, P)],
    workloads: &[Workload],
    runs: &[Vec<Summary>],
    per_trace: bool,
    columns: &[Column],
) -> Table {
    let first = if per_trace { &["policy", "trace"][..] } else { &["policy"][..] };
    let mut table = Table::new(first.iter().copied().chain(columns.iter().map(|(name, _)| *name)));
    let cells = |summary: &Summary| columns.iter().map(|(_, cell)| cell(summary)).collect::<Vec<_>>();
    for ((name, _), runs) in players.iter().zip(runs) {
        if per_trace {
            for ((trace, _), summary) in workloads.iter().zip(runs) {
                let mut row = vec![Cell::from(name.as_str()), Cell::from(trace.as_str())];
                row.extend(cells(summary));
                table.push(row);
            }
        } else {
            let mut row = vec![Cell::from(name.as_str())];
            row.extend(cells(&Summary::mean(runs)));
            table.push(row);
        }
    }
    table
}
