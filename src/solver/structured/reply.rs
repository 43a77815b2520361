//! What blocks do at given prices and levels, by group: one pass over the tiles.
//!
//! Groups are made of every so many chunks, so that each is much like the whole.

use crate::solver::structured::lane::{LANES, Lane};
use crate::solver::structured::side::Kind;
use crate::solver::structured::tile::Tile;
use crate::solver::structured::vertex::{Place, Positions, UNKNOWN};

/// What groups of blocks do.
#[derive(Clone, Debug)]
pub(super) struct Replies {
    /// c x: [groups]
    pub(super) cost: Vec<f64>,
    /// C x: [groups × L]
    pub(super) usage: Vec<f64>,
    /// What blocks cost at least, shared rows at their prices,
    pub(super) least: f64,
    /// and per unit more of the one level.
    pub(super) slope: f64,
}

impl Replies {
    /// Of blocks that do nothing.
    pub(super) fn nothing(groups: usize, rows: usize) -> Self {
        Self { cost: vec![0.0; groups], usage: vec![0.0; groups * rows], least: 0.0, slope: 0.0 }
    }

    /// The replies of all blocks; none if one has no feasible vertex. `before`: where they were the last time, chunk by
    /// chunk; nothing at first.
    pub(super) fn of(
        tiles: &[Tile],
        place: &Place,
        groups: usize,
        before: &mut Vec<Positions>,
    ) -> Option<Self> {
        before.resize(tiles.iter().map(|tile| tile.n_chunks).sum(), UNKNOWN);
        let rows = place.price.len();
        let mut all = Self::nothing(groups, rows);
        let mut first = 0;
        for tile in tiles {
            let before = &mut before[first..first + tile.n_chunks];
            by_columns!(tile, reply_of(place, first, &mut all, before))?;
            first += tile.n_chunks;
        }
        all.least = all.value(&place.price);
        Some(all)
    }

    /// Do all of them fit together?
    pub(super) fn fits(&self, room: &[f64]) -> bool {
        let used = |row: usize| self.usage.iter().skip(row).step_by(room.len()).sum::<f64>();
        room.iter().enumerate().all(|(row, room)| used(row) <= *room)
    }

    /// What all of them cost, shared rows at these prices.
    pub(super) fn value(&self, price: &[f64]) -> f64 {
        let usage = self.usage.iter().zip(price.iter().cycle()).map(|(usage, price)| usage * price);
        self.cost.iter().sum::<f64>() + usage.sum::<f64>()
    }
}

impl Tile {
    fn reply_of<const K: usize>(
        &self,
        place: &Place,
        first: usize,
        all: &mut Replies,
        before: &mut [Positions],
    ) -> Option<()> {
        let (groups, rows) = (all.cost.len(), place.price.len());
        let entries = self.shape.entries.len();
        for (chunk, before) in before.iter_mut().enumerate() {
            let reply = self.reply::<K>(chunk, place, before);
            if !reply.exists.iter().all(|exists| *exists) {
                return None;
            }
            let group = (first + chunk) % groups;
            let cost = &self.cost[chunk * K..(chunk + 1) * K];
            let cost = cost.iter().zip(&reply.x).fold(Lane::ZERO, |sum, (cost, x)| sum + *cost * *x);
            all.cost[group] += cost.sum();
            for (e, column) in self.shape.entries.iter().enumerate() {
                let usage = self.link_values[chunk * entries + e] * reply.x[*column as usize];
                if let Some(of) = &self.uniform {
                    all.usage[group * rows + of[e] as usize] += usage.sum();
                    continue;
                }
                for (row, usage) in self.links[chunk * entries + e].iter().zip(usage.0) {
                    all.usage[group * rows + *row as usize] += usage;
                }
            }
            let levels = &self.level_values[chunk * self.shape.levels.len()..];
            for ((row, _), value) in self.shape.levels.iter().zip(levels) {
                all.slope += (reply.y[*row as usize] * *value).sum();
            }
        }
        Some(())
    }

    /// Adds to the columns what the blocks do at a place, times the weight of their group; the tile's chunks begin
    /// with the one counted `first`.
    pub(super) fn mix(&mut self, place: &Place, first: usize, weights: &[f64]) {
        by_columns!(self, mix_of(place, first, weights));
    }

    fn mix_of<const K: usize>(&mut self, place: &Place, first: usize, weights: &[f64]) {
        for chunk in 0..self.n_chunks {
            let weight = weights[(first + chunk) % weights.len()];
            if weight == 0.0 {
                continue;
            }
            let reply = self.reply::<K>(chunk, place, &mut { UNKNOWN });
            let start = chunk * (K + 2);
            for (sum, x) in self.primal[start..start + K].iter_mut().zip(reply.x) {
                *sum += x * weight;
            }
        }
    }

    /// Sets the duals of the blocks' rows to those of their best vertices at a place. Gives by how much one has the
    /// wrong sign, or a reduced cost has, relative to what it is made of: a block without a best answer has.
    pub(super) fn set_duals(&mut self, place: &Place) -> f64 {
        by_columns!(self, set_duals_of(place))
    }

    fn set_duals_of<const K: usize>(&mut self, place: &Place) -> f64 {
        let mut worst = Lane::ZERO;
        for chunk in 0..self.n_chunks {
            let reply = self.reply::<K>(chunk, place, &mut { UNKNOWN });
            let of = |row: usize, j: usize| self.coefficients[chunk * 2 * K + row * K + j] * reply.y[row];
            for (j, q) in reply.q.into_iter().enumerate() {
                let (first, second) = (of(0, j), of(1, j));
                let size = q.abs() + first.abs() + second.abs();
                let wrong = -(q + first + second);
                worst = worst.max(wrong / (size + Lane::all(f64::MIN_POSITIVE)));
            }
            // (coefficients of a row are at most one)
            let size = reply.q.into_iter().fold(Lane::all(f64::MIN_POSITIVE), |size, q| size + q.abs());
            for row in (0..2).filter(|row| self.kinds[*row] == Kind::AtMost) {
                worst = worst.max(-reply.y[row] / (size + reply.y[1 - row].abs()));
            }
            let start = chunk * (K + 2) + K;
            self.dual[start..start + 2].copy_from_slice(&reply.y);
        }
        worst.largest()
    }

    /// Is nothing worth anything but the level, and is a smaller part of what a block does what it can do, of the same
    /// part of the level?
    pub(super) fn scales(&self) -> bool {
        let with_level = |row: usize| self.shape.levels.iter().any(|(of, _)| *of as usize == row);
        let scales = |row: usize| match self.kinds[row] {
            Kind::Absent => true,
            Kind::AtMost => {
                let mut bounds = self.bounds.iter().skip(row).step_by(2).flat_map(|lane| lane.0);
                if with_level(row) {
                    bounds.by_ref().take(self.blocks.len()).all(|bound| bound == 0.0)
                } else {
                    bounds.all(|bound| bound >= 0.0)
                }
            }
            Kind::Equal | Kind::Logarithm => false,
        };
        self.cost.iter().flat_map(|lane| lane.0).all(|cost| cost == 0.0) && scales(0) && scales(1)
    }

    /// The highest level that blocks leave one another, each by itself: infinite where their rows hold no level.
    pub(super) fn level_limit(&self) -> f64 {
        (0..self.blocks.len()).map(|position| self.limit_of(position).0).fold(f64::INFINITY, f64::min)
    }

    /// The level that a row asks of a block cannot be more than its other row leaves: by how much, and what a unit of
    /// the other row is worth in units of the first.
    fn limit_of(&self, position: usize) -> (f64, f64) {
        let [(row, _)] = self.shape.levels[..] else { return (f64::INFINITY, 0.0) };
        let (k, row) = (self.shape.k, row as usize);
        let (chunk, lane) = (position / LANES, position % LANES);
        let asked = self.level_values[chunk].0[lane];
        let of = |row: usize, j: usize| self.coefficients[chunk * 2 * k + row * k + j].0[lane];
        let worth = |j: usize| match (-of(row, j), of(1 - row, j)) {
            (gives, _) if gives <= 0.0 => 0.0,
            (_, takes) if takes <= 0.0 => f64::INFINITY,
            (gives, takes) => gives / takes,
        };
        let worth = (0..k).map(worth).fold(0.0, f64::max);
        let bound = |row: usize| self.bounds[chunk * 2 + row].0[lane];
        let limit = if asked > 0.0 { (bound(row) + worth * bound(1 - row)) / asked } else { f64::INFINITY };
        (limit, worth)
    }

    /// Gives the block that leaves the lowest level the duals that say so; `worth` is what a unit of the level is.
    pub(super) fn hold_level(&mut self, worth: f64) {
        let limit = |position: &usize| self.limit_of(*position).0;
        let least = (0..self.blocks.len()).min_by(|one, other| limit(one).total_cmp(&limit(other)));
        let (Some(position), [(row, _)]) = (least, &self.shape.levels[..]) else { return };
        let (chunk, lane, row) = (position / LANES, position % LANES, *row as usize);
        let dual = worth / self.level_values[chunk].0[lane];
        let other = dual * self.limit_of(position).1;
        let start = chunk * (self.shape.k + 2) + self.shape.k;
        self.dual[start + row].0[lane] = dual;
        self.dual[start + 1 - row].0[lane] = other;
    }
}
