//! Dates as logs write them.

/// Description of a date in error messages.
const EXPECTED: &str = "a date and time such as 2017-10-07 01:12:09";

/// Description of an expected date, for a text that is none.
pub(crate) fn expected(text: &str) -> &'static str {
    calendar_fault(text).unwrap_or(EXPECTED)
}

/// Description of an expected date for a text that looks like a date but is not in the calendar; none for other texts.
pub(crate) fn calendar_fault(text: &str) -> Option<&'static str> {
    let date = text.trim().split([' ', 'T', 't']).next().unwrap_or_default();
    let parts = ['-', '/', '.'].into_iter().find_map(|by| numbers(date, by, 3));
    let &[first, second, third] = parts.as_deref()? else { return None };
    if first >= 1970 && (1..=12).contains(&second) && third <= 31 && days(&[first, second, third]).is_none() {
        Some("a day that there is: its month is shorter")
    } else if first <= 31 && second <= 31 && third >= 1970 {
        Some("a date with the year first, such as 2017-10-07 01:12:09")
    } else {
        None
    }
}

/// The most by which the clock of a zone differs from UTC's, s.
pub(crate) const ZONE_S: f64 = 14.0 * 3600.0;

/// Whether a text is the zero of time: 0, or the beginning of 1970 by the clock of some zone, or of the year 1.
///
/// Programs write it for a time that was never set.
pub(crate) fn is_zero(text: &str) -> bool {
    let text = text.trim();
    // Most texts differ from it in how they begin.
    if !["0", "1969", "1970"].iter().any(|start| text.starts_with(start)) {
        return false;
    }
    if text.bytes().all(|byte| byte == b'0' || byte == b'.') {
        return text.parse() == Ok(0.0);
    }
    let Some((date, time)) = text.split_once([' ', 'T', 't']) else { return false };
    let by = if date.contains('/') { '/' } else { '-' };
    let of_day = zone(time.trim()).and_then(|(time, _)| clock(time));
    let (Some(date), Some(of_day)) = (numbers(date, by, 3), of_day) else { return false };
    // Zones are whole quarters of an hour from UTC.
    match date[..] {
        [1, 1, 1] => of_day <= 0.0,
        [1970, 1, 1] => of_day <= ZONE_S && of_day % 900.0 == 0.0,
        [1969, 12, 31] => of_day >= 86_400.0 - ZONE_S && of_day % 900.0 == 0.0,
        _ => false,
    }
}

/// Seconds from 1970-01-01 by the clock that shows the time, as if all days had 24 hours, and how far that clock is ahead of
/// UTC, s, where the text says so; none if the text is no such time.
///
/// The date has hyphens or slashes, the year first; a space or `T` is before the time; seconds, their fraction and a zone
/// (`Z`, `UTC`, `+08:00`) may be left out.
pub(crate) fn seconds(text: &str) -> Option<(f64, Option<f64>)> {
    let (date, time) = text.trim().split_once([' ', 'T', 't'])?;
    let by = if date.contains('/') { '/' } else { '-' };
    let (time, ahead) = zone(time.trim())?;
    Some((days(&numbers(date, by, 3)?)? * 86_400.0 + clock(time)?, ahead))
}

/// Seconds since 1970 as a plain number, of nine to eleven digits before its fraction.
pub(crate) fn plain_seconds(text: &str) -> Option<f64> {
    let text = text.trim();
    let whole = text.split('.').next().unwrap_or_default();
    let is_plain =
        (9..=11).contains(&whole.len()) && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse().ok().filter(|_| is_plain)
}

/// Time by which a zone's clock is ahead of UTC, s: `+08:00`, `-0800`, `Z`.
pub(crate) fn offset_s(text: &str) -> Option<i32> {
    let (before, ahead) = zone(text)?;
    #[expect(clippy::cast_possible_truncation, reason = "at most 14 hours")]
    ahead.filter(|_| before.is_empty()).map(|ahead| ahead as i32)
}

/// Seconds of a duration written `[days-]hours:minutes:seconds`, `minutes:seconds`, or as a number.
pub(crate) fn elapsed_s(text: &str) -> Option<f64> {
    let text = text.trim();
    let (days, clock) = text.split_once('-').unwrap_or(("0", text));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let parts: Vec<&str> = clock.split(':').collect();
    if text.contains('-') && parts.len() != 3 {
        return None;
    }
    if !(is_number(days)
        && is_number(fraction)
        && parts.len() <= 3
        && parts.iter().all(|part| is_number(part)))
    {
        return None;
    }
    let whole = parts.iter().try_fold(0.0, |sum, part| Some(60.0 * sum + part.parse::<f64>().ok()?))?;
    let fraction: f64 = format!("0.{fraction}").parse().ok()?;
    Some(days.parse::<f64>().ok()? * 86_400.0 + whole + fraction)
}

/// Exactly `count` whole numbers, separated by `by` and written with digits alone.
fn numbers(text: &str, by: char, count: usize) -> Option<Vec<u32>> {
    let number = |text: &str| {
        let is_plain = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        is_plain.then(|| text.parse().ok()).flatten()
    };
    let all: Vec<u32> = text.split(by).map(number).collect::<Option<_>>()?;
    (all.len() == count).then_some(all)
}

/// The time without its zone, and how far the zone's clock is ahead, s, where there is one.
fn zone(time: &str) -> Option<(&str, Option<f64>)> {
    for utc in ["Z", "z", "UTC", "GMT"] {
        if let Some(time) = time.strip_suffix(utc) {
            return Some((time.trim_end(), Some(0.0)));
        }
    }
    let Some(cut) = time.rfind(['+', '-']) else { return Some((time, None)) };
    let sign = if time[cut..].starts_with('-') { -1.0 } else { 1.0 };
    let digits = time[cut + 1..].replace(':', "");
    let (hours, minutes) = match digits.len() {
        2 => (digits.as_str(), "0"),
        4 => digits.split_at(2),
        _ => return None,
    };
    let (hours, minutes) = (numbers(hours, ':', 1)?[0], numbers(minutes, ':', 1)?[0]);
    (hours <= 14 && minutes < 60)
        .then(|| (time[..cut].trim_end(), Some(sign * f64::from(3600 * hours + 60 * minutes))))
}

/// Seconds of the day.
fn clock(time: &str) -> Option<f64> {
    let (whole, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let is_plain = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let fraction: f64 = format!("0.{fraction}").parse().ok().filter(|_| is_plain)?;
    let n_parts = whole.split(':').count();
    let parts = numbers(whole, ':', n_parts)?;
    let (hour, minute, second) = match parts[..] {
        [hour, minute] if !time.contains('.') => (hour, minute, 0),
        [hour, minute, second] => (hour, minute, second),
        _ => return None,
    };
    // A leap second is the 61st.
    (hour < 24 && minute < 60 && second < 61)
        .then(|| f64::from(3600 * hour + 60 * minute + second) + fraction)
}

/// Days from 1970-01-01.
fn days(date: &[u32]) -> Option<f64> {
    let &[year, month, day] = date else { return None };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let n_days = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u32::from(is_leap),
        _ => 31,
    };
    let is_sound = (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=n_days).contains(&day);
    // Days before a year that begins in March, so that a leap day is the last of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year.max(1) - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day;
    is_sound.then(|| f64::from(days) - 719_469.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_counted_in_seconds() {
        for (text, expected) in [
            ("1970-01-01 00:00:00", Some(0.0)),
            ("2000-03-01 00:00:00", Some(951_868_800.0)),
            ("2017-10-07 01:12:09", Some(1_507_338_729.0)),
            ("2017-10-07T01:12:09", Some(1_507_338_729.0)),
            ("2017-10-07T01:12:09Z", Some(1_507_338_729.0)),
            ("2017/10/7 1:12:09.25", Some(1_507_338_729.25)),
            ("2017/10/7 1:12", Some(1_507_338_720.0)),
            ("2017-10-07T09:12:09+08:00", Some(1_507_338_729.0)),
            ("2017-10-06 17:12:09 -0800", Some(1_507_338_729.0)),
            ("2020-02-29 23:59:59", Some(1_583_020_799.0)),
            ("2021-02-29 23:59:59", None),
            ("2020-04-31 00:00:00", None),
            ("2020-13-01 00:00:00", None),
            ("2020-00-01 00:00:00", None),
            ("0000-01-01 00:00:00", None),
            ("10/7/2017 01:12:09", None),
            ("2017-10/07 01:12:09", None),
            ("2017-10-07 24:00:00", None),
            ("2017-10-07 01:12:09+99:00", None),
            ("2017-10-07 01:12:+9", None),
            ("2017-10-07 01:12:09.", None),
            ("2017-10-07 01:12.5", None),
            ("None", None),
            ("2020-02-29", None),
            ("", None),
        ] {
            let utc = seconds(text).map(|(seconds, ahead)| seconds - ahead.unwrap_or(0.0));
            assert_eq!(utc, expected, "{text}");
        }
    }

    #[test]
    fn the_zero_of_time_is_known_in_all_zones() {
        for text in [
            "0",
            "0.0",
            "1970-01-01 00:00:00",
            "1970-01-01T00:00:00Z",
            "1970/1/1 08:00",
            "1970-01-01T05:45:00",
            "1969-12-31T19:00:00",
            "0001-01-01T00:00:00Z",
        ] {
            assert!(is_zero(text), "{text}");
        }
        for text in [
            "",
            "0:00",
            "00-1",
            "1970-01-01 00:00:01",
            "1970-01-02 00:00:00",
            "1969-12-31 01:00:00",
            "1507338729",
        ] {
            assert!(!is_zero(text), "{text}");
        }
    }

    #[test]
    fn what_is_expected_of_a_date_says_what_is_wrong_with_it() {
        for (text, start) in [
            ("2023-06-31 00:00:00", "a day that there is"),
            ("2023-02-29T00:00:00", "a day that there is"),
            ("31/12/2023 00:00:00", "a date with the year first"),
            ("12.31.2023 00:00:00", "a date with the year first"),
            ("2023-13-01 00:00:00", "a date and time such as"),
            ("yesterday", "a date and time such as"),
            ("", "a date and time such as"),
        ] {
            assert!(expected(text).starts_with(start), "{text}: {}", expected(text));
        }
    }

    #[test]
    fn durations_are_read_as_slurm_writes_them() {
        for (text, expected) in [
            ("1-02:03:04", Some(93_784.0)),
            ("02:03:04", Some(7384.0)),
            ("03:04", Some(184.0)),
            ("184", Some(184.0)),
            ("03:04.250", Some(184.25)),
            ("", None),
            ("-5", None),
            ("1-", None),
            ("1-02", None),
            ("1:2:3:4", None),
            ("UNLIMITED", None),
        ] {
            assert_eq!(elapsed_s(text), expected, "{text}");
        }
        assert_eq!(
            (plain_seconds("1507338729.5"), plain_seconds("17"), plain_seconds("2017-10-07")),
            (Some(1_507_338_729.5), None, None)
        );
    }
}
