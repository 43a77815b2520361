//! Result of a run: its status, its metrics, its jobs.

use std::fmt;
use std::str::FromStr;

use apportion::metrics::{JobNumbers, METRICS, Metric, Service};
use apportion::units::Seconds;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Status of a run at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The run finished: every measured job is done.
    Done,
    /// The run was not made: the arrival rate provably exceeds what the cluster can serve.
    Saturated,
    /// The run was given up with an error.
    Failed,
    /// The run was given up after its wall time.
    Timeout,
    /// The run was given up: the number of active jobs grows with the number of arrivals.
    Growing,
    /// The run was given up: jobs receive nothing and no event to come could change it, or others continued for very long.
    Starved,
    /// Given up: workers are leased, no job runs a step, or each so slowly that it would not end within a century of simulated time,
    /// and nothing is to come that could change it.
    Livelock,
}

impl Status {
    /// All statuses, in the order in which results list them.
    pub const ALL: [Self; 7] = [
        Self::Done,
        Self::Saturated,
        Self::Failed,
        Self::Timeout,
        Self::Growing,
        Self::Starved,
        Self::Livelock,
    ];

    /// Whether the run was begun and not finished.
    pub const fn is_given_up(self) -> bool {
        !matches!(self, Self::Done | Self::Saturated)
    }

    /// Whether a result of this status is preferred to one of the other. The least preferred depend on when and where the
    /// run is made.
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

    /// Name in results.
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
    /// Position in order of arrival.
    pub id: u64,
    /// Job type.
    pub job_type: String,
    /// Number of workers at once.
    pub scale_factor: u32,
    /// Weight.
    pub weight: f64,
    /// Arrival, s.
    pub arrival: f64,
    /// End of its last step, s; none if it was dropped.
    pub completion: Option<f64>,
    /// Job completion time, completion − arrival, s.
    pub jct: Option<f64>,
    /// Finish-time fairness.
    pub rho: Option<f64>,
    /// Service that it received; none in results of older versions.
    pub service: Option<Service>,
}

impl JobRow {
    /// Numbers from which columns are made.
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

/// A share that a decision of a run gave.
#[derive(Clone, Debug, PartialEq)]
pub struct AllocationRow {
    /// Instant of the decision, s.
    pub from: f64,
    /// Instant of the next decision, or the end of the run, s.
    pub until: f64,
    /// Position of the job in order of arrival.
    pub job: u64,
    /// Position of the job that shares its workers; none if it has them alone.
    pub partner: Option<u64>,
    /// Worker type.
    pub worker_type: String,
    /// Share of its time, above 0 and up to 1, for which it is to have workers of this type.
    pub share: f64,
}

/// Result of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Status at the end.
    pub status: Status,
    /// Explanation for people why it is not `done`, or what could not be computed.
    pub reason: Option<String>,
    /// The largest sustainable arrival rate in jobs/h, where it was computed.
    pub capacity: Option<f64>,
    /// Values of [`METRICS`], in order; none where a metric has no meaning.
    pub metrics: [Option<f64>; METRICS.len()],
    /// Busy worker-time ÷ worker-time by worker type, in order of name; empty for results of older versions.
    pub utilization: Vec<(String, f64)>,
    /// Measured jobs, if they are kept.
    pub jobs: Vec<JobRow>,
    /// Shares of all decisions in their order, if they are kept.
    pub allocations: Vec<AllocationRow>,
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
            allocations: Vec::new(),
        }
    }
}
