//! The best vertex of a block at given prices and levels, and how far it stays the best.
//!
//! With prices π of the linking rows and levels t, a block is a program of its own: min q·x, A x + s = r, x, s ≥ 0,
//! where q = c + Cᵀπ and r = b − G t. With two rows a vertex is a pair of its columns and slacks: there are few, and
//! eight blocks try them side by side. Which vertex is feasible depends on t alone, which of them is best on π, and
//! both linearly: so the ratio of what is left to what a box around (π, t) can take of it says how many times that
//! box the vertex stays the best in.

use crate::solver::structured::lane::{LANES, Lane};
use crate::solver::structured::linking::Linking;
use crate::solver::structured::side::Kind;
use crate::solver::structured::tile::Tile;

/// A basis whose determinant is below this part of its terms is none.
const SINGULAR: f64 = 1e-12;
/// A column may be negative by this much: rows of a block are in units near one.
const FEASIBLE: f64 = 1e-13;
/// A reduced cost above this part of what it is made of is positive, whatever was rounded.
const SURE: f64 = 1e-9;

/// Where vertices are wanted, and the half widths of the box around it.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// Prices of the linking rows, levels of the linking columns.
    pub(super) price: Vec<f64>,
    pub(super) level: Vec<f64>,
    /// By how much they may move.
    pub(super) price_box: Vec<f64>,
    pub(super) level_box: Vec<f64>,
}

/// A box after a move is at least this part as wide, for what has moved, as the move was for what moved most.
const LEAST_MOVE: f64 = 0.5;
/// How well a solve within a box finds what it is to find, as a part of the box.
const BOX_FOUND: f64 = 0.03;
/// Prices below this part of the largest are as uncertain as one of that size.
const PRICE_MIN: f64 = 0.05;
/// The same of levels, absolutely: they are in units near one.
const LEVEL_MIN: f64 = 1e-4;
/// A price this small may as well be none: costs and rows are in units near one.
const PRICE_NONE: f64 = 1e-5;
/// Prices at which blocks take as little as they can, and that cost less than is noticed.
const PRICE_LEAST: f64 = 1e-9;
/// Where a price is further than this part of a box from its edge it is inside.
const INSIDE: f64 = 0.01;

impl Place {
    /// A place of which nothing else is known: a box as wide as the numbers are large.
    pub(super) fn around(price: Vec<f64>, level: Vec<f64>) -> Self {
        let (price_box, level_box) = (price_sizes(&price), level_sizes(&level));
        Self { price, level, price_box, level_box }
    }

    /// A place without a box.
    pub(super) fn exactly(price: Vec<f64>, level: Vec<f64>) -> Self {
        let (price_box, level_box) = (vec![0.0; price.len()], vec![0.0; level.len()]);
        Self { price, level, price_box, level_box }
    }

    /// Is nothing that is shared scarce?
    pub(super) fn is_priceless(&self) -> bool {
        self.price.iter().all(|price| price.abs() < PRICE_NONE)
    }

    /// The place where what is shared costs next to nothing, and so every block takes as little of it as it can.
    pub(super) fn priceless(&self) -> Self {
        let (price, price_box) = (vec![PRICE_LEAST; self.price.len()], vec![0.0; self.price.len()]);
        Self { price, price_box, ..self.clone() }
    }

    /// Another place, found within a box of `theta` times this size: as uncertain as that box allows, and `astray`
    /// times as the way there is long.
    pub(super) fn moved(&self, price: &[f64], level: &[f64], theta: f64, astray: f64) -> Self {
        let by = |new: &[f64], old: &[f64], width: &[f64]| -> Vec<f64> {
            let moves = new.iter().zip(old).map(|(new, old)| (new - old).abs());
            moves.zip(width).map(|(by, width)| astray * by + BOX_FOUND * theta * width).collect()
        };
        let mut price_box = by(price, &self.price, &self.price_box);
        let mut level_box = by(level, &self.level, &self.level_box);
        let (prices, levels) = (price_sizes(price), level_sizes(level));
        let part = |moves: &[f64], sizes: &[f64]| {
            moves.iter().zip(sizes).fold(0.0_f64, |most, (by, size)| most.max(by / size))
        };
        let most = LEAST_MOVE * part(&price_box, &prices).max(part(&level_box, &levels)).max(1e-9);
        price_box.iter_mut().zip(&prices).for_each(|(by, size)| *by += most * size);
        level_box.iter_mut().zip(&levels).for_each(|(by, size)| *by += most * size);
        Self { price: price.to_vec(), level: level.to_vec(), price_box, level_box }
    }

    /// The ends of a row's price in a box of `theta` times this size.
    pub(super) fn edges(&self, kind: Kind, row: usize, theta: f64) -> (f64, f64) {
        let (price, width) = (self.price[row], theta * self.price_box[row]);
        let low = price - width;
        let free = kind != Kind::Equal && (low <= 0.0 || price < PRICE_NONE);
        (if free { 0.0 } else { low }, price + width)
    }

    /// The ends of a level in that box.
    pub(super) fn level_edges(&self, t: usize, theta: f64) -> (f64, f64) {
        let (level, width) = (self.level[t], theta * self.level_box[t]);
        (level - width, level + width)
    }

    /// Are prices and levels inside that box, not at its edges?
    pub(super) fn is_inside(&self, linking: &Linking, end: &Linking, theta: f64) -> bool {
        let prices = end.price.iter().enumerate().all(|(row, price)| {
            let (low, high) = self.edges(linking.kinds[row], row, theta);
            let margin = INSIDE * (high - low);
            let above = *price > low + margin || linking.kinds[row] != Kind::Equal && low <= 0.0;
            above && *price < high - margin
        });
        let levels = end.level.iter().enumerate().all(|(t, level)| {
            let (low, high) = self.level_edges(t, theta);
            let margin = INSIDE * (high - low);
            (*level > low + margin || low <= linking.lower[t])
                && (*level < high - margin || high >= linking.upper[t])
        });
        prices && levels
    }
}

fn price_sizes(price: &[f64]) -> Vec<f64> {
    let most = price.iter().fold(1e-12_f64, |most, price| most.max(price.abs()));
    price.iter().map(|price| price.abs() + PRICE_MIN * most).collect()
}

fn level_sizes(level: &[f64]) -> Vec<f64> {
    level.iter().map(|level| level.abs() + LEVEL_MIN).collect()
}

/// The best vertices of eight blocks.
#[derive(Debug)]
pub(super) struct Vertices<const K: usize> {
    /// The columns' values.
    pub(super) x: [Lane; K],
    /// What columns cost at the prices.
    pub(super) q: [Lane; K],
    /// Duals of the rows.
    pub(super) y: [Lane; 2],
    /// dx/dr: `[column][row]`.
    pub(super) by_bound: [[Lane; 2]; K],
    /// The basic columns or slacks, and their derivatives: `[row][basic]`.
    pub(super) basic: [Lane; 2],
    pub(super) basic_by_bound: [[Lane; 2]; 2],
    /// How many times the box leaves the vertex the best one; negative where it is not, or where there is none.
    pub(super) distance: Lane,
    /// Is there a feasible vertex?
    pub(super) exists: [bool; LANES],
}

/// What eight blocks do at prices and levels.
#[derive(Debug)]
pub(super) struct Reply<const K: usize> {
    /// The columns' values.
    pub(super) x: [Lane; K],
    /// What columns cost at the prices.
    pub(super) q: [Lane; K],
    /// Duals of the rows.
    pub(super) y: [Lane; 2],
    /// Is there a feasible vertex?
    pub(super) exists: [bool; LANES],
}

/// A column or slack that may be basic: its coefficients, its cost, and by how much the box may change that.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    a: Lane,
    v: Lane,
    cost: Lane,
    change: Lane,
}

/// The slacks of the two rows.
const SLACKS: [Candidate; 2] = [slack(Lane::ONE, Lane::ZERO), slack(Lane::ZERO, Lane::ONE)];

const fn slack(a: Lane, v: Lane) -> Candidate {
    Candidate { a, v, cost: Lane::ZERO, change: Lane::ZERO }
}

/// The best pair so far of each lane: its value, and positions among the candidates.
#[derive(Clone, Copy, Debug)]
struct Best {
    value: Lane,
    position: [Lane; 2],
}

/// Positions among the candidates, block by block: columns, then the slacks of the rows.
pub(super) type Positions = [[u8; LANES]; 2];

/// No positions yet.
pub(super) const UNKNOWN: Positions = [[u8::MAX; LANES]; 2];

/// A pair of candidates, and where it puts a block.
#[derive(Clone, Copy, Debug)]
struct Basis {
    of: [Candidate; 2],
    position: Positions,
    /// Is it a feasible vertex?
    exists: [bool; LANES],
    /// 1 / determinant.
    inverse: Lane,
    x: [Lane; 2],
}

#[inline]
fn select(mask: [bool; LANES], yes: Lane, no: Lane) -> Lane {
    Lane(std::array::from_fn(|i| if mask[i] { yes.0[i] } else { no.0[i] }))
}

#[inline]
fn is(position: [u8; LANES], at: usize) -> [bool; LANES] {
    position.map(|position| usize::from(position) == at)
}

/// How many times `change` leaves a value non-negative.
#[inline]
fn ratio(value: Lane, change: Lane) -> Lane {
    Lane(std::array::from_fn(|i| {
        let (value, change) = (value.0[i], change.0[i]);
        let unmoved = if value >= 0.0 { f64::INFINITY } else { -1.0 };
        if change > 0.0 { value / change } else { unmoved }
    }))
}

impl Best {
    /// Tries a pair.
    #[inline]
    fn attempt(&mut self, (p, q): (usize, usize), (one, other): (&Candidate, &Candidate), r: [Lane; 2]) {
        let (left, right) = (one.a * other.v, other.a * one.v);
        let det = left - right;
        let inverse = Lane::ONE / det;
        let x = (r[0] * other.v - r[1] * other.a) * inverse;
        let w = (one.a * r[1] - one.v * r[0]) * inverse;
        let value = one.cost * x + other.cost * w;
        let size = left.abs() + right.abs();
        #[expect(clippy::needless_bitwise_bool, reason = "lazy operators would branch lane by lane")]
        let taken: [bool; LANES] = std::array::from_fn(|i| {
            (det.0[i].abs() > SINGULAR * size.0[i])
                & (x.0[i] >= -FEASIBLE)
                & (w.0[i] >= -FEASIBLE)
                & (value.0[i] < self.value.0[i])
        });
        self.value = select(taken, value, self.value);
        self.position[0] = select(taken, Lane::all(p as f64), self.position[0]);
        self.position[1] = select(taken, Lane::all(q as f64), self.position[1]);
    }
}

impl Basis {
    /// The candidates at these positions.
    #[inline]
    fn of<const K: usize>(
        position: Positions,
        exists: [bool; LANES],
        columns: &[Candidate; K],
        r: [Lane; 2],
    ) -> Self {
        let of = position.map(|position| {
            let lanes: [[f64; 4]; LANES] = std::array::from_fn(|i| {
                let at = usize::from(position[i]);
                let candidate = if at < K { &columns[at] } else { &SLACKS[(at - K) & 1] };
                [candidate.a, candidate.v, candidate.cost, candidate.change].map(|lane| lane.0[i])
            });
            let field = |field: usize| Lane(lanes.map(|lane| lane[field]));
            Candidate { a: field(0), v: field(1), cost: field(2), change: field(3) }
        });
        let [one, other] = &of;
        let inverse = Lane::ONE / (one.a * other.v - other.a * one.v);
        let x = (r[0] * other.v - r[1] * other.a) * inverse;
        let w = (one.a * r[1] - one.v * r[0]) * inverse;
        Self { of, position, exists, inverse, x: [x, w] }
    }

    /// Does each block's pair cost less than any other, beyond doubt?
    #[inline]
    fn is_best<const K: usize>(&self, kinds: [Kind; 2], columns: &[Candidate; K]) -> bool {
        let y = self.duals();
        let mut best = [true; LANES];
        #[expect(clippy::needless_bitwise_bool, reason = "lazy operators would branch lane by lane")]
        let mut asked = |at: usize, cost: Lane, size: Lane| {
            let [one, other] = self.position.map(|position| is(position, at));
            for (i, best) in best.iter_mut().enumerate() {
                *best &= one[i] | other[i] | (cost.0[i] > SURE * size.0[i]);
            }
        };
        for (at, column) in columns.iter().enumerate() {
            let (first, second) = (column.a * y[0], column.v * y[1]);
            let size = column.cost.abs() + first.abs() + second.abs();
            asked(at, column.cost + first + second, size);
        }
        for (row, _) in kinds.iter().enumerate().filter(|(_, kind)| **kind != Kind::Equal) {
            asked(K + row, y[row], y[0].abs() + y[1].abs());
        }
        let feasible = |x: Lane| x.0.iter().all(|x| *x >= -FEASIBLE);
        best == [true; LANES] && self.x.into_iter().all(feasible)
    }

    /// Duals of the rows.
    #[inline]
    fn duals(&self) -> [Lane; 2] {
        let [one, other] = &self.of;
        [
            (other.cost * one.v - one.cost * other.v) * self.inverse,
            (other.a * one.cost - one.a * other.cost) * self.inverse,
        ]
    }

    /// Coordinates of a column in the basis.
    #[inline]
    fn coordinates(&self, a: Lane, v: Lane) -> [Lane; 2] {
        let [one, other] = &self.of;
        [(a * other.v - other.a * v) * self.inverse, (one.a * v - one.v * a) * self.inverse]
    }
}

impl Tile {
    /// The columns of a chunk, with their costs at a place's prices.
    #[inline]
    fn candidates<const K: usize>(&self, chunk: usize, place: &Place) -> [Candidate; K] {
        let at = |start: usize| self.coefficients[start];
        let mut columns: [Candidate; K] = std::array::from_fn(|j| Candidate {
            a: at(chunk * 2 * K + j),
            v: at(chunk * 2 * K + K + j),
            cost: self.cost[chunk * K + j],
            change: Lane::ZERO,
        });
        let entries = self.shape.entries.len();
        for (e, column) in self.shape.entries.iter().enumerate() {
            let (price, width) = if let Some(rows) = &self.uniform {
                let row = rows[e] as usize;
                (Lane::all(place.price[row]), Lane::all(place.price_box[row]))
            } else {
                let at = |of: &[f64]| Lane(self.links[chunk * entries + e].map(|row| of[row as usize]));
                (at(&place.price), at(&place.price_box))
            };
            let value = self.link_values[chunk * entries + e];
            let candidate = &mut columns[*column as usize];
            candidate.cost += value * price;
            candidate.change += value.abs() * width;
        }
        columns
    }

    /// What a chunk's rows leave at a place's levels, and by how much its box may change that.
    #[inline]
    fn rest(&self, chunk: usize, place: &Place) -> ([Lane; 2], [Lane; 2]) {
        let mut r = [self.bounds[chunk * 2], self.bounds[chunk * 2 + 1]];
        let mut r_change = [Lane::ZERO; 2];
        let levels = &self.level_values[chunk * self.shape.levels.len()..];
        for ((row, column), value) in self.shape.levels.iter().zip(levels) {
            let (row, column) = (*row as usize, *column as usize);
            r[row] = r[row] - *value * place.level[column];
            r_change[row] += value.abs() * place.level_box[column];
        }
        (r, r_change)
    }

    /// The best pair of columns and slacks.
    #[inline]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positions are small")]
    fn best<const K: usize>(&self, columns: &[Candidate; K], r: [Lane; 2]) -> Basis {
        let has_slack = self.kinds.map(|kind| kind != Kind::Equal);
        let none = [Lane::all(K as f64), Lane::all(K as f64 + 1.0)];
        let mut best = Best { value: Lane::all(f64::INFINITY), position: none };
        for (p, one) in columns.iter().enumerate() {
            for (q, other) in columns.iter().enumerate().skip(p + 1) {
                best.attempt((p, q), (one, other), r);
            }
            for (row, other) in SLACKS.iter().enumerate().filter(|(row, _)| has_slack[*row]) {
                best.attempt((p, K + row), (one, other), r);
            }
        }
        if has_slack == [true; 2] {
            best.attempt((K, K + 1), (&SLACKS[0], &SLACKS[1]), r);
        }
        let position = best.position.map(|position| position.0.map(|position| position as u8));
        Basis::of(position, best.value.0.map(f64::is_finite), columns, r)
    }

    /// The best vertices of a chunk's blocks.
    #[inline]
    pub(super) fn vertices<const K: usize>(&self, chunk: usize, place: &Place) -> Vertices<K> {
        let columns = self.candidates::<K>(chunk, place);
        let (r, r_change) = self.rest(chunk, place);
        self.described(&columns, &self.best(&columns, r), r_change)
    }

    /// The same without how far they stay the best. What is best is tried first where it was best `before`: as prices
    /// settle most blocks stay where they are.
    #[inline]
    pub(super) fn reply<const K: usize>(
        &self,
        chunk: usize,
        place: &Place,
        before: &mut Positions,
    ) -> Reply<K> {
        let columns = self.candidates::<K>(chunk, place);
        let r = self.rest(chunk, place).0;
        let again = (*before != UNKNOWN).then(|| Basis::of(*before, [true; LANES], &columns, r));
        let again = again.filter(|basis| basis.is_best(self.kinds, &columns));
        let basis = again.unwrap_or_else(|| self.best(&columns, r));
        *before = if basis.exists == [true; LANES] { basis.position } else { UNKNOWN };
        let mut x = [Lane::ZERO; K];
        for (position, value) in basis.position.iter().zip(basis.x) {
            for (lane, at) in position.iter().enumerate().filter(|(_, at)| usize::from(**at) < K) {
                x[usize::from(*at)].0[lane] = value.0[lane];
            }
        }
        let q = std::array::from_fn(|j| columns[j].cost);
        Reply { x, q, y: basis.duals(), exists: basis.exists }
    }

    #[inline]
    fn described<const K: usize>(
        &self,
        columns: &[Candidate; K],
        basis: &Basis,
        r_change: [Lane; 2],
    ) -> Vertices<K> {
        let [one, other] = &basis.of;
        let y = basis.duals();
        let rows = [basis.coordinates(Lane::ONE, Lane::ZERO), basis.coordinates(Lane::ZERO, Lane::ONE)];
        let infinite = Lane::all(f64::INFINITY);
        let mut distance = infinite;
        for (side, x) in basis.x.into_iter().enumerate() {
            let change = rows.iter().zip(r_change).map(|(by, change)| by[side].abs() * change);
            distance = distance.min(ratio(x, change.fold(Lane::ZERO, |sum, change| sum + change)));
        }
        let change = |own: Lane, [first, second]: [Lane; 2]| {
            own + first.abs() * one.change + second.abs() * other.change
        };
        let mut found = Vertices {
            x: [Lane::ZERO; K],
            q: std::array::from_fn(|j| columns[j].cost),
            y,
            by_bound: [[Lane::ZERO; 2]; K],
            basic: basis.x,
            basic_by_bound: rows,
            distance,
            exists: basis.exists,
        };
        for (j, column) in columns.iter().enumerate() {
            let (first, second) = (is(basis.position[0], j), is(basis.position[1], j));
            let pick = |of: [Lane; 2]| select(first, of[0], select(second, of[1], Lane::ZERO));
            let cost = column.cost + column.a * y[0] + column.v * y[1];
            let away = ratio(cost, change(column.change, basis.coordinates(column.a, column.v)));
            let away = select(first, infinite, select(second, infinite, away));
            found.distance = found.distance.min(away);
            found.x[j] = pick(basis.x);
            found.by_bound[j] = [pick(rows[0]), pick(rows[1])];
        }
        for row in (0..2).filter(|row| self.kinds[*row] != Kind::Equal) {
            let at = K + row;
            let (first, second) = (is(basis.position[0], at), is(basis.position[1], at));
            let away = ratio(y[row], change(Lane::ZERO, rows[row]));
            let away = select(first, infinite, select(second, infinite, away));
            found.distance = found.distance.min(away);
        }
        found.distance = select(found.exists, found.distance, Lane::all(-1.0));
        found
    }
}
