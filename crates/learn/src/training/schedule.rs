//! Schedules: numbers that are constant, or change linearly, during a training.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// The largest number of an option by which weights, gradients or losses are multiplied: with larger ones, networks, whose
/// weights are of single precision, have none that are finite after a few updates.
const LARGEST: f64 = 1e6;

/// The range of these options, in words.
pub(super) const RANGE: &str = "a number from 0 to 1000000";

/// Whether a number is in the range of these options.
pub(super) fn is_fine(value: f64) -> bool {
    (0.0..=LARGEST).contains(&value)
}

/// A constant, or a line from the beginning of the training to its end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub enum Schedule {
    /// One number for the whole training.
    Constant(f64),
    /// A number that changes linearly.
    Linear {
        /// The number at the beginning.
        from: f64,
        /// The number at the end of the budget, and after it.
        to: f64,
    },
}

impl Schedule {
    /// The number at a share of the budget.
    pub fn at(self, share: f64) -> f64 {
        match self {
            Self::Constant(value) => value,
            Self::Linear { from, to } => from + (to - from) * share.clamp(0.0, 1.0),
        }
    }

    /// Whether the number is in the range of options throughout.
    pub(super) fn is_fine(self) -> bool {
        [self.at(0.0), self.at(1.0)].iter().all(|value| is_fine(*value))
    }
}

/// Writes a number, or "from … to …".
impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(value) if value.abs() > LARGEST => write!(f, "{value:e}"),
            Self::Constant(value) => write!(f, "{value}"),
            Self::Linear { from, to } => write!(f, "from {from} to {to}"),
        }
    }
}

impl<'de> Deserialize<'de> for Schedule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScheduleVisitor)
    }
}

/// Reader of a schedule; the error for any other value says what is expected.
struct ScheduleVisitor;

/// The keys of a line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    from: f64,
    to: f64,
}

impl<'de> Visitor<'de> for ScheduleVisitor {
    type Value = Schedule;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or a line such as {from: 0.001, to: 0.0001}")
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Schedule, E> {
        Ok(Schedule::Constant(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Schedule, E> {
        Ok(Schedule::Constant(value as f64))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Schedule, E> {
        Ok(Schedule::Constant(value as f64))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Schedule, A::Error> {
        let Line { from, to } = Line::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Schedule::Linear { from, to })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion::spec::Source;

    /// A document with a schedule in it.
    #[derive(Debug, Deserialize)]
    struct Document {
        rate: Option<Schedule>,
    }

    fn read(value: &str) -> Result<Option<Schedule>, String> {
        let document: Result<Document, _> = Source::new("", format!("rate: {value}\n")).parse();
        document.map(|document| document.rate).map_err(|error| error.diagnostics[0].message.clone())
    }

    #[test]
    fn schedules_are_numbers_and_lines() {
        assert_eq!(read("3e-4"), Ok(Some(Schedule::Constant(3e-4))));
        assert_eq!(read("1"), Ok(Some(Schedule::Constant(1.0))));
        assert_eq!(read("-1"), Ok(Some(Schedule::Constant(-1.0))));
        assert_eq!(read("{from: 1, to: 0.5}"), Ok(Some(Schedule::Linear { from: 1.0, to: 0.5 })));
        assert_eq!(read("null"), Ok(None));
    }

    #[test]
    fn what_is_no_schedule_is_refused_with_field_and_value() {
        let expected = "expected a number, or a line such as {from: 0.001, to: 0.0001}";
        for (value, found) in [("slow", "the text \"slow\""), ("[1, 2]", "a list"), ("true", "`true`")] {
            assert_eq!(read(value), Err(format!("`rate` is {found}, {expected}")));
        }
        assert!(read("{from: 1}").unwrap_err().contains("has no `to`"));
        assert!(read("{from: 1, to: 0, until: 5}").unwrap_err().contains("unknown key `until`"));
        assert_eq!(
            read("{from: a, to: 1}"),
            Err("`rate.from` is the text \"a\", expected a number".to_owned())
        );
    }
}
