//! What eight members do at prices, where types are many: the edge of what they may do above which lies what is asked.
//!
//! On worker type j a member has the leaf v`[j]` for the cost c`[j]`, and mixes of types, and of nothing, are the points
//! between. What is cheapest for a leaf is on the edge below it of all these points. It is found from the fastest type and
//! nothing on: of all types the one that is furthest below the line between two takes the place of the one on its side,
//! until none is below. That takes a few passes over the types, where there are K²/2 pairs to try
//! ([`corner`](super::corner)).

#![expect(clippy::inline_always, reason = "a call within the loop, and it is none over vectors")]
#![expect(clippy::float_cmp, reason = "numbers of types are exact")]

use std::array;

use super::corner::{Best, Eight, FEASIBLE, Proof};
use crate::solver::structured::lane::{LANES, Lane};

/// A point below a line by less than this part of the line's is on it.
const ON_LINE: f64 = 4e-16;
/// In place of types' numbers, that of nothing.
const NO_TYPE: Lane = Lane([-1.0; LANES]);
const INFINITE: Lane = Lane([f64::INFINITY; LANES]);

/// What members do with all of their time: one type, or nothing.
#[derive(Clone, Copy)]
struct Points {
    speed: Lane,
    cost: Lane,
    /// Number of the type.
    at: Lane,
}

impl Points {
    const NOTHING: Self = Self { speed: Lane::ZERO, cost: Lane::ZERO, at: NO_TYPE };

    #[inline(always)]
    fn of<const K: usize>(members: &Eight<'_, K>, j: usize) -> Self {
        Self { speed: members.speed[j], cost: members.cost[j], at: Lane([j as f64; LANES]) }
    }

    /// These, but others where one number is less than another.
    #[inline(always)]
    fn or(self, others: Self, one: Lane, less_than: Lane) -> Self {
        Self {
            speed: chosen(self.speed, others.speed, one, less_than),
            cost: chosen(self.cost, others.cost, one, less_than),
            at: chosen(self.at, others.at, one, less_than),
        }
    }
}

/// One number, or another where one is less than another.
#[inline(always)]
fn chosen(number: Lane, other: Lane, one: Lane, less_than: Lane) -> Lane {
    Lane(array::from_fn(|i| if one.0[i] < less_than.0[i] { other.0[i] } else { number.0[i] }))
}

/// The ends of the edge, the slower one first, and what a unit of leaf costs on it.
struct Edge {
    slow: Points,
    fast: Points,
    slope: Lane,
}

/// Finds the edge; where nothing runs, both ends are nothing.
#[inline(always)]
fn edge<const K: usize>(members: &Eight<'_, K>) -> Edge {
    let (mut slow, mut fast) = (Points::NOTHING, Points::NOTHING);
    for j in 0..K {
        fast = fast.or(Points::of(members, j), fast.speed, members.speed[j]);
    }
    let mut slope = (fast.cost - slow.cost) / (fast.speed - slow.speed);
    // (each time, a type takes a place that it never had)
    for _ in 0..2 * K {
        let (mut lowest, mut least) = (Points::NOTHING, Lane::ZERO);
        for j in 0..K {
            let (speed, cost) = (members.speed[j], members.cost[j]);
            let below = cost - slope * speed;
            let below = chosen(INFINITE, below, Lane::ZERO, speed);
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

/// The cheapest that gives the leaf.
#[inline(always)]
pub(super) fn cheapest<const K: usize>(members: &Eight<'_, K>) -> Best<K> {
    let Edge { slow, fast, slope } = edge(members);
    let gap = fast.speed - slow.speed;
    let of_fast = (members.asked - slow.speed) / gap;
    let of_slow = (fast.speed - members.asked) / gap;
    let value = fast.cost * of_fast + slow.cost * of_slow;
    let value = chosen(value, INFINITE, fast.speed * (1.0 + FEASIBLE), members.asked);
    let value = chosen(INFINITE, value, Lane::ZERO, fast.speed);
    let mut part = [Lane::ZERO; K];
    for (j, part) in part.iter_mut().enumerate() {
        let at = j as f64;
        for i in 0..LANES {
            let of_slow = if slow.at.0[i] == at { of_slow.0[i] } else { 0.0 };
            part.0[i] = if fast.at.0[i] == at { of_fast.0[i] } else { of_slow };
        }
    }
    Best { value, part, leaf: slope }
}

/// The cheapest that gives the leaf or more of it.
#[inline(always)]
pub(super) fn cheapest_above<const K: usize>(members: &Eight<'_, K>) -> Best<K> {
    let Best { value, mut part, leaf } = cheapest(members);
    // where more costs less, the cheapest type that is as fast
    let (mut lowest, mut least) = (Points::NOTHING, value);
    for j in 0..K {
        let speed = chosen(-INFINITE, members.speed[j], Lane::ZERO, members.speed[j]);
        let cost = chosen(members.cost[j], INFINITE, speed, members.asked);
        lowest = lowest.or(Points::of(members, j), cost, least);
        least = chosen(least, cost, cost, least);
    }
    for (j, part) in part.iter_mut().enumerate() {
        let all = Lane(array::from_fn(|i| if lowest.at.0[i] == j as f64 { 1.0 } else { 0.0 }));
        *part = chosen(*part, all, NO_TYPE, lowest.at);
    }
    Best { value: least, part, leaf: chosen(leaf, Lane::ZERO, NO_TYPE, lowest.at) }
}

/// The cheapest that gives the leaf or nothing, but nothing to none to whom it is `due`.
#[inline(always)]
pub(super) fn cheapest_or_none<const K: usize>(members: &Eight<'_, K>, due: &Lane) -> Best<K> {
    let Best { value, mut part, leaf } = cheapest(members);
    // (what is due is below anything)
    let least = chosen(value, -INFINITE, Lane::ZERO, *due);
    let or_none = |of: Lane| chosen(Lane::ZERO, of, least, Lane::ZERO);
    for part in &mut part {
        *part = or_none(*part);
    }
    Best { value: or_none(value), part, leaf: or_none(leaf) }
}

/// What prices of leaf prove, each with the least price of time that goes with it.
#[inline(always)]
pub(super) fn proof_at<const K: usize>(members: &Eight<'_, K>, leaf: Lane) -> Proof {
    let mut time = Lane::ZERO;
    for (speed, cost) in members.speed.iter().zip(&members.cost) {
        let gain = leaf * *speed - *cost;
        time = time.max(chosen(Lane::ZERO, gain, Lane::ZERO, *speed));
    }
    let value = chosen(leaf * members.asked - time, -INFINITE, leaf, Lane::ZERO);
    Proof { value, leaf, time }
}

/// The prices that prove the most: that of leaf on the edge, or none where more costs less.
#[inline(always)]
pub(super) fn best_proof<const K: usize>(members: &Eight<'_, K>) -> Proof {
    let on_edge = proof_at(members, edge(members).slope.max(Lane::ZERO));
    let free = proof_at(members, Lane::ZERO);
    let surer = |free_of: Lane, of: Lane| chosen(free_of, of, free.value, on_edge.value);
    Proof {
        value: surer(free.value, on_edge.value),
        leaf: surer(free.leaf, on_edge.leaf),
        time: surer(free.time, on_edge.time),
    }
}
