//! The way in which co-located throughputs become known in a run.

use serde::{Deserialize, Serialize};

use super::Complaints;

/// The throughput estimator: off unless both `fraction` and `reference_models` are given.
///
/// Policies then see estimates of pairs, which measurements correct; jobs run at the true throughputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ProfilingSpec {
    /// The chance that an arriving job is profiled beside each reference on each worker type, 0 to 1.
    pub fraction: Option<f64>,
    /// Job types measured beforehand, the references: at least 1.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "job types")))]
    pub reference_models: Option<u64>,
    /// The weight of a new measurement, above 0, at most 1. By default 0.5, and 1 under `gavel` semantics.
    pub smoothing: Option<f64>,
}

impl ProfilingSpec {
    pub(super) fn check(&self, found: &mut Complaints) {
        let Self { fraction, reference_models, smoothing } = *self;
        if fraction.is_some() != reference_models.is_some() {
            let message = "`fraction` and `reference_models` are given together or not at all";
            found.push("profiling", message, None);
        } else if smoothing.is_some() && fraction.is_none() {
            let help = "give `fraction` and `reference_models`, too";
            found.push("profiling.smoothing", "nothing is profiled", Some(help));
        }
        if let Some(fraction) = fraction
            && !(0.0..=1.0).contains(&fraction)
        {
            found.push("profiling.fraction", format!("{fraction}, expected a number from 0 to 1"), None);
        }
        if reference_models == Some(0) {
            found.push("profiling.reference_models", "0 job types, expected at least 1", None);
        }
        if let Some(smoothing) = smoothing
            && !(smoothing > 0.0 && smoothing <= 1.0)
        {
            let message = format!("{smoothing}, expected a number above 0, at most 1");
            found.push("profiling.smoothing", message, None);
        }
    }
}
