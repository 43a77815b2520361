//! The result of a run: how it ended, its metrics, its jobs.

use std::fmt;
use std::str::FromStr;

use apportion::metrics::{JobNumbers, METRICS, Metric, Service};
use apportion::units::Seconds;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Every measured job is done.
    Done,
    /// Not made: the arrival rate provably exceeds what the cluster can serve.
    Saturated,
    /// Given up with an error.
    Failed,
    /// Given up after its wall time.
    Timeout,
    /// Given up: the number of active jobs grows with the number of jobs that have arrived.
    Growing,
    /// Given up: jobs receive nothing, and nothing is to come that could change it, or others went on for very long.
    Starved,
    /// Given up: workers are leased, no job runs a step, or each so slowly that it would not end within a century of simulated time,
    /// and nothing is to come that could change it.
    Livelock,
}

impl Status {
    /// All, in the order in which results list them.
    pub const ALL: [Self; 7] = [
        Self::Done,
        Self::Saturated,
        Self::Failed,
        Self::Timeout,
        Self::Growing,
        Self::Starved,
        Self::Livelock,
    ];

    /// Was the run begun, and not finished?
    pub const fn is_given_up(self) -> bool {
        !matches!(self, Self::Done | Self::Saturated)
    }

    /// Is a result of this status worth more than one of the other? Those worth least are not the same whenever and
    /// wherever the run is made.
    pub fn is_better_than(self, other: Self) -> bool {
        let rank = |status| match status {
            Self::Done => 0,
            Self::Saturated => 1,
            Self::Growing | Self::Starved | Self::Livelock => 2,
            Self::Failed => 3,
            Self::Timeout => 4,
        };
        rank(self) < rank(other)
    }

    /// As written in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Saturated => "saturated",
            Self::Failed => "failed",
            Self::Timeout => "timeout",
            Self::Growing => "growing",
            Self::Starved => "starved",
            Self::Livelock => "livelock",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Status {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|status| status.name() == text)
            .ok_or_else(|| format!("`{text}` is no status of a run"))
    }
}

/// A measured job of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRow {
    /// Its position in order of arrival.
    pub id: u64,
    /// Its type.
    pub job_type: String,
    /// Workers at once.
    pub scale_factor: u32,
    /// Its weight.
    pub weight: f64,
    /// When it arrived, in s.
    pub arrival: f64,
    /// When its last step ended, in s; none if it was dropped.
    pub completion: Option<f64>,
    /// completion − arrival, in s.
    pub jct: Option<f64>,
    /// Finish-time fairness.
    pub rho: Option<f64>,
    /// What it received; none in results of older programs.
    pub service: Option<Service>,
}

impl JobRow {
    /// Its numbers, of which columns are made.
    pub fn numbers(&self) -> JobNumbers<'_> {
        JobNumbers {
            scale_factor: self.scale_factor,
            weight: self.weight,
            arrival: Seconds::new(self.arrival),
            completion: self.completion.map(Seconds::new),
            jct: self.jct.map(Seconds::new),
            rho: self.rho,
            service: self.service.as_ref(),
        }
    }
}

/// The result of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// Why it is not `done`, or what could not be found out about it, for people.
    pub reason: Option<String>,
    /// The largest sustainable arrival rate in jobs/h, where it was computed.
    pub capacity: Option<f64>,
    /// The value of each of [`METRICS`]; none where it means nothing.
    pub metrics: [Option<f64>; METRICS.len()],
    /// Busy worker-time ÷ worker-time by worker type, in order of name; empty for results of older programs.
    pub utilization: Vec<(String, f64)>,
    /// The measured jobs, if they are kept.
    pub jobs: Vec<JobRow>,
}

impl Outcome {
    /// The value of a metric by its name.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.metrics[Metric::position(name)?]
    }

    /// An outcome without metrics.
    pub fn without_metrics(status: Status, reason: impl Into<String>) -> Self {
        Self {
            status,
            reason: Some(reason.into()),
            capacity: None,
            metrics: [None; METRICS.len()],
            utilization: Vec::new(),
            jobs: Vec::new(),
        }
    }
}
