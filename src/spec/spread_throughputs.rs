//! Reader of `apportion/spread-throughputs-v1`: see [`SpreadThroughputs`].

use std::sync::{Arc, OnceLock};

use serde::Deserialize;

use crate::spec::lookup::Embedded;
use crate::spec::throughputs::Origin;
use crate::spec::{Entries, Source, SpecError};
use crate::throughput::spread::{SpreadConfiguration, SpreadThroughputs};

/// The version of the document that is read.
pub const FORMAT: &str = "apportion/spread-throughputs-v1";

/// The only unit that is allowed.
const UNIT: &str = "samples/s";

/// The documents in the binary.
pub const EMBEDDED: [Embedded; 1] = [("deepshare", include_str!("../../throughputs/deepshare.yaml"))];

/// Throughputs of jobs by the number of workers and of the servers that these are spread over, as measured for DeepShare:
/// `throughputs/deepshare.yaml`, from which its published world is made.
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
    /// Numbers of workers, ascending: the order of `samples`.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "workers")))]
    workers: Vec<u32>,
    /// The job types.
    job_types: Vec<JobType>,
    /// Mixes of job types, by name: each job type's share, adding up to 1.
    #[serde(default)]
    mixes: Entries<Vec<f64>>,
    /// Job types on numbers of workers and servers, with the fractions that they keep beside one another.
    configurations: Vec<Configuration>,
}

/// A job type.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct JobType {
    /// Its name.
    name: String,
    /// Samples that a job is to be trained on, at each number of `workers`.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "samples")))]
    samples: Vec<f64>,
}

/// A job type on a number of workers, spread over a number of servers.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Configuration {
    /// Job type, workers and servers.
    of: (String, u32, u32),
    /// Throughput alone.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "samples/s")))]
    alone: f64,
    /// The fraction of it that is kept beside each configuration, in their order.
    beside: Vec<f64>,
}

/// The JSON Schema of such documents.
#[cfg(feature = "schema")]
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(Document)
}

/// Reads such a document.
///
/// # Errors
/// With line and column, for unknown job types, numbers out of range, or lists of the wrong length.
pub fn read_spread_throughputs(source: &Source) -> Result<SpreadThroughputs, SpecError> {
    let document: Document = source.parse_format(FORMAT)?;
    let error = |path: &str, message: String| Err(source.error_at(path, message, None));
    if document.unit != UNIT {
        return error("unit", format!("`{}`, expected `{UNIT}`", document.unit));
    }
    if document.workers.is_empty() || document.workers[0] == 0 || !document.workers.is_sorted() {
        return error("workers", "expected numbers of workers, at least 1, ascending".to_owned());
    }
    let mut samples = Vec::new();
    for (position, job_type) in document.job_types.iter().enumerate() {
        let path = format!("job_types[{position}].samples");
        if job_type.samples.len() != document.workers.len() {
            let (found, expected) = (job_type.samples.len(), document.workers.len());
            return error(
                &path,
                format!("{found} numbers, expected {expected}, one of each number of workers"),
            );
        }
        if let Some(wrong) = job_type.samples.iter().find(|number| !(number.is_finite() && **number > 0.0)) {
            return error(&path, format!("{wrong} samples, expected a finite number above 0"));
        }
        samples.extend(&job_type.samples);
    }
    let names: Vec<String> = document.job_types.into_iter().map(|job_type| job_type.name).collect();
    let mixes = mixes(source, document.mixes, names.len())?;
    let (configurations, retained) = configurations(source, &document.configurations, &names)?;
    Ok(SpreadThroughputs {
        job_types: names,
        workers: document.workers,
        samples,
        mixes,
        configurations,
        retained,
    })
}

/// Mixes by name, each with a share of every job type.
fn mixes(
    source: &Source,
    mixes: Entries<Vec<f64>>,
    n_types: usize,
) -> Result<Vec<(String, Vec<f64>)>, SpecError> {
    for (name, shares) in mixes.iter() {
        let total: f64 = shares.iter().sum();
        if shares.len() != n_types || shares.iter().any(|share| *share < 0.0) || (total - 1.0).abs() > 1e-9 {
            let message = format!("expected {n_types} shares, none negative, that add up to 1");
            return Err(source.error_at(&format!("mixes.{name}"), message, None));
        }
    }
    Ok(mixes.into_iter().collect())
}

/// The configurations, and the fraction that each retains beside each: [configurations × configurations].
fn configurations(
    source: &Source,
    raw: &[Configuration],
    names: &[String],
) -> Result<(Vec<SpreadConfiguration>, Vec<f64>), SpecError> {
    let error = |path: &str, message: String| Err(source.error_at(path, message, None));
    let (mut configurations, mut retained) = (Vec::new(), Vec::new());
    let n_configurations = raw.len();
    for (position, one) in raw.iter().enumerate() {
        let path = |field: &str| format!("configurations[{position}].{field}");
        let (name, workers, servers) = &one.of;
        let Some(job_type) = names.iter().position(|other| other == name) else {
            return Err(source.unknown_name(&path("of"), "job type", name, names.iter().map(String::as_str)));
        };
        if *servers == 0 || servers > workers {
            return error(
                &path("of"),
                format!("{workers} workers on {servers} servers, expected 1 to {workers}"),
            );
        }
        if !(one.alone.is_finite() && one.alone > 0.0) {
            return error(&path("alone"), format!("{}, expected a finite number above 0", one.alone));
        }
        if one.beside.len() != n_configurations {
            let found = one.beside.len();
            return error(
                &path("beside"),
                format!("{found} fractions, expected {n_configurations}, one of each"),
            );
        }
        if let Some(wrong) = one.beside.iter().find(|fraction| !(**fraction > 0.0 && **fraction <= 1.0)) {
            return error(&path("beside"), format!("{wrong}, expected a fraction above 0, at most 1"));
        }
        configurations.push(SpreadConfiguration {
            job_type,
            workers: *workers,
            servers: *servers,
            alone: one.alone,
        });
        retained.extend(&one.beside);
    }
    Ok((configurations, retained))
}

impl SpreadThroughputs {
    /// DeepShare's measurements, which are part of the binary; read at their first use.
    ///
    /// # Panics
    /// If the shipped document is damaged, which tests rule out.
    pub fn deepshare() -> Arc<Self> {
        static READ: OnceLock<Arc<SpreadThroughputs>> = OnceLock::new();
        let read = || {
            let (name, text) = EMBEDDED[0];
            let read = read_spread_throughputs(&Source::embedded(name, text));
            Arc::new(read.unwrap_or_else(|error| panic!("{error}")))
        };
        Arc::clone(READ.get_or_init(read))
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "what is read or copied is compared exactly")]
mod tests {
    use super::*;

    const GOOD: &str = "\
format: apportion/spread-throughputs-v1
name: small
unit: samples/s
source: {who: a, where: b, when: '2023', licence: c}
workers: [2]
job_types: [{name: one, samples: [10]}]
configurations: [{of: [one, 2, 2], alone: 3, beside: [0.5]}]
";

    #[test]
    fn the_shipped_tables_are_whole() {
        let tables = SpreadThroughputs::deepshare();
        assert_eq!(tables.job_types.len(), 6);
        assert_eq!(tables.configurations.len(), 36);
        assert_eq!(tables.retained.len(), 36 * 36);
        // The published table: mean 0.79, least 0.123, one in five at or below 0.6.
        let mean = tables.retained.iter().sum::<f64>() / 1296.0;
        assert!((mean - 0.79).abs() < 0.005, "{mean}");
        assert_eq!(tables.retained.iter().copied().fold(1.0, f64::min), 0.123);
        let low = tables.retained.iter().filter(|fraction| **fraction <= 0.6).count();
        assert!((0.19..0.21).contains(&(low as f64 / 1296.0)), "{low}");
        let (position, beside) = (tables.position(2, 8, 2).unwrap(), tables.position(5, 8, 2).unwrap());
        assert!(
            tables.retained(position, beside) < tables.retained(position, tables.position(1, 8, 2).unwrap())
        );
    }

    #[test]
    fn faults_are_told_with_their_place() {
        let complaint = |from: &str, to: &str| {
            let text = GOOD.replace(from, to);
            assert_ne!(text, GOOD);
            read_spread_throughputs(&Source::new("s.yaml", text)).unwrap_err().to_string()
        };
        assert!(read_spread_throughputs(&Source::new("s.yaml", GOOD)).is_ok());
        for (from, to, expected) in [
            ("[one, 2", "[two, 2", "s.yaml:7:23: unknown job type `two`, expected `one`"),
            ("2, 2]", "2, 3]", "s.yaml:7:23: 2 workers on 3 servers, expected 1 to 2"),
            ("[0.5]", "[0.5, 1]", "s.yaml:7:54: 2 fractions, expected 1, one of each"),
            ("[0.5]", "[1.5]", "s.yaml:7:54: 1.5, expected a fraction above 0, at most 1"),
            ("[10]", "[0]", "s.yaml:6:34: 0 samples, expected a finite number above 0"),
            ("samples/s", "steps/s", "s.yaml:3:7: `steps/s`, expected `samples/s`"),
        ] {
            assert_eq!(complaint(from, to), expected);
        }
    }
}
