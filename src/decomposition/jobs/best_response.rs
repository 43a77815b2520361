//! Best responses by enumeration: the cheapest vertex of each of eight jobs at given prices, and the dual prices of
//! required throughput and of time that prove it cheapest.
//!
//! A job's subproblem is: minimize Σ cost`[j]`·x`[j]` subject to Σ speed`[j]`·x`[j]` ≥ required (or =), Σ x ≤ 1, x ≥ 0, where
//! x are time fractions. Its dual is: maximize price·required − time subject to price·speed`[j]` − time ≤ cost`[j]` for every
//! type j, and price, time ≥ 0.
//!
//! All candidate vertices are tried in one branch-free loop over jobs, which the compiler turns into vector
//! instructions: three to nine times as fast as candidate by candidate, measured at three types. The loops are also
//! compiled for AVX, and that copy is used where the machine has it; results are the same. Above
//! [`ENUMERATED_TYPES`] types, [`lower_hull`] is faster than trying all pairs.

#![expect(clippy::inline_always, reason = "a loop with a call in it is not turned into vector instructions")]

use std::array;

use multiversion::multiversion;

use super::lower_hull;
use crate::decomposition::lanes::{F64x8, LANES};
use crate::decomposition::tolerances::{ENUMERATED_TYPES, SAME_SPEED, TIME_ROUNDING};

/// The subproblems of eight jobs at prices.
#[derive(Clone, Copy, Debug)]
pub(super) struct JobsX8<'a, const K: usize> {
    /// Throughput on each type, 0 where a job cannot run.
    pub(super) speed: &'a [F64x8; K],
    /// Cost of all of a job's time on each type, less the worth of the throughput there.
    pub(super) cost: [F64x8; K],
    /// Required throughput of each job.
    pub(super) required: F64x8,
}

/// The best vertices of eight jobs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Best<const K: usize> {
    /// Cost, infinite where the required throughput cannot be reached.
    pub(super) value: F64x8,
    /// Time fraction on each type.
    pub(super) part: [F64x8; K],
    /// Dual price of required throughput at the vertex.
    pub(super) price: F64x8,
}

/// Dual prices of throughput and time for eight jobs, and the lower bounds on their costs that the prices prove.
#[derive(Clone, Copy, Debug)]
pub(super) struct Proof {
    /// Lower bound on the cost, −∞ where the prices prove none.
    pub(super) value: F64x8,
    /// Dual price of required throughput.
    pub(super) price: F64x8,
    /// Dual price of all of a job's time.
    pub(super) time: F64x8,
}

/// The subproblem of one of eight jobs.
#[derive(Clone, Copy)]
struct OneJob<const K: usize> {
    /// Throughput on each type, 0 where it cannot run.
    speed: [f64; K],
    /// Cost of all of its time on each type, less the worth of the throughput there.
    cost: [f64; K],
    /// Required throughput.
    required: f64,
}

/// The macro `$each` expanded for every type or for every pair of types: the compiler would not unroll a loop inside the loop
/// over jobs.
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

/// A vertex of one job.
#[derive(Clone, Copy)]
struct Vertex<const K: usize> {
    cost: f64,
    /// Time fraction on each type.
    part: [f64; K],
    /// Dual price of required throughput.
    price: f64,
}

/// Dual prices of one job, and the lower bound on its cost that they prove.
#[derive(Clone, Copy)]
struct ProvenBound {
    /// −∞ where the prices prove none.
    value: f64,
    /// Dual price of required throughput.
    price: f64,
    /// Dual price of all of the job's time.
    time: f64,
}

impl<const K: usize> JobsX8<'_, K> {
    /// The subproblem in lane `i`.
    #[inline(always)]
    fn lane(&self, i: usize) -> OneJob<K> {
        OneJob {
            speed: array::from_fn(|j| self.speed[j].0[i]),
            cost: array::from_fn(|j| self.cost[j].0[i]),
            required: self.required.0[i],
        }
    }
}

/// The cheapest vertices with exactly the required throughput.
#[multiversion(targets("x86_64+avx+avx2"))]
pub(super) fn cheapest<const K: usize>(jobs: &JobsX8<'_, K>) -> Best<K> {
    if K > ENUMERATED_TYPES {
        return lower_hull::cheapest(jobs);
    }
    let mut best = Best::NONE;
    for i in 0..LANES {
        let one = jobs.lane(i);
        best.set_lane(i, one.cheapest_on_two_types(one.cheapest_on_one_type(Vertex::INFEASIBLE)));
    }
    best
}

/// The cheapest vertices with the required throughput or more.
#[multiversion(targets("x86_64+avx+avx2"))]
pub(super) fn cheapest_above<const K: usize>(jobs: &JobsX8<'_, K>) -> Best<K> {
    if K > ENUMERATED_TYPES {
        return lower_hull::cheapest_above(jobs);
    }
    let mut best = Best::NONE;
    for i in 0..LANES {
        let one = jobs.lane(i);
        best.set_lane(
            i,
            one.cheapest_on_two_types(
                one.cheapest_all_the_time(one.cheapest_on_one_type(Vertex::INFEASIBLE)),
            ),
        );
    }
    best
}

/// The cheapest vertices with exactly the required throughput, or no time at all where that costs less and the job is not
/// `due`; above 0 in `due` means due.
#[multiversion(targets("x86_64+avx+avx2"))]
pub(super) fn cheapest_or_none<const K: usize>(jobs: &JobsX8<'_, K>, due: &F64x8) -> Best<K> {
    if K > ENUMERATED_TYPES {
        return lower_hull::cheapest_or_none(jobs, due);
    }
    let mut best = Best::NONE;
    for i in 0..LANES {
        let one = jobs.lane(i);
        let none = if due.0[i] > 0.0 { Vertex::INFEASIBLE } else { Vertex::NO_TIME };
        best.set_lane(i, one.cheapest_on_two_types(one.cheapest_on_one_type(none)));
    }
    best
}

/// The bounds that given dual prices of throughput prove, each with the least dual price of time that is feasible with it.
#[multiversion(targets("x86_64+avx+avx2"))]
pub(super) fn proof_at<const K: usize>(jobs: &JobsX8<'_, K>, price: &F64x8) -> Proof {
    if K > ENUMERATED_TYPES {
        return lower_hull::proof_at(jobs, *price);
    }
    let mut proof = Proof::NONE;
    for i in 0..LANES {
        proof.set_lane(i, jobs.lane(i).proof(price.0[i]));
    }
    proof
}

/// The dual prices that prove the largest bounds.
#[multiversion(targets("x86_64+avx+avx2"))]
pub(super) fn best_proof<const K: usize>(jobs: &JobsX8<'_, K>) -> Proof {
    if K > ENUMERATED_TYPES {
        return lower_hull::best_proof(jobs);
    }
    let mut proof = Proof::NONE;
    for i in 0..LANES {
        proof.set_lane(i, jobs.lane(i).best_proof());
    }
    proof
}

impl<const K: usize> Best<K> {
    /// Infeasible vertices, without time.
    const NONE: Self =
        Self { value: F64x8([f64::INFINITY; LANES]), part: [F64x8::ZERO; K], price: F64x8::ZERO };

    /// Writes a vertex to lane `i`.
    #[inline(always)]
    fn set_lane(&mut self, i: usize, Vertex { cost, part, price }: Vertex<K>) {
        self.value.0[i] = cost;
        self.price.0[i] = price;
        for (lane, part) in self.part.iter_mut().zip(part) {
            lane.0[i] = part;
        }
    }
}

impl Proof {
    /// Bounds of −∞, at prices of 0.
    const NONE: Self =
        Self { value: F64x8([f64::NEG_INFINITY; LANES]), price: F64x8::ZERO, time: F64x8::ZERO };

    /// Writes a bound to lane `i`.
    #[inline(always)]
    fn set_lane(&mut self, i: usize, ProvenBound { value, price, time }: ProvenBound) {
        self.value.0[i] = value;
        self.price.0[i] = price;
        self.time.0[i] = time;
    }
}

impl<const K: usize> Vertex<K> {
    /// No time at all, at no cost.
    const NO_TIME: Self = Self { cost: 0.0, part: [0.0; K], price: 0.0 };
    /// A vertex of infinite cost.
    const INFEASIBLE: Self = Self { cost: f64::INFINITY, ..Self::NO_TIME };

    /// The cheaper of two vertices, this one where they cost the same.
    #[inline(always)]
    fn or_cheaper(self, other: Self) -> Self {
        let taken = other.cost < self.cost;
        Self {
            cost: if taken { other.cost } else { self.cost },
            part: array::from_fn(|j| if taken { other.part[j] } else { self.part[j] }),
            price: if taken { other.price } else { self.price },
        }
    }
}

impl ProvenBound {
    /// The larger of two bounds, this one where they are equal.
    #[inline(always)]
    fn or_larger(self, other: Self) -> Self {
        let taken = other.value > self.value;
        Self {
            value: if taken { other.value } else { self.value },
            price: if taken { other.price } else { self.price },
            time: if taken { other.time } else { self.time },
        }
    }
}

impl<const K: usize> OneJob<K> {
    /// The cheapest of `best` and, for every type, the time on it that gives exactly the required throughput.
    #[inline(always)]
    fn cheapest_on_one_type(&self, mut best: Vertex<K>) -> Vertex<K> {
        macro_rules! attempt {
            ($j:tt) => {
                if $j < K {
                    let inverse = 1.0 / self.speed[$j];
                    let x = self.required * inverse;
                    let fits = if self.speed[$j] > 0.0 { x } else { f64::INFINITY };
                    let cost = if fits <= 1.0 + TIME_ROUNDING { self.cost[$j] * x } else { f64::INFINITY };
                    let part = array::from_fn(|other| if other == $j { x } else { 0.0 });
                    best = best.or_cheaper(Vertex { cost, part, price: self.cost[$j] * inverse });
                }
            };
        }
        unrolled!(types attempt);
        best
    }

    /// The cheapest of `best` and, for every type, all of the time on it, where that gives the required throughput or more.
    #[inline(always)]
    fn cheapest_all_the_time(&self, mut best: Vertex<K>) -> Vertex<K> {
        macro_rules! attempt {
            ($j:tt) => {
                if $j < K {
                    let fits = if self.speed[$j] > 0.0 { self.speed[$j] } else { -1.0 };
                    let cost = if fits >= self.required { self.cost[$j] } else { f64::INFINITY };
                    let part = array::from_fn(|other| if other == $j { 1.0 } else { 0.0 });
                    best = best.or_cheaper(Vertex { cost, part, price: 0.0 });
                }
            };
        }
        unrolled!(types attempt);
        best
    }

    /// The cheapest of `best` and, for every two types, all of the time divided between them so that they give exactly the
    /// required throughput.
    #[inline(always)]
    fn cheapest_on_two_types(&self, mut best: Vertex<K>) -> Vertex<K> {
        macro_rules! attempt {
            (($j:tt $l:tt)) => {
                if $l < K {
                    let (one, other) = (self.speed[$j], self.speed[$l]);
                    let (inverse, gap) = (1.0 / (one - other), (one - other).abs());
                    let x = (self.required - other) * inverse;
                    let y = (one - self.required) * inverse;
                    let least = if x < y { x } else { y };
                    let slowest = if one < other { one } else { other };
                    let least = if slowest > 0.0 { least } else { -1.0 };
                    let least = if gap > SAME_SPEED * (one + other) { least } else { -1.0 };
                    let cost = self.cost[$j] * x + self.cost[$l] * y;
                    let cost = if least >= -TIME_ROUNDING { cost } else { f64::INFINITY };
                    let of_one = |at| if at == $j { x } else { 0.0 };
                    let part = array::from_fn(|at| if at == $l { y } else { of_one(at) });
                    let price = (self.cost[$j] - self.cost[$l]) * inverse;
                    best = best.or_cheaper(Vertex { cost, part, price });
                }
            };
        }
        unrolled!(pairs attempt);
        best
    }

    /// The bound that a dual price of throughput proves with the least dual price of time that is feasible with it; −∞ for a
    /// price below 0.
    #[inline(always)]
    fn proof(&self, price: f64) -> ProvenBound {
        let mut time = 0.0;
        macro_rules! count {
            ($j:tt) => {
                if $j < K {
                    let gain = price * self.speed[$j] - self.cost[$j];
                    let gain = if self.speed[$j] > 0.0 { gain } else { 0.0 };
                    time = if gain > time { gain } else { time };
                }
            };
        }
        unrolled!(types count);
        let value = price * self.required - time;
        ProvenBound { value: if price >= 0.0 { value } else { f64::NEG_INFINITY }, price, time }
    }

    /// The largest bound that dual prices prove. At a vertex of the dual, the price
    /// of throughput is 0, or makes the constraint of one type tight at a time price of 0, or those of two types.
    #[inline(always)]
    fn best_proof(&self) -> ProvenBound {
        let mut best = self.proof(0.0);
        macro_rules! attempt {
            (($j:tt $l:tt)) => {
                if $l < K {
                    let apart = self.speed[$j] - self.speed[$l];
                    best = best.or_larger(self.proof((self.cost[$j] - self.cost[$l]) / apart));
                }
            };
            ($j:tt) => {
                if $j < K {
                    best = best.or_larger(self.proof(self.cost[$j] / self.speed[$j]));
                }
            };
        }
        unrolled!(types attempt);
        unrolled!(pairs attempt);
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::draws::Draws;

    /// The subproblem of one job, for the slow way to solve it.
    struct One {
        speed: Vec<f64>,
        cost: Vec<f64>,
        required: f64,
    }

    impl One {
        fn of<const K: usize>(jobs: &JobsX8<'_, K>, i: usize) -> Self {
            let of = |lanes: &[F64x8; K]| lanes.iter().map(|lane| lane.0[i]).collect();
            Self { speed: of(jobs.speed), cost: of(&jobs.cost), required: jobs.required.0[i] }
        }

        /// The least cost of the required throughput, by trying every type and every pair.
        fn tried(&self) -> f64 {
            let runs: Vec<usize> = (0..self.speed.len()).filter(|j| self.speed[*j] > 0.0).collect();
            let reached = |j: &&usize| self.required <= self.speed[**j] * (1.0 + TIME_ROUNDING);
            let alone = runs.iter().filter(reached).map(|j| self.cost[*j] * self.required / self.speed[*j]);
            let mut least = alone.fold(f64::INFINITY, f64::min);
            for (j, l) in runs.iter().flat_map(|j| runs.iter().map(move |l| (*j, *l))) {
                let (slow, fast) = (self.speed[j], self.speed[l]);
                if slow < fast && (slow..=fast).contains(&self.required) {
                    let part = (self.required - slow) / (fast - slow);
                    least = least.min(self.cost[l] * part + self.cost[j] * (1.0 - part));
                }
            }
            least
        }

        /// The least cost of one type for all of the time with the required throughput or more.
        fn always(&self) -> f64 {
            let costs = self.speed.iter().zip(&self.cost);
            let fits = costs.filter(|(speed, _)| **speed > 0.0 && **speed >= self.required);
            fits.fold(f64::INFINITY, |least, (_, cost)| least.min(*cost))
        }
    }

    fn near(one: f64, other: f64) -> bool {
        one.total_cmp(&other).is_eq() || (one - other).abs() <= 1e-12 * (1.0 + one.abs())
    }

    /// Checks that responses are the cheapest of all vertices and that prices prove it; the number of jobs that can reach the
    /// required throughput.
    fn check<const K: usize>(jobs: &JobsX8<'_, K>, due: &F64x8) -> usize {
        let kinds = [cheapest(jobs), cheapest_above(jobs), cheapest_or_none(jobs, due)];
        let (proven, proven_at) = (best_proof(jobs), proof_at(jobs, &kinds[1].price.max(F64x8::ZERO)));
        let mut reached = 0;
        for i in 0..LANES {
            let one = One::of(jobs, i);
            let (exact, always) = (one.tried(), one.always());
            let none = if due.0[i] > 0.0 { f64::INFINITY } else { 0.0 };
            let values = kinds.map(|best| best.value.0[i]);
            for (value, least) in values.into_iter().zip([exact, exact.min(always), exact.min(none)]) {
                assert!(near(value, least), "{value} for {least}, {i} of {jobs:?}");
            }
            if exact == f64::INFINITY {
                continue;
            }
            reached += 1;
            assert!(near(proven.value.0[i], exact.min(always)), "{proven:?} {i} of {jobs:?}");
            assert!(near(proven_at.value.0[i], exact.min(always)), "{proven_at:?} {i} of {jobs:?}");
            for (kind, best) in kinds.iter().enumerate() {
                let sum =
                    |of: &[f64]| -> f64 { of.iter().zip(&best.part).map(|(of, part)| of * part.0[i]).sum() };
                assert!(near(sum(&one.cost), best.value.0[i]) && sum(&[1.0; K]) <= 1.0 + 1e-12);
                assert!(
                    best.part.iter().zip(&one.speed).all(|(part, speed)| part.0[i] == 0.0 || *speed > 0.0)
                );
                let more = sum(&one.speed) - one.required;
                let given = [more.abs() < 1e-11, more > -1e-11, more.abs() < 1e-11 || sum(&one.speed) == 0.0];
                assert!(given[kind], "{kind}: {more}, {i} of {jobs:?}");
            }
        }
        reached
    }

    fn drawn<const K: usize>() {
        let mut draws = Draws(31);
        let mut reached = 0;
        for round in 0..600 {
            let mut lane = |of: &dyn Fn(f64) -> f64| F64x8(array::from_fn(|_| of(draws.next())));
            // In every other round many costs are equal, or speeds equal to the required throughput.
            let whole = |x: f64| if round % 2 == 0 { x } else { (8.0 * x).ceil() / 8.0 };
            let speed: [F64x8; K] =
                array::from_fn(|_| lane(&|x| if x < 0.2 { 0.0 } else { 8.0 * whole((x - 0.2) / 0.8) }));
            // In every third round some costs are negative.
            let worth = if round % 3 == 0 { 0.5 } else { 0.0 };
            let cost: [F64x8; K] = array::from_fn(|_| lane(&|x| whole(x) - worth));
            let fastest = speed.iter().fold(F64x8::ZERO, |most, speed| most.max(*speed));
            let (required, due) = (fastest * lane(&|x| 1.1 * whole(x)), lane(&f64::round));
            reached += check(&JobsX8 { speed: &speed, cost, required }, &due);
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
