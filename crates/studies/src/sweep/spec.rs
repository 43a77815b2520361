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

/// The format's name, first line of every sweep.
pub const FORMAT: &str = "apportion/sweep-v1";
/// The most runs one sweep may have.
pub const POINTS_MAX: usize = 100_000;

/// A checked study.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepSpec {
    /// Its name, of which the results folder is called.
    pub name: String,
    /// The study's purpose, in words.
    pub description: Option<String>,
    /// The publication that the study reproduces, if any.
    pub source: Option<String>,
    /// What is varied, in the document's order; the first varies slowest.
    pub axes: Vec<Axis>,
    /// When a run is not made, or not finished.
    pub stop: StopSpec,
    /// Keep every measured job of every run, too.
    pub keep_jobs: bool,
    /// The log of which its runs' traces are windows.
    pub log: Option<log::LogSpec>,
    /// What others published of its metrics; nothing in its short form.
    pub published: Vec<Published>,
    /// Where relative paths in it start: its document's folder.
    pub folder: PathBuf,
    /// Points that are left out.
    skip: Vec<SkipRule>,
    /// The fixed part of every run: a tree of fields.
    fixed: Value,
    /// Fixed field → where it is written.
    fixed_at: BTreeMap<String, String>,
    /// Where each axis is written.
    places: Vec<AxisPlace>,
}

/// Where an axis is written.
#[derive(Clone, Debug, PartialEq)]
struct AxisPlace {
    path: String,
    /// Its values stand in a list, each at a place of its own.
    is_listed: bool,
}

/// A field and the values it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// As the document names it; the results' column.
    pub name: String,
    /// The field of a run, dotted.
    pub field: String,
    /// In the document's order, each once, in canonical form; of an automatic axis, its first rate.
    pub values: Vec<Value>,
    /// How it finds its other values, if it does.
    pub auto: Option<AutoSpec>,
}

/// When a run is not made, or not finished.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StopSpec {
    /// Whether a run whose arrival rate provably exceeds what the cluster can serve is recorded and not made.
    pub saturated: bool,
    /// A run that takes longer than this is given up, and recorded so; no limit by default.
    #[serde(deserialize_with = "wall_time")]
    #[schemars(with = "Option<TimeText>")]
    pub wall: Option<Seconds>,
    /// A run one decision of which takes longer than this is given up, and recorded as one that took too long; no limit by
    /// default. Rules, which solve no programs, have none, but for a function of Python, which is given up once it has answered.
    #[serde(deserialize_with = "wall_time")]
    #[schemars(with = "Option<TimeText>")]
    pub decision: Option<Seconds>,
    /// After so many rounds in a row in which no job ran a step, or each so slowly that it would not end within a century of
    /// simulated time, while no job is to arrive and no price to change, a run is given up: as a `livelock` if workers were
    /// leased in them, else as `starved`. Where workers or jobs fail at random, after a hundred times as many.
    #[schemars(range(min = 1), extend("x-unit" = "rounds"))]
    pub rounds: u64,
    /// Where arrivals never stop, a run is given up once the number of jobs that have arrived has doubled so often from
    /// the end of the measured window on (from 1000 at least): as `starved` if a measured job ran no step all the
    /// while, or less than a hundredth of the steps that it had left, as `growing` if the average number of active jobs doubled each time, too.
    /// Jobs are looked at only when the number of arrivals has doubled since the last look: one that stops just after a look is
    /// noticed up to two doublings later.
    #[schemars(range(min = 2, max = 20))]
    pub doublings: u32,
}

impl Default for StopSpec {
    fn default() -> Self {
        Self { saturated: false, wall: None, decision: None, rounds: 10_000, doublings: 4 }
    }
}

impl StopSpec {
    /// All of it on a line of YAML, as it is in force: what a document leaves out, too.
    pub fn in_force(&self) -> String {
        let Self { saturated, wall, decision, rounds, doublings } = self;
        let time = |field: &str, time: &Option<Seconds>| {
            time.map_or(String::new(), |time| format!("{field}: {}s, ", time.get()))
        };
        let times = time("wall", wall) + &time("decision", decision);
        format!("stop: {{saturated: {saturated}, {times}rounds: {rounds}, doublings: {doublings}}}")
    }

    /// When a run that gets nowhere is given up.
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
    /// With the place of everything wrong: unknown fields, values of the wrong kind or out of range, empty axes,
    /// values given twice, fields both fixed and varied, and points that are not sound runs.
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

    /// How many points the grid has, those included that are left out.
    pub fn n_points(&self) -> usize {
        self.axes.iter().map(|axis| axis.values.len()).product()
    }

    /// The run in which each axis has the value of this position: `[axes]`.
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

    /// Leaves out what a run says of worker types that its cluster lacks and another cluster of the sweep has.
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

    /// Is the point with these values left out? `values`: `[axes]`.
    pub fn is_skipped(&self, values: &[Value]) -> bool {
        self.skip.iter().any(|rule| rule.matches(values))
    }

    /// The position of the axis that finds its own values, if there is one.
    pub fn auto_axis(&self) -> Option<(usize, &AutoSpec)> {
        self.axes.iter().enumerate().find_map(|(position, axis)| Some((position, axis.auto.as_ref()?)))
    }

    /// Where the document says what a field is at a point: `[axes]` positions; for complaints about the point's run.
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

    /// The fixed part of every run as canonical text, to tell one study's results from another's.
    pub fn fixed_text(&self) -> String {
        apportion::spec::run::canonical(&self.fixed)
    }
}

/// A value as a cell of a table: text plain, counts as `v100=36,k80=4`, windows as `4000:5000`.
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
