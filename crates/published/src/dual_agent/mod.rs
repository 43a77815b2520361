//! The dual-agent scheduler's world, reconstructed: gangs rent servers of several types in a cloud, where servers of one type have
//! unequal speeds that drift.
//!
//! Only the abstract of the scheduler (Xing et al., KDD 2023, doi 10.1145/3580305.3599241) was at hand: an ordering agent and a
//! placement agent, trained together, the second aware of servers' uncertain speeds by a Random Walk Gaussian Process. Everything
//! below is our own, and no number here is a published one.
//!
//! | what      | value                                                                                          |
//! |-----------|------------------------------------------------------------------------------------------------|
//! | servers   | five types with the counts of Alibaba's PAI, scaled; racks of eight ([`cluster`])              |
//! | jobs      | 1 to 16 workers, all on one type; Gavel's job types and durations, shortened ([`workload`])    |
//! | speed     | measured throughput × slowest server × contention × spread ([`tables`], [`drift`])             |
//! | round     | 300 s                                                                                          |
//! | lease     | 12 rounds, after which a job waits among the others; where it was it goes on at no cost         |
//! | restart   | elsewhere, or later, it loses 60 s                                                             |
//! | known     | step times of the servers in use, each round; [`server_speeds`] estimates speeds from them     |
//! | rules     | an order of the queue, a placement, when to wait ([`rule`], [`placement`], [`waiting_rule`])    |
//!
//! [`server_speeds`]: apportion::throughput::server_speeds

pub mod cloud;
pub mod cluster;
pub mod drift;
pub mod episode;
pub mod fitted;
pub mod waiting_rule;
pub mod observe;
pub mod placement;
pub mod proposals;
pub mod rule;
pub mod speeds;
pub mod summary;
pub mod tables;
pub mod workload;
pub mod network;
pub mod residual;
pub mod player;
pub mod onnx;
mod environment;
#[cfg(feature = "train")]
pub mod training_network;

pub use cloud::{Cloud, CloudOptions, RoundOutcome};
pub use drift::{Drift, DriftOptions};
pub use environment::{DualAgentEnvironment, DualAgentWorld, Jobs, SYSTEM};
pub use episode::{DualAgentEpisode, EpisodeOptions};
pub use fitted::fitted;
pub use rule::{Rule, RulePlayer};
pub use summary::DualAgentSummary;
pub use tables::Tables;
pub use waiting_rule::WaitingRule;
pub use workload::{WorkloadError, WorkloadOptions, generate};

#[cfg(test)]
mod tests;
