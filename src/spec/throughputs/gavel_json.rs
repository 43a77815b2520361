//! Gavel's throughputs: JSON of worker type → `('job type', scale factor)` → `null` (alone, a number) or another such key (beside
//! it: [this row's, the other's]). A worker type `X_unconsolidated` holds X's throughputs with the workers on several servers.
//!
//! Nothing in it is trusted: parts that cannot be used are dropped and reported.

use std::collections::BTreeMap;

use ndarray::Array3;
use serde_json::{Map, Value};

use super::document::{Header, Origin};
use super::{FindingKind, Findings, ThroughputsFile, too_large};
use crate::spec::document::{Complaints, Unplaced};
use crate::spec::{Place, Source, SpecError};
use crate::throughput::{ContentionModel, Measured, RowKey};

const UNCONSOLIDATED: &str = "_unconsolidated";

/// Whether the text is a JSON object without the `format` of our own documents.
pub(super) fn is_gavel(text: &str) -> bool {
    let head = text.trim_start();
    let Some(inside) = head.strip_prefix('{') else { return false };
    // Our own documents, written as JSON, begin with a plain key; Gavel's second level is another object.
    let object = inside.find('{').unwrap_or(inside.len());
    !inside[..object].contains("\"format\"") && !inside[..object].contains("format:")
}

pub(super) fn read(source: &Source, name: &str) -> Result<ThroughputsFile, SpecError> {
    let document: Map<String, Value> = serde_json::from_str(&source.text).map_err(|error| {
        let message = format!("not Gavel's throughputs: {}", plain(&error));
        let help = "expected an object of worker types, or `format: apportion/throughputs-v1`".to_owned();
        source.at(error.line(), error.column(), message, Some(help))
    })?;
    let mut reader = Reader { source, complaints: Complaints::default(), findings: Findings::default() };
    let mut tables = BTreeMap::new();
    let mut worker_types = Vec::new();
    for (worker_type, table) in &document {
        tables.insert(worker_type.as_str(), reader.table(worker_type, table));
        if !worker_type.ends_with(UNCONSOLIDATED) {
            worker_types.push(worker_type.clone());
        }
    }
    for worker_type in document.keys() {
        if let Some(base) = worker_type.strip_suffix(UNCONSOLIDATED)
            && !tables.contains_key(base)
        {
            reader.findings.note(FindingKind::OrphanUnconsolidated, || worker_type.clone());
        }
    }
    if worker_types.is_empty() {
        reader.complain(&[], "no worker type, expected at least one".to_owned());
    }
    let rows = rows_of(&document, &worker_types);
    if let Some(message) = too_large(worker_types.len(), rows.len()) {
        reader.complain(&[], message);
    }
    reader.stop_if_wrong()?;
    fastest_first(&mut worker_types, &tables, &rows);
    let alone = reader.alone(&worker_types, &rows, &tables);
    let spread = reader.spread(&worker_types, &rows, &tables);
    let colocated = reader.colocated(&worker_types, &rows, &tables, &alone);
    let findings = reader.findings.into_list();
    let measured =
        Measured { name: name.to_owned(), worker_types, rows, consolidated: alone, spread, colocated };
    let header = Header { name: name.to_owned(), source: Origin::default() };
    Ok(ThroughputsFile { header, measured, model: ContentionModel::Measured, findings })
}

/// One worker type's entries: for each row, steps/s alone and pairs [own, other's] by the other row.
type Table = BTreeMap<RowKey, Entry>;

#[derive(Debug, Default)]
struct Entry {
    alone: f64,
    beside: BTreeMap<RowKey, [f64; 2]>,
}

/// Reads a key such as `('ResNet-18 (batch size 16)', 1)`.
fn parse_key(text: &str) -> Option<RowKey> {
    let inside = text.trim().strip_prefix('(')?.strip_suffix(')')?;
    let (job_type, scale_factor) = inside.rsplit_once(',')?;
    let job_type = job_type.trim();
    let quote = job_type.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let job_type = job_type.strip_prefix(quote)?.strip_suffix(quote)?;
    let scale_factor: u32 = scale_factor.trim().parse().ok()?;
    (scale_factor > 0 && !job_type.is_empty()).then(|| RowKey { job_type: job_type.to_owned(), scale_factor })
}

fn show(key: &RowKey) -> String {
    format!("{} at {}", key.job_type, key.scale_factor)
}

/// The message of serde_json without the place, which is shown apart.
fn plain(error: &serde_json::Error) -> String {
    let message = error.to_string();
    message.split(" at line ").next().unwrap_or_default().to_owned()
}

/// Every row that some worker type has, in the order of the file.
fn rows_of(document: &Map<String, Value>, worker_types: &[String]) -> Vec<RowKey> {
    let mut seen = BTreeMap::new();
    let tables = worker_types.iter().filter_map(|worker_type| document.get(worker_type)?.as_object());
    for key in tables.flat_map(Map::keys).filter_map(|key| parse_key(key)) {
        let next = seen.len();
        seen.entry(key).or_insert(next);
    }
    let mut rows: Vec<(usize, RowKey)> = seen.into_iter().map(|(key, position)| (position, key)).collect();
    rows.sort_by_key(|(position, _)| *position);
    rows.into_iter().map(|(_, key)| key).collect()
}

/// Sorts worker types by the geometric mean of their throughputs over the rows that all of them run.
fn fastest_first(worker_types: &mut [String], tables: &BTreeMap<&str, Table>, rows: &[RowKey]) {
    let alone = |worker_type: &String, row: &RowKey| -> f64 {
        tables.get(worker_type.as_str()).and_then(|table| table.get(row)).map_or(0.0, |entry| entry.alone)
    };
    let everywhere: Vec<&RowKey> = rows
        .iter()
        .filter(|row| worker_types.iter().all(|worker_type| alone(worker_type, row) > 0.0))
        .collect();
    let speed =
        |worker_type: &String| -> f64 { everywhere.iter().map(|row| alone(worker_type, row).ln()).sum() };
    worker_types.sort_by(|one, other| speed(other).total_cmp(&speed(one)).then_with(|| one.cmp(other)));
}

struct Reader<'a> {
    source: &'a Source,
    complaints: Complaints,
    findings: Findings,
}

impl Reader<'_> {
    fn complain(&mut self, keys: &[&str], message: String) {
        self.complaints.push(|| {
            let (line, column) = locate(&self.source.text, keys);
            Unplaced::at_place(Place { line, column, width: 1 }, message, None)
        });
    }

    fn table(&mut self, worker_type: &str, table: &Value) -> Table {
        let Value::Object(rows) = table else {
            self.complain(&[worker_type], format!("`{worker_type}`: expected an object of job types"));
            return Table::new();
        };
        let mut entries = Table::new();
        for (text, row) in rows {
            let Some(key) = parse_key(text) else {
                let message = format!("key `{text}`, expected `('job type', scale factor)`");
                self.complain(&[worker_type, text], message);
                continue;
            };
            entries.insert(key, self.entry(worker_type, text, row));
        }
        entries
    }

    fn entry(&mut self, worker_type: &str, row: &str, value: &Value) -> Entry {
        let mut entry = Entry::default();
        let Value::Object(others) = value else {
            self.complain(&[worker_type, row], format!("`{row}`: expected an object of throughputs"));
            return entry;
        };
        if !others.contains_key("null") {
            self.complain(
                &[worker_type, row],
                format!("`{row}`: no isolated throughput, expected key `null`"),
            );
        }
        for (other, value) in others {
            if other == "null" {
                match value.as_f64().filter(|value| *value >= 0.0) {
                    Some(alone) => entry.alone = alone,
                    None => self.complain(
                        &[worker_type, row, other],
                        format!("isolated throughput {value}, expected a number of steps/s, at least 0"),
                    ),
                }
                continue;
            }
            let Some(key) = parse_key(other) else {
                let message = format!("key `{other}`, expected `null` or `('job type', scale factor)`");
                self.complain(&[worker_type, row, other], message);
                continue;
            };
            let numbers: Option<Vec<f64>> = value
                .as_array()
                .and_then(|pair| pair.iter().map(|n| n.as_f64().filter(|n| *n >= 0.0)).collect());
            match numbers.as_deref() {
                Some([own, others]) => drop(entry.beside.insert(key, [*own, *others])),
                _ => self.complain(
                    &[worker_type, row, other],
                    format!(
                        "co-located throughputs {}, expected two numbers of steps/s, at least 0",
                        brief(value)
                    ),
                ),
            }
        }
        entry
    }

    fn alone(&mut self, types: &[String], rows: &[RowKey], tables: &BTreeMap<&str, Table>) -> Vec<Vec<f64>> {
        let mut alone = Vec::with_capacity(rows.len());
        for row in rows {
            let mut values = Vec::with_capacity(types.len());
            for worker_type in types {
                let place = || format!("{} on {worker_type}", show(row));
                let entry = tables[worker_type.as_str()].get(row);
                match entry.map(|entry| entry.alone) {
                    None => self.findings.note(FindingKind::MissingRow, place),
                    Some(0.0) => self.findings.note(FindingKind::CannotRun, place),
                    Some(_) => {}
                }
                values.push(entry.map_or(0.0, |entry| entry.alone));
            }
            alone.push(values);
        }
        alone
    }

    fn spread(
        &mut self,
        types: &[String],
        rows: &[RowKey],
        tables: &BTreeMap<&str, Table>,
    ) -> Vec<Vec<Option<f64>>> {
        let mut spread = Vec::with_capacity(rows.len());
        for row in rows {
            let mut values = Vec::with_capacity(types.len());
            for worker_type in types {
                let apart = format!("{worker_type}{UNCONSOLIDATED}");
                let entry = tables.get(apart.as_str()).and_then(|table| table.get(row));
                let place = || format!("{} on {worker_type}", show(row));
                if entry.is_none() {
                    self.findings.note(FindingKind::MissingUnconsolidated, place);
                }
                let together = tables[worker_type.as_str()].get(row);
                for (other, pair) in entry.iter().flat_map(|entry| &entry.beside) {
                    let place = || format!("{} beside {} on {apart}", show(row), show(other));
                    self.findings.note(FindingKind::UnconsolidatedPair, place);
                    if together.and_then(|entry| entry.beside.get(other)) != Some(pair) {
                        self.findings.note(FindingKind::UnconsolidatedPairDiffers, place);
                    }
                }
                values.push(entry.map(|entry| entry.alone));
            }
            spread.push(values);
        }
        spread
    }

    fn colocated(
        &mut self,
        types: &[String],
        rows: &[RowKey],
        tables: &BTreeMap<&str, Table>,
        alone: &[Vec<f64>],
    ) -> Array3<f64> {
        let has_pairs = tables.values().flat_map(BTreeMap::values).any(|entry| !entry.beside.is_empty());
        let n_beside = if has_pairs { rows.len() } else { 0 };
        let mut colocated = Array3::zeros((types.len().min(n_beside), n_beside, n_beside));
        let index: BTreeMap<&RowKey, usize> = rows.iter().enumerate().map(|(i, row)| (row, i)).collect();
        for (column, worker_type) in types.iter().enumerate() {
            let table = &tables[worker_type.as_str()];
            for (row, entry) in table {
                for (other, [own, others]) in &entry.beside {
                    let place = || format!("{} beside {} on {worker_type}", show(row), show(other));
                    let (Some(i), Some(j)) = (index.get(row).copied(), index.get(other).copied()) else {
                        self.findings.note(FindingKind::UnknownOther, place);
                        continue;
                    };
                    if row.scale_factor != other.scale_factor {
                        self.findings.note(FindingKind::MixedScaleFactors, place);
                        continue;
                    }
                    let mut keep = |own: f64, i: usize, j: usize, findings: &mut Findings| {
                        if alone[i][column] == 0.0 && own > 0.0 {
                            findings.note(FindingKind::ColocatedOnly, place);
                        } else {
                            colocated[[column, i, j]] = own;
                        }
                        if own > alone[i][column] && alone[i][column] > 0.0 {
                            findings.note(FindingKind::FasterTogether, place);
                        }
                    };
                    keep(*own, i, j, &mut self.findings);
                    match table.get(other).and_then(|entry| entry.beside.get(row)) {
                        None => {
                            self.findings.note(FindingKind::OneSidedPair, place);
                            keep(*others, j, i, &mut self.findings);
                        }
                        // Each disagreement is met from both sides, and noted from one.
                        Some(reverse)
                            if row <= other
                                && reverse.map(f64::to_bits) != [others.to_bits(), own.to_bits()] =>
                        {
                            self.findings.note(FindingKind::AsymmetricPair, place);
                        }
                        Some(_) => {}
                    }
                    if row <= other && (*own > 0.0) != (*others > 0.0) {
                        self.findings.note(FindingKind::HalfPair, place);
                    }
                }
            }
        }
        colocated
    }

    /// Stops at errors so far: entries must be right before arrays are made.
    fn stop_if_wrong(&mut self) -> Result<(), SpecError> {
        self.source.all_at(std::mem::take(&mut self.complaints))
    }
}

/// A value short enough for a message.
fn brief(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() > 40 { text.chars().take(40).chain(['…']).collect() } else { text }
}

/// Line and column of the value under nested keys; of the deepest key that is found.
fn locate(text: &str, keys: &[&str]) -> (usize, usize) {
    let mut place = (1, 1);
    let mut depth_wanted = 1;
    let (mut depth, mut at) = (0_usize, 0_usize);
    let mut keys = keys.iter();
    let Some(mut wanted) = keys.next() else { return place };
    let bytes = text.as_bytes();
    while at < bytes.len() {
        match bytes[at] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let start = at;
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                let inside = text.get(start..(at + 1).min(text.len())).unwrap_or_default();
                let is_key = text.get(at + 1..).is_some_and(|rest| rest.trim_start().starts_with(':'));
                if is_key
                    && depth == depth_wanted
                    && serde_json::from_str::<String>(inside).ok().as_deref() == Some(*wanted)
                {
                    place = line_and_column(text, start);
                    let Some(next) = keys.next() else { return place };
                    wanted = next;
                    depth_wanted += 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    place
}

fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..offset];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}
