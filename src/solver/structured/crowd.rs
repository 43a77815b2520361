//! Prices of worker types where every block is one member alone, its time and its demand: no program is written.
//!
//! At prices of worker types and a level, a member has a cost q`[j]` for all of its time on type j and needs the leaf r.
//! What is cheapest, or best, is a vertex: one type for as long as it takes or for all of its time, or two types that
//! take all of it, which eight members find side by side ([`corner`], [`edge`]). The search for prices is the one of
//! [`prices`](super::prices).

mod climb;
mod corner;
mod edge;
mod pass;
mod promise;

use std::array;

pub use climb::{Climbed, SCARCE_MIN, climb};
use corner::{Best, Eight, cheapest, cheapest_above, cheapest_or_none};
use pass::At;
pub use promise::{PromisesKept, keep_promises};

use crate::program::sharing::{Sharing, Wanted};
use crate::solver::backend::Limits;
use crate::solver::certificate::Shares;
use crate::solver::structured::lane::{LANES, Lane};
use crate::solver::structured::market::buy;
use crate::solver::structured::padded::{Padded, suits_buying};
use crate::solver::structured::prices::{Found, Near, Place, Stage, Start, groups, sample_gap};
use crate::solver::structured::reply::Replies;
use crate::solver::structured::types::of_types;
use crate::solver::timing::Stopwatch;

/// Prices of a sample of no more members than this are looked for anywhere.
const SAMPLE_MAX: usize = 384;
/// How much larger than a sample the next one is.
const SAMPLE_GROWTH: usize = 8;
/// Prices, whose replies are mixed at the end, that the next search begins with.
const NEAR_MAX: usize = 6;
/// The gap at the end, in tolerances.
const GAP: f64 = 0.1;
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
    /// Of leaf from each type.
    by_type: [f64; K],
    /// Parts of time to begin with: [chunks], or empty.
    given: Vec<[Lane; K]>,
    /// Where what is asked for is given or nothing is, who must have it: 1 or 0, [chunks], or empty.
    due: Vec<Lane>,
    n: usize,
    /// 1 / capacity
    per_worker: [f64; K],
}

/// What a group does.
#[derive(Clone, Copy, Debug)]
struct Done<const K: usize> {
    /// Workers of each type.
    workers: [Lane; K],
    worth: Lane,
}

impl<const K: usize> Done<K> {
    const NOTHING: Self = Self { workers: [Lane::ZERO; K], worth: Lane::ZERO };
}

/// Solves without writing the program, from where the last search of its like was `near`, if there was one; nothing if
/// there are more than 64 worker types, or logarithms are wanted of members that run on a few of many, or prices do not
/// settle.
pub fn share(
    sharing: &Sharing<'_>,
    wanted: Wanted<'_>,
    near: &Near,
    limits: &Limits,
) -> Option<(Shares, Near)> {
    if matches!(wanted, Wanted::Logarithms(_)) && !suits_buying(sharing) {
        return None;
    }
    if let Some(padded) = Padded::of(sharing, wanted) {
        let (mut shares, near) = share(&padded.sharing(), padded.wanted(wanted), near, limits)?;
        cut(&padded, &mut shares);
        return Some((shares, near));
    }
    if let Wanted::Logarithms(of) = wanted {
        return buy(sharing, &of.weight, near, limits);
    }
    of_types!(sharing.instance().n_types(), K => Crowd::<K>::share(sharing, wanted, near, limits))
}

/// Takes types that were added out of what they share.
fn cut(padded: &Padded, shares: &mut Shares) {
    padded.cut_rows(&mut shares.time);
    padded.cut(&mut shares.worker_price);
}

impl<const K: usize> Crowd<K> {
    fn share(
        sharing: &Sharing<'_>,
        wanted: Wanted<'_>,
        near: &Near,
        limits: &Limits,
    ) -> Option<(Shares, Near)> {
        let n = sharing.instance().n_members();
        let limit = (0..n).map(|member| sharing.limit(member)).fold(f64::INFINITY, f64::min);
        // (what is held may ask for nothing)
        let held = matches!(wanted, Wanted::Worth { .. });
        let limit = if held && limit == f64::INFINITY { 1.0 } else { limit };
        if !(limit > 0.0 && limit.is_finite()) {
            return None;
        }
        let unit = Self::unit(sharing, wanted);
        let crowd = Self::of(sharing, wanted, (limit, unit));
        let held = if let Wanted::Worth { level, .. } = wanted { Some(level / limit) } else { None };
        let found = crowd.search(held, crowd.begin(near, (limit, unit)), limits)?;
        let near = crowd.end(&found, (limit, unit));
        Some((crowd.settled(sharing, wanted, &found, (limit, unit)), near))
    }

    /// Where a search begins that is much like one that ended `near`; nothing if there was none.
    fn begin(&self, near: &Near, (limit, unit): (f64, f64)) -> Option<Start> {
        let scaled = |price: &Vec<f64>| {
            let priced = price.iter().zip(&self.per_worker);
            priced
                .map(|(price, per_worker)| if *per_worker > 0.0 { price * unit / per_worker } else { 0.0 })
                .collect()
        };
        let fits = near.prices.iter().all(|price| price.len() == K);
        let prices = if fits { near.prices.iter().map(scaled).collect() } else { Vec::new() };
        Start::known(prices, self.n, near.level / limit)
    }

    /// Where a search ended.
    fn end(&self, found: &Found, (limit, unit): (f64, f64)) -> Near {
        let level = found.level.first().copied().unwrap_or_default() * limit;
        if !found.has_prices() {
            return Near::default();
        }
        let places = std::iter::once(&found.at).chain(found.mixed(NEAR_MAX));
        let prices = places.map(|place| self.rent(place).map(|rent| rent / unit).to_vec()).collect();
        Near { prices, level }
    }

    /// Prices of samples, then of all: a level that is held, or the highest there is. Where it is known where to `begin`,
    /// samples are asked only if that leads nowhere.
    fn search(&self, held: Option<f64>, begin: Option<Start>, limits: &Limits) -> Option<Found> {
        let clock = Stopwatch::start();
        let late = || limits.time.is_some_and(|time| clock.elapsed() > time);
        let given = self.used();
        let stage = |crowd: &Self, start: &Start, gap: f64| {
            let groups = groups(crowd.demand.len());
            let mut ask = |place: &Place| crowd.ask(place, groups);
            // what is given to a sample fits as well as what is given to all
            let part = crowd.n as f64 / self.n as f64;
            let room = given.iter().zip(crowd.used()).map(|(given, used)| part * (1.0 - given) + used);
            let (room, given) = (room.collect(), crowd.replied(groups));
            let mut stage = Stage { ask: &mut ask, given, room, groups, start, gap, late: &late };
            let Some(level) = held else { return stage.raise(1.0) };
            stage.hold(&[level], UNIT * part)
        };
        if let Some(found) = begin.and_then(|start| stage(self, &start, limits.tolerance * GAP)) {
            return Some(found);
        }
        let mut start = Start::anywhere(&[1.0; K]);
        let (mut step, mut steps) = (1, Vec::new());
        while self.n / step > SAMPLE_MAX {
            step *= SAMPLE_GROWTH.min((self.n / step).div_ceil(SAMPLE_MAX));
            steps.push(step);
        }
        for step in steps.into_iter().rev() {
            let sample = self.sample(step);
            let found = stage(&sample, &start, sample_gap(sample.n));
            // a sample in which shared rows are not scarce says nothing of prices
            if let Some(found) = found.filter(Found::has_prices) {
                start = Start::near(&found, sample.n);
            }
        }
        stage(self, &start, limits.tolerance * GAP)
    }

    /// What makes the most that all members can be worth together 1.
    fn unit(sharing: &Sharing<'_>, wanted: Wanted<'_>) -> f64 {
        let Wanted::Worth { worth, by_type, .. } = wanted else { return 1.0 };
        let best = |most: f64, (speed, of): (&f64, &f64)| most.max(speed * of);
        let fastest = |member: usize| sharing.instance().alone(member).iter().zip(by_type).fold(0.0, best);
        let most: f64 = worth.iter().enumerate().map(|(member, worth)| worth * fastest(member)).sum();
        if most > 0.0 { 1.0 / most } else { 1.0 }
    }

    fn room_for(n: usize, [per_worker, by_type]: [[f64; K]; 2], [worth, given, base]: [bool; 3]) -> Self {
        let chunks = n.div_ceil(LANES);
        // what fills a chunk asks for nothing and takes nothing
        let mut speed = vec![[Lane::ZERO; K]; chunks];
        if let Some(last) = speed.last_mut() {
            last[0] = Lane::ONE;
        }
        let lanes = || vec![Lane::ZERO; chunks];
        let [worth, base] = [worth, base].map(|has| if has { lanes() } else { Vec::new() });
        let given = if given { vec![[Lane::ZERO; K]; chunks] } else { Vec::new() };
        let (demand, workers, due) = (lanes(), lanes(), Vec::new());
        Self { speed, demand, base, workers, worth, by_type, given, due, n, per_worker }
    }

    fn of(sharing: &Sharing<'_>, wanted: Wanted<'_>, (limit, unit): (f64, f64)) -> Self {
        let instance = sharing.instance();
        let per_worker =
            array::from_fn(|j| if instance.capacity[j] > 0.0 { 1.0 / instance.capacity[j] } else { 0.0 });
        let (of_worth, of_types, given) = match wanted {
            Wanted::Worth { worth, by_type, given, .. } => (Some(worth), by_type, given),
            Wanted::Above { given, .. } => (None, &[][..], given),
            Wanted::Level | Wanted::Logarithms(_) => (None, &[][..], &[][..]),
        };
        let by_type = array::from_fn(|j| of_types.get(j).copied().unwrap_or(1.0));
        let above = matches!(wanted, Wanted::Above { .. });
        let has = [of_worth.is_some(), !given.is_empty(), above];
        let mut crowd = Self::room_for(instance.n_members(), [per_worker, by_type], has);
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
        let mut sample = Self::room_for(positions.len(), [self.per_worker, self.by_type], has);
        sample.due = if self.due.is_empty() { Vec::new() } else { vec![Lane::ZERO; sample.demand.len()] };
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
        let (worth, base, due) = (&mut self.worth, &mut self.base, &mut self.due);
        for (to, from) in [(worth, &from.worth), (base, &from.base), (due, &from.due)] {
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
        let mut done = vec![Done::NOTHING; groups];
        for (chunk, part) in self.given.iter().enumerate() {
            self.count(chunk, part, &mut done[chunk % groups]);
        }
        (!self.given.is_empty()).then(|| self.replies(&done))
    }

    /// Adds what a chunk uses and is worth at parts of its time to its group's.
    #[inline]
    fn count(&self, chunk: usize, part: &[Lane; K], done: &mut Done<K>) {
        for (workers, part) in done.workers.iter_mut().zip(part) {
            *workers += self.workers[chunk] * *part;
        }
        if let Some(worth) = self.worth.get(chunk) {
            let mut leaf = Lane::ZERO;
            for ((speed, part), of_type) in self.speed[chunk].iter().zip(part).zip(&self.by_type) {
                leaf += *speed * *part * *of_type;
            }
            done.worth += *worth * leaf;
        }
    }

    /// What groups do, without prices.
    fn replies(&self, done: &[Done<K>]) -> Replies {
        let mut all = Replies::nothing(done.len(), K);
        for ((done, cost), usage) in done.iter().zip(&mut all.cost).zip(all.usage.chunks_exact_mut(K)) {
            *cost = -done.worth.sum();
            for ((usage, workers), per_worker) in usage.iter_mut().zip(&done.workers).zip(&self.per_worker) {
                *usage = workers.sum() * per_worker;
            }
        }
        all
    }

    /// What all of a chunk's time costs on each type.
    #[inline]
    fn costs(&self, chunk: usize, rent: &[f64; K]) -> [Lane; K] {
        let mut costs = [Lane::ZERO; K];
        for (cost, rent) in costs.iter_mut().zip(rent) {
            *cost = self.workers[chunk] * *rent;
        }
        if let Some(worth) = self.worth.get(chunk) {
            for ((cost, speed), of_type) in costs.iter_mut().zip(&self.speed[chunk]).zip(&self.by_type) {
                *cost = *cost - *worth * *speed * *of_type;
            }
        }
        costs
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

    /// A chunk at prices and a level.
    #[inline]
    fn at(&self, chunk: usize, (rent, level): &At<K>) -> Eight<'_, K> {
        Eight { speed: &self.speed[chunk], cost: self.costs(chunk, rent), asked: self.asked(chunk, *level) }
    }

    /// What a chunk's members do at best.
    #[inline]
    fn best(&self, chunk: usize, members: &Eight<'_, K>) -> Best<K> {
        match (self.worth.is_empty(), self.due.get(chunk)) {
            (true, _) => cheapest(members),
            (false, None) => cheapest_above(members),
            (false, Some(due)) => cheapest_or_none(members, due),
        }
    }

    /// Prices of workers, and the level.
    fn place(&self, place: &Place) -> At<K> {
        (self.rent(place), place.level[0])
    }

    /// What members do at a place; nothing if one of them cannot reach the level.
    fn ask(&self, place: &Place, groups: usize) -> Option<Replies> {
        let mut done = vec![Done::NOTHING; groups];
        let [least, slope] = pass::reply(self, self.place(place), &mut done)?;
        Some(Replies { least, slope, ..self.replies(&done) })
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
            pass::mix(self, self.place(place), weights, &mut shares.time);
        }
        for ((chunk, part), time) in self.given.iter().enumerate().zip(shares.time.chunks_mut(K * LANES)) {
            pass::add(found.given[chunk % found.given.len()], part, time);
        }
        for (time, jobs) in shares.time.chunks_exact_mut(K).zip(&instance.multiplicity) {
            for time in time {
                *time = time.max(0.0) * jobs;
            }
        }
        if found.has_prices() {
            let at = self.place(&found.at);
            shares.worker_price.copy_from_slice(&at.0);
            pass::prove(self, at, &mut shares.leaf_price, &mut shares.time_price);
            for (price, jobs) in shares.time_price.iter_mut().zip(&instance.multiplicity) {
                *price /= jobs;
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
}
