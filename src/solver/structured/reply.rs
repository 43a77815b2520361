//! What blocks do at given prices and levels, by group.
//!
//! Groups are made of every so many chunks, so that each is much like the whole.

/// What groups of blocks do.
#[derive(Clone, Debug)]
pub(super) struct Replies {
    /// c x: [groups]
    pub(super) cost: Vec<f64>,
    /// C x: [groups × L]
    pub(super) usage: Vec<f64>,
    /// What blocks cost at least, shared rows at their prices,
    pub(super) least: f64,
    /// and per unit more of the one level.
    pub(super) slope: f64,
}

impl Replies {
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
