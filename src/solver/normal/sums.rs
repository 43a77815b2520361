//! The entries of normal equations, G·D·Gᵀ, as sums over columns.
//!
//! Every pair of terms of a column adds to one entry, at every step of the method to the same one. A [`Plan`] has these
//! entries, so that they are looked up once. Each entry is summed up in the order of columns.

use super::Matrix;
use super::factor::{Block, Layout, Place};

/// The entry to which each product of two terms is added, for one layout.
pub(in crate::solver) struct Plan {
    pub(super) layout: Layout,
    /// The entry of each pair of terms: columns that are not long, their terms, the terms up to that one.
    into: Vec<u32>,
    /// Where each block begins among the entries: its lower part, then its border; the links come last: [blocks + 1].
    starts: Vec<usize>,
}

impl Plan {
    pub(super) fn of(matrix: &Matrix, layout: Layout) -> Self {
        let m = layout.n_links;
        let mut starts = vec![0];
        starts.extend(layout.sizes.iter().scan(0, |end, n| {
            *end += n * (n + m);
            Some(*end)
        }));
        let mut plan = Self { layout, into: Vec::new(), starts };
        let mut into = Vec::new();
        for ((rows, _), long) in matrix.terms().zip(&plan.layout.long) {
            for (position, row) in rows.iter().enumerate().filter(|_| long.is_none()) {
                let entry = |other: &usize| {
                    let entry = plan.entry(plan.layout.rows[*row], plan.layout.rows[*other]);
                    u32::try_from(entry).expect("fewer than 2^32 entries")
                };
                into.extend(rows[..=position].iter().map(entry));
            }
        }
        plan.into = into;
        plan
    }

    /// The entry of two rows, whichever comes first.
    fn entry(&self, one: Place, other: Place) -> usize {
        let m = self.layout.n_links;
        match (one, other) {
            (Place::Block { block, at }, Place::Block { at: beside, .. }) => {
                self.starts[block] + at.max(beside) * self.layout.sizes[block] + at.min(beside)
            }
            (Place::Block { block, at }, Place::Link { at: link })
            | (Place::Link { at: link }, Place::Block { block, at }) => {
                self.starts[block] + self.layout.sizes[block] * self.layout.sizes[block] + at * m + link
            }
            (Place::Link { at }, Place::Link { at: beside }) => {
                self.starts[self.layout.sizes.len()] + at.max(beside) * m + at.min(beside)
            }
        }
    }

    /// The blocks and the links [links × links] of this D: lower parts.
    pub(super) fn sums(&self, matrix: &Matrix, diagonal: &[f64]) -> (Vec<Block>, Vec<f64>) {
        let m = self.layout.n_links;
        let mut sums = vec![0.0; self.starts[self.layout.sizes.len()] + m * m];
        let mut into = self.into.as_slice();
        for (((rows, values), ratio), long) in matrix.terms().zip(diagonal).zip(&self.layout.long) {
            if let Some(at) = long {
                let own = Place::Link { at: *at };
                sums[self.entry(own, own)] -= ratio.recip();
                for (row, value) in rows.iter().zip(values) {
                    sums[self.entry(own, self.layout.rows[*row])] += value;
                }
                continue;
            }
            for (position, value) in values.iter().enumerate() {
                let part = ratio * value;
                let (entries, rest) = into.split_at(position + 1);
                for (entry, coefficient) in entries.iter().zip(values) {
                    sums[*entry as usize] += part * coefficient;
                }
                into = rest;
            }
        }
        for (place, ratio) in self.layout.rows.iter().zip(&diagonal[matrix.n_columns()..]) {
            sums[self.entry(*place, *place)] += ratio;
        }
        self.split(sums)
    }

    fn split(&self, mut sums: Vec<f64>) -> (Vec<Block>, Vec<f64>) {
        let links = sums.split_off(self.starts[self.layout.sizes.len()]);
        let mut blocks = Vec::with_capacity(self.layout.sizes.len());
        for (n, start) in self.layout.sizes.iter().zip(&self.starts).rev() {
            let border = sums.split_off(start + n * n);
            blocks.push(Block { n: *n, lower: sums.split_off(*start), border });
        }
        blocks.reverse();
        (blocks, links)
    }
}
