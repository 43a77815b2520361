//! The behaviour of a live cluster in a run.

use serde::{Deserialize, Serialize};

use super::Complaints;
#[cfg(feature = "schema")]
use super::TimeText;
use crate::units::Seconds;

/// The instants at which idle workers are given to waiting jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Refill {
    /// At the start of rounds only.
    #[default]
    Never,
    /// Also when a job is done inside a round: until the round ends, by the priorities of its start.
    Completion,
    /// Also when a job is done or comes inside a round, as on a live cluster: likewise, and then to jobs that came after the last
    /// allocation. A policy that gives idle workers to no job without a share is asked at once.
    AtOnce,
}

impl Refill {
    /// The word in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Completion => "completion",
            Self::AtOnce => "at_once",
        }
    }
}

/// The behaviour of a live cluster that the published simulator lacks: none by default.
///
/// `start_up` and `stop` are lost in addition to `preemption_cost`, which is time that a job loses when it starts again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct LiveSpec {
    /// Time before the end of a round at which the next one is decided, by the state at that instant; less than a round. Rounds
    /// then last their whole length.
    #[serde(with = "super::time")]
    #[cfg_attr(feature = "schema", schemars(with = "TimeText"))]
    pub look_ahead: Seconds,
    /// Time that a job holds its workers without steps at the start of a lease that extends none; with `stop` less than a round.
    #[serde(with = "super::time")]
    #[cfg_attr(feature = "schema", schemars(with = "TimeText"))]
    pub start_up: Seconds,
    /// Time that a job that is not done holds its workers after a lease that is not extended: the next job on them starts that much
    /// later.
    #[serde(with = "super::time")]
    #[cfg_attr(feature = "schema", schemars(with = "TimeText"))]
    pub stop: Seconds,
    /// Whether workers of jobs that are done inside a round are given to others at once.
    pub refill: Refill,
    /// Whether policies see the measured throughputs of jobs that ran alone, averaged with those that they saw before.
    pub measured: bool,
}

impl LiveSpec {
    /// Whether all fields have their defaults.
    pub fn is_off(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn check(&self, round_length: Seconds, is_ideal: bool, found: &mut Complaints) {
        let Self { look_ahead, start_up, stop, refill, .. } = *self;
        let times = [("live.look_ahead", look_ahead), ("live.start_up", start_up), ("live.stop", stop)];
        if is_ideal {
            let timed = times.into_iter().find(|(_, time)| time.get() > 0.0).map(|(field, _)| field);
            let refilled = (refill != Refill::Never).then_some("live.refill");
            if let Some(field) = timed.or(refilled) {
                found.push(field, "is about rounds, and `ideal` runs without", None);
            }
            return;
        }
        if look_ahead > Seconds::ZERO && look_ahead >= round_length {
            let message = format!("{look_ahead}, expected less than a round of {round_length}");
            found.push("live.look_ahead", message, None);
        }
        if start_up + stop > Seconds::ZERO && start_up + stop >= round_length {
            let field = if stop >= round_length { "live.stop" } else { "live.start_up" };
            let both = start_up + stop;
            let message =
                format!("{both} to start up and stop, expected less than a round of {round_length}");
            found.push(field, message, Some("else a job might never have a step"));
        }
    }
}
