//! Rows that differ only in their seed, summarized: the mean of a metric and its spread.

use apportion::metrics::statistics::Repeated;
use apportion::metrics::{METRICS, Metric};
use serde_json::Value;

use crate::report::study::GivenUp;
use crate::sweep::outcome::Status;
use crate::sweep::spec::{Published, value_text};
use crate::sweep::store::{Row, Study, is_seed};

/// Runs that differ only in their seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Values on each of [`Groups::axes`].
    pub values: Vec<Value>,
    /// Number of runs by status, in the order of [`Status::ALL`].
    pub by_status: [usize; Status::ALL.len()],
    /// Metric over the finished runs, with the number of seeds there should be; none without finished runs.
    pub metric: Option<Repeated>,
    /// Measured jobs of the finished runs that were given up.
    pub given_up: GivenUp,
    /// Proven capacity, jobs/h, where it was computed.
    pub capacity: Option<f64>,
    /// Published value of the metric, in its unit for people.
    pub published: Option<f64>,
}

impl Group {
    /// Number of runs with this status.
    pub fn n(&self, status: Status) -> usize {
        self.by_status[status as usize]
    }
}

/// Groups of runs, in the order of the grid.
#[derive(Clone, Debug, PartialEq)]
pub struct Groups {
    /// Axes without the seed.
    pub axes: Vec<String>,
    /// Number of requested seeds, at least one.
    pub n_seeds: usize,
    /// Groups in the order of the rows.
    pub groups: Vec<Group>,
    /// Sources of the published values of the metric, each once; empty if there are none.
    pub sources: Vec<String>,
}

impl Groups {
    /// Groups rows, given in the order of the grid, by all axes but the seed.
    pub fn of(study: &Study, rows: &[Row], metric: usize) -> Self {
        let kept: Vec<usize> = (0..study.axes.len()).filter(|axis| !is_seed(&study.axes[*axis].0)).collect();
        let n_seeds = study.seed_texts(rows).len().max(1);
        let mut members: Vec<(Vec<Value>, Vec<&Row>)> = Vec::new();
        for row in rows {
            let values: Vec<Value> = kept.iter().map(|axis| row.values[*axis].clone()).collect();
            match members.iter_mut().find(|(other, _)| *other == values) {
                Some((_, rows)) => rows.push(row),
                None => members.push((values, vec![row])),
            }
        }
        let axes: Vec<String> = kept.iter().map(|axis| study.axes[*axis].0.clone()).collect();
        let name = METRICS[metric].name;
        let published: Vec<&Published> =
            study.published.iter().filter(|published| published.metric == name).collect();
        let group = |(values, rows): (Vec<Value>, Vec<&Row>)| {
            let mut by_status = [0; Status::ALL.len()];
            for row in &rows {
                by_status[row.outcome.status as usize] += 1;
            }
            let done: Vec<&Row> =
                rows.iter().copied().filter(|row| row.outcome.status == Status::Done).collect();
            let metrics: Vec<f64> = done.iter().filter_map(|row| row.outcome.metrics[metric]).collect();
            Group {
                published: published.iter().find_map(|published| value_of(published, &axes, &values)),
                values,
                by_status,
                metric: Repeated::of(&metrics, n_seeds),
                given_up: given_up(&done),
                capacity: rows.iter().find_map(|row| row.outcome.capacity),
            }
        };
        let groups = members.into_iter().map(group).collect();
        let mut sources: Vec<String> = published.iter().map(|published| published.source.clone()).collect();
        sources.dedup();
        Self { axes, n_seeds, groups, sources }
    }

    /// Position of an axis by the last part of its name.
    pub fn axis(&self, name: &str) -> Option<usize> {
        self.axes.iter().position(|axis| axis.rsplit('.').next() == Some(name))
    }

    /// Texts of an axis's values, each once, in the order in which they come.
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

/// Published value at these values of the axes.
fn value_of(published: &Published, axes: &[String], values: &[Value]) -> Option<f64> {
    let at = |is: &dyn Fn(&str) -> bool| axes.iter().position(|axis| is(axis)).map(|axis| &values[axis]);
    let policy = at(&|axis| axis.rsplit('.').next() == Some("policy"))?.as_str()?;
    let place = at(&|axis| axis == published.axis)?.as_f64()?;
    let mut points = published.points(policy);
    points.find(|(other, _)| other.total_cmp(&place).is_eq()).map(|(_, value)| value)
}

/// Measured jobs of finished runs that were given up; 0 for results of older versions, which did not count them.
pub fn given_up(done: &[&Row]) -> GivenUp {
    let count = |row: &Row, name: &str| row.outcome.metrics[Metric::position(name)?];
    let both = |row: &&Row| Some((count(row, "n_jobs")?, count(row, "n_measured")?));
    let (completed, all) =
        done.iter().filter_map(both).fold((0.0, 0.0), |sums, (n, n_of)| (sums.0 + n, sums.1 + n_of));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts of jobs, which saturate"
    )]
    let whole = |count: f64| count as usize;
    GivenUp { n: whole(all - completed), n_of: whole(all) }
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
        let (seeds, published) = (Vec::new(), Vec::new());
        let mut study = Study { name: String::new(), fixed: String::new(), axes, seeds, published };
        let rows = [
            row("a", 0, Status::Done, 1.0),
            row("a", 1, Status::Done, 3.0),
            row("a", 2, Status::Failed, 99.0),
            row("b", 0, Status::Saturated, 99.0),
            row("c", 0, Status::Done, 1.0),
            row("c", 1, Status::Done, 3.0),
            row("c", 2, Status::Done, 5.0),
            row("d", 0, Status::Done, 1.0),
        ];
        let groups = Groups::of(&study, &rows, 1);
        assert_eq!(groups.axes, ["policy"]);
        assert_eq!(groups.texts(0), ["a", "b", "c", "d"]);
        assert_eq!((groups.axis("policy"), groups.axis("rate")), (Some(0), None));
        let [a, b, c, d] = &groups.groups[..] else { panic!("{groups:?}") };
        let part = a.metric.unwrap();
        assert_eq!((part.whole(), part.there().mean, part.there().n, part.n_of()), (None, 2.0, 2, 3));
        assert_eq!((a.n(Status::Done), a.n(Status::Failed)), (2, 1));
        assert_eq!((b.metric, b.n(Status::Saturated)), (None, 1));
        let whole = c.metric.unwrap().whole().unwrap();
        assert_eq!((whole.mean, whole.deviation), (3.0, Some(2.0)));
        assert_eq!(d.metric.unwrap().whole(), None, "seeds that were never run are missing, too");
        study.seeds = [0, 1, 2, 3].map(Value::from).to_vec();
        let groups = Groups::of(&study, &rows, 1);
        let c = groups.groups[2].metric.unwrap();
        assert_eq!((groups.n_seeds, c.whole(), c.there().n), (4, None, 3), "no point has the last seed");
    }
}
