//! The factor of normal equations G·D·Gᵀ y = r, block by block.
//!
//! A row with terms in many columns is a *linking* row (a capacity), and a column with terms in many rows is *long* (a
//! level). Without the two, the rows of an allocation whose jobs share nothing fall apart into *blocks* of a few rows
//! for each job; with pairs they stay together, in one block. The linking rows and the long columns are the *links* of
//! the blocks. A long column g with entry d of D adds d·g·gᵀ, which would couple all its rows; it becomes one more
//! unknown s = d·gᵀy instead:
//!
//!   B y + E z = r (blocks),   Eᵀ y + S z = q (linking rows and long columns),   S = −1/d on a long column's diagonal
//!
//! Blocks are factored by Cholesky. The links' equations that are left, positive for linking rows and negative for long
//! columns, are indefinite and factored with complete pivoting: near an optimum, only a level's
//! column makes the rest of them regular.

use super::Matrix;
use super::sums::Plan;

/// A row is linking, and a column long, if it has more than this many times the median number of terms,
const TIMES_MEDIAN: usize = 4;
/// and more than this many.
const TERMS_MIN: usize = 16;
/// Part of a diagonal below which a pivot is rounding.
const PIVOT_MIN: f64 = 1e-14;
/// Part of a diagonal below which a pivot within a block is weak: its row is made a linking one.
const WEAK: f64 = 1e-6;
/// Rounds of finding weak pivots.
const ROUNDS_MAX: usize = 4;

/// The place of a row or a long column: in a block or among the links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Block { block: usize, at: usize },
    Link { at: usize },
}

/// The division of rows into blocks and links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) rows: Vec<Place>,
    /// Rows of each block.
    pub(super) sizes: Vec<usize>,
    /// Of each column: its place among the links if it is long.
    pub(super) long: Vec<Option<usize>>,
    pub(super) n_links: usize,
}

impl Layout {
    /// Finds the blocks of columns given as (row, coefficient) terms.
    pub(super) fn of(terms: &[Vec<(usize, f64)>], n_rows: usize) -> Self {
        let mut row_terms = vec![0; n_rows];
        for (row, _) in terms.iter().flatten() {
            row_terms[*row] += 1;
        }
        let row_limit = limit(row_terms.clone());
        let column_limit = limit(terms.iter().map(Vec::len).collect());
        let links = |row: usize| row_terms[row] > row_limit;
        let mut n_links = (0..n_rows).filter(|row| links(*row)).count();
        let mut long = vec![None; terms.len()];
        let mut group: Vec<usize> = (0..n_rows).collect();
        for (column, terms) in terms.iter().enumerate() {
            if terms.len() > column_limit {
                long[column] = Some(n_links);
                n_links += 1;
                continue;
            }
            let mut own = terms.iter().map(|(row, _)| *row).filter(|row| !links(*row));
            let Some(first) = own.next() else { continue };
            for row in own {
                let (one, other) = (root(&mut group, first), root(&mut group, row));
                group[one.max(other)] = one.min(other);
            }
        }
        let (mut sizes, mut block_of, mut n_placed) = (Vec::new(), vec![usize::MAX; n_rows], 0);
        let place = |row: usize| {
            if links(row) {
                n_placed += 1;
                return Place::Link { at: n_placed - 1 };
            }
            let first = root(&mut group, row);
            if block_of[first] == usize::MAX {
                block_of[first] = sizes.len();
                sizes.push(0);
            }
            let block = block_of[first];
            sizes[block] += 1;
            Place::Block { block, at: sizes[block] - 1 }
        };
        let rows = (0..n_rows).map(place).collect();
        if sizes.iter().any(|size| 2 * size > n_rows) {
            return Self::whole(n_rows, terms.len());
        }
        Self { rows, sizes, long, n_links }
    }

    /// One block of all rows: where more than half of them are in one anyway, dividing them gains nothing.
    fn whole(n_rows: usize, n_columns: usize) -> Self {
        let rows = (0..n_rows).map(|at| Place::Block { block: 0, at }).collect();
        Self { rows, sizes: vec![n_rows], long: vec![None; n_columns], n_links: 0 }
    }

    /// Makes the weak rows of blocks linking rows.
    fn promote(&mut self, weak: &[Vec<usize>]) {
        let mut kept: Vec<usize> = vec![0; self.sizes.len()];
        for place in &mut self.rows {
            let Place::Block { block, at } = *place else { continue };
            *place = if weak[block].contains(&at) {
                self.n_links += 1;
                Place::Link { at: self.n_links - 1 }
            } else {
                kept[block] += 1;
                Place::Block { block, at: kept[block] - 1 }
            };
        }
        self.sizes = kept;
    }
}

/// The number of terms above which a row is linking or a column long.
fn limit(mut terms: Vec<usize>) -> usize {
    terms.sort_unstable();
    let median = terms.get(terms.len() / 2).copied().unwrap_or(0);
    TERMS_MIN.max(TIMES_MEDIAN * median)
}

/// The first row of a row's group, paths shortened on the way.
fn root(group: &mut [usize], mut row: usize) -> usize {
    while group[row] != row {
        group[row] = group[group[row]];
        row = group[row];
    }
    row
}

/// A block's rows: Cholesky factor L [n × n], lower part, and L⁻¹E [n × links].
pub(super) struct Block {
    pub(super) n: usize,
    pub(super) lower: Vec<f64>,
    pub(super) border: Vec<f64>,
}

/// The factor of the normal equations for one D.
pub(in crate::solver) struct Factor {
    layout: Layout,
    blocks: Vec<Block>,
    /// The links' equations, after the elimination of the blocks.
    links: Pivoted,
}

impl Factor {
    /// None where a number is NaN or infinite. A row with a weak pivot in its block is made a linking row, and all is
    /// added up again: together with a level, which is among the links, it may be well determined.
    ///
    /// `diagonal` is D; `plans` has the plans of the layouts met before: without weak rows, after the first round of
    /// them, after the second, and so on.
    pub(in crate::solver) fn of(matrix: &Matrix, diagonal: &[f64], plans: &mut Vec<Plan>) -> Option<Self> {
        let mut layout = matrix.layout.clone();
        for round in 1.. {
            let m = layout.n_links;
            if plans.get(round - 1).is_none_or(|plan| plan.layout != layout) {
                plans.truncate(round - 1);
                plans.push(Plan::of(matrix, layout.clone()));
            }
            let (mut blocks, mut links) = plans[round - 1].sums(matrix, diagonal);
            let before: Vec<f64> = (0..m).map(|at| links[at * m + at].abs()).collect();
            let weak: Vec<Vec<usize>> = blocks.iter_mut().map(Block::factor).collect::<Option<Vec<_>>>()?;
            if m > 0 && round < ROUNDS_MAX && weak.iter().any(|weak| !weak.is_empty()) {
                layout.promote(&weak);
                continue;
            }
            for block in &mut blocks {
                block.eliminate(m, &mut links);
            }
            let sizes: Vec<f64> = (0..m).map(|at| before[at].max(links[at * m + at].abs())).collect();
            return Some(Self { layout, blocks, links: Pivoted::of(links, &sizes)? });
        }
        None
    }

    /// y of the right-hand side: [rows].
    pub(in crate::solver) fn solve(&self, right: &[f64]) -> Vec<f64> {
        let m = self.layout.n_links;
        let mut own: Vec<Vec<f64>> = self.blocks.iter().map(|block| vec![0.0; block.n]).collect();
        let mut links = vec![0.0; m];
        for (place, value) in self.layout.rows.iter().zip(right) {
            match place {
                Place::Block { block, at } => own[*block][*at] = *value,
                Place::Link { at } => links[*at] = *value,
            }
        }
        for (block, own) in self.blocks.iter().zip(&mut own) {
            block.forward(own, m, &mut links);
        }
        let links = self.links.solve(&links);
        for (block, own) in self.blocks.iter().zip(&mut own) {
            block.backward(own, m, &links);
        }
        let value = |place: &Place| match place {
            Place::Block { block, at } => own[*block][*at],
            Place::Link { at } => links[*at],
        };
        self.layout.rows.iter().map(value).collect()
    }
}

/// The factor of a symmetric matrix, scaled, by Gaussian elimination with complete pivoting.
struct Pivoted {
    m: usize,
    /// Upper part with the pivots, multipliers below: [m × m].
    lu: Vec<f64>,
    rows: Vec<usize>,
    columns: Vec<usize>,
    scale: Vec<f64>,
    /// Pivots above rounding.
    rank: usize,
}

impl Pivoted {
    /// Of a matrix given by its lower part, whose diagonal is a sum of numbers of these sizes.
    fn of(mut matrix: Vec<f64>, sizes: &[f64]) -> Option<Self> {
        let m = sizes.len();
        let scale: Vec<f64> = sizes.iter().map(|size| size.sqrt().recip()).collect();
        for row in 0..m {
            for column in 0..=row {
                let value = matrix[row * m + column] * scale[row] * scale[column];
                if !value.is_finite() {
                    return None;
                }
                (matrix[row * m + column], matrix[column * m + row]) = (value, value);
            }
        }
        let mut pivoted =
            Self { m, lu: matrix, rows: (0..m).collect(), columns: (0..m).collect(), scale, rank: 0 };
        while pivoted.rank < m && pivoted.eliminate() {
            pivoted.rank += 1;
        }
        Some(pivoted)
    }

    /// Eliminates by the largest entry left; false if all are rounding.
    fn eliminate(&mut self) -> bool {
        let (m, at) = (self.m, self.rank);
        let (mut largest, mut row) = (PIVOT_MIN, m);
        for (below, values) in self.lu.chunks_exact(m).enumerate().skip(at) {
            let own = magnitude(&values[at..]);
            if own > largest {
                (largest, row) = (own, below);
            }
        }
        let is_largest = |value: &f64| value.abs().total_cmp(&largest).is_eq();
        let place = self.lu.get(row * m..).and_then(|row| row.iter().skip(at).position(is_largest));
        let Some(column) = place.map(|place| at + place) else { return false };
        self.rows.swap(at, row);
        self.columns.swap(at, column);
        for other in 0..m {
            self.lu.swap(at * m + other, row * m + other);
        }
        for other in 0..m {
            self.lu.swap(other * m + at, other * m + column);
        }
        let (above, below) = self.lu.split_at_mut((at + 1) * m);
        let own = &above[at * m..];
        for row in below.chunks_exact_mut(m) {
            row[at] /= own[at];
            let factor = row[at];
            row[at + 1..].iter_mut().zip(&own[at + 1..]).for_each(|(value, own)| *value -= factor * own);
        }
        true
    }

    /// A solution; what rounding leaves open is 0.
    fn solve(&self, right: &[f64]) -> Vec<f64> {
        let (m, rank) = (self.m, self.rank);
        let mut found: Vec<f64> = self.rows.iter().map(|row| right[*row] * self.scale[*row]).collect();
        for row in 0..rank {
            let dot: f64 = (0..row).map(|column| self.lu[row * m + column] * found[column]).sum();
            found[row] -= dot;
        }
        found[rank..].fill(0.0);
        for row in (0..rank).rev() {
            let dot: f64 = (row + 1..rank).map(|column| self.lu[row * m + column] * found[column]).sum();
            found[row] = (found[row] - dot) / self.lu[row * m + row];
        }
        let mut solution = vec![0.0; m];
        for (column, value) in self.columns.iter().zip(found) {
            solution[*column] = value * self.scale[*column];
        }
        solution
    }
}

impl Block {
    /// Factors the block; the rows whose pivots are weak.
    fn factor(&mut self) -> Option<Vec<usize>> {
        let n = self.n;
        let mut weak = Vec::new();
        for column in 0..n {
            let (above, from) = self.lower.split_at_mut((column + 1) * n);
            let own = &mut above[column * n..];
            let square: f64 = own[..column].iter().map(|value| value * value).sum();
            let pivot = own[column] - square;
            if pivot <= WEAK * own[column] {
                weak.push(column);
            }
            // A pivot lost to rounding: its row's y is 0.
            let pivot = if pivot > PIVOT_MIN * own[column] { pivot.sqrt() } else { f64::INFINITY };
            if pivot.is_nan() {
                return None;
            }
            own[column] = pivot;
            let own = &own[..column];
            let mut rows = from.chunks_exact_mut(4 * n);
            for four in &mut rows {
                let dots = dots(own, [0, 1, 2, 3].map(|at| &four[at * n..at * n + column]));
                for (at, dot) in dots.into_iter().enumerate() {
                    four[at * n + column] = (four[at * n + column] - dot) / pivot;
                }
            }
            for row in rows.into_remainder().chunks_exact_mut(n) {
                let dot: f64 = row[..column].iter().zip(own).map(|(a, b)| a * b).sum();
                row[column] = (row[column] - dot) / pivot;
            }
        }
        Some(weak)
    }

    /// Eliminates the block from the links' equations.
    fn eliminate(&mut self, m: usize, links: &mut [f64]) {
        let n = self.n;
        for row in 0..n {
            let (above, own) = self.border.split_at_mut(row * m);
            let own = &mut own[..m];
            for (before, earlier) in above.chunks_exact(m.max(1)).enumerate() {
                let factor = self.lower[row * n + before];
                own.iter_mut().zip(earlier).for_each(|(own, earlier)| *own -= factor * earlier);
            }
            for entry in own.iter_mut() {
                *entry /= self.lower[row * n + row];
            }
            for (link, value) in own.iter().enumerate().filter(|(_, value)| **value != 0.0) {
                let below = own[..=link].iter().zip(&mut links[link * m..]);
                below.for_each(|(other, entry)| *entry -= value * other);
            }
        }
    }

    /// Solves with L, and eliminates the block from the links' right-hand side.
    fn forward(&self, own: &mut [f64], m: usize, links: &mut [f64]) {
        let n = self.n;
        for row in 0..n {
            let dot: f64 = self.lower[row * n..row * n + row].iter().zip(&*own).map(|(a, b)| a * b).sum();
            own[row] = (own[row] - dot) / self.lower[row * n + row];
            let border = &self.border[row * m..(row + 1) * m];
            links.iter_mut().zip(border).for_each(|(link, border)| *link -= border * own[row]);
        }
    }

    /// Solves with Lᵀ once the links are known.
    fn backward(&self, own: &mut [f64], m: usize, links: &[f64]) {
        let n = self.n;
        for (row, value) in own.iter_mut().enumerate() {
            let border = &self.border[row * m..(row + 1) * m];
            *value -= border.iter().zip(links).map(|(border, link)| border * link).sum::<f64>();
        }
        for row in (0..n).rev() {
            own[row] /= self.lower[row * n + row];
            let value = own[row];
            for (other, coefficient) in self.lower[row * n..row * n + row].iter().enumerate() {
                own[other] -= coefficient * value;
            }
        }
    }
}

/// The largest of the magnitudes of numbers, in four lanes, without branches.
fn magnitude(values: &[f64]) -> f64 {
    let larger = |most: f64, value: &f64| if value.abs() > most { value.abs() } else { most };
    let fours = values.chunks_exact(4);
    let rest = fours.remainder().iter().fold(0.0, larger);
    let mut most = [0.0_f64; 4];
    for four in fours {
        most.iter_mut().zip(four).for_each(|(most, value)| *most = larger(*most, value));
    }
    most.iter().fold(rest, larger)
}

/// The products of one row with four others, each summed in order: four sums go on while one waits for its last term.
fn dots(one: &[f64], others: [&[f64]; 4]) -> [f64; 4] {
    let [a, b, c, d] = others.map(|other| &other[..one.len()]);
    let mut sums = [0.0; 4];
    for (at, value) in one.iter().enumerate() {
        sums[0] += a[at] * value;
        sums[1] += b[at] * value;
        sums[2] += c[at] * value;
        sums[3] += d[at] * value;
    }
    sums
}
