//! Tables with a row for each policy, or other compared value: its metrics at each place of the drawn axis.

use super::missing::{saturated_above, why_absent};
use super::{Panel, Point, Study, at, file_name, places};
use crate::report::label;
use crate::report::number::brief;
use crate::report::page::{Item, NamedTable, TableChoice};
use crate::report::table::{Cell, Table};
use apportion::metrics::table::Prominence;
use apportion::metrics::{METRICS, Metric};

/// Tables of a panel: one per metric, or one of all metrics where there is no drawn axis.
pub(super) fn overview(study: &Study, panel: &Panel, stem: &str) -> Option<Item> {
    let has = |metric: &&Metric| panel.points.iter().any(|point| point.metrics.contains_key(metric.name));
    let charted = METRICS.iter().filter(|metric| metric.prominence >= Prominence::Chart);
    let mut metrics: Vec<&Metric> = charted.filter(has).collect();
    if study.is_static() {
        metrics.sort_by_key(|metric| metric.name != "makespan_s");
    }
    let places = places(panel);
    if study.x_axis.is_none() {
        let columns = metrics.iter().map(|metric| (metric.title(), *metric, None));
        let table = table(study, panel, &columns.collect::<Vec<_>>());
        let (name, title) = (format!("{stem}overview"), "All of them".to_owned());
        return (!metrics.is_empty()).then_some(Item::Table(NamedTable {
            name,
            title,
            table,
            folded: false,
        }));
    }
    let unit = study.x_axis.as_deref().map(label::axis).unwrap_or_default();
    let (axis, unit) = unit.split_once(" (").unwrap_or((&unit, ""));
    let head = |x: Option<f64>| {
        let (x, unit) = (x.map(brief).unwrap_or_default(), unit.trim_end_matches(')'));
        format!("{axis} {x} {unit}").trim_end().to_owned()
    };
    let of_metric = |metric: &Metric| {
        let columns: Vec<_> = places.iter().map(|x| (head(*x), metric, *x)).collect();
        let name = format!("{stem}overview-{}", file_name(metric.bare_name()));
        NamedTable { name, title: metric.title(), table: table(study, panel, &columns), folded: false }
    };
    let tables: Vec<NamedTable> = metrics.into_iter().map(of_metric).collect();
    (!tables.is_empty()).then(|| Item::Tables(TableChoice { choice: "metric".to_owned(), tables }))
}

/// Table with a row for each compared value, and a column for each title, metric and place.
fn table(study: &Study, panel: &Panel, columns: &[(String, &Metric, Option<f64>)]) -> Table {
    let titles = columns.iter().map(|(title, ..)| title.clone());
    let mut table = Table::new([label::axis(&study.series_axis)].into_iter().chain(titles));
    for (series, name) in study.series.iter().enumerate() {
        let cell = |(_, metric, x): &(String, &Metric, Option<f64>)| match at(panel, series, *x) {
            None => Cell::Empty,
            Some(point) => value(point, metric),
        };
        table.push([name.as_str().into()].into_iter().chain(columns.iter().map(cell)).collect());
    }
    table
}

/// Cell of a value: `1.91 ± 0.02`; where runs are missing `(1.91 over 2 of 3) 1 of 3 timeout`, or why there is no number.
fn value(point: &Point, metric: &Metric) -> Cell {
    let scale = metric.unit.scale();
    let why = why_absent(point);
    let Some(repeated) = point.metrics.get(metric.name) else { return why.map_or(Cell::Empty, Cell::from) };
    let Some(spread) = repeated.whole() else {
        let there = repeated.there();
        let part = format!("({} over {} of {})", brief(there.mean / scale), there.n, repeated.n_of());
        return format!("{part} {}", why.unwrap_or_default()).trim_end().into();
    };
    let (mean, deviation) = (spread.mean / scale, spread.deviation.map(|deviation| deviation / scale));
    let n_decimals = n_decimals(mean);
    let deviation = deviation.map(|deviation| format!(" ± {deviation:.n_decimals$}"));
    format!("{mean:.n_decimals$}{}", deviation.unwrap_or_default()).into()
}

/// Number of decimals of a mean and its deviation.
fn n_decimals(mean: f64) -> usize {
    match mean.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.1 || size == 0.0 => 2,
        _ => 4,
    }
}

/// Explanation of the overview.
pub(super) fn text(study: &Study, panel: &Panel) -> Vec<String> {
    let spread = match study.seeds.len() {
        0 | 1 => "One seed, so no spread.".to_owned(),
        n => format!("Mean ± standard deviation over {n} seeds."),
    };
    let is_proven = panel.points.iter().any(|point| saturated_above(point).is_some());
    let proven = if is_proven { CAPACITY } else { "" };
    vec![format!("{spread}{proven}")]
}

/// Explanation of a rate beside `saturated`.
const CAPACITY: &str = " “Saturated above” names the proven capacity: no policy of the kind sustains a higher arrival rate on this \
                        cluster with these jobs, so such runs are not made.";
