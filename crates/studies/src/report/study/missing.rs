//! Runs and jobs that a point's numbers leave out: runs without a result, and jobs that were given up.

use super::{Point, Study};
use crate::report::number::brief;

/// Numbers of measured jobs of finished runs, with those that were given up after too many failures: means over completed
/// jobs leave them out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GivenUp {
    /// Number of jobs given up.
    pub n: usize,
    /// Number of measured jobs.
    pub n_of: usize,
}

/// Sentence about jobs that were given up, over all points of a chart: `; p: 3 of 900 measured jobs given up`.
pub(super) fn given_up_text(study: &Study, points: &[&Point]) -> String {
    let of_series = |(position, name): (usize, &String)| {
        let own = points.iter().filter(|point| point.series == position);
        let sum = |sum: GivenUp, point: &Point| GivenUp {
            n: sum.n + point.given_up.n,
            n_of: sum.n_of + point.given_up.n_of,
        };
        let GivenUp { n, n_of } = own.copied().fold(GivenUp::default(), sum);
        (n > 0).then(|| format!("{name} {n} of {n_of}"))
    };
    let texts: Vec<String> = study.series.iter().enumerate().filter_map(of_series).collect();
    if texts.is_empty() {
        return String::new();
    }
    format!("; without measured jobs that were given up: {}", texts.join(", "))
}

/// Proven capacity, jobs/h, of a point with saturated runs.
pub(super) fn saturated_above(point: &Point) -> Option<f64> {
    let is_saturated = point.unfinished.iter().any(|(status, _)| status == "saturated");
    point.capacity.filter(|_| is_saturated)
}

/// Reason why a point has no value: `saturated above 2.1 jobs/h`, or `2 of 3 failed`.
pub(in crate::report) fn why_absent(point: &Point) -> Option<String> {
    let piece = |(status, n): &(String, usize)| {
        let of = if *n == point.n_of { String::new() } else { format!("{n} of {} ", point.n_of) };
        let above = saturated_above(point).filter(|_| status == "saturated");
        let above = above.map(|rate| format!(" above {} jobs/h", brief(rate))).unwrap_or_default();
        format!("{of}{status}{above}")
    };
    let pieces: Vec<String> = point.unfinished.iter().map(piece).collect();
    (!pieces.is_empty()).then(|| pieces.join(", "))
}
