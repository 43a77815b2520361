//! Distributions over jobs, and utilization of worker types, at one place of the drawn axis.

use apportion::metrics::cdf::Cdf;

use super::missing::{given_up_text, why_absent};
use super::{Panel, Point, Study, at, by_place, place_text, rows, spread_text};
use crate::report::chart::{Axis, Chart, Figure, Kind, Mark, Series};

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
                Some(Mark { n: cdf.map_or(0, |cdf| cdf.n), ..Mark::at(value / scale, *fraction) })
            });
            Series { name: name.clone(), style: position, marks: marks.collect() }
        };
        let series: Vec<Series> = study.series.iter().enumerate().map(series).collect();
        let values = series.iter().flat_map(|series| series.marks.iter().flatten()).map(|mark| mark.x);
        let here: Vec<&Point> = (0..study.series.len())
            .filter_map(|series| at(panel, series, x))
            .filter(|p| of(p).is_some())
            .collect();
        let place = place_text(study, x).map(|place| format!("{place}; ")).unwrap_or_default();
        let label = if panel.label.is_empty() { String::new() } else { format!("{}; ", panel.label) };
        Chart {
            name: String::new(),
            title: title.to_owned(),
            subtitle: format!(
                "{label}{place}measured jobs{}{}{}",
                if study.seeds.len() > 1 { " of all seeds together" } else { "" },
                given_up_text(study, &here).replace("; without", "; below 1 for"),
                not_shown(study, panel, x, &of)
            ),
            kind: Kind::Steps,
            x: Axis::new(x_title).fitted(values),
            y: Axis::new("fraction of jobs").from_zero(),
            rows: Vec::new(),
            series,
            absent: Vec::new(),
            published: Vec::new(),
        }
    })?;
    figure.note = format!("Drawn through at most {} exact points each.", apportion::metrics::cdf::POINTS_MAX);
    Some(figure)
}

/// `; not shown: fifo (saturated)`: a distribution over the jobs of some seeds would be one of the quick ones.
fn not_shown<'s>(
    study: &Study,
    panel: &'s Panel,
    x: Option<f64>,
    of: impl Fn(&'s Point) -> Option<&'s Cdf>,
) -> String {
    let why = |(series, name): (usize, &String)| {
        let point = at(panel, series, x)?;
        let why = why_absent(point).unwrap_or_else(|| "jobs not kept for every seed".to_owned());
        of(point).is_none().then(|| format!("{name} ({why})"))
    };
    let texts: Vec<String> = study.series.iter().enumerate().filter_map(why).collect();
    if texts.is_empty() { String::new() } else { format!("; not shown: {}", texts.join(", ")) }
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
                let (_, repeated) = point.utilization.iter().find(|(name, _)| name == kind)?;
                Some(Mark::of_repeated(repeated, 0.0, 0.01))
            };
            Series { name: kind.clone(), style, marks: (0..rows.len()).map(value).collect() }
        };
        let series: Vec<Series> = types.iter().enumerate().map(series).collect();
        let place = place_text(study, x).map(|place| format!("{place}; ")).unwrap_or_default();
        Chart {
            name: String::new(),
            title: "Utilization by worker type".to_owned(),
            subtitle: format!("{place}{}", spread_text(study, panel, &series)),
            kind: Kind::Bars,
            x: Axis::new("busy worker time (%)").from_zero(),
            y: Axis::new(study.series_axis.clone()),
            series,
            rows,
            absent: Vec::new(),
            published: Vec::new(),
        }
    })
}
