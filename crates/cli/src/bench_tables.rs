//! Benchmark results as tables.

use serde_json::Value;

use crate::output::{Cell, Table};
use apportion::units::Decimals;
use apportion_studies::benchmark::measure::DEFAULT;
use apportion_studies::benchmark::{Results, Row, Status};
use apportion_studies::report::plain::plain;

/// A time in milliseconds, to three digits.
fn time(seconds: f64) -> String {
    format!("{} ms", milliseconds(seconds))
}

fn milliseconds(seconds: f64) -> String {
    let ms = seconds * 1e3;
    match ms {
        _ if ms < 1.0 => Decimals(ms, 3).to_string(),
        _ if ms < 10.0 => format!("{ms:.2}"),
        _ if ms < 100.0 => format!("{ms:.1}"),
        _ => format!("{ms:.0}"),
    }
}

/// `2.31 (2.20-2.90) ms`: the median, the least and the most; marked if the row's measure differs from the others'.
fn cost(row: &Row) -> String {
    let median = row.cost_seconds().map(milliseconds).unwrap_or_default();
    let range = row.cost_range_seconds();
    let range = range
        .map(|(least, most)| format!(" ({}-{})", milliseconds(least), milliseconds(most)))
        .unwrap_or_default();
    let uncertified = row.partitions == 1 && row.optimal == Some(false);
    let marks = [
        (row.is_by_clock(), "by the clock"),
        (row.warm_ups == Some(0), "cold"),
        (row.cut_by.is_some(), "cut short"),
        (uncertified, "not certified"),
    ];
    let marks = marks.iter().filter(|(is, _)| *is).map(|(_, mark)| (*mark).to_owned());
    std::iter::once(format!("{median}{range} ms")).chain(marks).collect::<Vec<_>>().join(", ")
}

/// A part in percent, to three decimals.
fn percent(part: f64) -> String {
    format!("{} %", Decimals(100.0 * part, 3))
}

fn instance(row: &Row) -> String {
    if row.seed == 0 { row.instance.clone() } else { format!("{} #{}", row.instance, row.seed) }
}

fn backend(row: &Row) -> String {
    if row.partitions == 1 { row.backend.clone() } else { format!("{} /{}", row.backend, row.partitions) }
}

/// A table with a line for each problem, and a column for each solver, backend or policy's own way: the cost, or why there is none.
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
                Some(row) if row.status == Status::Done => cost(row).into(),
                Some(row) => row.status.to_string().into(),
            }
        };
        let (policy, instance, n_jobs) = of;
        let named = [policy.clone().into(), instance.clone().into(), Cell::Count(*n_jobs as u64)];
        table.push(named.into_iter().chain(backends.iter().map(cell)).collect());
    }
    table
}

/// A table of the cost of one arrival or departure, beside that of a decision from scratch.
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

/// A table of times by phase and of gaps: of the default backends, or of all if there is no default one.
pub(super) fn details(rows: &[Row]) -> Table {
    let mut table = Table::new([
        "policy",
        "instance",
        "jobs",
        "solver",
        "strategy",
        "classes",
        "repeats",
        "processor ms",
        "clock ms",
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
            Cell::Count(u64::from(row.repeats)),
            seconds.processor.map_or(Cell::Empty, ms),
            ms(seconds.total),
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

/// A note on backends that answer and never give dual values, once for the whole table; none if there are none.
pub(super) fn unproven(rows: &[Row]) -> Option<String> {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for row in rows.iter().filter(|row| row.status == Status::Unproven) {
        match counts.iter_mut().find(|(name, _)| *name == row.backend) {
            Some((_, n)) => *n += 1,
            None => counts.push((row.backend.clone(), 1)),
        }
    }
    let note = |(name, n): &(String, usize)| {
        let cases = if *n == 1 { "1 case".to_owned() } else { format!("{n} cases") };
        format!(
            "note: {} gives no dual values, so nothing proves its optima: {cases} without a time",
            plain(name)
        )
    };
    let notes: Vec<String> = counts.iter().map(note).collect();
    (!notes.is_empty()).then(|| notes.join("\n"))
}

/// The reasons for which cases were not done, or not wholly, and solvers' remarks on several cases; none if all were done. Backends
/// without proofs are in [`unproven`].
pub(super) fn reasons(rows: &[Row]) -> Option<String> {
    let told =
        |row: &&Row| row.status != Status::Unproven && (row.status != Status::Done || row.message.is_some());
    let mut same: Vec<Vec<&Row>> = Vec::new();
    for row in rows.iter().filter(told) {
        let alike = |other: &Row| {
            (&other.message, other.status, backend(other)) == (&row.message, row.status, backend(row))
        };
        match same.iter_mut().find(|rows| rows.first().is_some_and(|first| alike(first))) {
            Some(rows) => rows.push(row),
            None => same.push(vec![row]),
        }
    }
    let reason = |rows: &Vec<&Row>| {
        let row = rows.first()?;
        let message = row.message.as_deref().unwrap_or("no reason is known").replace('\n', "\n    ");
        let jobs = if row.n_jobs == 0 { String::new() } else { format!(", {} jobs", row.n_jobs) };
        let place = match rows.len() {
            1 => format!("{}, {}{jobs}, {}", row.policy, instance(row), backend(row)),
            n => format!("{n} cases, {}", backend(row)),
        };
        Some(format!("\n  {place}: {}: {message}", row.status))
    };
    let text: String = same.iter().filter_map(reason).collect();
    (!text.is_empty()).then(|| format!("why:{text}"))
}

/// The meaning of the tables' times.
pub(super) fn heading(rows: &[Row]) -> String {
    let done = || rows.iter().filter(|row| row.status == Status::Done);
    let by_clock = done().any(Row::is_by_clock);
    let time = match (by_clock, done().all(Row::is_by_clock)) {
        (true, true) => "clock time (the system tells no processor time)",
        (true, false) => "processor time, where not marked,",
        (false, _) => "processor time",
    };
    format!("{time} of one decision, after one to warm up: median (least-most) of its repeats\n\n")
}

/// The system on which the times were measured.
pub(super) fn footer(results: &Results) -> String {
    let system = &results.system;
    format!(
        "processor: {}, {} cores; {} {}; apportion {}",
        plain(&system.processor),
        system.cores,
        system.os,
        system.architecture,
        plain(&results.version)
    )
}

/// A table of all rows with all fields of their JSON, times side by side with the rest.
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
            // Six decimals would show such a gap as zero.
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
    fn no_loss_has_no_sign_and_the_smallest_is_not_zero() {
        assert_eq!([-1e-9, -0.0, 0.0, 0.022].map(percent), ["-1.0e-7 %", "0.000 %", "0.000 %", "2.200 %"]);
        assert_eq!(percent(-1e-4), "-0.010 %");
    }
}
