//! Job combinations: a job alone, or two jobs that share the same workers.

use serde::{Deserialize, Serialize};

/// Jobs that share workers: one, or an unordered pair with the smaller id first.
///
/// Generic over the identifier, because a round knows jobs by [`JobId`](crate::index::JobId) and a problem by
/// [`JobIndex`](crate::index::JobIndex).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Combination<J> {
    first: J,
    second: Option<J>,
}

impl<J: Copy + Ord> Combination<J> {
    /// A job alone.
    pub fn single(job: J) -> Self {
        Self { first: job, second: None }
    }

    /// Two jobs that share workers.
    ///
    /// # Panics
    /// If the two are the same job.
    pub fn pair(one: J, other: J) -> Self {
        assert!(one != other, "a job cannot share workers with itself");
        Self { first: one.min(other), second: Some(one.max(other)) }
    }

    /// The members, in order: one or two.
    pub fn members(&self) -> impl DoubleEndedIterator<Item = J> + use<J> {
        std::iter::once(self.first).chain(self.second)
    }

    /// How many members.
    pub fn n_members(&self) -> usize {
        1 + usize::from(self.second.is_some())
    }

    /// The job, or the one of smaller id.
    pub fn first(&self) -> J {
        self.first
    }

    /// The job of larger id, if this is a pair.
    pub fn second(&self) -> Option<J> {
        self.second
    }

    /// Two jobs?
    pub fn is_pair(&self) -> bool {
        self.second.is_some()
    }

    /// Is `job` a member?
    pub fn contains(&self, job: J) -> bool {
        self.first == job || self.second == Some(job)
    }

    /// The same combination under other identifiers.
    pub fn map<I: Copy + Ord>(&self, mut rename: impl FnMut(J) -> I) -> Combination<I> {
        match self.second {
            None => Combination::single(rename(self.first)),
            Some(second) => Combination::pair(rename(self.first), rename(second)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_has_no_order() {
        assert_eq!(Combination::pair(7, 3), Combination::pair(3, 7));
        assert_eq!(Combination::pair(7, 3).members().collect::<Vec<_>>(), [3, 7]);
    }
}
