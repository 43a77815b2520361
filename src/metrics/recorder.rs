//! All folds at once.

use serde::{Deserialize, Serialize};

use super::completion::Completions;
use super::summary::Summary;
use super::utilization::Utilization;
use crate::cluster::Cluster;
use crate::simulator::{Event, Observer};

/// Folds every event; serializable, so that a resumed simulation goes on counting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recorder {
    pub(super) completions: Completions,
    pub(super) utilization: Utilization,
    pub(super) counts: Counts,
    /// Wall time, so not part of the summary.
    #[serde(skip)]
    solve_seconds: f64,
}

/// How often things happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counts {
    pub(super) rounds: u64,
    pub(super) solves: u64,
    pub(super) iterations: u64,
    pub(super) fallbacks: u64,
    #[serde(default)]
    pub(super) uncertified: u64,
    pub(super) promises_dropped: u64,
    pub(super) leases: u64,
    pub(super) lease_extensions: u64,
    pub(super) preemptions: u64,
    pub(super) failures: u64,
    pub(super) worker_failures: u64,
}

impl Recorder {
    /// Nothing yet, on this cluster: [`Simulation::cluster`](crate::simulator::Simulation::cluster).
    pub fn new(cluster: &Cluster) -> Self {
        Self {
            completions: Completions::default(),
            utilization: Utilization::new(cluster),
            counts: Counts::default(),
            solve_seconds: 0.0,
        }
    }

    /// Wall time inside the policy's solves, in seconds; of this process only.
    pub fn solve_seconds(&self) -> f64 {
        self.solve_seconds
    }

    /// What it amounts to so far.
    pub fn summary(&self) -> Summary {
        Summary::of(self)
    }
}

impl Observer for Recorder {
    fn observe(&mut self, event: &Event<'_>) {
        let counts = &mut self.counts;
        match event {
            Event::RoundStarted { .. } => counts.rounds += 1,
            Event::Allocated { iterations, fallbacks, dropped, uncertified, solve_seconds, .. } => {
                counts.solves += 1;
                counts.iterations += iterations;
                counts.fallbacks += fallbacks.len() as u64;
                counts.uncertified += u64::from(*uncertified);
                counts.promises_dropped += dropped.len() as u64;
                self.solve_seconds += solve_seconds;
            }
            Event::Lease { extended, .. } => {
                counts.leases += 1;
                counts.lease_extensions += u64::from(*extended);
            }
            Event::Preempted { .. } => counts.preemptions += 1,
            Event::Failure { .. } => counts.failures += 1,
            Event::WorkerDown { .. } => counts.worker_failures += 1,
            Event::Slice(_) => self.utilization.fold(event),
            Event::Arrival { .. } | Event::Completion { .. } | Event::Dropped { .. } => {
                self.completions.fold(event);
            }
            Event::WorkerUp { .. } | Event::PriceChange { .. } | Event::Idle { .. } => {}
        }
    }
}
