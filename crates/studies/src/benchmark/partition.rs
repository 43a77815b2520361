//! Partitioned allocation, as a baseline: the problem is split at random, and its parts are solved separately.
//!
//! Jobs are dealt into K parts at random and every part has a K-th of each type's workers; the parts' allocations
//! side by side are one of the whole problem, feasible but in general not optimal. Workers are whole here, so where
//! K does not divide them some parts have one more. Source: Narayanan et al., "Solving Large-Scale Granular
//! Resource Allocation Problems Efficiently with POP" (SOSP '21).

use std::collections::BTreeMap;
use std::sync::Arc;

use thiserror::Error;

use apportion::allocation::{Allocation, AllocationError};
use apportion::index::{Id, JobIndex};
use apportion::policy::{Decision, Policy, PolicyError};
use apportion::problem::{Colocation, Problem, ProblemBuilder, ProblemError};
use apportion::workload::Combination;
use apportion::workload::random::SeedStreams;

/// A part of a problem.
#[derive(Clone, Debug)]
pub struct Part {
    /// Jobs and workers of the part.
    pub problem: Problem,
    /// Positions of its jobs in the whole problem, ascending.
    pub jobs: Vec<JobIndex>,
}

/// Decisions on the parts of a problem, put together.
#[derive(Clone, Debug)]
pub struct Partitioned {
    /// Allocation of the whole problem, checked against it.
    pub allocation: Allocation,
    /// Decision of each part, in order.
    pub parts: Vec<Decision>,
}

/// Reason why a problem is not solved in parts.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum PartitionError {
    /// Some parts would have nothing to decide.
    #[error("{n_jobs} jobs cannot be split into {n_parts} parts")]
    TooMany {
        /// Number of parts.
        n_parts: usize,
        /// Number of jobs.
        n_jobs: usize,
    },
    /// A job needs more workers than any part has.
    #[error("in {n_parts} parts: {source}")]
    Part {
        /// Number of parts.
        n_parts: usize,
        /// Error of one part; positions of jobs are the part's own.
        source: ProblemError,
    },
    /// A part was not solved.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The parts' shares break a constraint of the whole.
    #[error("the parts do not fit together: {0}")]
    Allocation(#[from] AllocationError),
}

/// Splits a problem into `n_parts` at random, each with at least one job.
///
/// # Errors
/// If there are more parts than jobs, or a job fits on no part's workers.
///
/// # Panics
/// If `n_parts` is 0.
pub fn split(problem: &Problem, n_parts: usize, seed: u64) -> Result<Vec<Part>, PartitionError> {
    assert!(n_parts > 0, "at least one part");
    let n_jobs = problem.n_jobs();
    if n_parts > n_jobs {
        return Err(PartitionError::TooMany { n_parts, n_jobs });
    }
    let mut dealt: Vec<usize> = (0..n_jobs).map(|position| position % n_parts).collect();
    SeedStreams::new(seed).stream("partition").shuffle(&mut dealt);
    let mut jobs: Vec<Vec<JobIndex>> = vec![Vec::new(); n_parts];
    for (job, part) in problem.jobs().ids().zip(&dealt) {
        jobs[*part].push(job);
    }
    jobs.into_iter()
        .enumerate()
        .map(|(position, jobs)| {
            let source = |source| PartitionError::Part { n_parts, source };
            Ok(Part { problem: part(problem, n_parts, position, &jobs).map_err(source)?, jobs })
        })
        .collect()
}

fn part(
    problem: &Problem,
    n_parts: usize,
    position: usize,
    jobs: &[JobIndex],
) -> Result<Problem, ProblemError> {
    let cluster = problem.cluster().with_counts(|kind| {
        let n_workers = problem.cluster().types()[kind].n_workers as usize;
        // Remaining workers go to other parts from type to type.
        let extra = (position + kind.index()) % n_parts < n_workers % n_parts;
        u32::try_from(n_workers / n_parts + usize::from(extra)).unwrap_or(u32::MAX)
    });
    let mut builder = ProblemBuilder::new(Arc::new(cluster));
    for entity in problem.entities() {
        builder.entity(entity.clone());
    }
    for job in jobs {
        builder.job(problem.jobs()[*job].clone(), problem.throughput().row(*job));
    }
    for (name, column) in problem.extra() {
        builder.extra(name.clone(), jobs.iter().map(|job| column[job.index()]).collect());
    }
    builder.colocation(match problem.colocation() {
        Colocation::Pairs(pairs) => {
            let place: BTreeMap<JobIndex, JobIndex> =
                jobs.iter().enumerate().map(|(own, job)| (*job, JobIndex::from_index(own))).collect();
            let inside = pairs.iter().filter(|(pair, _)| pair.members().all(|job| place.contains_key(&job)));
            Colocation::Pairs(
                inside.map(|(pair, both)| (pair.map(|job| place[&job]), both.clone())).collect(),
            )
        }
        other => other.clone(),
    });
    builder.build()
}

/// Solves every part with a policy of its own, and puts their shares together.
///
/// # Errors
/// If a part is not solved.
pub fn decide<P: Policy>(
    problem: &Problem,
    parts: &[Part],
    mut policy: impl FnMut() -> P,
) -> Result<Partitioned, PartitionError> {
    let mut decisions = Vec::with_capacity(parts.len());
    let mut rows: Vec<(Combination<JobIndex>, Vec<f64>)> = Vec::with_capacity(problem.n_jobs());
    for part in parts {
        let decision = policy().allocate(&part.problem)?;
        for (id, combination) in decision.allocation.combinations().enumerate() {
            let whole = combination.map(|job| part.jobs[job.index()]);
            rows.push((whole, decision.allocation.shares().row(id).to_vec()));
        }
        decisions.push(decision);
    }
    rows.sort_by_key(|(combination, _)| (combination.is_pair(), *combination));
    Ok(Partitioned { allocation: Allocation::check(problem, rows)?, parts: decisions })
}
