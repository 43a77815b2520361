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
    /// The points.
    pub points: Vec<PublishedPoint>,
}

/// A published value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PublishedPoint {
    /// Position in [`Study::series`].
    pub series: usize,
    /// Place on the drawn axis.
    pub x: f64,
    /// The value in the metric's unit for people.
    pub value: f64,
}

fn of_metric<'a>(study: &'a Study, metric: &Metric) -> impl Iterator<Item = &'a Published> {
    let name = metric.name;
    study.published.iter().filter(move |published| published.metric == name && !published.points.is_empty())
}

/// Published values of a metric, as a series for each compared value that has some.
pub(super) fn series(study: &Study, metric: &Metric) -> Vec<Series> {
    let of_style = |(style, name): (usize, &String)| {
        let points = of_metric(study, metric).flat_map(|published| &published.points);
        let own = points.filter(|point| point.series == style);
        let marks: Vec<_> = own.map(|point| Some(Mark::at(point.x, point.value))).collect();
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
