//! A part of a log by time of arrival: `7d..21d`, or `2017-10-09 00:00..2017-10-16 00:00`.

use std::str::FromStr;

use apportion::units::Seconds;

use crate::clock::{Clock, Zone};
use crate::date;

/// A half-open interval of arrivals; times are relative to the arrival of the first row that becomes a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// Text of the window as it was given.
    text: String,
    from: Bound,
    to: Bound,
}

/// A bound of a window.
#[derive(Clone, Debug, PartialEq)]
enum Bound {
    /// No bound.
    Open,
    /// Time after the first job's arrival, s.
    After(f64),
    /// Date and time, as it was given.
    Date(String),
}

impl FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (from, to) =
            text.split_once("..").ok_or("expected FROM..TO, as 7d..21d or 2017-10-09..2017-10-16")?;
        let window = Self { text: text.to_owned(), from: from.parse()?, to: to.parse()? };
        // Dates with a zone and without one can only be compared once the latter's zone is known.
        if window.from.names_a_zone() == window.to.names_a_zone() {
            window.check(None)?;
        }
        Ok(window)
    }
}

impl FromStr for Bound {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Self::Open);
        }
        if let Some(after) = Seconds::parse(text) {
            return Ok(Self::After(after.get()));
        }
        let date =
            if text.contains([' ', 'T', 't', ':']) { text.to_owned() } else { format!("{text} 00:00") };
        if Clock::new(None).seconds(&date).is_none() {
            if let Some(wrong) = date::calendar_fault(&date) {
                return Err(format!("`{text}`: expected {wrong}"));
            }
            return Err(format!(
                "`{text}` is neither a time as 90s, 2h or 3d nor a date as 2017-10-09 or 2017-10-09T06:00Z"
            ));
        }
        Ok(Self::Date(date))
    }
}

impl Bound {
    /// Whether it is a date that names its zone.
    fn names_a_zone(&self) -> bool {
        let Self::Date(date) = self else { return false };
        let mut clock = Clock::new(None);
        clock.seconds(date).is_some() && !clock.was_naive
    }
}

impl Window {
    /// Refuses a window that ends before it begins; `zone` is that of dates that name none.
    ///
    /// # Errors
    /// If it does.
    pub fn check(&self, zone: Option<&Zone>) -> Result<(), String> {
        let mut clock = Clock::new(zone.cloned());
        let mut ends = |bound: &Bound| match bound {
            Bound::Open => None,
            Bound::After(after) => Some((false, *after)),
            Bound::Date(date) => clock.seconds(date).map(|at| (true, at)),
        };
        match (ends(&self.from), ends(&self.to)) {
            (Some((is_date, from)), Some((other, to))) if is_date == other && from >= to => {
                Err(format!("`{}` ends before it begins", self.text))
            }
            _ => Ok(()),
        }
    }

    /// First arrival and end of the window, s on the log's clock, whose first job arrives at `first_s`.
    pub(crate) fn bounds(&self, first_s: f64, zone: Option<&Zone>) -> (f64, f64) {
        let mut clock = Clock::new(zone.cloned());
        let mut at = |bound: &Bound, open: f64| match bound {
            Bound::Open => open,
            Bound::After(after) => first_s + after,
            Bound::Date(date) => {
                clock.seconds(date).or_else(|| Clock::new(None).seconds(date)).unwrap_or(open)
            }
        };
        (at(&self.from, f64::NEG_INFINITY), at(&self.to, f64::INFINITY))
    }
}
