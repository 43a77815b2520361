//! Bounds on the ratios of a comparison: read, held against it, and how a broken one ends the command.

use std::str::FromStr;

use super::{label, sides_text};
use crate::exit::Failure;
use crate::results;
use apportion::metrics::METRICS;
use apportion::units::Decimals;
use apportion_studies::sweep::Status;
use apportion_studies::sweep::comparison::Comparison;

/// A bound on a ratio.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bound {
    /// Its text on the command line.
    text: String,
    /// Its position in [`METRICS`].
    pub(super) metric: usize,
    /// Whether it bounds the ratio over all points, not at each.
    in_the_mean: bool,
    at_most: bool,
    factor: f64,
}

impl Bound {
    fn is_broken_by(&self, ratio: f64) -> bool {
        let holds = if self.at_most { ratio <= self.factor } else { ratio >= self.factor };
        !holds
    }
}

impl FromStr for Bound {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        let split = text.split_once("<=").map(|sides| (sides, true));
        let split = split.or_else(|| text.split_once(">=").map(|sides| (sides, false)));
        let help = Some("such as 'average_jct_s<=1.02', or 'mean(average_jct_s)<=1.02'".to_owned());
        let Some(((name, factor), at_most)) = split else {
            return Err(Failure::usage(
                format!("--bound: `{text}` is not METRIC<=FACTOR or METRIC>=FACTOR"),
                help,
            ));
        };
        let (name, factor) = (name.trim(), factor.trim());
        let of_mean = name.strip_prefix("mean(").and_then(|rest| rest.strip_suffix(')'));
        let parsed: Option<f64> =
            factor.parse().ok().filter(|factor: &f64| factor.is_finite() && *factor > 0.0);
        let Some(factor) = parsed else {
            return Err(Failure::usage(format!("--bound: `{factor}` is not a positive number"), help));
        };
        let metric = results::metric(of_mean.unwrap_or(name).trim())?;
        Ok(Self { text: text.to_owned(), metric, in_the_mean: of_mean.is_some(), at_most, factor })
    }
}

/// The outcome of a bound.
pub(super) struct Verdict {
    pub(super) bound: String,
    /// The points at which it is broken, with the ratio there or the numbers of jobs given up; none if it holds.
    pub(super) broken: Vec<String>,
    /// The number of points with a ratio that was checked against the bound; for a bound on the mean, the number of points in it.
    pub(super) n_points: usize,
}

/// Holds a bound against a comparison.
pub(super) fn verdict(bound: &Bound, comparison: &Comparison) -> Verdict {
    let name = METRICS[bound.metric].name;
    let (mut broken, mut n_points) = (Vec::new(), 0);
    if bound.in_the_mean {
        match comparison.overall(bound.metric) {
            Some(overall) => {
                n_points = overall.n_points;
                if bound.is_broken_by(overall.ratio.mean) {
                    broken.push(Decimals(overall.ratio.mean, 4).to_string());
                }
            }
            None => broken.push(format!("no ratio of {name} over all points")),
        }
    } else {
        for point in &comparison.points {
            let Some(compared) = point.compared(bound.metric) else { continue };
            n_points += 1;
            let ratio = compared.paired.factor();
            if bound.is_broken_by(ratio) {
                broken.push(format!("{} at {}", Decimals(ratio, 4), label(comparison, point)));
            }
        }
        if n_points == 0 {
            broken.push(format!("at no point has {name} a ratio"));
        }
    }
    if METRICS[bound.metric].of_completed {
        broken.extend(comparison.points.iter().filter_map(|point| {
            let [first, second] = point.given_up();
            let is_lost = second.n > first.n && point.compared(bound.metric).is_some();
            let place = label(comparison, point);
            is_lost.then(|| format!("{name} leaves out {} at {place}", sides_text(first, second)))
        }));
    }
    let lost = comparison.unmatched.iter().filter(|other| other.first == Some(Status::Done));
    broken.extend(
        lost.map(|other| format!("{}: {} in B", other.run, other.second.map_or("not there", Status::name))),
    );
    Verdict { bound: bound.text.clone(), broken, n_points }
}

/// The failure that a broken bound ends the command with.
pub(super) fn ending(verdicts: &[Verdict]) -> Result<(), Failure> {
    let mut lines = Vec::new();
    for Verdict { bound, broken: places, .. } in verdicts {
        let Some(first) = places.first() else { continue };
        let more = if places.len() > 1 { format!(" (and {} more)", places.len() - 1) } else { String::new() };
        lines.push(format!("bound {bound} is broken: {first}{more}"));
    }
    if lines.is_empty() { Ok(()) } else { Err(Failure::BoundBroken { message: lines.join("\n") }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_read_and_refused() {
        let bound: Bound = " mean(average_jct_s) <= 1.02".parse().unwrap();
        assert!(bound.in_the_mean && bound.at_most && bound.is_broken_by(1.021) && !bound.is_broken_by(1.02));
        let bound: Bound = "utilization>=0.9".parse().unwrap();
        assert!(bound.is_broken_by(0.89) && bound.is_broken_by(f64::NAN) && !bound.is_broken_by(0.9));
        for (text, expected) in [
            ("average_jct_s", "`average_jct_s` is not METRIC<=FACTOR or METRIC>=FACTOR"),
            ("average_jct_s<=none", "`none` is not a positive number"),
            ("average_jtc<=1", "unknown metric `average_jtc`"),
        ] {
            let said = text.parse::<Bound>().unwrap_err().to_string();
            assert!(said.contains(expected), "{said}");
        }
    }
}
