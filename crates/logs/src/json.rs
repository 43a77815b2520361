//! JSON lists, read entry by entry, with positions for error messages.

use std::borrow::Cow;

use apportion::spec::trace::field::Field;
use apportion::spec::{Place, SpecError};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::clock::Moment;
use crate::date;
use crate::input::Input;
use crate::reading::{Fault, Reading};
use crate::table::Value;

/// The longest entry that is read, in bytes.
const ENTRY_MAX: usize = 1 << 26;

/// The most bytes that are read before, between and after the entries of a document.
const BESIDE_MAX: usize = 1 << 20;

/// An entry of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    /// The entry's JSON.
    pub(crate) text: &'a str,
    /// Line and column of its start, each from 1; columns are characters.
    start: (usize, usize),
}

/// Description of a document that is a list, or holds one under a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    /// Key that holds the list; none if the document is the list.
    pub(crate) under: Option<&'static str>,
    /// Description of the document in error messages.
    pub(crate) expected: &'static str,
}

/// State of a scan through a document.
#[derive(Default)]
struct Scan {
    /// Open brackets and braces.
    depth: usize,
    /// Depth of the list's entries, once the list was met.
    inside: Option<usize>,
    is_string: bool,
    is_escaped: bool,
    /// The last string outside the list, which may be a key.
    string: Vec<u8>,
    /// The document with an empty list.
    beside: Vec<u8>,
    /// Line and column of the list's brackets.
    opened: Option<(usize, usize)>,
    closed: Option<(usize, usize)>,
    entry: Vec<u8>,
    start: (usize, usize),
    /// Number of blanks since the last entry.
    n_blank: usize,
    /// Whether a comma was the last thing in the list.
    is_after_comma: bool,
    at: (usize, usize),
}

impl List {
    /// Gives each entry of the list to `take`. Returns the rest of the document, parsed with an empty list.
    pub(crate) fn read<T: DeserializeOwned>(
        self,
        input: &mut Input,
        mut take: impl FnMut(Entry<'_>),
    ) -> Result<T, SpecError> {
        let mut scan = Scan { at: (1, 0), ..Scan::default() };
        let refuse = |name: &str, (line, column): (usize, usize), message: &str| {
            let mut error = SpecError::about(name, message, Some(format!("expected {}", self.expected)));
            for diagnostic in &mut error.diagnostics {
                (diagnostic.line, diagnostic.column, diagnostic.width) = (line, column.max(1), 1);
            }
            error
        };
        let name = input.name.clone();
        input.bytes(|bytes| {
            for byte in bytes {
                match scan.step(*byte, self.under) {
                    Ok(false) => {}
                    Ok(true) => {
                        let entry = std::mem::take(&mut scan.entry);
                        let text = str::from_utf8(&entry)
                            .map_err(|_| refuse(&name, scan.start, "an entry that is no UTF-8 text"))?;
                        take(Entry { text: text.trim_end(), start: scan.start });
                    }
                    Err(message) => return Err(refuse(&name, scan.at, message)),
                }
            }
            Ok(())
        })?;
        match (scan.opened, scan.closed) {
            (Some(_), Some(_)) => {}
            (Some(_), None) => {
                return Err(refuse(&name, scan.at, "the document ends inside its list: it is cut off"));
            }
            (None, _) => return Err(refuse(&name, (1, 1), "no JSON list of entries")),
        }
        serde_json::from_slice(&scan.beside).map_err(|error| {
            let message = error.to_string();
            let message = message.split(" at line ").next().unwrap_or(&message);
            refuse(&name, scan.place_beside((error.line(), error.column())), message)
        })
    }
}

impl Scan {
    /// Takes in a byte. Returns whether an entry is complete.
    fn step(&mut self, byte: u8, under: Option<&str>) -> Result<bool, &'static str> {
        if byte == b'\n' {
            self.at = (self.at.0 + 1, 0);
        } else if byte & 0xc0 != 0x80 {
            self.at.1 += 1;
        }
        match self.inside {
            Some(depth) if self.closed.is_none() => self.step_inside(byte, depth),
            _ => self.step_beside(byte, under).map(|()| false),
        }
    }

    /// Takes in a byte of the list. Returns whether an entry is complete.
    fn step_inside(&mut self, byte: u8, depth: usize) -> Result<bool, &'static str> {
        let is_between = self.depth == depth && !self.is_string;
        let is_empty = self.entry.is_empty();
        if is_empty && byte.is_ascii_whitespace() {
            self.n_blank += 1;
            return if self.n_blank > BESIDE_MAX {
                Err("more than 1 MiB without an entry")
            } else {
                Ok(false)
            };
        }
        if is_between && byte == b',' {
            self.is_after_comma = true;
            return if is_empty { Err("a comma that no entry stands before") } else { Ok(true) };
        }
        if is_between && byte == b']' {
            if is_empty && self.is_after_comma {
                return Err("a comma that no entry stands after");
            }
            self.depth -= 1;
            self.closed = Some(self.at);
            self.beside.push(byte);
            return Ok(!is_empty);
        }
        if is_between && byte == b'}' {
            return Err("a brace that closes a list");
        }
        if is_empty {
            (self.start, self.n_blank, self.is_after_comma) = (self.at, 0, false);
        }
        self.entry.push(byte);
        if self.entry.len() > ENTRY_MAX {
            return Err("an entry that is longer than 64 MiB");
        }
        self.follow(byte).map(|()| false)
    }

    /// Takes in a byte before or after the list.
    fn step_beside(&mut self, byte: u8, under: Option<&str>) -> Result<(), &'static str> {
        self.beside.push(byte);
        if self.beside.len() > BESIDE_MAX {
            return Err(match self.inside {
                None => "more than 1 MiB before a list of entries",
                Some(_) => "more than 1 MiB beside the list of entries",
            });
        }
        let was_string = self.is_string;
        self.follow(byte)?;
        if was_string || self.is_string {
            match (was_string, self.is_string) {
                (true, true) => self.string.push(byte),
                (false, _) => self.string.clear(),
                _ => {}
            }
            return Ok(());
        }
        let is_the_list = self.inside.is_none()
            && byte == b'['
            && match under {
                None => self.depth == 1,
                Some(key) => self.depth == 2 && self.string == key.as_bytes(),
            };
        if is_the_list {
            (self.inside, self.opened) = (Some(self.depth), Some(self.at));
        } else if self.inside.is_none() && under.is_none() && !byte.is_ascii_whitespace() {
            return Err("no JSON list of entries");
        }
        Ok(())
    }

    /// Follows strings, brackets and braces through a byte.
    fn follow(&mut self, byte: u8) -> Result<(), &'static str> {
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' if self.is_string => self.is_escaped = true,
            b'"' => self.is_string = !self.is_string,
            _ if self.is_string => {}
            b'[' | b'{' => self.depth += 1,
            b']' | b'}' => self.depth = self.depth.checked_sub(1).ok_or("a bracket that closes nothing")?,
            _ => {}
        }
        Ok(())
    }

    /// Position in the document of a position in the text beside the entries.
    fn place_beside(&self, (line, column): (usize, usize)) -> (usize, usize) {
        let (Some(opened), Some(closed)) = (self.opened, self.closed) else { return (line, column) };
        if (line, column) <= opened {
            (line, column)
        } else if line == opened.0 {
            (closed.0, closed.1 + column - opened.1 - 1)
        } else {
            (line + closed.0 - opened.0, column)
        }
    }
}

impl<'a> Entry<'a> {
    /// The entry parsed as a value.
    pub(crate) fn parse<T: Deserialize<'a>>(&self) -> Result<T, Fault> {
        serde_json::from_str(self.text).map_err(|error| {
            let (line, column) = (error.line().max(1), error.column().max(1));
            let place = Place {
                line: self.start.0 + line - 1,
                column: if line == 1 { self.start.1 + column - 1 } else { column },
                width: 1,
            };
            let message = error.to_string();
            // The library's position is inside the entry.
            let message = message.split(" at line ").next().unwrap_or(&message).to_owned();
            Fault { place, message }
        })
    }

    /// Line at which it begins, from 1.
    pub(crate) fn line(&self) -> u64 {
        self.start.0 as u64
    }

    /// Position at which it begins.
    pub(crate) fn place(&self) -> Place {
        Place { line: self.start.0, column: self.start.1, width: 1 }
    }

    /// Position of a value of the entry.
    pub(crate) fn place_of(&self, raw: &RawValue) -> Place {
        let offset = (raw.get().as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        let before = self.text.get(..offset).unwrap_or_default();
        let width = raw.get().chars().count().max(1);
        match before.rsplit_once('\n') {
            None => Place { line: self.start.0, column: self.start.1 + before.chars().count(), width },
            Some((lines, last)) => Place {
                line: self.start.0 + lines.matches('\n').count() + 1,
                column: last.chars().count() + 1,
                width,
            },
        }
    }

    /// The line of the entry on which a position is.
    pub(crate) fn line_text(&self, place: Place) -> Cow<'a, str> {
        let line = self.text.lines().nth(place.line.saturating_sub(self.start.0)).unwrap_or_default();
        if place.line == self.start.0 {
            // The text before the entry is not kept.
            return Cow::Owned(" ".repeat(self.start.1.saturating_sub(1)) + line);
        }
        Cow::Borrowed(line)
    }

    /// A time of the entry; `name` is its name in error messages.
    pub(crate) fn moment(&self, raw: Option<&RawValue>, name: &str, log: &mut Reading) -> Value<Moment> {
        let moment = self.value_or(raw, (name, date::expected), |text| log.clock.moment(text))?;
        Ok(moment.and_then(|moment| log.checked_time(moment, self.line())))
    }

    /// A value parsed from a text of the entry; none if the text is missing, null, blank or `None`.
    pub(crate) fn value<T>(
        &self,
        raw: Option<&RawValue>,
        (name, expected): (&str, &str),
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Value<T> {
        self.value_or(raw, (name, |_: &str| expected), parse)
    }

    /// A value parsed from a text of the entry; `expected` describes the right value where the text is none.
    fn value_or<'e, T>(
        &self,
        raw: Option<&RawValue>,
        (name, expected): (&str, impl Fn(&str) -> &'e str),
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Value<T> {
        let Some(raw) = raw else { return Ok(None) };
        let fault = |shown: &str| Fault {
            place: self.place_of(raw),
            message: format!("{name} is `{}`, expected {}", Field::shortened(shown), expected(shown)),
        };
        let text: Option<Cow<'_, str>> = serde_json::from_str(raw.get()).map_err(|_| {
            let Fault { place, message } = fault(raw.get());
            Fault { place, message: format!("{message}, as text in quotes") }
        })?;
        let Some(text) = text else { return Ok(None) };
        let trimmed = text.trim();
        if trimmed.is_empty() || trimmed == "None" || trimmed == "null" {
            return Ok(None);
        }
        parse(trimmed).map(Some).ok_or_else(|| fault(trimmed))
    }
}
