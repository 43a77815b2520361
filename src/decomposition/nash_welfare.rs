//! Nash welfare, the largest Σ weight·log(throughput), by the prices of its Eisenberg-Gale market.
//!
//! The optimum is the equilibrium of a market in which each member has its weight to spend on workers' time, of which it
//! needs no more than all (Eisenberg & Gale 1959): prices z of worker types minimize the convex dual
//!
//!   Σ w`[k]`·z`[k]`  +  Σ_m  max { weight·log(T x) − s z x : x ≥ 0, Σ x ≤ 1 }
//!
//! whose value anywhere bounds the optimum, and whose gradient is the excess supply of workers. At known prices a member's
//! demand is in closed form ([`choice`](super::choice)). The prices of a sample decide most members' choices: members that
//! choose the same anywhere in the price box are summed in closed form, and only undecided ones are evaluated one by one,
//! fewer as the box shrinks. Where several choices are mixed at the optimum, demand is smoothed
//! ([`smoothed_demand`](super::smoothed_demand)); the smoothing width goes to 0 and prices follow by Newton's method
//! ([`continuation`](super::continuation)).

use crate::decomposition::certificate::PrimalDual;
use crate::decomposition::choice::{Member, PriceBox, Prices};
use crate::decomposition::continuation::{Continuation, Found, Lost, Start};
use crate::decomposition::dantzig_wolfe::WarmPrices;
use crate::decomposition::demand::{Demand, floor};
use crate::decomposition::smoothed_demand::{Place, UndecidedJob};
use crate::decomposition::types::of_types;
use crate::program::singles::Singles as Sharing;
use crate::solver::backend::Limits;
use crate::solver::timing::Stopwatch;

/// Prices of a sample of no more members than this are looked for anywhere.
const SAMPLE_MAX: usize = 256;
/// How much larger than a sample the next one is.
const SAMPLE_GROWTH: usize = 8;
/// How far off the prices of a sample are, by the square root of its size; never more than `OFF_MAX`.
const OFF: f64 = 3.0;
const OFF_MAX: f64 = 0.5;
/// The width of blends where nothing is known of prices.
const WIDTH: f64 = 0.2;
/// The width at the end: of a sample, in what prices are worth, by the square root of its size, and the least; of all.
const WIDTH_SAMPLE: f64 = 0.3;
const WIDTH_LEAST: f64 = 1e-8;
const WIDTH_LAST: f64 = 1e-12;
/// How far prices may move when the width goes to 0, in widths.
const MOVED: f64 = 15.0;
/// A type whose workers are worth less than so many widths of a sample, of all weights, may have workers to spare.
const SPARE: f64 = 4.0;
/// How often a range of prices may turn out to be too narrow.
const RANGES_MAX: u32 = 5;
/// How often members are looked at, at most: so often each, and so often in all besides. Then the program is solved as
/// quickly.
const LOOKED_EACH: usize = 40;
const LOOKED_BESIDES: usize = 600_000;
/// By what factor it is widened then, and how much more prices may move.
const WIDER: f64 = 4.0;
const MOVED_MORE: f64 = 6.0;

/// Members and their types, as the instance has them.
#[derive(Debug)]
struct Market<'a, const K: usize> {
    sharing: &'a Sharing<'a>,
    /// Of all jobs of a member: [members].
    weight: &'a [f64],
    weights: f64,
    /// Workers by a unit of all weights; 1 for a type that nobody runs on.
    room: [f64; K],
    asked: u32,
}

/// The largest sum of `weight`·log(throughput), `[members]` > 0, without writing the program; nothing if there are too many
/// worker types, or prices do not settle.
pub(super) fn solve(
    sharing: &Sharing<'_>,
    weight: &[f64],
    near: &WarmPrices,
    limits: &Limits,
) -> Option<(PrimalDual, WarmPrices)> {
    of_types!(sharing.instance().n_types(), K => Market::<K>::of(sharing, weight)?.solve(near, limits))
}

impl<'a, const K: usize> Market<'a, K> {
    fn of(sharing: &'a Sharing<'a>, weight: &'a [f64]) -> Option<Self> {
        let weights: f64 = weight.iter().sum();
        let positive = weight.iter().all(|weight| *weight > 0.0);
        let room = std::array::from_fn(|k| {
            let workers = sharing.instance().capacity[k];
            if workers > 0.0 { workers / weights } else { 1.0 }
        });
        (positive && weights.is_finite()).then_some(Self { sharing, weight, weights, room, asked: 0 })
    }

    #[inline]
    fn member(&self, position: usize) -> Member<K> {
        let instance = self.sharing.instance();
        let size = instance.scale_factor[position];
        let row = instance.alone(position);
        let speed = std::array::from_fn(|k| {
            let runs = instance.has_room(size, k) && instance.capacity[k] > 0.0;
            if runs { row[k] } else { 0.0 }
        });
        let workers = size * instance.multiplicity[position] / self.weight[position];
        Member { speed, workers, weight: self.weight[position] / self.weights }
    }

    /// The demand of every `step`-th member; members that choose the same in all of the price box are summed.
    fn demand(&self, step: usize, start: &Start<K>) -> Option<Demand<K>> {
        let n = self.weight.len();
        let positions = (step / 2..n).step_by(step);
        // (they stand for all)
        let stands_for = n as f64 / positions.len() as f64;
        let mut demand = Demand::none(self.room);
        let prices = Prices::of(start.price);
        for position in positions {
            let member = self.member(position);
            let member = Member { weight: member.weight * stands_for, ..member };
            let choice = member.choose(&prices)?;
            if member.is_sure(choice, &start.price_box) {
                demand.add(&member, choice);
            } else if member.has_spare(&start.price_box) {
                demand.undecided_spare.push(UndecidedJob::of(member));
            } else {
                demand.undecided.push(UndecidedJob::of(member));
            }
        }
        demand.merge();
        Some(demand)
    }

    /// About the prices of a sample, from where they were found.
    fn near(&self, found: &Found<K>, off: f64) -> Start<K> {
        let Place { price, width, .. } = found.place;
        let mut start =
            Start { price, price_box: PriceBox::about(&price, &self.room, off), width, moved: MOVED };
        self.free(&mut start);
        start
    }

    /// Prices of types that may have workers to spare may be 0.
    fn free(&self, start: &mut Start<K>) {
        for k in 0..K {
            if start.price[k] * self.room[k] < SPARE * start.width {
                start.price_box.low[k] = 0.0;
            }
        }
    }

    /// The prices of a sample; ranges that turn out to be too narrow are widened.
    /// `(last, part)`: where widths end (see [`Continuation::follow`]).
    fn search(
        &mut self,
        step: usize,
        mut start: Start<K>,
        (last, part): (f64, f64),
        late: &dyn Fn() -> bool,
    ) -> Option<Found<K>> {
        let (mut wider, mut looked) = (1.0, 0);
        let looked_max = LOOKED_EACH * (self.weight.len() / step) + LOOKED_BESIDES;
        for attempt in 1..=RANGES_MAX {
            let demand = self.demand(step, &start)?;
            let mut continuation = Continuation {
                demand,
                price_box: start.price_box,
                moved: start.moved,
                alternatives: Vec::new(),
                asked: 0,
                looked,
                looked_max,
                late,
            };
            let outcome = continuation.follow(&start, last, part);
            self.asked += continuation.asked;
            looked = continuation.looked;
            match outcome {
                Ok(found) => return Some(found),
                Err(Lost::Outside(price)) => {
                    wider *= WIDER;
                    let floor = floor(&price, &self.room);
                    let low = price.map(|price| price / wider);
                    let high = std::array::from_fn(|k| (price[k] + floor[k]) * wider);
                    let moved = start.moved * MOVED_MORE;
                    start = Start { price, price_box: PriceBox { low, high }, moved, ..start };
                    self.free(&mut start);
                    if attempt + 1 >= RANGES_MAX {
                        start = Start { price_box: PriceBox::ANYWHERE, width: WIDTH, ..start };
                    }
                }
                Err(Lost::Stuck) => return None,
            }
        }
        None
    }

    fn solve(mut self, near: &WarmPrices, limits: &Limits) -> Option<(PrimalDual, WarmPrices)> {
        let clock = Stopwatch::start();
        let late = || limits.time.is_some_and(|time| clock.elapsed() > time);
        let known = self.begin(near).and_then(|start| self.search(1, start, (WIDTH_LAST, 0.0), &late));
        let found = match known {
            Some(found) => found,
            None => self.search_by_samples(&late)?,
        };
        let near = WarmPrices { prices: vec![found.place.price.to_vec()], level: 0.0 };
        Some((self.settled(&found)?, near))
    }

    /// The prices of all members, from nothing: ever larger samples, each started at the prices of the one before.
    fn search_by_samples(&mut self, late: &dyn Fn() -> bool) -> Option<Found<K>> {
        let n = self.weight.len();
        let (mut step, mut steps) = (1, Vec::new());
        while n / step > SAMPLE_MAX {
            step *= SAMPLE_GROWTH.min((n / step).div_ceil(SAMPLE_MAX));
            steps.push(step);
        }
        let price = self.room.map(|room| 1.0 / (room * K as f64));
        let mut start = Start { price, price_box: PriceBox::ANYWHERE, width: WIDTH, moved: MOVED };
        for step in steps.into_iter().rev() {
            let root = ((n / step) as f64).sqrt();
            if let Some(found) = self.search(step, start, (WIDTH_LEAST, WIDTH_SAMPLE / root), late) {
                start = self.near(&found, (OFF / root).min(OFF_MAX));
            }
        }
        self.search(1, start, (WIDTH_LAST, 0.0), late)
    }

    /// Where a search begins that is much like one that ended `near`; nothing if there was none.
    fn begin(&self, near: &WarmPrices) -> Option<Start<K>> {
        let price: [f64; K] = near.prices.first()?.as_slice().try_into().ok()?;
        let root = (self.weight.len() as f64).sqrt();
        let price_box = PriceBox::about(&price, &self.room, (OFF / root).min(OFF_MAX));
        let mut start = Start { price, price_box, width: (WIDTH_SAMPLE / root).min(WIDTH), moved: MOVED };
        self.free(&mut start);
        Some(start)
    }

    /// All members at the prices found, in their own units.
    fn settled(&self, found: &Found<K>) -> Option<PrimalDual> {
        let instance = self.sharing.instance();
        let n = self.weight.len();
        let place = &found.place;
        let (near, at) = (
            Prices::of(place.price),
            Prices::of(std::array::from_fn(|k| place.price[k] * (1.0 + place.shift[k]))),
        );
        let mut shares = PrimalDual {
            time: Vec::with_capacity(n * K),
            level: 0.0,
            worker_price: (0..K)
                .map(|k| if instance.capacity[k] > 0.0 { at.price[k] } else { 0.0 })
                .collect(),
            time_price: Vec::with_capacity(n),
            throughput_price: Vec::with_capacity(n),
            asked: self.asked,
        };
        let (mut used, mut alternatives) = ([0.0; K], Vec::new());
        for position in 0..n {
            let member = self.member(position);
            let (jobs, weight) = (instance.multiplicity[position], self.weight[position]);
            let sure = member.choose(&near).filter(|choice| member.is_sure(*choice, &found.price_box));
            let time = match sure {
                Some(choice) => member.time(choice, &at),
                None => UndecidedJob::of(member).time(place, &found.price_box, &mut alternatives),
            };
            for k in 0..K {
                used[k] += instance.scale_factor[position] * jobs * time[k];
                shares.time.push(time[k] * jobs);
            }
            let choice = if sure.is_some() { sure } else { member.choose(&at) };
            let (throughput_price, time) = member.proof(choice?, &at);
            shares.throughput_price.push(throughput_price * weight);
            shares.time_price.push(time * weight / jobs);
        }
        // what was rounded must not make more of workers than there are
        let over = |k: usize| (instance.capacity[k] / used[k]).min(1.0);
        let factor: [f64; K] = std::array::from_fn(|k| if used[k] > 0.0 { over(k) } else { 1.0 });
        if factor.iter().any(|factor| *factor < 1.0) {
            for row in shares.time.chunks_exact_mut(K) {
                row.iter_mut().zip(&factor).for_each(|(time, factor)| *time *= factor);
            }
        }
        Some(shares)
    }
}
