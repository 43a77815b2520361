//! Total demand of members at prices, and Newton's step of the dual.
//!
//! Members that choose the same anywhere in the price box are summed: the spending of those with time to spare on type k,
//! the workers of those with all of their time on it, and both of those between two types, whose part of each follows from
//! the difference of two prices. Only undecided members are evaluated one by one.

use std::cmp::Ordering;

use crate::decomposition::choice::{Choice, Member, PriceBox, Prices};
use crate::decomposition::smoothed_demand::{Alternative, Place, Spending, UndecidedJob};

/// Prices below this part of the largest are as uncertain as one of that size.
const PRICE_MIN: f64 = 0.05;

/// The demand of a sample: members whose choice is known are summed, undecided ones listed.
#[derive(Clone, Debug)]
pub(super) struct Demand<const K: usize> {
    /// Workers by a unit of all weights.
    pub(super) room: [f64; K],
    /// Weights of members with time to spare on a type.
    spare: [f64; K],
    /// Workers that are taken at any price.
    taken: [f64; K],
    /// Weights of members between two types: `[fast][slow]`.
    between: [[f64; K]; K],
    /// With time to spare wherever prices may be.
    pub(super) undecided_spare: Vec<UndecidedJob<K>>,
    pub(super) undecided: Vec<UndecidedJob<K>>,
}

/// A step in parts of prices.
pub(super) struct Step<const K: usize> {
    pub(super) by: [f64; K],
    /// How the objective falls with the logarithm of each price.
    pub(super) falls: [f64; K],
}

/// What a part of the dearest type's worth is as a price of each.
pub(super) fn floor<const K: usize>(price: &[f64; K], room: &[f64; K]) -> [f64; K] {
    let most = (0..K).fold(0.0_f64, |most, k| most.max(price[k] * room[k]));
    room.map(|room| PRICE_MIN * most / room)
}

impl<const K: usize> PriceBox<K> {
    pub(super) const ANYWHERE: Self = Self { low: [0.0; K], high: [f64::INFINITY; K] };

    /// About prices that may be off by a part of themselves, or of what the dearest type's would be here.
    pub(super) fn about(price: &[f64; K], room: &[f64; K], off: f64) -> Self {
        let floor = floor(price, room);
        let by = |k: usize| off * (price[k] + floor[k]);
        Self {
            low: std::array::from_fn(|k| (price[k] - by(k)).max(0.0)),
            high: std::array::from_fn(|k| price[k] + by(k)),
        }
    }
}

impl<const K: usize> Demand<K> {
    pub(super) fn none(room: [f64; K]) -> Self {
        Self {
            room,
            spare: [0.0; K],
            taken: [0.0; K],
            between: [[0.0; K]; K],
            undecided_spare: Vec::new(),
            undecided: Vec::new(),
        }
    }

    /// Adds a member that is known to choose this.
    #[inline]
    pub(super) fn add(&mut self, member: &Member<K>, choice: Choice) {
        let workers = member.weight * member.workers;
        match choice {
            Choice::Spare(k) => self.spare[k] += member.weight,
            Choice::All(k) => self.taken[k] += workers,
            Choice::Both(slow, fast) => {
                let ratio = member.speed[slow] / (member.speed[fast] - member.speed[slow]);
                self.between[fast][slow] += member.weight;
                self.taken[slow] += workers * (1.0 + ratio);
                self.taken[fast] -= workers * ratio;
            }
        }
    }

    /// Counts undecided members whose choice is known in a narrower range.
    pub(super) fn narrow(&mut self, price_box: &PriceBox<K>, prices: &Prices<K>) {
        let (spare, undecided) =
            (std::mem::take(&mut self.undecided_spare), std::mem::take(&mut self.undecided));
        for undecided in spare.into_iter().chain(undecided) {
            match undecided
                .member
                .choose(prices)
                .filter(|choice| undecided.member.is_sure(*choice, price_box))
            {
                Some(choice) => self.add(&undecided.member, choice),
                None if undecided.member.has_spare(price_box) => self.undecided_spare.push(undecided),
                None => self.undecided.push(undecided),
            }
        }
    }

    /// Members with time to spare whose speeds are the same buy the same: each kind of them counts once.
    pub(super) fn merge(&mut self) {
        let order = |a: &UndecidedJob<K>, b: &UndecidedJob<K>| {
            let pairs = a.member.speed.iter().zip(&b.member.speed);
            pairs.map(|(a, b)| a.total_cmp(b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        };
        self.undecided_spare.sort_by(order);
        self.undecided_spare.dedup_by(|next, kept| {
            let same = order(next, kept).is_eq();
            // (with the fewest workers of them, it has time to spare where all have)
            if same {
                kept.member.weight += next.member.weight;
                kept.member.workers = kept.member.workers.min(next.member.workers);
            }
            same
        });
    }

    /// What all spend, in parts of all weights, and its derivatives.
    fn spending(&self, place: &Place<K>, alternatives: &mut Vec<Alternative>) -> Spending<K> {
        let mut sum = Spending::NONE;
        for undecided in &self.undecided_spare {
            undecided.spend_spare(place, &mut sum);
        }
        for undecided in &self.undecided {
            undecided.spend(place, alternatives, &mut sum);
        }
        let at = |k: usize| place.price[k] * (1.0 + place.shift[k]);
        for k in 0..K {
            sum.on[k] += self.spare[k] / (1.0 + place.shift[k]) + self.taken[k] * place.price[k];
            sum.slope[k][k] += self.spare[k];
            for j in (0..K).filter(|j| self.between[k][*j] > 0.0) {
                let (weight, dearer) = (self.between[k][j], at(k) - at(j));
                let bend = [place.price[j] / dearer, place.price[k] / dearer];
                sum.on[k] += weight * bend[1];
                sum.on[j] -= weight * bend[0];
                sum.slope[k][k] += weight * bend[1] * bend[1];
                sum.slope[j][j] += weight * bend[0] * bend[0];
                sum.slope[k.max(j)][k.min(j)] -= weight * bend[0] * bend[1];
            }
        }
        sum
    }

    /// Newton's step from prices, in parts of them, and how the objective falls with each.
    pub(super) fn step(&self, place: &Place<K>, alternatives: &mut Vec<Alternative>) -> Option<Step<K>> {
        let mut spending = self.spending(place, alternatives);
        let barrier = place.width / K as f64;
        (0..K).for_each(|k| spending.slope[k][k] += barrier);
        let falls = std::array::from_fn(|k| spending.on[k] + barrier - self.room[k] * place.price[k]);
        let by = solve(spending.slope, falls).filter(|by| by.iter().all(|by| by.is_finite()))?;
        Some(Step { by, falls })
    }
}

/// Solves a symmetric positive definite system, given below and on the diagonal.
fn solve<const K: usize>(mut matrix: [[f64; K]; K], mut side: [f64; K]) -> Option<[f64; K]> {
    for k in 0..K {
        for j in 0..=k {
            let sum: f64 = (0..j).map(|i| matrix[k][i] * matrix[j][i]).sum();
            let left = matrix[k][j] - sum;
            if j < k {
                matrix[k][j] = left / matrix[j][j];
            } else {
                // what is rounded off must not make it singular
                let pivot = left.max(1e-14 * matrix[k][k]);
                if !(pivot > 0.0 && pivot.is_finite()) {
                    return None;
                }
                matrix[k][k] = pivot.sqrt();
            }
        }
        let sum: f64 = (0..k).map(|i| matrix[k][i] * side[i]).sum();
        side[k] = (side[k] - sum) / matrix[k][k];
    }
    for k in (0..K).rev() {
        let sum: f64 = (k + 1..K).map(|i| matrix[i][k] * side[i]).sum();
        side[k] = (side[k] - sum) / matrix[k][k];
    }
    Some(side)
}
