//! Jobs batched eight wide, and their pricing subproblems.
//!
//! At prices of worker types and a level, a member pays q`[j]` for all of its time on type j and must reach a required
//! throughput r. Its best response is a vertex of {time ≤ 1, throughput ≥ r}: one type for as long as r takes or for all
//! of its time, or two types that take all of it. Eight members are answered side by side ([`best_response`],
//! [`lower_hull`]). The loop over prices is [`dantzig_wolfe`](super::dantzig_wolfe).

mod next_level;
mod best_response;
mod lower_hull;
mod pricing_pass;
mod soft_constraints;

use std::array;

use best_response::{Best, JobsX8, cheapest, cheapest_above, cheapest_or_none};
pub use next_level::{RaisedLevel, SCARCE_MIN, raise_above};
use pricing_pass::At;
pub use soft_constraints::{SoftConstraintsKept, keep_soft_constraints};

use crate::decomposition::certificate::PrimalDual;
use crate::decomposition::columns::Proposals;
use crate::decomposition::dantzig_wolfe::{Found, Place, Search, Start, WarmPrices, groups, sample_gap};
use crate::decomposition::nash_welfare;
use crate::decomposition::padded::{Padded, suits_nash_welfare};
use crate::decomposition::types::of_types;
use crate::program::singles::{Goal as Wanted, Singles as Sharing};
use crate::solver::backend::Limits;
use crate::solver::lanes::{F64x8, LANES};
use crate::solver::timing::Stopwatch;

/// Prices of a sample of no more members than this are looked for anywhere.
const SAMPLE_MAX: usize = 384;
/// How much larger than a sample the next one is.
const SAMPLE_GROWTH: usize = 8;
/// Prices, whose proposals are mixed at the end, that the next search begins with.
const NEAR_MAX: usize = 6;
/// The gap at the end, in tolerances.
const GAP: f64 = 0.1;
/// An objective below this part of what all members could have is judged absolutely.
const UNIT: f64 = 1e-9;

/// All members' pricing subproblems, in chunks of eight.
#[derive(Debug)]
struct JobBatch<const K: usize> {
    /// 0 where a member cannot run: [chunks]
    speed: Vec<[F64x8; K]>,
    /// Of a unit of the level: [chunks]
    demand: Vec<F64x8>,
    /// What is asked for at a level of zero: [chunks], or empty.
    base: Vec<F64x8>,
    /// Workers of all jobs: [chunks]
    workers: Vec<F64x8>,
    /// Of a unit of throughput; [chunks], or empty if only the level counts.
    worth: Vec<F64x8>,
    /// Of throughput from each type.
    by_type: [f64; K],
    /// Parts of time to begin with: [chunks], or empty.
    given: Vec<[F64x8; K]>,
    /// Where a member has its required throughput or nothing, 1 if it must have it, else 0: [chunks], or empty.
    due: Vec<F64x8>,
    n: usize,
    /// 1 / capacity
    per_worker: [f64; K],
}

/// The column of a group: what its members' responses use and are worth.
#[derive(Clone, Copy, Debug)]
struct Done<const K: usize> {
    /// Workers of each type.
    workers: [F64x8; K],
    worth: F64x8,
}

impl<const K: usize> Done<K> {
    const NOTHING: Self = Self { workers: [F64x8::ZERO; K], worth: F64x8::ZERO };
}

/// Class times that maximize what is `wanted`, and the dual prices that certify them, with prices to warm-start the next
/// search from; `near` is what the last one left. Nothing if there are more than 64 worker types, or logarithms are wanted of
/// members that run on a few of many types, or prices do not settle.
pub fn solve(
    sharing: &Sharing<'_>,
    wanted: Wanted<'_>,
    near: &WarmPrices,
    limits: &Limits,
) -> Option<(PrimalDual, WarmPrices)> {
    if matches!(wanted, Wanted::Logarithms(_)) && !suits_nash_welfare(sharing) {
        return None;
    }
    if let Some(padded) = Padded::of(sharing, wanted) {
        let (mut shares, near) = solve(&padded.sharing(), padded.wanted(wanted), near, limits)?;
        cut(&padded, &mut shares);
        return Some((shares, near));
    }
    if let Wanted::Logarithms(of) = wanted {
        return nash_welfare::solve(sharing, &of.weight, near, limits);
    }
    of_types!(sharing.instance().n_types(), K => JobBatch::<K>::solve(sharing, wanted, near, limits))
}

/// Removes the worker types that padding added.
fn cut(padded: &Padded, shares: &mut PrimalDual) {
    padded.cut_rows(&mut shares.time);
    padded.cut(&mut shares.worker_price);
}

impl<const K: usize> JobBatch<K> {
    fn solve(
        sharing: &Sharing<'_>,
        wanted: Wanted<'_>,
        near: &WarmPrices,
        limits: &Limits,
    ) -> Option<(PrimalDual, WarmPrices)> {
        let n = sharing.instance().n_members();
        let limit = (0..n).map(|member| sharing.limit(member)).fold(f64::INFINITY, f64::min);
        // (what is held may ask for nothing)
        let held = matches!(wanted, Wanted::Worth { .. });
        let limit = if held && limit == f64::INFINITY { 1.0 } else { limit };
        if !(limit > 0.0 && limit.is_finite()) {
            return None;
        }
        let unit = Self::unit(sharing, wanted);
        let batch = Self::of(sharing, wanted, (limit, unit));
        let held = if let Wanted::Worth { level, .. } = wanted { Some(level / limit) } else { None };
        let found = batch.search(held, batch.begin(near, (limit, unit)), limits)?;
        let near = batch.end(&found, (limit, unit));
        Some((batch.settled(sharing, wanted, &found, (limit, unit)), near))
    }

    /// Where a search begins that is much like one that ended `near`; nothing if there was none.
    fn begin(&self, near: &WarmPrices, (limit, unit): (f64, f64)) -> Option<Start> {
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
    fn end(&self, found: &Found, (limit, unit): (f64, f64)) -> WarmPrices {
        let level = found.level.first().copied().unwrap_or_default() * limit;
        if !found.has_prices() {
            return WarmPrices::default();
        }
        let places = std::iter::once(&found.at).chain(found.mixed(NEAR_MAX));
        let prices = places.map(|place| self.rent(place).map(|rent| rent / unit).to_vec()).collect();
        WarmPrices { prices, level }
    }

    /// Prices of samples, then of all: a level that is held, or the highest there is. Where it is known where to `begin`,
    /// samples are asked only if that leads nowhere.
    fn search(&self, held: Option<f64>, begin: Option<Start>, limits: &Limits) -> Option<Found> {
        let clock = Stopwatch::start();
        let late = || limits.time.is_some_and(|time| clock.elapsed() > time);
        let given = self.used();
        let search = |batch: &Self, start: &Start, gap: f64| {
            let groups = groups(batch.demand.len());
            let mut ask = |place: &Place| batch.ask(place, groups);
            // what is given to a sample fits as well as what is given to all
            let part = batch.n as f64 / self.n as f64;
            let room = given.iter().zip(batch.used()).map(|(given, used)| part * (1.0 - given) + used);
            let (room, given) = (room.collect(), batch.proposed(groups));
            let mut search = Search { ask: &mut ask, given, room, groups, start, gap, late: &late };
            let Some(level) = held else { return search.raise(1.0) };
            search.hold(&[level], UNIT * part)
        };
        if let Some(found) = begin.and_then(|start| search(self, &start, limits.tolerance * GAP)) {
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
            let found = search(&sample, &start, sample_gap(sample.n));
            // a sample in which shared rows are not scarce says nothing of prices
            if let Some(found) = found.filter(Found::has_prices) {
                start = Start::near(&found, sample.n);
            }
        }
        search(self, &start, limits.tolerance * GAP)
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
        let mut speed = vec![[F64x8::ZERO; K]; chunks];
        if let Some(last) = speed.last_mut() {
            last[0] = F64x8::ONE;
        }
        let lanes = || vec![F64x8::ZERO; chunks];
        let [worth, base] = [worth, base].map(|has| if has { lanes() } else { Vec::new() });
        let given = if given { vec![[F64x8::ZERO; K]; chunks] } else { Vec::new() };
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
        let mut batch = Self::room_for(instance.n_members(), [per_worker, by_type], has);
        for member in 0..batch.n {
            let (chunk, i) = (member / LANES, member % LANES);
            let size = instance.scale_factor[member];
            for (j, speed) in instance.alone(member).iter().enumerate() {
                batch.speed[chunk][j].0[i] = if sharing.runs(member, j) { *speed } else { 0.0 };
            }
            batch.demand[chunk].0[i] = sharing.demand[member] * limit;
            batch.workers[chunk].0[i] = size * instance.multiplicity[member];
            if above {
                // (what it has may be rounded to more than it can have)
                batch.base[chunk].0[i] = wanted.base(member).min(sharing.fastest(member));
            }
            if let Some(worth) = of_worth {
                batch.worth[chunk].0[i] = worth[member] * unit;
            }
            for (j, time) in given.iter().skip(member * K).take(K).enumerate() {
                batch.given[chunk][j].0[i] = time / instance.multiplicity[member];
            }
        }
        batch
    }

    /// Every `step`-th member.
    fn sample(&self, step: usize) -> Self {
        let positions = (step / 2..self.n).step_by(step);
        let has = [!self.worth.is_empty(), !self.given.is_empty(), !self.base.is_empty()];
        let mut sample = Self::room_for(positions.len(), [self.per_worker, self.by_type], has);
        sample.due = if self.due.is_empty() { Vec::new() } else { vec![F64x8::ZERO; sample.demand.len()] };
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

    /// What members are given, as if they had proposed so.
    fn proposed(&self, groups: usize) -> Option<Proposals> {
        let mut done = vec![Done::NOTHING; groups];
        for (chunk, part) in self.given.iter().enumerate() {
            self.count(chunk, part, &mut done[chunk % groups]);
        }
        (!self.given.is_empty()).then(|| self.proposals(&done))
    }

    /// Adds what a chunk uses and is worth at parts of its time to its group's.
    #[inline]
    fn count(&self, chunk: usize, part: &[F64x8; K], done: &mut Done<K>) {
        for (workers, part) in done.workers.iter_mut().zip(part) {
            *workers += self.workers[chunk] * *part;
        }
        if let Some(worth) = self.worth.get(chunk) {
            let mut throughput = F64x8::ZERO;
            for ((speed, part), of_type) in self.speed[chunk].iter().zip(part).zip(&self.by_type) {
                throughput += *speed * *part * *of_type;
            }
            done.worth += *worth * throughput;
        }
    }

    /// What groups do, without prices.
    fn proposals(&self, done: &[Done<K>]) -> Proposals {
        let mut all = Proposals::nothing(done.len(), K);
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
    fn costs(&self, chunk: usize, rent: &[f64; K]) -> [F64x8; K] {
        let mut costs = [F64x8::ZERO; K];
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

    /// The throughput that is asked of a chunk's members.
    #[inline]
    fn asked(&self, chunk: usize, level: f64) -> F64x8 {
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
    fn at(&self, chunk: usize, (rent, level): &At<K>) -> JobsX8<'_, K> {
        JobsX8 { speed: &self.speed[chunk], cost: self.costs(chunk, rent), asked: self.asked(chunk, *level) }
    }

    /// What a chunk's members do at best.
    #[inline]
    fn best(&self, chunk: usize, members: &JobsX8<'_, K>) -> Best<K> {
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
    fn ask(&self, place: &Place, groups: usize) -> Option<Proposals> {
        let mut done = vec![Done::NOTHING; groups];
        let [least, slope] = pricing_pass::price_out(self, self.place(place), &mut done)?;
        Some(Proposals { least, slope, ..self.proposals(&done) })
    }

    /// All members where the mixture has them, in their own units.
    fn settled(
        &self,
        sharing: &Sharing<'_>,
        wanted: Wanted<'_>,
        found: &Found,
        (limit, unit): (f64, f64),
    ) -> PrimalDual {
        let instance = sharing.instance();
        let level = found.level.first().copied().unwrap_or_default();
        let mut shares = PrimalDual {
            time: vec![0.0; self.n * K],
            level: if let Wanted::Worth { level, .. } = wanted { level } else { level * limit },
            worker_price: vec![0.0; K],
            time_price: vec![0.0; self.n],
            throughput_price: vec![0.0; self.n],
            asked: found.asked,
        };
        let limit_of = |member: usize| sharing.limit_above(member, wanted.base(member));
        for (place, weights) in &found.mixture {
            pricing_pass::mix(self, self.place(place), weights, &mut shares.time);
        }
        for ((chunk, part), time) in self.given.iter().enumerate().zip(shares.time.chunks_mut(K * LANES)) {
            pricing_pass::add(found.given[chunk % found.given.len()], part, time);
        }
        for (time, jobs) in shares.time.chunks_exact_mut(K).zip(&instance.multiplicity) {
            for time in time {
                *time = time.max(0.0) * jobs;
            }
        }
        if found.has_prices() {
            let at = self.place(&found.at);
            shares.worker_price.copy_from_slice(&at.0);
            pricing_pass::prove(self, at, &mut shares.throughput_price, &mut shares.time_price);
            for (price, jobs) in shares.time_price.iter_mut().zip(&instance.multiplicity) {
                *price /= jobs;
            }
        } else if let Some(holder) = (0..self.n).min_by(|a, b| limit_of(*a).total_cmp(&limit_of(*b))) {
            // one member alone holds the level, whatever the others do
            shares.throughput_price[holder] = 1.0;
            shares.time_price[holder] = sharing.fastest(holder) / instance.multiplicity[holder];
        }
        let factor = if let Wanted::Worth { .. } = wanted {
            1.0 / unit
        } else {
            let priced = shares.throughput_price.iter().zip(&sharing.demand);
            1.0 / priced.map(|(price, demand)| price * demand).sum::<f64>()
        };
        let PrimalDual { worker_price, time_price, throughput_price, .. } = &mut shares;
        for price in worker_price.iter_mut().chain(time_price).chain(throughput_price) {
            *price *= factor;
        }
        shares
    }
}
