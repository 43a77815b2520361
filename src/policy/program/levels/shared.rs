//! Levels raised one after another without a program being written, where members are alone on worker types.

use super::rest::{Held, Rest};
use super::throughputs;
use crate::decomposition::RaisedLevel;
use crate::policy::program::hierarchy::Rising;
use crate::policy::program::master::Master;
use crate::policy::program::solving::Solving;
use crate::policy::program::strategy::{GaveUp, Unfit};
use crate::program::{Instance, Sharing, Wanted};

/// A member that lacks less than this part of the most it can have is at it.
pub(super) const LACK_MAX: f64 = 1e-11;

/// The lexicographic optimum, for which no program was written.
#[derive(Clone, Debug)]
pub(in crate::policy::program) struct FilledShared {
    /// Class time of the columns: [columns].
    pub(in crate::policy::program) class_time: Vec<f64>,
    /// The throughput of each member: [members].
    pub(in crate::policy::program) throughputs: Vec<f64>,
    /// What no allocation can exceed of the first level.
    pub(in crate::policy::program) bound: f64,
    /// What throughputs rise by per unit of that: [members].
    pub(in crate::policy::program) first_slope: Vec<f64>,
}

/// Where members are on their way up.
#[derive(Clone, Debug)]
pub(super) struct Standing<'a> {
    instance: &'a Instance,
    /// Columns of the program that would be written.
    n_columns: usize,
    /// Who rises no more: [members].
    pub(super) frozen: Vec<bool>,
    /// The throughput of each: [members].
    pub(super) reached: Vec<f64>,
    /// Class times at which they have that: [members × K].
    pub(super) given: Vec<f64>,
    /// Types all of whose workers are needed for that: [K].
    scarce: Vec<bool>,
    /// Prices of workers that the next search begins with.
    near: Vec<Vec<f64>>,
    /// What is left to be shared.
    pub(super) rest: Rest<'a>,
}

/// A level above what members have.
#[derive(Debug)]
pub(super) struct Raised {
    /// Of the members and types that are left.
    pub(super) climbed: RaisedLevel,
    /// What no allocation can exceed of it.
    pub(super) bound: f64,
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
) -> Result<FilledShared, GaveUp> {
    let bound = master.bound();
    let n_columns = bound.columns().len();
    solving.unwritten().map_err(GaveUp::Unfit)?;
    let mut standing = Standing::nothing(bound.instance(), n_columns);
    let first_slope = standing.slopes(rates);
    bound.sharing(first_slope.clone()).ok_or(GaveUp::Unfit(Unfit::Objective))?;
    let mut first = None;
    let mut slope = first_slope.clone();
    loop {
        let Raised { climbed, bound: bound_of_level } =
            standing.climb(solving, &slope).ok_or(GaveUp::Unproven)?;
        first.get_or_insert(bound_of_level);
        let mut limits = standing.limits();
        let goes_on = standing.frozen.contains(&false) && climbed.scarce.contains(&true);
        if goes_on && standing.settle(&climbed) {
            limits = standing.limits();
        }
        // (where a leap fails, the next level is where it left off)
        let _ = standing.leap(solving, (rates, &limits));
        slope = standing.slopes(rates);
        if slope.iter().all(|slope| *slope == 0.0) {
            break;
        }
    }
    let k = bound.instance().n_types();
    let columns = bound.columns().iter();
    let class_time =
        columns.map(|column| standing.given[column.combination * k + column.worker_type]).collect::<Vec<_>>();
    let throughputs = throughputs(&bound, &class_time);
    Ok(FilledShared { class_time, throughputs, bound: first.ok_or(GaveUp::Unproven)?, first_slope })
}

impl<'a> Standing<'a> {
    fn nothing(instance: &'a Instance, n_columns: usize) -> Self {
        let (n, k) = (instance.n_members(), instance.n_types());
        Self {
            instance,
            n_columns,
            frozen: vec![false; n],
            reached: vec![0.0; n],
            given: vec![0.0; n * k],
            scarce: vec![false; k],
            near: Vec::new(),
            rest: Rest::all(instance),
        }
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
    fn limits(&mut self) -> Vec<f64> {
        let instance = self.instance;
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

    /// Raises the next level by what members rise, [members].
    fn climb(&mut self, solving: &mut Solving, slope: &[f64]) -> Option<Raised> {
        let raised = self.raised(solving, slope)?;
        let climbed = &raised.climbed;
        for (member, binding) in self.rest.members.iter().zip(&climbed.binding) {
            self.frozen[*member] |= *binding;
        }
        if !climbed.binding.contains(&true) {
            // (nobody binds by much: the one whose throughput is worth most does)
            let members = self.rest.members.iter().zip(&climbed.shares.throughput_price);
            let share = |(member, price): &(&usize, &f64)| **price * slope[**member];
            let (most, _) = members.max_by(|a, b| share(a).total_cmp(&share(b)))?;
            self.frozen[*most] = true;
        }
        for (kind, scarce) in self.rest.types.iter().zip(&climbed.scarce) {
            self.scarce[*kind] |= *scarce;
        }
        let rise = climbed.shares.level.max(0.0);
        for (reached, slope) in self.reached.iter_mut().zip(slope) {
            *reached += slope * rise;
        }
        self.take(&climbed.shares.time, 1.0);
        Some(raised)
    }

    /// The highest level above what members have by what they rise, [members].
    pub(super) fn raised(&mut self, solving: &mut Solving, slope: &[f64]) -> Option<Raised> {
        let [slope, base] = [slope, &self.reached].map(|of| self.rest.of_members(of));
        let given = self.rest.times(&self.given, self.instance.n_types());
        let wanted = Wanted::Above { base: &base, given: &given };
        let sharing = Sharing::new(&self.rest.instance, slope);
        let (mut climbed, certificate) =
            solving.climb(&sharing, wanted, self.near.clone(), self.n_columns)?;
        self.near = std::mem::take(&mut climbed.near);
        Some(Raised { climbed, bound: certificate.bound })
    }

    /// Leaves what prices settle as it is from now on. Are more types scarce then?
    fn settle(&mut self, climbed: &RaisedLevel) -> bool {
        let k = self.instance.n_types();
        let held = Held {
            instance: &self.rest.instance,
            shares: &climbed.shares,
            given: &self.rest.times(&self.given, k),
            frozen: &self.rest.of_members(&self.frozen),
            scarce: &self.rest.types.iter().map(|kind| self.scarce[*kind]).collect::<Vec<bool>>(),
        };
        let Some(rest) = Rest::of(held) else { return false };
        let rest = rest.within(&self.rest);
        let mut more = false;
        for kind in self.rest.types.iter().filter(|kind| !rest.types.contains(kind)) {
            more |= !self.scarce[*kind];
            self.scarce[*kind] = true;
        }
        rest.leave(&mut self.given, k);
        self.take_down();
        self.rest = rest;
        self.near.clear();
        more
    }

    /// Gives members that are left this part of these class times, [members left × types left], in place of what they
    /// had. Nobody has more then than what it is given makes.
    pub(super) fn take(&mut self, time: &[f64], part: f64) {
        let k = self.instance.n_types();
        let times = time.chunks_exact(self.rest.types.len().max(1));
        for (member, times) in self.rest.members.iter().zip(times) {
            let given = &mut self.given[member * k..(member + 1) * k];
            for (kind, time) in self.rest.types.iter().zip(times) {
                given[*kind] = part * time + (1.0 - part) * given[*kind];
            }
        }
        self.take_down();
    }

    /// Nobody has more than what it is given makes.
    fn take_down(&mut self) {
        let instance = self.instance;
        let times = self.given.chunks_exact(instance.n_types());
        for (member, (reached, times)) in self.reached.iter_mut().zip(times).enumerate() {
            let throughput =
                instance.alone(member).iter().zip(times).map(|(speed, time)| speed * time).sum::<f64>();
            *reached = reached.min((throughput / instance.multiplicity[member]).max(0.0));
        }
    }
}
