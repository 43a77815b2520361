//! The entries of normal equations, G·D·Gᵀ, as sums over columns.
//!
//! Every pair of terms of a column adds to one entry, the same at every step of a method. A [`Plan`] finds these
//! entries once. Each entry is summed up in the order of columns.

use super::Matrix;
use super::factor::{BlockStructure, Place};

/// The entry to which each product of two terms is added, for one block structure.
pub(in crate::solver) struct Plan {
    pub(super) structure: BlockStructure,
    /// The entry of each pair of terms, in order of columns that are not long, of their terms, and of terms up to that one.
    into: Vec<u32>,
    /// Position of each block's first entry, then that of the links: [blocks + 1]. A block of n rows has its lower part
    /// [n × n] by columns, then its border [n × links].
    starts: Vec<usize>,
    /// The place of each row in the order of blocks, links last: [rows].
    pub(super) order: Vec<u32>,
}

impl Plan {
    pub(super) fn of(matrix: &Matrix, structure: BlockStructure) -> Self {
        let m = structure.n_links;
        let mut starts = vec![0];
        starts.extend(structure.sizes.iter().scan(0, |end, n| {
            *end += n * (n + m);
            Some(*end)
        }));
        let firsts: Vec<usize> =
            structure.sizes.iter().scan(0, |end, n| Some(std::mem::replace(end, *end + n))).collect();
        let n_in_blocks: usize = structure.sizes.iter().sum();
        let ordered = |place: &Place| match place {
            Place::Block { block, at } => firsts[*block] + at,
            Place::Link { at } => n_in_blocks + at,
        };
        let index = |place: usize| u32::try_from(place).expect("fewer than 2^32 entries");
        let order = structure.rows.iter().map(|place| index(ordered(place))).collect();
        let mut plan = Self { structure, into: Vec::new(), starts, order };
        let mut into = Vec::new();
        for ((rows, _), long) in matrix.terms().zip(&plan.structure.long) {
            for (position, row) in rows.iter().enumerate().filter(|_| long.is_none()) {
                let entry =
                    |other: &usize| index(plan.entry(plan.structure.rows[*row], plan.structure.rows[*other]));
                into.extend(rows[..=position].iter().map(entry));
            }
        }
        plan.into = into;
        plan
    }

    /// The position of the entry of two rows, in whichever order they are given.
    fn entry(&self, one: Place, other: Place) -> usize {
        let m = self.structure.n_links;
        match (one, other) {
            (Place::Block { block, at }, Place::Block { at: beside, .. }) => {
                self.starts[block] + at.min(beside) * self.structure.sizes[block] + at.max(beside)
            }
            (Place::Block { block, at }, Place::Link { at: link })
            | (Place::Link { at: link }, Place::Block { block, at }) => {
                self.starts[block] + self.structure.sizes[block] * self.structure.sizes[block] + at * m + link
            }
            (Place::Link { at }, Place::Link { at: beside }) => {
                self.starts[self.structure.sizes.len()] + at.max(beside) * m + at.min(beside)
            }
        }
    }

    /// Number of entries of all blocks; the entries of the links [links × links] come behind.
    pub(super) fn n_entries_of_blocks(&self) -> usize {
        self.starts[self.structure.sizes.len()]
    }

    /// Number of rows in blocks and of links.
    pub(super) fn n_ordered(&self) -> usize {
        self.structure.sizes.iter().sum::<usize>() + self.structure.n_links
    }

    /// The number of rows of each block, and its entries.
    pub(super) fn blocks<'e>(&self, entries: &'e [f64]) -> impl Iterator<Item = (usize, &'e [f64])> {
        let ends = self.starts.windows(2);
        self.structure.sizes.iter().zip(ends).map(|(n, ends)| (*n, &entries[ends[0]..ends[1]]))
    }

    /// The number of rows of each block, and its entries, to be changed.
    pub(super) fn blocks_mut<'e>(
        &self,
        mut entries: &'e mut [f64],
    ) -> impl Iterator<Item = (usize, &'e mut [f64])> {
        self.structure.sizes.iter().map(move |n| {
            let (block, behind) = std::mem::take(&mut entries).split_at_mut(n * (n + self.structure.n_links));
            entries = behind;
            (*n, block)
        })
    }

    /// The entries of G·D·Gᵀ for D = `diagonal`: lower parts, block by block, then those of the links.
    pub(super) fn sums(&self, matrix: &Matrix, diagonal: &[f64]) -> Vec<f64> {
        let m = self.structure.n_links;
        let mut sums = vec![0.0; self.starts[self.structure.sizes.len()] + m * m];
        let mut into = self.into.as_slice();
        for (((rows, values), ratio), long) in matrix.terms().zip(diagonal).zip(&self.structure.long) {
            if let Some(at) = long {
                let link = Place::Link { at: *at };
                sums[self.entry(link, link)] -= ratio.recip();
                for (row, value) in rows.iter().zip(values) {
                    sums[self.entry(link, self.structure.rows[*row])] += value;
                }
                continue;
            }
            for (position, value) in values.iter().enumerate() {
                let part = ratio * value;
                let (entries, later) = into.split_at(position + 1);
                for (entry, coefficient) in entries.iter().zip(values) {
                    sums[*entry as usize] += part * coefficient;
                }
                into = later;
            }
        }
        for (place, ratio) in self.structure.rows.iter().zip(&diagonal[matrix.n_columns()..]) {
            sums[self.entry(*place, *place)] += ratio;
        }
        sums
    }
}
