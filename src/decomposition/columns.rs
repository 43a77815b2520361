//! Columns of the restricted master: the responses of all groups of members to one set of prices.
//!
//! Groups are made of every so many chunks of members, so that each is much like the whole.

/// One column a group: the responses of its members to one set of prices.
#[derive(Clone, Debug)]
pub(super) struct Proposals {
    /// c x: [groups]
    pub(super) cost: Vec<f64>,
    /// C x: [groups × L]
    pub(super) usage: Vec<f64>,
    /// What blocks cost at least, shared rows at their prices,
    pub(super) least: f64,
    /// and per unit more of the one level.
    pub(super) slope: f64,
}

impl Proposals {
    /// Of blocks that do nothing.
    pub(super) fn nothing(groups: usize, rows: usize) -> Self {
        Self { cost: vec![0.0; groups], usage: vec![0.0; groups * rows], least: 0.0, slope: 0.0 }
    }

    /// Do all of them fit together?
    pub(super) fn fits(&self, room: &[f64]) -> bool {
        let used = |row: usize| self.usage.iter().skip(row).step_by(room.len()).sum::<f64>();
        room.iter().enumerate().all(|(row, room)| used(row) <= *room)
    }
}
