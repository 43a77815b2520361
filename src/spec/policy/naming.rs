//! The places where a policy's texts name an owner or a worker type that a problem does not have.

use serde_json::Value;

use super::document::PolicyDocument;
use crate::spec::document::SpecError;

/// The fields of a program that contain expressions.
const EXPRESSIONS: [&str; 5] =
    ["maximize", "minimize", "for_each_job", "for_each_worker_type", "constraints"];

impl PolicyDocument {
    /// An error about the first place where an expression of the policy has this word; about the document as a whole if none has
    /// it.
    pub fn error_naming(&self, word: &str, message: impl Into<String>, help: Option<String>) -> SpecError {
        match self.place_of(word) {
            None => SpecError::about(self.source.name.as_str(), message, help),
            Some((path, offset)) => {
                let mut error = self.source.error_within(&path, offset, word.chars().count(), message);
                if let Some(diagnostic) = error.diagnostics.last_mut() {
                    diagnostic.help = help;
                }
                error
            }
        }
    }

    /// Whether an expression of the policy has this word.
    pub(crate) fn is_named(&self, word: &str) -> bool {
        self.place_of(word).is_some()
    }

    /// The path of the first expression with this word, and the number of characters before the word.
    fn place_of(&self, word: &str) -> Option<(String, usize)> {
        let fields: Value = self.source.parse().unwrap_or_default();
        EXPRESSIONS.iter().find_map(|field| find(fields.get(field)?, (*field).to_owned(), word))
    }
}

/// The path of the first text with this word, and the number of characters before the word.
fn find(value: &Value, path: String, word: &str) -> Option<(String, usize)> {
    match value {
        Value::String(text) => Some((path, offset(text, word)?)),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(at, item)| find(item, format!("{path}[{at}]"), word))
        }
        Value::Object(fields) => {
            fields.iter().find_map(|(name, field)| find(field, format!("{path}.{name}"), word))
        }
        _ => None,
    }
}

/// The number of characters before a word in a text, where the word is no part of a longer one.
fn offset(text: &str, word: &str) -> Option<usize> {
    let is_part =
        |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
    let mut places = text.match_indices(word).map(|(at, _)| at);
    let at = places.find(|at| {
        !is_part(text[..*at].chars().next_back()) && !is_part(text[at + word.len()..].chars().next())
    })?;
    Some(text[..at].chars().count())
}
