//! Rows of the results as CSV.

use super::{Row, Study, checksum};
use crate::sweep::spec::value_text;
use apportion::metrics::Metric;

/// Table with a line per run: axes, status, capacity, metrics, reason, version, digest, and the checksum of its row in the
/// database. It has no wall times, so the same results give the same bytes.
pub(super) fn render(study: &Study, rows: &[Row]) -> Vec<u8> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let axes = study.axes.iter().map(|(name, _)| name.as_str());
    let last = ["reason", "version", "digest", "checksum"];
    let head = axes.chain(["status", "capacity"]).chain(Metric::names()).chain(last);
    let mut records: Vec<Vec<String>> = vec![head.map(str::to_owned).collect()];
    for row in rows {
        let mut record: Vec<String> = row.values.iter().map(value_text).collect();
        record.push(row.outcome.status.to_string());
        record.push(number(row.outcome.capacity));
        record.extend(row.outcome.metrics.iter().map(|value| number(*value)));
        record.push(row.outcome.reason.clone().unwrap_or_default());
        record.push(row.version.clone());
        record.push(row.digest.clone());
        record.push(checksum::of_run(study, row));
        records.push(record);
    }
    for record in records {
        writer.write_record(record).expect("every record has one field per column, and memory takes all");
    }
    writer.into_inner().expect("memory takes all")
}

/// The shortest text that reads back as the same number; empty for none.
fn number(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}
