//! Means over repetitions and their uncertainty: intervals and comparisons by Student's t.
//!
//! The spread of values over repetitions is measured by the standard deviation (n − 1) everywhere. Two results that drew the same
//! jobs (the same seed) are compared in pairs: the effect of the jobs cancels, and the difference between the policies remains.
//! Ratios are averaged as logarithms, so that a half and a double weigh the same; the interval of a ratio is that of the mean
//! logarithm, transformed back.
//!
//! Source: the distribution function of t in closed form for whole degrees of freedom, Abramowitz and Stegun,
//! *Handbook of Mathematical Functions* (1964), 26.7.3 and 26.7.4.

use serde::Serialize;

/// The probability with which intervals are to cover.
pub const LEVEL: f64 = 0.95;

/// An interval from a smaller to a larger number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Interval {
    /// The smaller.
    pub lower: f64,
    /// The larger.
    pub upper: f64,
}

/// A mean and its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The number of values.
    pub n: usize,
    /// The mean of the values.
    pub mean: f64,
    /// The interval that contains the true mean with probability [`LEVEL`], if the values are normal; none for fewer than two
    /// values.
    pub interval: Option<Interval>,
    /// The probability of a mean at least as far from zero if the true mean were zero; none for fewer than two values.
    pub p: Option<f64>,
}

impl Estimate {
    /// The estimate from these values; none without values.
    pub fn of(values: &[f64]) -> Option<Self> {
        let Spread { n, mean, deviation, .. } = Spread::of(values)?;
        let Some(deviation) = deviation else { return Some(Self { n, mean, interval: None, p: None }) };
        let freedom = n - 1;
        let error = deviation / (n as f64).sqrt();
        let reach = t_quantile(LEVEL, freedom) * error;
        let p = match (error > 0.0, mean.abs() > 0.0) {
            (true, _) => (1.0 - t_within(mean.abs() / error, freedom)).max(0.0),
            (false, true) => 0.0,
            (false, false) => 1.0,
        };
        Some(Self {
            n,
            mean,
            interval: Some(Interval { lower: mean - reach, upper: mean + reach }),
            p: Some(p),
        })
    }

    /// The estimate under an increasing function of the values; `p` stays that of the values themselves.
    #[must_use]
    pub fn under(self, function: fn(f64) -> f64) -> Self {
        let both = |Interval { lower, upper }| Interval { lower: function(lower), upper: function(upper) };
        Self { mean: function(self.mean), interval: self.interval.map(both), ..self }
    }
}

/// The spread of values over repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The number of values.
    pub n: usize,
    /// The mean of the values.
    pub mean: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Standard deviation (n − 1); none for a single value.
    pub deviation: Option<f64>,
}

impl Spread {
    /// The spread of these values; none without values.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len();
        let min = values.iter().copied().min_by(f64::total_cmp)?;
        let max = values.iter().copied().max_by(f64::total_cmp)?;
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (n > 1).then(|| (squares / (n as f64 - 1.0)).sqrt());
        Some(Self { n, mean, min, max, deviation })
    }
}

/// Values over repetitions of which some may be missing. They are seldom missing by chance: a run that was given up is a slow one.
/// So there is no mean unless all are there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Repeated {
    there: Spread,
    n_of: usize,
}

impl Repeated {
    /// The values that are there, out of `n_of` that should be; none without values.
    pub fn of(values: &[f64], n_of: usize) -> Option<Self> {
        Some(Self { there: Spread::of(values)?, n_of: n_of.max(values.len()) })
    }

    /// The spread of the values, if none is missing.
    pub fn whole(&self) -> Option<Spread> {
        (self.there.n == self.n_of).then_some(self.there)
    }

    /// The spread of the values that are there, which does not describe the missing ones.
    pub fn there(&self) -> Spread {
        self.there
    }

    /// The number of values that should be there.
    pub fn n_of(&self) -> usize {
        self.n_of
    }
}

/// The second of two results against the first, over repetitions that differ in nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Paired {
    /// Second − first; its `p` is that of the paired t test.
    pub difference: Estimate,
    /// Second ÷ first, the geometric mean; its `p` is that of the paired t test on logarithms. None unless all
    /// values are positive.
    pub ratio: Option<Estimate>,
    /// The second's mean ÷ the first's; 1 if both are zero, and infinite if only the first is.
    pub ratio_of_means: f64,
}

impl Paired {
    /// The comparison of pairs (first, second); none without pairs.
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let differences: Vec<f64> = pairs.iter().map(|(first, second)| second - first).collect();
        let difference = Estimate::of(&differences)?;
        let positive = pairs.iter().all(|(first, second)| *first > 0.0 && *second > 0.0);
        let ratio = positive.then(|| {
            let logs: Vec<f64> = pairs.iter().map(|(first, second)| (second / first).ln()).collect();
            Estimate::of(&logs).map(|estimate| estimate.under(f64::exp))
        });
        let sums = pairs.iter().fold((0.0, 0.0), |sums, pair| (sums.0 + pair.0, sums.1 + pair.1));
        let ratio_of_means = match (sums.0 == 0.0, sums.1 == 0.0) {
            (true, true) => 1.0,
            (true, false) => f64::INFINITY,
            (false, _) => sums.1 / sums.0,
        };
        Some(Self { difference, ratio: ratio.flatten(), ratio_of_means })
    }

    /// The geometric mean of the ratios; if a value is not positive, the ratio of the means.
    pub fn factor(&self) -> f64 {
        self.ratio.map_or(self.ratio_of_means, |ratio| ratio.mean)
    }
}

/// The probability that |T| ≤ `t` for `freedom` ≥ 1 degrees of freedom.
fn t_within(t: f64, freedom: usize) -> f64 {
    let angle = (t / (freedom as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    // The finite sums of the source, by their recurrences; an even number of degrees starts at 1, an odd one at cos.
    let odd = freedom % 2 == 1;
    let (mut term, mut sum) = if odd { (cosine, 0.0) } else { (1.0, 0.0) };
    let mut k = usize::from(odd);
    while k < freedom - 1 {
        sum += term;
        k += 2;
        let k = k as f64;
        term *= cosine * cosine * (k - 1.0) / k;
    }
    if odd { std::f64::consts::FRAC_2_PI * (angle + sine * sum) } else { sine * sum }
}

/// The t that |T| does not exceed with this probability.
fn t_quantile(probability: f64, freedom: usize) -> f64 {
    let (mut below, mut above) = (0.0, 1.0);
    while t_within(above, freedom) < probability && above < 1e12 {
        above *= 2.0;
    }
    for _ in 0..200 {
        let middle = 0.5 * (below + above);
        if t_within(middle, freedom) < probability { below = middle } else { above = middle }
    }
    0.5 * (below + above)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_t_are_those_of_printed_tables() {
        // Two-sided values for 95 % and 99 %, from a textbook's table.
        for (freedom, at_95, at_99) in [
            (1, 12.706, 63.657),
            (2, 4.303, 9.925),
            (3, 3.182, 5.841),
            (4, 2.776, 4.604),
            (9, 2.262, 3.250),
            (10, 2.228, 3.169),
            (30, 2.042, 2.750),
            (120, 1.980, 2.617),
        ] {
            assert!((t_quantile(0.95, freedom) - at_95).abs() < 6e-4, "{freedom}");
            assert!((t_quantile(0.99, freedom) - at_99).abs() < 6e-4, "{freedom}");
        }
    }

    /// A check by a second way: the density, integrated by Simpson's rule; its constant comes from the integral over all t.
    #[test]
    fn the_distribution_of_t_is_the_integral_of_its_density() {
        let integral = |freedom: usize, to: f64| {
            let density = |angle: f64| {
                // t = √ν tan(angle): dt = √ν / cos² and (1 + t²/ν) = 1/cos².
                let power = i32::try_from(freedom).unwrap() - 1;
                angle.cos().powi(power)
            };
            let n = 20_000;
            let h = to / f64::from(n);
            let weight = |i: i32| if i == 0 || i == n { 1.0 } else { f64::from(2 + 2 * (i % 2)) };
            (0..=n).map(|i| weight(i) * density(h * f64::from(i))).sum::<f64>() * h / 3.0
        };
        for freedom in [1, 2, 3, 4, 5, 8, 11, 40] {
            let whole = integral(freedom, std::f64::consts::FRAC_PI_2);
            for t in [0.1_f64, 0.7, 1.0, 2.5, 9.0] {
                let part = integral(freedom, (t / (freedom as f64).sqrt()).atan());
                assert!((t_within(t, freedom) - part / whole).abs() < 1e-9, "{freedom} {t}");
            }
        }
    }

    /// Sleep gained with two drugs: Student, "The probable error of a mean", Biometrika 6 (1908).
    #[test]
    fn a_paired_comparison_is_students_own() {
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let pairs: Vec<(f64, f64)> = first.into_iter().zip(second).collect();
        let paired = Paired::of(&pairs).unwrap();
        let Estimate { n, mean, interval, p } = paired.difference;
        let interval = interval.unwrap();
        assert_eq!(n, 10);
        assert!((mean - 1.58).abs() < 1e-12);
        assert!((p.unwrap() - 0.002_833).abs() < 1e-6, "{p:?}");
        assert!((interval.lower - 0.700_114).abs() < 1e-6 && (interval.upper - 2.459_886).abs() < 1e-6);
        assert_eq!(paired.ratio, None, "some are not positive");
    }

    #[test]
    fn nothing_is_averaged_of_which_a_part_is_missing() {
        let all = Repeated::of(&[1.0, 3.0], 2).unwrap();
        assert_eq!(all.whole().map(|spread| spread.mean), Some(2.0));
        let part = Repeated::of(&[1.0, 3.0], 3).unwrap();
        assert_eq!((part.whole(), part.there().mean, part.n_of()), (None, 2.0, 3));
        assert_eq!(Repeated::of(&[], 3), None);
    }

    #[test]
    fn ratios_are_averaged_as_logarithms() {
        let paired = Paired::of(&[(1.0, 2.0), (2.0, 1.0), (3.0, 3.0)]).unwrap();
        let ratio = paired.ratio.unwrap();
        assert!((ratio.mean - 1.0).abs() < 1e-12 && (ratio.p.unwrap() - 1.0).abs() < 1e-12);
        let Interval { lower, upper } = ratio.interval.unwrap();
        assert!((lower * upper - 1.0).abs() < 1e-12, "as far up as down");
    }

    #[test]
    fn one_repetition_has_no_interval_and_equal_ones_no_width() {
        let one = Paired::of(&[(1.0, 2.0)]).unwrap();
        assert_eq!((one.ratio.unwrap().interval, one.difference.p, one.factor()), (None, None, 2.0));
        let equal = Paired::of(&[(1.0, 2.0), (2.0, 4.0)]).unwrap().ratio.unwrap();
        assert_eq!(equal.p, Some(0.0));
        assert_eq!(Paired::of(&[(1.0, 1.0), (2.0, 2.0)]).unwrap().difference.p, Some(1.0));
        let none = Paired::of(&[(0.0, 0.0)]).unwrap();
        assert_eq!((none.ratio, none.factor()), (None, 1.0));
        assert!(Paired::of(&[(0.0, 1.0)]).unwrap().factor().is_infinite());
        assert_eq!(Paired::of(&[]), None);
    }
}
