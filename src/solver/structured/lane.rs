//! Eight numbers side by side, one per block: what the compiler turns into vector instructions.
//!
//! Every operation is elementwise and every sum over lanes is taken in order, so a result does not depend on the
//! width of the machine's vectors.

use std::array;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

/// Blocks that are worked on at once.
pub(super) const LANES: usize = 8;

/// One number for each of eight blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Lane(pub(super) [f64; LANES]);

impl Lane {
    pub(super) const ZERO: Self = Self([0.0; LANES]);
    pub(super) const ONE: Self = Self([1.0; LANES]);

    #[inline]
    pub(super) fn all(value: f64) -> Self {
        Self([value; LANES])
    }

    #[inline]
    pub(super) fn max(self, other: Self) -> Self {
        Self(array::from_fn(|i| if self.0[i] > other.0[i] { self.0[i] } else { other.0[i] }))
    }

    #[inline]
    pub(super) fn min(self, other: Self) -> Self {
        Self(array::from_fn(|i| if self.0[i] < other.0[i] { self.0[i] } else { other.0[i] }))
    }

    #[inline]
    pub(super) fn abs(self) -> Self {
        Self(array::from_fn(|i| self.0[i].abs()))
    }

    /// The sum, from the first lane to the last.
    pub(super) fn sum(self) -> f64 {
        self.0.iter().sum()
    }

    /// Is this so of any of them?
    #[inline]
    pub(super) fn any(self, is: impl Fn(f64) -> bool) -> bool {
        self.0.iter().fold(false, |any, value| any | is(*value))
    }

    /// The largest.
    pub(super) fn largest(self) -> f64 {
        self.0.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b))
    }
}

impl Add for Lane {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(array::from_fn(|i| self.0[i] + other.0[i]))
    }
}

impl AddAssign for Lane {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Lane {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(array::from_fn(|i| self.0[i] - other.0[i]))
    }
}

impl Mul for Lane {
    type Output = Self;
    #[inline]
    fn mul(self, other: Self) -> Self {
        Self(array::from_fn(|i| self.0[i] * other.0[i]))
    }
}

impl Mul<f64> for Lane {
    type Output = Self;
    #[inline]
    fn mul(self, other: f64) -> Self {
        Self(array::from_fn(|i| self.0[i] * other))
    }
}

impl Div for Lane {
    type Output = Self;
    #[inline]
    fn div(self, other: Self) -> Self {
        Self(array::from_fn(|i| self.0[i] / other.0[i]))
    }
}

impl Neg for Lane {
    type Output = Self;
    #[inline]
    fn neg(self) -> Self {
        Self(array::from_fn(|i| -self.0[i]))
    }
}
