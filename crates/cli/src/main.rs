//! The `apportion` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    apportion_cli::main()
}
