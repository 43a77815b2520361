//! The next level of water filling: the highest level above what members already have, by Dantzig-Wolfe.
//!
//! Required throughputs are a base plus a multiple of the level, so responses to one level become responses to a lower one
//! by mixing them with the allocation that members already have. A level that one member alone limits is mostly reached at
//! the prices of the level before: then one sweep is enough.

use super::{F64x8, JobBatch, LANES, NEAR_MAX, SAMPLE_GROWTH, SAMPLE_MAX, cut, pricing_pass};
use crate::decomposition::certificate::PrimalDual;
use crate::decomposition::columns::Proposals;
use crate::decomposition::dantzig_wolfe::{
    BELOW, DualSmoothing, Found, Place, Search, Start, asked_max, groups, sample_gap, worth,
};
use crate::decomposition::padded::Padded;
use crate::decomposition::restricted_master::RestrictedMaster;
use crate::decomposition::types::of_types;
use crate::program::singles::{Goal as Wanted, Singles as Sharing};
use crate::solver::backend::Limits;
use crate::solver::timing::Stopwatch;

/// The gap at the end, in tolerances. What is left of a level is divided by prices, small ones too.
const GAP: f64 = 1e-3;
/// By how much less is enough where more askings change nothing, and how many that are.
const GAP_STALLED: f64 = 1e3;
const STALLED: u32 = 4;
/// How far off a level may be, relative to what members have with it.
const LEVEL_GAP: f64 = 1e-8;
/// A rise that is less than this part of the highest there can be is none.
const RISE_MIN: f64 = 1e-11;
/// Rounding of what all ask for, relative.
const ROUNDING: f64 = 1e-14;
/// A type whose workers are worth less than this part of all workers is not scarce.
pub const SCARCE_MIN: f64 = 1e-6;
/// A member that lacks less than this part of the most it can have is at it.
const LACK_MAX: f64 = 1e-11;

/// The next level of water filling, and what proves it.
#[derive(Clone, Debug)]
pub struct RaisedLevel {
    /// Class times and the dual prices that certify them.
    pub shares: PrimalDual,
    /// Is the member saturated: can it gain only if another of the same level loses? `[members]`.
    pub binding: Vec<bool>,
    /// Worker types all of whose workers are needed: `[K]`.
    pub scarce: Vec<bool>,
    /// Prices to begin the next level with.
    pub near: Vec<Vec<f64>>,
}

/// The end of a search, and the prices whose proposals are mixed there, the most first.
struct Reached {
    found: Found,
    near: Vec<Vec<f64>>,
}

/// The highest level above what members have; nothing if there are more than 64 worker types, or prices do not settle.
/// `near`: prices of the level before, if there was one.
pub fn raise_above(
    sharing: &Sharing<'_>,
    wanted: Wanted<'_>,
    near: Vec<Vec<f64>>,
    limits: &Limits,
) -> Option<RaisedLevel> {
    if let Some(padded) = Padded::of(sharing, wanted) {
        let mut raised = raise_above(&padded.sharing(), padded.wanted(wanted), near, limits)?;
        cut(&padded, &mut raised.shares);
        padded.cut(&mut raised.scarce);
        return Some(raised);
    }
    of_types!(sharing.instance().n_types(), K => JobBatch::<K>::raise_above(sharing, wanted, near, limits))
}

impl<const K: usize> JobBatch<K> {
    fn raise_above(
        sharing: &Sharing<'_>,
        wanted: Wanted<'_>,
        mut near: Vec<Vec<f64>>,
        limits: &Limits,
    ) -> Option<RaisedLevel> {
        let n = sharing.instance().n_members();
        let limit_of = |member| sharing.limit_above(member, wanted.base(member));
        let limit = (0..n).map(limit_of).fold(f64::INFINITY, f64::min);
        if !(limit > 0.0 && limit.is_finite()) {
            return None;
        }
        let batch = Self::of(sharing, wanted, (limit, 1.0));
        // the least level at which members would have what they have
        let had = |member: usize| wanted.base(member) / (sharing.demand[member] * limit);
        let demanding = (0..n).filter(|member| sharing.demand[*member] > 0.0);
        let had = demanding.map(had).fold(f64::INFINITY, f64::min);
        let clock = Stopwatch::start();
        let late = || limits.time.is_some_and(|time| clock.elapsed() > time);
        let given = batch.used();
        let reach = |batch: &Self, near: Vec<Vec<f64>>, gap: f64| {
            let groups = groups(batch.demand.len());
            let mut ask = |place: &Place| batch.ask(place, groups);
            let part = batch.n as f64 / n as f64;
            let left = |(given, used): (f64, f64)| part * (1.0 - given) + used;
            let room: Vec<f64> = given.into_iter().zip(batch.used()).map(left).collect();
            let (start, given) = (Start::anywhere(&room), batch.proposed(groups));
            let mut search = Search { ask: &mut ask, given, room, groups, start: &start, gap, late: &late };
            search.raise_above(near, had)
        };
        let (mut step, mut steps) = (1, Vec::new());
        while near.is_empty() && n / step > SAMPLE_MAX {
            step *= SAMPLE_GROWTH.min((n / step).div_ceil(SAMPLE_MAX));
            steps.push(step);
        }
        for step in steps.into_iter().rev() {
            let sample = batch.sample(step);
            let gap = sample_gap(sample.n);
            if let Some(reached) = reach(&sample, near.clone(), gap) {
                near = reached.near;
            }
        }
        let Reached { found, near } = reach(&batch, near, limits.tolerance * GAP)?;
        let scarce = found.at.price.iter().map(|price| found.has_prices() && *price > SCARCE_MIN);
        let scarce: Vec<bool> = scarce.collect();
        let binding = batch.binding(&found, &scarce);
        Some(RaisedLevel {
            shares: batch.settled(sharing, wanted, &found, (limit, 1.0)),
            binding,
            scarce,
            near,
        })
    }

    /// Saturated members: at the highest throughput they can have, or with a positive price at scarce types' prices alone.
    fn binding(&self, found: &Found, scarce: &[bool]) -> Vec<bool> {
        let mut rent = self.rent(&found.at);
        for (rent, scarce) in rent.iter_mut().zip(scarce) {
            *rent = if *scarce { *rent } else { 0.0 };
        }
        let level = found.level.first().copied().unwrap_or_default();
        let (mut throughput_price, mut time) = (vec![0.0; self.n], vec![0.0; self.n]);
        pricing_pass::prove(self, (rent, level), &mut throughput_price, &mut time);
        let mut binding = Vec::with_capacity(self.n);
        for (chunk, throughput_price) in throughput_price.chunks(LANES).enumerate() {
            let fastest = self.speed[chunk].iter().fold(F64x8::ZERO, |most, speed| most.max(*speed));
            let lacking = fastest + self.asked(chunk, level) * -1.0;
            for (i, throughput_price) in throughput_price.iter().enumerate() {
                let full = lacking.0[i] <= LACK_MAX * fastest.0[i];
                binding.push(self.demand[chunk].0[i] > 0.0 && (full || *throughput_price > 0.0));
            }
        }
        binding
    }
}

impl Search<'_> {
    /// The highest level above what is given at which members fit, 1 being the highest that each can reach by itself.
    /// Prices `near` are tried first. `had`: the level at which members had what is given.
    fn raise_above(&mut self, near: Vec<Vec<f64>>, had: f64) -> Option<Reached> {
        let Search { ask, given, room, groups, start, gap, late } = self;
        let given = given.as_ref()?;
        let unit = |price: Vec<f64>| {
            let all = worth(&price, room).recip();
            price.into_iter().map(|price| price * all).collect::<Vec<f64>>()
        };
        let mut known = near.into_iter().map(unit).collect::<Vec<_>>();
        if known.is_empty() {
            known.push(unit(start.price.clone()));
        }
        let mut master =
            RestrictedMaster::new(room.clone(), *groups, true, start.low.clone(), start.high.clone());
        let highest = 1.0 - BELOW;
        let mut level = highest;
        let mut best: Option<(f64, Place, f64)> = None;
        let mut asked = Vec::new();
        let (mut last, mut stalled) = (f64::INFINITY, 0);
        let mut queue = known.iter().cloned();
        let mut price = queue.next()?;
        let mut smoothing = DualSmoothing::of(room.len(), *groups);
        while asked.len() < asked_max(room.len()) {
            let place = Place { price, level: vec![level] };
            let proposals = ask(&place)?;
            smoothing.note(&proposals, room);
            let proven = bound(&place, &proposals, room);
            if best.as_ref().is_none_or(|best| proven < best.0) {
                best = Some((proven, place.clone(), proposals.slope));
            }
            let fits = asked.is_empty() && level >= highest && proposals.fits(room);
            master.add(&proposals);
            asked.push(place);
            if fits {
                return Some(at_once(asked, *groups, known));
            }
            let (proven, at, slope) = best.as_ref()?;
            let lower = proven.min(level);
            if late() || lower.is_nan() {
                return None;
            }
            if lower <= RISE_MIN {
                return Some(stays(&asked, (at.clone(), *slope), *groups));
            }
            if lower < level {
                master.approach(lower / level, &given.usage);
                level = lower;
            }
            if let Some(next) = queue.next() {
                price = next;
                continue;
            }
            let mixture = master.solve()?;
            stalled = if (mixture.objective - last).abs() <= ROUNDING { stalled + 1 } else { 0 };
            last = mixture.objective;
            let exact = LEVEL_GAP * (level + had) * slope;
            let enough = if stalled < STALLED { gap.min(exact) } else { *gap * GAP_STALLED };
            if !master.widen(1.0) && mixture.objective <= 1.0 + enough {
                // (at the highest level one block alone holds it, whatever the prices)
                let slope = (level < highest).then_some(*slope);
                let at = at.clone();
                let end = End { level, at, slope, stretch: mixture.objective.max(1.0) };
                return Some(mixed(&master, asked, end));
            }
            price = smoothing.price(&at.price, mixture.price);
        }
        None
    }
}

/// What no level exceeds, going by what is asked for costs and how much more it would for more.
fn bound(place: &Place, proposals: &Proposals, room: &[f64]) -> f64 {
    let (all, asked) = (worth(&place.price, room), proposals.least);
    // (where more costs next to nothing, what was rounded is much of it)
    let bound = place.level[0] + (all - asked + ROUNDING * (all + asked)) / proposals.slope;
    if proposals.slope > 0.0 { bound } else { f64::INFINITY }
}

/// The end of a search whose first responses fit; `near` is what was known of prices.
fn at_once(asked: Vec<Place>, groups: usize, near: Vec<Vec<f64>>) -> Reached {
    let (at, level) = (asked[0].clone(), asked[0].level.clone());
    let mixture = asked.into_iter().map(|place| (place, vec![1.0; groups])).collect();
    let found = Found { at, slope: None, level, mixture, given: vec![0.0; groups], asked: 1 };
    Reached { found, near }
}

/// The end of a search in which no level above what is given can be reached.
fn stays(asked: &[Place], (at, slope): (Place, f64), groups: usize) -> Reached {
    let near = asked.iter().rev().take(1).map(|place| place.price.clone()).collect();
    let (mixture, given) = (Vec::new(), vec![1.0; groups]);
    let n_asked = u32::try_from(asked.len()).unwrap_or(u32::MAX);
    let found = Found { at, slope: Some(slope), level: vec![0.0], mixture, given, asked: n_asked };
    Reached { found, near }
}

/// Where a search ended.
struct End {
    level: f64,
    at: Place,
    slope: Option<f64>,
    stretch: f64,
}

/// The mixture of what was asked for, at its level: proposals to higher ones are mixed with what is given.
fn mixed(master: &RestrictedMaster, asked: Vec<Place>, end: End) -> Reached {
    let n_asked = u32::try_from(asked.len()).unwrap_or(u32::MAX);
    let mut given = vec![0.0; master.groups];
    let mut weights = vec![vec![0.0; master.groups]; asked.len()];
    for (round, group, part) in master.parts() {
        let (part, of) = (part / end.stretch, end.level / asked[round].level[0]);
        weights[round][group] = part * of;
        given[group] += part * (1.0 - of);
    }
    let mut mixture: Vec<(Place, Vec<f64>)> = asked.into_iter().zip(weights).collect();
    mixture.retain(|(_, weights)| weights.iter().any(|weight| *weight != 0.0));
    let End { level, at, slope, .. } = end;
    let found = Found { at, slope, level: vec![level], mixture, given, asked: n_asked };
    Reached { near: found.mixed(NEAR_MAX).map(|place| place.price.clone()).collect(), found }
}
