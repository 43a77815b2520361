//! Fields of a line, with their places, for all readers of tables.

use std::borrow::Cow;

use crate::cluster::PRICES;
use crate::spec::places::Place;
use crate::spec::snapshot::{NUMBER_MAX, NUMBER_MIN};
use crate::spec::structure::is_tiny;

/// A range of numbers that a field accepts.
#[derive(Clone, Copy, Debug)]
pub(in crate::spec) enum Range {
    Positive,
    Price,
    NotNegative,
    Any,
}

impl Range {
    pub(super) fn contains(self, number: f64) -> bool {
        if number.abs() > 0.0 && number.abs() < NUMBER_MIN {
            return false;
        }
        match self {
            Self::Positive => (NUMBER_MIN..=NUMBER_MAX).contains(&number),
            Self::Price => PRICES.contains(&number),
            Self::NotNegative => (0.0..=NUMBER_MAX).contains(&number),
            Self::Any => (-NUMBER_MAX..=NUMBER_MAX).contains(&number),
        }
    }

    pub(super) fn describe(self) -> String {
        match self {
            Self::Positive => format!("a number from {NUMBER_MIN:e} to {NUMBER_MAX:e}"),
            Self::Price => format!("a number of $/h from {:e} to {:e}", PRICES.start(), PRICES.end()),
            Self::NotNegative => format!("a number from 0 to {NUMBER_MAX:e}"),
            Self::Any => format!("a number from -{NUMBER_MAX:e} to {NUMBER_MAX:e}"),
        }
    }
}

/// One field of a line.
#[derive(Clone, Debug)]
pub struct Field<'a> {
    /// Its text, without the quotes around it.
    pub text: Cow<'a, str>,
    /// Its place.
    pub place: Place,
}

impl<'a> Field<'a> {
    fn new(text: Cow<'a, str>, (line, column): (usize, usize), width: usize) -> Self {
        Self { text, place: Place { line, column, width: width.max(1) } }
    }

    /// The field as a number of a range.
    pub(in crate::spec) fn number(&self, name: &str, range: Range) -> Result<f64, String> {
        let number: Option<f64> = self.text.trim().parse().ok();
        if is_tiny(&self.text) {
            return Err(format!(
                "{name} `{}` is too small, expected {}; write 0 if it is nothing",
                self.brief(),
                range.describe()
            ));
        }
        match number.filter(|number| range.contains(*number)) {
            // −0 would sort before 0.
            Some(number) => Ok(number + 0.0),
            None => Err(format!("{name} `{}`, expected {}", self.brief(), range.describe())),
        }
    }

    /// The field as a count of workers.
    pub(super) fn scale_factor(&self) -> Result<u32, String> {
        let count: Option<u32> = self.text.trim().parse().ok();
        let most = crate::cluster::WORKERS_PER_TYPE_MAX;
        count.filter(|count| (1..=most).contains(count)).ok_or_else(|| {
            format!("scale factor `{}`, expected a whole number of workers from 1 to {most}", self.brief())
        })
    }

    /// The field as a name.
    pub(super) fn name(&self, what: &str) -> Result<String, String> {
        let name = self.text.trim();
        match name {
            "" => Err(format!("no {what}, expected text")),
            _ if name.chars().any(char::is_control) => {
                Err(format!("{what} `{}` has control characters, expected none", self.brief()))
            }
            _ => Ok(name.to_owned()),
        }
    }

    /// The text, short enough for a message.
    pub(in crate::spec) fn brief(&self) -> String {
        Self::shortened(self.text.trim())
    }

    /// A text, short enough for a message.
    pub fn shortened(text: &str) -> String {
        let shown: String = text.chars().take(40).flat_map(char::escape_debug).collect();
        if text.chars().nth(40).is_some() { format!("{shown}…") } else { shown }
    }
}

/// Refuses a time to an SLO that no job can have.
pub(super) fn check_slo(slo_s: f64) -> Result<(), String> {
    if Range::Positive.contains(slo_s) {
        return Ok(());
    }
    Err(format!("an SLO of {slo_s} s, expected {}, or -1 for none", Range::Positive.describe()))
}

/// Splits a line at a character that fields never contain.
pub fn split_at(text: &str, by: char, line: usize) -> Vec<Field<'_>> {
    let mut column = 1;
    let field = |text: &str| {
        let width = text.chars().count();
        let field = (column, width);
        column += width + 1;
        field
    };
    let places: Vec<(usize, usize)> = text.split(by).map(field).collect();
    let fields = text.split(by).zip(places);
    fields.map(|(text, (column, width))| Field::new(text.into(), (line, column), width)).collect()
}

/// Splits a line at its commas; a field in double quotes may contain commas, and quotes doubled.
///
/// # Errors
/// With the place, if a quote is not closed or a letter follows it.
pub fn split_commas(text: &str, line: usize) -> Result<Vec<Field<'_>>, (Place, &'static str)> {
    let mut fields = Vec::new();
    let (mut rest, mut column) = (text, 1);
    loop {
        let (field, raw) = match rest.strip_prefix('"') {
            None => {
                let raw = rest.split(',').next().unwrap_or(rest);
                (Cow::Borrowed(raw), raw)
            }
            Some(inside) => {
                let place = Place { line, column, width: 1 };
                let end = closing_quote(inside).ok_or((place, "a quote that is not closed"))?;
                (Cow::Owned(inside[..end].replace("\"\"", "\"")), &rest[..end + 2])
            }
        };
        let width = raw.chars().count();
        fields.push(Field::new(field, (line, column), width));
        column += width;
        match rest[raw.len()..].strip_prefix(',') {
            Some(next) => rest = next,
            None if rest.len() == raw.len() => return Ok(fields),
            None => return Err((Place { line, column, width: 1 }, "text after a closing quote")),
        }
        column += 1;
    }
}

/// The position of the quote that ends a field; doubled ones do not end it.
fn closing_quote(inside: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        at += inside[at..].find('"')?;
        if !inside[at + 1..].starts_with('"') {
            return Some(at);
        }
        at += 2;
    }
}
