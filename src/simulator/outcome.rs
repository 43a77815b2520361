//! Outcomes: how a simulation ends, and limits at which it ends before.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::index::JobId;
use crate::policy::PolicyError;
use crate::problem::ProblemError;
use crate::scheduler::{DecisionError, OptionError, RestoreError};
use crate::solver::timing::Stopwatch;
use crate::spec::snapshot::Label;
use crate::throughput::estimator::EstimatorError;
use crate::units::Seconds;

/// Why a simulation cannot go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SimulationError {
    /// A job, or the cluster, does not fit the throughputs.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// The policy is not one of this simulation.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The policy gave no decision at some instant.
    #[error("{place}: {error}")]
    Decision {
        /// The start of the round that had no decision.
        place: Boundary,
        /// Why not.
        error: Box<DecisionError>,
    },
    /// Throughputs cannot be estimated so.
    #[error(transparent)]
    Estimator(#[from] EstimatorError),
    /// An option out of its range.
    #[error("{field} is {value}, expected {expected}")]
    Option {
        /// The field.
        field: &'static str,
        /// The value that was given.
        value: String,
        /// The values that are allowed, in words.
        expected: &'static str,
    },
    /// A source that gives a job with an earlier arrival than the job before it.
    #[error("job {job} arrives at {arrival}, before the one before it")]
    OutOfOrder {
        /// Which job.
        job: JobId,
        /// The job's arrival.
        arrival: Seconds,
    },
    /// A checkpoint of something else.
    #[error("the checkpoint does not fit this simulation: {reason}")]
    Checkpoint {
        /// In which respect.
        reason: String,
    },
}

/// The start of a round: where a decision failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Boundary {
    /// The instant.
    pub now: Seconds,
    /// The round, from 0.
    pub round: u64,
    /// The jobs that are active, as their trace calls them.
    pub jobs: Vec<Label>,
}

impl fmt::Display for Boundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { now, round, jobs } = self;
        write!(f, "after {:.2} simulated hours, in round {round}, with {}", now.hours(), Ids(jobs))
    }
}

/// Jobs as they are written in messages: how many, and which.
pub(super) struct Ids<'a>(pub(super) &'a [Label]);

impl fmt::Display for Ids<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// The most jobs that are named.
        const NAMED_MAX: usize = 8;
        let names: Vec<String> = self.0.iter().take(NAMED_MAX).map(Label::to_string).collect();
        let more = if self.0.len() > NAMED_MAX { ", …" } else { "" };
        match self.0 {
            [] => f.write_str("no active job"),
            [only] => write!(f, "1 active job ({only})"),
            all => write!(f, "{} active jobs ({}{more})", all.len(), names.join(", ")),
        }
    }
}

impl From<RestoreError> for SimulationError {
    fn from(error: RestoreError) -> Self {
        match error {
            RestoreError::Policy(error) => Self::Policy(error),
            RestoreError::Mechanism { reason } | RestoreError::Scheduler { reason } => {
                Self::Checkpoint { reason }
            }
            RestoreError::Problem(error) => Self::Problem(error),
        }
    }
}

impl From<OptionError> for SimulationError {
    fn from(OptionError { field, value, expected }: OptionError) -> Self {
        Self::Option { field, value, expected }
    }
}

/// When to stop before the end; nothing by default.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Simulated time.
    pub time: Option<Seconds>,
    /// Active jobs: a cluster that cannot keep up has ever more of them.
    pub active_jobs: Option<usize>,
    /// Rounds of this call.
    pub rounds: Option<u64>,
    /// Wall time since a start; looked at between rounds.
    pub wall: Option<(Stopwatch, Duration)>,
    /// When a simulation that gets nowhere is given up.
    pub patience: Patience,
    /// Set to true, it ends the run.
    pub interrupt: Option<Arc<AtomicBool>>,
}

/// How long a simulation may get nowhere before it is given up; without limit by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Patience {
    /// Rounds in a row in which no job ran a step, while no job was to arrive and no price to change. Where workers or
    /// jobs fail at random, a hundred times as many.
    pub rounds: Option<u64>,
    /// How often the number of jobs that have arrived must have doubled, from the end of the measurement window on (from
    /// 1000 at least). For arrivals that never stop: others end of themselves.
    pub doublings: Option<u32>,
}

/// How [`Simulation::run`](super::Simulation::run) ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All measured jobs are done.
    Finished,
    /// The limit on simulated time was reached.
    TimeLimit,
    /// The limit on active jobs was reached.
    ActiveLimit,
    /// The limit on rounds was reached.
    RoundLimit,
    /// The limit on wall time was reached.
    WallLimit,
    /// The interrupt was set.
    Interrupted,
    /// Jobs are waiting, nothing runs, and nothing will ever change.
    Stalled,
    /// The simulation got nowhere for longer than the [`Patience`], or cannot go on: [`Simulation::standstill`] says
    /// why.
    ///
    /// [`Simulation::standstill`]: super::Simulation::standstill
    Standstill,
}

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A round was started, or the clock was moved on.
    Advanced,
    /// All measured jobs are done.
    Finished,
    /// Nothing can ever happen again.
    Stalled,
    /// The next event is at an instant that the clock cannot show.
    Unresolved,
}
