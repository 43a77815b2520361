//! From a recognized program to batches, dense blocks and a linking system, and where the path starts.

use crate::solver::block_interior_point::block_batch::{
    BLOCKS_MAX, BlockBatch, COLUMNS_MAX, Gathered, Links, Shape,
};
use crate::solver::block_interior_point::dense::DenseBlock;
use crate::solver::block_interior_point::inequality::Kind;
use crate::solver::block_interior_point::interior::Interior;
use crate::solver::block_interior_point::linking::Linking;
use crate::solver::block_interior_point::scale::Scaled;
use crate::solver::block_interior_point::structure::index;
use crate::solver::lanes::F64x8;

/// Sets of linking rows per shape that get uniform batches of their own.
const UNIFORM_MAX: usize = 32;
/// Blocks below which a set of linking rows is not worth a batch of its own.
const UNIFORM_BLOCKS_MIN: usize = 32;
/// How much of a linking row the start uses.
const USED: f64 = 0.5;
/// Objectives below this part of what all blocks could have are judged absolutely.
const OBJECTIVE_MIN: f64 = 1e-9;
/// The gap at the start, against what all blocks could have.
const START_GAP: f64 = 10.0;
/// The shares of mu of linking rows together, against those of blocks.
const LINKING_SHARE: f64 = 0.1;
/// A start's slack is at least this part of what its row is made of.
const SLACK_MIN: f64 = 0.1;

/// Tiles of one shape in the same linking rows.
struct Group {
    shape: Shape,
    uniform: Option<Vec<u32>>,
    batches: Vec<BlockBatch>,
    n_blocks: usize,
}

impl Group {
    fn new(shape: &Shape, uniform: Option<&[u32]>) -> Self {
        Self { shape: shape.clone(), uniform: uniform.map(<[u32]>::to_vec), batches: Vec::new(), n_blocks: 0 }
    }

    fn push(&mut self, block: u32, gathered: &Gathered) {
        if self.n_blocks.is_multiple_of(BLOCKS_MAX) {
            self.batches.push(BlockBatch::new(self.shape.clone(), self.uniform.clone()));
        }
        self.n_blocks += 1;
        if let Some(batch) = self.batches.last_mut() {
            batch.push(block, gathered);
        }
    }
}

/// Every block, in a batch of its shape or by itself.
pub(super) fn blocks(scaled: &Scaled<'_>) -> (Vec<BlockBatch>, Vec<DenseBlock>) {
    let links = Links::of(scaled);
    let mut gathered = Gathered::default();
    let mut groups: Vec<Group> = Vec::new();
    let mut dense = Vec::new();
    let mut last = 0;
    for block in 0..scaled.structure.n_blocks() {
        gathered.read(scaled, &links, block);
        let position = index(block);
        if gathered.shape.k > COLUMNS_MAX || gathered.shape.kinds.len() > 2 {
            dense.push(DenseBlock::new(position, &gathered));
            continue;
        }
        last = place(&mut groups, last, &gathered);
        groups[last].push(position, &gathered);
    }
    (merged(groups, scaled, &links), dense)
}

/// An objective below this is judged absolutely.
pub(super) fn unit(scaled: &Scaled<'_>) -> f64 {
    let weights =
        (0..scaled.program.cones.len()).map(|cone| (scaled.weight(cone).0 * scaled.objective).abs());
    weights.fold(OBJECTIVE_MIN, f64::max)
}

/// The group of a block: the last one's, one found, or a new one.
fn place(groups: &mut Vec<Group>, last: usize, gathered: &Gathered) -> usize {
    let fits = |group: &Group| {
        group.shape == gathered.shape && group.uniform.as_ref().is_none_or(|rows| *rows == gathered.links)
    };
    if groups.get(last).is_some_and(fits) {
        return last;
    }
    if let Some(found) = groups.iter().position(fits) {
        return found;
    }
    let of_shape = groups.iter().filter(|group| group.shape == gathered.shape).count();
    let uniform = (of_shape < UNIFORM_MAX).then_some(&gathered.links[..]);
    groups.push(Group::new(&gathered.shape, uniform));
    groups.len() - 1
}

/// The batches of all groups, small ones of a shape put together.
fn merged(groups: Vec<Group>, scaled: &Scaled<'_>, links: &Links) -> Vec<BlockBatch> {
    let mut batches = Vec::new();
    let mut mixed: Vec<(Group, Vec<u32>)> = Vec::new();
    let shapes: Vec<Shape> = groups.iter().map(|group| group.shape.clone()).collect();
    for group in groups {
        let siblings = shapes.iter().filter(|shape| **shape == group.shape).count();
        if siblings == 1 || group.n_blocks >= UNIFORM_BLOCKS_MIN && group.uniform.is_some() {
            batches.extend(group.batches);
            continue;
        }
        let blocks = group.batches.iter().flat_map(|batch| batch.blocks.iter().copied());
        match mixed.iter_mut().find(|(other, _)| other.shape == group.shape) {
            Some((_, list)) => list.extend(blocks),
            None => mixed.push((Group::new(&group.shape, None), blocks.collect())),
        }
    }
    let mut gathered = Gathered::default();
    for (mut group, mut blocks) in mixed {
        blocks.sort_unstable();
        for block in blocks {
            gathered.read(scaled, links, block as usize);
            group.push(block, &gathered);
        }
        batches.extend(group.batches);
    }
    batches
}

impl Interior {
    /// Blocks that stand nowhere yet.
    pub(super) fn of(
        mut batches: Vec<BlockBatch>,
        dense: Vec<DenseBlock>,
        linking: Linking,
        unit: f64,
        parallel: bool,
    ) -> Self {
        let n_blocks = dense.len() + batches.iter().map(|batch| batch.blocks.len()).sum::<usize>();
        for batch in &mut batches {
            batch.open_steps(1.0 / n_blocks.max(1) as f64);
        }
        let logarithmic = |kinds: &[Kind]| kinds.contains(&Kind::Logarithm);
        let has_logarithms = batches.iter().any(|batch| logarithmic(&batch.kinds))
            || dense.iter().any(|block| logarithmic(&block.data().shape.kinds));
        let (shares, offset, iterations) = (1.0, 0.0, 0);
        Self { batches, dense, linking, shares, parallel, has_logarithms, unit, offset, iterations }
    }

    /// Starts well inside: shares that use part of their rows, a level that leaves slack, duals that make every
    /// product the same.
    pub(super) fn start(&mut self) {
        self.start_columns();
        let usage = self.usage();
        let crowded = usage.iter().zip(&self.linking.bounds).zip(&self.linking.kinds);
        let most = crowded
            .filter(|((_, bound), kind)| **bound > 0.0 && **kind == Kind::AtMost)
            .map(|((usage, bound), _)| usage / bound)
            .fold(0.0, f64::max);
        if most > USED {
            let factor = USED / most;
            for batch in &mut self.batches {
                batch.primal.iter_mut().for_each(|value| *value = *value * factor);
            }
            self.dense.iter_mut().flat_map(|block| &mut block.primal).for_each(|value| *value *= factor);
        }
        self.start_levels();
        let mu = self.share_out();
        self.start_slacks(mu);
        let usage = self.usage();
        let linking = &mut self.linking;
        let n = linking.level.len();
        for (row, usage) in usage.into_iter().enumerate() {
            let own: f64 = (0..n).map(|t| linking.coefficients[row * n + t] * linking.level[t]).sum();
            let free = linking.bounds[row] - usage - own;
            let least = SLACK_MIN * (linking.bounds[row].abs() + usage.abs()).max(1e-3);
            let equal = linking.kinds[row] == Kind::Equal;
            linking.slack[row] = if equal { 0.0 } else { free.max(least) };
            linking.price[row] = if equal { 0.0 } else { linking.share * mu / linking.slack[row] };
        }
        for t in 0..n {
            linking.lower_dual[t] = mu / (linking.level[t] - linking.lower[t]);
            linking.upper_dual[t] = mu / (linking.upper[t] - linking.level[t]);
        }
    }

    /// Each column at its part of what the rows of its block leave for it.
    fn start_columns(&mut self) {
        for batch in &mut self.batches {
            let k = batch.shape.k;
            for chunk in 0..batch.n_chunks {
                for j in 0..k {
                    let mut most = F64x8::ONE;
                    for row in (0..2).filter(|row| batch.kinds[*row] != Kind::Absent) {
                        let coefficient = batch.coefficients[chunk * 2 * k + row * k + j];
                        let bound = batch.bounds[chunk * 2 + row];
                        let limit = F64x8(std::array::from_fn(|i| part(coefficient.0[i], bound.0[i], k)));
                        most = if row == 0 { limit } else { most.min(limit) };
                    }
                    batch.primal[chunk * (k + 2) + j] =
                        F64x8(most.0.map(|value| if value.is_finite() { value } else { 1.0 }));
                }
            }
        }
        for block in &mut self.dense {
            let k = block.data().shape.k;
            for j in 0..k {
                let m = block.data().shape.kinds.len();
                let limits = (0..m)
                    .map(|row| part(block.data().coefficients[row * k + j], block.data().bounds[row], k));
                let most = limits.fold(f64::INFINITY, f64::min);
                block.primal[j] = if most.is_finite() { most } else { 1.0 };
            }
        }
    }

    /// C x.
    fn usage(&self) -> Vec<f64> {
        let mut usage = vec![0.0; self.linking.kinds.len()];
        for batch in &self.batches {
            let (k, entries) = (batch.shape.k, batch.shape.entries.len());
            for (position, _) in batch.blocks.iter().enumerate() {
                let (chunk, lane) = (position / 8, position % 8);
                for (e, column) in batch.shape.entries.iter().enumerate() {
                    let row = batch
                        .uniform
                        .as_ref()
                        .map_or_else(|| batch.links[chunk * entries + e][lane], |rows| rows[e]);
                    usage[row as usize] += batch.link_values[chunk * entries + e].0[lane]
                        * batch.primal[chunk * (k + 2) + *column as usize].0[lane];
                }
            }
        }
        for block in &self.dense {
            let data = block.data();
            for (column, (row, value)) in
                data.shape.entries.iter().zip(data.links.iter().zip(&data.link_values))
            {
                usage[*row as usize] += value * block.primal[*column as usize];
            }
        }
        usage
    }

    /// Levels that leave half of the room that the columns' start gives them.
    fn start_levels(&mut self) {
        let n = self.linking.level.len();
        let mut room = vec![(f64::NEG_INFINITY, f64::INFINITY); n];
        let mut narrow = |t: usize, coefficient: f64, free: f64| {
            let (low, high) = &mut room[t];
            if coefficient > 0.0 {
                *high = high.min(free / coefficient);
            } else if coefficient < 0.0 {
                *low = low.max(free / coefficient);
            }
        };
        for batch in &self.batches {
            let (k, levels) = (batch.shape.k, &batch.shape.levels);
            for position in 0..batch.blocks.len() {
                let (chunk, lane) = (position / 8, position % 8);
                for (g, (row, t)) in levels.iter().enumerate() {
                    let row = *row as usize;
                    let form: f64 = (0..k)
                        .map(|j| {
                            batch.coefficients[chunk * 2 * k + row * k + j].0[lane]
                                * batch.primal[chunk * (k + 2) + j].0[lane]
                        })
                        .sum();
                    let free = batch.bounds[chunk * 2 + row].0[lane] - form;
                    narrow(*t as usize, batch.level_values[chunk * levels.len() + g].0[lane], free);
                }
            }
        }
        for block in &self.dense {
            let data = block.data();
            for ((row, t), value) in data.shape.levels.iter().zip(&data.level_values) {
                let k = data.shape.k;
                let row = *row as usize;
                let form: f64 = data.coefficients[row * k..(row + 1) * k]
                    .iter()
                    .zip(&block.primal)
                    .map(|(a, x)| a * x)
                    .sum();
                narrow(*t as usize, *value, data.bounds[row] - form);
            }
        }
        for (t, (low, high)) in room.into_iter().enumerate() {
            let (lower, upper) = (self.linking.lower[t], self.linking.upper[t]);
            self.linking.level[t] = inside((low, high), (lower, upper));
        }
    }

    /// Gives every block a share of mu that goes with what its costs and logarithms are worth, and not less than the
    /// average. Then all blocks settle at about the same mu, however unlike their worth is. Returns mu at the start.
    fn share_out(&mut self) -> f64 {
        let mut worths: Vec<Vec<F64x8>> = Vec::new();
        let (mut total, mut n) = (0.0, 0);
        for batch in &self.batches {
            let k = batch.shape.k;
            let worth = (0..batch.n_chunks).map(|chunk| {
                let mut worth = F64x8::ZERO;
                for j in 0..k {
                    worth = worth.max((batch.cost[chunk * k + j] * batch.primal[chunk * (k + 2) + j]).abs());
                }
                for row in (0..2).filter(|row| batch.kinds[*row] == Kind::Logarithm) {
                    worth = worth.max(batch.weights[chunk * 2 + row]);
                }
                worth
            });
            let worth: Vec<F64x8> = worth.collect();
            total += worth.iter().map(|worth| worth.sum()).sum::<f64>();
            n += batch.n_chunks * 8;
            worths.push(worth);
        }
        let mut dense = Vec::new();
        for block in &self.dense {
            let data = block.data();
            let costs = data.cost.iter().zip(&block.primal).map(|(cost, x)| (cost * x).abs());
            let worth = costs.chain(data.weights.iter().copied()).fold(0.0, f64::max);
            total += worth;
            n += 1;
            dense.push(worth);
        }
        let mean = total / (n.max(1) as f64);
        let mut shares = 0.0;
        for (batch, worths) in self.batches.iter_mut().zip(worths) {
            let rows = batch.kinds.iter().filter(|kind| **kind == Kind::AtMost).count();
            for (share, worth) in batch.shares.iter_mut().zip(worths) {
                *share = F64x8(worth.0.map(|worth| if mean > 0.0 { (worth / mean).max(1.0) } else { 1.0 }));
                shares += share.sum() * (batch.shape.k + rows) as f64;
            }
        }
        for (block, worth) in self.dense.iter_mut().zip(dense) {
            block.share = if mean > 0.0 { (worth / mean).max(1.0) } else { 1.0 };
            shares += block.share * block.primal.len() as f64;
        }
        self.linking.share = 1.0 + LINKING_SHARE * n as f64 / self.linking.kinds.len().max(1) as f64;
        shares +=
            self.linking.share * self.linking.kinds.len() as f64 + 2.0 * self.linking.level.len() as f64;
        self.shares = shares;
        START_GAP / shares
    }

    fn start_slacks(&mut self, mu: f64) {
        let level = &self.linking.level;
        for batch in &mut self.batches {
            let (k, levels) = (batch.shape.k, &batch.shape.levels);
            for chunk in 0..batch.n_chunks {
                let pairs = chunk * (k + 2);
                for j in 0..k {
                    batch.dual[pairs + j] = batch.shares[chunk] * mu / batch.primal[pairs + j];
                }
                for row in 0..2 {
                    let mut free = batch.bounds[chunk * 2 + row];
                    let mut size = free.abs();
                    for j in 0..k {
                        let term = batch.coefficients[chunk * 2 * k + row * k + j] * batch.primal[pairs + j];
                        free = free - term;
                        size += term.abs();
                    }
                    for (g, (_, t)) in levels.iter().enumerate().filter(|(_, (of, _))| *of as usize == row) {
                        free = free - batch.level_values[chunk * levels.len() + g] * level[*t as usize];
                    }
                    let slack = free.max(size.max(F64x8::all(1e-3)) * SLACK_MIN);
                    let (slack, dual) = match batch.kinds[row] {
                        Kind::Absent => (F64x8::ONE, F64x8::ONE),
                        Kind::Equal => (F64x8::ONE, F64x8::ZERO),
                        Kind::AtMost => (slack, batch.shares[chunk] * mu / slack),
                        Kind::Logarithm => (slack, batch.weights[chunk * 2 + row] / slack),
                    };
                    batch.primal[pairs + k + row] = slack;
                    batch.dual[pairs + k + row] = dual;
                }
            }
        }
        for block in &mut self.dense {
            block.start_slacks(level, mu);
        }
    }
}

/// A column's part of a row's bound; infinite where the row does not bound it.
fn part(coefficient: f64, bound: f64, k: usize) -> f64 {
    if coefficient > 0.0 && bound > 0.0 { bound / (coefficient * (k as f64 + 1.0)) } else { f64::INFINITY }
}

/// A point within bounds, and within the room that rows leave if there is any.
fn inside((low, high): (f64, f64), (lower, upper): (f64, f64)) -> f64 {
    let (low, high) = (low.max(lower), high.min(upper));
    let margin = |bound: f64| 0.1 * bound.abs().max(0.1);
    match (low.is_finite(), high.is_finite()) {
        (true, true) if low < high => f64::midpoint(low, high),
        _ if lower.is_finite() && upper.is_finite() => f64::midpoint(lower, upper),
        _ if lower.is_finite() => lower + margin(lower).max(if low.is_finite() { low - lower } else { 0.0 }),
        _ if upper.is_finite() => upper - margin(upper),
        (true, _) => low + margin(low),
        (_, true) => high - margin(high),
        (false, false) => 0.0,
    }
}
