//! Log on which a study runs, which is not one of its files: its form, and how its rows become jobs.

use apportion_logs::form::FORMS;
use apportion_logs::{Form, Window, Zone};
use schemars::JsonSchema;
use serde::Deserialize;

/// Prefix of the names of traces that are windows of the log.
pub const PREFIX: &str = "log ";

/// Log on which a study runs; its path is given by `apportion sweep NAME --log FILE`. Traces of runs are windows of it:
/// `log`, a blank and the window, as `log 7d..14d`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogSpec {
    /// Form of the log; `apportion trace forms` lists them.
    pub form: String,
    /// Time zone of times that do not name one, as `Asia/Shanghai` or `+08:00`.
    #[serde(default)]
    pub zone: Option<String>,
    /// File of the rules by which its rows become jobs; the rules of `apportion trace rules` by default.
    #[serde(default)]
    pub rules: Option<String>,
    /// Seed by which job types are drawn.
    #[serde(default)]
    pub seed: u64,
    /// Whether to leave out rows that are not understood, and report their number.
    #[serde(default)]
    pub skip_unreadable: bool,
}

impl LogSpec {
    /// The form, or a message if it is unknown.
    pub(crate) fn known_form(&self) -> Result<Form, String> {
        Form::of(&self.form).ok_or_else(|| {
            let known = FORMS.map(|entry| format!("`{}`", entry.name)).join(", ");
            format!("unknown form `{}`, expected one of {known}", self.form)
        })
    }

    /// The zone, or a message if it is unknown.
    pub(crate) fn known_zone(&self) -> Result<Option<Zone>, String> {
        self.zone.as_deref().map(str::parse).transpose()
    }
}

/// The window in a trace's name, or a message if it is invalid; none if the trace is not a window of the log.
pub(crate) fn window_of(trace: &str) -> Option<Result<Window, String>> {
    trace.strip_prefix(PREFIX).map(str::parse)
}
