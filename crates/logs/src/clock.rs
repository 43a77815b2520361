//! Times as logs write them, with and without a zone.

use std::str::FromStr;

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

use crate::date;

/// The zone of times that do not name one.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone(TimeZone);

impl FromStr for Zone {
    type Err = String;

    /// A zone by its name (`Asia/Shanghai`), or by how far its clock is ahead of UTC (`+08:00`).
    fn from_str(text: &str) -> Result<Self, String> {
        let fixed = text.starts_with(['+', '-']) || text == "Z";
        let zone = if fixed {
            let ahead = date::offset_s(text).and_then(|ahead_s| Offset::from_seconds(ahead_s).ok());
            ahead.map(TimeZone::fixed)
        } else {
            TimeZone::get(text).ok()
        };
        zone.map(Self).ok_or_else(|| {
            format!("unknown time zone `{text}`, expected a name such as Asia/Shanghai, or +08:00")
        })
    }
}

/// A time, with its second reading where the zone's clock shows it twice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moment {
    earlier: f64,
    later: Option<f64>,
}

impl Moment {
    /// The reading that is not before `last`: the earlier one where both are not before it, or both are.
    pub(crate) fn after(self, last: Option<f64>) -> f64 {
        let fits = |time: &f64| last.is_none_or(|last| *time >= last - 1.0);
        if fits(&self.earlier) { self.earlier } else { self.later.filter(fits).unwrap_or(self.earlier) }
    }
}

/// Reader of times, which notes what is uncertain about the last one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    zone: Option<Zone>,
    /// Whether the last time has no zone, where none was given to the clock either.
    pub(crate) was_naive: bool,
    /// Whether the zone's clock shows the last time twice or never.
    pub(crate) was_ambiguous: bool,
    /// Whether the last time is the zero of time, which stands for a time that was never set.
    pub(crate) was_zero: bool,
}

impl Clock {
    pub(crate) fn new(zone: Option<Zone>) -> Self {
        Self { zone, ..Self::default() }
    }

    /// Seconds from 1970 in UTC, the earlier of two readings; none if the text is no date and time.
    pub(crate) fn seconds(&mut self, text: &str) -> Option<f64> {
        self.moment(text).map(|moment| moment.earlier)
    }

    /// The time in seconds since 1970 in UTC, with its second reading if any; none if the text is no date and time.
    ///
    /// A plain number is taken as such seconds.
    pub(crate) fn moment(&mut self, text: &str) -> Option<Moment> {
        let only = |earlier| Some(Moment { earlier, later: None });
        (self.was_naive, self.was_ambiguous) = (false, false);
        self.was_zero = date::is_zero(text);
        if self.was_zero {
            return only(0.0);
        }
        if let Some(seconds) = date::plain_seconds(text) {
            return only(seconds);
        }
        let (seconds, zone) = date::seconds(text)?;
        match (zone, &self.zone) {
            (Some(ahead_s), _) => only(seconds - ahead_s),
            (None, None) => {
                self.was_naive = true;
                only(seconds)
            }
            (None, Some(Zone(zone))) => {
                let (local, fraction) = civil(seconds)?;
                let found = zone.to_ambiguous_timestamp(local);
                self.was_ambiguous = !matches!(found.offset(), AmbiguousOffset::Unambiguous { .. });
                let is_twice = matches!(found.offset(), AmbiguousOffset::Fold { .. });
                let in_s = |at: jiff::Timestamp| at.as_second() as f64 + fraction;
                let later = found.later().ok().filter(|_| is_twice).map(in_s);
                Some(Moment { earlier: in_s(found.compatible().ok()?), later })
            }
        }
    }
}

/// Date and time of day of seconds since 1970 by the same clock, and the fraction of a second.
fn civil(seconds: f64) -> Option<(DateTime, f64)> {
    let whole = seconds.floor();
    #[expect(clippy::cast_possible_truncation, reason = "a date before the year 10,000")]
    let at = jiff::Timestamp::from_second(whole as i64).ok()?;
    Some((TimeZone::UTC.to_datetime(at), seconds - whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_without_a_zone_are_those_of_the_zone_given() {
        let mut shanghai = Clock::new(Some("Asia/Shanghai".parse().expect("a zone")));
        assert_eq!(shanghai.seconds("2017-10-07 09:12:09"), Some(1_507_338_729.0));
        assert_eq!(shanghai.seconds("2017-10-07T01:12:09Z"), Some(1_507_338_729.0));
        assert!(!shanghai.was_naive);
        let mut east = Clock::new(Some("+08:00".parse().expect("a zone")));
        assert_eq!(east.seconds("2017-10-07 09:12:09.5"), Some(1_507_338_729.5));
        let mut none = Clock::new(None);
        assert_eq!(none.seconds("2017-10-07 01:12:09"), Some(1_507_338_729.0));
        assert!(none.was_naive);
        assert_eq!(none.seconds("1507338729"), Some(1_507_338_729.0));
        assert!(!none.was_naive);
    }

    #[test]
    fn an_hour_that_comes_twice_or_never_is_noticed() {
        // The clocks of this zone were set back at 2:00 on 2017-11-05 and forth at 2:00 on 2018-03-11.
        let mut west = Clock::new(Some("America/Los_Angeles".parse().expect("a zone")));
        let before = west.seconds("2017-11-05 00:30:00").expect("a time");
        assert!(!west.was_ambiguous);
        let twice = west.seconds("2017-11-05 01:30:00").expect("a time");
        assert!(west.was_ambiguous);
        let after = west.seconds("2017-11-05 02:30:00").expect("a time");
        assert_eq!((twice - before, after - before), (3600.0, 3.0 * 3600.0));
        west.seconds("2018-03-11 02:30:00").expect("a time");
        assert!(west.was_ambiguous);
        // The later of two readings is taken only where the earlier is before another time.
        let moment = west.moment("2017-11-05 01:30:00").expect("a time");
        let [first, second] = [twice, twice + 3600.0];
        for (last, expected) in [(None, first), (Some(first), first), (Some(first + 60.0), second)] {
            assert_eq!(Some(moment.after(last)), Some(expected), "{last:?}");
        }
        assert_eq!(Some(moment.after(Some(second + 60.0))), Some(first));
    }

    #[test]
    fn unknown_zones_are_refused() {
        for text in ["", "Nowhere/Land", "+99:00", "PSTT"] {
            assert!(text.parse::<Zone>().is_err(), "{text}");
        }
    }
}
