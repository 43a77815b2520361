//! The options of a scheduler.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::cluster::Cluster;
use crate::index::WorkerTypeId;
use crate::mechanism::{LastServer, MechanismOptions};
use crate::throughput::Throughputs;
use crate::units::Seconds;

/// The random numbers for the order of worker types, for policies that do not look at throughputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TypeDraws {
    /// The stream `worker_types` of the seed.
    Stream,
    /// CPython's, seeded with the seed + 5.
    Python,
}

/// The treatment of the policy at a boundary without active jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmptyCluster {
    /// It is asked when there is a job again.
    Waits,
    /// It is asked in any case, so that the reset interval starts.
    Resets,
}

/// The options of a scheduler: the length of rounds, and the parameters of the mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// Length of a round, for which a lease is granted.
    pub round_length: Seconds,
    /// The seed of the order of worker types, if a policy does not look at throughputs.
    pub seed: u64,
    /// The mechanism's parameters.
    pub mechanism: MechanismOptions,
    /// The random numbers for the order of worker types.
    pub type_draws: TypeDraws,
    /// The treatment of boundaries without jobs.
    pub empty_cluster: EmptyCluster,
}

/// An option out of its range.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field} is {value}, expected {expected}")]
pub struct OptionError {
    /// The field.
    pub field: &'static str,
    /// The value that was given.
    pub value: String,
    /// The values that are allowed, in words.
    pub expected: &'static str,
}

impl Options {
    /// 360 s rounds, seed 0, the mechanism as described: the default.
    pub const fn corrected() -> Self {
        Self {
            round_length: Seconds::new(360.0),
            seed: 0,
            mechanism: MechanismOptions::corrected(),
            type_draws: TypeDraws::Stream,
            empty_cluster: EmptyCluster::Waits,
        }
    }

    /// Another round length; the mechanism's initial credit becomes half of it.
    #[must_use]
    pub fn with_round_length(mut self, round_length: Seconds) -> Self {
        self.round_length = round_length;
        self.mechanism.initial_credit = round_length / 2.0;
        self
    }

    /// Another least time between resets.
    #[must_use]
    pub fn with_reset_interval(mut self, interval: Seconds) -> Self {
        self.mechanism.reset_interval = interval;
        self
    }

    /// Another seed.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Refuses options out of their range.
    ///
    /// # Errors
    /// If a time is not finite, the round length is not above 0, or another is below 0.
    pub fn check(&self) -> Result<(), OptionError> {
        let not_negative = |value: f64| value.is_finite() && value >= 0.0;
        let (round, at_least_0) = (self.round_length.get(), "a finite number of seconds, at least 0");
        let credit = self.mechanism.initial_credit.get();
        let interval = self.mechanism.reset_interval.get();
        let checks = [
            ("round_length", round, round.is_finite() && round > 0.0, "a finite number of seconds above 0"),
            ("initial_credit", credit, not_negative(credit), at_least_0),
            ("reset_interval", interval, not_negative(interval), at_least_0),
        ];
        match checks.into_iter().find(|(_, _, fine, _)| !fine) {
            None => Ok(()),
            Some((field, value, _, expected)) => {
                Err(OptionError { field, value: value.to_string(), expected })
            }
        }
    }

    /// The cluster as rounds use it: types in the order in which the throughputs list them, fastest first, without
    /// workers that fill no server where those [do not exist](LastServer::Dropped).
    pub fn usable(&self, cluster: &Cluster, throughputs: &Throughputs) -> Cluster {
        let cluster = cluster.ordered_as(throughputs.worker_types().as_slice());
        match self.mechanism.last_server {
            LastServer::Smaller => cluster,
            LastServer::Dropped => cluster.with_counts(|id: WorkerTypeId| {
                let kind = &cluster.types()[id];
                kind.n_workers / kind.workers_per_server * kind.workers_per_server
            }),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::corrected()
    }
}
