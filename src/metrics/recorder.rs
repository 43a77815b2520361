//! All folds together.

use serde::{Deserialize, Serialize};

use super::completion::Completions;
use super::summary::{Counts, Summary};
use super::utilization::Utilization;
use crate::cluster::Cluster;
use crate::simulator::{Event, Observer};

/// A recorder of all events; serializable, so that a resumed simulation goes on counting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recorder {
    pub(super) completions: Completions,
    pub(super) utilization: Utilization,
    pub(super) counts: Counts,
    /// Wall time of solves; not part of the summary, which is the same on every machine.
    #[serde(skip)]
    solve_seconds: f64,
}

impl Recorder {
    /// A recorder before the first event, on this cluster: [`Simulation::cluster`](crate::simulator::Simulation::cluster).
    pub fn new(cluster: &Cluster) -> Self {
        Self {
            completions: Completions::new(cluster),
            utilization: Utilization::new(cluster),
            counts: Counts::default(),
            solve_seconds: 0.0,
        }
    }

    /// Wall time inside the policy's solves, in seconds; of this process only.
    pub fn solve_seconds(&self) -> f64 {
        self.solve_seconds
    }

    /// The numbers of the simulation so far.
    pub fn summary(&self) -> Summary {
        Summary::of(self)
    }
}

impl Observer for Recorder {
    fn observe(&mut self, event: &Event<'_>) {
        self.counts.fold(event);
        self.utilization.fold(event);
        self.completions.fold(event);
        if let Event::Allocated { solve_seconds, .. } = event {
            self.solve_seconds += solve_seconds;
        }
    }
}
