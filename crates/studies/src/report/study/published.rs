//! Published values, as marks beside those of the study.

use super::Study;
use crate::report::chart::{Mark, Series};
use apportion::metrics::Metric;

/// Published values of one metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// Name of the metric.
    pub metric: String,
    /// Publication of the values.
    pub source: String,
    /// Position in [`Study::series`], place on the drawn axis, and value in the metric's unit for people, of each point.
    pub points: Vec<(usize, f64, f64)>,
}

fn of_metric<'a>(study: &'a Study, metric: &Metric) -> impl Iterator<Item = &'a Published> {
    let name = metric.name;
    study.published.iter().filter(move |published| published.metric == name && !published.points.is_empty())
}

/// Published values of a metric, as a series for each compared value that has some.
pub(super) fn series(study: &Study, metric: &Metric) -> Vec<Series> {
    let of_style = |(style, name): (usize, &String)| {
        let points = of_metric(study, metric).flat_map(|published| &published.points);
        let own = points.filter(|(of, ..)| *of == style);
        let marks: Vec<_> = own.map(|(_, x, y)| Some(Mark::at(*x, *y))).collect();
        (!marks.is_empty()).then(|| Series { name: name.clone(), style, marks })
    };
    study.series.iter().enumerate().filter_map(of_style).collect()
}

/// `; rings: published, SOURCE`, if anything was.
pub(super) fn text(study: &Study, metric: &Metric) -> String {
    let mut sources: Vec<&str> = Vec::new();
    for published in of_metric(study, metric) {
        if !sources.contains(&published.source.as_str()) {
            sources.push(&published.source);
        }
    }
    if sources.is_empty() { String::new() } else { format!("; rings: published, {}", sources.join("; ")) }
}
