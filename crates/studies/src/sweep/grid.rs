//! Points of a sweep: every combination of its axes' values, in one order.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde_json::Value;
use thiserror::Error;

use crate::sweep::spec::{Axis, SweepSpec, canonical_value, value_text};
use apportion::spec::nearest::name_list;
use apportion::spec::run::RunSpec;
use apportion::units::JobsPerHour;
use apportion::workload::random::mixed;

/// A run of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Position in the whole grid, from 0; the same whichever part of the grid is run.
    pub index: usize,
    /// Position of its value on each axis: `[axes]`.
    pub positions: Vec<usize>,
    /// Value on each axis: `[axes]`.
    pub values: Vec<Value>,
    /// Spec of the run.
    pub spec: RunSpec,
}

impl Point {
    /// This point at another arrival rate, where the sweep finds its rates itself (`auto`). The index stays, so that all
    /// rates of one ladder belong to one shard.
    #[must_use]
    pub fn at_rate(&self, sweep: &SweepSpec, rate: f64) -> Self {
        let mut point = self.clone();
        if let Some((axis, _)) = sweep.auto_axis() {
            point.values[axis] = rate.into();
            point.spec.workload.rate = Some(JobsPerHour::new(rate));
        }
        point
    }
}

/// All points that are not left out, with the last axis varying fastest; of a ladder, its first rung.
pub fn points(sweep: &SweepSpec) -> Vec<Point> {
    let mut positions = vec![0; sweep.axes.len()];
    (0..sweep.n_points())
        .map(|index| {
            let mut rest = index;
            for (axis, position) in sweep.axes.iter().zip(&mut positions).rev() {
                *position = rest % axis.values.len();
                rest /= axis.values.len();
            }
            let values: Vec<Value> =
                sweep.axes.iter().zip(&positions).map(|(axis, at)| axis.values[*at].clone()).collect();
            (index, positions.clone(), values)
        })
        .filter(|(_, _, values)| !sweep.is_skipped(values))
        .map(|(index, positions, values)| Point { index, spec: sweep.run(&positions), positions, values })
        .collect()
}

/// A selection of values of some axes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Positions of the selected values, by axis.
    wanted: BTreeMap<usize, BTreeSet<usize>>,
}

/// Reason why a selection is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SelectionError {
    /// The text is not `AXIS=VALUE`.
    #[error("`{text}` is not AXIS=VALUE")]
    Syntax {
        /// The text that was given.
        text: String,
    },
    /// The sweep has no such axis.
    #[error("the sweep has no axis `{name}`, expected one of {expected}")]
    UnknownAxis {
        /// The name that was given.
        name: String,
        /// Names of its axes.
        expected: String,
    },
    /// The axis finds its values while the sweep runs.
    #[error("axis `{axis}` finds its values while the sweep runs: they cannot be selected")]
    Automatic {
        /// Name of the axis.
        axis: String,
    },
    /// The axis has no such value.
    #[error("axis `{axis}` has no value `{value}`, expected one of {expected}")]
    UnknownValue {
        /// Name of the axis.
        axis: String,
        /// The value that was given.
        value: String,
        /// Values of the axis.
        expected: String,
    },
}

impl Selection {
    /// The selection of pieces `AXIS=VALUE`: values of one axis add to each other, axes restrict each other.
    ///
    /// # Errors
    /// If a piece names no axis of the sweep, or no value of it.
    pub fn parse<S: AsRef<str>>(sweep: &SweepSpec, pieces: &[S]) -> Result<Self, SelectionError> {
        let mut selection = Self::default();
        for piece in pieces {
            let text = piece.as_ref();
            let syntax = || SelectionError::Syntax { text: text.to_owned() };
            let (name, value) = text.split_once('=').ok_or_else(syntax)?;
            let (name, value) = (name.trim(), value.trim());
            let found = sweep.axes.iter().position(|axis| axis.name == name || axis.field == name);
            let axis = found.ok_or_else(|| SelectionError::UnknownAxis {
                name: name.to_owned(),
                expected: name_list(sweep.axes.iter().map(|axis| axis.name.as_str())),
            })?;
            if sweep.axes[axis].auto.is_some() {
                return Err(SelectionError::Automatic { axis: name.to_owned() });
            }
            let positions = positions(&sweep.axes[axis], value);
            if positions.is_empty() {
                let texts: Vec<String> = sweep.axes[axis].values.iter().map(value_text).collect();
                return Err(SelectionError::UnknownValue {
                    axis: name.to_owned(),
                    value: value.to_owned(),
                    expected: name_list(texts.iter().map(String::as_str)),
                });
            }
            selection.wanted.entry(axis).or_default().extend(positions);
        }
        Ok(selection)
    }

    /// Whether this point is selected.
    pub fn contains(&self, point: &Point) -> bool {
        self.wanted.iter().all(|(axis, positions)| positions.contains(&point.positions[*axis]))
    }

    /// Selected values of an axis.
    pub fn of_axis(&self, axis: usize, values: &[Value]) -> Vec<Value> {
        let is_wanted =
            |position: &usize| self.wanted.get(&axis).is_none_or(|positions| positions.contains(position));
        (0..values.len()).filter(is_wanted).map(|position| values[position].clone()).collect()
    }
}

/// Positions of the values of an axis that match a text: a value as results or sweeps write it, or a range FROM:END of
/// seeds.
fn positions(axis: &Axis, text: &str) -> Vec<usize> {
    let typed = serde_yaml::from_str(text).ok().and_then(|typed| canonical_value(&axis.field, typed).ok());
    let typed = typed.flatten();
    let number = |value: &Value| value.as_f64();
    let is_meant = |value: &Value| {
        value_text(value) == text
            || typed.as_ref() == Some(value)
            || typed
                .as_ref()
                .and_then(number)
                .zip(number(value))
                .is_some_and(|(one, other)| one.total_cmp(&other).is_eq())
    };
    let of = |is_meant: &dyn Fn(&Value) -> bool| -> Vec<usize> {
        let values = axis.values.iter().enumerate();
        values.filter(|(_, value)| is_meant(value)).map(|(position, _)| position).collect()
    };
    let found = of(&is_meant);
    let whole = |part: &str| part.trim().parse::<u64>().ok();
    match text.split_once(':').map(|(from, end)| (whole(from), whole(end))) {
        Some((Some(from), Some(end))) if found.is_empty() && axis.field == "seed" => {
            of(&|value| value.as_u64().is_some_and(|seed| (from..end).contains(&seed)))
        }
        _ => found,
    }
}

/// A part of a list of points: number `index` of `count`, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: usize,
    count: usize,
}

impl Default for Shard {
    fn default() -> Self {
        Self::ALL
    }
}

impl Shard {
    /// The whole list as one part.
    pub const ALL: Self = Self { index: 1, count: 1 };

    /// Shard, from 1, of each of `n` points, always the same: shards differ by at most one point, and the points are
    /// shuffled, so that no value of an axis, such as a high rate, falls to one shard alone.
    pub fn deal(n: usize, count: usize) -> Vec<usize> {
        let mut shuffled: Vec<usize> = (0..n).collect();
        shuffled.sort_by_key(|position| mixed(*position as u64));
        let mut shards = vec![1; n];
        for (turn, position) in shuffled.into_iter().enumerate() {
            shards[position] = turn % count + 1;
        }
        shards
    }

    /// Points that belong to this shard.
    pub fn of(self, points: Vec<Point>) -> Vec<Point> {
        let shards = Self::deal(points.len(), self.count);
        points
            .into_iter()
            .zip(shards)
            .filter(|(_, shard)| *shard == self.index)
            .map(|(point, _)| point)
            .collect()
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
    use apportion::spec::Source;

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
    fn a_selection_joins_values_and_crosses_axes() {
        let sweep = sweep();
        let points = points(&sweep);
        let selected = |pieces: &[&str]| {
            let selection = Selection::parse(&sweep, pieces).unwrap();
            points
                .iter()
                .filter(|point| selection.contains(point))
                .map(|point| point.index)
                .collect::<Vec<_>>()
        };
        assert_eq!(selected(&[]).len(), 12);
        assert_eq!(selected(&["policy=y", "rate=2.0"]), [8, 9]);
        assert_eq!(selected(&["workload.rate=1", "rate=3", "seed=0"]), [0, 4, 6, 10]);
        assert_eq!(selected(&["policy=x", "seed=0:2"]).len(), 6);
        assert_eq!(selected(&["policy=x", "seed=1:9"]), [1, 3, 5]);
        for (piece, expected) in [
            ("policy", "`policy` is not AXIS=VALUE"),
            ("polic=x", "the sweep has no axis `polic`, expected one of `policy`, `rate`, `seed`"),
            ("rate=1:3", "axis `rate` has no value `1:3`, expected one of `1`, `2`, `3`"),
            ("seed=2:4", "axis `seed` has no value `2:4`, expected one of `0`, `1`"),
            ("rate=4", "axis `rate` has no value `4`, expected one of `1`, `2`, `3`"),
        ] {
            assert_eq!(Selection::parse(&sweep, &[piece]).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn a_value_is_selected_as_it_is_typed() {
        let text = "format: apportion/sweep-v1\nname: t\nrun: {rate: 1, jobs: 5}\n\
                    axes: {policy: [x], preemption_cost: [0, 30s, 2min], cluster: [{a: 1}, {a: 2, b: 1}]}\n";
        let sweep = SweepSpec::parse(&Source::new("t.yaml", text), false).unwrap();
        let points = points(&sweep);
        let selected = |piece: &str| {
            let selection = Selection::parse(&sweep, &[piece]).unwrap();
            points
                .iter()
                .filter(|point| selection.contains(point))
                .map(|point| point.index)
                .collect::<Vec<_>>()
        };
        for (pieces, expected) in [
            (["preemption_cost=30s", "preemption_cost=30", "preemption_cost=0.5min"], [2, 3]),
            (["preemption_cost=2min", "preemption_cost=120", "preemption_cost=120.0"], [4, 5]),
        ] {
            for piece in pieces {
                assert_eq!(selected(piece), expected, "{piece}");
            }
        }
        for piece in ["cluster=a=2,b=1", "cluster={a: 2, b: 1}"] {
            assert_eq!(selected(piece), [1, 3, 5], "{piece}");
        }
    }

    #[test]
    fn points_are_left_out_and_the_others_keep_their_index() {
        let text = "format: apportion/sweep-v1\nname: t\nrun: {cluster: {a: 1}, jobs: 5}\n\
                    axes: {policy: [x, y], rate: [1, 2, 3], seed: [0, 1]}\n\
                    skip: [{policy: y, rate: {from: 2}}, {seed: 1, rate: [1, 3]}]\n";
        let sweep = SweepSpec::parse(&Source::new("t.yaml", text), false).unwrap();
        let left: Vec<usize> = points(&sweep).iter().map(|point| point.index).collect();
        assert_eq!(left, [0, 2, 3, 4, 6]);
    }

    #[test]
    fn a_ladder_is_one_point_until_it_is_climbed() {
        let text = "format: apportion/sweep-v1\nname: t\nrun: {cluster: {a: 1}, jobs: 5}\n\
                    axes: {policy: [x, y], rate: auto, seed: [0, 1]}\n";
        let sweep = SweepSpec::parse(&Source::new("t.yaml", text), false).unwrap();
        let feet = points(&sweep);
        assert_eq!(feet.len(), 4);
        let higher = feet[2].at_rate(&sweep, 1.5);
        assert_eq!((higher.index, &higher.values[1]), (2, &serde_json::json!(1.5)));
        assert_eq!(higher.spec.workload.rate.map(JobsPerHour::get), Some(1.5));
        let refused = Selection::parse(&sweep, &["rate=0.1"]).unwrap_err();
        assert!(matches!(refused, SelectionError::Automatic { .. }));
    }

    #[test]
    fn shards_part_the_grid() {
        let points = points(&sweep());
        for count in 1..=13 {
            let mut taken = vec![0; points.len()];
            let mut sizes = Vec::new();
            for index in 1..=count {
                let shard: Shard = format!("{index}/{count}").parse().unwrap();
                assert_eq!(shard.to_string(), format!("{index}/{count}"));
                let part = shard.of(points.clone());
                sizes.push(part.len());
                for point in part {
                    taken[point.index] += 1;
                }
            }
            assert!(taken.iter().all(|n| *n == 1), "{count} shards");
            assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{sizes:?}");
        }
        let of_a_seed = |shard: &str| {
            let part = shard.parse::<Shard>().unwrap().of(points.clone());
            part.iter().filter(|point| point.spec.seed == 0).count()
        };
        assert!((2..=4).contains(&of_a_seed("1/2")), "an axis of two values is not split by its values");
        for text in ["", "1", "0/3", "4/3", "a/b", "1/0", "-1/2"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
