//! Columns of the restricted master: the best responses of all groups of jobs to one set of prices.
//!
//! Jobs are in chunks of eight. With k groups, a group has every k-th chunk, so that each group resembles the whole.

/// One column for each group: the summed best responses of its jobs to one set of prices.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    /// Minus the worth of throughput: [groups]; 0 where only the level counts.
    pub(super) cost: Vec<f64>,
    /// Used part of each worker type's capacity: [groups × types]
    pub(super) usage: Vec<f64>,
    /// The least cost of all jobs where workers are paid for at the prices: the Lagrangian without its constant, the
    /// worth of all capacities.
    pub(super) least: f64,
    /// The derivative of `least` with respect to the level.
    pub(super) slope: f64,
}

impl Columns {
    /// The columns of jobs that get no time.
    pub(super) fn idle(groups: usize, types: usize) -> Self {
        Self { cost: vec![0.0; groups], usage: vec![0.0; groups * types], least: 0.0, slope: 0.0 }
    }

    /// Do the columns of all groups together fit the capacities?
    pub(super) fn fits(&self, capacity: &[f64]) -> bool {
        let used = |row: usize| self.usage.iter().skip(row).step_by(capacity.len()).sum::<f64>();
        capacity.iter().enumerate().all(|(row, capacity)| used(row) <= *capacity)
    }
}
