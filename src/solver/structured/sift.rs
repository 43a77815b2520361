//! Sifting: all but a few blocks are at a vertex that the prices alone tell, so only the few are solved for.
//!
//! Of n blocks that share L rows and T columns, at an optimum about L + T are between two vertices; the others are
//! where the prices put them. Who they are is found in stages. The prices of a sample of the blocks (with as large a
//! part of the shared rows) are near those of all. Around them a box is laid: the blocks whose best vertex stays the
//! best all over it are fixed there, and what they take of the shared rows is an affine function of the shared
//! columns. What is left is a small program of the same kind, solved by the same interior-point method, with prices
//! and levels kept in the box (Marsten, Hogan & Blankenship 1975). Samples grow until they are all blocks; there,
//! boxes move until the prices are inside one, and a last program without bounds on prices gives the optimum, exact
//! because no fixed block could do better anywhere in its box.
//!
//! Ties are not broken: blocks with more than one best vertex are free, and share out as the interior-point method
//! does. Where too many are, or the prices do not settle, nothing is answered and the whole is solved instead.

use crate::solver::backend::Limits;
use crate::solver::structured::interior::{End, Interior};
use crate::solver::structured::linking::Linking;
use crate::solver::structured::restricted::Restriction;
use crate::solver::structured::side::Kind;
use crate::solver::structured::tile::Tile;
use crate::solver::structured::vertex::Place;
use crate::solver::timing::Stopwatch;

/// When a search for prices, or sifting, is worth while.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Of fewer blocks prices are not searched for.
    pub(super) priced_min: usize,
    /// Fewer blocks are solved for at once.
    pub(super) blocks_min: usize,
    /// Fewer are sifted only where nothing shared is scarce. Where a level is held at its optimum by scarce rows, prices
    /// have no end that a sample could tell: that is found out on small samples, which cost too much of few blocks.
    pub(super) scarce_min: usize,
    /// Samples of no more blocks than this are solved for at once.
    pub(super) sample_max: usize,
}

impl Sizes {
    pub(super) const USUAL: Self =
        Self { priced_min: 512, blocks_min: 512, scarce_min: LARGE, sample_max: 384 };
}

/// A sample of which more than one in so many blocks would be free is solved for at once.
const SAMPLE_WHOLE: usize = 4;
/// How much larger than a sample the next one is.
const SAMPLE_GROWTH: usize = 8;
/// Linking rows; a sample tells little of the prices of many.
const ROWS_MAX: usize = 16;
/// Boxes around the prices of all blocks, at most.
const ROUNDS_MAX: usize = 4;
const SAMPLE_ROUNDS_MAX: usize = 4;
/// Attempts at programs whose shared rows are not scarce.
const PRICELESS_MAX: usize = 3;
/// Where the prices are at the edge of a box, so many times as many blocks are free in the next.
const GROWTH: usize = 2;
/// Free blocks of a stage, by how many blocks a sample of the size before is off.
const FREE: f64 = 2.5;
/// At most so many tenths of fewer than `LARGE` blocks are free; a tenth of more.
const LARGE: usize = 8_192;
const FREE_MAX_TENTHS: usize = 4;
/// Free blocks of the last program, for each linking row and column.
const LAST: usize = 16;
/// What fixed blocks may cost more than at their best, as a part of the tolerance.
const EXCESS: f64 = 0.1;
/// The gap of the first sample, and the residuals at which a stage that is stuck is good enough to go on from.
const FIRST_GAP: f64 = 1e-3;
const STUCK: f64 = 1e-4;

/// The optimum: prices and levels, and the tiles' blocks are at it. None if the whole is better solved at once.
pub(super) fn sift(
    tiles: &mut [Tile],
    linking: &Linking,
    unit: f64,
    limits: &Limits,
    sizes: Sizes,
) -> Option<(Linking, u32)> {
    let n_blocks = count(tiles);
    let rows = linking.kinds.len();
    if n_blocks < sizes.blocks_min || rows == 0 || rows > ROWS_MAX || limits.iterations.is_some() {
        return None;
    }
    if tiles.iter().any(|tile| tile.kinds.contains(&Kind::Logarithm)) {
        return None;
    }
    let mut sifting = Sifting { linking, n_blocks, unit, limits, clock: Stopwatch::start(), iterations: 0 };
    let mut samples = samples(tiles, n_blocks, sizes.sample_max);
    let smallest = samples.pop()?;
    let mut place = sifting.first(&smallest)?;
    for _ in 0..PRICELESS_MAX {
        if !place.is_priceless() {
            break;
        }
        match sifting.end(tiles, &place.priceless(), sifting.last_free())? {
            Ok(linking) => return Some((linking, sifting.iterations)),
            Err(next) => place = next,
        }
    }
    if n_blocks < sizes.scarce_min {
        return None;
    }
    let mut before = count(&smallest);
    while let Some(sample) = samples.pop() {
        let size = count(&sample);
        let mut n_free = sifting.free(size, before);
        if n_free > size / SAMPLE_WHOLE {
            place = sifting.first(&sample)?;
            before = size;
            continue;
        }
        let mut settled = false;
        for _ in 0..SAMPLE_ROUNDS_MAX {
            let (next, inside) = sifting.boxed(&sample, &place, n_free, 1.0)?;
            place = next;
            settled = inside;
            if settled {
                break;
            }
            n_free = grown(n_free, size);
        }
        if !settled {
            return None;
        }
        before = size;
    }
    let mut n_free = sifting.free(n_blocks, before);
    for _ in 0..ROUNDS_MAX {
        let (next, inside) = sifting.boxed(tiles, &place, n_free, 0.0)?;
        place = next;
        if !inside {
            let more = grown(n_free, n_blocks);
            if more == n_free && n_blocks >= LARGE {
                return None;
            }
            n_free = more;
            continue;
        }
        match sifting.end(tiles, &place, n_free)? {
            Ok(linking) => return Some((linking, sifting.iterations)),
            Err(next) => place = next,
        }
        n_free = grown(n_free, n_blocks);
    }
    None
}

/// More free blocks, but not too many of so many.
fn grown(n_free: usize, size: usize) -> usize {
    (n_free * GROWTH).min(most_free(size))
}

/// How many blocks may be free: more help to settle, and cost more if they do not.
fn most_free(size: usize) -> usize {
    if size < LARGE { size / 10 * FREE_MAX_TENTHS } else { size / 10 }
}

/// About what the objective is: what the linking rows are worth at their prices, and the levels.
fn linking_value(end: &Linking, linking: &Linking) -> f64 {
    let rows = end.price.iter().zip(&linking.bounds).map(|(price, bound)| (price * bound).abs());
    let levels = end.level.iter().zip(&linking.cost).map(|(level, cost)| (level * cost).abs());
    rows.chain(levels).sum()
}

pub(super) fn count(tiles: &[Tile]) -> usize {
    tiles.iter().map(|tile| tile.blocks.len()).sum()
}

/// What is common to all stages.
struct Sifting<'a> {
    linking: &'a Linking,
    /// All blocks.
    n_blocks: usize,
    unit: f64,
    limits: &'a Limits,
    clock: Stopwatch,
    iterations: u32,
}

impl Sifting<'_> {
    /// How many blocks are free where a sample of `size` follows one of `before`.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive number of blocks"
    )]
    fn free(&self, size: usize, before: usize) -> usize {
        let off = FREE * size as f64 / (before as f64).sqrt();
        (off as usize).max(self.last_free()).min(most_free(size))
    }

    fn last_free(&self) -> usize {
        LAST * (self.linking.kinds.len() + self.linking.level.len())
    }

    fn restriction<'a>(&'a self, tiles: &'a [Tile]) -> Restriction<'a> {
        Restriction { tiles, linking: self.linking, n_blocks: self.n_blocks, unit: self.unit }
    }

    /// Follows a path to a gap; none if it does not come close to its end.
    fn follow(&mut self, interior: &mut Interior, tolerance: f64, stuck: f64) -> Option<()> {
        let time = self.limits.time.map(|time| time.saturating_sub(self.clock.elapsed()));
        interior.start();
        let end = interior.follow(&Limits { time, tolerance, ..*self.limits });
        self.iterations += interior.iterations;
        match end {
            End::Optimal => Some(()),
            End::Stuck { worst } if worst <= stuck => Some(()),
            _ => None,
        }
    }

    /// The prices of a sample by itself.
    fn first(&mut self, sample: &[Tile]) -> Option<Place> {
        let mut interior = self.restriction(sample).whole();
        self.follow(&mut interior, FIRST_GAP, STUCK)?;
        Some(Place::around(interior.linking.price, interior.linking.level))
    }

    /// The best prices within a box in which all but `n_free` blocks keep their vertices, and whether they are inside.
    fn boxed(&mut self, tiles: &[Tile], place: &Place, n_free: usize, astray: f64) -> Option<(Place, bool)> {
        let mut boxed = self.restriction(tiles).around(place, (n_free, n_free), true)?;
        let gap = boxed.gap;
        self.follow(&mut boxed.ended.interior, gap, STUCK)?;
        let linking = &boxed.ended.interior.linking;
        let inside = place.is_inside(self.linking, linking, boxed.theta);
        let astray = if inside { astray } else { 1.0 };
        Some((place.moved(&linking.price, &linking.level, boxed.theta, astray), inside))
    }

    /// The optimum if no block further away than the nearest gives way: all blocks are put there. Otherwise where
    /// to look for it.
    fn end(&mut self, tiles: &mut [Tile], place: &Place, most: usize) -> Option<Result<Linking, Place>> {
        let mut last = self.restriction(tiles).around(place, (self.last_free().min(most), most), false)?;
        let done = self.follow(&mut last.ended.interior, self.limits.tolerance, 0.0);
        if done.is_none() {
            return Some(Err(place.clone()));
        }
        let linking = &last.ended.interior.linking;
        let next = place.moved(&linking.price, &linking.level, last.theta, 1.0);
        let (linking, excess) = last.ended.settle(tiles, place);
        let value = linking_value(&linking, self.linking).max(self.unit);
        let enough = excess <= EXCESS * self.limits.tolerance * value;
        Some(if enough { Ok(linking) } else { Err(next) })
    }
}

/// Samples of the tiles' blocks, each of the one before: from the largest to the smallest.
pub(super) fn samples(tiles: &[Tile], n_blocks: usize, sample_max: usize) -> Vec<Vec<Tile>> {
    let mut samples: Vec<Vec<Tile>> = Vec::new();
    let (mut size, mut part) = (n_blocks, 1);
    while size > sample_max {
        part *= SAMPLE_GROWTH.min(size.div_ceil(sample_max)) as u64;
        let last = size;
        let next = sample(samples.last().map_or(tiles, Vec::as_slice), u64::MAX / part);
        size = count(&next);
        if size == 0 || size == last {
            // blocks that are all alike are all in a sample or none is
            return Vec::new();
        }
        samples.push(next);
    }
    samples
}

/// The blocks whose hash is at most `most`.
fn sample(tiles: &[Tile], most: u64) -> Vec<Tile> {
    let mut sample = Vec::new();
    for tile in tiles {
        let mut taken = Tile::like(tile);
        for position in 0..tile.blocks.len() {
            if tile.hash(position) <= most {
                taken.push_from(tile, position, 1.0);
            }
        }
        if !taken.blocks.is_empty() {
            sample.push(taken);
        }
    }
    sample
}
