//! The largest sum of throughputs that are worth as much to all members of a pool, where each member asks for its own.
//!
//! What pools get is all that counts then, and what their members ask for adds rows to the program as it does for a level of
//! 1, which is held.

use std::collections::BTreeMap;

use super::{GAP_MAX, Pools, Stage, Told, bound};
use crate::policy::program::master::Master;
use crate::policy::program::solving::Solving;
use crate::policy::program::strategy::Unfit;
use crate::program::{Demand, HOLD_SLACK, Range};

/// A level that is below 1 by this part is 1 but for rounding.
const LEVEL_WIDTH: f64 = 1e-10;

/// A sum over pools.
#[derive(Debug)]
pub(in crate::policy::program) struct Sum {
    pub(super) pools: Pools,
    /// What a unit of throughput is worth: [pools].
    worth: Vec<f64>,
    /// Of throughput from each type.
    by_type: Vec<f64>,
    /// What each member asks for: [members].
    pub(super) demands: Vec<Demand>,
}

impl Sum {
    /// The sum that is to be as large as possible; not if it is another, or is not worth as much to many members of a kind.
    pub(in crate::policy::program) fn of(master: &Master<'_>, solving: &Solving) -> Result<Self, Unfit> {
        let kinds = &master.pairing().ok_or(Unfit::NoPairs)?.kinds;
        let bound = master.bound();
        let (demand, worths) = bound.worths_of_jobs().ok_or(Unfit::Objective)?;
        let mut members: BTreeMap<(usize, u64), Vec<u32>> = BTreeMap::new();
        for (member, worth) in (0_u32..).zip(&worths.worth) {
            members.entry((kinds.class_of(member as usize), worth.to_bits())).or_default().push(member);
        }
        let worth = members.keys().map(|(_, worth)| f64::from_bits(*worth)).collect();
        let members = members.into_iter().map(|((kind, _), members)| (kind, members)).collect();
        let pools = Pools::of_members(master, solving, members, Told::Cut)?;
        let demands = demand.into_iter().map(|slope| Demand { slope, base: 0.0 }).collect();
        Ok(Self { pools, worth, by_type: worths.by_type, demands })
    }

    /// What members ask for, given to all; nothing if that cannot be done.
    pub(super) fn kept(&mut self, solving: &mut Solving, master: &Master<'_>) -> Option<Stage> {
        self.pools.demands.clone_from(&self.demands);
        self.pools.set_order();
        let (stage, _) = self.pools.raised(solving, master, 1.0)?;
        let asked = self.demands.iter().any(|demand| demand.slope > 0.0);
        (!asked || stage.level >= 1.0 - LEVEL_WIDTH).then_some(stage)
    }

    /// Is it known that all members can have what they ask for?
    pub(in crate::policy::program) fn keeps_all(
        &mut self,
        solving: &mut Solving,
        master: &Master<'_>,
    ) -> bool {
        self.kept(solving, master).is_some()
    }

    /// The largest sum, with the workers used best: class times of all columns, and what no sum exceeds. Nothing if that did
    /// not come to a proven optimum.
    pub(in crate::policy::program) fn largest(
        mut self,
        solving: &mut Solving,
        master: &mut Master<'_>,
        refined: bool,
    ) -> Option<(Vec<f64>, f64)> {
        let mut stage = self.kept(solving, master)?;
        let level = stage.formulation.columns.len();
        let unit = stage.formulation.auxiliaries.first()?.scale;
        let program = &mut stage.formulation.program;
        program.columns[level] = Range::exactly(stage.level.min(1.0) / unit);
        program.implied[level] = program.columns[level];
        let cost = self.of_throughput(|pool, j| self.worth[pool] * self.by_type[j]);
        let scale = cost.iter().copied().fold(0.0, f64::max);
        let scale = if scale > 0.0 { scale } else { 1.0 };
        program.cost = cost.into_iter().map(|cost| cost / scale).chain([0.0]).collect();
        let (found, duals) = self.pools.settled(solving, master, stage)?;
        let value: f64 =
            found.formulation.program.cost.iter().zip(&found.time).map(|(cost, time)| cost * time).sum();
        let worth = |pool: usize, j: usize| self.worth[pool] * self.by_type[j] / scale;
        let bound = bound::summed(&self.pools, &found, master, &duals, &worth)?;
        if bound - value > GAP_MAX * value {
            return None;
        }
        self.pools.stage = Some(if refined {
            solving.among_optima(|solving| self.refine(solving, master, (found, value)))?
        } else {
            found
        });
        Some((self.pools.divided(master)?, bound * scale))
    }

    /// Among the largest sums the one that uses the workers best.
    fn refine(
        &mut self,
        solving: &mut Solving,
        master: &Master<'_>,
        (mut found, value): (Stage, f64),
    ) -> Option<Stage> {
        let program = &mut found.formulation.program;
        let held =
            program.cost.iter().copied().enumerate().filter(|(_, cost)| *cost != 0.0).collect::<Vec<_>>();
        program.push_row(Range::at_least(value - HOLD_SLACK * value), held);
        let equal_share = |pool: usize| master.reduced().equal_share[self.pools.members[pool][0] as usize];
        let cost = self.of_throughput(|pool, _| 1.0 / equal_share(pool));
        let scale = cost.iter().copied().fold(0.0, f64::max);
        found.formulation.program.cost = cost.into_iter().map(|cost| cost / scale).chain([0.0]).collect();
        self.pools.settled(solving, master, found).map(|(stage, _)| stage)
    }

    /// Of each column what its throughputs are together, at so much a unit: `(pool, worker type)`.
    fn of_throughput(&self, worth: impl Fn(usize, usize) -> f64) -> Vec<f64> {
        let columns = &self.pools.layout.columns;
        let mut of = vec![0.0; columns.len()];
        for (pool, slots) in self.pools.slots.iter().enumerate() {
            for slot in slots {
                let column = slot.column as usize;
                of[column] += worth(pool, columns[column].worker_type) * slot.speed * slot.uses;
            }
        }
        of
    }
}
