//! Allocations: the share of time each combination gets on each worker type, checked against their problem.

mod shares;
#[cfg(test)]
mod tests;

use std::fmt;
use std::hint::black_box;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::index::{CombinationId, Id, IndexVec, JobIndex, WorkerTypeId};
use crate::problem::{Problem, Sharer};
use crate::units::Decimals;
use crate::workload::Combination;
pub use shares::Shares;

/// Largest violation of a constraint of the allocation polytope that is accepted: absolute for the time of a
/// job, relative to the workers of a type.
pub const VIOLATION_MAX: f64 = 1e-6;

/// X: [combination × worker type] in [0, 1], a member of the allocation polytope.
///
/// Every allocation has passed a check, of all rows at once ([`Allocation::check`]) or row by row ([`AllocationBuilder`]).
/// The one exception, which may exceed capacities, is [`Allocation::overcommitted`]; its excess is in
/// [`violation_max`](Allocation::violation_max).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Allocation {
    combinations: IndexVec<CombinationId, Combination<JobIndex>>,
    shares: Shares,
    effective_throughput: IndexVec<JobIndex, f64>,
    violation_max: f64,
}

/// Builder of an allocation that checks each row as it is added: a million rows need no million vectors and are read only
/// once.
#[derive(Debug)]
pub struct AllocationBuilder<'a> {
    problem: &'a Problem,
    combinations: Vec<Combination<JobIndex>>,
    shares: Shares,
    /// Time and throughput that each job has so far: `[n]`.
    received: Vec<Received>,
    /// Workers given away so far, of each type: `[K]`.
    workers: Vec<f64>,
    violation_max: f64,
}

/// Time and throughput of one job so far, beside its sharer (what decides which jobs it may share with): one read of memory
/// for both.
#[derive(Clone, Copy, Debug)]
struct Received {
    sharer: Sharer,
    /// Effective throughput, in steps/s.
    throughput: f64,
    /// Sum of the job's shares.
    time: f64,
}

/// Shares of a pair of jobs, looked up and checked once for all pairs of jobs with the same two sharers, each of which gets a
/// part of them.
#[derive(Clone, Debug)]
pub struct Together {
    sharers: [Sharer; 2],
    /// Shares: `[K]`.
    shares: Vec<f64>,
    /// The largest share.
    share_max: f64,
    /// Sum of the shares.
    time: f64,
    /// Effective throughput of each of the two jobs, in steps/s.
    throughput: [f64; 2],
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
    /// A share where a member cannot run, or a pair of different scale factors.
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
    /// ```
    /// use apportion::workload::Combination;
    /// use apportion::{Allocation, Cluster, Job, Problem, Throughputs};
    ///
    /// let cluster: Cluster = "v100=1,k80=1".parse()?;
    /// let jobs = [Job::new("A3C").steps(1_000)];
    /// let problem = Problem::new(&cluster, &jobs, &Throughputs::embedded("osdi20")?)?;
    /// let job = problem.jobs().ids().next().expect("there is one job");
    /// let row = |shares: [f64; 2]| [(Combination::single(job), shares.to_vec())];
    /// assert!(Allocation::check(&problem, row([0.5, 0.5])).is_ok());
    /// assert!(Allocation::check(&problem, row([0.8, 0.8])).is_err(), "a job has at most all of its time");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
        let mut builder = AllocationBuilder::new(problem);
        for (combination, shares) in rows {
            builder.push(combination, shares)?;
        }
        builder.finish()
    }

    /// Checks shares as [`check`](Self::check) does, but worker types may be given away more than once: only for repeating a
    /// published heuristic that does so. The excess, relative to the workers there are, is in
    /// [`violation_max`](Self::violation_max); a mechanism places each worker once whatever the shares say.
    ///
    /// # Errors
    /// If another constraint is broken by more than [`VIOLATION_MAX`].
    pub fn overcommitted(
        problem: &Problem,
        rows: impl IntoIterator<Item = (Combination<JobIndex>, Vec<f64>)>,
    ) -> Result<Self, AllocationError> {
        let mut builder = AllocationBuilder::new(problem);
        for (combination, shares) in rows {
            builder.push(combination, shares)?;
        }
        builder.checked().map(|(checked, _)| checked)
    }

    /// The combinations that were given a row, in the policy's order.
    pub fn combinations(&self) -> &IndexVec<CombinationId, Combination<JobIndex>> {
        &self.combinations
    }

    /// X: [combination × worker type].
    pub fn shares(&self) -> &Shares {
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

impl<'a> AllocationBuilder<'a> {
    /// A builder without rows.
    pub fn new(problem: &'a Problem) -> Self {
        let nothing = |job| Received { sharer: problem.sharer(job), throughput: 0.0, time: 0.0 };
        Self {
            problem,
            combinations: Vec::new(),
            shares: Shares::with_types(problem.n_types()),
            received: problem.jobs().ids().map(nothing).collect(),
            workers: vec![0.0; problem.n_types()],
            violation_max: 0.0,
        }
    }

    /// Adds a row: the shares of a combination, `[K]`. Shares below 0 by no more than [`VIOLATION_MAX`] become 0.
    ///
    /// # Errors
    /// If a share is out of its range, or the combination cannot run where it has one.
    ///
    /// # Panics
    /// If there is not one share per worker type.
    #[inline]
    pub fn push(
        &mut self,
        combination: Combination<JobIndex>,
        shares: impl IntoIterator<Item = f64>,
    ) -> Result<(), AllocationError> {
        let position = self.combinations.len();
        self.combinations.push(combination);
        let row = self.shares.push(shares);
        check_shares(|| position, row, &mut self.violation_max)?;
        let (first, time) = (combination.first(), row.iter().sum::<f64>());
        if time == 0.0 {
            return Ok(());
        }
        let mut received = self.received[first.index()];
        for (used, share) in self.workers.iter_mut().zip(&*row) {
            *used += f64::from(received.sharer.scale_factor()) * share;
        }
        received.time += time;
        if let Some(second) = combination.second() {
            let other = &mut self.received[second.index()];
            let sharers = [received.sharer, other.sharer];
            other.time += time;
            for (worker_type, share) in row.iter().enumerate().filter(|(_, share)| **share > 0.0) {
                let kind = WorkerTypeId::from_index(worker_type);
                let together = self.problem.colocated_as(combination, sharers, kind);
                let cannot = AllocationError::CannotRun { combination: position, worker_type };
                let together = together.ok_or(cannot)?;
                received.throughput += share * together[0];
                other.throughput += share * together[1];
            }
        } else {
            for (share, alone) in row.iter().zip(self.problem.throughput().row(first)) {
                received.throughput += share * alone;
            }
        }
        self.received[first.index()] = received;
        Ok(())
    }

    /// Adds a row of every job alone, in order, and reserves room for `n_to_follow` more rows. `of`, `[n]`, is each job's row
    /// in `kinds`, the distinct rows of shares: [kinds × K]. Shares below 0 by no more than [`VIOLATION_MAX`] become 0.
    ///
    /// # Errors
    /// If a share is out of its range.
    ///
    /// # Panics
    /// If there are rows already, or not as many jobs as the problem has, or one is of no kind.
    pub fn push_all_alone(
        &mut self,
        of: &[u32],
        mut kinds: Vec<f64>,
        n_to_follow: usize,
    ) -> Result<(), AllocationError> {
        let k = self.workers.len();
        assert_eq!((of.len(), self.combinations.len()), (self.received.len(), 0), "all jobs come first");
        for (kind, row) in kinds.chunks_exact_mut(k).enumerate() {
            let first = || of.iter().position(|of| *of as usize == kind).unwrap_or_default();
            check_shares(first, row, &mut self.violation_max)?;
        }
        self.combinations.reserve_exact(of.len() + n_to_follow);
        self.combinations.extend((0..of.len()).map(|job| Combination::single(JobIndex::from_index(job))));
        let speeds = self.problem.throughput().as_slice().chunks_exact(k);
        for ((received, speeds), kind) in self.received.iter_mut().zip(speeds).zip(of) {
            let scale_factor = f64::from(received.sharer.scale_factor());
            let shares = &kinds[*kind as usize * k..][..k];
            for ((used, share), speed) in self.workers.iter_mut().zip(shares).zip(speeds) {
                *used += scale_factor * share;
                received.time += share;
                received.throughput += share * speed;
            }
        }
        self.shares.begin(of, kinds);
        self.shares.reserve(n_to_follow);
        Ok(())
    }

    /// Reads the records of these jobs into the processor's caches, for rows that follow: records in order are many times faster
    /// to read than the scattered ones of the second jobs of pairs.
    pub fn prefetch(&self, jobs: Range<usize>) {
        let n = self.received.len();
        let received = &self.received[jobs.start.min(n)..jobs.end.min(n)];
        black_box(received.iter().map(|received| received.time).sum::<f64>());
    }

    /// Shares of a pair, `[K]`, for [`push_part`](Self::push_part); `None` where each pair must be checked by itself: where
    /// co-located throughputs are given pair by pair, or the shares are not allowed for these jobs.
    pub fn together(&self, jobs: [JobIndex; 2], shares: Vec<f64>) -> Option<Together> {
        let sharers = jobs.map(|job| self.received[job.index()].sharer);
        let (mut time, mut share_max, mut throughput) = (0.0, 0.0_f64, [0.0; 2]);
        for (worker_type, share) in shares.iter().enumerate().filter(|(_, share)| **share != 0.0) {
            let kind = WorkerTypeId::from_index(worker_type);
            let [first, second] = self.problem.colocated_by_row(sharers, kind).filter(|_| *share > 0.0)?;
            throughput[0] += share * first;
            throughput[1] += share * second;
            time += share;
            share_max = share_max.max(*share);
        }
        let fits = shares.len() == self.workers.len();
        fits.then_some(Together { sharers, shares, share_max, time, throughput })
    }

    /// Adds a row: this part, 0 to 1, of the shares `of` for a pair.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    #[inline]
    pub fn push_part(
        &mut self,
        of: &Together,
        pair: Combination<JobIndex>,
        part: f64,
    ) -> Result<(), AllocationError> {
        let shares = of.shares.iter().map(|share| share * part);
        let Some(second) = pair.second() else { return self.push(pair, shares) };
        let jobs = [pair.first(), second].map(Id::index);
        let [first, second] = jobs.map(|job| self.received[job].sharer);
        let throughput = match of.throughput {
            throughput if [first, second] == of.sharers => throughput,
            [one, other] if [second, first] == of.sharers => [other, one],
            _ => return self.push(pair, shares),
        };
        if !(part >= 0.0 && part * of.share_max <= 1.0) {
            return self.push(pair, shares);
        }
        self.combinations.push(pair);
        self.shares.push(shares);
        let scale = f64::from(first.scale_factor()) * part;
        for (used, share) in self.workers.iter_mut().zip(&of.shares) {
            *used += scale * share;
        }
        for (job, throughput) in jobs.into_iter().zip(throughput) {
            let received = &mut self.received[job];
            received.time += of.time * part;
            received.throughput += throughput * part;
        }
        Ok(())
    }

    /// The allocation, after the check of times and capacities.
    ///
    /// # Errors
    /// If a job has more than all of its time, or a worker type is given away more than once, by more than
    /// [`VIOLATION_MAX`].
    pub fn finish(self) -> Result<Allocation, AllocationError> {
        match self.checked()? {
            (_, Some(excess)) => Err(excess),
            (checked, None) => Ok(checked),
        }
    }

    /// The allocation with all but capacities enforced, and the first capacity that is exceeded.
    fn checked(mut self) -> Result<(Allocation, Option<AllocationError>), AllocationError> {
        for (job, received) in self.received.iter().enumerate() {
            if received.time > 1.0 + VIOLATION_MAX {
                return Err(AllocationError::Time { job, time: received.time });
            }
            self.violation_max = self.violation_max.max(received.time - 1.0);
        }
        let mut first = None;
        for (worker_type, (used, kind)) in self.workers.iter().zip(self.problem.cluster().types()).enumerate()
        {
            let capacity = f64::from(kind.n_workers);
            let excess = (used - capacity) / capacity.max(1.0);
            if excess > VIOLATION_MAX && first.is_none() {
                first = Some(AllocationError::Capacity { worker_type, workers: *used, capacity });
            }
            self.violation_max = self.violation_max.max(excess);
        }
        let checked = Allocation {
            combinations: self.combinations.into(),
            shares: self.shares,
            // Collected in the memory of `received`.
            effective_throughput: self.received.into_iter().map(|received| received.throughput).collect(),
            violation_max: self.violation_max,
        };
        Ok((checked, first))
    }
}

/// Refuses shares out of range, and sets shares slightly below 0 to 0.
fn check_shares(
    combination: impl Fn() -> usize,
    shares: &mut [f64],
    violation_max: &mut f64,
) -> Result<(), AllocationError> {
    for (worker_type, share) in shares.iter_mut().enumerate() {
        if !(0.0..=1.0).contains(share) {
            if !(-VIOLATION_MAX..=1.0 + VIOLATION_MAX).contains(share) {
                return Err(AllocationError::Share {
                    combination: combination(),
                    worker_type,
                    share: *share,
                });
            }
            *violation_max = violation_max.max(-*share).max(*share - 1.0);
        }
        *share = share.max(0.0);
    }
    Ok(())
}

impl fmt::Display for Allocation {
    /// One line for each combination: its jobs' positions and its shares.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (id, combination) in self.combinations.enumerate() {
            let jobs: Vec<String> = combination.members().map(|job| job.to_string()).collect();
            let shares: Vec<String> =
                self.shares.row(id).iter().map(|share| Decimals(*share, 4).to_string()).collect();
            writeln!(f, "{:>10}  {}", jobs.join("+"), shares.join("  "))?;
        }
        Ok(())
    }
}
