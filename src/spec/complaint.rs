//! Messages of serde about a document, put into the document's words.

use crate::spec::nearest::suggestion;

/// An error in plain words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// The part of the document that is at fault: a key, a value, a mapping that lacks a key, or the syntax.
    pub about: About,
    /// The message: lowercase, no full stop.
    pub message: String,
    /// A remedy, in words.
    pub help: Option<String>,
}

/// The part of a document that an error points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// A key that should not be there.
    Key,
    /// A value of the wrong kind.
    Value,
    /// A mapping that lacks a key.
    Missing,
    /// The text itself.
    Syntax,
}

/// Puts a message of serde's into plain words. `path` is the path of the value that it is about, empty for the whole document.
pub fn in_plain_words(message: &str, path: &str) -> Complaint {
    let message = without_path(message, path);
    let place = if path.is_empty() { "the document".to_owned() } else { format!("`{path}`") };
    let complaint = |about, message, help| Complaint { about, message, help };
    for (start, about, what) in
        [("unknown field ", About::Key, "unknown key"), ("unknown variant ", About::Value, "unknown name")]
    {
        if let Some(rest) = message.strip_prefix(start) {
            let names = backquoted(rest);
            let (name, known) = names.split_first().map_or(("", &names[..]), |(name, known)| (*name, known));
            let help = suggestion(name, known.iter().copied());
            return complaint(about, format!("{what} {rest}"), help);
        }
    }
    if let Some(rest) = message.strip_prefix("missing field ") {
        return complaint(About::Missing, format!("{place} has no {rest}"), None);
    }
    if let Some(rest) = message.strip_prefix("duplicate field ") {
        return complaint(About::Key, format!("key {rest} is given twice"), None);
    }
    for start in ["invalid type: ", "invalid value: "] {
        if let Some((found, expected)) =
            message.strip_prefix(start).and_then(|rest| rest.rsplit_once(", expected "))
        {
            let (found, expected) = (found_in_words(found), expected_in_words(expected));
            return complaint(About::Value, format!("{place} is {found}, expected {expected}"), None);
        }
    }
    if let Some((length, expected)) =
        message.strip_prefix("invalid length ").and_then(|rest| rest.split_once(", expected "))
    {
        let expected = expected_in_words(expected);
        return complaint(About::Value, format!("{place} has {length} items, expected {expected}"), None);
    }
    if message == "JSON number out of range" {
        let message = format!("{place} is a whole number that is too large, expected at most {}", u64::MAX);
        return complaint(About::Value, message, Some("write it with a decimal point".to_owned()));
    }
    complaint(About::Syntax, message.trim_end_matches('.').to_owned(), None)
}

/// The message without the path of the value, or of one around it, which the YAML reader writes before it. If the whole document
/// is a list, it writes a point before the first position: `.[0].id`.
fn without_path<'m>(message: &'m str, path: &str) -> &'m str {
    let (mut around, start) = (path, message);
    let message = if path.starts_with('[') { message.strip_prefix('.').unwrap_or(message) } else { message };
    loop {
        if !around.is_empty()
            && let Some(rest) = message.strip_prefix(around).and_then(|rest| rest.strip_prefix(": "))
        {
            return rest;
        }
        match around.rfind(['.', '[']) {
            Some(cut) => around = &around[..cut],
            None => return start,
        }
    }
}

/// The message without the place that both readers write after it.
pub fn without_place(message: &str) -> &str {
    let is_place = |rest: &str| {
        rest.split_once(" column ").is_some_and(|(line, column)| {
            let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            digits(line) && digits(column)
        })
    };
    match message.rfind(" at line ") {
        Some(cut) if is_place(&message[cut + " at line ".len()..]) => &message[..cut],
        _ => message,
    }
}

/// The names between backquotes, in order.
fn backquoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

fn found_in_words(found: &str) -> String {
    let number = found.strip_prefix("integer ").or_else(|| found.strip_prefix("floating point "));
    match found {
        "sequence" => "a list".to_owned(),
        "map" => "a mapping".to_owned(),
        "unit value" | "null" | "Option value" => "empty".to_owned(),
        _ if number.is_some() => number.unwrap_or_default().to_owned(),
        _ => match (found.strip_prefix("string "), found.strip_prefix("boolean ")) {
            (Some(text), _) => format!("the text {text}"),
            (_, Some(truth)) => truth.to_owned(),
            _ => found.to_owned(),
        },
    }
}

fn expected_in_words(expected: &str) -> String {
    match expected {
        "f64" | "f32" => "a number".to_owned(),
        "u8" | "u16" | "u32" | "u64" | "usize" => format!("a whole number from 0 to {}", largest(expected)),
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a mapping".to_owned(),
        "unit" => "nothing".to_owned(),
        "a string" => "text".to_owned(),
        "variant identifier" | "string or singleton map" | "map with a single key" => {
            "a name, or a mapping with one name as its key".to_owned()
        }
        _ => {
            let size = expected
                .strip_prefix("a tuple of size ")
                .or_else(|| expected.strip_prefix("an array of length "));
            match (size, expected.strip_prefix("struct "), expected.strip_prefix("enum ")) {
                (Some(size), ..) => format!("a list of {size}"),
                (_, Some(_), _) => "a mapping".to_owned(),
                (.., Some(_)) => "a name, or a mapping with one name as its key".to_owned(),
                _ => expected.to_owned(),
            }
        }
    }
}

fn largest(integer: &str) -> u64 {
    match integer {
        "u8" => u64::from(u8::MAX),
        "u16" => u64::from(u16::MAX),
        "u32" => u64::from(u32::MAX),
        _ => u64::MAX,
    }
}
