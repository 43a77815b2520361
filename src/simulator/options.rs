//! Options of a simulation, and the points at which the published simulator differs.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::live::Live;
use crate::mechanism::MechanismOptions;
use crate::scheduler::{self, EmptyCluster, TypeDraws};
use crate::spec::{Fidelity, PriceChange};
use crate::throughput::Profiling;
use crate::units::Seconds;

/// The time on its workers that counts for a combination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionTime {
    /// From the start of its slice to its end.
    OwnSlice,
    /// From the end of the round before, idle time included.
    SinceLastRound,
}

/// The treatment of a multi-worker job with fewer steps left than workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShortSlice {
    /// The slice counts.
    Counts,
    /// The slice fails, because some workers get no step; after [`JobFaults::attempts_max`] failures the job is dropped.
    Fails,
}

/// The instants at which the members of a pair end their slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PairEnd {
    /// Each at its own time.
    Own,
    /// Both at the later one's.
    Later,
}

/// The effect of servers on throughputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Consolidation {
    /// A job on more servers than necessary runs at its unconsolidated throughput, if there is one.
    Modelled,
    /// Placement does not change speed.
    Ignored,
}

/// The choices of the simulator and the mechanism at each point at which the published system's oddities can be kept
/// or corrected alone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Semantics {
    /// The choices of the mechanism.
    pub mechanism: MechanismOptions,
    /// Time on workers.
    pub execution_time: ExecutionTime,
    /// Few steps on many workers.
    pub short_slice: ShortSlice,
    /// Ends of pairs.
    pub pair_end: PairEnd,
    /// Servers and speed.
    pub consolidation: Consolidation,
    /// Order of worker types.
    pub type_draws: TypeDraws,
    /// Boundaries without jobs.
    pub empty_cluster: EmptyCluster,
}

impl Semantics {
    /// All choices of this fidelity. The published system is Gavel's repository at c4fa400.
    pub const fn of(fidelity: Fidelity) -> Self {
        match fidelity {
            Fidelity::Corrected => Self {
                mechanism: MechanismOptions::corrected(),
                execution_time: ExecutionTime::OwnSlice,
                short_slice: ShortSlice::Counts,
                pair_end: PairEnd::Own,
                consolidation: Consolidation::Modelled,
                type_draws: TypeDraws::Stream,
                empty_cluster: EmptyCluster::Waits,
            },
            Fidelity::Published => Self {
                mechanism: MechanismOptions::gavel(),
                execution_time: ExecutionTime::SinceLastRound,
                short_slice: ShortSlice::Fails,
                pair_end: PairEnd::Later,
                consolidation: Consolidation::Ignored,
                type_draws: TypeDraws::Python,
                empty_cluster: EmptyCluster::Resets,
            },
        }
    }
}

impl Default for Semantics {
    fn default() -> Self {
        Self::of(Fidelity::default())
    }
}

/// The time that a job loses when it starts again after a preemption, or on other workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreemptionCost {
    /// Saving its state, at the end of the lease that is lost (charged at the next start).
    pub checkpoint: Seconds,
    /// Loading it again.
    pub restore: Seconds,
    /// Job types whose sum of the two differs, with that sum.
    #[serde(default)]
    pub job_types: Vec<(String, Seconds)>,
}

/// Workers that fail and are repaired; times between are exponential.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerFaults {
    /// Mean time from repair to failure of one worker.
    pub mean_time_between_failures: Seconds,
    /// Mean time from failure to repair.
    pub mean_time_to_repair: Seconds,
}

/// Failures of slices.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobFaults {
    /// The chance that a slice fails and its steps are lost.
    pub probability: f64,
    /// Failures in a row after which a job is dropped.
    pub attempts_max: u32,
}

/// Differences of speed among workers of one type; a gang runs at the speed of its slowest worker.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stragglers {
    /// Each worker's speed is uniform in (1 − spread, 1].
    pub spread: f64,
    /// The number of rounds after which speeds are drawn anew; none = they are drawn once.
    pub redraw_rounds: Option<u64>,
}

/// Faults; none by default.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Faults {
    /// Workers that fail.
    pub workers: Option<WorkerFaults>,
    /// Jobs that fail.
    pub jobs: JobFaults,
    /// Workers that are slow.
    pub stragglers: Option<Stragglers>,
    /// Relative standard deviation of the throughputs that the policy is shown; runs are not affected.
    pub throughput_noise: f64,
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            workers: None,
            jobs: JobFaults { probability: 0.0, attempts_max: 5 },
            stragglers: None,
            throughput_noise: 0.0,
        }
    }
}

/// Jobs spread over several servers share the servers' network links: such a job slows down by
/// 1 / (1 + `slowdown`·k), where k is the largest number of other spread jobs on any of its servers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contention {
    /// The slowdown for each other job on the busiest link.
    pub slowdown: f64,
}

/// The options of a simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The choices where the published system differs.
    pub semantics: Semantics,
    /// Length of a round.
    pub round_length: Seconds,
    /// The seed from which every random stream is split.
    pub seed: u64,
    /// Whether shares are run exactly, without rounds.
    pub ideal: bool,
    /// Jobs by order of arrival, from 0, that are measured; the simulation ends when they are done. None = all.
    pub measure: Option<Range<u32>>,
    /// The cost of preemption; none by default.
    pub preemption_cost: Option<PreemptionCost>,
    /// Faults.
    pub faults: Faults,
    /// Prices that change, in order of time.
    pub prices: Vec<PriceChange>,
    /// Contention on networks.
    pub contention: Option<Contention>,
    /// The profiling by which policies see estimates of co-located throughputs; none if they see the truth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profiling: Option<Profiling>,
    /// The options of a live cluster; all off by default.
    #[serde(default, skip_serializing_if = "Live::is_off")]
    pub live: Live,
}

impl Options {
    /// Options with these semantics: 360 s rounds, seed 0, all jobs measured, nothing else.
    pub fn new(semantics: Semantics) -> Self {
        Self {
            semantics,
            round_length: Seconds::new(360.0),
            seed: 0,
            ideal: false,
            measure: None,
            preemption_cost: None,
            faults: Faults::default(),
            prices: Vec::new(),
            contention: None,
            profiling: None,
            live: Live::default(),
        }
    }

    /// The default, under [`Fidelity::Corrected`].
    pub fn corrected() -> Self {
        Self::new(Semantics::of(Fidelity::Corrected))
    }

    /// The default, under [`Fidelity::Published`].
    pub fn published() -> Self {
        Self::new(Semantics::of(Fidelity::Published))
    }

    /// Another round length; the mechanism's initial credit becomes half of it.
    #[must_use]
    pub fn with_round_length(mut self, round_length: Seconds) -> Self {
        self.round_length = round_length;
        self.semantics.mechanism.initial_credit = round_length / 2.0;
        self
    }

    /// Another least time between resets.
    #[must_use]
    pub fn with_reset_interval(mut self, interval: Seconds) -> Self {
        self.semantics.mechanism.reset_interval = interval;
        self
    }

    /// Another seed.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The options of the scheduler among these.
    pub fn scheduler(&self) -> scheduler::Options {
        scheduler::Options {
            round_length: self.round_length,
            seed: self.seed,
            mechanism: self.semantics.mechanism,
            type_draws: self.semantics.type_draws,
            empty_cluster: self.semantics.empty_cluster,
        }
    }

    /// Measures these jobs only.
    #[must_use]
    pub fn with_measure(mut self, measure: Range<u32>) -> Self {
        self.measure = Some(measure);
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::corrected()
    }
}
