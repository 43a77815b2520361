//! The result of a simulation for programs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::lower::LowerBound;
use crate::output::Answer;
use apportion::metrics::Summary;
use apportion::spec::run::RunSpec;

/// The result of one simulation, as `apportion simulate --format json` prints it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Simulated<'a> {
    /// The status at its end: `done`, or why it was given up: `livelock`, `starved`, `growing` or `unresolved`. If it was given up, its
    /// numbers are of the measured jobs that were done by then.
    pub(super) status: &'a str,
    /// The evidence for giving it up; null if it is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    /// Jobs that were to be measured; null if their number is not known.
    pub(super) jobs_to_measure: Option<u64>,
    #[serde(flatten)]
    pub(super) summary: &'a Summary,
    /// A bound that no schedule of the jobs is below, with `--lower-bound`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lower_bound: Option<&'a LowerBound>,
    /// Wall time of the simulation.
    #[schemars(extend("x-unit" = "s"))]
    pub(super) wall_seconds: f64,
    /// The identity of the run: SHA-256 of its specification and its data, in hexadecimal.
    pub(super) digest: &'a str,
    /// SHA-256 of the data that it read, in hexadecimal, by the name of the data.
    pub(super) data: &'a BTreeMap<String, String>,
    /// The whole specification of the run.
    pub(super) spec: &'a RunSpec,
}

impl Answer for Simulated<'_> {
    const KIND: &'static str = "simulation";
}
