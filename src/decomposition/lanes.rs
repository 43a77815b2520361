//! A vector of eight `f64`, one for each of eight subproblems, with operations that the compiler turns into vector
//! instructions.
//!
//! Every operation is elementwise and every sum over lanes is taken in order, so a result does not depend on the
//! width of the machine's vectors.

use std::array;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

/// Number of subproblems in a vector.
pub(crate) const LANES: usize = 8;

/// One number for each of eight subproblems.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct F64x8(pub(crate) [f64; LANES]);

impl F64x8 {
    /// 0 in each lane.
    pub(crate) const ZERO: Self = Self([0.0; LANES]);

    /// The larger number of each lane.
    #[inline]
    pub(crate) fn max(self, other: Self) -> Self {
        Self(array::from_fn(|i| if self.0[i] > other.0[i] { self.0[i] } else { other.0[i] }))
    }

    /// The magnitude of each lane's number.
    #[inline]
    pub(crate) fn abs(self) -> Self {
        Self(array::from_fn(|i| self.0[i].abs()))
    }

    /// The sum of all lanes, added up from the first lane to the last.
    pub(crate) fn sum(self) -> f64 {
        self.0.iter().sum()
    }

    /// True if `is` holds for the number of any lane.
    #[inline]
    pub(crate) fn any(self, is: impl Fn(f64) -> bool) -> bool {
        self.0.iter().fold(false, |any, value| any | is(*value))
    }
}

impl Add for F64x8 {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(array::from_fn(|i| self.0[i] + other.0[i]))
    }
}

impl AddAssign for F64x8 {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for F64x8 {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(array::from_fn(|i| self.0[i] - other.0[i]))
    }
}

impl Mul for F64x8 {
    type Output = Self;
    #[inline]
    fn mul(self, other: Self) -> Self {
        Self(array::from_fn(|i| self.0[i] * other.0[i]))
    }
}

impl Mul<f64> for F64x8 {
    type Output = Self;
    #[inline]
    fn mul(self, other: f64) -> Self {
        Self(array::from_fn(|i| self.0[i] * other))
    }
}

impl Div for F64x8 {
    type Output = Self;
    #[inline]
    fn div(self, other: Self) -> Self {
        Self(array::from_fn(|i| self.0[i] / other.0[i]))
    }
}

impl Neg for F64x8 {
    type Output = Self;
    #[inline]
    fn neg(self) -> Self {
        Self(array::from_fn(|i| -self.0[i]))
    }
}
