//! The lexer: from text to tokens.

use super::ast::{Comparison, Span};
use super::dimension::Dimension;
use super::error::{ExpressionError, ExpressionErrorKind as Kind};

/// A token: the smallest piece of text with a meaning of its own.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Number(f64),
    Name(String),
    Quoted(String),
    Unit(Dimension),
    Symbol(char),
    Compare(Comparison),
    End,
}

impl Token {
    /// Name of the token in error messages.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Number(value) => format!("the number {value:?}"),
            Self::Name(name) => format!("`{name}`"),
            Self::Quoted(name) => format!("`\"{name}\"`"),
            Self::Unit(dimension) => format!("the unit `[{dimension}]`"),
            Self::Symbol(symbol) => format!("`{symbol}`"),
            Self::Compare(comparison) => format!("`{comparison}`"),
            Self::End => "the end".to_owned(),
        }
    }
}

/// The tokens of a text with their places; the last is [`Token::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<(Token, Span)>, ExpressionError> {
    let mut tokens = Vec::new();
    let mut offset = 0;
    while let Some(next) = text[offset..].chars().next() {
        if next.is_whitespace() {
            offset += next.len_utf8();
            continue;
        }
        let (token, width) = token(&text[offset..], next, offset)?;
        tokens.push((token, Span { offset, width }));
        offset += width;
    }
    tokens.push((Token::End, Span { offset: text.len(), width: 1 }));
    Ok(tokens)
}

fn token(rest: &str, next: char, offset: usize) -> Result<(Token, usize), ExpressionError> {
    match next {
        'a'..='z' | 'A'..='Z' | '_' => {
            let width = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
            Ok((Token::Name(rest[..width].to_owned()), width))
        }
        '0'..='9' | '.' => number(rest, offset),
        '"' | '\'' => enclosed(rest, next)
            .map(|name| (Token::Quoted(name.to_owned()), name.len() + 2))
            .ok_or_else(|| ExpressionError::new(Kind::OpenQuote, Span { offset, width: rest.len() })),
        '[' => {
            let unit = enclosed(rest, ']').unwrap_or(&rest[1..]);
            let span = Span { offset, width: (unit.len() + 2).min(rest.len()) };
            match Dimension::parse(unit) {
                Some(dimension) if span.width == unit.len() + 2 => Ok((Token::Unit(dimension), span.width)),
                _ => Err(ExpressionError::new(Kind::Unit(unit.to_owned()), span)),
            }
        }
        '+' | '-' | '*' | '/' | '^' | '(' | ')' | ',' => Ok((Token::Symbol(next), 1)),
        '<' if rest[1..].starts_with('=') => Ok((Token::Compare(Comparison::AtMost), 2)),
        '>' if rest[1..].starts_with('=') => Ok((Token::Compare(Comparison::AtLeast), 2)),
        '=' if rest[1..].starts_with('=') => Ok((Token::Compare(Comparison::Equal), 2)),
        _ => Err(ExpressionError::new(Kind::Character(next), Span { offset, width: next.len_utf8() })),
    }
}

/// The text between the first character and the next `close`; `None` without a `close`.
fn enclosed(rest: &str, close: char) -> Option<&str> {
    rest[1..].find(close).map(|end| &rest[1..=end])
}

/// The smallest number above 0 that an expression may contain.
const LEAST: f64 = 1e-100;

/// Whether a number is 0 as it is written, and not by rounding.
fn is_zero(text: &str) -> bool {
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    mantissa.bytes().all(|byte| matches!(byte, b'0' | b'.'))
}

fn number(rest: &str, offset: usize) -> Result<(Token, usize), ExpressionError> {
    let bytes = rest.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut width = digits(0);
    if bytes.get(width) == Some(&b'.') {
        width += 1 + digits(width + 1);
    }
    if matches!(bytes.get(width), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(width + 1), Some(b'+' | b'-')));
        let exponent = digits((width + 1 + sign).min(bytes.len()));
        if exponent > 0 {
            width += 1 + sign + exponent;
        }
    }
    match rest[..width].parse::<f64>() {
        Ok(value) if value.is_finite() && (value >= LEAST || is_zero(&rest[..width])) => {
            Ok((Token::Number(value), width))
        }
        _ => {
            let span = Span { offset, width };
            Err(ExpressionError::new(Kind::Number(rest[..width].to_owned()), span))
        }
    }
}
