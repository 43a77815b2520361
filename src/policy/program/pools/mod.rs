//! Levels over pairs of jobs, by the pools of time that jobs of one kind have together.
//!
//! What jobs get alone and beside each other depends on their kinds (see [`pairs`](super::pairs)), of which there are few; what
//! they ask for may be each one's own. Then a program over members has a column for every two of them. A program over
//! *pools*, the members of a kind together, has one for every two kinds, and rows that say when a pool's time can be
//! divided among its members, which are added as they are needed ([`profile`] says what they are and why they are enough,
//! [`divide`] how it is done). One thing those do not say: a job cannot run beside itself. Where a pool's time cannot be divided
//! for that reason, a program over its members says which row is missing ([`exact`]; Benders, *Partitioning procedures for
//! solving mixed-variables programming problems*, 1962). What is found is an optimum over all pairs of members, and is proven
//! to be one from their own numbers ([`bound`]).

mod bound;
mod cuts;
mod divide;
mod exact;
mod limit;
mod needs;
mod partners;
mod pooled;
mod profile;
mod promise;
mod settle;
mod shares;
mod sum;

use self::cuts::{Cut, SlotColumn};
use self::divide::Part;
use self::needs::Needs;
pub(super) use self::sum::Sum;
use crate::policy::program::master::Master;
use crate::policy::program::solving::Solving;
use crate::policy::program::strategy::{Strategy, Unfit};
use crate::program::expression::Vocabulary;
use crate::program::{Demand, Formulation, Instance, Layout, Objective, ObjectiveText, Sense};
use crate::solver::Basis;

/// The gap between a level and its bound, relative to it, at which it stands.
const GAP_MAX: f64 = 1e-8;
/// How many members there must be to a kind, on average, for pools to be fewer by enough.
pub(super) const MEMBERS_PER_KIND: usize = 2;

/// A program over pools, solved.
#[derive(Clone, Debug)]
struct Stage {
    formulation: Formulation,
    /// Behind its rows.
    cuts: Vec<Cut>,
    /// Class time of the pools' columns.
    time: Vec<f64>,
    /// The level there.
    level: f64,
    /// What the members of each pool ask for there: [pools].
    needs: Vec<Needs>,
    /// That time divided among the members of each pool, as places of what it has and of its needs: [pools].
    parts: Vec<Vec<Part>>,
    /// The part of what they need that they all have by that.
    part: f64,
}

/// A level raised.
#[derive(Clone, Debug)]
pub(super) struct Raised {
    /// The level that all members have.
    pub(super) level: f64,
    /// What no allocation can exceed.
    pub(super) bound: f64,
    /// How much the level falls per unit of throughput asked for: ≥ 0, [members].
    pub(super) demand_price: Vec<f64>,
}

/// Members by kind, and the programs over them.
#[derive(Debug)]
pub(super) struct Pools {
    /// Members of each pool, ascending: [pools].
    members: Vec<Vec<u32>>,
    /// The kind of each: [pools].
    kinds: Vec<usize>,
    /// Largest throughput, of which programs over pools are made.
    objective: Objective,
    /// A member for each pool.
    instance: Instance,
    /// Pairs of pools, as the instance has them.
    pairs: Vec<(usize, usize)>,
    layout: Layout,
    /// Columns of each pool, the fastest first: [pools].
    slots: Vec<Vec<SlotColumn>>,
    /// What members ask for.
    demands: Vec<Demand>,
    /// Places of members in the order of what they asked for when that was last set, which is much like any other: [pools].
    order: Vec<Vec<u32>>,
    stage: Option<Stage>,
    /// Where the last program ended.
    basis: Option<Basis>,
    /// Is the level that takes the first members to their fastest a bound of the program?
    limited: bool,
}

/// What a level's prices are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// To bound it and to say who cannot have more: those that are at their fastest, if it takes anyone there.
    Level,
    /// To bound other levels, too, which those of all others do better.
    Cut,
}

impl Pools {
    /// The pools of a decision's members; not where members have other terms than throughputs, or are not many to a kind.
    pub(super) fn of(master: &Master<'_>, solving: &Solving, told: Told) -> Result<Self, Unfit> {
        let kinds = &master.pairing().ok_or(Unfit::NoPairs)?.kinds;
        let fits = master.bound().is_of_throughputs();
        let members = (0..kinds.len()).map(|kind| (kind, kinds.members(kind).to_vec()));
        if fits { Self::of_members(master, solving, members.collect(), told) } else { Err(Unfit::Objective) }
    }

    /// Pools of members of these kinds.
    fn of_members(
        master: &Master<'_>,
        solving: &Solving,
        members: Vec<(usize, Vec<u32>)>,
        told: Told,
    ) -> Result<Self, Unfit> {
        let pairing = master.pairing().ok_or(Unfit::NoPairs)?;
        let instance = &master.reduced().instance;
        solving.unwritten()?;
        let few = members.len() * MEMBERS_PER_KIND > instance.n_members();
        if few && solving.asked() != Some(Strategy::Kinds) {
            return Err(Unfit::UnlikeJobs);
        }
        let text = ObjectiveText::new(Sense::Maximize, "min_over_jobs(throughput)");
        let objective = Objective::check(&text, Vocabulary::default()).map_err(|_| Unfit::Objective)?;
        let (kinds, members): (Vec<usize>, Vec<Vec<u32>>) = members.into_iter().unzip();
        let (pooled, pairs) = pooled::pooled(&members, &kinds, instance, pairing);
        let layout = objective.bind(&pooled).map_err(|_| Unfit::Objective)?.layout().clone();
        let mut pools = Self {
            members,
            kinds,
            objective,
            instance: pooled,
            pairs,
            layout,
            slots: Vec::new(),
            demands: Vec::new(),
            order: Vec::new(),
            stage: None,
            basis: None,
            limited: told == Told::Level,
        };
        pools.sort_slots();
        Ok(pools)
    }

    /// Raises the level of demands, [members]; nothing if that did not come to a proven optimum.
    pub(super) fn raise(
        &mut self,
        solving: &mut Solving,
        master: &Master<'_>,
        demands: &[Demand],
    ) -> Option<Raised> {
        let finite = |demand: &Demand| demand.slope.is_finite() && demand.base.is_finite();
        if !demands.iter().all(finite) || demands.iter().all(|demand| demand.slope <= 0.0) {
            return None;
        }
        self.demands = demands.to_vec();
        self.set_order();
        let (found, duals) = self.raised(solving, master, f64::INFINITY)?;
        let limit = self.limit().filter(|limit| limit.reached_at(found.level));
        let priced = match limit {
            Some(limit) => limit.priced(demands),
            None => bound::priced(self, &found, master, &duals)?,
        };
        let level = found.level - (1.0 - found.part).max(0.0) * priced.size;
        self.stage = Some(found);
        let near = priced.bound - level <= GAP_MAX * priced.size;
        near.then_some(Raised { level, bound: priced.bound, demand_price: priced.demand_price })
    }

    /// Among the allocations of a level, which was raised, the one that uses the workers best.
    pub(super) fn refine(&mut self, solving: &mut Solving, master: &Master<'_>, level: f64) -> Option<()> {
        let found = self.stage.take()?;
        let bound = self.objective.bind_again(&self.instance, &self.layout).ok()?;
        let of = |members: &Vec<u32>| master.reduced().equal_share[members[0] as usize];
        let equal_share: Vec<f64> = self.members.iter().map(of).collect();
        let held = found.formulation.program_objective(level.min(found.level));
        let formulation = bound.refine_utilization(found.formulation, held, &equal_share);
        let (found, _) = self.settled(solving, master, Stage { formulation, ..found })?;
        self.stage = Some(found);
        Some(())
    }

    /// Class times, [columns], that give members what they ask for at a level of 1 and use the workers best.
    pub(super) fn held(
        &mut self,
        solving: &mut Solving,
        master: &mut Master<'_>,
        demands: &[Demand],
    ) -> Option<Vec<f64>> {
        let raised = self.raise(solving, master, demands)?;
        self.refine(solving, master, raised.level.min(1.0))?;
        self.divided(master)
    }
}

#[cfg(test)]
mod tests;
