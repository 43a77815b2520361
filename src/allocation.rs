//! Allocations: the share of time each combination gets on each worker type, checked against their problem.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::index::{CombinationId, Id, IndexVec, JobIndex, Matrix, WorkerTypeId};
use crate::problem::Problem;
use crate::workload::Combination;

/// Largest violation of a constraint of the allocation polytope that is accepted: absolute for the time of a
/// job, relative to the workers of a type.
pub const VIOLATION_MAX: f64 = 1e-6;

/// X: [combination × worker type] in [0, 1], a member of the allocation polytope.
///
/// Made only by [`Allocation::check`], so whoever holds one may rely on it; the one exception says so in its name
/// ([`Allocation::overcommitted`]) and in [`violation_max`](Allocation::violation_max).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Allocation {
    combinations: IndexVec<CombinationId, Combination<JobIndex>>,
    shares: Matrix<CombinationId, WorkerTypeId>,
    effective_throughput: IndexVec<JobIndex, f64>,
    violation_max: f64,
}

/// Shares that are yet to be checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// What each row gives time to.
    pub combinations: Vec<Combination<JobIndex>>,
    /// [combination × worker type], row after row.
    pub shares: Vec<f64>,
}

impl Rows {
    fn of(problem: &Problem, rows: impl IntoIterator<Item = (Combination<JobIndex>, Vec<f64>)>) -> Self {
        let mut flat = Self::default();
        for (combination, shares) in rows {
            assert_eq!(shares.len(), problem.n_types(), "a row has one share per worker type");
            flat.combinations.push(combination);
            flat.shares.extend_from_slice(&shares);
        }
        flat
    }
}

/// Why shares are not an allocation.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum AllocationError {
    /// A share below 0, above 1 or undefined.
    #[error("combination {combination} has share {share} on worker type {worker_type}, expected 0 to 1")]
    Share {
        /// Position of the combination.
        combination: usize,
        /// Position of the worker type.
        worker_type: usize,
        /// The share.
        share: f64,
    },
    /// A job with more than all of its time.
    #[error("job {job} is given {time} of its time, expected at most 1")]
    Time {
        /// Position of the job.
        job: usize,
        /// Its total share.
        time: f64,
    },
    /// A worker type given away more than once.
    #[error("{workers} workers of type {worker_type} are given away, of {capacity}")]
    Capacity {
        /// Position of the worker type.
        worker_type: usize,
        /// Workers given away.
        workers: f64,
        /// Workers there are.
        capacity: f64,
    },
    /// Time where a member cannot run, or a pair of different scale factors.
    #[error("combination {combination} cannot run on worker type {worker_type}")]
    CannotRun {
        /// Position of the combination.
        combination: usize,
        /// Position of the worker type.
        worker_type: usize,
    },
}

impl Allocation {
    /// Checks shares against the problem's allocation polytope and makes an allocation of them. Shares below 0
    /// by no more than [`VIOLATION_MAX`] become 0; nothing else is changed.
    ///
    /// # Errors
    /// If a constraint is broken by more than [`VIOLATION_MAX`].
    ///
    /// # Panics
    /// If a row does not have one share per worker type.
    pub fn check(
        problem: &Problem,
        rows: impl IntoIterator<Item = (Combination<JobIndex>, Vec<f64>)>,
    ) -> Result<Self, AllocationError> {
        Self::check_flat(problem, Rows::of(problem, rows))
    }

    /// The same of rows that lie one after another: a million of them are no million vectors.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    ///
    /// # Panics
    /// If there is not one share per combination and worker type.
    pub fn check_flat(problem: &Problem, rows: Rows) -> Result<Self, AllocationError> {
        let (checked, excess) = Self::check_rows(problem, rows)?;
        match excess {
            Some(excess) => Err(excess),
            None => Ok(checked),
        }
    }

    /// As [`check`](Self::check), but worker types may be given away more than once: only for repeating a published
    /// heuristic that does so. The excess, relative to the workers there are, is in
    /// [`violation_max`](Self::violation_max); a mechanism places each worker once whatever the shares say.
    ///
    /// # Errors
    /// If another constraint is broken by more than [`VIOLATION_MAX`].
    pub fn overcommitted(
        problem: &Problem,
        rows: impl IntoIterator<Item = (Combination<JobIndex>, Vec<f64>)>,
    ) -> Result<Self, AllocationError> {
        Self::check_rows(problem, Rows::of(problem, rows)).map(|(checked, _)| checked)
    }

    /// Checks all but capacity, whose first excess it returns beside.
    fn check_rows(problem: &Problem, rows: Rows) -> Result<(Self, Option<AllocationError>), AllocationError> {
        let k = problem.n_types();
        let Rows { combinations, mut shares } = rows;
        assert_eq!(shares.len(), combinations.len() * k, "one share per combination and worker type");
        let mut effective_throughput = vec![0.0; problem.n_jobs()];
        let mut time = vec![0.0; problem.n_jobs()];
        let mut workers = vec![0.0; k];
        let mut violation_max = 0.0;
        for (position, combination) in combinations.iter().enumerate() {
            let row = &mut shares[position * k..(position + 1) * k];
            check_shares(position, row, &mut violation_max)?;
            if row.iter().all(|share| *share == 0.0) {
                continue;
            }
            add_throughput(problem, (position, *combination), row, &mut effective_throughput)?;
            let scale_factor = f64::from(problem.jobs()[combination.first()].scale_factor);
            for job in combination.members() {
                time[job.index()] += row.iter().sum::<f64>();
            }
            for (used, share) in workers.iter_mut().zip(row) {
                *used += scale_factor * *share;
            }
        }
        let mut checked = Self {
            combinations: combinations.into(),
            shares: Matrix::from_rows(shares, k),
            effective_throughput: effective_throughput.into(),
            violation_max,
        };
        let excess = checked.check_totals(problem, &time, &workers)?;
        Ok((checked, excess))
    }

    fn check_totals(
        &mut self,
        problem: &Problem,
        time: &[f64],
        workers: &[f64],
    ) -> Result<Option<AllocationError>, AllocationError> {
        for (job, time) in time.iter().copied().enumerate() {
            if time > 1.0 + VIOLATION_MAX {
                return Err(AllocationError::Time { job, time });
            }
            self.violation_max = self.violation_max.max(time - 1.0);
        }
        let mut first = None;
        for (worker_type, (used, kind)) in workers.iter().zip(problem.cluster().types()).enumerate() {
            let capacity = f64::from(kind.n_workers);
            let excess = (used - capacity) / capacity.max(1.0);
            if excess > VIOLATION_MAX && first.is_none() {
                first = Some(AllocationError::Capacity { worker_type, workers: *used, capacity });
            }
            self.violation_max = self.violation_max.max(excess);
        }
        Ok(first)
    }

    /// The combinations that were given a row, in the policy's order.
    pub fn combinations(&self) -> &IndexVec<CombinationId, Combination<JobIndex>> {
        &self.combinations
    }

    /// X: [combination × worker type].
    pub fn shares(&self) -> &Matrix<CombinationId, WorkerTypeId> {
        &self.shares
    }

    /// thr(m, X) of every job in steps/s, under measured throughputs whatever the policy's view: `[n]`.
    pub fn effective_throughput(&self) -> &IndexVec<JobIndex, f64> {
        &self.effective_throughput
    }

    /// The largest violation that was found and accepted.
    pub fn violation_max(&self) -> f64 {
        self.violation_max
    }
}

/// Refuses shares out of range; puts those that are a little below 0 at 0.
fn check_shares(
    combination: usize,
    shares: &mut [f64],
    violation_max: &mut f64,
) -> Result<(), AllocationError> {
    for (worker_type, share) in shares.iter_mut().enumerate() {
        if !(-VIOLATION_MAX..=1.0 + VIOLATION_MAX).contains(share) {
            return Err(AllocationError::Share { combination, worker_type, share: *share });
        }
        *violation_max = violation_max.max(-*share).max(*share - 1.0);
        *share = share.max(0.0);
    }
    Ok(())
}

/// Adds what the members of a combination get from its shares.
fn add_throughput(
    problem: &Problem,
    (position, combination): (usize, Combination<JobIndex>),
    shares: &[f64],
    throughput: &mut [f64],
) -> Result<(), AllocationError> {
    let first = combination.first();
    let Some(second) = combination.second() else {
        for (share, alone) in shares.iter().zip(problem.throughput().row(first)) {
            throughput[first.index()] += share * alone;
        }
        return Ok(());
    };
    for (worker_type, share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
        let cannot = AllocationError::CannotRun { combination: position, worker_type };
        let together = problem.colocated(combination, WorkerTypeId::from_index(worker_type)).ok_or(cannot)?;
        throughput[first.index()] += share * together[0];
        throughput[second.index()] += share * together[1];
    }
    Ok(())
}

impl fmt::Display for Allocation {
    /// One line a combination: its jobs' positions and its shares.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (id, combination) in self.combinations.enumerate() {
            let jobs: Vec<String> = combination.members().map(|job| job.to_string()).collect();
            let shares: Vec<String> = self.shares.row(id).iter().map(|share| format!("{share:.4}")).collect();
            writeln!(f, "{:>10}  {}", jobs.join("+"), shares.join("  "))?;
        }
        Ok(())
    }
}
