//! Benchmark results as tables.

use serde_json::Value;

use crate::output::{Cell, Table};
use apportion_studies::benchmark::measure::DEFAULT;
use apportion_studies::benchmark::{Row, Status};

/// Milliseconds to three digits.
fn time(seconds: f64) -> String {
    let ms = seconds * 1e3;
    match ms {
        _ if ms < 1.0 => format!("{ms:.3} ms"),
        _ if ms < 10.0 => format!("{ms:.2} ms"),
        _ if ms < 100.0 => format!("{ms:.1} ms"),
        _ => format!("{ms:.0} ms"),
    }
}

/// Parts of a hundred, to three digits; what rounds to none has no sign.
fn percent(part: f64) -> String {
    let text = format!("{:.3} %", 100.0 * part);
    if text == "-0.000 %" { "0.000 %".to_owned() } else { text }
}

fn instance(row: &Row) -> String {
    if row.seed == 0 { row.instance.clone() } else { format!("{} #{}", row.instance, row.seed) }
}

fn backend(row: &Row) -> String {
    if row.partitions == 1 { row.backend.clone() } else { format!("{} /{}", row.backend, row.partitions) }
}

/// One line a problem, one column a solver, a backend or a policy's own way: processor time, or why there is none.
pub(super) fn overview(rows: &[Row]) -> Table {
    let mut backends: Vec<String> = Vec::new();
    let mut problems: Vec<(String, String, usize)> = Vec::new();
    let problem = |row: &Row| (row.policy.clone(), instance(row), row.n_jobs);
    for row in rows {
        if !backends.contains(&backend(row)) {
            backends.push(backend(row));
        }
        if !problems.contains(&problem(row)) {
            problems.push(problem(row));
        }
    }
    let head = ["policy", "instance", "jobs"].into_iter().map(str::to_owned);
    let mut table = Table::new(head.chain(backends.iter().cloned()));
    for of in &problems {
        let cell = |name: &String| {
            let found = rows.iter().find(|row| problem(row) == *of && backend(row) == *name);
            match found {
                None => Cell::Empty,
                Some(row) if row.status == Status::Done => {
                    let uncertified = row.partitions == 1 && row.optimal == Some(false);
                    let mark = if uncertified { " (not certified)" } else { "" };
                    format!("{}{mark}", row.cost_seconds().map(time).unwrap_or_default()).into()
                }
                Some(row) => row.status.to_string().into(),
            }
        };
        let (policy, instance, n_jobs) = of;
        let named = [policy.clone().into(), instance.clone().into(), Cell::Count(*n_jobs as u64)];
        table.push(named.into_iter().chain(backends.iter().map(cell)).collect());
    }
    table
}

/// One arrival or departure beside a decision from scratch.
pub(super) fn changes(rows: &[Row]) -> Table {
    let mut table = Table::new([
        "policy",
        "instance",
        "jobs",
        "solver",
        "changes",
        "from scratch",
        "p50",
        "p99",
        "ratio",
    ]);
    for row in rows {
        let (Some(n), Some(p50), Some(p99)) = (row.changes, row.change_p50_seconds, row.change_p99_seconds)
        else {
            continue;
        };
        let scratch = row.cost_seconds();
        table.push(vec![
            row.policy.clone().into(),
            instance(row).into(),
            Cell::Count(row.n_jobs as u64),
            backend(row).into(),
            Cell::Count(u64::from(n)),
            scratch.map(time).unwrap_or_default().into(),
            time(p50).into(),
            time(p99).into(),
            scratch.map_or(Cell::Empty, |scratch| Cell::Number(scratch / p50, 1)),
        ]);
    }
    table
}

/// Where the time went and how good the answers are: of the default backends, or of all where none is.
pub(super) fn details(rows: &[Row]) -> Table {
    let mut table = Table::new([
        "policy",
        "instance",
        "jobs",
        "solver",
        "strategy",
        "classes",
        "build ms",
        "solve ms",
        "certify ms",
        "expand ms",
        "solves",
        "iterations",
        "peak MiB",
        "objective",
        "gap",
        "violation",
        "loss",
    ]);
    let by_default = rows.iter().any(|row| row.backend == DEFAULT);
    let shown = |row: &&Row| row.status == Status::Done && (!by_default || row.backend == DEFAULT);
    for row in rows.iter().filter(shown) {
        let seconds = row.seconds.unwrap_or_default();
        let ms = |seconds: f64| Cell::Number(seconds * 1e3, 2);
        let count = |value: Option<u64>| value.map_or(Cell::Empty, Cell::Count);
        let scientific =
            |value: Option<f64>| value.map_or(Cell::Empty, |value| format!("{value:.0e}").into());
        let loss = row.loss_relative.map_or(Cell::Empty, |loss| percent(loss).into());
        table.push(vec![
            row.policy.clone().into(),
            instance(row).into(),
            Cell::Count(row.n_jobs as u64),
            backend(row).into(),
            row.strategy.clone().map_or(Cell::Empty, Cell::from),
            count(row.n_classes.map(|n| n as u64)),
            ms(seconds.build),
            ms(seconds.solve),
            ms(seconds.certify),
            ms(seconds.expand),
            count(row.solves.map(u64::from)),
            count(row.iterations),
            count(row.memory_peak_bytes.map(|bytes| bytes >> 20)),
            row.objective.map_or(Cell::Empty, |value| format!("{value:.6e}").into()),
            scientific(row.gap_relative),
            scientific(row.violation_max),
            loss,
        ]);
    }
    table
}

/// Why cases were not done, or not wholly, one after another; none if all were.
pub(super) fn reasons(rows: &[Row]) -> Option<String> {
    let reason = |row: &Row| {
        let message = row.message.as_deref().unwrap_or("no reason is known").replace('\n', "\n    ");
        let jobs = if row.n_jobs == 0 { String::new() } else { format!(", {} jobs", row.n_jobs) };
        let place = format!("{}, {}{jobs}, {}", row.policy, instance(row), backend(row));
        format!("\n  {place}: {}: {message}", row.status)
    };
    let told = rows.iter().filter(|row| row.status != Status::Done || row.message.is_some());
    let text: String = told.map(reason).collect();
    (!text.is_empty()).then(|| format!("why:{text}"))
}

/// Every row with every field of its JSON, times side by side with the rest.
pub(super) fn flat(rows: &[Row]) -> Table {
    let names: Vec<String> = fields(&Row::of("", "", "", 1)).into_iter().map(|(name, _)| name).collect();
    let mut table = Table::new(names);
    for row in rows {
        table.push(fields(row).into_iter().map(|(_, value)| cell(value)).collect());
    }
    table
}

fn fields(row: &Row) -> Vec<(String, Value)> {
    let object = |value: serde_json::Result<Value>| match value {
        Ok(Value::Object(object)) => object,
        _ => unreachable!("a row and its times are objects"),
    };
    let mut fields = Vec::new();
    for (name, value) in object(serde_json::to_value(row)) {
        if name != "seconds" {
            fields.push((name, value));
            continue;
        }
        for (part, seconds) in object(serde_json::to_value(row.seconds.unwrap_or_default())) {
            let seconds = if row.seconds.is_some() { seconds } else { Value::Null };
            fields.push((format!("seconds_{part}"), seconds));
        }
    }
    fields
}

fn cell(value: Value) -> Cell {
    match value {
        Value::Null => Cell::Empty,
        Value::Number(number) => match (number.as_u64(), number.as_f64()) {
            (Some(count), _) => Cell::Count(count),
            (None, Some(0.0)) => Cell::Number(0.0, 0),
            // (of a gap, six decimals are zeros)
            (None, Some(value)) if value.abs() < 1e-3 => Cell::Scientific(value),
            (None, Some(value)) => Cell::Number(value, 6),
            (None, None) => Cell::Empty,
        },
        Value::String(text) => text.into(),
        other => other.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rounds_to_no_loss_has_no_sign() {
        assert_eq!([-1e-9, -0.0, 0.0, 0.022].map(percent), ["0.000 %", "0.000 %", "0.000 %", "2.200 %"]);
        assert_eq!(percent(-1e-4), "-0.010 %");
    }
}
