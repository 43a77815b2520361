//! A survey: the best vertex of every block of some tiles, what all of them take and cost together, and how far each
//! is from giving way to another.

use crate::solver::structured::lane::{LANES, Lane};
use crate::solver::structured::tile::Tile;
use crate::solver::structured::vertex::{Place, Vertices};

/// What a column below zero counts as, were it cost.
const OUTSIDE: f64 = 1e3;

/// What blocks at their vertices take of linking rows and cost, as affine functions of the levels around a place.
#[derive(Clone, Debug)]
pub(super) struct Aggregate {
    /// C x: [L]
    pub(super) usage: Vec<f64>,
    /// d C x / dt: [L × T]
    pub(super) usage_slope: Vec<f64>,
    /// c x
    pub(super) cost: f64,
    /// d c x / dt: [T]
    pub(super) cost_slope: Vec<f64>,
}

impl Aggregate {
    pub(super) fn zero(rows: usize, columns: usize) -> Self {
        Self {
            usage: vec![0.0; rows],
            usage_slope: vec![0.0; rows * columns],
            cost: 0.0,
            cost_slope: vec![0.0; columns],
        }
    }

    fn add(&mut self, other: &Self) {
        let lists = [
            (&mut self.usage, &other.usage),
            (&mut self.usage_slope, &other.usage_slope),
            (&mut self.cost_slope, &other.cost_slope),
        ];
        for (list, other) in lists {
            list.iter_mut().zip(other).for_each(|(sum, other)| *sum += other);
        }
        self.cost += other.cost;
    }

    /// Adds `weight` times what the blocks of a chunk for which `mask` is set take.
    fn add_chunk<const K: usize>(
        &mut self,
        tile: &Tile,
        chunk: usize,
        found: &Vertices<K>,
        (mask, weight): ([bool; LANES], f64),
    ) {
        let (entries, levels) = (&tile.shape.entries, &tile.shape.levels);
        let n_columns = self.cost_slope.len();
        let of_levels = &tile.level_values[chunk * levels.len()..];
        let masked = |lanes: [f64; LANES]| -> f64 {
            let kept = lanes.into_iter().zip(mask).map(|(value, kept)| if kept { value } else { 0.0 });
            weight * kept.sum::<f64>()
        };
        for j in 0..K {
            let cost = tile.cost[chunk * K + j];
            self.cost += masked((cost * found.x[j]).0);
            for ((row, column), value) in levels.iter().zip(of_levels) {
                let slope = -(found.by_bound[j][*row as usize] * *value);
                self.cost_slope[*column as usize] += masked((cost * slope).0);
            }
        }
        for (e, column) in entries.iter().enumerate() {
            let j = *column as usize;
            let value = tile.link_values[chunk * entries.len() + e];
            let mut add = |lanes: [f64; LANES], place: &dyn Fn(usize, f64, &mut Self)| {
                if let Some(rows) = &tile.uniform {
                    return place(rows[e] as usize, masked(lanes), self);
                }
                let rows = tile.links[chunk * entries.len() + e];
                for lane in (0..LANES).filter(|lane| mask[*lane]) {
                    place(rows[lane] as usize, weight * lanes[lane], self);
                }
            };
            add((value * found.x[j]).0, &|row, sum, all| all.usage[row] += sum);
            for ((row, column), of_level) in levels.iter().zip(of_levels) {
                let slope = -(found.by_bound[j][*row as usize] * *of_level);
                let column = *column as usize;
                add((value * slope).0, &|row, sum, all| all.usage_slope[row * n_columns + column] += sum);
            }
        }
    }
}

/// The survey of some tiles.
#[derive(Debug)]
pub(super) struct Survey {
    /// How many times its box each block's vertex stays the best in: by tile, by block.
    pub(super) distance: Vec<Vec<f64>>,
    /// What all blocks that have a vertex take together.
    pub(super) all: Aggregate,
}

impl Survey {
    pub(super) fn of(tiles: &[Tile], place: &Place) -> Self {
        let mut all = Aggregate::zero(place.price.len(), place.level.len());
        let mut distance = Vec::with_capacity(tiles.len());
        for tile in tiles {
            let mut own = Aggregate::zero(place.price.len(), place.level.len());
            distance.push(by_columns!(tile, survey_of(place, &mut own)));
            all.add(&own);
        }
        Self { distance, all }
    }

    /// The distance that `n` blocks at least do not exceed.
    pub(super) fn nearest(&self, n: usize) -> f64 {
        let mut all: Vec<f64> = self.distance.iter().flatten().copied().collect();
        let at = n.min(all.len()).saturating_sub(1);
        *all.select_nth_unstable_by(at, f64::total_cmp).1
    }
}

impl Tile {
    fn survey_of<const K: usize>(&self, place: &Place, all: &mut Aggregate) -> Vec<f64> {
        let mut distance = Vec::with_capacity(self.n_chunks * LANES);
        for chunk in 0..self.n_chunks {
            let found = self.vertices::<K>(chunk, place);
            all.add_chunk(self, chunk, &found, (self.present(chunk, found.exists), 1.0));
            distance.extend(found.distance.0);
        }
        distance.truncate(self.blocks.len());
        distance
    }

    /// Those of the lanes that are blocks, not what fills a chunk.
    fn present(&self, chunk: usize, mask: [bool; LANES]) -> [bool; LANES] {
        std::array::from_fn(|lane| mask[lane] && chunk * LANES + lane < self.blocks.len())
    }

    /// Takes blocks (positions, ascending) out of an aggregate.
    pub(super) fn take_out(&self, place: &Place, positions: &[u32], all: &mut Aggregate) {
        by_columns!(self, take_out_of(place, positions, all));
    }

    fn take_out_of<const K: usize>(&self, place: &Place, positions: &[u32], all: &mut Aggregate) {
        let of = |position: &u32| *position as usize / LANES;
        for together in positions.chunk_by(|one, other| of(one) == of(other)) {
            let chunk = of(&together[0]);
            let found = self.vertices::<K>(chunk, place);
            let mut mask = [false; LANES];
            for position in together {
                let lane = *position as usize % LANES;
                mask[lane] = found.exists[lane];
            }
            all.add_chunk(self, chunk, &found, (mask, -1.0));
        }
    }

    /// Puts every block at the vertex that is best at `place`, moved to the levels of `end`, with the duals of the one
    /// that is best there. Gives what this costs more than the best would: by block.
    pub(super) fn settle(&mut self, place: &Place, end: &Place) -> Vec<f64> {
        by_columns!(self, settle_of(place, end))
    }

    fn settle_of<const K: usize>(&mut self, place: &Place, end: &Place) -> Vec<f64> {
        self.open();
        let mut excess = Vec::with_capacity(self.n_chunks * LANES);
        for chunk in 0..self.n_chunks {
            let (mut found, best) = (self.vertices::<K>(chunk, place), self.vertices::<K>(chunk, end));
            let levels = &self.level_values[chunk * self.shape.levels.len()..];
            for ((row, t), value) in self.shape.levels.iter().zip(levels) {
                let (row, by) = (*row as usize, *value * (place.level[*t as usize] - end.level[*t as usize]));
                for (x, by_bound) in found.x.iter_mut().zip(&found.by_bound) {
                    *x += by_bound[row] * by;
                }
                for (x, by_bound) in found.basic.iter_mut().zip(found.basic_by_bound[row]) {
                    *x += by_bound * by;
                }
            }
            let start = chunk * (K + 2);
            let mut more = Lane::ZERO;
            for j in 0..K {
                more += best.q[j] * (found.x[j] - best.x[j]);
                self.primal[start + j] = found.x[j];
            }
            for x in found.basic {
                more = more.max(-x * OUTSIDE);
            }
            self.dual[start + K..start + K + 2].copy_from_slice(&best.y);
            excess.extend(more.0);
        }
        excess.truncate(self.blocks.len());
        excess
    }

    /// Spreads blocks evenly, whatever their order: by what they are made of.
    pub(super) fn hash(&self, position: usize) -> u64 {
        let (chunk, lane) = (position / LANES, position % LANES);
        let k = self.shape.k;
        let lists = [
            (&self.coefficients, 2 * k),
            (&self.cost, k),
            (&self.link_values, self.shape.entries.len()),
            (&self.level_values, self.shape.levels.len()),
            (&self.bounds, 2),
        ];
        let mut word = 0;
        for (list, stride) in lists {
            for value in &list[chunk * stride..(chunk + 1) * stride] {
                word = mixed(word ^ value.0[lane].to_bits());
            }
        }
        word
    }
}

/// The finalizer of SplitMix64 (Steele, Lea & Flood 2014).
fn mixed(word: u64) -> u64 {
    let word = word.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}
