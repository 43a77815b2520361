//! Snapshots: the input of one decision as a document, `apportion/snapshot-v1`.
//!
//! A snapshot is checked for all that the document alone can show: numbers in range, distinct ids, references that lead somewhere.
//! Checks that need a throughput matrix are made where the [`Problem`](crate::Problem) is made of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::cluster::{Cluster, ClusterError, PRICES, WORKERS_PER_TYPE_MAX};
use crate::index::WorkerTypeId;
use crate::spec::document::{Complaints, Source, SpecError, Unplaced};
use crate::spec::entities::{DEPTH_MAX, belong_to_themselves, depths, parents, too_deep};
pub use crate::spec::entities::{InnerRuleName, SnapshotEntity};
use crate::spec::entries::Entries;
pub use crate::spec::label::Label;
use crate::spec::label::Positions;
use crate::spec::name::{Name, Names};
use crate::units::DollarsPerWorkerHour;

/// The `format:` of a snapshot.
pub const FORMAT: &str = "apportion/snapshot-v1";

/// The largest number that is accepted, of whatever unit: a mistake is likelier than 30 million years.
pub const NUMBER_MAX: f64 = 1e15;

/// The least number above 0 that is accepted: sums and quotients of such numbers are still numbers.
pub const NUMBER_MIN: f64 = 1e-100;

/// One decision's input: a cluster and its active jobs. `apportion allocate` and `apportion explain` read it;
/// `apportion simulate --save-snapshots` writes one for each decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SnapshotDocument {
    /// Kind and version of the document.
    #[cfg_attr(feature = "schema", schemars(extend("const" = FORMAT)))]
    pub format: String,
    /// Workers of each worker type. An allocation's columns are in this order.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "workers")))]
    pub cluster: Entries<u64>,
    /// The price of a worker of each type, from 1e-9 to 1e9. A type that is not named has no price.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "$/h")))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<Entries<f64>>,
    /// The active jobs, in order of arrival.
    #[serde(deserialize_with = "jobs_sharing_names")]
    pub jobs: Vec<SnapshotJob>,
    /// Throughputs of two jobs that share workers. If there are any, no other pairs may share; if there are none, a policy that
    /// lets jobs share workers looks the jobs' types up in the throughput matrix.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<SnapshotPair>,
    /// Owners of jobs, for hierarchical policies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entities: Vec<SnapshotEntity>,
}

/// An active job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SnapshotJob {
    /// The job's name in the answer; no two jobs have the same.
    pub id: Label,
    /// The name of the job's type in the throughput matrix. It is needed where `throughput` is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_type: Option<Name>,
    /// Workers that the job needs at once.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "workers")))]
    #[serde(default = "one_worker")]
    pub scale_factor: u32,
    /// The job's importance, from 1e-100 to 1e15; larger is more.
    #[serde(default = "weight_one")]
    pub weight: f64,
    /// Steps that are left to do. Policies that look at times need it: makespan, finish-time fairness, SLOs. A job with 0 is over: it
    /// gets nothing, and the others are decided as if it were not there.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "steps")))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps_remaining: Option<f64>,
    /// Time since the job's arrival; 0 by default.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "s")))]
    #[serde(default, skip_serializing_if = "is_zero")]
    pub elapsed: f64,
    /// The part of its steps that the job has done, as the time that it would have taken with 1/n of the cluster to
    /// itself, for finish-time fairness; 0 by default.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "s")))]
    #[serde(default, skip_serializing_if = "is_zero")]
    pub isolated_elapsed: f64,
    /// Time that is left until the job ought to be done; no deadline by default.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "s")))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slo_remaining: Option<f64>,
    /// The owner of the job, one of `entities`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity: Option<Name>,
    /// The throughput of the job alone on each worker type, in place of the matrix's; 0, null, or a type that is not
    /// named: it cannot run there.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "steps/s")))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Entries<Option<f64>>>,
    /// Further numbers that a policy's `columns` name.
    #[serde(default, skip_serializing_if = "Entries::is_empty")]
    pub extra: Entries<f64>,
}

/// The throughputs of two jobs that share workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SnapshotPair {
    /// The ids of the two jobs.
    pub jobs: [Label; 2],
    /// On each worker type, the throughputs of the first job and of the second.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "steps/s")))]
    pub throughput: Entries<[f64; 2]>,
}

/// Reads jobs one by one; names that occur again share one copy, so that a million jobs fit into memory.
fn jobs_sharing_names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<SnapshotJob>, D::Error> {
    struct JobsVisitor;
    impl<'de> Visitor<'de> for JobsVisitor {
        type Value = Vec<SnapshotJob>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a sequence")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
            let mut names = Names::default();
            let mut jobs = Vec::new();
            while let Some(mut job) = items.next_element::<SnapshotJob>()? {
                job.job_type.iter_mut().chain(&mut job.entity).for_each(|name| names.share(name));
                job.extra.share_names(&mut names);
                if let Some(throughput) = &mut job.throughput {
                    throughput.share_names(&mut names);
                }
                jobs.push(job);
            }
            Ok(jobs)
        }
    }
    deserializer.deserialize_seq(JobsVisitor)
}

fn one_worker() -> u32 {
    1
}

fn weight_one() -> f64 {
    1.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

/// A snapshot that has been checked, with the text that errors point into.
#[derive(Clone, Debug)]
pub struct Snapshot {
    source: Source,
    document: SnapshotDocument,
    cluster: Cluster,
    positions: Positions,
    states_pairs: bool,
    /// Ids of the jobs that are left out, as they have no steps left.
    finished: Vec<Label>,
    /// Places in the text of the other jobs; empty if no job is left out.
    places: Vec<usize>,
}

impl Snapshot {
    /// Reads and checks a snapshot. Jobs of which it says that no steps remain are over: they are checked and left out.
    ///
    /// # Errors
    /// All faults of the snapshot, up to a limit, each with its place.
    pub fn read(source: &Source) -> Result<Self, SpecError> {
        let document: SnapshotDocument = source.parse_format(FORMAT)?;
        let mut check = Check { document: &document, complaints: Complaints::default() };
        let cluster = check.cluster();
        check.prices();
        let positions = check.ids();
        check.jobs();
        check.pairs(&positions);
        check.entities();
        source.all_at(check.complaints)?;
        let cluster = cluster.map_err(|error| source.error_at("cluster", error.to_string(), None))?;
        let states_pairs = !document.pairs.is_empty();
        let (source, finished, places) = (source.clone(), Vec::new(), Vec::new());
        let mut snapshot = Self { source, document, cluster, positions, states_pairs, finished, places };
        snapshot.leave_out_finished();
        Ok(snapshot)
    }

    fn leave_out_finished(&mut self) {
        let is_over = |job: &SnapshotJob| job.steps_remaining.is_some_and(|steps| steps <= 0.0);
        if !self.document.jobs.iter().any(is_over) {
            return;
        }
        let jobs = std::mem::take(&mut self.document.jobs);
        for (place, job) in jobs.into_iter().enumerate() {
            if is_over(&job) {
                self.finished.push(job.id);
            } else {
                self.places.push(place);
                self.document.jobs.push(job);
            }
        }
        let over: BTreeSet<String> = self.finished.iter().map(Label::to_string).collect();
        let is_there = |label: &Label| !over.contains(&label.to_string());
        self.document.pairs.retain(|pair| pair.jobs.iter().all(is_there));
        if let Positions::ByText(positions) = &mut self.positions {
            let ids = self.document.jobs.iter().map(|job| job.id.to_string());
            *positions = ids.enumerate().map(|(position, id)| (id, position)).collect();
        }
    }

    /// The ids of the jobs that are left out, as no steps of them remain.
    pub fn finished(&self) -> &[Label] {
        &self.finished
    }

    /// The path in the text of the job at a position.
    pub fn path_of(&self, position: usize) -> String {
        format!("jobs[{}]", self.places.get(position).copied().unwrap_or(position))
    }

    /// Whether the snapshot states co-located throughputs, if only of jobs that are over.
    pub fn states_pairs(&self) -> bool {
        self.states_pairs
    }

    /// The text, for errors about it.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The document, without the jobs that are over.
    pub fn document(&self) -> &SnapshotDocument {
        &self.document
    }

    /// Its cluster, prices included.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The position of the job with this id.
    pub fn position(&self, label: &Label) -> Option<usize> {
        self.positions.of(&self.document.jobs, label)
    }
}

impl SnapshotDocument {
    /// The document as JSON, which [`Snapshot::read`] reads to the last digit.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Bounds of a number.
#[derive(Clone, Copy)]
enum Bounds {
    Positive,
    Price,
    NotNegative,
    Any,
}

/// A number in words, without a hundred digits.
fn brief(value: f64) -> String {
    let plain = value == 0.0 || !value.is_finite() || (1e-6..1e12).contains(&value.abs());
    if plain { value.to_string() } else { format!("{value:e}") }
}

struct Check<'s> {
    document: &'s SnapshotDocument,
    complaints: Complaints,
}

impl Check<'_> {
    fn complain(&mut self, path: &str, message: impl Into<String>) {
        self.complaints.push(|| Unplaced::at(path, message, None));
    }

    fn number(&mut self, path: impl FnOnce() -> String, value: f64, bounds: Bounds, unit: &str) {
        let fine = value.abs() <= NUMBER_MAX
            && match bounds {
                Bounds::Positive => value >= NUMBER_MIN,
                Bounds::Price => PRICES.contains(&value),
                Bounds::NotNegative => value >= 0.0,
                Bounds::Any => true,
            };
        if fine {
            return;
        }
        let range = match bounds {
            Bounds::Positive => format!("from {NUMBER_MIN:e} to {NUMBER_MAX:e}"),
            Bounds::Price => format!("from {:e} to {:e}", PRICES.start(), PRICES.end()),
            Bounds::NotNegative => format!("from 0 to {NUMBER_MAX:e}"),
            Bounds::Any => format!("from -{NUMBER_MAX:e} to {NUMBER_MAX:e}"),
        };
        let path = path();
        let name = path.rsplit('.').next().unwrap_or_default().to_owned();
        self.complain(&path, format!("`{name}` is {}, expected a number{unit} {range}", brief(value)));
    }

    fn cluster(&mut self) -> Result<Cluster, ClusterError> {
        let mut types = Vec::new();
        let mut fine = true;
        for (name, n_workers) in self.document.cluster.iter() {
            match u32::try_from(*n_workers) {
                Ok(n_workers) if n_workers <= WORKERS_PER_TYPE_MAX => types.push((name, n_workers)),
                _ => {
                    fine = false;
                    let error = ClusterError::TooMany { name: name.to_owned(), n_workers: *n_workers };
                    self.complain(&format!("cluster.{name}"), error.to_string());
                }
            }
        }
        let mut cluster = Cluster::try_new(types);
        if let (Err(error), true) = (&cluster, fine) {
            self.complain("cluster", format!("{error}, expected at least one"));
        }
        if let (Ok(cluster), Some(prices)) = (&mut cluster, &self.document.prices) {
            let ids: Vec<WorkerTypeId> = cluster.types().ids().collect();
            for id in ids {
                if let Some(price) = prices.get(&cluster.types()[id].name) {
                    cluster.set_price(id, DollarsPerWorkerHour::new(*price));
                }
            }
        }
        cluster
    }

    fn prices(&mut self) {
        for (name, price) in self.document.prices.iter().flat_map(Entries::iter) {
            let path = format!("prices.{name}");
            self.worker_type(&path, name);
            self.number(|| path, *price, Bounds::Price, " of $/h");
        }
    }

    fn worker_type(&mut self, path: &str, name: &str) {
        if self.document.cluster.get(name).is_none() {
            let known = self.document.cluster.iter().map(|(name, _)| name);
            self.complaints.push(|| Unplaced::unknown_worker_type(path, name, known));
        }
    }

    fn ids(&mut self) -> Positions {
        if Positions::ascend(&self.document.jobs) {
            return Positions::Ascending;
        }
        let mut positions = BTreeMap::new();
        for (position, job) in self.document.jobs.iter().enumerate() {
            if let Some(first) = positions.insert(job.id.to_string(), position) {
                let message = format!("id `{}` is that of jobs[{first}] already, expected another", job.id);
                self.complain(&format!("jobs[{position}].id"), message);
            }
        }
        Positions::ByText(positions)
    }

    fn jobs(&mut self) {
        let names: Vec<&str> = self
            .document
            .jobs
            .first()
            .map(|job| job.extra.iter().map(|(name, _)| name).collect())
            .unwrap_or_default();
        for (position, job) in self.document.jobs.iter().enumerate() {
            self.job(position, job);
            if !job.extra.iter().map(|(name, _)| name).eq(names.iter().copied()) {
                let message = format!("`extra` has other names than that of jobs[0]: {names:?}");
                self.complain(&format!("jobs[{position}].extra"), message);
            }
        }
    }

    fn job(&mut self, position: usize, job: &SnapshotJob) {
        let at = |field: &str| format!("jobs[{position}].{field}");
        if job.scale_factor == 0 {
            self.complain(&at("scale_factor"), "`scale_factor` is 0, expected at least 1 worker");
        }
        self.number(|| at("weight"), job.weight, Bounds::Positive, "");
        if let Some(steps) = job.steps_remaining {
            self.number(|| at("steps_remaining"), steps, Bounds::NotNegative, " of steps");
        }
        self.number(|| at("elapsed"), job.elapsed, Bounds::NotNegative, " of seconds");
        self.number(|| at("isolated_elapsed"), job.isolated_elapsed, Bounds::NotNegative, " of seconds");
        if let Some(slo) = job.slo_remaining {
            self.number(|| at("slo_remaining"), slo, Bounds::Any, " of seconds");
        }
        for (name, value) in job.extra.iter() {
            self.number(|| at(&format!("extra.{name}")), *value, Bounds::Any, "");
        }
        match &job.throughput {
            Some(throughput) => {
                for (name, value) in throughput.iter() {
                    if self.document.cluster.get(name).is_none() {
                        self.worker_type(&at(&format!("throughput.{name}")), name);
                    }
                    let value = value.unwrap_or(0.0);
                    self.number(
                        || at(&format!("throughput.{name}")),
                        value,
                        Bounds::NotNegative,
                        " of steps/s",
                    );
                }
            }
            None if job.job_type.is_none() => {
                self.complain(
                    &format!("jobs[{position}]"),
                    format!("job `{}` has neither `throughput` nor `job_type`, expected one of them", job.id),
                );
            }
            None => {}
        }
    }

    fn pairs(&mut self, positions: &Positions) {
        let mut seen = BTreeSet::new();
        for (index, pair) in self.document.pairs.iter().enumerate() {
            let places = pair.jobs.each_ref().map(|label| positions.of(&self.document.jobs, label));
            for (member, label) in
                pair.jobs.iter().enumerate().filter(|(member, _)| places[*member].is_none())
            {
                let jobs = &self.document.jobs;
                self.complaints.push(|| {
                    let known: Vec<String> = jobs.iter().map(|job| job.id.to_string()).collect();
                    let path = format!("pairs[{index}].jobs[{member}]");
                    Unplaced::unknown_name(&path, "job", &label.to_string(), known.iter().map(String::as_str))
                });
            }
            if let [Some(one), Some(other)] = places {
                let path = format!("pairs[{index}].jobs");
                if one == other {
                    self.complain(
                        &path,
                        format!("a job cannot share workers with itself: `{}`", pair.jobs[0]),
                    );
                } else if !seen.insert((one.min(other), one.max(other))) {
                    let [one, other] = &pair.jobs;
                    self.complain(&path, format!("the pair of `{one}` and `{other}` is given twice"));
                }
            }
            for (name, both) in pair.throughput.iter() {
                let path = format!("pairs[{index}].throughput.{name}");
                self.worker_type(&path, name);
                for (member, value) in both.iter().enumerate() {
                    self.number(|| format!("{path}[{member}]"), *value, Bounds::NotNegative, " of steps/s");
                }
            }
        }
    }

    fn entities(&mut self) {
        let entities = &self.document.entities;
        let mut known = BTreeMap::new();
        for (index, entity) in entities.iter().enumerate() {
            self.number(|| format!("entities[{index}].weight"), entity.weight, Bounds::Positive, "");
            if known.insert(entity.id.as_str(), index).is_some() {
                self.complain(
                    &format!("entities[{index}].id"),
                    format!("entity `{}` is given twice", entity.id),
                );
            }
        }
        let parents = parents(entities);
        let (circular, depths) = (belong_to_themselves(&parents), depths(&parents));
        for (index, entity) in entities.iter().enumerate() {
            let Some(parent) = &entity.parent else { continue };
            let path = format!("entities[{index}].parent");
            if parents[index].is_none() {
                let known = known.keys().copied();
                self.complaints.push(|| Unplaced::unknown_name(&path, "entity", parent, known));
            } else if circular[index] {
                self.complain(
                    &path,
                    format!("entity `{}` belongs to itself, by way of its parents", entity.id),
                );
            } else if depths[index] == DEPTH_MAX + 1 {
                self.complain(&path, too_deep(&entity.id, depths[index]));
            }
        }
        if entities.is_empty() {
            return;
        }
        for (position, job) in self.document.jobs.iter().enumerate() {
            if let Some(entity) = job.entity.as_deref().filter(|entity| !known.contains_key(entity)) {
                let path = format!("jobs[{position}].entity");
                self.complaints
                    .push(|| Unplaced::unknown_name(&path, "entity", entity, known.keys().copied()));
            }
        }
    }
}
