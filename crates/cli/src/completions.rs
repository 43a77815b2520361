//! `apportion completions` and `apportion man`: the command line for shells and for `man`.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use clap::builder::Resettable;
use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::Session;
use crate::exit::Failure;
use crate::file::{check_folder, write};

/// Arguments of `completions`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  apportion completions bash >~/.local/share/bash-completion/completions/apportion
  apportion completions zsh >~/.zfunc/_apportion
  apportion completions fish >~/.config/fish/completions/apportion.fish")]
pub struct CompletionsArguments {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

/// Arguments of `man`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Example:
  apportion man ~/.local/share/man/man1 && man apportion-sweep")]
pub struct ManArguments {
    /// The folder of the pages; it is made if it is not there
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Prints the script by which a shell completes the command.
///
/// # Errors
/// If standard output cannot be written to.
pub(super) fn run(
    arguments: &CompletionsArguments,
    mut command: Command,
    session: &Session,
) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "apportion", &mut script);
    session.output.text(&String::from_utf8_lossy(&script))
}

/// A command without its subcommands `help`, which have no pages.
fn without_help_commands(command: Command) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|inner| inner.get_name().to_owned()).collect();
    let command = command.disable_help_subcommand(true);
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, without_help_commands))
}

/// The form of lines in a section.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Sentences, which are filled.
    Sentences,
    /// Examples, which stay in lines as they are.
    Lines,
    /// Terms, each with its meaning.
    Terms,
}

/// A page with a section for the help's text below the flags. Sentences are filled; indented lines stay as they are, or are a list
/// of terms if two spaces separate a term from its meaning.
fn with_extra(page: String, extra: Option<&str>) -> String {
    let Some(extra) = extra else { return page };
    let mut section = String::from(".SH EXTRA\n");
    let mut part = Part::Sentences;
    for line in extra.lines() {
        let inner = line.trim_start();
        let indent = line.len() - inner.len();
        let term = inner.split_once("  ").filter(|_| indent > 0 && indent < 8);
        let next = match (term, indent) {
            (Some(_), _) => Part::Terms,
            (None, 0) => Part::Sentences,
            // The meaning of a term goes on in this line.
            (None, 8..) if part == Part::Terms => Part::Terms,
            (None, _) => Part::Lines,
        };
        if next != part {
            section.push_str(match (part, next) {
                (Part::Lines, _) => ".fi\n.RE\n.PP\n",
                (_, Part::Lines) => ".PP\n.RS 2\n.nf\n",
                _ => ".PP\n",
            });
            part = next;
        }
        let _ = match term {
            _ if inner.is_empty() => writeln!(section, ".PP"),
            Some((term, meaning)) => {
                writeln!(section, ".TP 6\n{}\n{}", roff(term), roff(meaning.trim_start()))
            }
            None if part == Part::Lines => writeln!(section, "{}", roff(line.get(2..).unwrap_or(inner))),
            None => writeln!(section, "{}", roff(inner)),
        };
    }
    if part == Part::Lines {
        section.push_str(".fi\n.RE\n");
    }
    match page.find("\n.SH VERSION") {
        Some(at) => format!("{}\n{section}{}", &page[..at], &page[at + 1..]),
        None => page + &section,
    }
}

/// Text of a page, escaped so that no letter is a command.
fn roff(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    if text.starts_with('.') { format!("\\&{text}") } else { text }
}

/// Writes a page for the command and one for each subcommand that people use.
///
/// # Errors
/// If a page cannot be written.
pub(super) fn run_man(arguments: &ManArguments, command: Command, session: &Session) -> Result<(), Failure> {
    let folder = &arguments.folder;
    check_folder("the folder", Some(folder))?;
    fs::create_dir_all(folder).map_err(Failure::io(format!("make {}", folder.display())))?;
    let mut command = without_help_commands(command);
    command.build();
    let mut n_pages = 0;
    let mut pages = vec![(command.get_name().to_owned(), command)];
    while let Some((name, command)) = pages.pop() {
        for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
            pages.push((format!("{name}-{}", inner.get_name()), inner.clone()));
        }
        let extra = command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string);
        let command = command.after_help(Resettable::Reset).after_long_help(Resettable::Reset);
        let mut page = Vec::new();
        let titled = Man::new(command.display_name(name.clone())).title(name.clone());
        titled.render(&mut page).map_err(Failure::io(format!("write the page of {name}")))?;
        let page = with_extra(String::from_utf8_lossy(&page).into_owned(), extra.as_deref());
        write(&folder.join(format!("{name}.1")), page.as_bytes())?;
        n_pages += 1;
    }
    session.note(format!("wrote {n_pages} pages to {}", folder.display()));
    Ok(())
}
