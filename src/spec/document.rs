//! A text document, its deserialization, and errors that point into it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::spec::complaint::{About, in_plain_words, without_place};
use crate::spec::nearest::{name_list, suggestion};
use crate::spec::path_text;
use crate::spec::places::{self, Part, Place};
use crate::spec::structure;

/// A document's text, and its name in error messages.
#[derive(Clone, Debug)]
pub struct Source {
    /// A path as [`path_text`] writes it, or `<embedded NAME>`.
    pub name: String,
    /// The text.
    pub text: Arc<str>,
}

/// The most characters of a line that are kept to be shown.
const EXCERPT_MAX: usize = 1_000;

/// The reader that reports an error. If a mapping lacks a key, the YAML reader names the mapping's start, the JSON reader its end.
#[derive(Clone, Copy, Debug)]
enum Reader {
    Json,
    Yaml,
}

/// One error with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The message: lowercase, no full stop.
    pub message: String,
    /// The name of the document.
    pub source: String,
    /// Line from 1; 0 where there is none.
    pub line: usize,
    /// Column from 1, in characters; 0 where there is none.
    pub column: usize,
    /// The text of the line, or the part of a long one around the place, for display.
    pub excerpt: String,
    /// Characters of the line before the excerpt.
    pub n_before: usize,
    /// The number of characters to underline.
    pub width: usize,
    /// A remedy. A first line that asks ``did you mean `x`?`` is shown beside the underlined text.
    pub help: Option<String>,
}

/// Errors in input documents; at least one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct SpecError {
    /// The first of them, in the order found.
    pub diagnostics: Vec<Diagnostic>,
    /// Complaints that were counted and are not listed.
    pub n_more: usize,
}

/// The most complaints about one document that are listed; more are counted.
pub const LISTED_MAX: usize = 20;

/// Complaints about one document, in the order found: the first of them, whose places are looked up together, and their number.
#[derive(Clone, Debug, Default)]
pub struct Complaints {
    listed: Vec<Unplaced>,
    n_more: usize,
}

impl Complaints {
    /// Takes a complaint, which is made only if it is to be listed.
    pub fn push(&mut self, make: impl FnOnce() -> Unplaced) {
        if self.listed.len() < LISTED_MAX {
            self.listed.push(make());
        } else {
            self.n_more += 1;
        }
    }

    /// Whether there are no complaints.
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }
}

/// A complaint about a document, whose place may not be looked up yet.
#[derive(Clone, Debug)]
pub struct Unplaced {
    at: At,
    message: String,
    help: Option<String>,
}

/// The place of a complaint, or what stands there.
#[derive(Clone, Debug)]
enum At {
    Path(String, Part),
    Place(Place),
}

impl Unplaced {
    /// About the value at `path`.
    #[must_use]
    pub fn at(path: &str, message: impl Into<String>, help: Option<String>) -> Self {
        Self { at: At::Path(path.to_owned(), Part::Value), message: message.into(), help }
    }

    /// About the key of the value at `path`.
    #[must_use]
    pub fn at_key(path: &str, message: impl Into<String>, help: Option<String>) -> Self {
        Self { at: At::Path(path.to_owned(), Part::Key), message: message.into(), help }
    }

    /// About a place that is known.
    #[must_use]
    pub fn at_place(place: Place, message: impl Into<String>, help: Option<String>) -> Self {
        Self { at: At::Place(place), message: message.into(), help }
    }

    /// About a name at `path` that is none of `known`.
    #[must_use]
    pub fn unknown_name<'a>(
        path: &str,
        what: &str,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        let expected = match known.as_slice() {
            [] => "none is known".to_owned(),
            [one] => format!("expected `{one}`"),
            _ => format!("expected one of {}", name_list(known.iter().copied())),
        };
        let message = format!("unknown {what} `{name}`, {expected}");
        Self::at(path, message, suggestion(name, known))
    }

    /// An error about a worker type that the cluster or matrix does not have; it points to the key of `path`.
    pub(super) fn unknown_worker_type<'a>(
        path: &str,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let known: Vec<&str> = known.into_iter().collect();
        let expected = name_list(known.iter().copied());
        let message = format!("unknown worker type `{name}`, expected one of {expected}");
        Self::at_key(path, message, suggestion(name, known))
    }
}

impl SpecError {
    /// One error without a place: about a document as a whole, or about none.
    #[must_use]
    pub fn about(source: impl Into<String>, message: impl Into<String>, help: Option<String>) -> Self {
        let (message, source) = (message.into(), source.into());
        let diagnostic = Diagnostic {
            message,
            source,
            line: 0,
            column: 0,
            excerpt: String::new(),
            n_before: 0,
            width: 0,
            help,
        };
        diagnostic.into()
    }

    /// All errors as one; `Ok` if there are none.
    ///
    /// # Errors
    /// If there is at least one.
    pub fn join(errors: impl IntoIterator<Item = Self>) -> Result<(), Self> {
        let mut joined = Self { diagnostics: Vec::new(), n_more: 0 };
        for error in errors {
            joined.diagnostics.extend(error.diagnostics);
            joined.n_more += error.n_more;
        }
        if joined.diagnostics.is_empty() { Ok(()) } else { Err(joined) }
    }
}

impl From<Diagnostic> for SpecError {
    fn from(diagnostic: Diagnostic) -> Self {
        Self { diagnostics: vec![diagnostic], n_more: 0 }
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, diagnostic) in self.diagnostics.iter().enumerate() {
            let newline = if position == 0 { "" } else { "\n" };
            let Diagnostic { message, source, line, column, .. } = diagnostic;
            match (line, column) {
                (0, _) => write!(f, "{newline}{source}: {message}")?,
                _ => write!(f, "{newline}{source}:{line}:{column}: {message}")?,
            }
        }
        if self.n_more > 0 {
            write!(f, "\nand {} more", self.n_more)?;
        }
        Ok(())
    }
}

impl Source {
    /// A document.
    pub fn new(name: impl Into<String>, text: impl Into<Arc<str>>) -> Self {
        let text: Arc<str> = text.into();
        let text = text.strip_prefix('\u{feff}').map(Arc::from).unwrap_or(text);
        Self { name: name.into(), text }
    }

    /// The folder in which the document's own relative paths begin: its own folder, or where the command runs if it has none.
    pub fn folder(&self) -> PathBuf {
        path_text::to_path(&self.name).parent().unwrap_or(Path::new("")).to_owned()
    }

    /// Reads YAML or JSON into `T`. A text that starts with `{` is read as JSON, in one pass and without an
    /// intermediate tree, so that a million jobs can be read.
    ///
    /// # Errors
    /// With line, column and the nearest known name, if the text is not such a document.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, SpecError> {
        structure::check_text(self)?;
        structure::check_numbers(self)?;
        if self.is_json() {
            match serde_json::from_str(&self.text) {
                Err(error) if error.is_syntax() && structure::check_nodes(self).is_ok() => {} // YAML, in braces
                result => return result.map_err(|error| self.json_error(&error)),
            }
        }
        structure::check_nodes(self)?;
        serde_yaml::from_str(&self.text).map_err(|error| self.yaml_error(&error))
    }

    /// Reads a document whose `format:` is `format` (`apportion/snapshot-v1`) into `T`, which has a field of that name, too.
    ///
    /// # Errors
    /// As [`parse`](Self::parse); and if the document is of another kind or version.
    pub fn parse_format<T: DeserializeOwned>(&self, format: &str) -> Result<T, SpecError> {
        structure::check_text(self)?;
        structure::check_format(self, format)?;
        self.parse()
    }

    /// Refuses numbers that are not finite, whatever they are for.
    ///
    /// # Errors
    /// At the first of them.
    pub fn check_finite(&self) -> Result<(), SpecError> {
        structure::check_finite(self)
    }

    /// Whether the document states this format.
    pub fn is_of(&self, format: &str) -> bool {
        structure::said_format(self).is_ok_and(|said| said.as_deref() == Some(format))
    }

    /// An error about the value at `path` (`jobs[3].scale_factor`, `axes.rate`); if the document has no such value, about the
    /// nearest one around it.
    #[must_use]
    pub fn error_at(&self, path: &str, message: impl Into<String>, help: Option<String>) -> SpecError {
        self.at_place(places::find(&self.text, path, Part::Value), message.into(), help)
    }

    /// An error about the key of the value at `path`.
    #[must_use]
    pub fn error_at_key(&self, path: &str, message: impl Into<String>, help: Option<String>) -> SpecError {
        self.at_place(places::find(&self.text, path, Part::Key), message.into(), help)
    }

    /// An error about characters `offset..offset + width` of the string value at `path`, counted in the value, however it is quoted
    /// or folded in the text.
    #[must_use]
    pub fn error_within(
        &self,
        path: &str,
        offset: usize,
        width: usize,
        message: impl Into<String>,
    ) -> SpecError {
        match places::find_within(&self.text, path, offset, width) {
            Some(place) => self.at_place(Some(place), message.into(), None),
            None => self.error_at(path, message, None),
        }
    }

    /// An error about a name at `path` that is none of `known`, with the known names and the nearest of them.
    #[must_use]
    pub fn unknown_name<'a>(
        &self,
        path: &str,
        what: &str,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> SpecError {
        self.one_at(Unplaced::unknown_name(path, what, name, known))
    }

    /// An error about a worker type that the cluster or matrix does not have; it points to the key of `path`.
    #[must_use]
    pub fn unknown_worker_type<'a>(
        &self,
        path: &str,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> SpecError {
        self.one_at(Unplaced::unknown_worker_type(path, name, known))
    }

    fn one_at(&self, complaint: Unplaced) -> SpecError {
        let Unplaced { at, message, help } = complaint;
        let place = match at {
            At::Path(path, part) => places::find(&self.text, &path, part),
            At::Place(place) => Some(place),
        };
        self.at_place(place, message, help)
    }

    /// An error about a line and column.
    #[must_use]
    pub fn at(&self, line: usize, column: usize, message: String, help: Option<String>) -> SpecError {
        self.at_place(Some(Place { line, column, width: 1 }), message, help)
    }

    pub(super) fn at_place(&self, place: Option<Place>, message: String, help: Option<String>) -> SpecError {
        let Some(Place { line, column, width }) = place else {
            return SpecError::about(self.name.clone(), message, help);
        };
        let (n_before, excerpt) = self.excerpt(line, column);
        let source = self.name.clone();
        let diagnostic = Diagnostic { message, source, line, column, excerpt, n_before, width, help };
        diagnostic.into()
    }

    /// The line, or the part of a long one around a column, with the number of characters before that.
    fn excerpt(&self, line: usize, column: usize) -> (usize, String) {
        let text = self.text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
        let n_before = column.saturating_sub(EXCERPT_MAX / 2);
        let is_short = text.len() <= EXCERPT_MAX;
        let n_before = if is_short { 0 } else { n_before };
        (n_before, text.chars().skip(n_before).take(EXCERPT_MAX).collect())
    }

    /// Complaints about the document, whose places are looked up in one walk.
    ///
    /// # Errors
    /// If there is at least one.
    pub fn all_at(&self, complaints: Complaints) -> Result<(), SpecError> {
        let Complaints { listed, n_more } = complaints;
        if listed.is_empty() {
            return Ok(());
        }
        let wanted = listed.iter().filter_map(|complaint| match &complaint.at {
            At::Path(path, part) => Some((path.as_str(), *part)),
            At::Place(_) => None,
        });
        let mut places = places::find_all(&self.text, wanted).into_iter();
        let placed = listed.into_iter().map(|Unplaced { at, message, help }| {
            let place = match at {
                At::Path(..) => places.next().flatten(),
                At::Place(place) => Some(place),
            };
            self.at_place(place, message, help)
        });
        SpecError::join(placed).map_err(|error| SpecError { n_more, ..error })
    }

    pub(super) fn is_json(&self) -> bool {
        self.text.trim_start().starts_with('{')
    }

    fn yaml_error(&self, error: &serde_yaml::Error) -> SpecError {
        let (line, column) = error.location().map_or((0, 0), |place| (place.line(), place.column()));
        let message = error.to_string();
        self.point_out(Reader::Yaml, without_place(&message), line, column)
    }

    fn json_error(&self, error: &serde_json::Error) -> SpecError {
        let quoted = self.text.trim_start()[1..].trim_start().starts_with(['"', '}']);
        if error.is_syntax()
            && !quoted
            && let Err(error) = structure::check_nodes(self)
        {
            return error;
        }
        let message = error.to_string();
        let message = without_place(&message);
        if error.is_data() {
            let column = self.characters_before(error.line(), error.column());
            return self.point_out(Reader::Json, message, error.line(), column);
        }
        self.at(error.line().max(1), error.column().max(1), format!("not JSON: {message}"), None)
    }

    /// The number of characters in the first `n_bytes` bytes of a line: serde_json counts columns in bytes.
    fn characters_before(&self, line: usize, n_bytes: usize) -> usize {
        let line = self.text.split('\n').nth(line.saturating_sub(1)).unwrap_or_default();
        line.char_indices().take_while(|(byte, _)| *byte < n_bytes).count()
    }

    /// Finds the part of the document that serde's message is about, near the place that it names.
    fn point_out(&self, reader: Reader, message: &str, line: usize, column: usize) -> SpecError {
        if message.contains("missing field `") {
            let mapping = match reader {
                Reader::Json => places::closed_at(&self.text, line, column),
                Reader::Yaml => places::opened_at(&self.text, line, column),
            };
            let around = Place { line, column: column.max(1), width: 1 };
            let (path, place) = mapping.unwrap_or_else(|| (String::new(), around));
            let complaint = in_plain_words(message, &path);
            return self.at_place(Some(place), complaint.message, complaint.help);
        }
        let Some(places::NodeFound { path, part, place }) = places::node_at(&self.text, line, column) else {
            let complaint = in_plain_words(message, "");
            let place = (line > 0).then_some(Place { line, column: column.max(1), width: 1 });
            return self.at_place(place, complaint.message, complaint.help);
        };
        let complaint = in_plain_words(message, &path);
        let exact = match (complaint.about, part) {
            (About::Key, Part::Value) => places::find(&self.text, &path, Part::Key),
            (About::Value, Part::Key) => places::find(&self.text, &path, Part::Value),
            _ => None,
        };
        let place = exact.unwrap_or(place);
        let message = match self.other_digits(place) {
            Some(written) if complaint.message.ends_with(", expected a number") => {
                format!("`{path}` is `{written}`, expected a decimal number")
            }
            _ => complaint.message,
        };
        self.at_place(Some(place), message, complaint.help)
    }

    /// The number at a place as it is written, if its digits are not decimal ones.
    fn other_digits(&self, place: Place) -> Option<String> {
        let line = self.text.lines().nth(place.line.checked_sub(1)?)?;
        let written: String = line.chars().skip(place.column.checked_sub(1)?).take(place.width).collect();
        let digits = written.trim_start_matches(['+', '-']);
        ["0x", "0o", "0b"].iter().any(|start| digits.starts_with(start)).then_some(written)
    }
}

#[cfg(test)]
mod tests;
