//! Physical quantities as types: only arithmetic that means something compiles.
//!
//! Every quantity is one `f64`; [`new`](Seconds::new) and [`get`](Seconds::get) cross the border to bare
//! numbers, whose names then carry the unit (`elapsed_s`, `price_per_hour`). Hot arrays in the solver layers
//! are bare `f64` with the unit in their documentation.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

use serde::{Deserialize, Serialize};

/// A number for people, and its number of decimals. It has more decimals where it would look like 0, and an exponent if it is very
/// large or very small.
#[derive(Clone, Copy, Debug)]
pub struct Decimals(pub f64, pub usize);

impl fmt::Display for Decimals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(value, n_decimals) = *self;
        let text = match value.abs() {
            size if size >= 1e15 => format!("{value:.2e}"),
            size if size > 0.0 && size < 1e-6 => format!("{value:.1e}"),
            size if size > 0.0 => {
                let mut decimals = (n_decimals..).map(|n| format!("{value:.n$}"));
                let is_shown = |text: &String| text.contains(|digit: char| ('1'..='9').contains(&digit));
                decimals.find(is_shown).unwrap_or_default()
            }
            nothing => format!("{nothing:.n_decimals$}"),
        };
        f.pad(&text)
    }
}

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident, $unit:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(extend("x-unit" = $unit)))]
        #[serde(transparent)]
        pub struct $name(f64);

        impl $name {
            /// The quantity 0.
            pub const ZERO: Self = Self(0.0);

            #[doc = concat!("A quantity of `value` ", $unit, ".")]
            #[inline]
            pub const fn new(value: f64) -> Self {
                Self(value)
            }

            #[doc = concat!("The number of ", $unit, ".")]
            #[inline]
            pub const fn get(self) -> f64 {
                self.0
            }

            /// The smaller of the two.
            #[must_use]
            pub fn min(self, other: Self) -> Self {
                Self(self.0.min(other.0))
            }

            /// The larger of the two.
            #[must_use]
            pub fn max(self, other: Self) -> Self {
                Self(self.0.max(other.0))
            }

            /// The total order of `f64::total_cmp`; sorts use it, never `partial_cmp`.
            pub fn total_cmp(&self, other: &Self) -> std::cmp::Ordering {
                self.0.total_cmp(&other.0)
            }

            /// Whether the number is neither infinite nor NaN.
            pub const fn is_finite(self) -> bool {
                self.0.is_finite()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)?;
                f.write_str(concat!(" ", $unit))
            }
        }

        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }
        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }
        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }
        impl SubAssign for $name {
            fn sub_assign(&mut self, other: Self) {
                self.0 -= other.0;
            }
        }
        impl Mul<f64> for $name {
            type Output = Self;
            fn mul(self, factor: f64) -> Self {
                Self(self.0 * factor)
            }
        }
        impl Div<f64> for $name {
            type Output = Self;
            fn div(self, divisor: f64) -> Self {
                Self(self.0 / divisor)
            }
        }
        /// The ratio of two like quantities is a number.
        impl Div for $name {
            type Output = f64;
            fn div(self, other: Self) -> f64 {
                self.0 / other.0
            }
        }
        impl Sum for $name {
            fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
                Self(items.map(|item| item.0).sum())
            }
        }
    };
}

quantity!(
    /// A span of time, or an instant counted from the start of a simulation, in seconds.
    Seconds, "s"
);
quantity!(
    /// Training steps; fractional, because generated jobs may ask for a fraction of one.
    Steps, "steps"
);
quantity!(
    /// A throughput, in training steps per second.
    StepsPerSecond, "steps/s"
);
quantity!(
    /// Busy or available time of workers, in worker-hours.
    WorkerHours, "worker-hours"
);
quantity!(
    /// Money, in dollars.
    Dollars, "$"
);
quantity!(
    /// The price of one worker, in dollars per worker-hour.
    DollarsPerWorkerHour, "$/worker-hour"
);
quantity!(
    /// A rate of arrivals, in jobs per hour.
    JobsPerHour, "jobs/h"
);

/// The time that steps take at a throughput.
impl Div<StepsPerSecond> for Steps {
    type Output = Seconds;
    fn div(self, throughput: StepsPerSecond) -> Seconds {
        Seconds(self.0 / throughput.0)
    }
}

/// The throughput of steps in a time.
impl Div<Seconds> for Steps {
    type Output = StepsPerSecond;
    fn div(self, time: Seconds) -> StepsPerSecond {
        StepsPerSecond(self.0 / time.0)
    }
}

/// The steps that a throughput makes in a time.
impl Mul<Seconds> for StepsPerSecond {
    type Output = Steps;
    fn mul(self, time: Seconds) -> Steps {
        Steps(self.0 * time.0)
    }
}

/// The cost of worker-hours at a price.
impl Mul<WorkerHours> for DollarsPerWorkerHour {
    type Output = Dollars;
    fn mul(self, time: WorkerHours) -> Dollars {
        Dollars(self.0 * time.0)
    }
}

impl Seconds {
    /// This span in hours.
    pub fn hours(self) -> f64 {
        self.0 / 3600.0
    }

    /// The worker-hours of `n_workers` workers over this span.
    pub fn of_workers(self, n_workers: f64) -> WorkerHours {
        WorkerHours(self.hours() * n_workers)
    }

    /// Reads a duration: `90`, `90s`, `15min`, `2h` or `3d`; `None` for other text or a negative number.
    ///
    /// ```
    /// use apportion::Seconds;
    /// assert_eq!(Seconds::parse("30min"), Some(Seconds::new(1800.0)));
    /// assert_eq!(Seconds::parse("soon"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let split =
            text.find(|c: char| c.is_ascii_alphabetic() && c != 'e' && c != 'E').unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let factor = match unit {
            "" | "s" => 1.0,
            "min" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return None,
        };
        let value: f64 = number.trim().parse().ok()?;
        let seconds = value * factor;
        (seconds.is_finite() && seconds >= 0.0).then_some(Self(seconds))
    }
}

impl JobsPerHour {
    /// The mean time between two arrivals of a Poisson process of this rate.
    pub fn mean_gap(self) -> Seconds {
        Seconds(3600.0 / self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_divided_by_throughput_are_seconds() {
        assert_eq!(Steps::new(120.0) / StepsPerSecond::new(4.0), Seconds::new(30.0));
        assert_eq!(StepsPerSecond::new(4.0) * Seconds::new(30.0), Steps::new(120.0));
    }

    #[test]
    fn a_price_needs_worker_hours() {
        let busy = Seconds::new(7200.0).of_workers(3.0);
        assert_eq!(DollarsPerWorkerHour::new(2.0) * busy, Dollars::new(12.0));
    }

    #[test]
    fn a_number_is_not_shown_as_zero_nor_with_hundreds_of_digits() {
        for (value, n, text) in [
            (0.0, 4, "0.0000"),
            (-0.0, 2, "0.00"),
            (12.345_67, 2, "12.35"),
            (-0.5, 1, "-0.5"),
            (0.000_04, 4, "0.00004"),
            (0.000_06, 4, "0.0001"),
            (-0.04, 1, "-0.04"),
            (1e-6, 2, "0.000001"),
            (9.96e-7, 4, "1.0e-6"),
            (-4.2e-13, 4, "-4.2e-13"),
            (5e-324, 0, "4.9e-324"),
            (1.25e14, 1, "125000000000000.0"),
            (f64::MAX, 2, "1.80e308"),
            (f64::INFINITY, 2, "inf"),
        ] {
            assert_eq!(Decimals(value, n).to_string(), text);
        }
        assert_eq!(format!("{:>7}|{:<5}|", Decimals(1.5, 2), Decimals(1.5, 1)), "   1.50|1.5  |");
    }

    #[test]
    fn durations_are_read_with_their_unit() {
        for (text, seconds) in [("90", 90.0), ("1.5h", 5400.0), ("2 min", 120.0), ("1e3s", 1000.0)] {
            assert_eq!(Seconds::parse(text), Some(Seconds::new(seconds)), "{text}");
        }
        for text in ["", "-1s", "5 parsecs", "nan"] {
            assert_eq!(Seconds::parse(text), None, "{text}");
        }
    }
}
