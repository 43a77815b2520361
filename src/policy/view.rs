//! Views of throughputs that policies have, and the reference throughputs derived from them.
//!
//! | symbol     | shape   | unit    | here                                                                       |
//! |------------|---------|---------|----------------------------------------------------------------------------|
//! | T          | [n × K] | steps/s | [`ThroughputView::row`]                                                    |
//! | `thr_eq`   | `[n]`     | steps/s | Σ_j T`[m,j]`·w_j / Σ_j w_j: [`equal_share`]                                   |
//! | `thr_iso`  | `[n]`     | steps/s | Σ_j T`[m,j]`·x`[m,j]`, x = w_j/(n·s_m), rows at most 1: [`isolated`]            |
//!
//! Source: Narayanan et al. (OSDI '20), §4.1 and §4.2.

use crate::cluster::Cluster;
use crate::index::{Id, JobIndex, WorkerTypeId};
use crate::problem::Problem;

/// A throughput view, orthogonal to the objective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThroughputView {
    /// Throughputs as measured.
    Measured,
    /// 1 step/s where the job can run: a policy that does not look at speed.
    Unit {
        /// Whether it is 1 also where the job cannot run, as the published system has it.
        everywhere: bool,
    },
    /// Speed of a reference type on every worker type; the job's fastest, where the job cannot run on the reference type.
    Reference {
        /// Names of reference types: the first that the cluster has is the reference.
        worker_types: Vec<String>,
        /// Whether the first worker type, the fastest in the order of the matrix, is the reference where the cluster
        /// has none of them.
        or_fastest: bool,
        /// Whether a job that runs on the reference type has that speed also where it cannot run, as the published
        /// system has it.
        everywhere: bool,
    },
}

impl ThroughputView {
    /// The reference type on this cluster; `None` for views that have none, or that find none.
    pub fn reference(&self, cluster: &Cluster) -> Option<WorkerTypeId> {
        let Self::Reference { worker_types, or_fastest, .. } = self else { return None };
        let fastest = || or_fastest.then(|| WorkerTypeId::from_index(0));
        worker_types.iter().find_map(|name| cluster.find(name)).or_else(fastest)
    }

    /// Writes T[m, ·] as this view has it into `row`: `[K]`. For many jobs, ask [`seen`](Self::seen) once.
    pub fn row(&self, problem: &Problem, job: JobIndex, row: &mut [f64]) {
        self.seen(problem).row(job, row);
    }

    /// The throughputs of a problem as this view has them, with what does not depend on the job looked up once.
    pub fn seen<'a>(&'a self, problem: &'a Problem) -> Seen<'a> {
        Seen { view: self, problem, reference: self.reference(problem.cluster()) }
    }

    /// The factor by which this view scales a job's measured throughput on one type; co-located throughputs are
    /// scaled alike, so that sharing workers costs what was measured. 0 where it cannot run.
    pub fn factor(&self, problem: &Problem, job: JobIndex, worker_type: WorkerTypeId) -> f64 {
        let measured = problem.throughput()[(job, worker_type)];
        if measured == 0.0 {
            return 0.0;
        }
        let mut row = vec![0.0; problem.n_types()];
        self.row(problem, job, &mut row);
        row[worker_type.index()] / measured
    }
}

/// The throughputs of one problem through one view.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    view: &'a ThroughputView,
    problem: &'a Problem,
    reference: Option<WorkerTypeId>,
}

impl Seen<'_> {
    /// Writes T[m, ·] into `row`: `[K]`.
    pub fn row(&self, job: JobIndex, row: &mut [f64]) {
        let measured = self.problem.throughput().row(job);
        match self.view {
            ThroughputView::Measured => row.copy_from_slice(measured),
            ThroughputView::Unit { everywhere } => {
                for (seen, value) in row.iter_mut().zip(measured) {
                    *seen = if *everywhere || *value > 0.0 { 1.0 } else { 0.0 };
                }
            }
            ThroughputView::Reference { everywhere, .. } => {
                let at = self.reference.map_or(0.0, |found| measured[found.index()]);
                let speed = if at > 0.0 { at } else { measured.iter().copied().fold(0.0, f64::max) };
                for (seen, value) in row.iter_mut().zip(measured) {
                    *seen = if (*everywhere && at > 0.0) || *value > 0.0 { speed } else { 0.0 };
                }
            }
        }
    }
}

/// `thr_eq`: the throughput of equal shares of all workers; `row` is T[m, ·].
pub fn equal_share(problem: &Problem, row: &[f64]) -> f64 {
    let workers = problem.cluster().types().iter().map(|kind| f64::from(kind.n_workers));
    let total: f64 = workers.clone().sum();
    row.iter().zip(workers).map(|(speed, workers)| speed * workers).sum::<f64>() / total
}

/// The isolated share x[m, ·] of a job at this scale factor among `n_jobs`: its share of 1/n of the cluster.
pub fn isolated_share(problem: &Problem, scale_factor: u32, n_jobs: usize) -> Vec<f64> {
    let parts = n_jobs as f64 * f64::from(scale_factor);
    let mut shares: Vec<f64> =
        problem.cluster().types().iter().map(|kind| f64::from(kind.n_workers) / parts).collect();
    let sum: f64 = shares.iter().sum();
    if sum > 1.0 {
        for share in &mut shares {
            *share /= sum;
        }
    }
    shares
}

/// `thr_iso`: the throughput of the isolated share at this scale factor.
pub fn isolated(problem: &Problem, scale_factor: u32, row: &[f64]) -> f64 {
    let parts = problem.n_jobs() as f64 * f64::from(scale_factor);
    let shares = || problem.cluster().types().iter().map(|kind| f64::from(kind.n_workers) / parts);
    let sum: f64 = shares().sum();
    let most = if sum > 1.0 { sum } else { 1.0 };
    row.iter().zip(shares()).map(|(speed, share)| speed * (share / most)).sum()
}

/// The part of [`isolated`] on worker types with workers enough for the scale factor.
pub fn fitting_isolated(problem: &Problem, scale_factor: u32, row: &[f64]) -> f64 {
    let shares = isolated_share(problem, scale_factor, problem.n_jobs());
    fitting(problem, scale_factor, row).zip(shares).map(|(speed, share)| speed * share).sum()
}

/// Steps/s alone on the fastest worker type with workers enough for the scale factor.
pub fn fastest(problem: &Problem, scale_factor: u32, row: &[f64]) -> f64 {
    fitting(problem, scale_factor, row).fold(0.0, f64::max)
}

/// Steps/s of a row, 0 on worker types with too few workers.
fn fitting(problem: &Problem, scale_factor: u32, row: &[f64]) -> impl Iterator<Item = f64> {
    let kinds = problem.cluster().types().iter();
    row.iter().zip(kinds).map(move |(speed, kind)| if kind.n_workers >= scale_factor { *speed } else { 0.0 })
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "views copy numbers, they do not compute them")]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::index::JobId;
    use crate::problem::{ActiveJob, ProblemBuilder};

    fn problem() -> Problem {
        let mut builder = ProblemBuilder::new(Arc::new("fast=2,slow=6".parse().unwrap()));
        builder.job(ActiveJob { scale_factor: 2, ..ActiveJob::new(JobId::from_index(0)) }, &[4.0, 1.0]);
        builder.job(ActiveJob::new(JobId::from_index(1)), &[0.0, 3.0]);
        builder.build().unwrap()
    }

    #[test]
    fn reference_throughputs_follow_their_formulas() {
        let problem = problem();
        assert!((equal_share(&problem, &[4.0, 1.0]) - 14.0 / 8.0).abs() < 1e-15);
        // w/(n·s) = (2, 6)/(2·2) = (0.5, 1.5), divided by its sum 2.
        assert!((isolated(&problem, 2, &[4.0, 1.0]) - (4.0 * 0.25 + 0.75)).abs() < 1e-15);
        // Three workers at once are on the slow type alone: (2, 6)/(2·3) = (1/3, 1), divided by its sum.
        assert!((fitting_isolated(&problem, 3, &[4.0, 1.0]) - 0.75).abs() < 1e-15);
        assert_eq!([2, 3].map(|size| fastest(&problem, size, &[4.0, 1.0])), [4.0, 1.0]);
    }

    #[test]
    fn views_keep_what_cannot_run() {
        let problem = problem();
        let mut row = [9.0; 2];
        ThroughputView::Unit { everywhere: false }.row(&problem, JobIndex::from_index(1), &mut row);
        assert_eq!(row, [0.0, 1.0]);
        let reference = |first: &str, everywhere| ThroughputView::Reference {
            worker_types: vec!["new".into(), first.into()],
            or_fastest: false,
            everywhere,
        };
        reference("fast", false).row(&problem, JobIndex::from_index(0), &mut row);
        assert_eq!(row, [4.0, 4.0]);
        reference("fast", false).row(&problem, JobIndex::from_index(1), &mut row);
        assert_eq!(row, [0.0, 3.0]);
        // As published, everywhere; but not for a job that has no speed on the reference.
        reference("slow", true).row(&problem, JobIndex::from_index(1), &mut row);
        assert_eq!(row, [3.0, 3.0]);
        reference("fast", true).row(&problem, JobIndex::from_index(1), &mut row);
        assert_eq!(row, [0.0, 3.0]);
    }
}
