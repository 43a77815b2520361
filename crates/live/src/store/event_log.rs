//! Lines of the event log, read past those that are damaged.

use std::ops::RangeInclusive;

use rusqlite::{Connection, ErrorCode, params};

use super::Lines;
use super::damage::{Damaged, line_fault};

/// The parts of the event log that a read has passed over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Lines that are none.
    pub(super) damaged: Vec<Damaged>,
    /// Numbers of lines in parts of the file that cannot be read.
    pub(super) gaps: Vec<RangeInclusive<i64>>,
}

impl Passed {
    /// Whether nothing was passed over.
    pub fn is_empty(&self) -> bool {
        self.damaged.is_empty() && self.gaps.is_empty()
    }
}

/// Passes on lines of the event log, in order, with their numbers.
pub(super) fn read(
    connection: &Connection,
    which: Lines,
    mut line: impl FnMut(i64, &str),
) -> rusqlite::Result<Passed> {
    let (mut after, most) = match which {
        Lines::After(after, most) => (after, most),
        Lines::Last(most) => (last(connection)? - i64::from(most), most),
    };
    let (mut n_read, mut passed) = (0, Passed::default());
    loop {
        let stretch = read_on(connection, (&mut after, &mut n_read, most), &mut passed.damaged, &mut line);
        match stretch {
            Ok(()) => return Ok(passed),
            Err(error) if is_corrupt(&error) => {
                // Where the last number cannot be read either, nothing is known of what follows.
                let past = past_gap(connection, after).unwrap_or(i64::MAX);
                if past <= after {
                    return Ok(passed);
                }
                passed.gaps.push(after + 1..=past);
                after = past;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Whether a part of the file is damaged.
pub(super) fn is_corrupt(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt)
}

/// The number of the last line; 0 where there is none.
fn last(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT coalesce(max(number), 0) FROM events", [], |row| row.get(0))
}

/// Reads lines up to the end, up to `most`, or up to a part of the file that cannot be read. `after` is the number of the last line
/// that was looked at.
fn read_on(
    connection: &Connection,
    (after, n_read, most): (&mut i64, &mut u32, u32),
    damaged: &mut Vec<Damaged>,
    line: &mut impl FnMut(i64, &str),
) -> rusqlite::Result<()> {
    let mut statement =
        connection.prepare_cached("SELECT number, line FROM events WHERE number > ?1 ORDER BY number")?;
    let mut rows = statement.query(params![*after])?;
    while *n_read < most {
        let Some(row) = rows.next()? else { break };
        let number: i64 = row.get(0)?;
        // In a damaged file numbers may be out of order.
        if number <= *after {
            continue;
        }
        let content = row.get_ref(1)?.as_bytes()?;
        match (line_fault(content), std::str::from_utf8(content)) {
            (None, Ok(text)) => {
                line(number, text);
                *n_read += 1;
            }
            (fault, _) => damaged.push(Damaged {
                table: "events",
                row: number,
                key: number.to_string(),
                content: content.to_vec(),
                reason: fault.unwrap_or_default(),
            }),
        }
        *after = number;
    }
    Ok(())
}

/// The last number of a part of the file that cannot be read and begins behind line `after`.
fn past_gap(connection: &Connection, after: i64) -> rusqlite::Result<i64> {
    let last = last(connection)?;
    let is_readable = |number: i64| {
        let sql = "SELECT number FROM events WHERE number > ?1 ORDER BY number LIMIT 1";
        let found = connection.query_row(sql, [number], |row| row.get::<_, i64>(0));
        found.is_ok_and(|found| found > number)
    };
    let (mut damaged, mut width) = (after, 1);
    while after + width < last && !is_readable(after + width) {
        damaged = after + width;
        width *= 2;
    }
    let mut readable = (after + width).min(last);
    while damaged + 1 < readable {
        let middle = damaged + (readable - damaged) / 2;
        if is_readable(middle) {
            readable = middle;
        } else {
            damaged = middle;
        }
    }
    Ok(readable)
}

/// The number of rounds in the event log: one more than the number of the last round.
pub(super) fn n_rounds(connection: &Connection) -> rusqlite::Result<u64> {
    let round_of = |content: &[u8]| {
        let event: serde_json::Value = serde_json::from_slice(content).ok()?;
        event["round"].as_u64()
    };
    match newest_round(connection, round_of) {
        Err(error) if is_corrupt(&error) => {
            let mut round = None;
            read(connection, Lines::After(0, u32::MAX), |_, line| {
                let is_round = line.contains("\"round_started\"");
                round = Some(line).filter(|_| is_round).and_then(|line| round_of(line.as_bytes())).or(round);
            })?;
            Ok(round.map_or(0, |round| round + 1))
        }
        round => Ok(round?.map_or(0, |round| round + 1)),
    }
}

/// The number of the newest round that can be read.
fn newest_round(
    connection: &Connection,
    round_of: impl Fn(&[u8]) -> Option<u64>,
) -> rusqlite::Result<Option<u64>> {
    let mut statement = connection
        .prepare("SELECT line FROM events WHERE line LIKE '%\"round_started\"%' ORDER BY number DESC")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(round) = round_of(row.get_ref(0)?.as_bytes()?) {
            return Ok(Some(round));
        }
    }
    Ok(None)
}
