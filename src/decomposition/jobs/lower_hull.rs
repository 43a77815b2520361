//! Best responses by the lower convex hull: the hull edge above which the required throughput lies.
//!
//! Type j gives a member the throughput v`[j]` at the cost c`[j]`; mixtures of types and of idling are the points between.
//! The cheapest mixture for a required throughput is on the lower convex hull of these points. The edge is found from the
//! segment between idling and the fastest type: the type furthest below the segment replaces the end on its side, until
//! none is below. That takes a few passes over K types, where enumeration ([`best_response`](super::best_response)) tries
//! K²/2 pairs.

#![expect(clippy::inline_always, reason = "a call within the loop, and it is none over vectors")]
#![expect(clippy::float_cmp, reason = "numbers of types are exact")]

use std::array;

use super::best_response::{Best, FEASIBLE, JobsX8, Proof};
use crate::solver::lanes::{F64x8, LANES};

/// A point below a line by less than this part of the line's is on it.
const ON_LINE: f64 = 4e-16;
/// In place of types' numbers, that of nothing.
const NO_TYPE: F64x8 = F64x8([-1.0; LANES]);
const INFINITE: F64x8 = F64x8([f64::INFINITY; LANES]);

/// What members do with all of their time: one type, or nothing.
#[derive(Clone, Copy)]
struct Points {
    speed: F64x8,
    cost: F64x8,
    /// Number of the type.
    at: F64x8,
}

impl Points {
    const NOTHING: Self = Self { speed: F64x8::ZERO, cost: F64x8::ZERO, at: NO_TYPE };

    #[inline(always)]
    fn of<const K: usize>(members: &JobsX8<'_, K>, j: usize) -> Self {
        Self { speed: members.speed[j], cost: members.cost[j], at: F64x8([j as f64; LANES]) }
    }

    /// These, but others where one number is less than another.
    #[inline(always)]
    fn or(self, others: Self, one: F64x8, less_than: F64x8) -> Self {
        Self {
            speed: chosen(self.speed, others.speed, one, less_than),
            cost: chosen(self.cost, others.cost, one, less_than),
            at: chosen(self.at, others.at, one, less_than),
        }
    }
}

/// One number, or another where one is less than another.
#[inline(always)]
fn chosen(number: F64x8, other: F64x8, one: F64x8, less_than: F64x8) -> F64x8 {
    F64x8(array::from_fn(|i| if one.0[i] < less_than.0[i] { other.0[i] } else { number.0[i] }))
}

/// The ends of the edge, the slower one first, and what a unit of throughput costs on it.
struct Edge {
    slow: Points,
    fast: Points,
    slope: F64x8,
}

/// Finds the edge; where nothing runs, both ends are nothing.
#[inline(always)]
fn edge<const K: usize>(members: &JobsX8<'_, K>) -> Edge {
    let (mut slow, mut fast) = (Points::NOTHING, Points::NOTHING);
    for j in 0..K {
        fast = fast.or(Points::of(members, j), fast.speed, members.speed[j]);
    }
    let mut slope = (fast.cost - slow.cost) / (fast.speed - slow.speed);
    // (each time, a type takes a place that it never had)
    for _ in 0..2 * K {
        let (mut lowest, mut least) = (Points::NOTHING, F64x8::ZERO);
        for j in 0..K {
            let (speed, cost) = (members.speed[j], members.cost[j]);
            let below = cost - slope * speed;
            let below = chosen(INFINITE, below, F64x8::ZERO, speed);
            lowest = lowest.or(Points::of(members, j), below, least);
            least = chosen(least, below, below, least);
        }
        let risen = slope * slow.speed;
        let size = fast.cost.abs() + slow.cost.abs() + risen.abs();
        let line = slow.cost - risen - size * ON_LINE;
        if !(line - least).any(|below| below > 0.0) {
            break;
        }
        // (nothing is slower than whatever is asked)
        let reach = chosen(-INFINITE, lowest.speed * (1.0 + FEASIBLE), NO_TYPE, lowest.at);
        let faster = chosen(least, INFINITE, reach, members.asked);
        let slower = chosen(INFINITE, least, reach, members.asked);
        fast = fast.or(lowest, faster, line);
        slow = slow.or(lowest, slower, line);
        slope = (fast.cost - slow.cost) / (fast.speed - slow.speed);
    }
    Edge { slow, fast, slope }
}

/// The cheapest that gives the throughput.
#[inline(always)]
pub(super) fn cheapest<const K: usize>(members: &JobsX8<'_, K>) -> Best<K> {
    let Edge { slow, fast, slope } = edge(members);
    let gap = fast.speed - slow.speed;
    let of_fast = (members.asked - slow.speed) / gap;
    let of_slow = (fast.speed - members.asked) / gap;
    let value = fast.cost * of_fast + slow.cost * of_slow;
    let value = chosen(value, INFINITE, fast.speed * (1.0 + FEASIBLE), members.asked);
    let value = chosen(INFINITE, value, F64x8::ZERO, fast.speed);
    let mut part = [F64x8::ZERO; K];
    for (j, part) in part.iter_mut().enumerate() {
        let at = j as f64;
        for i in 0..LANES {
            let of_slow = if slow.at.0[i] == at { of_slow.0[i] } else { 0.0 };
            part.0[i] = if fast.at.0[i] == at { of_fast.0[i] } else { of_slow };
        }
    }
    Best { value, part, throughput_price: slope }
}

/// The cheapest that gives the throughput or more of it.
#[inline(always)]
pub(super) fn cheapest_above<const K: usize>(members: &JobsX8<'_, K>) -> Best<K> {
    let Best { value, mut part, throughput_price } = cheapest(members);
    // where more costs less, the cheapest type that is as fast
    let (mut lowest, mut least) = (Points::NOTHING, value);
    for j in 0..K {
        let speed = chosen(-INFINITE, members.speed[j], F64x8::ZERO, members.speed[j]);
        let cost = chosen(members.cost[j], INFINITE, speed, members.asked);
        lowest = lowest.or(Points::of(members, j), cost, least);
        least = chosen(least, cost, cost, least);
    }
    for (j, part) in part.iter_mut().enumerate() {
        let all = F64x8(array::from_fn(|i| if lowest.at.0[i] == j as f64 { 1.0 } else { 0.0 }));
        *part = chosen(*part, all, NO_TYPE, lowest.at);
    }
    Best { value: least, part, throughput_price: chosen(throughput_price, F64x8::ZERO, NO_TYPE, lowest.at) }
}

/// The cheapest that gives the throughput or nothing, but nothing to none to whom it is `due`.
#[inline(always)]
pub(super) fn cheapest_or_none<const K: usize>(members: &JobsX8<'_, K>, due: &F64x8) -> Best<K> {
    let Best { value, mut part, throughput_price } = cheapest(members);
    // (what is due is below anything)
    let least = chosen(value, -INFINITE, F64x8::ZERO, *due);
    let or_none = |of: F64x8| chosen(F64x8::ZERO, of, least, F64x8::ZERO);
    for part in &mut part {
        *part = or_none(*part);
    }
    Best { value: or_none(value), part, throughput_price: or_none(throughput_price) }
}

/// What prices of throughput prove, each with the least price of time that goes with it.
#[inline(always)]
pub(super) fn proof_at<const K: usize>(members: &JobsX8<'_, K>, throughput_price: F64x8) -> Proof {
    let mut time = F64x8::ZERO;
    for (speed, cost) in members.speed.iter().zip(&members.cost) {
        let gain = throughput_price * *speed - *cost;
        time = time.max(chosen(F64x8::ZERO, gain, F64x8::ZERO, *speed));
    }
    let value = chosen(throughput_price * members.asked - time, -INFINITE, throughput_price, F64x8::ZERO);
    Proof { value, throughput_price, time }
}

/// The prices that prove the most: that of throughput on the edge, or none where more costs less.
#[inline(always)]
pub(super) fn best_proof<const K: usize>(members: &JobsX8<'_, K>) -> Proof {
    let on_edge = proof_at(members, edge(members).slope.max(F64x8::ZERO));
    let free = proof_at(members, F64x8::ZERO);
    let surer = |free_of: F64x8, of: F64x8| chosen(free_of, of, free.value, on_edge.value);
    Proof {
        value: surer(free.value, on_edge.value),
        throughput_price: surer(free.throughput_price, on_edge.throughput_price),
        time: surer(free.time, on_edge.time),
    }
}
