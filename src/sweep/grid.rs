//! The points of a sweep: every combination of its axes' values, in one order.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde_json::Value;
use thiserror::Error;

use crate::spec::nearest::name_list;
use crate::spec::run::RunSpec;
use crate::spec::sweep::{SweepSpec, value_text};

/// One run of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Its position in the whole grid, from 0; the same whatever part of the grid is run.
    pub index: usize,
    /// The position of its value on each axis: `[axes]`.
    pub positions: Vec<usize>,
    /// Its value on each axis: `[axes]`.
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
            Point { index, positions: positions.clone(), values, spec: sweep.run(&positions) }
        })
        .collect()
}

/// Some values of some axes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Axis → the positions of the values that are wanted.
    wanted: BTreeMap<usize, BTreeSet<usize>>,
}

/// Why a selection selects nothing.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SelectionError {
    /// Not `AXIS=VALUE`.
    #[error("`{text}` is not AXIS=VALUE")]
    Syntax {
        /// What was given.
        text: String,
    },
    /// No such axis.
    #[error("the sweep has no axis `{name}`, expected one of {expected}")]
    UnknownAxis {
        /// What was given.
        name: String,
        /// The axes there are.
        expected: String,
    },
    /// No such value on the axis.
    #[error("axis `{axis}` has no value `{value}`, expected one of {expected}")]
    UnknownValue {
        /// The axis.
        axis: String,
        /// What was given.
        value: String,
        /// The values there are.
        expected: String,
    },
}

impl Selection {
    /// What pieces `AXIS=VALUE` select: values of one axis add to each other, axes restrict each other.
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
            let number: Option<f64> = value.parse().ok();
            let same = |other: &Value| {
                value_text(other) == value
                    || (number.is_some() && other.is_number() && other.as_f64() == number)
            };
            let values = &sweep.axes[axis].values;
            let position = values.iter().position(same).ok_or_else(|| {
                let texts: Vec<String> = values.iter().map(value_text).collect();
                SelectionError::UnknownValue {
                    axis: name.to_owned(),
                    value: value.to_owned(),
                    expected: name_list(texts.iter().map(String::as_str)),
                }
            })?;
            selection.wanted.entry(axis).or_default().insert(position);
        }
        Ok(selection)
    }

    /// Is this point selected?
    pub fn contains(&self, point: &Point) -> bool {
        self.wanted.iter().all(|(axis, positions)| positions.contains(&point.positions[*axis]))
    }
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
        for (piece, expected) in [
            ("policy", "`policy` is not AXIS=VALUE"),
            ("polic=x", "the sweep has no axis `polic`, expected one of `policy`, `rate`, `seed`"),
            ("rate=4", "axis `rate` has no value `4`, expected one of `1`, `2`, `3`"),
        ] {
            assert_eq!(Selection::parse(&sweep, &[piece]).unwrap_err().to_string(), expected);
        }
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
