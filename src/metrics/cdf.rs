//! Empirical distribution functions, with few enough points to draw.

use serde::Serialize;

/// The most points that one distribution keeps.
pub const POINTS_MAX: usize = 200;

/// Points of an empirical distribution function, each exact: `fraction` of the values are at most `value`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cdf {
    /// The number of values.
    pub n: usize,
    /// The number of things that could have a value: those without one count as larger than all values.
    pub n_of: usize,
    /// (value, fraction), ascending; the first is the smallest value, the last the largest, with fraction n/n_of.
    pub points: Vec<(f64, f64)>,
}

impl Cdf {
    /// The distribution of these values, by at most [`POINTS_MAX`] points evenly spaced in fraction; none without values.
    pub fn of(values: Vec<f64>) -> Option<Self> {
        let n_of = values.len();
        Self::of_part(values, n_of)
    }

    /// The distribution over `n_of` things of which some have no value, such as jobs that were never completed; none
    /// without values.
    pub fn of_part(mut values: Vec<f64>, n_of: usize) -> Option<Self> {
        values.sort_unstable_by(f64::total_cmp);
        let n = values.len();
        let first = *values.first()?;
        let n_of = n_of.max(n);
        let n_points = n.min(POINTS_MAX);
        let rank = |k: usize| (k * n).div_ceil(n_points);
        let mut points = vec![(first, 1.0 / n_of as f64)];
        points.extend((1..=n_points).map(rank).map(|rank| (values[rank - 1], rank as f64 / n_of as f64)));
        // Among equal values the last one, with the highest fraction, is on the curve.
        let mut kept: Vec<(f64, f64)> = Vec::with_capacity(points.len());
        for point in points {
            match kept.last_mut() {
                Some(last) if last.0 >= point.0 => last.1 = point.1,
                _ => kept.push(point),
            }
        }
        Some(Self { n, n_of, points: kept })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_are_all_kept() {
        let cdf = Cdf::of(vec![3.0, 1.0, 2.0, 2.0]).unwrap();
        assert_eq!(cdf.points, [(1.0, 0.25), (2.0, 0.75), (3.0, 1.0)]);
        assert_eq!(Cdf::of(Vec::new()), None);
    }

    #[test]
    fn what_has_no_value_counts_as_larger_than_all() {
        let cdf = Cdf::of_part(vec![3.0, 1.0], 4).unwrap();
        assert_eq!((cdf.points, cdf.n, cdf.n_of), (vec![(1.0, 0.25), (3.0, 0.5)], 2, 4));
    }

    #[test]
    fn many_values_are_thinned_to_points_on_the_curve() {
        let values: Vec<f64> = (0..12_345).map(|i| f64::from((i * 7919) % 12_345)).collect();
        let cdf = Cdf::of(values.clone()).unwrap();
        assert!(cdf.points.len() <= POINTS_MAX + 1);
        assert_eq!(cdf.points.first().map(|point| point.0), Some(0.0));
        assert_eq!(cdf.points.last(), Some(&(12_344.0, 1.0)));
        for (value, fraction) in cdf.points {
            let at_most = values.iter().filter(|other| **other <= value).count();
            assert!((at_most as f64 / 12_345.0 - fraction).abs() < 1e-12, "{value}");
        }
    }
}
