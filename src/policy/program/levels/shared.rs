//! Levels raised one after another without a program being written, where members are alone on worker types.

use super::leaves;
use crate::policy::program::hierarchy::Rising;
use crate::policy::program::master::Master;
use crate::policy::program::solving::Solving;
use crate::program::{BoundObjective, Instance, Sharing, Wanted};
use crate::solver::certificate::Certificate;
use crate::solver::structured::Climbed;

/// A member that lacks less than this part of the most it can have is at it.
pub(super) const LACK_MAX: f64 = 1e-11;

/// The lexicographic optimum, for which no program was written.
#[derive(Clone, Debug)]
pub(in crate::policy::program) struct FilledShared {
    /// Class time of the columns: [columns].
    pub(in crate::policy::program) class_time: Vec<f64>,
    /// The leaf of each member: [members].
    pub(in crate::policy::program) leaves: Vec<f64>,
    /// What no allocation can exceed of the first level.
    pub(in crate::policy::program) bound: f64,
    /// What leaves rise by per unit of that: [members].
    pub(in crate::policy::program) first_slope: Vec<f64>,
}

/// Where members are on their way up.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    /// Who rises no more: [members].
    pub(super) frozen: Vec<bool>,
    /// The leaf of each: [members].
    pub(super) reached: Vec<f64>,
    /// Class times at which they have that: [members × K].
    pub(super) given: Vec<f64>,
    /// Types all of whose workers are needed for that: [K].
    scarce: Vec<bool>,
    /// Prices of workers that the next search begins with.
    near: Vec<Vec<f64>>,
}

/// Raises all members from nothing, as [`fill`](super::fill) does; nothing where programs must be written.
///
/// Where a level is held by workers, their prices say which types are scarce from then on: what members have costs all
/// that those are worth, at prices at which no member can have it for less, so that whoever needs more of a scarce type
/// rises no more. Others can rise as far as types that are not scarce carry them, and do, one by one: levels at which
/// one of them is full are leapt over ([`leap`](Standing::leap)), and what is left to be raised with workers is about a
/// level a type.
pub(in crate::policy::program) fn fill_shared(
    solving: &mut Solving,
    master: &Master<'_>,
    rates: &impl Rising,
) -> Option<FilledShared> {
    let bound = master.bound();
    let n_columns = bound.columns().len();
    if !solving.shares(n_columns) || master.is_priced() {
        return None;
    }
    let (n, k) = (master.reduced().instance.n_members(), master.reduced().instance.n_types());
    let mut standing = Standing::nothing(n, k);
    let first_slope = standing.slopes(rates);
    let bound_of_first = standing.climb(solving, &bound.sharing(first_slope.clone())?, n_columns)?;
    loop {
        let limits = standing.limits(&bound);
        // (where a leap fails, the next level is where it left off)
        let _ = standing.leap(solving, &bound, (rates, &limits));
        let slope = standing.slopes(rates);
        if slope.iter().all(|slope| *slope == 0.0) {
            break;
        }
        standing.climb(solving, &bound.sharing(slope)?, n_columns)?;
    }
    let columns = bound.columns().iter();
    let class_time =
        columns.map(|column| standing.given[column.combination * k + column.worker_type]).collect::<Vec<_>>();
    let leaves = leaves(&bound, &class_time);
    Some(FilledShared { class_time, leaves, bound: bound_of_first, first_slope })
}

impl Standing {
    fn nothing(n: usize, k: usize) -> Self {
        let (frozen, reached, given) = (vec![false; n], vec![0.0; n], vec![0.0; n * k]);
        Self { frozen, reached, given, scarce: vec![false; k], near: Vec::new() }
    }

    /// What members rise by per unit of the level: [members].
    fn slopes(&self, rates: &impl Rising) -> Vec<f64> {
        let mut slopes = rates.slopes(&self.frozen);
        for (slope, frozen) in slopes.iter_mut().zip(&self.frozen) {
            *slope = if *frozen { 0.0 } else { *slope };
        }
        slopes
    }

    /// The most that each can have of types that are not scarce, [members]; those that have it are frozen.
    fn limits(&mut self, bound: &BoundObjective<'_>) -> Vec<f64> {
        let instance = bound.instance();
        let mut limits = Vec::with_capacity(self.frozen.len());
        for (member, (reached, frozen)) in self.reached.iter().zip(&mut self.frozen).enumerate() {
            let speeds = instance.alone(member).iter().zip(&self.scarce).enumerate();
            let free = speeds.filter(|(kind, (_, scarce))| !**scarce && instance.runs_alone(member, *kind));
            let limit = free.map(|(_, (speed, _))| *speed).fold(0.0, f64::max);
            *frozen |= limit - reached <= LACK_MAX * limit;
            limits.push(limit);
        }
        limits
    }

    /// Raises the next level; gives what no allocation can exceed of it.
    fn climb(&mut self, solving: &mut Solving, sharing: &Sharing<'_>, n_columns: usize) -> Option<f64> {
        let (climbed, certificate) = self.raised(solving, sharing, n_columns)?;
        for (frozen, binding) in self.frozen.iter_mut().zip(&climbed.binding) {
            *frozen |= *binding;
        }
        if !climbed.binding.contains(&true) {
            // (nobody binds by much: the one whose leaf is worth most does)
            let share = |member: &usize| climbed.shares.leaf_price[*member] * sharing.demand[*member];
            let most = (0..sharing.demand.len()).max_by(|a, b| share(a).total_cmp(&share(b)))?;
            self.frozen[most] = true;
        }
        for (scarce, here) in self.scarce.iter_mut().zip(&climbed.scarce) {
            *scarce |= *here;
        }
        let rise = climbed.shares.level.max(0.0);
        for (reached, slope) in self.reached.iter_mut().zip(&sharing.demand) {
            *reached += slope * rise;
        }
        self.given = climbed.shares.time;
        self.take_down(sharing.instance());
        Some(certificate.bound)
    }

    /// The highest level above what members have.
    pub(super) fn raised(
        &mut self,
        solving: &mut Solving,
        sharing: &Sharing<'_>,
        n_columns: usize,
    ) -> Option<(Climbed, Certificate)> {
        let wanted = Wanted::Above { base: &self.reached, given: &self.given };
        let (mut climbed, certificate) = solving.climb(sharing, wanted, self.near.clone(), n_columns)?;
        self.near = std::mem::take(&mut climbed.near);
        Some((climbed, certificate))
    }

    /// Nobody has more than what it is given makes.
    pub(super) fn take_down(&mut self, instance: &Instance) {
        let times = self.given.chunks_exact(instance.n_types());
        for (member, (reached, times)) in self.reached.iter_mut().zip(times).enumerate() {
            let leaf =
                instance.alone(member).iter().zip(times).map(|(speed, time)| speed * time).sum::<f64>();
            *reached = reached.min((leaf / instance.multiplicity[member]).max(0.0));
        }
    }
}
