//! One simulation: all that determines its result, in one document.
//!
//! In: a table of fields, from flags or from a sweep. Out: a checked [`RunSpec`], its canonical text and its digest. It knows the
//! fields' types and ranges, not the contents of policies and traces.

mod corrections;
mod digest;
mod counts;
mod faults;
mod live;
mod prices;
mod profiling;

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::cluster::{Cluster, PRICES};
use crate::spec::entities::{self, SnapshotEntity};
use crate::spec::{Fidelity, price_series};
use crate::units::{JobsPerHour, Seconds};
pub use corrections::CorrectionsSpec;
pub use counts::WorkerCounts;
pub use digest::{Sha256, canonical, sha256};
pub use faults::FaultsSpec;
pub use live::{LiveSpec, Refill};
pub use prices::PricesSpec;
pub use profiling::ProfilingSpec;

/// All that determines the result of one simulation.
///
/// Fields inside the groups `workload`, `mechanism`, `solver`, `faults`, `profiling` and `live` may be named without their
/// group wherever a field is named, because no two share a name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct RunSpec {
    /// The policy: a name of `apportion policies list`, or the path of a policy file; with parameters other than its own, as in
    /// `completion_rate:exponent=0.75`.
    pub policy: String,
    /// Workers of each type.
    pub cluster: WorkerCounts,
    /// Workers on each server, by type; 1 where it is not given.
    pub servers: WorkerCounts,
    /// Prices of workers: constant, or the path of a file of them; none by default.
    pub prices: PricesSpec,
    /// The throughput matrix: `osdi20` or `osdi20-physical`, which ship with the program, or the path of a file.
    pub throughputs: ThroughputsName,
    /// The source of jobs.
    pub workload: WorkloadSpec,
    /// Whether the mechanism has the published system's quirks (`gavel`) or not (`corrected`).
    #[serde(serialize_with = "semantics")]
    pub semantics: Fidelity,
    /// Quirks of `gavel` semantics, by name, that the run is to do without.
    pub correct: CorrectionsSpec,
    /// The one seed that all random streams derive from.
    pub seed: u64,
    /// The jobs that are measured, by position in order of arrival from 0: [start, end), the end excluded. All by
    /// default.
    pub measure: Option<[u64; 2]>,
    /// Rounds.
    pub mechanism: MechanismSpec,
    /// The way in which allocations are computed.
    pub solver: SolverSpec,
    /// Faults of workers and jobs; none by default.
    pub faults: FaultsSpec,
    /// The way in which co-located throughputs become known; they are known by default.
    pub profiling: ProfilingSpec,
    /// The behaviour of a live cluster that rounds on paper do not have; none by default.
    #[serde(skip_serializing_if = "LiveSpec::is_off")]
    pub live: LiveSpec,
}

/// The source of jobs: exactly one of `rate`, `static` and `trace`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of the document")]
pub struct WorkloadSpec {
    /// The generator that draws the jobs of `rate` and `static`.
    pub generator: GeneratorName,
    /// Poisson arrivals: their mean rate.
    pub rate: Option<JobsPerHour>,
    /// The number of jobs after which arrivals stop. Without it they go on until the measured jobs are done.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "jobs")))]
    pub jobs: Option<u64>,
    /// A number of jobs, all at time 0.
    #[serde(rename = "static")]
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "jobs")))]
    pub n_static: Option<u64>,
    /// Whether to start with jobs at time 0 that need all workers. Only with a `rate`.
    pub steady_state: bool,
    /// A trace: the path of a file, or the name of a trace that ships with the program.
    pub trace: Option<String>,
    /// The owners that the trace's jobs name. By default all have weight 1 and divide their shares fairly.
    pub entities: Vec<SnapshotEntity>,
    /// Whether to draw jobs of several workers, too.
    pub multi_worker: bool,
    /// Whether to draw weights: 5 for one job in five.
    pub multi_priority: bool,
    /// Whether to draw deadlines.
    pub slos: bool,
    /// The time that every job would take alone on the reference worker type; drawn by default.
    #[serde(with = "optional_time")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<TimeText>"))]
    pub duration: Option<Seconds>,
}

/// The rounds of the mechanism.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct MechanismSpec {
    /// Length of a round.
    #[serde(with = "time")]
    #[cfg_attr(feature = "schema", schemars(with = "TimeText"))]
    pub round_length: Seconds,
    /// Least time between two computations of the allocation.
    #[serde(with = "time")]
    #[cfg_attr(feature = "schema", schemars(with = "TimeText"))]
    pub reset_interval: Seconds,
    /// Whether to run allocations exactly, without rounds.
    pub ideal: bool,
    /// Time that a job loses when it changes workers, or the job that it shares them with, which may have ended.
    #[serde(with = "time")]
    #[cfg_attr(feature = "schema", schemars(with = "TimeText"))]
    pub preemption_cost: Seconds,
}

impl Default for MechanismSpec {
    fn default() -> Self {
        Self {
            round_length: Seconds::new(360.0),
            reset_interval: Seconds::new(1920.0),
            ideal: false,
            preemption_cost: Seconds::ZERO,
        }
    }
}

/// The way in which allocations are computed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct SolverSpec {
    /// The optimum that is taken among several, in place of the policy's own choice: `utilization`, `water_filling`, `interior` or
    /// `none`. `gavel` semantics imply `interior`.
    pub refine: Option<String>,
    /// The backend that solves programs, in place of the policy's own choice.
    pub backend: Option<String>,
}

/// The word for `semantics` in documents, which digests of runs contain.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn semantics<S: Serializer>(fidelity: &Fidelity, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match fidelity {
        Fidelity::Corrected => "corrected",
        Fidelity::Published => "gavel",
    })
}

/// A generator of jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum GeneratorName {
    /// Independent streams of our own.
    #[default]
    Native,
    /// The draws of the published simulator, bit for bit.
    Gavel,
    /// The draws of the published simulator from its older job table, from which the paper's recorded runs were drawn.
    GavelOsdi20,
}

/// The name or the path of a throughput matrix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct ThroughputsName(pub String);

impl Default for ThroughputsName {
    fn default() -> Self {
        Self("osdi20".to_owned())
    }
}

/// A time in a document: a number of seconds, or text with a unit (`90s`, `30min`, `2h`, `3d`).
#[derive(Clone, Copy, Debug)]
pub struct TimeText(pub Seconds);

#[cfg(feature = "schema")]
impl schemars::JsonSchema for TimeText {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A number of seconds, or text with a unit: `90s`, `30min`, `2h`, `3d`.",
            "type": ["number", "string"], "minimum": 0, "x-unit": "s"
        })
    }
}

impl<'de> Deserialize<'de> for TimeText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TimeVisitor).map(Self)
    }
}

struct TimeVisitor;

impl Visitor<'_> for TimeVisitor {
    type Value = Seconds;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time: seconds, at least 0, or text with a unit such as 90s, 30min, 2h or 3d")
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Seconds, E> {
        if value.is_finite() && value >= 0.0 {
            Ok(Seconds::new(value))
        } else {
            Err(E::invalid_value(de::Unexpected::Float(value), &self))
        }
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Seconds, E> {
        self.visit_f64(value as f64)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Seconds, E> {
        self.visit_f64(value as f64)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Seconds, E> {
        Seconds::parse(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

mod time {
    #![expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::units::Seconds;

    pub(super) fn serialize<S: Serializer>(time: &Seconds, serializer: S) -> Result<S::Ok, S::Error> {
        time.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Seconds, D::Error> {
        super::TimeText::deserialize(deserializer).map(|time| time.0)
    }
}

mod optional_time {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::units::Seconds;

    #[expect(clippy::ref_option, reason = "the signature serde asks for")]
    pub(super) fn serialize<S: Serializer>(time: &Option<Seconds>, serializer: S) -> Result<S::Ok, S::Error> {
        time.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Seconds>, D::Error> {
        Ok(Option::<super::TimeText>::deserialize(deserializer)?.map(|time| time.0))
    }
}

/// An error about one field of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldComplaint {
    /// The field, dotted: `workload.rate`.
    pub field: String,
    /// The message.
    pub message: String,
    /// A remedy, in words.
    pub help: Option<String>,
}

/// The smallest arrival rate, in jobs per hour.
const RATE_MIN: f64 = 1e-9;
/// The longest duration of jobs: a century.
const DURATION_MAX: Seconds = Seconds::new(100.0 * 365.25 * 86_400.0);
/// The largest arrival rate, in jobs per hour.
pub const RATE_MAX: f64 = 1e6;
/// The most jobs.
const JOBS_MAX: u64 = 100_000_000;
/// The most jobs that are there at once.
const STATIC_JOBS_MAX: u64 = 10_000_000;

impl RunSpec {
    /// The faults of the values; names of policies, matrices and files are not looked up.
    pub fn complaints(&self) -> Vec<FieldComplaint> {
        let mut found = Complaints(Vec::new());
        if self.policy.trim().is_empty() {
            found.push("policy", "no policy is named", Some("`apportion policies list` names them"));
        }
        self.check_cluster(&mut found);
        self.check_workload(&mut found);
        found.0.extend(entities::complaints(&self.workload.entities, self.workload.trace.is_some()));
        self.check_measure(&mut found);
        let round = self.mechanism.round_length.get();
        if !(round.is_finite() && (1e-3..=1e9).contains(&round)) {
            let message = format!("a round of {round} s, expected one from 0.001 s to 1e9 s");
            found.push("mechanism.round_length", message, None);
        }
        self.faults.check(&mut found);
        self.profiling.check(&mut found);
        self.live.check(self.mechanism.round_length, self.mechanism.ideal, &mut found);
        self.check_ideal(&mut found);
        found.0
    }

    /// Refuses fields about leases in a run that has none.
    fn check_ideal(&self, found: &mut Complaints) {
        let FaultsSpec { job_failure, straggling, contention, .. } = self.faults;
        let asked = [
            ("faults.job_failure", job_failure),
            ("faults.straggling", straggling),
            ("faults.contention", contention),
            ("mechanism.preemption_cost", self.mechanism.preemption_cost.get()),
        ];
        for (field, _) in asked.into_iter().filter(|(_, value)| self.mechanism.ideal && *value > 0.0) {
            found.push(field, "happens to leases on workers, and `ideal` runs shares without", None);
        }
    }

    fn check_cluster(&self, found: &mut Complaints) {
        if self.cluster.0.is_empty() {
            found.push("cluster", "no cluster is given", Some("such as {v100: 36, p100: 36, k80: 36}"));
        } else if let Err(error) = self.bare_cluster() {
            let help = matches!(error, crate::cluster::ClusterError::Empty)
                .then_some("one worker type needs a worker, as in {v100: 8}");
            found.push("cluster", error.to_string(), help);
        }
        let known = |name: &String| self.cluster.0.iter().any(|(other, _)| other == name);
        for (name, per_server) in &self.servers.0 {
            if !known(name) {
                found.push("servers", format!("the cluster has no worker type `{name}`"), None);
            } else if *per_server == 0 {
                found.push(
                    "servers",
                    format!("0 workers of `{name}` on a server, expected at least 1"),
                    None,
                );
            }
        }
        for (name, price) in self.prices.constant() {
            if !known(name) {
                found.push("prices", format!("the cluster has no worker type `{name}`"), None);
            } else if !PRICES.contains(price) {
                found.push("prices", price_series::not_believed(name, *price), None);
            }
        }
    }

    fn bare_cluster(&self) -> Result<Cluster, crate::cluster::ClusterError> {
        Cluster::try_new(self.cluster.0.iter().map(|(name, count)| (name.clone(), *count)))
    }

    fn check_workload(&self, found: &mut Complaints) {
        let WorkloadSpec { rate, n_static, trace, jobs, duration, .. } = &self.workload;
        let sources = [rate.is_some(), n_static.is_some(), trace.is_some()];
        match sources.iter().filter(|given| **given).count() {
            1 => {}
            0 => found.push("workload", "no jobs: expected one of `rate`, `static` and `trace`", None),
            _ => found.push("workload", "expected only one of `rate`, `static` and `trace`", None),
        }
        if let Some(rate) = rate.map(JobsPerHour::get)
            && !(RATE_MIN..=RATE_MAX).contains(&rate)
        {
            // Large numbers are written without three hundred digits.
            let is_plain = rate == 0.0 || !rate.is_finite() || (1e-9..1e9).contains(&rate.abs());
            let said = if is_plain { rate.to_string() } else { format!("{rate:e}") };
            let message = format!("{said} jobs/h, expected a number from {RATE_MIN:e} to {RATE_MAX}");
            found.push("workload.rate", message, None);
        }
        for (field, count, most) in
            [("workload.jobs", jobs, JOBS_MAX), ("workload.static", n_static, STATIC_JOBS_MAX)]
        {
            if let Some(count) = count
                && !(1..=most).contains(count)
            {
                found.push(field, format!("{count} jobs, expected 1 to {most}"), None);
            }
        }
        if jobs.is_some() && rate.is_none() {
            found.push("workload.jobs", "says when arrivals at a `rate` stop, and there is none", None);
        }
        if self.workload.steady_state && rate.is_none() {
            found.push("workload.steady_state", "a full cluster to begin with needs a `rate` to go on", None);
        }
        if rate.is_some() && jobs.is_none() && self.measure.is_none() {
            let help = "say how many `jobs` arrive, or which to `measure`";
            found.push("workload.rate", "arrivals would never stop", Some(help));
        }
        if let Some(duration) = duration.filter(|time| time.get() <= 0.0 || *time > DURATION_MAX) {
            let message = format!("{:e} s, expected a time above 0, of a century at most", duration.get());
            found.push("workload.duration", message, Some("such as 8h"));
        }
    }

    fn check_measure(&self, found: &mut Complaints) {
        let Some([start, end]) = self.measure else { return };
        let n_jobs = self.workload.jobs.or(self.workload.n_static);
        if end <= start {
            let message = format!("[{start}, {end}) holds no job, expected [start, end) with start < end");
            found.push("measure", message, None);
        } else if let Some(n_jobs) = n_jobs.filter(|n_jobs| end > *n_jobs) {
            found.push("measure", format!("[{start}, {end}) goes beyond the {n_jobs} jobs there are"), None);
        } else if end > JOBS_MAX {
            found.push("measure", format!("[{start}, {end}) ends beyond {JOBS_MAX} jobs"), None);
        }
    }

    /// The cluster, with servers and constant prices.
    ///
    /// # Errors
    /// The faults of the cluster that [`complaints`](Self::complaints) finds.
    pub fn cluster(&self) -> Result<Cluster, crate::cluster::ClusterError> {
        let mut cluster = self.bare_cluster()?;
        for (name, per_server) in &self.servers.0 {
            cluster = cluster.with_workers_per_server(name, *per_server)?;
        }
        for (name, price) in self.prices.constant() {
            cluster = cluster.with_price(name, crate::units::DollarsPerWorkerHour::new(*price))?;
        }
        Ok(cluster)
    }

    /// The spec as JSON text in one canonical form: every field is present, but for a group `live` with defaults only; keys are
    /// sorted, without spaces.
    #[expect(clippy::missing_panics_doc, reason = "all keys are text, which is all that JSON asks for")]
    pub fn canonical(&self) -> String {
        canonical(&serde_json::to_value(self).expect("all keys are text"))
    }

    /// The identity of the run's result: SHA-256 over this crate's version, the canonical spec and the digests of the data that it
    /// names (`data`: name of the data → digest).
    pub fn digest(&self, data: &BTreeMap<String, String>) -> String {
        let whole = serde_json::json!({
            "apportion": env!("CARGO_PKG_VERSION"),
            "data": data,
            "run": self,
        });
        sha256(canonical(&whole).as_bytes())
    }
}

struct Complaints(Vec<FieldComplaint>);

impl Complaints {
    fn push(&mut self, field: &str, message: impl Into<String>, help: Option<&str>) {
        let (field, message, help) = (field.to_owned(), message.into(), help.map(str::to_owned));
        self.0.push(FieldComplaint { field, message, help });
    }
}

#[cfg(test)]
mod tests;
