//! Faults in a run.

use serde::{Deserialize, Serialize};

use super::Complaints;
#[cfg(feature = "schema")]
use super::TimeText;
use crate::units::Seconds;

/// Faults of workers and jobs in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct FaultsSpec {
    /// Mean time between failures of a worker. Workers never fail by default.
    #[serde(with = "super::optional_time")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<TimeText>"))]
    pub worker_mtbf: Option<Seconds>,
    /// Mean time to repair a worker; needed where workers fail.
    #[serde(with = "super::optional_time")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<TimeText>"))]
    pub worker_mttr: Option<Seconds>,
    /// Chance that a job's slice of a round fails and its steps are lost: from 0, below 1.
    pub job_failure: f64,
    /// Failures in a row after which a job is dropped, at least 1.
    pub job_attempts: u32,
    /// The largest part by which workers are slower: speeds are uniform in (1 − this, 1], relative to the throughputs; from 0,
    /// below 1.
    pub straggling: f64,
    /// Rounds after which the speeds are drawn anew. They are drawn once by default.
    #[cfg_attr(feature = "schema", schemars(extend("x-unit" = "rounds")))]
    pub straggling_rounds: Option<u64>,
    /// Relative standard deviation of the throughputs that policies see: from 0, below 1.
    pub noise: f64,
    /// Slowdown of a job on several servers: it runs at 1 / (1 + this × other such jobs on its busiest server) of its throughput.
    pub contention: f64,
}

impl Default for FaultsSpec {
    fn default() -> Self {
        Self {
            worker_mtbf: None,
            worker_mttr: None,
            job_failure: 0.0,
            job_attempts: 5,
            straggling: 0.0,
            straggling_rounds: None,
            noise: 0.0,
            contention: 0.0,
        }
    }
}

impl FaultsSpec {
    pub(super) fn check(&self, found: &mut Complaints) {
        let Self { worker_mtbf, worker_mttr, job_failure, straggling, noise, .. } = *self;
        if worker_mtbf.is_some() != worker_mttr.is_some() {
            let message = "`worker_mtbf` and `worker_mttr` are given together or not at all";
            found.push("faults.worker_mtbf", message, None);
        }
        if worker_mtbf.is_some_and(|time| time.get() <= 0.0) {
            found.push("faults.worker_mtbf", "expected a time above 0", None);
        }
        if self.job_attempts == 0 {
            found.push("faults.job_attempts", "0 attempts, expected at least 1", None);
        }
        if self.straggling_rounds == Some(0) {
            found.push("faults.straggling_rounds", "0 rounds, expected at least 1", None);
        }
        let contention = self.contention;
        if !(contention.is_finite() && contention >= 0.0) {
            found.push("faults.contention", format!("{contention}, expected a number, at least 0"), None);
        }
        for (field, value) in
            [("faults.job_failure", job_failure), ("faults.straggling", straggling), ("faults.noise", noise)]
        {
            if !(0.0..1.0).contains(&value) {
                found.push(field, format!("{value}, expected at least 0 and below 1"), None);
            }
        }
    }
}
