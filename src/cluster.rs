//! The cluster: worker types, their workers, the servers that hold them, and their prices.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::index::{Id, IndexVec, WorkerTypeId};
use crate::units::DollarsPerWorkerHour;

/// The most workers of one type; more is taken for a mistake.
pub const WORKERS_PER_TYPE_MAX: u32 = 10_000_000;

/// The range of prices of a worker, in $/h. Policies divide by prices, so 0 is excluded.
pub const PRICES: RangeInclusive<f64> = 1e-9..=1e9;

/// A kind of accelerator, and the number of its workers in the cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkerType {
    /// Its name in the throughput matrix.
    pub name: String,
    /// Number of workers of this type.
    pub n_workers: u32,
    /// Workers on each server; the last server may hold fewer.
    pub workers_per_server: u32,
    /// The price of one worker; none if it has no price.
    pub price: Option<DollarsPerWorkerHour>,
}

/// A cluster: worker types in the order in which they were named, fastest first by convention.
///
/// ```
/// use apportion::Cluster;
/// let cluster: Cluster = "v100=36,p100=36,k80=36".parse()?;
/// assert_eq!(cluster.n_workers(), 108);
/// assert!("v100=0".parse::<Cluster>().is_err());
/// # Ok::<(), apportion::ClusterError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cluster {
    /// The worker types, in the order of their numbers in events.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<WorkerType>"))]
    types: IndexVec<WorkerTypeId, WorkerType>,
}

/// Why a cluster could not be made.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// No worker at all.
    #[error("the cluster has no workers")]
    Empty,
    /// Two entries for one worker type.
    #[error("worker type `{name}` is named twice")]
    Duplicate {
        /// The type's name.
        name: String,
    },
    /// A count that is too large.
    #[error("{n_workers} workers of `{name}`: expected at most {WORKERS_PER_TYPE_MAX}")]
    TooMany {
        /// The type's name.
        name: String,
        /// The count.
        n_workers: u64,
    },
    /// Text that is not `type=count`.
    #[error("`{text}` is not `worker_type=count`")]
    Syntax {
        /// The part that is wrong.
        text: String,
    },
    /// A type the cluster does not have.
    #[error("the cluster has no worker type `{name}`, expected one of {expected}")]
    UnknownType {
        /// The name that was asked for.
        name: String,
        /// The known names, in words.
        expected: String,
    },
}

impl Cluster {
    /// A cluster of `(name, workers)`; every worker is a server of its own, unless
    /// [`with_workers_per_server`](Self::with_workers_per_server) changes that.
    ///
    /// # Errors
    /// If there is no worker, a name occurs twice, or a count exceeds [`WORKERS_PER_TYPE_MAX`].
    pub fn try_new<S: Into<String>>(types: impl IntoIterator<Item = (S, u32)>) -> Result<Self, ClusterError> {
        let mut cluster = Self { types: IndexVec::new() };
        let mut names = BTreeSet::new();
        for (name, n_workers) in types {
            let name = name.into();
            if !names.insert(name.clone()) {
                return Err(ClusterError::Duplicate { name });
            }
            if n_workers > WORKERS_PER_TYPE_MAX {
                return Err(ClusterError::TooMany { name, n_workers: u64::from(n_workers) });
            }
            cluster.types.push(WorkerType { name, n_workers, workers_per_server: 1, price: None });
        }
        if cluster.n_workers() == 0 { Err(ClusterError::Empty) } else { Ok(cluster) }
    }

    /// This cluster with `per_server` workers on each server of type `name`.
    ///
    /// # Errors
    /// If there is no such type.
    pub fn with_workers_per_server(mut self, name: &str, per_server: u32) -> Result<Self, ClusterError> {
        let id = self.try_find(name)?;
        self.types[id].workers_per_server = per_server.max(1);
        Ok(self)
    }

    /// This cluster with a price for the workers of type `name`.
    ///
    /// # Errors
    /// If there is no such type.
    pub fn with_price(mut self, name: &str, price: DollarsPerWorkerHour) -> Result<Self, ClusterError> {
        let id = self.try_find(name)?;
        self.types[id].price = Some(price);
        Ok(self)
    }

    /// This cluster with its types in the order of `names`, the throughput matrix's own; types that `names` lacks come last, in
    /// their present order.
    #[must_use]
    pub fn ordered_as<S: AsRef<str>>(&self, names: &[S]) -> Self {
        let place = |name: &str| names.iter().position(|other| other.as_ref() == name).unwrap_or(names.len());
        let mut types: Vec<WorkerType> = self.types.iter().cloned().collect();
        types.sort_by_key(|worker_type| place(&worker_type.name));
        Self { types: types.into() }
    }

    /// This cluster with other numbers of workers; all may be 0, if every worker has failed.
    #[must_use]
    pub fn with_counts(&self, n_workers: impl Fn(WorkerTypeId) -> u32) -> Self {
        let mut cluster = self.clone();
        for id in self.types.ids() {
            cluster.types[id].n_workers = n_workers(id);
        }
        cluster
    }

    /// Changes the number of workers on each server of a worker type; at least one.
    pub fn set_workers_per_server(&mut self, id: WorkerTypeId, per_server: u32) {
        self.types[id].workers_per_server = per_server.max(1);
    }

    /// Changes the price of a worker type.
    pub fn set_price(&mut self, id: WorkerTypeId, price: DollarsPerWorkerHour) {
        self.types[id].price = Some(price);
    }

    /// The worker types, in order.
    #[inline]
    pub fn types(&self) -> &IndexVec<WorkerTypeId, WorkerType> {
        &self.types
    }

    /// The number of worker types, K.
    pub fn n_types(&self) -> usize {
        self.types.len()
    }

    /// Number of workers of all types.
    pub fn n_workers(&self) -> u64 {
        self.types.iter().map(|worker_type| u64::from(worker_type.n_workers)).sum()
    }

    /// The type with this name; none if there is none.
    pub fn find(&self, name: &str) -> Option<WorkerTypeId> {
        self.types.iter().position(|worker_type| worker_type.name == name).map(Id::from_index)
    }

    fn try_find(&self, name: &str) -> Result<WorkerTypeId, ClusterError> {
        self.find(name).ok_or_else(|| ClusterError::UnknownType {
            name: name.to_owned(),
            expected: self.types.iter().map(|t| format!("`{}`", t.name)).collect::<Vec<_>>().join(", "),
        })
    }
}

impl FromStr for Cluster {
    type Err = ClusterError;

    /// Reads `v100=36,p100=36,k80=36`.
    fn from_str(text: &str) -> Result<Self, ClusterError> {
        let mut types = Vec::new();
        for piece in text.split(',').map(str::trim) {
            let syntax = || ClusterError::Syntax { text: piece.to_owned() };
            let (name, count) = piece.split_once('=').ok_or_else(syntax)?;
            let (name, count) = (name.trim(), count.trim());
            let n_workers: u64 = count.parse().map_err(|_| syntax())?;
            if name.is_empty() {
                return Err(syntax());
            }
            let too_many = || ClusterError::TooMany { name: name.to_owned(), n_workers };
            types.push((name, u32::try_from(n_workers).map_err(|_| too_many())?));
        }
        Self::try_new(types)
    }
}

impl fmt::Display for Cluster {
    /// Writes the text that [`from_str`](FromStr::from_str) reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, worker_type) in self.types.iter().enumerate() {
            let comma = if position == 0 { "" } else { "," };
            write!(f, "{comma}{}={}", worker_type.name, worker_type.n_workers)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        let cluster: Cluster = "v100=4, p100=0,k80=2".parse().unwrap();
        assert_eq!(cluster.to_string(), "v100=4,p100=0,k80=2");
        assert_eq!(cluster.ordered_as(&["k80", "v100"]).to_string(), "k80=2,v100=4,p100=0");
    }

    #[test]
    fn bad_clusters_are_refused() {
        for text in ["", "v100", "v100=-1", "v100=0", "=3", "v100=1,v100=2", "v100=99999999999"] {
            assert!(text.parse::<Cluster>().is_err(), "{text}");
        }
    }
}
