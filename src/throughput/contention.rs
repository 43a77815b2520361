//! Contention models: the throughput that a job keeps beside another on the same workers.
//!
//! Retention is the fraction of its isolated throughput that a row keeps beside another, per worker type; a model turns it into the
//! co-located steps/s that [`Measured`](super::Measured) holds. Models are variants of [`Contention`], and files name them so; a
//! new one needs a variant here, its table in the file format, and a function that fills [`Array3`] like [`measured`].

pub mod fit;
mod levenberg_marquardt;
pub mod network;
pub mod network_fit;
pub mod resource;
pub mod resource_fit;
#[cfg(test)]
#[path = "contention/tests.rs"]
mod model_tests;

pub use fit::{Errors, FitError, FitReport, FitSettings, Judged};
pub use network::NetworkModel;
pub use network_fit::fit_network;
pub use resource::ResourceModel;
pub use resource_fit::fit_resource;

use ndarray::Array3;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::throughput::{Throughputs, ThroughputsError};

/// The source of co-located throughputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Contention {
    /// Jobs never share workers.
    None,
    /// A table of retained fractions, pair by pair.
    Measured,
    /// Demands for shared resources.
    Resource,
    /// Traffic on the links between servers.
    Network,
}

/// A contention model with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum ContentionModel {
    /// Jobs never share workers.
    None,
    /// Measured throughputs, without a model.
    Measured,
    /// Max-min shares of resources.
    Resource(ResourceModel),
    /// Fair shares of the links between servers.
    Network(NetworkModel),
}

/// Why a contention model cannot be used.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ContentionError {
    /// A number out of its range.
    #[error("{path} is {value}, expected {expected}")]
    Value {
        /// The number, as a path in the model.
        path: String,
        /// The value that was given.
        value: f64,
        /// The values that are allowed, in words.
        expected: &'static str,
    },
    /// A list of another length than it needs.
    #[error("{path} has {found} values, expected {expected}")]
    Length {
        /// The list, as a path in the model.
        path: String,
        /// The number of values in the list.
        found: usize,
        /// The length it ought to have.
        expected: usize,
    },
    /// A job type that the model does not have.
    #[error("the contention model has no parameters of `{job_type}` {place}")]
    UnknownJobType {
        /// The job type.
        job_type: String,
        /// The worker type, or the size, at which it is missing.
        place: String,
    },
    /// A worker type that the model does not have.
    #[error("the contention model has no worker type `{worker_type}`, expected one of {expected}")]
    UnknownWorkerType {
        /// The worker type.
        worker_type: String,
        /// The worker types of the model.
        expected: String,
    },
    /// Modelled throughputs that are not a matrix: the isolated ones overflow.
    #[error(transparent)]
    Throughputs(#[from] ThroughputsError),
}

impl ContentionError {
    fn value(path: String, value: f64, expected: &'static str) -> Self {
        Self::Value { path, value, expected }
    }

    /// The place of the fault in the model, as a path of keys; none if the fault is not in one place.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::Value { path, .. } | Self::Length { path, .. } => Some(path),
            Self::UnknownJobType { .. } | Self::UnknownWorkerType { .. } | Self::Throughputs(_) => None,
        }
    }
}

impl ContentionModel {
    /// The kind of the model.
    pub const fn kind(&self) -> Contention {
        match self {
            Self::None => Contention::None,
            Self::Measured => Contention::Measured,
            Self::Resource(_) => Contention::Resource,
            Self::Network(_) => Contention::Network,
        }
    }

    /// The matrix whose co-located throughputs come from this model; isolated ones are kept.
    ///
    /// # Errors
    /// If a parameter is out of range, or a row or worker type has no parameters.
    pub fn apply(&self, throughputs: &Throughputs) -> Result<Throughputs, ContentionError> {
        let colocated = match self {
            Self::None => Array3::zeros((0, 0, 0)),
            Self::Measured => return Ok(throughputs.clone()),
            Self::Resource(model) => {
                model.check()?;
                model.colocated(throughputs)?
            }
            Self::Network(model) => {
                model.check()?;
                model.colocated(throughputs)?
            }
        };
        Ok(throughputs.with_colocated(colocated)?)
    }
}

/// Co-located steps/s [type × row × other] under [`Contention::Measured`]: isolated throughput
/// `alone` [row × type] times retained fraction `retained` [type × row × other].
///
/// # Panics
/// If the shapes disagree.
pub fn measured(alone: &[Vec<f64>], retained: &Array3<f64>) -> Array3<f64> {
    let mut colocated = retained.clone();
    for ((worker_type, row, _), value) in colocated.indexed_iter_mut() {
        *value *= alone[row][worker_type];
    }
    colocated
}

/// The fraction of `alone` that `colocated` is, chosen so that `alone` times it gives `colocated` back to the last bit if some
/// double does; else it misses by one unit in the last place. 0 if `alone` is 0.
pub fn retention(alone: f64, colocated: f64) -> f64 {
    if alone == 0.0 {
        return 0.0;
    }
    let quotient = colocated / alone;
    let near = [quotient, quotient.next_up(), quotient.next_down()];
    near.into_iter().find(|fraction| (alone * fraction).to_bits() == colocated.to_bits()).unwrap_or(quotient)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_retained_fraction_gives_the_measurement_back(alone in 1e-3..1e4_f64, kept in 0.0..1.2_f64) {
            let colocated = alone * kept;
            let again = alone * retention(alone, colocated);
            prop_assert!((again - colocated).abs() <= 4e-16 * colocated, "{again} for {colocated}");
        }
    }

    #[test]
    fn nothing_is_retained_of_nothing() {
        assert_eq!(retention(0.0, 0.0).to_bits(), 0.0_f64.to_bits());
        let retained = Array3::from_elem((1, 2, 2), 0.5);
        assert_eq!(measured(&[vec![8.0], vec![0.0]], &retained).as_slice().unwrap(), [4.0, 4.0, 0.0, 0.0]);
    }
}
