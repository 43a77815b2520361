//! What eight members do at prices, and the prices that prove it best: the edge of what they may do below what is asked.
//!
//! On worker type j a member has the leaf v`[j]` for the cost c`[j]`, and mixes of types, and of nothing, are the points
//! between. What is cheapest for a leaf is on the edge below it of all these points: one type for as long as the leaf takes,
//! or two that take all of the time. It is found from the fastest type and nothing on: of all types the one that is furthest
//! below the line between two takes the place of the one on its side, until none is below. That takes a few passes over the
//! types, where there are K²/2 pairs to try.
//!
//! Passes are loops over eight members without branches and calls, which become vectors; they are compiled for vectors of four
//! numbers, too, which are taken where the machine has them. What comes out is the same.

#![expect(clippy::inline_always, reason = "a call within the loop, and it is none over vectors")]
#![expect(clippy::float_cmp, reason = "numbers of types are exact")]

use std::array;

use multiversion::multiversion;

use crate::solver::structured::lane::{LANES, Lane};

/// A leaf may be out of reach by this part of it.
const FEASIBLE: f64 = 1e-13;
/// A point below a line by less than this part of the line's is on it.
const ON_LINE: f64 = 4e-16;
/// In place of types' numbers, that of nothing.
const NO_TYPE: Lane = Lane([-1.0; LANES]);
const INFINITE: Lane = Lane([f64::INFINITY; LANES]);

/// Eight members at prices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Eight<'a, const K: usize> {
    /// 0 where a member cannot run.
    pub(super) speed: &'a [Lane; K],
    /// What all of the time costs.
    pub(super) cost: [Lane; K],
    /// The leaf that is asked for.
    pub(super) asked: Lane,
}

/// The best vertices of eight members.
#[derive(Clone, Copy, Debug)]
pub(super) struct Best<const K: usize> {
    /// Infinite where the leaf cannot be reached.
    pub(super) value: Lane,
    /// Parts of time on each type.
    pub(super) part: [Lane; K],
    /// What a unit of leaf costs there.
    pub(super) leaf: Lane,
}

/// Prices of leaf and time, and what they prove that eight members cost at least.
#[derive(Clone, Copy, Debug)]
pub(super) struct Proof {
    pub(super) value: Lane,
    pub(super) leaf: Lane,
    pub(super) time: Lane,
}

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
#[multiversion(targets("x86_64+avx+avx2"))]
pub(super) fn cheapest<const K: usize>(members: &Eight<'_, K>) -> Best<K> {
    on_edge(members)
}

#[inline(always)]
fn on_edge<const K: usize>(members: &Eight<'_, K>) -> Best<K> {
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
#[multiversion(targets("x86_64+avx+avx2"))]
pub(super) fn cheapest_above<const K: usize>(members: &Eight<'_, K>) -> Best<K> {
    let Best { value, mut part, leaf } = on_edge(members);
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
#[multiversion(targets("x86_64+avx+avx2"))]
pub(super) fn cheapest_or_none<const K: usize>(members: &Eight<'_, K>, due: &Lane) -> Best<K> {
    let Best { value, mut part, leaf } = on_edge(members);
    // (what is due is below anything)
    let least = chosen(value, -INFINITE, Lane::ZERO, *due);
    let or_none = |of: Lane| chosen(Lane::ZERO, of, least, Lane::ZERO);
    for part in &mut part {
        *part = or_none(*part);
    }
    Best { value: or_none(value), part, leaf: or_none(leaf) }
}

/// What prices of leaf prove, each with the least price of time that goes with it.
#[multiversion(targets("x86_64+avx+avx2"))]
pub(super) fn proof_at<const K: usize>(members: &Eight<'_, K>, leaf: &Lane) -> Proof {
    proof(members, *leaf)
}

#[inline(always)]
fn proof<const K: usize>(members: &Eight<'_, K>, leaf: Lane) -> Proof {
    let mut time = Lane::ZERO;
    for (speed, cost) in members.speed.iter().zip(&members.cost) {
        let gain = leaf * *speed - *cost;
        time = time.max(chosen(Lane::ZERO, gain, Lane::ZERO, *speed));
    }
    let value = chosen(leaf * members.asked - time, -INFINITE, leaf, Lane::ZERO);
    Proof { value, leaf, time }
}

/// The prices that prove the most: that of leaf on the edge, or none where more costs less.
#[multiversion(targets("x86_64+avx+avx2"))]
pub(super) fn best_proof<const K: usize>(members: &Eight<'_, K>) -> Proof {
    let on_edge = proof(members, edge(members).slope.max(Lane::ZERO));
    let free = proof(members, Lane::ZERO);
    let surer = |free_of: Lane, of: Lane| chosen(free_of, of, free.value, on_edge.value);
    Proof {
        value: surer(free.value, on_edge.value),
        leaf: surer(free.leaf, on_edge.leaf),
        time: surer(free.time, on_edge.time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::structured::draws::Draws;

    /// One member: the speeds, costs and parts of its types.
    struct One {
        speed: Vec<f64>,
        cost: Vec<f64>,
        asked: f64,
    }

    impl One {
        fn of<const K: usize>(members: &Eight<'_, K>, i: usize) -> Self {
            let of = |lanes: &[Lane; K]| lanes.iter().map(|lane| lane.0[i]).collect();
            Self { speed: of(members.speed), cost: of(&members.cost), asked: members.asked.0[i] }
        }

        /// The least cost of all that gives the leaf, by trying every type and every two.
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

        /// The least cost of one type for all of the time that gives the leaf or more.
        fn always(&self) -> f64 {
            let costs = self.speed.iter().zip(&self.cost);
            let fits = costs.filter(|(speed, _)| **speed > 0.0 && **speed >= self.asked);
            fits.fold(f64::INFINITY, |least, (_, cost)| least.min(*cost))
        }
    }

    fn near(one: f64, other: f64) -> bool {
        one.total_cmp(&other).is_eq() || (one - other).abs() <= 1e-12 * (1.0 + one.abs())
    }

    /// Eight members do what is cheapest of all that can be tried, and prices prove it.
    fn check<const K: usize>(members: &Eight<'_, K>, due: &Lane) -> usize {
        let kinds = [cheapest(members), cheapest_above(members), cheapest_or_none(members, due)];
        let (proven, proven_at) = (best_proof(members), proof_at(members, &kinds[1].leaf.max(Lane::ZERO)));
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
            let mut lane = |of: &dyn Fn(f64) -> f64| Lane(array::from_fn(|_| of(draws.next())));
            // every other time many are level, or as fast as what is asked
            let whole = |x: f64| if round % 2 == 0 { x } else { (8.0 * x).ceil() / 8.0 };
            let speed: [Lane; K] =
                array::from_fn(|_| lane(&|x| if x < 0.2 { 0.0 } else { 8.0 * whole((x - 0.2) / 0.8) }));
            // every third time some are worth more than they cost
            let worth = if round % 3 == 0 { 0.5 } else { 0.0 };
            let cost: [Lane; K] = array::from_fn(|_| lane(&|x| whole(x) - worth));
            let fastest = speed.iter().fold(Lane::ZERO, |most, speed| most.max(*speed));
            let (asked, due) = (fastest * lane(&|x| 1.1 * whole(x)), lane(&f64::round));
            reached += check(&Eight { speed: &speed, cost, asked }, &due);
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
