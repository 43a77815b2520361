//! The places of values in a text: lines and columns, found on demand, when there is an error to report.
//!
//! The text is read a second time, by a parser that knows the place of each token. A text that is not JSON is read as YAML.

use std::borrow::Cow;
use std::ops::ControlFlow;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, StrInput};

use crate::spec::json_events::JsonEvents;

/// A span within one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The width in characters, at least 1.
    pub width: usize,
}

impl Place {
    pub(super) fn of(marker: Marker, width: usize) -> Self {
        Self { line: marker.line().max(1), column: marker.col() + 1, width: width.max(1) }
    }

    /// The part of a span on its first line.
    fn of_span(span: Span) -> Self {
        let same_line = span.start.line() == span.end.line();
        Self::of(span.start, if same_line { span.end.col().saturating_sub(span.start.col()) } else { 1 })
    }
}

/// A step of a walk.
#[derive(Debug)]
pub(super) enum Step<'t> {
    /// A key of a mapping; the path is already that of its value.
    Key(Cow<'t, str>),
    /// A scalar value.
    Scalar(Cow<'t, str>, ScalarStyle),
    /// A reference to an anchor.
    Alias(usize),
    /// A mapping or list begins; its anchor, 0 for none.
    Open(usize),
    /// The mapping or list of this path ends.
    Close,
    /// Another document of the same text begins.
    Document,
}

#[derive(Debug)]
struct Frame {
    /// Whether it is a mapping, and not a list.
    mapping: bool,
    /// The path's length at this node.
    path_length: usize,
    /// In a mapping, the key whose value comes next; none in a list.
    key: Option<Span>,
    /// In a list, the position of the next item.
    position: usize,
    /// Whether it is itself a key.
    is_key: bool,
    /// The start of the node.
    start: Marker,
}

/// The source of the events of a walk. The YAML parser holds all tokens of a line, which in JSON may be the whole text.
enum Events<'t> {
    Json(JsonEvents<'t>),
    Yaml(Box<Parser<'t, StrInput<'t>>>),
}

impl<'t> Events<'t> {
    fn next(&mut self) -> Option<Result<(Event<'t>, Span), ScanError>> {
        match self {
            Self::Json(events) => events.next_event(),
            Self::Yaml(parser) => parser.next_event(),
        }
    }
}

/// A walk through a document's nodes in the order of the text, with the path of each.
pub(super) struct Walk<'t> {
    events: Events<'t>,
    path: String,
    frames: Vec<Frame>,
    n_documents: usize,
}

impl<'t> Walk<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let events = match JsonEvents::of(text) {
            Some(events) => Events::Json(events),
            None => Events::Yaml(Box::new(Parser::new_from_str(text))),
        };
        Self { events, path: String::new(), frames: Vec::new(), n_documents: 0 }
    }

    /// The path of the last node: `jobs[3].weight`; empty for the whole document.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The number of mappings and lists around the last node.
    pub(super) fn depth(&self) -> usize {
        self.frames.len()
    }

    /// The key of the open mapping or list, or of the last value.
    fn key(&self) -> Option<Span> {
        self.frames.last().and_then(|frame| frame.key)
    }

    /// The next node, with its span.
    pub(super) fn next(&mut self) -> Option<Result<(Step<'t>, Span), ScanError>> {
        loop {
            let (event, span) = match self.events.next()? {
                Ok(next) => next,
                Err(error) => return Some(Err(error)),
            };
            let step = match event {
                Event::StreamEnd => return None,
                Event::Nothing | Event::StreamStart | Event::DocumentEnd => continue,
                Event::DocumentStart(_) => {
                    self.n_documents += 1;
                    if self.n_documents == 1 {
                        continue;
                    }
                    self.path.clear();
                    Step::Document
                }
                Event::Scalar(text, style, _, _) => self.scalar(text, style, span),
                Event::Alias(_) if self.begin_value(span) => Step::Key(Cow::Borrowed("?")),
                Event::Alias(anchor) => Step::Alias(anchor),
                Event::MappingStart(anchor, _) => self.open(true, anchor, span),
                Event::SequenceStart(anchor, _) => self.open(false, anchor, span),
                Event::MappingEnd | Event::SequenceEnd => match self.close() {
                    Some(start) => return Some(Ok((Step::Close, Span::new(start, span.end)))),
                    None => continue,
                },
            };
            return Some(Ok((step, span)));
        }
    }

    fn scalar(&mut self, text: Cow<'t, str>, style: ScalarStyle, span: Span) -> Step<'t> {
        if let Some(frame) = self.frames.last_mut().filter(|frame| frame.mapping && frame.key.is_none()) {
            frame.key = Some(span);
            self.path.truncate(frame.path_length);
            if !self.path.is_empty() {
                self.path.push('.');
            }
            self.path.push_str(&text);
            return Step::Key(text);
        }
        self.begin_value(span);
        Step::Scalar(text, style)
    }

    /// Sets the path of a list's next item. Returns whether the node is a key instead.
    fn begin_value(&mut self, span: Span) -> bool {
        let Some(frame) = self.frames.last_mut() else { return false };
        if frame.mapping {
            let is_key = frame.key.is_none();
            if is_key {
                self.path.truncate(frame.path_length);
                self.path.push_str(".?");
                frame.key = Some(span);
            }
            return is_key;
        }
        self.path.truncate(frame.path_length);
        self.path.push('[');
        self.path.push_str(&frame.position.to_string());
        self.path.push(']');
        frame.position += 1;
        false
    }

    fn open(&mut self, mapping: bool, anchor: usize, span: Span) -> Step<'t> {
        let is_key = self.begin_value(span);
        let path_length = self.path.len();
        let start = span.start;
        self.frames.push(Frame { mapping, path_length, key: None, position: 0, is_key, start });
        Step::Open(anchor)
    }

    /// Leaves the innermost mapping or list. Answers its start, unless it was a key.
    fn close(&mut self) -> Option<Marker> {
        let frame = self.frames.pop()?;
        self.path.truncate(frame.path_length);
        (!frame.is_key).then_some(frame.start)
    }

    /// Forgets the key of the last value. It is called once for each value, after that was looked at.
    fn end_value(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.key = None;
        }
    }
}

/// Calls `visit` for every step until it breaks. Answers its break value, or the first syntax error.
pub(super) fn walk<'t, B>(
    text: &'t str,
    mut visit: impl FnMut(&Walk<'t>, &Step<'t>, Span) -> ControlFlow<B>,
) -> Result<Option<B>, ScanError> {
    let mut walk = Walk::new(text);
    while let Some(next) = walk.next() {
        let (step, span) = next?;
        if let ControlFlow::Break(found) = visit(&walk, &step, span) {
            return Ok(Some(found));
        }
        if matches!(step, Step::Scalar(..) | Step::Alias(_) | Step::Close) {
            walk.end_value();
        }
    }
    Ok(None)
}

/// The part of an entry that is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The value.
    Value,
    /// The key before it, if it has one.
    Key,
}

/// A value that is looked up, and its place as far as it is known.
struct Lookup<'p> {
    path: &'p str,
    part: Part,
    found: Option<Place>,
    /// The nearest enclosing node so far: the length of its path, and its place.
    around: Option<(usize, Place)>,
}

impl Lookup<'_> {
    /// Looks at a step of the walk.
    fn see(&mut self, walk: &Walk<'_>, step: &Step<'_>, span: Span) {
        let (here, path) = (walk.path(), self.path);
        if self.found.is_some() || !path.starts_with(here) {
            return;
        }
        if here == path {
            self.found = match step {
                Step::Key(_) if self.part == Part::Key => Some(Place::of_span(span)),
                Step::Key(_) => {
                    self.around = Some((here.len() + 1, Place::of_span(span)));
                    None
                }
                Step::Scalar(text, _) if text.is_empty() => {
                    Some(walk.key().map_or_else(|| Place::of_span(span), Place::of_span))
                }
                Step::Scalar(_, ScalarStyle::Literal | ScalarStyle::Folded) => Some(Place::of(span.start, 1)),
                Step::Scalar(..) | Step::Alias(_) => Some(Place::of_span(span)),
                Step::Close if span.start.line() == span.end.line() => Some(Place::of_span(span)),
                Step::Close => {
                    let key = walk.key().map(Place::of_span);
                    Some(key.unwrap_or_else(|| Place::of(span.start, 1)))
                }
                Step::Open(_) | Step::Document => None,
            };
            return;
        }
        let encloses = here.is_empty() || path[here.len()..].starts_with(['.', '[']);
        let begins = matches!(step, Step::Key(_) | Step::Open(_));
        if begins && encloses && self.around.is_none_or(|(length, _)| length < here.len() + 1) {
            let width = if matches!(step, Step::Key(_)) { Place::of_span(span).width } else { 1 };
            self.around = Some((here.len() + 1, Place::of(span.start, width)));
        }
    }
}

/// The place of the value at `path`, or of its key; if there is none, of the nearest node around it.
pub(super) fn find(text: &str, path: &str, part: Part) -> Option<Place> {
    find_all(text, [(path, part)]).pop().flatten()
}

/// The place of each value or key, in one walk.
pub(super) fn find_all<'p>(
    text: &str,
    wanted: impl IntoIterator<Item = (&'p str, Part)>,
) -> Vec<Option<Place>> {
    let mut lookups: Vec<Lookup<'_>> =
        wanted.into_iter().map(|(path, part)| Lookup { path, part, found: None, around: None }).collect();
    // A syntax error ends the walk: places found before it count.
    let _ = walk(text, |walk, step, span| {
        for lookup in &mut lookups {
            lookup.see(walk, step, span);
        }
        let all = lookups.iter().all(|lookup| lookup.found.is_some());
        if all { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    lookups.into_iter().map(|lookup| lookup.found.or(lookup.around.map(|(_, place)| place))).collect()
}

/// A key or a value of a document.
pub(super) struct NodeFound {
    pub(super) path: String,
    pub(super) part: Part,
    pub(super) place: Place,
}

/// The node at or last before a line and column (both from 1).
pub(super) fn node_at(text: &str, line: usize, column: usize) -> Option<NodeFound> {
    let mut last = None;
    let stop = walk(text, |walk, step, span| {
        if (span.start.line(), span.start.col() + 1) > (line, column) && !matches!(step, Step::Close) {
            return ControlFlow::Break(());
        }
        let found = |part, place| Some(NodeFound { path: walk.path().to_owned(), part, place });
        match step {
            Step::Key(_) => last = found(Part::Key, Place::of_span(span)),
            Step::Scalar(..) | Step::Alias(_) => last = found(Part::Value, Place::of_span(span)),
            Step::Open(_) => last = found(Part::Value, Place::of(span.start, 1)),
            Step::Close if (span.end.line(), span.end.col()) >= (line, column) => {
                return ControlFlow::Break(());
            }
            Step::Close | Step::Document => {}
        }
        ControlFlow::Continue(())
    });
    stop.ok().and(last)
}

/// The mapping or list that begins at or last before a line and column: where the YAML reader finds a key missing.
pub(super) fn opened_at(text: &str, line: usize, column: usize) -> Option<(String, Place)> {
    let mut last = None;
    let stop = walk(text, |walk, step, span| {
        if (span.start.line(), span.start.col() + 1) > (line, column) && !matches!(step, Step::Close) {
            return ControlFlow::Break(());
        }
        if matches!(step, Step::Open(_)) {
            last = Some((walk.path().to_owned(), Place::of(span.start, 1)));
        }
        ControlFlow::Continue(())
    });
    stop.ok().and(last)
}

/// The innermost mapping or list around a line and column, by its end: where serde_json finds a key missing.
pub(super) fn closed_at(text: &str, line: usize, column: usize) -> Option<(String, Place)> {
    walk(text, |walk, step, span| {
        if matches!(step, Step::Close) && (span.end.line(), span.end.col()) >= (line, column) {
            return ControlFlow::Break((walk.path().to_owned(), Place::of(span.start, 1)));
        }
        ControlFlow::Continue(())
    })
    .ok()
    .flatten()
}

/// The place of character `offset` of the string at `path`, however the string is written.
pub(super) fn find_within(text: &str, path: &str, offset: usize, width: usize) -> Option<Place> {
    let (value, style, span) = walk(text, |walk, step, span| match step {
        Step::Scalar(value, style) if walk.path() == path => {
            ControlFlow::Break((value.clone().into_owned(), *style, span))
        }
        _ => ControlFlow::Continue(()),
    })
    .ok()??;
    let mut source = Cursor::at(text, span.start);
    source.skip_header(style);
    let mut place = source.place();
    for (position, letter) in value.chars().chain(std::iter::once('\n')).enumerate() {
        let from = source.match_letter(letter, style);
        if position <= offset {
            place = from;
        }
        if position >= offset {
            break;
        }
    }
    Some(Place { width: width.max(1), ..place })
}

/// A position in a text, in characters.
struct Cursor<'t> {
    rest: std::iter::Peekable<std::str::Chars<'t>>,
    line: usize,
    column: usize,
}

impl<'t> Cursor<'t> {
    fn at(text: &'t str, marker: Marker) -> Self {
        let byte = text.char_indices().nth(marker.index()).map_or(text.len(), |(byte, _)| byte);
        Self { rest: text[byte..].chars().peekable(), line: marker.line().max(1), column: marker.col() + 1 }
    }

    fn place(&self) -> Place {
        Place { line: self.line, column: self.column, width: 1 }
    }

    fn bump(&mut self) -> Option<char> {
        let letter = self.rest.next()?;
        if letter == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
        Some(letter)
    }

    /// Steps over an opening quote, or over a block scalar's `|-` line.
    fn skip_header(&mut self, style: ScalarStyle) {
        match style {
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => {
                self.bump();
            }
            ScalarStyle::Literal | ScalarStyle::Folded if matches!(self.rest.peek(), Some('|' | '>')) => {
                while self.bump().is_some_and(|letter| letter != '\n') {}
            }
            _ => {}
        }
    }

    fn skip_space(&mut self) {
        while self.rest.peek().is_some_and(|letter| letter.is_whitespace()) {
            self.bump();
        }
    }

    /// Steps over the text of `letter` in the value, and answers its place. Line breaks and indentation may be folded in many ways;
    /// all other letters appear in order, and keep text and value in step.
    fn match_letter(&mut self, letter: char, style: ScalarStyle) -> Place {
        if letter.is_whitespace() {
            let place = self.place();
            match self.rest.peek() {
                Some(next) if next.is_whitespace() => {
                    self.bump();
                }
                Some('\\') if style == ScalarStyle::DoubleQuoted => self.skip_escape(),
                _ => {}
            }
            return place;
        }
        self.skip_space();
        let mut place = self.place();
        match (style, self.rest.peek()) {
            (ScalarStyle::SingleQuoted, Some('\'')) => {
                self.bump();
                self.bump();
            }
            (ScalarStyle::DoubleQuoted, Some('\\')) => {
                self.skip_escape();
                if self.rest.peek().is_some_and(|next| next.is_whitespace()) && self.column == 1 {
                    self.skip_space();
                    place = self.place();
                    self.bump();
                }
            }
            _ => {
                self.bump();
            }
        }
        place
    }

    fn skip_escape(&mut self) {
        self.bump();
        let n_digits = match self.bump() {
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            _ => 0,
        };
        for _ in 0..n_digits {
            self.bump();
        }
    }
}
