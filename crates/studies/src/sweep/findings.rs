//! Numbers of a study's page, from its rows: points over seeds, distributions over jobs, the baseline.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::report::study::{Panel, Point, Published, PublishedPoint, Study as Findings};
use crate::report::{Cell, Table};
use crate::sweep::outcome::{JobRow, Status};
use crate::sweep::spec::{self, value_text};
use crate::sweep::store::{Row, Store, StoreError, Study};
use crate::sweep::summary::given_up;
use apportion::metrics::cdf::Cdf;
use apportion::metrics::statistics::{Paired, Repeated};
use apportion::metrics::table::Prominence;
use apportion::metrics::{METRICS, Metric};
use apportion::spec::run::sha256;

/// The most combinations of values that one chart compares where there is one policy.
const COMPARED_MAX: usize = 8;

/// Roles of a study's axes on its page.
#[derive(Clone, Debug, PartialEq)]
pub struct Roles {
    /// Compared axes: the policy, or else the first axis with words as values. With a single policy, all axes that are
    /// neither the x axis nor repeated over, if they have a few values together.
    pub series: Vec<usize>,
    /// Axis of the x coordinate: the arrival rate, or else the first whose values are numbers.
    pub x: Option<usize>,
    /// Axis over which runs are repeated.
    pub seed: Option<usize>,
    /// All other axes.
    pub others: Vec<usize>,
}

/// The last part of an axis's name.
fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

impl Roles {
    /// The roles of the axes of these rows.
    pub fn of(study: &Study, rows: &[Row]) -> Self {
        let named = |wanted: &str| study.axes.iter().position(|(name, _)| last_part(name) == wanted);
        let seed = study.seed_axis();
        let free = |axis: &usize| Some(*axis) != seed;
        let all_numbers = |axis: &usize| rows.iter().all(|row| row.values[*axis].is_number());
        let mut axes = (0..study.axes.len()).filter(free);
        let series = named("policy").or_else(|| axes.clone().find(|axis| !all_numbers(axis)));
        let rate = named("rate").filter(all_numbers);
        let x = rate.or_else(|| axes.find(|axis| Some(*axis) != series && all_numbers(axis)));
        let others: Vec<usize> = (0..study.axes.len())
            .filter(free)
            .filter(|axis| Some(*axis) != series && Some(*axis) != x)
            .collect();
        let different = |axes: &[usize]| {
            let values =
                |row: &Row| axes.iter().map(|axis| value_text(&row.values[*axis])).collect::<Vec<_>>();
            rows.iter().map(values).collect::<BTreeSet<_>>().len()
        };
        let is_alone = series.is_some_and(|axis| different(&[axis]) == 1);
        if is_alone && (2..=COMPARED_MAX).contains(&different(&others)) {
            return Self { series: others, x, seed, others: series.into_iter().collect() };
        }
        Self { series: series.into_iter().collect(), x, seed, others }
    }
}

/// Numbers of a page about results. `baseline` is the compared value against which the others are held; the first if not
/// given.
///
/// # Errors
/// `Ok(Err(names))` if no run has this baseline, with the names that exist; an error if jobs cannot be read.
pub fn of(store: &Store, baseline: Option<&str>) -> Result<Result<Findings, Vec<String>>, StoreError> {
    let (study, rows) = (store.study(), store.rows()?);
    let roles = Roles::of(study, &rows);
    let name_of = |row: &Row| series_name(study, &roles, row);
    let mut series: Vec<String> = Vec::new();
    for row in &rows {
        let name = name_of(row);
        if !series.contains(&name) {
            series.push(name);
        }
    }
    let found = baseline.map_or(Some(0), |wanted| series.iter().position(|name| name == wanted));
    let Some(baseline) = found else { return Ok(Err(series)) };
    let mut panels: Vec<(String, Vec<&Row>)> = Vec::new();
    for row in &rows {
        let label = panel_label(study, &roles, row);
        match panels.iter_mut().find(|(other, _)| *other == label) {
            Some((_, members)) => members.push(row),
            None => panels.push((label, vec![row])),
        }
    }
    let seeds = study.seed_texts(&rows);
    let n_seeds = seeds.len().max(1);
    let mut finished = Vec::new();
    for (label, members) in panels {
        let mut points = Vec::new();
        for group in grouped(&members, |row| (name_of(row), place(&roles, row))) {
            points.push(Point {
                series: group.first().map(|row| name_of(row)).map_or(0, |name| position(&series, &name)),
                x: group.first().and_then(|row| place(&roles, row)),
                by_seed: by_seed(&group, &roles, &seeds),
                ..point(store, &group, n_seeds)?
            });
        }
        hold_against(
            &mut points,
            baseline,
            |series_of| members.iter().copied().filter(|row| name_of(row) == series[series_of]).collect(),
            (&roles, n_seeds),
        );
        finished.push(Panel { label, points });
    }
    let axis_name = |axis: Option<usize>| axis.map(|axis| study.axes[axis].0.clone());
    Ok(Ok(Findings {
        name: study.name.clone(),
        series_axis: series_axis(study, &roles),
        published: published(study, &roles, &series),
        series,
        baseline,
        x_axis: axis_name(roles.x),
        panels: finished,
        setting: setting(study),
        about: about(store, &rows)?,
        facts: facts(study, &rows, &seeds),
        counts: counts(&rows),
        seeds,
        runs: all_runs(study, &rows),
    }))
}

/// Name of the compared axes: `policy`, `ideal and round_length`.
fn series_axis(study: &Study, roles: &Roles) -> String {
    let names: Vec<&str> = roles.series.iter().map(|axis| last_part(&study.axes[*axis].0)).collect();
    if names.is_empty() { "result".to_owned() } else { names.join(" and ") }
}

fn series_name(study: &Study, roles: &Roles, row: &Row) -> String {
    match roles.series[..] {
        [axis] => value_text(&row.values[axis]),
        [] => fixed(study)["policy"].as_str().unwrap_or("all runs").to_owned(),
        _ => values_text(study, &roles.series, row),
    }
}

/// Published values of the compared policies along the x axis.
fn published(study: &Study, roles: &Roles, series: &[String]) -> Vec<Published> {
    let name = |axis: Option<usize>| axis.map(|axis| study.axes[axis].0.as_str());
    if series_axis(study, roles) != "policy" {
        return Vec::new();
    }
    let drawn = study.published.iter().filter(|published| name(roles.x) == Some(published.axis.as_str()));
    let of = |published: &spec::Published| Published {
        metric: published.metric.clone(),
        source: published.source.clone(),
        points: series
            .iter()
            .enumerate()
            .flat_map(|(series, policy)| {
                published.points(policy).map(move |(x, value)| PublishedPoint { series, x, value })
            })
            .collect(),
    };
    drawn.map(of).collect()
}

fn fixed(study: &Study) -> Value {
    serde_json::from_str(&study.fixed).unwrap_or_default()
}

fn panel_label(study: &Study, roles: &Roles, row: &Row) -> String {
    values_text(study, &roles.others, row)
}

/// Values of a row on some axes, as text: `ideal false; round_length 360`.
fn values_text(study: &Study, axes: &[usize], row: &Row) -> String {
    let piece =
        |axis: &usize| format!("{} {}", last_part(&study.axes[*axis].0), value_text(&row.values[*axis]));
    axes.iter().map(piece).collect::<Vec<_>>().join("; ")
}

fn place(roles: &Roles, row: &Row) -> Option<f64> {
    roles.x.and_then(|axis| row.values[axis].as_f64())
}

fn texts(rows: &[Row], axis: usize) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for text in rows.iter().map(|row| value_text(&row.values[axis])) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

/// Rows grouped by equal keys, in the order in which each key first comes.
fn grouped<'r, K: PartialEq>(rows: &[&'r Row], key: impl Fn(&Row) -> K) -> Vec<Vec<&'r Row>> {
    let mut groups: Vec<(K, Vec<&'r Row>)> = Vec::new();
    for row in rows {
        let own = key(row);
        match groups.iter_mut().find(|(other, _)| *other == own) {
            Some((_, members)) => members.push(row),
            None => groups.push((own, vec![row])),
        }
    }
    groups.into_iter().map(|(_, members)| members).collect()
}

fn is_done(row: &Row) -> bool {
    row.outcome.status == Status::Done
}

fn position(series: &[String], name: &str) -> usize {
    series.iter().position(|other| other == name).unwrap_or_default()
}

/// Metrics of runs that differ only in their seed, in the order of the seeds.
fn by_seed(group: &[&Row], roles: &Roles, seeds: &[String]) -> BTreeMap<&'static str, Vec<Option<f64>>> {
    let of_seed = |seed: &String| {
        group.iter().find(|row| roles.seed.is_some_and(|axis| value_text(&row.values[axis]) == *seed))
    };
    let in_order: Vec<Option<&&Row>> =
        if roles.seed.is_some() { seeds.iter().map(of_seed).collect() } else { vec![group.first()] };
    let values = |column: usize| -> Vec<Option<f64>> {
        let of = |row: &&Row| row.outcome.metrics[column].filter(|_| is_done(row));
        in_order.iter().map(|row| row.and_then(of)).collect()
    };
    let columns = METRICS.iter().enumerate().map(|(column, metric)| (metric.name, values(column)));
    columns.filter(|(_, values)| values.iter().any(Option::is_some)).collect()
}

/// The point of runs that differ only in their seed; `series`, `x`, `by_seed` and `against_baseline` are left to the caller.
fn point(store: &Store, group: &[&Row], n_of: usize) -> Result<Point, StoreError> {
    let done: Vec<&Row> = group.iter().copied().filter(|row| is_done(row)).collect();
    let mut metrics = BTreeMap::new();
    for (position, name) in Metric::names().enumerate() {
        let values: Vec<f64> = done.iter().filter_map(|row| row.outcome.metrics[position]).collect();
        metrics.extend(Repeated::of(&values, n_of).map(|repeated| (name, repeated)));
    }
    let mut by_type: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (name, value) in done.iter().flat_map(|row| &row.outcome.utilization) {
        by_type.entry(name).or_default().push(*value);
    }
    let repeated = |(name, values): (&str, Vec<f64>)| Some((name.to_owned(), Repeated::of(&values, n_of)?));
    let mut jobs = Vec::new();
    for row in &done {
        jobs.push(store.jobs(&row.digest)?);
    }
    // The jobs of some seeds are not a fair sample of the jobs of all.
    let is_whole = jobs.len() == n_of && jobs.iter().all(|jobs| !jobs.is_empty());
    let jobs: Vec<_> = if is_whole { jobs.concat() } else { Vec::new() };
    let over_jobs =
        |of: fn(&JobRow) -> Option<f64>| Cdf::of_part(jobs.iter().filter_map(of).collect(), jobs.len());
    let ended = |status: Status| group.iter().filter(|row| row.outcome.status == status).count();
    let unfinished = Status::ALL.into_iter().filter(|status| *status != Status::Done);
    let unfinished = unfinished.map(|status| (status.to_string(), ended(status)));
    let lacking = std::iter::once(("not there".to_owned(), n_of.saturating_sub(group.len())));
    Ok(Point {
        series: 0,
        x: None,
        n_of,
        unfinished: unfinished.chain(lacking).filter(|(_, n)| *n > 0).collect(),
        capacity: group.iter().filter_map(|row| row.outcome.capacity).max_by(f64::total_cmp),
        metrics,
        by_seed: BTreeMap::new(),
        utilization: by_type.into_iter().filter_map(repeated).collect(),
        given_up: given_up(&done),
        jct: over_jobs(|job| job.jct),
        rho: over_jobs(|job| job.rho),
        against_baseline: BTreeMap::new(),
    })
}

/// Compares each point with the baseline's at the same place, in pairs of runs with the same seed, where no seed is missing.
fn hold_against<'r>(
    points: &mut [Point],
    baseline: usize,
    rows_of: impl Fn(usize) -> Vec<&'r Row>,
    (roles, n_seeds): (&Roles, usize),
) {
    let base = rows_of(baseline);
    for point in points.iter_mut().filter(|point| point.series != baseline) {
        let own = rows_of(point.series);
        let columns = METRICS.iter().enumerate();
        for (column, metric) in columns.filter(|(_, metric)| metric.prominence >= Prominence::Compared) {
            let at_place = |row: &&&'r Row| place(roles, row) == point.x;
            let value = |row: &Row| row.outcome.metrics[column].filter(|_| is_done(row));
            let seed = |row: &'r Row| roles.seed.map(|axis| &row.values[axis]);
            let pairs: Vec<(f64, f64)> = own
                .iter()
                .filter(at_place)
                .filter_map(|row| {
                    let other = base.iter().filter(at_place).find(|other| seed(other) == seed(row))?;
                    Some((value(row)?, value(other)?))
                })
                .collect();
            let paired = Paired::of(&pairs).filter(|_| pairs.len() == n_seeds);
            point.against_baseline.extend(paired.map(|paired| (metric.name, paired)));
        }
    }
}

fn setting(study: &Study) -> String {
    let fixed = fixed(study);
    let cluster = match &fixed["cluster"] {
        Value::Null => None,
        cluster => Some(format!("cluster {}", value_text(cluster))),
    };
    let semantics = fixed["semantics"].as_str().map(|name| format!("semantics {name}"));
    let measured = match &fixed["measure"] {
        // The end is excluded.
        Value::Array(window) => {
            match (window.first().and_then(Value::as_u64), window.get(1).and_then(Value::as_u64)) {
                (Some(start), Some(end)) if end > start => {
                    Some(format!("jobs {start} to {} measured, counted from 0", end - 1))
                }
                _ => None,
            }
        }
        _ => None,
    };
    let pieces: Vec<String> = [cluster, measured, semantics].into_iter().flatten().collect();
    if pieces.is_empty() { "a sweep".to_owned() } else { pieces.join("; ") }
}

/// Facts about the results that come first on the page, including when and by what command runs were made, where it was
/// noted.
fn about(store: &Store, rows: &[Row]) -> Result<Vec<(String, String)>, StoreError> {
    const SHOWN_MAX: usize = 3;
    let specs: Vec<Value> =
        rows.iter().map(|row| serde_json::from_str(&row.spec).unwrap_or_default()).collect();
    let jobs = |spec: &Value| match spec["workload"]["trace"].as_str() {
        Some(trace) => Some(format!("trace {trace}")),
        None => spec["workload"]["generator"].as_str().map(|name| format!("generator {name}")),
    };
    let sittings = store.sittings()?;
    let brief = |texts: Vec<String>| {
        let n_more = texts.len().saturating_sub(SHOWN_MAX);
        let more = if n_more > 0 { format!("; and {n_more} more") } else { String::new() };
        texts.into_iter().take(SHOWN_MAX).collect::<Vec<_>>().join("; ") + &more
    };
    let dates = unique(sittings.iter().map(|sitting| sitting.date.clone()));
    let made = match &dates[..] {
        [first, .., last] => format!("{first} to {last}"),
        dates => dates.concat(),
    };
    let about = [
        ("about", store.description()?.unwrap_or_default()),
        ("command", brief(unique(sittings.iter().map(|sitting| sitting.command.clone())))),
        ("version", brief(unique(rows.iter().map(|row| format!("apportion {}", row.version))))),
        ("made on", made),
        ("cores", brief(unique(sittings.iter().map(|sitting| sitting.cores.to_string())))),
        ("semantics", brief(unique(specs.iter().filter_map(|s| s["semantics"].as_str().map(str::to_owned))))),
        ("jobs from", brief(unique(specs.iter().filter_map(jobs)))),
    ];
    let known = about.into_iter().filter(|(_, value)| !value.is_empty());
    Ok(known.map(|(name, value)| (name.to_owned(), value)).collect())
}

/// The texts without repetitions, sorted.
fn unique(texts: impl Iterator<Item = String>) -> Vec<String> {
    texts.collect::<BTreeSet<_>>().into_iter().collect()
}

fn counts(rows: &[Row]) -> Vec<(String, usize)> {
    let of = |status: Status| rows.iter().filter(|row| row.outcome.status == status).count();
    let all = Status::ALL.into_iter().map(|status| (status.to_string(), of(status)));
    all.filter(|(status, n)| *n > 0 || status == "done").collect()
}

fn facts(study: &Study, rows: &[Row], seeds: &[String]) -> Vec<(String, String)> {
    let mut facts = vec![
        ("study".to_owned(), study.name.clone()),
        (
            "made by".to_owned(),
            unique(rows.iter().map(|row| format!("apportion {}", row.version))).join(", "),
        ),
        ("seeds".to_owned(), seeds.join(", ")),
    ];
    for (name, _) in &study.axes {
        let axis = study.axes.iter().position(|(other, _)| other == name).unwrap_or_default();
        if last_part(name) != "seed" {
            facts.push((name.clone(), texts(rows, axis).join(", ")));
        }
    }
    facts.push(("fixed".to_owned(), study.fixed.clone()));
    facts.push(("digest of what is fixed".to_owned(), sha256(study.fixed.as_bytes())));
    let mut data: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in rows {
        let named: BTreeMap<String, String> = serde_json::from_str(&row.data).unwrap_or_default();
        for (name, digest) in named {
            data.entry(name).or_default().insert(digest);
        }
    }
    for (name, digests) in data {
        let brief: Vec<&str> = digests.iter().map(|digest| digest.get(..16).unwrap_or(digest)).collect();
        facts.push((format!("digests of the {name}, first 16 digits"), brief.join(", ")));
    }
    let mut all: Vec<&str> = rows.iter().map(|row| row.digest.as_str()).collect();
    all.sort_unstable();
    facts.push(("digest of all runs' digests".to_owned(), sha256(all.join("\n").as_bytes())));
    facts
}

/// Table with a row per run: axes, status, metrics in units for people, reason, digest. It has no wall times, so that the
/// same results give the same page.
fn all_runs(study: &Study, rows: &[Row]) -> Table {
    let axes = study.axes.iter().map(|(name, _)| name.as_str());
    let titles = METRICS.iter().map(Metric::title);
    let last = ["reason", "digest"].map(str::to_owned);
    let mut table =
        Table::new(axes.chain(["status", "capacity (jobs/h)"]).map(str::to_owned).chain(titles).chain(last));
    let number = |value: Option<f64>| {
        value.map_or(Cell::Empty, |value| Cell::Number(value, if value.fract() == 0.0 { 0 } else { 3 }))
    };
    for row in rows {
        let mut cells: Vec<Cell> = row.values.iter().map(|value| value_text(value).into()).collect();
        cells.push(row.outcome.status.name().into());
        cells.push(number(row.outcome.capacity));
        let metrics = METRICS.iter().zip(row.outcome.metrics);
        cells.extend(metrics.map(|(metric, value)| number(value.map(|value| value / metric.unit.scale()))));
        cells.push(row.outcome.reason.clone().map_or(Cell::Empty, Cell::from));
        cells.push(row.digest.get(..16).unwrap_or(&row.digest).into());
        table.push(cells);
    }
    table
}
