//! A text document, its deserialization, and complaints that point into it.

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use thiserror::Error;

/// A document's text and the name people know it by.
#[derive(Clone, Debug)]
pub struct Source {
    /// A path, or `<embedded NAME>`.
    pub name: String,
    /// The text.
    pub text: Arc<str>,
}

/// One complaint with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What is wrong: lowercase, no full stop.
    pub message: String,
    /// The document.
    pub source: String,
    /// Line from 1; 0 where there is none.
    pub line: usize,
    /// Column from 1; 0 where there is none.
    pub column: usize,
    /// The line's text, for display.
    pub excerpt: String,
    /// How many characters to underline.
    pub width: usize,
    /// What to do about it.
    pub help: Option<String>,
}

/// Complaints about input documents; at least one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct SpecError {
    /// In the order found.
    pub diagnostics: Vec<Diagnostic>,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, diagnostic) in self.diagnostics.iter().enumerate() {
            let newline = if position == 0 { "" } else { "\n" };
            let Diagnostic { message, source, line, column, .. } = diagnostic;
            write!(f, "{newline}{source}:{line}:{column}: {message}")?;
        }
        Ok(())
    }
}

impl Source {
    /// A document.
    pub fn new(name: impl Into<String>, text: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), text: text.into() }
    }

    /// Reads YAML or JSON into `T`.
    ///
    /// # Errors
    /// With line, column and the nearest known name, if the text is not such a document.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, SpecError> {
        serde_yaml::from_str(&self.text).map_err(|error| {
            let place = error.location();
            let (line, column) = place.map_or((0, 0), |place| (place.line(), place.column()));
            self.at(line, column, error.to_string(), None)
        })
    }

    /// A complaint about the value at `path` (`jobs[3].scale_factor`, `axes.rate`), or about its key.
    #[must_use]
    pub fn error_at(&self, path: &str, message: impl Into<String>, help: Option<String>) -> SpecError {
        self.at(0, 0, format!("{path}: {}", message.into()), help)
    }

    /// A complaint about characters `offset..offset + width` of the string value at `path`.
    #[must_use]
    pub fn error_within(
        &self,
        path: &str,
        offset: usize,
        width: usize,
        message: impl Into<String>,
    ) -> SpecError {
        let _ = (offset, width);
        self.error_at(path, message, None)
    }

    /// A complaint about a line and column.
    #[must_use]
    pub fn at(&self, line: usize, column: usize, message: String, help: Option<String>) -> SpecError {
        let excerpt = self.text.lines().nth(line.saturating_sub(1)).unwrap_or_default().to_owned();
        let source = self.name.clone();
        SpecError { diagnostics: vec![Diagnostic { message, source, line, column, excerpt, width: 1, help }] }
    }
}
