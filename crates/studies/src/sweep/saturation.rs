//! The largest arrival rate that a cluster can serve for ever, and the proof that a rate is above it.
//!
//! ```text
//! maximize    λ                                                        jobs/h
//! subject to  Σ_c Σ_j T[k,c,j]·Y[c,j] ≥ λ·p_k·E[steps_k] / 3600        every kind k of job
//!             Σ_c s_c·Y[c,j] ≤ w_j                                     every worker type j
//!             Y ≥ 0
//! ```
//!
//! | symbol     | unit    | here                                                                          |
//! |------------|---------|-------------------------------------------------------------------------------|
//! | k          |         | a job type at a scale factor that the generator draws with probability p_k    |
//! | E`[steps_k]` | steps   | the expectation of its work, from the generator's distribution                |
//! | c          |         | a kind alone, or two of one scale factor on the same workers if that is allowed |
//! | T`[k,c,j]`   | steps/s | throughput; of one kind alone, the best of consolidated and not               |
//! | Y`[c,j]`     | 1       | the long-run average number of combinations c that run on worker type j       |
//!
//! **What it proves.** Whatever a policy and a mechanism do, the long-run averages Y of what runs satisfy the
//! capacity rows, and a kind of job whose queue does not grow without bound is served as fast as it arrives, which
//! is its row. So above the optimum λ* no policy whatever keeps the number of waiting jobs bounded: completion
//! times grow with the length of the run, and an average says more about when the run was cut off than about the
//! policy. There is no row for a job's own time, because above capacity the number of active jobs has no bound
//! either. Rounds, preemption, failures and slow workers only take away from what this counts. The bound taken is
//! the dual one of the certificate: no solver has to be believed.
//!
//! **What it does not prove.** A rate below λ* may still be too high for a given policy. And a measured window of a
//! saturated run ends all the same: published figures have such points, so runs are skipped only where the sweep
//! asks for it (`stop: {saturated: true}`).

use thiserror::Error;

use apportion::cluster::Cluster;
use apportion::index::{IndexVec, RowId, WorkerTypeId};
use apportion::problem::{ProblemError, matrix_columns};
use apportion::program::{Program, Range, Sense};
use apportion::solver::{Limits, SolveError, registry, solve_certified};
use apportion::throughput::Throughputs;
use apportion::units::JobsPerHour;
use apportion::workload::MixShare;

/// Relative margin above the bound from which a rate is called saturated: room for rounding in the bound itself.
const MARGIN: f64 = 1e-9;

/// Capacity of a cluster for a mix of jobs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    /// Certified bound on the arrival rate: no policy sustains a rate above it.
    pub bound: JobsPerHour,
}

impl Capacity {
    /// Whether this rate is provably more than can be served.
    pub fn is_exceeded_by(&self, rate: JobsPerHour) -> bool {
        rate.get() > self.bound.get() * (1.0 + MARGIN)
    }
}

/// Reason why no capacity is known.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum CapacityError {
    /// The cluster has a worker type that the matrix lacks.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// A kind of job that the matrix lacks.
    #[error("no throughputs for `{job_type}` at scale factor {scale_factor}")]
    UnknownJobType {
        /// The job type.
        job_type: String,
        /// The scale factor.
        scale_factor: u32,
    },
    /// The program was not solved.
    #[error(transparent)]
    Solve(#[from] SolveError),
}

/// The largest sustainable rate of jobs of this mix; with `pairs`, jobs of equal scale factor may share workers.
///
/// # Errors
/// If the matrix lacks a worker type or a kind of job, or no solver certifies an optimum.
pub fn capacity(
    cluster: &Cluster,
    throughputs: &Throughputs,
    mix: &[MixShare],
    pairs: bool,
) -> Result<Capacity, CapacityError> {
    let program = formulate(&Mix::new(cluster, throughputs, mix)?, pairs);
    let solved = solve_certified(&program, &mut registry::default_chain(&program), &Limits::default(), None)?;
    Ok(Capacity { bound: JobsPerHour::new(solved.certificate.bound) })
}

/// Kinds of jobs, with the numbers that the program needs.
struct Mix<'a> {
    cluster: &'a Cluster,
    throughputs: &'a Throughputs,
    columns: IndexVec<WorkerTypeId, Option<WorkerTypeId>>,
    kinds: Vec<Kind>,
}

struct Kind {
    row: RowId,
    scale_factor: u32,
    /// Steps/s that one job per hour requires.
    demand: f64,
}

impl<'a> Mix<'a> {
    fn new(
        cluster: &'a Cluster,
        throughputs: &'a Throughputs,
        mix: &[MixShare],
    ) -> Result<Self, CapacityError> {
        let columns = matrix_columns(cluster, throughputs)?;
        let mut kinds = Vec::with_capacity(mix.len());
        for share in mix {
            let (job_type, scale_factor) = (&share.job_type, share.scale_factor);
            let row = throughputs
                .find(job_type, scale_factor)
                .ok_or_else(|| CapacityError::UnknownJobType { job_type: job_type.clone(), scale_factor })?;
            let demand = share.probability * share.mean_steps.get() / 3600.0;
            if demand > 0.0 {
                kinds.push(Kind { row, scale_factor, demand });
            }
        }
        Ok(Self { cluster, throughputs, columns, kinds })
    }

    /// Throughput of a kind alone on a type, at its best, steps/s.
    fn alone(&self, kind: &Kind, worker_type: WorkerTypeId) -> f64 {
        self.columns[worker_type].map_or(0.0, |column| {
            let spread = self.throughputs.spread(kind.row, column).unwrap_or(0.0);
            self.throughputs.alone(kind.row, column).max(spread)
        })
    }

    /// Throughputs of both jobs of a pair, steps/s; none where not both run.
    fn together(&self, one: &Kind, other: &Kind, worker_type: WorkerTypeId) -> Option<[f64; 2]> {
        let column = self.columns[worker_type]?;
        let both = [
            self.throughputs.colocated(one.row, other.row, column),
            self.throughputs.colocated(other.row, one.row, column),
        ];
        (one.scale_factor == other.scale_factor && both[0] > 0.0 && both[1] > 0.0).then_some(both)
    }
}

fn formulate(mix: &Mix<'_>, pairs: bool) -> Program {
    let mut program = Program::new(Sense::Maximize);
    // With all workers for one kind, that kind's row bounds the rate; the smallest of these bounds holds.
    let rate_max =
        mix.kinds.iter().map(|kind| fastest(mix, kind) / kind.demand).fold(f64::INFINITY, f64::min);
    let implied = Range { lower: 0.0, upper: rate_max };
    let rate = program.push_column(Range::NON_NEGATIVE, implied, 1.0);
    let mut demands: Vec<Vec<(usize, f64)>> = vec![vec![(rate, -1.0)]; mix.kinds.len()];
    let mut capacities: Vec<Vec<(usize, f64)>> = vec![Vec::new(); mix.cluster.n_types()];
    let mut running = |program: &mut Program, j: WorkerTypeId, scale_factor: u32| {
        let n_workers = f64::from(mix.cluster.types()[j].n_workers);
        let implied = Range { lower: 0.0, upper: n_workers / f64::from(scale_factor) };
        let column = program.push_column(Range::NON_NEGATIVE, implied, 0.0);
        capacities[apportion::index::Id::index(j)].push((column, f64::from(scale_factor)));
        column
    };
    for j in mix.cluster.types().ids() {
        let fits = |kind: &Kind| kind.scale_factor <= mix.cluster.types()[j].n_workers;
        for (k, kind) in mix.kinds.iter().enumerate().filter(|(_, kind)| fits(kind)) {
            let speed = mix.alone(kind, j);
            if speed > 0.0 {
                let column = running(&mut program, j, kind.scale_factor);
                demands[k].push((column, speed / kind.demand));
            }
            for (l, other) in mix.kinds.iter().enumerate().take(if pairs { k + 1 } else { 0 }) {
                let Some([first, second]) = mix.together(kind, other, j) else { continue };
                let column = running(&mut program, j, kind.scale_factor);
                if k == l {
                    demands[k].push((column, (first + second) / kind.demand));
                } else {
                    demands[k].push((column, first / kind.demand));
                    demands[l].push((column, second / other.demand));
                }
            }
        }
    }
    for terms in demands {
        program.push_row(Range::at_least(0.0), terms);
    }
    for (terms, worker_type) in capacities.into_iter().zip(mix.cluster.types()) {
        program.push_row(Range::at_most(f64::from(worker_type.n_workers)), terms);
    }
    program
}

/// Throughput of a kind if it had all workers, and could share each of them with itself at full speed, steps/s.
fn fastest(mix: &Mix<'_>, kind: &Kind) -> f64 {
    let all = |j: WorkerTypeId| {
        let n_at_once = f64::from(mix.cluster.types()[j].n_workers) / f64::from(kind.scale_factor);
        let shared = mix.kinds.iter().filter_map(|other| mix.together(kind, other, j));
        let best = shared.map(|[own, _]| own).fold(mix.alone(kind, j), f64::max);
        2.0 * best * n_at_once
    };
    mix.cluster.types().ids().map(all).sum()
}

#[cfg(test)]
mod tests;
