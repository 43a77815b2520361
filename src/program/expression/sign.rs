//! Signs of quantities, as far as they are known before there are numbers.

use std::fmt;

/// The signs that a quantity may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sign {
    /// Whether it may be below 0.
    pub below: bool,
    /// Whether it may be 0.
    pub zero: bool,
    /// Whether it may be above 0.
    pub above: bool,
}

impl Sign {
    /// Always above 0.
    pub const POSITIVE: Self = Self { below: false, zero: false, above: true };
    /// At least 0.
    pub const NON_NEGATIVE: Self = Self { below: false, zero: true, above: true };
    /// Any sign: nothing is known.
    pub const ANY: Self = Self { below: true, zero: true, above: true };

    /// The sign of a number.
    pub fn of(value: f64) -> Self {
        Self { below: value < 0.0, zero: value == 0.0, above: value > 0.0 }
    }

    /// Whether the quantity is never below 0.
    pub fn is_non_negative(self) -> bool {
        !self.below
    }

    /// Whether the quantity is never above 0.
    pub fn is_non_positive(self) -> bool {
        !self.above
    }

    /// Whether the quantity may have this value.
    pub fn admits(self, value: f64) -> bool {
        (self.below && value < 0.0) || (self.zero && value == 0.0) || (self.above && value > 0.0)
    }

    /// The sign of −x.
    #[must_use]
    pub fn negated(self) -> Self {
        Self { below: self.above, zero: self.zero, above: self.below }
    }

    /// The sign of x + y.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let cancel = (self.below && other.above) || (self.above && other.below);
        let stays = |mine: bool, theirs: bool, against: bool, against_me: bool| {
            (mine && (theirs || other.zero || against)) || (theirs && (self.zero || against_me))
        };
        Self {
            below: stays(self.below, other.below, other.above, self.above),
            zero: (self.zero && other.zero) || cancel,
            above: stays(self.above, other.above, other.below, self.below),
        }
    }

    /// The sign of x · y; also of x / y where y is not 0.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        Self {
            below: (self.below && other.above) || (self.above && other.below),
            zero: self.zero || other.zero,
            above: (self.above && other.above) || (self.below && other.below),
        }
    }

    /// The sign of x / y, where y is not 0.
    #[must_use]
    pub fn over(self, other: Self) -> Self {
        self.times(Self { zero: false, ..other })
    }

    /// The signs that either of two quantities may have.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            below: self.below || other.below,
            zero: self.zero || other.zero,
            above: self.above || other.above,
        }
    }

    /// The sign of the smaller of two quantities.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        Self {
            below: self.below || other.below,
            zero: (self.zero && (other.zero || other.above)) || (other.zero && self.above),
            above: self.above && other.above,
        }
    }

    /// The sign of the larger of two quantities.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        self.negated().min(other.negated()).negated()
    }
}

impl fmt::Display for Sign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.below, self.zero, self.above) {
            (false, false, _) => "above 0",
            (false, true, true) => "at least 0",
            (false, true, false) => "0",
            (true, false, false) => "below 0",
            (true, true, false) => "at most 0",
            (true, false, true) => "not 0",
            (true, true, true) => "of any sign",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_of_signs_covers_the_arithmetic_of_numbers() {
        let values = [-2.0, -1.0, 0.0, 1.0, 2.0];
        for x in values {
            for y in values {
                let (a, b) = (Sign::of(x), Sign::of(y));
                assert!(a.plus(b).admits(x + y), "{x} + {y}");
                assert!(a.times(b).admits(x * y), "{x} * {y}");
                assert!(a.min(b).admits(x.min(y)), "min {x} {y}");
                assert!(a.max(b).admits(x.max(y)), "max {x} {y}");
            }
        }
    }

    #[test]
    fn sums_and_products_are_as_tight_as_they_can_be() {
        assert_eq!(Sign::POSITIVE.plus(Sign::NON_NEGATIVE), Sign::POSITIVE);
        assert_eq!(Sign::NON_NEGATIVE.plus(Sign::NON_NEGATIVE), Sign::NON_NEGATIVE);
        assert_eq!(Sign::POSITIVE.times(Sign::NON_NEGATIVE.negated()), Sign::NON_NEGATIVE.negated());
        assert_eq!(Sign::POSITIVE.max(Sign::ANY), Sign::POSITIVE);
        assert_eq!(Sign::NON_NEGATIVE.over(Sign::POSITIVE), Sign::NON_NEGATIVE);
    }
}
