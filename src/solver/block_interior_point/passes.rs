//! The passes over a batch of blocks: gathering the linking system, recovering a step, taking it.

use crate::solver::block_interior_point::block_batch::BlockBatch;
use crate::solver::block_interior_point::inequality::Kind;
use crate::solver::block_interior_point::kernel::Inverse;
use crate::solver::block_interior_point::sums::{StepTally, Tally};
use crate::solver::block_interior_point::system::{Partial, Sums};
use crate::solver::block_interior_point::target::{Outer, PROXIMAL, Target, Wanted, aim};
use crate::solver::lanes::{F64x8, LANES};

/// One chunk's numbers, with what follows from them.
pub(super) struct Chunk<const K: usize> {
    a: [F64x8; K],
    v: [F64x8; K],
    pub(super) cost: [F64x8; K],
    pub(super) x: [F64x8; K],
    pub(super) z: [F64x8; K],
    over_x: [F64x8; K],
    over_z: [F64x8; K],
    pub(super) s: [F64x8; 2],
    pub(super) y: [F64x8; 2],
    over_s: [F64x8; 2],
    over_y: [F64x8; 2],
    /// c + Aᵀ y + Cᵀ π
    pub(super) reduced: [F64x8; K],
    /// b − A x − G t
    pub(super) residual: [F64x8; 2],
}

/// Where sums of a chunk lie: rows [E], columns [T], pairs, Q, R, activity [E], gradient [T].
struct Layout {
    entries: usize,
    levels: usize,
}

impl Layout {
    fn pairs(&self) -> usize {
        self.entries + self.levels
    }
    fn q(&self) -> usize {
        self.pairs() + self.entries * (self.entries + 1) / 2
    }
    fn r(&self) -> usize {
        self.q() + self.entries * self.levels
    }
    fn activity(&self) -> usize {
        self.r() + self.levels * (self.levels + 1) / 2
    }
    fn gradient(&self) -> usize {
        self.activity() + self.entries
    }
    fn len(&self, matrix: bool) -> usize {
        if matrix { self.gradient() + self.levels } else { self.pairs() }
    }
}

macro_rules! by_columns {
    ($batch:expr, $method:ident($($argument:expr),*)) => {
        match $batch.shape.k {
            1 => $batch.$method::<1>($($argument),*),
            2 => $batch.$method::<2>($($argument),*),
            3 => $batch.$method::<3>($($argument),*),
            4 => $batch.$method::<4>($($argument),*),
            5 => $batch.$method::<5>($($argument),*),
            6 => $batch.$method::<6>($($argument),*),
            7 => $batch.$method::<7>($($argument),*),
            _ => $batch.$method::<8>($($argument),*),
        }
    };
}

impl BlockBatch {
    /// Adds up what the linking system needs of this batch.
    pub(super) fn gather(&self, at: Outer<'_>, wanted: Wanted) -> Partial {
        by_columns!(self, gather_of(at, wanted))
    }

    /// Recovers the step that goes with one of the linking rows and columns, and stores it.
    pub(super) fn recover(&mut self, at: Outer<'_>, step: Outer<'_>, target: Target) -> Sums {
        by_columns!(self, recover_of(at, step, target))
    }

    /// Puts the stored step aside, to be able to go back to it.
    pub(super) fn keep(&mut self) {
        self.kept.0.clone_from(&self.primal_step);
        self.kept.1.clone_from(&self.dual_step);
    }

    /// Goes back to the step put aside.
    pub(super) fn revert(&mut self) {
        std::mem::swap(&mut self.kept.0, &mut self.primal_step);
        std::mem::swap(&mut self.kept.1, &mut self.dual_step);
    }

    /// Takes the stored step.
    pub(super) fn advance(&mut self, primal: f64, dual: f64) {
        for (value, step) in self.primal.iter_mut().zip(&self.primal_step) {
            *value += *step * primal;
        }
        for (value, step) in self.dual.iter_mut().zip(&self.dual_step) {
            *value += *step * dual;
        }
    }

    /// The linking rows' values at the entries of a chunk.
    fn spread(&self, chunk: usize, values: &[f64], out: &mut [F64x8]) {
        let n = self.shape.entries.len();
        match &self.uniform {
            Some(rows) => {
                for (lane, row) in out.iter_mut().zip(rows) {
                    *lane = F64x8::all(values[*row as usize]);
                }
            }
            None => {
                for (lane, rows) in out.iter_mut().zip(&self.links[chunk * n..(chunk + 1) * n]) {
                    *lane = F64x8(rows.map(|row| values[row as usize]));
                }
            }
        }
    }

    #[inline]
    fn load<const K: usize>(&self, chunk: usize, prices: &[F64x8], level: &[f64]) -> Chunk<K> {
        let at = |list: &[F64x8], start: usize| -> [F64x8; K] { std::array::from_fn(|j| list[start + j]) };
        let two = |list: &[F64x8], start: usize| [list[start], list[start + 1]];
        let pairs = chunk * (K + 2);
        let (x, z) = (at(&self.primal, pairs), at(&self.dual, pairs));
        let (s, y) = (two(&self.primal, pairs + K), two(&self.dual, pairs + K));
        let a = at(&self.coefficients, chunk * 2 * K);
        let v = at(&self.coefficients, chunk * 2 * K + K);
        let cost = at(&self.cost, chunk * K);
        let mut reduced: [F64x8; K] = std::array::from_fn(|j| cost[j] + a[j] * y[0] + v[j] * y[1]);
        let values = &self.link_values[chunk * prices.len()..(chunk + 1) * prices.len()];
        for ((column, price), value) in self.shape.entries.iter().zip(prices).zip(values) {
            reduced[*column as usize] += *value * *price;
        }
        let mut residual = two(&self.bounds, chunk * 2);
        for j in 0..K {
            residual[0] = residual[0] - a[j] * x[j];
            residual[1] = residual[1] - v[j] * x[j];
        }
        let levels = &self.level_values[chunk * self.shape.levels.len()..];
        for ((row, column), value) in self.shape.levels.iter().zip(levels) {
            residual[*row as usize] = residual[*row as usize] - *value * level[*column as usize];
        }
        Chunk {
            over_x: x.map(|x| F64x8::ONE / x),
            over_z: z.map(|z| F64x8::ONE / z),
            over_s: s.map(|s| F64x8::ONE / s),
            over_y: y.map(|y| F64x8::ONE / y),
            a,
            v,
            cost,
            x,
            z,
            s,
            y,
            reduced,
            residual,
        }
    }

    /// The block's own inverse at a chunk.
    #[inline]
    fn inverse<const K: usize>(&self, chunk: &Chunk<K>) -> Inverse<K> {
        let d: [F64x8; K] = std::array::from_fn(|j| chunk.x[j] * chunk.over_z[j]);
        let alpha = |row: usize| match self.kinds[row] {
            Kind::Absent => F64x8::ONE,
            Kind::Equal => {
                let values = if row == 0 { &chunk.a } else { &chunk.v };
                (0..K).fold(F64x8::ZERO, |sum, j| sum + d[j] * values[j] * values[j]) * PROXIMAL
            }
            Kind::AtMost | Kind::Logarithm => chunk.s[row] * chunk.over_y[row],
        };
        Inverse::of(&d, &chunk.a, &chunk.v, alpha(0), alpha(1))
    }

    /// Right-hand sides of a chunk, and the products that its pairs aim at.
    #[inline]
    fn aims<const K: usize>(&self, position: usize, chunk: &Chunk<K>, target: Target) -> Aims<K> {
        let pairs = position * (K + 2);
        let step = |pair: usize| (self.primal_step[pairs + pair], self.dual_step[pairs + pair]);
        let share = self.shares[position];
        let of_columns: [F64x8; K] =
            std::array::from_fn(|j| aim(target, Ok(share), (chunk.x[j], chunk.z[j]), step(j)));
        let of_rows: [F64x8; 2] = std::array::from_fn(|row| {
            let at = |weight| aim(target, weight, (chunk.s[row], chunk.y[row]), step(K + row));
            match self.kinds[row] {
                Kind::Absent | Kind::Equal => F64x8::ZERO,
                Kind::AtMost => at(Ok(share)),
                Kind::Logarithm => at(Err(self.weights[position * 2 + row])),
            }
        });
        let columns = std::array::from_fn(|j| of_columns[j] * chunk.over_x[j] - chunk.reduced[j]);
        let rows = std::array::from_fn(|row| match self.kinds[row] {
            Kind::Absent => F64x8::ZERO,
            Kind::Equal => chunk.residual[row],
            Kind::AtMost | Kind::Logarithm => chunk.residual[row] - of_rows[row] * chunk.over_y[row],
        });
        Aims { of_columns, of_rows, columns, rows }
    }

    fn gather_of<const K: usize>(&self, at: Outer<'_>, wanted: Wanted) -> Partial {
        let layout = Layout { entries: self.shape.entries.len(), levels: self.shape.levels.len() };
        let mut partial = Partial::zero(at.price.len(), at.level.len(), wanted.matrix);
        let mut sums = vec![F64x8::ZERO; layout.len(wanted.matrix)];
        let mut prices = vec![F64x8::ZERO; layout.entries];
        let mut tally = Tally::default();
        for position in 0..self.n_chunks {
            if position == 0 || self.uniform.is_none() {
                self.spread(position, at.price, &mut prices);
            }
            let chunk = self.load::<K>(position, &prices, at.level);
            let inverse = self.inverse(&chunk);
            let aims = self.aims(position, &chunk, wanted.target);
            let (dx, dy) = inverse.times(&aims.columns, &aims.rows);
            let links = &self.link_values[position * layout.entries..(position + 1) * layout.entries];
            let levels = &self.level_values[position * layout.levels..(position + 1) * layout.levels];
            for ((sum, column), value) in sums.iter_mut().zip(&self.shape.entries).zip(links) {
                *sum += *value * dx[*column as usize];
            }
            let of_levels = &mut sums[layout.entries..];
            for ((sum, (row, _)), value) in of_levels.iter_mut().zip(&self.shape.levels).zip(levels) {
                *sum += *value * dy[*row as usize];
            }
            if wanted.matrix {
                self.add_matrix(&mut sums, &layout, &inverse, (links, levels));
                self.add_values(&mut sums, &layout, &chunk, (links, levels));
                tally.count(self, position, &chunk, wanted.objective);
            }
            if self.uniform.is_none() {
                self.flush(&sums, &layout, position, &mut partial);
                sums.fill(F64x8::ZERO);
            }
        }
        if self.uniform.is_some() {
            self.flush(&sums, &layout, 0, &mut partial);
        }
        partial.sums = tally.sums();
        partial
    }

    /// C N Cᵀ, C U G and Gᵀ S⁻¹ G.
    #[inline]
    fn add_matrix<const K: usize>(
        &self,
        sums: &mut [F64x8],
        layout: &Layout,
        inverse: &Inverse<K>,
        (links, levels): (&[F64x8], &[F64x8]),
    ) {
        let entries = &self.shape.entries;
        let mut place = layout.pairs();
        for (e, column) in entries.iter().enumerate() {
            for (f, other) in entries.iter().enumerate().skip(e) {
                sums[place] += links[e] * links[f] * inverse.n[*column as usize][*other as usize];
                place += 1;
            }
        }
        for (e, column) in entries.iter().enumerate() {
            for ((row, _), level) in self.shape.levels.iter().zip(levels) {
                sums[place] += links[e] * *level * inverse.u[*column as usize][*row as usize];
                place += 1;
            }
        }
        for (g, (row, _)) in self.shape.levels.iter().enumerate() {
            for (h, (other, _)) in self.shape.levels.iter().enumerate().skip(g) {
                sums[place] += levels[g] * levels[h] * inverse.s[(*row + *other) as usize];
                place += 1;
            }
        }
    }

    /// C x and Gᵀ y.
    #[inline]
    fn add_values<const K: usize>(
        &self,
        sums: &mut [F64x8],
        layout: &Layout,
        chunk: &Chunk<K>,
        (links, levels): (&[F64x8], &[F64x8]),
    ) {
        let activity = &mut sums[layout.activity()..];
        for ((sum, column), value) in activity.iter_mut().zip(&self.shape.entries).zip(links) {
            *sum += *value * chunk.x[*column as usize];
        }
        let gradient = &mut sums[layout.gradient()..];
        for ((sum, (row, _)), value) in gradient.iter_mut().zip(&self.shape.levels).zip(levels) {
            *sum += *value * chunk.y[*row as usize];
        }
    }

    /// Adds a chunk's (or, uniform, the whole batch's) sums to the linking rows and columns they belong to.
    fn flush(&self, sums: &[F64x8], layout: &Layout, chunk: usize, partial: &mut Partial) {
        let n = layout.entries;
        if let Some(rows) = &self.uniform {
            self.flush_values(rows, layout, |at| sums[at].sum(), partial);
            return;
        }
        let mut rows = vec![0; n];
        for lane in 0..LANES {
            for (row, links) in rows.iter_mut().zip(&self.links[chunk * n..(chunk + 1) * n]) {
                *row = links[lane];
            }
            self.flush_values(&rows, layout, |at| sums[at].0[lane], partial);
        }
    }

    fn flush_values(&self, rows: &[u32], layout: &Layout, sum: impl Fn(usize) -> f64, partial: &mut Partial) {
        let (n_rows, n_columns) = (partial.rows.len(), partial.columns.len());
        let levels = &self.shape.levels;
        for (e, row) in rows.iter().enumerate() {
            partial.rows[*row as usize] += sum(e);
        }
        for (g, (_, column)) in levels.iter().enumerate() {
            partial.columns[*column as usize] += sum(layout.entries + g);
        }
        if partial.p.is_empty() && partial.gradient.is_empty() {
            return;
        }
        let mut place = layout.pairs();
        for (e, row) in rows.iter().enumerate() {
            for (f, other) in rows.iter().enumerate().skip(e) {
                let (row, other, value) = (*row as usize, *other as usize, sum(place));
                place += 1;
                partial.p[row * n_rows + other] += value;
                if e != f {
                    partial.p[other * n_rows + row] += value;
                }
            }
        }
        for row in rows {
            for (_, column) in levels {
                partial.q[*row as usize * n_columns + *column as usize] += sum(place);
                place += 1;
            }
        }
        for (g, (_, column)) in levels.iter().enumerate() {
            for (h, (_, other)) in levels.iter().enumerate().skip(g) {
                let (column, other, value) = (*column as usize, *other as usize, sum(place));
                place += 1;
                partial.r[column * n_columns + other] += value;
                if g != h {
                    partial.r[other * n_columns + column] += value;
                }
            }
        }
        for row in rows {
            partial.activity[*row as usize] += sum(place);
            place += 1;
        }
        for (_, column) in levels {
            partial.gradient[*column as usize] += sum(place);
            place += 1;
        }
    }

    fn recover_of<const K: usize>(&mut self, at: Outer<'_>, step: Outer<'_>, target: Target) -> Sums {
        let entries = self.shape.entries.len();
        let (mut prices, mut changes) = (vec![F64x8::ZERO; entries], vec![F64x8::ZERO; entries]);
        let mut tally = StepTally::default();
        for position in 0..self.n_chunks {
            if position == 0 || self.uniform.is_none() {
                self.spread(position, at.price, &mut prices);
                self.spread(position, step.price, &mut changes);
            }
            let chunk = self.load::<K>(position, &prices, at.level);
            let inverse = self.inverse(&chunk);
            let mut aims = self.aims(position, &chunk, target);
            let links = &self.link_values[position * entries..(position + 1) * entries];
            for ((column, change), value) in self.shape.entries.iter().zip(&changes).zip(links) {
                let aim = &mut aims.columns[*column as usize];
                *aim = *aim - *value * *change;
            }
            let levels = &self.level_values[position * self.shape.levels.len()..];
            for ((row, column), value) in self.shape.levels.iter().zip(levels) {
                let aim = &mut aims.rows[*row as usize];
                *aim = *aim - *value * step.level[*column as usize];
            }
            let (dx, dy) = inverse.times(&aims.columns, &aims.rows);
            let pairs = position * (K + 2);
            for (j, dx) in dx.into_iter().enumerate() {
                let dz = (aims.of_columns[j] - chunk.z[j] * dx) * chunk.over_x[j] - chunk.z[j];
                self.primal_step[pairs + j] = dx;
                self.dual_step[pairs + j] = dz;
                tally.count((chunk.x[j], chunk.z[j]), (dx, dz), true);
                tally.ratios((chunk.over_x[j], chunk.over_z[j]), (dx, dz));
            }
            for row in 0..2 {
                let (ds, dy) = match self.kinds[row] {
                    Kind::Absent => (F64x8::ZERO, F64x8::ZERO),
                    Kind::Equal => (F64x8::ZERO, dy[row]),
                    Kind::AtMost | Kind::Logarithm => {
                        let (s, y) = (chunk.s[row], dy[row]);
                        ((aims.of_rows[row] - s * y) * chunk.over_y[row] - s, y)
                    }
                };
                self.primal_step[pairs + K + row] = ds;
                self.dual_step[pairs + K + row] = dy;
                if matches!(self.kinds[row], Kind::AtMost | Kind::Logarithm) {
                    let vanishing = self.kinds[row] == Kind::AtMost;
                    tally.count((chunk.s[row], chunk.y[row]), (ds, dy), vanishing);
                    tally.ratios((chunk.over_s[row], chunk.over_y[row]), (ds, dy));
                }
            }
        }
        tally.sums()
    }
}

/// Right-hand sides and the products aimed at.
struct Aims<const K: usize> {
    of_columns: [F64x8; K],
    of_rows: [F64x8; 2],
    columns: [F64x8; K],
    rows: [F64x8; 2],
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solver::block_interior_point::block_batch::Shape;

    #[test]
    fn a_tile_without_blocks_adds_nothing() {
        let shape = Shape { k: 1, kinds: vec![Kind::AtMost], entries: vec![0], levels: Vec::new() };
        for uniform in [None, Some(vec![0])] {
            let mut batch = BlockBatch::new(shape.clone(), uniform);
            let target = Target::Path { mu: 1.0, second: 0.0 };
            let at = Outer { price: &[2.0], level: &[] };
            let wanted = Wanted { target, matrix: true, objective: true };
            let partial = batch.gather(at, wanted);
            assert_eq!((&partial.rows, &partial.activity, &partial.p), (&vec![0.0], &vec![0.0], &vec![0.0]));
            batch.recover(at, Outer { price: &[1.0], level: &[] }, target);
        }
    }
}
