//! Error messages as people read them: message, place, the line with the fault underlined, and a remedy.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::exit::Failure;
use apportion::policy::PolicyError;
use apportion::solver::SolveError;
use apportion::spec::document::LISTED_MAX;
use apportion::spec::nearest::suggestion;
use apportion::spec::{Diagnostic, SpecError};
use apportion_studies::report::plain::{is_hidden, plain, plain_lines};

/// The most characters of an input line that are shown.
const EXCERPT_MAX: usize = 100;

/// The most characters that are shown of a text between backticks, and of an argument.
const QUOTED_MAX: usize = 300;

/// A text that a message repeats, short enough to be shown.
pub fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(QUOTED_MAX) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// A message in which texts between backticks are short enough to be shown.
fn with_short_quotes(message: &str) -> String {
    let parts: Vec<Cow<'_, str>> = message
        .split('`')
        .enumerate()
        .map(|(at, part)| if at % 2 == 1 { shortened(part) } else { with_exponents(part) })
        .collect();
    parts.join("`")
}

/// The most digits in a row of a number in a message.
const DIGITS_MAX: usize = 24;

/// A text in which numbers of hundreds of digits are written with an exponent.
fn with_exponents(text: &str) -> Cow<'_, str> {
    let is_long = |digits: &str| digits.len() > DIGITS_MAX;
    if !text.split(|letter: char| !letter.is_ascii_digit()).any(is_long) {
        return text.into();
    }
    let mut rest = text;
    let mut shown = String::new();
    while let Some(start) = rest.find(|letter: char| letter.is_ascii_digit()) {
        let end =
            rest[start..].find(|letter: char| !letter.is_ascii_digit()).map_or(rest.len(), |n| start + n);
        let digits = &rest[start..end];
        shown.push_str(&rest[..start]);
        let _ = match digits.parse::<f64>() {
            Ok(value) if is_long(digits) && value >= 1.0 => write!(shown, "{value:e}"),
            _ => write!(shown, "{digits}"),
        };
        rest = &rest[end..];
    }
    (shown + rest).into()
}

/// A flag that is raised if all output on standard error is lines of JSON (`--progress json`).
static IN_JSON: AtomicBool = AtomicBool::new(false);

/// Makes notes and errors lines of JSON, like progress: `{"event": "note", …}` and `{"event": "error", …}`.
pub fn speak_json() {
    IN_JSON.store(true, Ordering::Relaxed);
}

/// Whether notes and errors are lines of JSON.
pub fn speaks_json() -> bool {
    IN_JSON.load(Ordering::Relaxed)
}

/// Writes a note to standard error, as lines for people or as an event. A failure to do so is ignored: no other stream is left to
/// report it on.
pub fn print(text: &str) {
    print_as("note", text);
}

/// Writes an error message, which begins with `error: `, to standard error, as lines for people or as an event.
pub fn complain(text: &str) {
    print_as("error", text);
}

fn print_as(event: &str, text: &str) {
    let text = text.trim_end_matches('\n');
    if speaks_json() {
        let message = text.strip_prefix("error: ").unwrap_or(text);
        print_exactly(&json!({ "event": event, "message": message }).to_string());
    } else {
        print_exactly(&plain_lines(text));
    }
}

/// Writes a line for programs to standard error.
pub fn print_exactly(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// The error message of a failure.
pub fn of_failure(failure: &Failure) -> String {
    let help = match failure {
        Failure::Spec(error) => return of_spec(error),
        Failure::Usage { help, .. } => help.clone(),
        Failure::Policy(error) | Failure::Decision { error, .. } => policy_help(error),
        Failure::Bug { .. } => Some(REPORT.to_owned()),
        Failure::Io { .. }
        | Failure::Limit { .. }
        | Failure::BoundBroken { .. }
        | Failure::Interrupted { .. } => None,
    };
    let mut text = format!("error: {}\n", indented(&failure.to_string()));
    let mut source = Error::source(failure).and_then(Error::source);
    if let Failure::Policy(error) | Failure::Decision { error, .. } = failure {
        source = error.source();
    }
    while let Some(cause) = source {
        let _ = writeln!(text, "  because {}", indented(&cause.to_string()));
        source = cause.source();
    }
    push_help(&mut text, help.as_deref());
    text
}

/// The error message of a panic.
pub fn of_panic(report: &PanicHookInfo<'_>) -> String {
    let place = report.location().map(|place| format!(" at {}:{}", place.file(), place.line()));
    let message = report.payload_as_str().unwrap_or("it does not say why");
    format!("error: the program broke off{}: {message}\n  help: {REPORT}", place.unwrap_or_default())
}

const REPORT: &str = "this is a bug in apportion: please report it, with the command and its input";

fn policy_help(error: &PolicyError) -> Option<String> {
    match error {
        PolicyError::Solve(SolveError::UnknownBackend { name, expected }) => {
            suggestion(name, expected.split(['`', ',', ' ']).filter(|word| !word.is_empty()))
        }
        PolicyError::Solve(SolveError::Unsupported { .. }) => {
            Some("leave `--backend` out: the program is then sent to one that can".to_owned())
        }
        PolicyError::Allocation { .. } => Some(REPORT.to_owned()),
        _ => None,
    }
}

/// Error messages about documents.
///
/// ```text
/// error: unknown key `max_mn`, expected one of `max_min`, `makespan`
///   --> policies/mine.yaml:4:14
///    4 | objective: { max_mn: { of: effective_throughput } }
///      |              ^^^^^^ did you mean `max_min`?
/// ```
pub fn of_spec(error: &SpecError) -> String {
    let mut text = String::new();
    for diagnostic in error.diagnostics.iter().take(LISTED_MAX) {
        if !text.is_empty() {
            text.push('\n');
        }
        push_diagnostic(&mut text, diagnostic);
    }
    let more = error.diagnostics.len().saturating_sub(LISTED_MAX) + error.n_more;
    if more > 0 {
        let _ = writeln!(text, "\nerror: and {more} more like these");
    }
    text
}

fn push_diagnostic(text: &mut String, diagnostic: &Diagnostic) {
    let Diagnostic { message, source, line, column, excerpt, n_before, width, help } = diagnostic;
    let _ = writeln!(text, "error: {}", indented(message));
    let source = plain(source);
    let source = shortened(&source);
    if *line == 0 {
        if !source.is_empty() {
            let _ = writeln!(text, "  --> {source}");
        }
        push_help(text, help.as_deref());
        return;
    }
    let _ = writeln!(text, "  --> {source}:{line}:{column}");
    let question =
        help.as_deref().and_then(|help| help.lines().next()).filter(|line| line.starts_with("did you"));
    let rest = help.as_deref().map(|help| match question {
        Some(question) => help[question.len()..].trim_start_matches('\n'),
        None => help,
    });
    if !excerpt.is_empty() {
        let Window { text: shown, indent, width } = window(excerpt, column.saturating_sub(*n_before), *width);
        let gutter = line.to_string();
        let blank = " ".repeat(gutter.len().max(4));
        let _ = writeln!(text, "{gutter:>4} | {shown}");
        let underline = format!("{}{}", " ".repeat(indent), "^".repeat(width));
        let _ = writeln!(
            text,
            "{}",
            format!("{blank} | {underline} {}", question.unwrap_or_default()).trim_end()
        );
    } else if let Some(question) = question {
        push_help(text, Some(question));
    }
    push_help(text, rest.filter(|rest| !rest.is_empty()));
}

/// A message with its lines after the first indented, so that a line break in an id cannot begin a line of another form.
fn indented(message: &str) -> String {
    with_short_quotes(message).replace('\n', "\n  ")
}

fn push_help(text: &mut String, help: Option<&str>) {
    for line in help.into_iter().flat_map(str::lines) {
        let _ = writeln!(text, "  help: {line}");
    }
}

/// The part of a line that is shown, and the part of that to be underlined.
#[derive(Debug, PartialEq)]
struct Window {
    text: String,
    /// Letters before the underlined ones.
    indent: usize,
    /// The number of underlined letters.
    width: usize,
}

/// The part of a line around a column (from 1), free of tabs and control characters.
fn window(excerpt: &str, column: usize, width: usize) -> Window {
    // Each letter is replaced by one letter, or the underline would be misplaced.
    let letters: Vec<char> =
        excerpt.chars().map(|letter| if is_hidden(letter) { ' ' } else { letter }).collect();
    let start = column.saturating_sub(1).min(letters.len());
    let first = if letters.len() <= EXCERPT_MAX { 0 } else { start.saturating_sub(EXCERPT_MAX / 2) };
    let last = letters.len().min(first + EXCERPT_MAX);
    let body: String = letters[first..last].iter().collect();
    let before = if first > 0 { "…" } else { "" };
    let after = if last < letters.len() { "…" } else { "" };
    let indent = start - first + before.chars().count();
    let width = width.min(last.saturating_sub(start)).max(1);
    Window { text: format!("{before}{body}{after}").trim_end().to_owned(), indent, width }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion::spec::Source;
    use apportion::spec::document::{Complaints, Unplaced};

    #[test]
    fn a_complaint_underlines_its_place() {
        let source = Source::new("p.yaml", "objective:\n\t{ max_mn: 1 }\n");
        let error = source.at(
            2,
            4,
            "unknown key `max_mn`".into(),
            Some("did you mean `max_min`?\nread the docs".into()),
        );
        let mut error = error;
        error.diagnostics[0].width = 6;
        let expected = "\
error: unknown key `max_mn`
  --> p.yaml:2:4
   2 |  { max_mn: 1 }
     |    ^^^^^^ did you mean `max_min`?
  help: read the docs
";
        assert_eq!(of_spec(&error), expected);
    }

    #[test]
    fn a_number_of_hundreds_of_digits_is_written_with_its_exponent() {
        let message = format!("`exponent` is {}, expected a number from -2 to 2", 1e308);
        assert_eq!(indented(&message), "`exponent` is 1e308, expected a number from -2 to 2");
        let message = format!("at {} s or {}, `{}`", 2.5e30, 17, 1e30);
        assert_eq!(indented(&message), format!("at 2.5e30 s or 17, `{}`", 1e30));
    }

    #[test]
    fn complaints_that_are_not_listed_are_counted() {
        let source = Source::new("p.yaml", "a: 1\n");
        let mut complaints = Complaints::default();
        for _ in 0..LISTED_MAX + 5 {
            complaints.push(|| Unplaced::at("a", "no", None));
        }
        let said = of_spec(&source.all_at(complaints).unwrap_err());
        assert_eq!(said.matches("error: no\n").count(), LISTED_MAX);
        assert!(said.ends_with("\nerror: and 5 more like these\n"), "{said}");
    }

    #[test]
    fn a_long_line_is_shown_in_part() {
        let line = format!("{}HERE{}", "a".repeat(500), "b".repeat(500));
        let Window { text: shown, indent, width } = window(&line, 501, 4);
        let underlined: String = shown.chars().skip(indent).take(width).collect();
        assert_eq!(underlined, "HERE");
        assert!(shown.chars().count() <= EXCERPT_MAX + 2, "{shown}");
        assert_eq!(window("", 1, 1), Window { text: String::new(), indent: 0, width: 1 });
        assert_eq!(window("ab", 9, 3), Window { text: "ab".to_owned(), indent: 2, width: 1 });
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let of_a_file = Failure::io("write run.jsonl")(io::ErrorKind::BrokenPipe.into());
        assert_eq!(of_failure(&of_a_file), "error: cannot write run.jsonl: broken pipe\n");
        let full = Failure::io("write runs.csv")(io::ErrorKind::StorageFull.into());
        assert_eq!(of_failure(&full), "error: cannot write runs.csv: no storage space\n");
    }

    #[test]
    fn an_id_in_a_message_makes_no_line_of_its_own() {
        let failure = Failure::usage("no job `a\nerror: b`", None);
        assert_eq!(of_failure(&failure), "error: no job `a\n  error: b`\n");
        let source = Source::new("p.yaml", "a: \u{202e}b\u{9b}\n");
        let said = of_spec(&source.at(1, 4, "no\nerror: b".into(), None));
        assert!(said.starts_with("error: no\n  error: b\n  --> p.yaml:1:4\n   1 | a:  b\n"), "{said}");
    }
}
