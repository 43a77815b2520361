//! Outcomes: the ends of a simulation, and limits at which it ends early.

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
use crate::units::{Decimals, Seconds};

/// Why a simulation cannot go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SimulationError {
    /// A job, or the cluster, does not fit the throughputs.
    #[error(transparent)]
    Problem(#[from] ProblemError),
    /// The policy does not fit this simulation.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The policy gave no decision at some instant.
    #[error("{place}: {error}")]
    Decision {
        /// The start of the round that had no decision.
        place: Boundary,
        /// The reason.
        error: Box<DecisionError>,
    },
    /// The options of the estimator are invalid.
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
        /// The job's id.
        job: JobId,
        /// The job's arrival.
        arrival: Seconds,
    },
    /// A checkpoint of another simulation.
    #[error("the checkpoint does not fit this simulation: {reason}")]
    Checkpoint {
        /// The reason.
        reason: String,
    },
}

/// The start of a round, as the place of a failed decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Boundary {
    /// The instant.
    pub now: Seconds,
    /// The round, from 0.
    pub round: u64,
    /// The active jobs, by their ids in the trace.
    pub jobs: Vec<Label>,
}

impl fmt::Display for Boundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { now, round, jobs } = self;
        write!(f, "after {} simulated hours, in round {round}, with {}", Decimals(now.hours(), 2), Ids(jobs))
    }
}

/// Jobs as they are written in messages: their number, and some of their ids.
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

/// Limits at which a run stops early; none by default.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Simulated time.
    pub time: Option<Seconds>,
    /// Number of active jobs: a cluster that cannot keep up has ever more of them.
    pub active_jobs: Option<usize>,
    /// Rounds of this call.
    pub rounds: Option<u64>,
    /// Wall time since a start, which is looked at between rounds.
    pub wall: Option<(Stopwatch, Duration)>,
    /// The conditions under which a simulation without progress is given up.
    pub patience: Patience,
    /// A flag that ends the run when it is set.
    pub interrupt: Option<Arc<AtomicBool>>,
}

/// The limits on a simulation without progress before it is given up; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Patience {
    /// Rounds in a row in which no job ran a step, or each so slowly that it would not end within a century of simulated time,
    /// while no job was to arrive and no price to change. If workers or jobs fail at random, a hundred times as many.
    pub rounds: Option<u64>,
    /// The number of doublings of the arrived jobs, from the end of the measurement window on (from 1000 at least). It is for
    /// arrivals that never stop: others end by themselves.
    pub doublings: Option<u32>,
}

/// The end of [`Simulation::run`](super::Simulation::run).
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
    /// The simulation made no progress for longer than the [`Patience`], or cannot go on: [`Simulation::standstill`] has the
    /// reason.
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
    /// A standstill: no event can ever happen again.
    Stalled,
    /// The next event is at an instant that the clock cannot show.
    Unresolved,
}
