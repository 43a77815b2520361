//! Two sets of results side by side, run by run.
//!
//! Runs are matched by their values on all axes. Runs that differ in their seed alone are one point; both sides drew
//! the same jobs for the same seed, so a point is compared in pairs ([`Paired`]). The ratio over all points is taken
//! seed by seed: the mean logarithm over the points, then Student's t over seeds, because points of one seed share
//! their jobs and are not independent.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::sweep::outcome::Status;
use crate::sweep::spec::value_text;
use crate::sweep::store::{Row, Study};
use apportion::metrics::statistics::{Estimate, Paired, Spread};

/// Runs that differ in their seed alone, on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct PairedPoint {
    /// Its value on each of [`Comparison::axes`].
    pub values: Vec<Value>,
    /// Per run on both sides: its seed, and the rows.
    pairs: Vec<(String, Row, Row)>,
}

/// A metric at one point, on both sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// The first side, over the paired runs.
    pub first: Spread,
    /// The second.
    pub second: Spread,
    /// Second against first.
    pub paired: Paired,
}

/// A run that has a number on one side only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmatched {
    /// Its values, seed included: `policy=fifo rate=0.4 seed=1`.
    pub run: String,
    /// How it ended in the first results; none if it is not there.
    pub first: Option<Status>,
    /// In the second.
    pub second: Option<Status>,
}

/// Two sets of results, matched.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The axes apart from the seed.
    pub axes: Vec<String>,
    /// In the order of the first results.
    pub points: Vec<PairedPoint>,
    /// Runs that are done on one side only, or on neither and not for the same reason.
    pub unmatched: Vec<Unmatched>,
    /// Runs that ended the same way, without a number, on both sides.
    pub n_both_unfinished: usize,
}

/// The axis over which runs are repeated.
fn is_seed(name: &str) -> bool {
    name.rsplit('.').next() == Some("seed")
}

fn axis_names(study: &Study) -> Vec<String> {
    study.axes.iter().map(|(name, _)| name.clone()).collect()
}

impl Comparison {
    /// Matches the rows of two results.
    ///
    /// # Errors
    /// If they vary different axes: the names of the first's and of the second's.
    pub fn of(first: (&Study, Vec<Row>), second: (&Study, Vec<Row>)) -> Result<Self, [String; 2]> {
        let (names, others) = (axis_names(first.0), axis_names(second.0));
        let sorted = |names: &[String]| {
            let mut names = names.to_vec();
            names.sort_unstable();
            names
        };
        if sorted(&names) != sorted(&others) {
            return Err([names.join(", "), others.join(", ")]);
        }
        // The second's values in the order of the first's axes.
        let order: Vec<usize> = names
            .iter()
            .map(|name| others.iter().position(|other| other == name).unwrap_or_default())
            .collect();
        let key = |row: &Row| -> Vec<String> { row.values.iter().map(value_text).collect() };
        let reordered =
            |row: &Row| -> Vec<String> { order.iter().map(|at| value_text(&row.values[*at])).collect() };
        let mut seconds: BTreeMap<Vec<String>, Row> =
            second.1.into_iter().map(|row| (reordered(&row), row)).collect();
        let kept: Vec<usize> = (0..names.len()).filter(|axis| !is_seed(&names[*axis])).collect();
        let name = |key: &[String]| {
            names.iter().zip(key).map(|(name, text)| format!("{name}={text}")).collect::<Vec<_>>().join(" ")
        };
        let mut comparison = Self {
            axes: kept.iter().map(|axis| names[*axis].clone()).collect(),
            points: Vec::new(),
            unmatched: Vec::new(),
            n_both_unfinished: 0,
        };
        for row in first.1 {
            let own = key(&row);
            let other = seconds.remove(&own);
            let (one, two) = (row.outcome.status, other.as_ref().map(|other| other.outcome.status));
            match other {
                Some(other) if one == Status::Done && two == Some(Status::Done) => {
                    let seed = names.iter().position(|name| is_seed(name)).map(|axis| own[axis].clone());
                    let values: Vec<Value> = kept.iter().map(|axis| row.values[*axis].clone()).collect();
                    let pair = (seed.unwrap_or_default(), row, other);
                    match comparison.points.iter_mut().find(|point| point.values == values) {
                        Some(point) => point.pairs.push(pair),
                        None => comparison.points.push(PairedPoint { values, pairs: vec![pair] }),
                    }
                }
                Some(_) if two == Some(one) => comparison.n_both_unfinished += 1,
                _ => comparison.unmatched.push(Unmatched { run: name(&own), first: Some(one), second: two }),
            }
        }
        for (own, row) in seconds {
            let second = Some(row.outcome.status);
            comparison.unmatched.push(Unmatched { run: name(&own), first: None, second });
        }
        Ok(comparison)
    }

    /// Second ÷ first over all points, for a metric by position; none without values, or where one is not positive.
    pub fn overall(&self, metric: usize) -> Option<Estimate> {
        let mut by_seed: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for (seed, first, second) in self.points.iter().flat_map(|point| &point.pairs) {
            let (Some(first), Some(second)) = (first.outcome.metrics[metric], second.outcome.metrics[metric])
            else {
                continue;
            };
            if !(first > 0.0 && second > 0.0) {
                return None;
            }
            by_seed.entry(seed).or_default().push((second / first).ln());
        }
        let means: Vec<f64> = by_seed.values().filter_map(|logs| Some(Spread::of(logs)?.mean)).collect();
        Estimate::of(&means).map(|estimate| estimate.under(f64::exp))
    }
}

impl PairedPoint {
    /// A metric, by position, at this point; none if no run has it on both sides.
    pub fn compared(&self, metric: usize) -> Option<Compared> {
        let both = |(_, first, second): &(String, Row, Row)| {
            Some((first.outcome.metrics[metric]?, second.outcome.metrics[metric]?))
        };
        let pairs: Vec<(f64, f64)> = self.pairs.iter().filter_map(both).collect();
        let (first, second): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        Some(Compared {
            first: Spread::of(&first)?,
            second: Spread::of(&second)?,
            paired: Paired::of(&pairs)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sweep::outcome::Outcome;

    fn study(axes: &[&str]) -> Study {
        let axes = axes.iter().map(|name| ((*name).to_owned(), Vec::new())).collect();
        Study { name: String::new(), fixed: String::new(), axes }
    }

    fn row(values: &[Value], status: Status, jct: f64) -> Row {
        let mut outcome = Outcome::without_metrics(status, "");
        if status == Status::Done {
            outcome.metrics[1] = Some(jct);
        }
        let empty = String::new;
        let (values, seconds) = (values.to_vec(), 0.0);
        Row { digest: empty(), values, outcome, version: empty(), spec: empty(), data: empty(), seconds }
    }

    #[test]
    fn runs_are_matched_by_their_axes_in_any_order() {
        let first = vec![
            row(&[json!("a"), json!(0)], Status::Done, 1.0),
            row(&[json!("a"), json!(1)], Status::Done, 2.0),
            row(&[json!("a"), json!(2)], Status::Done, 2.0),
            row(&[json!("b"), json!(0)], Status::Saturated, 0.0),
            row(&[json!("c"), json!(0)], Status::Done, 1.0),
        ];
        let second = vec![
            row(&[json!(1), json!("a")], Status::Done, 4.0),
            row(&[json!(0), json!("a")], Status::Done, 4.0),
            row(&[json!(2), json!("a")], Status::Failed, 0.0),
            row(&[json!(0), json!("b")], Status::Saturated, 0.0),
            row(&[json!(0), json!("d")], Status::Done, 1.0),
        ];
        let (one, two) = (study(&["policy", "seed"]), study(&["seed", "policy"]));
        let comparison = Comparison::of((&one, first), (&two, second)).unwrap();
        assert_eq!(comparison.axes, ["policy"]);
        let [point] = &comparison.points[..] else { panic!("{comparison:?}") };
        let compared = point.compared(1).unwrap();
        assert_eq!((compared.first.mean, compared.second.mean, compared.first.n), (1.5, 4.0, 2));
        assert!((compared.paired.factor() - 8.0_f64.sqrt()).abs() < 1e-12, "of 4 and 2");
        assert!((comparison.overall(1).unwrap().mean - 8.0_f64.sqrt()).abs() < 1e-12);
        let unmatched: Vec<_> = comparison
            .unmatched
            .iter()
            .map(|other| (other.run.as_str(), other.first, other.second))
            .collect();
        assert_eq!(
            unmatched,
            [
                ("policy=a seed=2", Some(Status::Done), Some(Status::Failed)),
                ("policy=c seed=0", Some(Status::Done), None),
                ("policy=d seed=0", None, Some(Status::Done)),
            ]
        );
        assert_eq!(comparison.n_both_unfinished, 1);
        assert_eq!(point.compared(0), None);
    }

    #[test]
    fn other_axes_are_refused() {
        let refused = Comparison::of((&study(&["policy"]), Vec::new()), (&study(&["seed"]), Vec::new()));
        assert_eq!(refused, Err(["policy".to_owned(), "seed".to_owned()]));
    }
}
