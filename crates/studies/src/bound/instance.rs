//! Jobs whose completion times are bounded, with upper bounds on their throughputs.

use std::sync::Arc;

use crate::bound::error::BoundError;
use apportion::index::{Id, RowId, WorkerTypeId};
use apportion::problem::{Colocation, matrix_columns};
use apportion::workload::Job;
use apportion::{Cluster, Problem, Throughputs};
use ndarray::Array3;

/// Jobs that arrive over time at a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Instance<'a> {
    /// Cluster, whose workers are never down.
    pub cluster: &'a Cluster,
    /// Throughputs of jobs that state none.
    pub throughputs: &'a Arc<Throughputs>,
    /// Jobs in any order.
    pub jobs: &'a [Job],
    /// Whether two jobs may share workers.
    pub pairs: bool,
}

/// Properties of a job that the bound uses. Times are in seconds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TimedJob {
    pub(super) arrival: f64,
    pub(super) steps: f64,
    pub(super) scale_factor: u32,
    /// Row of the throughputs, by which pairs are looked up.
    pub(super) row: Option<RowId>,
    /// Largest known throughput on each worker type, alone or beside any other job, steps/s; 0 where the job does not fit:
    /// `[K]`.
    pub(super) speeds: Vec<f64>,
    /// Duration of its steps at the largest of these, s.
    pub(super) fastest: f64,
}

impl Instance<'_> {
    /// Jobs in order of arrival, and the throughputs of pairs.
    ///
    /// # Errors
    /// If there are no jobs, the throughputs lack one, or one can run nowhere.
    pub(super) fn timed(&self) -> Result<(Vec<TimedJob>, Colocation), BoundError> {
        if self.jobs.is_empty() {
            return Err(BoundError::NoJobs);
        }
        let mut steps = self.jobs.iter().map(|job| job.total_steps.get()).enumerate();
        if let Some((job, steps)) = steps.find(|(_, steps)| !(steps.is_finite() && *steps > 0.0)) {
            return Err(BoundError::Steps { job, steps });
        }
        let problem = Problem::new(self.cluster, self.jobs, self.throughputs)?;
        let columns = matrix_columns(self.cluster, self.throughputs)?;
        let most = self.most()?;
        let mut rows: Vec<RowId> = problem.jobs().iter().filter_map(|job| job.row).collect();
        rows.sort_unstable();
        rows.dedup();
        let timed = problem.jobs().ids().map(|index| {
            let (job, active) = (&self.jobs[index.index()], &problem.jobs()[index]);
            let speed = |(kind, alone): (WorkerTypeId, &f64)| {
                let fits = active.scale_factor <= self.cluster.types()[kind].n_workers;
                let column = columns[kind].filter(|_| fits);
                let elsewhere =
                    column.zip(active.row).map(|(column, row)| self.fastest(&most, (row, column), &rows));
                if fits { alone.max(elsewhere.unwrap_or(0.0)) } else { 0.0 }
            };
            let kinds = self.cluster.types().ids();
            let speeds: Vec<f64> = kinds.zip(problem.throughput().row(index)).map(speed).collect();
            let most = speeds.iter().copied().fold(0.0, f64::max);
            let steps = job.total_steps.get();
            TimedJob {
                arrival: job.arrival.get(),
                steps,
                scale_factor: active.scale_factor,
                row: active.row,
                fastest: steps / most,
                speeds,
            }
        });
        let mut timed: Vec<TimedJob> = timed.collect();
        timed.sort_by(|one, other| one.arrival.total_cmp(&other.arrival));
        let throughputs = most;
        let colocation =
            if self.pairs { Colocation::Rows { throughputs, columns } } else { Colocation::None };
        Ok((timed, colocation))
    }

    /// Largest throughput of a row on a type beside a job of the rows, or over several servers, steps/s.
    fn fastest(&self, most: &Throughputs, (row, column): (RowId, WorkerTypeId), rows: &[RowId]) -> f64 {
        let spread = most.spread(row, column).unwrap_or(0.0);
        let others = rows.iter().filter(|_| self.pairs);
        others.map(|other| most.colocated(row, *other, column)).fold(spread, f64::max)
    }

    /// Throughputs with those of pairs raised to their upper bounds: some jobs are measured to be faster on several servers
    /// than on the fewest, and may then be so beside others, too.
    fn most(&self) -> Result<Arc<Throughputs>, BoundError> {
        if !self.pairs {
            return Ok(Arc::clone(self.throughputs));
        }
        let given = self.throughputs;
        let gain = |row: RowId, column: WorkerTypeId| {
            let (alone, spread) = (given.alone(row, column), given.spread(row, column).unwrap_or(0.0));
            if alone > 0.0 { (spread / alone).max(1.0) } else { 1.0 }
        };
        let (n_types, n_rows) = (given.worker_types().len(), given.rows().len());
        let colocated = Array3::from_shape_fn((n_types, n_rows, n_rows), |(column, row, other)| {
            let (column, row) = (WorkerTypeId::from_index(column), RowId::from_index(row));
            given.colocated(row, RowId::from_index(other), column) * gain(row, column)
        });
        Ok(Arc::new(given.with_colocated(colocated)?))
    }
}
