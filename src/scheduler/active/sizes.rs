//! Jobs that may be given other numbers of workers, and the effects of a change.

use super::{Active, Progress, Table, fits};
use crate::cluster::Cluster;
use crate::index::JobId;
use crate::policy::Resizable;
use crate::problem::ProblemError;
use crate::workload::Job;

/// The size of a job with several, and the estimates of its throughput at that size.
#[derive(Debug)]
pub(crate) struct PresentSize {
    job: JobId,
    scale_factor: u32,
    /// Steps/s alone that the policy is shown, [type]; empty if none was measured.
    believed: Vec<f64>,
}

impl Table {
    /// Refuses sizes that the matrix does not have, or that no worker type of the cluster can run.
    pub(super) fn check_sizes(
        &self,
        position: usize,
        job: &Job,
        cluster: &Cluster,
    ) -> Result<(), ProblemError> {
        job.check_sizes().map_err(|source| ProblemError::Sizes { job: position, source })?;
        let others = job.sizes.iter().copied().filter(|size| *size != job.scale_factor);
        for scale_factor in others {
            let Some(row) = self.throughputs.find(&job.job_type, scale_factor) else {
                let job_type = job.job_type.clone();
                return Err(ProblemError::UnknownJobType { job: position, job_type, scale_factor });
            };
            if !fits(cluster, &self.speeds(row).0, scale_factor) {
                return Err(ProblemError::RunsNowhere { job: position, scale_factor });
            }
        }
        Ok(())
    }

    /// Changes the scale factor of a job to another of its sizes. False if it has no such size.
    pub(crate) fn resize(&mut self, position: usize, scale_factor: u32) -> bool {
        let Job { job_type, sizes, .. } = &self.jobs[position].progress.job;
        if !sizes.contains(&scale_factor) {
            return false;
        }
        let Some(row) = self.throughputs.find(job_type, scale_factor) else { return false };
        let (alone, spread) = self.speeds(row);
        if let Some(estimator) = &mut self.estimator {
            estimator.arrive(self.jobs[position].progress.id, row);
        }
        let active = &mut self.jobs[position];
        let believed = &mut active.progress.believed;
        for ((believed, before), after) in believed.iter_mut().zip(&active.alone).zip(&alone) {
            *believed = carried_over(*believed, *before, *after);
        }
        (active.alone, active.spread, active.row) = (alone, spread, Some(row));
        active.progress.job.scale_factor = scale_factor;
        true
    }

    /// The jobs with several sizes that the policy's problem has, as policies are shown them.
    pub(crate) fn resizable(&self, cluster: &Cluster) -> Vec<Resizable> {
        let mut shown = Vec::new();
        let is_one = |active: &&Active| {
            let Job { sizes, scale_factor, .. } = &active.progress.job;
            sizes.len() > 1 && fits(cluster, &active.alone, *scale_factor)
        };
        let resizable = |active: &Active| {
            let Progress { id, job, .. } = &active.progress;
            active.show(&mut shown);
            let at = |size: &u32| {
                let row = self.throughputs.find(&job.job_type, *size);
                let known = row.map_or_else(|| vec![0.0; shown.len()], |row| self.speeds(row).0);
                let now = shown.iter().zip(&active.alone);
                known
                    .iter()
                    .zip(now)
                    .map(|(known, (shown, now))| carried_over(*shown, *now, *known))
                    .collect()
            };
            Resizable { job: *id, sizes: job.sizes.clone(), throughput: job.sizes.iter().map(at).collect() }
        };
        self.jobs.iter().filter(is_one).map(resizable).collect()
    }

    /// Gives each job that fits nowhere on the workers that are up the largest of its sizes that does, if one does.
    pub(crate) fn shrink_to(&mut self, cluster: &Cluster) {
        for position in 0..self.jobs.len() {
            let Active { progress, alone, .. } = &self.jobs[position];
            let job = &progress.job;
            if job.sizes.is_empty() || fits(cluster, alone, job.scale_factor) {
                continue;
            }
            let runs = |size: &&u32| {
                let row = self.throughputs.find(&job.job_type, **size);
                row.is_some_and(|row| fits(cluster, &self.speeds(row).0, **size))
            };
            if let Some(size) = job.sizes.iter().rev().find(runs).copied() {
                self.resize(position, size);
            }
        }
    }

    /// The present sizes of the jobs with several sizes, and their estimates, to be [taken back](Self::take_back_sizes).
    pub(crate) fn sizes_now(&self) -> Vec<PresentSize> {
        let with_sizes = self.jobs.iter().filter(|active| active.progress.job.sizes.len() > 1);
        let now = |Progress { id, job, believed, .. }: &Progress| PresentSize {
            job: *id,
            scale_factor: job.scale_factor,
            believed: believed.clone(),
        };
        with_sizes.map(|active| now(&active.progress)).collect()
    }

    /// Gives jobs their earlier sizes and estimates.
    pub(crate) fn take_back_sizes(&mut self, sizes: Vec<PresentSize>) {
        for PresentSize { job, scale_factor, believed } in sizes {
            if let Some(position) = self.find(job)
                && self.jobs[position].progress.job.scale_factor != scale_factor
            {
                self.resize(position, scale_factor);
                self.jobs[position].progress.believed = believed;
            }
        }
    }
}

/// A throughput at one size, from that at another and the known ones of both: the ratio of estimate to known throughput is carried
/// over.
fn carried_over(shown: f64, known: f64, other: f64) -> f64 {
    // An exactly known throughput stays exact.
    if known > 0.0 && shown.total_cmp(&known).is_ne() { other * (shown / known) } else { other }
}
