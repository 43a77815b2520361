//! `apportion completions` and `apportion man`: the command line for shells and for `man`.

use std::fs;
use std::path::PathBuf;

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

/// Prints what a shell completes the command by.
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

/// Writes a page for the command and one for each subcommand that people use.
///
/// # Errors
/// If a page cannot be written.
pub(super) fn run_man(arguments: &ManArguments, command: Command, session: &Session) -> Result<(), Failure> {
    let folder = &arguments.folder;
    check_folder("the folder", Some(folder))?;
    fs::create_dir_all(folder).map_err(Failure::io(format!("make {}", folder.display())))?;
    let mut command = command;
    command.build();
    let mut n_pages = 0;
    let mut pages = vec![(command.get_name().to_owned(), command)];
    while let Some((name, command)) = pages.pop() {
        for inner in
            command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help")
        {
            pages.push((format!("{name}-{}", inner.get_name()), inner.clone()));
        }
        let mut page = Vec::new();
        let titled = Man::new(command.display_name(name.clone())).title(name.clone());
        titled.render(&mut page).map_err(Failure::io(format!("write the page of {name}")))?;
        write(&folder.join(format!("{name}.1")), &page)?;
        n_pages += 1;
    }
    session.note(format!("wrote {n_pages} pages to {}", folder.display()));
    Ok(())
}
