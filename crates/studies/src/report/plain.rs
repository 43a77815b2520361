//! User's text made safe to print: on one line, without characters that move a cursor or change the text's direction.

use std::borrow::Cow;
use std::fmt::Write as _;

use apportion::spec::path_text;

/// The text with hidden characters escaped: `
/// `, `\u{1b}`, `\u{202e}`; and `\xff` for a byte as [`path_text`] writes it.
pub fn plain(text: &str) -> Cow<'_, str> {
    plain_but(text, &[])
}

/// The text with hidden characters escaped, except line ends, which are the writer's own.
pub fn plain_lines(text: &str) -> Cow<'_, str> {
    plain_but(text, &['\n'])
}

fn plain_but<'t>(text: &'t str, kept: &[char]) -> Cow<'t, str> {
    let is_spelt = |letter: char| is_hidden(letter) && !kept.contains(&letter);
    if !text.contains(is_spelt) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 8);
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        if let Some(byte) = path_text::first_byte(&text[at..]) {
            let _ = write!(shown, "\\x{byte:02x}");
            letters.nth(1);
        } else if is_spelt(letter) {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    shown.into()
}

/// The text as lines of at most `n_letters` letters each, broken at spaces. A longer word is a line of its own.
pub(super) fn broken(text: &str, n_letters: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= n_letters => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Whether a character is a control, a line or paragraph separator, or sets the direction of text.
pub fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_a_cursor_or_turns_text_around_is_spelt_out() {
        for (text, shown) in [
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("a\nb\r\tc", "a\\nb\\r\\tc"),
            ("a\u{9b}\u{7f}\0", "a\\u{9b}\\u{7f}\\u{0}"),
            ("\u{202e}gpj\u{2066}\u{2028}\u{2029}", "\\u{202e}gpj\\u{2066}\\u{2028}\\u{2029}"),
            ("a\0ff\0c3.yaml\0", "a\\xff\\xc3.yaml\\u{0}"),
            ("größe ± 作業 \\n", "größe ± 作業 \\n"),
        ] {
            assert_eq!(plain(text), shown);
        }
        assert_eq!(plain_lines("a\nb\u{1b}"), "a\nb\\u{1b}");
    }
}
