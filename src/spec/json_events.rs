//! JSON as events of the YAML parser, one at a time: a text of any length is walked in little memory.

use std::borrow::Cow;

use saphyr_parser::{Event, Marker, ScalarStyle, ScanError, Span};

/// The events of a JSON text.
#[derive(Debug)]
pub(super) struct JsonEvents<'t> {
    text: &'t str,
    /// The number of bytes read.
    at: usize,
    /// The number of characters read.
    index: usize,
    line: usize,
    /// The number of characters read in the line.
    column: usize,
    /// For each open mapping or list: whether it is a mapping.
    open: Vec<bool>,
}

impl<'t> JsonEvents<'t> {
    /// Events from the beginning; none if the text is not JSON.
    pub(super) fn of(text: &'t str) -> Option<Self> {
        let may_be = text.trim_start().starts_with(['{', '[']);
        let is_json = may_be && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        is_json.then(|| Self { text, at: 0, index: 0, line: 1, column: 0, open: Vec::new() })
    }

    /// The next event, with its span.
    pub(super) fn next_event(&mut self) -> Option<Result<(Event<'t>, Span), ScanError>> {
        let is_between = |byte: u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b':');
        while self.peek().is_some_and(is_between) {
            self.bump();
        }
        let start = self.marker();
        let event = match self.peek()? {
            open @ (b'{' | b'[') => {
                self.bump();
                self.open.push(open == b'{');
                if open == b'{' { Event::MappingStart(0, None) } else { Event::SequenceStart(0, None) }
            }
            b'}' | b']' => {
                self.bump();
                match self.open.pop() {
                    Some(true) => Event::MappingEnd,
                    Some(false) => Event::SequenceEnd,
                    None => return Some(Err(ScanError::new(start, "not JSON".to_owned()))),
                }
            }
            b'"' => Event::Scalar(self.quoted(), ScalarStyle::DoubleQuoted, 0, None),
            _ => {
                let from = self.at;
                while self.peek().is_some_and(|byte| !is_between(byte) && !matches!(byte, b'}' | b']')) {
                    self.bump();
                }
                Event::Scalar(Cow::Borrowed(&self.text[from..self.at]), ScalarStyle::Plain, 0, None)
            }
        };
        Some(Ok((event, Span::new(start, self.marker()))))
    }

    fn quoted(&mut self) -> Cow<'t, str> {
        let from = self.at;
        let mut is_plain = true;
        self.bump();
        while let Some(byte) = self.peek() {
            self.bump();
            match byte {
                b'"' => break,
                b'\\' => {
                    is_plain = false;
                    self.bump();
                }
                _ => {}
            }
        }
        let written = &self.text[from..self.at];
        let inside = written.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(written);
        if is_plain {
            Cow::Borrowed(inside)
        } else {
            serde_json::from_str(written).unwrap_or(Cow::Borrowed(inside))
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn marker(&self) -> Marker {
        Marker::new(self.index, self.line, self.column)
    }

    /// Steps over a character.
    fn bump(&mut self) {
        let bytes = self.text.as_bytes();
        let Some(first) = bytes.get(self.at) else { return };
        self.at += 1;
        while bytes.get(self.at).is_some_and(|byte| byte & 0xC0 == 0x80) {
            self.at += 1;
        }
        self.index += 1;
        if *first == b'\n' {
            self.line += 1;
            self.column = 0;
        } else {
            self.column += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use saphyr_parser::Parser;

    use super::*;

    fn of_yaml(text: &str) -> Vec<(Event<'_>, usize, usize)> {
        let is_node = |event: &Event<'_>| {
            !matches!(
                event,
                Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) | Event::DocumentEnd
            )
        };
        let events = Parser::new_from_str(text).map(|next| next.unwrap());
        events.filter(|(event, _)| is_node(event)).map(|(event, span)| brief(event, span)).collect()
    }

    fn brief(event: Event<'_>, span: Span) -> (Event<'_>, usize, usize) {
        (event, span.start.line(), span.start.col())
    }

    #[test]
    fn json_has_the_events_that_it_has_as_yaml() {
        for text in [
            r#"{"a": [1, -2.5e3, {"b": null, "ü": "ä\"x\u00e4"}], "c": {}, "d": [], "e": true}"#,
            "{\n  \"a\": [\n    \"x y\",\n    [[], [3]]\n  ],\n  \"b\": \"{,:}\"\n}\n",
        ] {
            let mut json = JsonEvents::of(text).unwrap();
            let events: Vec<_> = std::iter::from_fn(|| json.next_event())
                .map(|next| next.map(|(event, span)| brief(event, span)).unwrap())
                .collect();
            assert_eq!(events, of_yaml(text), "{text}");
        }
        for text in ["a: 1", "{a: 1}", "{\"a\": 1", "{} {}"] {
            assert!(JsonEvents::of(text).is_none(), "{text}");
        }
    }
}
