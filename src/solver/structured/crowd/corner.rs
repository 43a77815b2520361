//! What eight members do at prices: the vertices of their time and demand, and the prices that prove them best.

use crate::solver::structured::lane::{LANES, Lane};

/// A time may be over or below by this much of all of it.
const FEASIBLE: f64 = 1e-13;
/// Speeds that differ by less than this part of them are the same.
const SAME: f64 = 1e-12;

/// The best vertices of eight members.
#[derive(Clone, Copy, Debug)]
pub(super) struct Best<const K: usize> {
    pub(super) value: Lane,
    /// Parts of time on each type.
    pub(super) part: [Lane; K],
    /// What a unit of leaf costs there.
    pub(super) leaf: Lane,
}

impl<const K: usize> Best<K> {
    pub(super) const NONE: Self =
        Self { value: Lane([f64::INFINITY; LANES]), part: [Lane::ZERO; K], leaf: Lane::ZERO };

    /// One type for as long as the leaf takes.
    #[inline]
    pub(super) fn for_leaf(&mut self, j: usize, speed: &[Lane; K], cost: &[Lane; K], asked: Lane) {
        for i in 0..LANES {
            let inverse = 1.0 / speed[j].0[i];
            let x = asked.0[i] * inverse;
            let value = cost[j].0[i] * x;
            let fits = if speed[j].0[i] > 0.0 { x } else { f64::INFINITY };
            let value = if fits <= 1.0 + FEASIBLE { value } else { f64::INFINITY };
            let taken = value < self.value.0[i];
            self.leaf.0[i] = if taken { cost[j].0[i] * inverse } else { self.leaf.0[i] };
            self.value.0[i] = if taken { value } else { self.value.0[i] };
            for (other, part) in self.part.iter_mut().enumerate() {
                let own = if other == j { x } else { 0.0 };
                part.0[i] = if taken { own } else { part.0[i] };
            }
        }
    }

    /// One type for all of the time.
    #[inline]
    pub(super) fn always(&mut self, j: usize, speed: &[Lane; K], cost: &[Lane; K], asked: Lane) {
        for i in 0..LANES {
            let fits = if speed[j].0[i] > 0.0 { speed[j].0[i] } else { -1.0 };
            let value = if fits >= asked.0[i] { cost[j].0[i] } else { f64::INFINITY };
            let taken = value < self.value.0[i];
            self.leaf.0[i] = if taken { 0.0 } else { self.leaf.0[i] };
            self.value.0[i] = if taken { value } else { self.value.0[i] };
            for (other, part) in self.part.iter_mut().enumerate() {
                let own = if other == j { 1.0 } else { 0.0 };
                part.0[i] = if taken { own } else { part.0[i] };
            }
        }
    }

    /// Two types that take all of the time.
    #[inline]
    pub(super) fn between(
        &mut self,
        (j, l): (usize, usize),
        speed: &[Lane; K],
        cost: &[Lane; K],
        asked: Lane,
    ) {
        for i in 0..LANES {
            let (one, other) = (speed[j].0[i], speed[l].0[i]);
            let (inverse, gap) = (1.0 / (one - other), (one - other).abs());
            let x = (asked.0[i] - other) * inverse;
            let y = (one - asked.0[i]) * inverse;
            let value = cost[j].0[i] * x + cost[l].0[i] * y;
            let least = if x < y { x } else { y };
            let slowest = if one < other { one } else { other };
            let least = if slowest > 0.0 { least } else { -1.0 };
            let least = if gap > SAME * (one + other) { least } else { -1.0 };
            let value = if least >= -FEASIBLE { value } else { f64::INFINITY };
            let taken = value < self.value.0[i];
            let leaf = (cost[j].0[i] - cost[l].0[i]) * inverse;
            self.leaf.0[i] = if taken { leaf } else { self.leaf.0[i] };
            self.value.0[i] = if taken { value } else { self.value.0[i] };
            for (at, part) in self.part.iter_mut().enumerate() {
                let own = if at == j {
                    x
                } else if at == l {
                    y
                } else {
                    0.0
                };
                part.0[i] = if taken { own } else { part.0[i] };
            }
        }
    }
}

/// The prices of leaf and time that prove the most of eight members, given a price of leaf.
#[derive(Clone, Copy, Debug)]
pub(super) struct Proof {
    pub(super) value: Lane,
    pub(super) leaf: Lane,
    pub(super) time: Lane,
}

impl Proof {
    pub(super) const NONE: Self =
        Self { value: Lane([f64::NEG_INFINITY; LANES]), leaf: Lane::ZERO, time: Lane::ZERO };

    /// Tries a price of leaf, with the least price of time that goes with it.
    #[inline]
    pub(super) fn attempt<const K: usize>(
        &mut self,
        leaf: Lane,
        speed: &[Lane; K],
        cost: &[Lane; K],
        asked: Lane,
    ) {
        for i in 0..LANES {
            let mut time = 0.0;
            for j in 0..K {
                let gain = leaf.0[i] * speed[j].0[i] - cost[j].0[i];
                let gain = if speed[j].0[i] > 0.0 { gain } else { 0.0 };
                time = if gain > time { gain } else { time };
            }
            let value = leaf.0[i] * asked.0[i] - time;
            let value = if leaf.0[i] >= 0.0 { value } else { f64::NEG_INFINITY };
            let taken = value > self.value.0[i];
            self.leaf.0[i] = if taken { leaf.0[i] } else { self.leaf.0[i] };
            self.time.0[i] = if taken { time } else { self.time.0[i] };
            self.value.0[i] = if taken { value } else { self.value.0[i] };
        }
    }
}
