//! The format `apportion/throughputs-v1`.

use std::collections::BTreeMap;

use ndarray::Array3;
use serde::{Deserialize, Serialize};

use super::{FindingKind, Findings, ThroughputsFile, too_large};
use crate::spec::document::{Complaints, Unplaced};
use crate::spec::nearest::{name_list, suggestion};
use crate::spec::{Source, SpecError};
use crate::throughput::contention::{Contention, ContentionModel, NetworkModel, ResourceModel, measured};
use crate::throughput::{Measured, RowKey, Throughputs};

/// The value of `format`.
pub const FORMAT: &str = "apportion/throughputs-v1";

/// The only unit that is allowed.
const UNIT: &str = "steps/s";

/// The statements of a throughput file about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The name by which documents and commands refer to the matrix.
    pub name: String,
    /// The origin of the numbers.
    pub source: Origin,
}

/// The origin of measurements.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// The people or the group that measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// The publication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#where: Option<String>,
    /// The time of the measurements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// The licence under which the numbers may be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub licence: Option<String>,
    /// The hardware that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware: Option<String>,
    /// The software with which it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub software: Option<String>,
    /// Further notes for readers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A throughput matrix: the throughput of each job type on each worker type, alone and beside others. Files of it are named by
/// `--throughputs`, and made by `apportion throughputs import`.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    /// Kind and version of the document.
    #[cfg_attr(feature = "schema", schemars(extend("const" = FORMAT)))]
    #[expect(dead_code, reason = "checked before the document is read")]
    format: String,
    /// The name of the matrix.
    name: String,
    /// The unit of all throughputs.
    #[cfg_attr(feature = "schema", schemars(extend("const" = UNIT)))]
    unit: String,
    /// The origin of the numbers.
    #[serde(default)]
    source: Origin,
    /// Names of the worker types, the fastest first: the order of all lists by worker type. The first is the reference
    /// worker type, by which durations and Gavel's SLOs are measured.
    worker_types: Vec<String>,
    /// A row for each job type at each scale factor.
    rows: Vec<Row>,
    /// The fractions of throughput that jobs keep beside others. Without it, no jobs may share workers.
    colocation: Option<Colocation>,
}

/// The throughputs of a job type at a scale factor, alone on its workers.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Row {
    /// The job type.
    job_type: String,
    /// Workers that a job needs at once.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "workers")))]
    scale_factor: u32,
    /// Throughput with all workers on the fewest servers, for each worker type; null or 0 where it cannot run.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "steps/s")))]
    consolidated: Vec<Option<f64>>,
    /// Throughput with the workers on several servers, for each worker type; null where it was not measured.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "steps/s")))]
    unconsolidated: Option<Vec<Option<f64>>>,
}

/// The fractions of throughput that jobs keep beside others.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Colocation {
    /// The model of co-located throughputs. Only the section of that model may be given with it.
    model: Contention,
    /// The measured fractions for each worker type, by its name, if the model is `measured`.
    #[serde(default)]
    retained: BTreeMap<String, Vec<Retained>>,
    /// Demands for shared resources, if the model is `resource`.
    resource: Option<ResourceModel>,
    /// Traffic on the links between servers, if the model is `network`.
    network: Option<NetworkModel>,
}

impl Colocation {
    /// Whether it comes to a co-located throughput for each pair of rows: measured, or by a model.
    fn has_table(&self) -> bool {
        !self.retained.is_empty() || self.resource.is_some() || self.network.is_some()
    }
}

/// The fractions of its isolated throughput that one row keeps beside others.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Retained {
    /// The row's job type.
    job_type: String,
    /// The row's scale factor.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "workers")))]
    scale_factor: u32,
    /// The fraction kept beside each row of the same scale factor, in the order of `rows`; 0 or null if the two cannot share
    /// workers.
    beside: Vec<Option<f64>>,
}

/// The JSON Schema of such documents.
#[cfg(feature = "schema")]
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(Document)
}

pub(super) fn read(source: &Source) -> Result<ThroughputsFile, SpecError> {
    let document: Document = source.parse_format(FORMAT)?;
    let mut checker = Checker { source, complaints: Complaints::default(), findings: Findings::default() };
    checker.head(&document);
    let keys: Vec<RowKey> = document.rows.iter().map(|row| key(&row.job_type, row.scale_factor)).collect();
    let by_key = checker.index(&keys);
    let n_types = document.worker_types.len();
    let (mut alone, mut spread) = (Vec::new(), Vec::new());
    for (position, row) in document.rows.iter().enumerate() {
        checker.row(position, row, &document.worker_types);
        alone.push(row.consolidated.iter().map(|value| value.unwrap_or(0.0)).collect());
        spread.push(row.unconsolidated.clone().unwrap_or_else(|| vec![None; n_types]));
    }
    checker.stop_if_wrong()?;
    // Without measured fractions, there is no table of them: a model makes its own.
    let is_measured = document.colocation.as_ref().is_some_and(|colocation| !colocation.retained.is_empty());
    let n_beside = if is_measured { keys.len() } else { 0 };
    let mut retained = Array3::zeros((n_types.min(n_beside), n_beside, n_beside));
    let mut model = ContentionModel::None;
    if let Some(colocation) = document.colocation {
        model = checker.model(&colocation);
        for (worker_type, rows) in &colocation.retained {
            checker.table(worker_type, rows, (&document.worker_types, &keys, &by_key), &mut retained);
            checker.products(worker_type, rows, (&document.worker_types, &keys, &by_key), &alone);
        }
    }
    let findings = checker.finish()?;
    let mut measured = Measured {
        name: document.name.clone(),
        worker_types: document.worker_types,
        rows: keys,
        colocated: measured(&alone, &retained),
        consolidated: alone,
        spread,
    };
    if matches!(model, ContentionModel::Resource(_) | ContentionModel::Network(_)) {
        measured = modelled(source, measured, &model)?;
    }
    let header = Header { name: document.name, source: document.source };
    Ok(ThroughputsFile { header, measured, model, findings })
}

/// The measurements with the model's co-located throughputs.
fn modelled(source: &Source, measured: Measured, model: &ContentionModel) -> Result<Measured, SpecError> {
    let section = match model.kind() {
        Contention::Network => "colocation.network",
        _ => "colocation.resource",
    };
    let applied =
        Throughputs::try_new(measured).map_err(|error| source.error_at("rows", error.to_string(), None));
    model.apply(&applied?).map(|throughputs| super::measured_of(&throughputs)).map_err(|error| {
        let path = error.path().map_or_else(|| section.to_owned(), |path| format!("{section}.{path}"));
        source.error_at(&path, error.to_string(), None)
    })
}

fn key(job_type: &str, scale_factor: u32) -> RowKey {
    RowKey { job_type: job_type.to_owned(), scale_factor }
}

fn believable(value: f64) -> bool {
    value.is_finite() && value >= 0.0
}

/// Worker types, row keys, and rows by key.
type Names<'a> = (&'a [String], &'a [RowKey], &'a BTreeMap<RowKey, usize>);

/// A collector of errors, so that all are shown at once.
struct Checker<'a> {
    source: &'a Source,
    complaints: Complaints,
    findings: Findings,
}

impl Checker<'_> {
    fn complain(&mut self, path: &str, message: String, help: Option<String>) {
        self.complaints.push(|| Unplaced::at(path, message, help));
    }

    fn head(&mut self, document: &Document) {
        if document.unit != UNIT {
            self.complain("unit", format!("`{}`, expected `{UNIT}`", document.unit), None);
        }
        if document.worker_types.is_empty() {
            self.complain("worker_types", "no worker type, expected at least one".to_owned(), None);
        }
        let is_table = document.colocation.as_ref().is_some_and(Colocation::has_table);
        let too_large = || too_large(document.worker_types.len(), document.rows.len());
        if let Some(message) = is_table.then(too_large).flatten() {
            self.complain("rows", message, None);
        }
        for (position, name) in document.worker_types.iter().enumerate() {
            if document.worker_types[..position].contains(name) {
                self.complain(&format!("worker_types[{position}]"), format!("`{name}` is named twice"), None);
            }
        }
    }

    fn index(&mut self, keys: &[RowKey]) -> BTreeMap<RowKey, usize> {
        let mut by_key = BTreeMap::new();
        for (position, key) in keys.iter().enumerate() {
            if by_key.insert(key.clone(), position).is_some() {
                let RowKey { job_type, scale_factor } = key;
                let message =
                    format!("`{job_type}` at scale factor {scale_factor} comes twice, expected once");
                self.complain(&format!("rows[{position}]"), message, None);
            }
        }
        by_key
    }

    fn row(&mut self, position: usize, row: &Row, worker_types: &[String]) {
        let path = format!("rows[{position}]");
        if row.scale_factor == 0 {
            self.complain(&format!("{path}.scale_factor"), "0, expected at least 1".to_owned(), None);
        }
        let unconsolidated = row.unconsolidated.as_ref();
        let arrays = [("consolidated", Some(&row.consolidated)), ("unconsolidated", unconsolidated)];
        for (field, values) in arrays.into_iter().filter_map(|(field, values)| Some((field, values?))) {
            self.numbers(&format!("{path}.{field}"), values, worker_types.len());
        }
        for (value, worker_type) in row.consolidated.iter().zip(worker_types) {
            if value.unwrap_or(0.0) == 0.0 {
                let place = || format!("{} at {} on {worker_type}", row.job_type, row.scale_factor);
                self.findings.note(FindingKind::CannotRun, place);
            }
        }
        if row.scale_factor > 1 && unconsolidated.is_none_or(|values| values.contains(&None)) {
            let place = || format!("{} at {}", row.job_type, row.scale_factor);
            self.findings.note(FindingKind::MissingUnconsolidated, place);
        }
    }

    /// The contention model, with exactly the section that it reads.
    fn model(&mut self, colocation: &Colocation) -> ContentionModel {
        let (resource, network) = (&colocation.resource, &colocation.network);
        let sections = [
            ("retained", Contention::Measured, !colocation.retained.is_empty()),
            ("resource", Contention::Resource, resource.is_some()),
            ("network", Contention::Network, network.is_some()),
        ];
        for (section, _, _) in sections.iter().filter(|(_, kind, given)| *given && *kind != colocation.model)
        {
            let message = "not read by this `model`".to_owned();
            self.complain(&format!("colocation.{section}"), message, Some(format!("leave `{section}` out")));
        }
        match (colocation.model, resource, network) {
            (Contention::None, _, _) => ContentionModel::None,
            (Contention::Measured, _, _) => ContentionModel::Measured,
            (Contention::Resource, Some(model), _) => ContentionModel::Resource(model.clone()),
            (Contention::Network, _, Some(model)) => ContentionModel::Network(model.clone()),
            (kind, _, _) => {
                let section = if kind == Contention::Resource { "resource" } else { "network" };
                let help = format!("`apportion throughputs fit --model {section}` makes one");
                self.complain("colocation.model", format!("no `{section}` section beside it"), Some(help));
                ContentionModel::None
            }
        }
    }

    fn numbers(&mut self, path: &str, values: &[Option<f64>], expected: usize) {
        if values.len() != expected {
            self.complain(path, format!("{} values, expected {expected}", values.len()), None);
        }
        for (position, value) in values.iter().enumerate() {
            if let Some(value) = value.filter(|value| !believable(*value)) {
                let message = format!("{value}, expected a finite number, at least 0");
                self.complain(&format!("{path}[{position}]"), message, None);
            }
        }
    }

    fn table(&mut self, worker_type: &str, rows: &[Retained], names: Names<'_>, retained: &mut Array3<f64>) {
        let path = format!("colocation.retained.{worker_type}");
        let (worker_types, keys, by_key) = names;
        let Some(column) = worker_types.iter().position(|other| other == worker_type) else {
            let known = worker_types.iter().map(String::as_str);
            self.complaints.push(|| Unplaced::unknown_name(&path, "worker type", worker_type, known));
            return;
        };
        for (position, row) in rows.iter().enumerate() {
            let path = format!("{path}[{position}]");
            let Some(index) = by_key.get(&key(&row.job_type, row.scale_factor)).copied() else {
                let known = || {
                    let same = keys.iter().filter(|key| key.scale_factor == row.scale_factor);
                    same.map(|key| key.job_type.as_str())
                };
                let expected = match known().next() {
                    Some(_) => format!("expected one of {}", name_list(known())),
                    None => "expected a scale factor of `rows`".to_owned(),
                };
                let (job_type, scale_factor) = (&row.job_type, row.scale_factor);
                let message = format!("no row `{job_type}` at scale factor {scale_factor}, {expected}");
                let help = suggestion(job_type, known());
                self.complain(&format!("{path}.job_type"), message, help);
                continue;
            };
            let same_size = |(_, key): &(usize, &RowKey)| key.scale_factor == row.scale_factor;
            let others: Vec<usize> =
                keys.iter().enumerate().filter(same_size).map(|(other, _)| other).collect();
            self.numbers(&format!("{path}.beside"), &row.beside, others.len());
            for (other, fraction) in others.into_iter().zip(&row.beside) {
                retained[[column, index, other]] = fraction.unwrap_or(0.0);
            }
        }
    }

    /// Complains about parts that are retained of a throughput, `alone`, of which the product is not finite.
    fn products(&mut self, worker_type: &str, rows: &[Retained], names: Names<'_>, alone: &[Vec<f64>]) {
        let (worker_types, _, by_key) = names;
        let Some(column) = worker_types.iter().position(|other| other == worker_type) else { return };
        for (position, row) in rows.iter().enumerate() {
            let speeds = by_key.get(&key(&row.job_type, row.scale_factor)).map(|index| &alone[*index]);
            let Some(speed) = speeds.and_then(|speeds| speeds.get(column)) else { continue };
            for (beside, part) in row.beside.iter().enumerate() {
                let Some(part) = part.filter(|part| believable(*part) && !(speed * part).is_finite()) else {
                    continue;
                };
                let path = format!("colocation.retained.{worker_type}[{position}].beside[{beside}]");
                let message =
                    format!("{part} of {speed} steps/s, expected a part that leaves a finite number");
                self.complain(&path, message, None);
            }
        }
    }

    /// Stops at errors so far: shapes must be right before arrays are made.
    fn stop_if_wrong(&mut self) -> Result<(), SpecError> {
        self.source.all_at(std::mem::take(&mut self.complaints))
    }

    fn finish(mut self) -> Result<Vec<super::Finding>, SpecError> {
        self.stop_if_wrong()?;
        Ok(self.findings.into_list())
    }
}
