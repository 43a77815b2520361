//! Checks of every document before it is read: text, one document, no key twice, bounded nesting and bounded repetition.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use saphyr_parser::{ScalarStyle, ScanError, Span};
use serde::Deserialize;

use crate::spec::document::{Source, SpecError};
use crate::spec::places::{Place, Step, Walk, walk};
use crate::spec::snapshot::NUMBER_MIN;

/// The most mappings and lists within one another.
pub(super) const DEPTH_MAX: usize = 64;

/// A number without an exponent and with fewer zeros than this one after another is none that is too small.
const ZEROS_MIN: usize = 64;

/// Nodes that aliases may stand for, all told.
const ALIASED_NODES_MAX: u64 = 100_000;

/// Refuses input that is no text document.
///
/// # Errors
/// If the text is empty or binary.
pub(super) fn check_text(source: &Source) -> Result<(), SpecError> {
    // `contains` looks at many bytes at a time, `position` at one.
    let binary = source.text.as_bytes().contains(&0);
    if let Some(byte) = binary.then(|| source.text.bytes().position(|byte| byte == 0)).flatten() {
        let before = &source.text[..byte];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|letter| *letter != '\n').count() + 1;
        let message = format!("a NUL byte at byte {byte}: expected a text file, this one is binary");
        let mut error = source.at(line, column, message, None);
        for diagnostic in &mut error.diagnostics {
            diagnostic.excerpt = String::new();
        }
        return Err(error);
    }
    if is_void(source) {
        return Err(source.at(1, 1, "the document is empty, expected a mapping".to_owned(), None));
    }
    Ok(())
}

/// Whether a document contains nothing but comments.
pub(super) fn is_void(source: &Source) -> bool {
    let blank = |line: &str| line.trim_start().is_empty() || line.trim_start().starts_with('#');
    source.text.lines().all(blank)
}

/// Refuses several documents in one text, keys given twice, deep nesting, explosive aliases, and syntax errors.
///
/// # Errors
/// At the first of these.
pub(super) fn check_nodes(source: &Source) -> Result<(), SpecError> {
    let mut check = NodeCheck::default();
    let found = walk(&source.text, |walk, step, span| match check.step(walk, step) {
        None => ControlFlow::Continue(()),
        Some((message, help)) => ControlFlow::Break((place_of(span, step), message, help)),
    });
    match found {
        Ok(None) => Ok(()),
        Ok(Some((place, message, help))) => Err(source.at_place(Some(place), message, help)),
        Err(error) if error.info().contains("recursion limit") => {
            let place = Place::of(*error.marker(), 1);
            Err(source.at_place(Some(place), format!("nested more than {DEPTH_MAX} levels deep"), None))
        }
        Err(error) => {
            let mut info = error.info().trim_end_matches('.').to_owned();
            if let Some(first) = info.get_mut(..1).filter(|_| !info_is_name(error.info())) {
                first.make_ascii_lowercase();
            }
            let place = Place::of(*error.marker(), 1);
            let help = tab_help(source, place).or_else(|| bracket_help(source, place));
            Err(source.at_place(Some(place), format!("not YAML: {info}"), help))
        }
    }
}

/// The remedy if text in `{…}` or `[…]` goes on with a bracket, as `6[steps/s]` does.
fn bracket_help(source: &Source, place: Place) -> Option<String> {
    let line = source.text.lines().nth(place.line.saturating_sub(1))?;
    let mut around = line.chars().skip(place.column.checked_sub(2)?);
    let (before, at) = (around.next()?, around.next()?);
    let goes_on = at == '[' && !before.is_whitespace() && !"[{,:".contains(before);
    goes_on
        .then(|| "within `{…}` and `[…]`, text with brackets is quoted, as in \"x <= 6[steps/s]\"".to_owned())
}

/// Whether a text is a number other than 0 that is smaller than [`NUMBER_MIN`], or that would be read as 0.
pub(super) fn is_tiny(text: &str) -> bool {
    let text = text.trim();
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let is_zero = || !mantissa.bytes().any(|digit| (b'1'..=b'9').contains(&digit));
    text.parse().is_ok_and(|value: f64| value.abs() < NUMBER_MIN) && !is_zero()
}

/// Refuses numbers other than 0 that are smaller than any that is believed.
///
/// # Errors
/// At the first of them.
pub(super) fn check_numbers(source: &Source) -> Result<(), SpecError> {
    if !may_have_tiny(&source.text) {
        return Ok(());
    }
    let found = walk(&source.text, |_, step, span| match step {
        Step::Scalar(text, ScalarStyle::Plain) if is_tiny(text) => {
            ControlFlow::Break((place_of(span, step), text.clone().into_owned()))
        }
        _ => ControlFlow::Continue(()),
    });
    // What is wrong with the syntax is said elsewhere.
    let Ok(Some((place, text))) = found else { return Ok(()) };
    let message = format!(
        "the number `{text}` is too small, expected 0, or a number of {NUMBER_MIN:e} or more in size"
    );
    let help = "write 0 if it is nothing, or all numbers of its kind in a smaller unit".to_owned();
    Err(source.at_place(Some(place), message, Some(help)))
}

/// Refuses numbers that are not finite.
///
/// # Errors
/// At the first of them.
pub(super) fn check_finite(source: &Source) -> Result<(), SpecError> {
    let found = walk(&source.text, |_, step, span| match step {
        Step::Scalar(text, ScalarStyle::Plain) if is_not_finite(text) => {
            ControlFlow::Break((place_of(span, step), text.clone().into_owned()))
        }
        _ => ControlFlow::Continue(()),
    });
    // What is wrong with the syntax is said elsewhere.
    let Ok(Some((place, text))) = found else { return Ok(()) };
    let message = format!("`{text}` is no finite number, expected one");
    Err(source.at_place(Some(place), message, None))
}

/// Whether a text is YAML's infinity or YAML's not-a-number.
fn is_not_finite(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN")
}

/// Whether a text may contain a tiny number: a negative exponent of three digits, or [`ZEROS_MIN`] zeros in a row.
fn may_have_tiny(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_small = |(at, byte): (usize, &u8)| {
        *byte == b'-'
            && at > 0
            && matches!(bytes[at - 1], b'e' | b'E')
            && bytes[at + 1..].iter().take_while(|digit| digit.is_ascii_digit()).count() >= 3
    };
    bytes.iter().enumerate().any(is_small) || text.contains(&"0".repeat(ZEROS_MIN))
}

fn place_of(span: Span, step: &Step<'_>) -> Place {
    match step {
        Step::Open(_) | Step::Close | Step::Document => Place::of(span.start, 1),
        _ => Place::of(span.start, span.end.col().saturating_sub(span.start.col())),
    }
}

fn info_is_name(info: &str) -> bool {
    info.starts_with(|letter: char| letter.is_uppercase())
        && info.chars().nth(1).is_some_and(char::is_uppercase)
}

fn tab_help(source: &Source, place: Place) -> Option<String> {
    let line = source.text.lines().nth(place.line.saturating_sub(1))?;
    let indent: String = line.chars().take_while(|letter| letter.is_whitespace()).collect();
    indent.contains('\t').then(|| "YAML is indented with spaces, not tabs".to_owned())
}

#[derive(Default)]
struct NodeCheck {
    /// The keys so far of each open mapping or list.
    keys: Vec<BTreeSet<String>>,
    /// The number of nodes under each open mapping or list, aliases expanded, and its anchor.
    open: Vec<(usize, u64)>,
    /// The number of nodes under each anchor, by its number.
    anchored: Vec<u64>,
    /// The number of nodes that aliases stood for so far.
    aliased: u64,
}

impl NodeCheck {
    fn step(&mut self, walk: &Walk<'_>, step: &Step<'_>) -> Option<(String, Option<String>)> {
        match step {
            Step::Document => {
                Some(("a second document begins here, expected one document a file".to_owned(), None))
            }
            Step::Key(key) => {
                let fresh = self.keys.last_mut().is_none_or(|keys| keys.insert(key.to_string()));
                (!fresh && key != "?").then(|| (format!("key `{key}` is given twice"), None))
            }
            Step::Scalar(..) => {
                self.count(1);
                None
            }
            Step::Open(anchor) => {
                self.keys.push(BTreeSet::new());
                self.open.push((*anchor, 1));
                (walk.depth() > DEPTH_MAX)
                    .then(|| (format!("nested more than {DEPTH_MAX} levels deep"), None))
            }
            Step::Close => {
                self.keys.pop();
                if let Some((anchor, n_nodes)) = self.open.pop() {
                    if anchor > 0 {
                        self.anchored.resize(self.anchored.len().max(anchor + 1), 0);
                        self.anchored[anchor] = n_nodes;
                    }
                    self.count(n_nodes);
                }
                None
            }
            Step::Alias(anchor) => {
                let n_nodes = self.anchored.get(*anchor).copied().unwrap_or(1).max(1);
                self.count(n_nodes);
                self.aliased = self.aliased.saturating_add(n_nodes);
                (self.aliased > ALIASED_NODES_MAX)
                    .then(|| (format!("aliases stand for more than {ALIASED_NODES_MAX} values"), None))
            }
        }
    }

    fn count(&mut self, n_nodes: u64) {
        if let Some((_, total)) = self.open.last_mut() {
            *total = total.saturating_add(n_nodes);
        }
    }
}

/// The field that every document begins with, or has somewhere.
#[derive(Deserialize)]
struct Head {
    format: Option<String>,
}

/// The format that a document states; none if it states none.
///
/// # Errors
/// If its syntax is wrong before that.
pub(super) fn said_format(source: &Source) -> Result<Option<String>, ScanError> {
    // JSON is skimmed at the speed of its reader; the walk below is for all other text.
    if source.is_json()
        && let Ok(Head { format: Some(format) }) = serde_json::from_str(&source.text)
    {
        return Ok(Some(format));
    }
    walk(&source.text, |walk, step, _| match step {
        Step::Scalar(text, _) if walk.path() == "format" => ControlFlow::Break(text.clone().into_owned()),
        _ => ControlFlow::Continue(()),
    })
}

/// Refuses documents of another kind or version than `expected`, such as `apportion/snapshot-v1`.
///
/// # Errors
/// At the `format:` line; or that there is none.
pub(super) fn check_format(source: &Source, expected: &str) -> Result<(), SpecError> {
    let found = match said_format(source) {
        Err(_) => return Ok(()), // The reader that follows reports the syntax error.
        Ok(None) => {
            let help = Some(format!("begin the file with `format: {expected}`"));
            let message = format!("the document has no `format`, expected `{expected}`");
            return Err(source.at(1, 1, message, help));
        }
        Ok(Some(found)) if found == expected => return Ok(()),
        Ok(Some(found)) => found,
    };
    let split = |format: &str| {
        let (kind, version) = format.rsplit_once("-v").unwrap_or((format, ""));
        (kind.to_owned(), version.parse::<u32>().ok())
    };
    let ((kind, version), (kind_expected, version_expected)) = (split(&found), split(expected));
    let message = format!("format is `{found}`, expected `{expected}`");
    let help = match version {
        Some(version) if kind == kind_expected && Some(version) > version_expected => {
            Some("this program is older than the file's format: a newer release reads it".to_owned())
        }
        Some(_) if kind != kind_expected && kind.starts_with("apportion/") => {
            let kind = kind.trim_start_matches("apportion/");
            Some(format!(
                "this is a {kind} document, expected a {}",
                kind_expected.trim_start_matches("apportion/")
            ))
        }
        _ => crate::spec::nearest::suggestion(&found, [expected]),
    };
    Err(source.error_at("format", message, help))
}
