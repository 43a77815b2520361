//! Best responses by the lower convex hull of types, for many worker types.
//!
//! All of its time on type j gives a job the throughput v`[j]` at the cost c`[j]`; idling gives 0 at the cost 0. Mixtures are
//! the convex combinations of these points, with throughput as the abscissa and cost as the ordinate. The cheapest mixture for a
//! required throughput lies on the lower hull of the points, on the edge that spans the throughput, from a slower point to a
//! faster one. The search for that edge starts at the segment between idling and the fastest type. The type furthest below the
//! line through the segment becomes the segment's end on its side of the required throughput, until no type is below the line.
//! That takes a few passes over K types, where enumeration ([`best_response`](super::best_response)) tries K²/2 pairs.

#![expect(clippy::inline_always, reason = "a loop with a call in it is not turned into vector instructions")]
#![expect(clippy::float_cmp, reason = "numbers of types are exact")]

use std::array;

use super::best_response::{Best, JobsX8, Proof};
use crate::decomposition::lanes::{F64x8, LANES};
use crate::decomposition::tolerances::{ON_LINE, TIME_ROUNDING};

/// The number for idling where a type has its position.
const NO_TYPE: F64x8 = F64x8([-1.0; LANES]);
/// Infinity in each lane.
const INFINITE: F64x8 = F64x8([f64::INFINITY; LANES]);

/// One point of the plane of throughput and cost for each of eight jobs: all of the time on one type, or idling.
#[derive(Clone, Copy)]
struct Points {
    /// Throughput there.
    speed: F64x8,
    /// Cost there.
    cost: F64x8,
    /// Position of the type as a float, −1 for idling.
    at: F64x8,
}

impl Points {
    /// Idling, for each job.
    const IDLE: Self = Self { speed: F64x8::ZERO, cost: F64x8::ZERO, at: NO_TYPE };

    /// All of the time on type `j`, for each job.
    #[inline(always)]
    fn of<const K: usize>(jobs: &JobsX8<'_, K>, j: usize) -> Self {
        Self { speed: jobs.speed[j], cost: jobs.cost[j], at: F64x8([j as f64; LANES]) }
    }

    /// The points `others` in lanes where `one` is less than `less_than`, these in all other lanes.
    #[inline(always)]
    fn or(self, others: Self, one: F64x8, less_than: F64x8) -> Self {
        Self {
            speed: chosen(self.speed, others.speed, one, less_than),
            cost: chosen(self.cost, others.cost, one, less_than),
            at: chosen(self.at, others.at, one, less_than),
        }
    }
}

/// The numbers of `other` in lanes where `one` is less than `less_than`, those of `number` in all other lanes.
#[inline(always)]
fn chosen(number: F64x8, other: F64x8, one: F64x8, less_than: F64x8) -> F64x8 {
    F64x8(array::from_fn(|i| if one.0[i] < less_than.0[i] { other.0[i] } else { number.0[i] }))
}

/// The hull edge that spans the required throughput, for each of eight jobs.
struct Edge {
    /// The end with the lower throughput.
    slow: Points,
    /// The end with the higher throughput.
    fast: Points,
    /// Cost per throughput along the edge, the dual price of throughput.
    slope: F64x8,
}

/// The hull edge that spans the required throughput; both ends are idling where a job runs nowhere.
#[inline(always)]
fn edge<const K: usize>(jobs: &JobsX8<'_, K>) -> Edge {
    let (mut slow, mut fast) = (Points::IDLE, Points::IDLE);
    for j in 0..K {
        fast = fast.or(Points::of(jobs, j), fast.speed, jobs.speed[j]);
    }
    let mut slope = (fast.cost - slow.cost) / (fast.speed - slow.speed);
    // In each pass, a type becomes an end that it has not been before, slow or fast: there are at most 2·K passes.
    for _ in 0..2 * K {
        let (mut lowest, mut least) = (Points::IDLE, F64x8::ZERO);
        for j in 0..K {
            let (speed, cost) = (jobs.speed[j], jobs.cost[j]);
            let below = cost - slope * speed;
            let below = chosen(INFINITE, below, F64x8::ZERO, speed);
            lowest = lowest.or(Points::of(jobs, j), below, least);
            least = chosen(least, below, below, least);
        }
        let risen = slope * slow.speed;
        let size = fast.cost.abs() + slow.cost.abs() + risen.abs();
        let line = slow.cost - risen - size * ON_LINE;
        if !(line - least).any(|below| below > 0.0) {
            break;
        }
        // Idling is slower than any required throughput.
        let reach = chosen(-INFINITE, lowest.speed * (1.0 + TIME_ROUNDING), NO_TYPE, lowest.at);
        let faster = chosen(least, INFINITE, reach, jobs.required);
        let slower = chosen(INFINITE, least, reach, jobs.required);
        fast = fast.or(lowest, faster, line);
        slow = slow.or(lowest, slower, line);
        slope = (fast.cost - slow.cost) / (fast.speed - slow.speed);
    }
    Edge { slow, fast, slope }
}

/// The cheapest vertices with exactly the required throughput.
#[inline(always)]
pub(super) fn cheapest<const K: usize>(jobs: &JobsX8<'_, K>) -> Best<K> {
    let Edge { slow, fast, slope } = edge(jobs);
    let gap = fast.speed - slow.speed;
    let of_fast = (jobs.required - slow.speed) / gap;
    let of_slow = (fast.speed - jobs.required) / gap;
    let value = fast.cost * of_fast + slow.cost * of_slow;
    let value = chosen(value, INFINITE, fast.speed * (1.0 + TIME_ROUNDING), jobs.required);
    let value = chosen(INFINITE, value, F64x8::ZERO, fast.speed);
    let mut part = [F64x8::ZERO; K];
    for (j, part) in part.iter_mut().enumerate() {
        let at = j as f64;
        for i in 0..LANES {
            let of_slow = if slow.at.0[i] == at { of_slow.0[i] } else { 0.0 };
            part.0[i] = if fast.at.0[i] == at { of_fast.0[i] } else { of_slow };
        }
    }
    Best { value, part, price: slope }
}

/// The cheapest vertices with the required throughput or more.
#[inline(always)]
pub(super) fn cheapest_above<const K: usize>(jobs: &JobsX8<'_, K>) -> Best<K> {
    let Best { value, mut part, price } = cheapest(jobs);
    // Where more throughput costs less, the optimum is the cheapest type that is fast enough.
    let (mut lowest, mut least) = (Points::IDLE, value);
    for j in 0..K {
        let speed = chosen(-INFINITE, jobs.speed[j], F64x8::ZERO, jobs.speed[j]);
        let cost = chosen(jobs.cost[j], INFINITE, speed, jobs.required);
        lowest = lowest.or(Points::of(jobs, j), cost, least);
        least = chosen(least, cost, cost, least);
    }
    for (j, part) in part.iter_mut().enumerate() {
        let all = F64x8(array::from_fn(|i| if lowest.at.0[i] == j as f64 { 1.0 } else { 0.0 }));
        *part = chosen(*part, all, NO_TYPE, lowest.at);
    }
    Best { value: least, part, price: chosen(price, F64x8::ZERO, NO_TYPE, lowest.at) }
}

/// The cheapest vertices with exactly the required throughput, or no time at all where that costs less and the job is not
/// `due`; above 0 in `due` means due.
#[inline(always)]
pub(super) fn cheapest_or_none<const K: usize>(jobs: &JobsX8<'_, K>, due: &F64x8) -> Best<K> {
    let Best { value, mut part, price } = cheapest(jobs);
    // Where the job is due, its cost counts as −∞, so that the required throughput is chosen.
    let least = chosen(value, -INFINITE, F64x8::ZERO, *due);
    let or_none = |of: F64x8| chosen(F64x8::ZERO, of, least, F64x8::ZERO);
    for part in &mut part {
        *part = or_none(*part);
    }
    Best { value: or_none(value), part, price: or_none(price) }
}

/// The bounds that given dual prices of throughput prove, each with the least dual price of time that is feasible with it.
#[inline(always)]
pub(super) fn proof_at<const K: usize>(jobs: &JobsX8<'_, K>, price: F64x8) -> Proof {
    let mut time = F64x8::ZERO;
    for (speed, cost) in jobs.speed.iter().zip(&jobs.cost) {
        let gain = price * *speed - *cost;
        time = time.max(chosen(F64x8::ZERO, gain, F64x8::ZERO, *speed));
    }
    let value = chosen(price * jobs.required - time, -INFINITE, price, F64x8::ZERO);
    Proof { value, price, time }
}

/// The dual prices that prove the largest bounds: the slope of the edge, or 0 where more throughput costs less.
#[inline(always)]
pub(super) fn best_proof<const K: usize>(jobs: &JobsX8<'_, K>) -> Proof {
    let on_edge = proof_at(jobs, edge(jobs).slope.max(F64x8::ZERO));
    let free = proof_at(jobs, F64x8::ZERO);
    let larger_bound = |free_of: F64x8, of: F64x8| chosen(free_of, of, free.value, on_edge.value);
    Proof {
        value: larger_bound(free.value, on_edge.value),
        price: larger_bound(free.price, on_edge.price),
        time: larger_bound(free.time, on_edge.time),
    }
}
