//! Dense identifiers, and vectors and matrices indexed by them.
//!
//! An identifier is a position; names stay in the files and tables they came from. A vector over one kind of
//! identifier cannot be indexed by another. Conversions between positions and identifiers are marked `#[inline]`: an incremental
//! build inlines nothing of another crate without it.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize};

/// A dense identifier: a position with a type of its own for each kind of thing it counts.
pub trait Id: Copy + Eq + Ord + fmt::Debug {
    /// The identifier of position `index`.
    ///
    /// # Panics
    /// If `index` exceeds `u32::MAX`.
    fn from_index(index: usize) -> Self;
    /// The position of this identifier.
    fn index(self) -> usize;
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(transparent)]
        pub struct $name(u32);

        impl Id for $name {
            #[inline]
            fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).expect("fewer than 2^32 of anything"))
            }
            #[inline]
            fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

id!(
    /// A job of a workload: its position in order of arrival, which stays for the whole run.
    JobId
);
id!(
    /// A job of one [`Problem`](crate::Problem): its position there.
    JobIndex
);
id!(
    /// A kind of accelerator of a cluster.
    WorkerTypeId
);
id!(
    /// One accelerator.
    WorkerId
);
id!(
    /// A host whose workers have fast links among them.
    ServerId
);
id!(
    /// A row of a throughput matrix: a job type at a scale factor.
    RowId
);
id!(
    /// A job combination of one allocation or problem: a job alone or jobs that share workers.
    CombinationId
);
id!(
    /// A type of job in a published world, on concrete servers: what decides its needs and its speeds.
    JobTypeId
);
id!(
    /// An owner of jobs in a hierarchical policy.
    EntityId
);

/// A vector indexed by one kind of identifier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IndexVec<I, T> {
    items: Vec<T>,
    #[serde(skip)]
    index: PhantomData<I>,
}

impl<I: Id, T> IndexVec<I, T> {
    /// An empty vector.
    pub const fn new() -> Self {
        Self { items: Vec::new(), index: PhantomData }
    }

    /// Adds an item and returns its identifier.
    pub fn push(&mut self, item: T) -> I {
        self.items.push(item);
        I::from_index(self.items.len() - 1)
    }

    /// Replaces an item and returns the old one.
    ///
    /// # Panics
    /// If there is no such item.
    pub fn replace(&mut self, id: I, item: T) -> T {
        std::mem::replace(&mut self.items[id.index()], item)
    }

    /// Removes an item and returns it; the last item takes its place.
    ///
    /// # Panics
    /// If there is no such item.
    pub fn swap_remove(&mut self, id: I) -> T {
        self.items.swap_remove(id.index())
    }

    /// Reserves room for `n_items` more items.
    pub fn reserve(&mut self, n_items: usize) {
        self.items.reserve_exact(n_items);
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Items in order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }

    /// Identifiers in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + use<I, T> {
        (0..self.items.len()).map(I::from_index)
    }

    /// Identifiers and items in order.
    pub fn enumerate(&self) -> impl DoubleEndedIterator<Item = (I, &T)> + ExactSizeIterator {
        self.items.iter().enumerate().map(|(index, item)| (I::from_index(index), item))
    }

    /// The item of this identifier; `None` past the end.
    pub fn get(&self, id: I) -> Option<&T> {
        self.items.get(id.index())
    }

    /// Items as a plain slice.
    pub fn as_slice(&self) -> &[T] {
        &self.items
    }
}

impl<I: Id, T> Default for IndexVec<I, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: Id, T> From<Vec<T>> for IndexVec<I, T> {
    fn from(items: Vec<T>) -> Self {
        Self { items, index: PhantomData }
    }
}

impl<I: Id, T> FromIterator<T> for IndexVec<I, T> {
    fn from_iter<A: IntoIterator<Item = T>>(items: A) -> Self {
        Self::from(items.into_iter().collect::<Vec<_>>())
    }
}

impl<I: Id, T> Index<I> for IndexVec<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        &self.items[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for IndexVec<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.index()]
    }
}

impl<'a, I: Id, T> IntoIterator for &'a IndexVec<I, T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

/// A dense row-major matrix of `f64` whose rows and columns are counted by two kinds of identifier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Matrix<R, C> {
    values: Vec<f64>,
    n_columns: usize,
    #[serde(skip)]
    index: PhantomData<(R, C)>,
}

impl<R: Id, C: Id> Matrix<R, C> {
    /// `n_rows × n_columns` zeros.
    pub fn zeros(n_rows: usize, n_columns: usize) -> Self {
        Self { values: vec![0.0; n_rows * n_columns], n_columns, index: PhantomData }
    }

    /// An empty matrix for rows of `n_columns` values.
    pub fn with_columns(n_columns: usize) -> Self {
        Self::zeros(0, n_columns)
    }

    /// A matrix from its values, row after row.
    ///
    /// # Panics
    /// If the values do not fill whole rows.
    pub fn from_rows(values: Vec<f64>, n_columns: usize) -> Self {
        let whole = if n_columns == 0 { values.is_empty() } else { values.len().is_multiple_of(n_columns) };
        assert!(whole, "a row has one value per column");
        Self { values, n_columns, index: PhantomData }
    }

    /// Reserves room for `n_rows` more rows.
    pub fn reserve(&mut self, n_rows: usize) {
        self.values.reserve_exact(n_rows * self.n_columns);
    }

    /// Adds a row at the end.
    ///
    /// # Panics
    /// If the row has another length than the matrix has columns.
    pub fn push_row(&mut self, row: &[f64]) -> R {
        assert_eq!(row.len(), self.n_columns, "a row has one value per column");
        let id = R::from_index(self.n_rows());
        self.values.extend_from_slice(row);
        id
    }

    /// Removes a row; the last row takes its place.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn swap_remove_row(&mut self, row: R) {
        let last = self.values.len() - self.n_columns;
        self.values.copy_within(last.., row.index() * self.n_columns);
        self.values.truncate(last);
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.values.len().checked_div(self.n_columns).unwrap_or(0)
    }

    /// Number of columns.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// One row, as a slice over the columns.
    pub fn row(&self, row: R) -> &[f64] {
        &self.values[row.index() * self.n_columns..(row.index() + 1) * self.n_columns]
    }

    /// One row, as a mutable slice over the columns.
    pub fn row_mut(&mut self, row: R) -> &mut [f64] {
        &mut self.values[row.index() * self.n_columns..(row.index() + 1) * self.n_columns]
    }

    /// All values, row after row.
    pub fn as_slice(&self) -> &[f64] {
        &self.values
    }
}

impl<R: Id, C: Id> Index<(R, C)> for Matrix<R, C> {
    type Output = f64;
    fn index(&self, (row, column): (R, C)) -> &f64 {
        &self.row(row)[column.index()]
    }
}

impl<R: Id, C: Id> IndexMut<(R, C)> for Matrix<R, C> {
    fn index_mut(&mut self, (row, column): (R, C)) -> &mut f64 {
        &mut self.row_mut(row)[column.index()]
    }
}
