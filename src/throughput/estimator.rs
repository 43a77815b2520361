//! The throughput estimator: co-located throughputs without an oracle.
//!
//! A few reference job types were measured beside each other, on every worker type. A job that arrives is run beside a random part
//! of them (its profile); the rest of its row is completed by low-rank factors; the reference whose row points most nearly in the
//! same direction (cosine similarity) stands for it from then on: its retention beside another job is that of its reference beside
//! the other's. Isolated throughputs are known. Each time two jobs do run together, the measurement corrects the estimate of them:
//!
//!   estimate ← α · measured + (1 − α) · estimate          α = ½ by default
//!
//! and a pair in which one job stood still is estimated to stand still. There are two knobs: the fraction of references a job is
//! profiled against, and the number of references. Jobs of scale factor 1 are estimated; pairs of larger ones are as in the matrix.
//!
//! Source: Narayanan et al., OSDI 2020, the section on estimating throughputs. Differs from Gavel's program: the profile is read
//! from the references' columns ([`ProfileColumns`]); the factorization is solved in closed form; a job without any profiled entry
//! is taken for the mean of the references, not for a random one; and Gavel's simulator replaces an estimate by the truth once the
//! pair has run (α = 1), while its cluster averages as here.

mod completion;

use std::collections::BTreeMap;
use std::sync::Arc;

use ndarray::Array3;
use rand_pcg::Pcg64;
use rand_pcg::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::index::{Id, JobId, RowId, WorkerTypeId};
use crate::throughput::{Measured, RowKey, Throughputs};
use completion::{Factors, cosine_similarity};

/// The knobs of an [`Estimator`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profiling {
    /// The chance that an arriving job is run beside each reference on each worker type, 0 to 1.
    pub fraction: f64,
    /// Job types that were measured beforehand, ≥ 1.
    pub reference_models: usize,
    /// α: the weight of a new measurement, in (0, 1].
    #[serde(default = "half")]
    pub smoothing: f64,
    /// The columns from which a profile is read.
    #[serde(default)]
    pub columns: ProfileColumns,
}

fn half() -> f64 {
    SMOOTHING
}

/// The default of α: the weight of a measurement in the estimate from then on.
pub(crate) const SMOOTHING: f64 = 0.5;

/// The estimate after a measurement, α · measured + (1 − α) · believed, where `believed` is the estimate before it.
pub(crate) fn averaged(smoothing: f64, measured: f64, believed: f64) -> f64 {
    smoothing * measured + (1.0 - smoothing) * believed
}

impl Profiling {
    /// These knobs with α = ½ and the references' own columns.
    pub fn new(fraction: f64, reference_models: usize) -> Self {
        Self { fraction, reference_models, smoothing: half(), columns: ProfileColumns::Corrected }
    }
}

/// The columns of the truth from which a job's profile is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProfileColumns {
    /// The references' columns.
    #[default]
    Corrected,
    /// Gavel's columns: the position among the references is taken for one among all job types, so that with fewer references than
    /// job types other neighbours, and even other worker types, are measured.
    Published,
}

/// Why there is no estimator.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum EstimatorError {
    /// A knob out of its range.
    #[error("{field} is {value}, expected {expected}")]
    Value {
        /// The name of the knob.
        field: &'static str,
        /// The value that was given.
        value: f64,
        /// The values that are allowed, in words.
        expected: String,
    },
    /// A checkpoint's state names rows that the matrix lacks.
    #[error("the saved state of the estimator is of another matrix than `{throughputs}`")]
    State {
        /// The matrix.
        throughputs: String,
    },
}

/// The estimator's state that must survive a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EstimatorState {
    jobs: BTreeMap<JobId, Belief>,
    /// Measured steps/s of both jobs of a pair, by the smaller id, the larger, and the worker type.
    corrected: BTreeMap<JobId, BTreeMap<JobId, BTreeMap<WorkerTypeId, [f64; 2]>>>,
}

/// The rows of the throughput matrix by which a job's throughputs are estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Belief {
    /// Its own row, for isolated throughputs.
    row: RowId,
    /// The row that stands for it in pairs; none if it is not estimated.
    reference: Option<RowId>,
}

/// The estimates for several jobs, as a matrix.
#[derive(Clone, Debug)]
pub struct Believed {
    /// A matrix with a row for every group of jobs with the same estimates.
    pub throughputs: Arc<Throughputs>,
    /// The row of each job asked for, in order.
    pub rows: Vec<RowId>,
}

/// An estimator of co-located throughputs, which measurements correct.
#[derive(Clone, Debug)]
pub struct Estimator {
    truth: Arc<Throughputs>,
    profiling: Profiling,
    seed: u64,
    /// Rows at scale factor 1 that run somewhere.
    candidates: Vec<RowId>,
    /// The references' rows, ascending.
    references: Vec<RowId>,
    /// The retention of references beside references: [reference], each [worker type × reference].
    retained: Vec<Vec<f64>>,
    factors: Factors,
    state: EstimatorState,
}

/// The rank of Gavel's factorization.
const RANK: usize = 10;
/// The ridge of Gavel's factorization.
const RIDGE: f64 = 1e-2;

impl Estimator {
    /// Draws the references. `truth` has the throughputs that profiles measure, and the isolated ones.
    ///
    /// A larger number of references contains those of a smaller one under the same seed.
    ///
    /// # Errors
    /// If a knob is out of range.
    pub fn try_new(truth: Arc<Throughputs>, profiling: Profiling, seed: u64) -> Result<Self, EstimatorError> {
        let runs = |row: &RowId| truth.worker_types().ids().any(|column| truth.alone(*row, column) > 0.0);
        let single = |row: &RowId| truth.rows()[*row].scale_factor == 1;
        let candidates: Vec<RowId> = truth.rows().ids().filter(|row| single(row) && runs(row)).collect();
        check(&profiling, candidates.len())?;
        let mut generator = Pcg64::seed_from_u64(seed);
        let mut drawn: Vec<(u64, RowId)> =
            candidates.iter().map(|row| (generator.next_u64(), *row)).collect();
        drawn.sort_unstable();
        let mut references: Vec<RowId> =
            drawn.into_iter().take(profiling.reference_models).map(|(_, row)| row).collect();
        references.sort_unstable();
        let row_of = |row: &RowId| -> Vec<f64> {
            let types = truth.worker_types().ids();
            types
                .flat_map(|column| references.iter().map(move |other| (column, *other)))
                .map(|(column, other)| retained(&truth, *row, other, column))
                .collect()
        };
        let retained: Vec<Vec<f64>> = references.iter().map(row_of).collect();
        let factors = Factors::of(&retained, RANK, RIDGE);
        let state = EstimatorState::default();
        Ok(Self { truth, profiling, seed, candidates, references, retained, factors, state })
    }

    /// The rows measured beforehand, ascending.
    pub fn references(&self) -> &[RowId] {
        &self.references
    }

    /// Profiles a job that arrives, and matches it to a reference. Its profile depends on the seed and its id alone; a larger
    /// fraction measures all that a smaller one does and more.
    pub fn arrive(&mut self, job: JobId, row: RowId) {
        let estimated = self.candidates.contains(&row);
        let reference = estimated.then(|| self.nearest_reference(&self.profile(job, row)));
        self.state.jobs.insert(job, Belief { row, reference });
    }

    /// Removes a job.
    pub fn leave(&mut self, job: JobId) {
        self.state.jobs.remove(&job);
        self.state.corrected.remove(&job);
        for others in self.state.corrected.values_mut() {
            others.remove(&job);
        }
        self.state.corrected.retain(|_, others| !others.is_empty());
    }

    /// The reference row that stands for a job in pairs; none if it has not arrived or is not estimated.
    pub fn row_for(&self, job: JobId) -> Option<RowId> {
        self.state.jobs.get(&job)?.reference
    }

    /// The reference whose row is most like a row with some measured entries, [worker type × reference] in retained fraction; of
    /// equals the first.
    ///
    /// # Panics
    /// If the row has another length.
    pub fn nearest_reference(&self, profile: &[Option<f64>]) -> RowId {
        assert_eq!(
            profile.len(),
            self.truth.worker_types().len() * self.references.len(),
            "one entry per column"
        );
        let completed = self.factors.complete(profile);
        let mut best = (f64::NEG_INFINITY, self.references[0]);
        for (reference, row) in self.references.iter().zip(&self.retained) {
            let similarity = cosine_similarity(row, &completed);
            if similarity > best.0 {
                best = (similarity, *reference);
            }
        }
        best.1
    }

    /// Estimated steps/s of the first and the second of two jobs on one worker type; 0 if they are estimated not to share it, or
    /// have not both arrived.
    pub fn believed_pair(&self, pair: (JobId, JobId), worker_type: WorkerTypeId) -> [f64; 2] {
        let (first, second) = (pair.0.min(pair.1), pair.0.max(pair.1));
        let both = match self.correction(first, second, worker_type) {
            Some(both) => both,
            None => match (self.state.jobs.get(&first), self.state.jobs.get(&second)) {
                (Some(one), Some(other)) => self.prior(*one, *other, worker_type),
                _ => [0.0, 0.0],
            },
        };
        if pair.0 <= pair.1 { both } else { [both[1], both[0]] }
    }

    /// Takes the measured steps/s of two jobs that ran together on workers of a type. It has no effect on jobs that have not
    /// arrived or are not estimated.
    pub fn observe(&mut self, pair: (JobId, JobId), worker_type: WorkerTypeId, measured: [f64; 2]) {
        let known = |job: JobId| self.row_for(job).is_some();
        if pair.0 == pair.1 || !known(pair.0) || !known(pair.1) {
            return;
        }
        let old = self.believed_pair(pair, worker_type);
        let share = self.profiling.smoothing;
        let new = if measured.iter().all(|steps| *steps > 0.0) {
            [0, 1].map(|member| averaged(share, measured[member], old[member]))
        } else {
            [0.0, 0.0]
        };
        let (first, second, new) =
            if pair.0 < pair.1 { (pair.0, pair.1, new) } else { (pair.1, pair.0, [new[1], new[0]]) };
        let others = self.state.corrected.entry(first).or_default();
        others.entry(second).or_default().insert(worker_type, new);
    }

    /// The estimates for these jobs, for [`Problem`](crate::Problem)s. Jobs of the same row and reference that never ran beside
    /// another of them share a row, so that classes of interchangeable jobs stay classes.
    ///
    /// # Panics
    /// If a job has not arrived.
    pub fn believed(&self, jobs: &[JobId]) -> Believed {
        let ran = |job: &JobId| {
            let with = |first: &JobId, second: &JobId| {
                self.state.corrected.get(first).is_some_and(|others| others.contains_key(second))
            };
            jobs.iter().any(|other| with(job, other) || with(other, job))
        };
        let mut groups: BTreeMap<(Belief, Option<JobId>), JobId> = BTreeMap::new();
        let keys: Vec<(Belief, Option<JobId>)> = jobs
            .iter()
            .map(|job| {
                let belief = self.state.jobs.get(job);
                let belief = *belief.unwrap_or_else(|| panic!("job {job} has arrived"));
                let key = (belief, ran(job).then_some(*job));
                groups.entry(key).or_insert(*job);
                key
            })
            .collect();
        let position: BTreeMap<_, usize> = groups.keys().enumerate().map(|(row, key)| (*key, row)).collect();
        let rows = keys.iter().map(|key| RowId::from_index(position[key])).collect();
        Believed { throughputs: Arc::new(self.matrix(&groups)), rows }
    }

    fn matrix(&self, groups: &BTreeMap<(Belief, Option<JobId>), JobId>) -> Throughputs {
        let truth = &self.truth;
        let members: Vec<(Belief, Option<JobId>)> = groups.keys().copied().collect();
        let types: Vec<WorkerTypeId> = truth.worker_types().ids().collect();
        let shape = (types.len(), members.len(), members.len());
        let colocated = Array3::from_shape_fn(shape, |(column, one, other)| {
            let ((belief, job), (other_belief, other_job)) = (members[one], members[other]);
            match (job, other_job) {
                (Some(job), Some(other_job)) if job != other_job => {
                    self.believed_pair((job, other_job), types[column])[0]
                }
                _ => self.prior(belief, other_belief, types[column])[0],
            }
        });
        let key = |(belief, job): &(Belief, Option<JobId>)| {
            let RowKey { mut job_type, scale_factor } = truth.rows()[belief.row].clone();
            if let Some(reference) = belief.reference {
                job_type = format!("{job_type} as {}", truth.rows()[reference].job_type);
            }
            if let Some(job) = job {
                job_type = format!("{job_type} (job {job})");
            }
            RowKey { job_type, scale_factor }
        };
        let rows = members.iter().map(|(belief, _)| belief.row);
        let measured = Measured {
            name: format!("{}, estimated", truth.name()),
            worker_types: truth.worker_types().iter().cloned().collect(),
            rows: members.iter().map(key).collect(),
            consolidated: rows
                .clone()
                .map(|row| types.iter().map(|t| truth.alone(row, *t)).collect())
                .collect(),
            spread: rows.map(|row| types.iter().map(|t| truth.spread(row, *t)).collect()).collect(),
            colocated,
        };
        Throughputs::try_new(measured).unwrap_or_else(|error| unreachable!("beliefs are finite: {error}"))
    }

    /// The estimator's state, for a checkpoint.
    pub fn state(&self) -> &EstimatorState {
        &self.state
    }

    /// Restores the state of [`state`](Self::state) in an estimator made alike.
    ///
    /// # Errors
    /// If the state names rows that the matrix does not have.
    pub fn restore(&mut self, state: EstimatorState) -> Result<(), EstimatorError> {
        let known = |row: RowId| row.index() < self.truth.rows().len();
        let jobs_fit = state.jobs.values().all(|b| known(b.row) && b.reference.is_none_or(known));
        let mut columns = state.corrected.values().flat_map(BTreeMap::values).flat_map(BTreeMap::keys);
        if jobs_fit && columns.all(|column| column.index() < self.truth.worker_types().len()) {
            self.state = state;
            Ok(())
        } else {
            Err(EstimatorError::State { throughputs: self.truth.name().to_owned() })
        }
    }

    fn correction(&self, first: JobId, second: JobId, worker_type: WorkerTypeId) -> Option<[f64; 2]> {
        self.state.corrected.get(&first)?.get(&second)?.get(&worker_type).copied()
    }

    /// The estimate for two jobs before they run together.
    fn prior(&self, one: Belief, other: Belief, worker_type: WorkerTypeId) -> [f64; 2] {
        let alone = |belief: Belief| self.truth.alone(belief.row, worker_type);
        match (one.reference, other.reference) {
            (Some(a), Some(b)) => {
                let kept = |row, beside| retained(&self.truth, row, beside, worker_type);
                [kept(a, b) * alone(one), kept(b, a) * alone(other)]
            }
            _ if self.truth.rows()[one.row].scale_factor == self.truth.rows()[other.row].scale_factor => {
                let together = |row, beside| self.truth.colocated(row, beside, worker_type);
                [together(one.row, other.row), together(other.row, one.row)]
            }
            _ => [0.0, 0.0],
        }
    }

    /// The measured retention of a job of this row beside each reference: [worker type × reference].
    fn profile(&self, job: JobId, row: RowId) -> Vec<Option<f64>> {
        let mut generator = Pcg64::new(u128::from(self.seed), job.index() as u128);
        let columns: Vec<WorkerTypeId> = self.truth.worker_types().ids().collect();
        let mut profile = Vec::with_capacity(columns.len() * self.references.len());
        for column in &columns {
            for reference in 0..self.references.len() {
                let drawn = (generator.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
                profile
                    .push((drawn < self.profiling.fraction).then(|| self.measure(row, *column, reference)));
            }
        }
        profile
    }

    fn measure(&self, row: RowId, column: WorkerTypeId, reference: usize) -> f64 {
        match self.profiling.columns {
            ProfileColumns::Corrected => retained(&self.truth, row, self.references[reference], column),
            ProfileColumns::Published => {
                let name = |id: &WorkerTypeId| &self.truth.worker_types()[*id];
                let mut by_name: Vec<WorkerTypeId> = self.truth.worker_types().ids().collect();
                by_name.sort_by(|one, other| name(one).cmp(name(other)));
                let position = by_name.iter().position(|other| *other == column).unwrap_or(0);
                let offset = position * self.references.len() + reference;
                let (column, other) = (offset / self.candidates.len(), offset % self.candidates.len());
                retained(&self.truth, row, self.candidates[other], by_name[column])
            }
        }
    }
}

fn check(profiling: &Profiling, n_candidates: usize) -> Result<(), EstimatorError> {
    let value = |field, value, expected: &str| {
        Err(EstimatorError::Value { field, value, expected: expected.to_owned() })
    };
    let Profiling { fraction, reference_models, smoothing, .. } = *profiling;
    if !(0.0..=1.0).contains(&fraction) {
        return value("fraction", fraction, "a fraction, 0 to 1");
    }
    if !(smoothing > 0.0 && smoothing <= 1.0) {
        return value("smoothing", smoothing, "a number above 0, at most 1");
    }
    if reference_models == 0 || reference_models > n_candidates {
        let expected = format!("1 to {n_candidates}, the job types measured at scale factor 1");
        return value("reference_models", reference_models as f64, &expected);
    }
    Ok(())
}

/// The fraction of its isolated throughput that `row` truly keeps beside `other`; 0 if they cannot share.
fn retained(truth: &Throughputs, row: RowId, other: RowId, worker_type: WorkerTypeId) -> f64 {
    let alone = truth.alone(row, worker_type);
    if alone > 0.0 { truth.colocated(row, other, worker_type) / alone } else { 0.0 }
}

#[cfg(test)]
mod tests;
