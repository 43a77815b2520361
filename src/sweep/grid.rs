//! The points of a sweep: every combination of its axes' values, in one order.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use crate::spec::run::RunSpec;
use crate::spec::sweep::SweepSpec;

/// One run of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Its position in the whole grid, from 0; the same whatever part of the grid is run.
    pub index: usize,
    /// Its value on each axis: [axes].
    pub values: Vec<Value>,
    /// The run.
    pub spec: RunSpec,
}

/// All points, the last axis varying fastest.
pub fn points(sweep: &SweepSpec) -> Vec<Point> {
    let mut positions = vec![0; sweep.axes.len()];
    (0..sweep.n_points())
        .map(|index| {
            let mut rest = index;
            for (axis, position) in sweep.axes.iter().zip(&mut positions).rev() {
                *position = rest % axis.values.len();
                rest /= axis.values.len();
            }
            let values =
                sweep.axes.iter().zip(&positions).map(|(axis, at)| axis.values[*at].clone()).collect();
            Point { index, values, spec: sweep.run(&positions) }
        })
        .collect()
}

/// A part of a grid: number `index` of `count`, dealt out in turn, so that slow corners are spread evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: usize,
    count: usize,
}

impl Shard {
    /// The whole.
    pub const ALL: Self = Self { index: 1, count: 1 };

    /// Is this point in it?
    pub fn contains(&self, point: &Point) -> bool {
        point.index % self.count == self.index - 1
    }
}

impl FromStr for Shard {
    type Err = String;

    /// Reads `I/N` with 1 ≤ I ≤ N.
    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('/').and_then(|(index, count)| {
            Some((index.trim().parse::<usize>().ok()?, count.trim().parse::<usize>().ok()?))
        });
        match parsed {
            Some((index, count)) if (1..=count).contains(&index) => Ok(Self { index, count }),
            _ => Err(format!("`{text}` is no shard, expected I/N with I from 1 to N, such as 2/8")),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Source;

    fn sweep() -> SweepSpec {
        let text = "format: apportion/sweep-v1\nname: t\nrun: {cluster: {a: 1}, jobs: 5}\n\
                    axes: {policy: [x, y], rate: [1, 2, 3], seed: [0, 1]}\n";
        SweepSpec::parse(&Source::new("t.yaml", text), false).unwrap()
    }

    #[test]
    fn the_last_axis_varies_fastest() {
        let points = points(&sweep());
        assert_eq!(points.len(), 12);
        let brief: Vec<String> = points
            .iter()
            .take(4)
            .map(|p| format!("{} {} {}", p.spec.policy, p.spec.workload.rate.unwrap().get(), p.spec.seed))
            .collect();
        assert_eq!(brief, ["x 1 0", "x 1 1", "x 2 0", "x 2 1"]);
        assert!(points.iter().enumerate().all(|(index, point)| point.index == index));
    }

    #[test]
    fn shards_part_the_grid() {
        let points = points(&sweep());
        for count in 1..=13 {
            let mut taken = vec![0; points.len()];
            for index in 1..=count {
                let shard: Shard = format!("{index}/{count}").parse().unwrap();
                assert_eq!(shard.to_string(), format!("{index}/{count}"));
                for point in points.iter().filter(|point| shard.contains(point)) {
                    taken[point.index] += 1;
                }
            }
            assert!(taken.iter().all(|n| *n == 1), "{count} shards");
        }
        for text in ["", "1", "0/3", "4/3", "a/b", "1/0", "-1/2"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
