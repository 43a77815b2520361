//! The active jobs, which have arrived and are not done, their progress, and the policy's problem of them.
//!
//! One table serves [`Scheduler`](super::Scheduler) and the simulator. A few columns are the simulator's alone (the
//! measurement window, failed attempts, noise); they are part of its checkpoints.

mod sizes;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;
use crate::index::{EntityId, Id, IndexVec, JobId, RowId, WorkerTypeId};
use crate::policy::Decision;
use crate::problem::{ActiveJob, Colocation, Problem, ProblemBuilder, ProblemError, matrix_columns};
use crate::scheduler::owners::Owners;
use crate::spec::snapshot::Label;
use crate::throughput::estimator::{EstimatorError, SMOOTHING, averaged};
use crate::throughput::{Estimator, Profiling, Throughputs};
use crate::units::{Seconds, Steps};
use crate::workload::{Combination, Job};

/// The part by which a measurement must change the estimate of a job's throughput for policies to be asked about it: smaller
/// changes are shown when they are asked for another reason. Each time they are asked, accounts are settled anew, and measurements
/// never end.
const MEASURED_CHANGE: f64 = 0.01;

/// An active job and its progress.
#[derive(Clone, Debug)]
pub(crate) struct Active {
    pub(crate) progress: Progress,
    pub(crate) row: Option<RowId>,
    pub(crate) entity: Option<EntityId>,
    /// Steps/s alone on the fewest servers: [type].
    pub(crate) alone: Vec<f64>,
    /// Steps/s alone over several servers, where known: [type].
    pub(crate) spread: Vec<Option<f64>>,
}

impl Active {
    /// Steps/s alone as policies are shown them, [type]: the known throughputs, until some were measured.
    fn show(&self, shown: &mut Vec<f64>) {
        let Progress { noise, believed, .. } = &self.progress;
        shown.clear();
        if !believed.is_empty() {
            shown.extend_from_slice(believed);
            return;
        }
        shown.extend_from_slice(&self.alone);
        for (speed, factor) in shown.iter_mut().zip(noise) {
            *speed *= factor;
        }
    }
}

/// The instant of the last step of a job, and the number of jobs that had arrived by then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LastRun {
    pub(crate) now: f64,
    pub(crate) n_arrived: u32,
}

/// The state of an active job that must survive a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Progress {
    pub(crate) id: JobId,
    pub(crate) job: Job,
    pub(crate) measured: bool,
    pub(crate) steps_run: f64,
    /// The instant at which it last ran a step, or arrived.
    pub(crate) last_run: LastRun,
    /// Failures in a row.
    pub(crate) attempts: u32,
    /// Whether it has held workers before; kept only if preemption costs.
    pub(crate) has_run: bool,
    /// Σ steps / isolated throughput, up to the last change of the latter, s.
    pub(crate) isolated_s: f64,
    /// Throughput on an isolated 1/n share, steps/s; 0 before the first decision.
    pub(crate) isolated_rate: f64,
    /// Steps already in `isolated_s`.
    pub(crate) isolated_steps: f64,
    /// Factors on the throughputs that the policy is shown: [type]; empty if they are exact.
    pub(crate) noise: Vec<f64>,
    /// Steps/s alone that the policy is shown since some were measured: [type]; empty if none was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) believed: Vec<f64>,
    /// The rest of its start-up on the workers that it has, s.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) start_up_left: f64,
    /// The instant until which it stops on workers that it had, s.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) stops_until: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(time: &f64) -> bool {
    time.total_cmp(&0.0).is_eq()
}

impl Progress {
    /// Its id in the trace; its position in order of arrival if it has no other.
    pub(crate) fn label(&self) -> Label {
        self.job.name.clone().map_or_else(|| Label::from(self.id), Label::Text)
    }

    pub(crate) fn new(id: JobId, job: Job, measured: bool) -> Self {
        Self {
            id,
            job,
            measured,
            steps_run: 0.0,
            last_run: LastRun::default(),
            attempts: 0,
            has_run: false,
            isolated_s: 0.0,
            isolated_rate: 0.0,
            isolated_steps: 0.0,
            noise: Vec::new(),
            believed: Vec::new(),
            start_up_left: 0.0,
            stops_until: 0.0,
        }
    }

    /// Whether it is of a cluster with this number of worker types. A saved job may be of another.
    pub(crate) fn has_types(&self, n_types: usize) -> bool {
        [&self.noise, &self.believed].iter().all(|row| row.is_empty() || row.len() == n_types)
    }

    pub(crate) fn steps_remaining(&self) -> f64 {
        self.job.total_steps.get() - self.steps_run
    }

    /// The steps to go that a policy is shown: a job that has done all of its steps and is still here has one to go.
    fn steps_to_show(&self) -> f64 {
        let remaining = self.steps_remaining();
        if remaining > 0.0 { remaining } else { self.job.total_steps.get().min(1.0) }
    }

    /// Isolated time, including the steps that have been run since the last change of the isolated throughput.
    pub(crate) fn isolated(&self) -> Seconds {
        let since = self.steps_run - self.isolated_steps;
        let more = if since > 0.0 && self.isolated_rate > 0.0 { since / self.isolated_rate } else { 0.0 };
        Seconds::new(self.isolated_s + more)
    }
}

/// A job's throughputs, as the matrix or the job itself states them.
#[derive(Clone, Debug)]
pub(crate) struct LookedUp {
    /// Its row of the matrix, if it has one.
    pub(crate) row: Option<RowId>,
    /// Steps/s alone on the fewest servers: [type].
    pub(crate) alone: Vec<f64>,
    /// Steps/s alone over several servers, where known: [type].
    spread: Vec<Option<f64>>,
}

/// All active jobs, by id, and the sources of their throughputs.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) jobs: Vec<Active>,
    /// Their ids, close together for searches.
    ids: Vec<JobId>,
    pub(crate) throughputs: Arc<Throughputs>,
    /// Policies' estimates of co-located throughputs; none if they know them.
    pub(crate) estimator: Option<Estimator>,
    columns: IndexVec<WorkerTypeId, Option<WorkerTypeId>>,
    pub(crate) owners: Owners,
}

impl Table {
    pub(crate) fn new(cluster: &Cluster, throughputs: Arc<Throughputs>) -> Result<Self, ProblemError> {
        let columns = matrix_columns(cluster, &throughputs)?;
        Ok(Self {
            jobs: Vec::new(),
            ids: Vec::new(),
            throughputs,
            estimator: None,
            columns,
            owners: Owners::default(),
        })
    }

    /// The table, with estimates of co-located throughputs for policies if there is a profiling.
    pub(crate) fn estimating(
        mut self,
        profiling: Option<Profiling>,
        seed: u64,
    ) -> Result<Self, EstimatorError> {
        if let Some(profiling) = profiling {
            let truth = Arc::clone(&self.throughputs);
            self.estimator = Some(Estimator::try_new(truth, profiling, seed)?);
        }
        Ok(self)
    }

    /// Position of an active job.
    pub(crate) fn find(&self, id: JobId) -> Option<usize> {
        self.ids.binary_search(&id).ok()
    }

    /// Position of an active job that was at the position `before` some time ago.
    pub(crate) fn find_again(&self, id: JobId, before: u32) -> Option<usize> {
        let before = before as usize;
        if self.ids.get(before) == Some(&id) { Some(before) } else { self.find(id) }
    }

    pub(crate) fn get(&self, id: JobId) -> Option<&Active> {
        self.find(id).map(|position| &self.jobs[position])
    }

    /// The source of a job's throughputs, and the throughputs.
    ///
    /// # Errors
    /// If the matrix does not have it, or no worker type of the cluster can run it: about the job at this position.
    pub(crate) fn look_up(
        &self,
        position: usize,
        job: &Job,
        cluster: &Cluster,
    ) -> Result<LookedUp, ProblemError> {
        let Job { job_type, scale_factor, throughput, .. } = job;
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
        self.check_sizes(position, job, cluster)?;
        Ok(LookedUp { row, alone, spread })
    }

    /// Adds a job whose id is above all others.
    ///
    /// # Errors
    /// As [`look_up`](Self::look_up), the position being the id.
    pub(crate) fn add(&mut self, progress: Progress, cluster: &Cluster) -> Result<(), ProblemError> {
        let LookedUp { row, alone, spread } = self.look_up(progress.id.index(), &progress.job, cluster)?;
        let entity = progress.job.entity.as_ref().map(|name| self.owners.named(name));
        if let (Some(estimator), Some(row)) = (&mut self.estimator, row) {
            estimator.arrive(progress.id, row);
        }
        self.ids.push(progress.id);
        self.jobs.push(Active { progress, row, entity, alone, spread });
        Ok(())
    }

    /// Takes a job out.
    pub(crate) fn remove(&mut self, position: usize) -> Active {
        let gone = self.jobs.remove(position);
        self.ids.remove(position);
        if let Some(estimator) = &mut self.estimator {
            estimator.leave(gone.progress.id);
        }
        gone
    }

    /// Takes the measured steps/s of a pair. Returns whether that changes the estimate of it.
    pub(crate) fn observe(
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

    /// Takes the measured steps/s of a job that ran alone on the fewest servers, and averages it with the estimate so far. Answers
    /// whether that changes the throughputs that policies are shown by more than a [little](MEASURED_CHANGE).
    pub(crate) fn measure(&mut self, position: usize, worker_type: WorkerTypeId, measured: f64) -> bool {
        let active = &mut self.jobs[position];
        if active.progress.believed.is_empty() {
            let mut known = Vec::with_capacity(active.alone.len());
            active.show(&mut known);
            active.progress.believed = known;
        }
        let believed = &mut active.progress.believed[worker_type.index()];
        let before = *believed;
        // However slow the job gets, it does not count as unable to run.
        *believed = averaged(SMOOTHING, measured, before).max(f64::MIN_POSITIVE);
        (*believed - before).abs() > MEASURED_CHANGE * before
    }

    /// Notes that a pair cannot share workers of this type, where its throughput is 0. Returns whether it was estimated to run.
    pub(crate) fn refute(&mut self, jobs: Combination<JobId>, worker_type: WorkerTypeId) -> bool {
        self.estimator.is_some()
            && jobs.is_pair()
            && !self.runs(jobs, worker_type)
            && self.observe(jobs, worker_type, [0.0, 0.0])
    }

    /// Tries out every pair that a decision counts on. Returns whether one was found unable to run.
    pub(crate) fn try_out(&mut self, problem: &Problem, decision: &Decision) -> bool {
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

    /// Steps/s of the members of a pair on one worker type, if they can share it.
    pub(crate) fn colocated(
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

    /// Whether every member has a throughput there.
    pub(crate) fn runs(&self, jobs: Combination<JobId>, worker_type: WorkerTypeId) -> bool {
        self.throughput(jobs, worker_type) > 0.0
    }

    /// The throughput of a job alone, or of both members of a pair together, in steps/s; 0 where one cannot run.
    pub(crate) fn throughput(&self, jobs: Combination<JobId>, worker_type: WorkerTypeId) -> f64 {
        let Some(first) = self.get(jobs.first()) else { return 0.0 };
        let Some(second) = jobs.second() else { return first.alone[worker_type.index()] };
        let second = self.get(second);
        let second =
            second.filter(|second| second.progress.job.scale_factor == first.progress.job.scale_factor);
        let both = second.and_then(|second| self.colocated(first, second, worker_type));
        both.map_or(0.0, |both| both.iter().sum())
    }

    /// Sets the isolated throughputs anew, because the active jobs or the workers changed.
    pub(crate) fn share_equally(&mut self, cluster: &Cluster) {
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
    pub(crate) fn problem(&self, now: Seconds, cluster: &Arc<Cluster>) -> Result<Problem, ProblemError> {
        let mut builder = ProblemBuilder::new(Arc::clone(cluster));
        builder.reserve(self.jobs.len());
        let mut shown = Vec::with_capacity(cluster.n_types());
        let (throughputs, mut rows) = self.colocation(cluster);
        for active in &self.jobs {
            let Progress { id, job, .. } = &active.progress;
            if !fits(cluster, &active.alone, job.scale_factor) {
                continue;
            }
            active.show(&mut shown);
            let seen = ActiveJob {
                scale_factor: job.scale_factor,
                weight: job.weight,
                steps_remaining: Steps::new(active.progress.steps_to_show()),
                elapsed: (now - job.arrival).max(Seconds::ZERO),
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
        builder.entities(Arc::clone(self.owners.all()));
        builder.colocation(Colocation::Rows { throughputs, columns: self.columns.clone() });
        builder.build()
    }

    /// The matrix as it was measured, in which jobs' rows are looked up by job type.
    pub(crate) fn measured(&self) -> Colocation {
        Colocation::Rows { throughputs: Arc::clone(&self.throughputs), columns: self.columns.clone() }
    }

    /// The matrix in which policies look up pairs; and, if it is not the true one, the rows, in order, of the jobs that fit and
    /// have one.
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
