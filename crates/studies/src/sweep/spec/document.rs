//! The document as written, before anything in it is checked.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::StopSpec;
use apportion::spec::run::RunSpec;

/// A study as written.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SweepDocument {
    /// `apportion/sweep-v1`.
    pub format: String,
    /// Letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: Option<String>,
    /// Whose study it is.
    #[serde(default)]
    pub source: Option<String>,
    /// Fields of every run.
    #[serde(default)]
    #[schemars(with = "RunSpec")]
    pub(super) run: serde_yaml::Mapping,
    /// Fields varied, each a list, a range `{from, to, points, scale: linear | log}`, or, for the arrival rate, `auto`.
    #[schemars(with = "Map<String, Value>")]
    pub(super) axes: serde_yaml::Mapping,
    /// When a run is not made, or not finished.
    #[serde(default)]
    pub stop: StopSpec,
    /// Points that are left out: those that agree with all of one entry, `{policy: fifo, rate: {from: 5}}`.
    #[serde(default)]
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub(super) skip: Vec<serde_yaml::Mapping>,
    /// Keep every measured job of every run in the table `jobs`.
    #[serde(default)]
    pub keep_jobs: bool,
    /// What `--quick` changes.
    #[serde(default)]
    pub(super) quick: Option<QuickDocument>,
}

/// What `--quick` changes: fixed fields, and the values of axes.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct QuickDocument {
    #[schemars(with = "RunSpec")]
    pub(super) run: serde_yaml::Mapping,
    #[schemars(with = "Map<String, Value>")]
    pub(super) axes: serde_yaml::Mapping,
}
