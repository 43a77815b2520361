//! Data for the page's script to compare any two policies, or other compared values.

use apportion::metrics::statistics::{Estimate, Spread};
use apportion::metrics::table::Prominence;
use apportion::metrics::{METRICS, Metric};
use serde::Serialize;

use super::label;
use super::number::brief;
use super::study::{Panel, Point, Study, places, same, why_absent};

/// Values of each seed for all compared values, at each place of the drawn axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pairs {
    /// Name of the drawn axis; `all` if there is none.
    pub axis: String,
    /// Places on the axis.
    pub places: Vec<String>,
    /// Names of the compared values.
    pub names: Vec<String>,
    /// Reason why there is no number over all seeds, by name and place.
    pub lacking: Vec<Vec<Option<String>>>,
    /// Metrics with their values.
    pub metrics: Vec<MetricValues>,
    /// Half width of an interval in standard errors, by Student's t for these seeds; none for one seed.
    pub t: Option<f64>,
}

/// Values of one metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MetricValues {
    /// Name in words, with its unit.
    pub title: String,
    /// Unit for people.
    pub unit: &'static str,
    /// Values by name, place and seed, in that unit, with all digits, since differences of close numbers have few of them;
    /// empty at a place without runs.
    pub values: Vec<Vec<Vec<Option<f64>>>>,
}

impl Pairs {
    /// The data of a panel; none unless there are two values to compare, with numbers.
    pub(super) fn of(study: &Study, panel: &Panel) -> Option<Self> {
        let there =
            |metric: &&Metric| panel.points.iter().any(|point| point.by_seed.contains_key(metric.name));
        let metrics: Vec<&Metric> =
            METRICS.iter().filter(|metric| metric.prominence >= Prominence::Chart).filter(there).collect();
        if study.series.len() < 2 || metrics.is_empty() {
            return None;
        }
        let places = places(panel);
        let at = |series: usize, x: Option<f64>| {
            panel.points.iter().find(|point| point.series == series && same(point.x, x))
        };
        let by_name_and_place =
            |x: &dyn Fn(Option<&Point>) -> Vec<Option<f64>>| -> Vec<Vec<Vec<Option<f64>>>> {
                let of = |series| places.iter().map(|place| x(at(series, *place))).collect();
                (0..study.series.len()).map(of).collect()
            };
        let values = |metric: &Metric| {
            let scale = metric.unit.scale();
            by_name_and_place(&|point| {
                let values = point.and_then(|point| point.by_seed.get(metric.name)).into_iter().flatten();
                values.map(|value| value.map(|value| value / scale)).collect()
            })
        };
        let of_metric = |metric: &Metric| MetricValues {
            title: metric.title(),
            unit: metric.unit.shown(),
            values: values(metric),
        };
        let why = |point: Option<&Point>| point.map_or(Some("not there".to_owned()), why_absent);
        let lacking =
            |series| places.iter().map(|place| why(at(series, *place))).collect::<Vec<Option<String>>>();
        Some(Self {
            axis: study.x_axis.as_deref().map_or_else(|| "all".to_owned(), label::axis),
            places: places.iter().map(|place| place.map_or_else(|| "all".to_owned(), brief)).collect(),
            names: study.series.clone(),
            lacking: (0..study.series.len()).map(lacking).collect(),
            metrics: metrics.into_iter().map(of_metric).collect(),
            t: reach(study.seeds.len()),
        })
    }
}

/// Description of how any two are compared.
pub(super) fn text(study: &Study) -> String {
    let several = if study.seeds.len() > 1 {
        " with its 95 % interval by Student’s t: the mean of the paired differences, the geometric mean of the paired ratios, \
         or, where a number is not positive, the ratio of the means. Each seed draws the same jobs for both"
    } else {
        ", of one seed, so without an interval"
    };
    format!(
        "The difference A − B and the ratio A ÷ B{several}. Where either has not finished a seed, they are not compared."
    )
}

/// Half width of an interval of `n` values, in standard errors.
fn reach(n: usize) -> Option<f64> {
    let values: Vec<f64> = (0..n).map(|value| value as f64).collect();
    let (estimate, spread) = (Estimate::of(&values)?, Spread::of(&values)?);
    let half = estimate.interval?.upper - estimate.mean;
    Some(half * (n as f64).sqrt() / spread.deviation?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_reaches_as_far_as_in_the_tables_of_t() {
        assert_eq!((reach(0), reach(1)), (None, None));
        for (n, t) in [(2, 12.706), (3, 4.303), (10, 2.262)] {
            assert!((reach(n).unwrap() - t).abs() < 1e-3, "{n}: {:?}", reach(n));
        }
    }
}
