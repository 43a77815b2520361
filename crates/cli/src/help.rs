//! The layout of help texts: paragraphs that the terminal's width breaks into lines, and lines that stay as they are.

use clap::Command;

/// The command with the text below its flags, and below those of its subcommands, in paragraphs of one line each, as clap
/// breaks lines at the terminal's width and keeps the breaks that a text has. Indented lines stay apart, as do lines after a
/// colon.
pub(crate) fn in_paragraphs(command: Command) -> Command {
    let text = command.get_after_help().map(ToString::to_string);
    let command = command.mut_subcommands(in_paragraphs);
    match text {
        Some(text) => command.after_help(joined(&text)),
        None => command,
    }
}

/// A text in which lines of one paragraph are joined.
fn joined(text: &str) -> String {
    let is_sentence = |line: &str| line.chars().next().is_some_and(|letter| !letter.is_whitespace());
    let mut joined = String::with_capacity(text.len());
    let mut before = "";
    for (number, line) in text.lines().enumerate() {
        if number > 0 {
            let goes_on = is_sentence(before) && is_sentence(line) && !before.ends_with(':');
            joined.push(if goes_on { ' ' } else { '\n' });
        }
        joined.push_str(line);
        before = line;
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_joined_and_indented_lines_stay_apart() {
        let text = "A sentence that\ngoes on.\n\nExamples:\n  one\n  two\nAn end:\nlast\nline";
        let expected = "A sentence that goes on.\n\nExamples:\n  one\n  two\nAn end:\nlast line";
        assert_eq!(joined(text), expected);
        assert_eq!(joined(""), "");
    }
}
