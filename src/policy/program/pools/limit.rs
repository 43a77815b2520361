//! How far a level can rise for those that it takes to their fastest.

use super::Pools;
use super::bound::Priced;
use crate::program::Demand;

/// The part of the most they can have by which members' limits differ for rounding.
const LIMIT_WIDTH: f64 = 1e-12;

/// A level that some members alone could not better.
#[derive(Clone, Debug)]
pub(super) struct Limit {
    pub(super) level: f64,
    /// Those members.
    members: Vec<usize>,
}

impl Limit {
    pub(super) fn reached_at(&self, level: f64) -> bool {
        level >= self.level - LIMIT_WIDTH * self.level
    }

    /// The bound that it is.
    pub(super) fn priced(&self, demands: &[Demand]) -> Priced {
        let mut demand_price = vec![0.0; demands.len()];
        let part = 1.0 / self.members.len() as f64;
        let mut size = 0.0_f64;
        for member in &self.members {
            let Demand { slope, base } = demands[*member];
            demand_price[*member] = part / slope;
            size = size.max(self.level + base / slope);
        }
        Priced { bound: self.level, size, demand_price }
    }
}

impl Pools {
    /// The level at which the first members have all of their time at the fastest that they can have; nothing if none asks
    /// for more with the level.
    pub(super) fn limit(&self) -> Option<Limit> {
        if !self.limited {
            return None;
        }
        let mut limit = Limit { level: f64::INFINITY, members: Vec::new() };
        for (pool, members) in self.members.iter().enumerate() {
            let fastest = self.slots[pool].first().map_or(0.0, |slot| slot.speed);
            for member in members.iter().map(|member| *member as usize) {
                let Demand { slope, base } = self.demands[member];
                if slope <= 0.0 {
                    continue;
                }
                let level = ((fastest - base) / slope).max(0.0);
                let near = LIMIT_WIDTH * fastest / slope;
                if level < limit.level - near {
                    limit = Limit { level, members: vec![member] };
                } else if level <= limit.level + near {
                    limit.members.push(member);
                    limit.level = limit.level.min(level);
                }
            }
        }
        (!limit.members.is_empty()).then_some(limit)
    }
}
