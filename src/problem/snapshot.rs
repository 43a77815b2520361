//! Problems from snapshots, and snapshots of problems.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cluster::{Cluster, WORKERS_PER_TYPE_MAX};
use crate::index::{EntityId, Id, IndexVec, JobId, JobIndex, RowId, WorkerTypeId};
use crate::problem::{ActiveJob, Colocation, Entity, InnerRule, Problem, ProblemBuilder, ProblemError};
use crate::spec::document::{Complaints, Unplaced};
use crate::spec::entities::parents;
use crate::spec::nearest::{name_list, suggestion};
use crate::spec::snapshot::{
    FORMAT, InnerRuleName, Label, Snapshot, SnapshotDocument, SnapshotEntity, SnapshotJob, SnapshotPair,
};
use crate::spec::{Entries, SpecError};
use crate::throughput::Throughputs;
use crate::units::{Seconds, Steps};
use crate::workload::Combination;

/// Columns of a matrix by the cluster's worker types; `None` = not in the matrix.
type Columns = IndexVec<WorkerTypeId, Option<WorkerTypeId>>;

impl Problem {
    /// The problem that a snapshot states. Jobs without throughputs of their own look them up in `throughputs` by
    /// job type and scale factor; so do pairs, unless the snapshot has pairs. The order of jobs and worker types is
    /// the snapshot's.
    ///
    /// # Errors
    /// If a job's type or a worker type is not in the matrix, or a job can run nowhere; with the place in the
    /// snapshot.
    pub fn from_snapshot(snapshot: &Snapshot, throughputs: &Arc<Throughputs>) -> Result<Self, SpecError> {
        let document = snapshot.document();
        let cluster = Arc::new(snapshot.cluster().clone());
        let columns = columns(&cluster, throughputs);
        if let Some(position) = document.jobs.iter().position(|job| job.throughput.is_none()) {
            check_columns(snapshot, &columns, throughputs, position)?;
        }
        let mut builder = ProblemBuilder::new(Arc::clone(&cluster));
        builder.reserve(document.jobs.len());
        let owners = add_entities(&mut builder, document);
        for (position, job) in document.jobs.iter().enumerate() {
            let row = job.job_type.as_ref().and_then(|name| throughputs.find(name, job.scale_factor));
            let speeds = match (&job.throughput, row) {
                (Some(own), _) => own_throughput(&cluster, own),
                (None, Some(row)) => {
                    columns.iter().map(|c| c.map_or(0.0, |c| throughputs.alone(row, c))).collect()
                }
                (None, None) => return Err(unknown_job_type(snapshot, position, job, throughputs)),
            };
            let entity = job.entity.as_ref().and_then(|name| owners.get(&**name).copied());
            builder.job(active(position, job, row, entity), &speeds);
        }
        for (name, _) in document.jobs.iter().take(1).flat_map(|job| job.extra.iter()) {
            let value = |job: &SnapshotJob| job.extra.get(name).copied().unwrap_or(0.0);
            builder.extra(name, document.jobs.iter().map(value).collect());
        }
        builder.colocation(if snapshot.states_pairs() {
            Colocation::Pairs(pairs(snapshot, &cluster))
        } else {
            Colocation::Rows { throughputs: Arc::clone(throughputs), columns }
        });
        builder.build().map_err(|error| place(snapshot, &error))
    }

    /// The problem as a snapshot document, from which [`Problem::from_snapshot`] makes the same problem again, given
    /// the same matrix. `label` writes a job's id.
    pub fn to_snapshot(&self, label: impl Fn(JobId) -> Label) -> SnapshotDocument {
        let types = || self.cluster().types().enumerate();
        let count = |name: &str, n_workers: u32| (name.to_owned(), u64::from(n_workers));
        let prices: Entries<f64> =
            types().filter_map(|(_, t)| t.price.map(|price| (t.name.clone(), price.get()))).collect();
        let jobs = self.jobs().enumerate().map(|(index, job)| self.job_document(index, job, &label));
        let entities = self.entities().iter().map(|entity| SnapshotEntity {
            id: entity.name.clone(),
            weight: entity.weight,
            inner: match entity.inner {
                InnerRule::Fairness => InnerRuleName::Fairness,
                InnerRule::Fifo => InnerRuleName::Fifo,
            },
            parent: entity.parent.map(|parent| self.entities()[parent].name.clone()),
        });
        let pairs = match self.colocation() {
            Colocation::Pairs(pairs) => {
                pairs.iter().map(|(pair, both)| self.pair_document(*pair, both, &label)).collect()
            }
            Colocation::None | Colocation::Rows { .. } => Vec::new(),
        };
        SnapshotDocument {
            format: FORMAT.to_owned(),
            cluster: types().map(|(_, t)| count(&t.name, t.n_workers)).collect(),
            prices: (!prices.is_empty()).then_some(prices),
            jobs: jobs.collect(),
            pairs,
            entities: entities.collect(),
        }
    }

    /// The problem as a snapshot document with all co-located throughputs written out and no job types: for a problem
    /// with a throughput matrix that no file holds.
    pub fn to_snapshot_with_pairs(&self, label: impl Fn(JobId) -> Label) -> SnapshotDocument {
        let mut document = self.to_snapshot(&label);
        let jobs: Vec<JobIndex> = self.jobs().ids().collect();
        for (position, first) in jobs.iter().enumerate() {
            document.jobs[position].job_type = None;
            for second in &jobs[position + 1..] {
                let pair = Combination::pair(*first, *second);
                let types = self.cluster().types().ids();
                let both: Vec<_> = types.map(|kind| self.colocated(pair, kind).unwrap_or_default()).collect();
                if both.iter().any(|both| both[0] > 0.0) {
                    document.pairs.push(self.pair_document(pair, &both, &label));
                }
            }
        }
        document
    }

    fn job_document(&self, index: JobIndex, job: &ActiveJob, label: &impl Fn(JobId) -> Label) -> SnapshotJob {
        let job_type = match (self.colocation(), job.row) {
            (Colocation::Rows { throughputs, .. }, Some(row)) => {
                Some(throughputs.rows()[row].job_type.as_str().into())
            }
            _ => None,
        };
        let types = self.cluster().types().iter();
        let throughput =
            types.zip(self.throughput().row(index)).map(|(t, value)| (t.name.clone(), Some(*value)));
        SnapshotJob {
            id: label(job.id),
            job_type,
            scale_factor: job.scale_factor,
            weight: job.weight,
            steps_remaining: Some(job.steps_remaining.get()),
            elapsed: job.elapsed.get(),
            isolated_elapsed: job.isolated_elapsed.get(),
            slo_remaining: job.slo_remaining.map(Seconds::get),
            entity: job.entity.map(|entity| self.entities()[entity].name.as_str().into()),
            throughput: Some(throughput.collect()),
            extra: self.extra().iter().map(|(name, column)| (name.clone(), column[index.index()])).collect(),
        }
    }

    fn pair_document(
        &self,
        pair: Combination<JobIndex>,
        both: &[[f64; 2]],
        label: &impl Fn(JobId) -> Label,
    ) -> SnapshotPair {
        let second = pair.second().unwrap_or(pair.first());
        let jobs = [pair.first(), second].map(|index| label(self.jobs()[index].id));
        let types = self.cluster().types().iter();
        SnapshotPair { jobs, throughput: types.zip(both).map(|(t, both)| (t.name.clone(), *both)).collect() }
    }
}

fn columns(cluster: &Cluster, throughputs: &Throughputs) -> Columns {
    cluster.types().iter().map(|t| throughputs.find_worker_type(&t.name)).collect()
}

/// Refuses worker types of the cluster that the matrix lacks, while the job at `position` needs the matrix.
fn check_columns(
    snapshot: &Snapshot,
    columns: &Columns,
    throughputs: &Throughputs,
    position: usize,
) -> Result<(), SpecError> {
    let lacking =
        snapshot.cluster().types().iter().zip(columns).filter(|(t, c)| c.is_none() && t.n_workers > 0);
    let mut complaints = Complaints::default();
    for (worker_type, _) in lacking {
        let known = || throughputs.worker_types().iter().map(String::as_str);
        let name = &worker_type.name;
        let message = format!(
            "worker type `{name}` is not in throughputs `{}`, where job `{}` looks itself up, expected one of {}",
            throughputs.name(),
            snapshot.document().jobs[position].id,
            name_list(known()),
        );
        complaints.push(|| Unplaced::at_key(&format!("cluster.{name}"), message, suggestion(name, known())));
    }
    snapshot.source().all_at(complaints)
}

fn active(position: usize, job: &SnapshotJob, row: Option<RowId>, entity: Option<EntityId>) -> ActiveJob {
    ActiveJob {
        scale_factor: job.scale_factor,
        weight: job.weight,
        steps_remaining: Steps::new(job.steps_remaining.unwrap_or(0.0)),
        elapsed: Seconds::new(job.elapsed),
        isolated_elapsed: Seconds::new(job.isolated_elapsed),
        slo_remaining: job.slo_remaining.map(Seconds::new),
        entity,
        row,
        ..ActiveJob::new(JobId::from_index(position))
    }
}

fn own_throughput(cluster: &Cluster, own: &Entries<Option<f64>>) -> Vec<f64> {
    cluster.types().iter().map(|t| own.get(&t.name).copied().flatten().unwrap_or(0.0)).collect()
}

impl Entity {
    /// The entities of a document, each at its position in it; a parent that is not there is none.
    pub fn all_of(written: &[SnapshotEntity]) -> Vec<Self> {
        let parents = parents(written);
        let entity = |(position, entity): (usize, &SnapshotEntity)| Self {
            name: entity.id.clone(),
            weight: entity.weight,
            inner: match entity.inner {
                InnerRuleName::Fairness => InnerRule::Fairness,
                InnerRuleName::Fifo => InnerRule::Fifo,
            },
            parent: parents[position].map(EntityId::from_index),
        };
        written.iter().enumerate().map(entity).collect()
    }
}

/// Adds the owners of jobs: as the document lists them, or, if it lists none, as the jobs name them.
fn add_entities<'d>(
    builder: &mut ProblemBuilder,
    document: &'d SnapshotDocument,
) -> BTreeMap<&'d str, EntityId> {
    let mut owners = BTreeMap::new();
    for (written, entity) in document.entities.iter().zip(Entity::all_of(&document.entities)) {
        owners.insert(written.id.as_str(), builder.entity(entity));
    }
    for name in document.jobs.iter().filter_map(|job| job.entity.as_deref()) {
        owners.entry(name).or_insert_with(|| {
            builder.entity(Entity {
                name: name.to_owned(),
                weight: 1.0,
                inner: InnerRule::Fairness,
                parent: None,
            })
        });
    }
    owners
}

fn pairs(snapshot: &Snapshot, cluster: &Cluster) -> BTreeMap<Combination<JobIndex>, Vec<[f64; 2]>> {
    let pair = |pair: &SnapshotPair| {
        let [one, other] = pair.jobs.each_ref().map(|label| snapshot.position(label));
        let (one, other) = (one?, other?);
        let row = cluster.types().iter().map(|t| {
            let [a, b] = pair.throughput.get(&t.name).copied().unwrap_or([0.0, 0.0]);
            if one < other { [a, b] } else { [b, a] }
        });
        Some((Combination::pair(JobIndex::from_index(one), JobIndex::from_index(other)), row.collect()))
    };
    snapshot.document().pairs.iter().filter_map(pair).collect()
}

fn unknown_job_type(
    snapshot: &Snapshot,
    position: usize,
    job: &SnapshotJob,
    throughputs: &Throughputs,
) -> SpecError {
    let name = job.job_type.as_deref().unwrap_or_default();
    let rows = || throughputs.rows().iter();
    let scale_factors: Vec<String> =
        rows().filter(|row| row.job_type == name).map(|row| row.scale_factor.to_string()).collect();
    if !scale_factors.is_empty() {
        let message = format!(
            "job type `{name}` has no throughputs at scale factor {} in `{}`, expected one of {}",
            job.scale_factor,
            throughputs.name(),
            scale_factors.join(", "),
        );
        return snapshot.source().error_at(
            &format!("{}.scale_factor", snapshot.path_of(position)),
            message,
            None,
        );
    }
    let mut names: Vec<&str> = Vec::new();
    for row in rows() {
        if !names.contains(&row.job_type.as_str()) {
            names.push(&row.job_type);
        }
    }
    snapshot.source().unknown_name(
        &format!("{}.job_type", snapshot.path_of(position)),
        "job type",
        name,
        names,
    )
}

/// A problem's error, at the place in the snapshot of the value at fault.
fn place(snapshot: &Snapshot, error: &ProblemError) -> SpecError {
    let source = snapshot.source();
    let Some(position) = error.job() else { return source.error_at("cluster", error.to_string(), None) };
    let id = &snapshot.document().jobs[position].id;
    match error {
        ProblemError::RunsNowhere { scale_factor, .. } => {
            let message =
                format!("job `{id}` can run on no worker type of the cluster at scale factor {scale_factor}");
            let workers = snapshot.cluster().types().iter().map(|t| t.n_workers).max().unwrap_or(0);
            let help = if *scale_factor > workers && *scale_factor <= WORKERS_PER_TYPE_MAX {
                format!("no worker type has more than {workers} workers")
            } else {
                "it needs a throughput above 0 on a type with workers enough".to_owned()
            };
            source.error_at(&snapshot.path_of(position), message, Some(help))
        }
        ProblemError::Value { field, .. } => {
            source.error_at(&format!("{}.{field}", snapshot.path_of(position)), error.to_string(), None)
        }
        _ => source.error_at(&snapshot.path_of(position), error.to_string(), None),
    }
}
