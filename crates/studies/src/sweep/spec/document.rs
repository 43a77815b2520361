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
    /// Name of the study, also of its results folder: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Purpose of the study.
    #[serde(default)]
    pub description: Option<String>,
    /// Publication that the study reproduces.
    #[serde(default)]
    pub source: Option<String>,
    /// Log on which the study runs; its runs' traces are windows of the log.
    #[serde(default)]
    pub log: Option<LogSpec>,
    /// Fixed fields of every run.
    #[serde(default)]
    #[schemars(with = "FixedFields")]
    pub(super) run: serde_yaml::Mapping,
    /// Varied fields, with their values. The first varies slowest.
    #[schemars(with = "VariedFields")]
    pub(super) axes: serde_yaml::Mapping,
    /// Conditions under which a run is not made, or not finished.
    #[serde(default)]
    pub stop: StopSpec,
    /// Points that are left out: those that agree with all of one entry, such as `{policy: fifo, rate: {from: 5}}`.
    #[serde(default)]
    #[schemars(with = "Vec<SkippedPoints>")]
    pub(super) skip: Vec<serde_yaml::Mapping>,
    /// Whether to keep every measured job of every run, in the table `jobs`.
    #[serde(default)]
    pub keep_jobs: bool,
    /// Whether to keep the shares that every decision of every run gave, in the table `allocations`.
    #[serde(default)]
    pub keep_allocations: bool,
    /// Published values of the study's metrics. `results show` and `report` show these points beside the study's own, but
    /// not beside those of its short form, which has other runs.
    #[serde(default)]
    pub(super) published: Vec<PublishedDocument>,
    /// Changes that `--quick` makes.
    #[serde(default)]
    pub(super) quick: Option<QuickDocument>,
}

/// Changes that `--quick` makes.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct QuickDocument {
    /// Fixed fields of every run, added to those of the whole study or replacing them.
    #[schemars(with = "FixedFields")]
    pub(super) run: serde_yaml::Mapping,
    /// Other values of some of the study's axes.
    #[schemars(with = "VariedFields")]
    pub(super) axes: serde_yaml::Mapping,
}
