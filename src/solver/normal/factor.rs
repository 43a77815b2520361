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

use std::rc::Rc;

use super::Matrix;
use super::sums::Plan;

/// A row is linking, and a column long, if it has more than this many times the median number of terms, and more than
/// [`TERMS_MIN`].
const TIMES_MEDIAN: usize = 4;
/// The number of terms that a linking row or a long column exceeds in any case.
const TERMS_MIN: usize = 16;
/// The part of the diagonal entry, before elimination, up to which a pivot is rounding.
const PIVOT_ROUNDING: f64 = 1e-14;
/// The part of the diagonal entry, before elimination, up to which a pivot in a block is weak: its row is made a linking
/// one.
const WEAK: f64 = 1e-6;
/// The most rounds of factoring blocks to find weak pivots.
const FACTOR_ROUNDS_MAX: usize = 4;
/// The most links for which weak rows are made linking rows: equations of links are dense, a weak pivot costs digits only.
const LINKS_MAX: usize = 500;

/// The place of a row or a long column: in a block or among the links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Block { block: usize, at: usize },
    Link { at: usize },
}

/// The division of rows into blocks and links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BlockStructure {
    /// The place of each row: [rows].
    pub(super) rows: Vec<Place>,
    /// Number of rows of each block.
    pub(super) sizes: Vec<usize>,
    /// The place of each column among the links, if it is long.
    pub(super) long: Vec<Option<usize>>,
    /// Number of linking rows and long columns.
    pub(super) n_links: usize,
}

impl BlockStructure {
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
            let mut in_blocks = terms.iter().map(|(row, _)| *row).filter(|row| !links(*row));
            let Some(first) = in_blocks.next() else { continue };
            for row in in_blocks {
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

    /// Makes the weak rows of blocks linking rows; `weak` has the block and the place in it of each, in order.
    fn promote(&mut self, weak: &[(usize, usize)]) {
        let mut kept: Vec<usize> = vec![0; self.sizes.len()];
        for place in &mut self.rows {
            let Place::Block { block, at } = *place else { continue };
            *place = if weak.binary_search(&(block, at)).is_ok() {
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

/// The representative of a row's group (union–find with path halving).
fn root(group: &mut [usize], mut row: usize) -> usize {
    while group[row] != row {
        group[row] = group[group[row]];
        row = group[row];
    }
    row
}

/// The factor of the normal equations for one D.
pub(in crate::solver) struct Factor {
    plan: Rc<Plan>,
    /// The Cholesky factor L and L⁻¹E of each block, as [`Plan`] lays them out.
    blocks: Vec<f64>,
    /// The links' equations, after the elimination of the blocks.
    links: Pivoted,
}

impl Factor {
    /// The factor for D = `diagonal`; none where a number is NaN or infinite. A row with a weak pivot in its block is
    /// made a linking row, if there are not too many, and all is added up again: together with a level, which is
    /// among the links, it may be well determined.
    ///
    /// `plans` keeps the plan of each block structure from earlier calls: without weak rows made links, after the
    /// first round of them, after the second, and so on.
    pub(in crate::solver) fn of(
        matrix: &Matrix,
        diagonal: &[f64],
        plans: &mut Vec<Rc<Plan>>,
    ) -> Option<Self> {
        if plans.is_empty() {
            plans.push(Rc::new(Plan::of(matrix, matrix.structure.clone())));
        }
        let mut round = 0;
        loop {
            let plan = Rc::clone(&plans[round]);
            let m = plan.structure.n_links;
            let mut blocks = plan.sums(matrix, diagonal);
            let mut links = blocks.split_off(plan.n_entries_of_blocks());
            let before: Vec<f64> = (0..m).map(|at| links[at * m + at].abs()).collect();
            let weak = plan.factor_blocks(&mut blocks)?;
            round += 1;
            if m > 0 && round < FACTOR_ROUNDS_MAX && !weak.is_empty() && m + weak.len() <= LINKS_MAX {
                let mut structure = plan.structure.clone();
                structure.promote(&weak);
                if plans.get(round).is_none_or(|plan| plan.structure != structure) {
                    plans.truncate(round);
                    plans.push(Rc::new(Plan::of(matrix, structure)));
                }
                continue;
            }
            for (n, block) in plan.blocks_mut(&mut blocks) {
                eliminate(n, block, m, &mut links);
            }
            let sizes: Vec<f64> = (0..m).map(|at| before[at].max(links[at * m + at].abs())).collect();
            return Some(Self { plan, blocks, links: Pivoted::of(links, &sizes)? });
        }
    }

    /// Solves the equations for a right-hand side, [rows].
    pub(in crate::solver) fn solve(&self, right: &[f64]) -> Vec<f64> {
        let (plan, m) = (&*self.plan, self.plan.structure.n_links);
        let mut ordered = vec![0.0; plan.n_ordered()];
        for (place, value) in plan.order.iter().zip(right) {
            ordered[*place as usize] = *value;
        }
        let (of_blocks, links) = ordered.split_at_mut(plan.n_ordered() - m);
        let mut unsolved = &mut *of_blocks;
        for (n, block) in plan.blocks(&self.blocks) {
            let (first, behind) = std::mem::take(&mut unsolved).split_at_mut(n);
            forward(block, first, links);
            unsolved = behind;
        }
        links.copy_from_slice(&self.links.solve(links));
        let mut unsolved = of_blocks;
        for (n, block) in plan.blocks(&self.blocks) {
            let (first, behind) = unsolved.split_at_mut(n);
            backward(block, first, links);
            unsolved = behind;
        }
        plan.order.iter().map(|place| ordered[*place as usize]).collect()
    }
}

impl Plan {
    /// Factors all blocks in place, and returns the block and the place of each row with a weak pivot, in order.
    fn factor_blocks(&self, entries: &mut [f64]) -> Option<Vec<(usize, usize)>> {
        let mut weak = Vec::new();
        for (at, (n, block)) in self.blocks_mut(entries).enumerate() {
            factor(n, &mut block[..n * n], |row| weak.push((at, row)))?;
        }
        Some(weak)
    }
}

/// The factor of a symmetric matrix, scaled, by Gaussian elimination with complete pivoting.
struct Pivoted {
    m: usize,
    /// Upper part with the pivots, multipliers below: [m × m].
    lu: Vec<f64>,
    /// The matrix's row at each place: [m].
    rows: Vec<usize>,
    /// The matrix's column at each place: [m].
    columns: Vec<usize>,
    /// The factor by which each row and column was scaled: [m].
    scale: Vec<f64>,
    /// Number of pivots above rounding.
    rank: usize,
}

impl Pivoted {
    /// The factor of a matrix given by its lower part. Each diagonal entry is a sum of numbers of the magnitude in
    /// `sizes`, by which the matrix is scaled.
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

    /// Eliminates with the largest remaining entry as the pivot; false if all entries that remain are rounding.
    fn eliminate(&mut self) -> bool {
        let (m, at) = (self.m, self.rank);
        let (mut largest, mut row) = (PIVOT_ROUNDING, m);
        for (below, values) in self.lu.chunks_exact(m).enumerate().skip(at) {
            let size = magnitude(&values[at..]);
            if size > largest {
                (largest, row) = (size, below);
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
        let pivot = &above[at * m..];
        for row in below.chunks_exact_mut(m) {
            row[at] /= pivot[at];
            let factor = row[at];
            row[at + 1..]
                .iter_mut()
                .zip(&pivot[at + 1..])
                .for_each(|(value, entry)| *value -= factor * entry);
        }
        true
    }

    /// A solution, with 0 for unknowns without a pivot.
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

/// Factors a block of n rows in place by Cholesky's method, and calls `weak` with each row that has a weak pivot. None
/// where a pivot is NaN or infinite.
fn factor(n: usize, lower: &mut [f64], mut weak: impl FnMut(usize)) -> Option<()> {
    for column in 0..n {
        let (before, entries) = lower.split_at_mut(column * n);
        let entries = &mut entries[column..n];
        let diagonal = entries[0];
        let mut fours = before.chunks_exact(4 * n);
        for four in &mut fours {
            subtract_four([0, 1, 2, 3].map(|at| &four[at * n + column..(at + 1) * n]), entries);
        }
        for earlier in fours.remainder().chunks_exact(n) {
            subtract(earlier[column], &earlier[column..], entries);
        }
        let pivot = entries[0];
        if pivot <= WEAK * diagonal {
            weak(column);
        }
        if !pivot.is_finite() {
            return None;
        }
        // A pivot lost to rounding is taken as infinite, so that y of its row is 0.
        let pivot = if pivot > PIVOT_ROUNDING * diagonal { pivot.sqrt() } else { f64::INFINITY };
        entries[0] = pivot;
        entries[1..].iter_mut().for_each(|value| *value /= pivot);
    }
    Some(())
}

/// Subtracts a multiple of a column from another.
fn subtract(factor: f64, column: &[f64], from: &mut [f64]) {
    from.iter_mut().zip(column).for_each(|(value, entry)| *value -= factor * entry);
}

/// Subtracts the multiples of four columns by their first entries from another column.
fn subtract_four(columns: [&[f64]; 4], from: &mut [f64]) {
    let n = from.len();
    let [a, b, c, d] = columns.map(|column| &column[..n]);
    let [by_a, by_b, by_c, by_d] = columns.map(|column| column[0]);
    for at in 0..n {
        from[at] -= (by_a * a[at] + by_b * b[at]) + (by_c * c[at] + by_d * d[at]);
    }
}

/// Eliminates a factored block of n rows from the equations of m links: its border E becomes L⁻¹E.
fn eliminate(n: usize, block: &mut [f64], m: usize, links: &mut [f64]) {
    let (lower, border) = block.split_at_mut(n * n);
    for row in 0..n {
        let (above, current) = border.split_at_mut(row * m);
        let current = &mut current[..m];
        for (before, earlier) in above.chunks_exact(m.max(1)).enumerate() {
            subtract(lower[before * n + row], earlier, current);
        }
        for entry in current.iter_mut() {
            *entry /= lower[row * n + row];
        }
        for (link, value) in current.iter().enumerate().filter(|(_, value)| **value != 0.0) {
            subtract(*value, &current[..=link], &mut links[link * m..][..=link]);
        }
    }
}

/// Solves with L of a block, and eliminates the block from the links' right-hand side.
fn forward(block: &[f64], right: &mut [f64], links: &mut [f64]) {
    let n = right.len();
    let (lower, border) = block.split_at(n * n);
    for row in 0..n {
        let column = &lower[row * n..(row + 1) * n];
        let (solved, behind) = right[row..].split_at_mut(1);
        solved[0] /= column[row];
        subtract(solved[0], &column[row + 1..], behind);
        subtract(solved[0], &border[row * links.len()..][..links.len()], links);
    }
}

/// Solves with Lᵀ of a block once the links are known.
fn backward(block: &[f64], y: &mut [f64], links: &[f64]) {
    let n = y.len();
    let (lower, border) = block.split_at(n * n);
    for row in (0..n).rev() {
        let column = &lower[row * n..(row + 1) * n];
        let (value, solved) = y[row..].split_at_mut(1);
        let known = dot(&border[row * links.len()..][..links.len()], links) + dot(&column[row + 1..], solved);
        value[0] = (value[0] - known) / column[row];
    }
}

/// The product of two vectors, in four partial sums: an addition need not wait for the one before.
fn dot(one: &[f64], other: &[f64]) -> f64 {
    let (fours, others) = (one.chunks_exact(4), other.chunks_exact(4));
    let remainder_sum = fours.remainder().iter().zip(others.remainder()).map(|(a, b)| a * b).sum::<f64>();
    let mut sums = [0.0; 4];
    for (a, b) in fours.zip(others) {
        for lane in 0..4 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + remainder_sum
}

/// The largest magnitude of the numbers, found in four lanes, without branches.
fn magnitude(values: &[f64]) -> f64 {
    let larger = |most: f64, value: &f64| if value.abs() > most { value.abs() } else { most };
    let fours = values.chunks_exact(4);
    let of_remainder = fours.remainder().iter().fold(0.0, larger);
    let mut most = [0.0_f64; 4];
    for four in fours {
        most.iter_mut().zip(four).for_each(|(most, value)| *most = larger(*most, value));
    }
    most.iter().fold(of_remainder, larger)
}
