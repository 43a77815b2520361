//! Rows that differ in their seed alone, put together: the mean of a metric and its spread.

use serde_json::Value;

use crate::sweep::outcome::Status;
use crate::sweep::spec::value_text;
use crate::sweep::store::{Row, Study};

/// The axis over which runs are repeated.
const REPEATED: &str = "seed";

/// Runs that differ in their seed alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Their value on each of [`Groups::axes`].
    pub values: Vec<Value>,
    /// Runs of each status: [`Status::ALL`].
    pub by_status: [usize; Status::ALL.len()],
    /// The mean over finished runs, if there is any.
    pub mean: Option<f64>,
    /// The standard deviation over finished runs (n − 1), if there are two.
    pub deviation: Option<f64>,
    /// The proven capacity in jobs/h, where it was computed.
    pub capacity: Option<f64>,
}

impl Group {
    /// Runs of this status.
    pub fn n(&self, status: Status) -> usize {
        self.by_status[status as usize]
    }
}

/// All groups, in the order of the grid.
#[derive(Clone, Debug, PartialEq)]
pub struct Groups {
    /// The axes apart from the seed.
    pub axes: Vec<String>,
    /// In the order of the rows.
    pub groups: Vec<Group>,
}

impl Groups {
    /// Groups rows, given in the order of the grid, by everything but the seed.
    pub fn of(study: &Study, rows: &[Row], metric: usize) -> Self {
        let is_seed = |name: &str| name.rsplit('.').next() == Some(REPEATED);
        let kept: Vec<usize> = (0..study.axes.len()).filter(|axis| !is_seed(&study.axes[*axis].0)).collect();
        let mut groups: Vec<(Group, Vec<f64>)> = Vec::new();
        for row in rows {
            let values: Vec<Value> = kept.iter().map(|axis| row.values[*axis].clone()).collect();
            let found = groups.iter().position(|(group, _)| group.values == values);
            let position = found.unwrap_or_else(|| {
                let group = Group {
                    values,
                    by_status: [0; Status::ALL.len()],
                    mean: None,
                    deviation: None,
                    capacity: None,
                };
                groups.push((group, Vec::new()));
                groups.len() - 1
            });
            let (group, done) = &mut groups[position];
            group.by_status[row.outcome.status as usize] += 1;
            group.capacity = group.capacity.or(row.outcome.capacity);
            if row.outcome.status == Status::Done {
                done.extend(row.outcome.metrics[metric]);
            }
        }
        let groups = groups
            .into_iter()
            .map(|(mut group, done)| {
                (group.mean, group.deviation) = mean_and_deviation(&done);
                group
            })
            .collect();
        Self { axes: kept.into_iter().map(|axis| study.axes[axis].0.clone()).collect(), groups }
    }

    /// The position of an axis by the last part of its name.
    pub fn axis(&self, name: &str) -> Option<usize> {
        self.axes.iter().position(|axis| axis.rsplit('.').next() == Some(name))
    }

    /// The texts of an axis's values, each once, in the order in which they come.
    pub fn texts(&self, axis: usize) -> Vec<String> {
        let mut texts: Vec<String> = Vec::new();
        for group in &self.groups {
            let text = value_text(&group.values[axis]);
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        texts
    }
}

/// Mean, and the square root of the variance with n − 1.
fn mean_and_deviation(values: &[f64]) -> (Option<f64>, Option<f64>) {
    let n = values.len() as f64;
    if values.is_empty() {
        return (None, None);
    }
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (Some(mean), (values.len() > 1).then(|| (squares / (n - 1.0)).sqrt()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sweep::outcome::Outcome;

    fn row(policy: &str, seed: u64, status: Status, jct: f64) -> Row {
        let mut outcome = Outcome::without_metrics(status, "");
        outcome.metrics[1] = Some(jct);
        let empty = String::new;
        Row {
            digest: empty(),
            values: vec![json!(policy), json!(seed)],
            outcome,
            version: empty(),
            spec: empty(),
            data: empty(),
            seconds: 0.0,
        }
    }

    #[test]
    fn seeds_are_put_together() {
        let axes = vec![("policy".to_owned(), Vec::new()), ("seed".to_owned(), Vec::new())];
        let study = Study { name: String::new(), fixed: String::new(), axes };
        let rows = [
            row("a", 0, Status::Done, 1.0),
            row("a", 1, Status::Done, 3.0),
            row("a", 2, Status::Failed, 99.0),
            row("b", 0, Status::Saturated, 99.0),
        ];
        let groups = Groups::of(&study, &rows, 1);
        assert_eq!(groups.axes, ["policy"]);
        assert_eq!(groups.texts(0), ["a", "b"]);
        assert_eq!((groups.axis("policy"), groups.axis("rate")), (Some(0), None));
        let [a, b] = &groups.groups[..] else { panic!("{groups:?}") };
        assert_eq!((a.mean, a.n(Status::Done), a.n(Status::Failed)), (Some(2.0), 2, 1));
        assert!((a.deviation.unwrap() - 2.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!((b.mean, b.deviation, b.n(Status::Saturated)), (None, None, 1));
    }
}
