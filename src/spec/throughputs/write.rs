//! The writer of our format: one line a row, so that people can read it and a diff shows what changed.

use std::fmt::Write;

use ndarray::Array3;

use super::document::{FORMAT, Header, Origin};
use crate::index::Id;
use crate::throughput::contention::retention;
use crate::throughput::{Measured, RowKey, Throughputs};

/// The document that [`read_throughputs`](super::read_throughputs) reads back: isolated throughputs to the last
/// bit, co-located ones within one unit in the last place.
pub fn write_throughputs(header: &Header, measured: &Measured) -> String {
    let mut text = write_isolated(header, measured);
    write_colocation(&mut text, measured);
    text
}

/// The document up to `colocation`.
pub(super) fn write_isolated(header: &Header, measured: &Measured) -> String {
    let mut text = format!("format: {FORMAT}\nname: {}\nunit: steps/s\n", scalar(&header.name));
    write_origin(&mut text, &header.source);
    let types: Vec<String> = measured.worker_types.iter().map(|name| scalar(name)).collect();
    push(&mut text, format_args!("worker_types: [{}]          # fastest first\n\n", types.join(", ")));
    text.push_str("# Alone, per worker type: all workers on the fewest servers, and on several servers.\n");
    text.push_str("# 0 = cannot run there; null = not measured.\nrows:\n");
    for (row, key) in measured.rows.iter().enumerate() {
        let alone = list(measured.consolidated[row].iter().copied().map(Some));
        push(&mut text, format_args!("  - {{{}, consolidated: {alone}", row_key(key)));
        if measured.spread[row].iter().any(Option::is_some) {
            let spread = list(measured.spread[row].iter().copied());
            push(&mut text, format_args!(", unconsolidated: {spread}"));
        }
        text.push_str("}\n");
    }
    text
}

/// The measurements of a matrix, as they were given to it.
pub fn measured_of(throughputs: &Throughputs) -> Measured {
    let rows: Vec<RowKey> = throughputs.rows().iter().cloned().collect();
    let types = throughputs.worker_types();
    let ids: Vec<_> = throughputs.rows().ids().collect();
    let n_beside = if throughputs.shares_nothing() { 0 } else { rows.len() };
    let shape = (types.len().min(n_beside), n_beside, n_beside);
    let colocated = Array3::from_shape_fn(shape, |(column, row, other)| {
        throughputs.colocated(ids[row], ids[other], Id::from_index(column))
    });
    Measured {
        name: throughputs.name().to_owned(),
        worker_types: types.iter().cloned().collect(),
        consolidated: ids
            .iter()
            .map(|row| types.ids().map(|column| throughputs.alone(*row, column)).collect())
            .collect(),
        spread: ids
            .iter()
            .map(|row| types.ids().map(|column| throughputs.spread(*row, column)).collect())
            .collect(),
        rows,
        colocated,
    }
}

fn write_origin(text: &mut String, origin: &Origin) {
    let fields = [
        ("who", &origin.who),
        ("where", &origin.r#where),
        ("when", &origin.when),
        ("licence", &origin.licence),
        ("hardware", &origin.hardware),
        ("software", &origin.software),
        ("note", &origin.note),
    ];
    if fields.iter().all(|(_, value)| value.is_none()) {
        return;
    }
    text.push_str("source:\n");
    for (field, value) in fields {
        if let Some(value) = value {
            push(text, format_args!("  {field}: {}\n", scalar(value)));
        }
    }
}

fn write_colocation(text: &mut String, measured: &Measured) {
    if measured.colocated.iter().all(|value| *value == 0.0) {
        return;
    }
    text.push_str(
        "\n# The fraction of its isolated throughput that a row keeps beside each row of its scale factor,\n",
    );
    text.push_str("# in the order of `rows`; 0 = cannot share workers.\n");
    text.push_str("colocation:\n  model: measured\n  retained:\n");
    for (column, worker_type) in measured.worker_types.iter().enumerate() {
        push(text, format_args!("    {}:\n", scalar(worker_type)));
        for (row, key) in measured.rows.iter().enumerate() {
            let same_size = |other: &usize| measured.rows[*other].scale_factor == key.scale_factor;
            let alone = measured.consolidated[row][column];
            let kept = (0..measured.rows.len())
                .filter(same_size)
                .map(|other| Some(retention(alone, measured.colocated[[column, row, other]])));
            push(text, format_args!("      - {{{}, beside: {}}}\n", row_key(key), list(kept)));
        }
    }
}

pub(super) fn push(text: &mut String, piece: std::fmt::Arguments<'_>) {
    text.write_fmt(piece).expect("writing to a string cannot fail");
}

fn row_key(key: &RowKey) -> String {
    format!("job_type: {}, scale_factor: {}", scalar(&key.job_type), key.scale_factor)
}

/// A list `[1, 0.5, null]`: each number with as many digits as give the same bits back.
pub(super) fn list(values: impl Iterator<Item = Option<f64>>) -> String {
    let shown: Vec<String> =
        values.map(|value| value.map_or_else(|| "null".to_owned(), |value| value.to_string())).collect();
    format!("[{}]", shown.join(", "))
}

/// A string as a YAML scalar, quoted unless it is plainly a name.
pub(super) fn scalar(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || " -_().".contains(c);
    let starts_as_name = value.starts_with(|c: char| c.is_ascii_alphabetic());
    let reserved = ["true", "false", "null", "yes", "no", "on", "off", "nan", "inf"];
    let is_reserved = reserved.contains(&value.to_ascii_lowercase().as_str());
    if starts_as_name && !is_reserved && value.chars().all(plain) && !value.ends_with(' ') {
        value.to_owned()
    } else {
        // A JSON string is a YAML double-quoted scalar.
        serde_json::Value::from(value).to_string()
    }
}
