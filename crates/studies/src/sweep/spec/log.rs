//! The log that a study runs on, which is none of its files: its form, and how its rows become jobs.

use apportion_logs::form::FORMS;
use apportion_logs::{Form, Window, Zone};
use schemars::JsonSchema;
use serde::Deserialize;

/// What the names of traces begin with that are windows of the log.
pub const PREFIX: &str = "log ";

/// The log that a study runs on. `apportion sweep NAME --log FILE` says where it is. Traces of runs are windows of it: `log`, a
/// blank and the window, as `log 7d..14d`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogSpec {
    /// Its form: `apportion trace forms` lists them.
    pub form: String,
    /// The time zone of times that do not name one, as `Asia/Shanghai` or `+08:00`.
    #[serde(default)]
    pub zone: Option<String>,
    /// The file of the rules by which its rows become jobs; those that `apportion trace rules` prints by default.
    #[serde(default)]
    pub rules: Option<String>,
    /// The seed by which job types are drawn.
    #[serde(default)]
    pub seed: u64,
    /// Leave out rows of which something is not understood, and say how many.
    #[serde(default)]
    pub skip_unreadable: bool,
}

impl LogSpec {
    /// The form; else what is wrong with it.
    pub(crate) fn known_form(&self) -> Result<Form, String> {
        Form::of(&self.form).ok_or_else(|| {
            let known = FORMS.map(|entry| format!("`{}`", entry.name)).join(", ");
            format!("unknown form `{}`, expected one of {known}", self.form)
        })
    }

    /// The zone; else what is wrong with it.
    pub(crate) fn known_zone(&self) -> Result<Option<Zone>, String> {
        self.zone.as_deref().map(str::parse).transpose()
    }
}

/// The window that a trace's name says; none if the trace is no window of the log; else what is wrong with it.
pub(crate) fn window_of(trace: &str) -> Option<Result<Window, String>> {
    trace.strip_prefix(PREFIX).map(str::parse)
}
