//! Which of two behaviours a published heuristic shows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// As published, or as meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Behaviour {
    /// The rule as its documentation states it, drawing from a named stream of our own.
    #[default]
    Corrected,
    /// What Gavel's last public version does, its oddities and the draws of Python's generator included, so that
    /// its runs can be repeated job for job.
    Published,
}
