//! Prices of worker types where every block is one member alone, its time and its demand: no program is written.
//!
//! At prices of worker types and a level, a member has a cost q`[j]` for all of its time on type j and needs the leaf r.
//! What is cheapest, or best, is a vertex: one type for as long as it takes or for all of its time, or two types that
//! take all of it. There are few, and eight members try them side by side. The search for prices is the one of
//! [`prices`](super::prices).

mod climb;
mod corner;
mod screen;

use std::array;

pub use climb::{Climbed, climb};
use corner::{Best, Proof};
use screen::Asking;

use crate::program::sharing::{Sharing, Wanted};
use crate::solver::backend::Limits;
use crate::solver::certificate::Shares;
use crate::solver::structured::lane::{LANES, Lane};
use crate::solver::structured::market::buy;
use crate::solver::structured::prices::{Found, Stage, Start, groups, sample_gap};
use crate::solver::structured::reply::Replies;
use crate::solver::structured::vertex::Place;
use crate::solver::timing::Stopwatch;

/// Prices of a sample of no more members than this are looked for anywhere.
const SAMPLE_MAX: usize = 384;
/// How much larger than a sample the next one is.
const SAMPLE_GROWTH: usize = 8;
/// The gap at the end, in tolerances.
const GAP: f64 = 0.1;
/// What may be left unproven of what a member costs, relative.
const UNPROVEN_MAX: f64 = 1e-14;
/// An objective below this part of what all members could have is judged absolutely.
const UNIT: f64 = 1e-9;

/// Members, eight abreast.
#[derive(Debug)]
struct Crowd<const K: usize> {
    /// 0 where a member cannot run: [chunks]
    speed: Vec<[Lane; K]>,
    /// Of a unit of the level: [chunks]
    demand: Vec<Lane>,
    /// What is asked for at a level of zero: [chunks], or empty.
    base: Vec<Lane>,
    /// Workers of all jobs: [chunks]
    workers: Vec<Lane>,
    /// Of a unit of leaf; [chunks], or empty if only the level counts.
    worth: Vec<Lane>,
    /// Parts of time to begin with: [chunks], or empty.
    given: Vec<[Lane; K]>,
    n: usize,
    /// 1 / capacity
    per_worker: [f64; K],
}

/// Solves without writing the program; nothing if there are too many worker types, or prices do not settle.
pub fn share(sharing: &Sharing<'_>, wanted: Wanted<'_>, limits: &Limits) -> Option<Shares> {
    if let Wanted::Logarithms(of) = wanted {
        return buy(sharing, &of.weight, limits);
    }
    match sharing.instance().n_types() {
        1 => Crowd::<1>::share(sharing, wanted, limits),
        2 => Crowd::<2>::share(sharing, wanted, limits),
        3 => Crowd::<3>::share(sharing, wanted, limits),
        4 => Crowd::<4>::share(sharing, wanted, limits),
        5 => Crowd::<5>::share(sharing, wanted, limits),
        6 => Crowd::<6>::share(sharing, wanted, limits),
        7 => Crowd::<7>::share(sharing, wanted, limits),
        8 => Crowd::<8>::share(sharing, wanted, limits),
        _ => None,
    }
}

impl<const K: usize> Crowd<K> {
    fn share(sharing: &Sharing<'_>, wanted: Wanted<'_>, limits: &Limits) -> Option<Shares> {
        let n = sharing.instance().n_members();
        let limit = (0..n).map(|member| sharing.limit(member)).fold(f64::INFINITY, f64::min);
        if !(limit > 0.0 && limit.is_finite()) {
            return None;
        }
        let unit = Self::unit(sharing, wanted);
        let crowd = Self::of(sharing, wanted, (limit, unit));
        let room: Vec<f64> = sharing.instance().capacity.iter().map(|_| 1.0).collect();
        let clock = Stopwatch::start();
        let late = || limits.time.is_some_and(|time| clock.elapsed() > time);
        let given = crowd.used();
        let search = |crowd: &Self, part: f64, start: &Start, gap: f64| {
            let groups = groups(crowd.demand.len());
            let mut asking = Asking::new(crowd, groups, start, matches!(wanted, Wanted::Worth { .. }));
            let mut ask = |place: &Place| asking.ask(place);
            // what is given to a sample fits as well as what is given to all
            let left = |(room, given): (&f64, &f64)| part * (room - given);
            let room = room.iter().zip(&given).map(left).zip(crowd.used()).map(|(left, used)| left + used);
            let (room, given) = (room.collect(), crowd.replied(groups));
            let mut stage = Stage { ask: &mut ask, given, room, groups, start, gap, late: &late };
            let Wanted::Worth { level, .. } = wanted else { return stage.raise(1.0) };
            stage.hold(&[level / limit], UNIT * part)
        };
        let mut start = Start::anywhere(&room);
        let (mut step, mut steps) = (1, Vec::new());
        while n / step > SAMPLE_MAX {
            step *= SAMPLE_GROWTH.min((n / step).div_ceil(SAMPLE_MAX));
            steps.push(step);
        }
        for step in steps.into_iter().rev() {
            let sample = crowd.sample(step);
            let found = search(&sample, sample.n as f64 / n as f64, &start, sample_gap(sample.n));
            // a sample in which shared rows are not scarce says nothing of prices
            if let Some(found) = found.filter(Found::has_prices) {
                start = Start::near(&found, sample.n);
            }
        }
        let found = search(&crowd, 1.0, &start, limits.tolerance * GAP)?;
        Some(crowd.settled(sharing, wanted, &found, (limit, unit)))
    }

    /// What makes the most that all members can be worth together 1.
    fn unit(sharing: &Sharing<'_>, wanted: Wanted<'_>) -> f64 {
        let Wanted::Worth { worth, .. } = wanted else { return 1.0 };
        let fastest = |member: usize| sharing.instance().alone(member).iter().copied().fold(0.0, f64::max);
        let most: f64 = worth.iter().enumerate().map(|(member, worth)| worth * fastest(member)).sum();
        if most > 0.0 { 1.0 / most } else { 1.0 }
    }

    fn room_for(n: usize, per_worker: [f64; K], [worth, given, base]: [bool; 3]) -> Self {
        let chunks = n.div_ceil(LANES);
        // what fills a chunk asks for nothing and takes nothing
        let mut speed = vec![[Lane::ZERO; K]; chunks];
        if let Some(last) = speed.last_mut() {
            last[0] = Lane::ONE;
        }
        let lanes = || vec![Lane::ZERO; chunks];
        let [worth, base] = [worth, base].map(|has| if has { lanes() } else { Vec::new() });
        let given = if given { vec![[Lane::ZERO; K]; chunks] } else { Vec::new() };
        Self { speed, demand: lanes(), base, workers: lanes(), worth, given, n, per_worker }
    }

    fn of(sharing: &Sharing<'_>, wanted: Wanted<'_>, (limit, unit): (f64, f64)) -> Self {
        let instance = sharing.instance();
        let per_worker =
            array::from_fn(|j| if instance.capacity[j] > 0.0 { 1.0 / instance.capacity[j] } else { 0.0 });
        let (of_worth, given) = match wanted {
            Wanted::Worth { worth, given, .. } => (Some(worth), given),
            Wanted::Above { given, .. } => (None, given),
            Wanted::Level | Wanted::Logarithms(_) => (None, &[][..]),
        };
        let above = matches!(wanted, Wanted::Above { .. });
        let has = [of_worth.is_some(), !given.is_empty(), above];
        let mut crowd = Self::room_for(instance.n_members(), per_worker, has);
        for member in 0..crowd.n {
            let (chunk, i) = (member / LANES, member % LANES);
            let size = instance.scale_factor[member];
            for (j, speed) in instance.alone(member).iter().enumerate() {
                crowd.speed[chunk][j].0[i] = if sharing.runs(member, j) { *speed } else { 0.0 };
            }
            crowd.demand[chunk].0[i] = sharing.demand[member] * limit;
            crowd.workers[chunk].0[i] = size * instance.multiplicity[member];
            if above {
                // (what it has may be rounded to more than it can have)
                crowd.base[chunk].0[i] = wanted.base(member).min(sharing.fastest(member));
            }
            if let Some(worth) = of_worth {
                crowd.worth[chunk].0[i] = worth[member] * unit;
            }
            for (j, time) in given.iter().skip(member * K).take(K).enumerate() {
                crowd.given[chunk][j].0[i] = time / instance.multiplicity[member];
            }
        }
        crowd
    }

    /// Every so manieth member.
    fn sample(&self, step: usize) -> Self {
        let positions = (step / 2..self.n).step_by(step);
        let has = [!self.worth.is_empty(), !self.given.is_empty(), !self.base.is_empty()];
        let mut sample = Self::room_for(positions.len(), self.per_worker, has);
        for (to, from) in positions.enumerate() {
            sample.copy((to / LANES, to % LANES), self, (from / LANES, from % LANES));
        }
        sample
    }

    /// Takes over a member: its chunk and lane here and there.
    fn copy(&mut self, (c, i): (usize, usize), from: &Self, (d, o): (usize, usize)) {
        for j in 0..K {
            self.speed[c][j].0[i] = from.speed[d][j].0[o];
        }
        self.demand[c].0[i] = from.demand[d].0[o];
        self.workers[c].0[i] = from.workers[d].0[o];
        for (to, from) in [(&mut self.worth, &from.worth), (&mut self.base, &from.base)] {
            if let (Some(to), Some(from)) = (to.get_mut(c), from.get(d)) {
                to.0[i] = from.0[o];
            }
        }
        if let (Some(to), Some(from)) = (self.given.get_mut(c), from.given.get(d)) {
            for j in 0..K {
                to[j].0[i] = from[j].0[o];
            }
        }
    }

    /// What is used of each type where members have what they are given.
    fn used(&self) -> [f64; K] {
        let used = |j: usize| {
            let parts =
                self.workers.iter().zip(&self.given).map(|(workers, part)| (*workers * part[j]).sum());
            parts.sum::<f64>() * self.per_worker[j]
        };
        array::from_fn(used)
    }

    /// What members are given, as if they had replied so.
    fn replied(&self, groups: usize) -> Option<Replies> {
        let mut all = Replies::nothing(groups, K);
        for (chunk, part) in self.given.iter().enumerate() {
            self.count(chunk, chunk % groups, part, &mut all);
        }
        (!self.given.is_empty()).then_some(all)
    }

    /// Adds what a chunk uses and is worth at parts of its time to its group's.
    #[inline]
    fn count(&self, chunk: usize, group: usize, part: &[Lane; K], all: &mut Replies) {
        for (j, part) in part.iter().enumerate() {
            all.usage[group * K + j] += (self.workers[chunk] * *part).sum() * self.per_worker[j];
        }
        if let Some(worth) = self.worth.get(chunk) {
            let speeds = self.speed[chunk].iter().zip(part);
            let leaf = speeds.fold(Lane::ZERO, |sum, (speed, part)| sum + *speed * *part);
            all.cost[group] -= (*worth * leaf).sum();
        }
    }

    /// What all of a chunk's time costs on each type.
    #[inline]
    fn costs(&self, chunk: usize, rent: &[f64; K]) -> [Lane; K] {
        let rented = |j: usize| self.workers[chunk] * rent[j];
        match self.worth.get(chunk) {
            None => array::from_fn(rented),
            Some(worth) => array::from_fn(|j| rented(j) - *worth * self.speed[chunk][j]),
        }
    }

    /// The leaf that is asked of a chunk's members.
    #[inline]
    fn asked(&self, chunk: usize, level: f64) -> Lane {
        let above = self.demand[chunk] * level;
        self.base.get(chunk).map_or(above, |base| above + *base)
    }

    fn rent(&self, place: &Place) -> [f64; K] {
        self.rented(&place.price)
    }

    /// Prices of workers, of prices of all workers of a type.
    fn rented(&self, price: &[f64]) -> [f64; K] {
        array::from_fn(|j| price[j] * self.per_worker[j])
    }

    #[inline]
    fn best(&self, chunk: usize, rent: &[f64; K], level: f64) -> Best<K> {
        let (speed, cost) = (&self.speed[chunk], &self.costs(chunk, rent));
        let asked = self.asked(chunk, level);
        let mut best = Best::NONE;
        for j in 0..K {
            best.for_leaf(j, speed, cost, asked);
        }
        if !self.worth.is_empty() {
            for j in 0..K {
                best.always(j, speed, cost, asked);
            }
        }
        for j in 0..K {
            for l in j + 1..K {
                best.between((j, l), speed, cost, asked);
            }
        }
        best
    }

    /// What members do at a place; nothing if one of them cannot reach the level.
    fn ask(&self, place: &Place, groups: usize) -> Option<Replies> {
        let mut all = Replies::nothing(groups, K);
        self.reply(place, |chunk| chunk % groups, &mut all).then_some(all)
    }

    /// Adds what members do at a place to what their groups do. False if one of them cannot reach the level.
    fn reply(&self, place: &Place, group: impl Fn(usize) -> usize, all: &mut Replies) -> bool {
        let (rent, level) = (self.rent(place), place.level[0]);
        for chunk in 0..self.demand.len() {
            let best = self.best(chunk, &rent, level);
            if best.value.largest() == f64::INFINITY {
                return false;
            }
            self.count(chunk, group(chunk), &best.part, all);
            if self.worth.is_empty() {
                let proof = self.proof_of(chunk, &best, &rent, level);
                all.least += proof.value.sum();
                all.slope += (proof.leaf * self.demand[chunk]).sum();
            } else {
                // (a level that is held is asked for as it is)
                all.least += best.value.sum();
            }
        }
        true
    }

    /// What the prices of leaf at a chunk's best vertices prove, or the prices that prove the most: at a vertex with more
    /// than one price of leaf, or one that is the best but for rounding, the price it has may not be one that proves it.
    #[inline]
    fn proof_of(&self, chunk: usize, best: &Best<K>, rent: &[f64; K], level: f64) -> Proof {
        let (speed, cost) = (&self.speed[chunk], &self.costs(chunk, rent));
        let mut proof = Proof::NONE;
        proof.attempt(best.leaf.max(Lane::ZERO), speed, cost, self.asked(chunk, level));
        let unproven = best.value - proof.value - best.value.abs() * UNPROVEN_MAX;
        if unproven.largest() > 0.0 { self.proof(chunk, rent, level) } else { proof }
    }

    /// The prices that prove the most of a chunk.
    #[inline]
    fn proof(&self, chunk: usize, rent: &[f64; K], level: f64) -> Proof {
        let (speed, cost) = (&self.speed[chunk], &self.costs(chunk, rent));
        let asked = self.asked(chunk, level);
        let mut proof = Proof::NONE;
        proof.attempt(Lane::ZERO, speed, cost, asked);
        for j in 0..K {
            proof.attempt(cost[j] / speed[j], speed, cost, asked);
            for l in j + 1..K {
                proof.attempt((cost[j] - cost[l]) / (speed[j] - speed[l]), speed, cost, asked);
            }
        }
        proof
    }

    /// All members where the mixture has them, in their own units.
    fn settled(
        &self,
        sharing: &Sharing<'_>,
        wanted: Wanted<'_>,
        found: &Found,
        (limit, unit): (f64, f64),
    ) -> Shares {
        let instance = sharing.instance();
        let level = found.level.first().copied().unwrap_or_default();
        let mut shares = Shares {
            time: vec![0.0; self.n * K],
            level: if let Wanted::Worth { level, .. } = wanted { level } else { level * limit },
            worker_price: vec![0.0; K],
            time_price: vec![0.0; self.n],
            leaf_price: vec![0.0; self.n],
            asked: found.asked,
        };
        let limit_of = |member: usize| sharing.limit_above(member, wanted.base(member));
        for (place, weights) in &found.mixture {
            self.mix(place, weights, &mut shares.time);
        }
        for ((chunk, part), time) in self.given.iter().enumerate().zip(shares.time.chunks_mut(K * LANES)) {
            Self::add(found.given[chunk % found.given.len()], part, time);
        }
        for (time, jobs) in shares.time.chunks_exact_mut(K).zip(&instance.multiplicity) {
            for time in time {
                *time = time.max(0.0) * jobs;
            }
        }
        if found.has_prices() {
            let rent = self.rent(&found.at);
            shares.worker_price.copy_from_slice(&rent);
            for chunk in 0..self.demand.len() {
                let proof = self.proof(chunk, &rent, found.at.level[0]);
                for (i, member) in (chunk * LANES..self.n.min((chunk + 1) * LANES)).enumerate() {
                    shares.leaf_price[member] = proof.leaf.0[i];
                    shares.time_price[member] = proof.time.0[i] / instance.multiplicity[member];
                }
            }
        } else if let Some(holder) = (0..self.n).min_by(|a, b| limit_of(*a).total_cmp(&limit_of(*b))) {
            // one member alone holds the level, whatever the others do
            shares.leaf_price[holder] = 1.0;
            shares.time_price[holder] = sharing.fastest(holder) / instance.multiplicity[holder];
        }
        let factor = if let Wanted::Worth { .. } = wanted {
            1.0 / unit
        } else {
            let priced = shares.leaf_price.iter().zip(&sharing.demand);
            1.0 / priced.map(|(price, demand)| price * demand).sum::<f64>()
        };
        let Shares { worker_price, time_price, leaf_price, .. } = &mut shares;
        for price in worker_price.iter_mut().chain(time_price).chain(leaf_price) {
            *price *= factor;
        }
        shares
    }

    /// Adds the parts of time that members take at a place, times the weight of their group.
    fn mix(&self, place: &Place, weights: &[f64], time: &mut [f64]) {
        let (rent, level) = (self.rent(place), place.level[0]);
        for (chunk, time) in time.chunks_mut(K * LANES).enumerate() {
            let weight = weights[chunk % weights.len()];
            if weight == 0.0 {
                continue;
            }
            Self::add(weight, &self.best(chunk, &rent, level).part, time);
        }
    }

    /// Adds so much of a chunk's parts of time.
    #[inline]
    fn add(weight: f64, part: &[Lane; K], time: &mut [f64]) {
        for (i, time) in time.chunks_exact_mut(K).enumerate() {
            for (time, part) in time.iter_mut().zip(part) {
                *time += weight * part.0[i];
            }
        }
    }
}
