//! A study: fields of a simulation that are fixed, and fields that are varied.
//!
//! In: a document `apportion/sweep-v1`. Out: a checked [`SweepSpec`], every point of which is a sound
//! [`RunSpec`]. It runs nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use apportion::simulator::Patience;
use apportion::spec::document::{Source, SpecError};
use apportion::spec::run::{PricesSpec, RunSpec, TimeText};
use apportion::units::Seconds;
use fields::{overlap, set};
use reader::Reader;
use skip::SkipRule;

pub mod log;
mod auto;
mod axis;
mod document;
mod fields;
mod published;
mod reader;
mod schema;
mod skip;

pub use auto::{AutoSpec, Knee, Rung, RungEnding, Step};
pub use document::{QuickDocument, SweepDocument};
pub use fields::{are_alike, canonical_value, field_names, unlike_fields};
pub use published::Published;

/// Name of the format, on the first line of every sweep.
pub const FORMAT: &str = "apportion/sweep-v1";
/// The most runs of a sweep.
pub const POINTS_MAX: usize = 100_000;

/// A checked study.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepSpec {
    /// Name of the study, and of its results folder.
    pub name: String,
    /// Purpose of the study, in words.
    pub description: Option<String>,
    /// Publication that the study reproduces, if any.
    pub source: Option<String>,
    /// Axes in the document's order; the first varies slowest.
    pub axes: Vec<Axis>,
    /// Conditions under which a run is not made, or not finished.
    pub stop: StopSpec,
    /// Whether to keep every measured job of every run.
    pub keep_jobs: bool,
    /// Whether to keep the shares of every decision of every run.
    pub keep_allocations: bool,
    /// Log of which the runs' traces are windows.
    pub log: Option<log::LogSpec>,
    /// Published values of the study's metrics; empty in its short form.
    pub published: Vec<Published>,
    /// Folder of its document, from which relative paths start.
    pub folder: PathBuf,
    /// Points that are left out.
    skip: Vec<SkipRule>,
    /// Fixed fields of every run, as a tree.
    fixed: Value,
    /// Path in the document of each fixed field.
    fixed_at: BTreeMap<String, String>,
    /// Path in the document of each axis.
    places: Vec<AxisPlace>,
}

/// Place of an axis in the document.
#[derive(Clone, Debug, PartialEq)]
struct AxisPlace {
    path: String,
    /// Whether its values are in a list, each with a place of its own.
    is_listed: bool,
}

/// A field with the values that it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Name in the document and of the results' column.
    pub name: String,
    /// Field of a run, dotted.
    pub field: String,
    /// Values in the document's order, each once, in canonical form; for an automatic axis, its first rate.
    pub values: Vec<Value>,
    /// Rules for finding further values; none if all are listed.
    pub auto: Option<AutoSpec>,
}

/// Conditions under which a run is not made, or not finished.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StopSpec {
    /// Whether a run whose arrival rate provably exceeds what the cluster can serve is recorded and not made.
    pub saturated: bool,
    /// Wall time after which a run is given up, and recorded so; no limit by default.
    #[serde(deserialize_with = "wall_time")]
    #[schemars(with = "Option<TimeText>")]
    pub wall: Option<Seconds>,
    /// Wall time of one decision after which a run is given up, and recorded as one that took too long; no limit by default.
    /// Rules, which solve no programs, have none, except a Python function, which is given up once it has answered.
    #[serde(deserialize_with = "wall_time")]
    #[schemars(with = "Option<TimeText>")]
    pub decision: Option<Seconds>,
    /// After so many rounds in a row in which no job ran a step, or each so slowly that it would not end within a century of
    /// simulated time, while no job is to arrive and no price to change, a run is given up: as a `livelock` if workers were
    /// leased in them, else as `starved`. Where workers or jobs fail at random, after a hundred times as many.
    #[schemars(range(min = 1), extend("x-unit" = "rounds"))]
    pub rounds: u64,
    /// Number of doublings of the arrived jobs, from the end of the measured window on (from 1000 at least), after which a
    /// run whose arrivals never stop is given up: as `starved` if a measured job ran no step all the while, or less than a
    /// hundredth of the steps that it had left, as `growing` if the average number of active jobs doubled each time, too, and
    /// their number grew over the last doubling by more than four times the standard error of its growth. Jobs are examined
    /// only when the number of arrivals has doubled since the last time: one that stops just after is noticed up to two
    /// doublings later, and a load by a twentieth above the capacity only after some fifty thousand arrivals.
    #[schemars(range(min = 2, max = 20))]
    pub doublings: u32,
}

impl Default for StopSpec {
    fn default() -> Self {
        Self { saturated: false, wall: None, decision: None, rounds: 10_000, doublings: 4 }
    }
}

impl StopSpec {
    /// All conditions in force, including defaults, on one line of YAML.
    pub fn in_force(&self) -> String {
        let Self { saturated, wall, decision, rounds, doublings } = self;
        let time = |field: &str, time: &Option<Seconds>| {
            time.map_or(String::new(), |time| format!("{field}: {}s, ", time.get()))
        };
        let times = time("wall", wall) + &time("decision", decision);
        format!("stop: {{saturated: {saturated}, {times}rounds: {rounds}, doublings: {doublings}}}")
    }

    /// Limits after which a run without progress is given up.
    pub const fn patience(&self) -> Patience {
        Patience { rounds: Some(self.rounds), doublings: Some(self.doublings) }
    }
}

fn wall_time<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Seconds>, D::Error> {
    Ok(Option::<TimeText>::deserialize(deserializer)?.map(|time| time.0))
}

impl SweepSpec {
    /// Reads a study, in its `quick` form if asked for; both forms are checked.
    ///
    /// # Errors
    /// With the place of every error: unknown fields, values of the wrong kind or out of range, empty axes, values given
    /// twice, fields both fixed and varied, and points that are not valid runs.
    pub fn parse(source: &Source, quick: bool) -> Result<Self, SpecError> {
        let document: SweepDocument = source.parse_format(FORMAT)?;
        let whole = Reader::new(source).read(&document, None)?;
        let short = match &document.quick {
            Some(changes) => Some(Reader::new(source).read(&document, Some((changes, &whole.axes)))?),
            None => None,
        };
        match (quick, short) {
            (false, _) => Ok(whole),
            (true, Some(short)) => Ok(short),
            (true, None) => {
                let help = "add a section `quick: {run: …, axes: …}`, or leave out `--quick`";
                Err(source.error_at("name", "this sweep has no quick form", Some(help.to_owned())))
            }
        }
    }

    /// Number of points of the grid, including those that are left out.
    pub fn n_points(&self) -> usize {
        self.axes.iter().map(|axis| axis.values.len()).product()
    }

    /// The run with the values at these positions of the axes: `[axes]`.
    ///
    /// # Panics
    /// If there are not as many positions as axes, or one is out of range.
    pub fn run(&self, positions: &[usize]) -> RunSpec {
        assert_eq!(positions.len(), self.axes.len(), "one position per axis");
        let mut tree = self.fixed.clone();
        for (axis, position) in self.axes.iter().zip(positions) {
            set(&mut tree, &axis.field, axis.values[*position].clone());
        }
        let mut run: RunSpec =
            serde_json::from_value(tree).expect("values were checked one by one when the sweep was read");
        self.fit_to_cluster(&mut run);
        run
    }

    /// Removes settings of worker types that the run's cluster lacks and another cluster of the sweep has.
    fn fit_to_cluster(&self, run: &mut RunSpec) {
        let Some(axis) = self.axes.iter().find(|axis| axis.field == "cluster") else { return };
        let RunSpec { cluster, servers, prices, .. } = run;
        let stays = |name: &String| {
            let is_own = cluster.0.iter().any(|(own, _)| own == name);
            is_own || !axis.values.iter().any(|other| other.get(name).is_some())
        };
        servers.0.retain(|(name, _)| stays(name));
        if let PricesSpec::Constant(prices) = prices {
            prices.retain(|name, _| stays(name));
        }
    }

    /// Whether the point with these values is left out. `values`: `[axes]`.
    pub fn is_skipped(&self, values: &[Value]) -> bool {
        self.skip.iter().any(|rule| rule.matches(values))
    }

    /// Position and rules of the axis that finds its own values, if there is one.
    pub fn auto_axis(&self) -> Option<(usize, &AutoSpec)> {
        self.axes.iter().enumerate().find_map(|(position, axis)| Some((position, axis.auto.as_ref()?)))
    }

    /// Path in the document of a field at a point, for complaints about the point's run. `positions`: `[axes]`.
    pub fn path_of(&self, field: &str, positions: &[usize]) -> String {
        let axes = self.axes.iter().zip(&self.places).zip(positions);
        for ((axis, place), position) in axes {
            if overlap(&axis.field, field) {
                return if place.is_listed {
                    format!("{}[{position}]", place.path)
                } else {
                    place.path.clone()
                };
            }
        }
        if let Some(path) = self.fixed_at.get(field) {
            return path.clone();
        }
        match self.fixed_at.iter().find(|(other, _)| overlap(other, field)) {
            Some((_, path)) => path.rsplit_once('.').map_or("run", |(group, _)| group).to_owned(),
            None => "run".to_owned(),
        }
    }

    /// Fixed part of every run as canonical text, by which results of different studies are told apart.
    pub fn fixed_text(&self) -> String {
        apportion::spec::run::canonical(&self.fixed)
    }
}

/// A value as text for tables: text plain, counts as `v100=36,k80=4`, windows as `4000:5000`.
pub fn value_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(value_text).collect::<Vec<_>>().join(":"),
        Value::Object(map) => {
            let given = map.iter().filter(|(_, value)| !value.is_null());
            given.map(|(key, value)| format!("{key}={}", value_text(value))).collect::<Vec<_>>().join(",")
        }
        Value::Number(number) => match (number.as_f64(), number.is_f64()) {
            (Some(float), true) => format!("{float}"),
            _ => number.to_string(),
        },
        Value::Bool(flag) => flag.to_string(),
    }
}

#[cfg(test)]
mod tests;
