//! The command line that started the process, as a shell takes it again.

use std::env;

use apportion_studies::sweep::today;

/// A word, quoted for the shell if it needs to be.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,+@%".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The command that this process was started by, on one line.
pub(super) fn typed() -> String {
    let words = env::args_os().skip(1).map(|argument| quoted(&argument.to_string_lossy()));
    std::iter::once("apportion".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// A page's statements about itself: the command that makes it, and the day.
pub(super) fn made_now() -> impl Iterator<Item = (String, String)> {
    let made = [("command", Some(typed())), ("made on", today())];
    made.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_the_shell() {
        for (word, expected) in
            [("rate=0.4", "rate=0.4"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("", "''")]
        {
            assert_eq!(quoted(word), expected);
        }
    }
}
