//! Columns of the restricted master: the best responses of all groups of jobs to one set of prices.
//!
//! Jobs are in chunks of eight. Of G groups, group g has the chunks g, g + G, g + 2G and so on, so that each group resembles
//! the whole.

/// One column for each group: the summed best responses of its jobs to one set of prices.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    /// Cost of each group's column, minus the worth of its throughput: `[groups]`; 0 where only the level counts.
    pub(super) cost: Vec<f64>,
    /// The part of all workers of each type that each group's column uses: `[groups × types]`.
    pub(super) usage: Vec<f64>,
    /// The least sum of the costs of all jobs, each of which pays the prices for its workers: the Lagrangian at the prices
    /// plus the worth of all capacities, a constant.
    pub(super) least: f64,
    /// The derivative of `least` with respect to the level.
    pub(super) slope: f64,
}

impl Columns {
    /// The columns of jobs that get no time: cost and usage 0.
    pub(super) fn idle(groups: usize, types: usize) -> Self {
        Self { cost: vec![0.0; groups], usage: vec![0.0; groups * types], least: 0.0, slope: 0.0 }
    }

    /// True if the columns of all groups, each with weight 1, fit the capacities, `[types]`.
    pub(super) fn fits(&self, capacity: &[f64]) -> bool {
        let used = |row: usize| self.usage.iter().skip(row).step_by(capacity.len()).sum::<f64>();
        capacity.iter().enumerate().all(|(row, capacity)| used(row) <= *capacity)
    }
}
