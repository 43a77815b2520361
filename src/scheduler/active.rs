//! The jobs that have arrived and are not done.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::options::Options;
use crate::cluster::Cluster;
use crate::index::{EntityId, Id, IndexVec, JobId, RowId, WorkerTypeId};
use crate::policy::Decision;
use crate::problem::{ActiveJob, Colocation, Entity, Problem, ProblemBuilder, ProblemError, matrix_columns};
use crate::throughput::estimator::EstimatorError;
use crate::throughput::{Estimator, Throughputs};
use crate::units::{Seconds, Steps};
use crate::workload::{Combination, Job};

/// An active job and what it has run.
#[derive(Clone, Debug)]
pub(super) struct Active {
    pub(super) progress: Progress,
    pub(super) row: Option<RowId>,
    pub(super) entity: Option<EntityId>,
    /// Steps/s alone on the fewest servers: [type].
    pub(super) alone: Vec<f64>,
    /// Steps/s alone over several servers, where known: [type].
    pub(super) spread: Vec<Option<f64>>,
}

/// What of an active job must survive a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Progress {
    pub(super) id: JobId,
    pub(super) job: Job,
    pub(super) measured: bool,
    pub(super) steps_run: f64,
    /// Failures in a row.
    pub(super) attempts: u32,
    /// It has held workers before; kept only where preemption costs.
    pub(super) has_run: bool,
    /// Σ steps / isolated throughput, up to the last change of the latter, s.
    pub(super) isolated_s: f64,
    /// Throughput on an isolated 1/n share, steps/s; 0 before the first decision.
    pub(super) isolated_rate: f64,
    /// Steps already in `isolated_s`.
    pub(super) isolated_steps: f64,
    /// Factors on the throughputs that the policy is shown: [type]; empty if they are exact.
    pub(super) noise: Vec<f64>,
}

impl Progress {
    pub(super) fn new(id: JobId, job: Job, measured: bool) -> Self {
        Self {
            id,
            job,
            measured,
            steps_run: 0.0,
            attempts: 0,
            has_run: false,
            isolated_s: 0.0,
            isolated_rate: 0.0,
            isolated_steps: 0.0,
            noise: Vec::new(),
        }
    }

    pub(super) fn steps_remaining(&self) -> f64 {
        self.job.total_steps.get() - self.steps_run
    }

    /// Isolated time including what has been run since the last change of the isolated throughput.
    pub(super) fn isolated(&self) -> Seconds {
        let since = self.steps_run - self.isolated_steps;
        let more = if since > 0.0 && self.isolated_rate > 0.0 { since / self.isolated_rate } else { 0.0 };
        Seconds::new(self.isolated_s + more)
    }
}

/// All active jobs, by id, and where their throughputs come from.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) jobs: Vec<Active>,
    /// Their ids, close together for those who search.
    ids: Vec<JobId>,
    pub(super) throughputs: Arc<Throughputs>,
    /// What policies believe of co-located throughputs; none = they know.
    pub(super) estimator: Option<Estimator>,
    columns: IndexVec<WorkerTypeId, Option<WorkerTypeId>>,
    /// Every owner seen or declared.
    pub(super) entities: IndexVec<EntityId, Entity>,
}

impl Table {
    pub(super) fn new(cluster: &Cluster, throughputs: Arc<Throughputs>) -> Result<Self, ProblemError> {
        let columns = matrix_columns(cluster, &throughputs)?;
        Ok(Self {
            jobs: Vec::new(),
            ids: Vec::new(),
            throughputs,
            estimator: None,
            columns,
            entities: IndexVec::new(),
        })
    }

    /// Policies see estimates, if the options say so.
    pub(super) fn estimating(mut self, options: &Options) -> Result<Self, EstimatorError> {
        if let Some(profiling) = options.profiling {
            let truth = Arc::clone(&self.throughputs);
            self.estimator = Some(Estimator::try_new(truth, profiling, options.seed)?);
        }
        Ok(self)
    }

    /// Position of an active job.
    pub(super) fn find(&self, id: JobId) -> Option<usize> {
        self.ids.binary_search(&id).ok()
    }

    /// Position of an active job that was at another, `before`, some time ago.
    pub(super) fn find_again(&self, id: JobId, before: u32) -> Option<usize> {
        let before = before as usize;
        if self.ids.get(before) == Some(&id) { Some(before) } else { self.find(id) }
    }

    pub(super) fn get(&self, id: JobId) -> Option<&Active> {
        self.find(id).map(|position| &self.jobs[position])
    }

    /// Adds a job whose id is above all others.
    ///
    /// # Errors
    /// If the matrix does not have it, or no worker type of the cluster can run it.
    pub(super) fn add(&mut self, progress: Progress, cluster: &Cluster) -> Result<(), ProblemError> {
        let position = progress.id.index();
        let Job { job_type, scale_factor, entity, throughput, .. } = &progress.job;
        let row = self.throughputs.find(job_type, *scale_factor);
        let (alone, spread) = match (throughput, row) {
            (Some(own), _) => {
                let own_on = |name: &str| own.iter().find(|(other, _)| other == name);
                let alone = |name: &str| own_on(name).map_or(0.0, |(_, value)| value.get());
                let alone = cluster.types().iter().map(|kind| alone(&kind.name)).collect();
                (alone, vec![None; cluster.n_types()])
            }
            (None, Some(row)) => self.speeds(row),
            (None, None) => {
                let (job_type, scale_factor) = (job_type.clone(), *scale_factor);
                return Err(ProblemError::UnknownJobType { job: position, job_type, scale_factor });
            }
        };
        if !fits(cluster, &alone, *scale_factor) {
            return Err(ProblemError::RunsNowhere { job: position, scale_factor: *scale_factor });
        }
        let entity = entity.as_ref().map(|name| self.entity(name));
        if let (Some(estimator), Some(row)) = (&mut self.estimator, row) {
            estimator.arrive(progress.id, row);
        }
        self.ids.push(progress.id);
        self.jobs.push(Active { progress, row, entity, alone, spread });
        Ok(())
    }

    /// Takes a job out.
    pub(super) fn remove(&mut self, position: usize) -> Active {
        let gone = self.jobs.remove(position);
        self.ids.remove(position);
        if let Some(estimator) = &mut self.estimator {
            estimator.leave(gone.progress.id);
        }
        gone
    }

    /// A pair ran at so many steps/s. Does that change what is believed of it?
    pub(super) fn observe(
        &mut self,
        jobs: Combination<JobId>,
        worker_type: WorkerTypeId,
        measured: [f64; 2],
    ) -> bool {
        let (Some(estimator), Some(second)) = (&mut self.estimator, jobs.second()) else { return false };
        let Some(column) = self.columns[worker_type] else { return false };
        let pair = (jobs.first(), second);
        let before = estimator.believed_pair(pair, column);
        estimator.observe(pair, column, measured);
        let after = estimator.believed_pair(pair, column);
        before.iter().zip(&after).any(|(before, after)| before.total_cmp(after).is_ne())
    }

    /// A pair that cannot share workers stands still there. Was it believed to run?
    pub(super) fn refute(&mut self, jobs: Combination<JobId>, worker_type: WorkerTypeId) -> bool {
        self.estimator.is_some()
            && jobs.is_pair()
            && !self.runs(jobs, worker_type)
            && self.observe(jobs, worker_type, [0.0, 0.0])
    }

    /// Tries out every pair that a decision counts on. Is any found unable to run?
    pub(super) fn try_out(&mut self, problem: &Problem, decision: &Decision) -> bool {
        if self.estimator.is_none() {
            return false;
        }
        let mut refuted = false;
        for (row, jobs) in decision.allocation.combinations().enumerate() {
            let jobs = jobs.map(|index| problem.jobs()[index].id);
            for (column, share) in decision.allocation.shares().row(row).iter().enumerate() {
                refuted |= *share > 0.0 && self.refute(jobs, WorkerTypeId::from_index(column));
            }
        }
        refuted
    }

    fn speeds(&self, row: RowId) -> (Vec<f64>, Vec<Option<f64>>) {
        let alone = |column: &Option<WorkerTypeId>| column.map_or(0.0, |c| self.throughputs.alone(row, c));
        let spread = |column: &Option<WorkerTypeId>| column.and_then(|c| self.throughputs.spread(row, c));
        (self.columns.iter().map(alone).collect(), self.columns.iter().map(spread).collect())
    }

    fn entity(&mut self, name: &str) -> EntityId {
        let known = self.entities.iter().position(|entity| entity.name == name);
        known.map_or_else(
            || {
                let inner = crate::problem::InnerRule::Fairness;
                self.entities.push(Entity { name: name.to_owned(), weight: 1.0, inner, parent: None })
            },
            Id::from_index,
        )
    }

    /// Changes the scale factor of an elastic job, if the matrix has it at that.
    pub(super) fn resize(&mut self, position: usize, scale_factor: u32) -> bool {
        let job_type = &self.jobs[position].progress.job.job_type;
        let Some(row) = self.throughputs.find(job_type, scale_factor) else { return false };
        let (alone, spread) = self.speeds(row);
        if let Some(estimator) = &mut self.estimator {
            estimator.arrive(self.jobs[position].progress.id, row);
        }
        let active = &mut self.jobs[position];
        (active.alone, active.spread, active.row) = (alone, spread, Some(row));
        active.progress.job.scale_factor = scale_factor;
        true
    }

    /// Steps/s of the members of a pair on one worker type, if they can share it.
    pub(super) fn colocated(
        &self,
        one: &Active,
        other: &Active,
        worker_type: WorkerTypeId,
    ) -> Option<[f64; 2]> {
        let column = self.columns[worker_type]?;
        let (a, b) = (one.row?, other.row?);
        let both = [self.throughputs.colocated(a, b, column), self.throughputs.colocated(b, a, column)];
        (both[0] > 0.0 && both[1] > 0.0).then_some(both)
    }

    /// Does every member have a throughput there?
    pub(super) fn runs(&self, jobs: Combination<JobId>, worker_type: WorkerTypeId) -> bool {
        let Some(first) = self.get(jobs.first()) else { return false };
        match jobs.second() {
            None => first.alone[worker_type.index()] > 0.0,
            Some(second) => self.get(second).is_some_and(|second| {
                first.progress.job.scale_factor == second.progress.job.scale_factor
                    && self.colocated(first, second, worker_type).is_some()
            }),
        }
    }

    /// The isolated throughput changes, because the active jobs or the workers did.
    pub(super) fn share_equally(&mut self, cluster: &Cluster) {
        let n = self.jobs.len() as f64;
        for active in &mut self.jobs {
            let scale_factor = f64::from(active.progress.job.scale_factor);
            let shares = || cluster.types().iter().map(|kind| f64::from(kind.n_workers) / n / scale_factor);
            let all = shares().sum::<f64>().max(1.0);
            let rate = shares().zip(&active.alone).map(|(share, speed)| share / all * speed).sum::<f64>();
            let progress = &mut active.progress;
            progress.isolated_s = progress.isolated().get();
            progress.isolated_steps = progress.steps_run;
            progress.isolated_rate = rate;
        }
    }

    /// The policy's problem at an instant. Jobs that fit nowhere while workers are down are left out.
    pub(super) fn problem(&self, now: Seconds, cluster: &Arc<Cluster>) -> Result<Problem, ProblemError> {
        let mut builder = ProblemBuilder::new(Arc::clone(cluster));
        let mut shown = Vec::with_capacity(cluster.n_types());
        let (throughputs, mut rows) = self.colocation(cluster);
        for active in &self.jobs {
            let Progress { id, job, noise, .. } = &active.progress;
            if !fits(cluster, &active.alone, job.scale_factor) {
                continue;
            }
            shown.clear();
            shown.extend_from_slice(&active.alone);
            for (speed, factor) in shown.iter_mut().zip(noise) {
                *speed *= factor;
            }
            let seen = ActiveJob {
                scale_factor: job.scale_factor,
                weight: job.weight,
                steps_remaining: Steps::new(active.progress.steps_remaining()),
                elapsed: now - job.arrival,
                isolated_elapsed: active.progress.isolated(),
                slo_remaining: job.slo.map(|slo| job.arrival + slo - now),
                entity: active.entity,
                row: match &mut rows {
                    None => active.row,
                    Some(rows) => active.row.and_then(|_| rows.next()),
                },
                ..ActiveJob::new(*id)
            };
            builder.job(seen, &shown);
        }
        for entity in &self.entities {
            builder.entity(entity.clone());
        }
        builder.colocation(Colocation::Rows { throughputs, columns: self.columns.clone() });
        builder.build()
    }

    /// The matrix in which policies look up pairs; with the rows, in order, of the jobs that fit and have one, where it
    /// is not the true one.
    fn colocation(&self, cluster: &Cluster) -> (Arc<Throughputs>, Option<std::vec::IntoIter<RowId>>) {
        let Some(estimator) = &self.estimator else { return (Arc::clone(&self.throughputs), None) };
        let shown = self.jobs.iter().filter(|active| {
            active.row.is_some() && fits(cluster, &active.alone, active.progress.job.scale_factor)
        });
        let ids: Vec<JobId> = shown.map(|active| active.progress.id).collect();
        let believed = estimator.believed(&ids);
        (believed.throughputs, Some(believed.rows.into_iter()))
    }
}

fn fits(cluster: &Cluster, alone: &[f64], scale_factor: u32) -> bool {
    cluster.types().iter().zip(alone).any(|(kind, speed)| *speed > 0.0 && kind.n_workers >= scale_factor)
}
