//! Columns of the restricted master: the best responses of all groups of jobs to one set of prices.
//!
//! A group is made of every k-th chunk of eight jobs, so that each group resembles the whole.

/// One column for each group: the summed best responses of its jobs to one set of prices.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    /// Cost: [groups]
    pub(super) cost: Vec<f64>,
    /// Used part of each worker type's capacity: [groups × types]
    pub(super) usage: Vec<f64>,
    /// The least cost of all jobs at the prices, workers paid: the Lagrangian without its constant.
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
