//! The table of played workloads.

use crate::world::Workload;
use apportion_published::world::Summary;
use apportion_studies::report::{Cell, Table};

/// A column: its name, and its number of a run of summary `S`.
pub(super) struct Column<S> {
    pub(super) name: &'static str,
    number: Number<S>,
}

/// A number of a run: a quantity with its decimals for people, or a count.
enum Number<S> {
    Quantity(fn(&S) -> f64, usize),
    Count(fn(&S) -> u64),
}

/// Decimals for people of the mean of counts.
const MEAN_COUNT_DECIMALS: usize = 2;

impl<S> Column<S> {
    /// A column of a quantity, which tables for people show with `n_decimals` decimals.
    pub(super) const fn quantity(name: &'static str, of: fn(&S) -> f64, n_decimals: usize) -> Self {
        Self { name, number: Number::Quantity(of, n_decimals) }
    }

    /// A column of a count.
    pub(super) const fn count(name: &'static str, of: fn(&S) -> u64) -> Self {
        Self { name, number: Number::Count(of) }
    }

    /// The cell of one run: counts are whole.
    pub(super) fn of_run(&self, run: &S) -> Cell {
        match self.number {
            Number::Quantity(of, n_decimals) => Cell::Number(of(run), n_decimals),
            Number::Count(of) => Cell::Count(of(run)),
        }
    }

    /// The cell of the mean of several runs, which of counts need not be whole.
    pub(super) fn of_mean(&self, runs: &[S]) -> Cell {
        let mean = |sum: f64| sum / runs.len().max(1) as f64;
        match self.number {
            Number::Quantity(of, n_decimals) => Cell::Number(mean(runs.iter().map(of).sum()), n_decimals),
            Number::Count(of) => {
                Cell::Number(mean(runs.iter().map(of).sum::<u64>() as f64), MEAN_COUNT_DECIMALS)
            }
        }
    }
}

/// Jobs that have ended.
pub(super) const JOBS_DONE: Column<Summary> = Column::count("jobs_done", |run| run.n_done as u64);

/// A row for each policy, the mean of its workloads, or for each workload of each.
pub(super) fn table_of<P>(
    players: &[(String, P)],
    workloads: &[Workload],
    runs: &[Vec<Summary>],
    per_trace: bool,
    columns: &[Column<Summary>],
) -> Table {
    let first = if per_trace { &["policy", "trace"][..] } else { &["policy"][..] };
    let mut table = Table::new(first.iter().copied().chain(columns.iter().map(|column| column.name)));
    for ((name, _), runs) in players.iter().zip(runs) {
        if per_trace {
            for ((trace, _), run) in workloads.iter().zip(runs) {
                let mut row = vec![Cell::from(name.as_str()), Cell::from(trace.as_str())];
                row.extend(columns.iter().map(|column| column.of_run(run)));
                table.push(row);
            }
        } else {
            let mut row = vec![Cell::from(name.as_str())];
            row.extend(columns.iter().map(|column| column.of_mean(runs)));
            table.push(row);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_counts_is_not_cut_to_whole_numbers() {
        let run = |preemptions, n_done| Summary { preemptions, n_done, ..Summary::default() };
        let runs = [run(1, 40), run(2, 40), run(2, 39)];
        let preemptions = Column::<Summary>::count("preemptions", |run| run.preemptions);
        assert_eq!(preemptions.of_mean(&runs), Cell::Number(5.0 / 3.0, MEAN_COUNT_DECIMALS));
        assert_eq!(JOBS_DONE.of_mean(&runs), Cell::Number(119.0 / 3.0, MEAN_COUNT_DECIMALS));
        assert_eq!(JOBS_DONE.of_run(&runs[2]), Cell::Count(39));
    }
}
