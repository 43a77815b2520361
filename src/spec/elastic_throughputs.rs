//! Reader of `apportion/elastic-throughputs-v1`: see [`ElasticThroughputs`].

use std::sync::{Arc, OnceLock};

use serde::Deserialize;

use crate::spec::lookup::Embedded;
use crate::spec::throughputs::Origin;
use crate::spec::{Source, SpecError};
use crate::throughput::elastic::{ElasticJobType, ElasticThroughputs, SpeedPoint};

/// The version of the document that is read.
pub const FORMAT: &str = "apportion/elastic-throughputs-v1";

/// The only unit that is allowed.
const UNIT: &str = "samples/s";

/// The documents in the binary.
pub const EMBEDDED: [Embedded; 1] = [("dl2", include_str!("../../throughputs/dl2.yaml"))];

/// Throughputs of jobs by their numbers of parameter servers and workers, as measured for DL2: `throughputs/dl2.yaml`, from which
/// its published world is made.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Document {
    /// Kind and version of the document.
    #[cfg_attr(feature = "schema", schemars(extend("const" = FORMAT)))]
    #[expect(dead_code, reason = "checked before the document is read")]
    format: String,
    /// The name of the tables.
    #[expect(dead_code, reason = "for people")]
    name: String,
    /// The unit of all throughputs.
    #[cfg_attr(feature = "schema", schemars(extend("const" = UNIT)))]
    unit: String,
    /// The origin of the numbers.
    #[expect(dead_code, reason = "for people")]
    source: Origin,
    /// The job types.
    job_types: Vec<JobType>,
    /// The number of jobs that arrive in each slot, for each largest number.
    #[serde(default)]
    arrivals: Vec<Arrivals>,
}

/// A job type.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct JobType {
    /// Its name.
    name: String,
    /// Samples in a step, of all workers together.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "samples")))]
    batch: u32,
    /// Samples in an epoch.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "samples")))]
    samples_per_epoch: f64,
    /// Epochs to train, as a share of the longest job's.
    epochs: f64,
    /// Processor and accelerator slots of a worker.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "slots")))]
    worker: [u16; 2],
    /// Processor and accelerator slots of a parameter server.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "slots")))]
    parameter_server: [u16; 2],
    /// Size of the model.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "MB")))]
    parameters_mb: f64,
    /// Computation in a step.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "s")))]
    compute_s: f64,
    /// Bandwidth between servers.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "MB/s")))]
    between_servers_mb_per_s: f64,
    /// Bandwidth within a server.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "MB/s")))]
    within_server_mb_per_s: f64,
    /// Parameter servers, workers, and the throughput of all workers together in samples/s; 0 where the run failed.
    measured: Vec<(u32, u32, f64)>,
}

/// Arrivals of one rate.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Arrivals {
    /// The most jobs that may arrive in a slot.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "jobs")))]
    most: u32,
    /// Jobs that arrive in each slot.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "jobs")))]
    counts: Vec<u32>,
}

/// The JSON Schema of such documents.
#[cfg(feature = "schema")]
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(Document)
}

/// Reads such a document.
///
/// # Errors
/// With line and column, for numbers out of range, a configuration measured twice, or if none ran.
pub fn read_elastic_throughputs(source: &Source) -> Result<ElasticThroughputs, SpecError> {
    let document: Document = source.parse_format(FORMAT)?;
    if document.unit != UNIT {
        return Err(source.error_at("unit", format!("`{}`, expected `{UNIT}`", document.unit), None));
    }
    let mut job_types = Vec::new();
    for (position, raw) in document.job_types.into_iter().enumerate() {
        job_types.push(job_type(source, &format!("job_types[{position}]"), raw)?);
    }
    let mut arrivals = Vec::new();
    for (position, Arrivals { most, counts }) in document.arrivals.into_iter().enumerate() {
        if counts.iter().all(|count| *count == 0) {
            let path = format!("arrivals[{position}].counts");
            return Err(source.error_at(&path, "no job ever arrives, expected a count above 0", None));
        }
        arrivals.push((most, counts));
    }
    Ok(ElasticThroughputs { job_types, arrivals })
}

fn job_type(source: &Source, path: &str, raw: JobType) -> Result<ElasticJobType, SpecError> {
    let error =
        |field: &str, message: String| Err(source.error_at(&format!("{path}.{field}"), message, None));
    for (field, value) in [
        ("batch", f64::from(raw.batch)),
        ("samples_per_epoch", raw.samples_per_epoch),
        ("epochs", raw.epochs),
        ("parameters_mb", raw.parameters_mb),
        ("compute_s", raw.compute_s),
        ("between_servers_mb_per_s", raw.between_servers_mb_per_s),
        ("within_server_mb_per_s", raw.within_server_mb_per_s),
    ] {
        if !(value.is_finite() && value > 0.0) {
            return error(field, format!("{value}, expected a finite number above 0"));
        }
    }
    let mut measured: Vec<SpeedPoint> = Vec::with_capacity(raw.measured.len());
    for (position, (parameter_servers, workers, samples_per_s)) in raw.measured.into_iter().enumerate() {
        let field = format!("measured[{position}]");
        if parameter_servers == 0 || workers == 0 || !(samples_per_s.is_finite() && samples_per_s >= 0.0) {
            return error(
                &field,
                "expected at least 1 of each role and a finite speed, at least 0".to_owned(),
            );
        }
        let same =
            |other: &SpeedPoint| (other.parameter_servers, other.workers) == (parameter_servers, workers);
        if measured.iter().any(same) {
            return error(
                &field,
                format!(
                    "{parameter_servers} and {workers} tasks were measured before, expected each pair once"
                ),
            );
        }
        measured.push(SpeedPoint { parameter_servers, workers, samples_per_s });
    }
    if measured.iter().filter(|point| point.samples_per_s > 0.0).count() < 2 {
        return error("measured", "expected at least two runs that did not fail".to_owned());
    }
    Ok(ElasticJobType {
        name: raw.name,
        batch: raw.batch,
        samples_per_epoch: raw.samples_per_epoch,
        epochs_share: raw.epochs,
        worker: raw.worker,
        parameter_server: raw.parameter_server,
        parameters_mb: raw.parameters_mb,
        compute_s: raw.compute_s,
        between_servers_mb_per_s: raw.between_servers_mb_per_s,
        within_server_mb_per_s: raw.within_server_mb_per_s,
        measured,
    })
}

impl ElasticThroughputs {
    /// DL2's measurements, which are part of the binary; read at their first use.
    ///
    /// # Panics
    /// If the shipped document is damaged, which tests rule out.
    pub fn dl2() -> Arc<Self> {
        static READ: OnceLock<Arc<ElasticThroughputs>> = OnceLock::new();
        let read = || {
            let (name, text) = EMBEDDED[0];
            let read = read_elastic_throughputs(&Source::embedded(name, text));
            Arc::new(read.unwrap_or_else(|error| panic!("{error}")))
        };
        Arc::clone(READ.get_or_init(read))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "\
format: apportion/elastic-throughputs-v1
name: small
unit: samples/s
source: {who: a, where: b, when: '2019', licence: c}
job_types:
  - name: one
    batch: 32
    samples_per_epoch: 100
    epochs: 0.5
    worker: [2, 4]
    parameter_server: [2, 0]
    parameters_mb: 1
    compute_s: 1
    between_servers_mb_per_s: 1
    within_server_mb_per_s: 1
    measured: [[1, 1, 10], [1, 2, 12]]
arrivals: [{most: 1, counts: [1, 0]}]
";

    #[test]
    fn the_shipped_measurements_are_whole() {
        let elastic = ElasticThroughputs::dl2();
        let points = elastic.job_types.iter().flat_map(|job_type| &job_type.measured);
        let failed = points.clone().filter(|point| point.samples_per_s == 0.0).count();
        assert_eq!((elastic.job_types.len(), points.count(), failed), (8, 804, 9));
        assert_eq!(elastic.arrivals.len(), 11);
        assert!(elastic.arrivals.iter().all(|(_, counts)| counts.len() == 75));
    }

    #[test]
    fn faults_are_told_with_their_place() {
        assert!(read_elastic_throughputs(&Source::new("e.yaml", GOOD)).is_ok());
        for (from, to, expected) in [
            ("batch: 32", "batch: 0", "e.yaml:7:12: 0, expected a finite number above 0"),
            (
                "[1, 2, 12]",
                "[1, 1, 12]",
                "e.yaml:16:28: 1 and 1 tasks were measured before, expected each pair once",
            ),
            ("[1, 2, 12]", "[1, 2, 0]", "e.yaml:16:15: expected at least two runs that did not fail"),
            ("[1, 0]", "[0, 0]", "e.yaml:17:30: no job ever arrives, expected a count above 0"),
        ] {
            let text = GOOD.replace(from, to);
            assert_ne!(text, GOOD);
            let error = read_elastic_throughputs(&Source::new("e.yaml", text)).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }
}
