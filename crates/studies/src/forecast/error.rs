//! Reasons why there is no forecast.

use thiserror::Error;

use crate::sweep::RunError;
use apportion::simulator::SimulationError;
use apportion::spec::nearest::suggestion;
use apportion::units::Decimals;

/// Reason why there is no forecast.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ForecastError {
    /// The run cannot start, or continue.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A setting out of its range, or one that forecasts do not have.
    #[error("{field}: {message}")]
    Setting {
        /// Name of the setting's flag.
        field: &'static str,
        /// Description of the fault and of expected values.
        message: String,
    },
    /// A job that the trace does not have.
    #[error("job: the trace has no job `{name}`")]
    UnknownJob {
        /// Name that was given.
        name: String,
        /// Advice, such as a similar name.
        help: Option<String>,
    },
    /// A job that has not arrived.
    #[error("at: job `{name}` arrives {} h after the trace's first, which is after {} h", Decimals(*.arrival_h, 2), Decimals(*.at_h, 2))]
    NotArrived {
        /// Name of the job.
        name: String,
        /// Arrival, h.
        arrival_h: f64,
        /// Time of the forecast, h.
        at_h: f64,
    },
    /// A job that is no longer there.
    #[error("at: job `{name}` ended after {} h, which is before {} h", Decimals(*.end_h, 2), Decimals(*.at_h, 2))]
    Ended {
        /// Name of the job.
        name: String,
        /// End of the job, h.
        end_h: f64,
        /// Time of the forecast, h.
        at_h: f64,
    },
    /// A job that a situation does not have among its active ones.
    #[error("job: `{name}` is not active")]
    NotActive {
        /// Name of the job.
        name: String,
    },
    /// A trace without jobs.
    #[error("trace: it has no jobs")]
    NoJobs,
    /// No job has ended, so there are no total steps to draw from.
    #[error("no job has ended by {} h, so nothing says how long jobs take", Decimals(*.at_h, 2))]
    NothingEnded {
        /// Time of the forecast, h.
        at_h: f64,
    },
    /// No job arrived in the time from which future jobs would be drawn.
    #[error("history: no job arrived in the {} h before {} h", Decimals(*.history_h, 2), Decimals(*.at_h, 2))]
    NothingArrived {
        /// Length of the time before the forecast, h.
        history_h: f64,
        /// Time of the forecast, h.
        at_h: f64,
    },
    /// The time from which future jobs would be drawn is too short.
    #[error("history: {} s say too little of how jobs arrive, expected at least {} s", Decimals(*.history_s, 0), Decimals(*.needed_s, 0))]
    TooShort {
        /// Time for which jobs have arrived, or the part of it that was asked for, s.
        history_s: f64,
        /// The shortest time that suffices, s.
        needed_s: f64,
    },
    /// A policy that remembers the total steps of jobs: a fork cannot give them others.
    #[error(
        "policy: `{policy}` decides inside rounds and remembers the steps that jobs were said to take: they cannot be drawn anew"
    )]
    Remembers {
        /// Name of the policy.
        policy: String,
    },
    /// No job to forecast in a calibration.
    #[error("no job is active at any of {n_times} times")]
    NothingActive {
        /// Number of times.
        n_times: usize,
    },
    /// The user asked to stop.
    #[error("stopped after {n_done} forks")]
    Interrupted {
        /// Number of forks that were done.
        n_done: usize,
    },
}

impl From<SimulationError> for ForecastError {
    fn from(error: SimulationError) -> Self {
        Self::Run(error.into())
    }
}

impl ForecastError {
    /// Name of the flag of the wrong setting, with which the text begins; none where it is no setting.
    pub fn setting_at_fault(&self) -> Option<&'static str> {
        Some(match self {
            Self::Setting { field, .. } => field,
            Self::UnknownJob { .. } | Self::NotActive { .. } => "job",
            Self::NotArrived { .. } | Self::Ended { .. } => "at",
            Self::NoJobs => "trace",
            Self::NothingArrived { .. } | Self::TooShort { .. } => "history",
            Self::Remembers { .. } => "policy",
            Self::Run(_)
            | Self::NothingEnded { .. }
            | Self::NothingActive { .. }
            | Self::Interrupted { .. } => {
                return None;
            }
        })
    }

    /// The error for a setting out of its range.
    pub(super) fn setting(field: &'static str, message: impl Into<String>) -> Self {
        Self::Setting { field, message: message.into() }
    }

    /// The error for a job that is not among the known ones.
    pub(super) fn unknown_job<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Self {
        Self::UnknownJob { name: name.to_owned(), help: suggestion(name, known) }
    }

    /// Advice for the user; none if there is none.
    pub fn help(&self) -> Option<String> {
        let help = match self {
            Self::UnknownJob { help, .. } => {
                return help
                    .clone()
                    .or_else(|| Some("`apportion trace show` lists what a trace has".to_owned()));
            }
            Self::NotArrived { arrival_h, .. } => {
                let from_h = (arrival_h * 100.0).ceil() / 100.0;
                return Some(format!("a forecast of it needs a time from {}h on", Decimals(from_h, 2)));
            }
            Self::Ended { end_h, .. } => {
                let before_h = (end_h * 100.0).floor() / 100.0;
                return Some(format!("a forecast of it needs a time before {}h", Decimals(before_h, 2)));
            }
            Self::NothingEnded { .. } => {
                "give a later time, or take the trace's steps by `--known-durations`"
            }
            Self::NothingArrived { .. } => "give a longer history, or `--arrivals none`",
            Self::TooShort { .. } => "`--arrivals none` lets none come",
            Self::Remembers { .. } => "`--known-durations` takes the steps that the trace says",
            Self::NothingActive { .. } => "give other times by `--from`, `--to` and `--every`",
            _ => return None,
        };
        Some(help.to_owned())
    }
}
