//! The document as written, before anything in it is checked.

use schemars::JsonSchema;
use serde::Deserialize;

use super::log::LogSpec;
use super::published::PublishedDocument;
use super::schema::{FixedFields, SkippedPoints, VariedFields};
use super::{FORMAT, StopSpec};

/// A study: a grid of simulations, of which some fields are fixed and others are varied. `apportion sweep` runs it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SweepDocument {
    /// Kind and version of the document.
    #[schemars(extend("const" = FORMAT))]
    pub format: String,
    /// The name of the study, after which its folder of results is called: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// What the study is for.
    #[serde(default)]
    pub description: Option<String>,
    /// The publication that the study reproduces.
    #[serde(default)]
    pub source: Option<String>,
    /// The log that the study runs on, of which its runs' traces are windows.
    #[serde(default)]
    pub log: Option<LogSpec>,
    /// Fields of every run.
    #[serde(default)]
    #[schemars(with = "FixedFields")]
    pub(super) run: serde_yaml::Mapping,
    /// Fields that are varied, with their values. The first varies slowest.
    #[schemars(with = "VariedFields")]
    pub(super) axes: serde_yaml::Mapping,
    /// When a run is not made, or not finished.
    #[serde(default)]
    pub stop: StopSpec,
    /// Points that are left out: those that agree with all of one entry, such as `{policy: fifo, rate: {from: 5}}`.
    #[serde(default)]
    #[schemars(with = "Vec<SkippedPoints>")]
    pub(super) skip: Vec<serde_yaml::Mapping>,
    /// Whether to keep every measured job of every run, in the table `jobs`.
    #[serde(default)]
    pub keep_jobs: bool,
    /// What others published of the study's metrics. `results show` and `report` show these points beside the study's own, but
    /// not beside those of its short form, which has other runs.
    #[serde(default)]
    pub(super) published: Vec<PublishedDocument>,
    /// What `--quick` changes.
    #[serde(default)]
    pub(super) quick: Option<QuickDocument>,
}

/// What `--quick` changes.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct QuickDocument {
    /// Fields of every run, beside those of the whole study or in place of them.
    #[schemars(with = "FixedFields")]
    pub(super) run: serde_yaml::Mapping,
    /// Other values of some of the study's axes.
    #[schemars(with = "VariedFields")]
    pub(super) axes: serde_yaml::Mapping,
}
