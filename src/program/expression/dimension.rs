//! Physical dimensions of quantities, and the units that policy files write for them.
//!
//! Base units: `steps`, `s`, `h`, `$`, `workers`. Hours are apart from seconds, because prices are given per
//! hour and nothing converts silently: `3600[s/h]` does it in the open.

use std::fmt;

const NAMES: [&str; 5] = ["steps", "s", "h", "$", "workers"];

/// A physical dimension: exponents of the base units, counted in halves so that square roots have one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dimension {
    halves: [i32; 5],
}

impl Dimension {
    /// A plain number.
    pub const NONE: Self = Self { halves: [0; 5] };
    /// Training steps.
    pub const STEPS: Self = Self { halves: [2, 0, 0, 0, 0] };
    /// Seconds.
    pub const SECONDS: Self = Self { halves: [0, 2, 0, 0, 0] };
    /// Steps per second.
    pub const STEPS_PER_SECOND: Self = Self { halves: [2, -2, 0, 0, 0] };
    /// Workers.
    pub const WORKERS: Self = Self { halves: [0, 0, 0, 0, 2] };
    /// Dollars per worker-hour.
    pub const PRICE: Self = Self { halves: [0, 0, -2, 2, -2] };

    /// Whether this is the dimension of a plain number.
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// The dimension of a product.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        self.combine(other, i32::saturating_add)
    }

    /// The dimension of a quotient.
    #[must_use]
    pub fn over(self, other: Self) -> Self {
        self.combine(other, i32::saturating_sub)
    }

    /// The dimension of a square root, if it has one (quarters of a unit are refused).
    #[must_use]
    pub fn root(self) -> Option<Self> {
        let even = self.halves.iter().all(|half| half % 2 == 0);
        even.then(|| Self { halves: self.halves.map(|half| half / 2) })
    }

    fn combine(self, other: Self, with: impl Fn(i32, i32) -> i32) -> Self {
        let mut halves = self.halves;
        for (half, other) in halves.iter_mut().zip(other.halves) {
            *half = with(*half, other);
        }
        Self { halves }
    }

    /// Reads a unit such as `steps/s`, `$/h/workers`, `s^2` or `1`; `None` if the text is no unit.
    ///
    /// ```
    /// use apportion::program::expression::Dimension;
    /// assert_eq!(Dimension::parse("steps/s"), Some(Dimension::STEPS_PER_SECOND));
    /// assert_eq!(Dimension::parse("furlongs"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let mut dimension = Self::NONE;
        let mut rest = text.trim();
        let mut sign = 1;
        loop {
            let end = rest.find(['*', '/']).unwrap_or(rest.len());
            dimension = dimension.times(parse_factor(rest[..end].trim(), sign)?);
            match rest[end..].chars().next() {
                None => return Some(dimension),
                Some(operator) => sign = if operator == '/' { -1 } else { 1 },
            }
            rest = &rest[end + 1..];
        }
    }
}

fn parse_factor(text: &str, sign: i32) -> Option<Dimension> {
    let (name, exponent) = text.split_once('^').map_or((text, "1"), |(name, power)| (name.trim(), power));
    if name == "1" {
        return Some(Dimension::NONE);
    }
    let position = NAMES.iter().position(|known| *known == name)?;
    let halves = exponent.trim().parse::<f64>().ok()? * 2.0;
    let whole = halves.fract() == 0.0 && halves.abs() <= 40.0;
    #[expect(clippy::cast_possible_truncation, reason = "whole and at most 40 by the line above")]
    let halves = whole.then_some(halves as i32)?;
    let mut dimension = Dimension::NONE;
    dimension.halves[position] = sign * halves;
    Some(dimension)
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let factors = |sign: i32| {
            NAMES.iter().zip(self.halves).filter(move |(_, half)| half.signum() == sign).map(
                move |(name, half)| match half.abs() {
                    2 => (*name).to_owned(),
                    other => format!("{name}^{}", f64::from(other) / 2.0),
                },
            )
        };
        let above: Vec<String> = factors(1).collect();
        if above.is_empty() {
            f.write_str("1")?;
        }
        f.write_str(&above.join("*"))?;
        for below in factors(-1) {
            write!(f, "/{below}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_back_as_they_are_written() {
        for text in ["1", "steps", "steps/s", "$/h/workers", "1/s", "steps*workers/s^2", "s^0.5", "1/$^1.5"] {
            let dimension = Dimension::parse(text).unwrap();
            assert_eq!(Dimension::parse(&dimension.to_string()), Some(dimension), "{text}");
        }
        assert_eq!(Dimension::parse("$ / h / workers"), Some(Dimension::PRICE));
        for text in ["", "steps//s", "gpu", "s^", "s^0.3", "s^1e9", "steps s"] {
            assert_eq!(Dimension::parse(text), None, "{text}");
        }
    }
}
