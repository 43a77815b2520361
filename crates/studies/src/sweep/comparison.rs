//! Two sets of results side by side, run by run.
//!
//! Runs are matched by their values on all axes. Runs that differ only in their seed are one point; both sides drew the same
//! jobs for the same seed, so a point is compared in pairs ([`Paired`]). The ratio over all points is taken seed by seed:
//! the mean logarithm over the points, then Student's t over seeds, because points of one seed share their jobs and are not
//! independent.
//!
//! A point at which a side has not finished a seed is not compared: over the seeds that both finished, the side that gave up
//! would be judged only where it was quick. Seeds that one side does not have are left out, and counted.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::report::study::GivenUp;
use crate::sweep::outcome::Status;
use crate::sweep::spec::value_text;
use crate::sweep::store::{Row, Study, is_seed};
use crate::sweep::summary::given_up;
use apportion::metrics::statistics::{Estimate, Paired, Spread};

/// Runs of both sides that differ only in their seed.
#[derive(Clone, Debug, PartialEq)]
pub struct PairedPoint {
    /// Values of the point on [`Comparison::axes`].
    pub values: Vec<Value>,
    /// The runs done on both sides.
    pairs: Vec<PairedRun>,
    /// Number of seeds requested on either side.
    pub n_of: usize,
    /// Number of seeds that both sides have here and that are not done on at least one of them.
    pub n_unfinished: usize,
}

/// A run done on both sides.
#[derive(Clone, Debug, PartialEq)]
struct PairedRun {
    seed: String,
    first: Row,
    second: Row,
}

/// Ratio over all points, with the number of these points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overall {
    /// Second side ÷ first side.
    pub ratio: Estimate,
    /// Number of points at which all seeds are compared.
    pub n_points: usize,
}

/// A metric at one point, on both sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// Metric of the first side, over the paired runs.
    pub first: Spread,
    /// Metric of the second side, over the paired runs.
    pub second: Spread,
    /// Second side compared with the first.
    pub paired: Paired,
}

/// A run with numbers on one side only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmatched {
    /// Values of the run, including its seed: `policy=fifo rate=0.4 seed=1`.
    pub run: String,
    /// Status in the first results; none if it is not there.
    pub first: Option<Status>,
    /// Status in the second results; none if it is not there.
    pub second: Option<Status>,
}

/// Two sets of results, matched run by run.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Axes without the seed.
    pub axes: Vec<String>,
    /// Points with a run that is done on both sides, in the order of the first results.
    pub points: Vec<PairedPoint>,
    /// Number of points of either side.
    pub n_points_of: usize,
    /// Number of points at which a side has not finished all seeds, including those at which no seed is done on both sides,
    /// which are not in [`points`](Self::points).
    pub n_points_unfinished: usize,
    /// Number of runs requested on either side.
    pub n_runs_of: usize,
    /// Runs that are done on one side only, or on neither and with different statuses.
    pub unmatched: Vec<Unmatched>,
    /// Number of runs that ended with the same status, without numbers, on both sides.
    pub n_both_unfinished: usize,
}

fn axis_names(study: &Study) -> Vec<String> {
    study.axes.iter().map(|(name, _)| name.clone()).collect()
}

impl Comparison {
    /// Matches the rows of two results.
    ///
    /// # Errors
    /// If they vary different axes: the names of the first results' axes, and of the second's.
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
            n_points_of: 0,
            n_points_unfinished: 0,
            n_runs_of: 0,
            unmatched: Vec::new(),
            n_both_unfinished: 0,
        };
        let seed_axis = names.iter().position(|name| is_seed(name));
        let asked: BTreeSet<String> =
            [first.0, second.0].iter().flat_map(|study| study.seeds.iter().map(value_text)).collect();
        for row in first.1 {
            let own = key(&row);
            let other = seconds.remove(&own);
            let (one, two) = (row.outcome.status, other.as_ref().map(|other| other.outcome.status));
            let seed = seed_axis.map(|axis| own[axis].clone()).unwrap_or_default();
            let point = comparison.point_at(kept.iter().map(|axis| row.values[*axis].clone()).collect());
            point.n_of += 1;
            match other {
                Some(other) if one == Status::Done && two == Some(Status::Done) => {
                    point.pairs.push(PairedRun { seed, first: row, second: other });
                    continue;
                }
                Some(_) => point.n_unfinished += 1,
                None => {}
            }
            if two == Some(one) {
                comparison.n_both_unfinished += 1;
            } else {
                let run = name(&own);
                comparison.unmatched.push(Unmatched { run, first: Some(one), second: two });
            }
        }
        for (own, row) in seconds {
            let values = kept.iter().map(|axis| row.values[order[*axis]].clone()).collect();
            comparison.point_at(values).n_of += 1;
            let second = Some(row.outcome.status);
            comparison.unmatched.push(Unmatched { run: name(&own), first: None, second });
        }
        for point in &mut comparison.points {
            point.n_of = point.n_of.max(asked.len());
        }
        comparison.count_points();
        Ok(comparison)
    }

    /// Counts the points, and keeps those with something to compare.
    fn count_points(&mut self) {
        let points = &mut self.points;
        self.n_points_of = points.len();
        self.n_runs_of = points.iter().map(|point| point.n_of).sum();
        self.n_points_unfinished = points.iter().filter(|point| point.n() < point.n_of).count();
        points.retain(|point| !point.pairs.is_empty());
    }

    /// The point with these values, added if there is none.
    fn point_at(&mut self, values: Vec<Value>) -> &mut PairedPoint {
        let texts = |values: &[Value]| values.iter().map(value_text).collect::<Vec<_>>();
        let wanted = texts(&values);
        let found = self.points.iter().position(|point| texts(&point.values) == wanted);
        let at = found.unwrap_or_else(|| {
            self.points.push(PairedPoint { values, pairs: Vec::new(), n_of: 0, n_unfinished: 0 });
            self.points.len() - 1
        });
        &mut self.points[at]
    }

    /// Number of runs that are done on both sides.
    pub fn n_paired(&self) -> usize {
        self.points.iter().map(|point| point.pairs.len()).sum()
    }

    /// Second side ÷ first side over all points at which all seeds are compared, for a metric by position; none without such
    /// points, or where a value is not positive.
    pub fn overall(&self, metric: usize) -> Option<Overall> {
        let compared: Vec<&PairedPoint> =
            self.points.iter().filter(|point| point.compared(metric).is_some()).collect();
        let pairs = || compared.iter().flat_map(|point| &point.pairs);
        let seeds: BTreeSet<&str> = pairs().map(|run| run.seed.as_str()).collect();
        // Means for each seed over different points would differ by the points, too.
        let whole = || compared.iter().filter(|point| point.pairs.len() == seeds.len());
        let mut by_seed: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for PairedRun { seed, first, second } in whole().flat_map(|point| &point.pairs) {
            let (first, second) = (first.outcome.metrics[metric]?, second.outcome.metrics[metric]?);
            if !(first > 0.0 && second > 0.0) {
                return None;
            }
            by_seed.entry(seed).or_default().push((second / first).ln());
        }
        let means: Vec<f64> = by_seed.values().filter_map(|logs| Some(Spread::of(logs)?.mean)).collect();
        let ratio = Estimate::of(&means).map(|estimate| estimate.under(f64::exp))?;
        Some(Overall { ratio, n_points: whole().count() })
    }
}

impl PairedPoint {
    /// Number of runs that are done on both sides.
    pub fn n(&self) -> usize {
        self.pairs.len()
    }

    /// Whether no run has this metric on both sides, though all are done.
    pub fn lacks(&self, metric: usize) -> bool {
        let has = |row: &Row| row.outcome.metrics[metric].is_some();
        !self.pairs.iter().any(|run| has(&run.first) && has(&run.second))
    }

    /// Numbers of jobs given up, and of all measured jobs, on the first side and on the second, over the paired runs.
    pub fn given_up(&self) -> [GivenUp; 2] {
        let first: Vec<&Row> = self.pairs.iter().map(|run| &run.first).collect();
        let second: Vec<&Row> = self.pairs.iter().map(|run| &run.second).collect();
        [given_up(&first), given_up(&second)]
    }

    /// A metric, by position, at this point; none unless both sides have finished, with this metric, every seed that
    /// either has or was asked for.
    pub fn compared(&self, metric: usize) -> Option<Compared> {
        if self.n() < self.n_of {
            return None;
        }
        let of = |row: &Row| row.outcome.metrics[metric];
        let both = |run: &PairedRun| Some((of(&run.first)?, of(&run.second)?));
        let pairs: Vec<(f64, f64)> = self.pairs.iter().map(both).collect::<Option<_>>()?;
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
        let (seeds, published) = (Vec::new(), Vec::new());
        Study { name: String::new(), fixed: String::new(), axes, seeds, published }
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
        assert_eq!((point.n(), point.n_of, point.n_unfinished), (2, 3, 1));
        assert_eq!(point.compared(1), None, "the seed that B gave up would have been a slow one");
        assert_eq!((comparison.overall(1), comparison.n_paired()), (None, 2));
        assert_eq!((comparison.n_points_of, comparison.n_runs_of), (4, 6));
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
    fn points_with_a_part_of_the_seeds_have_no_means() {
        let done = |policy: &str, seed: u64, jct| row(&[json!(policy), json!(seed)], Status::Done, jct);
        let first = vec![done("a", 0, 1.0), done("a", 1, 2.0), done("a", 2, 2.0), done("b", 0, 1.0)];
        let second = vec![done("a", 0, 4.0), done("a", 1, 4.0), done("b", 0, 3.0)];
        let one = study(&["policy", "seed"]);
        let comparison = Comparison::of((&one, first), (&one, second)).unwrap();
        let [a, b] = &comparison.points[..] else { panic!("{comparison:?}") };
        assert_eq!(a.compared(1), None, "seed 2 is not there in B");
        let compared = b.compared(1).unwrap();
        assert_eq!((compared.first.mean, compared.second.mean), (1.0, 3.0));
        assert_eq!([(a.n(), a.n_of), (b.n(), b.n_of)], [(2, 3), (1, 1)]);
        let overall = comparison.overall(1).unwrap();
        assert!((overall.ratio.mean - 3.0).abs() < 1e-12, "of b alone");
        assert_eq!((overall.n_points, comparison.n_points_of, comparison.n_runs_of), (1, 2, 4));
        assert_eq!(comparison.n_points_unfinished, 1);
    }

    #[test]
    fn other_axes_are_refused() {
        let refused = Comparison::of((&study(&["policy"]), Vec::new()), (&study(&["seed"]), Vec::new()));
        assert_eq!(refused, Err(["policy".to_owned(), "seed".to_owned()]));
    }
}
