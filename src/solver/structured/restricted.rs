//! The program that is left when all but a few blocks are fixed at their vertices.
//!
//! Costs and shared rows are multiplied so that the few blocks weigh what all do: prices and levels stay what they
//! are, duals of the blocks are multiplied too. A price is kept in a box by two columns of its row alone, one that
//! gives at the box's upper end and one that takes at its lower.

use crate::solver::structured::interior::Interior;
use crate::solver::structured::lane::LANES;
use crate::solver::structured::linking::Linking;
use crate::solver::structured::side::Kind;
use crate::solver::structured::structure::index;
use crate::solver::structured::survey::{Aggregate, Survey};
use crate::solver::structured::tile::{Gathered, Shape, Tile};
use crate::solver::structured::vertex::Place;

/// Free blocks that leave too little to fix, as a part of all.
const FREE_MAX: f64 = 0.5;
/// What a column that keeps a price in its box gives of its row at the start.
const GIVEN: f64 = 0.25;
/// The gap at which a boxed program ends, as a part of what its box can change.
const BOX_GAP: f64 = 3e-3;

/// Blocks of which most may be fixed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Restriction<'a> {
    /// A sample of the blocks, or all.
    pub(super) tiles: &'a [Tile],
    /// The linking rows and columns of all blocks.
    pub(super) linking: &'a Linking,
    /// All blocks.
    pub(super) n_blocks: usize,
    pub(super) unit: f64,
}

/// A program of few blocks, with a box.
#[derive(Debug)]
pub(super) struct Boxed {
    pub(super) ended: Ended,
    /// The box, in multiples of the place's.
    pub(super) theta: f64,
    /// The gap to which it is worth solving.
    pub(super) gap: f64,
}

/// A program of few blocks, and who they are.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) interior: Interior,
    /// The free blocks of each tile, ascending, as the interior's tiles of these have them.
    free: Vec<Vec<u32>>,
    /// What costs and shared rows are multiplied by.
    factor: f64,
}

impl Restriction<'_> {
    /// The part of all blocks that these are.
    fn part(&self) -> f64 {
        let own: usize = self.tiles.iter().map(|tile| tile.blocks.len()).sum();
        own as f64 / self.n_blocks as f64
    }

    /// None fixed.
    pub(super) fn whole(&self) -> Interior {
        let factor = self.part().recip();
        let copy = |tile: &Tile| {
            let mut all = Tile::like(tile);
            for position in 0..tile.blocks.len() {
                all.push_from(tile, position, factor);
            }
            all
        };
        let tiles = self.tiles.iter().map(copy).collect();
        Interior::of(tiles, Vec::new(), self.linking.clone(), self.unit, false)
    }

    /// All blocks fixed that keep their vertices in the place's box; those that do not even there are free, and `least`
    /// others, at most about `most`. The prices stay in the box if `bounded`. None if too many blocks are as near.
    pub(super) fn around(
        &self,
        place: &Place,
        (least, most): (usize, usize),
        bounded: bool,
    ) -> Option<Boxed> {
        let survey = Survey::of(self.tiles, place);
        let astray = survey.distance.iter().flatten().filter(|distance| **distance <= 0.0).count();
        let theta = survey.nearest(astray + most);
        let theta = if least < most { theta.min(survey.nearest(astray + least).max(1.0)) } else { theta };
        let mut fixed = survey.all;
        let mut free = Vec::with_capacity(self.tiles.len());
        for (tile, distance) in self.tiles.iter().zip(&survey.distance) {
            let near = (0..).zip(distance).filter(|(_, distance)| **distance <= theta);
            let near: Vec<u32> = near.map(|(position, _)| position).collect();
            tile.take_out(place, &near, &mut fixed);
            free.push(near);
        }
        let (count, all): (usize, usize) =
            (free.iter().map(Vec::len).sum(), survey.distance.iter().map(Vec::len).sum());
        if count as f64 > FREE_MAX * all as f64 || !(theta > 0.0 && theta.is_finite()) {
            return None;
        }
        let factor = self.n_blocks as f64 / count as f64;
        let (mut linking, offset) = self.left(&fixed, place, factor);
        let mut tiles = Vec::new();
        for (tile, free) in self.tiles.iter().zip(&free).filter(|(_, free)| !free.is_empty()) {
            let mut few = Tile::like(tile);
            for position in free {
                few.push_from(tile, *position as usize, factor);
            }
            tiles.push(few);
        }
        let mut widest = 0.0_f64;
        if bounded {
            let largest = |values: &[f64]| values.iter().fold(1e-12_f64, |most, value| most.max(value.abs()));
            widest = theta * largest(&place.price_box) / largest(&place.price);
            tiles.push(keepers(&linking, place, theta));
            for t in 0..linking.level.len() {
                let (low, high) = place.level_edges(t, theta);
                linking.lower[t] = linking.lower[t].max(low);
                linking.upper[t] = linking.upper[t].min(high);
                if linking.lower[t] >= linking.upper[t] {
                    return None;
                }
            }
        }
        let mut interior = Interior::of(tiles, Vec::new(), linking, self.unit * factor, false);
        interior.offset = offset;
        let gap = (10.0 * BOX_GAP * widest.min(1.0) / (factor * self.part())).clamp(1e-9, 1e-3);
        Some(Boxed { ended: Ended { interior, free, factor }, theta, gap })
    }

    /// What fixed blocks leave of the linking rows and columns, multiplied by `factor`, and what they cost.
    fn left(&self, fixed: &Aggregate, place: &Place, factor: f64) -> (Linking, f64) {
        let mut linking = self.linking.clone();
        let (part, columns) = (self.part(), place.level.len());
        let mut offset = fixed.cost;
        for (row, bound) in linking.bounds.iter_mut().enumerate() {
            *bound = part * *bound - fixed.usage[row];
            for t in 0..columns {
                let slope = fixed.usage_slope[row * columns + t];
                *bound += slope * place.level[t];
                let coefficient = &mut linking.coefficients[row * columns + t];
                *coefficient = factor * (part * *coefficient + slope);
            }
            *bound *= factor;
        }
        for (t, cost) in linking.cost.iter_mut().enumerate() {
            offset -= fixed.cost_slope[t] * place.level[t];
            *cost = factor * (part * *cost + fixed.cost_slope[t]);
        }
        (linking, factor * offset)
    }
}

/// The columns that keep prices in a box.
fn keepers(linking: &Linking, place: &Place, theta: f64) -> Tile {
    let shape = Shape { k: 1, kinds: Vec::new(), entries: vec![0], levels: Vec::new() };
    let mut tile = Tile::new(shape.clone(), None);
    for (row, kind) in linking.kinds.iter().enumerate() {
        if place.price_box[row] == 0.0 {
            continue;
        }
        let (low, high) = place.edges(*kind, row, theta);
        let size = GIVEN * linking.bounds[row].abs().max(1e-3);
        let mut keeper = |cost: f64, value: f64| {
            let gathered = Gathered {
                shape: shape.clone(),
                links: vec![index(row)],
                link_values: vec![value],
                cost: vec![cost],
                ..Gathered::default()
            };
            tile.push(u32::MAX, &gathered);
        };
        keeper(high * size, -size);
        if low != 0.0 || *kind == Kind::Equal {
            keeper(-low * size, size);
        }
    }
    tile
}

impl Ended {
    /// Puts the blocks of `tiles` where they end: those fixed at their vertices at `place`, the others where the
    /// path led. Gives prices and levels with the duals of the levels' bounds, and what fixed blocks would gain by
    /// another vertex.
    pub(super) fn settle(self, tiles: &mut [Tile], place: &Place) -> (Linking, f64) {
        let mut linking = self.interior.linking;
        let end = Place { price: linking.price.clone(), level: linking.level.clone(), ..place.clone() };
        let mut excess = 0.0;
        let mut few = self.interior.tiles.iter();
        for (tile, free) in tiles.iter_mut().zip(&self.free) {
            let mut own = tile.settle(place, &end);
            let stride = tile.shape.k + 2;
            let few = if free.is_empty() { None } else { few.next() };
            for (at, position) in free.iter().enumerate() {
                let position = *position as usize;
                own[position] = 0.0;
                for pair in 0..stride {
                    let (to, from) = (position / LANES * stride + pair, at / LANES * stride + pair);
                    let ended = few.map(|few| (few.primal[from].0[at % LANES], few.dual[from].0[at % LANES]));
                    let (primal, dual) = ended.unwrap_or_default();
                    tile.primal[to].0[position % LANES] = primal;
                    tile.dual[to].0[position % LANES] = dual / self.factor;
                }
            }
            excess += own.iter().map(|more| more.abs()).sum::<f64>();
        }
        for dual in linking.lower_dual.iter_mut().chain(&mut linking.upper_dual) {
            *dual /= self.factor;
        }
        (linking, excess)
    }
}
