//! Contention models: what a job keeps of its throughput beside another on the same workers.
//!
//! Retention is the fraction of its isolated throughput that a row keeps beside another, per worker type; a
//! model turns it into the co-located steps/s that [`Measured`](super::Measured) holds. Models are variants of
//! [`Contention`], and files name them so; a new one is a variant here, its table in the file format, and a
//! function that fills [`Array3`] like [`measured`].

use ndarray::Array3;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How co-located throughputs are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Contention {
    /// Jobs never share workers.
    None,
    /// From a table of retained fractions, pair by pair.
    Measured,
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

/// The fraction of `alone` that `colocated` is, chosen so that `alone` times it gives `colocated` back to the last
/// bit wherever some double does; elsewhere it misses by one unit in the last place. 0 where `alone` is 0.
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
