//! The choice between a published system as its code ran and as it was meant.

use serde::{Deserialize, Serialize};

/// Whether a published system's oddities are kept. Documents and flags also write `published` as `gavel` or `released`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fidelity {
    /// The system as its authors describe it, with random streams of our own.
    #[default]
    Corrected,
    /// The system as its code runs, oddities and random draws included, so that its runs can be repeated job for job.
    #[serde(alias = "gavel", alias = "released")]
    Published,
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Fidelity {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Fidelity".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "`corrected`: the system as its authors describe it, with random streams of our own. `published`, which may also be written `gavel` or `released`: the system as its code runs, oddities and random draws included.",
            "type": "string",
            "enum": ["corrected", "published", "gavel", "released"],
        })
    }
}
