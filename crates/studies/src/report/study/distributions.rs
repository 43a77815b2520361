//! How jobs and worker types fare at one place of the drawn axis: distributions over jobs, and utilization.

use apportion::metrics::cdf::Cdf;

use super::{Panel, Point, Study, at, by_place, mark, place_text, rows, spread_text, why_absent};
use crate::report::chart::{Axis, Chart, Figure, Kind, Mark, Series};
use crate::report::number::six_digits;

pub(super) fn distribution<'s>(
    study: &'s Study,
    panel: &'s Panel,
    (stem, what): (&str, &str),
    of: impl Fn(&'s Point) -> Option<&'s Cdf>,
) -> Option<Figure> {
    let is_jct = what == "jct";
    let scale = if is_jct { 3600.0 } else { 1.0 };
    let (title, x_title) = if is_jct {
        ("Distribution of job completion time", "job completion time (h)")
    } else {
        (
            "Distribution of finish-time fairness ρ",
            "finish-time fairness ρ (1: as with an equal share to oneself)",
        )
    };
    let mut figure = by_place(study, panel, &format!("{stem}{what}-cdf"), |x| {
        let series = |(position, name): (usize, &String)| {
            let cdf = at(panel, position, x).and_then(&of);
            let marks = cdf.into_iter().flat_map(|cdf| &cdf.points).map(|(value, fraction)| {
                let (x, y) = (six_digits(value / scale), six_digits(*fraction));
                Some(Mark { x, y, low: None, high: None, n: cdf.map_or(0, |cdf| cdf.n) })
            });
            Series { name: name.clone(), style: position, marks: marks.collect() }
        };
        let series: Vec<Series> = study.series.iter().enumerate().map(series).collect();
        let values = series.iter().flat_map(|series| series.marks.iter().flatten()).map(|mark| mark.x);
        let place = place_text(study, x).map(|place| format!("{place}; ")).unwrap_or_default();
        let label = if panel.label.is_empty() { String::new() } else { format!("{}; ", panel.label) };
        Chart {
            name: String::new(),
            title: title.to_owned(),
            subtitle: format!(
                "{label}{place}measured jobs of all seeds together{}",
                not_done(study, panel, x)
            ),
            kind: Kind::Steps,
            x: Axis::new(x_title).fitted(values),
            y: Axis::new("fraction of jobs").from_zero(),
            rows: Vec::new(),
            series,
            absent: Vec::new(),
        }
    })?;
    figure.note = format!("Drawn through at most {} exact points each.", apportion::metrics::cdf::POINTS_MAX);
    Some(figure)
}

/// `; fifo: saturated`.
fn not_done(study: &Study, panel: &Panel, x: Option<f64>) -> String {
    let why = |(series, name): (usize, &String)| {
        Some(format!("; {name}: {}", at(panel, series, x).and_then(why_absent)?))
    };
    study.series.iter().enumerate().filter_map(why).collect()
}

pub(super) fn utilization(study: &Study, panel: &Panel, stem: &str) -> Option<Figure> {
    let mut types: Vec<String> = Vec::new();
    for (name, _) in panel.points.iter().flat_map(|point| &point.utilization) {
        if !types.contains(name) {
            types.push(name.clone());
        }
    }
    by_place(study, panel, &format!("{stem}utilization-by-type"), |x| {
        let rows = rows(study, panel, x);
        let series = |(style, kind): (usize, &String)| {
            let value = |series: usize| {
                let point = at(panel, series, x)?;
                let (_, spread) = point.utilization.iter().find(|(name, _)| name == kind)?;
                Some(mark(spread, 0.0, 0.01))
            };
            Series { name: kind.clone(), style, marks: (0..rows.len()).map(value).collect() }
        };
        let place = place_text(study, x).map(|place| format!("{place}; ")).unwrap_or_default();
        Chart {
            name: String::new(),
            title: "Utilization by worker type".to_owned(),
            subtitle: format!("{place}{}", spread_text(study, panel)),
            kind: Kind::Bars,
            x: Axis::new("busy worker time (%)").from_zero(),
            y: Axis::new(study.series_axis.clone()),
            series: types.iter().enumerate().map(series).collect(),
            rows,
            absent: Vec::new(),
        }
    })
}
