//! The shares of an allocation, row by row.

use std::ops::Index;

use serde::{Deserialize, Serialize};

use crate::index::{CombinationId, Id, Matrix, WorkerTypeId};

/// X: [combination × worker type].
///
/// Equal rows of jobs alone are kept once. Comparison and serialization work on the matrix of all rows.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Matrix<CombinationId, WorkerTypeId>", into = "Matrix<CombinationId, WorkerTypeId>")]
pub struct Shares {
    /// The kept row of each of the first combinations; later combinations have rows of their own, in order, after those rows.
    alike: Vec<u32>,
    /// Number of kept rows of the first combinations; 0 where `alike` is empty.
    n_kinds: usize,
    /// Shares of the kept rows, row after row: [kept rows × K].
    kept: Vec<f64>,
    n_types: usize,
}

impl Shares {
    /// No rows yet, for rows of `n_types` shares.
    pub(super) fn with_types(n_types: usize) -> Self {
        Self { alike: Vec::new(), n_kinds: 0, kept: Vec::new(), n_types }
    }

    /// Reserves room for `n_rows` more rows of their own.
    pub(super) fn reserve(&mut self, n_rows: usize) {
        self.kept.reserve_exact(n_rows * self.n_types);
    }

    /// Sets the first rows: `of` is the row in `kinds` of each; `kinds` is [kinds × K].
    ///
    /// # Panics
    /// If there are rows already, or one is of no kind.
    pub(super) fn begin(&mut self, of: &[u32], kinds: Vec<f64>) {
        assert_eq!(self.n_rows(), 0, "rows that are alike are the first");
        let n_kinds = kinds.len() / self.n_types;
        assert!(of.iter().all(|kind| (*kind as usize) < n_kinds), "every row is of some kind");
        self.kept = kinds;
        if of.len() != n_kinds || !of.iter().zip(0..).all(|(kind, place)| *kind == place) {
            (self.alike, self.n_kinds) = (of.to_vec(), n_kinds);
        }
    }

    /// Adds a row and returns it as it is kept, for corrections.
    #[inline]
    pub(super) fn push(&mut self, shares: impl IntoIterator<Item = f64>) -> &mut [f64] {
        let begin = self.kept.len();
        self.kept.extend(shares);
        let row = &mut self.kept[begin..];
        assert_eq!(row.len(), self.n_types, "a row has one share per worker type");
        row
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        let kept = self.kept.len().checked_div(self.n_types).unwrap_or(0);
        kept - self.n_kinds + self.alike.len()
    }

    /// One row: `[K]`.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, combination: CombinationId) -> &[f64] {
        let at = combination.index();
        let kind = self.alike.get(at).map(|kind| *kind as usize);
        let place = kind.unwrap_or_else(|| at - self.alike.len() + self.n_kinds);
        &self.kept[place * self.n_types..(place + 1) * self.n_types]
    }

    /// All rows, in order: `[K]` each.
    pub fn rows(&self) -> impl Iterator<Item = &[f64]> {
        (0..self.n_rows()).map(|row| self.row(CombinationId::from_index(row)))
    }
}

impl Index<(CombinationId, WorkerTypeId)> for Shares {
    type Output = f64;

    fn index(&self, (combination, worker_type): (CombinationId, WorkerTypeId)) -> &f64 {
        &self.row(combination)[worker_type.index()]
    }
}

impl PartialEq for Shares {
    fn eq(&self, other: &Self) -> bool {
        (self.n_rows(), self.n_types) == (other.n_rows(), other.n_types) && self.rows().eq(other.rows())
    }
}

impl From<Shares> for Matrix<CombinationId, WorkerTypeId> {
    fn from(shares: Shares) -> Self {
        Self::from_rows(shares.rows().flatten().copied().collect(), shares.n_types)
    }
}

impl From<Matrix<CombinationId, WorkerTypeId>> for Shares {
    fn from(rows: Matrix<CombinationId, WorkerTypeId>) -> Self {
        let n_types = rows.n_columns();
        Self { kept: rows.as_slice().to_vec(), ..Self::with_types(n_types) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_what_they_are_however_they_are_kept() {
        let mut alike = Shares::with_types(2);
        alike.begin(&[1, 0, 1], vec![0.25, 0.5, 1.0, 0.0]);
        alike.push([0.125, 0.0]);
        let mut one_by_one = Shares::with_types(2);
        for row in [[1.0, 0.0], [0.25, 0.5], [1.0, 0.0], [0.125, 0.0]] {
            one_by_one.push(row);
        }
        assert_eq!(alike, one_by_one);
        assert_eq!((alike.n_rows(), alike.kept.len(), one_by_one.kept.len()), (4, 6, 8));
        let at = (CombinationId::from_index(1), WorkerTypeId::from_index(1));
        assert_eq!(alike[at].to_bits(), 0.5_f64.to_bits());
        let text = serde_json::to_string(&alike).unwrap();
        assert_eq!(text, serde_json::to_string(&one_by_one).unwrap());
        assert_eq!(serde_json::from_str::<Shares>(&text).unwrap(), alike);
        let mut in_turn = Shares::with_types(2);
        in_turn.begin(&[0, 1], vec![1.0, 0.0, 0.25, 0.5]);
        assert!(in_turn.alike.is_empty() && in_turn.rows().eq(alike.rows().take(2)));
        one_by_one.push([0.0, 0.0]);
        assert_ne!(alike, one_by_one);
    }
}
