//! Summaries of runs in the cloud.

use crate::dual_agent::cloud::Cloud;
use crate::world::{Summary, percentile};

/// A summary of a run. Means and percentiles are over jobs that are done.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DualAgentSummary {
    /// The summary of any world.
    pub run: Summary,
    /// 95th percentile of the time from arrival to completion, seconds.
    pub completion_p95_s: f64,
    /// Mean of completion time over what the job takes alone on its fastest type.
    pub slowdown: f64,
    /// The largest of these quotients.
    pub slowdown_max: f64,
    /// Dollars for all workers held.
    pub fee: f64,
}

impl Cloud {
    /// The summary of the run so far.
    pub fn summary(&self) -> DualAgentSummary {
        let world = self.world();
        let mut completion: Vec<f64> = world.outcomes().map(|outcome| outcome.completion_s).collect();
        completion.sort_unstable_by(f64::total_cmp);
        let slowdown = || {
            world.outcomes().map(|outcome| {
                let job = world.job(outcome.job);
                outcome.completion_s * self.tables().best_speed(job.job_type) / job.work
            })
        };
        DualAgentSummary {
            run: world.summary(),
            completion_p95_s: percentile(&completion, 0.95),
            slowdown: slowdown().sum::<f64>() / completion.len().max(1) as f64,
            slowdown_max: slowdown().fold(0.0, f64::max),
            fee: self.fee(),
        }
    }
}
