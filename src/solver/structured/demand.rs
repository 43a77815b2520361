//! What members buy at prices, and where prices go from there (Newton's step).
//!
//! Members that choose the same wherever prices may be count together: of those with time to spare on type k the
//! spending, of those with all of their time on it the workers, of those between two types, whose part of each follows
//! from how much dearer one is than the other, both. Only the others are open.

use std::cmp::Ordering;

use crate::solver::structured::blend::{Open, Place, Spending, Way};
use crate::solver::structured::choice::{Choice, Member, Quote, Span};

/// Prices below this part of the largest are as uncertain as one of that size.
const PRICE_MIN: f64 = 0.05;

/// What the members of a sample ask for: those whose choice is known together, the others one by one.
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
    pub(super) open_spare: Vec<Open<K>>,
    pub(super) open: Vec<Open<K>>,
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

impl<const K: usize> Span<K> {
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
            open_spare: Vec::new(),
            open: Vec::new(),
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

    /// Counts open members whose choice is known in a narrower range.
    pub(super) fn narrow(&mut self, span: &Span<K>, quote: &Quote<K>) {
        let (spare, open) = (std::mem::take(&mut self.open_spare), std::mem::take(&mut self.open));
        for open in spare.into_iter().chain(open) {
            match open.member.choose(quote).filter(|choice| open.member.is_sure(*choice, span)) {
                Some(choice) => self.add(&open.member, choice),
                None if open.member.has_spare(span) => self.open_spare.push(open),
                None => self.open.push(open),
            }
        }
    }

    /// Members with time to spare whose speeds are the same buy the same: each kind of them counts once.
    pub(super) fn merge(&mut self) {
        let order = |a: &Open<K>, b: &Open<K>| {
            let pairs = a.member.speed.iter().zip(&b.member.speed);
            pairs.map(|(a, b)| a.total_cmp(b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        };
        self.open_spare.sort_by(order);
        self.open_spare.dedup_by(|next, kept| {
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
    fn spending(&self, place: &Place<K>, ways: &mut Vec<Way>) -> Spending<K> {
        let mut sum = Spending::NONE;
        for open in &self.open_spare {
            open.spend_spare(place, &mut sum);
        }
        for open in &self.open {
            open.spend(place, ways, &mut sum);
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
    pub(super) fn step(&self, place: &Place<K>, ways: &mut Vec<Way>) -> Option<Step<K>> {
        let mut spending = self.spending(place, ways);
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
