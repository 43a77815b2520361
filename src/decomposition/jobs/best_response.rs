//! Best responses by enumeration: the cheapest vertex of each of eight members at given prices, and the dual prices of
//! required throughput and of time that prove it.
//!
//! All candidate vertices are tried in one branch-free loop over members, which the compiler turns into vector
//! instructions: three to nine times as fast as candidate by candidate, measured at three types. The loops are compiled for
//! AVX, too, and taken where the machine has it; results are the same. Above three types, [`lower_hull`] is faster than
//! trying all pairs.

#![expect(clippy::inline_always, reason = "a call within the loop, and it is none over vectors")]

use std::array;

use multiversion::multiversion;

use super::lower_hull;
use crate::solver::lanes::{F64x8, LANES};

/// Up to so many types, every two are tried.
const TRIED_MAX: usize = 3;
/// A time may be over or below by this much of all of it.
pub(super) const FEASIBLE: f64 = 1e-13;
/// Speeds that differ by less than this part of them are the same.
const SAME: f64 = 1e-12;

/// JobsX8 members at prices.
#[derive(Clone, Copy, Debug)]
pub(super) struct JobsX8<'a, const K: usize> {
    /// 0 where a member cannot run.
    pub(super) speed: &'a [F64x8; K],
    /// What all of the time costs.
    pub(super) cost: [F64x8; K],
    /// The throughput that is asked for.
    pub(super) asked: F64x8,
}

/// The best vertices of eight members.
#[derive(Clone, Copy, Debug)]
pub(super) struct Best<const K: usize> {
    /// Infinite where the throughput cannot be reached.
    pub(super) value: F64x8,
    /// Parts of time on each type.
    pub(super) part: [F64x8; K],
    /// What a unit of throughput costs there.
    pub(super) throughput_price: F64x8,
}

/// Prices of throughput and time, and what they prove that eight members cost at least.
#[derive(Clone, Copy, Debug)]
pub(super) struct Proof {
    pub(super) value: F64x8,
    pub(super) throughput_price: F64x8,
    pub(super) time: F64x8,
}

/// OneJob of eight.
#[derive(Clone, Copy)]
struct OneJob<const K: usize> {
    speed: [f64; K],
    cost: [f64; K],
    asked: f64,
}

/// Does it for every type, or for every two: a loop over them within that over members would remain one.
macro_rules! unrolled {
    (types $each:ident) => {
        unrolled!($each: 0 1 2)
    };
    (pairs $each:ident) => {
        unrolled!($each: (0 1) (0 2) (1 2))
    };
    ($each:ident: $($of:tt)*) => {
        $($each!($of);)*
    };
}

/// A vertex of one member: what it costs, the parts of time, and what a unit of throughput costs.
type Vertex<const K: usize> = (f64, [f64; K], f64);

impl<const K: usize> JobsX8<'_, K> {
    #[inline(always)]
    fn one(&self, i: usize) -> OneJob<K> {
        OneJob {
            speed: array::from_fn(|j| self.speed[j].0[i]),
            cost: array::from_fn(|j| self.cost[j].0[i]),
            asked: self.asked.0[i],
        }
    }
}

/// The cheapest vertices that give the throughput.
#[multiversion(targets("x86_64+avx+avx2"))]
pub(super) fn cheapest<const K: usize>(members: &JobsX8<'_, K>) -> Best<K> {
    if K > TRIED_MAX {
        return lower_hull::cheapest(members);
    }
    let mut best = Best::NONE;
    for i in 0..LANES {
        let one = members.one(i);
        best.put(i, one.between(one.for_throughput(OneJob::NOTHING)));
    }
    best
}

/// The cheapest vertices that give the throughput or more of it.
#[multiversion(targets("x86_64+avx+avx2"))]
pub(super) fn cheapest_above<const K: usize>(members: &JobsX8<'_, K>) -> Best<K> {
    if K > TRIED_MAX {
        return lower_hull::cheapest_above(members);
    }
    let mut best = Best::NONE;
    for i in 0..LANES {
        let one = members.one(i);
        best.put(i, one.between(one.always(one.for_throughput(OneJob::NOTHING))));
    }
    best
}

/// The cheapest vertices that give the throughput or nothing, but nothing to none to whom it is `due`.
#[multiversion(targets("x86_64+avx+avx2"))]
pub(super) fn cheapest_or_none<const K: usize>(members: &JobsX8<'_, K>, due: &F64x8) -> Best<K> {
    if K > TRIED_MAX {
        return lower_hull::cheapest_or_none(members, due);
    }
    let mut best = Best::NONE;
    for i in 0..LANES {
        let one = members.one(i);
        let none = if due.0[i] > 0.0 { OneJob::NOTHING } else { (0.0, [0.0; K], 0.0) };
        best.put(i, one.between(one.for_throughput(none)));
    }
    best
}

/// What prices of throughput prove, each with the least price of time that goes with it.
#[multiversion(targets("x86_64+avx+avx2"))]
pub(super) fn proof_at<const K: usize>(members: &JobsX8<'_, K>, throughput_price: &F64x8) -> Proof {
    if K > TRIED_MAX {
        return lower_hull::proof_at(members, *throughput_price);
    }
    let mut proof = Proof::NONE;
    for i in 0..LANES {
        proof.put(i, members.one(i).proof(throughput_price.0[i]));
    }
    proof
}

/// The prices that prove the most.
#[multiversion(targets("x86_64+avx+avx2"))]
pub(super) fn best_proof<const K: usize>(members: &JobsX8<'_, K>) -> Proof {
    if K > TRIED_MAX {
        return lower_hull::best_proof(members);
    }
    let mut proof = Proof::NONE;
    for i in 0..LANES {
        proof.put(i, members.one(i).best_proof());
    }
    proof
}

impl<const K: usize> Best<K> {
    const NONE: Self =
        Self { value: F64x8([f64::INFINITY; LANES]), part: [F64x8::ZERO; K], throughput_price: F64x8::ZERO };

    #[inline(always)]
    fn put(&mut self, i: usize, (value, part, throughput_price): Vertex<K>) {
        self.value.0[i] = value;
        self.throughput_price.0[i] = throughput_price;
        for (lane, part) in self.part.iter_mut().zip(part) {
            lane.0[i] = part;
        }
    }
}

impl Proof {
    const NONE: Self =
        Self { value: F64x8([f64::NEG_INFINITY; LANES]), throughput_price: F64x8::ZERO, time: F64x8::ZERO };

    #[inline(always)]
    fn put(&mut self, i: usize, (value, throughput_price, time): (f64, f64, f64)) {
        self.value.0[i] = value;
        self.throughput_price.0[i] = throughput_price;
        self.time.0[i] = time;
    }
}

impl<const K: usize> OneJob<K> {
    const NOTHING: Vertex<K> = (f64::INFINITY, [0.0; K], 0.0);

    /// OneJob type for as long as the throughput takes.
    #[inline(always)]
    fn for_throughput(&self, mut best: Vertex<K>) -> Vertex<K> {
        macro_rules! attempt {
            ($j:tt) => {
                if $j < K {
                    let inverse = 1.0 / self.speed[$j];
                    let x = self.asked * inverse;
                    let fits = if self.speed[$j] > 0.0 { x } else { f64::INFINITY };
                    let value = if fits <= 1.0 + FEASIBLE { self.cost[$j] * x } else { f64::INFINITY };
                    let part = array::from_fn(|other| if other == $j { x } else { 0.0 });
                    best = better(best, (value, part, self.cost[$j] * inverse));
                }
            };
        }
        unrolled!(types attempt);
        best
    }

    /// OneJob type for all of the time.
    #[inline(always)]
    fn always(&self, mut best: Vertex<K>) -> Vertex<K> {
        macro_rules! attempt {
            ($j:tt) => {
                if $j < K {
                    let fits = if self.speed[$j] > 0.0 { self.speed[$j] } else { -1.0 };
                    let value = if fits >= self.asked { self.cost[$j] } else { f64::INFINITY };
                    let part = array::from_fn(|other| if other == $j { 1.0 } else { 0.0 });
                    best = better(best, (value, part, 0.0));
                }
            };
        }
        unrolled!(types attempt);
        best
    }

    /// Two types that take all of the time.
    #[inline(always)]
    fn between(&self, mut best: Vertex<K>) -> Vertex<K> {
        macro_rules! attempt {
            (($j:tt $l:tt)) => {
                if $l < K {
                    let (one, other) = (self.speed[$j], self.speed[$l]);
                    let (inverse, gap) = (1.0 / (one - other), (one - other).abs());
                    let x = (self.asked - other) * inverse;
                    let y = (one - self.asked) * inverse;
                    let least = if x < y { x } else { y };
                    let slowest = if one < other { one } else { other };
                    let least = if slowest > 0.0 { least } else { -1.0 };
                    let least = if gap > SAME * (one + other) { least } else { -1.0 };
                    let value = self.cost[$j] * x + self.cost[$l] * y;
                    let value = if least >= -FEASIBLE { value } else { f64::INFINITY };
                    let of_one = |at| if at == $j { x } else { 0.0 };
                    let part = array::from_fn(|at| if at == $l { y } else { of_one(at) });
                    best = better(best, (value, part, (self.cost[$j] - self.cost[$l]) * inverse));
                }
            };
        }
        unrolled!(pairs attempt);
        best
    }

    /// What a price of throughput proves, with the least price of time that goes with it.
    #[inline(always)]
    fn proof(&self, throughput_price: f64) -> (f64, f64, f64) {
        let mut time = 0.0;
        macro_rules! count {
            ($j:tt) => {
                if $j < K {
                    let gain = throughput_price * self.speed[$j] - self.cost[$j];
                    let gain = if self.speed[$j] > 0.0 { gain } else { 0.0 };
                    time = if gain > time { gain } else { time };
                }
            };
        }
        unrolled!(types count);
        let value = throughput_price * self.asked - time;
        (if throughput_price >= 0.0 { value } else { f64::NEG_INFINITY }, throughput_price, time)
    }

    #[inline(always)]
    fn best_proof(&self) -> (f64, f64, f64) {
        let mut best = self.proof(0.0);
        macro_rules! attempt {
            (($j:tt $l:tt)) => {
                if $l < K {
                    let apart = self.speed[$j] - self.speed[$l];
                    best = surer(best, self.proof((self.cost[$j] - self.cost[$l]) / apart));
                }
            };
            ($j:tt) => {
                if $j < K {
                    best = surer(best, self.proof(self.cost[$j] / self.speed[$j]));
                }
            };
        }
        unrolled!(types attempt);
        unrolled!(pairs attempt);
        best
    }
}

/// The cheaper one of two vertices, the first where they are level.
#[inline(always)]
fn better<const K: usize>(best: Vertex<K>, other: Vertex<K>) -> Vertex<K> {
    let taken = other.0 < best.0;
    let part = array::from_fn(|j| if taken { other.1[j] } else { best.1[j] });
    (if taken { other.0 } else { best.0 }, part, if taken { other.2 } else { best.2 })
}

/// What proves more, the first where they are level.
#[inline(always)]
fn surer(best: (f64, f64, f64), other: (f64, f64, f64)) -> (f64, f64, f64) {
    let taken = other.0 > best.0;
    let of = |best: f64, other: f64| if taken { other } else { best };
    (of(best.0, other.0), of(best.1, other.1), of(best.2, other.2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::draws::Draws;

    /// One member: the speeds, costs and parts of its types.
    struct One {
        speed: Vec<f64>,
        cost: Vec<f64>,
        asked: f64,
    }

    impl One {
        fn of<const K: usize>(members: &JobsX8<'_, K>, i: usize) -> Self {
            let of = |lanes: &[F64x8; K]| lanes.iter().map(|lane| lane.0[i]).collect();
            Self { speed: of(members.speed), cost: of(&members.cost), asked: members.asked.0[i] }
        }

        /// The least cost of all that gives the throughput, by trying every type and every two.
        fn tried(&self) -> f64 {
            let runs: Vec<usize> = (0..self.speed.len()).filter(|j| self.speed[*j] > 0.0).collect();
            let reached = |j: &&usize| self.asked <= self.speed[**j] * (1.0 + FEASIBLE);
            let alone = runs.iter().filter(reached).map(|j| self.cost[*j] * self.asked / self.speed[*j]);
            let mut least = alone.fold(f64::INFINITY, f64::min);
            for (j, l) in runs.iter().flat_map(|j| runs.iter().map(move |l| (*j, *l))) {
                let (slow, fast) = (self.speed[j], self.speed[l]);
                if slow < fast && (slow..=fast).contains(&self.asked) {
                    let part = (self.asked - slow) / (fast - slow);
                    least = least.min(self.cost[l] * part + self.cost[j] * (1.0 - part));
                }
            }
            least
        }

        /// The least cost of one type for all of the time that gives the throughput or more.
        fn always(&self) -> f64 {
            let costs = self.speed.iter().zip(&self.cost);
            let fits = costs.filter(|(speed, _)| **speed > 0.0 && **speed >= self.asked);
            fits.fold(f64::INFINITY, |least, (_, cost)| least.min(*cost))
        }
    }

    fn near(one: f64, other: f64) -> bool {
        one.total_cmp(&other).is_eq() || (one - other).abs() <= 1e-12 * (1.0 + one.abs())
    }

    /// JobsX8 members do what is cheapest of all that can be tried, and prices prove it.
    fn check<const K: usize>(members: &JobsX8<'_, K>, due: &F64x8) -> usize {
        let kinds = [cheapest(members), cheapest_above(members), cheapest_or_none(members, due)];
        let (proven, proven_at) =
            (best_proof(members), proof_at(members, &kinds[1].throughput_price.max(F64x8::ZERO)));
        let mut reached = 0;
        for i in 0..LANES {
            let one = One::of(members, i);
            let (exact, always) = (one.tried(), one.always());
            let none = if due.0[i] > 0.0 { f64::INFINITY } else { 0.0 };
            let values = kinds.map(|best| best.value.0[i]);
            for (value, least) in values.into_iter().zip([exact, exact.min(always), exact.min(none)]) {
                assert!(near(value, least), "{value} for {least}, {i} of {members:?}");
            }
            if exact == f64::INFINITY {
                continue;
            }
            reached += 1;
            assert!(near(proven.value.0[i], exact.min(always)), "{proven:?} {i} of {members:?}");
            assert!(near(proven_at.value.0[i], exact.min(always)), "{proven_at:?} {i} of {members:?}");
            for (kind, best) in kinds.iter().enumerate() {
                let sum =
                    |of: &[f64]| -> f64 { of.iter().zip(&best.part).map(|(of, part)| of * part.0[i]).sum() };
                assert!(near(sum(&one.cost), best.value.0[i]) && sum(&[1.0; K]) <= 1.0 + 1e-12);
                assert!(
                    best.part.iter().zip(&one.speed).all(|(part, speed)| part.0[i] == 0.0 || *speed > 0.0)
                );
                let more = sum(&one.speed) - one.asked;
                let given = [more.abs() < 1e-11, more > -1e-11, more.abs() < 1e-11 || sum(&one.speed) == 0.0];
                assert!(given[kind], "{kind}: {more}, {i} of {members:?}");
            }
        }
        reached
    }

    fn drawn<const K: usize>() {
        let mut draws = Draws(31);
        let mut reached = 0;
        for round in 0..600 {
            let mut lane = |of: &dyn Fn(f64) -> f64| F64x8(array::from_fn(|_| of(draws.next())));
            // every other time many are level, or as fast as what is asked
            let whole = |x: f64| if round % 2 == 0 { x } else { (8.0 * x).ceil() / 8.0 };
            let speed: [F64x8; K] =
                array::from_fn(|_| lane(&|x| if x < 0.2 { 0.0 } else { 8.0 * whole((x - 0.2) / 0.8) }));
            // every third time some are worth more than they cost
            let worth = if round % 3 == 0 { 0.5 } else { 0.0 };
            let cost: [F64x8; K] = array::from_fn(|_| lane(&|x| whole(x) - worth));
            let fastest = speed.iter().fold(F64x8::ZERO, |most, speed| most.max(*speed));
            let (asked, due) = (fastest * lane(&|x| 1.1 * whole(x)), lane(&f64::round));
            reached += check(&JobsX8 { speed: &speed, cost, asked }, &due);
        }
        assert!(reached > 2000, "{K} types: {reached}");
    }

    #[test]
    fn what_is_done_is_the_cheapest_of_all_and_proven_to_be() {
        drawn::<1>();
        drawn::<2>();
        drawn::<3>();
        drawn::<4>();
        drawn::<6>();
        drawn::<8>();
        drawn::<16>();
    }
}
